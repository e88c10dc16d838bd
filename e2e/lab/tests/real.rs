//! The real Claude Code through the whole product: from a key in its terminal to a line of `status --watch --json`.
//! Every test names the cases it proves, expects the whole sequence of badges, and takes down how long each took.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use purplemux_lab::badges::Line;
use purplemux_lab::clock::until;
use purplemux_lab::product::{DEATH_MS, Lab, PATIENCE, SILENT_END_MS, Tab, TabKind};

/// Long enough for a late signal to do its harm: the slowest hook and the longest wait of the rules are below it.
const QUIET: Duration = Duration::from_millis(1500);

/// On the screen as long as a permission dialog is.
const DIALOG: &str = "Do you want to proceed?";

/// On the screen as long as a question is.
const QUESTION: &str = "Enter to select";

fn ask_text(line: &Line) -> &str {
    line.item["detail"]["ask"]["text"]
        .as_str()
        .unwrap_or_default()
}

/// Presses a key that ends something without a word from Claude, and expects `badge` within a second of it.
fn silent_end(lab: &Lab, tab: &mut Tab<'_>, keys: &[&str], badge: &str) -> Result<()> {
    let at_ns = tab.press(keys)?;
    let lines = tab.expect(&[badge])?;
    lab.latency(
        &format!("{} to {badge} shown", keys.join(" ")),
        SILENT_END_MS,
        at_ns,
        lines[0].at_ns,
    )
}

#[test]
fn p01_p02_a_claude_tab_is_idle_then_busy_then_review() -> Result<()> {
    let lab = Lab::start("p01_p02")?;
    let mut tab = lab.tab(TabKind::Claude)?;
    tab.ready()?;
    let item = tab.item().context("an item")?;
    ensure!(
        item["presence"] == "running" && item["attention"] == false,
        "{item}"
    );

    tab.prompt("say purple words")?;
    let lines = tab.expect(&["review(finished)"])?;
    let item = &lines[0].item;
    ensure!(
        item["last_message"] == "purple words",
        "the snippet is Claude's answer: {item}"
    );
    ensure!(
        item["hooks"] == true && item["attention"] == true && item["episode"].is_u64(),
        "{item}"
    );
    tab.stays(QUIET)?;

    // P09 (c): a new prompt goes from review straight to busy.
    tab.prompt("say more")?;
    tab.expect(&["review(finished)"])?;
    tab.stays(QUIET)
}

#[test]
fn p02_a_turn_quicker_than_claude_s_own_file_ends_in_review() -> Result<()> {
    let lab = Lab::start("p02 quick")?;
    let mut tab = lab.tab(TabKind::Claude)?;
    tab.ready()?;
    for word in ["one", "two", "three"] {
        tab.enter(&format!("quick say {word}"))?;
        // Claude may never have written that it was busy: nothing to measure from.
        tab.expect_unmeasured(&["busy", "review(finished)"])?;
        tab.stays(QUIET)?;
    }
    Ok(())
}

#[test]
fn p04_a_tool_that_fails_is_no_failed_turn() -> Result<()> {
    let lab = Lab::start("p04")?;
    let mut tab = lab.tab(TabKind::Claude)?;
    tab.ready()?;
    tab.prompt("bash: cat notes.txt ;; bash: cat missing.txt ;; say after a failing tool")?;
    tab.expect(&["review(finished)"])?;
    tab.stays(QUIET)
}

#[test]
fn p07_p08_custom_and_shell_commands() -> Result<()> {
    let lab = Lab::start("p07_p08")?;
    let commands = lab.home().project(1).join(".claude/commands");
    fs::create_dir_all(&commands)?;
    fs::write(
        commands.join("greet.md"),
        "say greetings from a custom command\n",
    )?;
    let mut tab = lab.tab(TabKind::Claude)?;
    tab.ready()?;
    tab.prompt("/greet")?;
    tab.expect(&["review(finished)"])?;
    tab.prompt("!echo a; sleep 2")?;
    tab.expect(&["review(finished)"])?;
    tab.stays(QUIET)
}

