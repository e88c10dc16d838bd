// How a workspace's panes lie on the screen, and what this device looks at in them. Owns the geometry of the tree that
// the server keeps, and this device's choice (which row each pane shows, which pane has the keys, which one fills the
// desk); must never change the tree: that is asked of the server.

import type { Item } from "../wire/protocol.ts";

export type Pane = { readonly id: string; readonly tabs: readonly string[] };
export type Dir = "right" | "down";
export type Split = { readonly id: string; readonly dir: Dir; readonly parts: readonly Tree[]; readonly sizes: readonly number[] };
/** A pane, or panes beside (`right`) or below (`down`) each other. `sizes` are per mille of the room, one per part. */
export type Tree = { readonly pane: Pane } | { readonly split: Split };
/** What this module needs to know of a workspace. */
export type Desk = { readonly id: string; readonly panes: Tree };

/** CSS px. */
export type Rect = { readonly left: number; readonly top: number; readonly width: number; readonly height: number };

/** The line between two parts of a split. */
export type Seam = {
  readonly split: string;
  readonly dir: Dir;
  /** Between the parts `index` and `index + 1`. */
  readonly index: number;
  readonly rect: Rect;
  readonly sizes: readonly number[];
  /** Where it stands, per mille of the split. */
  readonly at: number;
  /** CSS px that the parts of its split share. */
  readonly room: number;
};

export type Placed = { readonly panes: ReadonlyMap<string, Rect>; readonly seams: readonly Seam[] };

/** A hairline. */
export const SEAM_PX = 1;
/** No pane is drawn smaller by hand: some twenty columns, and its bar with a few lines. */
export const PANE_WIDTH_PX_MIN = 200;
export const PANE_HEIGHT_PX_MIN = 120;
const WHOLE = 1000;

// --- the tree -------------------------------------------------------------------------------------------------------

/** All panes, in the order in which they are read: left before right, above before below. */
export function panesIn(tree: Tree): Pane[] {
  return "pane" in tree ? [tree.pane] : tree.split.parts.flatMap(panesIn);
}

/** The pane that holds a tab. */
export function paneOf(tree: Tree, tab: string): Pane | null {
  return panesIn(tree).find((pane) => pane.tabs.includes(tab)) ?? null;
}

export function splitIn(tree: Tree, id: string): Split | null {
  if ("pane" in tree) return null;
  if (tree.split.id === id) return tree.split;
  for (const part of tree.split.parts) {
    const found = splitIn(part, id);
    if (found !== null) return found;
  }
  return null;
}

/** So many parts of the same size; the first take what is left over. */
export function equalSizes(count: number): number[] {
  const each = Math.floor(WHOLE / count);
  return Array.from({ length: count }, (_, at) => each + (at < WHOLE - each * count ? 1 : 0));
}

/** The sizes of a split as drawn: those of the server, unless they can't be meant for its parts. */
function sizesOf(split: Split, drawn: ReadonlyMap<string, readonly number[]>, equal: boolean): readonly number[] {
  if (equal) return equalSizes(split.parts.length);
  const sizes = drawn.get(split.id) ?? split.sizes;
  const fit = sizes.length === split.parts.length && sizes.every((size) => Number.isFinite(size) && size > 0);
  return fit ? sizes : equalSizes(split.parts.length);
}

/**
 * Where everything lies in a room. `drawn` are sizes that the person is drawing just now, `equal` overrules all sizes.
 * Edges are on whole pixels, so that no glyph is drawn between two.
 */
export function place(tree: Tree, room: Rect, drawn: ReadonlyMap<string, readonly number[]> = new Map(), equal = false): Placed {
  const panes = new Map<string, Rect>();
  const seams: Seam[] = [];
  const lay = (node: Tree, rect: Rect): void => {
    if ("pane" in node) {
      panes.set(node.pane.id, rect);
      return;
    }
    const { split } = node;
    const across = split.dir === "right";
    const sizes = sizesOf(split, drawn, equal);
    const sum = sizes.reduce((total, size) => total + size, 0);
    const inner = Math.max(0, (across ? rect.width : rect.height) - SEAM_PX * (split.parts.length - 1));
    const begin = across ? rect.left : rect.top;
    let before = 0;
    let from = begin;
    split.parts.forEach((part, at) => {
      before += sizes[at] ?? 0;
      const to = begin + Math.round((inner * before) / sum) + SEAM_PX * at;
      const length = Math.max(0, to - from);
      lay(part, across ? { ...rect, left: from, width: length } : { ...rect, top: from, height: length });
      if (at < split.parts.length - 1) {
        const line = across ? { ...rect, left: to, width: SEAM_PX } : { ...rect, top: to, height: SEAM_PX };
        seams.push({ split: split.id, dir: split.dir, index: at, rect: line, sizes, at: Math.round((WHOLE * before) / sum), room: inner });
      }
      from = to + SEAM_PX;
    });
  };
  lay(tree, room);
  return { panes, seams };
}

