// The keys that are ours everywhere, also inside a terminal: the Alt layer (Linux, Windows), Cmd on macOS, and F6. All
// other keys belong to the terminal. Owns which key means what; must never claim a key of an input method's.

export type LayerAction = "next" | "next-region" | "previous-region" | "sidebar" | "new-tab" | "close-tab" | "previous-tab" | "next-tab" | "why" | "attention";

const MAC = /Mac|iPhone|iPad/.test(navigator.platform);

/** Null when the key is not ours. By `code`, so that it does not depend on the layout. */
export function layerKey(event: KeyboardEvent): LayerAction | null {
  if (event.isComposing || event.keyCode === 229 || event.getModifierState("AltGraph")) return null;
  if (event.code === "F6" && !event.altKey && !event.ctrlKey && !event.metaKey) return event.shiftKey ? "previous-region" : "next-region";
  if (event.code === "Slash" && (MAC ? event.metaKey && event.ctrlKey && !event.altKey : event.altKey && event.shiftKey && !event.ctrlKey && !event.metaKey)) return "why";
  if (event.shiftKey) return null;
  if (MAC) {
    if (!event.metaKey || event.altKey) return null;
    if (!event.ctrlKey) return event.code === "KeyJ" ? "next" : event.code === "KeyI" ? "attention" : null;
  } else if (!event.altKey || event.ctrlKey || event.metaKey) {
    return null;
  }
  switch (event.code) {
    case "KeyJ":
      return MAC ? null : "next";
    case "KeyI":
      return MAC ? null : "attention";
    case "KeyN":
      return "new-tab";
    case "KeyW":
      return "close-tab";
    case "BracketLeft":
      return "previous-tab";
    case "BracketRight":
      return "next-tab";
    case "Digit0":
      return "sidebar";
    default:
      return null;
  }
}
