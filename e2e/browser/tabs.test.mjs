// Tabs and their ends on the page: what ended is reopened by one click, what others made with tmux is shown and only
// hidden, a tmux that does not answer is told, a review that is scrolled away is not seen, and the bar of tabs follows.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { drawn, enter, holds, Lab, nameOf, picture, READABLE, row, terminal, until, violations } from "./lab.mjs";
import { finish, say, standIn } from "./standin.mjs";

/** Nothing but the deadline of the page: a review counts as seen after this long on screen. */
const SEEN_MS = 2000;

const tmux = (tab, ...args) => execFileSync("tmux", ["-S", tab.socket, ...args], { encoding: "utf8" }).trim();
const items = async (lab) => JSON.parse(await lab.cli("status", "--json"));

/** Looks at the page as a person does, in every shape it has; for whoever opens the pictures. */
async function pictures(page, name) {
  for (const [size, viewport] of [["desk", { width: 1280, height: 800 }], ["phone", { width: 390, height: 800 }]]) {
    await page.setViewportSize(viewport);
    for (const scheme of ["dark", "light"]) {
      await page.emulateMedia({ colorScheme: scheme });
      await picture(page, `${name}-${size}-${scheme}`);
    }
  }
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.emulateMedia({ colorScheme: null });
}

