// Dialogs of the real Claude Code, answered from the page: the card shows them as they are, exactly one answer is typed,
// and "sent" is said when the dialog was seen to close.

import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { holds, Lab, picture, READABLE, row, terminal, until, violations } from "./lab.mjs";

const PHONE = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true };
/** From the tap to the dialog seen to close; Claude takes no key for its first 0.7 s. */
const SENT_MS_MAX = 2000;
/** A dialog this old takes keys. */
const SETTLED_MS = 1200;
/** From the click to the dialog seen to close, once it takes keys. */
const FOCUS_MS_MAX = 500;

let lab;
before(async () => (lab = await Lab.start()));
after(async () => lab?.stop());

const state = async (tab) => (await lab.item(tab.id)).state;
/** A Claude at its prompt. */
async function claude(project) {
  const tab = await lab.tab("claude-code", project);
  await until("Claude at its prompt", async () => (await state(tab)) === "idle" && /manual mode|\? for shortcuts/.test(await lab.screen(tab)));
  return tab;
}
/** Claude is given a prompt and asks; answers with the card on this page, when it can be pressed. */
async function asked(page, tab, prompt, name) {
  await lab.cli("tab", "send", tab.id, prompt);
  const card = page.getByRole("region", { name });
  await card.and(page.locator("[data-armed=true]")).waitFor();
  return card;
}
/** What every session has written down. */
function transcripts() {
  const projects = join(lab.env.CLAUDE_CONFIG_DIR ?? join(lab.env.HOME, ".claude"), "projects");
  const files = readdirSync(projects, { recursive: true }).filter((name) => name.endsWith(".jsonl"));
  return files.map((name) => readFileSync(join(projects, name), "utf8"));
}
/** What stands in Claude's box: nothing of an answer may. */
const box = async (tab) => /\n❯[\u00a0 ]*([^\n]*)\n─/.exec(await lab.screen(tab))?.[1]?.trim();

test("A01 a permission is refused by its option, by Esc and in words", async (t) => {
  const tab = await claude(0);
  const file = join(lab.projects[0], "a01.txt");
  const page = await lab.open(PHONE);
  await page.locator(`button[data-tab="${tab.id}"]`).tap();
  const labels = ["Yes", /^Yes, /, /^Yes, /, "No"];

  for (const [how, press] of [
    ["No", (card) => card.getByRole("button", { name: "4 No", exact: true }).tap()],
    ["Reject", (card) => card.getByRole("button", { name: "Esc: reject" }).tap()],
  ]) {
    const card = await asked(page, tab, "bash: touch a01.txt ;; say finished", "Bash command");
    await card.getByText("touch a01.txt", { exact: true }).waitFor();
    assert.match(await lab.screen(tab), /Do you want to proceed\?/);
    const options = await card.locator(".option:not(.reject) .label").allInnerTexts();
    assert.equal(options.length, labels.length, options.join());
    for (const [at, label] of labels.entries()) assert.match(options[at], label instanceof RegExp ? label : new RegExp(`^${label}$`));
    if (how === "No") {
      assert.deepEqual(await violations(page), []);
      await picture(page, "a01-phone");
    }
    const tapped = performance.now();
    await press(card);
    // The sentence comes when the dialog is gone, and not before.
    await page.getByText(`Sent “${how}”. Waiting for Claude.`).waitFor();
    const took = performance.now() - tapped;
    assert.doesNotMatch(await lab.screen(tab), /Do you want to proceed\?/);
    t.diagnostic(`“${how}” was seen to arrive after ${took.toFixed(0)} ms`);
    assert.ok(took < 5 * SENT_MS_MAX, `${took} ms`);
    await until("Claude at rest", async () => (await state(tab)) === "idle");
    await holds("an empty box", async () => (await box(tab)) === "" || !/\d/.test((await box(tab)) ?? ""), 500);
    assert.equal(existsSync(file), false);
  }

  const card = await asked(page, tab, "bash: touch a01.txt ;; say words were read", "Bash command");
  await card.getByRole("textbox", { name: "Say what to do instead" }).fill("use 1 file");
  await card.getByRole("button", { name: "Send" }).tap();
  await card.waitFor({ state: "detached" });
  // Claude does not draw them; they go to the model as the reason.
  await until("Claude read the words", () => transcripts().some((text) => text.includes("use 1 file")));
  await until("Claude has answered them", async () => ["review", "idle"].includes(await state(tab)));
  assert.equal(existsSync(file), false, "the digit in the words approved nothing");
  assert.deepEqual(page.faults, []);
});

