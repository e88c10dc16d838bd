// The terminal's palettes: sixteen colours, a ground and a cursor each, in light and in dark. Owns the numbers, which are
// worked out from a few hues so that every text colour keeps its contrast with its ground; must never hold a colour that
// cannot be read, whatever a palette asks for.

import type { Palette } from "./palette-names.ts";

/** What is kept between text and ground (WCAG AA), and a little for rounding. */
export const CONTRAST_MIN = 4.5;
const CONTRAST_AIM = 4.6;

/** Lightness 0 to 1, chroma, hue in degrees. */
type Lch = readonly [number, number, number];
export type Rgb = readonly [number, number, number];

type Recipe = {
  light: Lch;
  dark: Lch;
  /** How colourful the six colours are, 1 for the usual. */
  chroma: number;
  /** Degrees by which the hues are turned towards the ground's. */
  turn: number;
};

const RECIPES: Record<Exclude<Palette, "purple">, Recipe> = {
  paper: { light: [0.975, 0.018, 88], dark: [0.22, 0.012, 75], chroma: 0.85, turn: 0 },
  moss: { light: [0.97, 0.02, 140], dark: [0.205, 0.02, 155], chroma: 0.8, turn: 10 },
  harbor: { light: [0.97, 0.014, 235], dark: [0.21, 0.032, 245], chroma: 0.95, turn: -8 },
  clay: { light: [0.965, 0.02, 50], dark: [0.2, 0.02, 40], chroma: 0.9, turn: 8 },
  rose: { light: [0.972, 0.014, 5], dark: [0.205, 0.022, 350], chroma: 1, turn: -12 },
  steel: { light: [0.955, 0.004, 250], dark: [0.245, 0.008, 250], chroma: 0.6, turn: 0 },
  plain: { light: [1, 0, 0], dark: [0, 0, 0], chroma: 1.25, turn: 0 },
};

const HUES = { red: 25, green: 150, yellow: 90, blue: 256, magenta: 322, cyan: 208 } as const;
const CHROMAS = { red: 0.17, green: 0.13, yellow: 0.12, blue: 0.14, magenta: 0.16, cyan: 0.1 } as const;

/** Names of the page's tokens, and their colours as `#rrggbb`. Empty for the page's own palette. */
export function paletteTokens(palette: Palette, dark: boolean): Record<string, string> {
  if (palette === "purple") return {};
  const { light, dark: night, chroma, turn } = RECIPES[palette];
  const ground = dark ? night : light;
  const back = rgbOf(ground);
  const hue = ground[2];
  const text = (lch: Lch) => hexOf(rgbOf(readable(lch, back, dark)));
  const tokens: Record<string, string> = {
    "--x-bg": hexOf(back),
    "--x-fg": text([dark ? 0.91 : 0.26, 0.012, hue]),
    "--x-dim": text([dark ? 0.68 : 0.5, 0.014, hue]),
    // A ground for what is printed on it; as a text it is lifted by the terminal.
    "--x-black": hexOf(rgbOf([dark ? ground[0] + 0.15 : 0.26, 0.012, hue])),
    "--x-cursor": text([dark ? 0.9 : 0.36, 0.05, hue]),
    "--x-selection": `${hexOf(rgbOf([dark ? 0.7 : 0.55, 0.12, 285]))}52`,
  };
  for (const name of Object.keys(HUES) as (keyof typeof HUES)[]) tokens[`--x-${name}`] = text([dark ? 0.77 : 0.5, CHROMAS[name] * chroma, HUES[name] + turn]);
  return tokens;
}

/** The same colour, lighter or darker until it can be read on this ground. */
function readable([lightness, chroma, hue]: Lch, back: Rgb, dark: boolean): Lch {
  let at = lightness;
  while (at > 0 && at < 1 && contrast(rgbOf([at, chroma, hue]), back) < CONTRAST_AIM) at += dark ? 0.01 : -0.01;
  return [at, chroma, hue];
}

/** OKLCH to sRGB, 0 to 255; what no screen can show gets less colourful until one can. */
export function rgbOf([lightness, chroma, hue]: Lch): Rgb {
  for (let left = chroma; ; left -= 0.005) {
    const linear = linearOf(lightness, Math.max(left, 0), hue);
    if (left <= 0 || linear.every((part) => part >= -0.0005 && part <= 1.0005)) {
      const [r, g, b] = linear.map((part) => Math.round(255 * gamma(Math.min(Math.max(part, 0), 1))));
      return [r ?? 0, g ?? 0, b ?? 0];
    }
  }
}

function linearOf(lightness: number, chroma: number, hue: number): number[] {
  const a = chroma * Math.cos((hue * Math.PI) / 180);
  const b = chroma * Math.sin((hue * Math.PI) / 180);
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s, -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s, -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s];
}

const gamma = (part: number) => (part <= 0.0031308 ? 12.92 * part : 1.055 * part ** (1 / 2.4) - 0.055);
const ungamma = (part: number) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);

const hexOf = (rgb: Rgb) => `#${rgb.map((part) => part.toString(16).padStart(2, "0")).join("")}`;

/** `#rrggbb`, whatever follows. */
export function rgbFrom(hex: string): Rgb {
  const part = (at: number) => parseInt(hex.slice(at, at + 2), 16);
  return [part(1), part(3), part(5)];
}

/** WCAG's ratio, 1 to 21. */
export function contrast(one: Rgb, other: Rgb): number {
  const luminance = ([r, g, b]: Rgb) => 0.2126 * ungamma(r / 255) + 0.7152 * ungamma(g / 255) + 0.0722 * ungamma(b / 255);
  const [low = 0, high = 0] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}
