// The messages between server and page. Owns every shape that crosses the wire; must never be edited
// by hand: `cargo xtask gen` writes it from wire/src/{browser,explain,push,sentence,frame}.rs.

/** What became of what was asked for. */
export type Then = "nothing_sent" | "nothing_confirmed" | "words_not_sent" | "not_submitted";

/** A moment that is said as hour and minute: in English by this machine's clock, on the page by the person's. */
export type Moment = number;

/** What happened. */
export type Cause = { "code": "being_answered", by: string, what: string, } | { "code": "answered", by: string, at: Moment, what: string, } | { "code": "over" } | { "code": "prompt_changed" } | { "code": "dialog_not_read" } | { "code": "unfinished" } | { "code": "stopping_already" } | { "code": "no_tab_to_stop" } | { "code": "another_message" } | { "code": "no_claude_here" } | { "code": "server_stopping" } | { "code": "somebody_types" } | { "code": "scrolled_back" } | { "code": "machine_busy" } | { "code": "status_unreadable" } | { "code": "asks_other" } | { "code": "answered_in_terminal" } | { "code": "menu_open" } | { "code": "draft_in_box" } | { "code": "no_dialog" } | { "code": "other_dialog" } | { "code": "not_the_asked" } | { "code": "screen_unsure" } | { "code": "not_waiting" } | { "code": "no_status" } | { "code": "program_exited" } | { "code": "input_off" } | { "code": "synchronized" } | { "code": "process_ended" } | { "code": "suspended_there" } | { "code": "other_terminal" } | { "code": "other_in_front" } | { "code": "asks_something" } | { "code": "not_working" } | { "code": "not_started" } | { "code": "work_unknown" } | { "code": "went_on" } | { "code": "next_runs" } | { "code": "queued" } | { "code": "no_words" } | { "code": "prompt_too_long", max: number, } | { "code": "text_not_shown" } | { "code": "other_opened" } | { "code": "not_taken" } | { "code": "takes_words" } | { "code": "nothing_to_submit" } | { "code": "one_answer_only" } | { "code": "no_such_box" } | { "code": "no_such_option" } | { "code": "box_not_ticked" } | { "code": "other_boxes" } | { "code": "too_long_for_dialog", max: number, } | { "code": "takes_no_words" } | { "code": "words_not_shown" } | { "code": "box_not_in_front" } | { "code": "box_taken" } | { "code": "mark_moved" } | { "code": "mark_stuck" } | { "code": "no_reaction" } | { "code": "refused_words_unsent" } | { "code": "refused_words_stand" } | { "code": "tmux_refused", detail: string, } | { "code": "tmux_silent", detail: string, } | { "code": "shell_ended" } | { "code": "tmux_busy" } | { "code": "row_gone" } | { "code": "button_too_old" } | { "code": "agents_may_not" } | { "code": "asker_unknown" } | { "code": "asker_ended" } | { "code": "no_tab", id: string, } | { "code": "no_workspace", id: string, } | { "code": "no_pane", id: string, } | { "code": "no_split", id: string, } | { "code": "last_pane" } | { "code": "panes_full", panes: number, depth: number, } | { "code": "sizes", parts: number, min: number, whole: number, } | { "code": "workspaces_full", max: number, } | { "code": "workspaces_changed" } | { "code": "name_too_long", max: number, } | { "code": "name_missing" } | { "code": "no_directory", dir: string, } | { "code": "directory_not_text", dir: string, } | { "code": "tab_ended", id: string, } | { "code": "nothing_offered", id: string, } | { "code": "shell_not_at_prompt", id: string, } | { "code": "claude_in_tab", id: string, } | { "code": "last_workspace" } | { "code": "workspace_in_use", name: string, tabs: number, agents: number, } | { "code": "not_restorable", id: string, } | { "code": "nothing_to_reopen", id: string, } | { "code": "not_ours", id: string, } | { "code": "conversation_runs", item: string, } | { "code": "no_conversation", id: string, } | { "code": "no_session", id: string, } | { "code": "settings_too_large", max: number, } | { "code": "link_used" } | { "code": "too_many_codes" } | { "code": "sign_in" } | { "code": "not_our_page" } | { "code": "not_called_that" } | { "code": "no_device" } | { "code": "notifications_off" } | { "code": "no_zone", zone: string, } | { "code": "escalate_range" } | { "code": "no_subscription", detail: string, } | { "code": "push_gone" } | { "code": "push_silent", seconds: number, } | { "code": "push_unreachable", detail: string, } | { "code": "push_answered", status: string, text: string, } | { "code": "disk_full", home: string, } | { "code": "internal", detail: string, } | { "code": "search_length", max: number, } | { "code": "too_much", max: number, } | { "code": "not_understood", detail: string, } | { "code": "history_not_saved" } | { "code": "watch_refused", detail: string, } | { "code": "tmux_outdated", installed: string, running: string, } | { "code": "no_foreign_terminal", id: string, } | { "code": "database_damaged", why: string, aside: string, } | { "code": "database_anew", why: string, aside: string, };

