// The words a screen reader (and a test) hears, the silhouettes, the order, the title.

import { describe, expect, test } from "vitest";
import type { Item } from "../wire/protocol.ts";
import { apply } from "./fleet.ts";
import { item } from "./sample.ts";
import { attention, byUrgency, chipDetail, contextOf, counts, documentTitle, firstLine, lacksHooks, lineOf, marks, mostUrgent, nextAfter, shapeOf, shortPath, stateWords, terminalOf, turnOf, workspaceShape } from "./view.ts";
import { sayer } from "./words.ts";
import "./words.zh-TW.ts";

const say = sayer("en");
const row = (change: Partial<Item>) => item({ id: "a", ...change });
const asks = (kind: "permission" | "question" | "plan" | "form" | "dialog" | "startup", text = "") =>
  row({ state: "needs-input", detail: { ask: { id: 1, kind, text, options: [] } } });

describe("state words", () => {
  test.each<[Item, string]>([
    [row({ state: "idle" }), "Idle"],
    [row({ state: "busy", detail: { doing: "tool", tool: "Bash" } }), "Busy"],
    [asks("permission"), "Needs input, permission"],
    [asks("question"), "Needs input, question"],
    [asks("plan"), "Needs input, plan"],
    [asks("form"), "Needs input, form"],
    [asks("dialog"), "Needs input, dialog"],
    [row({ state: "needs-input" }), "Needs input"],
    [row({ state: "review", detail: { outcome: "finished" } }), "To review, finished"],
    [row({ state: "review", detail: { outcome: "failed", error: "x" } }), "To review, failed"],
    [row({ state: "unknown" }), "Unknown"],
    [row({ state: null, presence: "none" }), "Not running"],
    [row({ state: null, presence: "starting" }), "Not running"],
    [row({ state: null, presence: "gone" }), "Gone"],
    [row({ state: null, presence: "none", shell: "ended" }), "Gone"],
    [row({ state: null, presence: "none", shell: "dead" }), "Gone"],
    [row({ state: "busy", presence: "suspended" }), "Suspended"],
  ])("%#: %s", (given, words) => {
    expect(stateWords(given, say)).toBe(words);
  });

  test("are said in the language chosen", () => {
    expect(stateWords(asks("permission"), sayer("zh-TW"))).toBe("需要輸入，權限");
  });
});

test("only an agent can lack hooks", () => {
  expect(lacksHooks(row({ state: "busy", hooks: false }))).toBe(true);
  expect(lacksHooks(row({ state: "busy", hooks: true }))).toBe(false);
  expect(lacksHooks(row({ state: null, presence: "none", hooks: false }))).toBe(false);
});

describe("shapes", () => {
  test("dialog and start-up questions carry the permission's mark", () => {
    expect(shapeOf(asks("dialog"))).toBe("permission");
    expect(shapeOf(asks("startup"))).toBe("permission");
    expect(shapeOf(asks("plan"))).toBe("plan");
  });
  test("a suspended agent is drawn still, whatever its state", () => {
    expect(turnOf(shapeOf(row({ state: "needs-input", presence: "suspended" })))).toBe("none");
  });
  test("a workspace's dot shows what the oldest question in it asks", () => {
    const panes = { pane: { id: "p", tabs: [] } };
    const workspace = { id: "w", name: "w", dir: "/", color: null, group: null, panes, tabs: [], state: "needs-input" as const, failed: false };
    const items = [{ ...asks("permission"), since_ms: 9 }, { ...asks("question"), since_ms: 3 }, { ...asks("plan"), since_ms: 1, presence: "suspended" as const }];
    expect(workspaceShape(workspace, items)).toBe("question");
    expect(workspaceShape({ ...workspace, state: "review", failed: true }, [])).toBe("failed");
  });
});

