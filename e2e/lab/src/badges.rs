//! What the product shows, as a program sees it: the lines of `purplemux status --watch --json`, each with the
//! moment it arrived, and the words in which the tests speak of badges.
//!
//! Must never conclude anything: a badge is what the line says.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use serde_json::Value;

use crate::clock::wall_ns;

/// One line.
#[derive(Clone, Debug)]
pub struct Line {
    /// When it had arrived here, unix ns.
    pub at_ns: i64,
    /// The item, with `ts_ms`.
    pub item: Value,
}

impl Line {
    /// The tab it speaks of.
    pub fn tab(&self) -> Option<&str> {
        self.item["tab"].as_str()
    }

    /// The agent's process.
    pub fn pid(&self) -> Option<u32> {
        self.item["pid"]
            .as_u64()
            .and_then(|pid| u32::try_from(pid).ok())
    }

    /// The badge with the detail that makes it right or wrong: `none`, `idle`, `busy`, `unknown`,
    /// `needs-input(permission)`, `review(finished)`.
    pub fn badge(&self) -> String {
        let detail = &self.item["detail"];
        let inside = match self.item["state"].as_str() {
            None => return "none".to_owned(),
            Some("needs-input") => &detail["ask"]["kind"],
            Some("review") => &detail["outcome"],
            Some(state) => return state.to_owned(),
        };
        format!(
            "{}({})",
            self.item["state"].as_str().unwrap_or_default(),
            inside.as_str().unwrap_or("?")
        )
    }
}

/// Follows the lines until dropped.
pub struct Badges {
    shared: Arc<Shared>,
    follower: Mutex<Option<Follower>>,
}

/// The process that prints the lines, and the thread that reads them.
struct Follower {
    child: Child,
    thread: thread::JoinHandle<()>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    grown: Condvar,
}

#[derive(Default)]
struct State {
    lines: Vec<Line>,
    ended: Option<String>,
}

impl Badges {
    /// Starts `command`, which prints one JSON item per line.
    pub fn follow(command: &mut Command) -> anyhow::Result<Self> {
        let badges = Self {
            shared: Arc::default(),
            follower: Mutex::default(),
        };
        badges.go_on(command)?;
        Ok(badges)
    }

    /// Goes on with the lines of this `command`, after those of the one before: its server was started anew.
    pub fn go_on(&self, command: &mut Command) -> anyhow::Result<()> {
        let mut follower = self.follower.lock().expect("no holder panics");
        if let Some(before) = follower.take() {
            before.end();
        }
        self.shared.lock().ended = None;
        *follower = Some(Follower::start(command, Arc::clone(&self.shared))?);
        Ok(())
    }

    /// The lines of a tab, without the first `from` of them.
    pub fn lines(&self, tab: &str, from: usize) -> Vec<Line> {
        of_tab(&self.shared.lock().lines, tab, from)
    }

    /// Looks at the lines of `tab` without the first `from`, now and whenever one arrives, until `verdict` gives a
    /// value; `None` after `deadline`.
    pub fn wait<T>(
        &self,
        tab: &str,
        from: usize,
        deadline: Duration,
        mut verdict: impl FnMut(&[Line]) -> Option<T>,
    ) -> anyhow::Result<Option<T>> {
        let end = Instant::now() + deadline;
        let mut state = self.shared.lock();
        loop {
            if let Some(found) = verdict(&of_tab(&state.lines, tab, from)) {
                return Ok(Some(found));
            }
            if let Some(why) = &state.ended {
                bail!("{why}");
            }
            let Some(left) = end.checked_duration_since(Instant::now()) else {
                return Ok(None);
            };
            state = self
                .shared
                .grown
                .wait_timeout(state, left)
                .expect("no holder of the lines panics")
                .0;
        }
    }
}

