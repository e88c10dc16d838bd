// Conversations that are over on the page: those that tabs offer after the machine was started anew, one by one and all at
// once, and those of all projects, searched and taken up by one press, by the real Claude Code.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { drawn, holds, Lab, picture, READABLE, row, terminal, until, violations } from "./lab.mjs";

/** Ends tmux and the server, and writes down that another boot was the last: what a power cut leaves. */
async function bootsAnew(lab, tab) {
  await lab.stopServer();
  await lab.tmux(tab, "kill-server");
  const file = join(lab.env.PURPLEMUX_HOME, "purplemux.db");
  const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  const bytes = readFileSync(file);
  const at = bytes.indexOf(boot);
  assert.ok(at > 0, "the boot is kept");
  // Of the same length, so that the file stays whole.
  bytes.write(boot.replaceAll(/[0-9]/g, "f"), at, "latin1");
  writeFileSync(file, bytes);
  await lab.serve();
}

async function looked(page, name) {
  for (const colorScheme of ["dark", "light"]) {
    await page.emulateMedia({ colorScheme });
    assert.deepEqual(await violations(page), [], `${name} ${colorScheme}`);
    await picture(page, `${name}-${colorScheme}`);
  }
}

const shared = (page) => page.evaluate(async () => (await fetch("/api/settings", { headers: { "x-pmux-secret": JSON.parse(localStorage.getItem("purplemux.secret")).secret } })).json());

describe("past conversations", () => {
  let lab;
  before(async () => (lab = await Lab.start()));
  after(async () => lab?.stop());

  test("L04 are offered after a reboot, per tab and all at once, and taken up later from the list of all projects", async () => {
    const page = await lab.open({ flags: READABLE, viewport: { width: 1440, height: 900 } });
    const tabs = [];
    for (const [n, word] of ["alpha", "beta", "gamma"].entries()) {
      const tab = await lab.tab("claude-code", n % lab.projects.length);
      tabs.push(tab);
      await row(page, tab).and(page.getByRole("treeitem", { name: "Idle" })).waitFor();
      await lab.cli("tab", "send", tab.id, `say ${word}`);
      await until(`the answer ${word}`, async () => (await lab.item(tab.id)).last_message === word);
    }
    const [first, second, third] = tabs;
    await bootsAnew(lab, first);
    await until("three offers", async () => (await Promise.all(tabs.map((tab) => lab.item(tab.id)))).every((item) => item?.resume != null));

    await row(page, first).click();
    const offer = page.getByRole("region", { name: "From before the restart" });
    await offer.getByText("say alpha").waitFor();
    await terminal(page, first);
    await looked(page, "offer");
    await offer.getByRole("button", { name: "Not now" }).click();
    await offer.waitFor({ state: "detached" });
    assert.equal((await lab.item(first.id)).resume, null);

    // All that is left, from one of them.
    await row(page, second).click();
    await offer.getByText("say beta").waitFor();
    await offer.getByRole("button", { name: "Take up all 2" }).click();
    for (const [tab, word] of [[second, "beta"], [third, "gamma"]]) {
      await until(`${word} goes on`, async () => (await lab.item(tab.id)).state === "idle");
      await until(`what was said, ${word}`, async () => (await lab.screen(tab)).includes(`● ${word}`));
    }
    assert.equal((await lab.item(first.id)).state, null, "what was put off stays off");

    // The one that was put off is in the list; those that run say so.
    await page.keyboard.press("Alt+KeyK");
    await page.keyboard.type("past conv");
    await page.getByRole("option", { name: /^Past conversations/ }).waitFor();
    await page.keyboard.press("Enter");
    const sheet = page.getByRole("dialog", { name: "Past conversations" });
    await sheet.getByText("say alpha").waitFor();
    assert.equal(await sheet.getByText("runs now").count(), 2);
    await looked(page, "past");
    const auto = sheet.getByRole("checkbox", { name: /take conversations up by itself/ });
    await auto.check();
    await until("the setting", async () => (await shared(page)).resume === "auto");
    await auto.uncheck();
    await until("no setting", async () => !("resume" in (await shared(page))));

    await page.keyboard.press("Escape");
    await sheet.waitFor({ state: "detached" });
    await page.keyboard.press("Alt+KeyK");
    await page.keyboard.type("past conv");
    await page.getByRole("option", { name: /^Past conversations/ }).waitFor();
    await page.keyboard.press("Enter");
    const field = sheet.getByRole("textbox", { name: /^Search title/ });
    await field.fill("nothing of the kind");
    await sheet.getByText("No conversation found").waitFor();
    await field.fill("ALPHA say");
    await until("one is found", async () => (await sheet.locator("button.row").count()) === 1);
    await page.keyboard.press("Enter");
    await sheet.waitFor({ state: "detached" });
    await until("its terminal", async () => (await drawn(page)).includes("● alpha"));
    const taken = await until("its row", async () => JSON.parse(await lab.cli("status", "--json")).find((item) => item.state === "idle" && ![second.id, third.id].includes(item.id)));
    assert.equal(taken.cwd, lab.projects[0], "in its own directory");

    // One that runs is shown, not started twice.
    const before = JSON.parse(await lab.cli("status", "--json")).length;
    await row(page, third).click();
    await page.getByRole("button", { name: "New tab" }).first().click();
    await page.getByRole("menuitem", { name: "Past conversations" }).click();
    await sheet.getByText("say alpha").click();
    await sheet.waitFor({ state: "detached" });
    await until("it is on screen", async () => (await page.locator(`[data-terminal="${taken.id}"][data-live=true]`).count()) === 1);
    await holds("no other one", async () => JSON.parse(await lab.cli("status", "--json")).length === before, 500);
    assert.deepEqual(page.faults, []);
  });

  test("an empty pane offers the tabs of its workspace and what was talked about last", async () => {
    const page = await lab.open({ flags: READABLE, viewport: { width: 1440, height: 900 } });
    const tab = await lab.tab("terminal", 0);
    await row(page, tab).click();
    await terminal(page, tab);
    await page.keyboard.press("Alt+Backslash");
    const empty = page.locator(".empty");
    await empty.getByText("Nothing is open in this pane").waitFor();
    // Claude ends, so its conversation is one of the past.
    const runs = JSON.parse(await lab.cli("status", "--json")).find((item) => item.state !== null);
    await lab.cli("tab", "close", runs.id, "--force");
    await page.reload();
    await empty.getByRole("heading", { name: "Go on with" }).waitFor();
    await empty.getByRole("heading", { name: "Show one of these tabs here" }).waitFor();
    await empty.locator("time, .when").first().waitFor();
    await looked(page, "empty-pane");
    await empty.getByRole("button", { name: "All past conversations" }).click();
    const sheet = page.getByRole("dialog", { name: "Past conversations" });
    await sheet.waitFor();
    await page.keyboard.press("Escape");
    await empty.locator("button.row").filter({ hasText: (await lab.item(tab.id)).title }).first().click();
    await empty.waitFor({ state: "detached" });
    await terminal(page, tab);
    assert.deepEqual(page.faults, []);
  });
});
