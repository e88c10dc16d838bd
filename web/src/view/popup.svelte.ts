// The menu that is open without a button of its own, one at most. Owns where it opens; PlacedMenu.svelte shows it.

import { page } from "../page.svelte.ts";
import { settings } from "../settings.svelte.ts";
import { type DeskMenus, loadMenu, type MenuPart, type MenuPlace } from "./menu.ts";

class Popup {
  open = $state.raw<MenuPlace | null>(null);

  /** Where it was asked for: by the right button, by a mark in a row, or by Shift+F10 on what has the focus. */
  async ask(event: MouseEvent | KeyboardEvent, label: string, parts: (menus: DeskMenus) => readonly MenuPart[]): Promise<void> {
    event.preventDefault();
    const on = event.currentTarget as HTMLElement;
    // Of a tree it is the row that has the focus; of a mark in a row it is the row.
    const from = (on.getAttribute("role") === "tree" ? on.querySelector<HTMLElement>("[role=treeitem]:focus") : on.closest<HTMLElement>("[role=treeitem]")) ?? on;
    const at = event instanceof MouseEvent && event.clientX > 0 ? { x: event.clientX, y: event.clientY } : null;
    try {
      const found = parts((await loadMenu()).menus);
      if (at === null) this.below(from, label, found);
      else if (found.length > 0) this.open = { label, parts: found, at, from };
    } catch {
      page.complaint = settings.say("term.failed");
    }
  }

  below(from: HTMLElement, label: string, parts: readonly MenuPart[]): void {
    const rect = from.getBoundingClientRect();
    if (parts.length > 0) this.open = { label, parts, at: { x: rect.left + 12, y: rect.bottom }, from };
  }

  /** One of its own items may have opened the next. */
  close(menu: MenuPlace): void {
    if (this.open === menu) this.open = null;
  }
}

export const popup = new Popup();
