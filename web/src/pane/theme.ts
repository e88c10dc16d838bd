// The terminal's colours, taken from the page's tokens. Owns the names only; a colour is changed in tokens.css.

import type { ITheme } from "@xterm/xterm";

const TOKENS = {
  background: "--x-bg",
  foreground: "--x-fg",
  cursor: "--x-cursor",
  cursorAccent: "--x-bg",
  selectionBackground: "--x-selection",
  black: "--x-black",
  red: "--x-red",
  green: "--x-green",
  yellow: "--x-yellow",
  blue: "--x-blue",
  magenta: "--x-magenta",
  cyan: "--x-cyan",
  white: "--x-fg",
  brightBlack: "--x-dim",
  brightRed: "--x-red",
  brightGreen: "--x-green",
  brightYellow: "--x-yellow",
  brightBlue: "--x-blue",
  brightMagenta: "--x-magenta",
  brightCyan: "--x-cyan",
  brightWhite: "--x-fg",
} as const satisfies Partial<Record<keyof ITheme, string>>;

/** `at` is an element inside the theme. */
export function themeOf(at: HTMLElement): ITheme {
  const probe = document.createElement("span");
  at.append(probe);
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 1;
  const pen = canvas.getContext("2d", { willReadFrequently: true });
  const theme: ITheme = {};
  for (const [name, token] of Object.entries(TOKENS)) {
    probe.style.color = `var(${token})`;
    const color = getComputedStyle(probe).color;
    theme[name as keyof typeof TOKENS] = pen === null ? color : hex(pen, color);
  }
  probe.remove();
  return theme;
}

/** xterm reads only hexadecimal colours with an alpha; the tokens are oklch. */
function hex(pen: CanvasRenderingContext2D, color: string): string {
  pen.clearRect(0, 0, 1, 1);
  pen.fillStyle = color;
  pen.fillRect(0, 0, 1, 1);
  return `#${[...pen.getImageData(0, 0, 1, 1).data].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}
