//! What was shown and told, held against what was right. Pure.
//!
//! Must never bend the truth: a badge that is wrong is wrong, whatever the reason.

use crate::heard::{MS, Outage, Run, SECOND, Shown, Told};
use crate::truth::{Kind, Span, Truth};

/// The server may take this long after a start until its badges are right.
const RECOVERY: i64 = 2 * SECOND;

/// What is asked, and how a turn failed, may be known this much later than that something is.
const WORDS: i64 = 500 * MS;

/// A machine that is shared gets five times a deadline, counted from the moment, before a late badge is a failure.
const LENIENT: i64 = 5;

/// A stay in needs-input or review shorter than this need not be told, one longer must.
const MUST_TELL: i64 = 3_500 * MS;

/// A notification follows its badge by 1 s at least; clocks and windows take the rest.
const MAY_TELL: i64 = 900 * MS;

/// … and may come this much after the end of the stay, which it can't have known.
const LATE_TELL: i64 = 400 * MS;

/// Whose badges are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// The product's: every word of the badge counts.
    Ours,
    /// The base mapping's: it has four states, no word beside them, and draws nobody and idle alike.
    Base,
    /// Claude's own file: busy, waiting or not.
    File,
}

/// A change of the truth, and how long it took to be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Took {
    /// Which change.
    pub kind: Kind,
    /// From its moment to the first right badge; `None`: it never came.
    pub ns: Option<i64>,
    /// The badge was wrong after the deadline.
    pub late: bool,
    /// … and after five times the deadline.
    pub failed: bool,
}

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// From …
    pub at: i64,
    /// … for so long.
    pub ns: i64,
    /// In words.
    pub what: String,
}

/// The verdict about one run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Judged time, ns.
    pub judged: i64,
    /// Of it, the time with a right badge.
    pub right: i64,
    /// Every change.
    pub took: Vec<Took>,
    /// Badges that came and went and were right at no moment of their stay, or that left the right one.
    pub flaps: Vec<Fault>,
    /// The badge from before the change, shown once more before five times the deadline: late, and no failure.
    pub returns: Vec<Fault>,
    /// Badges still wrong after five times their deadline, or after their deadline by the other parts.
    pub overdue: Vec<Fault>,
    /// Notifications of what was not so.
    pub untrue: Vec<Fault>,
    /// Stays nobody was told of.
    pub missed: Vec<Fault>,
    /// Stays that were told twice.
    pub double: Vec<Fault>,
    /// Changes of which the evidence does not say what became of them.
    pub undecided: usize,
}

impl Verdict {
    /// Everything that fails a run.
    #[must_use]
    pub fn faults(&self) -> Vec<(&'static str, &Fault)> {
        let mut all = Vec::new();
        all.extend(self.overdue.iter().map(|fault| ("overdue", fault)));
        all.extend(self.flaps.iter().map(|fault| ("flap", fault)));
        all.extend(
            self.untrue
                .iter()
                .map(|fault| ("false notification", fault)),
        );
        all.extend(
            self.missed
                .iter()
                .map(|fault| ("missed notification", fault)),
        );
        all.extend(
            self.double
                .iter()
                .map(|fault| ("double notification", fault)),
        );
        all.sort_by_key(|(_, fault)| fault.at);
        all
    }
}

/// Judges badges and notifications.
#[must_use]
pub fn judge(whose: Whose, run: &Run, truth: &Truth, shown: &[Shown], told: &[Told]) -> Verdict {
    let mut judge = Judge {
        whose,
        to: run.to,
        truth,
        blind: match whose {
            Whose::Ours => run.outages.iter().map(|outage| blind(*outage)).collect(),
            // Nobody watches the hooks or Claude's file: they have no outages.
            Whose::Base | Whose::File => Vec::new(),
        },
        verdict: Verdict::default(),
    };
    judge.verdict.undecided = truth
        .spans
        .iter()
        .filter(|span| span.want.len() > 1)
        .count();
    for place in 0..truth.spans.len() {
        judge.span(place, shown);
    }
    if whose != Whose::File {
        judge.told(told);
    }
    judge.verdict
}

