// Widths and joining against what tmux 3.3a did with the same characters: the column at which its cursor stood.

import { expect, test } from "vitest";
import { cellsOf, widthOf } from "./widths.ts";

const MEASURED: readonly [string, number][] = [
  ["\u{1f468}\u200d\u{1f469}\u200d\u{1f467}\u200d\u{1f466}", 2],
  ["\u{1f469}\u200d\u{1f4bb}", 2],
  ["\u{1f3f3}\ufe0f\u200d\u{1f308}", 1],
  ["\u{1f1ef}\u{1f1f5}", 2],
  ["\u{1f1ef}\u{1f1f5}\u{1f1f9}\u{1f1fc}", 4],
  ["\u{1f44d}\u{1f3fd}", 4],
  ["\u261d\u{1f3fd}", 3],
  ["\u2764\ufe0f", 1],
  ["\u2764\ufe0e", 1],
  ["1\ufe0f\u20e3", 1],
  ["\u00e9", 1],
  ["\u0e01\u0e47", 1],
  ["\uac01", 2],
  ["\ud55c", 2],
  ["\u0915\u094d\u0937\u093f", 3],
  ["\u0d15\u0d4d\u0d37", 2],
  ["e\u0301\u0302\u0303", 1],
  ["\u260e\ufe0f", 1],
  ["\u26a0\ufe0f", 1],
  ["\u{1f3f4}\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}", 2],
  ["\u{1f441}\ufe0f\u200d\u{1f5e8}\ufe0f", 1],
  ["a\u200db", 2],
  ["\u{1faf1}\u{1f3fb}\u200d\u{1faf2}\u{1f3ff}", 6],
  ["\u{1f9d1}\u{1f3fe}\u200d\u{1f91d}\u200d\u{1f9d1}\u{1f3ff}", 6],
  ["\u845b\u{e0100}", 2],
  ["\u6f22\ufe00", 2],
];

test("W03 joined, combining and flagged characters take the cells that tmux gives them", () => {
  for (const [text, cells] of MEASURED) expect([text, cellsOf(text)]).toEqual([text, cells]);
});

test("W03 one character alone: narrow, wide, ambiguous, nothing", () => {
  const wide = "\u6f22\u30ab\uff21\uac00\u{1f600}\u{1f1ef}\u{20000}\u231a";
  for (const char of wide) if (!/\p{RI}/u.test(char)) expect([char, widthOf(char.codePointAt(0) ?? 0)]).toEqual([char, 2]);
  // A letter of a flag is one cell; two make the flag's two.
  expect(widthOf(0x1f1ef)).toBe(1);
  for (const char of "a\u00e9\u03b1\u2026\u2014\u00b1\u2460\u25cf\u2500\ue0b0\u2764") expect([char, widthOf(char.codePointAt(0) ?? 0)]).toEqual([char, 1]);
  for (const char of "\u0301\u200b\u200d\ufe0f\u0e47\u{e0100}\u1161") expect([char, widthOf(char.codePointAt(0) ?? 0)]).toEqual([char, 0]);
});
