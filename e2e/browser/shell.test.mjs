// The page without its server: it opens from what this device keeps, says how old that is, comes back by itself, and gives
// way to the server's own page as soon as that is another one. Installable, with icons for every mask.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { Lab, picture, READABLE, row, terminal, until, violations } from "./lab.mjs";

/** The worker rules the page and has kept one build whole. */
const kept = (page) =>
  until("the page's files to be kept", () =>
    page.evaluate(async () => {
      if (navigator.serviceWorker.controller === null) return false;
      const [name] = (await caches.keys()).filter((known) => known.startsWith("shell "));
      return name !== undefined && (await (await caches.open(name)).match("/")) !== undefined;
    }),
  );

describe("the page without its server", () => {
  let lab;
  before(async () => (lab = await Lab.start()));
  after(async () => lab?.stop());

  test("opens with the last picture and its age, and comes back by itself", async () => {
    const page = await lab.open({ flags: READABLE });
    const tab = await lab.tab("terminal", 0);
    await row(page, tab).click();
    await terminal(page, tab);
    await kept(page);
    await lab.stopServer();
    await page.reload();
    await row(page, tab).waitFor();
    await page.getByText(/^Connection to .+ lost\.$/).waitFor();
    await page.getByText(/Showing \d/).waitFor();
    assert.equal(await page.title(), "Offline · purplemux");
    const mark = page.locator("[data-link]").first();
    assert.notEqual(await mark.getAttribute("data-link").catch(() => "lost"), "live");
    for (const colorScheme of ["dark", "light"]) {
      await page.emulateMedia({ colorScheme });
      assert.deepEqual(await violations(page), [], colorScheme);
      await picture(page, `offline-${colorScheme}`);
    }
    await page.setViewportSize({ width: 390, height: 844 });
    await page.getByText(/^\d+ s old$/).first().waitFor();
    await picture(page, "offline-phone");
    await page.setViewportSize({ width: 1280, height: 800 });

    await page.evaluate(() => (globalThis.sameDocument = true));
    await lab.serve();
    await terminal(page, tab);
    await page.getByText(/^Connection to .+ lost\.$/).waitFor({ state: "detached" });
    assert.equal(await page.evaluate(() => globalThis.sameDocument), true, "of the same build it stays");
    assert.deepEqual(page.faults, []);
  });

  test("with no network at all it opens too, and nothing of the person's stays after signing out", async () => {
    const page = await lab.open({ flags: READABLE });
    const tab = await lab.tab("terminal", 0);
    await row(page, tab).waitFor();
    await kept(page);
    await page.context().setOffline(true);
    await page.reload();
    await row(page, tab).waitFor();
    assert.equal(await page.title(), "Offline · purplemux");
    await page.context().setOffline(false);
    await until("the link", async () => (await page.title()) !== "Offline · purplemux");
    await page.getByRole("button", { name: "Settings" }).click();
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("heading", { name: "Sign in to purplemux" }).waitFor();
    assert.deepEqual(
      await page.evaluate(async () => {
        const all = [];
        for (const name of await caches.keys()) for (const { url } of await (await caches.open(name)).keys()) all.push(new URL(url).pathname);
        return { picture: localStorage.getItem("purplemux.picture"), api: all.filter((path) => path.startsWith("/api")) };
      }),
      { picture: null, api: [] },
    );
  });

  test("an old page that was kept never meets the server: the server's own takes its place", async () => {
    const page = await lab.open({ flags: READABLE });
    const tab = await lab.tab("terminal", 0);
    await row(page, tab).waitFor();
    await kept(page);
    // What is kept is marked, so that it can be told from what the server sends.
    await page.evaluate(async () => {
      const [name] = (await caches.keys()).filter((known) => known.startsWith("shell "));
      const cache = await caches.open(name);
      const html = await (await cache.match("/")).text();
      await cache.put("/", new Response(html.replace("<html ", "<html data-old "), { headers: { "content-type": "text/html" } }));
    });
    const old = () => page.evaluate(() => "old" in document.documentElement.dataset);
    await page.reload();
    await row(page, tab).waitFor();
    assert.equal(await old(), false, "a server that answers is not overruled");
    await lab.stopServer();
    await page.reload();
    await row(page, tab).waitFor();
    assert.equal(await old(), true, "the old one is shown while there is no other");

    // The server comes back with another build than this page's.
    await page.evaluate(() => document.querySelector("script[type=module][src]").setAttribute("src", "/assets/of-another-build.js"));
    await lab.serve();
    await until("the server's own page", async () => !(await old()));
    await row(page, tab).waitFor();
    await until("the link", async () => (await page.title()) !== "Offline · purplemux");
  });

  test("it can be installed: manifest, icons of the sizes they say, one for masks", async () => {
    const page = await lab.open();
    const origin = new URL(page.url()).origin;
    const manifest = await (await fetch(`${origin}/manifest.webmanifest`)).json();
    assert.deepEqual([manifest.start_url, manifest.display, manifest.scope], ["/", "standalone", "/"]);
    const purposes = new Set(manifest.icons.map(({ purpose }) => purpose ?? "any"));
    assert.ok(purposes.has("any") && purposes.has("maskable"));
    for (const { src, sizes, type } of manifest.icons) {
      const answer = await fetch(origin + src);
      assert.equal(answer.headers.get("content-type"), type, src);
      if (sizes === "any") continue;
      const size = await page.evaluate(async (path) => {
        const bitmap = await createImageBitmap(await (await fetch(path)).blob());
        return `${bitmap.width}x${bitmap.height}`;
      }, src);
      assert.equal(size, sizes, src);
    }
    const cdp = await page.context().newCDPSession(page);
    const { installabilityErrors } = await cdp.send("Page.getInstallabilityErrors");
    // Chromium installs nothing from a private window, which a test's is.
    assert.deepEqual(installabilityErrors.map(({ errorId }) => errorId).filter((id) => id !== "in-incognito"), []);
  });
});
