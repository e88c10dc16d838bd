// The service worker: shows what is pushed, takes back what is over, and opens the session that was tapped. It keeps
// nothing of the person's; the page's own files are kept by shell.ts for when the server can't be reached. All that it ever
// asks of the server for the person is the answer of a button that was pressed, once.

import { type Button, BUTTONS, merged, type NoticeData, noticeOf, type Opened, type Outcome, undone, without } from "../core/notice.ts";
import { CHINESE } from "../core/sentences.zh-TW.ts";
import { chooseLanguage, sayer } from "../core/words.ts";
import "../core/words.zh-TW.ts";
import type { Push } from "../wire/protocol.ts";
import { ENGLISH } from "../wire/sentences.ts";
import { keepShell } from "./shell.ts";

declare const self: ServiceWorkerGlobalScope;

/** The picture beside the words, and the small one in a phone's bar. */
const ICON = "/icon-192.png";

/** The end of everything that has been pushed so far. */
let queue: Promise<void> = Promise.resolve();

keepShell();
// A newer worker takes over at once: what a page loads comes from the server as long as that is there.
self.addEventListener("install", () => void self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

self.addEventListener("push", (event) => {
  let push: Push;
  try {
    push = event.data?.json() as Push;
  } catch {
    // Signed and encrypted by our server, or it would not be here; this is another version's.
    return;
  }
  // One after the other: each has to see what the one before it has shown.
  queue = queue.then(() => take(push)).catch(() => undefined);
  event.waitUntil(queue);
});

async function take(push: Push): Promise<void> {
  const say = sayer(chooseLanguage([push.lang]));
  switch (push.type) {
    case "test":
      return self.registration.showNotification("purplemux", { body: say("notice.test"), tag: "test", icon: ICON });
    case "close":
      await close(push.row, push.episode, say);
      return badge(push.count);
    case "show": {
      const open = await self.registration.getNotifications();
      const shown = open.map((notification) => notification.data as NoticeData).filter((data) => Array.isArray(data?.rows));
      const notice = noticeOf(push, shown, Date.now(), say);
      const one = merged(notice, shown, say);
      if (one === null) await show(notice);
      else {
        await show(one);
        const rows = new Set(one.data.rows.map(({ row }) => row));
        for (const notification of open) if (rows.has(notification.tag)) notification.close();
      }
      return badge(push.count);
    }
  }
}

function show(notice: ReturnType<typeof noticeOf>): Promise<void> {
  const { title, body, tag, silent, data } = notice;
  // `renotify` with the same tag sounds again; it is not in every browser's types.
  const say = sayer(languageOf(data));
  const actions = data.buttons === undefined ? [] : BUTTONS.map((action) => ({ action, title: say(`notice.${action}`) }));
  const options = { body, tag, silent, data, icon: ICON, renotify: !silent, actions };
  return self.registration.showNotification(title, options);
}

async function close(row: string, episode: number, say: Parameters<typeof without>[3]): Promise<void> {
  for (const notification of await self.registration.getNotifications()) {
    const data = notification.data as NoticeData | null;
    if (!data?.rows?.some((known) => known.row === row && known.episode === episode)) continue;
    const left = without(data, row, episode, say);
    if (left === null) notification.close();
    else await show({ ...left, silent: true });
  }
}

/** The number on the app's icon, where there is one. */
async function badge(count: number): Promise<void> {
  const { navigator } = self;
  if (!("setAppBadge" in navigator)) return;
  if (count > 0) await navigator.setAppBadge(count);
  else await navigator.clearAppBadge();
}

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  const data = event.notification.data as NoticeData | null;
  const rows = data?.rows ?? [];
  const button = BUTTONS.find((known) => known === event.action);
  if (button !== undefined && data?.buttons !== undefined) {
    event.waitUntil(press(data, button));
    return;
  }
  event.waitUntil(open(rows.length === 1 ? (rows[0]?.row ?? null) : null));
});

/** One that an earlier worker has shown names none. */
const languageOf = (data: NoticeData) => chooseLanguage(data.lang === undefined ? [] : [data.lang]);

/** Answers as the button says. Where nothing came of it a notification says why; it is not tried again. */
async function press(data: NoticeData, button: Button): Promise<void> {
  const outcome = await answer(data, button);
  if (outcome === null) return;
  const language = languageOf(data);
  await show(undone(data, outcome, sayer(language), language === "zh-TW" ? CHINESE : ENGLISH));
}

async function answer({ rows, buttons }: NoticeData, button: Button): Promise<Outcome> {
  const body = JSON.stringify({ item: rows[0]?.row, ...buttons, button });
  try {
    const response = await fetch("/api/push/answer", { method: "POST", headers: { "content-type": "application/json" }, body, cache: "no-store" });
    return response.ok ? null : ((await response.json()) as Outcome);
  } catch {
    // No way to the server, or something in between that answers in its place.
    return "unreachable";
  }
}

/** A page that is open shows it; otherwise one is opened there. Nothing is started or resumed. */
async function open(row: string | null): Promise<void> {
  const pages = await self.clients.matchAll({ type: "window" });
  const page = pages.find((client) => client.focused) ?? pages[0];
  if (page === undefined) {
    await self.clients.openWindow(row === null ? "/" : `/#/t/${encodeURIComponent(row)}`);
    return;
  }
  page.postMessage({ type: "open", row } satisfies Opened);
  await page.focus();
}
