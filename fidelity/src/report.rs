//! The table. Pure: outcomes in, text out.

use std::fmt::Write as _;

use crate::judge::{Took, Verdict};
use crate::lab::Outcome;
use crate::truth::Kind;

/// The kinds of change in the order of the table.
const KINDS: [Kind; 15] = [
    Kind::Started,
    Kind::Prompt,
    Kind::Itself,
    Kind::Dialog,
    Kind::Answer,
    Kind::Finished,
    Kind::Failed,
    Kind::Interrupted,
    Kind::Refused,
    Kind::Compacted,
    Kind::Cleared,
    Kind::Exited,
    Kind::Killed,
    Kind::Suspended,
    Kind::Resumed,
];

/// What is counted, how, and whether Claude's file can be wrong in it.
type Row = (&'static str, fn(&Verdict) -> usize, bool);

/// Markdown.
#[must_use]
pub fn table(outcomes: &[Outcome]) -> String {
    let mut out = String::new();
    let good = outcomes.iter().filter(|outcome| outcome.is_good()).count();
    let restarted = outcomes
        .iter()
        .filter(|outcome| !outcome.run.outages.is_empty())
        .count();
    let judged: i64 = outcomes.iter().map(|outcome| outcome.ours.judged).sum();
    let undecided: usize = outcomes.iter().map(|outcome| outcome.ours.undecided).sum();
    line(
        &mut out,
        &format!(
            "{} runs, {good} without a fault, {restarted} with restarts of the server; {:.0} s judged, {undecided} changes undecided.",
            outcomes.len(),
            seconds(judged)
        ),
    );
    line(&mut out, "");
    line(
        &mut out,
        "| | purplemux | original hooks alone | Claude's own file |",
    );
    line(&mut out, "|---|---|---|---|");
    let share = |of: fn(&Outcome) -> &Verdict| {
        let judged: i64 = outcomes.iter().map(|outcome| of(outcome).judged).sum();
        let right: i64 = outcomes.iter().map(|outcome| of(outcome).right).sum();
        if judged == 0 {
            return "-".to_owned();
        }
        format!("{:.3} %", 100.0 * right as f64 / judged as f64)
    };
    row(
        &mut out,
        "time with the right badge",
        &[share(ours), share(base), share(file)],
    );
    let sum = |of: fn(&Outcome) -> &Verdict, what: fn(&Verdict) -> usize| {
        outcomes
            .iter()
            .map(|outcome| what(of(outcome)))
            .sum::<usize>()
            .to_string()
    };
    let rows: [Row; 7] = [
        ("changes", |verdict| verdict.took.len(), true),
        (
            "later than the deadline",
            |verdict| verdict.took.iter().filter(|took| took.late).count(),
            true,
        ),
        (
            "still wrong at five times the deadline",
            |verdict| verdict.overdue.len(),
            true,
        ),
        (
            "flaps",
            |verdict| verdict.flaps.len() + verdict.returns.len(),
            true,
        ),
        ("false notifications", |verdict| verdict.untrue.len(), false),
        (
            "missed notifications",
            |verdict| verdict.missed.len(),
            false,
        ),
        (
            "double notifications",
            |verdict| verdict.double.len(),
            false,
        ),
    ];
    for (name, what, of_file) in rows {
        let file = if of_file {
            sum(file, what)
        } else {
            String::new()
        };
        row(&mut out, name, &[sum(ours, what), sum(base, what), file]);
    }
    line(&mut out, "");
    line(
        &mut out,
        "Time to the right badge, ms: p50 / p95 / max; in brackets how many came never or after five times the deadline.",
    );
    line(&mut out, "");
    line(
        &mut out,
        "| change | n | purplemux | original hooks alone |",
    );
    line(&mut out, "|---|---|---|---|");
    for kind in KINDS {
        let took = |of: fn(&Outcome) -> &Verdict| -> Vec<Took> {
            let all = outcomes.iter().flat_map(|outcome| of(outcome).took.clone());
            all.filter(|took| took.kind == kind).collect()
        };
        let (mine, theirs) = (took(ours), took(base));
        if mine.is_empty() && theirs.is_empty() {
            continue;
        }
        let cells = [mine.len().to_string(), spread(&mine), spread(&theirs)];
        row(&mut out, kind.words(), &cells);
    }
    out
}

/// What was wrong, a line for each.
#[must_use]
pub fn faults(outcomes: &[Outcome]) -> String {
    let mut out = String::new();
    for outcome in outcomes.iter().filter(|outcome| !outcome.is_good()) {
        let run = &outcome.run;
        let kept = outcome.kept.as_ref();
        let kept = kept.map_or_else(String::new, |dir| format!(", kept in {}", dir.display()));
        line(
            &mut out,
            &format!("seed {} session {}{kept}", run.seed, run.session),
        );
        if let Some(why) = &run.broken {
            let first = why.lines().next().unwrap_or_default();
            line(&mut out, &format!("  not played to its end: {first}"));
        }
        for (name, fault) in outcome.ours.faults() {
            let at = (fault.at - run.from) / 1_000_000;
            let what = &fault.what;
            line(
                &mut out,
                &format!(
                    "  {name} at {at} ms for {} ms: {what}",
                    fault.ns / 1_000_000
                ),
            );
        }
    }
    out
}

fn ours(outcome: &Outcome) -> &Verdict {
    &outcome.ours
}

fn base(outcome: &Outcome) -> &Verdict {
    &outcome.base
}

fn file(outcome: &Outcome) -> &Verdict {
    &outcome.file
}

fn spread(took: &[Took]) -> String {
    let mut ms: Vec<f64> = took
        .iter()
        .filter_map(|took| took.ns)
        .map(|ns| ns as f64 / 1e6)
        .collect();
    ms.sort_by(f64::total_cmp);
    let never = took
        .iter()
        .filter(|took| took.failed || took.ns.is_none())
        .count();
    let at = |share: f64| {
        // The smallest value that so many are not above.
        let place = (share * ms.len() as f64).ceil() as usize;
        ms.get(place.clamp(1, ms.len().max(1)) - 1).copied()
    };
    let cell = match (at(0.5), at(0.95), at(1.0)) {
        (Some(half), Some(most), Some(max)) => format!("{half:.0} / {most:.0} / {max:.0}"),
        _ => "-".to_owned(),
    };
    format!("{cell} ({never})")
}

fn row(out: &mut String, name: &str, cells: &[String]) {
    line(out, &format!("| {name} | {} |", cells.join(" | ")));
}

fn line(out: &mut String, text: &str) {
    // Writing to a string does not fail.
    writeln!(out, "{text}").ok();
}

fn seconds(ns: i64) -> f64 {
    ns as f64 / 1e9
}