/** The sizes after a seam was moved by so many px: only its two neighbours change, and neither gets too small. */
export function moved(seam: Pick<Seam, "sizes" | "index" | "room" | "dir">, px: number): number[] {
  const sizes = [...seam.sizes];
  const one = sizes[seam.index];
  const two = sizes[seam.index + 1];
  if (one === undefined || two === undefined || seam.room <= 0) return sizes;
  const least = Math.min((WHOLE * (seam.dir === "right" ? PANE_WIDTH_PX_MIN : PANE_HEIGHT_PX_MIN)) / seam.room, (one + two) / 2);
  const next = Math.round(Math.min(Math.max(one + (WHOLE * px) / seam.room, least), one + two - least));
  sizes[seam.index] = next;
  sizes[seam.index + 1] = one + two - next;
  return sizes;
}

export type Way = "left" | "right" | "up" | "down";

/** The pane that lies that way: the nearest one, and of several the one that shares most of the edge. */
export function beside(panes: ReadonlyMap<string, Rect>, from: string, way: Way): string | null {
  const here = panes.get(from);
  if (here === undefined) return null;
  const across = way === "left" || way === "right";
  let best: { id: string; gap: number; shared: number } | null = null;
  for (const [id, rect] of panes) {
    if (id === from) continue;
    const gap =
      way === "left" ? here.left - (rect.left + rect.width)
      : way === "right" ? rect.left - (here.left + here.width)
      : way === "up" ? here.top - (rect.top + rect.height)
      : rect.top - (here.top + here.height);
    const shared = across
      ? Math.min(here.top + here.height, rect.top + rect.height) - Math.max(here.top, rect.top)
      : Math.min(here.left + here.width, rect.left + rect.width) - Math.max(here.left, rect.left);
    if (gap < 0 || shared <= 0) continue;
    if (best === null || gap < best.gap || (gap === best.gap && shared > best.shared)) best = { id, gap, shared };
  }
  return best?.id ?? null;
}

// --- where a dragged tab falls --------------------------------------------------------------------------------------

/** The place in a bar: before the first tab whose middle lies beyond the pointer. */
export function dropIndex(middles: readonly number[], at: number): number {
  const found = middles.findIndex((middle) => at < middle);
  return found === -1 ? middles.length : found;
}

export type Zone = "into" | Dir;

/** Within a third of a pane's right or lower edge the tab gets a pane of its own there; elsewhere it joins. */
export function dropZone(rect: Rect, x: number, y: number): Zone {
  const right = (rect.left + rect.width - x) / rect.width;
  const down = (rect.top + rect.height - y) / rect.height;
  if (right > 1 / 3 && down > 1 / 3) return "into";
  return right <= down ? "right" : "down";
}

// --- what this device looks at --------------------------------------------------------------------------------------

/** All by id. What no longer exists is ignored, and forgotten when the view is kept. */
export type View = {
  readonly workspace: string | null;
  /** Per workspace: the pane with the keys. */
  readonly focus: Readonly<Record<string, string>>;
  /** Per pane: the row that it shows. */
  readonly shown: Readonly<Record<string, string>>;
  /** Per workspace: the pane that fills the desk. */
  readonly zoom: Readonly<Record<string, string>>;
  /** Workspaces whose rows are folded away. */
  readonly folded: readonly string[];
};

export const NO_VIEW: View = { workspace: null, focus: {}, shown: {}, zoom: {}, folded: [] };

/** What was kept; whatever is wrong about it is as if it had never been chosen. */
export function parseView(text: string | null): View {
  let value: unknown;
  try {
    value = text === null ? null : JSON.parse(text);
  } catch {
    // Cut short, or not ours.
    return NO_VIEW;
  }
  if (typeof value !== "object" || value === null) return NO_VIEW;
  const found = value as Record<string, unknown>;
  const names = (part: unknown): Record<string, string> =>
    typeof part === "object" && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).filter((entry): entry is [string, string] => typeof entry[1] === "string"))
      : {};
  return {
    workspace: typeof found["workspace"] === "string" ? found["workspace"] : null,
    focus: names(found["focus"]),
    shown: names(found["shown"]),
    zoom: names(found["zoom"]),
    folded: Array.isArray(found["folded"]) ? found["folded"].filter((id): id is string => typeof id === "string") : [],
  };
}

/** Without what belongs to workspaces and panes that are no more. */
export function pruned(view: View, desks: readonly Desk[]): View {
  const spaces = new Set(desks.map((desk) => desk.id));
  const panes = new Set(desks.flatMap((desk) => panesIn(desk.panes).map((pane) => pane.id)));
  const keep = (part: Readonly<Record<string, string>>, known: ReadonlySet<string>) => Object.fromEntries(Object.entries(part).filter(([id]) => known.has(id)));
  return {
    workspace: view.workspace,
    focus: keep(view.focus, spaces),
    shown: keep(view.shown, panes),
    zoom: keep(view.zoom, spaces),
    // The rows elsewhere are folded under no id.
    folded: view.folded.filter((id) => id === "" || spaces.has(id)),
  };
}

