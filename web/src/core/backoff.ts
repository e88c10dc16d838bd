// When to knock again after a link was lost. Owns the growth and the spread; the timer itself is link.ts's.

/** The first try comes quickly: most losses are a server that is being restarted. */
const FIRST_MS = 250;
/** Growing past this only makes the person wait; one knock each 10 s costs nothing. */
const LONGEST_MS = 10_000;

/**
 * Milliseconds before try `n` (0 is the first after the loss). `spread` is in [0, 1): many pages that lost one server
 * must not all come back in the same moment.
 */
export function waitMs(n: number, spread: number): number {
  const full = Math.min(LONGEST_MS, FIRST_MS * 2 ** Math.min(n, 16));
  return Math.round(full * (0.75 + 0.5 * spread));
}
