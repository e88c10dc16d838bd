// A row with nothing special about it, for tests to change. Never imported by the page.

import type { Item } from "../wire/protocol.ts";

export function item(change: Partial<Item> & { id: string }): Item {
  return {
    host: "forge",
    tab: change.id,
    workspace: "w",
    pid: 1,
    session_id: null,
    cwd: "/home/me/code/purplemux",
    branch: null,
    state: "idle",
    since_ms: 0,
    detail: {},
    presence: "running",
    title: change.id,
    last_message: null,
    tool: null,
    tokens: {},
    context_pct: null,
    model: null,
    ports: [],
    terminal: true,
    shell: "running",
    foreign: false,
    covered: false,
    hooks: true,
    attention: false,
    episode: null,
    resume: null,
    ...change,
  };
}
