// The code of "Why this state?", loaded when somebody asks.

import type { Component } from "svelte";
import type { Item } from "../wire/protocol.ts";

export type WhyProps = {
  item: Item;
  /** What it hangs under. */
  chip: HTMLElement;
  /** `back`: the focus goes to the chip. */
  close: (back: boolean) => void;
};

let loading: Promise<Component<WhyProps>> | null = null;

/** Rejects when the code can't be fetched; the next call tries again. */
export function loadWhy(): Promise<Component<WhyProps>> {
  loading ??= import("./Why.svelte").then(
    (module) => module.default,
    (error: unknown) => {
      loading = null;
      throw error;
    },
  );
  return loading;
}
