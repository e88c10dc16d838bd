// The badge on the page: the real Claude Code in a tab, typed to in the page, and the row's accessible name.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { drawn, enter, follow, holds, Lab, nameOf, picture, READABLE, row, shown, terminal, until } from "./lab.mjs";

let lab;
before(async () => (lab = await Lab.start()));
after(async () => lab?.stop());

/** Waits until the row's accessible name says exactly this state. */
async function says(page, tab, state) {
  await row(page, tab).and(page.getByRole("treeitem", { name: state })).waitFor();
  return nameOf(row(page, tab));
}

/** Claude has drawn its box in the page. */
const claudeIsDrawn = (page) => until("Claude's box", async () => /manual mode|\? for shortcuts/.test(await drawn(page)));

test("P02 P09 Q01 Q02 from a prompt typed in the page to a review that was seen", async () => {
  const page = await lab.open({ flags: READABLE });
  const tab = await lab.tab("claude-code", 0);
  await says(page, tab, "Idle");
  await row(page, tab).click();
  await terminal(page, tab);
  await claudeIsDrawn(page);
  await follow(page, tab);

  await enter(page, "bash: touch made.txt; sleep 1 ;; say purple words");
  await says(page, tab, "Busy");
  const asking = await says(page, tab, "Needs input, permission");
  assert.match(asking, /touch made\.txt/, "the row says what is asked");
  await until("count in the title", async () => (await page.title()).startsWith("(1) "));
  await until("dialog on the page", async () => (await drawn(page)).includes("Do you want to proceed?"));
  assert.match(await nameOf(page.locator(`[role=tab][data-tab="${tab.id}"]`)), /Needs input, permission/);
  await picture(page, "q01-needs-input");

  // Claude takes no key in the first moments of a dialog; a person presses again.
  await until("end of the dialog", async () => {
    await page.keyboard.press("Enter");
    const gone = async () => (await shown(page)).length > 3;
    return until("change", gone, 600).catch(() => false);
  });
  await says(page, tab, "To review, finished");
  await picture(page, "p02-review");
  // In a focused window, with the end of the answer on screen, it counts as seen after two seconds.
  await says(page, tab, "Idle");
  assert.deepEqual(await shown(page), ["Idle", "Busy", "Needs input, permission", "Busy", "To review, finished", "Idle"]);
  await until("title without a count", async () => !(await page.title()).startsWith("("));
  assert.deepEqual(page.faults, []);
});

test("P09 Q03 I01 a session that is not looked at stays to review, a refusal is idle", async () => {
  const page = await lab.open({ flags: READABLE });
  const tab = await lab.tab("claude-code", 1);
  const other = await lab.tab("terminal", 2);
  await says(page, tab, "Idle");
  await row(page, tab).click();
  await terminal(page, tab);
  await claudeIsDrawn(page);
  await follow(page, tab);
  await enter(page, "slow 2 one two three four five six");
  await says(page, tab, "Busy");
  await row(page, other).click();
  await terminal(page, other);
  await says(page, tab, "To review, finished");
  await holds("to review", async () => (await shown(page)).at(-1) === "To review, finished", 3000);
  await until("count in the title", async () => (await page.title()).startsWith("(1) "));

  await row(page, tab).click();
  await terminal(page, tab);
  await claudeIsDrawn(page);
  await enter(page, "bash: touch no.txt ;; say finished");
  await says(page, tab, "Needs input, permission");
  await until("dialog on the page", async () => (await drawn(page)).includes("Do you want to proceed?"));
  await until("end of the dialog", async () => {
    await page.keyboard.press("Escape");
    return until("idle", async () => (await shown(page)).at(-1) === "Idle", 600).catch(() => false);
  });
  const states = await shown(page);
  assert.deepEqual(states.slice(-3), ["Busy", "Needs input, permission", "Idle"]);
  assert.deepEqual(page.faults, []);
});
