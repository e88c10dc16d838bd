// Panes and workspaces on the page, gesture by gesture, in a real Chromium: split, draw a seam, drag a tab, zoom, close and
// undo, workspaces by dialog, menu and drag; two browsers see one layout and look at it each in their own way.

import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { drawn, holds, Lab, nameOf, picture, READABLE, row, terminal, until, violations } from "./lab.mjs";
import { finish, say, standIn } from "./standin.mjs";

/** A layout change on another device is to be there within 0.1 s; five times that on a loaded machine. */
const CHANGE_MS_MAX = 500;
/** A review counts as seen after this long on screen. */
const SEEN_MS = 2000;
/** Sizes are told this often at most while a seam is drawn. */
const SIZES_PER_S_MAX = 4;

let lab;
before(async () => (lab = await Lab.start()));
after(async () => lab?.stop());
/** Leaves nothing to the next test but one workspace with one empty pane. */
afterEach(async () => {
  const page = await lab.open();
  for (const item of JSON.parse(await lab.cli("status", "--json"))) if (item.tab === item.id) await lab.cli("tab", "close", item.id, "--force");
  const spaces = await layout(page);
  for (const { id } of spaces.slice(1)) await ask(page, "DELETE", `/api/workspaces/${id}?force=1`);
  for (const pane of panesIn(spaces[0].panes).slice(1)) await ask(page, "POST", `/api/workspaces/${spaces[0].id}/panes`, { op: "close", pane: pane.id });
  await page.context().browser().close();
});

/** As the page asks, with its own login. */
const ask = (page, method, path, body) =>
  page.evaluate(
    async ([how, where, what]) => {
      const { secret } = JSON.parse(localStorage.getItem("purplemux.secret"));
      const response = await fetch(where, { method: how, headers: { "x-pmux-secret": secret, "content-type": "application/json" }, body: what === undefined ? null : JSON.stringify(what) });
      if (!response.ok) throw new Error(`${how} ${where}: ${response.status} ${await response.text()}`);
      return response.status === 204 ? null : response.json();
    },
    [method, path, body],
  );
const layout = (page) => ask(page, "GET", "/api/workspaces");
const panesIn = (tree) => (tree.pane === undefined ? tree.split.parts.flatMap(panesIn) : [tree.pane]);
/** The panes of the first workspace as the server has them: tabs by pane. */
const tabsByPane = async (page) => panesIn((await layout(page))[0].panes).map((pane) => pane.tabs);

const bars = (page) => page.locator("[data-bar]");
const panels = (page) => page.locator("[data-panel]");
/** Between panes; the sidebar has an edge of its own. */
const seams = (page) => page.locator("[role=separator].seam");
const tabIn = (page, tab) => page.locator(`[role=tab][data-tab="${tab.id}"]`);
const liveIn = (page, n) => panels(page).nth(n).locator("[data-live=true]");
/** Ids of the terminals that are on the page. */
const terminals = (page) => page.locator("[data-terminal]").evaluateAll((all) => all.map((element) => element.dataset.terminal));

async function menu(page, bar, name) {
  await bars(page).nth(bar).getByRole("button", { name: /^More for this/ }).click();
  await page.getByRole("menuitem", { name }).click();
}

/** Two panes beside each other: one tab at the left, two at the right. */
async function twoPanes() {
  const page = await lab.open({ flags: READABLE, viewport: { width: 1440, height: 900 } });
  const tabs = [await lab.tab("terminal", 0), await lab.tab("terminal", 1), await lab.tab("terminal", 2)];
  await row(page, tabs[0]).click();
  await terminal(page, tabs[0]);
  const [space] = await layout(page);
  const { pane } = await ask(page, "POST", `/api/workspaces/${space.id}/panes`, { op: "split", pane: panesIn(space.panes)[0].id, dir: "right", tab: tabs[1].id });
  await ask(page, "PATCH", `/api/tabs/${tabs[2].id}`, { pane, index: 1 });
  await liveIn(page, 1).waitFor();
  assert.deepEqual(await tabsByPane(page), [[tabs[0].id], [tabs[1].id, tabs[2].id]]);
  return { page, tabs, space: space.id };
}

