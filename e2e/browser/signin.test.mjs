// Signing in: by the printed link, once, with nothing of it left in the address.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Lab, picture, until, violations } from "./lab.mjs";

let lab;
before(async () => (lab = await Lab.start()));
after(async () => lab?.stop());

test("a printed link signs in, once, and leaves no code behind", async () => {
  const link = await lab.link();
  assert.match(link, /^http:\/\/127\.0\.0\.1:\d+\/#login=\S{20,}$/);
  const page = await lab.open({ signedIn: false });
  const code = new URL(link).hash.slice("#login=".length);
  await page.goto(link);
  await page.getByRole("heading", { name: "Sign in to purplemux" }).waitFor({ state: "detached" });
  await until("address without the code", () => !page.url().includes(code));
  assert.equal(await page.evaluate((secret) => JSON.stringify([history.state, document.cookie, { ...localStorage }, { ...sessionStorage }]).includes(secret), code), false);
  assert.equal(await page.evaluate(() => document.cookie), "", "the cookie is HttpOnly");
  await picture(page, "signed-in-empty");

  await page.reload();
  await page.getByText("No sessions yet").or(page.getByText("has no sessions yet")).first().waitFor();
  assert.deepEqual(page.faults, []);

  const other = await lab.open({ signedIn: false });
  await other.goto(link);
  await other.getByRole("alert").getByText("This link did not work.").waitFor();
  await picture(other, "link-used");
});

test("without a login there is no session to see", async () => {
  const page = await lab.open({ signedIn: false });
  await page.goto(new URL(await lab.link()).origin);
  await page.getByRole("heading", { name: "Sign in to purplemux" }).waitFor();
  assert.deepEqual(await violations(page), []);
  assert.equal(await page.locator("[role=treeitem]").count(), 0);

  // Where no link can be opened, as on a home screen, it is pasted.
  const field = page.getByRole("textbox", { name: "Or paste the link here" });
  await field.fill("https://example.net/");
  await field.press("Enter");
  await page.getByRole("alert").getByText("This link did not work.").waitFor();
  await field.fill(` ${await lab.link()} `);
  await picture(page, "link-pasted");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "Sign in to purplemux" }).waitFor({ state: "detached" });
  assert.deepEqual(page.faults, []);
});
