//! Compares what was seen with what a person wrote down, and says in a table where they part.

use std::fmt::Write;

use super::expect::{Judged, Range, Window};
use super::world::Seen;

/// Everything that is wrong about one agent, with the whole course beside it; `None` if nothing is.
pub fn verdict(letter: char, judged: &Judged, seen: &Seen) -> Option<String> {
    let changes = seen.changes();
    let mut faults = Vec::new();
    let mut table = String::new();
    let rows = judged.changes.len().max(changes.len());
    for row in 0..rows {
        let wanted = judged.changes.get(row);
        let got = changes.get(row);
        let right = match (wanted, got) {
            (Some(window), Some((at, badge))) => {
                window.badge.admits(badge) && (window.from..=window.to).contains(at)
            }
            (Some(_), None) | (None, Some(_)) | (None, None) => false,
        };
        let wanted = wanted.map_or_else(String::new, |window| {
            format!("{}..{} {}", window.from, window.to, window.badge)
        });
        let got = got.map_or_else(String::new, |(at, badge)| format!("{at} {badge}"));
        let mark = if right { "  " } else { "! " };
        writeln!(table, "    {mark}{wanted:<44} {got}").expect("a string takes everything");
        if !right {
            faults.push(format!(
                "change {}: expected `{wanted}`, seen `{got}`",
                row + 1
            ));
        }
    }
    for window in &judged.changes {
        faults.extend(missing_labels(window, seen));
    }
    for moment in &judged.moments {
        let shown = seen.at(moment.at);
        if !moment.badge.admits(&shown.badge) {
            faults.push(format!(
                "at {}: expected `{}`, seen `{}`",
                moment.at, moment.badge, shown.badge
            ));
        }
        for label in moment
            .labels
            .iter()
            .filter(|label| !shown.labels.contains(label))
        {
            faults.push(format!(
                "at {}: no label `{label}`, only {:?}",
                moment.at, shown.labels
            ));
        }
        if let Some(ask) = moment.ask.as_ref().filter(|ask| !shown.ask.contains(*ask)) {
            faults.push(format!(
                "at {}: asked `{}`, not `{ask}`",
                moment.at, shown.ask
            ));
        }
    }
    let counts = [
        ("pushes", judged.pushes, seen.pushes),
        ("silent", judged.silent, seen.silent),
        ("withdrawn", judged.withdrawn, seen.withdrawn),
    ];
    faults.extend(counts.into_iter().filter_map(|(what, wanted, got)| {
        let wanted: Range = wanted.filter(|wanted| !wanted.has(got))?;
        Some(format!(
            "{what}: expected {wanted}, seen {got} (pushed at {:?})",
            seen.pushed_at
        ))
    }));
    if faults.is_empty() {
        return None;
    }
    Some(format!(
        "agent {letter} ({})\n    expected, ms{:32} seen, ms\n{table}    {}\n",
        judged.pid,
        "",
        faults.join("\n    ")
    ))
}

/// A label may come somewhat after its badge, but by the end of the window, or of the badge if that is sooner.
fn missing_labels(window: &Window, seen: &Seen) -> Vec<String> {
    let in_time = seen
        .shown
        .iter()
        .filter(|(at, _)| (window.from..=window.to).contains(at));
    let last = in_time
        .rev()
        .find(|(_, shown)| window.badge.admits(&shown.badge));
    let none = Vec::new();
    let labels = last.map_or(&none, |(_, shown)| &shown.labels);
    let missing = window.labels.iter().filter(|label| !labels.contains(label));
    missing
        .map(|label| format!("by {}: no label `{label}`, only {labels:?}", window.to))
        .collect()
}