#[test]
fn q01_q02_a_permission_is_amber_until_it_is_given() -> Result<()> {
    let lab = Lab::start("q01_q02")?;
    let mut tab = lab.tab(TabKind::Claude)?;
    tab.ready()?;
    tab.prompt("bash: touch made.txt; sleep 2 ;; say finished")?;
    let lines = tab.expect(&["needs-input(permission)"])?;
    ensure!(lines[0].item["attention"] == true, "{}", lines[0].item);
    // Claude's own notification comes after six seconds, and changes nothing.
    tab.stays(Duration::from_secs(7))?;
    let item = tab.wait_item("the command", |item| {
        item["detail"]["ask"]["text"]
            .as_str()
            .is_some_and(|text| text.contains("touch made.txt"))
    })?;
    ensure!(
        item["episode"] == lines[0].item["episode"],
        "one episode: {item}"
    );

    // No hook tells of the approval, and the tool runs on: amber must go with the key.
    let at_ns = tab.answer("Enter", DIALOG)?;
    let lines = tab.expect(&["busy"])?;
    lab.latency("approval to busy shown", 300.0, at_ns, lines[0].at_ns)?;
    tab.expect(&["review(finished)"])?;
    ensure!(tab.dir.join("made.txt").exists(), "the tool has run");
    tab.stays(QUIET)
}

#[test]
fn q03_a_refusal_is_idle_and_never_review() -> Result<()> {
    let lab = Lab::start("q03")?;
    let mut tab = lab.tab(TabKind::Claude)?;
    tab.ready()?;
    // Esc, then the last option, "No".
    for (file, key) in [("a.txt", "Escape"), ("b.txt", "4")] {
        tab.prompt(&format!("bash: touch {file} ;; say finished"))?;
        tab.expect(&["needs-input(permission)"])?;
        let at_ns = tab.answer(key, DIALOG)?;
        let lines = tab.expect(&["idle"])?;
        lab.latency(
            "refusal to idle shown",
            SILENT_END_MS,
            at_ns,
            lines[0].at_ns,
        )?;
        ensure!(lines[0].item["attention"] == false, "{}", lines[0].item);
        tab.stays(QUIET)?;
    }
    // "No" with a comment: Claude goes on.
    tab.prompt("bash: touch c.txt ;; say finished")?;
    tab.expect(&["needs-input(permission)"])?;
    tab.pane.wait_for("4. No", PATIENCE)?;
    for option in ["❯ 1. Yes", "❯ 2. Yes", "❯ 3. Yes"] {
        tab.pane.press_away(&["Down"], option)?;
    }
    tab.pane.wait_for("❯ 4. No", PATIENCE)?;
    tab.press(&["Tab"])?;
    tab.pane
        .wait_for("tell Claude what to do differently", PATIENCE)?;
    tab.pane.text("use another name")?;
    tab.pane.wait_for("use another name", PATIENCE)?;
    tab.answer("Enter", DIALOG)?;
    tab.expect(&["busy", "review(finished)"])?;
    for file in ["a.txt", "b.txt", "c.txt"] {
        ensure!(!tab.dir.join(file).exists(), "{file} was refused");
    }
    tab.stays(QUIET)
}

#[test]
fn q05_a_question_is_a_question() -> Result<()> {
    let lab = Lab::start("q05")?;
    let mut tab = lab.tab(TabKind::Claude)?;
    tab.ready()?;
    tab.prompt("ask ;; say thanks")?;
    tab.expect(&["needs-input(question)"])?;
    tab.wait_item("the question", |item| {
        item["detail"]["ask"]["text"]
            .as_str()
            .is_some_and(|text| text.contains("Which colour"))
    })?;
    tab.answer("Enter", QUESTION)?;
    tab.expect(&["busy", "review(finished)"])?;

    tab.prompt("ask ;; say thanks")?;
    tab.expect(&["needs-input(question)"])?;
    let at_ns = tab.answer("Escape", QUESTION)?;
    let lines = tab.expect(&["idle"])?;
    lab.latency(
        "refusal to idle shown",
        SILENT_END_MS,
        at_ns,
        lines[0].at_ns,
    )?;
    tab.stays(QUIET)?;

    // Two questions in one call are one episode: no gap between the answers.
    tab.prompt("ask2 ;; say thanks")?;
    let first = tab.expect(&["needs-input(question)"])?;
    tab.pane.wait_for("Which colour", PATIENCE)?;
    let second = || tab.screen().contains("Which shape");
    tab.pane
        .press_until(&["Enter"], "the second question", second)?;
    tab.stays(QUIET)?;
    let item = tab.item().context("an item")?;
    ensure!(
        item["episode"] == first[0].item["episode"],
        "one episode: {item}"
    );
    let review = || tab.screen().contains("Submit answers");
    tab.pane
        .press_until(&["Enter"], "the review of the answers", review)?;
    tab.answer("Enter", "Submit answers")?;
    tab.expect(&["busy", "review(finished)"])?;
    tab.stays(QUIET)
}

