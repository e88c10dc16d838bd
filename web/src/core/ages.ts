// How long something has lasted, in words. Owns rounding: an age is rounded down, never shown from the future, and
// seconds are shown only where one session is looked at.

import type { Say } from "./words.ts";

/** For rows: `<1m`, `4m`, `3h`, `2d`. `ms` is a duration; a negative one (clocks differ) is none at all. */
export function age(ms: number, say: Say): string {
  const minutes = Math.floor(Math.max(0, ms) / 60_000);
  if (minutes < 1) return say("time.lt1m");
  if (minutes < 60) return say("time.m", { n: minutes });
  const hours = Math.floor(minutes / 60);
  return hours < 24 ? say("time.h", { n: hours }) : say("time.d", { n: Math.floor(hours / 24) });
}

/** For the session that is looked at: `3s`, `4m 12s`, then as `age`. */
export function exactAge(ms: number, say: Say): string {
  const seconds = Math.floor(Math.max(0, ms) / 1000);
  if (seconds < 60) return say("time.s", { n: seconds });
  if (seconds < 3600) return say("time.ms", { m: Math.floor(seconds / 60), s: String(seconds % 60).padStart(2, "0") });
  return age(ms, say);
}
