//! The real Claude Code through the whole product, beyond one turn at a time: work in the background, queued prompts,
//! compaction, errors, and processes that stop or end. As `real.rs`: the whole sequence of badges, from keys to lines.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use purplemux_lab::clock::until;
use purplemux_lab::product::{DEATH_MS, Lab, PATIENCE, SILENT_END_MS, TabKind};
use rustix::process::{Pid, Signal, kill_process};

/// As in `real.rs`.
const QUIET: Duration = Duration::from_millis(1500);

#[test]
fn b01_a_subagent_keeps_its_parent_busy() -> Result<()> {
    let lab = Lab::start("b01")?;
    let mut tab = lab.tab(TabKind::Claude)?;
    tab.ready()?;
    tab.prompt("task: slow 5 one two three >> say d ;; say main")?;
    tab.wait_item("the agent", |item| item["detail"]["agents"] == 1)?;
    tab.expect(&["review(finished)"])?;
    let item = tab.item().context("an item")?;
    ensure!(item["detail"]["agents"].is_null(), "{item}");
    tab.stays(QUIET)
}

#[test]
fn b04_a_background_shell_is_told_beside_the_review() -> Result<()> {
    let lab = Lab::start("b04")?;
    let mut tab = lab.tab(TabKind::Terminal)?;
    tab.start_claude("claude --permission-mode acceptEdits --allowedTools 'Bash(sleep:*)'")?;
    tab.prompt("bg: sleep 6 ;; say started")?;
    tab.expect(&["review(finished)"])?;
    tab.wait_item("the shell", |item| item["detail"]["shells"] == 1)?;
    tab.expect(&["busy", "review(finished)"])?;
    tab.wait_item("no shell", |item| item["detail"]["shells"].is_null())?;
    tab.stays(QUIET)
}

#[test]
fn b05_queued_prompts_are_one_busy_spell() -> Result<()> {
    let lab = Lab::start("b05")?;
    let mut tab = lab.tab(TabKind::Claude)?;
    tab.ready()?;
    tab.prompt("slow 3 one two three four")?;
    tab.enter("slow 2 the queued one")?;
    // Between the turns the file says idle for some milliseconds: not what the review is measured from.
    tab.expect_unmeasured(&["review(finished)"])?;
    let ran = |prompt: &str| {
        let requests = lab.fake().requests();
        requests.iter().any(|request| request.prompt == prompt)
    };
    ensure!(
        ran("slow 2 the queued one"),
        "review came too early; {}",
        tab.evidence()
    );
    tab.stays(QUIET)
}

#[test]
fn b12_an_interrupted_queued_turn_uses_no_earlier_stop() -> Result<()> {
    let lab = Lab::start("b12")?;
    let mut tab = lab.tab(TabKind::Claude)?;
    tab.ready()?;
    let slow = format!("slow 30 {}", "word ".repeat(60));
    // In the midst of the answer, and before its first token; the first turn's Stop is a second old at most.
    for (queued, begun) in [(slow.trim_end(), true), ("sleep 20 then say late", false)] {
        // Two spells in the file are one on the screen: its writes are not what the badges are measured from.
        tab.enter("slow 3 one two three four")?;
        tab.expect_unmeasured(&["busy"])?;
        tab.enter(queued)?;
        lab.fake()
            .wait(PATIENCE, |request| request.prompt == queued)
            .with_context(|| format!("the queued turn never ran; {}", tab.evidence()))?;
        if begun {
            tab.stays(QUIET)?;
        }
        let at_ns = tab.press(&["Escape"])?;
        let lines = tab.expect_unmeasured(&["idle"])?;
        lab.latency("Escape to idle shown", SILENT_END_MS, at_ns, lines[0].at_ns)?;
        if begun {
            tab.wait_item("that it was interrupted", |item| {
                item["detail"]["label"] == "interrupted"
            })?;
        }
        tab.stays(QUIET)?;
    }
    Ok(())
}

#[test]
fn c01_c03_a_compaction_gives_the_badge_back() -> Result<()> {
    let lab = Lab::start("c01_c03")?;
    let mut tab = lab.tab(TabKind::Claude)?;
    tab.ready()?;
    tab.prompt("say something to compact")?;
    tab.expect(&["review(finished)"])?;
    tab.prompt("/compact")?;
    tab.wait_item("compacting", |item| item["detail"]["doing"] == "compacting")?;
    tab.expect(&["review(finished)"])?;
    tab.stays(QUIET)?;
    // There is nothing to compact now, which Claude says at once.
    tab.prompt("/compact")?;
    tab.expect(&["review(finished)"])?;
    tab.stays(QUIET)?;
    tab.prompt("say something more to compact")?;
    tab.expect(&["review(finished)"])?;
    tab.prompt("/compact")?;
    tab.wait_item("compacting", |item| item["detail"]["doing"] == "compacting")?;
    let compactions = || {
        let requests = lab.fake().requests();
        requests
            .iter()
            .filter(|request| request.kind == "compact")
            .count()
    };
    until(PATIENCE, || (compactions() == 2).then_some(())).context("it compacts")?;
    tab.press(&["Escape"])?;
    tab.expect(&["review(finished)"])?;
    tab.stays(QUIET)
}

