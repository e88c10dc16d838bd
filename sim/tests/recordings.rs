//! Every recorded run is a history the model could have made: each stretch of signals that a run of the real
//! Claude Code shows, in the order in which they happened, is one that the model emits as well.
//!
//! Compared are, for each process, the hooks of the main lane together with the writes of the status file;
//! the hooks of each subagent; and the lines of the transcript that may decide something.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use purplemux_core::witness::{FileStatus, HookKind, StartSource, TranscriptKind, WaitingFor};
use purplemux_sim::author::{self, Scope};
use purplemux_sim::cast::Cast;
use purplemux_sim::chance::Chance;
use purplemux_sim::truth::{Signal, What};
use serde_json::Value;

/// So many signals in a row are looked at together.
const WINDOW: usize = 4;

/// Histories that are drawn to learn what the model can do.
const HISTORIES: u64 = 80_000;

/// Runs in which something was not told: compared is what was.
const UNTOLD: [(&str, Untold, &str); 4] = [
    (
        "s20b_failing_hooks",
        Untold::Start,
        "SessionStart's hook broke",
    ),
    (
        "s25a_http_hooks",
        Untold::Start,
        "http hooks don't fire for SessionStart",
    ),
    ("s43_latency", Untold::Tools, "the tools had no hook"),
    ("s46_config_dir", Untold::Files, "status files elsewhere"),
];

/// What a run does not tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Untold {
    Nothing,
    Hooks,
    Start,
    Tools,
    Files,
}

impl Untold {
    const ALL: [Self; 5] = [
        Self::Nothing,
        Self::Hooks,
        Self::Start,
        Self::Tools,
        Self::Files,
    ];

    fn tells(self, word: &str) -> bool {
        let file = word.starts_with("file");
        match self {
            Self::Nothing => true,
            Self::Hooks => file,
            Self::Start => !word.starts_with("start "),
            Self::Tools => !["pre ", "post ", "failed"]
                .iter()
                .any(|tool| word.starts_with(tool)),
            Self::Files => !file,
        }
    }

    fn told(self, stream: &[String]) -> Vec<String> {
        let told = stream.iter().filter(|word| self.tells(word));
        told.cloned().collect()
    }
}

/// Stretches of words, packed: a word is a number of sixteen bits, and zero is none.
type Windows = HashSet<u64>;

/// The numbers of the words.
#[derive(Default)]
struct Words {
    numbers: HashMap<String, u16>,
    names: Vec<String>,
}

impl Words {
    fn number(&mut self, word: &str) -> u16 {
        if let Some(number) = self.numbers.get(word) {
            return *number;
        }
        self.names.push(word.to_owned());
        let number = u16::try_from(self.names.len()).expect("few words");
        self.numbers.insert(word.to_owned(), number);
        number
    }

    fn name(&self, packed: u64) -> String {
        let places = (0..WINDOW)
            .rev()
            .map(|place| (packed >> (16 * place)) & 0xFFFF);
        let numbers = places.filter_map(|number| usize::try_from(number).ok()?.checked_sub(1));
        let names: Vec<&str> = numbers.map(|number| self.names[number].as_str()).collect();
        names.join(" | ")
    }
}

/// What is known of each kind of stream.
#[derive(Default)]
struct Known {
    words: Words,
    main: BTreeMap<Untold, Windows>,
    lane: Windows,
    lines: Windows,
}

/// Every stretch of a stream that begins with its beginning.
fn windows(words: &mut Words, stream: &[String]) -> Vec<u64> {
    let mut padded = vec![words.number("^")];
    padded.extend(stream.iter().map(|word| words.number(word)));
    let length = WINDOW.min(padded.len());
    let pack = |window: &[u16]| {
        window
            .iter()
            .fold(0, |all, word| (all << 16) | u64::from(*word))
    };
    padded.windows(length).map(pack).collect()
}

fn learn(words: &mut Words, into: &mut Windows, stream: &[String]) {
    for window in windows(words, stream) {
        // A run may end at any moment.
        let mut shorter = window;
        while shorter > 0 {
            into.insert(shorter);
            shorter >>= 16;
        }
    }
}

fn tool(name: &str) -> &'static str {
    match name {
        "AskUserQuestion" => "question",
        "ExitPlanMode" => "plan",
        "Agent" | "Task" => "agent",
        _ => "tool",
    }
}

// ---- the model's side --------------------------------------------------------------------------------

