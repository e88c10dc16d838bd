// The map of keys: each chord once, none that a browser keeps or a program needs, and what a person may choose instead.

import { expect, test } from "vitest";
import { ACTIONS, actionOf, capsOf, chordOf, conflict, DEFAULTS, judge, keyMap, type Press, readBindings } from "./keys.ts";
import { FIXED } from "./keys-fixed.ts";

const PLATFORMS = ["pc", "mac"] as const;
const press = (code: string, ...held: ("alt" | "ctrl" | "meta" | "shift")[]): Press => ({
  code,
  altKey: held.includes("alt"),
  ctrlKey: held.includes("ctrl"),
  metaKey: held.includes("meta"),
  shiftKey: held.includes("shift"),
});

test("no chord means two things, and none is a browser's, a program's or Claude's", () => {
  for (const platform of PLATFORMS) {
    for (const layer of ["alt", "alt-shift"] as const) {
      const map = keyMap(platform, { layer, own: {} });
      expect(map.actions.size).toBe(map.chords.size);
      expect(map.chords.size).toBe(ACTIONS.filter((action) => action[platform] !== null).length);
      for (const chord of map.chords.values()) expect([chord, judge(chord, platform)]).toEqual([chord, null]);
      for (const { pc, mac } of FIXED) for (const chord of platform === "pc" ? pc : mac) expect(map.actions.has(chord)).toBe(false);
    }
  }
});

test("what a press means", () => {
  const pc = keyMap("pc", DEFAULTS);
  expect(actionOf(pc, press("KeyJ", "alt"), true)).toBe("next");
  expect(actionOf(pc, press("KeyJ", "alt", "shift"), true)).toBe("back");
  expect(actionOf(pc, press("KeyJ"), true)).toBeNull();
  expect(actionOf(pc, press("KeyJ", "ctrl"), true)).toBeNull();
  expect(actionOf(pc, press("KeyJ", "ctrl", "alt"), true)).toBeNull();
  expect(actionOf(pc, press("F6", "shift"), true)).toBe("previous-region");
  // Ctrl+K is a shell's inside a terminal.
  expect(actionOf(pc, press("KeyK", "ctrl"), true)).toBeNull();
  expect(actionOf(pc, press("KeyK", "ctrl"), false)).toBe("palette");
  expect(actionOf(pc, press("KeyK", "alt"), true)).toBe("palette");
  const mac = keyMap("mac", DEFAULTS);
  expect(actionOf(mac, press("KeyK", "meta"), true)).toBe("palette");
  expect(actionOf(mac, press("KeyK", "ctrl"), false)).toBeNull();
  expect(actionOf(mac, press("KeyN", "ctrl", "meta"), true)).toBe("new-tab");
  expect(actionOf(mac, press("KeyJ", "alt"), true)).toBeNull();
});

test("one layer further nothing of Alt alone is ours, and nothing is lost", () => {
  const map = keyMap("pc", { layer: "alt-shift", own: {} });
  expect([...map.chords.values()].filter((chord) => /^Alt\+(?!Shift)/.test(chord))).toEqual([]);
  expect(map.chords.get("next")).toBe("Alt+Shift+KeyJ");
  expect(map.chords.get("back")).toBe("Ctrl+Alt+Shift+KeyJ");
  expect(map.chords.get("next-region")).toBe("F6");
});

test("what a person chose holds, and takes the chord from whoever had it", () => {
  const map = keyMap("pc", { layer: "alt", own: { attention: "Alt+KeyJ", help: "" } });
  expect(map.actions.get("Alt+KeyJ")).toBe("attention");
  expect(map.chords.has("next")).toBe(false);
  expect(map.chords.has("help")).toBe(false);
  expect(map.actions.has("Alt+KeyI")).toBe(false);
  expect(conflict(map, "Alt+KeyJ", "back")).toBe("attention");
  expect(conflict(map, "Alt+KeyJ", "attention")).toBeNull();
  expect(conflict(map, "Alt+KeyX", "back")).toBeNull();
});

test("a chord that a browser keeps can't be had, whoever stored it", () => {
  for (const chord of ["Ctrl+KeyT", "Ctrl+KeyW", "Ctrl+KeyN", "Ctrl+Shift+KeyT", "Ctrl+Shift+KeyW", "Ctrl+Shift+KeyN", "Ctrl+Tab", "Ctrl+Shift+Tab", "Alt+KeyD", "Alt+Digit1", "Alt+ArrowLeft", "F5", "F11"]) {
    expect([chord, judge(chord, "pc")]).toEqual([chord, "browser"]);
    expect(keyMap("pc", { layer: "alt", own: { next: chord } }).chords.get("next")).toBe("Alt+KeyJ");
  }
  for (const chord of ["Meta+KeyT", "Meta+KeyW", "Meta+KeyN", "Meta+KeyQ", "Ctrl+Tab"]) expect([chord, judge(chord, "mac")]).toEqual([chord, "browser"]);
  expect(judge("KeyJ", "pc")).toBe("program");
  expect(judge("Ctrl+KeyR", "pc")).toBe("program");
  expect(judge("Shift+KeyA", "pc")).toBe("program");
  expect(judge("Ctrl+Shift+KeyC", "pc")).toBe("program");
  expect(judge("Alt+KeyP", "pc")).toBe("claude");
  expect(judge("Alt+AltLeft", "pc")).toBe("program");
  expect(judge("Alt+KeyL", "mac")).toBe("program");
  expect(judge("Alt+KeyX", "pc")).toBeNull();
  expect(judge("F8", "pc")).toBeNull();
});

test("what was stored by another hand is left out", () => {
  expect(readBindings(null)).toEqual(DEFAULTS);
  expect(readBindings("{")).toEqual(DEFAULTS);
  expect(readBindings("[1]")).toEqual(DEFAULTS);
  expect(readBindings('{"layer":"hyper","own":{"next":"Alt+KeyX","fly":"Alt+KeyY","why":7}}')).toEqual({ layer: "alt", own: { next: "Alt+KeyX" } });
  expect(readBindings('{"layer":"alt-shift"}').layer).toBe("alt-shift");
});

test("chords in caps", () => {
  expect(chordOf(press("Slash", "alt", "shift"))).toBe("Alt+Shift+Slash");
  expect(capsOf("Alt+Shift+Slash", "pc")).toEqual(["Alt", "Shift", "/"]);
  expect(capsOf("Ctrl+Meta+KeyJ", "mac")).toEqual(["⌃", "⌘", "J"]);
  expect(capsOf("F6", "pc")).toEqual(["F6"]);
});