#[test]
fn e01_e02_an_error_is_told_with_its_kind_and_a_retry_is_busy() -> Result<()> {
    let lab = Lab::start("e01_e02")?;
    let mut tab = lab.tab(TabKind::Claude)?;
    tab.ready()?;
    let kinds = [
        ("error 400", "unknown"),
        ("error 403", "authentication_failed"),
        ("error 404", "model_not_found"),
        ("max", "max_output_tokens"),
        ("refuse", "invalid_request"),
    ];
    for (prompt, kind) in kinds {
        tab.prompt(prompt)?;
        let lines = tab.expect(&["review(failed)"])?;
        ensure!(
            lines[0].item["detail"]["error"] == kind,
            "{prompt}: {}",
            lines[0].item
        );
        tab.stays(QUIET)?;
    }
    tab.prompt("error 500 x2")?;
    tab.expect(&["review(finished)"])?;
    tab.stays(QUIET)
}

#[test]
fn r01_a_clear_is_one_session_that_ends_idle() -> Result<()> {
    let lab = Lab::start("r01")?;
    let mut tab = lab.tab(TabKind::Claude)?;
    tab.ready()?;
    tab.prompt("say before")?;
    let before = tab.expect(&["review(finished)"])?;
    tab.enter("/clear")?;
    let now = tab.wait_item("another conversation", |item| {
        item["session_id"] != before[0].item["session_id"] && item["state"] == "idle"
    })?;
    ensure!(
        now["pid"] == before[0].item["pid"],
        "the same process: {now}"
    );
    let story = tab.story_since(&before[0]);
    ensure!(
        ["idle", "busy idle"].contains(&story.as_str()),
        "at most a spinner, then idle: {story}"
    );
    Ok(())
}

#[test]
fn d02_d05_a_stopped_process_is_suspended_and_an_ended_one_gone() -> Result<()> {
    let lab = Lab::start("d02_d05")?;
    let mut tab = lab.tab(TabKind::Terminal)?;
    tab.start_claude("claude")?;
    tab.warm_up()?;
    tab.prompt("slow 20 one two three four")?;
    tab.press(&["C-z"])?;
    let item = tab.wait_item("suspended", |item| item["presence"] == "suspended")?;
    ensure!(
        item["attention"] == false && item["state"] == "busy",
        "{item}"
    );
    tab.fresh_shell()?;
    tab.enter("fg")?;
    tab.wait_item("running", |item| item["presence"] == "running")?;
    tab.expect(&["review(finished)"])?;

    tab.prompt("slow 20 one two three four")?;
    let pid = i32::try_from(tab.agent()?)
        .ok()
        .and_then(Pid::from_raw)
        .context("a pid")?;
    let at_ns = purplemux_lab::clock::wall_ns();
    kill_process(pid, Signal::TERM)?;
    let lines = tab.expect_unmeasured(&["none"])?;
    // Claude says its farewells first, so this is more than our own time.
    lab.note("SIGTERM to none shown", DEATH_MS, at_ns, lines[0].at_ns);
    tab.stays(QUIET)
}

#[test]
fn d09_a_headless_claude_never_asks() -> Result<()> {
    let lab = Lab::start("d09")?;
    let mut tab = lab.tab(TabKind::Terminal)?;
    tab.shell_ready()?;
    tab.enter("claude -p 'slow 2 one two three'")?;
    tab.expect_unmeasured(&["busy"])?;
    let item = tab.item().context("an item")?;
    ensure!(
        item["detail"]["label"] == "headless" && item["attention"] == false,
        "{item}"
    );
    tab.expect_unmeasured(&["none"])?;
    tab.stays(QUIET)
}

#[test]
fn n01_two_sessions_in_one_directory_are_two() -> Result<()> {
    let lab = Lab::start("n01")?;
    let mut one = lab.tab(TabKind::Claude)?;
    let mut two = lab.tab(TabKind::Terminal)?;
    one.ready()?;
    two.shell_ready()?;
    two.enter(&format!("cd {}", one.dir.display()))?;
    two.start_claude("claude")?;
    one.prompt("bash: touch a.txt ;; say one")?;
    one.expect(&["needs-input(permission)"])?;
    two.stays(QUIET)?;
    two.prompt("say two")?;
    two.expect(&["review(finished)"])?;
    one.stays(QUIET)?;
    one.answer("Enter", "Do you want to proceed?")?;
    one.expect(&["busy", "review(finished)"])?;
    two.stays(QUIET)
}
