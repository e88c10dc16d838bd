// How one row is drawn and named: which silhouette, whose turn, which words. Owns the mapping from the five states
// and their details to what the eye and the screen reader get; must never decide a state (the server does) and
// must never translate Claude's own words.

import type { Fleet } from "./fleet.ts";
import type { Item, State, Workspace } from "../wire/protocol.ts";
import type { Key, Say } from "./words.ts";

/** Every silhouette there is. */
export type Shape =
  | "idle"
  | "busy"
  | "permission"
  | "question"
  | "plan"
  | "form"
  | "review"
  | "failed"
  | "unknown"
  | "off"
  | "suspended"
  | "gone";

/** The families that share colour, weight and motion. */
export type Family = "idle" | "busy" | "needs" | "review" | "unknown" | "still";

/** Amber is yours, purple is Claude's or waits for your eyes, grey is nobody's. */
export type Turn = "you" | "claude" | "none";

export function shapeOf(item: Item): Shape {
  if (item.presence === "suspended") return "suspended";
  switch (item.state) {
    case "idle":
      return "idle";
    case "busy":
      return "busy";
    case "needs-input":
      return askShape(item.detail.ask?.kind);
    case "review":
      return item.detail.outcome === "failed" ? "failed" : "review";
    case "unknown":
      return "unknown";
    case null:
      return item.presence === "gone" || isOver(item) ? "gone" : "off";
  }
}

/** Nothing runs in this tab any more; what it was can be started again. */
export function isOver(item: Item): boolean {
  return item.shell === "ended" || item.shell === "dead";
}

/** Dialog and start-up questions carry the permission's mark. */
function askShape(kind: string | undefined): Shape {
  return kind === "question" || kind === "plan" || kind === "form" ? kind : "permission";
}

/** The dot of a workspace, whose most urgent state the server names. */
export function workspaceShape(workspace: Workspace, items: readonly Item[]): Shape {
  switch (workspace.state) {
    case "needs-input": {
      const first = items.filter((item) => shown(item) === "needs-input").sort(bySince)[0];
      return askShape(first?.detail.ask?.kind);
    }
    case "review":
      return workspace.failed ? "failed" : "review";
    case "idle":
    case "busy":
    case "unknown":
      return workspace.state;
    case null:
      return "off";
  }
}

/** The dot of rows that are in no workspace: the most urgent of them, as `byUrgency` has it. */
export function mostUrgent(items: readonly Item[]): Shape {
  const first = [...items].sort(byUrgency)[0];
  return first === undefined ? "off" : shapeOf(first);
}

/** Which terminal a row opens; null: it has none that can be shown here. */
export type TerminalId = { readonly id: string; /** In a tmux of the person's own. */ readonly outside: boolean };

export function terminalOf(item: Item): TerminalId | null {
  if (item.tab !== null) return { id: item.tab, outside: false };
  return item.terminal ? { id: item.id, outside: true } : null;
}

export function familyOf(shape: Shape): Family {
  switch (shape) {
    case "permission":
    case "question":
    case "plan":
    case "form":
      return "needs";
    case "review":
    case "failed":
      return "review";
    case "idle":
    case "busy":
    case "unknown":
      return shape;
    case "off":
    case "suspended":
    case "gone":
      return "still";
  }
}

export function turnOf(shape: Shape): Turn {
  const family = familyOf(shape);
  if (family === "needs" || family === "review") return "you";
  return family === "busy" ? "claude" : "none";
}

/** The state a row counts as: a suspended agent keeps its state but counts as idle. */
function shown(item: Item): State | null {
  return item.presence === "suspended" && item.state !== null ? "idle" : item.state;
}

/** `Needs input, permission`: the words that name a row's state to a screen reader. */
export function stateWords(item: Item, say: Say): string {
  const { word, kind } = stateParts(item, say);
  return kind === "" ? word : `${word}${say("list.comma")}${kind}`;
}

/** The state's word, and the kind inside it (empty where the word says all). */
export function stateParts(item: Item, say: Say): { word: string; kind: string } {
  if (item.presence === "suspended") return { word: say("presence.suspended"), kind: "" };
  switch (item.state) {
    case "idle":
      return { word: say("state.idle"), kind: "" };
    case "busy":
      return { word: say("state.busy"), kind: "" };
    case "needs-input": {
      const kind = item.detail.ask?.kind;
      return { word: say("state.needs"), kind: kind === undefined ? "" : say(`kind.${kind}`) };
    }
    case "review":
      return { word: say("state.review"), kind: say(item.detail.outcome === "failed" ? "kind.failed" : "kind.finished") };
    case "unknown":
      return { word: say("state.unknown"), kind: "" };
    case null:
      return { word: say(shapeOf(item) === "gone" ? "presence.gone" : "presence.off"), kind: "" };
  }
}

