//! A real Claude Code that tries, with what we put into its reach, to steer its own session, to type into another one,
//! to close it, to sign in and to be allowed all that. Its tools are the ones that try; the person approves that they run.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use purplemux_lab::clock::until;
use purplemux_lab::product::{Lab, PATIENCE, Tab, TabKind, product_binary};
use serde_json::Value;

/// Waits for the dialog that asks about the tool, and answers it from the person's shell.
fn approve(lab: &Lab, tab: &Tab<'_>) -> Result<()> {
    tab.wait_item("a card that can be answered", |item| {
        let options = &item["detail"]["ask"]["card"]["options"];
        options
            .as_array()
            .is_some_and(|options| !options.is_empty())
    })?;
    let sent = lab.run(&["tab", "answer", &tab.id, "--option", "1", "--json"])?;
    let sent: Value = serde_json::from_str(&sent)?;
    ensure!(sent["outcome"] == "sent", "{sent}");
    Ok(())
}

#[test]
fn s11_a_claude_can_not_do_what_is_the_persons() -> Result<()> {
    let lab = Lab::start("s11")?;
    let other = lab.tab(TabKind::Terminal)?;
    let mut tab = lab.tab(TabKind::Claude)?;
    tab.ready()?;
    let binary = product_binary()?;
    let purplemux = format!("{} ", binary.display());
    let home = lab.home().product();
    let out = lab.home().root().join("tried");
    let acts = [
        format!("tab send {} typed", other.id),
        format!("tab stop {}", tab.id),
        format!("tab close {} --force", other.id),
        "login".to_owned(),
        "workspace agents main --allow".to_owned(),
    ];
    // One after the other in one tool: each says its code.
    let script = lab.home().root().join("try.sh");
    let mut lines = String::from("#!/bin/sh\n");
    for act in &acts {
        let act = format!("{purplemux}{act} --home {}", home.display());
        lines.push_str(&format!(
            "{act} >> {0} 2>&1; echo code $? >> {0}\n",
            out.display()
        ));
    }
    lines.push_str(&format!("mv {0} {0}.done\n", out.display()));
    fs::write(&script, lines)?;
    tab.prompt(&format!("bash: sh {} ;; say tried", script.display()))?;
    approve(&lab, &tab)?;
    let done = out.with_extension("done");
    let said = until(PATIENCE, || fs::read_to_string(&done).ok()).context("the tool has run")?;
    let refused = said.matches("This is the person's to do").count();
    let codes = said.matches("code 1").count();
    ensure!(refused == acts.len() && codes == acts.len(), "{said}");
    // The tab that it tried to type into and to close is as it was.
    ensure!(!other.screen().contains("typed"), "{}", other.screen());
    let rows = lab.rows()?;
    ensure!(
        rows.iter().any(|row| row["id"] == *other.id),
        "it was closed"
    );
    // The log says who answered: the person's shell, and nobody else.
    let log: Vec<Value> = serde_json::from_str(&lab.run(&["audit", "--json"])?)?;
    ensure!(
        log.len() == 1 && log[0]["result"] == "sent" && log[0]["by"] == "the command line",
        "{log:?}"
    );
    Ok(())
}
