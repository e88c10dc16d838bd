// The palette's finding: every part, any order, both languages, the best first.

import { expect, test } from "vitest";
import { type Entry, find } from "./palette.ts";

const entry = (kind: Entry["kind"], text: string, words = ""): Entry => ({ id: text, kind, text, words });
const ENTRIES = [
  entry("session", "Refactor auth", "purplemux main Busy 執行中"),
  entry("needs", "Checkout tax", "storefront tax-rounding Needs input 需要輸入 question 提問"),
  entry("session", "Audit page", "storefront Idle 閒置"),
  entry("workspace", "storefront", "~/src/storefront"),
  entry("command", "New terminal", "新的終端機"),
  entry("command", "Sign out", "登出"),
];
const texts = (query: string) => find(ENTRIES, query).map(({ kind, entries }) => [kind, entries.map(({ text }) => text)]);

test("nothing typed shows everything by kind, those that need the person first", () => {
  expect(texts("")).toEqual([
    ["needs", ["Checkout tax"]],
    ["session", ["Refactor auth", "Audit page"]],
    ["workspace", ["storefront"]],
    ["command", ["New terminal", "Sign out"]],
  ]);
});

test("every part has to be there, in any order, in title, branch, workspace or state", () => {
  expect(texts("tax check")).toEqual([["needs", ["Checkout tax"]]]);
  expect(texts("storefront idle")).toEqual([["session", ["Audit page"]]]);
  expect(texts("storefront busy")).toEqual([]);
  expect(texts("需要")).toEqual([["needs", ["Checkout tax"]]]);
  expect(texts("登出")).toEqual([["command", ["Sign out"]]]);
  expect(texts("ＳＩＧＮ")).toEqual([["command", ["Sign out"]]]);
});

test("a title's beginning comes before a word's, and that before the rest", () => {
  const entries = [entry("session", "x", "auth"), entry("session", "reauth"), entry("session", "fix auth"), entry("session", "auth flow")];
  expect(find(entries, "auth")[0]?.entries.map(({ text }) => text)).toEqual(["auth flow", "fix auth", "reauth", "x"]);
});

test("commands alone, and no more rows than anybody reads", () => {
  expect(texts("> new")).toEqual([["command", ["New terminal"]]]);
  const many = find(Array.from({ length: 200 }, (_, n) => entry("session", `session ${n}`)), "");
  expect(many[0]?.entries.length).toBe(24);
  expect(many[0]?.more).toBe(176);
});
