// Which key does what: every action that a key can mean, its chord on each platform, and what a person may choose
// instead. Owns the map as data, from which come the keys that act, the cheat-sheet and the settings; must never hold a
// chord that a browser keeps for itself, nor one that a program in a terminal needs. Keys are told by `code`, where they
// lie and not what they write, so that the map is the same on every layout.

import type { Key } from "./words.ts";

/** What the browser says of a pressed key. */
export type Press = {
  readonly code: string;
  readonly altKey: boolean;
  readonly ctrlKey: boolean;
  readonly metaKey: boolean;
  readonly shiftKey: boolean;
};

/** `Alt+Shift+KeyJ`: the modifiers in the order Ctrl, Alt, Meta, Shift, then the code. */
export type Chord = string;
export type Platform = "pc" | "mac";

export const GROUPS = ["attention", "around", "tabs", "terminal"] as const;
export type Group = (typeof GROUPS)[number];

type Made = {
  readonly id: string;
  readonly group: Group;
  readonly pc: Chord | null;
  readonly mac: Chord | null;
};

/** In the order in which they are shown. An action without a chord is in the palette, and may be given one. */
export const ACTIONS = [
  { id: "next", group: "attention", pc: "Alt+KeyJ", mac: "Meta+KeyJ" },
  { id: "back", group: "attention", pc: "Alt+Shift+KeyJ", mac: "Ctrl+Meta+KeyJ" },
  { id: "attention", group: "attention", pc: "Alt+KeyI", mac: "Meta+KeyI" },
  { id: "why", group: "attention", pc: "Alt+Shift+Slash", mac: "Ctrl+Meta+Slash" },
  { id: "dismiss", group: "attention", pc: null, mac: null },
  { id: "message", group: "attention", pc: "Alt+KeyC", mac: "Ctrl+Meta+KeyC" },
  { id: "stop", group: "attention", pc: null, mac: null },
  { id: "palette", group: "around", pc: "Alt+KeyK", mac: "Meta+KeyK" },
  { id: "next-region", group: "around", pc: "F6", mac: "F6" },
  { id: "previous-region", group: "around", pc: "Shift+F6", mac: "Shift+F6" },
  { id: "sidebar", group: "around", pc: "Alt+Digit0", mac: "Ctrl+Meta+Digit0" },
  { id: "help", group: "around", pc: "Alt+Slash", mac: "Meta+Slash" },
  { id: "settings", group: "around", pc: "Alt+Comma", mac: "Ctrl+Meta+Comma" },
  { id: "notifications", group: "around", pc: null, mac: null },
  { id: "theme", group: "around", pc: null, mac: null },
  { id: "language", group: "around", pc: null, mac: null },
  { id: "sign-out", group: "around", pc: null, mac: null },
  { id: "new-tab", group: "tabs", pc: "Alt+KeyN", mac: "Ctrl+Meta+KeyN" },
  { id: "new-claude", group: "tabs", pc: null, mac: null },
  { id: "close-tab", group: "tabs", pc: "Alt+KeyW", mac: "Ctrl+Meta+KeyW" },
  { id: "rename-tab", group: "tabs", pc: null, mac: null },
  { id: "previous-tab", group: "tabs", pc: "Alt+BracketLeft", mac: "Ctrl+Meta+BracketLeft" },
  { id: "next-tab", group: "tabs", pc: "Alt+BracketRight", mac: "Ctrl+Meta+BracketRight" },
  { id: "split-right", group: "tabs", pc: "Alt+Backslash", mac: "Ctrl+Meta+Backslash" },
  { id: "split-down", group: "tabs", pc: "Alt+Minus", mac: "Ctrl+Meta+Minus" },
  { id: "pane-left", group: "tabs", pc: "Alt+Shift+ArrowLeft", mac: "Ctrl+Meta+ArrowLeft" },
  { id: "pane-right", group: "tabs", pc: "Alt+Shift+ArrowRight", mac: "Ctrl+Meta+ArrowRight" },
  { id: "pane-up", group: "tabs", pc: "Alt+Shift+ArrowUp", mac: "Ctrl+Meta+ArrowUp" },
  { id: "pane-down", group: "tabs", pc: "Alt+Shift+ArrowDown", mac: "Ctrl+Meta+ArrowDown" },
  { id: "zoom-pane", group: "tabs", pc: null, mac: null },
  { id: "equal-panes", group: "tabs", pc: null, mac: null },
  { id: "close-pane", group: "tabs", pc: null, mac: null },
  { id: "undo-close", group: "tabs", pc: null, mac: null },
  { id: "conversations", group: "tabs", pc: null, mac: null },
  { id: "resume-all", group: "tabs", pc: null, mac: null },
  { id: "new-workspace", group: "tabs", pc: null, mac: null },
  { id: "send-next", group: "terminal", pc: "Alt+KeyQ", mac: null },
] as const satisfies readonly Made[];

