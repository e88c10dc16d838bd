// The whole product in a home of its own, and a real Chromium in front of it. Owns what a test starts and ends all of
// it, by process; must never touch the person's own home, tmux server or browser profile, and never wait by the clock
// alone: every wait is for a condition, and its deadline is the failure.

import { execFile, spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { chromium } from "playwright-core";

const run = promisify(execFile);
const e2e = dirname(dirname(fileURLToPath(import.meta.url)));
/** Where pictures and figures of a run go. */
export const results = join(e2e, "results");

/** Far above what a loaded machine needs. */
export const PATIENCE_MS = 30_000;
/** Between two looks at a condition. */
const LOOK_MS = 20;
/** A process that was asked to end is killed after this. */
const GRACE_MS = 5_000;

const BROWSER_FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--no-proxy-server",
];
/** Without WebGL the terminal draws with the DOM, where its text can be read. */
export const READABLE = ["--disable-3d-apis"];
/** With WebGL, drawn by the processor. */
export const WEBGL = ["--enable-unsafe-swiftshader", "--use-angle=swiftshader", "--ignore-gpu-blocklist"];

const profile = process.env.CARGO_TARGET_DIR ?? join(dirname(e2e), "target");
const binary = process.env.PURPLEMUX_BIN ?? join(profile, "debug", "purplemux");

