// What the page shows right now: signed in or not, the fleet as last told, how old it is, which row is looked at. The
// one owner of the status socket and of the fleet; must never change a row by itself, and must never wait with showing
// that the link is gone.

import * as api from "./api.ts";
import { after, everyWhileSeen, now, paced, type Stop } from "./clock.ts";
import { answerWords, cardOf, cut, heard, pressable, pressed, refusedHere, standing, type Tries, tryOf } from "./core/answer.ts";
import { apply, type Fleet, groups, parted } from "./core/fleet.ts";
import { deviceName } from "./core/device.ts";
import { beside, equalSizes, focused, homeOf, onDesk, type Pane, paneOf, panesIn, parseView, place, pruned, reordered, settled, showing, shownIn, splitIn, type View, type Way, zoomed } from "./core/layout.ts";
import { attention, type Counted, counts, familyOf, nextAfter, shapeOf, stateWords } from "./core/view.ts";
import { Link, type Phase } from "./link.ts";
import { remember, settings, shared } from "./settings.svelte.ts";
import type { Answer, ClientMsg, Item, ServerMsg, SplitDir, Workspace } from "./wire/protocol.ts";

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
/** While a seam is drawn, the others are told of it this often at most. */
const SIZES_MS_MIN = 250;
/** Sizes that the server has not taken over by then are given up. */
const SIZES_MS_MAX = 2000;

/** Something that was closed here, and until when (server's clock, unix ms) it can be brought back. */
export type Undo = { readonly what: "tabs" | "workspaces"; readonly id: string; readonly title: string; readonly untilMs: number };

/** What is to be shown as soon as the picture has it. */
type Want = { readonly desk?: string; readonly pane?: string; readonly row?: string };

