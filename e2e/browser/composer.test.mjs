// The message box over a session's terminal: sent once Claude has taken it, refused over a draft with the words kept, and
// drafts and former messages at hand.

import assert from "node:assert/strict";
import { readFileSync, statSync } from "node:fs";
import { after, before, test } from "node:test";
import { drawn, Lab, picture, READABLE, row, terminal, until, violations } from "./lab.mjs";

let lab;
before(async () => (lab = await Lab.start()));
after(async () => lab?.stop());

test("a message goes into Claude's empty box and is confirmed, and over a draft it stays here", async () => {
  const page = await lab.open({ flags: READABLE });
  const tab = await lab.tab("claude-code", 0);
  await row(page, tab).and(page.getByRole("treeitem", { name: "Idle" })).waitFor();
  await row(page, tab).click();
  await terminal(page, tab);
  await until("Claude's box", async () => /manual mode|\? for shortcuts/.test(await drawn(page)));
  const size = () => page.locator("footer").first().innerText();
  const before = await size();

  await page.locator(".xterm-helper-textarea").focus();
  await page.keyboard.press("Alt+KeyC");
  const box = page.getByRole("textbox", { name: /^Message to / });
  await box.waitFor();
  await until("the focus", () => box.evaluate((field) => document.activeElement === field));
  await page.keyboard.type("say hello");
  await page.keyboard.press("Shift+Enter");
  await page.keyboard.type("and good day");
  assert.equal(await box.inputValue(), "say hello\nand good day");
  await page.keyboard.press("Enter");
  await page.getByText("Sent. Claude has taken it.").waitFor();
  assert.equal(await box.inputValue(), "");
  await until("the answer", async () => (await drawn(page)).includes("● hello"));
  assert.equal(await size(), before, "the terminal kept its size");
  for (const colorScheme of ["dark", "light"]) {
    await page.emulateMedia({ colorScheme });
    assert.deepEqual(await violations(page), [], colorScheme);
    await picture(page, `composer-${colorScheme}`);
  }

  // A draft stands in the terminal.
  await page.keyboard.press("Escape");
  await box.waitFor({ state: "detached" });
  await page.locator(".xterm-helper-textarea").focus();
  await page.keyboard.type("half a thought");
  await until("the draft", async () => (await drawn(page)).includes("half a thought"));
  await page.keyboard.press("Alt+KeyC");
  await box.fill("say merged");
  await page.keyboard.press("Enter");
  await page.getByText(/typed into Claude.s box in the terminal.*Nothing was sent/).waitFor();
  assert.equal(await box.inputValue(), "say merged");
  assert.ok((await drawn(page)).includes("half a thought") && !(await drawn(page)).includes("merged"));

  // It is still there after a reload, and what was sent before is one key away.
  await page.reload();
  await terminal(page, tab);
  await page.locator(".xterm-helper-textarea").focus();
  await page.keyboard.press("Alt+KeyC");
  await until("the draft of the message", async () => (await box.inputValue()) === "say merged");
  await box.fill("");
  await page.keyboard.press("ArrowUp");
  assert.equal(await box.inputValue(), "say hello\nand good day");
  assert.deepEqual(page.faults, []);
});

