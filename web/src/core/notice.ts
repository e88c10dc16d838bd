// What a notification says, from the facts that were pushed. Owns the words' choice and when several become one; must
// never say more than the push carried, and never translate Claude's own words.

import type { Buttons, Push, Sentence } from "../wire/protocol.ts";
import { inWords, type Spoken } from "./sentence.ts";
import type { Say } from "./words.ts";

/** One notification as the browser is to show it. */
export type Notice = {
  title: string;
  body: string;
  /** One per row: a later one replaces it. */
  tag: string;
  /** Without a sound: an update, or a repeat of what it said before. */
  silent: boolean;
  data: NoticeData;
};

/** Kept with the notification, for the tap and for later messages. */
export type NoticeData = {
  /** The rows it stands for; a tap opens the only one. */
  rows: { row: string; title: string; episode: number; since_ms: number }[];
  /** When it was shown, unix ms. */
  at_ms: number;
  /** What a press on Yes or No sends. */
  buttons?: Buttons | undefined;
  /** The language of its words. */
  lang?: string | undefined;
};

/** The names of the buttons, as the browser gives them back. */
export const BUTTONS = ["yes", "no"] as const;
export type Button = (typeof BUTTONS)[number];

/** From the worker to a page that is open already; null: no single row was tapped. */
export type Opened = { type: "open"; row: string | null };

/** The tag of a notification that stands for several. */
export const MERGED = "many";
/** This many within so short a time become one. */
const MERGE_COUNT_MIN = 3;
const MERGE_WITHIN_MS = 5000;

type Show = Extract<Push, { type: "show" }>;

const EDITS = new Set(["Edit", "MultiEdit", "NotebookEdit", "Write"]);

function body(push: Show, say: Say): string {
  const text = push.text ?? "";
  const { about } = push;
  if (about === undefined) return say("notice.count", { n: push.count });
  switch (about) {
    case "permission": {
      if (text === "") return push.tool === undefined ? say("needs.permission") : say("notice.use", { tool: push.tool });
      if (push.tool !== undefined && EDITS.has(push.tool)) return say("notice.edit", { file: text });
      if (push.tool === undefined || push.tool === "Bash") return say("notice.run", { command: text });
      return say("notice.useOn", { tool: push.tool, arg: text });
    }
    case "question":
      return text === "" ? say("needs.question") : say("notice.question", { question: text });
    case "plan":
      return say("notice.plan");
    case "form":
      return text === "" ? say("needs.form") : text;
    case "dialog":
      return text === "" ? say("needs.dialog") : text;
    case "startup":
      return text === "" ? say("needs.startup") : text;
    case "failed":
      return text === "" ? say("review.error") : say("notice.failed", { reason: text });
    case "finished": {
      const shells = push.shells ?? 0;
      if (shells > 0) return say("notice.shells", { n: shells });
      return text === "" ? say("review.finished") : say("notice.finished", { words: text });
    }
  }
}

/** `shown`: what the browser shows of ours now. */
export function noticeOf(push: Show, shown: readonly NoticeData[], nowMs: number, say: Say): Notice {
  const same = (old: NoticeData) => old.rows.some(({ row, episode, since_ms }) => row === push.row && episode === push.episode && since_ms === push.since_ms);
  return {
    title: push.title ?? "purplemux",
    body: body(push, say),
    tag: push.row,
    silent: push.silent || shown.some(same),
    data: { rows: [{ row: push.row, title: push.title ?? "", episode: push.episode, since_ms: push.since_ms }], at_ms: nowMs, buttons: push.buttons, lang: push.lang },
  };
}

/** The one notification in place of several that came at once; null: they stay apart. */
export function merged(notice: Notice, shown: readonly NoticeData[], say: Say): Notice | null {
  if (notice.silent) return null;
  const [own] = notice.data.rows;
  if (own === undefined || own.title === "") return null;
  const recent = shown.filter((old) => notice.data.at_ms - old.at_ms <= MERGE_WITHIN_MS);
  const rows = recent.flatMap((old) => old.rows).filter(({ row }) => row !== own.row);
  return rows.length + 1 < MERGE_COUNT_MIN ? null : several([...rows, own], notice.data, say);
}

/** What is left of a notification when one row is over: null where nothing is. */
export function without(old: NoticeData, row: string, episode: number, say: Say): Notice | null {
  const rows = old.rows.filter((known) => known.row !== row || known.episode !== episode);
  return rows.length === 0 ? null : several(rows, old, say);
}

/** It has no buttons: what they would answer could not be told. */
function several(rows: NoticeData["rows"], { at_ms, lang }: NoticeData, say: Say): Notice {
  const [a, b, ...others] = rows.map(({ title }) => title);
  const names = [a, b].filter((name) => name !== undefined).join(say("notice.and"));
  return {
    title: say("notice.many", { n: rows.length }),
    body: others.length === 0 ? names : say("notice.more", { names, n: others.length }),
    tag: MERGED,
    silent: false,
    data: { rows, at_ms, lang },
  };
}

/** What the server makes of a press: null where it was sent. */
export type Outcome = { error: string; said?: Sentence } | "unreachable" | null;

/** In place of a notification whose button did nothing: it says so, and its tap opens the session. */
export function undone(old: NoticeData, outcome: NonNullable<Outcome>, say: Say, words: Spoken): Notice {
  const [row] = old.rows;
  const why = outcome === "unreachable" ? say("notice.unreachable") : inWords(outcome.said, outcome.error, words);
  return { title: row === undefined || row.title === "" ? "purplemux" : row.title, body: why, tag: row?.row ?? MERGED, silent: false, data: { ...old, buttons: undefined } };
}
