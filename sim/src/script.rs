//! A history as data: what the person does, what Claude was asked to do, and when. It is what a failing
//! seed prints, what is made smaller, and what a test can hold. Decides nothing.

use std::fmt::Write as _;

/// What the person, or the machine, does after waiting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Milliseconds after the step before, of whichever pane.
    pub wait: u64,
    /// Seeds every delay of this pane's from here to its next step.
    pub seed: u64,
    /// In which pane.
    pub pane: usize,
    /// What is done. Where it makes no sense now (an answer without a dialog) nothing happens.
    pub act: Act,
}

/// One thing done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// `claude` is started; `same_pid`: the system gives it the pid of the one before.
    Start {
        how: Start,
        same_pid: bool,
    },
    /// A prompt is typed and sent; while Claude is busy it is queued.
    Prompt(Turn),
    /// `claude -p` in the shell of an empty pane.
    Print(Turn),
    /// `claude --bg`: a session of its own that belongs to no pane.
    Dispatch(Turn),
    /// `claude mcp list` and the like: a process that is no session.
    Subcommand {
        ms: u64,
    },
    /// Left on the empty prompt: the session goes on in the background, the pane shows the list of all.
    Park,
    /// Enter in that list: the parked session is on the screen again.
    Attach,
    /// `claude stop` of a background session that no pane shows any more.
    StopJob,
    /// The settings are edited, and no hook of ours is called any more.
    HooksVanish,
    /// `!command` that runs this long, answered by a model turn.
    Bang {
        ms: u64,
    },
    /// `/compact` that takes this long.
    Compact {
        ms: u64,
    },
    /// `/clear`.
    Clear,
    /// In the open `/resume` picker: take another conversation.
    PickConversation,
    /// A menu of the person's own: `/model`, `/help`, the `/resume` picker.
    OpenMenu,
    /// `/nosuch`.
    UnknownCommand,
    /// Esc: closes a menu, refuses a dialog, interrupts, or does nothing.
    Esc,
    /// The dialog in front is answered with yes (or with an answer).
    Yes,
    /// "No" with words: Claude goes on.
    NoWithWords,
    /// A key that decides nothing at a dialog.
    StrayKey,
    /// Ctrl-Z, and `fg`.
    Suspend,
    Resume,
    /// Ends of a process: `/exit`, a signal, kill -9.
    Exit,
    Terminate,
    Kill,
    /// The end of an answer is looked at on the page.
    Look,
    /// The person comes back to the screen after a while and is told what happened.
    Return,
    /// Time passes.
    Nothing,
}

/// How a process begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Into a prompt.
    Plain,
    /// A folder that is not trusted yet: a dialog stands before everything.
    Untrusted,
    /// `--continue`: the conversation before, with its transcript.
    Continue,
    /// `--fork-session`: a new one that begins with the lines of the one before.
    Fork,
    /// A version without a status: 2.0.77, which has no file at all, or with `file` 2.1.90, which has one.
    Old { file: bool },
}

/// What a prompt makes Claude do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// In order.
    pub pieces: Vec<Piece>,
    /// How it ends if nobody interrupts it.
    pub end: End,
    /// A hook of the person's blocks the prompt.
    pub blocked: bool,
}

/// One part of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Silence before the first token (retries of the API look the same), then text.
    Think { silent: u64, text: u64 },
    /// A tool of the main lane.
    Tool(Tool),
    /// A subagent that runs beside the turn.
    Agent { think: u64, tools: Vec<Tool> },
    /// A teammate: as a subagent, but its end wakes the turn by a message and Stop lists it for ever.
    Teammate { think: u64, tools: Vec<Tool> },
    /// A subagent that the turn waits for, as before 2.1.332.
    Inner { tools: Vec<Tool> },
    /// A tool whose command is `claude -p`.
    Nested(Turn),
    /// A background shell.
    Shell { ms: u64 },
    /// The context is full.
    Compaction { ms: u64 },
    /// ScheduleWakeup.
    Wakeup { ms: u64 },
}

/// One tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tool {
    /// How long it runs once it may.
    pub ms: u64,
    /// What must be answered before.
    pub dialog: Option<Dialog>,
    /// It fails by itself.
    pub fails: bool,
}

/// The dialogs a tool can raise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialog {
    /// May it run?
    Permission,
    /// AskUserQuestion.
    Question,
    /// ExitPlanMode.
    Plan,
    /// MCP elicitation.
    Form,
    /// Auto mode could not check the action: no hook describes it.
    Auto,
    /// PermissionRequest fires and nobody is asked.
    Phantom,
}

/// How a turn ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Stop; `vetoes` Stop hooks of the person's send it back first, the last one takes `slow` ms.
    Answer { vetoes: u8, slow: u64 },
    /// StopFailure of one of the kinds of [`ERRORS`]; `late`: the file was first.
    Error { kind: u8, late: bool },
}

/// The kinds of StopFailure that were seen (measured, 2.1.332).
pub const ERRORS: [&str; 7] = [
    "unknown",
    "authentication_failed",
    "model_not_found",
    "invalid_request",
    "rate_limit",
    "server_error",
    "max_output_tokens",
];

/// A whole history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct History {
    /// How many panes there are.
    pub panes: usize,
    /// In order.
    pub steps: Vec<Step>,
}

impl History {
    /// Rust that builds it again, for a test that uses all of this module.
    #[must_use]
    pub fn as_rust(&self) -> String {
        let mut out = format!("History {{ panes: {}, steps: vec![\n", self.panes);
        for step in &self.steps {
            let mut text = format!("{step:?}");
            // The debug form lacks the names of enums, and a macro for its lists; only lists print brackets.
            for (bare, whole) in QUALIFIED {
                text = text.replace(bare, whole);
            }
            let written = writeln!(out, "    {text},");
            written.expect("a String takes every write");
        }
        out.push_str("] }");
        out
    }
}

/// What the debug form says, and what Rust wants.
const QUALIFIED: [(&str, &str); 15] = [
    ("[", "vec!["),
    ("act: ", "act: Act::"),
    ("how: ", "how: Start::"),
    ("end: ", "end: End::"),
    ("dialog: Some(", "dialog: Some(Dialog::"),
    ("Think {", "Piece::Think {"),
    ("Tool(Tool", "Piece::Tool(Tool"),
    ("Agent {", "Piece::Agent {"),
    ("Teammate {", "Piece::Teammate {"),
    ("Inner {", "Piece::Inner {"),
    ("Nested(", "Piece::Nested("),
    ("Shell {", "Piece::Shell {"),
    ("Compaction {", "Piece::Compaction {"),
    ("Wakeup {", "Piece::Wakeup {"),
    ("Piece::Piece::", "Piece::"),
];
