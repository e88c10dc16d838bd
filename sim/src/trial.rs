//! One history from its seed to its verdict, and how a failing one is made smaller and told.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use crate::adversary::{Adversary, IN_TURN, Knobs};
use crate::author::{self, Scope};
use crate::cast::Cast;
use crate::chance::Chance;
use crate::claude::BEGIN;
use crate::judge;
use crate::script::{Act, History};
use crate::truth::Played;
use crate::world::{self, Run};

/// After the last step the model runs on for so long, so that everything settles.
const SETTLE_MS: u64 = 40_000;
/// And the badge must then be right for this long.
const AFTER_MS: u64 = 9000;

/// What to try.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Steps of a history.
    pub steps: usize,
    /// What may happen.
    pub scope: Scope,
    /// Which troubles are drawn from; none named: the sets of [`IN_TURN`], one after the other by seed.
    pub knobs: Option<Knobs>,
}

/// A history with its troubles.
#[derive(Clone, Debug)]
pub struct Case {
    /// What happens.
    pub history: History,
    /// Seed of the troubles.
    pub seed: u64,
    /// Which of them are on.
    pub knobs: Knobs,
}

/// Draws the case of this seed.
#[must_use]
pub fn draw(seed: u64, plan: Plan) -> Case {
    let mut chance = Chance::new(seed);
    let knobs = plan.knobs.unwrap_or_else(|| {
        let sets = u64::try_from(IN_TURN.len()).unwrap_or(1);
        let turn = usize::try_from(seed % sets).unwrap_or(0);
        IN_TURN[turn].parse().unwrap_or_default()
    });
    let knobs = knobs.drawn(&mut chance);
    let panes = author::panes(&mut chance, plan.scope);
    let mut cast = Cast::new(panes);
    let mut steps = Vec::new();
    for _ in 0..plan.steps + 6 * (panes - 1) {
        let step = author::next(&cast, &mut chance, plan.scope);
        cast.take(&step);
        steps.push(step);
    }
    Case {
        history: History { panes, steps },
        seed: chance.bits(),
        knobs,
    }
}

/// Runs it. Empty: nothing is wrong.
#[must_use]
pub fn verdict(case: &Case) -> Vec<String> {
    let (played, adversary, run) = run(case, false);
    judge::judge(&played, &run, &adversary)
}

/// What the models did, what stood in the way of it, and what came of it.
#[must_use]
pub fn run(case: &Case, keep_log: bool) -> (Played, Adversary, Run) {
    let played = play(&case.history);
    let adversary = Adversary::new(case.knobs, case.seed, BEGIN, played.end);
    let run = watch(&played, &adversary, keep_log);
    (played, adversary, run)
}

/// What the models do when this is done.
#[must_use]
pub fn play(history: &History) -> Played {
    let mut cast = Cast::new(history.panes);
    for step in &history.steps {
        cast.take(step);
    }
    cast.settle(SETTLE_MS);
    while cast.is_moving() {
        cast.settle(250);
    }
    cast.finish()
}

/// What comes of that with these troubles in the way.
#[must_use]
pub fn watch(played: &Played, adversary: &Adversary, keep_log: bool) -> Run {
    world::run(played, adversary, played.end + AFTER_MS, keep_log)
}

/// Every event, what was right and what was shown, on one line of time.
fn story(played: &Played, run: &Run) -> String {
    let mut lines: Vec<(u64, String)> = run.log.clone();
    for truth in &played.truths {
        for entry in &truth.entries {
            let line = format!(
                "~ right in {:?}: {:?} due {:?} ({})",
                truth.row, entry.want, entry.due, entry.why
            );
            lines.push((entry.from, line));
        }
    }
    lines.sort_by_key(|(at, _)| *at);
    let mut told = String::new();
    for (at, line) in lines {
        let at = i64::try_from(at).unwrap_or(0) - i64::try_from(BEGIN).unwrap_or(0);
        writeln!(told, "{at:>8} {line}").expect("a String takes every write");
    }
    told
}

/// The fault that says most: a wrong badge before an effect too many.
#[must_use]
pub fn worst(faults: &[String]) -> Option<&String> {
    let badge = faults.iter().find(|fault| fault.contains("is shown"));
    badge.or_else(|| faults.first())
}

