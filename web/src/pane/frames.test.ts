// Byte for byte what API and server agree on.

import { expect, test } from "vitest";
import { credit, decode, hold, keys, resize } from "./frames.ts";

const buffer = (...bytes: number[]) => new Uint8Array(bytes).buffer;

test("client frames", () => {
  expect([...keys(new Uint8Array([3, 27]))]).toEqual([0, 3, 27]);
  expect([...resize(300, 45)]).toEqual([1, 1, 44, 0, 45]);
  expect([...hold("take")]).toEqual([6, 2]);
  expect([...credit(0x01020304)]).toEqual([2, 1, 2, 3, 4]);
});

test("server frames", () => {
  expect(decode(buffer(0, 65, 66))).toEqual({ kind: "data", bytes: new Uint8Array([65, 66]) });
  expect(decode(buffer(3, 0, 0, 0, 1, 0, 0, 0, 2))).toEqual({ kind: "offset", at: 4294967298 });
  expect(decode(buffer(1, 1, 44, 0, 24, 1))).toEqual({ kind: "size", cols: 300, rows: 24, own: true });
  expect(decode(buffer(4, 0xe4, 0xbd, 0xa0))).toEqual({ kind: "title", text: "你" });
  expect(decode(buffer(5))).toEqual({ kind: "end", reason: "" });
});

test("torn and unknown frames are nothing", () => {
  for (const odd of [buffer(), buffer(3, 0, 0), buffer(9, 1), buffer(1, 0, 80, 0, 24)]) expect(decode(odd)).toBeNull();
});
