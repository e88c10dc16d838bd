// A stream of tmux's, recorded from tmux 3.3a with everything in it that a grid can show, cut in two at every byte: in
// escape sequences, in characters, between the halves of a cluster. Drawn by the terminal that the page uses.

/// <reference types="node" />
import { readFileSync } from "node:fs";
import type { Terminal } from "@xterm/xterm";
import { expect, test, vi } from "vitest";
import { Whole } from "./whole.ts";
import { TMUX_WIDTHS } from "./widths.ts";

// xterm looks for a window when it is loaded; nothing is drawn here.
vi.stubGlobal("window", globalThis);
const xterm = await import("@xterm/xterm");
const RECORDED = new Uint8Array(readFileSync(new URL("recorded.bin", import.meta.url)));
/** Cuts that are tried side by side. */
const AT_ONCE = 64;

/** Everything that is on the grid, and where the cursor is. */
function gridOf(term: Terminal): string {
  const { active } = term.buffer;
  const lines = Array.from({ length: term.rows }, (_, y) => {
    const line = active.getLine(y);
    const cells = Array.from({ length: term.cols }, (_, x) => {
      const cell = line?.getCell(x);
      const flags = [cell?.isBold(), cell?.isDim(), cell?.isItalic(), cell?.isUnderline(), cell?.isInverse(), cell?.isStrikethrough()];
      return [cell?.getChars(), cell?.getWidth(), cell?.getFgColorMode(), cell?.getFgColor(), cell?.getBgColorMode(), cell?.getBgColor(), ...flags].join(",");
    });
    return cells.join(" ");
  });
  const { mouseTrackingMode, bracketedPasteMode, applicationCursorKeysMode } = term.modes;
  return [...lines, active.cursorX, active.cursorY, mouseTrackingMode, bracketedPasteMode, applicationCursorKeysMode].join("\n");
}

async function drawn(parts: Uint8Array[]): Promise<string> {
  const term = new xterm.Terminal({ cols: 60, rows: 16, scrollback: 0, allowProposedApi: true });
  term.unicode.register(TMUX_WIDTHS);
  term.unicode.activeVersion = TMUX_WIDTHS.version;
  const whole = new Whole();
  for (const part of parts) await new Promise<void>((taken) => term.write(whole.take(part), taken));
  const grid = gridOf(term);
  term.dispose();
  return grid;
}

test("W08 cut at every byte, the grid is the same", { timeout: 120_000 }, async () => {
  const whole = await drawn([RECORDED]);
  expect(whole.includes("漢,2")).toBe(true);
  expect(whole.includes("👩\u200d💻,2")).toBe(true);
  for (let from = 1; from < RECORDED.length; from += AT_ONCE) {
    const cuts = Array.from({ length: Math.min(AT_ONCE, RECORDED.length - from) }, (_, n) => from + n);
    const grids = await Promise.all(cuts.map((cut) => drawn([RECORDED.slice(0, cut), RECORDED.slice(cut)])));
    for (const [n, grid] of grids.entries()) expect(grid === whole, `cut at byte ${cuts[n]}`).toBe(true);
  }
});

test("W08 in single bytes, the grid is the same", { timeout: 120_000 }, async () => {
  const whole = await drawn([RECORDED]);
  expect((await drawn(Array.from(RECORDED, (byte) => Uint8Array.of(byte)))) === whole).toBe(true);
});

test("W08 what is held back is never more than a character, and what is no character is passed on", () => {
  const whole = new Whole();
  expect([...whole.take(Uint8Array.of(65, 0xe2, 0x80))]).toEqual([65]);
  expect([...whole.take(Uint8Array.of(0xa6, 66))]).toEqual([0xe2, 0x80, 0xa6, 66]);
  expect([...whole.take(Uint8Array.of(0x80, 0x80, 0x80, 0x80))]).toEqual([0x80, 0x80, 0x80, 0x80]);
  expect([...whole.take(Uint8Array.of(0xf0))]).toEqual([]);
  whole.forget();
  expect([...whole.take(Uint8Array.of(67))]).toEqual([67]);
});
