// What a person sees of a terminal: its size among several viewers, its cells, its history, its renderer, and what it
// answers to a program.

import assert from "node:assert/strict";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { drawn, enter, holds, Lab, picture, READABLE, row, terminal, until, WEBGL } from "./lab.mjs";

let lab;
before(async () => (lab = await Lab.start()));
after(async () => lab?.stop());

async function opened(tab, options = {}) {
  const page = await lab.open({ flags: READABLE, ...options });
  await row(page, tab).click();
  await terminal(page, tab);
  if ((options.flags ?? READABLE) === READABLE) await until("prompt", async () => /[#$]\s*$/.test((await drawn(page)).trimEnd()));
  return page;
}

const foot = (page) => page.locator("[data-region] footer span").first().innerText();
const sizeOf = async (page) => (await foot(page)).match(/\d+/g).map(Number);

/** A program that writes down every byte that it reads, after it has printed `first`. */
async function record(page, tab, first = "") {
  const file = join(lab.env.HOME, `read-${tab.id}`);
  rmSync(file, { force: true });
  await lab.cli("tab", "send", tab.id, `stty raw -echo; printf '\\033[H\\033[2J${first}ready'; cat > ${file}`);
  await until("recorder", async () => existsSync(file) && (await drawn(page)).includes("ready"));
  return () => readFileSync(file, "latin1");
}

test("W01 only the owner of the size resizes, four times a second and once at the end", async () => {
  const tab = await lab.tab("terminal", 0);
  const owner = await opened(tab, { viewport: { width: 1300, height: 800 } });
  const sizes = join(lab.env.HOME, `sizes-${tab.id}`);
  await enter(owner, `PS1='$ '; trap 'stty size >> ${sizes}' WINCH; clear; echo be''gun`);
  await until("the shell", async () => (await drawn(owner)).includes("begun"));
  const [cols, rows] = await sizeOf(owner);

  const other = await opened(tab, { viewport: { width: 800, height: 600 } });
  await until("the owner's grid on the other page", async () => (await sizeOf(other)).join() === [cols, rows].join());
  await other.getByRole("button", { name: "Fit here" }).waitFor();
  await holds("the owner's size", async () => (await sizeOf(owner)).join() === [cols, rows].join(), 500);
  // The whole grid is there, in a smaller text.
  const fits = await other.evaluate(() => {
    const of = (selector) => document.querySelector(selector).getBoundingClientRect();
    return of(".xterm-screen").right <= of("[data-terminal]").right + 1 && of(".xterm-screen").bottom <= of("[data-terminal]").bottom + 1;
  });
  assert.ok(fits, "the grid fits");
  await picture(other, "w01-other");

  // The other is dragged for a while: nobody's size changes.
  const seen = () => (existsSync(sizes) ? readFileSync(sizes, "utf8").trim().split("\n") : []);
  for (let step = 0; step < 10; step += 1) await other.setViewportSize({ width: 760 + step * 20, height: 560 + step * 8 });
  await holds("nobody's size", async () => (await sizeOf(owner)).join() === [cols, rows].join(), 600);
  assert.deepEqual(seen(), []);

  // The owner is dragged for five seconds.
  const begun = performance.now();
  let width = 1300;
  while (performance.now() - begun < 5000) {
    width = width > 1000 ? width - 3 : 1300;
    await owner.setViewportSize({ width, height: 800 });
  }
  await owner.setViewportSize({ width: 1000, height: 700 });
  const seconds = (performance.now() - begun) / 1000;
  let last = [];
  await until("one size everywhere", async () => {
    last = await sizeOf(owner);
    const shell = seen().at(-1);
    // The last one is the first with fewer lines.
    return last[0] < cols && last[1] < rows && (await sizeOf(other)).join() === last.join() && shell === `${last[1]} ${last[0]}`;
  });
  const count = seen().length;
  assert.ok(count <= 4 * seconds + 2, `${count} sizes in ${seconds.toFixed(1)} s`);
  assert.ok(count > 4, `${count} sizes: it followed`);

  // The other takes it when its person says so.
  await other.getByRole("button", { name: "Fit here" }).click();
  await until("another size", async () => (await sizeOf(other)).join() !== last.join() && (await sizeOf(owner)).join() === (await sizeOf(other)).join());
  const back = (size) =>
    until(`${size} again`, async () => {
      assert.equal((await sizeOf(owner)).join(), size.join());
      assert.equal(seen().at(-1), `${size[1]} ${size[0]}`);
      return true;
    }, 5000);
  // Whoever lent it has it back to the cell: when the other is hidden,
  await other.evaluate(() => {
    Object.defineProperty(document, "hidden", { configurable: true, get: () => true });
    document.dispatchEvent(new Event("visibilitychange"));
  });
  await back(last);
  await other.evaluate(() => {
    delete document.hidden;
    document.dispatchEvent(new Event("visibilitychange"));
  });
  await holds("the owner's size", async () => (await sizeOf(owner)).join() === last.join(), 500);
  // is closed,
  const take = async (page) => {
    await page.getByRole("button", { name: "Fit here" }).click();
    await until("another size", async () => (await sizeOf(page)).join() !== last.join() && (await sizeOf(owner)).join() === (await sizeOf(page)).join());
  };
  await take(other);
  await other.close();
  await back(last);
  // or dies without a word. A phone is no different.
  const phone = await lab.open({ flags: READABLE, viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });
  await phone.locator(`button[data-tab="${tab.id}"]`).tap();
  await terminal(phone, tab);
  await phone.getByRole("button", { name: "Fit here" }).tap();
  await until("the phone's size", async () => (await sizeOf(owner)).join() !== last.join());
  await phone.goto("chrome://crash").catch(() => undefined);
  await back(last);
  assert.deepEqual([...owner.faults, ...other.faults, ...phone.faults], []);
});

const CELLS = [
  "plain ascii",
  "漢字かな한글",
  "e\u0301a\u0308o\u0302",
  "👩\u200d💻👨\u200d👩\u200d👧\u200d👦",
  "👍🏽☝🏽",
  "❤\ufe0f☎\ufe0f1\ufe0f\u20e3",
  "🇯🇵🇹🇼",
  "±×…—●◆α①",
  "ก็ที่",
  "क्षिन",
  "葛\u{e0100}ｱﾞ",
  "│─┼█▒",
];

test("W03 the grid is tmux's own, cell by cell, also at the right margin", async () => {
  const tab = await lab.tab("terminal", 1);
  const page = await opened(tab);
  const [cols] = await sizeOf(page);
  // Each text stands at the left, and again so that it runs into the right margin; a mark follows wherever tmux then is.
  const lines = CELLS.flatMap((text, at) => [`\u001b[${2 * at + 1};1H${text}|`, `\u001b[${2 * at + 2};${cols - 5}H${text}`]);
  const text = lines.join("").replaceAll("'", "'\\''").replaceAll("\\", "\\\\").replaceAll("%", "%%").replaceAll("\u001b", "\\033");
  await lab.cli("tab", "send", tab.id, `clear; printf '${text}'; read -r line`);
  await until("the texts", async () => (await drawn(page)).includes(CELLS.at(-1)));
  // tmux keeps at most 21 bytes of a cell, and then the joiner before what it left out.
  const linesOf = (text) => text.replaceAll(/\u200d(?=[|]|\s*$)/gm, "").split("\n").map((line) => line.trimEnd()).slice(0, 2 * CELLS.length);
  await until("the same text", async () => assert.deepEqual(linesOf(await drawn(page)), linesOf(await lab.screen(tab))) === undefined);

  // Where each mark is drawn, in cells, and where tmux has it: tmux is asked to count.
  const marks = await page.evaluate(() => {
    const screen = document.querySelector(".xterm-screen").getBoundingClientRect();
    const cell = document.querySelector(".xterm-rows").getBoundingClientRect().width;
    const places = [];
    for (const line of document.querySelectorAll(".xterm-rows > div")) {
      const walk = document.createTreeWalker(line, NodeFilter.SHOW_TEXT);
      let place = null;
      for (let node = walk.nextNode(); node !== null; node = walk.nextNode()) {
        const at = node.data.indexOf("|");
        if (at < 0) continue;
        const range = document.createRange();
        range.setStart(node, at);
        range.setEnd(node, at + 1);
        place = (range.getBoundingClientRect().left - screen.left) / cell;
        break;
      }
      places.push(place);
    }
    return places;
  });
  for (const [at, text] of CELLS.entries()) {
    assert.ok(marks[2 * at] !== null, `${text} has its mark`);
    // Without a GPU the browser lays out a line by itself, and joins what a script or a flag joins: its places are not cells.
    if (/\p{Regional_Indicator}|\p{Emoji_Modifier}|\p{Script=Devanagari}|\p{Script=Thai}/u.test(text)) continue;
    const column = await columnOf(tab, 2 * at);
    assert.equal(Math.round(marks[2 * at] * cols), column, `${text}: drawn at ${(marks[2 * at] * cols).toFixed(2)}, in tmux at ${column}`);
  }
  await picture(page, "w03-cells");

  // What JetBrains Mono lacks and Claude draws comes from a font of ours, one cell wide each.
  const signs = "⎿⏵⏸⏺○◉☐☑☒✔✘✢✳✻✽";
  await lab.cli("tab", "send", tab.id, "");
  await lab.cli("tab", "send", tab.id, `PS1='$ '; clear; echo '${signs}|'`);
  await until("the signs", async () => (await drawn(page)).includes(`\n${signs}|`) || (await drawn(page)).startsWith(`${signs}|`));
  const drawnBy = await page.evaluate((text) => {
    const faces = [...document.fonts].filter((face) => face.family.includes("purplemux Marks")).map((face) => face.status);
    const context = document.createElement("canvas").getContext("2d");
    context.font = '20px "purplemux Marks"';
    return { faces, wide: [...text].map((sign) => Math.round(context.measureText(sign).width)) };
  }, signs);
  assert.deepEqual(drawnBy, { faces: ["loaded"], wide: [...signs].map(() => 12) });
  await picture(page, "w03-signs");
  assert.deepEqual(page.faults, []);
});

/** The column of the mark in tmux's own grid, in which copy mode walks by cells. */
async function columnOf(tab, line) {
  const target = `=${tab.session}:`;
  await lab.tmux(tab, "copy-mode", "-t", target);
  await lab.tmux(tab, "send-keys", "-t", target, "-X", "top-line");
  await lab.tmux(tab, "send-keys", "-t", target, "-X", "start-of-line");
  if (line > 0) await lab.tmux(tab, "send-keys", "-t", target, "-X", "-N", String(line), "cursor-down");
  await lab.tmux(tab, "send-keys", "-t", target, "-X", "jump-forward", "|");
  const column = (await lab.tmux(tab, "display-message", "-p", "-t", target, "#{copy_cursor_x}")).trim();
  await lab.tmux(tab, "send-keys", "-t", target, "-X", "cancel");
  return Number(column);
}

/** Counts what the page has of WebGL, and lets it believe that there is a GPU. */
const WATCH_CONTEXTS = () => {
  globalThis.contexts = [];
  WebGL2RenderingContext.prototype.getExtension = new Proxy(WebGL2RenderingContext.prototype.getExtension, {
    apply: (ask, context, [name]) => (name === "WEBGL_debug_renderer_info" ? null : ask.call(context, name)),
  });
  const get = HTMLCanvasElement.prototype.getContext;
  HTMLCanvasElement.prototype.getContext = function (kind, options) {
    const context = get.call(this, kind, options);
    if (kind === "webgl2" && context !== null && !globalThis.contexts.includes(context)) globalThis.contexts.push(context);
    return context;
  };
};
const living = (page) => page.evaluate(() => globalThis.contexts.filter((context) => !context.isContextLost()).length);

test("W04 of forty terminals only the visible one holds a GPU context; a lost one is drawn without, at once", async (t) => {
  const tabs = [];
  for (let n = 0; n < 40; n += 1) tabs.push(await lab.tab("terminal", n % 3));
  const page = await lab.open({ flags: WEBGL });
  await page.addInitScript(WATCH_CONTEXTS);
  await page.reload();
  for (const tab of tabs) {
    await row(page, tab).click();
    await terminal(page, tab);
    await until("one context", async () => (await living(page)) === 1);
  }
  const made = await page.evaluate(() => globalThis.contexts.length);
  assert.ok(made >= 40, "each had its own");
  t.diagnostic(`40 open tabs: ${made} WebGL contexts one after the other, never two, none lost before it was given back`);
  const tab = tabs.at(-1);
  await lab.cli("tab", "send", tab.id, "echo before-$((6*7))");
  await until("the shell", async () => (await lab.screen(tab)).includes("before-42"));
  const at = performance.now();
  await page.evaluate(() => globalThis.contexts.find((context) => !context.isContextLost()).getExtension("WEBGL_lose_context").loseContext());
  await until("the same screen, drawn without a GPU", async () => (await drawn(page)).includes("before-42"));
  assert.ok(performance.now() - at < 5000);
  await page.locator(".xterm-helper-textarea").first().focus();
  await page.keyboard.type("echo after-$((6*7))\n");
  await until("output", async () => (await drawn(page)).includes("\nafter-42"));
  assert.equal(await living(page), 0);
  // The next one that is opened has a context again.
  await row(page, tabs[0]).click();
  await terminal(page, tabs[0]);
  await until("a context", async () => (await living(page)) === 1);
  // Where the processor would draw it, the DOM is quicker.
  const slow = await lab.open({ flags: WEBGL });
  await row(slow, tab).click();
  await terminal(slow, tab);
  await until("the screen", async () => (await drawn(slow)).includes("after-42"));
  assert.deepEqual([...page.faults, ...slow.faults], []);
});

const past = (page) => page.locator("[data-past] .xterm-rows").evaluate((rows) => [...rows.children].map((line) => line.textContent).join("\n").replaceAll("\u00a0", " "));
const numbers = (text) => [...text.matchAll(/^line-(\d+)$/gm)].map((match) => Number(match[1]));

async function wheel(page, lines) {
  await page.evaluate((deltaY) => {
    const at = document.querySelector("[data-past] .xterm-screen") ?? document.querySelector(".xterm-screen");
    at.dispatchEvent(new WheelEvent("wheel", { deltaY, deltaMode: WheelEvent.DOM_DELTA_LINE, bubbles: true, cancelable: true }));
  }, lines);
}

test("W06 2000 lines up, the connection gone for ten seconds, and the same place; not a line doubled or lost", async () => {
  const tab = await lab.tab("terminal", 2);
  const page = await opened(tab);
  await enter(page, "PS1='$ '; clear; seq -f line-%g 1 6000");
  await until("the last line", async () => (await drawn(page)).includes("line-6000"));
  await wheel(page, -10);
  await until("the history", async () => numbers(await past(page)).length > 5);
  const top = async () => numbers(await past(page))[0];
  for (let n = 0; n < 20; n += 1) await wheel(page, -100);
  await until("2000 lines up", async () => {
    const at = await top();
    if (at > 4010) await wheel(page, -Math.min(at - 4000, 100));
    return at <= 4010;
  });
  const place = await past(page);
  await picture(page, "w06-past");
  await lab.stopServer();
  await page.getByRole("alert").filter({ hasText: "Connection lost" }).waitFor();
  await holds("the same place", async () => (await past(page)) === place, 10_000);
  await lab.serve();
  await page.getByRole("alert").filter({ hasText: "Connection lost" }).waitFor({ state: "detached" });
  await terminal(page, tab);
  await holds("the same place", async () => (await past(page)) === place, 500);

  // Down to the end and up to the first line: every number once, in order.
  const seen = new Set(numbers(place));
  const step = (await numbers(place)).length - 2;
  for (let looked = 0; looked < 400 && !seen.has(1); looked += 1) {
    const before = await top();
    await wheel(page, -step);
    await until("another place", async () => (await top()) !== before).catch(() => undefined);
    const here = numbers(await past(page));
    for (let n = 1; n < here.length; n += 1) assert.equal(here[n], here[n - 1] + 1, "in order");
    for (const number of here) seen.add(number);
  }
  for (let number = 1; number <= numbers(place).at(-1); number += 1) assert.ok(seen.has(number), `line ${number} was shown`);
  await page.locator(".xterm-helper-textarea").first().focus();
  await page.keyboard.type("x");
  await until("the program again", async () => (await page.locator("[data-past]").count()) === 0);
  await until("the key", async () => /\$ x\s*$/.test((await drawn(page)).trimEnd()));
  assert.deepEqual(page.faults, []);
});

test("W06 the history is searched from a bar", async () => {
  const tab = await lab.tab("terminal", 0);
  const page = await opened(tab);
  await enter(page, "PS1='$ '; clear; seq -f 'line-%g of many' 1 5000");
  await until("the last line", async () => (await drawn(page)).includes("line-5000"));
  await page.keyboard.press("Control+Shift+F");
  const field = page.getByRole("textbox", { name: "Find in this terminal" });
  await field.fill("LINE-77");
  await field.press("Enter");
  await page.getByText("1 of 11").waitFor();
  await until("the newest match", async () => (await past(page)).includes("line-779 of many"));
  await field.press("Enter");
  await page.getByText("2 of 11").waitFor();
  await field.fill("line-1 of");
  await field.press("Enter");
  await page.getByText("1 of 1").waitFor();
  await until("the oldest line", async () => (await past(page)).includes("line-1 of many"));
  await field.fill("no such thing");
  await field.press("Enter");
  await page.getByText("Nothing found").waitFor();
  await field.press("Escape");
  await until("the program again", async () => (await page.locator("[data-past]").count()) === 0);
  await page.keyboard.type("y");
  await until("the key", async () => /\$ y\s*$/.test((await drawn(page)).trimEnd()));
  assert.deepEqual(page.faults, []);
});

test("W06 wheel and touch send no keys; a program that wants the mouse gets it, and a modifier selects", async () => {
  const tab = await lab.tab("terminal", 1);
  const page = await opened(tab);
  await enter(page, "PS1='$ '; clear; seq -f line-%g 1 300");
  await until("the last line", async () => (await drawn(page)).includes("line-300"));
  const read = await record(page, tab);
  const box = await page.locator(".xterm-screen").first().boundingBox();
  await page.mouse.move(box.x + 100, box.y + 100);
  await page.mouse.wheel(0, -300);
  await until("the history", async () => numbers(await past(page)).length > 0);
  await page.mouse.wheel(0, 300);
  await page.mouse.wheel(0, 600);
  await until("the program again", async () => {
    await page.mouse.wheel(0, 300);
    return (await page.locator("[data-past]").count()) === 0;
  });
  await holds("not a key", () => read() === "", 300);

  const wants = await lab.tab("terminal", 2);
  const mouse = await opened(wants);
  await mouse.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  const reads = await record(mouse, wants, "\\033[?1000h\\033[?1006hcopy-me ");
  const screen = await mouse.locator(".xterm-screen").first().boundingBox();
  await mouse.mouse.move(screen.x + 40, screen.y + 40);
  await until("the wheel in the program", async () => {
    await mouse.mouse.wheel(0, -100);
    return /\u001b\[<64;\d+;\d+M/.test(reads());
  });
  assert.doesNotMatch(reads(), /\u001b\[?O?[ABCD]/, "no arrow keys");
  assert.equal(await mouse.locator("[data-past]").count(), 0);
  await mouse.mouse.click(screen.x + 40, screen.y + 40);
  await until("the press in the program", () => /\u001b\[<0;\d+;\d+M\u001b\[<0;\d+;\d+m$/.test(reads()));
  const before = reads();
  await mouse.keyboard.down("Shift");
  await mouse.mouse.move(screen.x + 1, screen.y + 6);
  await mouse.mouse.down();
  await mouse.mouse.move(screen.x + 7.8 * 7, screen.y + 6, { steps: 5 });
  await mouse.mouse.up();
  await mouse.keyboard.up("Shift");
  await mouse.keyboard.press("Control+Shift+C");
  await until("the copy", async () => "copy-me".startsWith((await mouse.evaluate(() => navigator.clipboard.readText())).slice(0, 5)) && (await mouse.evaluate(() => navigator.clipboard.readText())).length >= 5);
  assert.equal(reads(), before, "the selection is no business of the program's");
  assert.deepEqual([...page.faults, ...mouse.faults], []);
});

test("W06 a finger scrolls the history", async () => {
  const tab = await lab.tab("terminal", 0);
  const page = await lab.open({ flags: READABLE, viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });
  await page.locator(`button[data-tab="${tab.id}"]`).tap();
  await terminal(page, tab);
  await lab.cli("tab", "send", tab.id, "clear; seq -f line-%g 1 300");
  await until("the last line", async () => (await drawn(page)).includes("line-300"));
  const read = await record(page, tab);
  const cdp = await page.context().newCDPSession(page);
  const touch = (type, y) => cdp.send("Input.dispatchTouchEvent", { type, touchPoints: y === null ? [] : [{ x: 150, y }] });
  await touch("touchStart", 250);
  for (let y = 270; y <= 560; y += 20) await touch("touchMove", y);
  await touch("touchEnd", null);
  await until("the history", async () => numbers(await past(page)).length > 0);
  const end = page.getByRole("button", { name: /To the end/ });
  await until("the program again", async () => {
    // A tap right after a finger was lifted may be taken for a part of that gesture.
    if ((await end.count()) > 0) await end.tap({ timeout: 1000 });
    return (await page.locator("[data-past]").count()) === 0;
  });
  await holds("not a key", () => read() === "", 300);
  assert.deepEqual(page.faults, []);
});

const QUERIES = "\\033[c\\033[>c\\033[6n\\033[5n\\033]10;?\\007\\033]11;?\\007\\033[>q\\033[?25\\$p";

test("W07 queries in the history are answered to nobody, live ones once, with two viewers", async () => {
  const tab = await lab.tab("terminal", 1);
  // Printed before anybody looks, into the history and on the screen; what tmux answers then is thrown away.
  await lab.cli("tab", "send", tab.id, `stty -echo raw; for n in 1 2 3; do printf '${QUERIES}'; seq 1 200; printf '${QUERIES}'; done; sleep 0.5; dd bs=65536 count=1 iflag=nonblock of=/dev/null 2>/dev/null; stty sane; echo as''ked`);
  await until("the queries", async () => (await lab.screen(tab)).includes("asked"));
  const one = await opened(tab);
  const other = await opened(tab);
  const read = await record(one, tab);
  await wheel(one, -200);
  await until("the history", async () => (await past(one)).length > 0);
  await one.reload();
  await terminal(one, tab);
  await holds("nobody answers the past", () => read() === "", 1000);

  // Live, asked by a program that writes down what it is told, while two look.
  await one.locator(".xterm-helper-textarea").first().focus();
  const file = join(lab.env.HOME, "answered");
  const asks = await lab.tab("terminal", 2);
  for (const page of [one, other]) {
    await row(page, asks).click();
    await terminal(page, asks);
  }
  await lab.cli("tab", "send", asks.id, `clear; stty raw -echo; printf '\\033[6n\\033[c'; cat > ${file}`);
  const answers = () => readFileSync(file, "latin1");
  await until("the answers", () => existsSync(file) && /\u001b\[\d+;\d+R[^]*\u001b\[\?[\d;]+c/.test(answers()));
  await holds("one answer each", () => (answers().match(/\u001b\[\d+;\d+R/g) ?? []).length === 1 && (answers().match(/\u001b\[\?[\d;]+c/g) ?? []).length === 1 && answers().match(/\u001b/g).length === 2, 1000);
  assert.deepEqual([...one.faults, ...other.faults], []);
});

test("W09 a flood on a slow page: Ctrl-C is felt at once, output goes on after it, badges are in time", async () => {
  const tab = await lab.tab("terminal", 0);
  const page = await opened(tab);
  const agent = await lab.tab("claude-code", 2);
  await until("Claude", async () => (await lab.item(agent.id))?.state === "idle");
  await enter(page, "PS1='ready> '; clear");
  await until("prompt", async () => (await drawn(page)).includes("ready>"));
  const cdp = await page.context().newCDPSession(page);
  await cdp.send("Emulation.setCPUThrottlingRate", { rate: 4 });
  await enter(page, "yes");
  await until("the flood", async () => ((await drawn(page)).match(/^y$/gm)?.length ?? 0) > 10);
  await lab.cli("tab", "send", agent.id, "say x");
  await until("the badge", async () => /busy|review/.test((await lab.item(agent.id)).state));
  const badge = performance.now();
  await row(page, agent).getByRole("img", { name: /To review|Busy/ }).waitFor();
  assert.ok(performance.now() - badge < 5 * 300, "the badge does not wait for the flood");
  await page.locator(".xterm-helper-textarea").first().focus();
  const pressed = performance.now();
  await page.keyboard.press("Control+c");
  await until("prompt", async () => /ready>\s*$/.test((await drawn(page)).trimEnd()));
  const took = performance.now() - pressed;
  assert.ok(took < 1500, `${took.toFixed(0)} ms; the promise is 300, and this is at five times that`);
  await enter(page, "echo on-$((40+2))");
  await until("output", async () => (await drawn(page)).includes("\non-42"));
  assert.deepEqual(page.faults, []);
});
