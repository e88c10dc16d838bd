//! A journal of a hundred thousand events, read line by line and played into a fleet again: what explaining a
//! badge from a recorded run costs, and how soon a report can be looked into.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use purplemux_core::witness::{
    AgentKind, FileStatus, Hook, HookKind, Process, SessionFile, ToolCall,
};
use purplemux_core::{AgentKey, ConversationId, Event, Fleet, HookId, HostId, Stamp, Time};
use purplemux_wire::journal::{self, Record, What};

use crate::numbers::{Promise, head, ms, row};

const EVENTS: usize = 100_000;
const AGENTS: u32 = 50;
/// Of one turn: a prompt, eight tools begun and ended, the end; with the file's word before and after.
const TOOLS: u32 = 8;
const STEP: Duration = Duration::from_millis(20);

/// Measures and prints; true if the promise was kept.
pub fn measure(runs: usize) -> anyhow::Result<bool> {
    let mut writer = Writer::new();
    writer.begin()?;
    let mut turn = 0;
    while writer.lines.len() < EVENTS {
        for number in 0..AGENTS {
            writer.turn(number, turn)?;
        }
        turn += 1;
    }
    let lines = writer.lines.get(..EVENTS).context("enough events")?;
    let mut took = Vec::new();
    for _ in 0..runs {
        let from = Instant::now();
        let mut fleet = Fleet::new(host());
        let mut verdicts = 0_usize;
        for line in lines {
            let Record { at, what } = journal::decode(line)?;
            if let What::Evidence(event) = what {
                verdicts += fleet.step(at, event).len();
            }
        }
        took.push(ms(from.elapsed()));
        ensure!(
            verdicts > EVENTS / 10,
            "the events say nothing: {verdicts} effects"
        );
        ensure!(fleet.items().len() == AGENTS as usize, "agents are missing");
    }
    head();
    Ok(row(
        "100,000 events of a journal read and played",
        took,
        Promise {
            max: Some(1000.0),
            ..Promise::default()
        },
    ))
}

fn host() -> HostId {
    HostId::from("bench")
}

/// What happened, as the server would have written it down.
struct Writer {
    now: Stamp,
    lines: Vec<String>,
}

impl Writer {
    fn new() -> Self {
        Self {
            now: Stamp {
                boot: Time(1_000_000_000_000),
                wall_ms: 1_796_000_000_000,
            },
            lines: Vec::new(),
        }
    }

    fn put(&mut self, event: Event) -> anyhow::Result<()> {
        self.now.boot = self.now.boot + STEP;
        self.now.wall_ms += i64::try_from(STEP.as_millis())?;
        let what = What::Evidence(event);
        let at = self.now;
        self.lines.push(journal::encode(&Record { at, what })?);
        Ok(())
    }

    fn begin(&mut self) -> anyhow::Result<()> {
        for number in 0..AGENTS {
            self.put(Event::ProcessFound {
                agent: agent(number),
                process: Process {
                    pane: None,
                    parent_agent: None,
                    cwd: Some(Arc::from("/home/person/work/project")),
                    hooks: Some(true),
                },
            })?;
            self.file(number, FileStatus::Idle)?;
        }
        self.put(Event::RecoveryEnded)
    }

    fn turn(&mut self, number: u32, turn: u32) -> anyhow::Result<()> {
        let text = Arc::from(format!(
            "please do the next thing of the list, number {turn}, and say what came of it"
        ));
        self.hook(
            number,
            HookKind::Prompt {
                text,
                task_notification: false,
            },
        )?;
        self.file(number, FileStatus::Busy)?;
        for step in 0..TOOLS {
            let tool = ToolCall {
                name: Arc::from("Bash"),
                use_id: Some(Arc::from(format!("toolu_{number}_{turn}_{step}"))),
                arg: Some(Arc::from(format!(
                    "cargo test --workspace --locked -- part_{turn}_{step}"
                ))),
                input_digest: u64::from(turn) << 32 | u64::from(step),
                questions: Vec::new(),
            };
            self.hook(number, HookKind::ToolStarted { tool: tool.clone() })?;
            self.hook(number, HookKind::ToolEnded { tool })?;
        }
        let last_message = Some(Arc::from(
            "That is done: two files changed, and every test passes. The next one would be larger.",
        ));
        self.hook(
            number,
            HookKind::Stopped {
                last_message,
                background: None,
                wakes_at_ms: None,
                has_crons: false,
                stop_hook_active: false,
            },
        )?;
        self.file(number, FileStatus::Idle)
    }

    fn hook(&mut self, number: u32, kind: HookKind) -> anyhow::Result<()> {
        let id = HookId::from(format!("{:016x}{number:04x}", self.lines.len()).as_str());
        let hook = Hook {
            id: Some(id),
            at: self.now,
            agent: Some(agent(number)),
            pane: None,
            conversation: Some(conversation(number)),
            transcript: Some(Arc::from(format!(
                "/home/person/.claude/projects/-work/{number:08}.jsonl"
            ))),
            cwd: Some(Arc::from("/home/person/work/project")),
            agent_id: None,
            prompt_id: None,
            job: false,
            kind,
        };
        self.put(Event::HookFired {
            hook: Box::new(hook),
        })
    }

    fn file(&mut self, number: u32, status: FileStatus) -> anyhow::Result<()> {
        let at = self.now;
        let file = SessionFile {
            conversation: Some(conversation(number)),
            status: Some(status),
            waiting_for: None,
            status_since: Some(at),
            kind: AgentKind::Interactive,
            parked_job: None,
            job: None,
            cwd: Some(Arc::from("/home/person/work/project")),
            version: Some(Arc::from("2.1.332")),
            name: None,
        };
        self.put(Event::FileRead {
            agent: agent(number),
            at,
            file,
        })
    }
}

fn agent(number: u32) -> AgentKey {
    AgentKey {
        host: host(),
        pid: 1000 + number,
        start: 5000 + u64::from(number),
    }
}

fn conversation(number: u32) -> ConversationId {
    ConversationId::from(format!("00000000-0000-4000-8000-{number:012}").as_str())
}
