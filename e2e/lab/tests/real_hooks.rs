//! The real Claude Code with our hooks in the shells that are not everybody's, and what it shows of them: nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use purplemux_lab::clock::until;
use purplemux_lab::product::{Lab, PATIENCE, Tab, TabKind};
use serde_json::{Value, json};

/// As in `real.rs`.
const QUIET: Duration = Duration::from_millis(1500);

/// On the screen as long as a permission dialog is.
const DIALOG: &str = "Do you want to proceed?";

/// Starts Claude by hand, has it answer, and leaves it again.
fn one_turn(tab: &mut Tab<'_>, command: &str) -> Result<()> {
    tab.start_claude(command)?;
    tab.prompt("say typed by hand")?;
    let lines = tab.expect(&["review(finished)"])?;
    ensure!(lines[0].item["hooks"] == true, "{}", lines[0].item);
    tab.stays(Duration::ZERO)?;
    tab.enter("/exit")?;
    tab.expect_unmeasured(&["none"])?;
    Ok(())
}

#[test]
fn k10_zsh_and_fish_get_the_hooks_too() -> Result<()> {
    let lab = Lab::start("k10 shells")?;
    let home = lab.home().dir();
    fs::write(home.join(".zshrc"), "PS1='lab# '\nunsetopt PROMPT_SP\n")?;
    let fish = home.join(".config/fish");
    fs::create_dir_all(&fish)?;
    fs::write(
        fish.join("config.fish"),
        "function fish_prompt; echo -n 'lab# '; end\nset -g fish_greeting\n",
    )?;
    let mut tab = lab.tab(TabKind::Terminal)?;
    for shell in [
        "clear; ZDOTDIR=$PURPLEMUX_HOME/shell/zsh exec zsh -l",
        "clear; exec fish -l -C \"source $PURPLEMUX_HOME/shell/fish.fish\"",
    ] {
        tab.shell_ready()?;
        tab.enter(shell)?;
        one_turn(&mut tab, "claude")?;
        tab.pane.keys(&["C-l"])?;
    }
    Ok(())
}

#[test]
fn k02_nothing_of_ours_is_on_claude_s_screen_or_after_it() -> Result<()> {
    let lab = Lab::start("k02 screen")?;
    let mut tab = lab.tab(TabKind::Terminal)?;
    tab.start_claude("claude --verbose")?;
    tab.prompt("bash: echo hi ;; say seen")?;
    tab.expect(&["review(finished)"])?;
    let shown = tab.screen();
    tab.enter("/exit")?;
    tab.expect_unmeasured(&["none"])?;
    // Claude shows how to resume with the flags it was started with; ours are not among them.
    let left = tab.pane.wait_for("claude --verbose --resume", PATIENCE)?;
    let home = lab.home().product().display().to_string();
    for text in [&shown, &left] {
        for ours in [home.as_str(), "purplemux", "status-hook", "--settings"] {
            ensure!(!text.contains(ours), "{ours} on the screen:\n{text}");
        }
    }
    Ok(())
}

/// Nothing that Claude says about hooks that went wrong.
fn ensure_nothing_shown(lab: &Lab, text: &str) -> Result<()> {
    let home = lab.home().product().display().to_string();
    for word in [home.as_str(), "purplemux", "hook", "broken by the test"] {
        ensure!(!text.contains(word), "{word} on the screen:\n{text}");
    }
    Ok(())
}