/** A sentence: what happened, what became of what was asked for, and what to do. */
export type Sentence = Cause & { then?: Then };

/** A sentence in English and as a code: for viewers, which say it in the person's language where they have words for it. */
export type Notice = {
  /** In English. */
  why: string,
  /** The same as a code. */
  said: Sentence, };

/** The five words, and `null` for "no agent" (an `Option` around it). */
export type State = "idle" | "busy" | "needs-input" | "review" | "unknown";

/** The process, apart from its work. */
export type Presence = "none" | "starting" | "running" | "suspended" | "elsewhere" | "gone";

/** What became of a tab's shell, or of the program that it was replaced by. */
export type Shell = "running" | "dead" | "ended";

/** The kinds of ask. */
export type AskKind = "permission" | "question" | "plan" | "form" | "dialog" | "startup";

/** One option of a dialog. */
export type CardOption = {
  /** Claude's number for it. */
  number: number | null,
  /** Claude's label. */
  label: string,
  /** What stands below the label; empty for most. */
  note: string,
  /** Where several may be checked: whether this one is. */
  checked: boolean | null,
  /** Claude's own mark is on it. */
  marked: boolean, };

/** The place of a question among several. */
export type CardPart = {
  /** From 0. */
  index: number,
  /** How many there are, without the page that submits them. */
  count: number,
  /** Their titles. */
  titles: Array<string>,
  /** Which of them have an answer. */
  answered: Array<boolean>, };

/** The dialog of an ask as Claude has drawn it, to be shown and answered. Everything in it was written by Claude or
 * a tool and has been made visible. */
export type Card = {
  /** Names just this dialog: an answer carries it, and is refused when another stands there. */
  reading: string,
  /** What kind of thing it is about ("Bash command"). */
  title: string,
  /** The command, path or changed lines, as drawn. */
  subject: Array<string>,
  /** What is asked. */
  question: string,
  /** Claude's own options, in order; empty where nothing can be pressed. */
  options: Array<CardOption>,
  /** Which of several questions this is. */
  part?: CardPart,
  /** The review page of several questions: `submit` sends all of them. */
  submit: boolean,
  /** `reject` can be sent (Esc). */
  reject: boolean,
  /** `words` can be sent: what to do instead. */
  words: boolean,
  /** Why nothing can be pressed here, in English, with what to do. */
  cannot?: string,
  /** The same as a code. */
  said?: Sentence, };

/** What needs-input waits for. */
export type Ask = {
  /** Names this ask; an answer must carry it. */
  id: number,
  /** permission, question, plan, form, dialog, startup. */
  kind: AskKind,
  /** Command, question or message; empty while unknown. */
  text: string,
  /** Claude's own labels. */
  options: Array<string>,
  /** The dialog as it stands on the screen; absent until it was read. */
  card?: Card, };

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

/** A conversation that can be taken up again. */
export type Resume = {
  /** Claude's session id. */
  conversation: string,
  /** What it was called; empty if it had no name. */
  title: string, };

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
  episode: number | null,
  /** A conversation that ran in this tab before its shell was started again, and can be taken up here. */
  resume: Resume | null, };

/** The colours of a workspace. Amber, purple and grey are not among them: those belong to states. */
export type Color = "red" | "orange" | "yellow" | "green" | "teal" | "blue" | "pink" | "brown";

/** The direction of a split. */
export type SplitDir = "right" | "down";

/** A pane: an area with a bar of tabs. */
export type PaneArea = {
  /** Its id, unique over all workspaces. */
  id: string,
  /** Ids of its tabs in order; none where nothing was opened in it yet. */
  tabs: Array<string>, };

