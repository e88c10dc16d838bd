// What is not in a tab of ours: no Claude Code at all, sessions elsewhere on the machine, and a Claude that comes and
// goes in a tab. The Claudes here only sleep; the test writes their status files.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { chmodSync, copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { drawn, enter, holds, Lab, nameOf, picture, READABLE, row, terminal, until, violations } from "./lab.mjs";

/** A program called `claude` in a directory of its own. */
function standIn(env, folder) {
  const dir = join(env.HOME, folder);
  mkdirSync(dir, { recursive: true });
  copyFileSync("/bin/sleep", join(dir, "claude"));
  return join(dir, "claude");
}

/** What Claude would write about itself. */
function say(env, pid, status) {
  const sessions = join(env.CLAUDE_CONFIG_DIR ?? join(env.HOME, ".claude"), "sessions");
  mkdirSync(sessions, { recursive: true });
  const start = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1).split(" ")[19];
  const file = { pid, procStart: start, sessionId: `00000000-0000-4000-8000-${String(pid).padStart(12, "0")}`, cwd: "/", version: "2.1.332", kind: "interactive", entrypoint: "cli", status };
  writeFileSync(join(sessions, `${pid}.json`), JSON.stringify(file));
}

const isClaude = (pid) => readFileSync(`/proc/${pid}/comm`, "utf8").trim() === "claude";

describe("without Claude Code", () => {
  let lab;
  before(async () => {
    lab = await Lab.start((env) => {
      const home = join(env.HOME, "bare");
      mkdirSync(home);
      const { CLAUDE_CONFIG_DIR: _, ...rest } = env;
      return { ...rest, HOME: home, PURPLEMUX_SHELL: "/bin/sh" };
    });
  });
  after(async () => lab?.stop());

  test("Y06 the page says so, terminals work, and it moves on by itself", async () => {
    const page = await lab.open();
    const heading = page.getByRole("heading", { name: "Claude is not installed" });
    await heading.waitFor();
    await page.getByText(/^tmux 3/).waitFor();
    await page.getByText("Hooks file ready").waitFor();
    await page.getByText("npm install -g @anthropic-ai/claude-code").waitFor();
    assert.deepEqual(await violations(page), []);
    await picture(page, "not-installed");
    await page.getByRole("button", { name: "Check again" }).click();
    await holds("the screen", () => heading.isVisible(), 500);

    // (a) The command is typed into a terminal, and running it is left to the person.
    await page.getByRole("button", { name: "Open a terminal with this command" }).click();
    await heading.waitFor({ state: "detached" });
    await page.locator("[data-terminal][data-live=true]").waitFor();
    const [item] = await until("tab", async () => {
      const items = JSON.parse(await lab.cli("status", "--json"));
      return items.length === 1 ? items : null;
    });
    const socket = JSON.parse(await lab.cli("tab", "create", "-t", "terminal", "--json")).tmux.socket;
    await until("command on the prompt", async () => (await lab.screen({ socket, session: item.tab })).includes("npm install -g @anthropic-ai/claude-code"));
    for (const { tab } of JSON.parse(await lab.cli("status", "--json"))) await lab.cli("tab", "close", tab, "--force");
    await page.reload();
    await heading.waitFor();

    // (b) Installed, not started yet.
    standIn(lab.env, ".local/bin");
    await heading.waitFor({ state: "detached" });
    await page.getByText("Claude Code is installed and has not been started yet.").waitFor();

    // (c) Its directory is there: as usual.
    mkdirSync(join(lab.env.HOME, ".claude"));
    await until("the usual page", async () => {
      await page.reload();
      await page.getByRole("button", { name: /Start Claude here/ }).waitFor();
      return (await page.getByText("has not been started yet").count()) === 0;
    });
    assert.deepEqual(page.faults, []);
  });
});