/** From the middle of one thing to a place in another, in steps as a hand does it. */
async function drag(page, from, to, { x = 0.5, y = 0.5, release = true } = {}) {
  const [a, b] = [await from.boundingBox(), await to.boundingBox()];
  await page.mouse.move(a.x + a.width / 2, a.y + a.height / 2);
  await page.mouse.down();
  await page.mouse.move(b.x + b.width * x, b.y + b.height * y, { steps: 12 });
  if (release) await page.mouse.up();
}

/** Nothing wrong for anybody, in both themes; and pictures of it. */
async function pictures(page, name) {
  for (const scheme of ["dark", "light"]) {
    await page.emulateMedia({ colorScheme: scheme });
    assert.deepEqual(await violations(page), [], `${name}, ${scheme}`);
    await picture(page, `${name}-${scheme}`);
  }
}

/** A mark on the node itself: it is there for as long as the terminal is not made anew. */
const brand = (page, tab) => page.locator(`[data-terminal="${tab.id}"]`).evaluate((element) => void (element.branded = true));
const isBranded = (page, tab) => page.locator(`[data-terminal="${tab.id}"]`).evaluate((element) => element.branded === true);

test("a pane splits right and down, each with a bar and a terminal of its own, and the first keeps its own", async () => {
  const page = await lab.open({ flags: READABLE, viewport: { width: 1440, height: 900 } });
  const tab = await lab.tab("terminal", 0);
  await row(page, tab).click();
  await terminal(page, tab);
  await brand(page, tab);

  await bars(page).getByRole("button", { name: "Split right" }).click();
  await until("two panes", async () => (await panels(page).count()) === 2);
  const empty = panels(page).nth(1);
  await empty.getByRole("heading", { name: "Nothing is open in this pane" }).waitFor();
  await until("focus in the new pane", () => empty.evaluate((element) => element.contains(document.activeElement)));
  await pictures(page, "panes-empty");
  await empty.getByRole("button", { name: /Open a terminal/ }).click();
  await liveIn(page, 1).waitFor();
  // What is typed now goes to the new one.
  await page.keyboard.type("echo here-$((1+1))\n");
  await until("output in the right pane", async () => (await panels(page).nth(1).locator(".xterm-rows").textContent()).includes("here-2"));
  assert.ok(!(await panels(page).nth(0).locator(".xterm-rows").textContent()).includes("here-2"));

  await menu(page, 1, "Split down");
  await until("three panes", async () => (await panels(page).count()) === 3);
  await panels(page).nth(2).getByRole("button", { name: /Open a terminal/ }).click();
  await liveIn(page, 2).waitFor();
  const shape = (await layout(page))[0].panes;
  assert.equal(shape.split.dir, "right");
  assert.equal(shape.split.parts[1].split.dir, "down");
  assert.ok(await isBranded(page, tab), "the first terminal was made anew");
  // Only what is seen is connected, and each has the size of its own pane.
  assert.equal((await terminals(page)).length, 3);
  const [one, two, three] = await Promise.all([0, 1, 2].map((n) => panels(page).nth(n).boundingBox()));
  assert.ok(one.x + one.width <= two.x && Math.abs(two.x - three.x) < 1 && two.y + two.height < three.y);
  await until("size of the left one", async () => {
    const cols = Number(/(\d+) × /.exec(await panels(page).nth(0).locator("footer").textContent())?.[1]);
    return Number((await lab.screen(tab)).length) >= 0 && cols > 40 && cols < 100;
  });
  await pictures(page, "panes-three");
  assert.deepEqual(page.faults, []);
});

