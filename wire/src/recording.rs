//! One agent's journal as a recorded run: the files that the replay tests play (`tests/recordings/README.md`
//! describes them), so that a report about a wrong badge becomes a test by one command. The other direction of
//! [`crate::hook`], [`crate::session_file`] and [`crate::transcript`]: our values in Claude's words again.
//!
//! Writes no file itself, and must never write what was right: `expect` holds only what no witness tells (when
//! the process ended or stood still); the badges are written by a person.

use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use purplemux_core::view::{self, Badge};
use purplemux_core::witness::{
    AgentKind, FileStatus, Hook, HookKind, Question, SessionFile, StartSource, ToolCall,
    TranscriptFact, TranscriptKind, WaitingFor,
};
use purplemux_core::{AgentKey, ConversationId, Event, PaneKey};
use serde_json::{Map, Value, json};

use crate::hook::{self, is_task_notification};
use crate::journal::{Record, What};
use crate::status_line;

/// The files of one run, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recording {
    /// `hooks.jsonl`.
    pub hooks: String,
    /// `sessions.jsonl`.
    pub sessions: String,
    /// `transcript.jsonl`.
    pub transcript: String,
    /// `timeline.txt`: all of it merged, in ms since the start.
    pub timeline: String,
    /// `expect`: no badge in it yet.
    pub expect: String,
    /// `shown.txt`: what was shown at the time. Whoever writes `expect` does not look at it.
    pub shown: String,
}

impl Recording {
    /// The files with their names.
    #[must_use]
    pub fn files(&self) -> [(&'static str, &str); 6] {
        [
            ("hooks.jsonl", &self.hooks),
            ("sessions.jsonl", &self.sessions),
            ("transcript.jsonl", &self.transcript),
            ("timeline.txt", &self.timeline),
            ("expect", &self.expect),
            ("shown.txt", &self.shown),
        ]
    }
}

/// Writes the run of `agent` from the records about it, oldest first; what concerns others is left out.
/// `None`: there is nothing about it.
#[must_use]
pub fn of_agent(agent: &AgentKey, records: &[Record]) -> Option<Recording> {
    let begin = records.iter().find(|record| concerns(agent, record))?;
    let mut author = Author {
        agent,
        t0: begin.at.wall_ms,
        pane: None,
        parent: None,
        conversation: None,
        transcript: None,
        quiet: false,
        timeline: Vec::new(),
        facts: String::new(),
        out: Recording::default(),
    };
    // A process is found with its pane at the first or at a later look.
    for record in records {
        if let What::Evidence(Event::ProcessFound {
            agent: found,
            process,
        }) = &record.what
            && found == agent
        {
            author.pane = author.pane.or_else(|| process.pane.clone());
            author.parent = author.parent.or_else(|| process.parent_agent.clone());
        }
    }
    for record in records {
        author.write(record);
    }
    Some(author.finish())
}

fn concerns(agent: &AgentKey, record: &Record) -> bool {
    match &record.what {
        What::Evidence(event) => crate::journal::agent_of(event) == Some(agent),
        What::Verdict(verdict) => verdict.agent == *agent,
        What::Lost(_) | What::Started(_) => false,
    }
}

struct Author<'a> {
    agent: &'a AgentKey,
    /// Unix ms of the run's zero.
    t0: i64,
    pane: Option<PaneKey>,
    parent: Option<AgentKey>,
    conversation: Option<ConversationId>,
    transcript: Option<Arc<str>>,
    quiet: bool,
    timeline: Vec<(i64, String)>,
    /// Statements of `expect` that no witness makes.
    facts: String,
    out: Recording,
}

