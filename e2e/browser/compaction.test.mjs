// A long compaction on a page whose clock is wrong. Time is compressed: the page's clock is Playwright's, and what the
// server says of the time is moved on by as much, so that both have lived through the same 160 seconds.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { drawn, enter, follow, Lab, READABLE, row, shown, terminal, until } from "./lab.mjs";

/** So far ahead of the server is the page's clock. */
const AHEAD_MS = 5 * 60_000;
/** The link is told to be alive at least so often. */
const STEP_MS = 10_000;

let lab;
before(async () => (lab = await Lab.start()));
after(async () => lab?.stop());

/** Puts `page` into a world whose time can be moved on; answers with what moves it. */
async function compressed(page) {
  await page.clock.install({ time: Date.now() + AHEAD_MS });
  let passedMs = 0;
  let told = null;
  let toPage = null;
  await page.routeWebSocket(/\/api\/status/, (socket) => {
    const server = socket.connectToServer();
    socket.onMessage((message) => server.send(message));
    server.onMessage((text) => {
      const message = JSON.parse(text);
      if ("now_ms" in message) {
        message.now_ms += passedMs;
        told = { epoch: message.epoch, rev: message.rev };
      }
      socket.send(JSON.stringify(message));
    });
    toPage = socket;
  });
  return async () => {
    passedMs += STEP_MS;
    await page.clock.fastForward(STEP_MS);
    toPage.send(JSON.stringify({ type: "heartbeat", ...told, now_ms: Date.now() + passedMs }));
  };
}

test("C04 a compaction of 160 s is busy and compacting throughout, and its time is right", async () => {
  const page = await lab.open({ flags: READABLE, signedIn: false });
  const tenSeconds = await compressed(page);
  await page.goto(await lab.link());
  await page.getByRole("heading", { name: "Sign in to purplemux" }).waitFor({ state: "detached" });
  const tab = await lab.tab("claude-code", 0);
  const named = (name) => row(page, tab).and(page.getByRole("treeitem", { name })).waitFor();
  await named("Idle");
  await row(page, tab).click();
  await terminal(page, tab);
  await until("Claude's box", async () => /manual mode|\? for shortcuts/.test(await drawn(page)));
  await enter(page, "say something to compact");
  await named("To review, finished");
  // Read: its end is on screen in a focused window.
  await named("Idle");
  await follow(page, tab);

  await enter(page, "/compact take 12 seconds");
  const compacting = async () => (await row(page, tab).innerText()).includes("Compacting context");
  await until("that it compacts", compacting);
  const chip = page.getByRole("button", { name: "Why this state?" });
  const seconds = async () => {
    const [, minutes = "0", rest] = /(?:(\d+)m )?(\d+)s/.exec(await chip.innerText()) ?? assert.fail(await chip.innerText());
    return Number(minutes) * 60 + Number(rest);
  };
  const begunMs = Date.now() - (await seconds()) * 1000;
  assert.ok(begunMs > Date.now() - 10_000, "a clock that is wrong by minutes does not count");
  for (let passed = STEP_MS; passed <= 160_000; passed += STEP_MS) {
    await tenSeconds();
    assert.ok(await compacting(), `after ${passed} ms: ${await row(page, tab).innerText()}`);
  }
  const lived = 160 + (Date.now() - begunMs) / 1000;
  const said = await until("the time that has passed", async () => {
    const said = await seconds();
    return said >= 160 && said;
  });
  assert.ok(Math.abs(said - lived) <= 4, `${said} s are said of ${lived} s`);
  assert.match(await row(page, tab).innerText(), /\b2m\b/);
  assert.deepEqual(await shown(page), ["Idle", "Busy"], "one badge, and never not live");

  // Its end gives back what was there before.
  await until("its end", async () => (await lab.item(tab.id)).state !== "busy");
  await named("Idle");
  assert.deepEqual(await shown(page), ["Idle", "Busy", "Idle"]);
  assert.deepEqual(page.faults, []);
});