class Page {
  gate = $state.raw<Gate>({ at: "signing-in" });
  fleet = $state.raw<Fleet | null>(null);
  link = $state.raw<Phase>({ kind: "connecting" });
  /** The server has not been reached since this page was opened, and was tried. */
  unreached = $state(false);
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
  /** Under 901 px: one pane at a time, the tabs of all in its bar. */
  single = $state(false);
  /** Under 1181 px: all panes of the same size. */
  equal = $state(false);
  /** What this device looks at, pane by pane. */
  view = $state.raw<View>(parseView(settings.view));
  /** Sizes that the person draws just now, by split. */
  drawn = $state.raw<ReadonlyMap<string, readonly number[]>>(new Map());
  /** The last thing that was closed here, while it can be brought back. */
  undo = $state.raw<Undo | null>(null);
  filter = $state<Counted | null>(null);
  /** The row whose "Why this state?" is open. */
  whyOf = $state<string | null>(null);
  /** A sentence about something that was asked for and not done. */
  complaint = $state<string | null>(null);
  /** For the polite live region. */
  said = $state("");
  /** Ids of the rows whose terminals are live on screen. */
  onScreen = $state.raw<ReadonlySet<string>>(new Set());
  /** The settings that all devices of the person share, as the server last said; null until then. */
  shared = $state.raw<Readonly<Record<string, unknown>> | null>(null);
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
  /** Tabs whose shell was started again, and that offer the conversation they had. */
  readonly offers = $derived(this.rows.filter((item) => item.resume !== null));
  readonly waiting = $derived(attention(this.rows));
  readonly currentId = $derived.by(() => this.#choose());
  readonly current = $derived(this.currentId === null ? null : (this.fleet?.items.get(this.currentId) ?? null));
  readonly next = $derived(nextAfter(this.waiting, this.currentId));
  readonly host = $derived(this.rows[0]?.host ?? this.#machine);
  /** The workspace on the desk: new tabs go there. */
  readonly workspace: Workspace | null = $derived(this.fleet === null ? null : onDesk(this.view, this.fleet.workspaces));
  /** The pane with the keys. */
  readonly pane: Pane | null = $derived(this.workspace === null ? null : focused(this.view, this.workspace));
  /** The pane that fills the desk by the person's wish. */
  readonly zoom: Pane | null = $derived(this.workspace === null ? null : zoomed(this.view, this.workspace));
  readonly panes: readonly Pane[] = $derived(this.workspace === null ? [] : panesIn(this.workspace.panes));
  /** Those that can be seen. */
  readonly visible: readonly Pane[] = $derived.by(() => {
    const only = this.single ? this.pane : this.zoom;
    return only === null ? this.panes : [only];
  });
  /** Ids of the rows in them. */
  readonly shown: ReadonlySet<string | null> = $derived(this.narrow ? new Set([this.currentId]) : new Set(this.visible.map((pane) => this.showsIn(pane))));

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

  /** The rows that are in front here, on screen in a focused window; as text, so that only a change of it counts. */
  readonly #front = $derived(this.attentive && this.live ? [...this.onScreen].sort().join("\n") : "");

  #status: Link | null = null;
  #request = 0;
  /** Those of our requests that answer a dialog: what is said of them is said on its card. */
  #answers = new Set<number>();
  /** Tab that we made and that the fleet does not name yet. */
  #made = $state<string | null>(null);
  #want: Want | null = null;
  #undoEnds: Stop | null = null;
  /** The seam that was drawn last, as it is to be told; `held`: it is being drawn. */
  #sizes: { workspace: string; split: string; sizes: readonly number[] } | null = null;
  #sizesHeld = false;
  #sizesSent = false;
  #sizesEnd: Stop | null = null;
  #sizer = paced(SIZES_MS_MIN, () => void this.#sendSizes());
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
    shared.send = async (some) => {
      if (this.gate.at === "in") await this.#try(settings.say("said.settingsFailed"), () => api.changeSettings(some));
    };
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
        this.gate = { at: "signed-out", why: failure(error) };
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

  /** In another pane than the one with the keys: the one it is in, else the next one, else a new one at the right. */
  async openInOther(id: string): Promise<void> {
    const { pane } = this;
    const home = this.#homeOf(id);
    if (this.narrow || this.single || pane === null || home === null || home.desk.id !== this.workspace?.id || home.pane.id !== pane.id) return this.open(id);
    const at = this.panes.findIndex((found) => found.id === pane.id);
    const other = this.panes[(at + 1) % this.panes.length];
    if (other !== undefined && other.id !== pane.id) await this.moveTab(id, other, null);
    else if (pane.tabs.length > 1) await this.split("right", pane, id);
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

  /** The tab after (1) or before (-1) the one on screen, in its pane, around the end. */
  openBeside(step: 1 | -1): void {
    const tabs = (this.narrow || this.single ? this.workspace?.tabs : this.pane?.tabs) ?? [];
    const at = tabs.indexOf(this.currentId ?? "");
    const to = tabs[at === -1 ? 0 : (at + step + tabs.length) % tabs.length];
    if (to !== undefined) this.open(to);
  }

  /** In the pane with the keys, or in that of another workspace. */
  async create(type: api.TabType, workspace: Workspace | null = this.workspace): Promise<void> {
    await this.#try(settings.say("said.newFailed"), () => this.#create(type, workspace).then(() => undefined));
  }

  async #create(type: api.TabType, workspace: Workspace | null): Promise<string> {
    const pane = workspace === null ? null : focused(this.view, workspace);
    const tab = await api.createTab(type, workspace?.id ?? null, pane?.id ?? null);
    this.#made = tab;
    if (workspace !== null && pane !== null) this.#look(showing(this.view, workspace, pane.id, tab));
    this.open(tab);
    return tab;
  }

  /** Takes a past conversation up in a new tab: in this pane, else where its directory belongs. One that runs is shown. */
  async takeUp(past: Pick<api.Conversation, "id" | "item">, pane: Pane | null): Promise<void> {
    if (past.item !== null && this.fleet?.items.has(past.item) === true) return this.open(past.item);
    await this.#try(settings.say("said.takeUpFailed"), async () => {
      const workspace = pane === null ? null : (this.fleet?.workspaces.find((desk) => panesIn(desk.panes).some((found) => found.id === pane.id)) ?? null);
      const tab = await api.takeUp(past.id, workspace === null || pane === null ? null : { workspace: workspace.id, pane: pane.id });
      this.#made = tab;
      this.open(tab);
    });
  }

  /** Takes up in these tabs what they offer, each by itself: one that can't be keeps its offer. */
  async resume(tabs: readonly string[]): Promise<void> {
    for (const tab of tabs) await this.#try(settings.say("said.takeUpFailed"), () => api.resumeTab(tab));
    this.refocus();
  }