#[test]
fn q06_a_plan_is_a_plan() -> Result<()> {
    let lab = Lab::start("q06")?;
    let mut tab = lab.tab(TabKind::Terminal)?;
    tab.start_claude("claude --permission-mode plan")?;
    tab.prompt("plan ;; say done")?;
    tab.expect(&["needs-input(plan)"])?;
    // Claude draws this dialog in two ways, with a plan in it and without; both have this option.
    let shown = "❯ 1. Yes";
    let at_ns = tab.answer("Escape", shown)?;
    let lines = tab.expect(&["idle"])?;
    lab.latency(
        "refusal to idle shown",
        SILENT_END_MS,
        at_ns,
        lines[0].at_ns,
    )?;
    tab.stays(QUIET)
}

#[test]
fn q08_the_dialog_of_the_auto_mode_is_amber() -> Result<()> {
    let lab = Lab::start("q08")?;
    let mut tab = lab.tab(TabKind::Terminal)?;
    tab.start_claude("claude --permission-mode auto")?;
    tab.prompt("bash: rm -rf /etc/lab ;; say finished")?;
    let lines = tab.expect(&["needs-input(dialog)"])?;
    ensure!(lines[0].item["attention"] == true, "{}", lines[0].item);
    // Claude's notification that it needs input comes after six seconds.
    tab.stays(Duration::from_secs(7))?;
    silent_end(&lab, &mut tab, &["Escape"], "idle")?;
    tab.stays(QUIET)
}

#[test]
fn q09_q16_q17_the_person_s_own_menu_is_no_question() -> Result<()> {
    let lab = Lab::start("q09_q16_q17")?;
    let mut tab = lab.tab(TabKind::Claude)?;
    tab.ready()?;
    let menu = "Select model";
    let open = |tab: &Tab<'_>| -> Result<()> {
        tab.enter("/model")?;
        tab.pane.wait_for(menu, PATIENCE).map(drop)
    };
    // From idle.
    open(&tab)?;
    tab.stays(QUIET)?;
    tab.pane.press_away(&["Escape"], menu)?;
    tab.stays(QUIET)?;
    // Opened and closed in mid-turn.
    tab.prompt(&format!("slow 6 {}", "word ".repeat(30)))?;
    open(&tab)?;
    tab.pane.press_away(&["Escape"], menu)?;
    tab.expect(&["review(finished)"])?;
    tab.stays(QUIET)?;
    // From review.
    open(&tab)?;
    tab.stays(QUIET)?;
    tab.pane.press_away(&["Escape"], menu)?;
    tab.stays(QUIET)?;
    // Still open when the turn ends.
    tab.prompt(&format!("slow 4 {}", "word ".repeat(30)))?;
    open(&tab)?;
    let pid = tab.agent()?;
    // Claude goes from busy to its menu without an idle between: no idle written to measure from.
    let lines = tab.expect_unmeasured(&["review(finished)"])?;
    let writes = lab.sessions().of(pid);
    let end = writes.last().context("writes")?;
    ensure!(
        end.waiting_for() == Some("dialog open"),
        "the menu is open: {end:?}"
    );
    lab.latency(
        "menu written to review shown",
        300.0,
        end.at_ns,
        lines[0].at_ns,
    )?;
    tab.stays(QUIET)?;
    tab.pane.press_away(&["Escape"], menu)?;
    tab.stays(QUIET)
}

