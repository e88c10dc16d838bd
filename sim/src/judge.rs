//! Compares what was shown with the truth: never a badge that was not right on the way, and the right one
//! within its deadline. Deadlines count from the arrival of what decides; they are those of the cases.

use crate::adversary::Adversary;
use crate::claude::NO_STATUS_MS;
use crate::truth::{Due, Entry, File, Id, Played, Push, Row, Signal, Want, What};
use crate::world::{Run, Seen, Shown};
use purplemux_core::view::AskKind;
use purplemux_core::witness::{FileStatus, HookKind, TranscriptKind, WaitingFor};

/// The general deadline, from the deciding signal.
const DEADLINE_MS: u64 = 300;
/// The wait of rule 4 for a late Stop.
const WAIT_MS: u64 = 500;
/// A question to the transcript and its answer.
const PROBE_MS: u64 = 50;
/// A process's end.
const DEATH_MS: u64 = 1000;
/// After a start of the server everything is right within this.
const RECOVERY_MS: u64 = 2000;
/// Rule 6: a push follows 1 to 3 s after the badge.
const PUSH_MS: u64 = 3000;
/// A request names the dialog from which it is no further away than this (rule 3).
const SKEW_MS: u64 = 200;
/// On a loaded machine the file is slower than that by so much; then no other request may stand beside it.
const SLOW_MS: u64 = 500;
/// A Stop is late, but counts, for so long after its spell.
const LATE_MS: u64 = 30_000;

/// What is wrong with this run; empty when nothing is.
#[must_use]
pub fn judge(played: &Played, run: &Run, adversary: &Adversary) -> Vec<String> {
    let mut faults = run.broken.clone();
    for (truth, seen) in played.truths.iter().zip(&run.seen) {
        let judge = Judge {
            played,
            signals: &played.signals,
            row: truth.row,
            seen,
            run,
            adversary,
            disturbed: adversary.knobs.disturbs_hooks() || played.hooks_vanish,
        };
        let entries = judge.with_allowances(&truth.entries);
        let dues = judge.dues(&entries);
        faults.extend(judge.walk(&entries, &dues));
        faults.extend(judge.texts(&entries, &dues));
        faults.extend(judge.pushes(&entries));
    }
    faults
}

/// One row.
struct Judge<'a> {
    played: &'a Played,
    signals: &'a [Option<Signal>],
    row: Row,
    seen: &'a [Seen],
    run: &'a Run,
    adversary: &'a Adversary,
    /// What only a hook says may be missing.
    disturbed: bool,
}

