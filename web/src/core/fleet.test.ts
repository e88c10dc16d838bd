// Snapshots replace, diffs add up, gaps ask; nothing else moves a row.

import { describe, expect, test } from "vitest";
import type { Item, ServerMsg, Workspace } from "../wire/protocol.ts";
import { apply, type Fleet, groups, parted, resolvedSince } from "./fleet.ts";
import { item } from "./sample.ts";

const workspace: Workspace = {
  id: "w",
  name: "default",
  dir: "/",
  color: null,
  group: null,
  panes: { pane: { id: "p", tabs: ["a", "b"] } },
  tabs: ["a", "b"],
  state: null,
  failed: false,
};

function snapshot(epoch: string, rev: number, items: Item[], now_ms = 1000): ServerMsg {
  return { type: "snapshot", epoch, rev, now_ms, items, workspaces: [workspace], notices: [] };
}
function diff(rev: number, set: Item[], gone: string[] = [], epoch = "e1"): ServerMsg {
  return { type: "diff", epoch, rev, now_ms: 2000, set, gone };
}
function after(messages: ServerMsg[]): { fleet: Fleet | null; resync: boolean } {
  let fleet: Fleet | null = null;
  let resync = false;
  for (const message of messages) ({ fleet, resync } = apply(fleet, message, 0));
  return { fleet, resync };
}

