// "Why this state?" on the page: what each witness said of the real Claude Code, read from the dialog at the chip.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { drawn, enter, Lab, picture, READABLE, row, terminal, until, violations } from "./lab.mjs";

let lab;
before(async () => (lab = await Lab.start()));
after(async () => lab?.stop());

test("Q01 a badge says which witness decided it, and Esc returns to it", async () => {
  const page = await lab.open({ flags: READABLE });
  const tab = await lab.tab("claude-code", 0);
  await row(page, tab).and(page.getByRole("treeitem", { name: "Idle" })).waitFor();
  await row(page, tab).click();
  await terminal(page, tab);
  await until("Claude's box", async () => /manual mode|\? for shortcuts/.test(await drawn(page)));
  await enter(page, "bash: touch made.txt");
  await row(page, tab).and(page.getByRole("treeitem", { name: "Needs input, permission" })).waitFor();

  const chip = page.getByRole("button", { name: "Why this state?" });
  await chip.click();
  const dialog = page.getByRole("dialog", { name: "Why “Needs input”?" });
  await dialog.getByText("Claude asked for permission").waitFor();
  assert.equal(await chip.getAttribute("aria-expanded"), "true");
  const witness = (name) => dialog.getByRole("listitem").filter({ hasText: name });
  const hook = await witness("PermissionRequest · Bash").innerText();
  const file = await witness("waiting · permission prompt").innerText();
  assert.match(hook, /^Hook\s*(decided|agrees)/);
  assert.match(file, /^Claude’s status file\s*(decided|agrees)/);
  assert.match(`${hook} ${file}`, /decided/);
  assert.match(file, /\d\d:\d\d:\d\d\.\d\d\d/, "to the millisecond");
  assert.match(await witness("tool_use Bash, no result yet").innerText(), /^Transcript\s*agrees/);
  assert.match(await witness("alive, pane %").innerText(), /^Process\s*agrees/);
  assert.deepEqual(await violations(page), []);
  await picture(page, "why-needs-input");

  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  await until("focus on the chip", () => chip.evaluate((element) => element === document.activeElement));
  assert.match(await drawn(page), /Do you want to proceed\?/, "the key answered nothing");

  // It is no modal dialog: the terminal goes on taking keys, and what is explained is what is shown.
  await page.keyboard.press("Alt+Shift+Slash");
  await dialog.waitFor();
  await page.locator(".xterm-helper-textarea").focus();
  await until("end of the dialog", async () => {
    await page.keyboard.press("Enter");
    return (await lab.item(tab.id)).state === "review";
  });
  await page.getByRole("dialog", { name: /Why “(To review|Idle)”\?/ }).waitFor();
  assert.deepEqual(page.faults, []);
});