describe("lines", () => {
  test.each<[Item, string]>([
    [asks("permission", "Run pnpm vitest?\nsecond"), "Run pnpm vitest?"],
    [asks("permission"), "Permission"],
    [row({ state: "busy", detail: { doing: "tool", tool: "Bash", arg: "ls -l" } }), "Bash: ls -l"],
    [row({ state: "busy", tool: "Read", detail: { doing: "tool" } }), "Read"],
    [row({ state: "busy" }), "Thinking"],
    [row({ state: "busy", detail: { doing: "compacting" } }), "Compacting context"],
    [row({ state: "busy", detail: { doing: "subagents", agents: 3 } }), "3 subagents"],
    [row({ state: "review", last_message: "## Done\nAll good" }), "Done"],
    [row({ state: "review", detail: { shells: 2 }, last_message: "Done" }), "Done. 2 shells still running"],
    [row({ state: "review", detail: { outcome: "failed", error: "API error 529" } }), "Stopped: API error 529"],
    [row({ state: "idle", last_message: "- one" }), "one"],
    [row({ state: null, presence: "none" }), "…/code/purplemux"],
    [row({ state: null, presence: "none", cwd: null }), "Claude is not running here"],
    [row({ state: "busy", presence: "suspended" }), "Suspended with Ctrl+Z"],
  ])("%#: %s", (given, line) => {
    expect(lineOf(given, say)).toBe(line);
  });
  test("the chip adds what the word does not say", () => {
    expect(chipDetail(row({ state: "busy", detail: { doing: "tool", tool: "Bash" } }), say)).toBe("Bash");
    expect(chipDetail(row({ state: "review", detail: { outcome: "failed" } }), say)).toBe("stopped with error");
    expect(chipDetail(asks("permission"), say)).toBe("permission");
    expect(chipDetail(row({ state: "idle" }), say)).toBe("");
    expect(chipDetail(row({ state: "idle", detail: { label: "no transcript" } }), say)).toBe("no transcript");
    expect(chipDetail(row({ state: "review", detail: { outcome: "finished", label: "no transcript" } }), say)).toBe("no transcript");
  });
  test("first lines lose Markdown's leading marks only", () => {
    expect(firstLine("\n\n  > quoted *bold*")).toBe("quoted *bold*");
    expect(firstLine("---\n")).toBe("");
  });
  test("short paths", () => {
    expect(shortPath("/srv")).toBe("/srv");
    expect(shortPath(null)).toBe("");
  });
});

describe("order and counts", () => {
  const waiting = [
    item({ id: "done-old", state: "review", since_ms: 1, attention: true, detail: { outcome: "finished" } }),
    item({ id: "failed", state: "review", since_ms: 9, attention: true, detail: { outcome: "failed" } }),
    item({ id: "ask-new", state: "needs-input", since_ms: 8, attention: true }),
    item({ id: "ask-old", state: "needs-input", since_ms: 2, attention: true }),
    item({ id: "silenced", state: "needs-input", since_ms: 0 }),
    item({ id: "busy", state: "busy" }),
    item({ id: "off", state: null, presence: "none" }),
  ];
  test("needs input, then failed, then finished, the oldest first; what does not want attention is not in it", () => {
    expect(attention(waiting).map((found) => found.id)).toEqual(["ask-old", "ask-new", "failed", "done-old"]);
  });
  test("next is never the one on screen while another waits", () => {
    expect(nextAfter(attention(waiting), "ask-old")?.id).toBe("ask-new");
    expect(nextAfter(attention(waiting).slice(0, 1), "ask-old")?.id).toBe("ask-old");
    expect(nextAfter([], null)).toBeNull();
  });
  test("counts leave out what does not run", () => {
    expect(counts(waiting)).toEqual({ needs: 3, review: 2, busy: 1, unknown: 0, idle: 0 });
  });
  test("the whole order", () => {
    const ids = [...waiting].sort(byUrgency).map((found) => found.id);
    expect(ids).toEqual(["silenced", "ask-old", "ask-new", "failed", "done-old", "busy", "off"]);
  });
});

