// What a menu is made of, and its code, which is loaded after the first screen.

import type { Component, Snippet } from "svelte";
import type { LucideIcon } from "@lucide/svelte";

export type MenuPart =
  | { kind: "act"; text: string; icon: LucideIcon; act: () => void }
  | { kind: "head"; text: string }
  | { kind: "line" }
  | { kind: "choice"; text: string; value: string; choices: readonly { value: string; text: string }[]; choose: (value: string) => void };

/** Where a menu opens that has no button: at a place of the window, or under what has the focus. */
export type MenuPlace = { readonly label: string; readonly parts: readonly MenuPart[]; readonly at: { readonly x: number; readonly y: number }; readonly from: HTMLElement };

type MenuProps = { label: string; parts: readonly MenuPart[]; disabled: boolean; open: boolean; children: Snippet };

export type DeskMenus = typeof import("./desk-menus.ts");
type Loaded = { Menu: Component<MenuProps, object, "open">; menus: DeskMenus };

let loading: Promise<Loaded> | null = null;

/** Rejects when the code can't be fetched; the next call tries again. */
export function loadMenu(): Promise<Loaded> {
  loading ??= Promise.all([import("./Menu.svelte"), import("./desk-menus.ts")]).then(
    ([{ default: Menu }, menus]) => ({ Menu, menus }),
    (error: unknown) => {
      loading = null;
      throw error;
    },
  );
  return loading;
}
