// Questions and orders over HTTP. Owns the header that proves the login and how a refusal becomes a sentence; must
// never keep an answer (the fleet comes by the status socket).

import type { About, Color, Explanation, Sentence, SplitDir } from "./wire/protocol.ts";

/** The server (or the way to it) said no; the message is its sentence in English. */
export class Refused extends Error {
  /** HTTP status, 0 when no answer came. */
  readonly status: number;
  /** The sentence as a code; null where it is not the server's. */
  readonly said: Sentence | null;
  constructor(status: number, message: string, said: Sentence | null = null) {
    super(message);
    this.status = status;
    this.said = said;
  }
}

const SECRET = "purplemux.secret";

/** The login's secret; null when signed out. Stored as `{"secret": …}`. */
export function storedSecret(): string | null {
  const text = localStorage.getItem(SECRET);
  if (text === null) return null;
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && "secret" in value && typeof value.secret === "string") return value.secret;
  } catch {
    // Not ours, or cut short: as good as signed out.
    return null;
  }
  return null;
}

export function forgetSecret(): void {
  localStorage.removeItem(SECRET);
}

export async function ask(method: string, path: string, body?: unknown): Promise<Response> {
  const headers = new Headers();
  const secret = storedSecret();
  if (secret !== null) headers.set("x-pmux-secret", secret);
  // A file is sent as it is.
  const sent = body === undefined ? null : body instanceof Blob ? body : JSON.stringify(body);
  if (typeof sent === "string") headers.set("content-type", "application/json");
  let response: Response;
  try {
    response = await fetch(path, { method, headers, body: sent, cache: "no-store" });
  } catch (error) {
    throw new Refused(0, error instanceof Error ? error.message : String(error));
  }
  if (!response.ok) throw await refusalOf(response);
  return response;
}

async function refusalOf(response: Response): Promise<Refused> {
  const text = await response.text();
  const bare = new Refused(response.status, `${response.status} ${response.statusText}`);
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== "object" || value === null || !("error" in value) || typeof value.error !== "string") return bare;
    return new Refused(response.status, value.error, "said" in value ? (value.said as Sentence | null) : null);
  } catch {
    // A proxy's page, not ours: its status says more than its markup.
    return bare;
  }
}

function text(value: unknown, name: string): string {
  if (typeof value === "object" && value !== null && name in value) {
    const found: unknown = (value as Record<string, unknown>)[name];
    if (typeof found === "string") return found;
  }
  throw new Refused(0, `The server's answer has no "${name}".`);
}

/** Trades a one-time code for a login and stores its secret. `name`: for the list of devices. */
export async function login(code: string, name: string): Promise<void> {
  const answer: unknown = await (await ask("POST", "/api/login", { code, name })).json();
  localStorage.setItem(SECRET, JSON.stringify({ secret: text(answer, "secret") }));
}

/** Answers with the machine's name; throws `Refused` with 401 when the login is no longer good. */
export async function session(): Promise<string> {
  return text(await (await ask("GET", "/api/session")).json(), "host");
}

export async function logout(): Promise<void> {
  await ask("POST", "/api/logout");
}

export type TabType = "terminal" | "claude-code";

/** Answers with the new tab's id. */
export async function createTab(type: TabType, workspace: string | null, pane: string | null = null): Promise<string> {
  const body = { type, ...(workspace === null ? {} : { workspace }), ...(pane === null ? {} : { pane }) };
  return text(await (await ask("POST", "/api/tabs", body)).json(), "tab");
}

/** `index`: its place among the other tabs of the pane; absent: at the end. */
export async function moveTab(tab: string, pane: string, index: number | null): Promise<void> {
  await ask("PATCH", `/api/tabs/${encodeURIComponent(tab)}`, index === null ? { pane } : { pane, index });
}

export async function renameTab(tab: string, name: string): Promise<void> {
  await ask("PATCH", `/api/tabs/${encodeURIComponent(tab)}`, { name });
}

