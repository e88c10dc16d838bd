//! The real Claude Code through the whole product: who is who. Conversations that fork and park, agents inside
//! agents, panes that move, directories that vanish, several homes of Claude's. As `real.rs`: from keys to lines.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use purplemux_lab::clock::until;
use purplemux_lab::own::Own;
use purplemux_lab::product::{
    DEATH_MS, Lab, PATIENCE, SILENT_END_MS, Tab, TabKind, claude_is_ready, product_binary,
};
use serde_json::Value;

/// As in `real.rs`.
const QUIET: Duration = Duration::from_millis(1500);

fn words(count: usize) -> String {
    vec!["word"; count].join(" ")
}

#[test]
fn b10_c02_a_turn_goes_on_through_a_blocked_stop_and_a_compaction() -> Result<()> {
    let lab = Lab::start("b10_c02")?;
    let blocked = || -> Result<()> {
        let settings = lab.home().project(1).join(".claude");
        fs::create_dir_all(&settings)?;
        let once = lab.home().project(1).join("once");
        let block = format!(
            "sh -c 'if [ -e {once} ]; then exit 0; fi; touch {once}; echo keep going >&2; exit 2'",
            once = once.display()
        );
        let hooks = serde_json::json!({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": block}]}]}});
        fs::write(settings.join("settings.json"), hooks.to_string())?;
        let mut tab = lab.tab(TabKind::Claude)?;
        tab.ready()?;
        tab.prompt("say one")?;
        let lines = tab.expect(&["review(finished)"])?;
        ensure!(once.exists(), "the hook of the project has blocked");
        ensure!(
            lab.fake()
                .requests()
                .iter()
                .filter(|asked| asked.kind == "main")
                .count()
                == 2,
            "review only after Claude was sent on: {}",
            tab.evidence()
        );
        let episode = lines[0].item["episode"].clone();
        tab.stays(QUIET)?;
        ensure!(
            tab.item().context("an item")?["episode"] == episode,
            "one review"
        );
        Ok(())
    };
    blocked().context("B10")?;
    let compacted = || -> Result<()> {
        let mut tab = lab.tab(TabKind::Terminal)?;
        tab.start_claude("CLAUDE_CODE_AUTO_COMPACT_WINDOW=100000 claude")?;
        tab.prompt("say first")?;
        tab.expect(&["review(finished)"])?;
        tab.prompt("usage 990000 bash: echo grow ;; slow 3 after tool")?;
        let doing = |item: &Value| item["detail"]["doing"] == "compacting";
        tab.wait_item("compacting", |item| item["state"] == "busy" && doing(item))?;
        tab.wait_item("the work after it", |item| {
            item["state"] == "busy" && !doing(item)
        })?;
        tab.expect(&["review(finished)"])?;
        tab.stays(QUIET)
    };
    compacted().context("C02")
}

#[test]
fn r06_what_a_fork_has_copied_decides_nothing() -> Result<()> {
    let lab = Lab::start("r06")?;
    let mut tab = lab.tab(TabKind::Terminal)?;
    tab.start_claude("claude")?;
    tab.prompt("say before the fork")?;
    let lines = tab.expect(&["review(finished)"])?;
    let old = lines[0].item["session_id"]
        .as_str()
        .context("an id")?
        .to_owned();
    tab.prompt(&format!("slow 30 {}", words(60)))?;
    tab.pane.wait_for("↓", PATIENCE)?;
    tab.press(&["Escape"])?;
    tab.expect(&["idle"])?;
    tab.enter("/exit")?;
    tab.expect_unmeasured(&["none"])?;

    tab.fresh_shell()?;
    tab.enter(&format!("claude --fork-session --resume {old}"))?;
    let lines = tab.expect_unmeasured(&["idle"])?;
    tab.pane.wait_for("before the fork", PATIENCE)?;
    tab.stays(QUIET)?;
    // The new id is written with the first prompt at the latest.
    tab.prompt("say forked")?;
    let ended = tab.expect(&["review(finished)"])?;
    ensure!(
        ended[0].item["session_id"] != old.as_str() && ended[0].item["pid"] == lines[0].item["pid"],
        "a conversation of its own: {}",
        ended[0].item
    );
    ensure!(
        ended[0].item["last_message"] == "forked",
        "{}",
        ended[0].item
    );
    tab.stays(QUIET)
}

#[test]
fn r07_a_parked_turn_is_one_row_without_a_hole() -> Result<()> {
    let lab = Lab::start("r07")?;
    let mut tab = lab.tab(TabKind::Claude)?;
    tab.ready()?;
    tab.prompt(&format!("slow 12 {}", words(24)))?;
    let pane = tab.agent()?;
    tab.pane.wait_for("↓", PATIENCE)?;
    tab.press(&["Left"])?;
    tab.wait_item("that it is elsewhere", |item| {
        item["presence"] == "elsewhere"
    })
    .with_context(|| tab.evidence())?;
    // The job's own writes are another process's.
    let lines = tab.expect_unmeasured(&["review(finished)"])?;
    ensure!(
        lines[0].item["pid"] == pane && lines[0].item["attention"] == true,
        "the pane's row: {}",
        lines[0].item
    );
    let parked = lab.sessions().of(pane);
    ensure!(
        parked.iter().any(|write| {
            let value = write.value.as_ref();
            value.is_some_and(|value| value["parkedJobId"].is_string())
        }),
        "it was parked: {}",
        tab.evidence()
    );
    tab.stays(QUIET)?;
    let items = lab.rows()?;
    ensure!(items.len() == 1, "one row for one piece of work: {items:?}");
    Ok(())
}

/// A directory of which Claude asks whether it is trusted.
fn untrusted(lab: &Lab, name: &str) -> Result<std::path::PathBuf> {
    let dir = lab.home().dir().join(name);
    fs::create_dir_all(&dir)?;
    Ok(dir)
}

#[test]
fn d06_the_question_whether_a_folder_is_trusted() -> Result<()> {
    const TRUST: &str = "Yes, I trust this folder";
    let lab = Lab::start("d06")?;
    let ask = |tab: &mut Tab<'_>| -> Result<()> {
        let lines = tab.expect_unmeasured(&["needs-input(startup)"])?;
        ensure!(lines[0].item["attention"] == true, "{}", lines[0].item);
        tab.pane.wait_for(TRUST, PATIENCE).map(drop)
    };
    let mut accepted = lab.tab_in(TabKind::Claude, untrusted(&lab, "stranger")?)?;
    ask(&mut accepted)?;
    accepted.stays(QUIET)?;
    accepted.wait_item("what is asked", |item| {
        let text = item["detail"]["ask"]["text"].as_str();
        text.is_some_and(|text| text.contains("trust"))
    })?;
    // The marked option is "No, exit".
    let marked = || accepted.screen().contains(&format!("❯ {TRUST}"));
    accepted.pane.press_until(&["Down"], "the mark", marked)?;
    let gone = || !accepted.screen().contains(TRUST);
    accepted.pane.press_until(&["Enter"], "the start", gone)?;
    accepted.ready()?;
    accepted.prompt("say trusted")?;
    accepted.expect(&["review(finished)"])?;

    let mut refused = lab.tab_in(TabKind::Claude, untrusted(&lab, "other")?)?;
    ask(&mut refused)?;
    let at_ns = refused.pane.press_until(&["Enter"], "the exit", || {
        refused.screen().contains("Run claude again")
    })?;
    let lines = refused.expect_unmeasured(&["none"])?;
    lab.note(
        "refused trust to none shown",
        DEATH_MS,
        at_ns,
        lines[0].at_ns,
    );
    refused.stays(QUIET)?;
    accepted.stays(Duration::ZERO)
}

#[test]
fn n02_a_claude_inside_a_claude_s_tool_is_no_row_and_no_badge() -> Result<()> {
    let lab = Lab::start("n02")?;
    let mut tab = lab.tab(TabKind::Terminal)?;
    tab.start_claude("claude --allowedTools 'Bash(claude:*)'")?;
    let outer = tab.item().context("an item")?["pid"].clone();
    // With our own hooks, which carry the outer one's pane.
    let hooks = lab.home().product().join("hooks.json");
    let inner = format!(
        "bash: claude --settings {} -p 'slow 2 inner words'",
        hooks.display()
    );
    tab.prompt(&format!("{inner} ;; slow 2 the outer one"))?;
    let inner_file = lab.sessions().wait(PATIENCE, |write| {
        let value = write.value.as_ref();
        value.is_some_and(|value| value["entrypoint"] == "sdk-cli")
    });
    let inner_pid = inner_file.with_context(|| tab.evidence())?.pid;
    lab.sessions()
        .wait(PATIENCE, |write| {
            write.pid == inner_pid && write.status() == Some("busy")
        })
        .context("the inner one works")?;
    let rows = lab.rows()?;
    ensure!(
        rows.len() == 1 && rows[0]["pid"] == outer,
        "no row of its own: {rows:?}"
    );
    lab.sessions()
        .wait(PATIENCE, |write| {
            write.pid == inner_pid && write.value.is_none()
        })
        .context("the inner one ends")?;
    let lines = tab.expect(&["review(finished)"])?;
    ensure!(
        lines[0].item["pid"] == outer && lines[0].item["last_message"] == "the outer one",
        "{}",
        lines[0].item
    );
    tab.stays(QUIET)
}

#[test]
fn n03_a_badge_belongs_to_its_pane_and_not_to_the_active_one() -> Result<()> {
    let lab = Lab::start("n03")?;
    let mut tab = lab.tab(TabKind::Terminal)?;
    tab.shell_ready()?;
    let claude = tab.pane.by_id()?;
    tab.start_claude("claude")?;
    let pid = tab.item().context("an item")?["pid"].clone();

    // The shell to its right is the active pane.
    let beside = claude.tmux("split-window", &["-h", "-P", "-F", "#{pane_id}"])?;
    tab.pane = claude.clone();
    let turn = |tab: &mut Tab<'_>, word: &str| -> Result<()> {
        tab.prompt(&format!("say {word}"))?;
        let lines = tab.expect(&["review(finished)"])?;
        ensure!(lines[0].item["pid"] == pid, "{word}: {}", lines[0].item);
        ensure!(
            lines[0].item["last_message"] == word,
            "{word}: {}",
            lines[0].item
        );
        Ok(())
    };
    turn(&mut tab, "split").context("N03")?;
    claude.tmux("swap-pane", &["-d", "-s", beside.trim()])?;
    turn(&mut tab, "swapped").context("N03")?;
    Ok(())
}

