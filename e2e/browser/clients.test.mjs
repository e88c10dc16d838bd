// Several devices, one truth: what is read on one is read on all, a late word names what it was about, and a picture
// from before a change takes nothing away.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { drawn, enter, holds, Lab, READABLE, row, terminal, until } from "./lab.mjs";
import { Played } from "./played.mjs";

let lab;
before(async () => (lab = await Lab.start()));
after(async () => lab?.stop());

const rowSays = (page, tab, state) => row(page, tab).and(page.getByRole("treeitem", { name: state })).waitFor();
const phoneSays = (page, tab, state) => page.locator(`button[data-tab="${tab.id}"]`).and(page.getByRole("button", { name: state })).waitFor();

/** When the phone's list first drew this state for the tab, by the machine's clock. */
const sawAt = (page, tab, state) =>
  page.evaluate(
    ([id, state]) =>
      new Promise((resolve) => {
        const look = () => document.querySelector(`button[data-tab="${id}"] [role=img]`)?.getAttribute("aria-label") === state && resolve(Date.now());
        new MutationObserver(look).observe(document.body, { subtree: true, childList: true, attributes: true });
        look();
      }),
    [tab.id, state],
  );

test("L03 read on one device is read on the other; a late word clears no newer review", async (t) => {
  const desk = await lab.open({ flags: READABLE, signedIn: false });
  const played = await new Played().on(desk);
  await desk.goto(await lab.link());
  const phone = await lab.open({ viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });
  const tab = await lab.tab("claude-code", 0);
  const other = await lab.tab("terminal", 1);
  await rowSays(desk, tab, "Idle");
  await row(desk, tab).click();
  await terminal(desk, tab);
  await until("Claude's box", async () => /manual mode|\? for shortcuts/.test(await drawn(desk)));
  await enter(desk, "slow 1 first answer");
  await row(desk, other).click();
  await rowSays(desk, tab, "To review, finished");
  await phoneSays(phone, tab, "To review, finished");

  // Really seen on the one: pane on screen, window focused, for two seconds.
  const seen = sawAt(phone, tab, "Idle");
  await row(desk, tab).click();
  const said = await until("the desk's word", () => played.said.find(({ type }) => type === "seen"));
  const late = (await seen) - said.saidMs;
  t.diagnostic(`idle on the other device ${late} ms after it was said on the first`);
  assert.ok(late < 1500, `${late} ms`);
  assert.equal(said.item, tab.id);
  await rowSays(desk, tab, "Idle");

  // The next one is put away on a link so slow that another turn has ended by then.
  await enter(desk, "slow 1 second answer");
  await row(desk, other).click();
  await rowSays(desk, tab, "To review, finished");
  const { episode } = await lab.item(tab.id);
  played.held.add("dismiss");
  await desk.getByRole("button", { name: "Attention, 1" }).click();
  await desk.getByRole("button", { name: /^Dismiss: / }).click();
  await until("the word is on its way", () => played.said.find(({ type }) => type === "dismiss"));
  await lab.cli("tab", "send", tab.id, "slow 1 third answer");
  await until("the newer review", async () => {
    const item = await lab.item(tab.id);
    return item.state === "review" && item.episode !== episode;
  });
  played.release();
  await holds("the newer review", async () => (await lab.item(tab.id)).state === "review", 1000);
  await phoneSays(phone, tab, "To review, finished");
  assert.deepEqual([...desk.faults, ...phone.faults], []);
});

test("L06 a session made here does not vanish by a picture from before it", async () => {
  const page = await lab.open({ flags: READABLE, signedIn: false });
  const played = await new Played().on(page);
  await page.goto(await lab.link());
  await page.getByRole("treeitem").first().waitFor();
  const before = await page.locator("[role=treeitem][data-tab]").evaluateAll((rows) => rows.map((found) => found.dataset.tab));
  await page.getByRole("button", { name: "New tab" }).first().click();
  await page.getByRole("menuitem", { name: "Claude" }).click();
  const id = await until("the new row", () =>
    page.locator("[role=treeitem][data-tab]").evaluateAll((rows, known) => rows.map((found) => found.dataset.tab).find((tab) => !known.includes(tab)), before),
  );
  const tab = { id };
  // In a directory that nobody has trusted yet it begins with a question.
  const badge = "Needs input, start-up question";
  await rowSays(page, tab, badge);
  played.sayFirstAgain();
  await holds("row and badge", async () => (await row(page, tab).and(page.getByRole("treeitem", { name: badge })).count()) === 1, 1000);
  await terminal(page, tab);
  assert.equal(await page.locator(`[role=tab][data-tab="${id}"]`).getAttribute("aria-selected"), "true");
  assert.deepEqual(page.faults, []);
});
