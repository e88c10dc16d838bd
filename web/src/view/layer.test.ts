// Which keys are ours: few, and never one that an input method or a shell needs.

import { afterEach, beforeEach, expect, test, vi } from "vitest";

type Press = Partial<Pick<KeyboardEvent, "code" | "altKey" | "ctrlKey" | "metaKey" | "shiftKey" | "isComposing" | "keyCode">> & { altGraph?: boolean; terminal?: boolean };
const press = ({ altGraph = false, terminal = true, ...change }: Press) =>
  ({ code: "", altKey: false, ctrlKey: false, metaKey: false, shiftKey: false, isComposing: false, keyCode: 0, target: { closest: () => (terminal ? {} : null) }, getModifierState: () => altGraph, ...change }) as unknown as KeyboardEvent;

async function on(platform: string) {
  vi.stubGlobal("navigator", { platform });
  return import("./layer.ts");
}
beforeEach(() => vi.resetModules());
afterEach(() => vi.unstubAllGlobals());

test("the Alt layer, and F6", async () => {
  const { layerKey: key } = await on("Linux x86_64");
  expect(key(press({ code: "KeyJ", altKey: true }))).toBe("next");
  expect(key(press({ code: "F6" }))).toBe("next-region");
  expect(key(press({ code: "F6", shiftKey: true }))).toBe("previous-region");
  expect(key(press({ code: "Digit0", altKey: true }))).toBe("sidebar");
  expect(key(press({ code: "BracketLeft", altKey: true }))).toBe("previous-tab");
  expect(key(press({ code: "KeyW", altKey: true }))).toBe("close-tab");
  expect(key(press({ code: "Slash", altKey: true, shiftKey: true }))).toBe("why");
  expect(key(press({ code: "Slash", altKey: true }))).toBe("help");
});

test("everything else is the terminal's", async () => {
  const { layerKey: key } = await on("Linux x86_64");
  for (const code of ["KeyB", "KeyF", "KeyM", "KeyO", "KeyP", "KeyT", "KeyV", "KeyY", "KeyD", "Digit1", "ArrowLeft"]) expect(key(press({ code, altKey: true }))).toBeNull();
  for (const code of ["KeyJ", "KeyN", "KeyW", "KeyK", "KeyT"]) expect(key(press({ code, ctrlKey: true }))).toBeNull();
  expect(key(press({ code: "KeyJ" }))).toBeNull();
  expect(key(press({ code: "KeyK", ctrlKey: true, terminal: false }))).toBe("palette");
});

test("never inside an input method, never with AltGr", async () => {
  const { layerKey: key } = await on("Linux x86_64");
  expect(key(press({ code: "KeyJ", altKey: true, isComposing: true }))).toBeNull();
  expect(key(press({ code: "F6", keyCode: 229 }))).toBeNull();
  expect(key(press({ code: "KeyJ", altKey: true, altGraph: true }))).toBeNull();
});

test("on macOS Alt writes letters, so it is Cmd", async () => {
  const { layerKey: key } = await on("MacIntel");
  expect(key(press({ code: "KeyJ", altKey: true }))).toBeNull();
  expect(key(press({ code: "KeyJ", metaKey: true }))).toBe("next");
  expect(key(press({ code: "KeyN", metaKey: true }))).toBeNull();
  expect(key(press({ code: "KeyN", metaKey: true, ctrlKey: true }))).toBe("new-tab");
});

test("one key is let through, and a modifier is not yet that key", async () => {
  const { layerKey: key, passes, passNext } = await on("Linux x86_64");
  const next = press({ code: "KeyJ", altKey: true });
  expect(passes(next)).toBe(false);
  passNext(true);
  expect(passes(press({ code: "AltLeft", altKey: true }))).toBe(false);
  expect(passes(next)).toBe(true);
  expect(key(next)).toBeNull();
  expect(key(next)).toBeNull();
  expect(passes(press({ code: "KeyJ", altKey: true }))).toBe(false);
  expect(key(press({ code: "KeyJ", altKey: true }))).toBe("next");
});

test("other keys, once they are bound", async () => {
  const { bind, layerKey: key } = await on("Linux x86_64");
  bind({ layer: "alt-shift", own: { why: "F8" } });
  expect(key(press({ code: "KeyJ", altKey: true }))).toBeNull();
  expect(key(press({ code: "KeyJ", altKey: true, shiftKey: true }))).toBe("next");
  expect(key(press({ code: "F8" }))).toBe("why");
});
