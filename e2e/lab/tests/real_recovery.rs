//! The real Claude Code while purplemux's own server ends and is started again. As `real.rs`: from keys to lines.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use purplemux_lab::clock::until;
use purplemux_lab::product::{Lab, PATIENCE, Tab, TabKind};
use rusqlite::Connection;
use rustix::process::Signal;

/// As in `real.rs`.
const QUIET: Duration = Duration::from_millis(1500);

/// From the start of the server to a badge that is right.
const RECOVERED_MS: f64 = 2000.0;

/// What the tab shows from the restart on until `badge`, which has to be all there is but for what was kept; takes
/// down how long it took.
fn comes_back(lab: &Lab, tab: &mut Tab<'_>, at_ns: i64, [kept, badge]: [&str; 2]) -> Result<()> {
    let lines = tab.lines_until(at_ns, badge)?;
    let story: Vec<String> = lines
        .iter()
        .map(purplemux_lab::badges::Line::badge)
        .collect();
    let right = match &story[..] {
        [only] => only == badge,
        [first, second] => first == kept && second == badge,
        _ => false,
    };
    ensure!(
        right,
        "after the restart {story:?} was shown; {}",
        tab.evidence()
    );
    let end = lines.last().context("a line")?;
    lab.latency("restart to the right badge", RECOVERED_MS, at_ns, end.at_ns)
}

#[test]
fn h01_h02_h03_badges_after_a_restart_of_the_server() -> Result<()> {
    let lab = Lab::start("h01_h02_h03")?;
    // One turn goes on over the restart, one ends while the server is down, one Claude is killed, one dialog is
    // answered, another comes up.
    let mut tabs = Vec::new();
    for _ in 0..5 {
        let mut tab = lab.tab(TabKind::Claude)?;
        tab.ready()?;
        tabs.push(tab);
    }
    let words = vec!["word"; 24].join(" ");
    let [goes_on, ends, dies, answered, asks] = &mut tabs[..] else {
        unreachable!("five tabs");
    };
    answered.prompt("bash: touch made.txt; sleep 12 ;; say answered")?;
    answered.expect(&["needs-input(permission)"])?;
    answered
        .pane
        .wait_for("Do you want to proceed?", PATIENCE)?;
    goes_on.prompt(&format!("slow 15 {words}"))?;
    dies.prompt(&format!("slow 30 {words}"))?;
    ends.prompt(&format!("slow 3 {words}"))?;

    lab.end_server(Signal::KILL)?;
    dies.kill_agent()?;
    asks.enter("bash: touch asked.txt ;; say never")?;
    asks.pane.wait_for("Do you want to proceed?", PATIENCE)?;
    answered.answer("Enter", "Do you want to proceed?")?;
    let ended = ends.agent()?;
    let over = || {
        let newest = lab.sessions().of(ended).pop()?;
        (newest.status() == Some("idle")).then_some(())
    };
    until(PATIENCE, over).context("a turn ends while the server is down")?;

    let at_ns = lab.serve_again()?;
    comes_back(&lab, goes_on, at_ns, ["unknown", "busy"]).context("H01")?;
    comes_back(&lab, ends, at_ns, ["unknown", "review(finished)"]).context("H02 (a)")?;
    comes_back(&lab, dies, at_ns, ["unknown", "none"]).context("H02 (b)")?;
    comes_back(&lab, answered, at_ns, ["needs-input(permission)", "busy"]).context("H03 (a)")?;
    comes_back(&lab, asks, at_ns, ["idle", "needs-input(permission)"]).context("H03 (d)")?;
    for (tab, row) in [
        (&mut *ends, "H02 (a)"),
        (dies, "H02 (b)"),
        (asks, "H03 (d)"),
    ] {
        tab.stays(QUIET).context(row)?;
    }
    // The real end of what went on is news, once.
    let lines = goes_on
        .expect_unmeasured(&["review(finished)"])
        .context("H01")?;
    ensure!(lines[0].item["attention"] == true, "H01: {}", lines[0].item);
    goes_on.stays(QUIET).context("H01")?;
    answered
        .expect_unmeasured(&["review(finished)"])
        .context("H03 (a)")?;
    // A badge that was found is in the bell, too.
    let found = ends.item().context("an item")?;
    ensure!(
        found["attention"] == true && found["last_message"] == words.as_str(),
        "H02 (a): {found}"
    );
    Ok(())
}

#[test]
fn a_conversation_is_taken_up_after_a_reboot() -> Result<()> {
    let lab = Lab::start("taken_up")?;
    let mut tab = lab.tab(TabKind::Claude)?;
    tab.ready()?;
    tab.prompt("say first words")?;
    tab.expect_unmeasured(&["review(finished)"])?;
    let conversation = tab.item().context("an item")?["session_id"].clone();
    lab.end_server(Signal::KILL)?;
    purplemux_lab::tmux::run(tab.pane.socket(), &["kill-server"])?;
    // What is kept says that another boot was the last.
    let database = Connection::open(lab.home().product().join("purplemux.db"))?;
    let changed = database.execute(
        "UPDATE settings SET value = 'another boot' WHERE key = 'layout.boot'",
        [],
    )?;
    ensure!(changed == 1, "the boot is kept");
    drop(database);
    lab.serve_again()?;
    let item = tab.wait_item("it is offered", |item| !item["resume"].is_null())?;
    ensure!(item["resume"]["conversation"] == conversation, "{item}");
    ensure!(item["resume"]["title"] == "say first words", "{item}");
    lab.run(&["tab", "resume", &tab.id])?;
    // The very conversation, with what was said in it.
    let item = tab.wait_item("it runs", |item| item["presence"] == "running")?;
    ensure!(item["session_id"] == conversation, "{item}");
    ensure!(item["resume"].is_null(), "{item}");
    tab.pane.wait_for("first words", PATIENCE)?;
    tab.wait_item("it rests", |item| {
        item["state"] == "idle" || item["state"] == "review"
    })?;
    tab.enter("say second words")?;
    tab.wait_item("it has answered", |item| {
        item["state"] == "review" && item["last_message"] == "second words"
    })?;
    Ok(())
}