/** Until when it can be undone, unix ms of the server; null: it can't be. */
async function closing(path: string, force: boolean): Promise<number | null> {
  const response = await ask("DELETE", `${path}?undo=1${force ? "&force=1" : ""}`);
  if (response.status === 204) return null;
  const answer: unknown = await response.json();
  return typeof answer === "object" && answer !== null && "until_ms" in answer && typeof answer.until_ms === "number" ? answer.until_ms : null;
}

/** Refused with 409 while an agent lives in it, unless `force`. Answers as `closing`. */
export function closeTab(tab: string, force: boolean): Promise<number | null> {
  return closing(`/api/tabs/${encodeURIComponent(tab)}`, force);
}

/** Refused with 409 while tabs live in it, unless `force`. Answers as `closing`. */
export function removeWorkspace(id: string, force: boolean): Promise<number | null> {
  return closing(`/api/workspaces/${encodeURIComponent(id)}`, force);
}

/** Brings back what was closed. */
export async function restore(what: "tabs" | "workspaces", id: string): Promise<void> {
  await ask("POST", `/api/${what}/${encodeURIComponent(id)}/restore`, {});
}

/** What a person says of a workspace; null takes away. */
export type Space = { name: string; dir?: string; color: Color | null; group: string | null };

/** Answers with the new workspace's id. */
export async function createWorkspace(space: Space): Promise<string> {
  return text(await (await ask("POST", "/api/workspaces", space)).json(), "workspace");
}

export async function editWorkspace(id: string, change: Partial<Space>): Promise<void> {
  await ask("PATCH", `/api/workspaces/${encodeURIComponent(id)}`, change);
}

export async function orderWorkspaces(ids: readonly string[]): Promise<void> {
  await ask("PUT", "/api/workspaces/order", { ids });
}

export type PaneOp =
  | { op: "split"; pane: string; dir: SplitDir; tab?: string }
  | { op: "close"; pane: string }
  | { op: "sizes"; split: string; sizes: readonly number[] }
  | { op: "equal" };

/** Answers with the new pane's id where there is one. */
export async function changePanes(workspace: string, op: PaneOp): Promise<string | null> {
  const response = await ask("POST", `/api/workspaces/${encodeURIComponent(workspace)}/panes`, op);
  return response.status === 204 ? null : text(await response.json(), "pane");
}

/** Sends a prompt to the agent of a row; `why`: what else there is to know. Refused when nothing was typed or taken. */
export async function prompt(item: string, words: string): Promise<{ why: string | null }> {
  const answer: unknown = await (await ask("POST", `/api/tabs/${encodeURIComponent(item)}/prompt`, { text: words })).json();
  return { why: typeof answer === "object" && answer !== null && "why" in answer && typeof answer.why === "string" ? answer.why : null };
}

/** Keeps a file for a day on the server's machine; answers with its path there. */
export async function keepFile(file: File): Promise<string> {
  const kept = await ask("POST", `/api/files?name=${encodeURIComponent(file.name)}`, file);
  return text(await kept.json(), "path");
}

/** Starts the shell of a tab that has ended again. */
export async function reopenTab(tab: string): Promise<void> {
  await ask("POST", `/api/tabs/${encodeURIComponent(tab)}/reopen`, {});
}

/** A past conversation; `item`: the row that it runs in now. */
export type Conversation = { id: string; title: string; prompt: string; cwd: string; updated_ms: number; item: string | null };

/** Those in whose title, first prompt or directory all the words are found, the newest first. */
export async function conversations(words: string, most: number): Promise<Conversation[]> {
  return (await (await ask("GET", `/api/conversations?q=${encodeURIComponent(words)}&most=${most}`)).json()) as Conversation[];
}

/** Takes one up in a new tab, whose id it answers with; without a pane the server finds the workspace. */
export async function takeUp(conversation: string, place: { workspace: string; pane: string } | null): Promise<string> {
  return text(await (await ask("POST", `/api/conversations/${encodeURIComponent(conversation)}/resume`, place ?? {})).json(), "tab");
}

/** Takes up in a tab what it offers. */
export async function resumeTab(tab: string): Promise<void> {
  await ask("POST", `/api/tabs/${encodeURIComponent(tab)}/resume`, {});
}