describe("fleet", () => {
  test("a snapshot replaces and never merges", () => {
    const { fleet } = after([snapshot("e1", 1, [item({ id: "a" }), item({ id: "b" })]), snapshot("e1", 5, [item({ id: "b", state: "busy" })])]);
    expect([...(fleet?.items.keys() ?? [])]).toEqual(["b"]);
    expect(fleet?.rev).toBe(5);
  });

  test("a diff sets, removes and keeps the rest", () => {
    const { fleet, resync } = after([snapshot("e1", 1, [item({ id: "a" }), item({ id: "b" })]), diff(2, [item({ id: "c", state: "review" })], ["a"])]);
    expect(resync).toBe(false);
    expect([...(fleet?.items.keys() ?? [])]).toEqual(["b", "c"]);
    expect(fleet?.items.get("c")?.state).toBe("review");
  });

  test("a gap, a repeat or another epoch asks for a snapshot and changes nothing", () => {
    for (const wrong of [diff(3, [item({ id: "a", state: "busy" })]), diff(1, [item({ id: "a", state: "busy" })]), diff(2, [item({ id: "a", state: "busy" })], [], "e2")]) {
      const { fleet, resync } = after([snapshot("e1", 1, [item({ id: "a" })]), wrong]);
      expect(resync).toBe(true);
      expect(fleet?.items.get("a")?.state).toBe("idle");
      expect(fleet?.rev).toBe(1);
    }
  });

  test("L05 a snapshot that is older than the picture changes nothing, a new epoch replaces all of it", () => {
    const busy = diff(12, [item({ id: "a", state: "busy" })]);
    // The update before anything else: it can't stand alone.
    expect(after([busy])).toEqual({ fleet: null, resync: true });
    const overtaken = after([snapshot("e1", 11, [item({ id: "a" })]), busy, snapshot("e1", 10, [item({ id: "a", state: "review" }), item({ id: "ghost" })])]);
    expect(overtaken.resync).toBe(false);
    expect(overtaken.fleet?.rev).toBe(12);
    expect([...(overtaken.fleet?.items.values() ?? [])].map((row) => [row.id, row.state])).toEqual([["a", "busy"]]);
    // The server starts anew and counts from 1.
    if (overtaken.fleet === null) throw new Error("no fleet");
    const { fleet } = apply(overtaken.fleet, snapshot("e2", 1, [item({ id: "b", state: "unknown" })]), 0);
    expect([fleet?.epoch, fleet?.rev, [...(fleet?.items.keys() ?? [])]]).toEqual(["e2", 1, ["b"]]);
    // A late word of the old start is not taken for one of the new.
    expect(apply(fleet, diff(13, [item({ id: "a", state: "idle" })]), 0)).toEqual({ fleet, resync: true });
  });

  test("L05 a new link of the same start counts from 1 and holds", () => {
    const { fleet } = after([snapshot("e1", 12, [item({ id: "a", state: "busy" })])]);
    if (fleet === null) throw new Error("no fleet");
    const again = apply(parted(fleet), snapshot("e1", 1, [item({ id: "a", state: "review" })]), 0);
    expect(again.fleet?.items.get("a")?.state).toBe("review");
    expect(again.fleet?.restart).toBeNull();
    expect(apply(parted(fleet), diff(13, [item({ id: "a", state: "idle" })]), 0).resync).toBe(true);
  });

  test("a heartbeat that knows more than we do asks for a snapshot", () => {
    const start = snapshot("e1", 1, []);
    expect(after([start, { type: "heartbeat", epoch: "e1", rev: 1, now_ms: 0 }]).resync).toBe(false);
    expect(after([start, { type: "heartbeat", epoch: "e1", rev: 2, now_ms: 0 }]).resync).toBe(true);
    expect(after([start, { type: "heartbeat", epoch: "e2", rev: 1, now_ms: 0 }]).resync).toBe(true);
  });

  test("any split of a history into diffs ends as one snapshot of its end", () => {
    const states: Item["state"][] = ["idle", "busy", "needs-input", "busy", "review", "idle"];
    const messages: ServerMsg[] = [snapshot("e1", 0, [])];
    states.forEach((state, n) => messages.push(diff(n + 1, [item({ id: `r${n % 3}`, state })], n === 4 ? ["r0"] : [])));
    const { fleet } = after(messages);
    const whole = after([snapshot("e1", 6, [...(fleet?.items.values() ?? [])])]);
    expect(whole.fleet?.items).toEqual(fleet?.items);
  });

  test("a new epoch is a restart: it names the rows that became unknown and counts those known again", () => {
    const unknown = [item({ id: "a", state: "unknown" }), item({ id: "b", state: "unknown" }), item({ id: "c" })];
    const { fleet } = after([snapshot("e1", 9, [item({ id: "a", state: "busy" })]), snapshot("e2", 1, unknown, 5000), diff(2, [item({ id: "a", state: "busy" })], [], "e2")]);
    if (fleet?.restart == null) throw new Error("no restart was seen");
    expect(fleet.restart).toEqual({ atMs: 5000, unknown: ["a", "b"] });
    expect(resolvedSince(fleet, fleet.restart)).toBe(1);
    expect(resolvedSince({ ...fleet, items: new Map() }, fleet.restart)).toBe(2);
  });

  test("the first snapshot is no restart", () => {
    expect(after([snapshot("e1", 1, [item({ id: "a", state: "unknown" })])]).fleet?.restart).toBeNull();
  });

  test("rows stand in the order of their tabs; a row without a tab of ours stands apart", () => {
    const { fleet } = after([snapshot("e1", 1, [item({ id: "b" }), item({ id: "forge:7:1", tab: null }), item({ id: "a" })])]);
    if (fleet === null) throw new Error("no fleet");
    expect(groups(fleet).map((group) => [group.workspace?.id ?? null, group.items.map((row) => row.id)])).toEqual([
      ["w", ["a", "b"]],
      [null, ["forge:7:1"]],
    ]);
  });

  test("a tab's second agent stands behind the tab", () => {
    const second = item({ id: "forge:8:1", tab: "a" });
    const { fleet } = after([snapshot("e1", 1, [second, item({ id: "a" }), item({ id: "b" })])]);
    if (fleet === null) throw new Error("no fleet");
    expect(groups(fleet).map((group) => group.items.map((row) => row.id))).toEqual([["a", "forge:8:1", "b"]]);
  });

  test("ages are counted on the server's clock", () => {
    expect(apply(null, snapshot("e1", 1, [], 90_000), 30_000).fleet?.skewMs).toBe(60_000);
  });
});
