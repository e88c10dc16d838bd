// What needs the person, brought to them: the bell and its panel, and notifications as a real Chromium shows them. The
// push itself is delivered by the browser's own debugging door; a push service of the test's own takes what is sent.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { drawn, enter, Lab, picture, READABLE, row, terminal, until, violations } from "./lab.mjs";

let lab;
before(async () => (lab = await Lab.start()));
after(async () => lab?.stop());

/** A tab with Claude at its prompt, on screen. */
async function claude(page, project) {
  const tab = await lab.tab("claude-code", project);
  await row(page, tab).and(page.getByRole("treeitem", { name: "Idle" })).waitFor();
  await row(page, tab).click();
  await terminal(page, tab);
  await until("Claude's box", async () => /manual mode|\? for shortcuts/.test(await drawn(page)));
  return tab;
}

/** The page's service worker, and the browser's own door by which a push reaches it. */
async function door(page) {
  await page.evaluate(() => navigator.serviceWorker.register("/worker.js").then(() => navigator.serviceWorker.ready));
  const worker = await until("the worker", () => page.context().serviceWorkers()[0]);
  const devtools = await page.context().newCDPSession(page);
  const registrations = new Map();
  devtools.on("ServiceWorker.workerRegistrationUpdated", ({ registrations: known }) => known.forEach((found) => registrations.set(found.scopeURL, found.registrationId)));
  await devtools.send("ServiceWorker.enable");
  const origin = new URL(page.url()).origin;
  const registrationId = await until("the registration", () => registrations.get(`${origin}/`));
  const deliver = (message) => devtools.send("ServiceWorker.deliverPushMessage", { origin, registrationId, data: JSON.stringify(message) });
  return { worker, origin, deliver };
}

test("the bell counts what needs the person, and its panel lists it, puts it away and takes that back", async () => {
  const page = await lab.open({ flags: READABLE });
  const asking = await claude(page, 0);
  await enter(page, "bash: touch asked.txt");
  await row(page, asking).and(page.getByRole("treeitem", { name: "Needs input, permission" })).waitFor();
  const done = await claude(page, 1);
  await enter(page, "say first words");
  // Another row in front: the review stays one.
  await row(page, asking).click();
  await row(page, done).and(page.getByRole("treeitem", { name: "To review, finished" })).waitFor();

  const bell = page.getByRole("button", { name: "Attention, 2" });
  await bell.click();
  const panel = page.getByRole("dialog", { name: "Attention" });
  const listed = panel.locator("[data-row]");
  await until("both rows", async () => (await listed.count()) === 2);
  assert.deepEqual(await listed.evaluateAll((rows) => rows.map((found) => found.dataset.row)), [asking.id, done.id], "what is asked comes first");
  await panel.getByText("touch asked.txt", { exact: true }).waitFor();
  await panel.getByText("first words", { exact: true }).waitFor();
  assert.deepEqual(await violations(page), []);
  await picture(page, "attention");

  // A device that joins now sees the same at once.
  const second = await lab.open({ viewport: { width: 390, height: 844 }, hasTouch: true });
  await second.getByRole("button", { name: "Attention, 2" }).tap();
  await second.getByRole("dialog", { name: "Attention" }).getByText("touch asked.txt", { exact: true }).waitFor();
  assert.deepEqual(await violations(second), []);
  await picture(second, "attention-phone");

  await panel.getByRole("button", { name: "Dismiss all reviews" }).click();
  await until("one row", async () => (await listed.count()) === 1);
  await panel.getByRole("button", { name: "Undo" }).click();
  await until("both rows again", async () => (await listed.count()) === 2);
  assert.equal((await lab.item(done.id)).state, "review");
  await panel.getByRole("button", { name: /^Dismiss: / }).click();
  await until("the review is over everywhere", async () => (await lab.item(done.id)).state === "idle");
  await second.getByRole("button", { name: "Attention, 1" }).waitFor();
  await panel.getByRole("button", { name: /^Not now: / }).click();
  await page.getByRole("button", { name: "Attention", exact: true }).waitFor();
  assert.equal((await lab.item(asking.id)).state, "needs-input", "only its answer ends a dialog");

  await panel.getByText("Earlier").click();
  await panel.getByRole("listitem").filter({ hasText: "first words" }).waitFor();
  await page.keyboard.press("Escape");
  await panel.waitFor({ state: "detached" });
  assert.match(await drawn(page), /Do you want to proceed\?/, "the key answered nothing");
  assert.deepEqual([...page.faults, ...second.faults], []);
});