impl Follower {
    fn start(command: &mut Command, state: Arc<Shared>) -> anyhow::Result<Self> {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("start status --watch")?;
        let stdout = child.stdout.take().expect("it is piped");
        let thread = thread::Builder::new()
            .name("badges".into())
            .spawn(move || {
                for line in BufReader::new(stdout).lines() {
                    let at_ns = wall_ns();
                    let parsed = line.context("read a line").and_then(|line| {
                        serde_json::from_str(&line).with_context(|| format!("not an item: {line}"))
                    });
                    match parsed {
                        Ok(item) => state.lock().lines.push(Line { at_ns, item }),
                        Err(why) => state.lock().ended = Some(format!("{why:#}")),
                    }
                    state.grown.notify_all();
                }
                state
                    .lock()
                    .ended
                    .get_or_insert_with(|| "status --watch has ended".to_owned());
                state.grown.notify_all();
            })?;
        Ok(Self { child, thread })
    }

    fn end(mut self) {
        // Both fail only when it has ended by itself, which is what is wanted.
        drop(self.child.kill());
        drop(self.child.wait());
        drop(self.thread.join());
    }
}

impl Drop for Badges {
    fn drop(&mut self) {
        let follower = self.follower.get_mut().expect("no holder panics");
        if let Some(follower) = follower.take() {
            follower.end();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder of the lines panics")
    }
}

fn of_tab(lines: &[Line], tab: &str, from: usize) -> Vec<Line> {
    lines
        .iter()
        .filter(|line| line.tab() == Some(tab))
        .skip(from)
        .cloned()
        .collect()
}

/// The lines at which the badge changed, `before` being the one shown until then.
pub fn changes(lines: &[Line], before: Option<&str>) -> Vec<Line> {
    let mut shown = before.map(str::to_owned);
    let mut changes = Vec::new();
    for line in lines {
        let badge = line.badge();
        if shown.as_ref() != Some(&badge) {
            changes.push(line.clone());
            shown = Some(badge);
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn line(item: Value) -> Line {
        Line { at_ns: 0, item }
    }

    #[test]
    fn a_badge_carries_what_makes_it_right() {
        assert_eq!(line(json!({"state": null, "detail": {}})).badge(), "none");
        assert_eq!(
            line(json!({"state": "busy", "detail": {"doing": "tool"}})).badge(),
            "busy"
        );
        let ask = json!({"state": "needs-input", "detail": {"ask": {"kind": "plan"}}});
        assert_eq!(line(ask).badge(), "needs-input(plan)");
        assert_eq!(
            line(json!({"state": "review", "detail": {"outcome": "failed"}})).badge(),
            "review(failed)"
        );
        assert_eq!(
            line(json!({"state": "review", "detail": {}})).badge(),
            "review(?)",
            "a missing outcome is a fault"
        );
    }

    #[test]
    fn repeated_lines_are_no_changes() {
        let lines: Vec<Line> = ["idle", "busy", "busy", "idle"]
            .iter()
            .map(|state| line(json!({"state": state, "detail": {}})))
            .collect();
        let seen: Vec<String> = changes(&lines, Some("idle"))
            .iter()
            .map(Line::badge)
            .collect();
        assert_eq!(seen, ["busy", "idle"]);
    }

    #[test]
    fn lines_are_read_as_they_come() {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", r#"echo '{"tab":"t","state":"idle"}'; echo '{"tab":"u","state":"busy"}'; exec sleep 60"#]);
        let badges = Badges::follow(&mut command).unwrap();
        let found = badges
            .wait("u", 0, Duration::from_secs(5), |lines| {
                lines.first().map(Line::badge)
            })
            .unwrap();
        assert_eq!(found.as_deref(), Some("busy"));
        assert_eq!(badges.lines("t", 0).len(), 1);
        assert!(
            badges
                .wait("t", 1, Duration::from_millis(20), |lines| lines
                    .first()
                    .map(Line::badge))
                .unwrap()
                .is_none()
        );
    }
}