#[test]
fn k02_a_hook_that_is_missing_or_crashes_is_seen_nowhere_and_badges_stay_right() -> Result<()> {
    let lab = Lab::start("k02 broken")?;
    let mut tab = lab.tab(TabKind::Terminal)?;
    tab.start_claude("claude")?;
    let script = lab.home().product().join("status-hook.sh");
    let broken = [
        ("missing", None),
        ("not executable", Some((0o600, "#!/bin/sh\nexit 0\n"))),
        (
            "failing",
            Some((
                0o700,
                "#!/bin/sh\necho broken by the test\necho broken by the test >&2\nexit 3\n",
            )),
        ),
        ("killed", Some((0o700, "#!/bin/sh\nkill -9 $$\n"))),
        ("deaf", Some((0o700, "#!/bin/sh\nexec <&-\nsleep 0.1\n"))),
    ];
    for (number, (what, replacement)) in broken.into_iter().enumerate() {
        // By a rename: a hook of the turn before may still run the old one.
        let next = script.with_extension("next");
        match replacement {
            None => fs::remove_file(&script)?,
            Some((mode, text)) => {
                fs::write(&next, text)?;
                fs::set_permissions(&next, fs::Permissions::from_mode(mode))?;
                fs::rename(&next, &script)?;
            }
        }
        let prompt = format!("bash: echo {number} ;; say turn {number}");
        tab.enter(&prompt)?;
        tab.expect_unmeasured(&["busy", "review(finished)"])
            .with_context(|| what.to_owned())?;
        tab.pane.wait_for(&format!("● turn {number}"), PATIENCE)?;
        ensure_nothing_shown(&lab, &tab.screen()).with_context(|| what.to_owned())?;
        let asked = lab.fake().requests();
        let last = asked.last().context("a request")?;
        ensure!(
            last.prompt == prompt,
            "{what}: the model was told {:?}",
            last.prompt
        );
    }
    Ok(())
}

#[test]
#[allow(
    clippy::disallowed_methods,
    reason = "the server is to end without a word"
)]
fn k02_ten_turns_without_a_server_are_seen_nowhere_and_are_not_lost() -> Result<()> {
    let lab = Lab::start("k02 down")?;
    let mut tab = lab.tab(TabKind::Terminal)?;
    tab.start_claude("claude")?;
    let pid = lab.server_pid().context("a server")?.to_string();
    ensure!(Command::new("kill").args(["-9", &pid]).status()?.success());
    for number in 0..10 {
        tab.enter(&format!("say turn {number}"))?;
        tab.pane.wait_for(&format!("● turn {number}"), PATIENCE)?;
        // The next line is for the prompt box, not for the queue.
        tab.pane.wait("the end of the turn", PATIENCE, |screen| {
            screen.contains(&format!("● turn {number}")) && !screen.contains("esc to interrupt")
        })?;
        ensure_nothing_shown(&lab, &tab.screen())?;
    }
    let spool = lab.home().product().join("spool");
    let spooled = || fs::read_dir(&spool).map_or(0, Iterator::count);
    until(PATIENCE, || (spooled() >= 20).then_some(()))
        .with_context(|| format!("of each turn a prompt and a Stop, not {}", spooled()))?;

    lab.serve()?;
    let shown = || -> Option<serde_json::Value> {
        let items: serde_json::Value =
            serde_json::from_str(&lab.run(&["status", "--json"]).ok()?).ok()?;
        let item = items
            .as_array()?
            .iter()
            .find(|item| item["tab"] == tab.id.as_str())?;
        (item["state"] == "review").then(|| item.clone())
    };
    let item = until(PATIENCE, shown).context("the review of the last turn")?;
    ensure!(item["last_message"] == "turn 9", "{item}");
    ensure!(
        until(PATIENCE, || (spooled() == 0).then_some(())).is_some(),
        "the spool stays"
    );
    Ok(())
}

/// A turn, a dialog that is answered and one that is refused, without a hook: the file and the transcript decide.
fn right_without_hooks(tab: &mut Tab<'_>) -> Result<()> {
    tab.enter("say first without hooks")?;
    tab.settle("review(finished)")?;
    tab.wait_item("that it has no hooks", |item| item["hooks"] == false)?;
    tab.prompt("say unheard")?;
    let lines = tab.expect(&["review(finished)"])?;
    ensure!(
        lines[0].item["last_message"] == "unheard",
        "{}",
        lines[0].item
    );
    tab.stays(QUIET)?;
    tab.prompt("bash: touch made.txt ;; say finished")?;
    tab.expect(&["needs-input(permission)"])?;
    tab.answer("Enter", DIALOG)?;
    tab.expect(&["busy", "review(finished)"])?;
    tab.stays(QUIET)?;
    tab.prompt("bash: touch refused.txt ;; say finished")?;
    tab.expect(&["needs-input(permission)"])?;
    tab.answer("Escape", DIALOG)?;
    tab.expect(&["idle"])?;
    tab.stays(QUIET)?;
    let item = tab.item().context("an item")?;
    ensure!(item["hooks"] == false, "{item}");
    Ok(())
}

