// One truth in every place: what ten recorded sessions said is said again, step by step, by ten programs called claude
// in ten tabs, and after every step sidebar, tab, workspace, bell, title, HTTP API and command line are compared; the
// page's own places in every frame between as well.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { Lab, until } from "./lab.mjs";

const RECORDINGS = join(dirname(dirname(dirname(fileURLToPath(import.meta.url)))), "wire/tests/recordings");
const CHOSEN = ["s02_simple", "s03_bash_approve", "s04_deny", "s06c_esc_running_tool", "s07_ask", "s08_plan", "s09d_bg_bash", "s12a_errors", "s14_queue", "s28_parallel_perms"];
/** The most urgent first. */
const ROLL_UP = ["needs-input", "failed", "review", "busy", "unknown", "idle"];

let lab;
before(async () => (lab = await Lab.start()));
after(async () => lab?.stop());

const lines = (file) => readFileSync(file, "utf8").split("\n").filter((line) => line !== "").map((line) => JSON.parse(line));

/** What the recorded Claude wrote and what its hooks said, in its order of time. */
function steps(recording) {
  const files = lines(join(RECORDINGS, recording, "sessions.jsonl")).filter(({ file, value }) => /^\d+\.json$/.test(file) && value?.pid !== undefined);
  const { pid } = files[0].value;
  const written = files.filter(({ value }) => value.pid === pid).map(({ ts, value }) => ({ ts, file: value }));
  const hooks = lines(join(RECORDINGS, recording, "hooks.jsonl")).map(({ ts, input }) => ({ ts, hook: input }));
  return [...written, ...hooks].sort((a, b) => a.ts - b.ts);
}

/** A tab in which a program called claude lives, and its way to say what the recorded one said. */
async function player(claude, recording) {
  const tab = await lab.tab("terminal", 0);
  await until("a prompt", async () => /lab[#$]/.test(await lab.screen(tab)));
  await lab.cli("tab", "send", tab.id, `exec ${claude} 900`);
  const pid = await until("its process", () => {
    const pane = execFileSync("tmux", ["-S", tab.socket, "list-panes", "-t", `=${tab.session}:`, "-F", "#{pane_pid}"], { encoding: "utf8" }).trim();
    return readFileSync(`/proc/${pane}/comm`, "utf8").trim() === "claude" ? pane : null;
  });
  const start = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1).split(" ")[19];
  return { tab, pid: Number(pid), start, left: steps(recording) };
}

const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
const sleptNs = () => BigInt(Math.round(Number(readFileSync("/proc/uptime", "utf8").split(" ")[0]) * 1e9)) - process.hrtime.bigint();

/** The next thing that this one says. */
async function play(one, port, token, slept) {
  const { file, hook } = one.left.shift();
  if (file !== undefined) {
    const at = Date.now();
    const value = { ...file, pid: one.pid, procStart: one.start, startedAt: at, updatedAt: at, ...(file.statusUpdatedAt === undefined ? {} : { statusUpdatedAt: at }) };
    writeFileSync(join(lab.env.CLAUDE_CONFIG_DIR ?? join(lab.env.HOME, ".claude"), "sessions", `${one.pid}.json`), JSON.stringify(value));
    return;
  }
  const answer = await fetch(`http://127.0.0.1:${port}/api/status/hook`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      "x-pmux-token": token,
      "x-pmux-event": hook.hook_event_name,
      "x-pmux-pid": String(one.pid),
      "x-pmux-start": one.start,
      "x-pmux-stamp": `${process.hrtime.bigint() + slept},${boot},${Date.now()}`,
      "x-pmux-id": `${one.pid}-${one.left.length}`,
    },
    body: JSON.stringify({ ...hook, transcript_path: undefined }),
  });
  assert.equal(answer.status, 204);
}

/** `/api/items` over the unix socket, as a program asks. */
const items = () =>
  new Promise((resolve, reject) => {
    const asking = request({ socketPath: join(lab.env.PURPLEMUX_HOME, "purplemux.sock"), path: "/api/items", headers: { host: "localhost" } }, (answer) => {
      let text = "";
      answer.on("data", (chunk) => (text += chunk));
      answer.on("end", () => resolve(JSON.parse(text).items));
    });
    asking.on("error", reject);
    asking.end();
  });

/** A state as the page names it. */
const WORDS = { idle: "Idle", busy: "Busy", unknown: "Unknown" };
function wordsOf(item) {
  if (item.state === null) return "Not running";
  if (item.state === "needs-input") return `Needs input, ${item.detail.ask?.kind === "startup" ? "start-up question" : item.detail.ask?.kind}`;
  return item.state === "review" ? `To review, ${item.detail.outcome}` : WORDS[item.state];
}
const urgency = (item) => (item.state === "review" && item.detail.outcome === "failed" ? "failed" : item.state);