impl Author<'_> {
    fn write(&mut self, record: &Record) {
        let at = record.at.wall_ms;
        match &record.what {
            What::Evidence(event) => self.event(at, event),
            What::Verdict(verdict) if verdict.agent == *self.agent => {
                let shown = shown(verdict.badge.as_ref());
                let ms = at - self.t0;
                self.out.shown.push_str(&format!("{ms:8} {shown}\n"));
            }
            What::Verdict(_) => {}
            What::Lost(lost) => self.mark(at, &format!("{} records are missing", lost.count)),
            What::Started(started) => {
                self.mark(at, &format!("purplemux {} started", started.version));
            }
        }
    }

    fn event(&mut self, at: i64, event: &Event) {
        if crate::journal::agent_of(event).is_some_and(|agent| agent != self.agent) {
            return;
        }
        match event {
            Event::FileRead { file, .. } => self.file(at, file),
            Event::FileRemoved { .. } => {
                let name = format!("{}.json", self.agent.pid);
                let line = json!({ "ts": at, "file": name, "gone": true });
                push_line(&mut self.out.sessions, &line);
                self.note(at, "PIDF gone".to_owned());
            }
            Event::KeyFileSeen { agent } => {
                let name = format!("{}.0.key", agent.pid);
                let value = json!({ "redacted": true });
                let line = json!({ "ts": at, "file": name, "value": value });
                push_line(&mut self.out.sessions, &line);
                self.note(at, format!("PIDF {name} created"));
            }
            Event::HookFired { hook } => {
                if self.is_ours(hook) {
                    self.hook(hook);
                }
            }
            Event::TranscriptGrew { facts, .. } => self.lines(at, facts),
            Event::ProcessDied { .. } => {
                self.fact("died", at);
                self.mark(at, "the process ended");
            }
            Event::ProcessStopped { stopped, .. } => {
                let word = if *stopped { "stopped" } else { "continued" };
                self.fact(word, at);
                self.mark(at, &format!("the process {word}"));
            }
            Event::ProcessQuiet { quiet: true, .. } if !self.quiet => {
                self.quiet = true;
                // It is said of the second before.
                self.fact("quiet", at - 1000);
            }
            Event::ProcessMissed { .. } => self.mark(at, "the safety net missed the process"),
            Event::ProcessFound { .. } => self.mark(at, "the process was seen"),
            Event::FileUnreadable { why, .. } => {
                self.mark(at, &format!("the status file can't be read: {why}"));
            }
            Event::Seen { .. } => self.mark(at, "the person read the answer"),
            Event::Dismissed { .. } => self.mark(at, "the person put it away"),
            Event::Restored { .. } => self.mark(at, "the badge came back after a restart"),
            Event::ProcessQuiet { .. }
            | Event::TranscriptRead { .. }
            | Event::TranscriptMissing { .. }
            | Event::PanesListed { .. }
            | Event::LayoutChanged { .. }
            | Event::RecoveryEnded
            | Event::DeadlinePassed => {}
        }
    }

    /// A hook that names no process belongs to the agent by its conversation or its pane.
    fn is_ours(&self, hook: &Hook) -> bool {
        let same = |a: Option<bool>| a == Some(true);
        hook.agent.as_ref() == Some(self.agent)
            || hook.agent.is_none()
                && (same(
                    hook.conversation
                        .as_ref()
                        .map(|id| Some(id) == self.conversation.as_ref()),
                ) || same(
                    hook.pane
                        .as_ref()
                        .map(|pane| Some(pane) == self.pane.as_ref()),
                ))
    }

    fn fact(&mut self, word: &str, at: i64) {
        self.facts.push_str(&format!("{word} A {}\n", at - self.t0));
    }

    fn mark(&mut self, at: i64, text: &str) {
        self.note(at, format!("## {text}"));
    }

    fn note(&mut self, at: i64, text: String) {
        self.timeline.push((at - self.t0, text));
    }

    fn file(&mut self, at: i64, file: &SessionFile) {
        if let Some(conversation) = &file.conversation {
            self.conversation = Some(conversation.clone());
        }
        let value = session_file(self.agent, self.pane.as_ref(), file);
        let mut what = String::new();
        for key in ["status", "waitingFor", "sessionId"] {
            if let Some(word) = value[key].as_str() {
                what.push_str(&format!(" {key}={word}"));
            }
        }
        self.note(at, format!("PIDF{what}"));
        let name = format!("{}.json", self.agent.pid);
        let line = json!({ "ts": at, "file": name, "value": value });
        push_line(&mut self.out.sessions, &line);
    }

    fn hook(&mut self, hook: &Hook) {
        let at = hook.at.wall_ms;
        if let Some(conversation) = &hook.conversation {
            self.conversation = Some(conversation.clone());
        }
        if let Some(path) = &hook.transcript {
            self.transcript = Some(path.clone());
        }
        let (event, input) = payload(hook);
        let mut ppids = vec![json!([self.agent.pid, "claude"])];
        ppids.extend(
            self.parent
                .as_ref()
                .map(|parent| json!([parent.pid, "claude"])),
        );
        let mut env = Map::new();
        let mut set = |name: &str, value: String| env.insert(name.to_owned(), Value::from(value));
        set("CLAUDE_PID", self.agent.pid.to_string());
        if let Some(pane) = hook.pane.as_ref().or(self.pane.as_ref()) {
            set("TMUX_PANE", format!("%{}", pane.pane));
            set("TMUX", format!("/tmp/tmux,{},0", pane.server.pid));
        }
        if hook.job {
            set("CLAUDE_JOB_DIR", "/tmp/job".to_owned());
        }
        self.note(
            at,
            format!("HOOK {event} {}", summary(&hook.kind))
                .trim_end()
                .to_owned(),
        );
        let line = json!({ "ts": at, "event": event, "ppids": ppids, "env": env, "input": input });
        push_line(&mut self.out.hooks, &line);
    }

    fn lines(&mut self, at: i64, facts: &[TranscriptFact]) {
        let path = match (&self.transcript, &self.conversation) {
            (Some(path), _) => path.to_string(),
            (None, Some(id)) => format!("/home/dev/.claude/projects/-home-dev/{id}.jsonl"),
            (None, None) => return,
        };
        for fact in facts {
            let value = transcript_line(fact);
            let what = value["type"].as_str().unwrap_or_default();
            self.note(at, format!("JSNL {what} {:?}", word_of(&fact.kind)));
            let line = json!({ "ts": at, "file": path, "line": value });
            push_line(&mut self.out.transcript, &line);
        }
    }

    fn finish(mut self) -> Recording {
        // A hook is told at its own stamp, which may lie before what was told already.
        self.timeline.sort_by_key(|(ms, _)| *ms);
        for (ms, text) in &self.timeline {
            self.out.timeline.push_str(&format!("{ms:8} {text}\n"));
        }
        self.out.expect = format!(
            "cases\nt0 {}\nagent A {}\n{}\
             # From the journal of purplemux {}. Write down what was right, from timeline.txt alone: windows like\n\
             # `A 1956..2390 idle` and moments like `at 8000 A busy`, as tests/recordings/README.md says.\n",
            self.t0,
            self.agent.pid,
            self.facts,
            env!("CARGO_PKG_VERSION"),
        );
        self.out
    }
}