impl Judge<'_> {
    fn arrived(&self, id: Id) -> Option<u64> {
        self.run.arrived.get(id).copied().flatten()
    }

    /// A write that was read only with a later one decides nothing any more.
    fn decided(&self, id: Id) -> Option<u64> {
        let at = self.arrived(id)?;
        let Some(Signal {
            what: What::Wrote { process, .. },
            ..
        }) = &self.signals[id]
        else {
            return Some(at);
        };
        let own = self.played.signals_of(self.played.cast_of(id));
        let overtaken = (id + 1..own.end).any(|later| {
            matches!(&self.signals[later], Some(Signal { what: What::Wrote { process: other, .. }, .. }) if other == process)
                && self.arrived(later) == Some(at)
        });
        (!overtaken).then_some(at)
    }

    /// The transcript could not be read somewhere in this time.
    fn blind(&self, from: u64, to: u64) -> Option<u64> {
        let blind = self.adversary.blind.iter();
        let blind = blind
            .filter(|stretch| stretch.from <= to && from <= stretch.to)
            .map(|stretch| stretch.to);
        let failed = self.run.failed.iter().copied();
        blind
            .chain(failed.filter(|at| (from..=to).contains(at)))
            .max()
    }

    /// By when each entry must be shown. Of a version without a status nothing is known before it is known to be one.
    fn dues(&self, entries: &[Entry]) -> Vec<Option<u64>> {
        let mut known = 0;
        let dues = entries.iter().map(|entry| {
            let due = self.due(entry);
            if entry.want == Want::None {
                known = 0;
            }
            if matches!(
                entry.due,
                Due::After {
                    ms: NO_STATUS_MS,
                    ..
                }
            ) {
                known = due.unwrap_or(0);
            }
            due.map(|due| due.max(known))
        });
        dues.collect()
    }

    /// By when an entry must be shown; `None`: it may be skipped.
    fn due(&self, entry: &Entry) -> Option<u64> {
        let due = match &entry.due {
            Due::Never | Due::Unless { .. } | Due::Unread(_) => None,
            // Where the process can't be measured, six seconds tell (D06).
            Due::At(at) if *at > 0 && self.adversary.knobs.fail => Some(*at + 3500),
            Due::At(at) => Some(*at),
            Due::After { all, ms } => {
                let mut latest = 0;
                for id in all {
                    latest = latest.max(self.decided(*id)?);
                }
                Some(latest + ms)
            }
            Due::Answered { request, result } => {
                let result = self.decided(*result)?;
                let known = self.arrived(*request)?;
                (known <= result).then_some(result + DEADLINE_MS)
            }
            Due::IfRead { died, .. } => Some(self.decided(*died)? + DEATH_MS),
            Due::End {
                hook,
                file,
                lines,
                plain,
                compacted: _,
            } => {
                let reviews = matches!(entry.want, Want::Review { .. });
                if reviews && self.is_forgotten(*hook, *file) {
                    self.end_due_by_lines(*file, lines)
                } else {
                    self.end_due(*hook, *file, lines, *plain)
                }
            }
            Due::Silence { file, busy } => {
                if let Some(busy) = busy {
                    self.decided(*busy)?;
                }
                let asked = self.asked(*file)?;
                let file = self.decided(*file)?;
                let answered = self
                    .blind(file, asked)
                    .map_or(asked, |seen| seen.max(asked) + RECOVERY_MS);
                Some(answered + DEADLINE_MS)
            }
        }?;
        // A job has no row of its own before the end of its pane's Claude is told (R08).
        let left = self.left().filter(|_| entry.from > 0);
        let begins = left.map_or(Some(0), |(died, _)| self.decided(died))?;
        let due = if begins > 0 {
            due.max(begins + DEATH_MS)
        } else {
            due
        };
        // One start may follow another before it was over; they are in order.
        let mut due = due;
        for stretch in &self.adversary.down {
            if stretch.from <= due && due < stretch.to + RECOVERY_MS {
                due = stretch.to + RECOVERY_MS;
            }
        }
        Some(due)
    }

    fn end_due(&self, hook: Id, file: Id, lines: &[Id], plain: bool) -> Option<u64> {
        let written = file;
        if self.follows_a_dialog(file) {
            let rest = self
                .writes_after(file)
                .find(|id| self.written(*id).is_some_and(|(_, file)| rests(file)))?;
            return Some(self.asked(rest)? + RECOVERY_MS + DEADLINE_MS);
        }
        let asked = self.asked(file)?;
        let file = self.decided(file)?;
        let hook = self.arrived(hook);
        if let Some(hook) = hook
            && hook <= file + WAIT_MS
        {
            return Some(if plain && self.saw_it_begin(written) {
                file.max(hook) + DEADLINE_MS
            } else {
                asked + DEADLINE_MS + self.blind(file, asked).map_or(0, |_| RECOVERY_MS)
            });
        }
        if self.is_unknown_before(written) || self.looks_like_rest(written) {
            // A session that was met at rest has nothing to show for what it did before.
            return hook.map(|hook| hook.max(asked) + DEADLINE_MS);
        }
        // Nothing but the transcript tells in time.
        let seen = lines
            .iter()
            .filter_map(|id| self.signals[*id].as_ref())
            .map(|line| line.at)
            .max();
        let written = self.signals[written].as_ref().map_or(file, |file| file.at);
        let by_lines =
            seen.filter(|seen| *seen + 25 < written + WAIT_MS && self.blind(file, asked).is_none());
        match (by_lines, hook) {
            (Some(_), _) => Some(asked + DEADLINE_MS),
            (None, Some(hook)) if hook < file + LATE_MS => Some(hook.max(asked) + DEADLINE_MS),
            (None, Some(_) | None) => None,
        }
    }

    /// When the transcript has answered after this write: half a second later (rule 4).
    fn asked(&self, write: Id) -> Option<u64> {
        let mut until = self.decided(write)? + WAIT_MS;
        let menu = self
            .written(write)
            .is_some_and(|(_, file)| file.waiting_for == Some(WaitingFor::DialogOpen));
        for later in self.writes_after(write) {
            let (Some(arrived), Some((at, file))) = (self.arrived(later), self.written(later))
            else {
                continue;
            };
            if menu && rests(file) && arrived <= until {
                // An end under a menu of which nothing tells is looked for when the file rests (rule 5).
                until = arrived + WAIT_MS;
            }
            if self.adversary.tears(later) && at <= until && arrived > until {
                // Whether a turn goes on can't be read just then (rule 2).
                until = arrived;
            }
        }
        Some(until + PROBE_MS)
    }

    fn written(&self, id: Id) -> Option<(u64, &File)> {
        match self.signals[id].as_ref()? {
            Signal {
                at,
                what: What::Wrote { process: _, file },
            } => Some((*at, file)),
            Signal { .. } => None,
        }
    }

    fn writes(&self, write: Id) -> impl DoubleEndedIterator<Item = Id> {
        let own = self.played.signals_of(self.played.cast_of(write));
        let process = |id: Id| match &self.signals[id] {
            Some(Signal {
                what: What::Wrote { process, file: _ },
                ..
            }) => Some(*process),
            Some(_) | None => None,
        };
        own.filter(move |id| process(*id).is_some() && process(*id) == process(write))
    }

    fn writes_after(&self, write: Id) -> impl Iterator<Item = Id> {
        self.writes(write).filter(move |id| *id > write)
    }

    /// A menu that was read right after a dialog, since nothing between them was: it may be another dialog, and the badge
    /// stays (rule 5).
    fn follows_a_dialog(&self, write: Id) -> bool {
        let waits = |id| {
            let file = self.written(id).map(|(_, file)| file);
            file.is_some_and(|file| file.status == Some(FileStatus::Waiting))
        };
        let mut before = self.writes(write).rev();
        let before = before.find(|id| *id < write && self.decided(*id).is_some());
        waits(write) && before.is_some_and(waits)
    }

    /// The rest from which the spell began that ends with this write was read, and the first write of the spell. Where
    /// they were not, a prompt that began it looks like one that waits, and the other way round (rule 4).
    fn saw_it_begin(&self, write: Id) -> bool {
        let resting = |id: Id| self.written(id).is_some_and(|(_, file)| rests(file));
        let mut before = self.writes(write).rev();
        let rest = before.find(|id| *id < write && resting(*id));
        let Some(rest) = rest else {
            return true;
        };
        let first = self.writes_after(rest).find(|id| *id < write);
        self.decided(rest).is_some() && first.is_none_or(|first| self.decided(first).is_some())
    }

    /// Between the rest that was read last and this menu no write was: the person may have opened it over the rest
    /// (rule 5), and nothing asks the transcript.
    fn looks_like_rest(&self, write: Id) -> bool {
        let menu = self
            .written(write)
            .is_some_and(|(_, file)| file.waiting_for == Some(WaitingFor::DialogOpen));
        let mut before = self.writes(write).rev();
        let before = before.find(|id| *id < write && self.decided(*id).is_some());
        let before = before.and_then(|id| self.written(id));
        menu && before.is_some_and(|(_, file)| rests(file))
    }

    /// The server that heard this hook ended before it read this write. While a turn runs, what was heard of its
    /// end is nothing that a badge would show, so nothing of it is kept.
    fn is_forgotten(&self, hook: Id, file: Id) -> bool {
        let (Some(hook), Some(file)) = (self.arrived(hook), self.arrived(file)) else {
            return false;
        };
        let mut down = self.adversary.down.iter();
        down.any(|stretch| hook < stretch.from && stretch.to <= file)
    }

    /// The end of a turn that nothing but the transcript still tells of: as soon as it is read (rule 4).
    fn end_due_by_lines(&self, file: Id, lines: &[Id]) -> Option<u64> {
        let asked = self.asked(file)?;
        let lines = lines.iter().filter_map(|id| self.signals[*id].as_ref());
        let last = lines.max_by_key(|line| line.at)?;
        let What::Line { conversation, .. } = last.what else {
            return None;
        };
        let mut read = self.run.read.iter();
        let read =
            read.find(|(at, of)| *at >= last.at && *of == conversation && *at + PROBE_MS >= asked)?;
        Some(read.0.max(asked) + DEADLINE_MS)
    }

    /// Nothing that its process wrote with a status was read before this write was.
    fn is_unknown_before(&self, file: Id) -> bool {
        let Some(Signal {
            what: What::Wrote { process, .. },
            ..
        }) = &self.signals[file]
        else {
            return false;
        };
        let own = self.played.signals_of(self.played.cast_of(file));
        let first = self.signals[own.clone()].iter().position(|signal| {
            matches!(signal, Some(Signal { what: What::Wrote { process: other, file }, .. })
                if other == process && file.status.is_some())
        });
        first.is_some_and(|first| self.arrived(own.start + first) == self.arrived(file))
    }

    /// Entries that lost or late evidence makes right besides the truth.
    fn with_allowances(&self, entries: &[Entry]) -> Vec<Entry> {
        let mut all = Vec::new();
        for (place, entry) in entries.iter().enumerate() {
            if place == 1 {
                all.extend(self.goes_on(entry));
            }
            if let Due::Unread(write) = entry.due
                && self.decided(write).is_some()
            {
                continue;
            }
            if let Due::IfRead {
                look,
                came,
                died: _,
            } = entry.due
                && self.arrived(look).is_some() != came
            {
                continue;
            }
            if let Due::Unless { told, file } = &entry.due {
                let Some(file) = self.arrived(*file) else {
                    continue;
                };
                let known = told
                    .iter()
                    .any(|id| self.arrived(*id).is_some_and(|told| told < file));
                if known {
                    continue;
                }
            }
            if let Due::End {
                hook,
                file: file_id,
                compacted,
                ..
            } = &entry.due
                && matches!(entry.want, Want::Review { .. })
                && let Some(file) = self.arrived(*file_id)
            {
                // The wait counts from the write, as its stamp says.
                let written = self.signals[*file_id]
                    .as_ref()
                    .map_or(file, |write| write.at);
                let in_time = self
                    .arrived(*hook)
                    .is_some_and(|hook| hook <= written + WAIT_MS)
                    && !self.is_forgotten(*hook, *file_id);
                if !in_time {
                    all.push(Entry {
                        want: Want::Idle,
                        from: entry.from,
                        due: Due::Never,
                        push: Push::Silent,
                        why: "rule 4: idle for want of evidence",
                        cast: entry.cast,
                    });
                }
                if self.looks_like_a_dialog(*file_id, file) {
                    all.push(Entry {
                        want: Want::Ask {
                            kind: AskKind::Dialog,
                            text: None,
                        },
                        from: entry.from,
                        due: Due::Never,
                        push: Push::Perhaps,
                        why: "rule 5: no result of the last tool had arrived",
                        cast: entry.cast,
                    });
                    all.push(Entry {
                        want: Want::Busy,
                        from: entry.from,
                        due: Due::Never,
                        push: Push::Silent,
                        why: "rule 5: then the result came, and not yet the end",
                        cast: entry.cast,
                    });
                }
                if let Some(began) = compacted
                    && self.disturbed
                {
                    all.push(Entry {
                        want: Want::AsBefore { at: *began },
                        from: entry.from,
                        due: Due::Never,
                        push: Push::Silent,
                        why: "rule 4: only the compaction was told in time",
                        cast: entry.cast,
                    });
                }
            }
            if let Some((job, died)) = self.job_left_by(entry) {
                // Until the end of its pane's Claude is known the pane's row is the job's (R08): what has become right since.
                let since = job
                    .iter()
                    .filter(|own| (entry.from + 1..died).contains(&own.from));
                all.extend(since.map(|own| Entry {
                    due: Due::Never,
                    push: Push::Perhaps,
                    why: "R08 the pane's Claude is just leaving",
                    ..own.clone()
                }));
            }
            all.push(entry.clone());
        }
        all
    }

    /// The badge with which a job comes out of its pane's row, where it is judged as well: it stays until something
    /// else is due.
    fn goes_on(&self, first: &Entry) -> Option<Entry> {
        let (died, tab) = self.left()?;
        let died = self.arrived(died)?;
        let mut before = tab.iter().rev().filter(|seen| seen.at <= died);
        let want = match &before.find(|seen| seen.shown != Shown::None)?.shown {
            Shown::Idle => Want::Idle,
            Shown::Busy => Want::Busy,
            Shown::Ask(kind) => Want::Ask {
                kind: *kind,
                text: None,
            },
            Shown::Review(error) => Want::Review {
                error: error.clone(),
            },
            Shown::None | Shown::Unknown => return None,
        };
        Some(Entry {
            want,
            due: Due::Never,
            push: Push::Perhaps,
            why: "R08 as it was in the pane's row",
            ..first.clone()
        })
    }

    /// With this entry of a tab its Claude leaves a job that goes on without it: what is right in the job's own
    /// row, and by when the pane's shows nothing any more.
    fn job_left_by(&self, entry: &Entry) -> Option<(&[Entry], u64)> {
        let (Row::Tab(_), Want::None) = (self.row, &entry.want) else {
            return None;
        };
        let mut rows = self.played.truths.iter();
        let job = rows.find(|truth| {
            let own = truth
                .entries
                .last()
                .is_some_and(|own| own.cast == entry.cast);
            own && matches!(truth.row, Row::Job(_))
        })?;
        let leaves = job.entries.get(1)?.from == entry.from;
        let until = self.due(entry).filter(|_| leaves)?;
        Some((&job.entries, until))
    }

    /// A turn that ended under the person's own menu while nothing told that its last tool had ended.
    fn looks_like_a_dialog(&self, file: Id, read: u64) -> bool {
        let menu = matches!(
            &self.signals[file],
            Some(Signal {
                what: What::Wrote {
                    file: File {
                        waiting_for: Some(WaitingFor::DialogOpen),
                        ..
                    },
                    ..
                },
                ..
            })
        );
        let told = |ends: fn(&What) -> bool| {
            let first = self.played.signals_of(self.played.cast_of(file)).start;
            let last = self.signals[first..file]
                .iter()
                .rposition(|signal| signal.as_ref().is_some_and(|signal| ends(&signal.what)));
            last.is_none_or(|id| self.arrived(first + id).is_some_and(|told| told <= read))
        };
        let line = told(|what| {
            matches!(
                what,
                What::Line {
                    kind: TranscriptKind::ToolEnded { .. },
                    ..
                }
            )
        });
        menu && !line
    }

    fn shown_at(&self, at: u64) -> &Seen {
        let seen = self.seen.iter().rev().find(|seen| seen.at <= at);
        seen.unwrap_or(&self.seen[0])
    }

    fn fits(&self, entries: &[Entry], place: usize, seen: &Seen) -> bool {
        let recovers = |stretch: &crate::adversary::Stretch| {
            (stretch.to..stretch.to + RECOVERY_MS).contains(&seen.at)
        };
        if seen.shown == Shown::Unknown {
            // Without a status nothing may tell for long what it does (H05).
            let mut down = self.adversary.down.iter();
            let old = down.any(|stretch| stretch.to <= seen.at)
                && !matches!(entries[place].want, Want::None)
                && self.is_old(entries[place].cast, seen.at);
            return old || self.adversary.down.iter().any(recovers);
        }
        match &entries[place].want {
            Want::None => seen.shown == Shown::None,
            Want::Idle => seen.shown == Shown::Idle,
            Want::Busy => seen.shown == Shown::Busy,
            Want::Ask { kind, .. } => {
                matches!(&seen.shown, Shown::Ask(shown) if self.names(*kind, *shown, seen.at, &entries[place]))
            }
            Want::Review { error } => seen.shown == Shown::Review(error.clone()),
            Want::AsBefore { at } => {
                let before = &self.shown_at(*at).shown;
                let settled = &self.shown_at(*at + DEADLINE_MS).shown;
                let knobs = self.adversary.knobs;
                let poorer = self.disturbed || knobs.blind || knobs.fail;
                let rests = matches!(seen.shown, Shown::Idle | Shown::Review(_));
                rests
                    && (seen.shown == *before
                        || seen.shown == *settled
                        || (poorer && seen.shown == Shown::Idle)
                        || self.rested(entries, place, &seen.shown))
            }
        }
    }

    /// The badge that was right before the spell, whether or not it was shown yet.
    fn rested(&self, entries: &[Entry], place: usize, shown: &Shown) -> bool {
        for entry in entries[..place].iter().rev() {
            match &entry.want {
                Want::Busy | Want::AsBefore { .. } => {}
                Want::Idle if *shown == Shown::Idle => return true,
                // A review that was not on show was not read (P09).
                Want::Idle if self.is_missed_look(entry) => {}
                Want::Review { error } => return *shown == Shown::Review(error.clone()),
                Want::None | Want::Idle | Want::Ask { .. } => return false,
            }
        }
        false
    }

    fn is_missed_look(&self, entry: &Entry) -> bool {
        let Due::After { all, ms: _ } = &entry.due else {
            return false;
        };
        all.iter().any(|id| {
            let signal = self.signals[*id].as_ref();
            let looks = signal.is_some_and(|signal| matches!(signal.what, What::Looked { .. }));
            looks && self.arrived(*id).is_none()
        })
    }

    /// The file tells permission from input; only a hook tells plan, question and form.
    fn names(&self, right: AskKind, shown: AskKind, at: u64, entry: &Entry) -> bool {
        let unsure = at < entry.from + 600
            || self.disturbed
            || self.in_doubt(entry.cast, at)
            || self.is_answered(entry, at);
        right == shown
            || (unsure
                && matches!(
                    (right, shown),
                    (AskKind::Plan, AskKind::Permission)
                        | (AskKind::Form, AskKind::Question)
                        | (AskKind::Question, AskKind::Form)
                ))
    }

    /// That a form or a plan was answered is known, and not yet from the file that it is over.
    fn is_answered(&self, entry: &Entry, at: u64) -> bool {
        let mut own = self.played.signals_of(entry.cast);
        own.any(|id| {
            let answers = self.signals[id].as_ref().is_some_and(|signal| {
                let hook = matches!(
                    signal.what,
                    What::Hook {
                        lane: None,
                        kind: HookKind::FormAnswered | HookKind::ToolEnded { .. },
                        ..
                    }
                );
                hook && signal.at > entry.from
            });
            answers && self.arrived(id).is_some_and(|told| told <= at)
        })
    }

    /// Goes along what was shown and what was right, one step of either at a time.
    fn walk(&self, entries: &[Entry], dues: &[Option<u64>]) -> Vec<String> {
        let mut moments: Vec<u64> = self.seen.iter().map(|seen| seen.at).collect();
        // A deadline is kept up to its last millisecond, and broken in the next.
        moments.extend(dues.iter().flatten().map(|due| due + 1));
        moments.extend(entries.iter().filter_map(|entry| match entry.want {
            Want::Ask { .. } => Some(entry.from + 601),
            Want::None | Want::Idle | Want::Busy | Want::Review { .. } | Want::AsBefore { .. } => {
                None
            }
        }));
        moments.push(self.run.end);
        moments.sort_unstable();
        moments.dedup();
        let mut place = 0;
        for at in moments {
            if at > self.run.end || self.is_down(at) {
                continue;
            }
            // Several changes within one event: the last one is what a viewer sees.
            let seen = self.shown_at(at);
            let seen = &Seen { at, ..seen.clone() };
            if self.is_stored(seen) {
                continue;
            }
            let must = dues
                .iter()
                .rposition(|due| due.is_some_and(|due| due < at))
                .unwrap_or(0);
            let low = place.max(must);
            let found = (low..entries.len())
                .find(|next| entries[*next].from <= at && self.fits(entries, *next, seen));
            match found {
                Some(next) => place = next,
                None => {
                    let wanted = &entries[low];
                    let due = dues[low];
                    let also: Vec<&Want> = entries[low..]
                        .iter()
                        .take_while(|entry| entry.from <= at)
                        .map(|entry| &entry.want)
                        .collect();
                    return vec![format!(
                        "at {at}: {:?} is shown in {:?}; right is {also:?} (from {} due {due:?}, {})",
                        seen.shown, self.row, wanted.from, wanted.why
                    )];
                }
            }
        }
        Vec::new()
    }

    /// In the row of a job whose pane was left while the server was down: for the two seconds after its start, what
    /// the pane's row showed last (H01 to H03), as it may be shown in every other row.
    fn is_stored(&self, seen: &Seen) -> bool {
        let Some((died, tab)) = self.left() else {
            return false;
        };
        let Some(Signal { at: left, .. }) = self.signals[died] else {
            return false;
        };
        let down = &self.adversary.down;
        let Some(first) = down.iter().position(|stretch| stretch.holds(left)) else {
            return false;
        };
        let before = tab.iter().rev().find(|shown| shown.at < down[first].from);
        let same = before.is_some_and(|before| {
            before.shown == seen.shown && before.text == seen.text && before.episode == seen.episode
        });
        // The next start may follow before this one was over.
        let mut until = down[first].to + RECOVERY_MS;
        for stretch in &down[first + 1..] {
            if stretch.from <= until {
                until = stretch.to + RECOVERY_MS;
            }
        }
        same && (down[first].to..until).contains(&seen.at)
    }

    /// Of a job's row: the end of its pane's Claude, and what the pane's row showed.
    fn left(&self) -> Option<(Id, &[Seen])> {
        let Row::Job(_) = self.row else {
            return None;
        };
        let mut own = self.played.truths.iter();
        let own = own.find(|truth| truth.row == self.row)?;
        let cast = own.entries.last()?.cast;
        let rows = self.played.truths.iter().zip(&self.run.seen);
        let mut tabs = rows.filter(|(truth, _)| matches!(truth.row, Row::Tab(_)));
        tabs.find_map(|(truth, seen)| {
            let mut entries = truth.entries.iter();
            let last = entries.rfind(|entry| entry.cast == cast)?;
            let Due::After { all, ms: _ } = &last.due else {
                return None;
            };
            Some((*all.last()?, seen.as_slice()))
        })
    }

    fn is_down(&self, at: u64) -> bool {
        self.adversary.down.iter().any(|stretch| stretch.holds(at))
    }

    /// A permission dialog never shows another command than the one that is asked about; and where all hooks come
    /// in time it shows that one, unless it may be another's (rule 3).
    fn texts(&self, entries: &[Entry], dues: &[Option<u64>]) -> Vec<String> {
        let mut faults = Vec::new();
        for (place, entry) in entries.iter().enumerate() {
            let Want::Ask {
                text: Some(text), ..
            } = &entry.want
            else {
                continue;
            };
            let Some(due) = dues[place] else {
                continue;
            };
            let mut at = due.max(entry.from + 300) + 200;
            let next = entries
                .get(place + 1)
                .map_or(self.run.end, |next| next.from);
            if at >= next {
                continue;
            }
            let before = self.shown_at(at).text.as_deref().unwrap_or("");
            if !before.is_empty() && !before.contains(text.as_ref()) {
                // As long as nothing tells that the dialog before was answered, it may be the one in front.
                match self.answer_told(entry.cast, before, at) {
                    Some(told) => at = at.max(told + 500),
                    None => continue,
                }
                if at >= next {
                    continue;
                }
            }
            let seen = self.shown_at(at);
            let says = seen.text.as_deref().unwrap_or("");
            let right = says.contains(text.as_ref());
            let blank = says.is_empty() && (self.disturbed || self.in_doubt(entry.cast, at));
            if matches!(seen.shown, Shown::Ask(_)) && !right && !blank {
                faults.push(format!(
                    "at {at}: the dialog asks {text:?}, shown is {says:?}"
                ));
            }
        }
        faults
    }

    /// When it was first told that the dialog with this text, as it is shown at `at`, was answered: by the result of its
    /// tool, by that of another request which was known, since dialogs are answered in order, or by the file. The result of a
    /// tool whose request never came tells nothing: it may have asked nobody (Q12). Zero if it was never asked.
    fn answer_told(&self, cast: usize, text: &str, at: u64) -> Option<u64> {
        let own = self.played.signals_of(cast);
        let signals = || {
            own.clone()
                .filter_map(|id| Some((id, self.signals[id].as_ref()?)))
        };
        let requests = || {
            signals().filter_map(|(id, signal)| match &signal.what {
                What::Hook {
                    process,
                    kind: HookKind::PermissionRequested { tool },
                    ..
                } => Some((id, signal.at, *process, tool)),
                What::Hook { .. }
                | What::Wrote { .. }
                | What::Removed { .. }
                | What::Line { .. }
                | What::Found { .. }
                | What::KeyFile { .. }
                | What::Quiet { .. }
                | What::Stopped { .. }
                | What::Died { .. }
                | What::Looked { .. } => None,
            })
        };
        let says = |arg: Option<&str>| arg.is_some_and(|arg| text.contains(arg));
        let shown = requests().find(|(id, _, _, tool)| {
            says(tool.arg.as_deref()) && self.arrived(*id).is_some_and(|asked| asked <= at)
        });
        let Some((shown, asked, process, _)) = shown else {
            return Some(0);
        };
        let results = requests().filter_map(|(request, since, _, tool)| {
            let result = signals().filter(|(_, signal)| ends(&signal.what, tool.input_digest));
            let result = result.filter_map(|(id, _)| self.arrived(id)).min()?;
            let known = self.arrived(request).is_some_and(|asked| asked <= result);
            (request == shown || (known && since >= asked)).then_some(result)
        });
        let writes = signals().filter_map(|(id, signal)| {
            let What::Wrote { process: of, file } = &signal.what else {
                return None;
            };
            let goes_on = *of == process
                && signal.at > asked + SKEW_MS
                && file.status != Some(FileStatus::Waiting);
            self.decided(id).filter(|_| goes_on)
        });
        let died = signals().filter_map(|(id, signal)| {
            let dies = signal.what == What::Died { process };
            self.arrived(id).filter(|_| dies)
        });
        results.chain(writes).chain(died).min()
    }

    /// At this moment this model was a version without a status.
    fn is_old(&self, cast: usize, at: u64) -> bool {
        let own = &self.signals[self.played.signals_of(cast)];
        let signals = own.iter().flatten();
        let process = signals
            .filter(|signal| signal.at <= at)
            .rev()
            .find_map(|signal| {
                if let What::Found { process } = signal.what {
                    Some(process)
                } else {
                    None
                }
            });
        process.is_some_and(|process| self.played.births[process].old)
    }

    /// Whose request it is can't be told: there is none within 200 ms of the file, another stands beside it or may
    /// just have been slow to be written, or several wait behind it.
    fn in_doubt(&self, cast: usize, at: u64) -> bool {
        let own = &self.signals[self.played.signals_of(cast)];
        let signals = || own.iter().flatten().filter(|s| s.at <= at);
        if self.is_old(cast, at) {
            // Without a status the request itself shows the dialog, and one lane has one at a time.
            return self.disturbed;
        }
        let opened = signals()
            .rev()
            .filter_map(|signal| {
                if let What::Wrote { file, .. } = &signal.what {
                    Some(file)
                } else {
                    None
                }
            })
            .take_while(|file| file.status == Some(FileStatus::Waiting))
            .last()
            .map_or(0, |file| file.since);
        let requests: Vec<u64> = signals()
            .filter(|signal| is_request(&signal.what))
            .map(|signal| signal.at)
            .filter(|request| request + SLOW_MS >= opened)
            .collect();
        let mut first = requests.iter().filter(|r| **r <= opened + SKEW_MS);
        let alone = match (first.next(), first.next()) {
            (Some(request), None) => request + SKEW_MS >= opened,
            (None | Some(_), _) => false,
        };
        !alone || requests.len() > 2
    }

    /// A stay that lasts is pushed once; one that is over before anybody could be told is not.
    fn pushes(&self, entries: &[Entry]) -> Vec<String> {
        let mut faults = Vec::new();
        let stays = self.stays();
        for (from, to, episode) in stays {
            let alerts: Vec<bool> = self
                .run
                .alerts
                .iter()
                .filter(|alert| alert.episode == episode && (from..=to).contains(&alert.at))
                .filter_map(|alert| alert.silent)
                .collect();
            let loud = alerts.iter().any(|silent| !silent);
            // It may have begun in another row (R08).
            let rows = self.run.seen.iter().flatten();
            let began = rows.filter(|seen| seen.episode == Some(episode));
            let began = began.map(|seen| seen.at).min().unwrap_or(from);
            let early = self
                .run
                .alerts
                .iter()
                .filter(|alert| (from..=to).contains(&alert.at))
                .any(|alert| {
                    alert.episode == episode
                        && alert.silent == Some(false)
                        && alert.at < began + 900
                });
            if early {
                faults.push(format!(
                    "{episode:?} from {from} was pushed before it had held"
                ));
            }
            let lasts = to.saturating_sub(from) > PUSH_MS + 100;
            let place = entries.iter().rposition(|entry| {
                let stays = matches!(
                    entry.want,
                    Want::Ask { .. } | Want::Review { .. } | Want::AsBefore { .. }
                );
                stays && entry.from <= from
            });
            // What was so before a start is found by it, and told to nobody (rule 6); what became so after it is news.
            let since = place.map_or(0, |place| match &entries[place].want {
                // A dialog of the start is told only two seconds after it is drawn (D06).
                Want::Ask {
                    kind: AskKind::Startup,
                    ..
                } => entries[place].from.saturating_sub(2500),
                Want::None
                | Want::Idle
                | Want::Busy
                | Want::Ask { .. }
                | Want::Review { .. }
                | Want::AsBefore { .. } => entries[place].from,
            });
            let down = self.adversary.down.iter();
            let mut down = down.filter(|stretch| stretch.from <= from + PUSH_MS + 100);
            // Of a version without a status nothing is known for sure before recovery is over.
            let old = place.is_some_and(|place| self.is_old(entries[place].cast, from));
            let troubled = down.any(|stretch| old || since <= stretch.to || from <= stretch.from)
                || self.suspended_in(entries, from, to);
            let push = place.map_or(Push::Perhaps, |place| entries[place].push);
            let next = place.and_then(|place| entries.get(place + 1));
            let right = next.is_none_or(|next| next.from > from + PUSH_MS + 100);
            if push == Push::Yes && lasts && right && !loud && !troubled {
                faults.push(format!("{episode:?} from {from} to {to} was never pushed"));
            }
        }
        faults
    }

    fn stays(&self) -> Vec<(u64, u64, purplemux_core::EpisodeId)> {
        let mut stays: Vec<(u64, u64, purplemux_core::EpisodeId)> = Vec::new();
        let seen = self.seen;
        for (place, now) in seen.iter().enumerate() {
            let to = seen.get(place + 1).map_or(self.run.end, |next| next.at);
            let Some(episode) = now.episode else {
                continue;
            };
            match stays.last_mut() {
                Some(last) if last.2 == episode && last.1 == now.at => last.1 = to,
                Some(_) | None => stays.push((now.at, to, episode)),
            }
        }
        stays
    }

    fn suspended_in(&self, entries: &[Entry], from: u64, to: u64) -> bool {
        let ours = |id: Id| {
            let cast = self.played.cast_of(id);
            entries.iter().any(|entry| entry.cast == cast)
        };
        let signals = self.signals.iter().enumerate();
        let signals = signals.filter(|(id, signal)| signal.is_some() && ours(*id));
        let mut changes = signals
            .filter_map(|(_, signal)| signal.as_ref())
            .filter_map(|signal| {
                if let What::Stopped { stopped, .. } = signal.what {
                    Some((signal.at, stopped))
                } else {
                    None
                }
            });
        let before = changes.clone().rfind(|(at, _)| *at < from);
        before.is_some_and(|(_, stopped)| stopped)
            || changes.any(|(at, _)| (from..=to).contains(&at))
    }
}

fn rests(file: &File) -> bool {
    matches!(file.status, Some(FileStatus::Idle | FileStatus::Shell))
}

/// This tool, by its number, is over.
fn ends(what: &What, number: u64) -> bool {
    match what {
        What::Hook {
            kind:
                HookKind::ToolEnded { tool }
                | HookKind::ToolFailed {
                    tool,
                    interrupted: _,
                },
            ..
        } => tool.input_digest == number,
        What::Line {
            kind: TranscriptKind::ToolEnded { use_id },
            ..
        } => use_id.strip_prefix("toolu_") == Some(number.to_string().as_str()),
        What::Hook { .. }
        | What::Line { .. }
        | What::Wrote { .. }
        | What::Removed { .. }
        | What::Found { .. }
        | What::KeyFile { .. }
        | What::Quiet { .. }
        | What::Stopped { .. }
        | What::Died { .. }
        | What::Looked { .. } => false,
    }
}

fn is_request(what: &What) -> bool {
    matches!(
        what,
        What::Hook {
            kind: HookKind::PermissionRequested { .. } | HookKind::FormAsked { .. },
            ..
        }
    )
}
