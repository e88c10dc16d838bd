// The bytes of one terminal: where in the stream we are, and what the server may send on. Owns offsets and credit;
// must never lose a byte in silence (a jump in the offset is told), and must never look into the bytes.

import { storedSecret } from "../api.ts";
import { Link, type Phase } from "../link.ts";
import { INITIAL_CREDIT } from "../wire/protocol.ts";
import { credit, decode, type Hold, hold, keys, resize } from "./frames.ts";

/** Credit goes back in lumps this big: rarely enough to cost nothing, early enough that the server never runs dry. */
const CREDIT_LUMP_BYTES = INITIAL_CREDIT / 8;

export type StreamOptions = {
  tab: string;
  /** `tab` is the id of a row outside our tabs instead: its terminal is one of the person's own tmux. */
  outside?: boolean;
  /** The size of this viewer's place, asked anew for each try. */
  size: () => { cols: number; rows: number };
  /** Hand `bytes` to the screen and call `done` when it has taken them in. */
  write: (bytes: Uint8Array, done: () => void) => void;
  /** What follows does not join what came before: the screen is drawn anew. `fresh`: by a new attach. */
  jumped: (fresh: boolean) => void;
  /** The size of the window, which what is written draws on; `own`: this viewer decides it. */
  sized: (cols: number, rows: number, own: boolean) => void;
  title: (text: string) => void;
  ended: (reason: string) => void;
  phase: (phase: Phase) => void;
};

export class Stream {
  #options: StreamOptions;
  #link: Link;
  /** Offset of the next byte; null before the server named one. */
  #at: number | null = null;
  #fresh = true;
  #consumed = 0;
  /** What the server was told last of the room for the grid. */
  #told = "";
  /** Counts connections, so that credit for bytes of an old one is never given to a new one. */
  #connection = 0;

  constructor(options: StreamOptions) {
    this.#options = options;
    this.#link = new Link({
      path: () => this.#path(),
      hello: () => JSON.stringify({ type: "hello", secret: storedSecret() ?? "" }),
      silenceMsMax: null,
      heard: (data) => this.#heard(data),
      phase: (phase) => this.#phase(phase),
    });
  }

  /** False when nothing was sent because the link is down; typed keys are not kept for later. */
  type(bytes: Uint8Array): boolean {
    return this.#link.send(keys(bytes));
  }

  resize(cols: number, rows: number): void {
    if (this.#link.send(resize(cols, rows))) this.#told = `${cols}x${rows}`;
  }

  /** Whether this viewer may decide the size of the window. */
  hold(word: Hold): void {
    this.#link.send(hold(word));
  }

  /** The way to the server is there again: do not wait for the next try. */
  retryNow(): void {
    this.#link.retryNow();
  }

  /** The way to the server was gone, and this socket noticed nothing: it may be dead. */
  renew(): void {
    this.#link.renew();
  }

  close(): void {
    this.#link.close();
  }

  #path(): string {
    const { cols, rows } = this.#options.size();
    this.#told = `${cols}x${rows}`;
    const of = this.#options.outside === true ? "item" : "tab";
    const query = new URLSearchParams({ [of]: this.#options.tab, cols: String(cols), rows: String(rows) });
    if (this.#at !== null) query.set("offset", String(this.#at));
    return `/api/terminal?${query}`;
  }

  #phase(phase: Phase): void {
    if (phase.kind === "live") {
      this.#fresh = true;
      this.#connection += 1;
      this.#consumed = 0;
      // It may have changed since it was said in the address.
      const { cols, rows } = this.#options.size();
      if (this.#told !== `${cols}x${rows}`) this.resize(cols, rows);
    }
    this.#options.phase(phase);
  }

  #heard(data: string | ArrayBuffer): void {
    if (typeof data === "string") return;
    const frame = decode(data);
    if (frame === null) return;
    switch (frame.kind) {
      case "data": {
        const connection = this.#connection;
        if (this.#at !== null) this.#at += frame.bytes.length;
        this.#options.write(frame.bytes, () => this.#took(connection, frame.bytes.length));
        return;
      }
      case "size":
        this.#options.sized(frame.cols, frame.rows, frame.own);
        return;
      case "offset":
        if (this.#at !== null && this.#at !== frame.at) this.#options.jumped(this.#fresh);
        this.#at = frame.at;
        this.#fresh = false;
        return;
      case "title":
        this.#options.title(frame.text);
        return;
      case "end":
        this.#link.close();
        this.#options.ended(frame.reason);
        return;
    }
  }

  #took(connection: number, bytes: number): void {
    if (connection !== this.#connection) return;
    this.#consumed += bytes;
    if (this.#consumed < CREDIT_LUMP_BYTES) return;
    this.#link.send(credit(this.#consumed));
    this.#consumed = 0;
  }
}