fn push_line(file: &mut String, value: &Value) {
    file.push_str(&value.to_string());
    file.push('\n');
}

fn shown(badge: Option<&Badge>) -> String {
    match badge {
        None => "none".to_owned(),
        Some(Badge::Idle) => "idle".to_owned(),
        Some(Badge::Busy(_)) => "busy".to_owned(),
        Some(Badge::Unknown) => "unknown".to_owned(),
        Some(Badge::NeedsInput(ask)) => format!("needs-input {}", ask_word(ask.kind)),
        Some(Badge::Review(outcome)) => match &outcome.error {
            None => "review finished".to_owned(),
            Some(error) => format!("review failed({error})"),
        },
    }
}

fn ask_word(kind: view::AskKind) -> &'static str {
    match kind {
        view::AskKind::Permission => "permission",
        view::AskKind::Question => "question",
        view::AskKind::Plan => "plan",
        view::AskKind::Form => "form",
        view::AskKind::Dialog => "dialog",
        view::AskKind::Startup => "startup",
    }
}

fn session_file(agent: &AgentKey, pane: Option<&PaneKey>, file: &SessionFile) -> Value {
    let mut out = Map::new();
    let mut put = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            out.insert(key.to_owned(), value);
        }
    };
    let text = |text: &Option<Arc<str>>| text.as_deref().map(Value::from);
    put("pid", Some(agent.pid.into()));
    put("procStart", Some(agent.start.to_string().into()));
    put(
        "tmux",
        pane.map(|pane| format!("s:@0.%{}", pane.pane).into()),
    );
    put(
        "sessionId",
        file.conversation.as_ref().map(|id| id.as_str().into()),
    );
    let (kind, entrypoint) = match file.kind {
        AgentKind::Interactive => ("interactive", "cli"),
        AgentKind::Headless => ("interactive", "sdk-cli"),
        AgentKind::Background => ("bg", "cli"),
        AgentKind::Hidden => ("daemon", "cli"),
    };
    put("kind", Some(kind.into()));
    put("entrypoint", Some(entrypoint.into()));
    put(
        "status",
        file.status.map(|status| {
            Value::from(match status {
                FileStatus::Idle => "idle",
                FileStatus::Busy => "busy",
                FileStatus::Waiting => "waiting",
                FileStatus::Shell => "shell",
            })
        }),
    );
    put(
        "waitingFor",
        file.waiting_for.as_ref().map(|why| {
            Value::from(match why {
                WaitingFor::Permission => "permission prompt",
                WaitingFor::Input => "input needed",
                WaitingFor::DialogOpen => "dialog open",
                WaitingFor::Other(word) => word,
            })
        }),
    );
    put(
        "statusUpdatedAt",
        file.status_since.map(|since| since.wall_ms.into()),
    );
    put("parkedJobId", text(&file.parked_job));
    put("jobId", text(&file.job));
    put("cwd", text(&file.cwd));
    put("version", text(&file.version));
    put("name", text(&file.name));
    Value::Object(out)
}

