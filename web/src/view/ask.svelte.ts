// What the page asks its person before it acts: a new name, whether to end a living agent, what a workspace is to be.
// Owns the open question; Asking.svelte shows it.

import { page } from "../page.svelte.ts";
import type { Item, Workspace } from "../wire/protocol.ts";

export type Question = { what: "rename"; item: Item } | { what: "close"; item: Item } | { what: "space"; workspace: Workspace | null } | { what: "remove"; workspace: Workspace };

class Ask {
  open = $state.raw<Question | null>(null);

  rename(item: Item): void {
    if (item.tab !== null) this.open = { what: "rename", item };
  }

  newSpace(): void {
    this.open = { what: "space", workspace: null };
  }

  editSpace(workspace: Workspace): void {
    this.open = { what: "space", workspace };
  }

  /** Removes at once what is empty. */
  removeSpace(workspace: Workspace): void {
    if (workspace.tabs.length === 0) void page.removeWorkspace(workspace);
    else this.open = { what: "remove", workspace };
  }

  /** Closes at once, unless the server says that an agent lives in it. */
  async close(item: Item): Promise<void> {
    if (item.tab !== null && !(await page.close(item, false))) this.open = { what: "close", item };
  }
}

export const ask = new Ask();
