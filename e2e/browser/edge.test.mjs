// The sidebar's edge by pointer and keys, kept over a reload; and Alt+Enter in the palette, which opens beside.

import assert from "node:assert/strict";
import { basename } from "node:path";
import { after, before, test } from "node:test";
import { Lab, READABLE, row, terminal, until, violations } from "./lab.mjs";

let lab;
before(async () => (lab = await Lab.start()));
after(async () => lab?.stop());

test("the sidebar is drawn wider by pointer and keys, within its bounds, and stays so", async () => {
  const page = await lab.open();
  const tab = await lab.tab("terminal", 0);
  await row(page, tab).waitFor();
  const edge = page.getByRole("separator", { name: "Width of the sidebar" });
  const width = async () => Math.round((await page.locator(".side").boundingBox()).width);
  await until("the first width", async () => (await width()) === 312);
  const box = await edge.boundingBox();
  await page.mouse.move(box.x + 3, box.y + 100);
  await page.mouse.down();
  await page.mouse.move(360, box.y + 120, { steps: 5 });
  await page.mouse.up();
  await until("the width drawn", async () => (await width()) === 360);
  assert.equal(await edge.getAttribute("aria-valuenow"), "360");
  await edge.press("ArrowRight");
  await until("one step", async () => (await width()) === 376);
  await edge.press("End");
  await until("the widest", async () => (await width()) === 420);
  await edge.press("ArrowRight");
  await page.reload();
  await until("it is kept", async () => (await width()) === 420);
  await edge.press("Home");
  await until("the narrowest", async () => (await width()) === 240);
  await edge.press("Enter");
  await until("the first width again", async () => (await width()) === 312);
  assert.deepEqual(await violations(page), []);
  assert.deepEqual(page.faults, []);
});

test("Alt+Enter in the palette opens a session in the other pane, which is made if there is none", async () => {
  const page = await lab.open({ flags: READABLE, viewport: { width: 1440, height: 900 } });
  const [first, second] = [await lab.tab("terminal", 1), await lab.tab("terminal", 2)];
  await row(page, first).click();
  await terminal(page, first);
  await page.keyboard.press("Alt+KeyK");
  // Its title ends in its directory.
  await page.keyboard.type(basename(lab.projects[2]));
  await until("it is found", async () => (await page.getByRole("option").first().innerText()).includes(basename(lab.projects[2])));
  await page.keyboard.press("Alt+Enter");
  await until("two panes", async () => (await page.locator("[data-terminal][data-live=true]").count()) === 2);
  assert.equal(await page.locator(`[data-terminal="${second.id}"]`).count(), 1);
  assert.equal(await page.locator(`[data-terminal="${first.id}"]`).count(), 1);
  assert.deepEqual(page.faults, []);
});
