// What the page shows right now: signed in or not, the fleet as last told, how old it is, which row is looked at. The
// one owner of the status socket and of the fleet; must never change a row by itself, and must never wait with showing
// that the link is gone.

import * as api from "./api.ts";
import { after, everyWhileSeen, now, type Stop } from "./clock.ts";
import { answerWords, cardOf, cut, heard, pressable, pressed, standing, type Tries, tryOf } from "./core/answer.ts";
import { apply, type Fleet, groups, parted } from "./core/fleet.ts";
import { deviceName } from "./core/device.ts";
import { attention, type Counted, counts, familyOf, nextAfter, shapeOf, stateWords } from "./core/view.ts";
import { Link, type Phase } from "./link.ts";
import { settings } from "./settings.svelte.ts";
import type { Answer, ClientMsg, Item, ServerMsg } from "./wire/protocol.ts";

export type Gate =
  | { at: "signing-in" }
  /** `why` is the server's sentence about a link that did not work. */
  | { at: "signed-out"; why: string | null }
  | { at: "in" };

/** The server sends a heartbeat every 10 s; past this the picture is old. */
const SILENCE_MS_MAX = 15_000;
/** Announcements are merged so that a screen reader is never flooded. */
const ANNOUNCE_MS_MIN = 5000;
/** A review counts as seen after this long on screen in a focused window. */
const SEEN_MS = 2000;
/** This many jumps can be taken back. */
const BACK_MAX = 50;

class Page {
  gate = $state.raw<Gate>({ at: "signing-in" });
  fleet = $state.raw<Fleet | null>(null);
  link = $state.raw<Phase>({ kind: "connecting" });
  /** Our clock, when the server was last heard. */
  heardMs = $state(now());
  /** Our clock, each second while the page is seen. */
  nowMs = $state(now());
  /** The window has the focus and is not hidden. */
  attentive = $state(document.hasFocus() && !document.hidden);
  /** Row asked for by the address; it may not be known yet. */
  wanted = $state<string | null>(null);
  /** A phone's width: one screen at a time. */
  narrow = $state(false);
  filter = $state<Counted | null>(null);
  /** Ids of the workspaces whose rows are folded away. */
  collapsed = $state.raw<readonly string[]>([]);
  /** The row whose "Why this state?" is open. */
  whyOf = $state<string | null>(null);
  /** A sentence about something that was asked for and not done. */
  complaint = $state<string | null>(null);
  /** For the polite live region. */
  said = $state("");
  /** Ids of the rows whose terminals are live on screen. */
  onScreen = $state.raw<ReadonlySet<string>>(new Set());
  /** Counts the times that the person opened a row: each time its terminal takes the focus. */
  focusAsked = $state(0);
  /** The list of what needs the person is open. */
  bellOpen = $state(false);
  /** The latest answer to each row's dialog, from here or elsewhere. */
  tries = $state.raw<Tries>(new Map());
  /** Rows that were asked to stop and have not yet. */
  stopping = $state.raw<ReadonlyMap<string, number>>(new Map());
  /** The row whose card takes the focus: "Next" led to it. */
  cardAsked = $state<string | null>(null);
  /** The last row looked at that the server took away: its terminal ended. */
  ended = $state.raw<Item | null>(null);

  /** Whether Claude Code is there; null until the server has said. */
  claude = $state.raw<api.Claude | null>(null);

  /** The machine's name, until a row tells it. */
  #machine = $state(location.hostname);