test("M01 M04 M06 a notification says what is asked, is one per row, opens its session and is taken back", async () => {
  const page = await lab.open({ flags: READABLE, permissions: ["notifications"] });
  const tab = await claude(page, 2);
  const other = await lab.tab("terminal", 2);
  await row(page, other).click();
  await terminal(page, other);

  const { worker, origin, deliver } = await door(page);
  const shown = () => page.evaluate(async () => (await (await navigator.serviceWorker.ready).getNotifications()).map(({ title, body, tag, silent }) => ({ title, body, tag, silent })));

  const push = { type: "show", row: tab.id, episode: 7, about: "permission", title: "shop", tool: "Bash", text: "touch a.txt", since_ms: 1, silent: false, count: 1, lang: "en" };
  await deliver(push);
  await until("the notification", async () => (await shown()).length === 1);
  assert.deepEqual(await shown(), [{ title: "shop", body: "Wants to run: touch a.txt", tag: tab.id, silent: false }]);
  // The same stay again, in the other language: in its place, without a sound.
  await deliver({ ...push, lang: "zh-TW" });
  await until("the words changed", async () => (await shown())[0]?.body === "想執行：touch a.txt");
  assert.deepEqual(await shown(), [{ title: "shop", body: "想執行：touch a.txt", tag: tab.id, silent: true }]);

  // A tap while the page shows something else opens that very session.
  const tap = () =>
    worker.evaluate(async () => {
      const [notification] = await self.registration.getNotifications();
      const opened = [];
      self.clients.openWindow = async (url) => void opened.push(url);
      self.dispatchEvent(new NotificationEvent("notificationclick", { notification }));
      return opened;
    });
  await tap();
  await terminal(page, tab);
  await until("it is gone by the tap", async () => (await shown()).length === 0);

  // Three at once are one, from which what is over is taken out, and which goes with the last.
  for (const [at, title] of ["one", "two", "three"].entries()) await deliver({ ...push, row: `r${at}`, title });
  await until("one for three", async () => (await shown()).map(({ title }) => title).join() === "3 sessions need you");
  await deliver({ type: "close", row: "r0", episode: 7, count: 2, lang: "en" });
  await until("two are left", async () => (await shown())[0]?.body === "two, three");
  // Of an earlier stay: says nothing about this one.
  await deliver({ type: "close", row: "r1", episode: 6, count: 2, lang: "en" });
  await deliver({ type: "close", row: "r1", episode: 7, count: 1, lang: "en" });
  await deliver({ type: "close", row: "r2", episode: 7, count: 0, lang: "en" });
  await until("all are gone", async () => (await shown()).length === 0);

  // From cold: the address that a tap opens leads there, and a session that has ended says so.
  const address = await worker.evaluate(async (id) => {
    await self.registration.showNotification("shop", { tag: id, data: { rows: [{ row: id, title: "shop", episode: 7, since_ms: 1 }], at_ms: 0 } });
    const [notification] = await self.registration.getNotifications();
    const opened = new Promise((resolve) => (self.clients.openWindow = async (url) => resolve(url)));
    self.clients.matchAll = async () => [];
    self.dispatchEvent(new NotificationEvent("notificationclick", { notification }));
    return opened;
  }, tab.id);
  const cold = await page.context().newPage();
  await cold.goto(origin + address);
  await terminal(cold, tab);
  const gone = await page.context().newPage();
  await gone.goto(`${origin}/#/t/t-00000000`);
  await gone.getByRole("alert").filter({ hasText: "That session has ended." }).waitFor();
  assert.equal(JSON.parse(await lab.cli("status", "--json")).some((item) => item.id === "t-00000000"), false, "nothing was started for it");
  assert.deepEqual(page.faults, []);
});

