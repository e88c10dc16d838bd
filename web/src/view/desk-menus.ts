// The menus of panes, tabs and workspaces on the desk, as data. Loaded with the code that shows menus, after the first
// screen.

import ArrowDown from "@lucide/svelte/icons/arrow-down";
import ArrowLeft from "@lucide/svelte/icons/arrow-left";
import ArrowRight from "@lucide/svelte/icons/arrow-right";
import ArrowUp from "@lucide/svelte/icons/arrow-up";
import ChevronsDownUp from "@lucide/svelte/icons/chevrons-down-up";
import Columns2 from "@lucide/svelte/icons/columns-2";
import Equal from "@lucide/svelte/icons/equal";
import FolderPlus from "@lucide/svelte/icons/folder-plus";
import Maximize2 from "@lucide/svelte/icons/maximize-2";
import MoveIcon from "@lucide/svelte/icons/move";
import PanelTop from "@lucide/svelte/icons/panel-top";
import Pencil from "@lucide/svelte/icons/pencil";
import Rows2 from "@lucide/svelte/icons/rows-2";
import SquareX from "@lucide/svelte/icons/square-x";
import Trash2 from "@lucide/svelte/icons/trash-2";
import { type Pane, paneOf, panesIn, underHeadings } from "../core/layout.ts";
import type { Say } from "../core/words.ts";
import { page } from "../page.svelte.ts";
import type { Item, Workspace } from "../wire/protocol.ts";
import { ask } from "./ask.svelte.ts";
import type { MenuPart } from "./menu.ts";
import { newTabMenu, tabMenu } from "./menus.ts";
import { popup } from "./popup.svelte.ts";

/** Of the sidebar: what can be made at all. */
export function newMenu(say: Say): MenuPart[] {
  return [...newTabMenu(say), { kind: "line" }, { kind: "act", text: say("space.new"), icon: FolderPlus, act: () => ask.newSpace() }];
}

/** A pane and the tab that it shows. */
export function paneMenu(say: Say, pane: Pane, item: Item | null): MenuPart[] {
  const parts: MenuPart[] = item === null ? [] : [...tabMenu(say, item), moveMenuOpener(say, item), { kind: "line" }];
  if (page.single) return parts;
  parts.push(
    { kind: "act", text: say("pane.splitRight"), icon: Columns2, act: () => void page.split("right", pane) },
    { kind: "act", text: say("pane.splitDown"), icon: Rows2, act: () => void page.split("down", pane) },
  );
  if (page.panes.length < 2) return parts;
  parts.push(
    {
      kind: "act",
      text: say(page.zoom === null ? "pane.zoom" : "pane.unzoom"),
      icon: Maximize2,
      act: () => {
        page.focusPane(pane.id);
        page.zoomPane();
      },
    },
    { kind: "act", text: say("pane.equal"), icon: Equal, act: () => void page.equalise() },
    { kind: "act", text: say("pane.close"), icon: SquareX, act: () => void page.closePane(pane) },
  );
  return parts;
}

function moveMenuOpener(say: Say, item: Item): MenuPart {
  const act = () => {
    const from = document.querySelector<HTMLElement>(`[role=tab][data-tab="${CSS.escape(item.id)}"]`) ?? document.querySelector<HTMLElement>(`[role=treeitem][data-tab="${CSS.escape(item.id)}"]`);
    if (from !== null) popup.below(from, say("pane.moveTo"), moveMenu(say, item));
  };
  return { kind: "act", text: say("pane.moveTo"), icon: MoveIcon, act };
}

/** Every place that a tab can go to. */
function moveMenu(say: Say, item: Item): MenuPart[] {
  const all = page.fleet?.workspaces ?? [];
  const desk = all.find((found) => found.tabs.includes(item.id));
  const own = desk === undefined ? null : paneOf(desk.panes, item.id);
  if (desk === undefined || own === null) return [];
  const at = own.tabs.indexOf(item.id);
  const parts: MenuPart[] = [];
  if (at > 0) parts.push({ kind: "act", text: say("pane.goLeft"), icon: ArrowLeft, act: () => void page.moveTab(item.id, own, at - 1) });
  if (at < own.tabs.length - 1) parts.push({ kind: "act", text: say("pane.goRight"), icon: ArrowRight, act: () => void page.moveTab(item.id, own, at + 1) });
  panesIn(desk.panes).forEach((pane, n) => {
    if (pane.id === own.id) return;
    const shown = page.showsIn(pane);
    const title = shown === null ? undefined : page.fleet?.items.get(shown)?.title;
    const text = title === undefined ? say("pane.moveNone", { n: n + 1 }) : say("pane.moveItem", { n: n + 1, title });
    parts.push({ kind: "act", text, icon: PanelTop, act: () => void page.moveTab(item.id, pane, null) });
  });
  if (own.tabs.length > 1) {
    parts.push(
      { kind: "act", text: say("pane.moveRight"), icon: Columns2, act: () => void page.split("right", own, item.id) },
      { kind: "act", text: say("pane.moveDown"), icon: Rows2, act: () => void page.split("down", own, item.id) },
    );
  }
  for (const other of all) {
    if (other.id !== desk.id) parts.push({ kind: "act", text: say("pane.moveSpace", { name: other.name }), icon: PanelTop, act: () => void page.moveTabTo(item.id, other) });
  }
  return parts;
}

export function spaceMenu(say: Say, workspace: Workspace): MenuPart[] {
  const order = underHeadings(page.fleet?.workspaces ?? []).flatMap(({ spaces }) => spaces);
  const at = order.findIndex((found) => found.id === workspace.id);
  const [above, below] = [order[at - 1], order[at + 1]];
  const parts: MenuPart[] = [
    ...newTabMenu(say, workspace),
    { kind: "line" },
    { kind: "act", text: say("space.edit"), icon: Pencil, act: () => ask.editSpace(workspace) },
    { kind: "act", text: say(page.isFolded(workspace.id) ? "space.unfold" : "space.fold"), icon: ChevronsDownUp, act: () => page.toggleGroup(workspace.id) },
  ];
  if (above !== undefined) parts.push({ kind: "act", text: say("space.up"), icon: ArrowUp, act: () => void page.moveWorkspace(workspace.id, above, "before") });
  if (below !== undefined) parts.push({ kind: "act", text: say("space.down"), icon: ArrowDown, act: () => void page.moveWorkspace(workspace.id, below, "after") });
  parts.push({ kind: "act", text: say("space.new"), icon: FolderPlus, act: () => ask.newSpace() });
  if (order.length > 1) parts.push({ kind: "line" }, { kind: "act", text: say("space.remove"), icon: Trash2, act: () => ask.removeSpace(workspace) });
  return parts;
}

/** Of a tab, in the bar or in the sidebar; of a row that is none there is nothing to be done. */
export function rowMenu(say: Say, item: Item): MenuPart[] {
  return item.tab === item.id ? [...tabMenu(say, item), moveMenuOpener(say, item)] : [];
}
