// What the person has begun on a card and not sent: words, checks, and whether the card is folded away. Owns these until
// the page is closed, so that neither a panel closed nor a look at another session loses them; must never send anything.

/** Of the dialogs of a long day only the newest are kept; an older one has been answered or is gone. */
const KEPT_MAX = 100;

class Drafts {
  #folded = $state.raw<readonly string[]>([]);
  #words = new Map<string, string>();
  #checks = new Map<string, readonly number[]>();

  isFolded(dialog: string): boolean {
    return this.#folded.includes(dialog);
  }
  fold(dialog: string, folded: boolean): void {
    const others = this.#folded.filter((known) => known !== dialog);
    this.#folded = folded ? [...others, dialog].slice(-KEPT_MAX) : others;
  }

  words(dialog: string): string {
    return this.#words.get(dialog) ?? "";
  }
  keepWords(dialog: string, words: string): void {
    keep(this.#words, dialog, words);
  }

  /** Null while nothing was checked or unchecked here. */
  checks(dialog: string): readonly number[] | null {
    return this.#checks.get(dialog) ?? null;
  }
  keepChecks(dialog: string, checks: readonly number[]): void {
    keep(this.#checks, dialog, checks);
  }
}

function keep<T>(map: Map<string, T>, key: string, value: T): void {
  map.delete(key);
  map.set(key, value);
  const [oldest] = map.keys();
  if (map.size > KEPT_MAX && oldest !== undefined) map.delete(oldest);
}

export const drafts = new Drafts();
