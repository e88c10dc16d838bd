// "Why this state?" in words: times, distances, the sentence, the report to be copied. Owns how an explanation reads;
// must never conclude anything (the server says how each witness stands) and never translate a witness's own words.

import type { Shape } from "./view.ts";
import type { Explanation, Testimony, Transition } from "../wire/protocol.ts";
import type { Say } from "./words.ts";

const MINUTE_MS = 60_000;

const two = (n: number) => String(n).padStart(2, "0");

/** `14:30:18.204` on the viewer's own clock face. */
export function wallTime(ms: number): string {
  const at = new Date(ms);
  return `${hourMinute(ms)}:${two(at.getSeconds())}.${String(at.getMilliseconds()).padStart(3, "0")}`;
}

/** `14:30`. */
export function hourMinute(ms: number): string {
  const at = new Date(ms);
  return `${two(at.getHours())}:${two(at.getMinutes())}`;
}

/** `2m 04s`, `3h 20m`, `2d 1h`: two units, the second never dropped. A negative one (clocks differ) is none. */
export function span(ms: number, say: Say): string {
  const seconds = Math.floor(Math.max(0, ms) / 1000);
  if (seconds < 60) return say("time.s", { n: seconds });
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return say("time.ms", { m: minutes, s: two(seconds % 60) });
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return `${say("time.h", { n: hours })} ${say("time.m", { n: two(minutes % 60) })}`;
  return `${say("time.d", { n: Math.floor(hours / 24) })} ${say("time.h", { n: hours % 24 })}`;
}

/** `−11 ms`, `+0.4 s`, `+2m 04s`: how far from the deciding event. */
export function distance(ms: number, say: Say): string {
  const sign = ms < 0 ? "\u2212" : "+";
  const size = Math.abs(ms);
  if (size < 100) return `${sign}${String(size)} ms`;
  return size < MINUTE_MS ? `${sign}${(size / 1000).toFixed(1)} s` : `${sign}${span(size, say)}`;
}

/** What stands under a witness's time: the age of what decided and of what was asked just now, else the distance. */
export function beside(line: Testimony, nowMs: number, say: Say): string {
  if (line.at_ms === null) return "";
  if (line.stand === "decided" || line.source === "process" || line.distance_ms === null) {
    return say("why.ago", { t: span(nowMs - line.at_ms, say) });
  }
  return distance(line.distance_ms, say);
}

/** The one sentence. */
export function sentence(said: Explanation, nowMs: number, say: Say): string {
  const t = span(nowMs - said.since_ms, say);
  const why = said.reason === "asked" ? say(`why.asked.${said.ask ?? "permission"}`, { t }) : say(`why.${said.reason}`, { t, error: said.error ?? "" });
  return said.presence === "suspended" ? say("why.suspended", { why }) : why;
}

/** An earlier badge as a glyph; what was asked then is not remembered. */
export function shapeThen(then: Transition): Shape {
  switch (then.state) {
    case "idle":
    case "busy":
    case "unknown":
      return then.state;
    case "needs-input":
      return "permission";
    case "review":
      return then.failed ? "failed" : "review";
    case null:
      return "off";
  }
}

/** An earlier badge in a word. */
export function wordThen(then: Transition, say: Say): string {
  switch (then.state) {
    case "idle":
    case "busy":
    case "unknown":
    case "review":
      return say(`state.${then.state}`);
    case "needs-input":
      return say("state.needs");
    case null:
      return say("presence.off");
  }
}

/** The whole explanation as plain text, in English whatever the page's language: it goes to whoever can help. */
export function report(said: Explanation): string {
  const line = (of: Testimony) =>
    [of.at_ms === null ? "-" : new Date(of.at_ms).toISOString(), of.source, of.stand, of.distance_ms === null ? "" : `${String(of.distance_ms)} ms`, of.text].join("  ").trimEnd();
  const badge = (of: Transition) => `${new Date(of.at_ms).toISOString()}  ${of.state ?? "none"}${of.failed ? " (failed)" : ""}`;
  return [
    `purplemux: ${said.state ?? "none"}, ${said.presence}, since ${new Date(said.since_ms).toISOString()}`,
    said.sentence,
    `agent ${said.agent ?? "none"}, asked ${new Date(said.now_ms).toISOString()}`,
    "",
    ...said.witnesses.map(line),
    "",
    "Evidence, newest first:",
    ...said.evidence.map(line),
    "",
    "Last states:",
    ...said.transitions.map(badge),
    "",
  ].join("\n");
}
