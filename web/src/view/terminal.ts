// The terminal's code, loaded once and only when the first one is shown.

import type { Component } from "svelte";

export type TerminalProps = {
  tab: string;
  /** `tab` is the id of a row outside our tabs instead. */
  outside?: boolean;
  title: string;
  /** A phone: keys that its keyboard lacks, and a line to type in. */
  phone?: boolean;
  /** Of several on screen the one that the person types into; absent: it is the only one. */
  active?: boolean;
};

let loading: Promise<Component<TerminalProps>> | null = null;

/** Rejects when the code can't be fetched; the next call tries again. */
export function loadTerminal(): Promise<Component<TerminalProps>> {
  loading ??= import("../pane/Terminal.svelte").then(
    (module) => module.default,
    (error: unknown) => {
      loading = null;
      throw error;
    },
  );
  return loading;
}