/** Looks until `condition` gives something other than undefined, null or false. */
export async function until(what, condition, deadlineMs = PATIENCE_MS) {
  const end = performance.now() + deadlineMs;
  let failed = null;
  for (;;) {
    try {
      const value = await condition();
      if (value !== undefined && value !== null && value !== false) return value;
      failed = null;
    } catch (error) {
      failed = error;
    }
    if (performance.now() > end) throw new Error(`no ${what} within ${deadlineMs} ms${failed === null ? "" : `: ${failed.message}`}`, { cause: failed });
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
}

/** Makes sure that `condition` holds at every look for so long. */
export async function holds(what, condition, forMs) {
  const end = performance.now() + forMs;
  while (performance.now() < end) {
    if (!(await condition())) throw new Error(`${what} did not hold for ${forMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
}

async function end(child) {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGTERM");
  const timer = setTimeout(() => child.kill("SIGKILL"), GRACE_MS);
  await ended;
  clearTimeout(timer);
}

export class Lab {
  /** Fake API, seeded home, server; `change` may answer with another environment for the product. */
  static async start(change = (env) => env) {
    const lab = new Lab();
    try {
      await lab.#begin(change);
    } catch (error) {
      await lab.stop();
      throw error;
    }
    return lab;
  }

  env = {};
  projects = [];
  log = "";
  #fake = null;
  #server = null;
  #browsers = [];
  #port = "0";

  async #begin(change) {
    const fakeApi = join(dirname(binary), "fake-api");
    const path = existsSync(fakeApi) ? fakeApi : join(profile, "debug", "fake-api");
    this.#fake = spawn(path, ["--home"], { stdio: ["pipe", "pipe", "inherit"] });
    const line = await new Promise((resolve, reject) => {
      this.#fake.once("error", reject);
      this.#fake.once("exit", (code) => reject(new Error(`fake-api ended with ${code}`)));
      createInterface({ input: this.#fake.stdout }).once("line", resolve);
    });
    const { env, projects } = JSON.parse(line);
    this.env = change(env);
    this.projects = projects;
    await this.serve();
  }

  /** Starts the server, on the port it had before, and waits until it answers. */
  async serve() {
    this.#server = spawn(binary, ["serve", "--port", this.#port], { env: this.env, cwd: this.env.HOME, stdio: ["ignore", "pipe", "pipe"] });
    const keep = (chunk) => (this.log += chunk);
    this.#server.stdout.on("data", keep);
    this.#server.stderr.on("data", keep);
    await until("answer of the server", async () => {
      if (this.#server.exitCode !== null) throw new Error(`purplemux serve ended:\n${this.log}`);
      const port = readFileSync(join(this.env.PURPLEMUX_HOME, "port"), "utf8").trim();
      const health = await fetch(`http://127.0.0.1:${port}/api/health`).then((answer) => answer.json());
      this.#port = port;
      return health.app === "purplemux";
    });
  }

  /** Stops the server and leaves its tabs alive. */
  async stopServer() {
    await end(this.#server);
  }

  /** A command of the product; what it printed. */
  async cli(...args) {
    const { stdout } = await run(binary, args, { env: this.env, cwd: this.env.HOME });
    return stdout;
  }

  /** A link for signing in, as `purplemux login` prints it. */
  async link() {
    return (await this.cli("login")).trim();
  }

  /** The item of a tab, as programs see it. */
  async item(tab) {
    return JSON.parse(await this.cli("status", "--json")).find((item) => item.tab === tab);
  }

  /** A new tab, made by the command line. */
  async tab(kind, project = 0) {
    const made = JSON.parse(await this.cli("tab", "create", "-t", kind, "--cwd", this.projects[project], "--json"));
    return { id: made.tab, ...made.tmux };
  }

  /** What tmux says to a command on a tab's server. */
  async tmux(tab, ...args) {
    const { stdout } = await run("tmux", ["-S", tab.socket, ...args]);
    return stdout;
  }

  /** What tmux says is on a tab's screen. */
  async screen(tab) {
    const { stdout } = await run("tmux", ["-S", tab.socket, "capture-pane", "-p", "-t", `=${tab.session}:`]);
    return stdout;
  }

  /** A browser with a profile of its own, signed in by a link. */
  async open({ flags = [], signedIn = true, ...options } = {}) {
    const browser = await chromium.launch({ executablePath: process.env.PURPLEMUX_BROWSER ?? "/usr/bin/chromium", args: [...BROWSER_FLAGS, ...flags] });
    this.#browsers.push(browser);
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, reducedMotion: "reduce", ...options });
    const page = await context.newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    page.faults = [];
    page.on("pageerror", (error) => page.faults.push(String(error)));
    if (signedIn) {
      await page.goto(await this.link());
      await page.getByRole("heading", { name: "Sign in to purplemux" }).waitFor({ state: "detached" });
    }
    return page;
  }

  async stop() {
    for (const browser of this.#browsers) await browser.close();
    if (this.#server !== null) await end(this.#server);
    // It ends whatever still lives in the home, and removes it.
    if (this.#fake !== null && this.#fake.exitCode === null) {
      const ended = new Promise((resolve) => this.#fake.once("exit", resolve));
      this.#fake.stdin.end();
      await ended;
    }
  }
}

/** A picture for whoever looks into a failure; never compared. */
export async function picture(page, name) {
  mkdirSync(results, { recursive: true });
  await page.screenshot({ path: join(results, `${name}.png`) });
}

/** The row of a tab in the sidebar, whatever it says. */
export const row = (page, tab) => page.locator(`[role=treeitem][data-tab="${tab.id}"]`);

/** What a screen reader says of an element. */
export async function nameOf(locator) {
  const snapshot = await locator.ariaSnapshot();
  return snapshot.split("\n")[0];
}

/** From now on, every state that the tab's row shows, in words; read with `shown`. */
export async function follow(page, tab) {
  await page.evaluate((id) => {
    const states = [];
    const look = () => {
      const glyph = document.querySelector(`[role=treeitem][data-tab="${id}"] [role=img]`);
      const state = glyph?.getAttribute("aria-label");
      if (state != null && states.at(-1) !== state) states.push(state);
    };
    look();
    new MutationObserver(look).observe(document.body, { subtree: true, childList: true, attributes: true, characterData: true });
    globalThis.shownStates = states;
  }, tab.id);
}

export const shown = (page) => page.evaluate(() => globalThis.shownStates);

/** The terminal on the page, live. */
export async function terminal(page, tab) {
  const found = page.locator(`[data-terminal="${tab.id}"][data-live=true]`);
  await found.waitFor();
  return found;
}

/** The text that the page draws, which needs a browser started with `READABLE`. */
export const drawn = (page) => page.locator(".xterm-rows").first().evaluate((rows) => [...rows.children].map((line) => line.textContent).join("\n").replaceAll("\u00a0", " "));

/** Types into the terminal on the page and presses Enter once the line is drawn. */
export async function enter(page, line) {
  await page.locator(".xterm-helper-textarea").focus();
  await page.keyboard.type(line);
  const squeezed = line.replaceAll(/\s/g, "").slice(-20);
  await until(`echo of ${line}`, async () => (await drawn(page)).replaceAll(/\s/g, "").includes(squeezed));
  await page.keyboard.press("Enter");
}

/** What axe-core finds wrong on the page as it is. */
export async function violations(page) {
  await page.evaluate(readFileSync(join(e2e, "node_modules/axe-core/axe.min.js"), "utf8"));
  const found = await page.evaluate(() => globalThis.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"] }));
  return found.violations.map((violation) => `${violation.id}: ${violation.help}: ${violation.nodes.map((node) => node.html.slice(0, 160)).join(" | ")}`);
}
