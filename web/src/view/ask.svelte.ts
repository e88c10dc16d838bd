// What the page asks its person before it acts: a new name, or whether to end a living agent. Owns the open question;
// Asking.svelte shows it.

import { page } from "../page.svelte.ts";
import type { Item } from "../wire/protocol.ts";

export type Question = { what: "rename"; item: Item } | { what: "close"; item: Item };

class Ask {
  open = $state.raw<Question | null>(null);

  rename(item: Item): void {
    if (item.tab !== null) this.open = { what: "rename", item };
  }

  /** Closes at once, unless the server says that an agent lives in it. */
  async close(item: Item): Promise<void> {
    if (item.tab !== null && !(await page.close(item, false))) this.open = { what: "close", item };
  }
}

export const ask = new Ask();