fn hook_word(kind: &HookKind) -> Option<String> {
    let word = match kind {
        HookKind::SessionStart { source } => match source {
            StartSource::Startup => "start startup".to_owned(),
            StartSource::Resume => "start resume".to_owned(),
            StartSource::Clear => "start clear".to_owned(),
            StartSource::Compact => "start compact".to_owned(),
            StartSource::Fork => "start fork".to_owned(),
            StartSource::Other(other) => format!("start {other}"),
        },
        HookKind::SessionEnd { reason } => format!("end {reason}"),
        HookKind::Prompt {
            task_notification, ..
        } => if *task_notification {
            "notice"
        } else {
            "prompt"
        }
        .to_owned(),
        HookKind::ToolStarted { tool: call } => format!("pre {}", tool(&call.name)),
        HookKind::ToolEnded { tool: call } => format!("post {}", tool(&call.name)),
        HookKind::ToolFailed { .. } => "failed".to_owned(),
        HookKind::PermissionRequested { tool: call } => format!("asks {}", tool(&call.name)),
        HookKind::Notified { kind, .. } => format!("notifies {}", kind.as_deref().unwrap_or("")),
        HookKind::FormAsked { .. } => "form".to_owned(),
        HookKind::FormAnswered => "form answered".to_owned(),
        HookKind::Stopped { .. } => "stop".to_owned(),
        HookKind::StopFailed { .. } => "stop failed".to_owned(),
        HookKind::SubagentStarted { .. } => "subagent starts".to_owned(),
        HookKind::SubagentStopped { kind, .. } if kind.is_empty() => "inner stop".to_owned(),
        HookKind::SubagentStopped { .. } => "subagent stops".to_owned(),
        HookKind::CompactStarted { manual: true } => "compact manual".to_owned(),
        HookKind::CompactStarted { manual: false } => "compact auto".to_owned(),
        HookKind::CompactEnded => "compacted".to_owned(),
        HookKind::CwdChanged { .. } | HookKind::StatusLine { .. } | HookKind::Unknown { .. } => {
            return None;
        }
    };
    Some(word)
}

fn status_word(status: FileStatus, waiting_for: Option<&WaitingFor>) -> &'static str {
    match (status, waiting_for) {
        (FileStatus::Idle, _) => "file idle",
        (FileStatus::Busy, _) => "file busy",
        (FileStatus::Shell, _) => "file shell",
        (FileStatus::Waiting, Some(WaitingFor::Permission)) => "file permission",
        (FileStatus::Waiting, Some(WaitingFor::Input)) => "file input",
        (FileStatus::Waiting, Some(WaitingFor::DialogOpen)) => "file dialog",
        (FileStatus::Waiting, Some(WaitingFor::Other(_)) | None) => "file waiting",
    }
}

fn line_word(kind: &TranscriptKind) -> Option<String> {
    let word = match kind {
        TranscriptKind::TurnEnded { .. } => "ended".to_owned(),
        TranscriptKind::ApiError { .. } => "error".to_owned(),
        TranscriptKind::Interrupted => "interrupted".to_owned(),
        TranscriptKind::Prompted { .. } => "prompted".to_owned(),
        TranscriptKind::ToolStarted { .. } => "call".to_owned(),
        TranscriptKind::ToolEnded { .. } => "result".to_owned(),
        TranscriptKind::Enqueued => "enqueued".to_owned(),
        TranscriptKind::Dequeued => "dequeued".to_owned(),
        TranscriptKind::CompactBoundary => "boundary".to_owned(),
        TranscriptKind::ContinuedIn { .. } => "continued".to_owned(),
        TranscriptKind::Usage { .. }
        | TranscriptKind::Requested
        | TranscriptKind::Title { .. }
        | TranscriptKind::FirstPrompt { .. }
        | TranscriptKind::LastWords { .. }
        | TranscriptKind::Rewound { .. } => return None,
    };
    Some(word)
}

fn learn_history(known: &mut Known, signals: &mut [Signal]) {
    signals.sort_by_key(|signal| signal.at);
    let mut main: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    let mut lanes: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut lines: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    let mut before: BTreeMap<usize, (String, u64)> = BTreeMap::new();
    for signal in signals.iter() {
        match &signal.what {
            What::Hook {
                process,
                lane,
                kind,
                ..
            } => {
                let Some(word) = hook_word(kind) else {
                    continue;
                };
                match lane {
                    Some(lane) if word != "inner stop" => {
                        lanes.entry(lane.to_string()).or_default().push(word);
                    }
                    Some(_) | None => main.entry(*process).or_default().push(word),
                }
            }
            What::Wrote { process, file } => {
                let Some(status) = file.status else {
                    continue;
                };
                let word = status_word(status, file.waiting_for.as_ref()).to_owned();
                let last = before.insert(*process, (word.clone(), file.since));
                let word = match last {
                    Some((last, since)) if last == word && since != file.since => {
                        "file again".to_owned()
                    }
                    Some((last, _)) if last == word => continue,
                    Some(_) | None => word,
                };
                main.entry(*process).or_default().push(word);
            }
            What::Removed { process } => {
                main.entry(*process)
                    .or_default()
                    .push("file gone".to_owned());
            }
            What::Line {
                conversation, kind, ..
            } => lines
                .entry(*conversation)
                .or_default()
                .extend(line_word(kind)),
            What::Found { .. }
            | What::KeyFile { .. }
            | What::Quiet { .. }
            | What::Stopped { .. }
            | What::Died { .. }
            | What::Looked { .. } => {}
        }
    }
    for stream in main.values() {
        for untold in Untold::ALL {
            let into = known.main.entry(untold).or_default();
            learn(&mut known.words, into, &untold.told(stream));
        }
    }
    for stream in lanes.values() {
        learn(&mut known.words, &mut known.lane, stream);
    }
    for stream in lines.values() {
        learn(&mut known.words, &mut known.lines, stream);
    }
}