test("A02 M06 a button on a notification answers once, and one that did nothing says why in the person's language", async () => {
  const page = await lab.open({ flags: READABLE, permissions: ["notifications"] });
  const tab = await lab.tab("terminal", 0);
  await row(page, tab).waitFor();
  const { worker, deliver } = await door(page);
  const shown = () => page.evaluate(async () => (await (await navigator.serviceWorker.ready).getNotifications()).map(({ title, body, actions }) => ({ title, body, actions: actions.map((one) => `${one.action}: ${one.title}`) })));
  const press = (action) =>
    worker.evaluate(async (action) => {
      const [notification] = await self.registration.getNotifications();
      self.dispatchEvent(new NotificationEvent("notificationclick", { notification, action }));
    }, action);

  const buttons = { ask: 7, reading: "r", yes: 0, no: 2, seal: "AAAA" };
  const push = { type: "show", row: tab.id, episode: 7, about: "permission", title: "shop", tool: "Bash", text: "touch a.txt", since_ms: 1, silent: false, count: 1, lang: "en" };
  // Who did not choose them has none: the server sends none.
  await deliver(push);
  await until("the notification", async () => (await shown()).length === 1);
  assert.deepEqual((await shown())[0].actions, []);
  await deliver({ ...push, episode: 8, buttons });
  await until("its buttons", async () => (await shown())[0]?.actions.join() === "yes: Yes,no: No");

  // To the server itself: it has sent no such notification.
  await press("yes");
  await until("the refusal", async () => (await shown())[0]?.body === "This notification is of another run of purplemux, or was not sent to this device. Nothing was sent. Open the session and answer there.");
  assert.deepEqual(await shown(), [{ title: "shop", body: (await shown())[0].body, actions: [] }], "it is not offered again");
  await deliver({ ...push, episode: 9, lang: "zh-TW", buttons });
  await until("the buttons in Chinese", async () => (await shown())[0]?.actions.join() === "yes: 是,no: 否");
  await press("no");
  await until("the refusal in Chinese", async () => (await shown())[0]?.body === "這則通知來自 purplemux 先前的執行，或不是送給這個裝置的。未送出任何內容。請開啟工作階段在那裡回覆。");

  // What is asked of the server, word for word, and what its answers become.
  const answered = (status, body) => worker.evaluate(([status, body]) => {
    self.asked = [];
    self.fetch = async (path, init) => {
      self.asked.push([path, init.method, JSON.parse(init.body)]);
      if (status === 0) throw new TypeError("no way there");
      return new Response(JSON.stringify(body), { status });
    };
  }, [status, body]);
  await answered(200, { outcome: "sent", what: "No", why: null });
  await deliver({ ...push, episode: 10, buttons });
  await until("the notification", async () => (await shown())[0]?.actions.length === 2);
  await press("no");
  await until("it is gone", async () => (await shown()).length === 0);
  assert.deepEqual(await worker.evaluate(() => self.asked), [["/api/push/answer", "POST", { item: tab.id, ...buttons, button: "no" }]]);
  await answered(409, { error: "This prompt changed. Nothing was sent. Read the new one, then answer it.", said: { code: "prompt_changed", then: "nothing_sent" } });
  await deliver({ ...push, episode: 11, buttons });
  await until("the notification", async () => (await shown())[0]?.actions.length === 2);
  await press("yes");
  await until("why", async () => (await shown())[0]?.body === "This prompt changed. Nothing was sent. Read the new one, then answer it.");
  await answered(0, null);
  await deliver({ ...push, episode: 12, buttons });
  await until("the notification", async () => (await shown())[0]?.actions.length === 2);
  await press("yes");
  await until("no way there", async () => (await shown())[0]?.body === "Not answered: the server can’t be reached. Open the session to answer.");
  assert.deepEqual(page.faults, []);
});

test("a device switches notifications on, chooses, tests them, and signs another out", async () => {
  const taken = [];
  const service = createServer((request, answer) => {
    request.resume().on("end", () => {
      taken.push(request.headers);
      answer.writeHead(201).end();
    });
  });
  await new Promise((resolve) => service.listen(0, "127.0.0.1", resolve));
  after(() => service.close());
  const endpoint = `http://127.0.0.1:${service.address().port}/device`;

  const other = await lab.open({});
  const page = await lab.open({ permissions: ["notifications"] });
  // A browser without its vendor's push service can't subscribe: everything else is real.
  await page.evaluate((endpoint) => {
    const keys = { p256dh: "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4", auth: "BTBZMqHH6r4Tts7J_aSIgg" };
    let subscription = null;
    const made = (options) => ({ options, toJSON: () => ({ endpoint, keys }), unsubscribe: async () => ((subscription = null), true) });
    PushManager.prototype.subscribe = async (options) => (subscription = made({ applicationServerKey: options.applicationServerKey.buffer }));
    PushManager.prototype.getSubscription = async () => subscription;
  }, endpoint);
  await page.getByRole("button", { name: "Settings" }).click();
  const dialog = page.getByRole("dialog", { name: "Settings" });
  await dialog.getByRole("button", { name: "Notifications" }).click();
  await dialog.getByRole("switch", { name: "On this device" }).click();
  const reviews = dialog.getByRole("checkbox", { name: "When there is something to review" });
  await reviews.waitFor();
  assert.equal(await reviews.isChecked(), true);
  await reviews.click();
  await dialog.getByRole("checkbox", { name: "Quiet hours" }).click();
  await dialog.getByLabel("From").waitFor();
  await dialog.getByRole("combobox", { name: "On the lock screen" }).selectOption("everything");
  await until("the choice is kept", async () => (await dialog.getByRole("combobox", { name: "On the lock screen" }).inputValue()) === "everything");
  const yesNo = dialog.getByRole("checkbox", { name: /^Yes and No on notifications/ });
  await yesNo.click();
  await until("the buttons are chosen", async () => yesNo.isChecked());
  await dialog.getByRole("button", { name: "Send a test" }).click();
  await dialog.getByText("delivered").waitFor();
  assert.equal(taken.length, 1);
  assert.match(taken[0].authorization, /^vapid t=/);
  assert.deepEqual(await violations(page), []);
  await picture(page, "notifications");

  // What was chosen outlives the page.
  await page.reload();
  await page.getByRole("button", { name: "Settings" }).click();
  await dialog.getByRole("button", { name: "Notifications" }).click();
  assert.equal(await dialog.getByRole("checkbox", { name: "When there is something to review" }).isChecked(), false);
  await dialog.getByRole("button", { name: "Signed-in devices" }).click();
  assert.deepEqual(await violations(page), []);
  // The newest of the others is the first in the list.
  await dialog.getByRole("button", { name: /^Sign out ./ }).first().click();
  await other.getByRole("heading", { name: "Sign in to purplemux" }).waitFor();
  assert.deepEqual(page.faults, []);
});
