// A shell in the page: keys and echo, sizes, a reload, a server that goes and comes back.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { drawn, enter, holds, Lab, nameOf, picture, READABLE, row, terminal, until, violations } from "./lab.mjs";

let lab;
before(async () => (lab = await Lab.start()));
after(async () => lab?.stop());

/** The columns and rows that the shell itself sees. */
async function sizeSeen(page, mark) {
  await enter(page, `echo ${mark}=$(tput cols)x$(tput lines)=`);
  return until("size", async () => new RegExp(`\\n${mark}=(\\d+)x(\\d+)=`).exec(await drawn(page))?.slice(1, 3).map(Number));
}

test("a shell echoes, follows the window's size and survives a reload", async () => {
  const page = await lab.open({ flags: READABLE });
  const tab = await lab.tab("terminal", 0);
  assert.match(await nameOf(row(page, tab)), /Not running/);
  await row(page, tab).click();
  await terminal(page, tab);
  await until("prompt", async () => /lab[#$]/.test(await drawn(page)));
  await enter(page, "echo purple-$((6*7))");
  await until("output", async () => (await drawn(page)).includes("\npurple-42"));

  const [cols, lines] = await sizeSeen(page, "before");
  await page.setViewportSize({ width: 1000, height: 600 });
  await until("smaller size", async () => {
    const [nowCols, nowLines] = await sizeSeen(page, `after${Math.round(performance.now())}`);
    return nowCols < cols && nowLines < lines;
  });

  // UTF-8, wide and combining, both ways.
  await enter(page, "printf '%s\\n' '→紫e\u0301←'");
  await until("wide characters", async () => (await drawn(page)).includes("\n→紫e\u0301←"));

  await page.reload();
  await terminal(page, tab);
  await until("screen after the reload", async () => (await drawn(page)).includes("紫"));
  await enter(page, "echo still-$((1+1))");
  await until("output", async () => (await drawn(page)).includes("\nstill-2"));
  await picture(page, "terminal");
  assert.deepEqual(page.faults, []);
});

test("a flood ends in the newest line, and Ctrl-C reaches the program", async () => {
  const page = await lab.open({ flags: READABLE });
  const tab = await lab.tab("terminal", 1);
  await row(page, tab).click();
  await terminal(page, tab);
  await until("prompt", async () => /lab[#$]/.test(await drawn(page)));
  await enter(page, "seq 1 200000; echo end-$((40+2))");
  await until("end of the flood", async () => (await drawn(page)).includes("200000\nend-42"));
  await enter(page, "cat");
  await enter(page, "to and fro");
  await until("cat", async () => (await drawn(page)).includes("to and fro\nto and fro"));
  await page.keyboard.press("Control+c");
  await until("prompt again", async () => /\^C\s*lab[#$]\s*$/.test(await drawn(page)));
  assert.deepEqual(page.faults, []);
});

test("L02 a server that stops leaves a true picture, and the page recovers by itself", async () => {
  const page = await lab.open({ flags: READABLE });
  const tab = await lab.tab("terminal", 2);
  await row(page, tab).click();
  await terminal(page, tab);
  await until("prompt", async () => /lab[#$]/.test(await drawn(page)));
  await enter(page, "echo before-$((1+1))");
  await until("output", async () => (await drawn(page)).includes("\nbefore-2"));

  const stopped = performance.now();
  await lab.stopServer();
  await page.getByRole("alert").filter({ hasText: "Connection lost" }).waitFor();
  assert.ok(performance.now() - stopped < 15_000, "said within 15 s");
  assert.match(await page.title(), /^Offline/);
  assert.ok((await drawn(page)).includes("before-2"), "the last picture stays");
  await picture(page, "l02-offline");

  await lab.serve();
  await page.getByRole("alert").filter({ hasText: "Connection lost" }).waitFor({ state: "detached" });
  // The terminal's own socket may have come back before the page asks for a fresh one.
  const settled = () => holds("live terminal", () => page.locator("[data-terminal][data-live=true]").isVisible(), 300);
  await until("settled terminal", () => settled().then(() => true));
  await until("screen", async () => (await drawn(page)).includes("before-2"));
  await enter(page, "echo after-$((1+1))");
  await until("output", async () => (await drawn(page)).includes("\nafter-2"));
  assert.doesNotMatch(await page.title(), /^Offline/);
  assert.deepEqual(page.faults, []);
});

test("tabs are made, renamed and closed in the page, and nothing is wrong for a screen reader", async () => {
  const page = await lab.open({ flags: READABLE });
  const rows = page.locator("[role=treeitem][data-tab]");
  await rows.first().waitFor();
  const before = await rows.count();
  await page.getByRole("button", { name: "New tab" }).first().click();
  await page.getByRole("menuitem", { name: "Terminal" }).click();
  await until("another row", async () => (await rows.count()) === before + 1);
  await page.locator("[data-terminal][data-live=true]").waitFor();

  await page.locator("[role=tab][aria-selected=true]").dblclick();
  await page.getByRole("textbox", { name: "Name" }).fill("night shift");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByRole("treeitem", { name: /night shift/ }).waitFor();
  assert.match(await lab.cli("tab", "list"), /night shift/);

  for (const colorScheme of ["dark", "light"]) {
    await page.emulateMedia({ colorScheme });
    assert.deepEqual(await violations(page), [], colorScheme);
    await picture(page, `desk-${colorScheme}`);
  }

  await page.getByRole("button", { name: "More for this tab" }).click();
  await page.getByRole("menuitem", { name: "Close" }).click();
  await until("row gone", async () => (await rows.count()) === before);
  assert.deepEqual(page.faults, []);
});