fn known() -> Known {
    let mut known = Known::default();
    let usual = "all,-panes,-parking,-headless,-nested,-versions,-vanish";
    let scopes: [Scope; 2] = ["all,-panes", usual].map(|scope| scope.parse().expect("a scope"));
    for seed in 0..HISTORIES {
        let scope = scopes[usize::from(seed % 2 == 0)];
        let mut chance = Chance::new(seed);
        let mut cast = Cast::new(1);
        for _ in 0..14 {
            let step = author::next(&cast, &mut chance, scope);
            cast.take(&step);
        }
        cast.settle(70_000);
        let played = cast.finish();
        let mut signals: Vec<Signal> = played.signals.into_iter().flatten().collect();
        learn_history(&mut known, &mut signals);
    }
    known
}

// ---- the recordings' side ----------------------------------------------------------------------------

fn recordings() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../wire/tests/recordings");
    let mut all: Vec<PathBuf> = fs::read_dir(root)
        .expect("the recordings")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.is_dir())
        .collect();
    all.sort();
    all
}

fn rows(path: &Path) -> Vec<Value> {
    let Ok(text) = fs::read_to_string(path) else {
        return Vec::new();
    };
    text.lines()
        .map(|line| serde_json::from_str(line).expect("a row of JSON"))
        .collect()
}

fn recorded_hook(input: &Value) -> Option<String> {
    let text = |key: &str| input[key].as_str().unwrap_or("");
    let word = match text("hook_event_name") {
        "SessionStart" => format!("start {}", text("source")),
        "SessionEnd" => format!("end {}", text("reason")),
        "UserPromptSubmit" if text("prompt").starts_with("<task-notification>") => {
            "notice".to_owned()
        }
        "UserPromptSubmit" => "prompt".to_owned(),
        "PreToolUse" => format!("pre {}", tool(text("tool_name"))),
        "PostToolUse" => format!("post {}", tool(text("tool_name"))),
        "PostToolUseFailure" => "failed".to_owned(),
        "PermissionRequest" => format!("asks {}", tool(text("tool_name"))),
        "Notification" => format!("notifies {}", text("notification_type")),
        "Elicitation" => "form".to_owned(),
        "ElicitationResult" => "form answered".to_owned(),
        "Stop" => "stop".to_owned(),
        "StopFailure" => "stop failed".to_owned(),
        "SubagentStart" => "subagent starts".to_owned(),
        "SubagentStop" if text("agent_type").is_empty() => "inner stop".to_owned(),
        "SubagentStop" => "subagent stops".to_owned(),
        "PreCompact" => format!("compact {}", text("trigger")),
        "PostCompact" => "compacted".to_owned(),
        _ => return None,
    };
    Some(word)
}

/// The streams of one run: per process, per subagent, per transcript.
struct Streams {
    main: Vec<Vec<String>>,
    hooks: bool,
    lanes: Vec<Vec<String>>,
    lines: Vec<Vec<String>>,
}