  async leaveOffer(tab: string): Promise<void> {
    await this.#try("", () => api.leaveOffer(tab));
    this.refocus();
  }

  /** Answers false when an agent lives in the tab and `force` was not given: ask the person first. */
  async close(item: Item, force: boolean): Promise<boolean> {
    let asked = true;
    await this.#try(settings.say("said.closeFailed"), async () => {
      const home = this.#homeOf(item.id);
      const current = this.currentId === item.id || this.wanted === item.id;
      try {
        this.#closing = item.id;
        this.#offerUndo("tabs", item.id, item.title, await api.closeTab(item.id, force));
      } catch (error) {
        this.#closing = null;
        if (error instanceof api.Refused && error.status === 409 && !force) {
          asked = false;
          return;
        }
        throw error;
      }
      if (current && this.narrow) this.home();
      else if (current) this.refocus();
      if (home !== null) await this.#leavePane(home.desk, home.pane, item.id);
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
      await api.send(await this.#create("terminal", this.workspace), command);
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
    if (!sent) this.tries = refusedHere(this.tries, request, settings.say("card.offline"), this.serverMs);
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
    else this.#address();
  }

  /** A picture from before, while there is none of now. */
  restore(fleet: Fleet, heardMs: number): void {
    if (this.fleet !== null || this.gate.at !== "in" || this.live) return;
    this.heardMs = heardMs;
    this.fleet = parted(fleet);
    this.#settleIn(this.fleet);
  }

  retryNow(): void {
    this.#status?.retryNow();
  }

  async signOut(): Promise<void> {
    await this.#try("", () => api.logout());
    this.#leave(null);
  }

  // --- panes ------------------------------------------------------------------------------------------------------

  /** The row that a pane shows. */
  showsIn(pane: Pane): string | null {
    if (this.ended !== null && pane.id === this.pane?.id) return null;
    return this.fleet === null ? null : shownIn(this.view, pane, this.fleet.items, this.#made);
  }

  /** Gives a pane the keys; where its terminal takes the focus is the caller's to say. */
  focusPane(id: string): void {
    if (this.workspace === null || this.pane?.id === id) return;
    this.ended = null;
    this.#look(showing(this.view, this.workspace, id, null));
    this.#address();
  }

  /** To the pane that lies that way. */
  movePane(way: Way): void {
    if (this.workspace === null || this.pane === null) return;
    const far = { left: 0, top: 0, width: 20_000, height: 20_000 };
    const to = beside(place(this.workspace.panes, far, this.drawn, this.equal).panes, this.pane.id, way);
    if (to === null) return;
    this.focusPane(to);
    this.refocus();
  }

  splitRight(): Promise<void> {
    return this.split("right");
  }
  splitDown(): Promise<void> {
    return this.split("down");
  }

  /** A pane beside or below; `tab` moves into it, else it is empty until something is opened there. */
  async split(dir: SplitDir, pane: Pane | null = this.pane, tab: string | null = null): Promise<void> {
    await this.#try(settings.say("said.panesFailed"), async () => {
      const desk = this.#deskOf(pane);
      if (desk === null || pane === null) return;
      if (this.zoom !== null) this.zoomPane();
      const from = tab === null ? null : this.#homeOf(tab);
      const made = await api.changePanes(desk.id, { op: "split", pane: pane.id, dir, ...(tab === null ? {} : { tab }) });
      if (made !== null) this.#show({ pane: made, ...(tab === null ? {} : { row: tab }) });
      if (from !== null && tab !== null) await this.#leavePane(from.desk, from.pane, tab);
    });
  }