/// When the product could not show anything, and may not yet know.
fn blind(outage: Outage) -> (i64, i64) {
    (outage.from, outage.to.saturating_add(RECOVERY))
}

struct Judge<'a> {
    whose: Whose,
    to: i64,
    truth: &'a Truth,
    blind: Vec<(i64, i64)>,
    verdict: Verdict,
}

impl Judge<'_> {
    /// One stay: how the badge came to it, and whether it stayed.
    fn span(&mut self, place: usize, shown: &[Shown]) {
        let (span, next) = (&self.truth.spans[place], self.truth.spans.get(place + 1));
        // Until the next change's window opens, only this one's badge is right.
        let end = next.map_or(self.to, |next| next.lo).min(self.to);
        let over = next.map_or(self.to, |next| next.hi).min(self.to);
        self.verdict.judged += (over - span.hi).max(0);
        let mut wrong = Vec::new();
        for (from, to, badge) in stays(shown, span.hi, end) {
            for (from, to) in self.seen(from, to) {
                // What is asked may come a little later than that something is.
                let words = from.max((span.hi + WORDS).min(to));
                for (from, to, exact) in [(from, words, false), (words, to, true)] {
                    if from < to && !self.right(span, badge, exact, from, to) {
                        wrong.push((from, to, badge));
                    }
                }
            }
        }
        let lost: i64 = wrong.iter().map(|(from, to, _)| to - from).sum();
        self.verdict.right += (over - span.hi).max(0) - lost;

        let wrong = joined(wrong);
        let mut late = false;
        let mut failed = false;
        let deadline = span.moment + LENIENT * (span.due - span.moment);
        for (from, to, badge) in &wrong {
            let name = badge.map_or("nothing", |badge| badge.badge.as_str());
            let what = format!(
                "{name} in place of {} ({})",
                span.want.join(" or "),
                span.kind.words()
            );
            let fault = Fault {
                at: *from,
                ns: to - from,
                what,
            };
            if *from <= span.hi {
                late |= *to > span.due;
                if *to > deadline {
                    failed = true;
                    self.verdict.overdue.push(fault);
                }
            } else if *to > deadline {
                // It came too late, by way of another wrong one, or it was left again.
                self.verdict.flaps.push(fault);
            } else if badge.is_some_and(|badge| {
                !self.was_right(badge, *from, *to) && !self.only_goes_on(span, badge, *to)
            }) {
                let before = place
                    .checked_sub(1)
                    .map(|before| &self.truth.spans[before].want);
                let mut before = before.into_iter().flatten();
                if before.any(|want| self.says(*badge, want, false)) {
                    self.verdict.returns.push(fault);
                } else {
                    self.verdict.flaps.push(fault);
                }
            }
        }
        let first = self.first_right(span, over, shown);
        let blind = self
            .blind
            .iter()
            .any(|(from, to)| *from <= over.min(span.due) && *to >= span.lo);
        // The first stay began with the run.
        if !blind && span.hi < self.to && place > 0 {
            self.verdict.took.push(Took {
                kind: span.kind,
                ns: first.map(|at| (at - span.moment).max(0)),
                late,
                failed,
            });
        }
    }

    /// The parts of a stretch in which something could be shown.
    fn seen(&self, from: i64, to: i64) -> Vec<(i64, i64)> {
        let mut parts = vec![(from, to)];
        for (dark, light) in &self.blind {
            parts = parts
                .into_iter()
                .flat_map(|(from, to)| [(from, to.min(*dark)), (from.max(*light), to)])
                .filter(|(from, to)| from < to)
                .collect();
        }
        parts
    }

    fn right(&self, span: &Span, badge: Option<&Shown>, exact: bool, from: i64, to: i64) -> bool {
        if span.want.iter().any(|want| self.says(badge, want, exact)) {
            return true;
        }
        let also = self.truth.also.iter();
        let mut fits = also.filter(|(open, shut, _)| *open <= from && *shut >= to);
        fits.any(|(_, _, want)| self.says(badge, want, false))
    }

    /// Whether a badge says this.
    fn says(&self, badge: Option<&Shown>, want: &str, exact: bool) -> bool {
        let Some(shown) = badge else {
            return want == "none";
        };
        let state = |text: &str| text.split('(').next().unwrap_or_default().to_owned();
        match self.whose {
            Whose::Ours if want == "suspended" || shown.suspended => {
                want == "suspended" && shown.suspended
            }
            Whose::Ours if exact => shown.badge == want,
            Whose::Ours => state(&shown.badge) == state(want),
            Whose::Base => {
                let calm = |state: &str| matches!(state, "idle" | "none" | "suspended");
                let (is, want) = (state(&shown.badge), state(want));
                is == want || (calm(&is) && calm(&want)) || (is == "review" && want == "suspended")
            }
            Whose::File => {
                let rest = |state: &str| matches!(state, "idle" | "review");
                let (is, want) = (state(&shown.badge), state(want));
                // It says nothing about processes.
                is == want
                    || (rest(&is) && rest(&want))
                    || matches!(want.as_str(), "none" | "suspended")
            }
        }
    }

    /// Whether a badge was right at some moment of this stretch or right before it: then it is late, and no flap.
    fn was_right(&self, badge: &Shown, from: i64, to: i64) -> bool {
        self.truth.spans.iter().enumerate().any(|(place, span)| {
            let end = self
                .truth
                .spans
                .get(place + 1)
                .map_or(self.to, |next| next.hi);
            span.lo <= to
                && end >= from - MS
                && span
                    .want
                    .iter()
                    .any(|want| self.says(Some(badge), want, false))
        })
    }

    /// Whether all that is not yet shown is that the process goes on, which has a deadline of its own: what it does
    /// then may be seen before it.
    fn only_goes_on(&self, span: &Span, badge: &Shown, to: i64) -> bool {
        let goes_on = Shown {
            suspended: false,
            ..badge.clone()
        };
        let mut spans = self.truth.spans.iter();
        badge.suspended
            && spans.any(|fg| fg.kind == Kind::Resumed && fg.lo <= to && to <= fg.due)
            && span
                .want
                .iter()
                .any(|want| self.says(Some(&goes_on), want, false))
    }

    fn first_right(&self, span: &Span, over: i64, shown: &[Shown]) -> Option<i64> {
        let stays = stays(shown, span.lo, over);
        let mut right = stays
            .into_iter()
            .filter(|(_, _, badge)| span.want.iter().any(|want| self.says(*badge, want, false)));
        right.next().map(|(from, _, _)| from)
    }

    fn told(&mut self, told: &[Told]) {
        let episodes = self.episodes();
        let mut left: Vec<&Told> = told.iter().collect();
        for episode in episodes {
            let (from, to) = (episode.lo + self.soonest(), episode.hi + LATE_TELL);
            let fits = |told: &&Told| {
                let mut asleep = episode.asleep.iter();
                told.state == episode.state
                    && (from..=to).contains(&told.at)
                    && !asleep.any(|(from, to)| told.at > *from + LATE_TELL && told.at < *to)
            };
            let (mine, rest): (Vec<&Told>, Vec<&Told>) = left.into_iter().partition(fits);
            left = rest;
            let loud = mine.iter().filter(|told| !told.silent).count();
            let fault = Fault {
                at: episode.lo,
                ns: episode.hi - episode.lo,
                what: format!(
                    "{} for {:.1} s",
                    episode.state,
                    seconds(episode.hi - episode.lo)
                ),
            };
            if loud > 1 + episode.free {
                self.verdict.double.push(fault);
            } else if loud == 0 && episode.must && (mine.is_empty() || !episode.silent) {
                self.verdict.missed.push(fault);
            } else if let Some(by) = episode.by
                && !mine.iter().any(|told| told.at <= by + LATE_TELL)
            {
                // Long enough before the process was stopped, and told only after it went on.
                self.verdict.missed.push(fault);
            } else if loud > 0 && episode.found {
                self.verdict.untrue.push(Fault {
                    what: format!("{}, which a start of the server found", fault.what),
                    ..fault
                });
            }
        }
        for told in left {
            if !told.silent {
                self.verdict.untrue.push(Fault {
                    at: told.at,
                    ns: 0,
                    what: format!("told of {}", told.state),
                });
            }
        }
        self.verdict.untrue.sort_by_key(|fault| fault.at);
    }

    /// A notification of the base mapping follows at once.
    fn soonest(&self) -> i64 {
        match self.whose {
            Whose::Ours => MAY_TELL,
            Whose::Base | Whose::File => -20 * MS,
        }
    }

    /// From when to when the process stood still, if nothing else lies between these two stays: Ctrl-Z and `fg` leave
    /// an episode as it was (D05), and what was told of it is not told again.
    fn stopped(&self, before: usize, after: usize) -> Option<(i64, i64)> {
        let spans = &self.truth.spans;
        let still = |span: &Span| span.want.iter().all(|want| want == "suspended");
        let between = spans.get(before + 1..after)?;
        let (first, goes_on) = (between.first()?, spans.get(after)?);
        let only = between.iter().all(still) && goes_on.kind == Kind::Resumed;
        only.then_some((first.hi, goes_on.lo))
    }

    fn episodes(&self) -> Vec<Episode> {
        let mut all: Vec<Episode> = Vec::new();
        for (place, span) in self.truth.spans.iter().enumerate() {
            let next = self.truth.spans.get(place + 1);
            let states: Vec<&str> = span
                .want
                .iter()
                .filter_map(|want| want.split('(').next())
                .collect();
            let Some(state) = states
                .iter()
                .find(|s| matches!(**s, "needs-input" | "review"))
            else {
                continue;
            };
            if span.suspended {
                continue;
            }
            let sure = states.iter().all(|other| other == state);
            let (lo, hi) = (span.lo, next.map_or(self.to, |next| next.hi).min(self.to));
            // It held for so long at least.
            let held = next.map_or(self.to, |next| next.lo).min(self.to) - span.hi;
            let dark = self
                .blind
                .iter()
                .any(|(from, to)| *from <= hi && *to >= lo - 500 * MS);
            let found = self
                .blind
                .iter()
                .any(|(from, to)| span.lo > *from + 100 * MS && span.hi < *to - RECOVERY);
            let must = sure && held >= MUST_TELL && !dark;
            let last = all.last_mut().filter(|last| last.state == *state);
            let stopped = last
                .as_ref()
                .and_then(|last| self.stopped(last.place, place));
            let goes_on =
                last.filter(|last| span.again || last.place + 1 == place || stopped.is_some());
            match goes_on {
                Some(last) => {
                    if stopped.is_some() && last.must && last.by.is_none() {
                        last.by = Some(last.hi);
                    }
                    last.asleep.extend(stopped);
                    last.hi = hi;
                    last.place = place;
                    last.must |= must;
                    // Whether two dialogs, one right after the other, are two episodes can't be seen.
                    last.free += usize::from(!span.again && stopped.is_none());
                }
                None => all.push(Episode {
                    state: (*state).to_owned(),
                    place,
                    lo,
                    hi,
                    must,
                    silent: span.itself,
                    found,
                    free: 0,
                    asleep: Vec::new(),
                    by: None,
                }),
            }
        }
        // Each yes inside a dialog may have brought another one, drawn in its place.
        for episode in &mut all {
            let inside = |at: i64| at > episode.lo && at < episode.hi - 300 * MS;
            let yes = self.truth.also.iter();
            let more = yes
                .filter(|(at, shut, _)| inside(*at) && *shut - *at == 1500 * MS)
                .count();
            episode.free += more;
        }
        all
    }
}