  /** Server's clock, unix ms, each second. */
  readonly serverMs = $derived(this.nowMs + (this.fleet?.skewMs ?? 0));
  /** Moves once in ten seconds: for ages in minutes. */
  readonly minuteMs = $derived(Math.floor(this.serverMs / 10_000) * 10_000);
  readonly live = $derived(this.link.kind === "live");
  /** We had a picture and it may have changed since. */
  readonly stale = $derived(this.fleet !== null && this.link.kind !== "live");
  readonly groups = $derived(this.fleet === null ? [] : groups(this.fleet));
  readonly rows = $derived(this.groups.flatMap((group) => group.items));
  readonly counts = $derived(counts(this.rows));
  readonly waiting = $derived(attention(this.rows));
  readonly currentId = $derived.by(() => this.#choose());
  readonly current = $derived(this.currentId === null ? null : (this.fleet?.items.get(this.currentId) ?? null));
  readonly next = $derived(nextAfter(this.waiting, this.currentId));
  readonly host = $derived(this.rows[0]?.host ?? this.#machine);
  /** The workspace that new tabs go to. */
  readonly workspace = $derived(
    this.fleet?.workspaces.find((workspace) => workspace.id === (this.ended ?? this.current)?.workspace) ?? this.fleet?.workspaces[0] ?? null,
  );

  /** There is no Claude Code and nothing else to show. */
  readonly claudeMissing = $derived(this.claude !== null && !this.claude.installed && this.fleet !== null && this.rows.length === 0);

  /** Episode and id, line by line, of the reviews whose ends are on screen in a focused window. */
  readonly #seeable = $derived.by(() => {
    const { fleet, attentive, live, onScreen } = this;
    if (fleet === null || !attentive || !live) return "";
    const items = [...onScreen].map((id) => fleet.items.get(id));
    // What is scrolled away or behind another window is not seen, however long it is on screen.
    return items.map((item) => (item?.state === "review" && item.episode !== null && !item.covered ? `${item.episode} ${item.id}` : "")).filter((key) => key !== "").join("\n");
  });

  /** The row that is in front here, on screen in a focused window. */
  readonly #front = $derived(this.attentive && this.live && this.currentId !== null && this.onScreen.has(this.currentId) ? this.currentId : null);

  #status: Link | null = null;
  #request = 0;
  /** Those of our requests that answer a dialog: what is said of them is said on its card. */
  #answers = new Set<number>();
  /** Tab that we made and that the fleet does not name yet. */
  #made: string | null = null;
  /** Tab that we closed: its going is no news. */
  #closing: string | null = null;
  #focusTaken = 0;
  /** Reviews that are about to count as seen, as in `#seeable`. */
  #looking = new Map<string, Stop>();
  /** Rows from which "Next" led away, the latest last. */
  #from = $state.raw<readonly string[]>([]);
  #pending = new Map<string, string>();
  #announce: Stop | null = null;

  /** Call once. `code` is the one-time code that was in the address, already removed from it. */
  async start(code: string | null): Promise<void> {
    this.#listen();
    if (code !== null) await this.signIn(code);
    else if (api.storedSecret() === null) this.gate = { at: "signed-out", why: null };
    else this.#enter();
  }

