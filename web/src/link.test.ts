// The link against a socket that the test holds: hello first, silence noticed, tries spread out, nothing kept for later.

import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Link, type Phase } from "./link.ts";

class FakeSocket {
  static readonly OPEN = 1;
  static all: FakeSocket[] = [];
  readyState = 0;
  sent: unknown[] = [];
  closed = false;
  binaryType = "";
  onopen: (() => void) | null = null;
  onmessage: ((event: { data: unknown }) => void) | null = null;
  onclose: (() => void) | null = null;
  readonly url: string;
  constructor(url: URL) {
    this.url = url.href;
    FakeSocket.all.push(this);
  }
  send(data: unknown) {
    this.sent.push(data);
  }
  close() {
    this.closed = true;
  }
  open() {
    this.readyState = FakeSocket.OPEN;
    this.onopen?.();
  }
}

const last = () => {
  const socket = FakeSocket.all.at(-1);
  if (socket === undefined) throw new Error("no socket was opened");
  return socket;
};

describe("link", () => {
  let phases: Phase["kind"][];
  let heard: unknown[];
  let refused: number;
  let link: Link;
  let online: EventTarget;

  beforeEach(() => {
    vi.useFakeTimers({ now: 1_000_000 });
    vi.spyOn(Math, "random").mockReturnValue(0.5);
    FakeSocket.all = [];
    online = new EventTarget();
    vi.stubGlobal("WebSocket", FakeSocket);
    vi.stubGlobal("document", Object.assign(new EventTarget(), { hidden: false }));
    vi.stubGlobal("location", { href: "https://forge:8022/#/t/a" });
    vi.stubGlobal("addEventListener", online.addEventListener.bind(online));
    vi.stubGlobal("removeEventListener", online.removeEventListener.bind(online));
    phases = [];
    heard = [];
    refused = 0;
    link = new Link({
      path: () => "/api/status",
      hello: () => "hello",
      silenceMsMax: 15_000,
      heard: (data) => heard.push(data),
      phase: (phase) => phases.push(phase.kind),
      refused: () => (refused += 1),
    });
  });
  afterEach(() => {
    link.close();
    vi.unstubAllGlobals();
    vi.restoreAllMocks();
    vi.useRealTimers();
  });

  function live() {
    last().open();
    last().onmessage?.({ data: "first" });
  }

  test("says hello before anything else and is live with the first word", () => {
    expect(last().url).toBe("wss://forge:8022/api/status");
    last().open();
    expect(last().sent).toEqual(["hello"]);
    expect(link.send("early")).toBe(false);
    last().onmessage?.({ data: "first" });
    expect(phases).toEqual(["live"]);
    expect(heard).toEqual(["first"]);
    expect(link.send("now")).toBe(true);
  });

  test("silence is a loss, and each word restarts the watch", () => {
    live();
    vi.advanceTimersByTime(14_000);
    last().onmessage?.({ data: "beat" });
    vi.advanceTimersByTime(14_000);
    expect(phases).toEqual(["live"]);
    const dead = last();
    vi.advanceTimersByTime(1001);
    expect(phases.at(-1)).toBe("lost");
    expect(dead.closed).toBe(true);
    expect(link.send("x")).toBe(false);
  });

  test("a lost link tries again, later each time, and is refused each time it hears nothing", () => {
    live();
    last().onclose?.();
    expect(FakeSocket.all.length).toBe(1);
    vi.advanceTimersByTime(250);
    expect(FakeSocket.all.length).toBe(2);
    expect(refused).toBe(0);
    last().onclose?.();
    expect(refused).toBe(1);
    vi.advanceTimersByTime(499);
    expect(FakeSocket.all.length).toBe(2);
    vi.advanceTimersByTime(1);
    expect(FakeSocket.all.length).toBe(3);
    live();
    expect(phases.at(-1)).toBe("live");
  });

  test("a try that hears nothing is given up", () => {
    last().open();
    vi.advanceTimersByTime(8000);
    expect(phases).toEqual(["connecting"]);
    vi.advanceTimersByTime(250);
    expect(FakeSocket.all.length).toBe(2);
  });

  test("coming online tries at once; a live link is left alone", () => {
    live();
    online.dispatchEvent(new Event("online"));
    expect(FakeSocket.all.length).toBe(1);
    last().onclose?.();
    online.dispatchEvent(new Event("online"));
    expect(FakeSocket.all.length).toBe(2);
  });

  test("a try that began on the old network is begun anew on the next", () => {
    expect(FakeSocket.all.length).toBe(1);
    online.dispatchEvent(new Event("online"));
    expect(FakeSocket.all.map((socket) => socket.closed)).toEqual([true, false]);
  });

  test("after a sleep that no timer saw, a silent link is not believed", () => {
    live();
    vi.setSystemTime(Date.now() + 10_000);
    document.dispatchEvent(new Event("visibilitychange"));
    expect(FakeSocket.all.length).toBe(1);
    vi.setSystemTime(Date.now() + 3_600_000);
    document.dispatchEvent(new Event("visibilitychange"));
    expect(phases.at(-1)).toBe("lost");
    expect(FakeSocket.all.map((socket) => socket.closed)).toEqual([true, false]);
  });

  test("a late word of a socket that was let go is not heard", () => {
    live();
    const old = last();
    link.renew();
    expect(old.onmessage).toBeNull();
    expect(old.closed).toBe(true);
    expect(FakeSocket.all.length).toBe(2);
  });

  test("closed is closed", () => {
    live();
    link.close();
    online.dispatchEvent(new Event("online"));
    vi.advanceTimersByTime(60_000);
    expect(FakeSocket.all.length).toBe(1);
  });
});
