// When something was, as the person's language writes it: near moments by how long ago, others by their date. Owns no
// words of its own; they are the browser's (Intl).

import type { Language } from "./words.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
/** From then on a date says more than a number of days. */
const DAYS_MAX = 7;

/** `at` and `now`: unix ms. A moment that lies ahead (clocks differ) is now. */
export function momentOf(at: number, now: number, language: Language): string {
  const ago = Math.max(0, now - at);
  const relative = (n: number, unit: Intl.RelativeTimeFormatUnit) => new Intl.RelativeTimeFormat(language, { numeric: "auto", style: "short" }).format(-n, unit);
  if (ago < MINUTE_MS) return relative(0, "minute");
  if (ago < HOUR_MS) return relative(Math.floor(ago / MINUTE_MS), "minute");
  if (ago < DAY_MS) return relative(Math.floor(ago / HOUR_MS), "hour");
  if (ago < DAYS_MAX * DAY_MS) return relative(Math.floor(ago / DAY_MS), "day");
  return new Intl.DateTimeFormat(language, { dateStyle: "medium" }).format(at);
}
