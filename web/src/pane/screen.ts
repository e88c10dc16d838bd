// One xterm.js on the page: its font, its colours, what it may and may not do. Owns everything that touches xterm; must
// never answer a query of the program (tmux has already), never open a link that is not http(s), never stand between a
// person and an input method, and never write the clipboard unasked.

import "./signs.css";
import { FitAddon } from "@xterm/addon-fit";
import { WebLinksAddon } from "@xterm/addon-web-links";
import { WebglAddon } from "@xterm/addon-webgl";
import { type IDisposable, Terminal } from "@xterm/xterm";
import { paced } from "../clock.ts";
import { withoutPasteEnd } from "../core/paste.ts";
import { layerKey } from "../view/layer.ts";
import { type Match, Past } from "./past.ts";
import { themeOf } from "./theme.ts";
import { Whole } from "./whole.ts";
import { TMUX_WIDTHS } from "./widths.ts";

/** Each new size reaches the program as a signal: four a second are as many as an eye needs. */
const RESIZE_MS_MIN = 250;
const FONT = '"JetBrains Mono Variable", "JetBrains Mono Signs", "purplemux Marks", ui-monospace, "SF Mono", "Cascadia Mono", "Noto Sans Mono CJK TC", monospace';
/** What a terminal and what has scrolled off it have in common. */
const LOOK = { fontFamily: FONT, fontWeight: "400", fontWeightBold: "700", lineHeight: 1.25, minimumContrastRatio: 4.5 } as const;
/** Larger than any sensible copy; a program that sends more is flooding. */
const CLIPBOARD_BYTES_MAX = 1 << 20;