/// What a hook is about, for the timeline.
fn summary(kind: &HookKind) -> &str {
    match kind {
        HookKind::ToolStarted { tool }
        | HookKind::ToolEnded { tool }
        | HookKind::ToolFailed { tool, .. }
        | HookKind::PermissionRequested { tool } => &tool.name,
        HookKind::Prompt { text, .. } => text,
        HookKind::Notified { kind, .. } => kind.as_deref().unwrap_or_default(),
        HookKind::SessionEnd { reason } => reason,
        HookKind::StopFailed { error, .. } => error,
        HookKind::FormAsked { message, .. } => message,
        HookKind::SubagentStarted { kind, .. } | HookKind::SubagentStopped { kind, .. } => kind,
        HookKind::CwdChanged { cwd } => cwd,
        HookKind::SessionStart { .. }
        | HookKind::FormAnswered
        | HookKind::Stopped { .. }
        | HookKind::CompactStarted { .. }
        | HookKind::CompactEnded
        | HookKind::StatusLine { .. }
        | HookKind::Unknown { .. } => "",
    }
}

/// The name of the event and Claude's JSON of it.
fn payload(hook: &Hook) -> (String, Value) {
    let mut out = Map::new();
    let (event, fields) = event(&hook.kind);
    let mut put = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            out.insert(key.to_owned(), value);
        }
    };
    put("hook_event_name", Some(event.clone().into()));
    put(
        "session_id",
        hook.conversation.as_ref().map(|id| id.as_str().into()),
    );
    put(
        "transcript_path",
        hook.transcript.as_deref().map(Value::from),
    );
    put("cwd", hook.cwd.as_deref().map(Value::from));
    put("agent_id", hook.agent_id.as_deref().map(Value::from));
    put("prompt_id", hook.prompt_id.as_deref().map(Value::from));
    for (key, value) in fields {
        put(key, Some(value));
    }
    (event, Value::Object(out))
}