  /** Its tabs go to its neighbour. */
  async closePane(pane: Pane | null = this.pane): Promise<void> {
    await this.#try(settings.say("said.panesFailed"), async () => {
      const desk = this.#deskOf(pane);
      if (desk !== null && pane !== null) await this.#closePane(desk, pane);
    });
  }

  zoomPane(): void {
    const { workspace, pane, view } = this;
    if (workspace === null || pane === null || this.panes.length < 2) return;
    const others = Object.fromEntries(Object.entries(view.zoom).filter(([id]) => id !== workspace.id));
    this.#look({ ...view, zoom: this.zoom === null ? { ...others, [workspace.id]: pane.id } : others });
  }

  async equalise(): Promise<void> {
    const { workspace } = this;
    if (workspace === null || this.panes.length < 2) return;
    await this.#try(settings.say("said.panesFailed"), async () => {
      await api.changePanes(workspace.id, { op: "equal" });
    });
  }

  /** `index`: its place among the other tabs there; null: the end. */
  async moveTab(tab: string, pane: Pane, index: number | null): Promise<void> {
    const from = this.#homeOf(tab);
    if (from !== null && from.pane.id === pane.id && (index === null || reordered(pane.tabs, tab, index).join() === pane.tabs.join())) return;
    await this.#try(settings.say("said.panesFailed"), async () => {
      // Within its pane a tab that is not looked at only changes its place.
      const along = from?.pane.id !== pane.id || this.view.shown[pane.id] === tab;
      // Before it is asked for: the picture may be quicker than the answer, and its terminal is to stay.
      if (along) this.#show({ pane: pane.id, row: tab });
      try {
        await api.moveTab(tab, pane.id, index);
      } catch (error) {
        this.#want = null;
        throw error;
      }
      if (from !== null && from.pane.id !== pane.id) await this.#leavePane(from.desk, from.pane, tab);
    });
  }

  /** To the pane with the keys of another workspace. */
  async moveTabTo(tab: string, desk: Workspace): Promise<void> {
    const pane = focused(this.view, desk);
    if (pane !== null) await this.moveTab(tab, pane, null);
  }

  /** Draws a split with these sizes at once, and tells the others now and then. */
  drawSizes(split: string, sizes: readonly number[]): void {
    if (this.workspace === null) return;
    this.#sizesEnd?.();
    this.#sizesHeld = true;
    this.drawn = new Map([[split, sizes]]);
    this.#sizes = { workspace: this.workspace.id, split, sizes };
    this.#sizer.call();
  }

  /** The person has let go: what was drawn last is what is wanted. */
  keepSizes(): void {
    this.#sizesHeld = false;
    this.#sizesEnd = after(SIZES_MS_MAX, () => (this.drawn = new Map()));
    this.#takeSizes();
  }

  resetSizes(split: string): void {
    const found = this.workspace === null ? null : splitIn(this.workspace.panes, split);
    if (found === null) return;
    this.drawSizes(split, equalSizes(found.parts.length));
    this.keepSizes();
  }

  async #sendSizes(): Promise<void> {
    const wanted = this.#sizes;
    // One at a time, so that the last one sent is the last one taken.
    if (wanted === null || this.#sizesSent) return;
    this.#sizesSent = true;
    this.#sizes = null;
    await this.#try(settings.say("said.panesFailed"), async () => {
      await api.changePanes(wanted.workspace, { op: "sizes", split: wanted.split, sizes: wanted.sizes });
    });
    this.#sizesSent = false;
    if (this.#sizes !== null) this.#sizer.call();
  }

  /** What was drawn is no longer needed once the server says the same. */
  #takeSizes(): void {
    const { workspace, drawn } = this;
    if (this.#sizesHeld || drawn.size === 0 || workspace === null) return;
    if ([...drawn].every(([split, sizes]) => splitIn(workspace.panes, split)?.sizes.join() === sizes.join())) this.drawn = new Map();
  }

  // --- workspaces ---------------------------------------------------------------------------------------------------

  isFolded(id: string): boolean {
    return this.view.folded.includes(id);
  }

  toggleGroup(id: string): void {
    const { folded } = this.view;
    this.#look({ ...this.view, folded: folded.includes(id) ? folded.filter((found) => found !== id) : [...folded, id] });
  }

  async addWorkspace(space: api.Space): Promise<void> {
    await this.#try(settings.say("said.newWorkspaceFailed"), async () => this.#show({ desk: await api.createWorkspace(space) }));
  }

  async editWorkspace(id: string, change: Partial<api.Space>): Promise<void> {
    await this.#try(settings.say("said.workspaceFailed"), () => api.editWorkspace(id, change));
  }

  /** Puts a workspace next to another one, and under its heading. */
  async moveWorkspace(id: string, to: Workspace, place: "before" | "after"): Promise<void> {
    const all = this.fleet?.workspaces ?? [];
    const ids = all.map((workspace) => workspace.id);
    const others = ids.filter((found) => found !== id);
    const next = reordered(ids, id, others.indexOf(to.id) + (place === "after" ? 1 : 0));
    await this.#try(settings.say("said.workspaceFailed"), async () => {
      if (all.find((workspace) => workspace.id === id)?.group !== to.group) await api.editWorkspace(id, { group: to.group });
      if (next.join() !== ids.join()) await api.orderWorkspaces(next);
    });
  }

  /** With all that lives in it: ask the person first. */
  async removeWorkspace(workspace: Workspace): Promise<void> {
    await this.#try(settings.say("said.workspaceFailed"), async () => {
      if (this.currentId !== null) this.#closing = this.currentId;
      this.#offerUndo("workspaces", workspace.id, workspace.name, await api.removeWorkspace(workspace.id, true));
    });
  }

  /** Brings back what was closed last. */
  async undoClose(): Promise<void> {
    const { undo } = this;
    if (undo === null) return;
    this.#forgetUndo();
    await this.#try(settings.say("said.undoFailed"), async () => {
      await api.restore(undo.what, undo.id);
      this.#show(undo.what === "tabs" ? { row: undo.id } : { desk: undo.id });
    });
  }

  #offerUndo(what: Undo["what"], id: string, title: string, untilMs: number | null): void {
    this.#forgetUndo();
    if (untilMs === null) return;
    this.undo = { what, id, title, untilMs };
    this.#undoEnds = after(Math.max(0, untilMs - now() - (this.fleet?.skewMs ?? 0)), () => this.#forgetUndo());
  }

  #forgetUndo(): void {
    this.#undoEnds?.();
    this.#undoEnds = null;
    this.undo = null;
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
    remember("picture", null);
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
    // It says so again only after a first try that led nowhere.
    this.unreached = phase.kind === "connecting";
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
    if (before !== null && before.workspaces !== fleet.workspaces) this.#look(settled(this.view, before.workspaces, fleet.workspaces));
    this.fleet = fleet;
    if (before === null) this.#settleIn(fleet);
    if (this.#made !== null && fleet.items.has(this.#made)) {
      this.#made = null;
      this.#follow();
    }
    this.#arrive();
    this.#takeSizes();
    if (!this.narrow && this.ended === null && this.wanted !== null && !fleet.items.has(this.wanted) && this.wanted !== this.#made) this.#address();
    if (before !== null) this.#announceNew(before, fleet);
  }

  #send(msg: ClientMsg): boolean {
    return this.#status?.send(JSON.stringify(msg)) ?? false;
  }

  /** What came of something that was asked for. */
  #tell(msg: ServerMsg): void {
    if (msg.type === "settings") {
      shared.take(msg.settings);
      this.shared = msg.settings;
      return;
    }
    if (msg.type === "stopped") {
      if (msg.outcome !== "sending") this.#noLongerStopping(msg.request);
      if (msg.why !== null) this.complaint = settings.tell(msg.said, msg.why);
      return;
    }
    if (msg.type === "refused") {
      this.#noLongerStopping(msg.request);
      if (!this.#answers.delete(msg.request)) this.complaint = settings.tell(msg.said, msg.why);
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
    if (!this.narrow && fleet !== null) return this.pane === null ? null : this.showsIn(this.pane);
    return wanted !== null && (fleet === null || fleet.items.has(wanted) || this.#made === wanted) ? wanted : null;
  }

  #route(): void {
    const found = /^#\/t\/([\w.%~:-]+)$/.exec(location.hash)?.[1];
    this.wanted = found === undefined ? null : decodeURIComponent(found);
    if (this.wanted !== null) settings.lastTab = this.wanted;
    this.#follow();
  }

  #forget(): void {
    settings.lastTab = null;
    history.replaceState(null, "", location.pathname);
    this.#route();
  }

  /** The first picture is here: look where the address says, else where this device looked last. */
  #settleIn(fleet: Fleet): void {
    if (this.wanted !== null && !fleet.items.has(this.wanted)) {
      this.complaint = settings.say("said.rowGone");
      this.#forget();
    } else if (this.wanted !== null) {
      this.#follow();
    } else if (this.view.workspace === null) {
      this.#lookAt(settings.lastTab);
    }
  }

  /** The row of the address is the one with the keys. */
  #follow(): void {
    this.#lookAt(this.wanted);
  }

  #lookAt(row: string | null): void {
    const item = row === null ? undefined : this.fleet?.items.get(row);
    const home = item === undefined ? null : homeOf(this.view, this.fleet?.workspaces ?? [], item);
    if (item !== undefined && home !== null) this.#look(showing(this.view, home.desk, home.pane.id, item.id));
  }

  /** The address names the row that has the keys. */
  #address(): void {
    const id = this.currentId;
    settings.lastTab = id;
    this.wanted = id;
    history.replaceState(history.state, "", id === null ? location.pathname : `#/t/${encodeURIComponent(id)}`);
  }

  #look(view: View): void {
    if (view === this.view) return;
    this.view = view;
    settings.view = JSON.stringify(this.fleet === null ? view : pruned(view, this.fleet.workspaces));
  }

  /** Shows this as soon as the picture has it. */
  #show(want: Want): void {
    this.#want = want;
    this.#arrive();
  }

  #arrive(): void {
    const { fleet } = this;
    const want = this.#want;
    if (want === null || fleet === null) return;
    const row = want.row ?? null;
    for (const desk of fleet.workspaces) {
      const found =
        want.desk !== undefined ? (desk.id === want.desk ? focused(this.view, desk) : null)
        : want.pane !== undefined ? (panesIn(desk.panes).find((pane) => pane.id === want.pane) ?? null)
        : row === null ? null : paneOf(desk.panes, row);
      if (found === null || (row !== null && (!found.tabs.includes(row) || !fleet.items.has(row)))) continue;
      this.#want = null;
      this.ended = null;
      this.#look(showing(this.view, desk, found.id, row));
      if (!this.narrow) this.#address();
      this.refocus();
      return;
    }
  }

  #deskOf(pane: Pane | null): Workspace | null {
    return this.fleet?.workspaces.find((desk) => panesIn(desk.panes).some((found) => found.id === pane?.id)) ?? null;
  }

  #homeOf(tab: string): { desk: Workspace; pane: Pane } | null {
    for (const desk of this.fleet?.workspaces ?? []) {
      const pane = paneOf(desk.panes, tab);
      if (pane !== null) return { desk, pane };
    }
    return null;
  }

  /** A tab left a pane by the person's hand. A pane that it leaves empty goes, unless it is the last one. */
  async #leavePane(desk: Workspace, pane: Pane, tab: string): Promise<void> {
    if (pane.tabs.some((other) => other !== tab) || panesIn(desk.panes).length < 2) return;
    await this.#closePane(desk, pane);
  }

  async #closePane(desk: Workspace, pane: Pane): Promise<void> {
    const panes = panesIn(desk.panes);
    if (panes.length < 2) return;
    const at = panes.findIndex((found) => found.id === pane.id);
    const next = panes[at - 1] ?? panes[at + 1];
    await api.changePanes(desk.id, { op: "close", pane: pane.id });
    // The person may be elsewhere by now.
    if (this.workspace?.id !== desk.id || next === undefined || this.view.focus[desk.id] !== pane.id) return;
    this.#look(showing(this.view, desk, next.id, null));
    if (!this.narrow && this.ended === null) this.#address();
    this.refocus();
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
    const failed = tried.why === null ? settings.say("card.lost") : settings.tell(tried.said, tried.why);
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
    const widths = [700, 901, 1181].map((px) => matchMedia(`(min-width: ${px}px)`));
    const measure = () => {
      const [desk, two, free] = widths.map((width) => width.matches);
      this.narrow = desk !== true;
      this.single = two !== true;
      this.equal = free !== true;
    };
    for (const width of widths) width.addEventListener("change", measure);
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

  /** For an effect: tells the server which rows are in front, so that this device stays quiet about them. */
  tellFront(): void {
    const items = this.#front.split("\n").filter((id) => id !== "");
    if (this.live) this.#send({ type: "front", items });
  }

  async #try(what: string, act: () => Promise<void>): Promise<void> {
    try {
      await act();
    } catch (error) {
      if (error instanceof api.Refused && error.status === 401) this.#leave(null);
      else this.complaint = settings.say("said.failed", { what, why: failure(error) }).trim();
    }
  }
}

/** What went wrong, in the person's language. */
export function failure(error: unknown): string {
  if (error instanceof api.Refused) return error.status === 0 ? settings.say("login.unreachable") : settings.tell(error.said, error.message);
  return error instanceof Error ? error.message : String(error);
}

export const page = new Page();