#[test]
fn n07_a_session_is_no_directory() -> Result<()> {
    let lab = Lab::start("n07")?;
    let moved = || -> Result<()> {
        let mut tab = lab.tab(TabKind::Terminal)?;
        fs::create_dir(tab.dir.join("sub"))?;
        tab.start_claude("claude --allowedTools 'Bash(cd:*)'")?;
        let before = tab.item().context("an item")?;
        tab.prompt("bash: cd sub ;; bash: pwd ;; say moved")?;
        tab.expect(&["review(finished)"])?;
        let sub = tab.dir.join("sub");
        let now = tab.wait_item("its new directory", |item| {
            item["cwd"]
                .as_str()
                .is_some_and(|cwd| Path::new(cwd) == sub)
        })?;
        ensure!(
            now["pid"] == before["pid"] && now["session_id"] == before["session_id"],
            "the same session: {now}"
        );
        tab.stays(QUIET)?;
        // Its transcript is the same file still, and it is read.
        tab.prompt(&format!("slow 30 {}", words(60)))?;
        tab.pane.wait_for("↓", PATIENCE)?;
        tab.press(&["Escape"])?;
        tab.expect(&["idle"])?;
        tab.wait_item("that it was interrupted", |item| {
            item["detail"]["label"] == "interrupted"
        })
        .map(drop)
    };
    moved().context("N07 (a)")?;
    let removed = || -> Result<()> {
        let mut tab = lab.tab(TabKind::Claude)?;
        tab.ready()?;
        tab.prompt(&format!("slow 4 {}", words(8)))?;
        tab.pane.wait_for("↓", PATIENCE)?;
        fs::remove_dir_all(&tab.dir)?;
        // Half a second is waited for a Stop that can't come.
        let lines = tab.expect_unmeasured(&["review(finished)"])?;
        let pid = tab.agent()?;
        let end = lab
            .sessions()
            .of(pid)
            .into_iter()
            .rev()
            .find(|write| write.status() == Some("idle"));
        let end = end.context("an end")?;
        lab.latency(
            "idle written to review shown, without Stop",
            800.0,
            end.at_ns,
            lines[0].at_ns,
        )?;
        tab.stays(QUIET)
    };
    removed().context("N07 (b)")
}