/** What the header's chip adds to the state's word. */
export function chipDetail(item: Item, say: Say): string {
  if (item.presence === "suspended") return "";
  switch (item.state) {
    case "busy":
      return busyShort(item, say);
    case "review": {
      if (item.detail.outcome === "failed") return say("chip.failed");
      const shells = item.detail.shells ?? 0;
      if (shells > 0) return say("chip.shells", { n: shells });
      return unwritten(item) ? say("chip.unwritten") : say("kind.finished");
    }
    case "unknown":
      return say("chip.checking");
    case "idle":
      return unwritten(item) ? say("chip.unwritten") : stateParts(item, say).kind;
    case "needs-input":
    case null:
      return stateParts(item, say).kind;
  }
}

/** What was said in it is lost when it ends. */
const unwritten = (item: Item) => item.detail.label === "no transcript";

function busyShort(item: Item, say: Say): string {
  switch (item.detail.doing) {
    case "tool":
      return item.detail.tool ?? item.tool ?? "";
    case "compacting":
      return say("chip.compacting");
    case "retrying":
      return say("chip.retrying");
    case "subagents":
      return say("busy.subagents", { n: item.detail.agents ?? 0 });
    default:
      return "";
  }
}

/** The second line of a row: what Claude does, asks or said. Claude's words come through verbatim. */
export function lineOf(item: Item, say: Say): string {
  if (item.presence === "suspended") return say("line.suspended");
  const { detail } = item;
  switch (item.state) {
    case "needs-input":
      return shortFile(firstLine(detail.ask?.text ?? ""), item.cwd) || askFallback(item, say);
    case "busy":
      return busyLine(item, say);
    case "review": {
      if (detail.outcome === "failed") return detail.error === undefined ? say("review.error") : say("line.stopped", { reason: detail.error });
      const said = firstLine(item.last_message ?? "");
      const shells = detail.shells ?? 0;
      if (shells > 0) return say("review.shells", { n: shells });
      return said || say("review.finished");
    }
    case "unknown":
      return say("unknown.line");
    case "idle":
      if (detail.label === "interrupted") return say("line.interrupted");
      if (detail.label === "ended without Stop") return say("line.noStop");
      return firstLine(item.last_message ?? "") || say("line.idle");
    case null:
      if (item.shell === "ended") return say("line.ended");
      if (item.shell === "dead") return say("line.dead");
      if (item.presence === "gone") return say("line.gone");
      if (item.presence === "starting") return say("line.starting");
      return shortPath(item.cwd) || say("line.off");
  }
}

function askFallback(item: Item, say: Say): string {
  const kind = item.detail.ask?.kind;
  return kind === undefined ? say("state.needs") : say(`needs.${kind}`);
}

function busyLine(item: Item, say: Say): string {
  const { detail } = item;
  switch (detail.doing) {
    case "compacting":
      return say("busy.compacting");
    case "retrying":
      return say("busy.retrying");
    case "subagents":
      return say("busy.subagents", { n: detail.agents ?? 0 });
    case "tool": {
      const tool = detail.tool ?? item.tool ?? "";
      if (tool === "") return say("busy.thinking");
      const arg = firstLine(detail.arg ?? "");
      return arg === "" ? tool : say("busy.tool", { tool, arg });
    }
    default:
      return say("busy.thinking");
  }
}