test("a seam is drawn by the pointer and moved by keys, told at most four times a second, and made equal by Enter and a double click", async () => {
  const { page } = await twoPanes();
  const seam = seams(page);
  const now = async () => Number(await seam.getAttribute("aria-valuenow"));
  const kept = async () => (await layout(page))[0].panes.split.sizes;
  assert.equal(await now(), 50);
  const told = [];
  page.on("request", (request) => {
    if (/\/panes$/.test(request.url())) told.push({ at: performance.now(), body: request.postDataJSON() });
  });

  const box = await seam.boundingBox();
  await page.mouse.move(box.x, box.y + 200);
  await page.mouse.down();
  const begin = performance.now();
  // A second of slow drawing.
  for (let step = 1; step <= 50; step += 1) {
    await page.mouse.move(box.x - 4 * step, box.y + 200);
    await page.waitForTimeout(16);
  }
  // It follows the pointer without waiting for anybody.
  assert.ok(Math.abs((await seam.boundingBox()).x - (box.x - 200)) < 3);
  await page.mouse.up();
  const took = (performance.now() - begin) / 1000;
  await until("last size", async () => Math.abs((await kept())[0] / 10 - (await now())) <= 1 && (await now()) < 45);
  assert.ok(told.length >= 2 && told.length <= Math.ceil(took * SIZES_PER_S_MAX) + 2, `told ${told.length} times in ${took} s`);
  for (const { body } of told) assert.equal(body.sizes.reduce((sum, size) => sum + size, 0), 1000);

  // Keys: 16 px, then all equal again.
  await seam.focus();
  const before = (await seam.boundingBox()).x;
  await page.keyboard.press("ArrowRight");
  await until("16 px", async () => Math.abs((await seam.boundingBox()).x - before - 16) <= 1);
  await page.keyboard.press("ArrowDown");
  assert.ok(Math.abs((await seam.boundingBox()).x - before - 16) <= 1, "an arrow along the seam does nothing");
  await page.keyboard.press("Enter");
  await until("equal", async () => (await now()) === 50 && (await kept()).join() === "500,500");
  // Never smaller than what a hand can use.
  const middle = await seam.boundingBox();
  await page.mouse.move(middle.x, middle.y + 100);
  await page.mouse.down();
  await page.mouse.move(middle.x - 2000, middle.y + 100, { steps: 5 });
  await page.mouse.up();
  await until("least width", async () => Math.abs((await panels(page).nth(0).boundingBox()).width - 200) < 3);
  await page.mouse.dblclick((await seam.boundingBox()).x, middle.y + 100);
  await until("equal", async () => (await kept()).join() === "500,500");
  await until("drawn so", async () => (await now()) === 50);
  assert.deepEqual(page.faults, []);
});

test("a tab is dragged to another pane, within its bar, to an edge, and back by Escape; its terminal is not made anew", async () => {
  const { page, tabs } = await twoPanes();
  const [one, two, three] = tabs;
  await tabIn(page, three).click();
  await liveIn(page, 1).waitFor();
  await until("third terminal", async () => (await terminals(page)).includes(three.id));
  await brand(page, three);

  // A drag that is given up changes nothing.
  await drag(page, tabIn(page, three), bars(page).nth(0), { x: 0.9, release: false });
  await page.locator(".ghost").waitFor();
  await picture(page, "panes-dragging");
  await page.keyboard.press("Escape");
  await page.locator(".ghost").waitFor({ state: "detached" });
  await page.mouse.up();
  assert.deepEqual(await tabsByPane(page), [[one.id], [two.id, three.id]]);

  // Into the other bar, at the front.
  await drag(page, tabIn(page, three), tabIn(page, one), { x: 0.1 });
  await until("moved", async () => JSON.stringify(await tabsByPane(page)) === JSON.stringify([[three.id, one.id], [two.id]]));
  await until("selected there", async () => (await tabIn(page, three).getAttribute("aria-selected")) === "true");
  assert.ok(await isBranded(page, three), "its terminal was made anew");
  await liveIn(page, 0).waitFor();

  // Within the bar.
  await drag(page, tabIn(page, three), tabIn(page, one), { x: 0.9 });
  await until("reordered", async () => JSON.stringify(await tabsByPane(page)) === JSON.stringify([[one.id, three.id], [two.id]]));
  assert.ok(await isBranded(page, three), "its terminal was made anew");

  // To the lower edge of the right pane: a pane of its own.
  await drag(page, tabIn(page, three), panels(page).nth(1), { y: 0.9 });
  await until("three panes", async () => JSON.stringify(await tabsByPane(page)) === JSON.stringify([[one.id], [two.id], [three.id]]));
  await until("drawn", async () => (await panels(page).count()) === 3);
  assert.ok(await isBranded(page, three), "its terminal was made anew");

  // Onto the middle of another pane; the pane that it leaves empty goes.
  await drag(page, tabIn(page, three), panels(page).nth(0), { x: 0.3, y: 0.3 });
  await until("two panes", async () => JSON.stringify(await tabsByPane(page)) === JSON.stringify([[one.id, three.id], [two.id]]));
  await until("drawn", async () => (await panels(page).count()) === 2);
  assert.ok(await isBranded(page, three), "its terminal was made anew");
  assert.deepEqual(page.faults, []);
});