describe("the browser tab's title", () => {
  const fleetOf = (items: Item[]) => apply(null, { type: "snapshot", epoch: "e", rev: 1, now_ms: 0, items, workspaces: [], notices: [] }, 0).fleet;
  test("counts what wants attention, names the session, or says offline", () => {
    const two = fleetOf([item({ id: "a", attention: true, state: "review" }), item({ id: "b", attention: true, state: "needs-input" }), item({ id: "c" })]);
    expect(documentTitle(two, true, "Fix it", say)).toBe("(2) Fix it · purplemux");
    expect(documentTitle(fleetOf([]), true, "Fix it", say)).toBe("Fix it · purplemux");
    expect(documentTitle(two, true, null, say)).toBe("(2) purplemux");
    expect(documentTitle(two, false, "Fix it", say)).toBe("Offline · purplemux");
    expect(documentTitle(null, false, null, say)).toBe("purplemux");
  });
});

describe("rows outside our tabs", () => {
  test("their group shows the most urgent of them", () => {
    expect(mostUrgent([])).toBe("off");
    expect(mostUrgent([item({ id: "a", state: "busy" }), item({ id: "b", state: "review", detail: { outcome: "finished" } })])).toBe("review");
  });

  test("a terminal is the tab's, or the person's own tmux, or nowhere to be shown", () => {
    expect(terminalOf(item({ id: "t-1" }))).toEqual({ id: "t-1", outside: false });
    expect(terminalOf(item({ id: "forge:8:1", tab: "t-1" }))).toEqual({ id: "t-1", outside: false });
    expect(terminalOf(item({ id: "forge:7:1", tab: null }))).toEqual({ id: "forge:7:1", outside: true });
    expect(terminalOf(item({ id: "forge:7:1", tab: null, terminal: false }))).toBeNull();
  });
});

describe("what a row says beside its badge", () => {
  test("the share of the context, with tokens and model; tokens alone where the window is not known", () => {
    const shown = (change: Partial<Item>) => contextOf(row(change), say);
    expect(shown({ tokens: { context: 14_024 }, context_pct: 1, model: "claude-opus-5-5" })).toEqual({ percent: 1, short: "1%", words: "14,024 tokens in the context · claude-opus-5-5" });
    expect(shown({ tokens: { context: 14_024 }, model: "another-model" })?.short).toBe("14k");
    expect(shown({ tokens: { context: 900 } })).toEqual({ percent: null, short: "900", words: "900 tokens in the context" });
    expect(shown({})).toBeNull();
  });

  test("marks what is true of it and is no state", () => {
    const words = (change: Partial<Item>) => marks(row(change), say).map((mark) => mark.text);
    expect(words({})).toEqual([]);
    expect(words({ hooks: false, detail: { label: "headless" } })).toEqual(["no hooks", "headless"]);
    expect(words({ detail: { label: "no transcript" } })).toEqual(["no transcript"]);
    expect(lineOf(row({ state: "idle", detail: { label: "ended without Stop" } }), say)).toBe("Ended without saying so");
    expect(lineOf(row({ state: "busy", detail: { doing: "retrying" } }), say)).toBe("Retrying");
  });
});

test("a file that is asked about is called by its place in the session's directory, a command is itself", () => {
  const asks = (text: string) => lineOf(item({ id: "a", cwd: "/home/me/shop", state: "needs-input", detail: { ask: { id: 1, kind: "permission", text, options: [] } } }), sayer("en"));
  expect(asks("/home/me/shop/src/tax.ts")).toBe("src/tax.ts");
  expect(asks("/etc/nginx/sites/shop.conf")).toBe("…/sites/shop.conf");
  for (const text of ["/bin/true --now", "pnpm test", "/home/me/shopping list"]) expect(asks(text)).toBe(text);
});