fn streams(run: &Path) -> Streams {
    let mut main: BTreeMap<u64, Vec<(u64, String)>> = BTreeMap::new();
    let mut lanes: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut hooks = rows(&run.join("hooks.jsonl"));
    hooks.sort_by_key(|row| row["ts"].as_u64());
    for row in &hooks {
        let input = &row["input"];
        let Some(word) = recorded_hook(input) else {
            continue;
        };
        let ancestor = row["ppids"][1][0].as_u64();
        let pid = row["env"]["CLAUDE_PID"].as_str();
        let pid = pid.and_then(|pid| pid.parse().ok()).or(ancestor);
        let at = row["ts"].as_u64().expect("a time");
        match input["agent_id"].as_str() {
            Some(lane) if word != "inner stop" => {
                lanes.entry(lane.to_owned()).or_default().push(word);
            }
            Some(_) | None => {
                let pid = pid.expect("the process a hook belongs to");
                main.entry(pid).or_default().push((at, word));
            }
        }
    }
    let mut before: BTreeMap<u64, (String, u64)> = BTreeMap::new();
    for row in rows(&run.join("sessions.jsonl")) {
        let name = row["file"].as_str().unwrap_or("");
        let Some(pid) = name.strip_suffix(".json").and_then(|pid| pid.parse().ok()) else {
            continue;
        };
        let seen = row["ts"].as_u64().expect("a time");
        if row["gone"].as_bool() == Some(true) {
            // Found by a poll every 15 ms, late on a busy machine; Claude removes it before SessionEnd.
            let stream = main.entry(pid).or_default();
            let ends = stream.iter().filter(|(_, word)| word.starts_with("end "));
            let ended = ends.map(|(at, _)| at - 1).max();
            let at = ended.map_or(seen - 15, |ended| ended.min(seen));
            stream.push((at, "file gone".to_owned()));
            continue;
        }
        let value = &row["value"];
        let word = match (value["status"].as_str(), value["waitingFor"].as_str()) {
            (Some("waiting"), Some("dialog open")) => "file dialog".to_owned(),
            (Some("waiting"), Some("input needed")) => "file input".to_owned(),
            (Some("waiting"), Some(_)) => "file permission".to_owned(),
            (Some(status), _) => format!("file {status}"),
            (None, _) => continue,
        };
        let since = value["statusUpdatedAt"].as_u64().unwrap_or(seen);
        let last = before.insert(pid, (word.clone(), since));
        let word = match last {
            Some((last, was)) if last == word && was != since => {
                // A busy written anew hides the idle between (measured: a few milliseconds).
                if word == "file busy" {
                    let hidden = "file idle".to_owned();
                    main.entry(pid).or_default().push((since - 1, hidden));
                    word
                } else {
                    "file again".to_owned()
                }
            }
            Some((last, _)) if last == word => continue,
            Some(_) | None => word,
        };
        main.entry(pid).or_default().push((since.min(seen), word));
    }
    let mut lines: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for row in rows(&run.join("transcript.jsonl")) {
        let file = row["file"].as_str().unwrap_or("").to_owned();
        if file.contains("/subagents/") {
            continue;
        }
        let text = row["line"].to_string();
        for fact in purplemux_wire::transcript::facts(text.as_bytes()) {
            if !fact.sidechain {
                let line = line_word(&fact.kind);
                lines.entry(file.clone()).or_default().extend(line);
            }
        }
    }
    let main = main.into_values().map(|mut stream| {
        let gone = stream.iter().any(|(_, word)| word == "file gone");
        let ended = stream.iter().find(|(_, word)| word == "end other");
        let had = stream.iter().any(|(_, word)| word.starts_with("file"));
        if let (true, false, Some((at, _))) = (had, gone, ended) {
            // The recorder stopped looking before the file went (s32).
            stream.push((at - 1, "file gone".to_owned()));
        }
        stream.sort_by_key(|(at, _)| *at);
        stream.into_iter().map(|(_, word)| word).collect()
    });
    Streams {
        main: main.collect(),
        hooks: !hooks.is_empty(),
        lanes: lanes.into_values().collect(),
        lines: lines.into_values().collect(),
    }
}

fn strange(words: &mut Words, known: &Windows, stream: &[String]) -> Vec<String> {
    let windows = windows(words, stream);
    let strange = windows.into_iter().filter(|window| !known.contains(window));
    strange.map(|window| words.name(window)).collect()
}

#[test]
fn the_model_could_have_made_every_recorded_run() {
    let mut known = known();
    let mut words = std::mem::take(&mut known.words);
    let mut faults = Vec::new();
    for run in recordings() {
        let name = run
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let streams = streams(&run);
        let mut found = Vec::new();
        let untold = UNTOLD.iter().find(|(left, _, _)| *left == name);
        let untold = match untold {
            Some((_, untold, _)) => *untold,
            None if streams.hooks => Untold::Nothing,
            None => Untold::Hooks,
        };
        for stream in &streams.main {
            found.extend(strange(
                &mut words,
                &known.main[&untold],
                &untold.told(stream),
            ));
        }
        for stream in &streams.lanes {
            found.extend(strange(&mut words, &known.lane, stream));
        }
        for stream in &streams.lines {
            found.extend(strange(&mut words, &known.lines, stream));
        }
        faults.extend(found.iter().map(|window| format!("{name}: {window}")));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