describe("with sessions elsewhere", () => {
  let lab;
  const ours = [];
  before(async () => (lab = await Lab.start()));
  after(async () => {
    for (const end of ours) end();
    await lab?.stop();
  });

  test("N05 a session in a tmux of the person's own is shown and opened there, one in no tmux says where it is", async () => {
    const claude = standIn(lab.env, "stand-in");
    const socket = join(lab.env.HOME, "own.sock");
    const tmux = (...args) => execFileSync("tmux", ["-S", socket, ...args], { env: { ...lab.env, TERM: "xterm" }, encoding: "utf8" }).trim();
    tmux("-f", "/dev/null", "new-session", "-d", "-s", "main", "-x", "100", "-y", "30", "sh", "-c", `echo this is their own; exec ${claude} 600`);
    ours.push(() => tmux("kill-server"));
    const inTmux = Number(tmux("list-panes", "-F", "#{pane_pid}"));
    const plain = spawn(claude, ["600"], { env: lab.env, cwd: "/", stdio: "ignore" });
    ours.push(() => plain.kill());
    await until("both run", () => isClaude(inTmux) && isClaude(plain.pid));
    say(lab.env, inTmux, "busy");
    say(lab.env, plain.pid, "idle");

    const page = await lab.open({ flags: READABLE });
    const tree = page.getByRole("tree", { name: "Sessions" });
    await tree.getByRole("treeitem", { name: /Elsewhere on this machine/ }).waitFor();
    const items = await until("both listed", async () => {
      const items = JSON.parse(await lab.cli("status", "--json"));
      return items.length === 2 ? items : null;
    });
    const idOf = (pid) => items.find((item) => item.pid === pid).id;

    await row(page, { id: idOf(inTmux) }).click();
    await terminal(page, { id: idOf(inTmux) });
    await until("their screen", async () => (await drawn(page)).includes("this is their own"));
    await picture(page, "elsewhere");
    await row(page, { id: idOf(plain.pid) }).click();
    await page.getByText("This session runs outside purplemux.").waitFor();
    assert.deepEqual(await violations(page), []);

    // A phone has the same group.
    await page.setViewportSize({ width: 390, height: 800 });
    await page.getByRole("button", { name: "Back to the sessions" }).click();
    await page.getByRole("heading", { name: /Elsewhere on this machine/ }).waitFor();
    await picture(page, "elsewhere-phone");
    assert.deepEqual(page.faults, []);
  });

  test("Y07 a Claude that starts and ends in a tab is seen by its title, and no badge is touched", async () => {
    const page = await lab.open({ flags: READABLE });
    let flying = 0;
    let most = 0;
    let asked = 0;
    const isCheck = (request) => request.url().includes("/api/check-claude?tab=");
    page.on("request", (request) => {
      if (!isCheck(request)) return;
      asked += 1;
      flying += 1;
      most = Math.max(most, flying);
    });
    const landed = (request) => (flying -= isCheck(request) ? 1 : 0);
    page.on("requestfinished", landed);
    page.on("requestfailed", landed);

    const tab = await lab.tab("terminal", 0);
    await row(page, tab).click();
    await terminal(page, tab);
    await until("prompt", async () => /lab[#$]/.test(await drawn(page)));
    const claude = standIn(lab.env, "stand-in-tab");
    chmodSync(claude, 0o755);
    const before = asked;
    await enter(page, `${claude} 600`);
    await until("its presence", async () => (await lab.item(tab.id)).presence === "starting", 7500);
    await until("question", () => asked > before);
    assert.equal((await lab.item(tab.id)).state, null);
    assert.match(await nameOf(row(page, tab)), /Claude is starting/);

    await page.locator(".xterm-helper-textarea").focus();
    await page.keyboard.press("Control+c");
    await until("its end", async () => ["none", "gone"].includes((await lab.item(tab.id)).presence), 7500);
    // The pair of command and path changes by a mere change of directory as well.
    const again = asked;
    await enter(page, "cd /tmp");
    await until("question", () => asked > again);
    assert.equal((await lab.item(tab.id)).state, null);
    assert.equal(most, 1, "one question in flight");
    assert.deepEqual(page.faults, []);
  });
});
