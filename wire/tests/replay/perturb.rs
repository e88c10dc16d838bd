//! A recording with its hooks lost, doubled, late or out of order, and the moments at which that must not
//! show: one second after a change of Claude's own status file that lasts that long.

use super::expect::Expect;
use super::recording::{Moment, What};

/// A change must hold this long to count, and is looked at this long after.
const HOLDS_MS: i64 = 1_000;

/// All hooks gone.
pub fn without_hooks(moments: &[Moment]) -> Vec<Moment> {
    let kept = moments.iter().filter(|moment| !is_hook(moment));
    kept.cloned().collect()
}

/// Every hook twice, the second time somewhat later and with the same id.
pub fn doubled(moments: &[Moment]) -> Vec<Moment> {
    let again = moments
        .iter()
        .filter(|moment| is_hook(moment))
        .map(|moment| Moment {
            at: moment.at + 40,
            ..moment.clone()
        });
    in_order(moments.iter().cloned().chain(again).collect())
}

/// Every hook up to 5 s late, stamped when it was fired.
pub fn delayed(moments: &[Moment], chance: &mut Chance) -> Vec<Moment> {
    let late = moments.iter().map(|moment| Moment {
        at: moment.at
            + if is_hook(moment) {
                chance.below(5_000)
            } else {
                0
            },
        ..moment.clone()
    });
    in_order(late.collect())
}

/// Hooks that are neighbours inside 500 ms change places half of the time.
pub fn swapped(moments: &[Moment], chance: &mut Chance) -> Vec<Moment> {
    let mut moments = moments.to_vec();
    let hooks: Vec<usize> = (0..moments.len())
        .filter(|&at| is_hook(&moments[at]))
        .collect();
    let mut pairs = hooks.windows(2);
    while let Some(&[first, second]) = pairs.next() {
        if moments[second].at - moments[first].at < 500 && chance.below(2) == 1 {
            let what = moments[first].what.clone();
            moments[first].what = std::mem::replace(&mut moments[second].what, what);
            // A hook can't arrive before it was fired.
            let fired = stamp(&moments[first]);
            moments[first].at = moments[first].at.max(fired);
            pairs.next();
        }
    }
    in_order(moments)
}

/// Every Notification comes only after the turn's end.
pub fn notifications_last(moments: &[Moment]) -> Vec<Moment> {
    let mut moments = moments.to_vec();
    let stops: Vec<i64> = moments
        .iter()
        .filter(|moment| matches!(&moment.what, What::Hook(hook) if hook.event == "Stop"))
        .map(|moment| moment.at)
        .collect();
    for moment in &mut moments {
        if matches!(&moment.what, What::Hook(hook) if hook.event == "Notification") {
            let next = stops.iter().find(|&&stop| stop > moment.at);
            moment.at = next.map_or(moment.at, |stop| stop + 20);
        }
    }
    in_order(moments)
}

/// The moments, in ms of the run, at which a run of hooks in any disorder must show the same badge.
pub fn moments_to_compare(expect: &Expect, pid: u32, moments: &[Moment]) -> Vec<i64> {
    let mut looked = lasting_changes(pid, moments);
    // A prompt's or a compaction's hook comes before the file (rule 3); without it the file decides, later.
    looked.retain(|&change| {
        !moments.iter().any(|moment| {
            leads(moment, pid) && moment.at > change && moment.at <= change + HOLDS_MS
        })
    });
    looked
        .iter()
        .map(|change| change - expect.t0 + HOLDS_MS)
        .collect()
}

fn leads(moment: &Moment, pid: u32) -> bool {
    match &moment.what {
        What::Hook(hook) => {
            hook.claude_pid == Some(pid)
                && ["UserPromptSubmit", "PreCompact"].contains(&hook.event.as_str())
        }
        What::File { .. } | What::Line { .. } => false,
    }
}

/// Unix ms of every change of a process's status that holds, until the next one or its end.
fn lasting_changes(pid: u32, moments: &[Moment]) -> Vec<i64> {
    let name = format!("{pid}.json");
    let mut changes: Vec<(i64, Option<String>)> = Vec::new();
    for moment in moments {
        if let What::File {
            name: file,
            content,
        } = &moment.what
            && *file == name
        {
            let status = content.as_ref().map(|text| status(text));
            if changes.last().is_none_or(|(_, last)| *last != status) {
                changes.push((moment.at, status));
            }
        }
    }
    let end = moments.last().map_or(0, |moment| moment.at);
    let ends = changes.iter().skip(1).map(|(at, _)| *at).chain([end]);
    changes
        .iter()
        .zip(ends)
        .filter(|((at, status), end)| status.is_some() && end - at >= HOLDS_MS)
        .map(|((at, _), _)| *at)
        .collect()
}

fn status(text: &str) -> String {
    let file: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
    format!("{} {}", file["status"], file["waitingFor"])
}

fn is_hook(moment: &Moment) -> bool {
    matches!(moment.what, What::Hook(_))
}

fn stamp(moment: &Moment) -> i64 {
    match &moment.what {
        What::Hook(hook) => hook.stamp,
        What::File { .. } | What::Line { .. } => moment.at,
    }
}

fn in_order(mut moments: Vec<Moment>) -> Vec<Moment> {
    moments.sort_by_key(|moment| moment.at);
    moments
}

/// Repeatable chance (splitmix64).
pub struct Chance(u64);

impl Chance {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// From 0 up to, not including, `bound`.
    pub fn below(&mut self, bound: i64) -> i64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        i64::try_from((mixed ^ (mixed >> 31)) % bound.unsigned_abs()).unwrap_or(0)
    }
}
