// Where what is dragged would fall, and what a drop there asks for. Loaded with the first drag.

import { dropIndex, dropZone, panesIn, type Rect, type Zone } from "../core/layout.ts";
import { page } from "../page.svelte.ts";

export type Dragged = { readonly kind: "tab" | "space"; readonly id: string; readonly title: string };

/** What a drop would do, and where that is to be shown. `line`: a place between two; otherwise an area. */
export type Target =
  | { readonly to: "bar" | "row"; readonly pane: string; readonly index: number; readonly mark: Rect; readonly line: true }
  | { readonly to: "pane"; readonly pane: string; readonly zone: Zone; readonly mark: Rect; readonly line: false }
  | { readonly to: "space"; readonly space: string; readonly mark: Rect; readonly line: false }
  | { readonly to: "order"; readonly space: string; readonly place: "before" | "after"; readonly mark: Rect; readonly line: true };

const LINE_PX = 2;

const rectOf = (element: Element): Rect => {
  const { left, top, width, height } = element.getBoundingClientRect();
  return { left, top, width, height };
};

export function targetAt(what: Dragged, x: number, y: number): Target | null {
  const under = document.elementsFromPoint(x, y);
  const find = (selector: string) => under.map((element) => element.closest<HTMLElement>(selector)).find((found) => found !== null) ?? null;
  return what.kind === "space" ? spaceTarget(what, find, y) : tabTarget(what, find, x, y);
}

type Find = (selector: string) => HTMLElement | null;

function tabTarget(what: Dragged, find: Find, x: number, y: number): Target | null {
  const bar = find("[data-bar]");
  if (bar !== null) {
    const pane = bar.dataset["bar"] ?? "";
    const cells = [...bar.querySelectorAll<HTMLElement>("[role=tab]")].filter((tab) => tab.dataset["tab"] !== what.id).map(rectOf);
    const index = dropIndex(cells.map((cell) => cell.left + cell.width / 2), x);
    const last = cells.at(-1);
    const left = cells[index]?.left ?? (last === undefined ? rectOf(bar).left : last.left + last.width);
    return { to: "bar", pane, index, line: true, mark: { ...rectOf(bar), left: left - LINE_PX / 2, width: LINE_PX } };
  }
  const panel = find("[data-panel]");
  if (panel !== null) {
    const pane = panel.dataset["panel"] ?? "";
    const rect = rectOf(panel);
    const zone = page.single ? "into" : dropZone(rect, x, y);
    // A pane's only tab can't be beside itself.
    const alone = page.panes.find((found) => found.id === pane)?.tabs.join() === what.id;
    if (alone) return null;
    const mark = zone === "right" ? { ...rect, left: rect.left + rect.width / 2, width: rect.width / 2 } : zone === "down" ? { ...rect, top: rect.top + rect.height / 2, height: rect.height / 2 } : rect;
    return { to: "pane", pane, zone, line: false, mark };
  }
  const row = find("[role=treeitem][data-tab]");
  if (row !== null) return rowTarget(what, row, y);
  const space = find("[role=treeitem][data-space]");
  return space === null || space.dataset["space"] === "" ? null : { to: "space", space: space.dataset["space"] ?? "", line: false, mark: rectOf(space) };
}

/** Before or after another tab's row, in the pane of that one. */
function rowTarget(what: Dragged, row: HTMLElement, y: number): Target | null {
  const id = row.dataset["tab"] ?? "";
  const rect = rectOf(row);
  const below = y > rect.top + rect.height / 2;
  for (const desk of page.fleet?.workspaces ?? []) {
    const pane = panesIn(desk.panes).find((found) => found.tabs.includes(id));
    if (pane === undefined || id === what.id) continue;
    const index = pane.tabs.filter((tab) => tab !== what.id).indexOf(id) + (below ? 1 : 0);
    return { to: "row", pane: pane.id, index, line: true, mark: { ...rect, top: rect.top + (below ? rect.height : 0) - LINE_PX / 2, height: LINE_PX } };
  }
  return null;
}

/** Before or after another workspace, whose rows belong to it. */
function spaceTarget(what: Dragged, find: Find, y: number): Target | null {
  const id = find("[role=treeitem][data-in]")?.dataset["in"] ?? "";
  if (id === "" || id === what.id) return null;
  const block = [...document.querySelectorAll<HTMLElement>(`[role=treeitem][data-in="${CSS.escape(id)}"]`)].map(rectOf);
  const [first, last] = [block[0], block.at(-1)];
  if (first === undefined || last === undefined) return null;
  const end = last.top + last.height;
  const below = y > (first.top + end) / 2;
  return { to: "order", space: id, place: below ? "after" : "before", line: true, mark: { ...first, top: (below ? end : first.top) - LINE_PX / 2, height: LINE_PX } };
}

/** Asks for what a drop there means. */
export function drop(what: Dragged, target: Target): void {
  const all = page.fleet?.workspaces ?? [];
  const pane = (id: string) => all.flatMap((desk) => panesIn(desk.panes)).find((found) => found.id === id);
  switch (target.to) {
    case "bar":
    case "row": {
      const into = pane(target.pane);
      if (into !== undefined) void page.moveTab(what.id, into, target.index);
      return;
    }
    case "pane": {
      const into = pane(target.pane);
      if (into === undefined) return;
      if (target.zone === "into") void page.moveTab(what.id, into, null);
      else void page.split(target.zone, into, what.id);
      return;
    }
    case "space": {
      const desk = all.find((found) => found.id === target.space);
      if (desk !== undefined) void page.moveTabTo(what.id, desk);
      return;
    }
    case "order": {
      const desk = all.find((found) => found.id === target.space);
      if (desk !== undefined) void page.moveWorkspace(what.id, desk, target.place);
    }
  }
}
