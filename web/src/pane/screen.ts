// One xterm.js on the page: its font, its colours, what it may and may not do. Owns everything that touches xterm; must
// never answer a query of the program (tmux has already), never open a link that is not http(s), never stand between a
// person and an input method, and never write the clipboard unasked.

import "./signs.css";
import { FitAddon } from "@xterm/addon-fit";
import { UnicodeGraphemesAddon } from "@xterm/addon-unicode-graphemes";
import { WebLinksAddon } from "@xterm/addon-web-links";
import { WebglAddon } from "@xterm/addon-webgl";
import { type IDisposable, Terminal } from "@xterm/xterm";
import { paced } from "../clock.ts";
import { withoutPasteEnd } from "../core/paste.ts";
import { layerKey } from "../view/layer.ts";
import { themeOf } from "./theme.ts";

/** Each new size reaches the program as a signal: four a second are as many as an eye needs. */
const RESIZE_MS_MIN = 250;
const FONT = '"JetBrains Mono Variable", "JetBrains Mono Signs", ui-monospace, "SF Mono", "Cascadia Mono", "Noto Sans Mono CJK TC", monospace';
/** Larger than any sensible copy; a program that sends more is flooding. */
const CLIPBOARD_BYTES_MAX = 1 << 20;

export type ScreenOptions = {
  host: HTMLElement;
  fontPx: number;
  /** What a typed text becomes, for a key that is held on the page (a phone's Ctrl). */
  typed: (text: string) => string;
  /** Bytes for the program: keys, mouse, focus, pastes. */
  input: (bytes: Uint8Array) => void;
  resized: (cols: number, rows: number) => void;
  /** The program set the title, which may mean that another program runs now. */
  titled: () => void;
  /** The program asks to put `text` in the clipboard. */
  clipboard: (text: string) => void;
};

export class Screen {
  readonly term: Terminal;
  #options: ScreenOptions;
  #fit = new FitAddon();
  #webgl: WebglAddon | null = null;
  #focusWanted = false;
  #ends: (() => void)[] = [];

