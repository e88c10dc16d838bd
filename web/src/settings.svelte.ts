// What the person has chosen. Theme, language, motion, announcements, keys and the terminals' colours follow them to every
// device by way of the server; the sidebar, the size of a terminal's text and the tab looked at last are this device's
// own. Owns localStorage but for the login, where all of it is kept for the next start; a browser that refuses storage
// forgets, and that is all that happens.

import { type Bindings, DEFAULTS, readBindings } from "./core/keys.ts";
import { inWords, named, type Spoken } from "./core/sentence.ts";
import { chooseLanguage, type Language, LANGUAGES, type Say, sayer } from "./core/words.ts";
import type { Sentence } from "./wire/protocol.ts";

export const THEMES = ["system", "dark", "light"] as const;
export type Theme = (typeof THEMES)[number];

/** How states move: always, for a moment after they change, never. What the system asks for wins. */
export const MOTIONS = ["full", "settle", "off"] as const;
export type Motion = (typeof MOTIONS)[number];

/** What a screen reader is told unasked. */
export const ANNOUNCE = ["all", "asks", "nothing"] as const;
export type Announce = (typeof ANNOUNCE)[number];

/** How wide the sidebar may be, px. */
export const WIDTH = { min: 240, first: 312, max: 420 } as const;

function widthOf(kept: string | null): number {
  const width = Number(kept ?? NaN);
  return width >= WIDTH.min && width <= WIDTH.max ? width : WIDTH.first;
}

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
async function loadSentences(language: Language): Promise<Spoken | null> {
  try {
    return language === "zh-TW" ? (await import("./core/sentences.zh-TW.ts")).CHINESE : (await import("./wire/sentences.ts")).ENGLISH;
  } catch {
    return null;
  }
}

/** Settings that all devices of the person share, by their names in `/api/settings`. */
export type Shared = Readonly<Record<string, unknown>>;

/** A reader of one shared setting: takes the value that another device chose, if it is one. */
type Taken = (value: unknown) => void;

/** What the server keeps for all devices: which ones there are, and what is on its way there. */
class Sharing {
  #readers = new Map<string, Taken>();
  /** As the server last said. */
  #all: Shared = {};
  /** How many changes of ours are on their way, by setting: until then the server's word is an older one. */
  #sending = new Map<string, number>();
  /** Tells the server; the page says how. Rejects if it was not kept. */
  send: ((change: Shared) => Promise<void>) | null = null;

  /** Reads it now, if it is known, and at every change. */
  follow(name: string, taken: Taken): void {
    this.#readers.set(name, taken);
    if (name in this.#all) taken(this.#all[name]);
  }

  take(all: Shared): void {
    const before = this.#all;
    this.#all = all;
    for (const [name, taken] of this.#readers) {
      if (!(name in all) || this.#sending.has(name) || JSON.stringify(before[name]) === JSON.stringify(all[name])) continue;
      taken(all[name]);
    }
  }

  tell(name: string, value: unknown): void {
    if (this.send === null) return;
    this.#sending.set(name, (this.#sending.get(name) ?? 0) + 1);
    const done = () => {
      const left = (this.#sending.get(name) ?? 1) - 1;
      if (left > 0) this.#sending.set(name, left);
      else this.#sending.delete(name);
    };
    void this.send({ [name]: value }).then(done, done);
  }
}

export const shared = new Sharing();

class Settings {
  #theme = $state<Theme>(THEMES.find((theme) => theme === recall("theme")) ?? "system");
  #language = $state<Language>(LANGUAGES.find((language) => language === recall("language")) ?? chooseLanguage(navigator.languages));
  #sidebar = $state(recall("sidebar") !== "hidden");
  #width = $state(widthOf(recall("width")));
  #motion = $state<Motion>(MOTIONS.find((motion) => motion === recall("motion")) ?? "full");
  #announce = $state<Announce>(ANNOUNCE.find((announce) => announce === recall("announce")) ?? "all");
  #keys = $state.raw<Bindings>(readBindings(recall("keys")));
  #say = $derived(sayer(this.#language));
  #sentences = $state.raw<Spoken | null>(null);

  constructor() {
    this.#applyTheme();
    this.#applyMotion();
    const one = <T extends string>(all: readonly T[], value: unknown) => all.find((known) => known === value);
    shared.follow("theme", (value) => this.#setTheme(one(THEMES, value) ?? this.#theme));
    shared.follow("language", (value) => this.#setLanguage(one(LANGUAGES, value) ?? this.#language));
    shared.follow("motion", (value) => this.#setMotion(one(MOTIONS, value) ?? this.#motion));
    shared.follow("announce", (value) => this.#setAnnounce(one(ANNOUNCE, value) ?? this.#announce));
    shared.follow("keys", (value) => this.#setKeys(readBindings(JSON.stringify(value))));
  }

  get theme(): Theme {
    return this.#theme;
  }
  set theme(theme: Theme) {
    this.#setTheme(theme);
    shared.tell("theme", theme);
  }
  #setTheme(theme: Theme): void {
    this.#theme = theme;
    remember("theme", theme === "system" ? null : theme);
    this.#applyTheme();
  }

  get language(): Language {
    return this.#language;
  }
  set language(language: Language) {
    this.#setLanguage(language);
    shared.tell("language", language);
  }
  #setLanguage(language: Language): void {
    if (language === this.#language) return;
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
  /** What the server calls somebody or something, in the person's language. */
  name(by: string): string {
    return named(by, this.#sentences);
  }

  get sidebar(): boolean {
    return this.#sidebar;
  }
  set sidebar(shown: boolean) {
    this.#sidebar = shown;
    remember("sidebar", shown ? null : "hidden");
  }

  /** Of the sidebar, px. */
  get width(): number {
    return this.#width;
  }
  set width(width: number) {
    this.#width = Math.round(Math.min(WIDTH.max, Math.max(WIDTH.min, width)));
    remember("width", this.#width === WIDTH.first ? null : String(this.#width));
  }

  get motion(): Motion {
    return this.#motion;
  }
  set motion(motion: Motion) {
    this.#setMotion(motion);
    shared.tell("motion", motion);
  }
  #setMotion(motion: Motion): void {
    this.#motion = motion;
    remember("motion", motion === "full" ? null : motion);
    this.#applyMotion();
  }

  get announce(): Announce {
    return this.#announce;
  }
  set announce(announce: Announce) {
    this.#setAnnounce(announce);
    shared.tell("announce", announce);
  }
  #setAnnounce(announce: Announce): void {
    this.#announce = announce;
    remember("announce", announce === "all" ? null : announce);
  }

  get keys(): Bindings {
    return this.#keys;
  }
  set keys(keys: Bindings) {
    this.#setKeys(keys);
    shared.tell("keys", keys);
  }
  #setKeys(keys: Bindings): void {
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