test("A01 an answer is not held up by the focus that leaves the terminal for it", async (t) => {
  const tab = await claude(1);
  const page = await lab.open({ flags: READABLE });
  await row(page, tab).click();
  await terminal(page, tab);
  const card = await asked(page, tab, "bash: touch focus.txt ;; say finished", "Bash command");
  await page.locator(".xterm-helper-textarea").focus();
  // Past the moment in which Claude takes no key.
  await until("a dialog that stands", async () => Date.now() - (await lab.item(tab.id)).since_ms > SETTLED_MS);
  const clicked = performance.now();
  await card.getByRole("button", { name: "4 No", exact: true }).click();
  await page.getByText("Sent “No”. Waiting for Claude.").waitFor();
  const took = performance.now() - clicked;
  t.diagnostic(`seen to arrive ${took.toFixed(0)} ms after the click`);
  assert.ok(took < 5 * FOCUS_MS_MAX, `${took} ms`);
  assert.deepEqual(page.faults, []);
});

test("A06 two questions, one with several answers: kept until all are submitted, cancelled by Esc", async () => {
  const tab = await claude(1);
  const page = await lab.open({ flags: READABLE });
  await row(page, tab).click();
  const option = (label, description) => ({ label, description });
  const questions = [
    { question: "Which colour should the badge have?", header: "Colour", multiSelect: false, options: [option("Amber", "warm"), option("Violet", "cool")] },
    { question: "Which shapes may it have?", header: "Shape", multiSelect: true, options: [option("Dot", "round"), option("Bar", "flat"), option("Ring", "hollow")] },
  ];
  const prompt = `tool: AskUserQuestion ${JSON.stringify({ questions })} ;; say thanks`;
  await lab.cli("tab", "send", tab.id, prompt);
  const card = page.locator("[data-card]");
  const asks = async (question) => {
    await card.getByText(question, { exact: true }).waitFor();
    await page.locator("[data-card][data-armed=true]").waitFor();
  };
  await asks(questions[0].question);
  await card.getByText("1 of 2").waitFor();
  for (const title of ["Colour", "Shape"]) await card.locator(".step").filter({ hasText: title }).waitFor();
  for (const { label, description } of questions[0].options) await card.getByRole("button", { name: `${label} ${description}` }).waitFor();
  assert.deepEqual(await violations(page), []);
  await picture(page, "a06-first");
  await card.getByRole("button", { name: "Violet" }).click();

  await asks(questions[1].question);
  await card.getByText("2 of 2").waitFor();
  await card.locator(".step").filter({ hasText: "Colour" }).getByText("answered").waitFor({ state: "attached" });
  await card.getByRole("checkbox", { name: "Dot" }).click();
  await card.getByRole("checkbox", { name: "Ring" }).click();
  // Begun here, not sent: it is still there after a look at something else.
  await page.keyboard.press("Alt+i");
  await page.keyboard.press("Escape");
  await page.locator("[data-card][data-armed=true]").waitFor();
  assert.equal(await card.getByRole("checkbox", { name: "Ring" }).getAttribute("aria-checked"), "true");
  await picture(page, "a06-second");
  await card.locator(".next").click();

  await asks("Review your answers");
  await picture(page, "a06-review");
  await card.getByRole("button", { name: "Submit answers" }).click();
  await card.waitFor({ state: "detached" });
  await until("Claude has the answers", async () => /Which colour should the badge have\? → Violet[\s\S]*Which shapes may it have\? → Dot, Ring/.test(await lab.screen(tab)));

  await until("at rest", async () => ["review", "idle"].includes(await state(tab)));
  await lab.cli("tab", "send", tab.id, prompt);
  await asks(questions[0].question);
  await card.getByRole("button", { name: "Amber" }).click();
  await asks(questions[1].question);
  await card.getByRole("button", { name: "Esc: cancel" }).click();
  await card.waitFor({ state: "detached" });
  await until("Claude has none", async () => /Declined to answer Claude's questions/.test(await lab.screen(tab)));
  assert.deepEqual(page.faults, []);
});

test("A13 a busy session is stopped by one Esc, and a prompt that waits is spoken of", async () => {
  const tab = await claude(2);
  const page = await lab.open({ flags: READABLE });
  await row(page, tab).click();
  const stop = page.getByRole("button", { name: "Stop" });
  assert.equal(await stop.count(), 0, "there is nothing to stop");

  await lab.cli("tab", "send", tab.id, "slow 30 many words that nobody waits for to the end of them all");
  await stop.waitFor();
  await until("work under way", async () => /↓ \d+ tokens/.test(await lab.screen(tab)));
  const pressed = performance.now();
  await stop.dblclick();
  await row(page, tab).and(page.getByRole("treeitem", { name: "Idle" })).waitFor();
  assert.ok(performance.now() - pressed < 5000);
  await stop.waitFor({ state: "detached" });
  await until("the mark of an interrupt", async () => /Interrupted/.test(await lab.screen(tab)));
  assert.equal(await page.locator(".complaint").count(), 0);

  // With a prompt that waits Claude goes on with it, and that is said.
  await lab.cli("tab", "send", tab.id, "slow 30 many words that nobody waits for to the end of them all");
  await stop.waitFor();
  await lab.cli("tab", "send", tab.id, "say the queued one");
  await until("the queued prompt", async () => /say the queued one/.test(await lab.screen(tab)));
  await stop.click();
  await page.locator(".complaint").filter({ hasText: /prompt/i }).waitFor();

  // While a dialog is drawn there is nothing to stop; Esc would answer it.
  await until("at rest", async () => ["review", "idle"].includes(await state(tab)));
  await lab.cli("tab", "send", tab.id, "bash: touch a13.txt ;; say finished");
  await page.locator("[data-card][data-armed=true]").waitFor();
  assert.equal(await stop.count(), 0);
  await page.getByRole("button", { name: "Esc: reject" }).click();
  await page.locator("[data-card]").waitFor({ state: "detached" });
  assert.deepEqual(page.faults, []);
});

test("M07 a device that joins while a dialog is open has badge and card at once, can answer, and is told nothing", async () => {
  const taken = [];
  const service = createServer((request, answer) => request.resume().on("end", () => (taken.push(request.url), answer.writeHead(201).end())));
  await new Promise((resolve) => service.listen(0, "127.0.0.1", resolve));
  after(() => service.close());
  const tab = await claude(0);
  await lab.cli("tab", "send", tab.id, "bash: touch m07.txt ;; say made");
  await until("a dialog", async () => (await lab.item(tab.id)).detail.ask?.card !== undefined);

  const page = await lab.open({ ...PHONE, permissions: ["notifications"] });
  await page.locator(`button[data-tab="${tab.id}"]`).and(page.getByRole("button", { name: "Needs input, permission" })).waitFor();
  await page.getByRole("button", { name: /^Attention, / }).tap();
  const card = page.getByRole("dialog", { name: "Attention" }).locator(`[data-row="${tab.id}"]`).getByRole("region", { name: "Bash command" });
  await card.getByText("touch m07.txt", { exact: true }).waitFor();
  assert.equal(await card.locator(".option:not(.reject)").count(), 4, "the whole card");
  // Notifications are switched on while the dialog stands: it is no news.
  await page.evaluate((endpoint) => {
    const keys = { p256dh: "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4", auth: "BTBZMqHH6r4Tts7J_aSIgg" };
    let subscription = null;
    PushManager.prototype.subscribe = async (options) => (subscription = { options: { applicationServerKey: options.applicationServerKey.buffer }, toJSON: () => ({ endpoint, keys }), unsubscribe: async () => true });
    PushManager.prototype.getSubscription = async () => subscription;
  }, `http://127.0.0.1:${service.address().port}/device`);
  await page.getByRole("button", { name: "Close" }).tap();
  await page.getByRole("button", { name: "Settings" }).tap();
  await page.getByRole("button", { name: "Notifications" }).tap();
  await page.getByRole("switch", { name: "On this device" }).tap();
  await page.getByRole("checkbox", { name: "When there is something to review" }).waitFor();
  await holds("silence", () => taken.length === 0, 4000);
  await page.keyboard.press("Escape");

  await page.getByRole("button", { name: /^Attention, / }).tap();
  await card.and(page.locator("[data-armed=true]")).waitFor();
  await card.getByRole("button", { name: "1 Yes", exact: true }).tap();
  await card.waitFor({ state: "detached" });
  await until("the file", () => existsSync(join(lab.projects[0], "m07.txt")));
  assert.deepEqual(page.faults, []);
});