/** The pane with the keys: the chosen one, or the first. */
export function focused(view: View, desk: Desk): Pane | null {
  const panes = panesIn(desk.panes);
  return panes.find((pane) => pane.id === view.focus[desk.id]) ?? panes[0] ?? null;
}

/** The pane that fills the desk; of one pane nothing is to be said. */
export function zoomed(view: View, desk: Desk): Pane | null {
  const panes = panesIn(desk.panes);
  return panes.length < 2 ? null : (panes.find((pane) => pane.id === view.zoom[desk.id]) ?? null);
}

type Rows = ReadonlyMap<string, Pick<Item, "id" | "tab">>;

/**
 * The row that a pane shows: the chosen one while it is there to be shown (a tab of the pane, an agent of such a tab,
 * or a row without a tab), else its first tab. `made` is a tab that this device made and no picture names yet.
 */
export function shownIn(view: View, pane: Pane, rows: Rows, made: string | null): string | null {
  const chosen = view.shown[pane.id];
  if (chosen !== undefined) {
    const row = rows.get(chosen);
    if (row === undefined ? chosen === made : row.tab === null || pane.tabs.includes(row.tab)) return chosen;
  }
  return pane.tabs.find((tab) => rows.has(tab)) ?? null;
}

/** Where a tab was taken out of a pane (closed, or moved by anybody), the one beside it is shown in its place. */
export function settled(view: View, before: readonly Desk[], after: readonly Desk[]): View {
  const were = new Map(before.flatMap((desk) => panesIn(desk.panes).map((pane) => [pane.id, pane])));
  const changes: Record<string, string> = {};
  for (const pane of after.flatMap((desk) => panesIn(desk.panes))) {
    const shown = view.shown[pane.id];
    const was = were.get(pane.id)?.tabs ?? [];
    const at = shown === undefined ? -1 : was.indexOf(shown);
    if (at === -1 || shown === undefined || pane.tabs.includes(shown)) continue;
    const left = (tab: string) => pane.tabs.includes(tab);
    const next = was.slice(at + 1).find(left) ?? was.slice(0, at).findLast(left);
    if (next !== undefined) changes[pane.id] = next;
  }
  return Object.keys(changes).length === 0 ? view : { ...view, shown: { ...view.shown, ...changes } };
}

/** Shows a row in a pane and gives that pane the keys. A zoom goes with the keys. */
export function showing(view: View, desk: Desk, pane: string, row: string | null): View {
  return {
    ...view,
    workspace: desk.id,
    focus: { ...view.focus, [desk.id]: pane },
    shown: row === null ? view.shown : { ...view.shown, [pane]: row },
    zoom: view.zoom[desk.id] === undefined ? view.zoom : { ...view.zoom, [desk.id]: pane },
  };
}

/** The workspace on the desk: the chosen one, else the first that has a tab, else the first. */
export function onDesk<T extends Desk>(view: View, desks: readonly T[]): T | null {
  const used = (desk: T) => panesIn(desk.panes).some((pane) => pane.tabs.length > 0);
  return desks.find((desk) => desk.id === view.workspace) ?? desks.find(used) ?? desks[0] ?? null;
}

/**
 * Where a row is to be shown: the pane of its tab; for one that is in none the pane that shows it already, or the one
 * with the keys.
 */
export function homeOf(view: View, desks: readonly Desk[], row: Pick<Item, "id" | "tab">): { desk: Desk; pane: Pane } | null {
  for (const desk of desks) {
    const pane = row.tab === null ? null : paneOf(desk.panes, row.tab);
    if (pane !== null) return { desk, pane };
  }
  const desk = onDesk(view, desks);
  if (desk === null) return null;
  const pane = panesIn(desk.panes).find((found) => view.shown[found.id] === row.id) ?? focused(view, desk);
  return pane === null ? null : { desk, pane };
}

/** Ids in the order that they would have with one of them moved to `index` of the others. */
export function reordered(ids: readonly string[], id: string, index: number): string[] {
  const rest = ids.filter((found) => found !== id);
  rest.splice(Math.max(0, Math.min(index, rest.length)), 0, id);
  return rest;
}

/** Workspaces under their headings: those without one first, then each group where its first one stands. */
export function underHeadings<T extends { readonly group?: string | null }>(spaces: readonly T[]): { readonly heading: string | null; readonly spaces: readonly T[] }[] {
  const found = new Map<string | null, T[]>();
  const bare = spaces.filter((space) => (space.group ?? null) === null);
  if (bare.length > 0) found.set(null, bare);
  for (const space of spaces) {
    if (space.group != null) found.set(space.group, [...(found.get(space.group) ?? []), space]);
  }
  return [...found].map(([heading, inside]) => ({ heading, spaces: inside }));
}
