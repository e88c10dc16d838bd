// The palette: finds sessions, workspaces and commands in both languages, opens what is chosen, opens at once with many
// sessions, and gives the focus back.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { drawn, Lab, picture, READABLE, row, terminal, until, violations } from "./lab.mjs";

let lab;
before(async () => (lab = await Lab.start()));
after(async () => lab?.stop());

const palette = (page) => page.getByRole("dialog", { name: "Command palette" });

test("sessions and commands are found and opened from the keyboard alone", async () => {
  const page = await lab.open({ flags: READABLE });
  const tab = await lab.tab("terminal", 0);
  const other = await lab.tab("terminal", 1);
  await row(page, other).click();
  await terminal(page, other);
  // Nothing of it reaches the shell, however early it is typed; the palette has it once it is there.
  await page.keyboard.press("Alt+KeyK");
  await page.keyboard.type("sleep");
  await palette(page).getByRole("combobox").waitFor();
  assert.equal(await palette(page).getByRole("combobox").inputValue(), "sleep");
  assert.doesNotMatch(await drawn(page), /[#$] *s/);
  await palette(page).getByRole("combobox").fill("> rename");
  await page.keyboard.press("Enter");
  await page.getByRole("textbox", { name: "Name" }).fill("night watch");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByRole("treeitem", { name: /night watch/ }).waitFor();
  await row(page, tab).click();
  await terminal(page, tab);
  await until("prompt", async () => /lab[#$]/.test(await drawn(page)));
  await page.locator(".xterm-helper-textarea").focus();

  await page.keyboard.press("Alt+KeyK");
  const line = palette(page).getByRole("combobox", { name: "Search sessions and commands" });
  await line.waitFor();
  await page.keyboard.type("watch night");
  await palette(page).getByRole("option", { name: /night watch/ }).waitFor();
  const options = palette(page).getByRole("option");
  await until("one left", async () => (await options.count()) === 1);
  assert.equal(await line.getAttribute("aria-activedescendant"), await options.first().getAttribute("id"));
  await page.keyboard.press("Enter");
  await terminal(page, other);
  await until("the keys in its terminal", () => page.evaluate(() => document.activeElement?.classList.contains("xterm-helper-textarea")));

  // By its state in the language that is not spoken, and a command by its Chinese name.
  await page.keyboard.press("Alt+KeyK");
  await page.keyboard.type("未執行 night");
  await until("it is found", async () => (await options.count()) === 1);
  await line.fill("鍵盤說明");
  await until("the command", async () => (await options.count()) === 1);
  await page.keyboard.press("Enter");
  await page.getByRole("dialog", { name: "Keyboard" }).waitFor();
  await page.keyboard.press("Escape");
  await until("the keys in the terminal again", () => page.evaluate(() => document.activeElement?.classList.contains("xterm-helper-textarea")));

  // Ctrl+K belongs to the shell in a terminal, and opens the palette elsewhere.
  await page.keyboard.press("Control+KeyK");
  assert.equal(await palette(page).count(), 0);
  await page.keyboard.press("F6");
  await page.keyboard.press("Control+KeyK");
  await line.waitFor();
  await page.keyboard.press("ArrowUp");
  assert.equal(await options.last().getAttribute("aria-selected"), "true");
  await page.keyboard.press("ArrowDown");
  assert.equal(await options.first().getAttribute("aria-selected"), "true");
  for (const colorScheme of ["dark", "light"]) {
    await page.emulateMedia({ colorScheme });
    assert.deepEqual(await violations(page), [], colorScheme);
    await picture(page, `palette-${colorScheme}`);
  }
  await page.keyboard.type("nothing is called like this");
  await palette(page).getByText("Nothing found").waitFor();
  await page.keyboard.press("Escape");
  await palette(page).waitFor({ state: "detached" });
  assert.deepEqual(page.faults, []);
});

test("with 200 sessions it opens at once", async () => {
  const page = await lab.open({ flags: READABLE, signedIn: false });
  // The server's own picture, with one of its rows two hundred times.
  await page.routeWebSocket(/\/api\/status/, (socket) => {
    const server = socket.connectToServer();
    server.onMessage((data) => {
      const message = JSON.parse(String(data));
      const [item] = message.items ?? [];
      if (message.type === "snapshot" && item !== undefined) {
        for (let n = 0; n < 200; n += 1) message.items.push({ ...item, id: `many-${n}`, tab: null, title: `session number ${n}` });
      }
      socket.send(JSON.stringify(message));
    });
  });
  await lab.tab("terminal", 2);
  // Before the page's own listeners, which let nobody else see a key of theirs.
  await page.addInitScript(() => {
    globalThis.pressed = 0;
    addEventListener("keydown", (event) => event.code === "KeyK" && event.altKey && (globalThis.pressed = performance.now()), { capture: true });
  });
  await page.goto(await lab.link());
  await until("the rows", async () => (await page.getByRole("treeitem", { name: /session number/ }).count()) >= 200);
  await page.evaluate(() => {
    globalThis.opened = [];
    // From the key to the frame after the one that draws it.
    new MutationObserver(() => {
      if (globalThis.pressed === 0 || document.querySelector("dialog[open] [role=option]") === null) return;
      const from = globalThis.pressed;
      globalThis.pressed = 0;
      requestAnimationFrame(() => {
        const channel = new MessageChannel();
        channel.port1.onmessage = () => globalThis.opened.push(performance.now() - from);
        channel.port2.postMessage(null);
      });
    }).observe(document.body, { subtree: true, childList: true, attributes: true });
  });
  // On a machine that does other things as well, only the page's own work says how quick it is.
  const client = await page.context().newCDPSession(page);
  await client.send("Performance.enable", { timeDomain: "threadTicks" });
  const workMs = async () => (await client.send("Performance.getMetrics")).metrics.find(({ name }) => name === "TaskDuration").value * 1000;
  const works = [];
  for (let n = 1; n <= 9; n += 1) {
    const before = await workMs();
    await page.keyboard.press("Alt+KeyK");
    await until("it is open", async () => (await page.evaluate(() => globalThis.opened.length)) === n);
    works.push((await workMs()) - before);
    assert.ok((await palette(page).getByRole("option").count()) < 120);
    await page.keyboard.press("Escape");
    await palette(page).waitFor({ state: "detached" });
  }
  const opened = await page.evaluate(() => globalThis.opened);
  console.log(`palette with 200 sessions, key to drawn: ${opened.map((ms) => ms.toFixed(0)).join(", ")} ms; work ${works.map((ms) => ms.toFixed(0)).join(", ")} ms`);
  assert.ok(works.toSorted((a, b) => a - b)[4] < 5 * 50, works.join(", "));
});
