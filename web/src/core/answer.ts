// What may be pressed on the card of a dialog, and what became of what was pressed. Owns which words of the server
// belong to which card; must never conclude that a dialog was answered (the server sees it close), and must never
// carry an answer over to another dialog than the one that the person saw.

import type { Answer, Ask, Card, CardOption, Item, Sending, Sentence, ServerMsg } from "../wire/protocol.ts";
import type { Say } from "./words.ts";

/** A card can't be pressed this long after it was drawn: the press was meant for what was there before. */
export const ARM_MS = 400;
/** How long it is said of a dialog that is gone how it was answered. */
export const LINGER_MS = 6000;

/** The latest answer to an item's dialog, ours or another device's. */
export type Try = {
  readonly ask: number;
  readonly reading: string;
  /** Ours; null: another device's. */
  readonly request: number | null;
  readonly outcome: Sending | "refused" | "lost";
  /** What was answered, in Claude's or the person's own words. */
  readonly what: string;
  /** The other device's name. */
  readonly by: string;
  /** Server's clock, unix ms. */
  readonly atMs: number;
  /** The server's sentence about what to do, in English; ours in the page's language. */
  readonly why: string | null;
  /** The server's as a code. */
  readonly said: Sentence | null;
  /** For a second try; null: another device's. */
  readonly answer: Answer | null;
};

/** By item. */
export type Tries = ReadonlyMap<string, Try>;

/** The dialog of a row that can be shown: it asks, and its screen was read. */
export function cardOf(item: Item): { ask: Ask; card: Card } | null {
  const { ask } = item.detail;
  return item.state === "needs-input" && item.presence !== "suspended" && ask?.card !== undefined ? { ask, card: ask.card } : null;
}

/** One dialog, and nothing else that comes in its place. */
export const dialogOf = (ask: number, reading: string) => `${ask} ${reading}`;

export function pressed(tries: Tries, item: string, tried: Omit<Try, "outcome" | "by" | "why" | "said">): Tries {
  return new Map(tries).set(item, { ...tried, outcome: "sending", by: "", why: null, said: null });
}

/** What the server says about answers; the same map where it says nothing of any. */
export function heard(tries: Tries, msg: ServerMsg, nowMs: number): Tries {
  if (msg.type === "answered") {
    const had = tries.get(msg.item);
    const ours = msg.request !== null;
    const own = ours && had?.request === msg.request ? had : null;
    const { ask, reading, request, outcome, what, by, why, said } = msg;
    // What was pressed here is called as it was here, in the page's language.
    return new Map(tries).set(msg.item, { ask, reading, request, outcome, what: own?.what ?? what, by, atMs: msg.at_ms, why, said, answer: own?.answer ?? null });
  }
  if (msg.type !== "refused") return tries;
  return refused(tries, msg.request, msg.why, msg.said, nowMs);
}

/** What was pressed here could not even be sent. */
export function refusedHere(tries: Tries, request: number, why: string, nowMs: number): Tries {
  return refused(tries, request, why, null, nowMs);
}

function refused(tries: Tries, request: number, why: string, said: Sentence | null, nowMs: number): Tries {
  const found = tryOf(tries, request);
  if (found === null) return tries;
  return new Map(tries).set(found.item, { ...found.tried, outcome: "refused", why, said, atMs: nowMs });
}

/** Ours, by its request. */
export function tryOf(tries: Tries, request: number): { item: string; tried: Try } | null {
  for (const [item, tried] of tries) if (tried.request === request) return { item, tried };
  return null;
}

/** The link is gone: nobody will say what became of what was on the way. */
export function cut(tries: Tries): Tries {
  const lost = [...tries].filter(([, tried]) => tried.outcome === "sending" && tried.request !== null);
  if (lost.length === 0) return tries;
  const next = new Map(tries);
  for (const [item, tried] of lost) next.set(item, { ...tried, outcome: "lost" });
  return next;
}

/** What a card says and whether it can be pressed. */
export type Standing =
  | { at: "open" }
  /** Nothing that is pressed is sent. */
  | { at: "offline" }
  | { at: "sending"; what: string }
  | { at: "sent"; what: string }
  /** Another device answers or has answered. */
  | { at: "elsewhere"; what: string; by: string; atMs: number }
  /** Nothing was typed, it says why, and it may be tried again. */
  | { at: "refused"; why: string; said: Sentence | null; again: Answer }
  /** Something was typed, or nobody knows: only the terminal shows how it stands. */
  | { at: "failed"; why: string | null; said: Sentence | null };