#[test]
fn k07_bare_safe_mode_and_disabled_hooks_are_shown_right_without_any() -> Result<()> {
    for (what, command) in [
        ("bare", "claude --bare"),
        ("safe mode", "claude --safe-mode"),
        ("disabled", "claude"),
    ] {
        let lab = Lab::start(&format!("k07 {what}"))?;
        if what == "disabled" {
            lab.home()
                .edit_settings(|settings| settings["disableAllHooks"] = true.into())?;
        }
        let mut tab = lab.tab(TabKind::Terminal)?;
        tab.start_claude(command).context(what)?;
        right_without_hooks(&mut tab).context(what)?;
    }
    Ok(())
}

#[test]
fn k07_hooks_that_vanish_in_mid_session_are_missed_and_badges_stay_right() -> Result<()> {
    let lab = Lab::start("k07 vanish")?;
    let mut tab = lab.tab(TabKind::Terminal)?;
    tab.start_claude("claude")?;
    tab.warm_up()?;
    let item = tab.item().context("an item")?;
    ensure!(item["hooks"] == true, "{item}");
    for switched_off in [true, false] {
        lab.home()
            .edit_settings(|settings| settings["disableAllHooks"] = switched_off.into())?;
        // Claude watches the file, and takes a second or two to believe it.
        let mut turns = 0;
        loop {
            turns += 1;
            tab.prompt(&format!("say turn {turns}"))?;
            tab.expect(&["review(finished)"])?;
            tab.stays(QUIET)?;
            let item = tab.item().context("an item")?;
            if item["hooks"] == !switched_off {
                break;
            }
            ensure!(turns < 6, "hooks off: {switched_off}; {item}");
        }
    }
    Ok(())
}

/// How often each event was heard from this tab's agent. What was posted and, since the answer was late, came by the
/// spool once more is written down twice and counts once: it is the same to the millisecond.
fn heard(lab: &Lab, tab: &Tab<'_>, name: &str) -> Result<BTreeMap<String, usize>> {
    let dir = lab.home().root().join(name);
    let dir_text = dir.to_str().context("the path is UTF-8")?;
    lab.run(&["explain", &tab.id, "--export", dir_text])?;
    let text = fs::read_to_string(dir.join("hooks.jsonl"))?;
    let lines: BTreeSet<&str> = text.lines().collect();
    let mut heard = BTreeMap::new();
    for line in lines {
        let hook: Value = serde_json::from_str(line)?;
        let event = hook["input"]["hook_event_name"]
            .as_str()
            .context("a name")?;
        *heard.entry(event.to_owned()).or_insert(0) += 1;
    }
    Ok(heard)
}