/// What sort of fault it is, without its times and numbers, so that making a case smaller does not slip
/// into another fault.
#[must_use]
pub fn kind(faults: &[String]) -> Option<String> {
    worst(faults).map(|fault| {
        let bare = fault.chars().filter(|c| !c.is_ascii_digit());
        let bare: String = bare.collect();
        bare.split(" (from").next().unwrap_or("").to_owned()
    })
}

/// The smallest case found in a bounded number of tries that still fails.
#[must_use]
pub fn smaller(case: &Case) -> Case {
    let mut best = case.clone();
    let wanted = kind(&verdict(case));
    let mut tries = 0;
    loop {
        let mut found = None;
        let mut candidates: Vec<Case> = Vec::new();
        for knobs in best.knobs.fewer() {
            candidates.push(Case {
                knobs,
                ..best.clone()
            });
        }
        let count = best.history.steps.len();
        for half in [count / 2, count / 4] {
            if half > 1 {
                let mut less = best.clone();
                less.history.steps.truncate(count - half);
                candidates.push(less);
            }
        }
        for place in (0..count).rev() {
            let mut less = best.clone();
            less.history.steps.remove(place);
            candidates.push(less);
        }
        for place in 0..count {
            if let Act::Prompt(turn) = &best.history.steps[place].act {
                for piece in (0..turn.pieces.len()).rev() {
                    let mut less = best.clone();
                    if let Act::Prompt(turn) = &mut less.history.steps[place].act {
                        turn.pieces.remove(piece);
                    }
                    candidates.push(less);
                }
            }
        }
        for candidate in candidates {
            tries += 1;
            if tries > 3000 {
                return best;
            }
            if kind(&verdict(&candidate)) == wanted {
                found = Some(candidate);
                break;
            }
        }
        match found {
            Some(less) => best = less,
            None => return best,
        }
    }
}

/// Everything about a failing case, for a person and for a test.
#[must_use]
pub fn told(seed: u64, case: &Case) -> String {
    let (played, adversary, run) = run(case, true);
    let faults = judge::judge(&played, &run, &adversary);
    let log = story(&played, &run);
    let mut out = String::new();
    let mut line = |text: String| writeln!(out, "{text}").expect("a String takes every write");
    line(format!("seed {seed}, knobs {}", case.knobs));
    for fault in &faults {
        line(format!("FAULT {fault}"));
    }
    line(log);
    line("as a test (sim/tests/scripts.rs):".to_owned());
    line(format!(
        "is_right({}, {}, \"{}\");",
        case.history.as_rust(),
        case.seed,
        case.knobs
    ));
    out
}

/// Tries the histories of a range of seeds on several threads and tells of each failing one, in no order.
/// Ends when there are no more seeds or `told` says false.
pub fn try_all(
    seeds: std::ops::Range<u64>,
    plan: Plan,
    threads: usize,
    told: &(dyn Fn(Tried) -> bool + Sync),
) {
    let next = AtomicU64::new(seeds.start);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    let first = next.fetch_add(AT_ONCE, Ordering::Relaxed);
                    if first >= seeds.end {
                        return;
                    }
                    let last = seeds.end.min(first + AT_ONCE);
                    for seed in first..last {
                        let case = draw(seed, plan);
                        let faults = verdict(&case);
                        if !faults.is_empty() && !told(Tried::Failed { seed, case, faults }) {
                            over.store(true, Ordering::Relaxed);
                            told(Tried::Done(seed + 1 - first));
                            return;
                        }
                    }
                    if !told(Tried::Done(last - first)) {
                        over.store(true, Ordering::Relaxed);
                    }
                }
            });
        }
    });
}

/// Seeds that a thread takes at once.
const AT_ONCE: u64 = 64;

/// What [`try_all`] tells.
pub enum Tried {
    /// This one failed.
    Failed {
        /// Its seed.
        seed: u64,
        /// What was played.
        case: Case,
        /// What is wrong.
        faults: Vec<String>,
    },
    /// So many more are through.
    Done(u64),
}
