// What is laid over the whole page until it is put away: the palette, the keys, the settings, past conversations. Owns that there is one at a
// time, and that the focus goes back to where it was; must never be open over a question that waits for an answer.

import type { Pane } from "../core/layout.ts";

export type SheetName = "palette" | "help" | "settings" | "conversations";
export const SECTIONS = ["appearance", "keyboard", "notifications", "devices"] as const;
export type Section = (typeof SECTIONS)[number];

class Sheet {
  name = $state<SheetName | null>(null);
  section = $state<Section>("appearance");
  /** The pane in which a past conversation is taken up; null: where its directory belongs. */
  into = $state.raw<Pane | null>(null);
  /** The message box is open over the terminal of the session on screen. */
  message = $state(false);
  /** Files that were dropped somewhere, for the message box. */
  dropped = $state.raw<readonly File[]>([]);
  /** The next key goes to the program. */
  passing = $state(false);
  /** Who is given the next keys whatever they mean: a setting that asks for one. */
  taking = $state.raw<((event: KeyboardEvent) => void) | null>(null);
  /** What was typed after a key of ours, before what it opens was drawn: it is meant for that. */
  early = "";
  #from: HTMLElement | null = null;

  open(name: SheetName): void {
    if (this.name === null) this.#from = document.activeElement instanceof HTMLElement ? document.activeElement : null;
    this.name = name;
  }

  openSettings(section: Section): void {
    this.section = section;
    this.open("settings");
  }

  openPast(pane: Pane | null): void {
    this.into = pane;
    this.open("conversations");
  }

  /** The focus goes back to where it was, at once: whoever sends it elsewhere does so after this. */
  close(): void {
    if (this.name === null) return;
    // A dialog that is open keeps the focus from everything else.
    document.querySelector<HTMLDialogElement>("dialog[open]")?.close();
    this.name = null;
    if (this.#from?.isConnected === true) this.#from.focus();
    this.#from = null;
  }
}

export const sheet = new Sheet();