#[test]
fn k03_the_person_s_own_hooks_run_as_before_with_ours_everywhere() -> Result<()> {
    let lab = Lab::start("k03")?;
    let mut tab = lab.tab(TabKind::Terminal)?;
    let log = lab.home().root().join("theirs.log");
    let note = |who: &str| format!("echo {who} >> '{}'", log.display());
    let allow = r#"{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"allow"}}}"#;
    let hook = |command: String| json!([{ "hooks": [{ "type": "command", "command": command }] }]);
    lab.home().edit_settings(|settings| {
        settings["hooks"] = json!({
            "UserPromptSubmit": hook(note("user-prompt")),
            "PermissionRequest": hook(format!("{}; echo '{allow}'", note("user-permission"))),
        });
    })?;
    let project = tab.dir.join(".claude");
    fs::create_dir(&project)?;
    fs::write(
        project.join("settings.json"),
        json!({ "hooks": { "Stop": hook(note("project-stop")) } }).to_string(),
    )?;
    let files = [
        lab.home().dir().join(".claude/settings.json"),
        project.join("settings.json"),
    ];
    let bytes = || files.iter().map(fs::read).collect::<Result<Vec<_>, _>>();
    // At its start Claude makes the mode `manual` in the person's file `default` and writes it anew (measured, 2.1.332).
    one_turn(&mut tab, "claude")?;
    let before = bytes()?;
    lab.run(&["hooks", "install", "--global"])?;
    ensure!(bytes()?[0] != before[0], "ours are in it");

    // By the function, which adds our settings once more, and past it, where the global hooks are all there is.
    for (round, command) in ["claude", "command claude"].into_iter().enumerate() {
        tab.fresh_shell()?;
        fs::write(&log, "")?;
        tab.start_claude(command)?;
        // Their hook allows it while the dialog is drawn, which is then gone by itself.
        let file = format!("made-{round}.txt");
        tab.enter(&format!("bash: touch {file} ;; say finished"))?;
        tab.settle("review(finished)").context(command)?;
        tab.stays(QUIET)?;
        ensure!(tab.dir.join(&file).exists(), "their hook allowed it");
        let theirs = fs::read_to_string(&log)?;
        let theirs: Vec<&str> = theirs.lines().collect();
        ensure!(
            theirs == ["user-prompt", "user-permission", "project-stop"],
            "{command}: {theirs:?}"
        );
        let item = tab.item().context("an item")?;
        ensure!(item["hooks"] == true, "{command}: {item}");
        let heard = heard(&lab, &tab, &format!("heard-{round}"))?;
        for event in [
            "SessionStart",
            "UserPromptSubmit",
            "PreToolUse",
            "PermissionRequest",
            "PostToolUse",
            "Stop",
        ] {
            ensure!(
                heard.get(event) == Some(&1),
                "{command}, {event}: {heard:?}"
            );
        }
        tab.enter("/exit")?;
        tab.expect_unmeasured(&["none"])?;
    }
    lab.run(&["hooks", "uninstall", "--global"])?;
    for (before, after) in before.iter().zip(&bytes()?) {
        let [before, after] = [before, after].map(|bytes| String::from_utf8_lossy(bytes));
        ensure!(before == after, "it was {before}, it is {after}");
    }
    Ok(())
}

#[test]
fn k04_the_person_s_status_line_is_shown_and_a_project_s_is_left_alone() -> Result<()> {
    let lab = Lab::start("k04")?;
    lab.home().edit_settings(|settings| {
        settings["statusLine"] = json!({
            "type": "command",
            "command": "read -r told; case $told in *context_window*) echo \"mine in ${PWD##*/}\" ;; esac",
        });
    })?;
    let mut tab = lab.tab(TabKind::Terminal)?;
    let here = tab.dir.file_name().context("a name")?.display().to_string();
    tab.start_claude("claude")?;
    tab.pane.wait_for(&format!("mine in {here}"), PATIENCE)?;
    tab.warm_up()?;
    tab.prompt("say told")?;
    tab.expect(&["review(finished)"])?;
    // It comes after each answer, and says nothing about the badge.
    tab.stays(QUIET)?;
    let told = heard(&lab, &tab, "with")?;
    ensure!(told.get("StatusLine") >= Some(&1), "{told:?}");
    let item = tab.item().context("an item")?;
    ensure!(item["context_pct"].is_u64(), "{item}");
    tab.enter("/exit")?;
    tab.expect_unmeasured(&["none"])?;

    let project = tab.dir.join(".claude");
    fs::create_dir(&project)?;
    fs::write(
        project.join("settings.json"),
        json!({ "statusLine": { "type": "command", "command": "echo of the project" } })
            .to_string(),
    )?;
    tab.fresh_shell()?;
    tab.start_claude("claude")?;
    tab.pane.wait_for("of the project", PATIENCE)?;
    tab.prompt("say untold")?;
    tab.expect(&["review(finished)"])?;
    tab.stays(QUIET)?;
    ensure!(!tab.screen().contains("mine in"), "{}", tab.screen());
    let told = heard(&lab, &tab, "without")?;
    ensure!(!told.contains_key("StatusLine"), "{told:?}");
    ensure!(told.contains_key("Stop"), "{told:?}");
    Ok(())
}
