// The card of a dialog: when it can be pressed, what it says of a press, and that it neither moves nor carries an answer
// over to another dialog. The dialog on the tab's screen is the real Claude Code's; what is said of it at which moment is
// laid into the status socket.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { drawn, enter, Lab, picture, READABLE, row, terminal, until, violations } from "./lab.mjs";
import { Played } from "./played.mjs";

const option = (label, number, change = {}) => ({ number, label, note: "", checked: null, marked: false, ...change });
const CARD = {
  reading: "one",
  title: "Bash command",
  subject: ["touch played.txt"],
  question: "Do you want to proceed?",
  options: [option("Yes", 1), option("Yes, and don't ask again for: touch *", 2, { marked: true }), option("Yes, and switch to auto mode", 3), option("No", 4)],
  submit: false,
  reject: true,
  words: true,
};

let lab, asking;
before(async () => {
  lab = await Lab.start();
  asking = await lab.tab("claude-code", 0);
  const page = await lab.open({ flags: READABLE });
  await row(page, asking).and(page.getByRole("treeitem", { name: "Idle" })).waitFor();
  await row(page, asking).click();
  await terminal(page, asking);
  await until("Claude's box", async () => /manual mode|\? for shortcuts/.test(await drawn(page)));
  await enter(page, "bash: touch played.txt");
  await row(page, asking).and(page.getByRole("treeitem", { name: "Needs input, permission" })).waitFor();
});
after(async () => lab?.stop());

/** A page on which the asking tab has the card that is given, or none. */
async function on(options) {
  const page = await lab.open({ signedIn: false, flags: READABLE, ...options });
  const played = await new Played().on(page);
  played.held.add("answer");
  played.show = async (card, kind = "permission") => {
    played.dress = (item) => (item.id === asking.id && card !== null ? { ...item, detail: { ...item.detail, ask: { ...item.detail.ask, id: 7, kind, card } } } : item);
    await played.redress(asking);
  };
  played.answered = (change) => played.say({ type: "answered", request: null, item: asking.id, ask: 7, reading: "one", outcome: "sending", what: "Yes", by: "Safari, iPhone", at_ms: Date.now(), why: null, ...change });
  played.dress = (item) => (item.id === asking.id ? { ...item, detail: { ...item.detail, ask: { ...item.detail.ask, card: undefined } } } : item);
  await page.goto(await lab.link());
  return { page, played };
}

const places = (card) => card.locator(".option, .words").evaluateAll((found) => found.map((one) => JSON.stringify(one.getBoundingClientRect())));

