// The messages between server and page. Owns every shape that crosses the wire; must never be edited
// by hand: `cargo xtask gen` writes it from wire/src/{browser,explain,push,frame}.rs.

/** The five words, and `null` for "no agent" (an `Option` around it). */
export type State = "idle" | "busy" | "needs-input" | "review" | "unknown";

/** The process, apart from its work. */
export type Presence = "none" | "starting" | "running" | "suspended" | "elsewhere" | "gone";

/** What became of a tab's shell, or of the program that it was replaced by. */
export type Shell = "running" | "dead" | "ended";

/** The kinds of ask. */
export type AskKind = "permission" | "question" | "plan" | "form" | "dialog" | "startup";

/** What needs-input waits for. */
export type Ask = {
  /** Names this ask; an answer must carry it. */
  id: number,
  /** permission, question, plan, form, dialog, startup. */
  kind: AskKind,
  /** Command, question or message; empty while unknown. */
  text: string,
  /** Claude's own labels. */
  options: Array<string>, };

/** Details inside a state; each absent when empty. */
export type Detail = {
  /** `thinking`, `tool`, `compacting`, `retrying`, `subagents`. */
  doing?: string,
  /** The tool. */
  tool?: string,
  /** Its argument. */
  arg?: string,
  /** Running subagents. */
  agents?: number,
  /** Background shells still running. */
  shells?: number,
  /** What is asked. */
  ask?: Ask,
  /** `finished` or `failed`. */
  outcome?: string,
  /** The kind of failure. */
  error?: string,
  /** Next wake-up, unix ms. */
  wakes_at_ms?: number,
  /** `interrupted`, `headless`, `ended without Stop`, `no transcript`. */
  label?: string, };

/** Token counts, absent when unknown. */
export type Tokens = {
  /** In the context now. */
  context?: number, };

/** One row: a tab, or an agent without one. */
export type Item = {
  /** The tab's id, or `host:pid:start`. */
  id: string,
  /** The machine's name. */
  host: string,
  /** The tab, if it is in one of ours. */
  tab: string | null,
  /** The tab's workspace. */
  workspace: string | null,
  /** The agent's process id. */
  pid: number | null,
  /** Claude's session id. */
  session_id: string | null,
  /** Directory now. */
  cwd: string | null,
  /** Git branch of the directory. */
  branch: string | null,
  /** The badge. */
  state: State | null,
  /** Unix ms since when the state is this. */
  since_ms: number,
  /** Details inside the state. */
  detail: Detail,
  /** Of the process. */
  presence: Presence,
  /** What the row is called. */
  title: string,
  /** Claude's last words. */
  last_message: string | null,
  /** Current tool. */
  tool: string | null,
  /** Token counts. */
  tokens: Tokens,
  /** Share of the context window used, in percent; absent where the window's size is not known. */
  context_pct: number | null,
  /** The model, in Claude's own word. */
  model: string | null,
  /** Listening TCP ports. */
  ports: Array<number>,
  /** Its terminal can be opened: it is a tab, or it runs in a tmux of the person's own. */
  terminal: boolean,
  /** What became of a tab's shell; `null` for a row that is no tab. */
  shell: Shell | null,
  /** A session that somebody else has made on our tmux server: closing it here only hides it. */
  foreign: boolean,
  /** The end of its screen is not what its terminal shows now: its pane is scrolled back, behind another
   * window, or behind a zoomed pane. */
  covered: boolean,
  /** Our hooks have been heard. */
  hooks: boolean,
  /** Counts for bell and title. */
  attention: boolean,
  /** Names the stay in needs-input or review. */
  episode: number | null, };

/** A workspace with its most urgent state. */
export type Workspace = {
  /** Its id. */
  id: string,
  /** Its name. */
  name: string,
  /** Default directory. */
  dir: string,
  /** Ids of its tabs in order; each is an item's id. */
  tabs: Array<string>,
  /** Most urgent inside. */
  state: State | null,
  /** With `state: review`: the most urgent one failed. */
  failed: boolean, };

/** From the server, as JSON text frames. */
export type ServerMsg = { "type": "snapshot",
  /** Changes with every start of the server. */
  epoch: string,
  /** Counts up by one per message that changes something. */
  rev: number,
  /** The server's wall clock, unix ms, for ages on a client whose clock is off. */
  now_ms: number,
  /** All rows. */
  items: Array<Item>,
  /** All workspaces in order. */
  workspaces: Array<Workspace>,
  /** Plain sentences about what is degraded ("tmux does not answer"); empty when healthy. */
  notices: Array<string>, } | { "type": "diff",
  /** As in the snapshot. */
  epoch: string,
  /** The snapshot's or last diff's `rev` plus one. */
  rev: number,
  /** As in the snapshot. */
  now_ms: number,
  /** Items that are new or changed. */
  set: Array<Item>,
  /** Ids of items that are gone. */
  gone: Array<string>,
  /** All workspaces, if anything about them changed. */
  workspaces?: Array<Workspace>,
  /** All notices, if they changed. */
  notices?: Array<string>, } | { "type": "heartbeat",
  /** As in the snapshot. */
  epoch: string,
  /** The last revision sent. */
  rev: number,
  /** The server's wall clock. */
  now_ms: number, } | { "type": "refused",
  /** The `request` of the message refused. */
  request: number,
  /** A sentence that says what to do. */
  why: string, };

