// What is found for what was typed. Owns matching and order; must never conclude anything about a session: the words that
// stand for it are given.

export const KINDS = ["needs", "session", "workspace", "command"] as const;
export type Kind = (typeof KINDS)[number];

export type Entry = {
  readonly id: string;
  readonly kind: Kind;
  /** What it is called. */
  readonly text: string;
  /** Everything else it may be found by, also in the language that is not spoken now. */
  readonly words: string;
};

/** More rows than anybody reads; what is typed makes them fewer. */
const SHOWN_MAX = 24;

export type Found<E extends Entry> = { readonly kind: Kind; readonly entries: readonly E[]; /** Found and not shown. */ readonly more: number };

/** Every part of what was typed has to be there; `>` first: commands alone. In each kind the best first. */
export function find<E extends Entry>(entries: readonly E[], query: string): Found<E>[] {
  const text = plain(query).trim();
  const only = text.startsWith(">");
  const parts = (only ? text.slice(1) : text).split(/\s+/).filter((part) => part !== "");
  const found: Found<E>[] = [];
  for (const kind of KINDS) {
    if (only && kind !== "command") continue;
    const scored: { entry: E; score: number }[] = [];
    for (const entry of entries) {
      const score = entry.kind === kind ? scoreOf(entry, parts) : null;
      if (score !== null) scored.push({ entry, score });
    }
    // The order in which they were given stays among equals: urgency, or the sidebar's.
    scored.sort((a, b) => a.score - b.score);
    if (scored.length > 0) found.push({ kind, entries: scored.slice(0, SHOWN_MAX).map(({ entry }) => entry), more: Math.max(0, scored.length - SHOWN_MAX) });
  }
  return found;
}

/** Lower is better; null: it is not found. */
function scoreOf(entry: Entry, parts: readonly string[]): number | null {
  const name = plain(entry.text);
  let words: string | null = null;
  let score = 0;
  for (const part of parts) {
    const at = name.indexOf(part);
    if (at === 0) continue;
    if (at > 0) score += /[\s/_.:-]/.test(name.charAt(at - 1)) ? 1 : 2;
    else {
      words ??= plain(entry.words);
      if (!words.includes(part)) return null;
      score += 4;
    }
  }
  return score;
}

/** Without case, and full-width letters as the others. */
const plain = (text: string) => text.normalize("NFKC").toLowerCase();
