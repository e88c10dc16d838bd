//! The lab itself: the real Claude Code in a plain tmux, without purplemux. When this fails, no other test of kind
//! *real* says anything.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, in its helpers too, and starts what it tests"
)]

use std::process::Command;
use std::time::Duration;

use purplemux_lab::clock::until;
use purplemux_lab::fake::Fake;
use purplemux_lab::home::Home;
use purplemux_lab::product::{PATIENCE, claude_is_ready};
use purplemux_lab::sessions::{Sessions, Write};
use purplemux_lab::tmux::Pane;

/// A tmux server of its own with one login shell in it.
struct Bare {
    pane: Pane,
    sessions: Sessions,
    fake: Fake,
    /// Ends all of it when dropped.
    _home: Home,
}

impl Bare {
    fn start() -> Self {
        let fake = Fake::start(None).unwrap();
        let home = Home::new(&fake.url()).unwrap();
        let sessions = Sessions::watch(&home.sessions()).unwrap();
        let socket = home.root().join("tmux.sock");
        let started = Command::new("tmux")
            .env_clear()
            .envs(home.env())
            .arg("-S")
            .arg(&socket)
            .args([
                "-f",
                "/dev/null",
                "new-session",
                "-d",
                "-s",
                "lab",
                "-x",
                "110",
                "-y",
                "36",
                "-c",
            ])
            .arg(home.project(1))
            .args(["bash", "-l"])
            .status()
            .unwrap();
        assert!(started.success());
        let pane = Pane::new(&socket, "lab");
        Self {
            pane,
            sessions,
            fake,
            _home: home,
        }
    }

    fn enter(&self, line: &str) {
        self.pane.text(line).unwrap();
        self.pane.wait_for(line, PATIENCE).unwrap();
        self.pane.keys(&["Enter"]).unwrap();
    }

    /// The statuses written so far, each with what is waited for.
    fn story(&self) -> Vec<String> {
        let pids = self.sessions.pids();
        let writes = pids.iter().flat_map(|pid| self.sessions.of(*pid));
        let mut story: Vec<String> = writes
            .filter_map(|write| {
                let status = write.status()?;
                Some(
                    [status, write.waiting_for().unwrap_or_default()]
                        .join(" ")
                        .trim()
                        .to_owned(),
                )
            })
            .collect();
        story.dedup();
        story
    }

    fn wait(&self, story: &[&str]) {
        let found = until(PATIENCE, || (self.story() == story).then_some(()));
        assert!(
            found.is_some(),
            "{:?}, not {story:?}; the screen:\n{}",
            self.story(),
            self.pane.screen().unwrap()
        );
    }
}

#[test]
fn the_real_claude_follows_the_fake_s_script_and_no_dialog_blocks_it() {
    let lab = Bare::start();
    lab.pane
        .wait("a prompt", PATIENCE, |screen| screen.contains("lab"))
        .unwrap();
    lab.enter("claude");
    lab.wait(&["idle"]);
    lab.pane
        .wait("Claude's prompt", PATIENCE, claude_is_ready)
        .unwrap();
    lab.enter("bash: touch a.txt ;; say finished");
    lab.wait(&["idle", "busy", "waiting permission prompt"]);
    lab.pane.wait_for("Do you want to", PATIENCE).unwrap();
    let answered = || {
        lab.story()
            .last()
            .is_some_and(|status| status != "waiting permission prompt")
    };
    lab.pane
        .press_until(&["Enter"], "an end of the dialog", answered)
        .unwrap();
    lab.wait(&["idle", "busy", "waiting permission prompt", "busy", "idle"]);
    let steps: Vec<usize> = lab
        .fake
        .requests()
        .iter()
        .filter(|request| request.kind == "main")
        .map(|request| request.step)
        .collect();
    assert_eq!(steps, [0, 1]);
    assert!(
        lab.sessions
            .wait(Duration::ZERO, |write: &Write| write.value.is_none())
            .is_none(),
        "it lives"
    );
}