test("a card arms, says what became of a press, and no option moves", async () => {
  const { page, played } = await on({ colorScheme: "dark" });
  await row(page, asking).click();
  await terminal(page, asking);
  await page.locator(".xterm-helper-textarea").focus();
  await played.show(CARD);
  const card = page.getByRole("region", { name: "Bash command" });
  // The moment it is there a press answers nothing: it was meant for what was there before.
  await card.getByRole("button", { name: "1 Yes", exact: true }).dispatchEvent("click");
  assert.deepEqual(played.answers(), []);
  assert.equal(await page.evaluate(() => document.activeElement?.className), "xterm-helper-textarea", "a card takes no focus");
  await page.locator("[data-card][data-armed=true]").waitFor();
  assert.equal(await card.locator(".tinted").count(), 0, "what answers for later as well is never the first choice");
  assert.deepEqual(await card.getByRole("group", { name: CARD.question }).getByRole("button").allInnerTexts().then((texts) => texts.map((text) => text.replace(/\s+/g, " "))), [
    "1 Yes",
    "2 Yes, and don't ask again for: touch *",
    "3 Yes, and switch to auto mode",
    "4 No",
    "Esc Esc: Reject",
  ]);
  const before = await places(card);

  // Alt+J leads to the card. Esc leaves it and answers nothing; a digit in words is a digit in words.
  await page.keyboard.press("Alt+j");
  await until("focus on the card", () => card.evaluate((found) => found === document.activeElement));
  await page.keyboard.press("Escape");
  const words = card.getByRole("textbox", { name: "Say what to do instead" });
  await until("focus in the field", () => words.evaluate((found) => found === document.activeElement));
  await page.keyboard.type("use 1 file");
  await page.keyboard.press("Escape");
  await until("focus on the card", () => card.evaluate((found) => found === document.activeElement));
  assert.deepEqual(played.answers(), []);
  assert.equal(await words.inputValue(), "use 1 file");

  // One press, one answer, however often it is pressed.
  await page.keyboard.press("4");
  await page.keyboard.press("4");
  await card.getByRole("button", { name: "4 No" }).dblclick({ force: true });
  await card.getByText("Sending “No”.").waitFor();
  assert.deepEqual(played.answers().map(({ ask, reading, answer }) => ({ ask, reading, answer })), [{ ask: 7, reading: "one", answer: { do: "choose", option: 3 } }]);
  assert.deepEqual(await places(card), before);
  const [{ request }] = played.answers();
  played.answered({ request, outcome: "sent", what: "No" });
  await card.getByText("Sent “No”. Waiting for Claude.").waitFor();
  assert.deepEqual(await places(card), before);
  await page.getByRole("status").filter({ hasText: "answer sent, “No”" }).waitFor();

  // Another dialog in its place: nothing of the first one is said or sent there.
  await played.show({ ...CARD, reading: "two" });
  await page.locator("[data-card][data-armed=true][data-at=open]").waitFor();
  assert.equal(await card.evaluate((found) => found.contains(document.activeElement)), true, "the focus was on a card and stays on one");
  // A press that begins on one dialog does not end on another.
  const yes = await card.getByRole("button", { name: "1 Yes", exact: true }).boundingBox();
  await page.mouse.move(yes.x + 20, yes.y + 10);
  await page.mouse.down();
  await played.show({ ...CARD, reading: "three" });
  await page.locator("[data-card][data-armed=true]").waitFor();
  await page.mouse.up();
  assert.equal(played.answers().length, 1);

  // Refused: nothing was typed, so it may be tried again.
  await words.fill("do something else");
  await words.press("Enter");
  await until("the answer", () => played.answers().length === 2);
  assert.deepEqual(played.answers()[1].answer, { do: "words", text: "do something else" });
  played.say({ type: "refused", request: played.answers()[1].request, why: "A menu is open in the terminal. Nothing was sent. Close it there.", said: { code: "menu_open", then: "nothing_sent" } });
  await card.getByText("A menu is open in the terminal. Nothing was sent. Close it there.").waitFor();
  assert.equal(await page.getByRole("alert").filter({ hasText: "menu" }).count(), 0, "it is said on the card and nowhere else");
  assert.deepEqual(await places(card), before);
  assert.deepEqual(await violations(page), []);
  await card.getByRole("button", { name: "Retry" }).click();
  await until("the second try", () => played.answers().length === 3);
  assert.deepEqual(played.answers()[2].answer, played.answers()[1].answer);
  assert.notEqual(played.answers()[2].request, played.answers()[1].request);
  // Failed: something may have been typed; only the terminal helps.
  played.answered({ request: played.answers()[2].request, reading: "three", outcome: "failed", why: "The dialog still stands." });
  await card.getByText("The dialog still stands.").waitFor();
  assert.equal(await card.getByRole("button", { name: "Retry" }).count(), 0);
  assert.deepEqual(await places(card), before);
  await card.getByRole("button", { name: "Open the terminal" }).click();
  await card.waitFor({ state: "detached" });
  await until("focus in the terminal", () => page.evaluate(() => document.activeElement?.className === "xterm-helper-textarea"));
  await page.getByRole("button", { name: "Show the card" }).click();
  await card.waitFor();

  // Answered elsewhere: who and when, on the card and for a while after it.
  await played.show({ ...CARD, reading: "four" });
  await page.locator("[data-card][data-armed=true]").waitFor();
  played.answered({ reading: "four" });
  await card.getByText(/^Answered on Safari, iPhone, \d\d:\d\d: “Yes”\.$/).waitFor();
  assert.deepEqual(await places(card), before);
  await page.keyboard.press("1");
  // Words that another device types into it draw it anew: still nothing can be pressed.
  await played.show({ ...CARD, reading: "five" });
  await card.getByText(/^Answered on Safari, iPhone/).waitFor();
  await page.keyboard.press("1");
  played.answered({ reading: "four", outcome: "sent" });
  await page.locator("[data-said=elsewhere]").waitFor();
  assert.equal(played.answers().length, 3);
  assert.deepEqual(page.faults, []);
});