/// One stay of which somebody is to be told.
struct Episode {
    state: String,
    /// The last span of it.
    place: usize,
    lo: i64,
    hi: i64,
    /// It held long enough that somebody must be told.
    must: bool,
    /// Nobody typed the turn: an update without a sound is enough.
    silent: bool,
    /// It began while the server was down.
    found: bool,
    /// More notifications that may be right.
    free: usize,
    /// While the process stood still: then nobody is told.
    asleep: Vec<(i64, i64)>,
    /// By when it must have been told, since it held long enough before the process was stopped.
    by: Option<i64>,
}

/// From, to, and what was shown; `None`: nothing yet.
type Piece<'a> = (i64, i64, Option<&'a Shown>);

/// What was shown from `from` to `to`, in pieces.
fn stays(shown: &[Shown], from: i64, to: i64) -> Vec<Piece<'_>> {
    let mut all = Vec::new();
    let first = shown.first().map_or(i64::MAX, |shown| shown.at);
    if from < first.min(to) {
        all.push((from, first.min(to), None));
    }
    for (place, badge) in shown.iter().enumerate() {
        let end = shown.get(place + 1).map_or(i64::MAX, |next| next.at);
        let (low, high) = (badge.at.max(from), end.min(to));
        if low < high {
            all.push((low, high, Some(badge)));
        }
    }
    all
}

