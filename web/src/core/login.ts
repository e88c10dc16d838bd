// The one-time code in what the person opened or pasted. Owns what a sign-in link looks like; keeps nothing.

/** Null: there is none. `text` is a link, its part after the `#`, or the code alone. */
export function codeIn(text: string): string | null {
  return /(?:^|#login=)([\w.~-]+)$/.exec(text.trim())?.[1] ?? null;
}
