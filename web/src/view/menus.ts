// The menus of the page, as data: one place, shown by the desk and by the phone.

import Bot from "@lucide/svelte/icons/bot";
import History from "@lucide/svelte/icons/history";
import EyeOff from "@lucide/svelte/icons/eye-off";
import Pencil from "@lucide/svelte/icons/pencil";
import SquareTerminal from "@lucide/svelte/icons/square-terminal";
import X from "@lucide/svelte/icons/x";
import { focused } from "../core/layout.ts";
import type { Say } from "../core/words.ts";
import { page } from "../page.svelte.ts";
import type { Item, Workspace } from "../wire/protocol.ts";
import { ask } from "./ask.svelte.ts";
import type { MenuPart } from "./menu.ts";
import { sheet } from "./sheet.svelte.ts";

export function newTabMenu(say: Say, workspace: Workspace | null = page.workspace): MenuPart[] {
  return [
    { kind: "act", text: say("tab.newClaude"), icon: Bot, act: () => void page.create("claude-code", workspace) },
    { kind: "act", text: say("tab.newShell"), icon: SquareTerminal, act: () => void page.create("terminal", workspace) },
    { kind: "act", text: say("act.conversations"), icon: History, act: () => sheet.openPast(workspace === null || page.narrow ? null : focused(page.view, workspace)) },
  ];
}

export function tabMenu(say: Say, item: Item): MenuPart[] {
  return [
    { kind: "act", text: say("tab.rename"), icon: Pencil, act: () => ask.rename(item) },
    { kind: "act", text: say(item.foreign ? "tab.hideShort" : "tab.closeShort"), icon: item.foreign ? EyeOff : X, act: () => void ask.close(item) },
  ];
}
