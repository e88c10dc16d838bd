// Which of the keys that are pressed is ours, also inside a terminal, and the one that is let through when the person
// says so. Owns that a key means one thing however often it is asked about; must never claim a key of an input method's.
// What the keys mean is data, see core/keys.ts.

import { type Action, actionOf, type Bindings, DEFAULTS, isBare, keyMap, type KeyMap, type Platform } from "../core/keys.ts";

export const PLATFORM: Platform = /Mac|iPhone|iPad/.test(navigator.platform) ? "mac" : "pc";

let map: KeyMap = keyMap(PLATFORM, DEFAULTS);
let passing = false;
/** Presses that were let through: the page and the terminal both ask about the same one. */
const passed = new WeakSet<KeyboardEvent>();

/** From now on these keys hold. */
export function bind(bindings: Bindings): void {
  map = keyMap(PLATFORM, bindings);
}

/** Null when the key is not ours. */
export function layerKey(event: KeyboardEvent): Action | null {
  if (passed.has(event) || event.isComposing || event.keyCode === 229 || event.getModifierState("AltGraph")) return null;
  const on = event.target;
  const terminal = on !== null && "closest" in on && (on as Element).closest("[data-terminal]") !== null;
  return actionOf(map, event, terminal);
}

/** The next key that is more than a modifier is not ours, whatever it is. */
export function passNext(on: boolean): void {
  passing = on;
}

/** Asked once for each press, before anything else sees it. True: it is the one to let through. */
export function passes(event: KeyboardEvent): boolean {
  if (!passing || isBare(event.code) || event.isComposing || event.keyCode === 229) return false;
  passing = false;
  passed.add(event);
  return true;
}
