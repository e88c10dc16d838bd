// This device's notifications: the service worker, the browser's permission and its push subscription. Owns the steps
// and their failures as sentences; must never ask for permission without a press of the person's.

import * as api from "./api.ts";
import { isPhone } from "./core/device.ts";
import type { Opened } from "./core/notice.ts";
import { settings } from "./settings.svelte.ts";

const WORKER = "/worker.js";

/** Whether this browser can be told at all, here: it needs https or a loopback name. */
export function canNotify(): boolean {
  return "serviceWorker" in navigator && "PushManager" in globalThis && "Notification" in globalThis;
}

/** What a device is given that has chosen nothing yet. */
export function firstChoices(): api.Choices {
  return {
    on: true,
    class: isPhone(navigator.userAgent) ? "phone" : "desktop",
    asks: true,
    reviews: true,
    quiet: null,
    zone: Intl.DateTimeFormat().resolvedOptions().timeZone,
    shows: "title",
    lang: settings.language,
    escalate_s: 60,
    escalate_reviews: false,
    buttons: false,
  };
}

/** Taps on notifications come here while the page is open. */
export function onOpened(open: (row: string | null) => void): void {
  if (!("serviceWorker" in navigator)) return;
  navigator.serviceWorker.addEventListener("message", (event: MessageEvent<Opened | null>) => {
    if (event.data?.type === "open") open(event.data.row);
  });
  // A worker that is there already is brought up to date; one that is not comes with the first sign-in.
  void navigator.serviceWorker.getRegistration().then((known) => known?.update().catch(() => undefined));
}

/** Asks the browser where necessary, and tells the server. Throws a sentence for the person. */
export async function subscribe(publicKey: string, choices: api.Choices): Promise<void> {
  if ((await Notification.requestPermission()) !== "granted") throw new Error(settings.say("alerts.denied"));
  const registration = await navigator.serviceWorker.register(WORKER);
  await navigator.serviceWorker.ready;
  const applicationServerKey = bytesOf(publicKey);
  const known = await registration.pushManager.getSubscription();
  // A subscription is bound to the key it was made with.
  if (known !== null && !sameKey(known.options.applicationServerKey, applicationServerKey)) await known.unsubscribe();
  let subscription: PushSubscription;
  try {
    subscription = await registration.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey });
  } catch (error) {
    throw new Error(settings.say("alerts.failed", { why: error instanceof Error ? error.message : String(error) }), { cause: error });
  }
  await api.putPush(subscription.toJSON(), choices);
}

/** Changes what a device that has subscribed is told. */
export async function choose(publicKey: string, choices: api.Choices): Promise<void> {
  const registration = await navigator.serviceWorker.getRegistration();
  const known = await registration?.pushManager.getSubscription();
  if (known == null) await subscribe(publicKey, choices);
  else await api.putPush(known.toJSON(), choices);
}

export async function unsubscribe(): Promise<void> {
  await api.removePush();
  const registration = await navigator.serviceWorker.getRegistration();
  await (await registration?.pushManager.getSubscription())?.unsubscribe();
}

function bytesOf(base64url: string): Uint8Array<ArrayBuffer> {
  const text = atob(base64url.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(text, (char) => char.charCodeAt(0));
}

function sameKey(a: ArrayBuffer | null, b: Uint8Array): boolean {
  if (a === null || a.byteLength !== b.length) return false;
  const bytes = new Uint8Array(a);
  return b.every((byte, at) => byte === bytes[at]);
}
