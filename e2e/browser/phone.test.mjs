// The page at phone width: the list, a session, its terminal and the keys that a phone lacks.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { drawn, Lab, picture, READABLE, terminal, until, violations } from "./lab.mjs";

let lab;
before(async () => (lab = await Lab.start()));
after(async () => lab?.stop());

test("list, session and terminal work at phone width", async () => {
  const shell = await lab.tab("terminal", 0);
  const claude = await lab.tab("claude-code", 1);
  const page = await lab.open({ flags: READABLE, viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });
  await page.getByRole("heading", { name: "Sessions" }).waitFor();
  await page.getByRole("button", { name: /Idle/ }).and(page.locator(`[data-tab="${claude.id}"]`)).waitFor();
  const widths = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  assert.equal(widths[0], widths[1], "nothing hangs over the edge");
  assert.deepEqual(await violations(page), []);
  await picture(page, "phone-list");

  await page.locator(`button[data-tab="${shell.id}"]`).tap();
  await terminal(page, shell);
  await until("prompt", async () => /lab[#$]/.test(await drawn(page)));
  const field = page.getByRole("textbox", { name: "Type into the terminal" });
  await field.fill("echo phone-$((6*7))");
  await page.getByRole("button", { name: "Send" }).tap();
  await until("output", async () => (await drawn(page)).includes("\nphone-42"));
  assert.deepEqual(await violations(page), []);
  await picture(page, "phone-terminal");

  await page.getByRole("button", { name: "Back to the sessions" }).tap();
  await page.locator(`button[data-tab="${claude.id}"]`).tap();
  await terminal(page, claude);
  await until("Claude's box", async () => /manual mode|\? for shortcuts/.test(await drawn(page)));
  await picture(page, "phone-claude");
  assert.deepEqual(page.faults, []);
});
