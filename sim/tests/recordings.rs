//! Every recorded run is a history the model could have made: each stretch of signals that a run of the real
//! Claude Code shows, in the order in which they happened, is one that the model emits as well.
//!
//! Compared are, for each process, the hooks of the main lane together with the writes of the status file;
//! the hooks of each subagent; and the lines of the transcript that may decide something.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use purplemux_core::witness::{FileStatus, HookKind, StartSource, TranscriptKind, WaitingFor};
use purplemux_sim::author::{self, Scope};
use purplemux_sim::chance::Chance;
use purplemux_sim::claude::Claude;
use purplemux_sim::truth::{Signal, What};
use serde_json::Value;

/// So many signals in a row are looked at together.
const WINDOW: usize = 4;

/// Histories that are drawn to learn what the model can do.
const HISTORIES: u64 = 60_000;

/// Runs of what the model leaves out, with the reason.
const LEFT_OUT: [(&str, &str); 12] = [
    ("d2_sub", "a subcommand, no session"),
    ("s09a_task_permission_v21128", "subagents in the foreground"),
    ("s09a_task_permission_v21200", "subagents in the foreground"),
    ("s17_headless", "headless"),
    ("s20b_failing_hooks", "the hook of SessionStart failed"),
    ("s25a_http_hooks", "SessionStart and the tools had no hook"),
    ("s25b_http_hooks_down", "no hook but SessionEnd's arrived"),
    ("s29_agents_view", "a background session"),
    ("s29b_left_arrow_idle", "a background session"),
    ("s41_v2077", "a version without a status file"),
    ("s43_latency", "the tools had no hook"),
    ("s46_config_dir", "status files elsewhere"),
];

type Windows = BTreeSet<Vec<String>>;

/// What is known of each kind of stream.
#[derive(Default)]
struct Known {
    main: Windows,
    bare: Windows,
    lane: Windows,
    lines: Windows,
}

fn windows(stream: &[String]) -> Vec<Vec<String>> {
    let mut padded = vec!["^".to_owned()];
    padded.extend_from_slice(stream);
    let length = WINDOW.min(padded.len());
    padded.windows(length).map(<[String]>::to_vec).collect()
}

fn learn(into: &mut Windows, stream: &[String]) {
    for window in windows(stream) {
        // A run may end at any moment.
        for length in 1..window.len() {
            into.insert(window[..length].to_vec());
        }
        into.insert(window);
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
        HookKind::CwdChanged { .. } | HookKind::Unknown { .. } => return None,
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
        TranscriptKind::Usage { .. } | TranscriptKind::Title { .. } => return None,
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
                    None => main.entry(*process).or_default().push(word),
                    Some(lane) => lanes.entry(lane.to_string()).or_default().push(word),
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
            | What::Looked => {}
        }
    }
    for stream in main.values() {
        learn(&mut known.main, stream);
        learn(&mut known.bare, &without_hooks(stream));
    }
    lanes
        .values()
        .for_each(|stream| learn(&mut known.lane, stream));
    lines
        .values()
        .for_each(|stream| learn(&mut known.lines, stream));
}

fn without_hooks(stream: &[String]) -> Vec<String> {
    let files = stream.iter().filter(|word| word.starts_with("file"));
    files.cloned().collect()
}

fn known() -> Known {
    let mut known = Known::default();
    for seed in 0..HISTORIES {
        let mut chance = Chance::new(seed);
        let mut claude = Claude::new();
        for _ in 0..14 {
            let step = author::next(&claude, &mut chance, Scope::ALL);
            claude.take(&step);
        }
        claude.settle(70_000);
        let (signals, _, _) = claude.finish();
        let mut signals: Vec<Signal> = signals.into_iter().flatten().collect();
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
            let gone = (seen - 70, "file gone".to_owned());
            main.entry(pid).or_default().push(gone);
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
        if let (false, Some((at, _))) = (gone, ended) {
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

fn strange(known: &Windows, stream: &[String]) -> Vec<String> {
    windows(stream)
        .into_iter()
        .filter(|window| !known.contains(window))
        .map(|window| window.join(" | "))
        .collect()
}

#[test]
fn the_model_could_have_made_every_recorded_run() {
    let known = known();
    let mut faults = Vec::new();
    for run in recordings() {
        let name = run
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let streams = streams(&run);
        let mut found = Vec::new();
        for stream in &streams.main {
            let set = if streams.hooks {
                &known.main
            } else {
                &known.bare
            };
            found.extend(strange(set, stream));
        }
        for stream in &streams.lanes {
            found.extend(strange(&known.lane, stream));
        }
        for stream in &streams.lines {
            found.extend(strange(&known.lines, stream));
        }
        let left_out = LEFT_OUT.iter().any(|(left, _)| *left == name);
        if left_out && found.is_empty() {
            faults.push(format!("{name} is left out, and the model can make it"));
        }
        if !left_out {
            faults.extend(found.iter().map(|window| format!("{name}: {window}")));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
