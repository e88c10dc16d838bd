// Messages to Claude that are not sent yet, one per session, and those that were sent before. Owns what this browser keeps
// of them; must never send one by itself.

import { recall, remember } from "../settings.svelte.ts";

/** Drafts of so many sessions are kept, the ones touched last. */
const DRAFTS_MAX = 40;
const HISTORY_MAX = 50;

/** What was stored; anything else than a list of such is nothing. */
function stored<T>(name: string, fits: (value: unknown) => value is T): T[] {
  try {
    const found: unknown = JSON.parse(recall(name) ?? "[]");
    return Array.isArray(found) ? found.filter(fits) : [];
  } catch {
    // Written by another hand.
    return [];
  }
}

const isText = (value: unknown): value is string => typeof value === "string";
const isDraft = (value: unknown): value is [string, string] => Array.isArray(value) && value.length === 2 && value.every(isText);

class Composer {
  #drafts = new Map(stored("drafts", isDraft));
  #history = stored("prompts", isText);

  draft(item: string): string {
    return this.#drafts.get(item) ?? "";
  }

  keep(item: string, text: string): void {
    this.#drafts.delete(item);
    if (text !== "") this.#drafts.set(item, text);
    const kept = [...this.#drafts].slice(-DRAFTS_MAX);
    remember("drafts", kept.length === 0 ? null : JSON.stringify(kept));
  }

  sent(text: string): void {
    this.#history = [...this.#history.filter((known) => known !== text), text].slice(-HISTORY_MAX);
    remember("prompts", JSON.stringify(this.#history));
  }

  /** The one sent `back` messages ago, 1 the last. */
  before(back: number): string | null {
    return back < 1 ? null : (this.#history.at(-back) ?? null);
  }
}

export const composer = new Composer();