test("without a pointer: the menu moves a tab, Shift+F10 opens it, and focus goes from pane to pane", async () => {
  const { page, tabs } = await twoPanes();
  const [one, two, three] = tabs;
  await tabIn(page, three).focus();
  await page.keyboard.press("Shift+F10");
  await page.getByRole("menuitem", { name: "Move to pane…" }).waitFor();
  assert.deepEqual(await violations(page), []);
  await page.getByRole("menuitem", { name: "Move to pane…" }).press("Enter");
  await page.getByRole("menuitem", { name: /^1: / }).press("Enter");
  await until("moved", async () => JSON.stringify(await tabsByPane(page)) === JSON.stringify([[one.id, three.id], [two.id]]));
  await until("keys in its terminal", () => page.locator(`[data-terminal="${three.id}"]`).evaluate((element) => element.contains(document.activeElement)));
  assert.equal(await row(page, three).getAttribute("aria-selected"), "true");
  // On screen in the other pane.
  assert.ok(await row(page, two).evaluate((element) => element.classList.contains("shown")));

  await tabIn(page, three).focus();
  await page.keyboard.press("Shift+F10");
  await page.getByRole("menuitem", { name: "Move to pane…" }).press("Enter");
  await page.getByRole("menuitem", { name: "New pane below" }).press("Enter");
  await until("a pane of its own", async () => JSON.stringify(await tabsByPane(page)) === JSON.stringify([[one.id], [three.id], [two.id]]));

  // A click into a terminal gives its pane the keys, and the address follows.
  await panels(page).nth(2).locator(".xterm-screen").click();
  await until("address", () => page.url().endsWith(`#/t/${two.id}`));
  assert.match(await bars(page).nth(2).getAttribute("class"), /active/);
  assert.equal(await row(page, two).getAttribute("aria-selected"), "true");
  assert.deepEqual(page.faults, []);
});

