//! The real Claude Code and what a person does to tmux around it: servers that end and come back, sessions and panes
//! of their own, names that look alike, panes that outlive their program.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use purplemux_lab::clock::{until, wall_ns};
use purplemux_lab::product::{
    DEATH_MS, Lab, PATIENCE, Tab, TabKind, claude_is_ready, product_binary,
};
use purplemux_lab::tmux::{Pane, run};
use serde_json::Value;

/// As in `real.rs`.
const QUIET: Duration = Duration::from_millis(1500);

/// One look of the safety net with up to ten tabs.
const TICK_MS: f64 = 30_000.0;

/// From the start or end of a process to its presence.
const PRESENCE_MS: f64 = 1500.0;

/// The socket of the product's own tmux server.
fn socket(lab: &Lab) -> Result<PathBuf> {
    let folders = fs::read_dir(lab.home().root())?.flatten();
    let folder = folders
        .map(|entry| entry.path())
        .find(|path| {
            path.file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with("tmux-"))
        })
        .context("a folder of sockets")?;
    let mut sockets = fs::read_dir(folder)?.flatten().map(|entry| entry.path());
    sockets.next().context("a socket")
}

fn items(lab: &Lab) -> Result<Vec<Value>> {
    Ok(serde_json::from_str(&lab.run(&["status", "--json"])?)?)
}

/// Waits until a row fits.
fn shows(lab: &Lab, what: &str, fits: impl Fn(&Value) -> bool) -> Result<Value> {
    let found = || items(lab).ok()?.into_iter().find(|item| fits(item));
    until(PATIENCE, found).with_context(|| format!("no row is {what}: {:?}", items(lab)))
}

fn of_tab<'t>(tab: &'t Tab<'_>) -> impl Fn(&Value) -> bool + use<'t> {
    |item| item["id"] == tab.id.as_str()
}

/// A session of the person's own on our server, in whose shell a Claude has been started by hand; its row.
fn their_claude(lab: &Lab, name: &str, dir: &Path) -> Result<(Pane, Value)> {
    let socket = socket(lab)?;
    let dir = dir.to_str().context("the path is UTF-8")?;
    let made = run(
        &socket,
        &[
            "new-session",
            "-d",
            "-P",
            "-F",
            "#{session_name}",
            "-s",
            name,
            "-x",
            "100",
            "-y",
            "30",
            "-c",
            dir,
            "bash",
            "-l",
        ],
    )?;
    // tmux has no dots in its names.
    let name = made.trim_end_matches('\n');
    let pane = Pane::new(&socket, name);
    pane.text("claude")?;
    pane.keys(&["Enter"])?;
    pane.wait("Claude's prompt", PATIENCE, claude_is_ready)?;
    let row = shows(lab, "its idle tab", |item| {
        item["foreign"] == true && item["cwd"] == dir && item["state"] == "idle"
    })?;
    Ok((pane, row))
}

#[test]
fn x02_a_new_server_with_the_same_names_is_another() -> Result<()> {
    let lab = Lab::start("x02")?;
    let mut tab = lab.tab(TabKind::Claude)?;
    tab.ready()?;
    tab.warm_up()?;
    let socket = socket(&lab)?;
    let notes = lab.home().root().join("notes");
    let at_ns = wall_ns();
    run(&socket, &["kill-server"])?;
    // The first still answers while it is ending.
    let take_notes = format!("exec cat > {}", notes.display());
    let new = [
        "new-session",
        "-d",
        "-s",
        &tab.id,
        "-x",
        "70",
        "-y",
        "20",
        &take_notes,
    ];
    until(PATIENCE, || run(&socket, &new).ok()).context("the new server")?;
    let lines = tab.expect_unmeasured(&["none"])?;
    // Claude says its farewells in this time as well.
    lab.note("kill-server to none shown", DEATH_MS, at_ns, lines[0].at_ns);
    tab.wait_item("its end", |item| item["shell"] == "ended")?;

    let theirs = shows(&lab, "theirs", |item| item["foreign"] == true)?;
    ensure!(
        theirs["id"] != tab.id.as_str() && theirs["title"] == tab.id.as_str(),
        "{theirs}"
    );
    ensure!(
        lab.run(&["tab", "send", &tab.id, "by mistake"]).is_err(),
        "it took the text"
    );
    tab.stays(QUIET)?;
    ensure!(
        fs::read_to_string(&notes)?.is_empty(),
        "a key reached the new one"
    );
    let target = format!("={}:", tab.id);
    let size = [
        "display-message",
        "-p",
        "-t",
        &target,
        "#{window_width}x#{window_height}",
    ];
    ensure!(
        run(&socket, &size)?.trim() == "70x20",
        "a size reached the new one"
    );

    // The tab's own place is had again, and theirs is still theirs.
    lab.run(&["tab", "reopen", &tab.id])?;
    tab.wait_item("its shell", |item| item["shell"] == "running")?;
    lab.run(&["tab", "send", &tab.id, "claude"])?;
    tab.expect_unmeasured(&["idle"])?;
    ensure!(
        fs::read_to_string(&notes)?.is_empty(),
        "a key reached the new one"
    );
    run(&socket, &["has-session", "-t", &format!("={}", tab.id)])?;
    Ok(())
}

