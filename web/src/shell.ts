// The page while its server can't be reached, and when that is back: keeps the last picture on this device until sign-out,
// shows it with its age when there is no other, and loads the page anew where the server has another build. Loaded after
// the first screen; must never overrule what the server says.

import { everyWhileSeen, now } from "./clock.ts";
import type { Fleet } from "./core/fleet.ts";
import { page } from "./page.svelte.ts";
import { recall, remember } from "./settings.svelte.ts";
import type { Item, Workspace } from "./wire/protocol.ts";

const WORKER = "/worker.js";
const PICTURE = "picture";
/** How old what is kept may be while the page is in front. */
const KEEP_MS = 15_000;
/** Characters; a browser gives a page five million. */
const PICTURE_MAX = 1_000_000;
/** For which of the server's builds this tab was loaded anew. */
const LOADED = "purplemux.build";

type Picture = { readonly atMs: number; readonly epoch: string; readonly skewMs: number; readonly items: readonly Item[]; readonly workspaces: readonly Workspace[] };

let begun = false;

/** Once somebody is signed in: the page opens without a network from now on. */
export function begin(): void {
  if (begun) return;
  begun = true;
  // Not on plain http from elsewhere; then there is no page without its server.
  if ("serviceWorker" in navigator) void navigator.serviceWorker.register(WORKER).catch(() => undefined);
  everyWhileSeen(KEEP_MS, keep);
  document.addEventListener("visibilitychange", keep);
  addEventListener("pagehide", keep);
}

function keep(): void {
  const { fleet } = page;
  if (fleet === null || page.gate.at !== "in") return;
  // A dialog's card is only true while it stands.
  const items = [...fleet.items.values()].map((item) => ({ ...item, detail: { ...item.detail, ask: undefined } }));
  const picture = { atMs: page.heardMs, epoch: fleet.epoch, skewMs: fleet.skewMs, items, workspaces: fleet.workspaces };
  const text = JSON.stringify(picture);
  if (text.length <= PICTURE_MAX) remember(PICTURE, text);
}

/** Shows the last picture there is, as old as it is. */
export function restore(): void {
  if (page.fleet !== null) return;
  const found = read();
  if (found === null) return;
  const { atMs, epoch, skewMs, items, workspaces } = found;
  const fleet: Fleet = { epoch, rev: 0, skewMs, items: new Map(items.map((item) => [item.id, item])), workspaces, notices: [], restart: null };
  page.restore(fleet, atMs);
}

function read(): Picture | null {
  try {
    const found = JSON.parse(recall(PICTURE) ?? "null") as Picture | null;
    // Written by this page; by an older one it may lack something, which is then not shown.
    return found !== null && Array.isArray(found.items) && Array.isArray(found.workspaces) && found.atMs <= now() ? found : null;
  } catch {
    return null;
  }
}

/** The server is there: is it the one that this page is of? If not, its own page takes this one's place, once. */
export async function checkBuild(): Promise<void> {
  const own = document.querySelector<HTMLScriptElement>("script[type=module][src]");
  if (own === null) return;
  let text: string;
  try {
    const answer = await fetch("/", { cache: "no-store" });
    text = answer.ok ? await answer.text() : "";
  } catch {
    // Gone again; it is asked when it is back.
    return;
  }
  const entry = /<script[^>]+type="module"[^>]+src="([^"]+)"/.exec(text)?.[1];
  if (entry === undefined || entry === new URL(own.src).pathname || sessionStorage.getItem(LOADED) === entry) return;
  sessionStorage.setItem(LOADED, entry);
  keep();
  location.reload();
}