type Fields = Vec<(&'static str, Value)>;

fn event(kind: &HookKind) -> (String, Fields) {
    let some = |key: &'static str, text: &Option<Arc<str>>| {
        text.as_deref().map(|text| (key, Value::from(text)))
    };
    let (event, fields): (&str, Fields) = match kind {
        HookKind::SessionStart { source } => {
            let source = match source {
                StartSource::Startup => "startup",
                StartSource::Resume => "resume",
                StartSource::Clear => "clear",
                StartSource::Compact => "compact",
                StartSource::Fork => "fork",
                StartSource::Other(word) => word,
            };
            ("SessionStart", vec![("source", source.into())])
        }
        HookKind::SessionEnd { reason } => ("SessionEnd", vec![("reason", (**reason).into())]),
        HookKind::Prompt {
            text,
            task_notification,
        } => {
            let prompt = if *task_notification && !is_task_notification(text) {
                "<task-notification>"
            } else {
                text
            };
            ("UserPromptSubmit", vec![("prompt", prompt.into())])
        }
        HookKind::ToolStarted { tool } => ("PreToolUse", tool_fields(tool)),
        HookKind::ToolEnded { tool } => ("PostToolUse", tool_fields(tool)),
        HookKind::ToolFailed { tool, interrupted } => {
            let mut fields = tool_fields(tool);
            fields.push(("is_interrupt", (*interrupted).into()));
            ("PostToolUseFailure", fields)
        }
        HookKind::PermissionRequested { tool } => ("PermissionRequest", tool_fields(tool)),
        HookKind::Notified { kind, message } => {
            let mut fields = vec![("message", Value::from(&**message))];
            fields.extend(some("notification_type", kind));
            ("Notification", fields)
        }
        HookKind::FormAsked { server, message } => (
            "Elicitation",
            vec![
                ("mcp_server_name", (**server).into()),
                ("message", (**message).into()),
            ],
        ),
        HookKind::FormAnswered => ("ElicitationResult", Vec::new()),
        HookKind::Stopped {
            last_message,
            background,
            wakes_at_ms,
            has_crons,
            stop_hook_active,
        } => {
            let mut fields = vec![("stop_hook_active", Value::from(*stop_hook_active))];
            fields.extend(some("last_assistant_message", last_message));
            if let Some(running) = background {
                let entry = |kind: &str| json!({ "type": kind, "status": "running" });
                let shells = (0..running.shells).map(|_| entry("shell"));
                let agents = (0..running.agents).map(|_| entry("subagent"));
                fields.push(("background_tasks", shells.chain(agents).collect()));
            }
            let schedule = wakes_at_ms.and_then(schedule);
            let crons = if *has_crons || schedule.is_some() {
                vec![json!({ "schedule": schedule.unwrap_or_default() })]
            } else {
                Vec::new()
            };
            fields.push(("session_crons", crons.into()));
            ("Stop", fields)
        }
        HookKind::StopFailed { error, message } => {
            let mut fields = vec![("error", Value::from(&**error))];
            fields.extend(some("last_assistant_message", message));
            ("StopFailure", fields)
        }
        HookKind::SubagentStarted { id, kind } => ("SubagentStart", subagent_fields(id, kind)),
        HookKind::SubagentStopped { id, kind } => ("SubagentStop", subagent_fields(id, kind)),
        HookKind::CompactStarted { manual } => {
            let trigger = if *manual { "manual" } else { "auto" };
            ("PreCompact", vec![("trigger", trigger.into())])
        }
        HookKind::CompactEnded => ("PostCompact", Vec::new()),
        HookKind::CwdChanged { cwd } => ("CwdChanged", vec![("new_cwd", (**cwd).into())]),
        HookKind::StatusLine { line } => ("StatusLine", status_line::fields(line)),
        HookKind::Unknown { name } => return (name.to_string(), Vec::new()),
    };
    (event.to_owned(), fields)
}

fn subagent_fields(id: &str, kind: &str) -> Fields {
    vec![("agent_id", id.into()), ("agent_type", kind.into())]
}

/// A wake-up as Claude writes it: minute, hour, day, month, any weekday; replays read it in UTC.
fn schedule(at_ms: i64) -> Option<String> {
    let at = Timestamp::from_millisecond(at_ms).ok()?;
    let at = at.to_zoned_datetime(TimeZone::UTC);
    Some(format!(
        "{} {} {} {} *",
        at.minute(),
        at.hour(),
        at.day(),
        at.month()
    ))
}

fn tool_fields(tool: &ToolCall) -> Fields {
    let mut fields = vec![
        ("tool_name", Value::from(&*tool.name)),
        ("tool_input", tool_input(tool)),
    ];
    if let Some(id) = &tool.use_id {
        fields.push(("tool_use_id", (**id).into()));
    }
    fields
}

/// An input that reads as the same tool, argument and questions. Two calls with one input have one input here
/// too: the digest tells them apart.
fn tool_input(tool: &ToolCall) -> Value {
    let questions: Vec<Value> = tool.questions.iter().map(question).collect();
    let arg = tool.arg.as_deref();
    let Some(key) = hook::arg_key(&tool.name) else {
        // The argument is the whole input as text, unless it was cut.
        return match arg.map(serde_json::from_str::<Value>) {
            Some(Ok(Value::Object(input))) => Value::Object(input),
            Some(_) => json!({ "text": arg, "digest": tool.input_digest }),
            None => json!({}),
        };
    };
    let mut input = Map::new();
    if !questions.is_empty() {
        input.insert("questions".to_owned(), questions.into());
    } else if let Some(arg) = arg {
        input.insert(key.to_owned(), arg.into());
    } else {
        // Nothing to see in it: an empty field keeps it from being shown whole.
        return json!({});
    }
    input.insert("digest".to_owned(), tool.input_digest.into());
    Value::Object(input)
}

fn question(question: &Question) -> Value {
    let options: Vec<Value> = question
        .options
        .iter()
        .map(|label| json!({ "label": &**label }))
        .collect();
    json!({ "question": &*question.text, "options": options, "multiSelect": question.multi })
}