describe("tabs", () => {
  let lab;
  before(async () => (lab = await Lab.start()));
  after(async () => lab?.stop());

  test("X07 after kill-server tabs are ended, and one click starts a shell where it was", async () => {
    const page = await lab.open({ flags: READABLE });
    const tab = await lab.tab("terminal", 0);
    await row(page, tab).click();
    await terminal(page, tab);
    await until("prompt", async () => /lab[#$]/.test(await drawn(page)));
    await enter(page, "cd /usr/lib && pwd");
    await until("directory", async () => (await lab.item(tab.id)).cwd === "/usr/lib");
    await enter(page, "tmux kill-server");
    const card = page.getByRole("status").filter({ hasText: "The tmux session ended" });
    await card.waitFor();
    await card.getByText("/usr/lib").waitFor();
    await card.getByText("Nothing runs in this tab any more.").waitFor();
    await until("mark on the row", async () => /Gone/.test(await nameOf(row(page, tab))));
    assert.deepEqual(await violations(page), []);
    await pictures(page, "ended");

    await card.getByRole("button", { name: "Reopen here" }).click();
    await card.waitFor({ state: "detached" });
    await terminal(page, tab);
    await until("a fresh prompt", async () => /lab[#$]\s*$/.test(await drawn(page)));
    await enter(page, "echo at:$PWD");
    await until("its directory", async () => (await drawn(page)).includes("\nat:/usr/lib"));
    assert.match(await nameOf(row(page, tab)), /Not running/);

    // Another viewer's click brings it back here too.
    await enter(page, "exit");
    await card.waitFor();
    await until("ended", async () => (await lab.item(tab.id)).shell === "ended");
    await lab.cli("tab", "reopen", tab.id);
    await card.waitFor({ state: "detached" });
    await terminal(page, tab);
    await until("a fresh prompt", async () => /lab[#$]\s*$/.test(await drawn(page)));

    // Closing one that has ended asks nothing.
    await enter(page, "exit");
    await card.waitFor();
    await card.getByRole("button", { name: "Close tab" }).click();
    await row(page, tab).waitFor({ state: "detached" });
    assert.deepEqual(page.faults, []);
  });

  test("X03 a pane that tmux keeps is marked dead, and can be had again", async () => {
    const page = await lab.open({ flags: READABLE });
    const tab = await lab.tab("terminal", 1);
    await row(page, tab).click();
    await terminal(page, tab);
    await until("prompt", async () => /lab[#$]/.test(await drawn(page)));
    await enter(page, "tmux set-option -w remain-on-exit on; echo last words; exec true");
    const card = page.getByRole("status").filter({ hasText: "The program has exited" });
    await card.waitFor();
    assert.match(await nameOf(row(page, tab)), /Gone.*Its program has exited/s);
    assert.ok((await drawn(page)).includes("last words"), "what it said last stays readable");
    await pictures(page, "dead");
    await card.getByRole("button", { name: "Reopen here" }).click();
    await card.waitFor({ state: "detached" });
    await until("a fresh prompt", async () => /lab[#$]\s*$/.test(await drawn(page)));
    await lab.cli("tab", "close", tab.id);
    assert.deepEqual(page.faults, []);
  });

  test("X07 a session that the person makes is a tab, and closing it only hides it", async () => {
    const page = await lab.open({ flags: READABLE });
    const tab = await lab.tab("terminal", 2);
    tmux(tab, "new-session", "-d", "-s", "mine", "-c", "/", "echo this is mine; exec cat");
    const mine = await until("its row", async () => (await items(lab)).find((item) => item.foreign && item.title === "mine"));
    await row(page, mine).click();
    await terminal(page, mine);
    await until("its screen", async () => (await drawn(page)).includes("this is mine"));
    await pictures(page, "foreign");
    await page.getByRole("button", { name: "More for this tab" }).click();
    await picture(page, "foreign-menu");
    await page.getByRole("menuitem", { name: /^Hide/ }).click();
    await row(page, mine).waitFor({ state: "detached" });
    assert.ok(tmux(tab, "list-sessions", "-F", "#{session_name}").split("\n").includes("mine"));
    await holds("hidden", async () => (await row(page, mine).count()) === 0, 2500);
    tmux(tab, "kill-session", "-t", "=mine");
    await lab.cli("tab", "close", tab.id);
    assert.deepEqual(page.faults, []);
  });

  test("P09 a review that is scrolled away is not seen, however long it is on screen", async () => {
    const page = await lab.open({ flags: READABLE });
    const tab = await lab.tab("terminal", 3);
    await row(page, tab).click();
    await terminal(page, tab);
    await until("prompt", async () => /lab[#$]/.test(await drawn(page)));
    await enter(page, `seq 200; ${standIn(lab.env)} 600`);
    const { pid } = await until("its process", async () => {
      const item = await lab.item(tab.id);
      return item.presence === "starting" ? item : null;
    });
    const state = (wanted) => until(wanted, async () => (await lab.item(tab.id)).state === wanted);
    say(lab.env, pid, "idle");
    await state("idle");
    // It has scrolled back before the turn ends.
    tmux(tab, "copy-mode", "-t", `=${tab.session}:`);
    await until("covered", async () => (await lab.item(tab.id)).covered);
    say(lab.env, pid, "busy");
    await state("busy");
    assert.equal(await finish(lab.env, pid), 204);
    say(lab.env, pid, "idle");
    await state("review");
    await holds("review", async () => (await lab.item(tab.id)).state === "review", 2 * SEEN_MS);
    tmux(tab, "copy-mode", "-q", "-t", `=${tab.session}:`);
    await state("idle");
    await lab.cli("tab", "close", tab.id, "--force");
    assert.deepEqual(page.faults, []);
  });

  test("the chosen tab is in the bar's sight, wherever it was chosen and when it was just made", async () => {
    const page = await lab.open();
    const made = [];
    for (let n = 0; n < 14; n += 1) made.push(await lab.tab("terminal", n % 10));
    await until("all rows", async () => (await page.getByRole("tab").count()) === made.length);
    const inSight = (id) =>
      page.evaluate((tab) => {
        const cell = document.querySelector(`[role=tab][data-tab="${tab}"]`)?.getBoundingClientRect();
        const bar = document.querySelector("[role=tablist]")?.getBoundingClientRect();
        return cell !== undefined && bar !== undefined && cell.left >= bar.left - 1 && cell.right <= bar.right + 1;
      }, id);
    for (const tab of [made.at(-1), made[0], made[7]]) {
      await row(page, tab).click();
      await until("the chosen tab in the bar", () => inSight(tab.id));
    }
    await row(page, made[0]).click();
    await until("the first tab in the bar", () => inSight(made[0].id));
    await page.getByRole("button", { name: "New tab" }).first().click();
    await page.getByRole("menuitem", { name: "Terminal" }).click();
    const fresh = await until("the new tab", async () => {
      const chosen = page.locator("[role=tab][aria-selected=true]");
      const id = await chosen.getAttribute("data-tab");
      return made.some((tab) => tab.id === id) ? null : id;
    });
    await until("the new tab in the bar", () => inSight(fresh));
    for (const tab of [...made, { id: fresh }]) await lab.cli("tab", "close", tab.id, "--force");
    assert.deepEqual(page.faults, []);
  });
});

describe("a tmux that does not answer", () => {
  let lab;
  let fail;
  let bin;
  before(async () => {
    lab = await Lab.start((env) => {
      bin = join(env.HOME, "wrapped");
      fail = join(env.HOME, "fail");
      mkdirSync(bin);
      // The control client's listings pass through this, and fail while the file is there.
      const script = `#!/bin/bash
case " $* " in *" -C "*) ;; *) exec /usr/bin/tmux "$@" ;; esac
while IFS= read -r line; do
  [[ $line == *list-panes* && -e ${fail} ]] && line="list-panes -t '=no-such-session:'"
  printf '%s\\n' "$line"
done | exec /usr/bin/tmux "$@"
`;
      writeFileSync(join(bin, "tmux"), script);
      chmodSync(join(bin, "tmux"), 0o755);
      return { ...env, PATH: `${bin}:${env.PATH}` };
    });
  });
  after(async () => lab?.stop());

  test("X01 is told on the page after three failures, and the terminal goes on", async () => {
    const page = await lab.open({ flags: READABLE });
    const tab = await lab.tab("terminal", 0);
    await row(page, tab).click();
    await terminal(page, tab);
    await until("prompt", async () => /lab[#$]/.test(await drawn(page)));
    writeFileSync(fail, "");
    const notice = page.getByText(/tmux does not answer/).first();
    await notice.waitFor();
    await picture(page, "tmux-silent");
    await enter(page, "echo on-$((1))");
    await until("output", async () => (await drawn(page)).includes("\non-1"));
    rmSync(fail);
    await notice.waitFor({ state: "detached" });
    assert.deepEqual(page.faults, []);
  });

  test("X08 a tmux that is updated under the running one is told on the page", async () => {
    const page = await lab.open({ flags: READABLE });
    const [item] = await items(lab);
    const newer = `#!/bin/sh\n[ "$1" = -V ] && { echo 'tmux 9.9'; exit; }\nexec /usr/bin/tmux "$@"\n`;
    writeFileSync(join(bin, "new"), newer);
    chmodSync(join(bin, "new"), 0o755);
    renameSync(join(bin, "new"), join(bin, "tmux"));
    // Opening a terminal is a moment to look.
    await page.reload();
    await row(page, item).click();
    await terminal(page, item);
    await page.getByText(/tmux 9\.9 is installed.*all tabs end when tmux is restarted/).first().waitFor();
    await picture(page, "tmux-updated");
    await enter(page, "echo on-$((2))");
    await until("output", async () => (await drawn(page)).includes("\non-2"));
    assert.deepEqual(page.faults, []);
  });
});
