//! What the real Claude Code writes into its transcripts, through the whole product: found wherever it lies, branches
//! that `/rewind` gave up, retries, and what a row shows of it all.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};

use anyhow::{Context as _, Result, ensure};
use purplemux_lab::clock::{until, wall_ns};
use purplemux_lab::product::{Lab, PATIENCE, Tab, TabKind};
use serde_json::{Value, json};

/// From the transcript's making to what it says on the row.
const FOUND_MS: f64 = 500.0;

/// As in `real.rs`.
const QUIET: Duration = Duration::from_millis(1500);

/// Trusts more directories than the lab's own.
fn trust(lab: &Lab, dirs: &[PathBuf]) -> Result<()> {
    let path = lab.home().dir().join(".claude.json");
    let mut state: Value = serde_json::from_str(&fs::read_to_string(&path)?)?;
    for dir in dirs {
        let dir = dir.to_str().context("the path is UTF-8")?;
        state["projects"][dir] =
            json!({"hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true});
    }
    Ok(fs::write(&path, state.to_string())?)
}

/// The newest transcript there is, and when it was made, unix ns.
fn made(lab: &Lab, known: &[PathBuf]) -> Option<(PathBuf, i64)> {
    let folders = fs::read_dir(lab.home().dir().join(".claude/projects")).ok()?;
    let files = folders
        .flatten()
        .filter_map(|folder| fs::read_dir(folder.path()).ok())
        .flat_map(|files| files.flatten().map(|file| file.path()));
    let path = files
        .filter(|path| path.extension().is_some_and(|ending| ending == "jsonl"))
        .find(|path| !known.contains(path))?;
    let made = fs::metadata(&path).ok()?.created().ok()?;
    let since = made.duration_since(UNIX_EPOCH).ok()?;
    Some((path, i64::try_from(since.as_nanos()).ok()?))
}

/// Runs a first turn and takes down how long after its making the transcript was on the row.
fn first_turn(lab: &Lab, tab: &mut Tab<'_>, known: &mut Vec<PathBuf>, how: &str) -> Result<()> {
    tab.prompt("usage 4321 say found")?;
    let item = tab.wait_item("tokens, which the transcript alone tells", |item| {
        item["tokens"]["context"]
            .as_u64()
            .is_some_and(|n| n >= 4321)
    })?;
    let shown_ns = wall_ns();
    ensure!(item["model"] == "claude-opus-5-5", "{item}");
    let (path, made_ns) = until(PATIENCE, || made(lab, known)).context("a transcript")?;
    known.push(path);
    lab.latency(
        &format!("transcript made to tokens shown, {how}"),
        FOUND_MS,
        made_ns,
        shown_ns,
    )?;
    tab.expect_unmeasured(&["review(finished)"]).map(drop)
}

#[test]
fn t07_transcripts_are_found_wherever_the_directory_is() -> Result<()> {
    let lab = Lab::start("t07")?;
    let home = lab.home().dir();
    let names = [
        "under_score.dot and space".to_owned(),
        "目錄 — 測試".to_owned(),
        "long-".repeat(44),
        "reached-by-a-link".to_owned(),
    ];
    let dirs: Vec<PathBuf> = names
        .iter()
        .map(|name| home.join("odd").join(name))
        .collect();
    for (number, dir) in dirs.iter().enumerate() {
        fs::create_dir_all(dir)?;
        symlink(dir, home.join(format!("link-{number}")))?;
    }
    trust(&lab, &dirs)?;
    ensure!(
        !home.join(".claude/projects").exists(),
        "the first run ever"
    );
    let mut known = Vec::new();
    for (number, dir) in dirs.iter().enumerate() {
        let mut tab = lab.tab(TabKind::Terminal)?;
        tab.shell_ready()?;
        // The last one with the link still in the shell's path.
        let physical = if number + 1 < dirs.len() { "-P " } else { "" };
        tab.enter(&format!("cd {physical}~/link-{number}"))?;
        tab.start_claude("claude")?;
        first_turn(&lab, &mut tab, &mut known, "by the hook's path")?;
        let item = tab.item().context("an item")?;
        let cwd = item["cwd"].as_str().context("a directory")?;
        ensure!(fs::canonicalize(cwd)? == fs::canonicalize(dir)?, "{item}");
    }
    // Without hooks nobody names a path: by the conversation's id.
    let mut tab = lab.tab(TabKind::Terminal)?;
    tab.shell_ready()?;
    tab.enter("cd -P ~/link-2")?;
    tab.start_claude("~/.local/bin/claude")?;
    first_turn(&lab, &mut tab, &mut known, "by the conversation's id")?;
    let item = tab.item().context("an item")?;
    ensure!(item["hooks"] == false, "{item}");
    ensure!(item["title"] == "usage 4321 say found", "{item}");
    let doctor = lab.run(&["doctor"])?;
    ensure!(
        doctor.contains("everything that came in was understood"),
        "{doctor}"
    );
    Ok(())
}

/// Goes back to before the newest prompt.
fn rewind(tab: &Tab<'_>) -> Result<()> {
    tab.enter("/rewind")?;
    tab.pane.wait_for("Enter to continue", PATIENCE)?;
    tab.pane.keys(&["Up"])?;
    tab.pane.press_until(&["Enter"], "what to restore", || {
        let screen = tab.screen();
        screen.contains("1. Restore conversation")
    })?;
    tab.pane.press_until(&["Enter"], "the prompt again", || {
        !tab.screen().contains("Restore conversation")
    })?;
    // What was asked then is in the box again.
    tab.pane.keys(&["C-u"])
}

#[test]
fn t06_what_a_rewind_gives_up_counts_no_more() -> Result<()> {
    let lab = Lab::start("t06")?;
    let mut tab = lab.tab(TabKind::Claude)?;
    tab.ready()?;
    tab.prompt("usage 4000 say one")?;
    tab.expect(&["review(finished)"])?;
    tab.prompt("usage 50000 say two")?;
    tab.expect(&["review(finished)"])?;
    let shown = |words: &str, least: u64, most: u64| {
        let words = words.to_owned();
        move |item: &Value| {
            let tokens = item["tokens"]["context"].as_u64().unwrap_or(0);
            item["last_message"] == words.as_str() && (least..most).contains(&tokens)
        }
    };
    tab.wait_item("the second turn", shown("two", 50_000, 60_000))?;
    rewind(&tab)?;
    tab.stays(QUIET)?;
    tab.prompt("slow 4 three four five six")?;
    tab.wait_item("what still counts", shown("one", 4_000, 50_000))?;
    tab.expect(&["review(finished)"])?;

    // A branch that ends in an interrupt marker.
    tab.prompt("slow 30 a b c d e f g h i j k")?;
    // Tokens of the answer: before the first of them Esc gives the prompt back.
    tab.pane.wait_for("↓", PATIENCE)?;
    tab.stays(QUIET)?;
    tab.press(&["Escape"])?;
    tab.expect_unmeasured(&["idle"])?;
    tab.stays(QUIET)?;
    rewind(&tab)?;
    tab.stays(QUIET)?;
    // Claude wrote busy again within the turn that was given up: what is measured would begin there.
    tab.enter("say at last")?;
    tab.expect_unmeasured(&["busy", "review(finished)"])?;
    tab.wait_item("the newest words", |item| item["last_message"] == "at last")?;
    tab.stays(QUIET)
}

#[test]
fn e02_a_retry_is_told_while_it_lasts() -> Result<()> {
    let lab = Lab::start("e02_retry")?;
    let mut tab = lab.tab(TabKind::Claude)?;
    tab.ready()?;
    tab.prompt("error 500 x3")?;
    let item = tab.wait_item("that it retries", |item| {
        item["detail"]["doing"] == "retrying"
    })?;
    ensure!(item["state"] == "busy", "{item}");
    let lines = tab.expect_unmeasured(&["review(finished)"])?;
    ensure!(
        lines[0].item["last_message"] == "recovered",
        "{}",
        lines[0].item
    );
    // With tools, each request has its answer.
    tab.enter("read notes.txt ;; read notes.txt ;; slow 2 a b c")?;
    tab.expect_unmeasured(&["busy", "review(finished)"])?;
    let story = tab.story_since(&lines[0]);
    ensure!(story == "busy review(finished)", "{story}");
    tab.stays(QUIET)
}

#[test]
fn a_row_is_called_the_same_after_a_restart() -> Result<()> {
    let lab = Lab::start("h01_title")?;
    let mut tab = lab.tab(TabKind::Claude)?;
    tab.ready()?;
    tab.prompt("say what this is about")?;
    tab.expect(&["review(finished)"])?;
    tab.prompt("say something else")?;
    tab.expect(&["review(finished)"])?;
    tab.wait_item("all of it", |item| {
        item["last_message"] == "something else" && item["tokens"]["context"].is_u64()
    })?;
    // The answer's last line corrects what its first one said of the tokens.
    tab.stays(QUIET)?;
    let row = |lab: &Lab| -> Option<Value> {
        let printed = lab.run(&["status", "--json"]).ok()?;
        let items: Vec<Value> = serde_json::from_str(&printed).ok()?;
        items.into_iter().find(|item| item["id"] == tab.id.as_str())
    };
    let before = row(&lab).context("the tab's row")?;
    ensure!(before["title"] == "say what this is about", "{before}");
    let pid = lab.server_pid().and_then(|pid| i32::try_from(pid).ok());
    let pid = pid
        .and_then(rustix::process::Pid::from_raw)
        .context("a server")?;
    rustix::process::kill_process(pid, rustix::process::Signal::KILL)?;
    until(PATIENCE, || lab.run(&["status"]).is_err().then_some(())).context("it still answers")?;
    lab.serve()?;
    let item = until(PATIENCE, || {
        let item = row(&lab)?;
        let same = [
            "title",
            "last_message",
            "tokens",
            "model",
            "context_pct",
            "state",
        ];
        same.iter()
            .all(|field| item[*field] == before[*field])
            .then_some(item)
    });
    let item =
        item.with_context(|| format!("{:?}\nbefore {before}", lab.run(&["status", "--json"])))?;
    ensure!(item["hooks"] == true, "{item}");
    Ok(())
}
