// How an explanation reads: times to the millisecond, signed distances, a sentence for every reason in both languages.

import { describe, expect, test } from "vitest";
import type { Explanation, Reason, Testimony } from "../wire/protocol.ts";
import { beside, distance, report, sentence, shapeThen, span, wallTime } from "./why.ts";
import { sayer } from "./words.ts";
import "./words.zh-TW.ts";

const say = sayer("en");
const zh = sayer("zh-TW");
const AT = Date.UTC(2026, 10, 30, 14, 30, 18, 204);

const hook: Testimony = { source: "hook", text: "Notification · permission_prompt", at_ms: AT, distance_ms: 0, stand: "decided" };
const file: Testimony = { source: "file", text: "sessions/48213.json · waiting", at_ms: AT + 407, distance_ms: 407, stand: "agrees" };
const missing: Testimony = { source: "transcript", text: "", at_ms: null, distance_ms: null, stand: "missing" };
const process: Testimony = { source: "process", text: "claude 48213 alive, pane %4", at_ms: AT + 122_000, distance_ms: 122_000, stand: "agrees" };

const said: Explanation = {
  item: "t-1",
  title: "Refactor auth middleware",
  agent: "forge:48213:8",
  state: "needs-input",
  presence: "running",
  since_ms: AT,
  now_ms: AT + 124_000,
  reason: "asked",
  ask: "permission",
  error: null,
  sentence: "Claude asked for permission 2m 04s ago, and nothing since then shows an answer.",
  witnesses: [hook, file, missing, process],
  evidence: [file, hook],
  transitions: [
    { at_ms: AT - 60_000, state: "busy", failed: false },
    { at_ms: AT, state: "needs-input", failed: false },
  ],
};

test("times are to the millisecond, on the viewer's own clock", () => {
  expect(wallTime(AT)).toMatch(/^\d\d:\d\d:18\.204$/);
  expect(wallTime(AT - 199)).toMatch(/:18\.005$/);
});

test.each([
  [0, "+0 ms"],
  [-11, "\u221211 ms"],
  [407, "+0.4 s"],
  [-100, "\u22120.1 s"],
  [59_900, "+59.9 s"],
  [-124_000, "\u22122m 04s"],
])("%d ms from what decided is %s", (ms, words) => expect(distance(ms, say)).toBe(words));

test("spans keep two units", () => {
  expect(span(-1, say)).toBe("0s");
  expect(span(124_000, say)).toBe("2m 04s");
  expect(span(3_600_000 + 20 * 60_000, say)).toBe("1h 20m");
  expect(span(25 * 3_600_000, say)).toBe("1d 1h");
});

test("what decided and what was asked just now have an age, the others a distance", () => {
  const now = AT + 124_000;
  expect(said.witnesses.map((line) => beside(line, now, say))).toEqual(["2m 04s ago", "+0.4 s", "", "2s ago"]);
});

describe("the sentence", () => {
  test("is the server's own in English", () => expect(sentence(said, said.now_ms, say)).toBe(said.sentence));
  test("says first that the process stands still", () => {
    expect(sentence({ ...said, presence: "suspended" }, said.now_ms, say)).toMatch(/^The process is stopped \(Ctrl\+Z\)\. Claude asked/);
  });
  const reasons: Reason[] = ["asked", "working", "finished", "failed", "waiting", "interrupted", "read", "restarted", "starting", "ended", "no-agent"];
  test.each(reasons)("exists for %s in both languages, with nothing left open", (reason) => {
    const why = { ...said, reason, error: "rate_limit" };
    for (const words of [sentence(why, said.now_ms, say), sentence(why, said.now_ms, zh)]) {
      expect(words).not.toMatch(/[{}]/);
      expect(words.length).toBeGreaterThan(5);
    }
    expect(sentence(why, said.now_ms, zh)).toMatch(/[\u4e00-\u9fff]/);
  });
});

test("earlier badges are drawn as what they were", () => {
  expect(shapeThen({ at_ms: 0, state: "review", failed: true })).toBe("failed");
  expect(shapeThen({ at_ms: 0, state: "review", failed: false })).toBe("review");
  expect(shapeThen({ at_ms: 0, state: null, failed: false })).toBe("off");
  expect(shapeThen({ at_ms: 0, state: "needs-input", failed: false })).toBe("permission");
});

test("a report holds every word and every time", () => {
  const text = report(said);
  expect(text).toContain(said.sentence);
  expect(text).toContain("2026-11-30T14:30:18.611Z  file  agrees  407 ms  sessions/48213.json · waiting");
  expect(text).toContain("-  transcript  missing");
  expect(text).toContain("2026-11-30T14:29:18.204Z  busy");
});
