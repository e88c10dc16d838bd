// What the server says, in every language: all codes, the same arguments, and each with what to do.

import { describe, expect, test } from "vitest";
import { ENGLISH } from "../wire/sentences.ts";
import { inWords, named } from "./sentence.ts";
import { CHINESE } from "./sentences.zh-TW.ts";

const gaps = (text: string) => [...text.matchAll(/\{(\w+)\}/g)].map(([, name]) => name).sort();

describe("the sentences of the server", () => {
  test("A02 every code has words in every language, with the same gaps, and says what to do", () => {
    expect(Object.keys(CHINESE.causes).sort()).toEqual(Object.keys(ENGLISH.causes).sort());
    expect(Object.keys(CHINESE.then).sort()).toEqual(Object.keys(ENGLISH.then).sort());
    expect(Object.keys(ENGLISH.causes).length).toBeGreaterThan(100);
    for (const [code, [what, act]] of Object.entries(ENGLISH.causes)) {
      const [theirWhat, theirAct] = CHINESE.causes[code as keyof typeof CHINESE.causes];
      expect([code, gaps(theirWhat)]).toEqual([code, gaps(what)]);
      expect([code, gaps(theirAct)]).toEqual([code, gaps(act)]);
      expect([code, theirWhat.trim() !== ""]).toEqual([code, true]);
      expect([code, theirAct !== ""]).toEqual([code, act !== ""]);
      // Full-width punctuation, 你 and not 您.
      expect([code, /[您，。：；？！]?[,;?!](?=[\u4e00-\u9fff])|您/.test(theirWhat + theirAct)]).toEqual([code, false]);
      if (theirAct !== "") expect([code, theirAct.endsWith("。")]).toEqual([code, true]);
    }
  });

  test("parts and arguments become one sentence in each language", () => {
    const said = { code: "being_answered", by: "iPhone", what: "Yes", then: "nothing_sent" } as const;
    expect(inWords(said, "", ENGLISH)).toBe("It is being answered on iPhone (Yes). Nothing was sent. Wait for that.");
    expect(inWords(said, "", CHINESE)).toBe("iPhone 正在回覆（Yes）。未送出任何內容。請等它完成。");
    expect(inWords({ ...said, by: "the command line" }, "", CHINESE)).toBe("命令列 正在回覆（Yes）。未送出任何內容。請等它完成。");
    expect([named("a browser", CHINESE), named("iPhone", CHINESE), named("a browser", ENGLISH)]).toEqual(["瀏覽器", "iPhone", "a browser"]);
    expect(inWords({ code: "no_tab", id: "t-1" }, "", ENGLISH)).toBe("There is no tab “t-1”. `purplemux tab list` shows them.");
  });

  test("a moment is said by this device's clock", () => {
    const at = new Date(2026, 1, 3, 9, 5).getTime();
    expect(inWords({ code: "answered", by: "iPhone", what: "Yes", at }, "", CHINESE)).toContain("09:05");
  });

  test("without words the server's own English is shown", () => {
    expect(inWords({ code: "over" }, "It is over.", null)).toBe("It is over.");
    expect(inWords({ code: "yet-to-come" } as never, "News.", CHINESE)).toBe("News.");
    expect(inWords(undefined, "Old.", CHINESE)).toBe("Old.");
  });
});