export type Action = (typeof ACTIONS)[number]["id"];

/** What the action is called, in the palette and in the lists of keys. */
export const nameOf = (action: Action): Key => `act.${action}`;

/** What a person has chosen. An empty text: no key. */
export type Chosen = Readonly<Partial<Record<Action, Chord>>>;
/** `alt-shift`: for those who need Alt inside a terminal, our whole layer lies one key further. Not on macOS. */
export const LAYERS = ["alt", "alt-shift"] as const;
export type Layer = (typeof LAYERS)[number];
export type Bindings = { readonly layer: Layer; readonly own: Chosen };
export type KeyMap = { readonly platform: Platform; readonly chords: ReadonlyMap<Action, Chord>; readonly actions: ReadonlyMap<Chord, Action> };

export const DEFAULTS: Bindings = { layer: "alt", own: {} };

export function chordOf(press: Press): Chord {
  const { code, altKey, ctrlKey, metaKey, shiftKey } = press;
  return [ctrlKey && "Ctrl", altKey && "Alt", metaKey && "Meta", shiftKey && "Shift", code].filter((part) => part !== false).join("+");
}

/** A modifier alone, or a key that has no name. */
export const isBare = (code: string) => code === "" || code === "Unidentified" || /^(Control|Alt|Meta|OS|Shift|CapsLock|Fn|NumLock)/.test(code);

/** One layer further: Shift is added, and where that chord is another's, that one gets Ctrl as well. */
function moved(chord: Chord): Chord {
  return /^Alt\+(?!Shift\+)/.test(chord) ? chord.replace("Alt+", "Alt+Shift+") : chord;
}

function defaults(platform: Platform, layer: Layer): Map<Action, Chord> {
  const plain = new Map<Action, Chord>();
  for (const action of ACTIONS) {
    const chord = action[platform];
    if (chord !== null) plain.set(action.id, chord);
  }
  if (platform === "mac" || layer === "alt") return plain;
  const taken = new Set([...plain.values()].filter((chord) => moved(chord) !== chord).map(moved));
  return new Map([...plain].map(([action, chord]) => [action, taken.has(chord) ? `Ctrl+${chord}` : moved(chord)]));
}

/** The map that holds. Of two actions with one chord the one that the person gave it to has it. */
export function keyMap(platform: Platform, { layer, own }: Bindings): KeyMap {
  const chords = defaults(platform, layer);
  const actions = new Map<Chord, Action>();
  for (const { id } of ACTIONS) {
    const chosen = own[id];
    if (chosen === undefined) continue;
    if (chosen === "") chords.delete(id);
    // What was stored may be of another version, or written by hand.
    else if (judge(chosen, platform) === null && !actions.has(chosen)) {
      chords.set(id, chosen);
      actions.set(chosen, id);
    }
  }
  for (const [action, chord] of chords) {
    const other = actions.get(chord);
    if (other === undefined) actions.set(chord, action);
    else if (other !== action) chords.delete(action);
  }
  return { platform, chords, actions };
}

/** What the press means; null: it is not ours. `terminal`: it was pressed in one. */
export function actionOf(map: KeyMap, press: Press, terminal: boolean): Action | null {
  const chord = chordOf(press);
  const action = map.actions.get(chord);
  if (action !== undefined) return action;
  return map.platform === "pc" && !terminal && chord === "Ctrl+KeyK" ? "palette" : null;
}

// --- what may be chosen -------------------------------------------------------------------------------------------

/** Why a chord can't be had: a browser keeps it, a program in a terminal needs it, or it is no chord. */
export type Objection = "browser" | "program" | "claude";