fn word_of(kind: &TranscriptKind) -> &'static str {
    match kind {
        TranscriptKind::TurnEnded { .. } => "turn ended",
        TranscriptKind::ApiError { .. } => "API error",
        TranscriptKind::Interrupted => "interrupted",
        TranscriptKind::Prompted { .. } => "prompt",
        TranscriptKind::ToolStarted { .. } => "tool_use",
        TranscriptKind::ToolEnded { .. } => "tool_result",
        TranscriptKind::Enqueued => "enqueue",
        TranscriptKind::Dequeued => "dequeue",
        TranscriptKind::CompactBoundary => "compact boundary",
        TranscriptKind::ContinuedIn { .. } => "continued in",
        TranscriptKind::Usage { .. } => "usage",
        TranscriptKind::Requested => "request",
        TranscriptKind::Title { .. } => "title",
        TranscriptKind::FirstPrompt { .. } => "first prompt",
        TranscriptKind::LastWords { .. } => "last words",
        TranscriptKind::Rewound { .. } => "rewound",
    }
}

fn transcript_line(fact: &TranscriptFact) -> Value {
    let mut line = match &fact.kind {
        TranscriptKind::TurnEnded { last_message: None } => {
            json!({ "type": "system", "subtype": "turn_duration" })
        }
        TranscriptKind::TurnEnded {
            last_message: Some(text),
        } => assistant(json!({
            "stop_reason": "end_turn", "content": [{ "type": "text", "text": &**text }],
        })),
        TranscriptKind::ApiError { kind, message } => {
            let content = message.as_deref().unwrap_or_default();
            let mut line = assistant(json!({ "content": content }));
            line["isApiErrorMessage"] = true.into();
            line["error"] = (**kind).into();
            line
        }
        TranscriptKind::Interrupted => {
            user(json!([{ "type": "text", "text": "[Request interrupted by user]" }]))
        }
        TranscriptKind::Prompted { task_notification } => {
            let mut line = user("(prompt)".into());
            let kind = if *task_notification {
                "task-notification"
            } else {
                "human"
            };
            line["origin"] = json!({ "kind": kind });
            line
        }
        TranscriptKind::ToolStarted { tool } => {
            let mut block = json!({
                "type": "tool_use", "name": &*tool.name, "input": tool_input(tool),
            });
            if let Some(id) = &tool.use_id {
                block["id"] = (**id).into();
            }
            assistant(json!({ "content": [block] }))
        }
        TranscriptKind::ToolEnded { use_id } => {
            user(json!([{ "type": "tool_result", "tool_use_id": &**use_id }]))
        }
        TranscriptKind::Enqueued => json!({ "type": "queue-operation", "operation": "enqueue" }),
        TranscriptKind::Dequeued => json!({ "type": "queue-operation", "operation": "dequeue" }),
        TranscriptKind::CompactBoundary => {
            json!({ "type": "system", "subtype": "compact_boundary" })
        }
        TranscriptKind::ContinuedIn { conversation } => json!({
            "type": "continued-in", "continuedInSessionId": conversation.as_str(),
        }),
        TranscriptKind::Usage {
            model,
            context_tokens,
        } => assistant(json!({
            "model": model.as_deref().unwrap_or("unknown"),
            "content": [],
            "usage": { "input_tokens": context_tokens.unwrap_or(0) },
        })),
        TranscriptKind::Requested => {
            json!({ "type": "api-request", "querySource": "repl_main_thread" })
        }
        TranscriptKind::Title { text, named: true } => {
            json!({ "type": "custom-title", "customTitle": &**text })
        }
        TranscriptKind::Title { text, named: false } => {
            json!({ "type": "ai-title", "aiTitle": &**text })
        }
        // Words of ours, made of several lines of Claude's: a reader that looks for Claude's skips them.
        TranscriptKind::FirstPrompt { text } => {
            json!({ "type": "purplemux-first-prompt", "text": &**text })
        }
        TranscriptKind::LastWords { text } => {
            json!({ "type": "purplemux-last-words", "text": &**text })
        }
        TranscriptKind::Rewound { to_ms } => json!({ "type": "purplemux-rewound", "toMs": to_ms }),
    };
    let written = fact
        .written_ms
        .and_then(|ms| Timestamp::from_millisecond(ms).ok());
    if let Some(at) = written {
        line["timestamp"] = at.to_string().into();
    }
    if fact.sidechain {
        line["isSidechain"] = true.into();
    }
    line
}

fn assistant(message: Value) -> Value {
    json!({ "type": "assistant", "message": message })
}

fn user(content: Value) -> Value {
    json!({ "type": "user", "message": { "content": content } })
}