  constructor(options: ScreenOptions) {
    this.#options = options;
    this.term = new Terminal({
      allowProposedApi: true,
      cursorBlink: false,
      cursorInactiveStyle: "outline",
      fontFamily: FONT,
      fontSize: options.fontPx,
      fontWeight: "400",
      fontWeightBold: "700",
      lineHeight: 1.25,
      macOptionClickForcesSelection: true,
      minimumContrastRatio: 4.5,
      // tmux keeps the history and draws on the alternate screen: there is nothing above it, and no room for a bar.
      scrollback: 0,
      theme: themeOf(options.host),
      linkHandler: { activate: (_, uri) => openLink(uri) },
    });
    this.term.loadAddon(this.#fit);
    this.term.loadAddon(new UnicodeGraphemesAddon());
    this.term.loadAddon(new WebLinksAddon((_, uri) => openLink(uri)));
    this.#silence();
    this.#listenToProgram();
    this.term.open(options.host);
    this.#listenToPerson();
    this.#draw();
    this.#follow();
  }

  get size(): { cols: number; rows: number } {
    return { cols: this.term.cols, rows: this.term.rows };
  }

  write(bytes: Uint8Array, done: () => void): void {
    this.term.write(bytes, done);
  }

  /** What comes next does not join what was written: end a torn sequence, and after a new attach start clean. */
  jump(fresh: boolean): void {
    if (fresh) this.term.reset();
    else this.term.write("\u0018");
  }

  paste(text: string): void {
    this.term.paste(withoutPasteEnd(text));
  }

  /** Types as if by hand, for keys that a phone lacks. */
  type(text: string): void {
    this.term.input(text);
  }

  /** Arrow keys depend on the mode that the program set. */
  arrow(letter: "A" | "B" | "C" | "D"): void {
    this.type(`\u001b${this.term.modes.applicationCursorKeysMode ? "O" : "["}${letter}`);
  }

  focus(): void {
    this.term.focus();
  }

  /** Input goes nowhere: keys are refused, and the cursor turns hollow as it does without the focus. */
  setDeaf(deaf: boolean): void {
    if (this.term.options.disableStdin === deaf) return;
    this.term.options.disableStdin = deaf;
    if (deaf) {
      this.#focusWanted = this.#options.host.contains(document.activeElement);
      this.term.blur();
    } else if (this.#focusWanted && document.activeElement === document.body) {
      this.term.focus();
    }
  }

  recolor(): void {
    this.term.options.theme = themeOf(this.#options.host);
  }

  name(label: string): void {
    this.term.textarea?.setAttribute("aria-label", label);
  }

  close(): void {
    for (const end of this.#ends) end();
    this.#dropWebgl();
    this.term.dispose();
  }

  // --- the program ------------------------------------------------------------------------------------------------

  /** tmux has answered these queries; a second answer would be typed into the program as stray text. */
  #silence(): void {
    const { parser } = this.term;
    const quiet = () => true;
    const handlers: IDisposable[] = [
      parser.registerCsiHandler({ final: "c" }, quiet),
      parser.registerCsiHandler({ prefix: ">", final: "c" }, quiet),
      parser.registerCsiHandler({ prefix: "=", final: "c" }, quiet),
      parser.registerCsiHandler({ prefix: ">", final: "q" }, quiet),
      parser.registerCsiHandler({ final: "n" }, quiet),
      parser.registerCsiHandler({ prefix: "?", final: "n" }, quiet),
      parser.registerCsiHandler({ intermediates: "$", final: "p" }, quiet),
      parser.registerCsiHandler({ prefix: "?", intermediates: "$", final: "p" }, quiet),
      parser.registerCsiHandler({ prefix: "?", final: "u" }, quiet),
      parser.registerDcsHandler({ intermediates: "$", final: "q" }, quiet),
      parser.registerDcsHandler({ intermediates: "+", final: "q" }, quiet),
      ...[4, 10, 11, 12].map((code) => parser.registerOscHandler(code, (data) => data.includes("?"))),
    ];
    this.#ends.push(() => handlers.forEach((handler) => handler.dispose()));
  }

  #listenToProgram(): void {
    this.term.parser.registerOscHandler(52, (data) => {
      const encoded = data.slice(data.indexOf(";") + 1);
      // A question for the clipboard's content is never answered.
      if (encoded !== "?" && encoded.length <= CLIPBOARD_BYTES_MAX) this.#options.clipboard(fromBase64(encoded));
      return true;
    });
    this.term.onTitleChange(() => this.#options.titled());
    this.term.onResize(({ cols, rows }) => this.#options.resized(cols, rows));
  }

  // --- the person ---------------------------------------------------------------------------------------------------

  #listenToPerson(): void {
    const encoder = new TextEncoder();
    this.term.onData((text) => this.#options.input(encoder.encode(this.#options.typed(text))));
    this.term.onBinary((text) => this.#options.input(Uint8Array.from(text, (char) => char.charCodeAt(0) & 255)));
    this.term.attachCustomKeyEventHandler((event) => this.#keep(event));

    const paste = (event: ClipboardEvent) => {
      const text = event.clipboardData?.getData("text/plain") ?? "";
      event.preventDefault();
      event.stopPropagation();
      if (text !== "") this.paste(text);
    };
    this.#options.host.addEventListener("paste", paste, { capture: true });
    this.#ends.push(() => this.#options.host.removeEventListener("paste", paste, { capture: true }));
    this.#wheelByTouch();
  }

  /** A finger drawn over the terminal turns the wheel, line by line; the program (or tmux) scrolls. */
  #wheelByTouch(): void {
    const { host } = this.#options;
    let y = 0;
    const start = (event: TouchEvent) => (y = event.touches[0]?.clientY ?? 0);
    const move = (event: TouchEvent) => {
      const touch = event.touches[0];
      if (touch === undefined || event.touches.length > 1) return;
      const line = host.clientHeight / this.term.rows;
      const lines = Math.trunc((y - touch.clientY) / line);
      y -= lines * line;
      for (let n = 0; n < Math.abs(lines); n += 1) {
        const { clientX, clientY } = touch;
        const wheel = { deltaY: Math.sign(lines), deltaMode: WheelEvent.DOM_DELTA_LINE, clientX, clientY, bubbles: true, cancelable: true };
        this.term.element?.querySelector(".xterm-screen")?.dispatchEvent(new WheelEvent("wheel", wheel));
      }
    };
    host.addEventListener("touchstart", start, { passive: true });
    host.addEventListener("touchmove", move, { passive: true });
    this.#ends.push(() => {
      host.removeEventListener("touchstart", start);
      host.removeEventListener("touchmove", move);
    });
  }

  /** False for a key that the terminal must not take. */
  #keep(event: KeyboardEvent): boolean {
    if (event.isComposing || event.keyCode === 229) return true;
    if (layerKey(event) !== null) return false;
    if (!event.ctrlKey || !event.shiftKey || event.altKey || event.metaKey) return true;
    if (event.code === "KeyC") {
      event.preventDefault();
      if (event.type === "keydown" && this.term.hasSelection()) void navigator.clipboard.writeText(this.term.getSelection());
      return false;
    }
    // The browser pastes by itself; the paste event brings the text.
    return event.code !== "KeyV";
  }

  // --- drawing ----------------------------------------------------------------------------------------------------

  #draw(): void {
    try {
      const webgl = new WebglAddon();
      // A lost context draws nothing any more: fall back to the DOM for the rest of this terminal's life.
      webgl.onContextLoss(() => this.#dropWebgl());
      this.term.loadAddon(webgl);
      this.#webgl = webgl;
      this.#distrustPixels();
    } catch {
      // No WebGL here: the DOM renderer is slower and looks the same.
      this.#webgl = null;
    }
  }

  /**
   * The WebGL renderer sizes its canvas by the device pixels that the browser reports. Where that report contradicts
   * the pixel ratio (an emulated phone does this) the text would be drawn at the wrong scale: use the DOM instead.
   */
  #distrustPixels(): void {
    const observer = new ResizeObserver(([entry]) => {
      const device = entry?.devicePixelContentBoxSize?.[0]?.inlineSize;
      if (entry === undefined || device === undefined || device === 0) return;
      observer.disconnect();
      if (Math.abs(device - entry.contentRect.width * devicePixelRatio) > 2) this.#dropWebgl();
    });
    try {
      observer.observe(this.#options.host, { box: "device-pixel-content-box" });
    } catch {
      // This browser reports no device pixels; the renderer then computes them from the ratio.
      return;
    }
    this.#ends.push(() => observer.disconnect());
  }

  /** Chromium keeps about 16 contexts and the addon's dispose frees none, so it is given back by hand. */
  #dropWebgl(): void {
    const webgl = this.#webgl;
    this.#webgl = null;
    if (webgl === null) return;
    const canvases = [...this.#options.host.querySelectorAll("canvas")];
    webgl.dispose();
    for (const canvas of canvases) canvas.getContext("webgl2")?.getExtension("WEBGL_lose_context")?.loseContext();
  }

  #follow(): void {
    const fit = paced(RESIZE_MS_MIN, () => {
      const size = this.#fit.proposeDimensions();
      // A pane that is being laid out has no size yet; a program must not hear of a 2 by 1 terminal.
      if (size === undefined || !(size.cols >= 10) || !(size.rows >= 3)) return;
      if (size.cols !== this.term.cols || size.rows !== this.term.rows) this.term.resize(size.cols, size.rows);
    });
    const observer = new ResizeObserver(fit.call);
    observer.observe(this.#options.host);
    fit.call();
    this.#ends.push(() => {
      observer.disconnect();
      fit.stop();
    });
  }
}

/**
 * Ready when the fonts are: the grid is measured once, and a sign is drawn once and kept, with the font that is there.
 * A font that does not come is no reason to wait for it.
 */
export async function fontReady(): Promise<void> {
  const load = (weight: number) => [
    document.fonts.load(`${weight} 13px "JetBrains Mono Variable"`),
    document.fonts.load(`${weight} 13px "JetBrains Mono Signs"`, "●"),
  ];
  await Promise.allSettled([...load(400), ...load(700)]);
}

function openLink(uri: string): void {
  let url: URL;
  try {
    url = new URL(uri);
  } catch {
    // Looked like a link and is none.
    return;
  }
  if (url.protocol === "http:" || url.protocol === "https:") window.open(url, "_blank", "noopener,noreferrer");
}

function fromBase64(encoded: string): string {
  try {
    return new TextDecoder().decode(Uint8Array.from(atob(encoded), (char) => char.charCodeAt(0)));
  } catch {
    // Torn or not base64: nothing to put in a clipboard.
    return "";
  }
}
