// Ages, waits, pastes, the icon, the catalogue: small rules, each with the case that would break it.

import { describe, expect, test } from "vitest";
import { age, exactAge } from "./ages.ts";
import { waitMs } from "./backoff.ts";
import { faviconOf, faviconSvg } from "./favicon.ts";
import { codeIn } from "./login.ts";
import { withoutPasteEnd } from "./paste.ts";
import { chooseLanguage, sayer } from "./words.ts";
import "./words.zh-TW.ts";

const say = sayer("en");
const MINUTE = 60_000;

describe("ages", () => {
  test.each([
    [-5000, "<1m"],
    [59_999, "<1m"],
    [MINUTE, "1m"],
    [59 * MINUTE, "59m"],
    [60 * MINUTE, "1h"],
    [47 * 60 * MINUTE, "1d"],
  ])("%d ms is %s", (ms, words) => expect(age(ms, say)).toBe(words));
  test("seconds only where one session is looked at", () => {
    expect(exactAge(3999, say)).toBe("3s");
    expect(exactAge(4 * MINUTE + 5000, say)).toBe("4m 05s");
    expect(exactAge(61 * MINUTE, say)).toBe("1h");
    expect(exactAge(-1, say)).toBe("0s");
  });
});

describe("waits", () => {
  test("grow, stay bounded, and spread", () => {
    expect(waitMs(0, 0.5)).toBe(250);
    expect(waitMs(3, 0.5)).toBe(2000);
    expect(waitMs(1000, 0.999)).toBeLessThanOrEqual(12_500);
    expect(waitMs(4, 0)).toBeLessThan(waitMs(4, 0.9));
  });
});

describe("pastes", () => {
  test("can't end themselves, not even by halves", () => {
    expect(withoutPasteEnd("a\u001b[201~b")).toBe("ab");
    expect(withoutPasteEnd("\u001b[20\u001b[201~1~rm -rf")).toBe("rm -rf");
    expect(withoutPasteEnd("\u009b201~x")).toBe("x");
    expect(withoutPasteEnd("plain\ttext\n201~")).toBe("plain\ttext\n201~");
  });
});

describe("icon", () => {
  const none = { needs: 0, review: 0, busy: 0, unknown: 0, idle: 0 };
  test("amber when anything asks, pale when only reviews, arc when only busy, plain when quiet", () => {
    expect(faviconOf({ ...none, needs: 1, review: 2 }, 3, true)).toEqual({ kind: "amber", n: 3 });
    expect(faviconOf({ ...none, review: 2, busy: 1 }, 2, true)).toEqual({ kind: "pale", n: 2 });
    expect(faviconOf({ ...none, busy: 1 }, 0, true)).toEqual({ kind: "busy" });
    expect(faviconOf(none, 0, true)).toEqual({ kind: "plain" });
    expect(faviconOf({ ...none, needs: 1 }, 1, false)).toEqual({ kind: "offline" });
  });
  test("says 9+ above nine", () => {
    expect(faviconSvg({ kind: "amber", n: 10 })).toContain(">9+<");
    expect(faviconSvg({ kind: "amber", n: 9 })).toContain(">9<");
  });
});

describe("words", () => {
  test("numbers are put in; a word that was not given stays visible", () => {
    expect(say("count.busy", { n: 4 })).toBe("4 busy");
    expect(say("busy.tool", { tool: "Bash" })).toBe("Bash: {arg}");
  });
  test("every Chinese sentence takes what the English one takes", () => {
    const zh = sayer("zh-TW");
    const holes = (text: string) => [...text.matchAll(/\{\w+\}/g)].map((hole) => hole[0]).sort();
    for (const key of ["link.checking", "time.ms", "busy.tool", "said.state", "time.waiting", "link.lost"] as const) expect(holes(zh(key))).toEqual(holes(say(key)));
  });
  test("the first language we have", () => {
    expect(chooseLanguage(["fr", "zh-Hant-TW", "en"])).toBe("zh-TW");
    expect(chooseLanguage(["zh-CN", "en-GB"])).toBe("en");
    expect(chooseLanguage([])).toBe("en");
  });
});

test("a pasted sign-in link, or its code alone", () => {
  for (const pasted of ["https://mux.example.net/#login=0a1b", " http://127.0.0.1:8022/#login=0a1b\n", "#login=0a1b", "0a1b"]) expect(codeIn(pasted), pasted).toBe("0a1b");
  for (const other of ["", "https://mux.example.net/", "https://mux.example.net/#/t/t-1", "two words"]) expect(codeIn(other), other).toBeNull();
});
