// What is said on a lock screen, in both languages, and when several notifications become one.

import { describe, expect, test } from "vitest";
import { merged, type Notice, noticeOf, without } from "./notice.ts";
import { sayer } from "./words.ts";
import "./words.zh-TW.ts";
import type { Push } from "../wire/protocol.ts";

type Show = Extract<Push, { type: "show" }>;
const en = sayer("en");
const zh = sayer("zh-TW");

function push(change: Partial<Show> = {}): Show {
  return { type: "show", row: "r1", episode: 1, about: "permission", title: "shop", since_ms: 5, silent: false, count: 1, lang: "en", ...change };
}

const said = (change: Partial<Show>, say = en) => noticeOf(push(change), [], 0, say).body;

describe("words", () => {
  test.each<[Partial<Show>, string, string]>([
    [{ tool: "Bash", text: "rm -rf build" }, "Wants to run: rm -rf build", "想執行：rm -rf build"],
    [{ tool: "Write", text: "a.txt" }, "Wants to edit a.txt", "想編輯 a.txt"],
    [{ tool: "WebFetch", text: "https://x.example" }, "Wants to use WebFetch: https://x.example", "想使用 WebFetch：https://x.example"],
    [{}, "Permission", "權限"],
    [{ about: "question", text: "Which colour?" }, "Asks: Which colour?", "提問：Which colour?"],
    [{ about: "plan", text: "long" }, "Has a plan for you to approve", "有一份計畫等你核准"],
    [{ about: "finished", text: "All done." }, "Finished: All done.", "已完成：All done."],
    [{ about: "finished" }, "Finished", "已完成"],
    [{ about: "finished", text: "All done.", shells: 2 }, "Finished. 2 shells still running", "已完成，還有 2 個 shell 執行中"],
    [{ about: "failed", text: "rate_limit" }, "Stopped with an error: rate_limit", "因錯誤停止：rate_limit"],
  ])("%j", (change, english, chinese) => {
    expect(said(change)).toBe(english);
    expect(said(change, zh)).toBe(chinese);
  });

  test("M09 a device that shows only the count says nothing else", () => {
    const bare: Show = { type: "show", row: "r1", episode: 1, since_ms: 5, silent: false, count: 3, lang: "en" };
    const notice = noticeOf(bare, [], 0, en);
    expect([notice.title, notice.body]).toEqual(["purplemux", "3 need you"]);
  });
});

describe("one per row", () => {
  test("M01 the same stay makes no second sound, the next one does", () => {
    const first = noticeOf(push(), [], 0, en);
    expect(first.silent).toBe(false);
    expect(noticeOf(push(), [first.data], 1, en).silent).toBe(true);
    expect(noticeOf(push({ episode: 2 }), [first.data], 1, en).silent).toBe(false);
    // Numbers begin anew with a restart of the server; when it began does not.
    expect(noticeOf(push({ since_ms: 9 }), [first.data], 1, en).silent).toBe(false);
  });
});

describe("several at once", () => {
  const rows = (n: number): Notice[] => Array.from({ length: n }, (_, i) => noticeOf(push({ row: `r${i}`, title: `s${i}` }), [], i * 1000, en));

  test("three within five seconds become one, two do not", () => {
    const [a, b, c] = rows(3) as [Notice, Notice, Notice];
    expect(merged(b, [a.data], en)).toBeNull();
    const one = merged(c, [a.data, b.data], en);
    expect([one?.title, one?.body]).toEqual(["3 sessions need you", "s0, s1, 1 more"]);
    expect(merged({ ...c, data: { ...c.data, at_ms: 60_000 } }, [a.data, b.data], en)).toBeNull();
  });

  test("M04 what is over goes out of it, and it goes with the last", () => {
    const [a, b, c] = rows(3) as [Notice, Notice, Notice];
    const one = merged(c, [a.data, b.data], en);
    if (one === null) throw new Error("three become one");
    const two = without(one.data, "r0", 1, en);
    expect(two?.body).toBe("s1, s2");
    if (two === null) throw new Error("two are left");
    expect(without(two.data, "r1", 2, en)?.body).toBe("s1, s2");
    const last = without(two.data, "r1", 1, en);
    expect(last?.body).toBe("s2");
    expect(last === null ? null : without(last.data, "r2", 1, en)).toBeNull();
  });
});
