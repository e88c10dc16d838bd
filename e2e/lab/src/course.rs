//! One short session that every version of Claude Code must come through: it starts without a word about its
//! settings, the hooks that it knows arrive, and the badges of a turn, a permission dialog and an Esc are right.
//!
//! Must not expect anything of a version that another one lacks, but by a fact named here.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::clock::until;
use crate::home::Claude;
use crate::product::{Lab, PATIENCE, SILENT_END_MS, Tab, TabKind};

/// On the screen as long as a permission dialog is, in every version.
const DIALOG: &str = "Do you want to proceed?";

/// A late signal has come by then: the slowest hook and the longest wait of the rules are below it.
const QUIET: Duration = Duration::from_millis(1500);

/// How long Claude may take with a prompt before Enter is pressed again.
const TAKEN_WITHIN: Duration = Duration::from_secs(3);

/// What Claude says of settings that it does not take, from 2.0.77 to 2.1.332.
const COMPLAINTS: [&str; 5] = [
    "Settings Error",
    "settings issue",
    "Invalid Settings",
    "Invalid key",
    "/doctor",
];

/// Fired by the course in every version since 2.0.77.
const FIRED: [&str; 6] = [
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PermissionRequest",
    "PostToolUse",
    "Stop",
];

/// How a version came through.
#[derive(Clone, Debug)]
pub struct Report {
    /// The events registered for it.
    pub registered: usize,
    /// Those that arrived.
    pub heard: BTreeSet<String>,
    /// From Esc to the badge, ms: in the midst of an answer, and at a dialog.
    pub esc_ms: [f64; 2],
}

/// Runs the course.
pub fn run(name: &str, claude: &Claude) -> Result<Report> {
    let lab = Lab::start_with(name, claude)?;
    let mut tab = lab.tab(TabKind::Terminal)?;
    tab.start_claude("claude")?;
    let screen = tab.screen();
    for complaint in COMPLAINTS {
        ensure!(!screen.contains(complaint), "a settings warning:\n{screen}");
    }
    let shown: Value = serde_json::from_str(&lab.run(&[
        "hooks",
        "show",
        "--json",
        "--claude",
        &claude.version,
    ])?)?;
    let registered = shown["settings"]["hooks"]
        .as_object()
        .context("hooks")?
        .len();

    // A first turn may be slow beyond all rules: its course is not judged.
    prompt(&lab, &tab, "say warm")?;
    tab.settle("review(finished)")?;
    turn(&lab, &mut tab, claude).context("a turn")?;
    permission(&lab, &mut tab).context("a permission dialog")?;
    let esc_ms = [
        esc_while_streaming(&lab, &mut tab).context("Esc in the midst of an answer")?,
        esc_at_a_dialog(&lab, &mut tab).context("Esc at a dialog")?,
    ];
    turn(&lab, &mut tab, claude).context("a turn after Esc")?;
    let heard = heard(&lab, &tab)?;
    for event in FIRED {
        ensure!(
            heard.contains(event),
            "no {event} came; heard were {heard:?}"
        );
    }
    tab.enter("/exit")?;
    tab.expect_unmeasured(&["none"])?;
    Ok(Report {
        registered,
        heard,
        esc_ms,
    })
}

/// Types a prompt and has Claude take it: while it starts, 2.0.77 leaves an Enter without an effect.
fn prompt(lab: &Lab, tab: &Tab<'_>, line: &str) -> Result<()> {
    let before = lab.fake().requests().len();
    let taken = || {
        let requests = lab.fake().requests();
        requests[before..]
            .iter()
            .any(|request| request.prompt == line)
    };
    tab.enter(line)?;
    if until(TAKEN_WITHIN, || taken().then_some(())).is_none() {
        tab.pane
            .press_until(&["Enter"], "the prompt to the model", taken)
            .with_context(|| tab.evidence())?;
    }
    Ok(())
}

fn turn(lab: &Lab, tab: &mut Tab<'_>, claude: &Claude) -> Result<()> {
    prompt(lab, tab, "say purple words")?;
    let lines = tab.expect_unmeasured(&["busy", "review(finished)"])?;
    let item = &lines[1].item;
    ensure!(item["hooks"] == true && item["attention"] == true, "{item}");
    if claude.tells_last_words() {
        tab.wait_item("Claude's answer", |item| {
            item["last_message"] == "purple words"
        })?;
    }
    tab.stays(QUIET)
}

fn ask(lab: &Lab, tab: &mut Tab<'_>, file: &str) -> Result<()> {
    prompt(
        lab,
        tab,
        &format!("bash: touch {file}; sleep 1 ;; say finished"),
    )?;
    tab.expect_unmeasured(&["busy", "needs-input(permission)"])?;
    tab.wait_item("the command", |item| {
        let text = item["detail"]["ask"]["text"].as_str();
        text.is_some_and(|text| text.contains(file))
    })?;
    tab.pane.wait_for(DIALOG, PATIENCE)?;
    Ok(())
}

fn permission(lab: &Lab, tab: &mut Tab<'_>) -> Result<()> {
    ask(lab, tab, "made.txt")?;
    // Claude's own notification comes after six seconds, and changes nothing.
    tab.stays(Duration::from_secs(7))?;
    tab.pane.press_away(&["Enter"], DIALOG)?;
    tab.expect_unmeasured(&["busy", "review(finished)"])?;
    ensure!(tab.dir.join("made.txt").exists(), "the tool has run");
    tab.stays(QUIET)
}

fn esc_while_streaming(lab: &Lab, tab: &mut Tab<'_>) -> Result<f64> {
    // Not every version draws an answer before it is whole; by then it has begun.
    prompt(lab, tab, "slow 30 one two three four five six")?;
    tab.expect_unmeasured(&["busy"])?;
    tab.stays(QUIET)?;
    esc(lab, tab)
}

fn esc_at_a_dialog(lab: &Lab, tab: &mut Tab<'_>) -> Result<f64> {
    ask(lab, tab, "refused.txt")?;
    let took = esc(lab, tab)?;
    ensure!(!tab.dir.join("refused.txt").exists(), "it was refused");
    Ok(took)
}

/// Presses Esc until it works; how long the badge took from then, in ms.
fn esc(lab: &Lab, tab: &mut Tab<'_>) -> Result<f64> {
    let interrupted = || {
        let screen = tab.screen();
        screen.contains("Interrupted") && !screen.contains(DIALOG)
    };
    let at_ns = tab.pane.press_until(&["Escape"], "an end", interrupted)?;
    let lines = tab.expect_unmeasured(&["idle"])?;
    lab.latency("Escape to idle shown", SILENT_END_MS, at_ns, lines[0].at_ns)?;
    tab.stays(QUIET)?;
    Ok((lines[0].at_ns - at_ns) as f64 / 1e6)
}

/// The names of all hooks that the server has heard from this tab's agent.
fn heard(lab: &Lab, tab: &Tab<'_>) -> Result<BTreeSet<String>> {
    let dir = lab.home().root().join("heard");
    let dir_text = dir.to_str().context("the path is UTF-8")?;
    lab.run(&["explain", &tab.id, "--export", dir_text])?;
    let text = fs::read_to_string(dir.join("hooks.jsonl"))?;
    text.lines()
        .map(|line| {
            let hook: Value = serde_json::from_str(line)?;
            let event = &hook["input"]["hook_event_name"];
            Ok(event.as_str().context("an event's name")?.to_owned())
        })
        .collect()
}