#[test]
fn x03_a_dead_pane_is_marked_and_shows_no_badge() -> Result<()> {
    let lab = Lab::start("x03")?;
    let mut tab = lab.tab(TabKind::Terminal)?;
    tab.shell_ready()?;
    tab.enter("tmux set-option -w remain-on-exit on")?;
    tab.fresh_shell()?;
    // Claude is the pane's own process.
    tab.enter("exec ~/.local/bin/claude")?;
    tab.ready()?;
    ensure!(
        tab.pane.pid()? == i32::try_from(tab.agent()?)?,
        "it is not the pane's own"
    );
    tab.warm_up()?;
    tab.enter("/exit")?;
    tab.expect_unmeasured(&["none"])?;
    tab.wait_item("a dead pane", |item| item["shell"] == "dead")?;
    tab.stays(QUIET)?;
    ensure!(
        lab.run(&["tab", "send", &tab.id, "to nobody"]).is_err(),
        "it took the text"
    );
    lab.run(&["tab", "reopen", &tab.id])?;
    tab.wait_item("its shell", |item| item["shell"] == "running")?;
    tab.shell_ready()
}

#[test]
fn x04_sessions_with_names_alike_are_told_apart() -> Result<()> {
    let lab = Lab::start("x04")?;
    // tmux runs from here on.
    let own = lab.tab(TabKind::Terminal)?;
    own.shell_ready()?;
    let (app, first) = their_claude(&lab, "app", &lab.home().project(2))?;
    let (_app2, second) = their_claude(&lab, "app2", &lab.home().project(3))?;
    let (_odd, third) = their_claude(&lab, "=a.b $1 漢", &lab.home().project(4))?;
    let id = |row: &Value| row["id"].as_str().map(str::to_owned).context("an id");
    let (first, second, third) = (id(&first)?, id(&second)?, id(&third)?);
    let state = |id: &str, state: &str| {
        shows(&lab, &format!("{id} {state}"), |item| {
            item["id"] == id && item["state"] == state
        })
    };

    for (to, others) in [(&first, [&second, &third]), (&third, [&second, &third])] {
        lab.run(&["tab", "send", to, "say only here"])?;
        state(to, "review")?;
        for other in others.into_iter().filter(|other| *other != to) {
            state(other, "idle")?;
        }
    }
    let asked = lab.fake().requests();
    let asked = asked
        .iter()
        .filter(|request| request.prompt == "say only here");
    ensure!(asked.count() == 2, "one prompt each");

    // Closed here, `app` is hidden; its Claude and its namesakes live on.
    lab.run(&["tab", "close", &first])?;
    let gone = || {
        items(&lab)
            .ok()?
            .iter()
            .all(|item| item["id"] != first.as_str())
            .then_some(())
    };
    until(PATIENCE, gone).context("it is still a tab")?;
    ensure!(
        claude_is_ready(&app.screen()?),
        "its Claude ended: {}",
        app.screen()?
    );
    state(&second, "idle")?;
    lab.run(&["tab", "send", &second, "say still here"])?;
    state(&second, "review")?;
    // Closing ours ends ours alone.
    lab.run(&["tab", "close", &own.id])?;
    let names = run(&socket(&lab)?, &["list-sessions", "-F", "#{session_name}"])?;
    for name in ["app", "app2", "=a_b $1 漢"] {
        ensure!(
            names.lines().any(|line| line == name),
            "{name} has ended: {names}"
        );
    }
    ensure!(!names.contains(&own.id), "ours lives: {names}");
    Ok(())
}