/** From the page or a program. */
export type ClientMsg = { "type": "hello",
  /** From `POST /api/login`, kept in localStorage. */
  secret: string, } | { "type": "seen",
  /** Names the message in `Refused`. */
  request: number,
  /** The item. */
  item: string,
  /** The episode seen. */
  episode: number, } | { "type": "dismiss",
  /** Names the message in `Refused`. */
  request: number,
  /** The item. */
  item: string,
  /** The episode dismissed. */
  episode: number, } | { "type": "front",
  /** The item. */
  item: string | null, } | { "type": "resync" };

/** The reasons there are. */
export type Reason = "asked" | "working" | "finished" | "failed" | "waiting" | "interrupted" | "read" | "restarted" | "starting" | "ended" | "no-agent";

/** Who said it. */
export type Source = "hook" | "file" | "transcript" | "process" | "person" | "restart" | "verdict";

/** How a witness's word stands to the badge. */
export type Stand = "decided" | "agrees" | "older" | "disagrees" | "silent" | "missing";

/** One piece of evidence. */
export type Testimony = {
  /** Who said it. */
  source: Source,
  /** What, in the source's own words; empty where it is missing. */
  text: string,
  /** When, stamped at the source, unix ms. */
  at_ms: number | null,
  /** Ms after the deciding event; negative: before it. */
  distance_ms: number | null,
  /** How it stands to the badge. */
  stand: Stand, };

/** A badge and when it began. */
export type Transition = {
  /** Unix ms. */
  at_ms: number,
  /** The badge. */
  state: State | null,
  /** With `state: review`: it had failed. */
  failed: boolean, };

/** Why an item shows what it shows. */
export type Explanation = {
  /** The item. */
  item: string,
  /** Its title. */
  title: string,
  /** The agent as `host:pid:start`; null where none runs. */
  agent: string | null,
  /** The badge. */
  state: State | null,
  /** Of its process. */
  presence: Presence,
  /** Unix ms since when the state is this. */
  since_ms: number,
  /** The server's wall clock, unix ms. */
  now_ms: number,
  /** Why, as a word; the page has a sentence for each in every language. */
  reason: Reason,
  /** With `reason: asked`: what is asked. */
  ask: AskKind | null,
  /** With `reason: failed`: Claude's word for the failure. */
  error: string | null,
  /** The same in one English sentence. */
  sentence: string,
  /** The newest word of each witness: hook, file, transcript, process. */
  witnesses: Array<Testimony>,
  /** Everything that is remembered, newest first. */
  evidence: Array<Testimony>,
  /** The last badges, oldest first; the last one is the present one. */
  transitions: Array<Transition>, };

/** What a notification is about. */
export type About = "permission" | "question" | "plan" | "form" | "dialog" | "startup" | "finished" | "failed";

/** One push message. */
export type Push = { "type": "show",
  /** Names the notification, and what a tap opens. */
  row: string,
  /** Which stay; a repeat of it makes no sound again. */
  episode: number,
  /** What for; absent where only the count may be seen. */
  about?: About,
  /** The session. */
  title?: string,
  /** The tool that wants to run. */
  tool?: string,
  /** Command, question, last words or reason. */
  text?: string,
  /** Background shells that go on. */
  shells?: number,
  /** Since when, unix ms. */
  since_ms: number,
  /** Without sound. */
  silent: boolean,
  /** How many sessions need the person now. */
  count: number,
  /** The language of the words. */
  lang: string, } | { "type": "close",
  /** Which. */
  row: string,
  /** Of which stay. */
  episode: number,
  /** How many sessions need the person now. */
  count: number,
  /** The language of the words. */
  lang: string, } | { "type": "test",
  /** The language of the words. */
  lang: string, };

/** First byte of every binary frame of `/api/terminal`; all numbers big-endian. */
export const FrameKind = {
  data: 0,
  resize: 1,
  credit: 2,
  offset: 3,
  title: 4,
  end: 5,
} as const;

/** Bytes the server may have in flight before the first credit. */
export const INITIAL_CREDIT = 262144;
