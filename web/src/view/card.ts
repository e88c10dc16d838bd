// The code of a dialog's card, loaded once and right after the first screen: it is there before the first dialog is.

import type AnswerCard from "./AnswerCard.svelte";

let loading: Promise<typeof AnswerCard> | null = null;

/** Rejects when the code can't be fetched; the next call tries again. */
export function loadCard(): Promise<typeof AnswerCard> {
  loading ??= import("./AnswerCard.svelte").then(
    (module) => module.default,
    (error: unknown) => {
      loading = null;
      throw error;
    },
  );
  return loading;
}