#[test]
fn i01_an_interrupted_answer_is_idle() -> Result<()> {
    let lab = Lab::start("i01")?;
    let mut tab = lab.tab(TabKind::Claude)?;
    tab.ready()?;
    for (word, key) in [("alpha", "Escape"), ("omega", "C-c")] {
        tab.prompt(&format!("slow 30 {}", format!("{word} ").repeat(60)))?;
        // The spinner counts the tokens that have come; the text itself is drawn late.
        tab.pane.wait_for("↓", PATIENCE)?;
        silent_end(&lab, &mut tab, &[key], "idle")?;
        let item = tab.wait_item("that it was interrupted", |item| {
            item["detail"]["label"] == "interrupted"
        })?;
        ensure!(item["attention"] == false, "{item}");
        tab.stays(QUIET)?;
    }
    Ok(())
}

#[test]
fn i02_an_early_escape_is_idle() -> Result<()> {
    let lab = Lab::start("i02")?;
    let mut tab = lab.tab(TabKind::Claude)?;
    tab.ready()?;
    // Before the first token; then between the retries of a failing API.
    for prompt in ["sleep 20 then say late", "error 500"] {
        tab.prompt(prompt)?;
        lab.fake()
            .wait(PATIENCE, |request| request.prompt == prompt)
            .context("Claude asks its API")?;
        silent_end(&lab, &mut tab, &["Escape"], "idle")?;
        tab.stays(QUIET)?;
        // The prompt went back into the box: a draft, no turn.
        tab.press(&["C-u"])?;
        tab.pane.wait("an empty box", PATIENCE, |screen| {
            !screen.contains(&format!("❯ {prompt}"))
        })?;
    }
    tab.prompt("say a turn of its own")?;
    tab.expect(&["review(finished)"]).map(drop)
}

#[test]
fn q04_a_dialog_survives_stray_keys() -> Result<()> {
    let lab = Lab::start("q04")?;
    let mut tab = lab.tab(TabKind::Claude)?;
    tab.ready()?;
    tab.prompt("bash: touch a.txt ;; say finished")?;
    let asked = tab.expect(&["needs-input(permission)"])?;
    tab.pane.wait_for(DIALOG, PATIENCE)?;
    for key in ["Down", "Up", "C-c", "Down", "C-c", "C-c", "C-d"] {
        tab.press(&[key])?;
        tab.stays(Duration::from_millis(300))?;
    }
    tab.stays(QUIET)?;
    let item = tab.item().context("an item")?;
    let asked = &asked[0].item;
    ensure!(
        item["episode"] == asked["episode"] && item["since_ms"] == asked["since_ms"],
        "{item}"
    );
    tab.answer("Escape", DIALOG)?;
    tab.expect(&["idle"])?;
    tab.stays(QUIET)
}

#[test]
fn q10_two_dialogs_in_one_turn_are_two_episodes() -> Result<()> {
    let lab = Lab::start("q10")?;
    let mut tab = lab.tab(TabKind::Claude)?;
    tab.ready()?;
    tab.prompt("bash: touch first.txt ;; bash: touch second.txt ;; say finished")?;
    let mut episodes = Vec::new();
    for file in ["first.txt", "second.txt"] {
        let lines = tab.expect(&["needs-input(permission)"])?;
        episodes.push(lines[0].item["episode"].clone());
        tab.wait_item("its own command", |item| {
            let text = item["detail"]["ask"]["text"].as_str();
            text.is_some_and(|text| text.contains(file))
        })?;
        tab.pane.wait_for(&format!("touch {file}\n"), PATIENCE)?;
        tab.answer("Enter", DIALOG)?;
        tab.expect(&["busy"])?;
    }
    ensure!(episodes[0] != episodes[1], "{episodes:?}");
    tab.expect(&["review(finished)"])?;
    tab.stays(QUIET)
}