/** The first line that says something, without Markdown's leading marks. */
export function firstLine(text: string): string {
  for (const line of text.split("\n")) {
    const bare = line.replace(/^[\s#>*-]+/, "").trim();
    if (bare !== "") return bare;
  }
  return "";
}

/** A file is called as in its session's directory, and otherwise by its end, where its name is; other text is itself. */
function shortFile(text: string, cwd: string | null): string {
  if (!/^\/\S+$/.test(text)) return text;
  return cwd !== null && text.startsWith(`${cwd}/`) ? text.slice(cwd.length + 1) : shortPath(text);
}

/** The last two parts of a path: enough to tell rows apart, short enough for one. */
export function shortPath(path: string | null): string {
  if (path === null || path === "") return "";
  const parts = path.split("/").filter((part) => part !== "");
  return parts.length <= 2 ? path : `…/${parts.slice(-2).join("/")}`;
}

/** How full the context is: `1%` where the window's size is known, else `14k` tokens; null where nothing was said. */
export function contextOf(item: Item, say: Say): { percent: number | null; short: string; words: string } | null {
  const tokens = item.tokens.context;
  const percent = item.context_pct;
  if (tokens === undefined && percent === null) return null;
  const counted = tokens === undefined ? "" : say("context.tokens", { n: tokens.toLocaleString("en-US") });
  const words = [counted, item.model ?? ""].filter((part) => part !== "").join(" · ");
  return { percent, short: percent === null ? thousands(tokens ?? 0) : `${percent}%`, words };
}

function thousands(n: number): string {
  return n < 1000 ? String(n) : `${Math.round(n / 1000)}k`;
}

/** Short words beside the line: what is true of a session and is no state. */
export function marks(item: Item, say: Say): { text: string; why: string }[] {
  const found: { text: string; why: string }[] = [];
  if (lacksHooks(item)) found.push({ text: say("mark.noHooks"), why: say("mark.noHooksWhy") });
  if (item.detail.label === "no transcript") found.push({ text: say("mark.noTranscript"), why: say("mark.noTranscriptWhy") });
  if (item.detail.label === "headless") found.push({ text: say("mark.headless"), why: say("mark.headlessWhy") });
  return found;
}

/** A living agent from which no hook comes: worth saying, since its details are poorer. */
export function lacksHooks(item: Item): boolean {
  return item.state !== null && !item.hooks;
}

// --- counts and order -------------------------------------------------------------------------------------------

export const COUNTED = ["needs", "review", "busy", "unknown", "idle"] as const;
export type Counted = (typeof COUNTED)[number];

/** Rows per family; rows without an agent and suspended ones are in none. */
export function counts(items: Iterable<Item>): Record<Counted, number> {
  const found: Record<Counted, number> = { needs: 0, review: 0, busy: 0, unknown: 0, idle: 0 };
  for (const item of items) {
    const family = familyOf(shapeOf(item));
    if (family !== "still") found[family] += 1;
  }
  return found;
}

const URGENCY: Record<Shape, number> = {
  permission: 0,
  question: 0,
  plan: 0,
  form: 0,
  failed: 1,
  review: 2,
  busy: 3,
  unknown: 4,
  idle: 5,
  suspended: 6,
  off: 7,
  gone: 8,
};

/** Most urgent first; the oldest first among equals. */
export function byUrgency(a: Item, b: Item): number {
  return URGENCY[shapeOf(a)] - URGENCY[shapeOf(b)] || bySince(a, b);
}

function bySince(a: Item, b: Item): number {
  return a.since_ms - b.since_ms || (a.id < b.id ? -1 : 1);
}

/** What wants the person, most urgent first. The server says what counts. */
export function attention(items: Iterable<Item>): Item[] {
  return [...items].filter((item) => item.attention).sort(byUrgency);
}

/** Where "Next" goes: the most urgent row that is not the one on screen; the one on screen if there is no other. */
export function nextAfter(waiting: readonly Item[], current: string | null): Item | null {
  return waiting.find((item) => item.id !== current) ?? waiting[0] ?? null;
}

/** Why "Next" goes there, as the end of a sentence that begins with the title. */
export function nextReason(item: Item): Key {
  if (item.state === "needs-input") {
    const kind = item.detail.ask?.kind;
    return kind === undefined ? "next.needs" : `next.${kind}`;
  }
  return item.detail.outcome === "failed" ? "next.failed" : "next.finished";
}

// --- outside the window ---------------------------------------------------------------------------------------

/** What the browser's tab is called. `session` is the title of the row on screen. */
export function documentTitle(fleet: Fleet | null, live: boolean, session: string | null, say: Say): string {
  if (fleet !== null && !live) return `${say("link.offline")} · purplemux`;
  const count = fleet === null ? 0 : attention(fleet.items.values()).length;
  const name = session === null || session === "" ? "purplemux" : `${session} · purplemux`;
  return count === 0 ? name : `(${count}) ${name}`;
}