test("A08 pasted, dropped and chosen files are kept for the person alone, their paths stand in the message, and Claude gets them", async () => {
  const page = await lab.open({ flags: READABLE });
  const tab = await lab.tab("claude-code", 1);
  await row(page, tab).and(page.getByRole("treeitem", { name: "Idle" })).waitFor();
  await row(page, tab).click();
  await terminal(page, tab);
  await until("Claude's box", async () => /manual mode|\? for shortcuts/.test(await drawn(page)));
  await page.locator(".xterm-helper-textarea").focus();
  await page.keyboard.press("Alt+KeyC");
  const box = page.getByRole("textbox", { name: /^Message to / });
  await box.waitFor();
  const home = lab.env.PURPLEMUX_HOME;

  /** A paste or a drop, as a browser makes one. */
  const bring = (target, how, name, type, words) =>
    target.evaluate(
      (element, [how, name, type, words]) => {
        const data = new DataTransfer();
        data.items.add(new File([words], name, { type }));
        const event = how === "paste" ? new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }) : new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true });
        element.dispatchEvent(event);
        return event.defaultPrevented;
      },
      [how, name, type, words],
    );
  const paths = async (count) =>
    until(`${count} paths`, async () => {
      const found = (await box.inputValue()).match(/\S+\/files\/[0-9a-f]{16}\/\S+/g) ?? [];
      return found.length === count ? found : null;
    });

  await box.fill("say see");
  assert.equal(await bring(box, "paste", "螢幕快照 $(rm -rf ~).txt", "text/plain", "pasted"), true);
  const [pasted] = await paths(1);
  assert.equal(pasted.startsWith(`${home}/files/`), true, pasted);
  assert.match(pasted, /\/螢幕快照___rm_-rf___\.txt$/);
  assert.equal(readFileSync(pasted, "utf8"), "pasted");
  assert.equal(statSync(pasted).mode & 0o777, 0o600);

  // Dropped on the terminal beside the box, and chosen.
  assert.equal(await bring(page.locator(`[data-terminal="${tab.id}"]`), "drop", "b.txt", "text/plain", "dropped"), true);
  const [, dropped] = await paths(2);
  assert.equal(readFileSync(dropped, "utf8"), "dropped");
  await page.locator("input[type=file]").setInputFiles({ name: "c.txt", mimeType: "text/plain", buffer: Buffer.from("chosen") });
  const [, , chosen] = await paths(3);
  assert.equal(readFileSync(chosen, "utf8"), "chosen");

  // Words win over the picture of themselves that some programs copy beside them.
  await box.focus();
  const plain = await box.evaluate((field) => {
    const data = new DataTransfer();
    data.setData("text/plain", "words");
    data.items.add(new File(["x"], "words.png", { type: "image/png" }));
    const event = new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true });
    field.dispatchEvent(event);
    return event.defaultPrevented;
  });
  assert.equal(plain, false);

  // Too large is said before anything is sent, and nothing is lost.
  const before = await box.inputValue();
  await box.evaluate((field) => {
    const data = new DataTransfer();
    data.items.add(new File([new Uint8Array(41 * 1024 * 1024)], "large.bin"));
    field.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
  });
  await page.getByText("large.bin is larger than 40 MB").waitFor();
  assert.equal(await box.inputValue(), before);

  await box.press("Enter");
  await page.getByText("Sent. Claude has taken it.").waitFor();
  await until("Claude's answer", async () => (await lab.item(tab.id)).last_message?.startsWith("see") === true);
  await until("the paths at Claude", async () => (await drawn(page)).replaceAll(/\s/g, "").includes(chosen));
  assert.deepEqual(page.faults, []);
});

test("quick prompts are kept on the server, put into the message on every device, and edited", async () => {
  const page = await lab.open({ flags: READABLE });
  const tab = await lab.tab("claude-code", 2);
  await row(page, tab).and(page.getByRole("treeitem", { name: "Idle" })).waitFor();
  await row(page, tab).click();
  await terminal(page, tab);
  await page.locator(".xterm-helper-textarea").focus();
  await page.keyboard.press("Alt+KeyC");
  const box = page.getByRole("textbox", { name: /^Message to / });
  await page.getByRole("button", { name: "Quick prompts" }).click();
  const quick = page.getByRole("group", { name: "Quick prompts" });
  await quick.getByText("No quick prompts yet").waitFor();
  await quick.getByRole("button", { name: "Edit" }).click();
  await quick.getByRole("textbox", { name: "Prompt 1" }).fill("Run the tests");
  await quick.getByRole("button", { name: "Add" }).click();
  await quick.getByRole("textbox", { name: "Prompt 2" }).fill("Commit this");
  await quick.getByRole("button", { name: "Done" }).click();
  await box.fill("Please");
  await quick.getByRole("button", { name: "Run the tests" }).click();
  await until("the prompt", async () => (await box.inputValue()) === "Please Run the tests ");
  for (const colorScheme of ["dark", "light"]) {
    await page.emulateMedia({ colorScheme });
    assert.deepEqual(await violations(page), [], colorScheme);
    await picture(page, `quick-${colorScheme}`);
  }

  // Another device has them, and takes one away.
  const other = await lab.open({ viewport: { width: 390, height: 844 }, hasTouch: true });
  await other.locator(`[data-tab="${tab.id}"]`).first().click();
  await other.getByRole("button", { name: "Message", exact: true }).click();
  await other.getByRole("button", { name: "Quick prompts" }).click();
  const there = other.getByRole("group", { name: "Quick prompts" });
  await there.getByRole("button", { name: "Commit this" }).waitFor();
  assert.deepEqual(await violations(other), []);
  await picture(other, "quick-phone");
  await there.getByRole("button", { name: "Edit" }).click();
  await there.getByRole("button", { name: "Remove: Run the tests" }).click();
  await there.getByRole("button", { name: "Done" }).click();
  await quick.getByRole("button", { name: "Run the tests" }).waitFor({ state: "detached" });
  await quick.getByRole("button", { name: "Commit this" }).waitFor();
  assert.deepEqual([...page.faults, ...other.faults], []);
});
