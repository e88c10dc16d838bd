// Keys that have one meaning where they are pressed, and none elsewhere. Owns only that they are shown with the others.

import type { Chord, Group } from "./keys.ts";
import type { Key } from "./words.ts";

/** Keys that mean something only where they are pressed. They are shown with the others and can't be changed. */
export const FIXED = [
  { name: "keys.answer", group: "attention", pc: ["Digit1", "Digit9"], mac: ["Digit1", "Digit9"] },
  { name: "keys.open", group: "attention", pc: ["Enter"], mac: ["Enter"] },
  { name: "keys.put", group: "attention", pc: ["KeyD"], mac: ["KeyD"] },
  { name: "keys.outside", group: "around", pc: ["Ctrl+KeyK"], mac: [] },
  { name: "keys.copy", group: "terminal", pc: ["Ctrl+Shift+KeyC"], mac: ["Meta+KeyC"] },
  { name: "keys.paste", group: "terminal", pc: ["Ctrl+Shift+KeyV"], mac: ["Meta+KeyV"] },
] as const satisfies readonly { name: Key; group: Group; pc: readonly Chord[]; mac: readonly Chord[] }[];