#[test]
fn x07_what_a_person_does_with_tmux_inside_a_tab() -> Result<()> {
    let lab = Lab::start("x07")?;
    let mut tab = lab.tab(TabKind::Terminal)?;
    tab.shell_ready()?;
    // Another session becomes a tab.
    tab.enter("tmux new-session -d -s mine")?;
    let mine = shows(&lab, "their session", |item| item["foreign"] == true)?;
    ensure!(
        mine["title"] == "mine" && mine["tab"] == mine["id"],
        "{mine}"
    );

    // Another pane is a second agent of the tab.
    tab.fresh_shell()?;
    tab.enter("tmux split-window -d -l 10 ~/.local/bin/claude")?;
    let first = tab.expect_unmeasured(&["idle"])?[0].clone();
    let pid = first.pid().context("its agent")?;
    tab.fresh_shell()?;
    tab.enter("claude")?;
    let rows = until(PATIENCE, || {
        let rows: Vec<Value> = items(&lab).ok()?;
        let rows: Vec<Value> = rows
            .into_iter()
            .filter(|item| item["tab"] == tab.id.as_str())
            .collect();
        (rows.len() == 2 && rows.iter().all(|item| item["state"] == "idle")).then_some(rows)
    });
    let rows = rows.with_context(|| format!("not two agents: {:?}", items(&lab)))?;
    let second = rows
        .iter()
        .find(|item| item["id"] != tab.id.as_str())
        .context("the second")?;
    ensure!(second["pid"] != pid, "the tab's own is the elder: {rows:?}");
    // A turn in one moves the other not at all.
    let target = format!("={}:.1", tab.id);
    run(
        &socket(&lab)?,
        &["send-keys", "-t", &target, "-l", "say in the other pane"],
    )?;
    until(PATIENCE, || {
        let screen = run(&socket(&lab).ok()?, &["capture-pane", "-p", "-t", &target]).ok()?;
        screen.contains("say in the other pane").then_some(())
    })
    .context("typed")?;
    run(&socket(&lab)?, &["send-keys", "-t", &target, "Enter"])?;
    shows(&lab, "in review", |item| {
        item["pid"] == pid && item["state"] == "review"
    })?;
    shows(&lab, "idle", |item| {
        item["id"] == second["id"] && item["state"] == "idle"
    })?;

    // Everything ends at once, and each tab can be had again where it was.
    let at_ns = wall_ns();
    run(&socket(&lab)?, &["kill-server"])?;
    let own = of_tab(&tab);
    shows(&lab, "an ended tab", |item| {
        own(item) && item["shell"] == "ended" && item["state"].is_null()
    })?;
    lab.note(
        "kill-server to ended and none shown",
        DEATH_MS,
        at_ns,
        wall_ns(),
    );
    shows(&lab, "their ended tab", |item| {
        item["id"] == mine["id"] && item["shell"] == "ended"
    })?;
    ensure!(
        items(&lab)?.len() == 2,
        "no row too many: {:?}",
        items(&lab)?
    );
    lab.run(&["tab", "reopen", &tab.id])?;
    tab.wait_item("its shell", |item| item["shell"] == "running")?;
    tab.shell_ready()?;
    tab.enter("pwd")?;
    tab.pane
        .wait_for(tab.dir.to_str().context("the path is UTF-8")?, PATIENCE)?;
    let pane = tab.pane.clone();
    pane.text("claude")?;
    pane.keys(&["Enter"])?;
    shows(&lab, "idle again", |item| {
        own(item) && item["state"] == "idle" && item["pid"] != pid
    })?;
    Ok(())
}

