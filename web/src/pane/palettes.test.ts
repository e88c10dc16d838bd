// Every palette can be read, in light and in dark: the eight of ours, the page's own tokens among them.

/// <reference types="node" />
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { PALETTES } from "../core/palette-names.ts";
import { contrast, CONTRAST_MIN, paletteTokens, rgbFrom, rgbOf, type Rgb } from "../core/palettes.ts";

const TEXT = ["fg", "dim", "red", "green", "yellow", "blue", "magenta", "cyan", "cursor"];

/** The colours of `--x-name: light-dark(oklch(…), oklch(…))` as the page's own style says them. */
function own(name: string, dark: boolean): Rgb {
  const css = readFileSync(new URL("../style/tokens.css", import.meta.url), "utf8");
  const token = name === "bg" ? "--c-pane" : `--x-${name}`;
  const [, ...parts] = new RegExp(`${token}: light-dark\\(oklch\\(([^)]*)\\), oklch\\(([^)]*)\\)`).exec(css) ?? [];
  const [l = 0, c = 0, h = 0] = (parts[dark ? 1 : 0] ?? "").split(" ").map(Number);
  return rgbOf([l, c, h]);
}

test("there are eight, and no two look the same", () => {
  const looks = PALETTES.map((palette) => JSON.stringify([paletteTokens(palette, true), paletteTokens(palette, false)]));
  expect(new Set(looks).size).toBe(8);
});

test.each(PALETTES.flatMap((palette) => [false, true].map((dark) => ({ palette, dark }))))("$palette can be read, dark: $dark", ({ palette, dark }) => {
  const tokens = paletteTokens(palette, dark);
  const colour = (name: string) => (palette === "purple" ? own(name, dark) : rgbFrom(tokens[`--x-${name}`] ?? ""));
  for (const name of TEXT) expect(contrast(colour(name), colour("bg")), name).toBeGreaterThanOrEqual(CONTRAST_MIN);
  // A text in the colour of black is lifted by the terminal, but as a ground it must carry the usual text.
  if (dark) expect(contrast(colour("fg"), colour("black"))).toBeGreaterThanOrEqual(CONTRAST_MIN);
});

test("the ratio is the one of WCAG", () => {
  expect(contrast([0, 0, 0], [255, 255, 255])).toBeCloseTo(21, 5);
  expect(contrast([119, 119, 119], [255, 255, 255])).toBeCloseTo(4.48, 2);
});
