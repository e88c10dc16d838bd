// What a menu is made of, and its code, which is loaded after the first screen.

import type { Component, Snippet } from "svelte";
import type { LucideIcon } from "@lucide/svelte";

export type MenuPart =
  | { kind: "act"; text: string; icon: LucideIcon; act: () => void }
  | { kind: "choice"; text: string; value: string; choices: readonly { value: string; text: string }[]; choose: (value: string) => void };

type MenuProps = { label: string; parts: readonly MenuPart[]; disabled: boolean; open: boolean; children: Snippet };

let loading: Promise<Component<MenuProps, object, "open">> | null = null;

/** Rejects when the code can't be fetched; the next call tries again. */
export function loadMenu(): Promise<Component<MenuProps, object, "open">> {
  loading ??= import("./Menu.svelte").then(
    (module) => module.default,
    (error: unknown) => {
      loading = null;
      throw error;
    },
  );
  return loading;
}