test("a card in the panel is answered in place, by pointer and by key", async () => {
  const { page, played } = await on({ colorScheme: "light" });
  await played.show(CARD);
  await page.keyboard.press("Alt+i");
  const panel = page.getByRole("dialog", { name: "Attention" });
  const card = panel.getByRole("region", { name: "Bash command" });
  await card.getByText("touch played.txt", { exact: true }).waitFor();
  await panel.locator("[data-card][data-armed=true]").waitFor();
  const before = await places(card);
  assert.deepEqual(await violations(page), []);
  await picture(page, "card-panel");
  await page.keyboard.press("ArrowDown");
  await until("focus on the row", () => panel.locator(`[data-row="${asking.id}"]`).evaluate((found) => found === document.activeElement));
  await page.keyboard.press("4");
  await until("the answer", () => played.answers().length === 1);
  assert.deepEqual(played.answers()[0].answer, { do: "choose", option: 3 });
  await card.getByText("Sending “No”.").waitFor();
  assert.deepEqual(await places(card), before);
  await page.keyboard.press("Escape");
  await panel.waitFor({ state: "detached" });
  assert.equal(played.answers().length, 1);
  assert.deepEqual(page.faults, []);
});

test("a card is a sheet under the thumb, is folded to a bar, and says so when nothing can be sent", async () => {
  const { page, played } = await on({ viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true, colorScheme: "dark" });
  await page.locator(`button[data-tab="${asking.id}"]`).tap();
  await terminal(page, asking);
  await played.show({ ...CARD, options: [option("Amber", 1, { note: "warm", checked: false }), option("Violet", 2, { checked: false }), option("Type something", 3, { checked: false }), option("Next", null)], part: { index: 0, count: 2, titles: ["Colour", "Shape"], answered: [false, false] }, title: "Colour", question: "Which?" }, "question");
  const card = page.getByRole("region", { name: "Colour" });
  await page.locator("[data-card][data-armed=true]").waitFor();
  for (const box of await card.getByRole("checkbox").or(card.getByRole("button")).evaluateAll((found) => found.map((one) => one.getBoundingClientRect().height))) {
    assert.ok(box >= 44, `a thumb finds ${box} px`);
  }
  assert.deepEqual(await violations(page), []);
  await picture(page, "card-phone");
  await card.getByRole("checkbox", { name: "Violet" }).tap();
  // Claude's place to type is the card's own field.
  await card.getByRole("button", { name: "Type something" }).tap();
  await until("focus in the field", () => card.getByRole("textbox", { name: "Type an answer" }).evaluate((found) => found === document.activeElement));
  // What was begun is kept while the card is folded away to read the terminal.
  await card.getByRole("button", { name: "Fold the card" }).tap();
  await card.waitFor({ state: "detached" });
  const bar = await page.getByRole("button", { name: /Show the card/ }).boundingBox();
  const keys = await page.getByRole("toolbar", { name: "Keys" }).boundingBox();
  assert.ok(Math.abs(bar.y + bar.height - keys.y) <= 1, "the bar stands on the keys");
  await page.getByRole("button", { name: /Show the card/ }).tap();
  await page.locator("[data-card][data-armed=true]").waitFor();
  assert.equal(await card.getByRole("checkbox", { name: "Violet" }).getAttribute("aria-checked"), "true");
  await card.getByRole("button", { name: "Next" }).tap();
  await until("the answer", () => played.answers().length === 1);
  assert.deepEqual(played.answers()[0].answer, { do: "check", options: [1] });
  played.answered({ request: played.answers()[0].request, outcome: "sent", what: "Violet" });

  await played.show({ ...CARD, reading: "two", options: [], reject: false, words: false, cannot: "This dialog is taller than its screen." });
  const taller = page.getByRole("region", { name: "Bash command" });
  await taller.getByText("This dialog is taller than its screen.").waitFor();
  await taller.getByRole("button", { name: "Open the terminal" }).tap();
  await taller.waitFor({ state: "detached" });

  await played.show({ ...CARD, reading: "three" });
  await page.locator("[data-card][data-armed=true]").waitFor();
  await lab.stopServer();
  await taller.getByText("Not connected. Nothing you press is sent.").waitFor();
  await taller.getByRole("button", { name: "1 Yes", exact: true }).tap({ force: true });
  assert.equal(played.answers().length, 1);
  await lab.serve();
  assert.deepEqual(page.faults, []);
});
