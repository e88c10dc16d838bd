//! The real Claude Code in two versions, the pinned one and one from before it wrote its status into its file:
//! there hooks and transcript decide. `make versions` runs the same course with more of them.

use anyhow::{Result, ensure};
use purplemux_lab::course;
use purplemux_lab::home::Claude;

#[test]
fn k05_the_pinned_version_takes_our_hooks_and_is_shown_right() -> Result<()> {
    let claude = Claude::pinned()?;
    ensure!(claude.has_status());
    let report = course::run("k05 pinned", &claude)?;
    ensure!(report.registered == 17, "{report:?}");
    Ok(())
}

#[test]
fn k05_q14_a_version_without_status_takes_our_hooks_and_is_shown_right() -> Result<()> {
    let claude = Claude::without_status()?;
    ensure!(!claude.has_status());
    course::run("k05 without status", &claude)?;
    Ok(())
}
