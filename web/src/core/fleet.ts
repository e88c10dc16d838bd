// What the server last told this page: every row, every workspace, and how old the news is. Owns how a snapshot
// or a diff becomes the next fleet; must never derive a state of its own, keep a row that the server took away, or
// guess over a gap (a gap asks for a snapshot).

import type { Item, Notice, ServerMsg, Workspace } from "../wire/protocol.ts";

/** The picture as of one revision. Never changed in place: `apply` answers with the next one. */
export type Fleet = {
  /** Changes with every start of the server. */
  readonly epoch: string;
  /** The revision that this picture is. */
  readonly rev: number;
  /** Server's wall clock minus ours, milliseconds; ages are counted on the server's clock. */
  readonly skewMs: number;
  readonly items: ReadonlyMap<string, Item>;
  readonly workspaces: readonly Workspace[];
  /** What is degraded. */
  readonly notices: readonly Notice[];
  /** Set when the server was seen to start anew; the rows it did not know then. */
  readonly restart: Restart | null;
};

export type Restart = {
  /** Server's clock, unix ms: when we saw the new epoch. */
  readonly atMs: number;
  /** Ids of the rows that were unknown in its first snapshot. */
  readonly unknown: readonly string[];
};

export type Applied = {
  readonly fleet: Fleet | null;
  /** A revision is missing: send `resync`. Until the answer comes the picture stays as it is. */
  readonly resync: boolean;
};

/** `localMs` is this machine's unix time when the message arrived. */
export function apply(fleet: Fleet | null, msg: ServerMsg, localMs: number): Applied {
  switch (msg.type) {
    case "snapshot": {
      // Of one start and one link the later word counts, in whatever order they come.
      if (fleet !== null && msg.epoch === fleet.epoch && msg.rev < fleet.rev) return { fleet, resync: false };
      const items = new Map(msg.items.map((item) => [item.id, item]));
      const next: Fleet = {
        epoch: msg.epoch,
        rev: msg.rev,
        skewMs: msg.now_ms - localMs,
        items,
        workspaces: msg.workspaces,
        notices: msg.notices,
        restart: restartAfter(fleet, msg.epoch, msg.now_ms, msg.items),
      };
      return { fleet: next, resync: false };
    }
    case "diff": {
      if (fleet === null || msg.epoch !== fleet.epoch || msg.rev !== fleet.rev + 1) return { fleet, resync: true };
      const items = new Map(fleet.items);
      for (const id of msg.gone) items.delete(id);
      for (const item of msg.set) items.set(item.id, item);
      const next: Fleet = {
        ...fleet,
        rev: msg.rev,
        skewMs: msg.now_ms - localMs,
        items,
        workspaces: msg.workspaces ?? fleet.workspaces,
        notices: msg.notices ?? fleet.notices,
      };
      return { fleet: next, resync: false };
    }
    case "heartbeat":
      return { fleet, resync: fleet === null || msg.epoch !== fleet.epoch || msg.rev !== fleet.rev };
    case "refused":
    case "answered":
    case "stopped":
    case "settings":
      return { fleet, resync: false };
  }
}

/**
 * The same picture once its link is gone. The server counts what it says per link, so the first snapshot of the next one
 * holds whatever its number is.
 */
export function parted(fleet: Fleet): Fleet {
  return { ...fleet, rev: -1 };
}

function restartAfter(before: Fleet | null, epoch: string, nowMs: number, items: readonly Item[]): Restart | null {
  if (before === null) return null;
  if (before.epoch === epoch) return before.restart;
  return { atMs: nowMs, unknown: items.filter((item) => item.state === "unknown").map((item) => item.id) };
}

/** How many of the rows that a restart left unknown are known again (or gone). */
export function resolvedSince(fleet: Fleet, restart: Restart): number {
  return restart.unknown.filter((id) => fleet.items.get(id)?.state !== "unknown").length;
}

/**
 * One workspace with its rows in the person's order, further agents of a tab behind it; rows without a tab of ours come
 * last, under no workspace: elsewhere on this machine.
 */
export type Group = { readonly workspace: Workspace | null; readonly items: readonly Item[] };

export function groups(fleet: Fleet): Group[] {
  const placed = new Set<string>();
  const further = new Map<string, Item[]>();
  for (const item of fleet.items.values()) {
    if (item.tab !== null && item.tab !== item.id) further.set(item.tab, [...(further.get(item.tab) ?? []), item]);
  }
  const found: Group[] = fleet.workspaces.map((workspace) => {
    const items = workspace.tabs.flatMap((id) => [fleet.items.get(id) ?? [], further.get(id) ?? []].flat());
    for (const item of items) placed.add(item.id);
    return { workspace, items };
  });
  const elsewhere = [...fleet.items.values()].filter((item) => !placed.has(item.id));
  if (elsewhere.length > 0) found.push({ workspace: null, items: elsewhere });
  return found;
}
