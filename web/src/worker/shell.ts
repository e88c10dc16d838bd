// The page's own files for when the server can't be reached: one build's whole, kept when the worker of that build is
// installed. Network first, always: a server that answers is never overruled by what was kept, so an old page never meets
// a new server because of us. Holds nothing of the person's; must never answer for /api.

declare const self: ServiceWorkerGlobalScope;
/** Put in by the build: its name, and the paths of all its files but the page itself. */
declare const __SHELL__: { readonly build: string; readonly files: readonly string[] };

const PREFIX = "shell ";
const NAME = PREFIX + __SHELL__.build;
const FILES: ReadonlySet<string> = new Set(__SHELL__.files);
/** Where every address of the page leads. */
const PAGE = "/";
/** What a proxy says for a server that is away. */
const AWAY: readonly number[] = [502, 503, 504];

/** Keeps this build, unless it is kept or the server has another one by now. */
async function fill(): Promise<void> {
  const cache = await caches.open(NAME);
  if ((await cache.match(PAGE)) !== undefined) return;
  const page = await fetch(PAGE, { cache: "no-store" });
  const entry = /<script[^>]+src="([^"]+)"/.exec(await page.clone().text())?.[1];
  if (!page.ok || entry === undefined || !FILES.has(entry)) return;
  await cache.addAll([...FILES]);
  // Last: without it what is here counts as not kept.
  await cache.put(PAGE, page);
}

/** Only whole, and only this build's. */
async function kept(path: string): Promise<Response> {
  const cache = await caches.open(NAME);
  return (await cache.match(path)) ?? Response.error();
}

async function pageOf(request: Request): Promise<Response> {
  try {
    const answer = await fetch(request);
    if (!AWAY.includes(answer.status)) return answer;
  } catch {
    // No answer at all: the same.
    return kept(PAGE);
  }
  return kept(PAGE);
}

/** Of a file that can't be kept nothing follows: the page works while the server is there. */
const tryToFill = () => fill().catch(() => undefined);

export function keepShell(): void {
  self.addEventListener("install", (event) => event.waitUntil(tryToFill()));
  self.addEventListener("activate", (event) =>
    event.waitUntil(caches.keys().then((names) => Promise.all(names.filter((name) => name.startsWith(PREFIX) && name !== NAME).map((name) => caches.delete(name))))),
  );
  self.addEventListener("fetch", (event) => {
    const { request } = event;
    const url = new URL(request.url);
    if (request.method !== "GET" || url.origin !== self.location.origin || url.pathname.startsWith("/api/")) return;
    if (request.mode === "navigate") {
      event.respondWith(pageOf(request));
      event.waitUntil(tryToFill());
    } else if (FILES.has(url.pathname)) {
      event.respondWith(fetch(request).catch(() => kept(url.pathname)));
    }
  });
}