export function standing(ask: number, reading: string, tried: Try | undefined, live: boolean): Standing {
  if (!live) return { at: "offline" };
  if (tried === undefined || tried.ask !== ask) return { at: "open" };
  // While words are typed into a dialog it is drawn otherwise with every letter: of one ask nothing is open meanwhile.
  if (tried.reading !== reading && tried.outcome !== "sending") return { at: "open" };
  const { outcome, what, by, atMs, why, said, answer, request } = tried;
  switch (outcome) {
    case "sending":
    case "sent":
      return request === null ? { at: "elsewhere", what, by, atMs } : { at: outcome, what };
    case "refused":
      return answer === null ? { at: "open" } : { at: "refused", why: why ?? "", said, again: answer };
    case "failed":
    case "lost":
      return { at: "failed", why, said };
  }
}

/** Whether options can be pressed. What was refused typed nothing, so they all can. */
export const pressable = (standing: Standing) => standing.at === "open" || standing.at === "refused";

/** What is still to be said of an answer whose dialog is no longer there. */
export type Aftermath =
  | { at: "sent"; what: string }
  | { at: "elsewhere"; what: string; by: string; atMs: number }
  /** Came too late, or for another dialog. */
  | { at: "nothing-sent"; why: string; said: Sentence | null };

/** `shown`: the dialog that stands there now, as `dialogOf`; null: none. */
export function aftermath(tried: Try | undefined, shown: string | null, nowMs: number): Aftermath | null {
  if (tried === undefined || nowMs - tried.atMs > LINGER_MS || shown === dialogOf(tried.ask, tried.reading)) return null;
  const { outcome, what, by, atMs, why, said, request } = tried;
  switch (outcome) {
    case "refused":
      return { at: "nothing-sent", why: why ?? "", said };
    case "sending":
      // Words on their way into the same ask; its card says so itself.
      if (shown?.startsWith(`${String(tried.ask)} `) === true) return null;
      return request === null ? { at: "elsewhere", what, by, atMs } : null;
    case "sent":
      // With another dialog there already, what was answered to the one before is no news to whoever did it.
      if (request === null) return { at: "elsewhere", what, by, atMs };
      return shown === null ? { at: "sent", what } : null;
    case "failed":
    case "lost":
      return null;
  }
}

// --- what is on a card ------------------------------------------------------------------------------------------

/** Several may be checked before going on. */
export const isMulti = (card: Card) => card.options.some((option) => option.checked !== null);

/** The option that a digit key means; null: none. */
export function byDigit(card: Card, key: string): number | null {
  if (!/^[1-9]$/.test(key)) return null;
  const at = card.options.findIndex((option) => option.number === Number(key));
  return at === -1 ? null : at;
}

/** Answers for more than this once: never made easier to press than the others. */
const LASTING = /don.?t ask again|\balways\b|\ball edits\b|\bauto\b|\bbypass|\bthis session\b|\bskip\b/i;

/** Claude's own choice may be tinted, unless it answers for later as well. */
export const isTinted = (option: CardOption) => option.marked && !LASTING.test(option.label);

/** An option of Claude's that is a place to type: pressing it goes to the card's own field, or to the terminal. */
export const isField = (option: CardOption) => /^type something/i.test(option.label);

/** Where several may be checked: Claude's own row that goes on with them. */
export const goesOn = (card: Card) => (isMulti(card) ? card.options.find((option) => option.checked === null && option.number === null) : undefined);

export type Change = "add" | "del" | null;

/** Of each drawn line whether it is added, removed or neither. A long one goes on in lines that have the sign alone. */
export function changesOf(lines: readonly string[]): Change[] {
  let before: Change = null;
  return lines.map((line) => {
    const [, number = "", sign] = /^ *(\d* )?([+-])/.exec(line) ?? [];
    const change: Change = sign === "+" ? "add" : sign === "-" ? "del" : null;
    before = number.trim() !== "" || change === before ? change : null;
    return before;
  });
}

/** What one answer is called on the way. */
export function answerWords(card: Card, answer: Answer, say: Say): string {
  switch (answer.do) {
    case "choose":
      return card.options[answer.option]?.label ?? "";
    case "check":
      return answer.options.map((at) => card.options[at]?.label ?? "").join(say("list.comma")) || say("card.none");
    case "reject":
      return say("card.reject");
    case "words":
      return answer.text;
    case "submit":
      return say("card.submit");
  }
}
