// Keys from inside a terminal: each of ours acts there and reaches no program, all others reach it; other keys can be
// chosen; the cheat-sheet and the palette say and do the same.

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { drawn, enter, Lab, picture, READABLE, row, terminal, until, violations } from "./lab.mjs";

let lab;
before(async () => (lab = await Lab.start()));
after(async () => lab?.stop());

/** A tab whose program writes down every byte that it is sent. */
async function recorder(page, name) {
  const tab = await lab.tab("terminal", 0);
  const file = join(lab.env.HOME, name);
  await row(page, tab).click();
  await terminal(page, tab);
  await until("prompt", async () => /lab[#$]/.test(await drawn(page)));
  await enter(page, `stty raw -echo; printf 'ready-%s' go; cat > ${file}`);
  await until("the recorder", async () => (await drawn(page)).includes("ready-go") && existsSync(file));
  await page.locator(".xterm-helper-textarea").focus();
  const bytes = () => readFileSync(file, "latin1");
  let marks = 0;
  let at = 0;
  /** What has arrived since the last time; everything typed so far has once this word has. */
  const settled = async () => {
    const mark = "uvwxyz"[(marks += 1) % 6].repeat(3);
    await page.keyboard.type(mark);
    await until("the mark", () => bytes().slice(at).includes(mark));
    const arrived = bytes().slice(at).split(mark)[0];
    at += arrived.length + mark.length;
    return arrived;
  };
  return { tab, settled };
}

const inTerminal = (page) => page.evaluate(() => document.activeElement?.classList.contains("xterm-helper-textarea") === true);

test("every key of ours acts from inside a terminal and reaches no program", async () => {
  const page = await lab.open({ flags: READABLE });
  const other = await lab.tab("terminal", 1);
  const { tab, settled } = await recorder(page, "ours");
  const back = async () => {
    if (await page.locator("dialog[open]").count()) await page.keyboard.press("Escape");
    await row(page, tab).click();
    await terminal(page, tab);
    await page.locator(".xterm-helper-textarea").focus();
  };
  const rows = page.locator("[role=treeitem][data-tab]");
  const was = await rows.count();

  const acts = [
    ["Alt+KeyK", () => page.getByRole("dialog", { name: "Command palette" }).waitFor()],
    ["Alt+Slash", () => page.getByRole("dialog", { name: "Keyboard" }).waitFor()],
    ["Alt+Comma", () => page.getByRole("dialog", { name: "Settings" }).waitFor()],
    ["F6", async () => assert.equal(await inTerminal(page), false)],
    ["Shift+F6", async () => assert.equal(await inTerminal(page), false)],
    ["Alt+Digit0", () => until("the sidebar", () => page.evaluate(() => document.activeElement?.closest(".side") !== null))],
    ["Alt+KeyI", async () => {
      await page.getByRole("dialog", { name: "Attention" }).waitFor();
      await page.keyboard.press("Escape");
    }],
    ["Alt+BracketLeft", () => page.locator(`[data-terminal]:not([data-terminal="${tab.id}"])`).first().waitFor()],
    ["Alt+BracketRight", () => page.locator(`[data-terminal]:not([data-terminal="${tab.id}"])`).first().waitFor()],
    ["Alt+KeyN", async () => {
      await until("a new tab", async () => (await rows.count()) === was + 1);
      await page.locator(`[data-terminal][data-live=true]:not([data-terminal="${tab.id}"])`).waitFor();
      await page.keyboard.press("Alt+KeyW");
      await until("it is closed", async () => (await rows.count()) === was);
    }],
    // Nothing needs the person here: they do nothing, and are no letters for the program all the same.
    ["Alt+KeyC", () => undefined],
    ["Alt+KeyJ", () => undefined],
    ["Alt+Shift+KeyJ", () => undefined],
    ["Alt+Shift+Slash", () => undefined],
  ];
  for (const [chord, seen] of acts) {
    await page.locator(".xterm-helper-textarea").focus();
    await page.keyboard.press(chord);
    await seen();
    if (chord === "Alt+Shift+Slash") await page.keyboard.press(chord);
    await back();
    assert.equal(await settled(), "", chord);
  }
  assert.ok(other.id !== tab.id);
  assert.deepEqual(page.faults, []);
});

test("every other key reaches the program, and ours after Alt+Q", async () => {
  const page = await lab.open({ flags: READABLE });
  const { settled } = await recorder(page, "theirs");
  for (let letter = 0; letter < 26; letter += 1) {
    // Pasting and copying are the browser's with Shift; with Ctrl alone all letters are the program's.
    const name = String.fromCharCode(65 + letter);
    if ("TWN".includes(name)) continue;
    await page.keyboard.press(`Control+Key${name}`);
    assert.equal(await settled(), String.fromCharCode(letter + 1), `Ctrl+${name}`);
  }
  for (const name of "ABDEFGHLMOPRSTUVXYZ") {
    await page.keyboard.press(`Alt+Key${name}`);
    assert.equal(await settled(), `\u001b${name.toLowerCase()}`, `Alt+${name}`);
  }
  for (const [key, bytes] of [["Escape", "\u001b"], ["Tab", "\t"], ["Shift+Tab", "\u001b[Z"], ["Enter", "\r"], ["Backspace", "\u007f"], ["ArrowUp", "\u001b[A"], ["Alt+ArrowLeft", "\u001b[1;3D"], ["F5", "\u001b[15~"], ["Control+Backslash", "\u001c"]]) {
    await page.keyboard.press(key);
    assert.equal(await settled(), bytes, key);
  }
  for (const [key, bytes] of [["Alt+KeyJ", "\u001bj"], ["Alt+KeyN", "\u001bn"], ["F6", "\u001b[17~"], ["Alt+KeyQ", "\u001bq"]]) {
    await page.keyboard.press("Alt+KeyQ");
    await page.getByText("The next key goes to the program").waitFor();
    await page.keyboard.press(key);
    await page.getByText("The next key goes to the program").waitFor({ state: "detached" });
    assert.equal(await settled(), bytes, key);
  }
  assert.deepEqual(page.faults, []);
});

test("another key is chosen in the settings, and what can't be had is said plainly", async () => {
  const page = await lab.open({ flags: READABLE });
  const { settled } = await recorder(page, "chosen");
  await page.keyboard.press("Alt+Comma");
  const dialog = page.getByRole("dialog", { name: "Settings" });
  await dialog.getByRole("button", { name: "Keyboard" }).click();
  const line = dialog.locator("[data-action=palette]");
  const change = line.getByRole("button", { name: /^Change the key of/ });
  const ask = async (chord) => {
    await change.click();
    await line.getByText("Press a key").waitFor();
    await page.keyboard.press(chord);
  };
  await ask("Control+KeyT");
  await line.getByText("belongs to the browser").waitFor();
  await ask("KeyJ");
  await line.getByText("needed by the programs").waitFor();
  await ask("Alt+KeyP");
  await line.getByText("Claude Code’s own").waitFor();
  await ask("Alt+KeyJ");
  await line.getByText("is taken by “Jump to the next that needs me”").waitFor();
  for (const colorScheme of ["dark", "light"]) {
    await page.emulateMedia({ colorScheme });
    assert.deepEqual(await violations(page), [], colorScheme);
    await picture(page, `settings-keys-${colorScheme}`);
  }
  await line.getByRole("button", { name: "Take it from there" }).click();
  await dialog.locator("[data-action=next]").getByText("no key").waitFor();
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  await page.locator(".xterm-helper-textarea").focus();
  await page.keyboard.press("Alt+KeyK");
  assert.equal(await settled(), "\u001bk", "the former key is the program's now");

  // It outlives the page.
  await page.reload();
  await page.locator("[data-terminal][data-live=true]").waitFor();
  await page.locator(".xterm-helper-textarea").focus();
  await page.keyboard.press("Alt+KeyJ");
  await page.getByRole("dialog", { name: "Command palette" }).waitFor();
  await page.keyboard.press("Alt+Slash");
  const help = page.getByRole("dialog", { name: "Keyboard" });
  assert.match(await help.locator("[data-action=palette]").innerText(), /Alt\s*J/);
  for (const colorScheme of ["dark", "light"]) {
    await page.emulateMedia({ colorScheme });
    assert.deepEqual(await violations(page), [], colorScheme);
    await picture(page, `help-${colorScheme}`);
  }
  await help.getByRole("button", { name: "Change keys" }).click();
  await dialog.getByRole("button", { name: "All keys as they were at first" }).click();
  await page.keyboard.press("Escape");
  await page.locator(".xterm-helper-textarea").focus();
  await page.keyboard.press("Alt+KeyK");
  await page.getByRole("dialog", { name: "Command palette" }).waitFor();
  assert.deepEqual(page.faults, []);
});