/** Smaller than this nobody can read; a larger grid is cut instead. */
const FONT_PX_MIN = 5;
/** What the browser says of the focus is no key. */
// eslint-disable-next-line no-control-regex -- escape sequences are made of them
const FOCUS_REPORT = /^\u001b\[[IO]$/;

export type ScreenOptions = {
  host: HTMLElement;
  /** Whose history is shown when the person scrolls back; null where there is none to be had. */
  tab: string | null;
  /** The person is looking at what has scrolled off, or no more. */
  past: (shown: boolean) => void;
  /** The person wants to search in the history. */
  find: () => void;
  fontPx: number;
  /** What a typed text becomes, for a key that is held on the page (a phone's Ctrl). */
  typed: (text: string) => string;
  /** Bytes for the program: keys, mouse, focus, pastes. */
  input: (bytes: Uint8Array) => void;
  /** The place on the page has room for this much now. */
  wants: (cols: number, rows: number) => void;
  /** The grid that is drawn. */
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
  #whole = new Whole();
  #past: Past | null = null;
  #found: { text: string; line: number } | null = null;
  /** What the place has room for, and whether the grid is this viewer's to choose. */
  #room = { cols: 80, rows: 24 };
  #own = true;
  #fontPx: number;
  #fitAgain: () => void = () => undefined;
  #ends: (() => void)[] = [];

  constructor(options: ScreenOptions) {
    this.#options = options;
    this.#fontPx = options.fontPx;
    this.term = new Terminal({
      allowProposedApi: true,
      cursorBlink: false,
      cursorInactiveStyle: "outline",
      ...LOOK,
      fontSize: options.fontPx,
      macOptionClickForcesSelection: true,
      // tmux keeps the history and draws on the alternate screen: there is nothing above it, and no room for a bar.
      scrollback: 0,
      theme: themeOf(options.host),
      linkHandler: { activate: (_, uri) => openLink(uri) },
    });
    this.term.loadAddon(this.#fit);
    this.term.unicode.register(TMUX_WIDTHS);
    this.term.unicode.activeVersion = TMUX_WIDTHS.version;
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

  /** What a place of this size had room for when it was last measured. */
  static roomBefore(host: HTMLElement, fontPx: number): { cols: number; rows: number } | null {
    return rooms.get(placeOf(host, fontPx)) ?? null;
  }

  /** What the place has room for. */
  get room(): { cols: number; rows: number } {
    return this.#room;
  }

  /** The window's size. While another viewer decides it, its grid is shown here, with a smaller text if need be. */
  sized(cols: number, rows: number, own: boolean): void {
    const same = this.#own === own;
    this.#own = own;
    if (!own) this.#become(cols, rows);
    else if (!same) this.#fitAgain();
  }

  setFont(px: number): void {
    if (px === this.#fontPx) return;
    this.#fontPx = px;
    this.leavePast();
    if (this.#own) this.term.options.fontSize = px;
    this.#fitAgain();
  }

  write(bytes: Uint8Array, done: () => void): void {
    this.term.write(this.#whole.take(bytes), done);
  }

  /** What comes next does not join what was written: end a torn sequence, and after a new attach start clean. */
  jump(fresh: boolean): void {
    this.#whole.forget();
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
    if (this.#past !== null) this.#past.term.options.theme = this.term.options.theme;
  }

  name(label: string): void {
    this.term.textarea?.setAttribute("aria-label", label);
  }

  close(): void {
    this.leavePast();
    for (const end of this.#ends) end();
    this.#dropWebgl();
    this.term.dispose();
  }

  // --- what has scrolled off ----------------------------------------------------------------------------------------

  /** Up is negative. */
  scroll(lines: number): void {
    if (this.#past === null && lines < 0) this.#openPast();
    this.#past?.scroll(lines);
  }

  leavePast(): void {
    const past = this.#past;
    if (past === null) return;
    this.#past = null;
    this.#found = null;
    past.close();
    this.#options.past(false);
  }

  /** Goes to the next older match (`steps` 1) or newer one (-1); null if there is none. */
  async find(text: string, steps: number): Promise<Match | null> {
    if (this.#options.tab === null || text === "") return null;
    const past = this.#past ?? this.#openPast();
    if (past === null) return null;
    const from = this.#found?.text === text ? this.#found.line : -1;
    const found = await past.find(text, from, steps);
    this.#found = found === null ? null : { text, line: found.line };
    return found?.match ?? null;
  }

  #openPast(): Past | null {
    if (this.#options.tab === null) return null;
    const { cols, rows } = this.term;
    const look = { ...LOOK, fontSize: this.term.options.fontSize ?? this.#fontPx, theme: this.term.options.theme ?? {} };
    const { host, tab } = this.#options;
    const past = new Past({ tab, host, look, cols, rows, left: () => this.leavePast() });
    past.term.loadAddon(new WebLinksAddon((_, uri) => openLink(uri)));
    // A click there selects; keys go on to the program.
    past.term.textarea?.addEventListener("focus", () => this.term.focus());
    this.#past = past;
    this.#options.past(true);
    return past;
  }

  /** A turn of the wheel that is not the program's scrolls back; xterm, which would make arrow keys of it, hears nothing. */
  #wheel(event: WheelEvent): void {
    if (this.#past === null && this.term.modes.mouseTrackingMode !== "none") return;
    event.stopPropagation();
    // The browser's own: the page grows.
    if (event.ctrlKey) return;
    event.preventDefault();
    const line = this.#options.host.clientHeight / this.term.rows;
    const lines = event.deltaMode === WheelEvent.DOM_DELTA_PIXEL ? event.deltaY / line : event.deltaMode === WheelEvent.DOM_DELTA_PAGE ? event.deltaY * this.term.rows : event.deltaY;
    this.#turned += lines;
    const whole = Math.trunc(this.#turned);
    this.#turned -= whole;
    if (whole !== 0) this.scroll(whole);
  }
  #turned = 0;

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
    this.term.onResize(({ cols, rows }) => {
      this.leavePast();
      this.#options.resized(cols, rows);
    });
  }

  // --- the person ---------------------------------------------------------------------------------------------------

  #listenToPerson(): void {
    const encoder = new TextEncoder();
    this.term.onData((text) => {
      if (!FOCUS_REPORT.test(text)) this.leavePast();
      this.#options.input(encoder.encode(this.#options.typed(text)));
    });
    const wheel = (event: WheelEvent) => this.#wheel(event);
    this.#options.host.addEventListener("wheel", wheel, { capture: true, passive: false });
    this.#ends.push(() => this.#options.host.removeEventListener("wheel", wheel, { capture: true }));
    const copy = (event: ClipboardEvent) => {
      const text = this.#past?.term.getSelection() ?? "";
      if (text === "") return;
      event.preventDefault();
      event.stopPropagation();
      event.clipboardData?.setData("text/plain", text);
    };
    this.#options.host.addEventListener("copy", copy, { capture: true });
    this.#ends.push(() => this.#options.host.removeEventListener("copy", copy, { capture: true }));
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
      if (this.#past !== null || this.term.modes.mouseTrackingMode === "none") {
        if (lines !== 0) this.scroll(lines);
        return;
      }
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
    if (this.#scrolls(event)) return false;
    if (!event.ctrlKey || !event.shiftKey || event.altKey || event.metaKey) return true;
    if (event.code === "KeyC") {
      event.preventDefault();
      const selected = this.#past?.term.getSelection() ?? this.term.getSelection();
      if (event.type === "keydown" && selected !== "") void navigator.clipboard.writeText(selected);
      return false;
    }
    if (event.code === "KeyF" && this.#options.tab !== null) {
      event.preventDefault();
      if (event.type === "keydown") this.#options.find();
      return false;
    }
    // The browser pastes by itself; the paste event brings the text.
    return event.code !== "KeyV";
  }

  /** Shift with the keys of a page scrolls back, as terminals do; at the end they are the program's again. */
  #scrolls(event: KeyboardEvent): boolean {
    if (!event.shiftKey || event.ctrlKey || event.altKey || event.metaKey || this.#options.tab === null) return false;
    if (event.code !== "PageUp" && (this.#past === null || (event.code !== "PageDown" && event.code !== "End"))) return false;
    event.preventDefault();
    if (event.type !== "keydown") return true;
    const page = this.term.rows - 1;
    if (event.code === "End") this.leavePast();
    else this.scroll(event.code === "PageUp" ? -page : page);
    return true;
  }

  // --- drawing ----------------------------------------------------------------------------------------------------

  #draw(): void {
    if (!hasGpu()) return;
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
      // One's own room is measured in one's own text, to the cell.
      if (this.#own && this.term.options.fontSize !== this.#fontPx) this.term.options.fontSize = this.#fontPx;
      const size = this.#fit.proposeDimensions();
      if (size === undefined) return;
      // Another's grid may be drawn with a smaller text than the room is measured in.
      const scale = (this.term.options.fontSize ?? this.#fontPx) / this.#fontPx;
      const room = { cols: Math.floor(size.cols * scale), rows: Math.floor(size.rows * scale) };
      // A pane that is being laid out has no size yet; a program must not hear of a 2 by 1 terminal.
      if (!(room.cols >= 10) || !(room.rows >= 3)) return;
      const changed = room.cols !== this.#room.cols || room.rows !== this.#room.rows;
      this.#room = room;
      if (this.#own) rooms.set(placeOf(this.#options.host, this.#fontPx), room);
      if (this.#own) {
        this.term.options.fontSize = this.#fontPx;
        if (room.cols !== this.term.cols || room.rows !== this.term.rows) this.term.resize(room.cols, room.rows);
      } else this.#become(this.term.cols, this.term.rows);
      if (changed) this.#options.wants(room.cols, room.rows);
    });
    this.#fitAgain = fit.call;
    const observer = new ResizeObserver(fit.call);
    observer.observe(this.#options.host);
    fit.call();
    this.#ends.push(() => {
      observer.disconnect();
      fit.stop();
    });
  }

  /** Another viewer's grid, with the largest text with which it fits here. */
  #become(cols: number, rows: number): void {
    const scale = Math.min(this.#room.cols / cols, this.#room.rows / rows, 1);
    this.term.options.fontSize = Math.max(Math.floor(this.#fontPx * scale * 2) / 2, FONT_PX_MIN);
    if (cols !== this.term.cols || rows !== this.term.rows) this.term.resize(cols, rows);
  }
}

/** Room by the size of a place and of its text: a few sizes of one window. */
const rooms = new Map<string, { cols: number; rows: number }>();
const placeOf = (host: HTMLElement, fontPx: number): string => `${host.clientWidth}x${host.clientHeight} ${fontPx} ${devicePixelRatio}`;

/**
 * Where WebGL is drawn by the processor, five terminals that flood leave 20 frames a second and keys that take half a
 * second; by the DOM it is 55 frames and a tenth of a second (measured on 2 cores, Chromium with SwiftShader).
 */
function hasGpu(): boolean {
  gpu ??= (() => {
    const context = document.createElement("canvas").getContext("webgl2", { failIfMajorPerformanceCaveat: true });
    if (context === null) return false;
    const names = context.getExtension("WEBGL_debug_renderer_info");
    const name: unknown = context.getParameter(names?.UNMASKED_RENDERER_WEBGL ?? context.RENDERER);
    context.getExtension("WEBGL_lose_context")?.loseContext();
    return !PROCESSOR.test(String(name));
  })();
  return gpu;
}
let gpu: boolean | undefined;
/** What draws without a GPU, by the names that browsers give; Chromium hands it out even to who asks for none. */
const PROCESSOR = /swiftshader|llvmpipe|softpipe|software|basic render/i;

/**
 * Ready when the fonts are: the grid is measured once, and a sign is drawn once and kept, with the font that is there.
 * A font that does not come is no reason to wait for it.
 */
export function fontReady(): Promise<void> {
  fonts ??= loadFonts();
  return fonts;
}
let fonts: Promise<void> | undefined;

async function loadFonts(): Promise<void> {
  const load = (weight: number) => [
    document.fonts.load(`${weight} 13px "JetBrains Mono Variable"`),
    document.fonts.load(`${weight} 13px "JetBrains Mono Signs"`, "●"),
  ];
  await Promise.allSettled([...load(400), ...load(700), document.fonts.load('13px "purplemux Marks"', "⏸")]);
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