#[test]
fn y04_ports_program_and_directory_are_right_within_a_tick() -> Result<()> {
    let lab = Lab::start("y04")?;
    let tab = lab.tab(TabKind::Terminal)?;
    tab.shell_ready()?;
    // Any program that listens; this one writes down on which port.
    let listens = lab.home().root().join("listens");
    let serve = format!(
        "{} serve --home {} --port 0",
        product_binary()?.display(),
        listens.display()
    );
    let at_ns = tab.enter(&serve)?;
    let port = || {
        fs::read_to_string(listens.join("port"))
            .ok()?
            .trim()
            .parse::<u16>()
            .ok()
    };
    let port = until(PATIENCE, port).context("it listens")?;
    let on = |item: &Value| item["ports"] == serde_json::json!([port]);
    tab.wait_item("its port", on)?;
    lab.latency("port shown", TICK_MS, at_ns, wall_ns())?;

    // It ends, and another takes its place elsewhere, while the control client is down.
    let socket = socket(&lab)?;
    let client = run(
        &socket,
        &["list-clients", "-F", "#{client_control_mode} #{client_pid}"],
    )?;
    let client = client
        .lines()
        .find_map(|line| line.strip_prefix("1 "))
        .context("a control client")?;
    let client = rustix::process::Pid::from_raw(client.parse()?).context("a pid")?;
    rustix::process::kill_process(client, rustix::process::Signal::KILL)?;
    tab.press(&["C-c"])?;
    tab.fresh_shell()?;
    let at_ns = tab.enter("cd / && exec sleep 600")?;
    tab.wait_item("no port, another program in another directory", |item| {
        item["ports"] == serde_json::json!([]) && item["cwd"] == "/" && item["title"] == "sleep"
    })?;
    lab.latency(
        "program, directory and no port shown",
        TICK_MS,
        at_ns,
        wall_ns(),
    )?;
    ensure!(
        tab.item().context("an item")?["state"].is_null(),
        "a badge without an agent"
    );
    Ok(())
}

/// `GET /api/check-claude?tab=` over the product's own socket.
fn check_claude(lab: &Lab, tab: &str) -> Result<Value> {
    let mut stream = UnixStream::connect(lab.home().product().join("purplemux.sock"))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let request = format!(
        "GET /api/check-claude?tab={tab} HTTP/1.1\r\nhost: purplemux\r\nconnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (_, body) = answer.split_once("\r\n\r\n").context("an answer")?;
    Ok(serde_json::from_str(body)?)
}

#[test]
fn y07_a_program_that_starts_and_ends_claude_shows_in_its_presence() -> Result<()> {
    let lab = Lab::start("y07")?;
    let mut tab = lab.tab(TabKind::Terminal)?;
    tab.shell_ready()?;
    ensure!(
        check_claude(&lab, &tab.id)?["running"] == false,
        "nothing runs"
    );
    // The pane's own command is the script's shell all the while.
    let script = lab.home().dir().join("script.sh");
    fs::write(&script, "~/.local/bin/claude\necho over\nread -r line\n")?;
    let at_ns = tab.enter(&format!("sh {}", script.display()))?;
    tab.wait_item("its presence", |item| {
        item["presence"] == "starting" || item["presence"] == "running"
    })?;
    // The start of the program is in it.
    lab.latency("presence after the start", PRESENCE_MS, at_ns, wall_ns())?;
    tab.ready()?;
    let asked = check_claude(&lab, &tab.id)?;
    ensure!(
        asked["installed"] == true && asked["running"] == true && asked["pid"] == tab.agent()?,
        "{asked}"
    );
    tab.warm_up()?;
    tab.prompt("slow 3 one two three four")?;
    // Asking moves no badge, however often.
    for _ in 0..20 {
        ensure!(check_claude(&lab, &tab.id)?["running"] == true, "it runs");
    }
    tab.expect(&["review(finished)"])?;
    for _ in 0..20 {
        ensure!(check_claude(&lab, &tab.id)?["running"] == true, "it runs");
    }
    tab.stays(QUIET)?;
    tab.enter("/exit")?;
    tab.pane.wait_for("over", PATIENCE)?;
    let at_ns = wall_ns();
    tab.expect_unmeasured(&["none"])?;
    let gone = |item: &Value| item["presence"] == "gone" || item["presence"] == "none";
    tab.wait_item("its end", gone)?;
    lab.latency("presence after the end", PRESENCE_MS, at_ns, wall_ns())?;
    ensure!(
        check_claude(&lab, &tab.id)?["running"] == false,
        "it has ended"
    );
    tab.stays(QUIET)
}