/// Pieces that touch and show the same become one.
fn joined(pieces: Vec<Piece<'_>>) -> Vec<Piece<'_>> {
    let mut all: Vec<Piece<'_>> = Vec::new();
    for piece in pieces {
        match all.last_mut() {
            Some(last) if last.1 == piece.0 && last.2 == piece.2 => last.1 = piece.1,
            Some(_) | None => all.push(piece),
        }
    }
    all
}

fn seconds(ns: i64) -> f64 {
    ns as f64 / 1e9
}

/// Claude's own file as badges: busy, needs-input or at rest.
#[must_use]
pub fn file_badges(run: &Run) -> Vec<Shown> {
    let mut shown: Vec<Shown> = Vec::new();
    for write in &run.written {
        let before = shown.last().map_or("idle", |last| last.badge.as_str());
        let badge = match (write.status.as_deref(), write.waiting_for.as_deref()) {
            (Some("busy"), _) => "busy",
            // The person's own menu hides what was.
            (Some("waiting"), Some("dialog open")) if before == "idle" => "idle",
            (Some("waiting"), _) => "needs-input",
            (Some(_), _) => "idle",
            (None, _) => "none",
        };
        if before != badge || shown.is_empty() {
            shown.push(Shown {
                at: write.at,
                badge: badge.to_owned(),
                suspended: false,
            });
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heard::{Aim, Asked, How, Key, Seen};
    use crate::screen::{Class, Look, Tail};
    use crate::truth;

    fn seen(ms: i64, class: Class, tail: Tail) -> Seen {
        let look = Look {
            class,
            tail,
            draft: false,
        };
        Seen {
            at: ms * MS,
            before: (ms - 20) * MS,
            look,
        }
    }

    fn shown(badges: &[(i64, &str)]) -> Vec<Shown> {
        let all = badges.iter().map(|(ms, badge)| Shown {
            at: ms * MS,
            badge: (*badge).to_owned(),
            suspended: *badge == "suspended",
        });
        all.collect()
    }

    fn told(ms: &[i64], state: &str) -> Vec<Told> {
        let all = ms.iter().map(|ms| Told {
            at: ms * MS,
            state: state.to_owned(),
            silent: false,
        });
        all.collect()
    }

    /// Claude is there after 1 s; a prompt at 2 s is answered at 4 s, and nothing comes after that.
    fn a_turn() -> Run {
        Run {
            from: 0,
            to: 10 * SECOND,
            keys: vec![Key {
                at: 2000 * MS,
                aim: Aim::Prompt("say t0m1".to_owned()),
            }],
            seen: vec![
                seen(1000, Class::Ready, Tail::Other),
                seen(2080, Class::Working, Tail::Other),
                seen(4150, Class::Ready, Tail::Done),
            ],
            asked: vec![Asked {
                at: 2100 * MS,
                kind: "main".to_owned(),
                agent: false,
                prompt: "say t0m1".to_owned(),
                end: Some((4000 * MS, How::Complete("end_turn".to_owned()))),
            }],
            ..Run::default()
        }
    }

    fn verdict(run: &Run, badges: &[(i64, &str)], tellings: &[i64]) -> Verdict {
        let truth = truth::conclude(run);
        let tellings = told(tellings, "review");
        judge(Whose::Ours, run, &truth, &shown(badges), &tellings)
    }

    #[test]
    fn what_is_right_at_every_moment_has_no_fault() {
        let badges = [
            (0, "none"),
            (1000, "idle"),
            (2060, "busy"),
            (4130, "review(finished)"),
        ];
        let verdict = verdict(&a_turn(), &badges, &[5200]);
        assert_eq!(verdict.faults(), []);
        assert_eq!(verdict.right, verdict.judged);
        let took: Vec<(Kind, Option<i64>)> = verdict
            .took
            .iter()
            .map(|took| (took.kind, took.ns.map(|ns| ns / MS)))
            .collect();
        let expected = [
            (Kind::Started, Some(0)),
            (Kind::Prompt, Some(60)),
            (Kind::Finished, Some(130)),
        ];
        assert_eq!(took, expected);
    }

    #[test]
    fn what_a_process_does_may_be_seen_before_that_it_goes_on() {
        let mut run = a_turn();
        let key = |ms: i64, aim| Key { at: ms * MS, aim };
        run.keys.push(key(2500, Aim::Suspend));
        run.keys.push(key(3950, Aim::Foreground));
        run.seen.insert(2, seen(2550, Class::Shell, Tail::Other));
        run.seen.insert(3, seen(3980, Class::Working, Tail::Other));
        let badges = |goes_on: i64| {
            let mut badges = shown(&[
                (0, "none"),
                (1000, "idle"),
                (2060, "busy"),
                (2700, "busy"),
                (4100, "review(finished)"),
                (goes_on, "review(finished)"),
            ]);
            for badge in &mut badges[3..5] {
                badge.suspended = true;
            }
            badges
        };
        let judged = |goes_on| {
            let truth = truth::conclude(&run);
            let told = told(&[5300], "review");
            let verdict = judge(Whose::Ours, &run, &truth, &badges(goes_on), &told);
            verdict.flaps.len() + verdict.overdue.len()
        };
        assert_eq!(judged(4300), 0);
        assert_ne!(judged(9000), 0, "a second is enough for that");
    }

    #[test]
    fn a_flash_of_a_wrong_badge_is_a_flap() {
        let badges = [
            (0, "none"),
            (1000, "idle"),
            (2060, "busy"),
            (3000, "needs-input(permission)"),
            (3050, "busy"),
            (3500, "idle"),
            (3550, "busy"),
            (4130, "review(finished)"),
        ];
        let verdict = verdict(&a_turn(), &badges, &[5200]);
        assert_eq!((verdict.flaps.len(), verdict.overdue.len()), (1, 0));
        assert_eq!(verdict.returns.len(), 1, "the earlier badge once more");
        // On the way from one right badge to the next as well.
        let badges = [
            (0, "none"),
            (1000, "idle"),
            (2060, "busy"),
            (4100, "idle"),
            (4200, "review(finished)"),
        ];
        let verdict = self::verdict(&a_turn(), &badges, &[5300]);
        assert_eq!(
            verdict.flaps.len() + verdict.overdue.len(),
            0,
            "inside the window nothing is known"
        );
        let badges = [
            (0, "none"),
            (1000, "idle"),
            (2060, "busy"),
            (4200, "idle"),
            (4300, "review(finished)"),
        ];
        assert_eq!(self::verdict(&a_turn(), &badges, &[5300]).flaps.len(), 1);
    }

    #[test]
    fn a_late_badge_is_late_and_a_very_late_one_is_a_fault() {
        let at = |ms| {
            [
                (0, "none"),
                (1000, "idle"),
                (2060, "busy"),
                (ms, "review(finished)"),
            ]
        };
        let late = verdict(&a_turn(), &at(4600), &[5600]);
        assert!(late.faults().is_empty() && late.took[2].late && !late.took[2].failed);
        let never = verdict(&a_turn(), &at(8000), &[]);
        assert_eq!(never.overdue.len(), 1);
        assert!(never.took[2].failed);
    }

    #[test]
    fn the_words_of_a_badge_count() {
        let badges = [
            (0, "none"),
            (1000, "idle"),
            (2060, "busy"),
            (4130, "review(failed)"),
        ];
        assert_eq!(verdict(&a_turn(), &badges, &[5200]).flaps.len(), 1);
    }

    #[test]
    fn notifications_are_false_missed_or_double() {
        let badges = [
            (0, "none"),
            (1000, "idle"),
            (2060, "busy"),
            (4130, "review(finished)"),
        ];
        assert_eq!(verdict(&a_turn(), &badges, &[]).missed.len(), 1);
        assert_eq!(verdict(&a_turn(), &badges, &[5200, 7000]).double.len(), 1);
        assert_eq!(verdict(&a_turn(), &badges, &[3000, 5200]).untrue.len(), 1);
    }

    /// A review at 4 s, Ctrl-Z, `fg` a second later, and seven seconds more of the same review.
    #[test]
    fn a_review_that_was_suspended_is_the_same_episode_and_told_once() {
        let judged = |ctrl_z: i64, tellings: &[i64]| {
            let mut run = a_turn();
            run.to = ctrl_z * MS + 8 * SECOND;
            let key = |ms: i64, aim| Key { at: ms * MS, aim };
            run.keys.push(key(ctrl_z, Aim::Suspend));
            run.keys.push(key(ctrl_z + 1000, Aim::Foreground));
            run.seen.push(seen(ctrl_z + 50, Class::Shell, Tail::Other));
            run.seen.push(seen(ctrl_z + 1080, Class::Ready, Tail::Done));
            let mut badges = shown(&[
                (0, "none"),
                (1000, "idle"),
                (2060, "busy"),
                (4130, "review(finished)"),
                (ctrl_z + 300, "review(finished)"),
                (ctrl_z + 1300, "review(finished)"),
            ]);
            badges[4].suspended = true;
            let truth = truth::conclude(&run);
            let told = told(tellings, "review");
            let verdict = judge(Whose::Ours, &run, &truth, &badges, &told);
            let other = verdict.flaps.len() + verdict.overdue.len();
            let (untrue, missed) = (verdict.untrue.len(), verdict.missed.len());
            (other, untrue, missed, verdict.double.len())
        };
        assert_eq!(judged(6000, &[5200]), (0, 0, 0, 0), "told, and not again");
        assert_eq!(judged(5000, &[8000]), (0, 0, 0, 0), "there was no time");
        assert_eq!(judged(6000, &[]), (0, 0, 1, 0), "nobody was told");
        assert_eq!(judged(6000, &[5200, 9000]), (0, 0, 0, 1), "told twice");
        assert_eq!(judged(6000, &[6800]), (0, 1, 1, 0), "told while it stood");
        assert_eq!(judged(9000, &[12_000]), (0, 0, 1, 0), "told too late");
    }

    #[test]
    fn nothing_is_asked_of_a_server_that_is_down_and_everything_of_one_that_is_back() {
        let outage = Outage {
            from: 3500 * MS,
            to: 5000 * MS,
        };
        let run = Run {
            outages: vec![outage],
            ..a_turn()
        };
        let back = |badge| {
            [
                (0, "none"),
                (1000, "idle"),
                (2060, "busy"),
                (5050, "unknown"),
                (5500, badge),
            ]
        };
        assert_eq!(verdict(&run, &back("review(finished)"), &[]).faults(), []);
        assert_eq!(verdict(&run, &back("idle"), &[]).faults().len(), 1);
        let found = verdict(&run, &back("review(finished)"), &[7000]);
        assert_eq!(found.untrue.len(), 1, "what a start finds is not told");
    }

    #[test]
    fn esc_is_idle_and_the_base_mapping_waits_for_the_line() {
        let mut run = a_turn();
        run.keys.push(Key {
            at: 3000 * MS,
            aim: Aim::Interrupt,
        });
        run.seen[2] = seen(3120, Class::Ready, Tail::Interrupted);
        run.asked[0].end = Some((3020 * MS, How::HungUp));
        let truth = truth::conclude(&run);
        assert_eq!(
            truth.spans.last().map(|span| span.want.clone()),
            Some(vec!["idle".to_owned()])
        );
        let badges = [(0, "none"), (1000, "idle"), (2060, "busy"), (3140, "idle")];
        assert_eq!(verdict(&run, &badges, &[]).faults(), []);
        let badges = [
            (0, "none"),
            (1000, "idle"),
            (2060, "busy"),
            (3140, "review(finished)"),
        ];
        assert!(!verdict(&run, &badges, &[4300]).faults().is_empty());
    }
}
