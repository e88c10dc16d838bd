// Every screen as a person sees it, in both themes, on a desk, a tablet and a phone: compared with pictures that were looked
// at (pictures/, coarse on purpose, so that no machine's way of drawing letters counts), and gone over by axe-core. After a
// change that is meant: `KEEP_PICTURES=1 node --test browser/screens.test.mjs` in e2e, and look at e2e/results/screens.

import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, test } from "node:test";
import { drawn, Lab, READABLE, results, until, violations } from "./lab.mjs";
import { finish, say, standIn } from "./standin.mjs";

const kept = join(dirname(fileURLToPath(import.meta.url)), "pictures");
/** A picture is compared by the mean colour of squares of this many pixels. */
const SQUARE_PX = 12;
/** A square differs from here on, of 255; a picture from this share of squares on. */
const COLOR_MAX = 14;
const SHARE_MAX = 0.03;
const SIZES = { desk: { width: 1280, height: 800 }, tablet: { width: 820, height: 1180 }, phone: { width: 390, height: 844 } };
/** What no two runs or machines have in common: ages, the name of the machine, ids, paths. */
const HIDDEN = ".age, .chip time, .chip .t, .host, footer .mono, .dir, .where, .path, time, [data-past], .xterm-cursor { visibility: hidden !important; } * { caret-color: transparent !important; }";

let lab;
let compare;
beforeEach(async () => {
  lab = await Lab.start();
  compare = await lab.open({ signedIn: false });
});
afterEach(async () => lab?.stop());

/** Squares of a picture as a small PNG, or how it differs from such a one. */
async function squares(png, reference) {
  return compare.evaluate(
    async ([picture, before, px, most]) => {
      const image = async (base64) => createImageBitmap(await (await fetch(`data:image/png;base64,${base64}`)).blob());
      const pixels = (bitmap) => {
        const canvas = new OffscreenCanvas(bitmap.width, bitmap.height);
        const flat = canvas.getContext("2d");
        flat.drawImage(bitmap, 0, 0);
        return flat.getImageData(0, 0, bitmap.width, bitmap.height);
      };
      const large = pixels(await image(picture));
      const [wide, high] = [Math.floor(large.width / px), Math.floor(large.height / px)];
      const small = new ImageData(wide, high);
      for (let y = 0; y < high; y += 1) {
        for (let x = 0; x < wide; x += 1) {
          const sum = [0, 0, 0];
          for (let dy = 0; dy < px; dy += 1) for (let dx = 0; dx < px; dx += 1) for (let c = 0; c < 3; c += 1) sum[c] += large.data[4 * ((y * px + dy) * large.width + x * px + dx) + c];
          for (let c = 0; c < 3; c += 1) small.data[4 * (y * wide + x) + c] = Math.round(sum[c] / (px * px));
          small.data[4 * (y * wide + x) + 3] = 255;
        }
      }
      if (before === null) {
        const canvas = new OffscreenCanvas(wide, high);
        canvas.getContext("2d").putImageData(small, 0, 0);
        const bytes = new Uint8Array(await (await canvas.convertToBlob({ type: "image/png" })).arrayBuffer());
        return { png: btoa(String.fromCharCode(...bytes)) };
      }
      const old = pixels(await image(before));
      if (old.width !== wide || old.height !== high) return { share: 1, where: `${old.width}x${old.height}, now ${wide}x${high}` };
      const off = [];
      for (let n = 0; n < wide * high; n += 1) if ([0, 1, 2].some((c) => Math.abs(old.data[4 * n + c] - small.data[4 * n + c]) > most)) off.push([(n % wide) * px, Math.floor(n / wide) * px]);
      const [xs, ys] = [off.map(([x]) => x), off.map(([, y]) => y)];
      return { share: off.length / (wide * high), where: off.length === 0 ? "" : `x ${Math.min(...xs)} to ${Math.max(...xs) + px}, y ${Math.min(...ys)} to ${Math.max(...ys) + px}` };
    },
    [png.toString("base64"), reference?.toString("base64") ?? null, SQUARE_PX, COLOR_MAX],
  );
}

const faults = [];
/** Both themes of what is on the page now. */
async function look(page, size, name) {
  for (const colorScheme of ["dark", "light"]) {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    // On a desk the tests of each screen do this, and with the screen in more states; it takes its time.
    if (size === "phone" || (size === "tablet" && colorScheme === "light")) {
      const wrong = await violations(page);
      if (wrong.length > 0) faults.push(`${name} ${size} ${colorScheme}: ${wrong.join("; ")}`);
    }
    const file = `${name}-${size}-${colorScheme}.png`;
    const shot = () => page.screenshot({ style: HIDDEN, animations: "disabled", caret: "hide", scale: "css" });
    let png = await shot();
    mkdirSync(join(results, "screens"), { recursive: true });
    const keep = process.env.KEEP_PICTURES !== undefined;
    if (keep && !(existsSync(join(kept, file)) && (await squares(png, readFileSync(join(kept, file)))).share <= SHARE_MAX)) {
      mkdirSync(kept, { recursive: true });
      writeFileSync(join(kept, file), Buffer.from((await squares(png, null)).png, "base64"));
    } else if (!existsSync(join(kept, file))) faults.push(`${file} is not kept: look at results/screens, then KEEP_PICTURES=1`);
    else {
      const reference = readFileSync(join(kept, file));
      let found = { share: 1, where: "" };
      // A frame that is still being drawn is not the picture.
      await until("the picture", async () => {
        png = await shot();
        found = await squares(png, reference);
        return found.share <= SHARE_MAX;
      }, 3000).catch(() => faults.push(`${file}: ${(100 * found.share).toFixed(1)} % differs (${found.where})`));
    }
    writeFileSync(join(results, "screens", file), png);
  }
  const [wide, inner] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  if (wide !== inner) faults.push(`${name} ${size}: something hangs over the edge`);
}

