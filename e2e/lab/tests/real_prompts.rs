//! Prompts sent from the page into the box of the real Claude Code: into an empty one, whole, once; and refused where
//! they would be merged with a draft or typed into a dialog.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use purplemux_lab::answers::Outcome;
use purplemux_lab::clock::until;
use purplemux_lab::product::{Lab, PATIENCE, Tab, TabKind};
use serde_json::json;

/// Nothing more is heard for this long.
const QUIET: Duration = Duration::from_millis(1500);

fn send(lab: &Lab, tab: &Tab<'_>, text: &str) -> Result<Outcome> {
    lab.post(
        &format!("/api/tabs/{}/prompt", tab.id),
        &json!({"text": text}),
    )
}

fn in_box(tab: &Tab<'_>, wanted: &str) -> Result<()> {
    until(PATIENCE, || (tab.in_box()? == wanted).then_some(()))
        .with_context(|| format!("not {wanted:?} in Claude's box:\n{}", tab.screen()))
}

/// Whether Claude was asked this, in one prompt.
fn asked(lab: &Lab, words: &str) -> bool {
    let requests = lab.fake().requests();
    requests
        .iter()
        .any(|request| request.prompt.contains(words))
}

#[test]
fn a08_a_prompt_is_never_merged_with_a_draft_and_two_lines_are_one() -> Result<()> {
    let lab = Lab::start("a08")?;
    let mut tab = lab.tab(TabKind::Claude)?;
    tab.ready()?;
    tab.warm_up()?;

    // Half a thought stands in the box.
    tab.pane.text("half a thought")?;
    in_box(&tab, "half a thought")?;
    let outcome = send(&lab, &tab, "say merged")?;
    let why = outcome.refused().with_context(|| format!("{outcome:?}"))?;
    ensure!(why.contains("typed into Claude's box"), "{why}");
    tab.stays(QUIET)?;
    in_box(&tab, "half a thought")?;
    tab.press(&["C-u"])?;
    in_box(&tab, "")?;

    // Two lines, one of which would choose if it were keys.
    let outcome = send(&lab, &tab, "say first\n1 second")?;
    ensure!(outcome.is_sent(), "{outcome:?}");
    lab.latency("prompt to taken", 4000.0, outcome.from_ns, outcome.to_ns)?;
    tab.settle("review(finished)")?;
    in_box(&tab, "")?;
    ensure!(asked(&lab, "say first\n1 second"), "not as one prompt");
    ensure!(!asked(&lab, "merged"), "what was refused arrived");

    // What is long stands in the box as one mark, and is whole all the same.
    let long = format!("say long\n{}the end", "one more line\n".repeat(40));
    let outcome = send(&lab, &tab, &long)?;
    ensure!(outcome.is_sent(), "{outcome:?}");
    tab.settle("review(finished)")?;
    ensure!(asked(&lab, "one more line\nthe end"), "cut");

    // A dialog is drawn: nothing is typed into it.
    tab.enter("bash: touch a08.txt ;; say after")?;
    tab.settle("needs-input(permission)")?;
    let outcome = send(&lab, &tab, "1")?;
    let why = outcome.refused().with_context(|| format!("{outcome:?}"))?;
    ensure!(why.contains("asks something"), "{why}");
    tab.stays(QUIET)?;
    ensure!(!tab.dir.join("a08.txt").exists(), "the digit was a choice");
    let card = tab.open_card()?;
    ensure!(lab.answer(&card, &json!({"do": "reject"}))?.is_sent());

    // While Claude works, it waits in Claude's own queue.
    tab.settle("idle")?;
    tab.enter("sleep 6 then say slept")?;
    tab.settle("busy")?;
    let outcome = send(&lab, &tab, "say queued")?;
    ensure!(outcome.is_sent(), "{outcome:?}");
    in_box(&tab, "")?;
    until(PATIENCE, || asked(&lab, "say queued").then_some(())).context("it was lost")?;
    Ok(())
}
