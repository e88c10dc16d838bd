// What this browser remembers for its person: theme, language, sidebar, the tab looked at last. Owns localStorage but
// for the login; a browser that refuses storage forgets, and that is all that happens.

import { chooseLanguage, type Language, LANGUAGES, type Say, sayer } from "./core/words.ts";

export const THEMES = ["system", "dark", "light"] as const;
export type Theme = (typeof THEMES)[number];

function recall(name: string): string | null {
  try {
    return localStorage.getItem(`purplemux.${name}`);
  } catch {
    // Storage is off in this browser; the defaults hold.
    return null;
  }
}

function remember(name: string, value: string | null): void {
  try {
    if (value === null) localStorage.removeItem(`purplemux.${name}`);
    else localStorage.setItem(`purplemux.${name}`, value);
  } catch {
    // As above: the choice holds until the page is closed.
    return;
  }
}

class Settings {
  #theme = $state<Theme>(THEMES.find((theme) => theme === recall("theme")) ?? "system");
  #language = $state<Language>(LANGUAGES.find((language) => language === recall("language")) ?? chooseLanguage(navigator.languages));
  #sidebar = $state(recall("sidebar") !== "hidden");
  #say = $derived(sayer(this.#language));

  constructor() {
    this.#applyTheme();
  }

  get theme(): Theme {
    return this.#theme;
  }
  set theme(theme: Theme) {
    this.#theme = theme;
    remember("theme", theme === "system" ? null : theme);
    this.#applyTheme();
  }

  get language(): Language {
    return this.#language;
  }
  set language(language: Language) {
    this.#language = language;
    remember("language", language);
  }

  get sidebar(): boolean {
    return this.#sidebar;
  }
  set sidebar(shown: boolean) {
    this.#sidebar = shown;
    remember("sidebar", shown ? null : "hidden");
  }

  get lastTab(): string | null {
    return recall("tab");
  }
  set lastTab(tab: string | null) {
    remember("tab", tab);
  }

  get say(): Say {
    return this.#say;
  }

  /** At once, not in an effect: what reads a colour right after must read the new one. */
  #applyTheme(): void {
    const root = document.documentElement;
    if (this.#theme === "system") root.removeAttribute("data-theme");
    else root.dataset["theme"] = this.#theme;
  }
}

export const settings = new Settings();