/** A tab offers its conversation no more. */
export async function leaveOffer(tab: string): Promise<void> {
  await ask("DELETE", `/api/tabs/${encodeURIComponent(tab)}/resume`);
}

/** These words of the shared settings beside the others; null takes one away. */
export async function share(change: Readonly<Record<string, unknown>>): Promise<void> {
  await ask("PATCH", "/api/settings", change);
}

/** Why an item shows what it shows, asked anew each time. */
export async function explain(item: string): Promise<Explanation> {
  return (await (await ask("GET", `/api/explain?item=${encodeURIComponent(item)}`)).json()) as Explanation;
}

/** Makes the server look at this tab's processes again; what it finds comes by the status socket. */
export async function checkClaude(tab: string): Promise<void> {
  const answer = await ask("GET", `/api/check-claude?tab=${encodeURIComponent(tab)}`);
  // To its end, or the question would not be over.
  await answer.text();
}

/** Types into a tab, as the person would; without Enter it waits there for them. */
export async function send(tab: string, words: string): Promise<void> {
  await ask("POST", `/api/tabs/${encodeURIComponent(tab)}/send`, { text: words, enter: false });
}

/** Whether Claude Code is on the server's machine, and what else a session needs. */
export type Claude = {
  installed: boolean;
  /** It was started once, so its directory is there. */
  started: boolean;
  /** Version, when it answers. */
  tmux: string | null;
  tmux_program: string | null;
  /** The settings file that Claude is given. */
  hooks: string | null;
  checked_at_ms: number;
};

/** As the server's watch has it; `again`: look anew, the login shell included. */
export async function claude(again: boolean): Promise<Claude> {
  return (await (await ask("GET", `/api/claude${again ? "?again=1" : ""}`)).json()) as Claude;
}

/** What this device wants to be told; the server knows the defaults. */
export type Choices = {
  on: boolean;
  class: "desktop" | "phone";
  asks: boolean;
  reviews: boolean;
  /** `HH:MM:SS` by the clock of `zone`. */
  quiet: { from: string; to: string } | null;
  zone: string;
  shows: "everything" | "title" | "count";
  lang: string;
  escalate_s: number;
  escalate_reviews: boolean;
  /** Yes and No on notifications. */
  buttons: boolean;
};

/** How the last delivery to a device went. */
export type Delivery = { at_ms: number; ok: boolean; status: number | null; why: string | null; said?: Sentence };

export type Device = { choices: Choices; last: Delivery | null };

/** The key to subscribe with, and what this device has chosen. */
export async function push(): Promise<{ public_key: string; device: Device | null }> {
  return (await (await ask("GET", "/api/push")).json()) as { public_key: string; device: Device | null };
}

export async function putPush(subscription: PushSubscriptionJSON, choices: Choices): Promise<void> {
  await ask("PUT", "/api/push", { endpoint: subscription.endpoint, keys: subscription.keys, choices });
}

export async function removePush(): Promise<void> {
  await ask("DELETE", "/api/push");
}

/** Sends a test message to this device; how that went. */
export async function testPush(): Promise<Delivery> {
  return (await (await ask("POST", "/api/push/test", {})).json()) as Delivery;
}

/** A notification that was. */
export type Past = { episode: number; row: string; title: string; about: About; text: string; at_ms: number; ended_ms: number | null };

/** The last 200, the newest first. */
export async function notifications(): Promise<Past[]> {
  return (await (await ask("GET", "/api/notifications")).json()) as Past[];
}

/** Settings that all of the person's devices share: these beside the others. */
export async function changeSettings(some: Readonly<Record<string, unknown>>): Promise<void> {
  await ask("PATCH", "/api/settings", some);
}

/** A signed-in browser. */
export type Login = { id: string; name: string; created_ms: number; seen_ms: number; this: boolean };

export async function devices(): Promise<Login[]> {
  return (await (await ask("GET", "/api/devices")).json()) as Login[];
}

/** Signs a browser out, at once. */
export async function revoke(id: string): Promise<void> {
  await ask("DELETE", `/api/devices/${encodeURIComponent(id)}`);
}