/** Kept by Chromium, Firefox or Safari, in a tab or in a window of its own, or by the window system before them. */
const BROWSERS: Record<Platform, RegExp> = {
  pc: /^(Ctrl\+(Shift\+)?(KeyT|KeyW|KeyN|Tab|PageUp|PageDown|F4|Digit\d)|Alt\+(Key[DEF]|Digit[1-9]|Arrow(Left|Right|Up|Down)|F\d+|Tab|Space|Escape|Home|Enter)|Alt\+Shift\+(Tab|Key[AT])|Ctrl\+Shift\+(Key[ABDEGIJKMNOPQRSXYZ]|Delete|Escape|Space)|Ctrl\+Alt\+(Delete|Tab|Arrow\w+|F\d+|KeyT|KeyL)|(Shift\+)?F(1|3|5|7|10|11|12))$/,
  mac: /^(Meta\+(Shift\+)?(Key[ACDFGHLMNOPQRSTVWXYZ]|Tab|Backquote|Space|Digit\d|Equal|Minus|Comma|Bracket\w+|Arrow\w+|F\d+)|Ctrl\+(Shift\+)?(Tab|PageUp|PageDown)|Ctrl\+Meta\+(KeyQ|KeyF|Space)|Alt\+Meta\+(Escape|KeyI|KeyJ|KeyC|KeyU|KeyD|Arrow\w+)|(Shift\+)?F(3|4|5|7|11|12))$/,
};
/** Claude Code's own shortcuts. */
const CLAUDES = /^Alt\+Key[BFMOPTVY]$/;

/** Null: it can be had. */
export function judge(chord: Chord, platform: Platform): Objection | null {
  const code = chord.split("+").at(-1) ?? "";
  if (isBare(code)) return "program";
  if (BROWSERS[platform].test(chord)) return "browser";
  if (platform === "pc" && CLAUDES.test(chord)) return "claude";
  if (/^(Shift\+)?F\d+$/.test(chord)) return null;
  // Alt+letter, and everything with Ctrl alone, is what terminals are made of; on macOS so is Alt.
  if (platform === "mac") return chord.includes("Meta+") ? null : "program";
  return /^(Ctrl\+)?Alt\+/.test(chord) || /^Ctrl\+Shift\+(?!Key[CFV]$)/.test(chord) ? null : "program";
}

/** The action that has the chord already, and is not `action` itself. */
export function conflict(map: KeyMap, chord: Chord, action: Action): Action | null {
  const other = map.actions.get(chord);
  return other === undefined || other === action ? null : other;
}

/** What was stored, with everything left out that is not understood. */
export function readBindings(text: string | null): Bindings {
  let stored: unknown;
  try {
    stored = JSON.parse(text ?? "null");
  } catch {
    // Written by another hand: the defaults hold.
    return DEFAULTS;
  }
  if (typeof stored !== "object" || stored === null) return DEFAULTS;
  const { layer, own } = stored as { layer?: unknown; own?: unknown };
  const known: Partial<Record<Action, Chord>> = {};
  for (const { id } of ACTIONS) {
    const chord: unknown = typeof own === "object" && own !== null ? (own as Record<string, unknown>)[id] : undefined;
    if (typeof chord === "string") known[id] = chord;
  }
  return { layer: LAYERS.find((name) => name === layer) ?? "alt", own: known };
}

// --- how a chord is shown ----------------------------------------------------------------------------------------

const NAMES: Record<string, string> = {
  ArrowLeft: "←",
  ArrowRight: "→",
  ArrowUp: "↑",
  ArrowDown: "↓",
  BracketLeft: "[",
  BracketRight: "]",
  Backslash: "\\",
  Slash: "/",
  Minus: "-",
  Equal: "=",
  Comma: ",",
  Period: ".",
  Semicolon: ";",
  Quote: "'",
  Backquote: "`",
  Escape: "Esc",
};
const MAC_NAMES: Record<string, string> = { Ctrl: "⌃", Alt: "⌥", Meta: "⌘", Shift: "⇧" };

/** The caps of the keys, one by one: `Alt`, `Shift`, `J`. */
export function capsOf(chord: Chord, platform: Platform): string[] {
  return chord.split("+").map((part) => {
    if (platform === "mac" && MAC_NAMES[part] !== undefined) return MAC_NAMES[part];
    return NAMES[part] ?? part.replace(/^(Key|Digit|Numpad(?=\d))/, "");
  });
}