#[test]
fn i03_i04_an_interrupted_command_is_idle_and_no_shell() -> Result<()> {
    let lab = Lab::start("i03_i04")?;
    let mut tab = lab.tab(TabKind::Claude)?;
    tab.ready()?;
    // A tool that needs no permission and runs on.
    tab.prompt("bash: tail -f notes.txt ;; say finished")?;
    tab.wait_item("the tool", |item| item["tool"] == "Bash")
        .with_context(|| tab.evidence())?;
    tab.stays(QUIET)?;
    silent_end(&lab, &mut tab, &["Escape"], "idle")?;
    let item = tab.item().context("an item")?;
    ensure!(
        item["detail"]["shells"].is_null(),
        "no background shell: {item}"
    );
    tab.stays(QUIET)?;
    // The person's own command; the Stop of an earlier turn is not used again.
    tab.prompt("say between")?;
    tab.expect(&["review(finished)"])?;
    tab.prompt("!sleep 30")?;
    tab.stays(QUIET)?;
    silent_end(&lab, &mut tab, &["Escape"], "idle")?;
    tab.stays(QUIET)
}

#[test]
fn d01_an_exit_leaves_no_badge() -> Result<()> {
    let lab = Lab::start("d01")?;
    let mut tab = lab.tab(TabKind::Terminal)?;
    tab.start_claude("claude")?;
    tab.prompt("say bye")?;
    tab.expect(&["review(finished)"])?;
    let pid = tab.agent()?;
    tab.enter("/exit")?;
    let lines = tab.expect_unmeasured(&["none"])?;
    let removed = until(PATIENCE, || {
        lab.sessions()
            .of(pid)
            .pop()
            .filter(|write| write.value.is_none())
    });
    lab.latency(
        "file removed to none shown",
        DEATH_MS,
        removed.context("a removal")?.at_ns,
        lines[0].at_ns,
    )?;
    ensure!(lines[0].item["attention"] == false, "{}", lines[0].item);
    tab.stays(QUIET)
}

#[test]
fn d03_a_killed_claude_is_gone_and_the_next_one_is_itself() -> Result<()> {
    let lab = Lab::start("d03")?;
    let mut tab = lab.tab(TabKind::Terminal)?;
    tab.start_claude("claude")?;
    tab.prompt("bash: touch a.txt ;; say finished")?;
    tab.expect(&["needs-input(permission)"])?;
    let first = tab.agent()?;
    let at_ns = tab.kill_agent()?;
    let lines = tab.expect_unmeasured(&["none"])?;
    lab.latency("kill -9 to none shown", DEATH_MS, at_ns, lines[0].at_ns)?;
    let newest = lab.sessions().of(first).pop().context("a file")?;
    ensure!(
        newest.status() == Some("waiting"),
        "the file stays behind: {newest:?}"
    );
    tab.stays(QUIET)?;

    tab.fresh_shell()?;
    tab.start_claude("claude")?;
    ensure!(tab.agent()? != first, "another process");
    tab.prompt("say new")?;
    tab.expect(&["review(finished)"])?;
    tab.stays(QUIET)
}

