// The message box over a session's terminal: sent once Claude has taken it, refused over a draft with the words kept, and
// drafts and former messages at hand.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { drawn, Lab, picture, READABLE, row, terminal, until, violations } from "./lab.mjs";

let lab;
before(async () => (lab = await Lab.start()));
after(async () => lab?.stop());

test("a message goes into Claude's empty box and is confirmed, and over a draft it stays here", async () => {
  const page = await lab.open({ flags: READABLE });
  const tab = await lab.tab("claude-code", 0);
  await row(page, tab).and(page.getByRole("treeitem", { name: "Idle" })).waitFor();
  await row(page, tab).click();
  await terminal(page, tab);
  await until("Claude's box", async () => /manual mode|\? for shortcuts/.test(await drawn(page)));
  const size = () => page.locator("footer").first().innerText();
  const before = await size();

  await page.locator(".xterm-helper-textarea").focus();
  await page.keyboard.press("Alt+KeyC");
  const box = page.getByRole("textbox", { name: /^Message to / });
  await box.waitFor();
  await until("the focus", () => box.evaluate((field) => document.activeElement === field));
  await page.keyboard.type("say hello");
  await page.keyboard.press("Shift+Enter");
  await page.keyboard.type("and good day");
  assert.equal(await box.inputValue(), "say hello\nand good day");
  await page.keyboard.press("Enter");
  await page.getByText("Sent. Claude has taken it.").waitFor();
  assert.equal(await box.inputValue(), "");
  await until("the answer", async () => (await drawn(page)).includes("● hello"));
  assert.equal(await size(), before, "the terminal kept its size");
  for (const colorScheme of ["dark", "light"]) {
    await page.emulateMedia({ colorScheme });
    assert.deepEqual(await violations(page), [], colorScheme);
    await picture(page, `composer-${colorScheme}`);
  }

  // A draft stands in the terminal.
  await page.keyboard.press("Escape");
  await box.waitFor({ state: "detached" });
  await page.locator(".xterm-helper-textarea").focus();
  await page.keyboard.type("half a thought");
  await until("the draft", async () => (await drawn(page)).includes("half a thought"));
  await page.keyboard.press("Alt+KeyC");
  await box.fill("say merged");
  await page.keyboard.press("Enter");
  await page.getByText(/typed into Claude.s box in the terminal.*Nothing was sent/).waitFor();
  assert.equal(await box.inputValue(), "say merged");
  assert.ok((await drawn(page)).includes("half a thought") && !(await drawn(page)).includes("merged"));

  // It is still there after a reload, and what was sent before is one key away.
  await page.reload();
  await terminal(page, tab);
  await page.locator(".xterm-helper-textarea").focus();
  await page.keyboard.press("Alt+KeyC");
  await until("the draft of the message", async () => (await box.inputValue()) === "say merged");
  await box.fill("");
  await page.keyboard.press("ArrowUp");
  assert.equal(await box.inputValue(), "say hello\nand good day");
  assert.deepEqual(page.faults, []);
});
