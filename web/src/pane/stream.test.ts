// Offsets and credit of one terminal, with a link that the test holds.

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { LinkOptions } from "../link.ts";

const links: FakeLink[] = [];
class FakeLink {
  sent: Uint8Array[] = [];
  closed = false;
  readonly options: LinkOptions;
  constructor(options: LinkOptions) {
    this.options = options;
    links.push(this);
  }
  send(data: Uint8Array) {
    this.sent.push(data);
    return true;
  }
  close() {
    this.closed = true;
  }
}
vi.mock("../link.ts", () => ({ Link: FakeLink }));
const { Stream } = await import("./stream.ts");

const offset = (at: number) => {
  const view = new DataView(new ArrayBuffer(9));
  view.setUint8(0, 3);
  view.setBigUint64(1, BigInt(at));
  return view.buffer;
};
const data = (length: number) => new Uint8Array(1 + length).buffer;

let size = { cols: 80, rows: 24 };
let jumps: boolean[];
let done: (() => void)[];
let ended: string[];

function begin(of: { tab: string; outside?: boolean } = { tab: "t-1" }) {
  const stream = new Stream({
    ...of,
    size: () => size,
    write: (_, taken) => done.push(taken),
    jumped: (fresh) => jumps.push(fresh),
    title: () => undefined,
    sized: () => undefined,
    ended: (reason) => ended.push(reason),
    phase: () => undefined,
  });
  const link = links.at(-1);
  if (link === undefined) throw new Error("the stream made no link");
  // A link asks where to before it is live.
  link.options.path();
  return { stream, link };
}

beforeEach(() => {
  vi.stubGlobal("localStorage", { getItem: () => null });
  size = { cols: 80, rows: 24 };
  jumps = [];
  done = [];
  ended = [];
});
afterEach(() => vi.unstubAllGlobals());

test("comes back with the offset of the next byte, and only then", () => {
  const { link } = begin();
  expect(link.options.path()).toBe("/api/terminal?tab=t-1&cols=80&rows=24");
  link.options.phase({ kind: "live" });
  link.options.heard(offset(1000));
  link.options.heard(data(24));
  expect(link.options.path()).toBe("/api/terminal?tab=t-1&cols=80&rows=24&offset=1024");
  link.options.phase({ kind: "live" });
  link.options.heard(offset(1024));
  expect(jumps).toEqual([]);
});

test("a session outside our tabs is asked for as such", () => {
  const { link } = begin({ tab: "forge:7:1", outside: true });
  expect(link.options.path()).toBe("/api/terminal?item=forge%3A7%3A1&cols=80&rows=24");
});

test("a jump is told, and whether a new attach made it", () => {
  const { link } = begin();
  link.options.phase({ kind: "live" });
  link.options.heard(offset(0));
  link.options.heard(offset(500));
  link.options.phase({ kind: "live" });
  link.options.heard(offset(9000));
  expect(jumps).toEqual([false, true]);
});

test("a size that has changed since the address was asked for is told", () => {
  const { link } = begin();
  size = { cols: 90, rows: 30 };
  link.options.phase({ kind: "live" });
  expect(link.sent.map((frame) => [...frame])).toEqual([[1, 0, 90, 0, 30]]);
  link.options.path();
  link.options.phase({ kind: "live" });
  expect(link.sent.length).toBe(1);
});

test("credit goes back for what the screen took, in lumps, never to another connection", () => {
  const { link } = begin();
  link.options.phase({ kind: "live" });
  link.options.heard(offset(0));
  link.options.heard(data(20_000));
  link.options.heard(data(20_000));
  expect(link.sent).toEqual([]);
  done[0]?.();
  expect(link.sent).toEqual([]);
  done[1]?.();
  expect(link.sent.map((frame) => [...frame])).toEqual([[2, 0, 0, 0x9c, 0x40]]);
  link.options.heard(data(40_000));
  link.options.phase({ kind: "live" });
  done[2]?.();
  expect(link.sent.length).toBe(1);
});

test("an end closes the link and says why", () => {
  const { link } = begin();
  link.options.heard(new Uint8Array([5, 98, 121, 101]).buffer);
  expect(link.closed).toBe(true);
  expect(ended).toEqual(["bye"]);
});