#[test]
fn k09_the_person_s_own_settings_hold_too() -> Result<()> {
    let lab = Lab::start("k09")?;
    let mut tab = lab.tab(TabKind::Terminal)?;
    let heard = tab.dir.join("heard.txt");
    let hook = format!("cat >> '{}'", heard.display());
    let theirs = serde_json::json!({"hooks": {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": hook}]}]}});
    let written = theirs.to_string();
    fs::write(tab.dir.join("x.json"), &written)?;
    let merged_left = || -> Vec<String> {
        let files = walk(&lab.home().product());
        files
            .into_iter()
            .filter(|path| fs::read_to_string(path).is_ok_and(|text| text.contains("heard.txt")))
            .collect()
    };

    tab.shell_ready()?;
    tab.enter("claude --version")?;
    tab.pane.wait_for("2.1.332 (Claude Code)", PATIENCE)?;
    tab.shell_ready()?;
    tab.enter("claude mcp list")?;
    tab.pane.wait_for("No MCP servers", PATIENCE)?;
    tab.stays(Duration::ZERO)?;

    for argument in ["x.json".to_owned(), format!("'{written}'")] {
        tab.fresh_shell()?;
        tab.enter(&format!("claude --settings {argument}"))?;
        tab.ready()?;
        let merged = merged_left();
        ensure!(!merged.is_empty(), "one merged file replaces both");
        for path in merged {
            let mode = fs::metadata(&path)?.permissions().mode() & 0o777;
            ensure!(mode == 0o600, "{path} has mode {mode:o}");
        }
        tab.prompt("say with both")?;
        let lines = tab.expect(&["review(finished)"])?;
        ensure!(
            lines[0].item["hooks"] == true,
            "ours hold: {}",
            lines[0].item
        );
        ensure!(
            fs::read_to_string(&heard)?.contains("with both"),
            "theirs hold"
        );
        fs::remove_file(&heard)?;
        tab.enter("/exit")?;
        tab.expect_unmeasured(&["none"])?;
        until(PATIENCE, || merged_left().is_empty().then_some(()))
            .with_context(|| format!("{:?} is left behind", merged_left()))?;
        tab.pane.keys(&["C-l"])?;
    }
    ensure!(
        fs::read_to_string(tab.dir.join("x.json"))? == written,
        "their file is untouched"
    );

    // What can't be parsed is passed on untouched: Claude itself says what is wrong with it.
    tab.fresh_shell()?;
    fs::write(tab.dir.join("broken.json"), "{")?;
    tab.enter("claude --settings broken.json")?;
    tab.pane
        .wait("Claude's own complaint", PATIENCE, |screen| {
            screen.to_lowercase().contains("settings")
                && (screen.contains("nvalid") || screen.contains("rror"))
        })?;
    ensure!(
        fs::read_to_string(tab.dir.join("broken.json"))? == "{",
        "their file is untouched"
    );
    Ok(())
}

#[test]
fn k10_a_typed_claude_has_our_hooks_after_the_person_s_own_start_up_files() -> Result<()> {
    let lab = Lab::start("k10")?;
    let mut tab = lab.tab(TabKind::Terminal)?;
    tab.shell_ready()?;
    tab.enter("echo =$LAB_PROFILE=$LAB_BASHRC=")?;
    tab.pane.wait_for("\n=read=read=", PATIENCE)?;
    tab.start_claude("claude")?;
    tab.prompt("say typed")?;
    let lines = tab.expect(&["review(finished)"])?;
    ensure!(lines[0].item["hooks"] == true, "{}", lines[0].item);
    tab.enter("/exit")?;
    tab.expect_unmeasured(&["none"])?;

    tab.fresh_shell()?;
    tab.enter("alias claude='claude --permission-mode manual'")?;
    tab.start_claude("claude")?;
    tab.prompt("say aliased")?;
    let lines = tab.expect(&["review(finished)"])?;
    ensure!(lines[0].item["hooks"] == true, "{}", lines[0].item);
    Ok(())
}

#[test]
fn twenty_turns_are_shown_in_time() -> Result<()> {
    let lab = Lab::start("twenty turns")?;
    let mut tab = lab.tab(TabKind::Claude)?;
    tab.ready()?;
    for number in 0..20 {
        tab.prompt(&format!(
            "bash: touch made-{number}.txt ;; say finished {number}"
        ))?;
        let lines = tab.expect(&["needs-input(permission)"])?;
        ensure!(
            ask_text(&lines[0]).is_empty() || ask_text(&lines[0]).contains("touch"),
            "{}",
            lines[0].item
        );
        tab.pane
            .wait_for(&format!("touch made-{number}.txt\n"), PATIENCE)?;
        tab.answer("Enter", DIALOG)?;
        tab.expect(&["busy", "review(finished)"])?;
        tab.pane
            .wait_for(&format!("● finished {number}"), PATIENCE)?;
    }
    Ok(())
}

/// Every file below a directory.
fn walk(dir: &std::path::Path) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let files = entries.flat_map(|entry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => walk(&entry.path()),
        Ok(kind) if kind.is_file() => vec![entry.path().display().to_string()],
        _ => Vec::new(),
    });
    files.collect()
}
