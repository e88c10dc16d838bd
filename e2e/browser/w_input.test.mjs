// What a person types, composes and pastes into a terminal, as the program in it gets it: byte for byte, from a program
// that writes down whatever it reads.

import assert from "node:assert/strict";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { drawn, enter, holds, Lab, READABLE, row, terminal, until } from "./lab.mjs";

let lab;
before(async () => (lab = await Lab.start()));
after(async () => lab?.stop());

const prompt = (page) => until("prompt", async () => /[#$]\s*$/.test((await drawn(page)).trimEnd()));

/** A tab in the page whose program writes down every byte that it reads; `first` is printed before. */
async function recorder(first = "", options = {}) {
  const page = await lab.open({ flags: READABLE, ...options });
  const tab = await lab.tab("terminal", 0);
  if (options.isMobile) await page.locator(`button[data-tab="${tab.id}"]`).tap();
  else await row(page, tab).click();
  await terminal(page, tab);
  await prompt(page);
  const file = join(lab.env.HOME, `typed-${tab.id}`);
  rmSync(file, { force: true });
  // A phone types into its line; the shell is the same.
  await lab.cli("tab", "send", tab.id, `clear; stty raw -echo; printf '${first}ready'; cat > ${file}`);
  await until("recorder", async () => existsSync(file) && (await drawn(page)).includes("ready"));
  if (!options.isMobile) await page.locator(".xterm-helper-textarea").first().focus();
  const typed = () => readFileSync(file, "latin1");
  return { page, tab, typed, text: () => Buffer.from(typed(), "latin1").toString("utf8") };
}

/** The bytes are exactly these, and stay so. */
async function exactly(what, read, wanted) {
  await until(what, () => read().length >= wanted.length).catch(() => undefined);
  assert.equal(JSON.stringify(read()), JSON.stringify(wanted), what);
  await holds(what, () => read() === wanted, 150);
}

const LANGUAGES = [
  { name: "Traditional Chinese", steps: ["ㄋ", "ㄋㄧ", "ㄋㄧˇ", "你"], committed: "你好嗎" },
  { name: "Simplified Chinese", steps: ["n", "ni", "ni hao"], committed: "你好吗" },
  { name: "Japanese", steps: ["ｎ", "に", "にほｎ", "にほん", "日本"], committed: "日本語" },
  { name: "Korean", steps: ["ㅎ", "하", "한"], committed: "한글" },
];

test("W02 composition in four languages: nothing before the commit, the text once, no Enter, nothing after Esc", async () => {
  const { page, text } = await recorder("\\033[7;21H");
  const cdp = await page.context().newCDPSession(page);
  const compose = (part) => cdp.send("Input.imeSetComposition", { text: part, selectionStart: part.length, selectionEnd: part.length });
  // What an input method takes for itself reaches the page as key 229.
  const taken = async (key) => {
    for (const type of ["rawKeyDown", "keyUp"]) await cdp.send("Input.dispatchKeyEvent", { type, key, code: key, windowsVirtualKeyCode: type === "keyUp" ? (key === "Enter" ? 13 : 27) : 229 });
  };
  let sent = "";
  for (const { name, steps, committed } of LANGUAGES) {
    for (const step of steps) {
      await taken("Process");
      await compose(step);
      assert.equal(text(), sent, `${name}: nothing of ${step} is sent`);
    }
    // The candidate window sits where the text field is, and that is where the cursor is.
    const places = await page.evaluate(() => {
      const place = (selector) => document.querySelector(selector)?.getBoundingClientRect();
      const rows = document.querySelectorAll(".xterm-rows > div");
      const row = [...rows].findIndex((line) => line.textContent.includes("ready"));
      const line = rows[row].getBoundingClientRect();
      return { field: place(".xterm-helper-textarea").toJSON(), view: place(".composition-view").toJSON(), line: line.toJSON(), row };
    });
    assert.equal(places.row, 6);
    for (const of of ["field", "view"]) assert.ok(Math.abs(places[of].top - places.line.top) < places.line.height, `${name}: ${of} is on the cursor's line`);
    assert.ok(places.view.left > places.line.left + 25 * 7, `${name}: beside what stands there`);
    assert.ok(places.view.width > 0, `${name}: what is composed is shown`);
    await taken("Enter");
    await cdp.send("Input.insertText", { text: committed });
    sent += committed;
    await exactly(`${name} committed`, text, sent);

    await compose(steps.at(-1));
    await taken("Escape");
    await compose("");
    await exactly(`${name} cancelled`, text, sent);
  }
  await page.keyboard.press("Enter");
  await exactly("Enter is the program's again", text, `${sent}\r`);
  assert.deepEqual(page.faults, []);
});

const KEYS = [
  ["Escape", "\u001b"],
  ["Control+c", "\u0003"],
  ["Control+b", "\u0002"],
  ["Control+f", "\u0006"],
  ["Control+w", "\u0017"],
  ["Control+t", "\u0014"],
  ["Control+n", "\u000e"],
  ["Control+r", "\u0012"],
  ["Control+l", "\u000c"],
  ["Control+p", "\u0010"],
  ["Control+s", "\u0013"],
  ["Control+k", "\u000b"],
  ["Control+z", "\u001a"],
  ["Control+d", "\u0004"],
  ["Tab", "\t"],
  ["Shift+Tab", "\u001b[Z"],
  ["Alt+b", "\u001bb"],
  ["Alt+m", "\u001bm"],
  ["Alt+t", "\u001bt"],
  ["ArrowLeft", "\u001b[D"],
  ["ArrowUp", "\u001b[A"],
  ["F1", "\u001bOP"],
  ["F5", "\u001b[15~"],
  ["Backspace", "\u007f"],
  ["Enter", "\r"],
];

test("W10 every control key reaches the program, and what a browser keeps has a key on the screen", async () => {
  const { page, typed } = await recorder();
  let sent = "";
  for (const [key, bytes] of KEYS) {
    await page.keyboard.press(key);
    sent += bytes;
    await until(key, () => typed().length >= sent.length).catch(() => undefined);
    assert.equal(JSON.stringify(typed()), JSON.stringify(sent), key);
  }
  for (const [name, byte] of [["Ctrl+W", "\u0017"], ["Ctrl+T", "\u0014"], ["Ctrl+N", "\u000e"]]) {
    await page.getByRole("button", { name, exact: true }).click();
    sent += byte;
    await exactly(name, typed, sent);
  }
  await page.keyboard.press("x");
  await exactly("the terminal has the focus again", typed, `${sent}x`);
  assert.deepEqual(page.faults, []);
});

test("W10 a phone has the keys that its keyboard lacks", async () => {
  const { page, typed } = await recorder("", { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });
  const keys = page.getByRole("toolbar", { name: "Keys" });
  let sent = "";
  for (const [name, bytes] of [["Esc", "\u001b"], ["Tab", "\t"], ["⇧Tab", "\u001b[Z"]]) {
    await keys.getByRole("button", { name, exact: true }).tap();
    sent += bytes;
    await exactly(name, typed, sent);
  }
  await keys.getByRole("button", { name: "Ctrl", exact: true }).tap();
  await page.getByLabel("Type into the terminal").fill("c");
  await exactly("Ctrl-C", typed, `${sent}\u0003`);
});

/** Pastes as the browser does: by a paste event with this text. */
async function paste(page, make) {
  await page.locator(".xterm-helper-textarea").first().evaluate((field, source) => {
    const data = new DataTransfer();
    // eslint-disable-next-line no-new-func -- the text is made in the page, since a megabyte is slow to carry there
    data.setData("text/plain", new Function(`return ${source}`)());
    field.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
  }, make);
}
const MEGABYTE = '("touch $HOME/executed-\\u001b[201~$RANDOM; echo \\u001b[20\\u001b[201~1~ \\u009b201~漢\\n").repeat(20000)';
const LINE = "touch $HOME/executed-$RANDOM; echo  漢\r";

test("W05 a pasted megabyte that tries to end the paste arrives as one paste, and whole", async () => {
  const { page, text } = await recorder("\\033[?2004h");
  await until("bracketed paste to be on", async () => {
    // The mode reaches the page with the next drawing.
    return (await drawn(page)).includes("ready");
  });
  await paste(page, MEGABYTE);
  const wanted = `\u001b[200~${LINE.repeat(20000)}\u001b[201~`;
  assert.ok(Buffer.byteLength(wanted) > 800_000);
  await until("the whole paste", () => text().length >= wanted.length);
  const got = text();
  assert.equal(got.length, wanted.length);
  assert.ok(got === wanted, "what was pasted, bracketed once");
  assert.deepEqual(page.faults, []);
});

test("W05 no line of a paste is executed by a shell", async () => {
  const page = await lab.open({ flags: READABLE });
  const tab = await lab.tab("terminal", 1);
  await row(page, tab).click();
  await terminal(page, tab);
  await prompt(page);
  await enter(page, "touch ran-$((6*7)); ls");
  await until("the shell's own line", async () => (await drawn(page)).includes("ran-42"));
  await prompt(page);
  // tmux draws the prompt first and passes on just after it that the shell wants pastes marked: an echo comes later.
  await page.keyboard.type("x");
  await until("its echo", async () => /[#$] x$/.test((await drawn(page)).trimEnd()));
  await page.keyboard.press("Backspace");
  await prompt(page);
  await paste(page, '("touch executed-\\u001b[201~$RANDOM\\n").repeat(2000)');
  await until("the paste on the command line", async () => ((await drawn(page)).match(/touch executed-\$RANDOM/g)?.length ?? 0) > 5);
  await page.keyboard.press("Control+c");
  await enter(page, "clear; ls | grep -c executed; echo count''ed");
  await until("the count", async () => (await drawn(page)).includes("counted"));
  assert.match(await drawn(page), /^0\ncounted/m);
  assert.deepEqual(page.faults, []);
});

test("W05 a paste into Claude stays in its box", async () => {
  const page = await lab.open({ flags: READABLE });
  const tab = await lab.tab("claude-code", 2);
  await row(page, tab).click();
  await terminal(page, tab);
  await until("Claude's box", async () => (await lab.item(tab.id))?.state === "idle");
  await page.locator(".xterm-helper-textarea").focus();
  await paste(page, '("say line \\u001b[201~x\\n").repeat(60000)');
  await until("the paste in the box", async () => /Pasted text #1|say line/.test(await drawn(page)));
  await holds("not sent", async () => (await lab.item(tab.id)).state === "idle", 1500);
  assert.deepEqual(page.faults, []);
});