#[test]
fn n08_three_homes_of_claude_s() -> Result<()> {
    let lab = Lab::start("n08")?;
    let mut rows = Vec::new();
    for config in [None, Some("work"), Some("private")] {
        let mut tab = lab.tab(TabKind::Terminal)?;
        let command = match config {
            None => "claude".to_owned(),
            Some(name) => {
                let dir = lab.home().config_dir(name)?;
                format!("CLAUDE_CONFIG_DIR={} claude", dir.display())
            }
        };
        tab.start_claude(&command)
            .with_context(|| format!("{config:?}"))?;
        rows.push((config, tab));
    }
    for (config, tab) in &mut rows {
        let word = config.unwrap_or("default");
        tab.enter(&format!("say {word}"))?;
        let lines = tab
            .expect_unmeasured(&["busy", "review(finished)"])
            .with_context(|| format!("{config:?}"))?;
        ensure!(lines[1].item["last_message"] == word, "{}", lines[1].item);
        if let Some(name) = config {
            let sessions = lab.home().dir().join(name).join("sessions");
            let files = fs::read_dir(&sessions)?.count();
            ensure!(files > 0, "it lives in {}", sessions.display());
        }
    }
    // An end without a hook is told by the file and the transcript of its own directory.
    let (_, tab) = &mut rows[1];
    tab.enter(&format!("slow 30 {}", words(60)))?;
    tab.expect_unmeasured(&["busy"])?;
    tab.pane.wait_for("↓", PATIENCE)?;
    let at_ns = tab.press(&["Escape"])?;
    let lines = tab.expect_unmeasured(&["idle"])?;
    lab.latency("Escape to idle shown", SILENT_END_MS, at_ns, lines[0].at_ns)?;
    tab.wait_item("that it was interrupted", |item| {
        item["detail"]["label"] == "interrupted"
    })?;
    for (config, tab) in &mut rows {
        tab.stays(Duration::from_millis(300))
            .with_context(|| format!("{config:?}"))?;
    }
    Ok(())
}

