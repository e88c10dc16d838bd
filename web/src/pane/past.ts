// What has scrolled off a terminal's screen, shown over it: lines that tmux has kept, fetched as the person scrolls
// towards them. Owns the second xterm and the numbers of its lines; must never send anything to the program, and never
// show a line twice or leave one out: what does not join what is there is fetched anew.

import type { ITerminalOptions } from "@xterm/xterm";
import { Terminal } from "@xterm/xterm";
import { history, type Lines, searchHistory } from "./history.ts";
import { cellsOf, TMUX_WIDTHS } from "./widths.ts";

/** Fetched at first; each later fetch takes twice as many as the one before, up to what the server gives at once. */
const LINES_FIRST = 1000;
const LINES_MAX = 4000;
/** Closer to the oldest line that is there than this, more are fetched. */
const LINES_NEAR = 200;
/** Lines fetched again to see whether they join what is there. */
const OVERLAP = 3;

const HOLD_DRAWING = "\u001b[?2026h";
const DRAW = "\u001b[?2026l";
const CLEAR = "\u001b[H\u001b[2J\u001b[3J";
// eslint-disable-next-line no-control-regex -- escape sequences are made of them
const SEQUENCES = /\u001b(?:\[[0-9;:]*m|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[()][A-Z0-9])|[\u000e\u000f]/g;

export type PastOptions = {
  tab: string;
  host: HTMLElement;
  /** How the terminal below looks. */
  look: ITerminalOptions;
  cols: number;
  rows: number;
  /** The newest line was reached, or there is nothing to show. */
  left: () => void;
};

/** How far a search has come: which of how many. */
export type Match = { at: number; of: number; more: boolean };

export class Past {
  readonly term: Terminal;
  #options: PastOptions;
  #box = document.createElement("div");
  #lines: string[] = [];
  /** The number of the first line that is there. */
  #first = 0;
  /** The number of the first line that was on the screen when the newest were fetched. */
  #screen = 0;
  #busy = false;
  #opened: Promise<void>;
  /** The fetch that is on its way. */
  #turn: Promise<void> = Promise.resolve();
  #ready = false;
  #closed = false;
  /** Lines are being drawn; until they are, numbers and places do not belong together. */
  #drawing = false;
  /** Lines that the person scrolled before there was anything to scroll, or while it was drawn. */
  #owed = 0;
  #next = LINES_FIRST;

  constructor(options: PastOptions) {
    this.#options = options;
    this.#box.className = "past";
    this.#box.dataset["past"] = options.tab;
    this.#box.hidden = true;
    options.host.append(this.#box);
    const { cols, rows, look } = options;
    this.term = new Terminal({ ...look, allowProposedApi: true, cols, rows, cursorStyle: "bar", cursorWidth: 1, cursorInactiveStyle: "none", disableStdin: true, scrollback: 1_000_000 });
    this.term.unicode.register(TMUX_WIDTHS);
    this.term.unicode.activeVersion = TMUX_WIDTHS.version;
    this.term.open(this.#box);
    this.term.textarea?.setAttribute("tabindex", "-1");
    this.term.onScroll(() => void this.#near());
    this.#opened = this.#newest();
  }

  /** Up is negative. */
  scroll(lines: number): void {
    if (!this.#ready || this.#drawing) {
      this.#owed += lines;
      return;
    }
    const bottom = this.term.buffer.active.viewportY >= this.term.buffer.active.baseY;
    if (lines > 0 && bottom) void this.#newer();
    else this.term.scrollLines(lines);
    void this.#near();
  }

  /** The number of the line at the top. */
  get top(): number {
    return this.#first + this.term.buffer.active.viewportY;
  }

  /** Shows the newest line that contains `text` and is older (or newer) than the one shown; null if there is none. */
  async find(text: string, from: number, steps: number): Promise<{ match: Match; line: number } | null> {
    await this.#opened;
    const found = await searchHistory(this.#options.tab, text);
    if (this.#closed || found.lines.length === 0) return null;
    const here = found.lines.indexOf(from);
    const at = here < 0 ? 0 : Math.min(Math.max(here + steps, 0), found.lines.length - 1);
    const line = found.lines[at];
    if (line === undefined) return null;
    await this.#reach(line);
    this.#mark(line, text);
    return { match: { at: at + 1, of: found.lines.length, more: found.more }, line };
  }

  close(): void {
    this.#closed = true;
    this.term.dispose();
    this.#box.remove();
  }

  async #newest(): Promise<void> {
    await this.#alone(async () => {
      const got = await history(this.#options.tab, { last: LINES_FIRST });
      await this.#become(got, got.lines, got.from);
      this.#screen = got.history;
      this.#ready = true;
      this.#box.hidden = false;
    });
    this.#pay();
  }

  #pay(): void {
    const owed = this.#owed;
    if (owed === 0 || !this.#ready || this.#drawing || this.#closed) return;
    this.#owed = 0;
    this.scroll(owed);
  }

  /** Fetches what is above, if the person is about to get there. */
  async #near(): Promise<void> {
    if (this.#ready && this.#first > 0 && this.term.buffer.active.viewportY < LINES_NEAR) await this.#alone(() => this.#older(0));
  }

  /** Until this line is there. */
  async #reach(line: number): Promise<void> {
    while (!this.#closed && line < this.#first) {
      // Another fetch may be on its way, and may be the one that brings it.
      await this.#turn;
      const before = this.#first;
      if (line >= before) break;
      await this.#alone(() => this.#older(0));
      if (this.#first === before) return;
    }
    this.term.scrollToLine(Math.max(line - this.#first - Math.floor(this.term.rows / 2), 0));
  }

  async #older(from: number): Promise<void> {
    const first = this.#first;
    const got = await history(this.#options.tab, { from: Math.max(first - this.#next, from), to: first + OVERLAP });
    this.#next = Math.min(this.#next * 2, LINES_MAX);
    const above = got.lines.slice(0, Math.max(first - got.from, 0));
    const joins = got.lines.slice(above.length).every((line, at) => line === this.#lines[at]);
    if (!joins || got.cols !== this.#options.cols) {
      // tmux has thrown its oldest lines away, or the history was cleared: the numbers mean other lines now.
      await this.#anew();
      return;
    }
    const top = this.top;
    await this.#become(got, [...above, ...this.#lines], got.from, top);
  }

  /** The person wants to go on below the newest line that is there: what has come since, or back to the program. */
  async #newer(): Promise<void> {
    await this.#alone(async () => {
      const screen = this.#screen;
      const got = await history(this.#options.tab, { from: screen });
      const grown = got.history - screen;
      if (grown <= this.term.rows || got.cols !== this.#options.cols) {
        this.#options.left();
        return;
      }
      if (got.from !== screen) {
        await this.#anew();
        return;
      }
      const top = this.top;
      this.#screen = got.from + got.lines.length - got.rows;
      await this.#become(got, [...this.#lines.slice(0, screen - this.#first), ...got.lines], this.#first, top);
    });
  }

  async #anew(): Promise<void> {
    const got = await history(this.#options.tab, { last: LINES_FIRST });
    this.#screen = got.history;
    await this.#become(got, got.lines, got.from);
  }

  /** Draws these lines, the first of them being number `first`, with line `top` on top; without it, the end. */
  async #become(got: Lines, lines: string[], first: number, top?: number): Promise<void> {
    if (this.#closed) return;
    this.#drawing = true;
    this.#lines = lines;
    this.#first = first;
    const text = lines.map((line, at) => line + (at === lines.length - 1 || wraps(line, lines[at + 1], got.cols) ? "" : "\r\n")).join("");
    await new Promise<void>((drawn) => this.term.write(`${HOLD_DRAWING}${CLEAR}${text}`, drawn));
    if (this.#closed) return;
    if (top === undefined) this.term.scrollToBottom();
    else this.term.scrollToLine(top - first);
    await new Promise<void>((drawn) => this.term.write(DRAW, drawn));
    this.#drawing = false;
  }

  #mark(line: number, text: string): void {
    const row = line - this.#first;
    const wanted = text.toLowerCase();
    const said = this.term.buffer.active.getLine(row)?.translateToString(true) ?? "";
    const at = said.toLowerCase().indexOf(wanted);
    if (at >= 0) this.term.select(cellsOf(said.slice(0, at)), row, cellsOf(said.slice(at, at + text.length)));
  }

  /** One fetch at a time; one that fails changes nothing. */
  #alone(what: () => Promise<void>): Promise<void> {
    if (this.#busy || this.#closed) return Promise.resolve();
    this.#busy = true;
    this.#turn = this.#run(what);
    return this.#turn;
  }

  async #run(what: () => Promise<void>): Promise<void> {
    try {
      await what();
    } catch {
      // No way to the server now. With nothing to show the terminal is better.
      if (!this.#ready && !this.#closed) this.#options.left();
    } finally {
      this.#busy = false;
      this.#drawing = false;
      this.#pay();
    }
  }
}

/** Whether the next line goes on with this one: it is full to the last cell. tmux does not say it more exactly. */
function wraps(line: string, next: string | undefined, cols: number): boolean {
  if (line.length < cols / 2 || next === undefined || next === "") return false;
  return cellsOf(line.replace(SEQUENCES, "")) === cols && next.replace(SEQUENCES, "") !== "";
}
