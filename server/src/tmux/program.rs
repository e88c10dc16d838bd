//! Which tmux is installed, beside the one that runs: an update puts another program in place, and the server goes
//! on with the old one until it is restarted, which ends every tab. Says so; decides and changes nothing.
//!
//! The program is run only when its file has changed, so that nothing is started while nothing happens.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use purplemux_wire::sentence::Cause;
use tokio::process::Command;
use tokio::sync::{Notify, watch};
use tracing::debug;

use crate::hooks::version::find_on_path;
use crate::tmux::{Listing, Place};

/// A program that does not even say its version in this time is being replaced just now.
const ANSWER: Duration = Duration::from_secs(5);

/// What tells one file from another that took its place: path, inode, size, change in ns.
type Mark = (PathBuf, u64, u64, i64);

/// Compares whenever tmux has been started or `look` rings, and says how it is.
pub async fn watch(
    place: Arc<Place>,
    mut listing: watch::Receiver<Arc<Listing>>,
    look: Arc<Notify>,
    say: watch::Sender<Option<Cause>>,
) {
    let mut known: Option<(Mark, Option<String>)> = None;
    let mut running: Option<String> = None;
    loop {
        let now = find(&place).and_then(|program| Some((mark(&program)?, program)));
        match now {
            Some((mark, program)) if known.as_ref().is_none_or(|(old, _)| *old != mark) => {
                known = Some((mark, version(&place, &program).await));
            }
            Some(_) => {}
            // It is being replaced, or gone for good; what runs goes on either way.
            None => known = None,
        }
        let installed = known.as_ref().and_then(|(_, version)| version.as_deref());
        let sentence = match (&running, installed) {
            (Some(running), Some(installed)) => outdated(running, installed),
            _ => None,
        };
        say.send_if_modified(|said| {
            let changed = *said != sentence;
            *said = sentence;
            changed
        });
        loop {
            tokio::select! {
                changed = listing.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    let listing = listing.borrow_and_update();
                    let version = listing.run.as_ref().map(|run| run.version.clone());
                    if version != running {
                        running = version;
                        break;
                    }
                }
                () = look.notified() => break,
            }
        }
    }
}

/// What to say if the two differ.
fn outdated(running: &str, installed: &str) -> Option<Cause> {
    (running != installed).then(|| Cause::TmuxOutdated {
        installed: installed.to_owned(),
        running: running.to_owned(),
    })
}

fn find(place: &Place) -> Option<PathBuf> {
    let mut environment = place.environment.iter();
    let (_, path) = environment.find(|(name, _)| name == "PATH")?;
    find_on_path("tmux", path, None)
}

fn mark(program: &Path) -> Option<Mark> {
    let meta = std::fs::metadata(program).ok()?;
    let changed = meta.mtime() * 1_000_000_000 + meta.mtime_nsec();
    Some((program.to_owned(), meta.ino(), meta.size(), changed))
}

#[expect(
    clippy::disallowed_methods,
    reason = "the version of a program that is not the running one can't be had over the control client"
)]
async fn version(place: &Place, program: &Path) -> Option<String> {
    let output = Command::new(program)
        .arg("-V")
        .env_clear()
        .envs(place.environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = match tokio::time::timeout(ANSWER, output).await {
        Ok(Ok(output)) => output,
        Ok(Err(error)) => {
            debug!("{}: {error}", program.display());
            return None;
        }
        Err(_) => return None,
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let version = text.trim().strip_prefix("tmux ")?;
    (!version.is_empty()).then(|| version.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x08_two_versions_are_told_apart() {
        assert_eq!(outdated("3.3a", "3.3a"), None);
        let said = outdated("3.3a", "3.5").unwrap().to_string();
        assert!(said.contains("tabs end when tmux is restarted"), "{said}");
        assert!(said.contains("3.5 is installed") && said.contains("3.3a still runs"));
    }
}
