// One socket to the server that comes back by itself. Owns connecting, the hello, the silence that means a dead link,
// and when to try again; must never read what a message says. The only place with a WebSocket.

import { after, now, type Stop } from "./clock.ts";
import { waitMs } from "./core/backoff.ts";

export type Phase =
  /** Never heard anything yet. */
  | { kind: "connecting" }
  /** Heard, and not silent for too long. */
  | { kind: "live" }
  /** Lost. `retryAtMs` (our clock) is null while a try is under way. */
  | { kind: "lost"; retryAtMs: number | null };

export type LinkOptions = {
  /** Path and query, asked anew for each try. */
  path: () => string;
  /** First text frame of every try. */
  hello: () => string;
  /** Longest silence of a live link, ms; null where silence is normal. */
  silenceMsMax: number | null;
  /** A frame came. Called after the phase is live. */
  heard: (data: string | ArrayBuffer) => void;
  phase: (phase: Phase) => void;
  /** A try ended before anything was heard: perhaps the login is no longer good. */
  refused?: () => void;
};

/** A try that has heard nothing for this long is given up; the server answers a hello in milliseconds. */
const FIRST_WORD_MS_MAX = 8000;

export class Link {
  #options: LinkOptions;
  #socket: WebSocket | null = null;
  #heard = false;
  /** Our wall clock, which goes on while the machine sleeps; timers may not. */
  #heardAtMs = 0;
  #everHeard = false;
  #failed = 0;
  #watch: Stop | null = null;
  #retry: Stop | null = null;
  #closed = false;

  constructor(options: LinkOptions) {
    this.#options = options;
    globalThis.addEventListener("online", this.#hurry);
    document.addEventListener("visibilitychange", this.#seen);
    this.#connect();
  }

  /** False when the frame was not sent because the link is not live; it is not kept for later. */
  send(data: string | Uint8Array<ArrayBuffer>): boolean {
    if (this.#socket?.readyState !== WebSocket.OPEN || !this.#heard) return false;
    this.#socket.send(data);
    return true;
  }

  /** Tries now instead of when the wait is over. Does nothing while live. */
  retryNow(): void {
    if (this.#closed || this.#heard || this.#retry === null) return;
    this.#connect();
  }

  /** Lets go of a socket that may be dead without knowing it, and connects anew. */
  renew(): void {
    if (!this.#closed) this.#connect();
  }

  close(): void {
    this.#closed = true;
    globalThis.removeEventListener("online", this.#hurry);
    document.removeEventListener("visibilitychange", this.#seen);
    this.#drop();
  }

  /** Another network: what was under way on the old one leads nowhere. */
  #hurry = () => {
    if (!this.#heard || this.#overdue()) this.renew();
  };
  #seen = () => {
    if (document.hidden) return;
    if (this.#overdue()) this.renew();
    else this.retryNow();
  };

  /** It looks live and has been silent for too long: the machine slept. */
  #overdue(): boolean {
    const most = this.#options.silenceMsMax;
    return this.#heard && most !== null && now() - this.#heardAtMs > most;
  }

  #connect(): void {
    this.#drop();
    if (this.#everHeard) this.#options.phase({ kind: "lost", retryAtMs: null });
    const url = new URL(this.#options.path(), location.href);
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    const socket = new WebSocket(url);
    socket.binaryType = "arraybuffer";
    this.#socket = socket;
    this.#expect(FIRST_WORD_MS_MAX);
    socket.onopen = () => socket.send(this.#options.hello());
    socket.onmessage = (event: MessageEvent<string | ArrayBuffer>) => this.#onFrame(event.data);
    socket.onclose = () => this.#lose();
  }

  #onFrame(data: string | ArrayBuffer): void {
    if (!this.#heard) {
      this.#heard = true;
      this.#everHeard = true;
      this.#failed = 0;
      this.#options.phase({ kind: "live" });
    }
    this.#heardAtMs = now();
    this.#expect(this.#options.silenceMsMax);
    this.#options.heard(data);
  }

  /** Restarts the watch over silence. */
  #expect(ms: number | null): void {
    this.#watch?.();
    this.#watch = ms === null ? null : after(ms, () => this.#lose());
  }

  #lose(): void {
    if (this.#closed) return;
    const heard = this.#heard;
    this.#drop();
    const wait = waitMs(this.#failed, Math.random());
    this.#failed += 1;
    this.#options.phase(this.#everHeard ? { kind: "lost", retryAtMs: now() + wait } : { kind: "connecting" });
    this.#retry = after(wait, () => this.#connect());
    if (!heard) this.#options.refused?.();
  }

  /** Lets go of the socket without waiting for its close, which a dead network never brings. */
  #drop(): void {
    this.#watch?.();
    this.#watch = null;
    this.#retry?.();
    this.#retry = null;
    this.#heard = false;
    const socket = this.#socket;
    this.#socket = null;
    if (socket === null) return;
    socket.onopen = socket.onmessage = socket.onclose = null;
    socket.close();
  }
}
