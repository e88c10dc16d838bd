// The menus of the page, as data: one place, shown by the desk and by the phone.

import Bell from "@lucide/svelte/icons/bell";
import Bot from "@lucide/svelte/icons/bot";
import EyeOff from "@lucide/svelte/icons/eye-off";
import LogOut from "@lucide/svelte/icons/log-out";
import Pencil from "@lucide/svelte/icons/pencil";
import SquareTerminal from "@lucide/svelte/icons/square-terminal";
import X from "@lucide/svelte/icons/x";
import { type Language, LANGUAGES, type Say } from "../core/words.ts";
import { page } from "../page.svelte.ts";
import { settings, THEMES } from "../settings.svelte.ts";
import type { Item } from "../wire/protocol.ts";
import { ask } from "./ask.svelte.ts";
import type { MenuPart } from "./menu.ts";

/** In their own words, whatever the page speaks. */
const LANGUAGE_NAMES: Record<Language, string> = { en: "English", "zh-TW": "繁體中文" };

export function newTabMenu(say: Say): MenuPart[] {
  return [
    { kind: "act", text: say("tab.newClaude"), icon: Bot, act: () => void page.create("claude-code") },
    { kind: "act", text: say("tab.newShell"), icon: SquareTerminal, act: () => void page.create("terminal") },
  ];
}

export function tabMenu(say: Say, item: Item): MenuPart[] {
  return [
    { kind: "act", text: say("tab.rename"), icon: Pencil, act: () => ask.rename(item) },
    { kind: "act", text: say(item.foreign ? "tab.hideShort" : "tab.closeShort"), icon: item.foreign ? EyeOff : X, act: () => void ask.close(item) },
  ];
}

export function settingsMenu(say: Say): MenuPart[] {
  return [
    {
      kind: "choice",
      text: say("set.theme"),
      value: settings.theme,
      choices: THEMES.map((value) => ({ value, text: say(`set.${value}`) })),
      choose: (value) => (settings.theme = THEMES.find((theme) => theme === value) ?? "system"),
    },
    {
      kind: "choice",
      text: say("set.language"),
      value: settings.language,
      choices: LANGUAGES.map((value) => ({ value, text: LANGUAGE_NAMES[value] })),
      choose: (value) => (settings.language = LANGUAGES.find((language) => language === value) ?? "en"),
    },
    { kind: "act", text: say("alerts.title"), icon: Bell, act: () => (page.alertsOpen = true) },
    { kind: "act", text: say("set.signOut"), icon: LogOut, act: () => void page.signOut() },
  ];
}
