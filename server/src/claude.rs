//! Whether Claude Code is on this machine: its program, as the person's login shell would find it, and its
//! directory. Decides what the page shows while there is no session yet, and nothing about any session.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde::Serialize;
use tokio::sync::{mpsc, oneshot, watch};
use tracing::{debug, info};

use crate::hooks::version;
use crate::ingest::default_claude_dirs;
use crate::ingest::watch::{Seen, Watch};
use crate::tmux::environment;
use crate::{clock, task};

/// Start-up files of a person's may take seconds; more than this is not waited for.
const SHELL: Duration = Duration::from_secs(5);
/// An installer makes many files at once; they are looked at together.
const SETTLES: Duration = Duration::from_millis(200);
/// People who ask again; more than that ask the same.
const QUEUE: usize = 8;

/// What there is of Claude Code.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Found {
    /// The program that `claude` would start.
    pub program: Option<PathBuf>,
    /// Claude's own directory, which its first start makes.
    pub directory: Option<PathBuf>,
}

impl Found {
    /// Either is there.
    #[must_use]
    pub fn installed(&self) -> bool {
        self.program.is_some() || self.directory.is_some()
    }

    /// It has been started once, so its directory is there.
    #[must_use]
    pub fn started(&self) -> bool {
        self.directory.is_some()
    }
}

/// A way to the answer. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Handle {
    found: watch::Receiver<Found>,
    again: mpsc::Sender<oneshot::Sender<Found>>,
}

impl Handle {
    /// Begins to look, and goes on by watching until Claude Code has been started once.
    #[must_use]
    pub fn start() -> Self {
        let (publish, found) = watch::channel(quick());
        let (again, asked) = mpsc::channel(QUEUE);
        task::spawn("looking for Claude Code", follow(publish, asked));
        Self { found, again }
    }

    /// As it was last seen; kept up to date by a watch.
    #[must_use]
    pub fn found(&self) -> Found {
        self.found.borrow().clone()
    }

    /// Looks anew, the login shell included.
    pub async fn look(&self) -> Found {
        let (answer, answered) = oneshot::channel();
        if self.again.send(answer).await.is_err() {
            return self.found();
        }
        // An error means that the server is stopping.
        answered.await.unwrap_or_else(|_| self.found())
    }
}

async fn follow(publish: watch::Sender<Found>, mut asked: mpsc::Receiver<oneshot::Sender<Found>>) {
    let (mut watch, mut seen) = Watch::new();
    let mut watched: Vec<PathBuf> = Vec::new();
    let mut ask_shell = true;
    let mut watching = true;
    let mut waiting: Vec<oneshot::Sender<Found>> = Vec::new();
    loop {
        // First the watches, then the look: what appears meanwhile is not missed.
        let parents = if publish.borrow().started() {
            Vec::new()
        } else {
            parents()
        };
        for gone in watched.iter().filter(|dir| !parents.contains(dir)) {
            watch.remove(gone);
        }
        for dir in parents.iter().filter(|dir| !watched.contains(dir)) {
            if let Err(why) = watch.add(dir) {
                debug!("{}: {why}", dir.display());
            }
        }
        watched = parents;
        let mut found = quick();
        if found.program.is_none() && ask_shell {
            found.program = by_shell().await;
        } else if found.program.is_none() {
            // The shell's answer holds until it is asked again, or the program has gone.
            let before = publish.borrow().program.clone();
            found.program = before.filter(|program| version::is_executable(program));
        }
        ask_shell = false;
        publish.send_if_modified(|shown| {
            let changed = *shown != found;
            if changed {
                info!(?found, "Claude Code");
                shown.clone_from(&found);
            }
            changed
        });
        for answer in waiting.drain(..) {
            task::answer(answer, found.clone());
        }
        tokio::select! {
            answer = asked.recv() => match answer {
                Some(answer) => {
                    waiting.push(answer);
                    ask_shell = true;
                }
                None => return,
            },
            event = seen.recv(), if watching => match event {
                Some(event) => {
                    ask_shell = names_claude(&event);
                    clock::passed(SETTLES).await;
                    while let Ok(event) = seen.try_recv() {
                        ask_shell |= names_claude(&event);
                    }
                }
                None => watching = false,
            },
        }
    }
}

fn names_claude(event: &Seen) -> bool {
    match event {
        Seen::Made(path) | Seen::Written(path) => path.ends_with("claude"),
        Seen::Grew(_) | Seen::Removed(_) => false,
        Seen::Overflow => true,
    }
}

/// What can be seen without starting anything.
#[must_use]
pub fn quick() -> Found {
    let dirs = default_claude_dirs();
    Found {
        program: version::find_on_path("claude", &path(), None),
        directory: dirs.into_iter().find(|dir| dir.is_dir()),
    }
}

/// Our own PATH, and where Claude's installers put it although a login shell's PATH may not say so yet.
fn path() -> OsString {
    let own = std::env::var_os("PATH").unwrap_or_default();
    let dirs = std::env::split_paths(&own).chain(installers());
    std::env::join_paths(dirs).unwrap_or(own)
}

fn installers() -> Vec<PathBuf> {
    let home = std::env::home_dir();
    let below = |dir: &str| Some(home.as_ref()?.join(dir));
    [".local/bin", ".claude/local"]
        .into_iter()
        .filter_map(below)
        .collect()
}

/// The directories in which Claude Code may appear: those of the PATH, and the nearest above each of those
/// that do not exist yet.
fn parents() -> Vec<PathBuf> {
    let (dirs, path) = (default_claude_dirs(), path());
    let wanted = std::env::split_paths(&path)
        .filter(|dir| dir.is_absolute())
        .chain(dirs.iter().filter_map(|dir| Some(dir.parent()?.to_owned())));
    let mut parents: Vec<PathBuf> = wanted
        .filter_map(|dir| {
            dir.ancestors()
                .find(|above| above.is_dir())
                .map(Path::to_owned)
        })
        .collect();
    parents.sort();
    parents.dedup();
    parents
}

/// Asks the person's login shell, whose start-up files may add to the PATH.
#[expect(
    clippy::disallowed_methods,
    reason = "only a shell knows what its start-up files make of the PATH; asked once per start and when the person asks again"
)]
pub async fn by_shell() -> Option<PathBuf> {
    let mut command = tokio::process::Command::new(environment::shell());
    command
        .args(["-i", "-l", "-c", "command -v claude"])
        .env_clear()
        .envs(environment::clean())
        // Without a terminal an interactive shell must not take ours for its own.
        .process_group(0)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    let output = tokio::time::timeout(SHELL, command.output())
        .await
        .ok()?
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    // Start-up files may print as well. An alias or a function is no path; what it starts is one.
    text.lines()
        .rev()
        .map(|line| PathBuf::from(line.trim()))
        .find(|path| path.is_absolute() && version::is_executable(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_exist_is_awaited_above() {
        for dir in parents() {
            assert!(dir.is_absolute() && dir.is_dir(), "{}", dir.display());
        }
    }

    #[test]
    fn only_what_is_called_claude_is_worth_asking_the_shell() {
        assert!(names_claude(&Seen::Made("/usr/local/bin/claude".into())));
        assert!(!names_claude(&Seen::Made("/home/me/.bash_history".into())));
        assert!(!names_claude(&Seen::Removed(
            "/usr/local/bin/claude".into()
        )));
    }
}