/** An area that is divided. */
export type PaneSplit = {
  /** Its id, unique over all workspaces. */
  id: string,
  /** Where the next part lies. */
  dir: SplitDir,
  /** Two or more, from left to right or from top to bottom; none is itself split in this direction. */
  parts: Array<PaneTree>,
  /** Their shares in thousandths; 1000 in all. */
  sizes: Array<number>, };

/** How a workspace is divided: one pane, or a split of several parts. */
export type PaneTree = { "pane": PaneArea } | { "split": PaneSplit };

/** A workspace with its most urgent state. */
export type Workspace = {
  /** Its id. */
  id: string,
  /** Its name. */
  name: string,
  /** Default directory. */
  dir: string,
  /** The colour the person gave it. */
  color: Color | null,
  /** The heading it stands under, with all others of the same. */
  group: string | null,
  /** Its panes. Which tab each shows, which has the focus and which is zoomed is each device's own. */
  panes: PaneTree,
  /** Ids of its tabs in the order of the panes; each is an item's id. */
  tabs: Array<string>,
  /** Most urgent inside. */
  state: State | null,
  /** With `state: review`: the most urgent one failed. */
  failed: boolean, };

/** How far an answer, or a wish to stop, has come. */
export type Sending = "sending" | "sent" | "failed";

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
  /** What is degraded ("tmux does not answer"); empty when healthy. */
  notices: Array<Notice>, } | { "type": "diff",
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
  notices?: Array<Notice>, } | { "type": "heartbeat",
  /** As in the snapshot. */
  epoch: string,
  /** The last revision sent. */
  rev: number,
  /** The server's wall clock. */
  now_ms: number, } | { "type": "refused",
  /** The `request` of the message refused. */
  request: number,
  /** Why, and what to do, in English. */
  why: string,
  /** The same as a code. */
  said: Sentence, } | { "type": "answered",
  /** The `request` of the answer, for the viewer that sent it; `null` for the others. */
  request: number | null,
  /** The item. */
  item: string,
  /** The ask. */
  ask: number,
  /** The card's `reading` that it answers. */
  reading: string,
  /** How far it has come. */
  outcome: Sending,
  /** What was answered: the option's label. */
  what: string,
  /** Who answers: the device's name. */
  by: string,
  /** Since when, unix ms. */
  at_ms: number,
  /** With `failed`: what to do, in English. */
  why: string | null,
  /** The same as a code. */
  said: Sentence | null, } | { "type": "settings",
  /** All of them. What the words mean is for the page to know. */
  settings: Record<string, unknown>, } | { "type": "stopped",
  /** The `request` of the message. */
  request: number,
  /** The item. */
  item: string,
  /** How far it has come. */
  outcome: Sending,
  /** What else the person should know, in English: a prompt that waits will run now, or why it failed. */
  why: string | null,
  /** The same as a code. */
  said: Sentence | null, };

/** What the person answers. */
export type Answer = { "do": "choose",
  /** Its place in the card's options, from 0. */
  option: number, } | { "do": "check",
  /** Their places in the card's options, from 0. */
  options: Array<number>, } | { "do": "reject" } | { "do": "words",
  /** What to do. */
  text: string, } | { "do": "submit" };

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
  /** The items. */
  items: Array<string>, } | { "type": "answer",
  /** Names the message in `Refused` and `Answered`. */
  request: number,
  /** The item. */
  item: string,
  /** The ask. */
  ask: number,
  /** The card's `reading`, as it was shown to the person. */
  reading: string,
  /** What the person answers. */
  answer: Answer, } | { "type": "stop",
  /** Names the message in `Refused` and `Stopped`. */
  request: number,
  /** The item. */
  item: string, } | { "type": "resync" };

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

/** What a press on Yes or No sends back, word for word. */
export type Buttons = {
  /** The ask. */
  ask: number,
  /** The card's reading. */
  reading: string,
  /** Place of "Yes" among the card's options. */
  yes: number,
  /** Place of "No". */
  no: number,
  /** Proves that this was sent to this device. */
  seal: string, };

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
  lang: string,
  /** Yes and No: only for a plain permission, on a device that wants them. */
  buttons?: Buttons, } | { "type": "close",
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
  hold: 6,
} as const;

/** Bytes the server may have in flight before the first credit. */
export const INITIAL_CREDIT = 262144;