for (const [size, viewport] of Object.entries(SIZES)) {
  test(`every screen on a ${size}`, async () => {
    faults.length = 0;
    const options = { flags: READABLE, viewport, ...(size === "desk" ? {} : { hasTouch: true, isMobile: true }) };
    const stranger = await lab.open({ ...options, signedIn: false });
    await stranger.goto(new URL("/", await lab.link()).href);
    await stranger.getByRole("heading", { name: "Sign in to purplemux" }).waitFor();
    await look(stranger, size, "sign-in");

    const page = await lab.open(options);
    await page.getByText("No sessions yet").or(page.getByRole("button", { name: /Open a terminal/ })).first().waitFor();
    await look(page, size, "empty");

    // Three agents and a shell, named alike in every run.
    const tabs = [];
    const claude = standIn(lab.env);
    for (const [n, name] of ["ask me", "work", "done", "shell"].entries()) {
      const made = JSON.parse(await lab.cli("tab", "create", "-t", "terminal", "--name", name, "--cwd", lab.projects[0], "--json"));
      const tab = { id: made.tab, ...made.tmux };
      tabs.push(tab);
      await lab.cli("tab", "send", tab.id, "PS1='$ '; clear");
      await until("the prompt", async () => (await lab.screen(tab)).trim() === "$");
      if (name === "shell") continue;
      await lab.cli("tab", "send", tab.id, `clear; ${claude} 600`);
      const pid = await until("an agent", async () => (await lab.item(tab.id))?.pid);
      say(lab.env, pid, ["waiting", "busy", "busy"][n]);
      await until("its state", async () => (await lab.item(tab.id)).state === ["needs-input", "busy", "busy"][n]);
      if (name === "done") {
        await finish(lab.env, pid);
        say(lab.env, pid, "idle");
        await until("a review", async () => (await lab.item(tab.id)).state === "review");
      }
    }
    const shell = tabs.at(-1);
    const narrow = size === "phone";
    const opens = (tab) => (narrow ? page.locator(`button[data-tab="${tab.id}"]`) : page.locator(`[data-tab="${tab.id}"]`).first());
    if (narrow) {
      await look(page, size, "sessions");
      await page.getByRole("button", { name: "Attention, 2" }).click();
      await page.getByRole("dialog", { name: "Attention" }).waitFor();
      await look(page, size, "attention");
      await page.keyboard.press("Escape");
      await page.getByRole("dialog", { name: "Attention" }).waitFor({ state: "detached" });
    }
    // A phone folds away what does not run.
    if (narrow) await page.getByText("1 not running").click();
    await opens(shell).click();
    await page.locator(`[data-terminal="${shell.id}"][data-live=true]`).waitFor();
    await until("the prompt", async () => (await drawn(page)).trim() === "$");
    await look(page, size, "terminal");

    const dialogs = [["Alt+KeyK", "palette", "Command palette"], ["Alt+Slash", "keys", /Keyboard|keys/i], ["Alt+Comma", "settings", "Settings"]];
    for (const [key, name, label] of dialogs) {
      await page.keyboard.press(key);
      await page.getByRole("dialog", { name: label }).waitFor();
      await look(page, size, name);
      if (name === "settings") {
        const dialog = page.getByRole("dialog", { name: label });
        for (const part of ["Keyboard", "Notifications", "Signed-in devices"]) {
          await dialog.getByRole("button", { name: part, exact: true }).click();
          await dialog.getByRole("heading", { name: part }).waitFor();
          await look(page, size, `settings-${part.toLowerCase()}`);
        }
      }
      await page.keyboard.press("Escape");
      await page.getByRole("dialog", { name: label }).waitFor({ state: "detached" });
    }
    // A phone has the first of these in its list, and the second by a press on the state.
    for (const [key, name, label] of narrow ? [] : [["Alt+KeyI", "attention", "Attention"], ["Alt+Shift+Slash", "why", /./]]) {
      await page.keyboard.press(key);
      await page.getByRole("dialog", { name: label }).waitFor();
      await look(page, size, name);
      await page.keyboard.press("Escape");
      await page.getByRole("dialog").waitFor({ state: "detached" });
    }
    await page.keyboard.press("Alt+KeyK");
    await page.getByRole("combobox", { name: "Search sessions and commands" }).fill("past conv");
    await page.getByRole("option", { name: /^Past conversations/ }).click();
    await page.getByRole("dialog", { name: "Past conversations" }).waitFor();
    await look(page, size, "past");
    await page.keyboard.press("Escape");

    assert.deepEqual(page.faults, []);
    assert.deepEqual(faults, []);
  });
}

test("a picture that is another one is told from it", async () => {
  const [one, other] = ["dark", "light"].map((theme) => readFileSync(join(kept, `terminal-desk-${theme}.png`)));
  const page = await lab.open({ signedIn: false });
  await page.setViewportSize(SIZES.desk);
  const small = await page.evaluate(async (base64) => createImageBitmap(await (await fetch(`data:image/png;base64,${base64}`)).blob()).then(({ width, height }) => [width, height]), one.toString("base64"));
  assert.deepEqual(small, [Math.floor(SIZES.desk.width / SQUARE_PX), Math.floor(SIZES.desk.height / SQUARE_PX)]);
  await page.setContent(`<body style="margin:0"><img style="image-rendering:pixelated;width:${small[0] * SQUARE_PX}px" src="data:image/png;base64,${one.toString("base64")}">`);
  const shot = await page.screenshot();
  assert.ok((await squares(shot, one)).share <= SHARE_MAX);
  assert.ok((await squares(shot, other)).share > 0.5);
});
