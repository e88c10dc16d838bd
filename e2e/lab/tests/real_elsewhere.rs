//! The real Claude Code outside our tabs, in tmux servers of the person's own: seen, told apart, and left alone.

use anyhow::{Context as _, Result, ensure};
use purplemux_lab::clock::until;
use purplemux_lab::own::Own;
use purplemux_lab::product::{Lab, PATIENCE};
use purplemux_lab::tmux::run;

#[test]
fn n05_two_servers_of_the_person_s_own_with_the_same_names() -> Result<()> {
    let lab = Lab::start("n05")?;
    let one = Own::claude(&lab, 1)?;
    let two = Own::claude(&lab, 2)?;
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
    one.enter("say words from elsewhere")?;
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

#[test]
fn n04_a_row_belongs_to_its_pane_whatever_becomes_of_the_session() -> Result<()> {
    let lab = Lab::start("n04")?;
    let own = Own::claude(&lab, 1)?;
    let before = own.shows(&lab, "idle")?;
    let claude = own.pane.by_id()?;
    run(
        &own.socket,
        &["new-session", "-d", "-s", "other", "sleep 600"],
    )?;
    let turn = |step: &str| -> Result<()> {
        claude.text(&format!("say {step}"))?;
        claude.wait_for(&format!("say {step}"), PATIENCE)?;
        claude.keys(&["Enter"])?;
        let said = || {
            let item = own.item(&lab).ok()??;
            (item["state"] == "review" && item["last_message"] == step).then_some(item)
        };
        let item = until(PATIENCE, said).with_context(|| format!("{:?}", own.item(&lab)))?;
        ensure!(
            item["id"] == before["id"] && item["terminal"] == true,
            "{item}"
        );
        ensure!(lab.rows()?.len() == 1, "{:?}", lab.rows()?);
        Ok(())
    };
    run(&own.socket, &["rename-session", "-t", "=main", "renamed"])?;
    turn("renamed")?;
    claude.tmux("split-window", &["-d", "sleep 600"])?;
    run(&own.socket, &["break-pane", "-d", "-s", claude.target()])?;
    turn("broken out")?;
    run(
        &own.socket,
        &["join-pane", "-d", "-s", claude.target(), "-t", "=other:"],
    )?;
    turn("joined elsewhere")?;
    let session = claude.tmux("display-message", &["-p", "#{session_name}"])?;
    ensure!(session.trim() == "other", "{session}");
    run(&own.socket, &["kill-server"])?;
    Ok(())
}
