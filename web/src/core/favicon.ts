// The icon of the browser's tab, drawn as SVG text: the logo, and what the fleet wants. Owns the drawing only; what is
// wanted is counted in view.ts.

import type { Counted } from "./view.ts";

export type Favicon =
  | { kind: "plain" | "busy" | "offline" }
  /** `amber`: something waits for an answer; `pale`: only reviews are left. */
  | { kind: "amber" | "pale"; n: number };

export function faviconOf(counts: Record<Counted, number>, attention: number, live: boolean): Favicon {
  if (!live) return { kind: "offline" };
  if (attention > 0) return { kind: counts.needs > 0 ? "amber" : "pale", n: attention };
  return { kind: counts.busy > 0 ? "busy" : "plain" };
}

const VIOLET = "#5b3fc4";
const GREY = "#6d6a75";
const ARROW = '<path d="M5 5.5 10.5 11 5 16.5" fill="none" stroke="#fff" stroke-width="3.2" stroke-linecap="round" stroke-linejoin="round"/>';

export function faviconSvg(icon: Favicon): string {
  const ground = `<rect width="32" height="32" rx="7" fill="${icon.kind === "offline" ? GREY : VIOLET}"/>`;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">${ground}${mark(icon)}</svg>`;
}

function mark(icon: Favicon): string {
  switch (icon.kind) {
    case "plain":
      return (
        '<path d="M6.5 10.5 12 16l-5.5 5.5" fill="none" stroke="#fff" stroke-width="3.2" stroke-linecap="round" stroke-linejoin="round"/>' +
        '<path d="M17 0v32" stroke="#fff" stroke-opacity=".4" stroke-width="2"/><circle cx="24" cy="16" r="3.2" fill="#fff"/>'
      );
    case "busy":
      return (
        `${ARROW}<circle cx="21" cy="21" r="9.5" fill="${VIOLET}"/><circle cx="21" cy="21" r="7" fill="none" stroke="#fff" stroke-opacity=".35" stroke-width="3"/>` +
        '<path d="M21 14a7 7 0 1 1-6.8 5.4" fill="none" stroke="#fff" stroke-width="3" stroke-linecap="round"/>'
      );
    case "offline":
      return `${ARROW}<g fill="none" stroke-linecap="round"><path d="m15.5 16.5 12 12m0-12-12 12" stroke="#fff" stroke-width="7"/><path d="m15.5 16.5 12 12m0-12-12 12" stroke="#c22f3d" stroke-width="3.6"/></g>`;
    case "amber":
    case "pale": {
      const plate = icon.kind === "amber" ? "#f2b33d" : "#ece6ff";
      const ink = icon.kind === "amber" ? "#2e1d05" : "#2f1d78";
      const text = icon.n > 9 ? "9+" : String(icon.n);
      const size = text.length > 1 ? 12.5 : 18;
      return (
        `${ARROW}<rect x="11.5" y="11.5" width="20.5" height="20.5" rx="5.5" fill="${plate}"/>` +
        `<text x="21.8" y="${text.length > 1 ? 26.4 : 28.3}" text-anchor="middle" font-family="system-ui,sans-serif" font-weight="800" font-size="${size}" fill="${ink}">${text}</text>`
      );
    }
  }
}