/** Everything that the page says of it, at this moment. */
const onPage = () => {
  const label = (element) => element?.querySelector("[role=img]")?.getAttribute("aria-label") ?? null;
  const rows = [...document.querySelectorAll("[role=treeitem][data-tab]")];
  return {
    rows: Object.fromEntries(rows.map((row) => [row.dataset.tab, label(row)])),
    tabs: Object.fromEntries([...document.querySelectorAll("[role=tab][data-tab]")].map((tab) => [tab.dataset.tab, label(tab)])),
    workspace: label(document.querySelector("[role=treeitem].group")),
    bell: Number(/\d+$/.exec(document.querySelector(".bell")?.getAttribute("aria-label") ?? "")?.[0] ?? 0),
    // Without a connection the title says that, and counts nothing.
    title: document.title.startsWith("Offline") ? null : Number(/^\((\d+)\)/.exec(document.title)?.[1] ?? 0),
  };
};

test("L07 sidebar, tab, workspace, bell, title, HTTP API and command line say the same at every step", async (t) => {
  const folder = join(lab.env.HOME, "stand-in");
  mkdirSync(folder, { recursive: true });
  mkdirSync(join(lab.env.CLAUDE_CONFIG_DIR ?? join(lab.env.HOME, ".claude"), "sessions"), { recursive: true });
  const claude = join(folder, "claude");
  copyFileSync("/bin/sleep", claude);
  const players = [];
  for (const recording of CHOSEN) players.push(await player(claude, recording));

  const page = await lab.open({});
  await until("all rows", async () => (await page.locator("[role=treeitem][data-tab]").count()) === players.length);
  // In every frame the page's own places agree, whether or not anybody asks.
  await page.evaluate((source) => {
    const facts = new Function(`return (${source})()`);
    globalThis.apart = [];
    const look = () => {
      const { rows, tabs, workspace, bell, title } = facts();
      const labels = Object.values(rows);
      const asking = labels.filter((label) => /^Needs input|^To review/.test(label)).length;
      const order = ["Needs input", "To review", "Busy", "Unknown", "Idle"];
      const first = order.find((word) => labels.some((label) => label?.startsWith(word)));
      const said = order.find((word) => workspace?.startsWith(word));
      const same = JSON.stringify(rows) === JSON.stringify(Object.fromEntries(Object.keys(rows).map((id) => [id, tabs[id] ?? null])));
      if (!same || bell !== asking || (title !== null && title !== asking) || (first ?? "none") !== (said ?? "none")) globalThis.apart.push({ rows, tabs, workspace, bell, title });
      requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
  }, onPage.toString());

  const port = readFileSync(join(lab.env.PURPLEMUX_HOME, "port"), "utf8").trim();
  const token = readFileSync(join(lab.env.PURPLEMUX_HOME, "cli-token"), "utf8").trim();
  const slept = sleptNs();
  const seen = new Set();
  let played = 0;
  async function agree(after) {
    await until(`agreement after ${after}`, async () => {
      const [first, shown, cli, last] = [await items(), await page.evaluate(onPage), JSON.parse(await lab.cli("status", "--json")), await items()];
      const words = (list) => JSON.stringify(list.map((item) => [item.id, wordsOf(item), item.attention]).sort());
      // What changed while it was looked at is looked at again.
      if (words(first) !== words(last) || words(first) !== words(cli)) return false;
      for (const item of first) {
        seen.add(wordsOf(item));
        if (shown.rows[item.id] !== wordsOf(item) || shown.tabs[item.id] !== wordsOf(item)) throw new Error(`${item.id} is ${wordsOf(item)} and shown as ${JSON.stringify([shown.rows[item.id], shown.tabs[item.id]])}`);
      }
      const waiting = first.filter((item) => item.attention).length;
      assert.equal(waiting, first.filter((item) => item.state === "needs-input" || item.state === "review").length, "unknown is no attention");
      if (shown.bell !== waiting || shown.title !== waiting) throw new Error(`${waiting} wait, bell ${shown.bell}, title ${shown.title}`);
      const most = ROLL_UP.find((state) => first.some((item) => urgency(item) === state));
      const word = { "needs-input": "Needs input", failed: "To review", review: "To review" }[most] ?? WORDS[most] ?? "Not running";
      if (!shown.workspace.startsWith(word)) throw new Error(`the workspace says ${shown.workspace}, its most urgent row is ${most}`);
      return true;
    });
  }
  // One word of each in turn, so that every mixture comes up.
  for (let round = 0; players.some(({ left }) => left.length > 0); round += 1) {
    for (const one of players.filter(({ left }) => left.length > 0)) {
      await play(one, port, token, slept);
      played += 1;
      await agree(`step ${played}`);
    }
    // In the middle of it all the server starts anew; what was busy is unknown until it is looked at.
    if (round === 6) {
      await lab.stopServer();
      await lab.serve();
      await agree("the restart");
    }
  }
  assert.deepEqual(await page.evaluate(() => globalThis.apart.slice(0, 3)), []);
  t.diagnostic(`${played} steps of ${CHOSEN.length} recordings; shown: ${[...seen].sort().join("; ")}`);
  for (const state of ["Idle", "Busy", "Needs input, permission", "To review, finished"]) assert.ok(seen.has(state), `${state} never came up`);
  assert.deepEqual(page.faults, []);
});
