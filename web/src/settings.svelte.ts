// What this browser remembers for its person: theme, language, motion, keys, sidebar, the tab looked at last. Owns localStorage but
// for the login; a browser that refuses storage forgets, and that is all that happens.

import { type Bindings, DEFAULTS, readBindings } from "./core/keys.ts";
import { inWords } from "./core/sentence.ts";
import { chooseLanguage, type Language, LANGUAGES, type Say, sayer } from "./core/words.ts";
import type { Sentence } from "./wire/protocol.ts";
import type { Sentences } from "./wire/sentences.ts";

export const THEMES = ["system", "dark", "light"] as const;
export type Theme = (typeof THEMES)[number];

/** How states move: always, for a moment after they change, never. What the system asks for wins. */
export const MOTIONS = ["full", "settle", "off"] as const;
export type Motion = (typeof MOTIONS)[number];

/** What a screen reader is told unasked. */
export const ANNOUNCE = ["all", "asks", "nothing"] as const;
export type Announce = (typeof ANNOUNCE)[number];

export function recall(name: string): string | null {
  try {
    return localStorage.getItem(`purplemux.${name}`);
  } catch {
    // Storage is off in this browser; the defaults hold.
    return null;
  }
}

export function remember(name: string, value: string | null): void {
  try {
    if (value === null) localStorage.removeItem(`purplemux.${name}`);
    else localStorage.setItem(`purplemux.${name}`, value);
  } catch {
    // As above: the choice holds until the page is closed.
    return;
  }
}

async function loadWords(language: Language): Promise<void> {
  try {
    if (language === "zh-TW") await import("./core/words.zh-TW.ts");
  } catch {
    // The server has gone, or is another version: English is there, and the next load tries again.
    return;
  }
}

/** What the server says; null: it does not come, and its own English is shown. */
async function loadSentences(language: Language): Promise<Sentences | null> {
  try {
    return language === "zh-TW" ? (await import("./core/sentences.zh-TW.ts")).CHINESE : (await import("./wire/sentences.ts")).ENGLISH;
  } catch {
    return null;
  }
}

class Settings {
  #theme = $state<Theme>(THEMES.find((theme) => theme === recall("theme")) ?? "system");
  #language = $state<Language>(LANGUAGES.find((language) => language === recall("language")) ?? chooseLanguage(navigator.languages));
  #sidebar = $state(recall("sidebar") !== "hidden");
  #motion = $state<Motion>(MOTIONS.find((motion) => motion === recall("motion")) ?? "full");
  #announce = $state<Announce>(ANNOUNCE.find((announce) => announce === recall("announce")) ?? "all");
  #keys = $state.raw<Bindings>(readBindings(recall("keys")));
  #say = $derived(sayer(this.#language));
  #sentences = $state.raw<Sentences | null>(null);

  constructor() {
    this.#applyTheme();
    this.#applyMotion();
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
    remember("language", language);
    void Promise.all([loadWords(language), loadSentences(language)]).then(([, sentences]) => {
      this.#sentences = sentences;
      this.#language = language;
    });
  }
  /** Resolves when the page can speak the person's language; where its words do not come, it speaks English. */
  speak(): Promise<void> {
    void loadSentences(this.#language).then((sentences) => (this.#sentences ??= sentences));
    return loadWords(this.#language);
  }
  /** A sentence of the server's in the person's language; `english` is the same as the server wrote it. */
  tell(said: Sentence | null | undefined, english: string): string {
    return inWords(said, english, this.#sentences);
  }

  get sidebar(): boolean {
    return this.#sidebar;
  }
  set sidebar(shown: boolean) {
    this.#sidebar = shown;
    remember("sidebar", shown ? null : "hidden");
  }

  get motion(): Motion {
    return this.#motion;
  }
  set motion(motion: Motion) {
    this.#motion = motion;
    remember("motion", motion === "full" ? null : motion);
    this.#applyMotion();
  }

  get announce(): Announce {
    return this.#announce;
  }
  set announce(announce: Announce) {
    this.#announce = announce;
    remember("announce", announce === "all" ? null : announce);
  }

  get keys(): Bindings {
    return this.#keys;
  }
  set keys(keys: Bindings) {
    this.#keys = keys;
    remember("keys", keys.layer === DEFAULTS.layer && Object.keys(keys.own).length === 0 ? null : JSON.stringify(keys));
  }

  get lastTab(): string | null {
    return recall("tab");
  }
  set lastTab(tab: string | null) {
    remember("tab", tab);
  }

  /** What is looked at in each pane, as text that core/layout.ts reads. */
  get view(): string | null {
    return recall("view");
  }
  set view(view: string) {
    remember("view", view);
  }

  get say(): Say {
    return this.#say;
  }

  #applyMotion(): void {
    document.documentElement.dataset["motion"] = this.#motion;
  }

  /** At once, not in an effect: what reads a colour right after must read the new one. */
  #applyTheme(): void {
    const root = document.documentElement;
    if (this.#theme === "system") root.removeAttribute("data-theme");
    else root.dataset["theme"] = this.#theme;
  }
}

export const settings = new Settings();