  /** Trades a one-time code for a login. A code that does not work ends no login that does. */
  async signIn(code: string): Promise<void> {
    try {
      await api.login(code, deviceName(navigator.userAgent));
    } catch (error) {
      if (!(await this.#stillIn())) {
        this.gate = { at: "signed-out", why: sentence(error) };
        return;
      }
    }
    this.#enter();
  }

  /** `to`: what takes the focus there. */
  open(id: string, how: "push" | "replace" = this.narrow ? "push" : "replace", to: "terminal" | "card" = "terminal"): void {
    this.ended = null;
    const hash = `#/t/${encodeURIComponent(id)}`;
    if (to === "card") this.cardAsked = id;
    else this.refocus();
    if (how === "push") history.pushState({ opened: true }, "", hash);
    else history.replaceState(history.state, "", hash);
    this.#route();
  }

  /** Back to the list of a phone. */
  home(): void {
    this.ended = null;
    const state: unknown = history.state;
    if (typeof state === "object" && state !== null && "opened" in state) history.back();
    else {
      history.replaceState(null, "", location.pathname);
      this.#route();
    }
  }

  /** True once for each time that a row was opened. */
  takeFocus(asked: number): boolean {
    const first = asked !== this.#focusTaken;
    this.#focusTaken = asked;
    return first;
  }

  /** Gives the keys to the terminal on screen. */
  refocus(): void {
    this.cardAsked = null;
    this.focusAsked += 1;
  }

  /** From a notification: the row may have gone since. */
  openTold(id: string): void {
    if (this.fleet !== null && !this.fleet.items.has(id)) this.complaint = settings.say("said.rowGone");
    else this.open(id);
  }

  openNext(): void {
    this.bellOpen = false;
    if (this.next === null) return;
    if (this.currentId !== null && this.currentId !== this.next.id) this.#from = [...this.#from.slice(1 - BACK_MAX), this.currentId];
    this.open(this.next.id, undefined, cardOf(this.next) === null ? "terminal" : "card");
  }

  get canGoBack(): boolean {
    return this.#from.some((id) => this.fleet?.items.has(id) === true);
  }

  /** To where the person was before "Next", over rows that are gone since. */
  goBack(): void {
    const left = this.#from.filter((id) => this.fleet?.items.has(id) === true && id !== this.currentId);
    const to = left.at(-1);
    this.#from = left.slice(0, -1);
    if (to !== undefined) this.open(to);
  }

  /** The tab after (1) or before (-1) the one on screen, in its workspace, around the end. */
  openBeside(step: 1 | -1): void {
    const tabs = this.workspace?.tabs ?? [];
    const at = tabs.indexOf(this.currentId ?? "");
    const to = tabs[at === -1 ? 0 : (at + step + tabs.length) % tabs.length];
    if (to !== undefined) this.open(to);
  }

  async create(type: api.TabType): Promise<void> {
    await this.#try(settings.say("said.newFailed"), async () => {
      const tab = await api.createTab(type, this.workspace?.id ?? null);
      this.#made = tab;
      this.open(tab);
    });
  }

  /** Answers false when an agent lives in the tab and `force` was not given: ask the person first. */
  async close(item: Item, force: boolean): Promise<boolean> {
    let asked = true;
    await this.#try(settings.say("said.closeFailed"), async () => {
      const beside = this.#beside(item.id);
      try {
        this.#closing = item.id;
        await api.closeTab(item.id, force);
      } catch (error) {
        this.#closing = null;
        if (error instanceof api.Refused && error.status === 409 && !force) {
          asked = false;
          return;
        }
        throw error;
      }
      if (this.wanted !== item.id && this.currentId !== item.id) return;
      if (this.narrow) this.home();
      else if (beside !== null) this.open(beside);
      else this.#forget();
    });
    return asked;
  }

  /** Starts the shell of a tab that has ended again; its terminal comes back by itself. */
  async reopen(tab: string): Promise<void> {
    await this.#try(settings.say("said.reopenFailed"), () => api.reopenTab(tab));
  }

  async rename(item: Item, name: string): Promise<void> {
    await this.#try(settings.say("said.renameFailed"), () => api.renameTab(item.id, name));
  }

  /** Opens a terminal with a command typed into it; running it is the person's to do. */
  async createWith(command: string): Promise<void> {
    await this.#try(settings.say("said.newFailed"), async () => {
      const tab = await api.createTab("terminal", this.workspace?.id ?? null);
      this.#made = tab;
      this.open(tab);
      await api.send(tab, command);
    });
  }

  /** `again`: the server looks anew; otherwise what its watch has seen. A question that fails changes nothing. */
  async lookForClaude(again: boolean): Promise<void> {
    try {
      this.claude = await api.claude(again);
    } catch (error) {
      if (error instanceof api.Refused && error.status === 401) this.#leave(null);
    }
  }

  dismiss(item: Pick<Item, "id" | "episode">): void {
    if (item.episode === null) return;
    this.#send({ type: "dismiss", request: (this.#request += 1), item: item.id, episode: item.episode });
  }

  /** Answers the dialog that the row's card shows, unless it is being answered. */
  answer(item: Item, answer: Answer): void {
    const found = cardOf(item);
    if (found === null) return;
    const { ask, card } = found;
    if (!pressable(standing(ask.id, card.reading, this.tries.get(item.id), this.live))) return;
    const request = (this.#request += 1);
    const what = answerWords(card, answer, settings.say);
    this.#answers.add(request);
    this.tries = pressed(this.tries, item.id, { ask: ask.id, reading: card.reading, request, what, atMs: this.serverMs, answer });
    const sent = this.#send({ type: "answer", request, item: item.id, ask: ask.id, reading: card.reading, answer });
    if (!sent) this.#tell({ type: "refused", request, why: settings.say("card.offline") });
  }

  /** Asks the server to interrupt what Claude does, once until it has said what came of it. */
  stop(item: Item): void {
    if (this.stopping.has(item.id)) return;
    const request = (this.#request += 1);
    if (this.#send({ type: "stop", request, item: item.id })) this.stopping = new Map([...this.stopping, [item.id, request]]);
    else this.complaint = settings.say("card.offline");
  }

  leaveEnded(): void {
    this.ended = null;
    if (this.narrow) this.home();
    else this.#forget();
  }

  retryNow(): void {
    this.#status?.retryNow();
  }

  async signOut(): Promise<void> {
    await this.#try("", () => api.logout());
    this.#leave(null);
  }

  toggleGroup(id: string): void {
    this.collapsed = this.collapsed.includes(id) ? this.collapsed.filter((found) => found !== id) : [...this.collapsed, id];
  }

  /** Asks whether the login is still good; signs out when the server says it is not. */
  async checkLogin(): Promise<void> {
    if (!(await this.#stillIn())) this.#leave(null);
  }

  // --- the fleet --------------------------------------------------------------------------------------------

  #enter(): void {
    this.gate = { at: "in" };
    this.#status?.close();
    this.#status = new Link({
      path: () => "/api/status",
      hello: () => JSON.stringify({ type: "hello", secret: api.storedSecret() ?? "" } satisfies ClientMsg),
      silenceMsMax: SILENCE_MS_MAX,
      heard: (data) => this.#heard(data),
      phase: (phase) => this.#onPhase(phase),
      refused: () => void this.checkLogin(),
    });
    void this.checkLogin();
    void this.lookForClaude(false);
  }

  #leave(why: string | null): void {
    this.#status?.close();
    this.#status = null;
    api.forgetSecret();
    this.fleet = null;
    this.link = { kind: "connecting" };
    this.gate = { at: "signed-out", why };
  }

  async #stillIn(): Promise<boolean> {
    if (api.storedSecret() === null) return false;
    try {
      this.#machine = await api.session();
      return true;
    } catch (error) {
      // Only the server's word ends a login; a server that does not answer has said nothing.
      return !(error instanceof api.Refused && error.status === 401);
    }
  }

  #onPhase(phase: Phase): void {
    this.link = phase;
    if (phase.kind === "live") return;
    if (this.fleet !== null) this.fleet = parted(this.fleet);
    this.tries = cut(this.tries);
    this.stopping = new Map();
  }

  #heard(data: string | ArrayBuffer): void {
    if (typeof data !== "string") return;
    this.heardMs = now();
    const msg = JSON.parse(data) as ServerMsg;
    this.#tell(msg);
    const before = this.fleet;
    const { fleet, resync } = apply(before, msg, now());
    if (resync) this.#send({ type: "resync" });
    if (fleet === before || fleet === null) return;
    this.#noticeEnd(before, fleet);
    this.fleet = fleet;
    if (before === null && this.wanted !== null && !fleet.items.has(this.wanted)) {
      this.complaint = settings.say("said.rowGone");
      this.#forget();
    }
    if (this.#made !== null && fleet.items.has(this.#made)) this.#made = null;
    if (before !== null) this.#announceNew(before, fleet);
  }

  #send(msg: ClientMsg): boolean {
    return this.#status?.send(JSON.stringify(msg)) ?? false;
  }

  /** What came of something that was asked for. */
  #tell(msg: ServerMsg): void {
    if (msg.type === "stopped") {
      if (msg.outcome !== "sending") this.#noLongerStopping(msg.request);
      if (msg.why !== null) this.complaint = msg.why;
      return;
    }
    if (msg.type === "refused") {
      this.#noLongerStopping(msg.request);
      if (!this.#answers.delete(msg.request)) this.complaint = msg.why;
    }
    const before = this.tries;
    this.tries = heard(before, msg, this.serverMs);
    if (this.tries !== before) this.#announceAnswer(msg, before);
  }

  #noLongerStopping(request: number): void {
    const left = [...this.stopping].filter(([, asked]) => asked !== request);
    if (left.length < this.stopping.size) this.stopping = new Map(left);
  }

  // --- which row is looked at ----------------------------------------------------------------------------------

  #choose(): string | null {
    const { wanted, fleet } = this;
    if (this.ended !== null) return null;
    if (wanted !== null && (fleet === null || fleet.items.has(wanted) || this.#made === wanted)) return wanted;
    if (this.narrow || fleet === null) return null;
    const last = settings.lastTab;
    if (last !== null && fleet.items.has(last)) return last;
    return this.rows[0]?.id ?? null;
  }

  #route(): void {
    const found = /^#\/t\/([\w.%~:-]+)$/.exec(location.hash)?.[1];
    this.wanted = found === undefined ? null : decodeURIComponent(found);
    if (this.wanted !== null) settings.lastTab = this.wanted;
  }

  #forget(): void {
    settings.lastTab = null;
    history.replaceState(null, "", location.pathname);
    this.#route();
  }

  #beside(id: string): string | null {
    const ids = this.rows.map((row) => row.id);
    const at = ids.indexOf(id);
    return ids[at + 1] ?? ids[at - 1] ?? null;
  }

  /** The row on screen went away without our doing: keep saying so until the person moves on. */
  #noticeEnd(before: Fleet | null, fleet: Fleet): void {
    const id = this.currentId;
    if (before === null || id === null || fleet.items.has(id)) return;
    if (id === this.#closing) this.#closing = null;
    else this.ended = before.items.get(id) ?? null;
  }

  // --- what is said aloud --------------------------------------------------------------------------------------

  #announceNew(before: Fleet, fleet: Fleet): void {
    if (settings.announce === "nothing") return;
    for (const item of fleet.items.values()) {
      const old = before.items.get(item.id);
      const family = familyOf(shapeOf(item));
      if ((family !== "needs" && (family !== "review" || settings.announce !== "all")) || (old?.episode === item.episode && old.state === item.state)) continue;
      this.#pending.set(item.id, settings.say("said.state", { title: item.title, state: stateWords(item, settings.say) }));
    }
    if (this.#pending.size > 0 && this.#announce === null) this.#sayPending();
  }

  #announceAnswer(msg: ServerMsg, before: Tries): void {
    const id = msg.type === "answered" ? msg.item : msg.type === "refused" ? tryOf(before, msg.request)?.item : undefined;
    const tried = id === undefined ? undefined : this.tries.get(id);
    if (id === undefined || tried === undefined || tried.outcome === "sending") return;
    const title = this.fleet?.items.get(id)?.title ?? "";
    const failed = tried.why ?? settings.say("card.lost");
    this.#pending.set(`${id} answer`, tried.outcome === "sent" ? settings.say("said.answered", { title, x: tried.what }) : settings.say("said.state", { title, state: failed }));
    if (this.#announce === null) this.#sayPending();
  }

  #sayPending(): void {
    this.said = [...this.#pending.values()].join(settings.say("list.stop"));
    this.#pending.clear();
    this.#announce = after(ANNOUNCE_MS_MIN, () => {
      this.#announce = null;
      if (this.#pending.size > 0) this.#sayPending();
    });
  }

  // --- the window ------------------------------------------------------------------------------------------------

  #listen(): void {
    const wide = matchMedia("(min-width: 700px)");
    const measure = () => (this.narrow = !wide.matches);
    wide.addEventListener("change", measure);
    measure();
    const attend = () => (this.attentive = document.hasFocus() && !document.hidden);
    addEventListener("focus", attend);
    addEventListener("blur", attend);
    document.addEventListener("visibilitychange", attend);
    addEventListener("popstate", () => this.#route());
    addEventListener("hashchange", () => this.#route());
    this.#route();
    everyWhileSeen(1000, () => (this.nowMs = now()));
  }

  /** A terminal says whether it is live on screen. */
  tellScreen(id: string, live: boolean): void {
    if (this.onScreen.has(id) === live) return;
    const others = [...this.onScreen].filter((shown) => shown !== id);
    this.onScreen = new Set(live ? [...others, id] : others);
  }

  /** For an effect: tells the server of each review on screen that it was seen, once it really was. */
  watchSeen(): void {
    const seeable = this.#seeable.split("\n").filter((key) => key !== "");
    for (const [key, stop] of this.#looking) {
      if (seeable.includes(key)) continue;
      stop();
      this.#looking.delete(key);
    }
    for (const key of seeable) {
      if (this.#looking.has(key)) continue;
      const [episode = "", item = ""] = key.split(" ");
      this.#looking.set(
        key,
        after(SEEN_MS, () => this.#send({ type: "seen", request: (this.#request += 1), item, episode: Number(episode) })),
      );
    }
  }

  /** For an effect: tells the server which row is in front, so that this device stays quiet about it. */
  tellFront(): void {
    if (this.live) this.#send({ type: "front", item: this.#front });
  }

  async #try(what: string, act: () => Promise<void>): Promise<void> {
    try {
      await act();
    } catch (error) {
      if (error instanceof api.Refused && error.status === 401) this.#leave(null);
      else this.complaint = settings.say("said.failed", { what, why: sentence(error) }).trim();
    }
  }
}

function sentence(error: unknown): string {
  if (error instanceof api.Refused && error.status === 0) return settings.say("login.unreachable");
  return error instanceof Error ? error.message : String(error);
}

export const page = new Page();
