//! The real Claude Code outside our tabs, in tmux servers of the person's own: seen, told apart, and left alone.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use purplemux_lab::clock::until;
use purplemux_lab::product::{Lab, PATIENCE, claude_is_ready};
use purplemux_lab::tmux::{Pane, run};
use serde_json::Value;

/// A tmux server with the session `main`, in whose only pane a Claude is ready for a prompt.
struct Own {
    socket: PathBuf,
    pane: Pane,
    dir: PathBuf,
}

impl Own {
    #[expect(
        clippy::disallowed_methods,
        reason = "it is the person who starts this tmux"
    )]
    fn start(lab: &Lab, number: usize) -> Result<Self> {
        let dir = lab.home().project(number);
        let socket = lab.home().root().join(format!("own-{number}.sock"));
        let started = Command::new("tmux")
            .env_clear()
            .envs(lab.home().env())
            .args(["-f", "/dev/null", "-S"])
            .arg(&socket)
            .args([
                "new-session",
                "-d",
                "-s",
                "main",
                "-x",
                "100",
                "-y",
                "30",
                "-c",
            ])
            .arg(&dir)
            .args(["bash", "-l"])
            .status()?;
        ensure!(started.success(), "tmux does not start");
        let pane = Pane::new(&socket, "main");
        pane.text("claude")?;
        pane.keys(&["Enter"])?;
        let screen = || pane.screen().unwrap_or_default();
        until(PATIENCE, || claude_is_ready(&screen()).then_some(()))
            .with_context(|| format!("Claude is not ready:\n{}", screen()))?;
        Ok(Self { socket, pane, dir })
    }

    /// Its row: the one in its directory.
    fn item(&self, lab: &Lab) -> Result<Option<Value>> {
        let items: Vec<Value> = serde_json::from_str(&lab.run(&["status", "--json"])?)?;
        let dir = self.dir.to_str().context("the path is UTF-8")?;
        Ok(items.into_iter().find(|item| item["cwd"] == dir))
    }

    fn shows(&self, lab: &Lab, state: &str) -> Result<Value> {
        let shown = || self.item(lab).ok().flatten();
        until(PATIENCE, || shown().filter(|item| item["state"] == state)).with_context(|| {
            format!(
                "not {state}: {:?}\n{}",
                shown(),
                self.pane.screen().unwrap_or_default()
            )
        })
    }
}

#[test]
fn n05_two_servers_of_the_person_s_own_with_the_same_names() -> Result<()> {
    let lab = Lab::start("n05")?;
    let one = Own::start(&lab, 1)?;
    let two = Own::start(&lab, 2)?;
    for own in [&one, &two] {
        let item = own.shows(&lab, "idle")?;
        ensure!(
            item["tab"].is_null() && item["terminal"] == true && item["hooks"] == false,
            "{item}"
        );
        ensure!(
            run(
                &own.socket,
                &["list-panes", "-a", "-F", "#{session_name} #{pane_id}"]
            )?
            .trim()
                == "main %0",
            "not the same names"
        );
    }

    // A turn in one moves the other's row not at all.
    one.pane.text("say words from elsewhere")?;
    until(PATIENCE, || {
        one.pane
            .screen()
            .ok()?
            .contains("say words from elsewhere")
            .then_some(())
    })
    .context("typed")?;
    one.pane.keys(&["Enter"])?;
    let item = one.shows(&lab, "review")?;
    ensure!(item["detail"]["outcome"] == "finished", "{item}");
    let other = two.shows(&lab, "idle")?;
    ensure!(other["episode"].is_null(), "{other}");

    // Its server ends, and only its row goes.
    run(&one.socket, &["kill-server"])?;
    until(PATIENCE, || one.item(&lab).ok()?.is_none().then_some(())).context("its row goes")?;
    two.shows(&lab, "idle")?;
    run(&two.socket, &["kill-server"])?;
    Ok(())
}
