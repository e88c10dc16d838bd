// What a paste may carry into a terminal. Owns the one rule that keeps a pasted text a paste: it can't contain the
// sequence that ends a paste, so that nothing in it is taken for typed keys.

/** ESC [ 201 ~, and the same with the one-byte form of ESC [ (C1 CSI). */
const ENDS = ["\u001b[201~", "\u009b201~"];

/** Removing one end may join the halves of another, so it is repeated until none is left. */
export function withoutPasteEnd(text: string): string {
  let left = text;
  for (;;) {
    const next = ENDS.reduce((rest, end) => rest.replaceAll(end, ""), left);
    if (next === left) return left;
    left = next;
  }
}