test("keys split and go from pane to pane from inside a terminal, and no program hears of it", async () => {
  const { page, tabs } = await twoPanes();
  const [one, two] = tabs;
  const keysIn = (tab) => until(`keys in ${tab.id}`, () => page.locator(`[data-terminal="${tab.id}"]`).evaluate((element) => element.contains(document.activeElement)));
  await row(page, one).click();
  await keysIn(one);
  await page.keyboard.press("Alt+Shift+ArrowRight");
  await keysIn(two);
  await page.keyboard.press("Alt+Shift+ArrowUp");
  await page.keyboard.press("Alt+Shift+ArrowLeft");
  await keysIn(one);
  await page.keyboard.press("Alt+Minus");
  await until("a pane below", async () => (await layout(page))[0].panes.split.parts[0].split?.dir === "down" && (await panels(page).count()) === 3);
  // The new pane has the keys, so it is the one that is split.
  await until("keys in the new pane", () => panels(page).nth(1).evaluate((element) => element.contains(document.activeElement)));
  await page.keyboard.press("Alt+Backslash");
  await until("a fourth pane", async () => (await panels(page).count()) === 4);
  assert.equal((await layout(page))[0].panes.split.parts[0].split.parts[1].split.dir, "right");
  for (const tab of [one, two]) assert.match((await lab.screen(tab)).trim(), /^lab[#$]$/);
  assert.deepEqual(page.faults, []);
});

test("a pane is zoomed and closed, closing a pane's last tab closes it, and Undo brings the tab back", async () => {
  const { page, tabs } = await twoPanes();
  const [one, two, three] = tabs;
  await menu(page, 1, "Zoom this pane");
  await until("one pane", async () => (await panels(page).count()) === 1);
  await until("the hidden one is not connected", async () => (await terminals(page)).join() === two.id);
  await picture(page, "panes-zoomed");
  // The device remembers it.
  await page.reload();
  await terminal(page, two);
  assert.equal(await panels(page).count(), 1);
  // A row of another pane takes the zoom along.
  await row(page, one).click();
  await terminal(page, one);
  assert.equal(await panels(page).count(), 1);
  await bars(page).getByRole("button", { name: "Show all panes" }).click();
  await until("both panes", async () => (await panels(page).count()) === 2);

  // The last tab takes its pane with it.
  await tabIn(page, one).focus();
  await page.keyboard.press("Delete");
  await until("one pane", async () => (await panels(page).count()) === 1);
  await row(page, one).waitFor({ state: "detached" });
  const undo = page.getByRole("status").filter({ hasText: "Closed" });
  await undo.waitFor();
  await pictures(page, "panes-undo");
  await undo.getByRole("button", { name: "Undo" }).click();
  await terminal(page, one);
  await undo.waitFor({ state: "detached" });
  assert.match(await lab.screen(one), /[#$]/);

  // A pane that is closed leaves its tabs to its neighbour.
  await menu(page, 0, "Split right");
  await until("two panes", async () => (await panels(page).count()) === 2);
  await panels(page).nth(1).getByRole("button", { name: "Close pane" }).click();
  await until("one pane", async () => (await tabsByPane(page)).length === 1 && (await panels(page).count()) === 1);
  assert.deepEqual((await tabsByPane(page))[0].toSorted(), [one.id, two.id, three.id].toSorted());
  assert.deepEqual(page.faults, []);
});

test("workspaces are made, named, coloured, put under headings, ordered by menu and drag, folded, and removed with what is inside", async () => {
  const page = await lab.open({ flags: READABLE, viewport: { width: 1440, height: 900 } });
  const tab = await lab.tab("terminal", 0);
  await row(page, tab).waitFor();
  const space = (name) => page.locator("[role=treeitem][data-space]").filter({ hasText: name });
  const order = () => page.locator("[role=treeitem][data-space] .name").allTextContents();
  const make = async (name, more = async () => {}) => {
    await page.getByRole("complementary").getByRole("button", { name: "New tab" }).click();
    await page.getByRole("menuitem", { name: "New workspace" }).click();
    const dialog = page.getByRole("dialog", { name: "New workspace" });
    await dialog.getByLabel("Name").fill(name);
    await more(dialog);
    await dialog.getByRole("button", { name: "Create" }).click();
    await space(name).waitFor();
  };
  await make("Storefront", async (dialog) => {
    await dialog.getByLabel("Directory of new tabs").fill(lab.projects[1]);
    await dialog.getByLabel("Heading").fill("Work");
    await dialog.getByRole("radio", { name: "Teal" }).check();
    await pictures(page, "workspace-new");
  });
  // It is on the desk at once, empty, in its directory.
  await page.getByRole("heading", { name: "Storefront has no sessions yet" }).waitFor();
  await page.getByRole("button", { name: /Open a terminal/ }).click();
  await until("a terminal in its directory", async () => {
    const [, made] = await layout(page);
    const item = made.tabs.length === 1 ? await lab.item(made.tabs[0]) : null;
    return item?.cwd === lab.projects[1];
  });
  await make("Blog");
  await page.locator(".heading", { hasText: "Work" }).waitFor();
  const [first] = await order();

  // By menu.
  await space("Blog").focus();
  await page.keyboard.press("Shift+F10");
  await page.getByRole("menuitem", { name: "Move up" }).press("Enter");
  await until("moved up", async () => (await order()).join() === ["Blog", first, "Work, Storefront"].join());
  // By drag, under the other's heading.
  await drag(page, space("Blog"), space("Storefront"), { y: 0.1 });
  await until("moved by drag", async () => (await order()).join() === [first, "Work, Blog", "Work, Storefront"].join());
  assert.equal((await layout(page)).find(({ name }) => name === "Blog").group, "Work");

  // Edited in one dialog.
  await space("Blog").focus();
  await page.keyboard.press("F2");
  const dialog = page.getByRole("dialog", { name: "Edit workspace" });
  assert.equal(await dialog.getByLabel("Heading").inputValue(), "Work");
  await dialog.getByLabel("Name").fill("Notes");
  await dialog.getByLabel("Heading").fill("");
  await dialog.getByRole("radio", { name: "Pink" }).check();
  await dialog.getByRole("button", { name: "Save" }).click();
  await until("edited", async () => {
    const found = (await layout(page)).find(({ name }) => name === "Notes");
    return found?.color === "pink" && found.group === null;
  });
  await pictures(page, "workspaces");

  // A tab goes to another workspace by drag.
  await drag(page, row(page, tab), space("Notes"));
  await until("tab in the other workspace", async () => (await layout(page)).find(({ name }) => name === "Notes").tabs.join() === tab.id);
  await terminal(page, tab);

  // Folded, also after a reload.
  await space("Storefront").click();
  await until("folded", async () => (await space("Storefront").getAttribute("aria-expanded")) === "false");
  await page.reload();
  await until("still folded", async () => (await space("Storefront").getAttribute("aria-expanded")) === "false");

  // Removing says what is inside, and can be undone.
  await space("Storefront").click({ button: "right" });
  await page.getByRole("menuitem", { name: "Remove workspace" }).click();
  const question = page.getByRole("alertdialog", { name: "Remove Storefront?" });
  await question.getByText(/It holds one tab/).waitFor();
  await pictures(page, "workspace-remove");
  await question.getByRole("button", { name: "Remove and close its tabs" }).click();
  await space("Storefront").waitFor({ state: "detached" });
  await page.getByRole("status").filter({ hasText: "Removed Storefront" }).getByRole("button", { name: "Undo" }).click();
  await space("Storefront").waitFor();
  assert.equal((await layout(page)).find(({ name }) => name === "Storefront").tabs.length, 1);
  assert.deepEqual(page.faults, []);
});

test("two browsers have one layout at once, and look at it each in their own way", async () => {
  const { page, tabs, space } = await twoPanes();
  const [one, , three] = tabs;
  const other = await lab.open({ flags: READABLE, viewport: { width: 1440, height: 900 } });
  await until("both panes", async () => (await panels(other).count()) === 2);
  // What one looks at is its own.
  await tabIn(other, three).click();
  await terminal(other, three);
  await row(page, one).click();
  assert.equal(await tabIn(page, three).getAttribute("aria-selected"), "false");
  assert.equal(await tabIn(other, three).getAttribute("aria-selected"), "true");

  // From the answer to one browser until the other has drawn it.
  await other.evaluate(() => {
    new MutationObserver(() => {
      if (document.querySelectorAll("[data-panel]").length === 3) globalThis.drawnAt ??= Date.now();
    }).observe(document.body, { subtree: true, childList: true });
  });
  const [{ panes }] = await layout(page);
  const asked = Date.now();
  await ask(page, "POST", `/api/workspaces/${space}/panes`, { op: "split", pane: panesIn(panes)[0].id, dir: "down" });
  const at = await until("third pane there", () => other.evaluate(() => globalThis.drawnAt));
  assert.ok(at - asked < CHANGE_MS_MAX, `drawn there after ${at - asked} ms`);
  await until("and here", async () => (await panels(page).count()) === 3);
  const between = (each) => each.locator("[role=separator][aria-orientation=vertical].seam");
  await between(page).focus();
  await page.keyboard.press("ArrowRight");
  const sizes = () => Promise.all([page, other].map((each) => between(each).getAttribute("aria-valuenow")));
  await until("the same seam", async () => {
    const [here, there] = await sizes();
    return here === there && here !== "50";
  });
  assert.deepEqual([...page.faults, ...other.faults], []);
});

test("a reload and a restart of the server bring back what was looked at", async () => {
  const { page, tabs } = await twoPanes();
  const [one, , three] = tabs;
  await tabIn(page, three).click();
  await terminal(page, three);
  await row(page, one).click();
  await terminal(page, one);
  await seams(page).focus();
  await page.keyboard.press("ArrowRight");
  await until("kept", async () => (await layout(page))[0].panes.split.sizes.join() !== "500,500");
  const look = async () => ({
    selected: await page.locator("[role=tab][aria-selected=true]").evaluateAll((all) => all.map((tab) => tab.dataset.tab)),
    active: await bars(page).evaluateAll((all) => all.findIndex((bar) => bar.classList.contains("active"))),
    at: await seams(page).getAttribute("aria-valuenow"),
  });
  const before = await look();
  assert.deepEqual(before.selected, [one.id, three.id]);
  await page.reload();
  await until("both terminals", async () => (await page.locator("[data-live=true]").count()) === 2);
  assert.deepEqual(await look(), before);

  await brand(page, three);
  await lab.stopServer();
  await page.getByRole("alert").filter({ hasText: "Connection lost" }).waitFor();
  await lab.serve();
  await until("both terminals again", async () => (await page.locator("[data-live=true]").count()) === 2);
  assert.deepEqual(await look(), before);
  assert.ok(await isBranded(page, three), "the terminal was made anew by the restart");
  assert.deepEqual(page.faults, []);
});

test("a narrower window has equal panes, then one at a time with the tabs of all", async () => {
  const { page, tabs } = await twoPanes();
  await seams(page).focus();
  await page.keyboard.press("ArrowRight");
  await until("not equal", async () => (await seams(page).getAttribute("aria-valuenow")) !== "50");
  await page.setViewportSize({ width: 1000, height: 800 });
  await until("equal panes", async () => {
    const [a, b] = [await panels(page).nth(0).boundingBox(), await panels(page).nth(1).boundingBox()];
    return Math.abs(a.width - b.width) <= 1 && (await seams(page).count()) === 0;
  });
  await pictures(page, "panes-1000");
  await page.setViewportSize({ width: 800, height: 900 });
  await until("one pane", async () => (await panels(page).count()) === 1);
  assert.equal(await page.getByRole("tab").count(), 3);
  await tabIn(page, tabs[2]).click();
  await terminal(page, tabs[2]);
  assert.deepEqual(await terminals(page), [tabs[2].id]);
  await tabIn(page, tabs[0]).click();
  await terminal(page, tabs[0]);
  await pictures(page, "panes-800");
  await page.setViewportSize({ width: 1440, height: 900 });
  await until("both again", async () => (await panels(page).count()) === 2 && (await seams(page).count()) === 1);
  assert.deepEqual(page.faults, []);
});

test("a review is seen in every pane that is on screen, and behind another tab it is not", async () => {
  const { page, tabs } = await twoPanes();
  const [one, beside, behind] = tabs;
  const claude = standIn(lab.env);
  const pids = new Map();
  for (const tab of [beside, behind]) {
    await lab.cli("tab", "send", tab.id, `${claude} 600`);
    const { pid } = await until("its process", async () => {
      const item = await lab.item(tab.id);
      return item.presence === "starting" ? item : null;
    });
    pids.set(tab, pid);
    say(lab.env, pid, "busy");
    await until("busy", async () => (await lab.item(tab.id)).state === "busy");
  }
  // The keys are in the left pane; the right one shows the first of the two.
  await row(page, one).click();
  await terminal(page, one);
  await until("both on screen", async () => (await terminals(page)).toSorted().join() === [one.id, beside.id].toSorted().join());
  for (const tab of [behind, beside]) {
    assert.equal(await finish(lab.env, pids.get(tab)), 204);
    say(lab.env, pids.get(tab), "idle");
    await until("review", async () => (await lab.item(tab.id)).state === "review");
  }
  await until("seen beside", async () => (await lab.item(beside.id)).state === "idle");
  await holds("review behind", async () => (await lab.item(behind.id)).state === "review", 2 * SEEN_MS);
  assert.match(await nameOf(tabIn(page, behind)), /To review/);
  assert.deepEqual(page.faults, []);
});

test("rows are dragged in the sidebar, and the sidebar's own menu is a right click away", async () => {
  const { page, tabs } = await twoPanes();
  const [one, two, three] = tabs;
  await drag(page, row(page, one), row(page, three), { y: 0.2 });
  // Before the third one, in the pane of that one; its own pane is empty then, and goes.
  await until("one pane", async () => JSON.stringify(await tabsByPane(page)) === JSON.stringify([[two.id, one.id, three.id]]));
  await drag(page, row(page, one), row(page, three), { y: 0.8 });
  await until("after it", async () => JSON.stringify(await tabsByPane(page)) === JSON.stringify([[two.id, three.id, one.id]]));
  await row(page, two).click({ button: "right" });
  await page.getByRole("menuitem", { name: "Rename" }).click();
  const dialog = page.getByRole("dialog", { name: "Rename" });
  await dialog.getByRole("textbox").fill("kept safe");
  await dialog.getByRole("button", { name: "Save" }).click();
  await row(page, two).filter({ hasText: "kept safe" }).waitFor();
  assert.deepEqual(page.faults, []);
});

test("the names and places of panes are complete for a screen reader, in both languages", async () => {
  const { page } = await twoPanes();
  assert.equal(await nameOf(seams(page)), `- separator "Width of the panes beside it"`);
  await page.getByRole("tablist", { name: "Tabs of pane 2" }).waitFor();
  const panel = panels(page).nth(1).getByRole("tabpanel");
  assert.equal(await panel.getAttribute("id"), await bars(page).nth(1).locator("[role=tab][aria-selected=true]").getAttribute("aria-controls"));
  await page.evaluate(() => localStorage.setItem("purplemux.language", "zh-TW"));
  await page.reload();
  await page.getByRole("tablist", { name: "窗格 2 的分頁" }).waitFor();
  await bars(page).nth(0).getByRole("button", { name: "向右分割" }).waitFor();
  await picture(page, "panes-zh-TW");
  assert.ok((await drawn(page.locator("[data-panel]").nth(0))) !== "");
  assert.deepEqual(page.faults, []);
});
