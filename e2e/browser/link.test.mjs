// A network that goes away without a word: between the page and the server stands a proxy of this test's own that
// stops forwarding and closes nothing, as a router does that has forgotten a connection.

import assert from "node:assert/strict";
import { connect, createServer } from "node:net";
import { after, before, test } from "node:test";
import { Lab, picture, READABLE, row, until } from "./lab.mjs";

/** The page's promise. */
const NOT_LIVE_MS_MAX = 15_000;
/** What the person is told of again once the network is back. */
const FRESH_MS_MAX = 2_000;
/** The server hears nothing for 35 s, and then some for its own look. */
const FREED_MS_MAX = 50_000;

class Network {
  #server = null;
  #pairs = new Set();
  #up = true;

  /** Listens; what comes is sent on to this port. */
  async to(port) {
    this.#server = createServer((page) => this.#join(page, port));
    await new Promise((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return this.#server.address().port;
  }

  #join(page, port) {
    const pair = { page, far: null, lost: !this.#up, freed: false };
    this.#pairs.add(pair);
    page.on("error", () => {});
    if (pair.lost) return;
    pair.far = connect({ host: "127.0.0.1", port });
    pair.far.on("error", () => {});
    page.on("data", (bytes) => void (pair.lost || pair.far.write(bytes)));
    // What the server still sends is lost on its way.
    pair.far.on("data", (bytes) => void (pair.lost || page.write(bytes)));
    page.on("close", () => void (pair.lost || pair.far.destroy()));
    pair.far.on("close", () => {
      pair.freed = true;
      if (!pair.lost) page.destroy();
    });
  }

  /** Nothing passes any more, and nobody is told. Connections of now stay dead for ever. */
  down() {
    this.#up = false;
    for (const pair of this.#pairs) pair.lost = true;
  }

  up() {
    this.#up = true;
  }

  /** Connections that the server still keeps although nothing passes on them. */
  kept() {
    return [...this.#pairs].filter((pair) => pair.lost && pair.far !== null && !pair.freed).length;
  }

  close() {
    for (const { page, far } of this.#pairs) {
      page.destroy();
      far?.destroy();
    }
    this.#server?.close();
  }
}

let lab;
const network = new Network();
/** Sends the browser by way of the network, under the server's own name. */
let way;
before(async () => {
  lab = await Lab.start();
  const port = new URL(await lab.link()).port;
  way = `--host-resolver-rules=MAP 127.0.0.1:${port} 127.0.0.1:${await network.to(port)}`;
});
after(async () => {
  network.close();
  await lab?.stop();
});

const offline = (page) => page.getByRole("alert").filter({ hasText: "Connection lost" });

/** As the browser says it when the machine has another network. */
const anotherNetwork = (page) => page.evaluate(() => dispatchEvent(new Event("online")));

test("L02 a link that is cut without a word is said to be not live, and comes back with the truth", async () => {
  const page = await lab.open({ flags: [...READABLE, way] });
  const tab = await lab.tab("claude-code", 0);
  await row(page, tab).and(page.getByRole("treeitem", { name: "Idle" })).waitFor();
  const colours = () => page.locator(".glyph").evaluateAll((glyphs) => glyphs.map((glyph) => getComputedStyle(glyph).color));
  const grey = () => page.evaluate(() => {
    const probe = document.createElement("i");
    probe.style.color = "var(--c-gray-st)";
    document.body.append(probe);
    const { color } = getComputedStyle(probe);
    probe.remove();
    return color;
  });
  const lost = offline(page);

  const cut = performance.now();
  network.down();
  // Meanwhile something happens that the page can't know.
  const other = await lab.tab("terminal", 1);
  await lost.waitFor();
  const took = performance.now() - cut;
  assert.ok(took < NOT_LIVE_MS_MAX + 1_000, `said after ${took} ms`);
  assert.match(await page.title(), /^Offline/);
  const wanted = await grey();
  await until("grey badges", async () => (await colours()).every((colour) => colour === wanted));
  assert.equal(await row(page, other).count(), 0);
  await picture(page, "l02-half-open");

  await until("server that has freed the old connections", async () => network.kept() === 0, FREED_MS_MAX);

  network.up();
  const back = performance.now();
  await anotherNetwork(page);
  await row(page, other).waitFor();
  await lost.waitFor({ state: "detached" });
  const fresh = performance.now() - back;
  assert.ok(fresh < 5 * FRESH_MS_MAX, `fresh after ${fresh} ms`);
  assert.doesNotMatch(await page.title(), /^Offline/);
  // What went on meanwhile is simply there; nobody is alarmed about it.
  const alarms = await page.getByRole("alert").allTextContents();
  assert.deepEqual(alarms.filter((text) => text.trim() !== ""), []);
  assert.deepEqual(page.faults, []);
});

test("L04 a session that was closed elsewhere while the page was away leaves no ghost", async () => {
  const page = await lab.open({ flags: [...READABLE, way] });
  const tab = await lab.tab("claude-code", 2);
  await row(page, tab).and(page.getByRole("treeitem", { name: "Idle" })).waitFor();
  await until("Claude's box", async () => /manual mode|\? for shortcuts/.test(await lab.screen(tab)));
  await lab.cli("tab", "send", tab.id, "bash: touch no.txt ;; say finished");
  await row(page, tab).and(page.getByRole("treeitem", { name: "Needs input, permission" })).waitFor();
  await until("count in the title", async () => (await page.title()).startsWith("(1) "));

  network.down();
  await offline(page).waitFor();
  await lab.cli("tab", "close", "--force", tab.id);
  network.up();
  await anotherNetwork(page);
  await offline(page).waitFor({ state: "detached" });
  await row(page, tab).waitFor({ state: "detached" });
  await until("title without a count", async () => !/^\(|^Offline/.test(await page.title()));
  // Neither a row nor its workspace speaks of it any more.
  assert.equal(await page.getByRole("treeitem", { name: /needs input/i }).count(), 0);
  assert.equal(await page.locator(`[role=tab][data-tab="${tab.id}"]`).count(), 0);
  assert.deepEqual(page.faults, []);
});
