//! Whole turns of the real Claude Code through the whole product, each in a home of its own: prompt, permission
//! dialog, approval, end, and kill -9. The lab takes down every latency from Claude's own write to the line of
//! `purplemux status --watch --json`; here they are summed up against the promises.

use std::collections::BTreeMap;
use std::fs;

use anyhow::Context as _;
use purplemux_lab::home::e2e_dir;
use purplemux_lab::product::{DEATH_MS, Lab, SHOWN_MS, TabKind};

use crate::numbers::{Promise, head, row};

/// Measures and prints; true if the promises were kept.
pub fn measure(runs: usize) -> anyhow::Result<bool> {
    let book = e2e_dir().join("results/latency.json");
    match fs::remove_file(&book) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(error).context("begin a new book of latencies"),
    }
    for number in 1..=runs {
        turn(&format!("bench {number}")).with_context(|| format!("run {number} of {runs}"))?;
        eprintln!("run {number} of {runs}");
    }
    let book: Book = read(&fs::read_to_string(&book).context("read the latencies")?)?;
    head();
    let mut kept = true;
    for (what, (deadline_ms, ms)) in book {
        // From a key on, Claude's own time is in the number: told, but not ours to promise.
        let promise = if what.contains(" written to ") {
            Promise {
                p95: Some(100.0),
                max: Some(deadline_ms),
                ..Promise::default()
            }
        } else if what.starts_with("kill") {
            Promise {
                max: Some(deadline_ms),
                ..Promise::default()
            }
        } else {
            Promise::default()
        };
        kept &= row(&what, ms, promise);
    }
    Ok(kept)
}

/// By measure: its deadline, and all numbers, in milliseconds.
type Book = BTreeMap<String, (f64, Vec<f64>)>;

fn turn(name: &str) -> anyhow::Result<()> {
    let lab = Lab::start(name)?;
    let mut tab = lab.tab(TabKind::Claude)?;
    tab.ready()?;
    tab.prompt("bash: touch made.txt; sleep 1 ;; say finished")?;
    tab.expect(&["needs-input(permission)"])?;
    let at_ns = tab.answer("Enter", "Do you want to proceed?")?;
    let lines = tab.expect(&["busy"])?;
    lab.latency("approval to busy shown", SHOWN_MS, at_ns, lines[0].at_ns)?;
    tab.expect(&["review(finished)"])?;
    let at_ns = tab.kill_agent()?;
    let lines = tab.expect_unmeasured(&["none"])?;
    lab.latency("kill -9 to none shown", DEATH_MS, at_ns, lines[0].at_ns)
}

fn read(text: &str) -> anyhow::Result<Book> {
    let all: serde_json::Value = serde_json::from_str(text)?;
    let measures = all["measures"].as_object().context("no measures")?;
    let mut book = Book::new();
    for (name, measure) in measures {
        let deadline_ms = measure["deadline_ms"].as_f64().context("a deadline")?;
        let tests = measure["tests"].as_object().context("tests")?;
        let ms = tests
            .values()
            .filter_map(serde_json::Value::as_array)
            .flatten()
            .filter_map(serde_json::Value::as_f64)
            .collect();
        book.insert(name.clone(), (deadline_ms, ms));
    }
    Ok(book)
}
