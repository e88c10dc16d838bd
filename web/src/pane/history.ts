// Questions for what has scrolled off a terminal. Owns their addresses; keeps nothing.

import { ask } from "../api.ts";

/** Lines of a tab's history; the first has the number `from`, the screen begins at `history`. */
export type Lines = { history: number; cols: number; rows: number; from: number; lines: string[] };

/** A range of numbers, or the newest. */
export async function history(tab: string, which: { from?: number; to?: number; last?: number }): Promise<Lines> {
  const query = new URLSearchParams();
  for (const [name, number] of Object.entries(which)) query.set(name, String(number));
  const answer = await ask("GET", `/api/tabs/${encodeURIComponent(tab)}/history?${query}`);
  return (await answer.json()) as Lines;
}

/** Numbers of the lines that contain a text, the newest first. */
export async function searchHistory(tab: string, text: string): Promise<{ history: number; lines: number[]; more: boolean }> {
  const answer = await ask("GET", `/api/tabs/${encodeURIComponent(tab)}/history/search?${new URLSearchParams({ text })}`);
  return (await answer.json()) as { history: number; lines: number[]; more: boolean };
}