#[test]
fn n09_a_server_inside_a_claude_s_tool_makes_clean_panes() -> Result<()> {
    let mut lab = Lab::without_server("n09")?;
    let outer = Own::shell(&lab, 12)?;
    outer.enter("claude --allowedTools Bash")?;
    outer
        .pane
        .wait("Claude's prompt", PATIENCE, claude_is_ready)?;
    let binary = product_binary()?;
    let log = lab.home().root().join("inner.log");
    // As a person would have it: the tool's own environment, all of it.
    let start = format!(
        "bash: env > {env}; {binary} serve --port 0 > {log} 2>&1 & sleep 600",
        env = lab.home().root().join("tool.env").display(),
        binary = binary.display(),
        log = log.display()
    );
    outer.enter(&start)?;
    let socket = lab.home().product().join("purplemux.sock");
    until(PATIENCE, || {
        std::os::unix::net::UnixStream::connect(&socket).ok()
    })
    .with_context(|| format!("no server: {:?}", fs::read_to_string(&log)))?;
    let tool = fs::read_to_string(lab.home().root().join("tool.env"))?;
    ensure!(
        tool.contains("CLAUDECODE=1") && tool.contains("CLAUDE_CODE_CHILD_SESSION"),
        "a tool's environment: {tool}"
    );
    lab.follow()?;

    let mut tab = lab.tab(TabKind::Terminal)?;
    tab.shell_ready()?;
    tab.enter("env | grep -c ^CLAUDE")?;
    tab.pane
        .wait_for("\n0\n", PATIENCE)
        .context("the pane's environment is clean")?;
    tab.fresh_shell()?;
    tab.start_claude("claude")?;
    tab.prompt("say written down")?;
    let lines = tab.expect(&["review(finished)"])?;
    let id = lines[0].item["session_id"]
        .as_str()
        .context("an id")?
        .to_owned();
    let written = || {
        let projects = fs::read_dir(lab.home().dir().join(".claude/projects")).ok()?;
        let mut folders = projects.flatten();
        folders.find(|folder| folder.path().join(format!("{id}.jsonl")).is_file())
    };
    until(PATIENCE, written).context("its transcript")?;
    tab.stays(Duration::from_secs(4))?;
    let item = tab.item().context("an item")?;
    ensure!(
        item["detail"]["label"].is_null(),
        "it has a transcript: {item}"
    );
    tab.enter("/exit")?;
    tab.expect_unmeasured(&["none"])?;

    // One that takes itself for a part of another Claude's session writes neither a transcript nor a status
    // file (measured, Claude Code 2.1.332): hooks alone tell of it.
    tab.fresh_shell()?;
    tab.enter("CLAUDE_CODE_CHILD_SESSION=1 claude")?;
    tab.pane
        .wait("Claude's prompt", PATIENCE, claude_is_ready)?;
    tab.expect_unmeasured(&["idle"])?;
    tab.enter("say lost")?;
    tab.expect_unmeasured(&["busy", "review(finished)"])?;
    tab.wait_item("that it has no transcript", |item| {
        item["detail"]["label"] == "no transcript" && item["state"] == "review"
    })?;
    tab.stays(QUIET)
}
