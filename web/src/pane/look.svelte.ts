// How terminals look, and what programs in them may do to this device. The colours follow the person to every device; the
// size of the text and the clipboard are this device's own. Owns the choices; they come with the terminal and not with
// the page.

import { PALETTES, type Palette } from "../core/palette-names.ts";
import { recall, remember, shared } from "../settings.svelte.ts";

/** Sizes of the terminal's text, px; beyond them nothing can be read or nothing fits. */
export const FONT_PX_MIN = 8;
export const FONT_PX_MAX = 32;

/** What a program may do to this device's clipboard: nothing before the person was asked. It may never read it. */
export const CLIPBOARD = ["ask", "allow"] as const;
export type Clipboard = (typeof CLIPBOARD)[number];

class Look {
  #palette = $state<Palette>(PALETTES.find((palette) => palette === recall("palette")) ?? "purple");
  #fontPx = $state<number | null>(fontPxOf(Number(recall("fontPx") ?? Number.NaN)));
  #clipboard = $state<Clipboard>(CLIPBOARD.find((choice) => choice === recall("clipboard")) ?? "ask");

  constructor() {
    shared.follow("palette", (value) => this.#setPalette(PALETTES.find((known) => known === value) ?? this.#palette));
  }

  /** The terminal's colours. */
  get palette(): Palette {
    return this.#palette;
  }
  set palette(palette: Palette) {
    this.#setPalette(palette);
    shared.tell("palette", palette);
  }
  #setPalette(palette: Palette): void {
    this.#palette = palette;
    remember("palette", palette === "purple" ? null : palette);
  }

  /** The size of the terminal's text; null for what suits the device. */
  get fontPx(): number | null {
    return this.#fontPx;
  }
  set fontPx(px: number | null) {
    this.#fontPx = px === null ? null : fontPxOf(px);
    remember("fontPx", this.#fontPx === null ? null : String(this.#fontPx));
  }

  get clipboard(): Clipboard {
    return this.#clipboard;
  }
  set clipboard(choice: Clipboard) {
    this.#clipboard = choice;
    remember("clipboard", choice === "ask" ? null : choice);
  }
}

function fontPxOf(px: number): number | null {
  return Number.isFinite(px) ? Math.min(Math.max(Math.round(px), FONT_PX_MIN), FONT_PX_MAX) : null;
}

export const look = new Look();
