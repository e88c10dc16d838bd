// The page at phone width: the list, a session, its terminal and the keys that a phone lacks.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { drawn, Lab, picture, READABLE, terminal, until, violations } from "./lab.mjs";

let lab;
before(async () => (lab = await Lab.start()));
after(async () => lab?.stop());

test("list, session and terminal work at phone width", async () => {
  const shell = await lab.tab("terminal", 0);
  const claude = await lab.tab("claude-code", 1);
  const page = await lab.open({ flags: READABLE, viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });
  await page.getByRole("heading", { name: "Sessions" }).waitFor();
  await page.getByRole("button", { name: /Idle/ }).and(page.locator(`[data-tab="${claude.id}"]`)).waitFor();
  const widths = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  assert.equal(widths[0], widths[1], "nothing hangs over the edge");
  assert.deepEqual(await violations(page), []);
  await picture(page, "phone-list");

  await page.locator(`button[data-tab="${shell.id}"]`).tap();
  await terminal(page, shell);
  await until("prompt", async () => /lab[#$]/.test(await drawn(page)));
  const field = page.getByRole("textbox", { name: "Type into the terminal" });
  await field.fill("echo phone-$((6*7))");
  await page.getByRole("button", { name: "Send" }).tap();
  await until("output", async () => (await drawn(page)).includes("\nphone-42"));
  assert.deepEqual(await violations(page), []);
  await picture(page, "phone-terminal");

  await page.getByRole("button", { name: "Back to the sessions" }).tap();
  await page.locator(`button[data-tab="${claude.id}"]`).tap();
  await terminal(page, claude);
  await until("Claude's box", async () => /manual mode|\? for shortcuts/.test(await drawn(page)));
  await picture(page, "phone-claude");
  assert.deepEqual(page.faults, []);
});

test("search, settings and a message are there at phone and tablet width, in both themes, with nothing wrong for a screen reader", async () => {
  const claude = await lab.tab("claude-code", 2);
  for (const [size, viewport] of [["phone", { width: 390, height: 844 }], ["tablet", { width: 820, height: 1180 }]]) {
    const page = await lab.open({ flags: READABLE, viewport, hasTouch: true, isMobile: true });
    const look = async (name) => {
      for (const colorScheme of ["dark", "light"]) {
        await page.emulateMedia({ colorScheme });
        assert.deepEqual(await violations(page), [], `${name} ${size} ${colorScheme}`);
        await picture(page, `${name}-${size}-${colorScheme}`);
      }
      const [wide, inner] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
      assert.equal(wide, inner, `${name} ${size}: nothing hangs over the edge`);
    };
    await page.getByRole("button", { name: /^Search/ }).tap();
    await page.getByRole("combobox", { name: "Search sessions and commands" }).waitFor();
    await look("palette");
    const heights = await page.getByRole("option").evaluateAll((options) => options.map((option) => option.getBoundingClientRect().height));
    assert.ok(Math.min(...heights) >= 48, "as large as a thumb");
    await page.getByRole("dialog", { name: "Command palette" }).getByRole("button", { name: "Close" }).tap();

    await page.getByRole("button", { name: "Settings" }).tap();
    const dialog = page.getByRole("dialog", { name: "Settings" });
    for (const part of ["Appearance", "Keyboard", "Notifications", "Signed-in devices"]) {
      await dialog.getByRole("button", { name: part, exact: true }).tap();
      await dialog.getByRole("heading", { name: part }).waitFor();
      await look(`settings-${part.toLowerCase().replaceAll(/\W/g, "")}`);
    }
    await dialog.getByRole("button", { name: "Appearance", exact: true }).tap();
    await dialog.getByText("繁體中文").tap();
    await page.getByRole("dialog", { name: "設定" }).getByRole("heading", { name: "外觀" }).waitFor();
    await page.getByRole("dialog", { name: "設定" }).getByText("English").tap();
    await dialog.getByRole("button", { name: "Close" }).tap();
    if (size === "phone") {
      await page.locator(`button[data-tab="${claude.id}"]`).tap();
      await terminal(page, claude);
      await until("Claude's box", async () => /manual mode|\? for shortcuts/.test(await drawn(page)));
      await page.getByRole("button", { name: "Message", exact: true }).tap();
      await page.getByRole("textbox", { name: /^Message to / }).fill("say from a phone");
      await look("composer");
      await page.getByRole("region", { name: /^Message to / }).getByRole("button", { name: "Send" }).tap();
      await page.getByText("Sent. Claude has taken it.").waitFor();
    }
    assert.deepEqual(page.faults, []);
  }
});
