//! What was right, and when: a timeline concluded from the keys, the fake's log and the looks of the screen.
//!
//! Each change has a moment and a window. Before the window only the earlier badge is right, after it only the later
//! one; inside, either is, because keys, requests and redraws say no more exactly when it happened.
//!
//! Pure. Must never read a status file, a hook or anything of purplemux's: [`Run::shown`] and its neighbours are for
//! the judge.

use crate::heard::{Aim, Asked, How, Key, MS, Run, SECOND, Seen};
use crate::screen::{Class, Tail};

/// A rest between two spells of work is bridged up to here: a queued prompt starts by itself.
const BRIDGE: i64 = 700 * MS;

/// … and up to here either is right.
const BRIDGE_SLOW: i64 = 2 * SECOND;

/// What a change was, for the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Enter made Claude work.
    Prompt,
    /// Claude went to work by itself.
    Itself,
    /// A dialog was drawn.
    Dialog,
    /// Its answer let Claude go on.
    Answer,
    /// An answer is there.
    Finished,
    /// An error ended the turn.
    Failed,
    /// A key ended the turn.
    Interrupted,
    /// A dialog was refused.
    Refused,
    /// A compaction is over, or was given up.
    Compacted,
    /// `/clear`.
    Cleared,
    /// Claude is there.
    Started,
    /// It has left.
    Exited,
    /// It was killed.
    Killed,
    /// Ctrl-Z.
    Suspended,
    /// `fg`.
    Resumed,
}

impl Kind {
    /// In words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Prompt => "Enter → busy",
            Self::Itself => "by itself → busy",
            Self::Dialog => "dialog drawn → needs-input",
            Self::Answer => "answered → busy",
            Self::Finished => "answer there → review",
            Self::Failed => "error → review (failed)",
            Self::Interrupted => "Esc → idle",
            Self::Refused => "refused → idle",
            Self::Compacted => "compaction over → as before",
            Self::Cleared => "/clear → idle",
            Self::Started => "Claude drawn → idle",
            Self::Exited => "/exit → none",
            Self::Killed => "kill -9 → none",
            Self::Suspended => "Ctrl-Z → suspended",
            Self::Resumed => "fg → as it is",
        }
    }
}

/// One stay, and the change that began it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// What began it.
    pub kind: Kind,
    /// The change can't have been before this.
    pub lo: i64,
    /// From here the time to the right badge is counted.
    pub moment: i64,
    /// It can't have been after this.
    pub hi: i64,
    /// The badge must be right from here on.
    pub due: i64,
    /// Each of these is right; more than one where the evidence does not decide.
    pub want: Vec<String>,
    /// The process stands still: drawn as suspended, whatever the badge.
    pub suspended: bool,
    /// It goes on with the stay before the last one: a compaction gives the badge back.
    pub again: bool,
    /// It ends, or is, a turn that nobody typed.
    pub itself: bool,
}

/// The timeline.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Truth {
    /// In order; the first begins with the run.
    pub spans: Vec<Span>,
    /// Badges that are right too, from, to: what a change may pass through.
    pub also: Vec<(i64, i64, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Is {
    Shell,
    Starting,
    Rest,
    Work,
    Dialog(crate::screen::Ask),
}

#[derive(Clone, Copy, Debug)]
struct Segment {
    at: i64,
    before: i64,
    is: Is,
}

/// Why Claude works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Opener {
    Prompt,
    Compact,
    Itself,
}

/// One spell of work, to the next rest.
#[derive(Clone, Debug)]
struct Spell {
    from: i64,
    opener: Opener,
    before: Vec<String>,
}

/// Concludes the timeline of a run.
#[must_use]
pub fn conclude(run: &Run) -> Truth {
    let mut scribe = Scribe {
        run,
        truth: Truth::default(),
        rest: vec!["idle".to_owned()],
        rest_at: run.from,
        spell: None,
        suspended: false,
    };
    scribe.truth.spans.push(Span {
        kind: Kind::Started,
        lo: run.from,
        moment: run.from,
        hi: run.from,
        due: run.from,
        want: vec!["none".to_owned()],
        suspended: false,
        again: false,
        itself: false,
    });
    // Whatever the first look shows, there was nothing before it.
    let nothing = Segment {
        at: run.from,
        before: run.from,
        is: Is::Shell,
    };
    let mut segments = segments(run);
    segments.insert(0, nothing);
    let segments = scribe.bridge(segments);
    for pair in segments.windows(2) {
        scribe.change(pair[0], pair[1]);
    }
    scribe.keys();
    scribe.truth.spans.sort_by_key(|span| span.lo);
    scribe.truth
}

/// The looks as stays of one kind each.
fn segments(run: &Run) -> Vec<Segment> {
    let mut all: Vec<Segment> = Vec::new();
    for Seen { at, before, look } in &run.seen {
        let last = all.last().map(|segment| segment.is);
        let is = match look.class {
            Class::Shell => Is::Shell,
            Class::Ready | Class::Menu { working: false } => Is::Rest,
            Class::Working | Class::Menu { working: true } => Is::Work,
            Class::Dialog(ask) => Is::Dialog(ask),
            Class::Blank if last.is_none_or(|last| last == Is::Shell) => {
                let resumed =
                    run.keys.iter().rev().find(|key| {
                        key.at <= *at && matches!(key.aim, Aim::Start | Aim::Foreground)
                    });
                if resumed.is_some_and(|key| key.aim == Aim::Foreground) {
                    continue;
                }
                Is::Starting
            }
            Class::Blank => continue,
        };
        if last != Some(is) {
            all.push(Segment {
                at: *at,
                before: *before,
                is,
            });
        }
    }
    all
}

struct Scribe<'a> {
    run: &'a Run,
    truth: Truth,
    /// The badge at rest, and since when.
    rest: Vec<String>,
    rest_at: i64,
    spell: Option<Spell>,
    suspended: bool,
}

impl Scribe<'_> {
    /// Takes out rests that are none, because the next turn starts by itself.
    fn bridge(&mut self, mut segments: Vec<Segment>) -> Vec<Segment> {
        let busy = |is| matches!(is, Is::Work | Is::Dialog(_));
        let mut at = 1;
        while at + 1 < segments.len() {
            let (before, gap, after) = (segments[at - 1], segments[at], segments[at + 1]);
            let long = after.at - gap.at;
            let typed = self.keys_in(gap.before, after.at).any(|key| {
                matches!(
                    key.aim,
                    Aim::Prompt(_) | Aim::Bang | Aim::Compact | Aim::Clear
                )
            });
            if gap.is == Is::Rest
                && busy(before.is)
                && busy(after.is)
                && !typed
                && long < BRIDGE_SLOW
            {
                let waits = self.queued(gap.at) || self.agents(before.at, after.at);
                if !waits || long >= BRIDGE {
                    let until = after.at + 300 * MS;
                    for badge in ["idle", "review(finished)"] {
                        let also = (gap.before - 300 * MS, until, badge.to_owned());
                        self.truth.also.push(also);
                    }
                }
                if long < BRIDGE || waits {
                    segments.remove(at);
                    if segments[at].is == segments[at - 1].is {
                        segments.remove(at);
                    }
                    continue;
                }
            }
            at += 1;
        }
        segments
    }

    fn keys_in(&self, from: i64, to: i64) -> impl Iterator<Item = &Key> {
        let keys = self.run.keys.iter();
        keys.filter(move |key| key.at > from && key.at <= to)
    }

    fn last_key(&self, from: i64, to: i64, fits: impl Fn(&Aim) -> bool) -> Option<&Key> {
        let keys: Vec<&Key> = self.keys_in(from, to).collect();
        keys.into_iter().rev().find(|key| fits(&key.aim))
    }

    /// Requests of the main lane that arrived in this time.
    fn main(&self, from: i64, to: i64) -> impl DoubleEndedIterator<Item = &Asked> {
        let asked = self.run.asked.iter();
        asked.filter(move |asked| !asked.agent && asked.at >= from && asked.at <= to)
    }

    /// A prompt was sent while Claude worked and has not been asked about yet.
    fn queued(&self, at: i64) -> bool {
        let unasked = |prompt: &str| {
            let mut main = self.run.asked.iter().filter(|asked| !asked.agent);
            !main.any(|asked| asked.prompt.contains(prompt) && asked.at < at)
        };
        self.run.keys.iter().any(|key| {
            matches!(&key.aim, Aim::Prompt(prompt)
                if key.at < at && key.at > at - 30 * SECOND && unasked(prompt))
                && self.run.class_at(key.at) == Some(Class::Working)
        })
    }

    /// A subagent was at work in this time.
    fn agents(&self, from: i64, to: i64) -> bool {
        let mut asked = self.run.asked.iter();
        asked.any(|asked| {
            let end = asked.end.as_ref().map_or(i64::MAX, |(end, _)| *end);
            asked.agent && asked.at <= to && end >= from - SECOND
        })
    }

    fn push(&mut self, kind: Kind, window: [i64; 4], want: Vec<String>) -> &mut Span {
        let [lo, moment, hi, due] = window;
        let floor = self.truth.spans.last().map_or(lo, |span| span.lo);
        let itself = self
            .spell
            .as_ref()
            .is_some_and(|spell| spell.opener == Opener::Itself);
        let suspended = self.suspended;
        let lo = lo.max(floor).min(hi);
        self.truth.spans.push(Span {
            kind,
            lo,
            moment: moment.max(lo),
            hi,
            due,
            want,
            suspended,
            again: false,
            itself,
        });
        self.truth.spans.last_mut().expect("it was just pushed")
    }

    fn change(&mut self, from: Segment, to: Segment) {
        match (from.is, to.is) {
            (_, Is::Shell) => self.shell(from, to),
            (Is::Shell, Is::Starting) => {}
            (Is::Shell | Is::Starting, _) if self.suspended => self.resumed(from, to),
            (Is::Shell | Is::Starting, Is::Rest) => {
                self.rest = vec!["idle".to_owned()];
                self.rest_at = to.at;
                self.spell = None;
                let want = self.rest.clone();
                let window = [from.at, to.at, to.at, to.at + SECOND];
                self.push(Kind::Started, window, want);
            }
            (Is::Rest | Is::Shell | Is::Starting, Is::Work | Is::Dialog(_)) => {
                self.begins(from, to)
            }
            (Is::Work, Is::Dialog(_)) => self.asks(from, to),
            (Is::Dialog(_), Is::Dialog(_)) => self.asks(from, to),
            (Is::Dialog(_), Is::Work) => {
                let key = self.last_key(from.at, to.at, |aim| {
                    matches!(aim, Aim::Approve | Aim::Refuse)
                });
                let at = key.map_or(to.before, |key| key.at);
                let window = [at, at, to.at, to.at + 300 * MS];
                self.push(Kind::Answer, window, vec!["busy".to_owned()]);
            }
            (Is::Work | Is::Dialog(_), Is::Rest) => self.ends(from, to),
            (Is::Rest, Is::Rest) | (Is::Work, Is::Work) => {}

            (Is::Rest | Is::Work | Is::Dialog(_) | Is::Starting, Is::Starting) => {}
        }
    }

    /// The shell has the terminal.
    fn shell(&mut self, from: Segment, to: Segment) {
        let key = self.last_key(from.before - 10 * SECOND, to.at, |aim| {
            matches!(aim, Aim::Suspend | Aim::Kill | Aim::Exit)
        });
        let Some(key) = key.cloned() else { return };
        self.undrawn(from, &key);
        if key.aim == Aim::Suspend {
            self.suspended = true;
            let window = [key.at, key.at, to.at, to.at + SECOND];
            self.push(Kind::Suspended, window, vec!["suspended".to_owned()]);
            return;
        }
        self.spell = None;
        self.suspended = false;
        let none = vec!["none".to_owned()];
        if key.aim == Aim::Kill {
            let window = [key.at, key.at, key.at, key.at + SECOND];
            self.push(Kind::Killed, window, none);
        } else {
            let window = [key.at, to.at, to.at, to.at + SECOND];
            self.push(Kind::Exited, window, none);
        }
    }

    /// An answer came right before the process stood still or ended: what followed from it was never drawn.
    fn undrawn(&mut self, from: Segment, key: &Key) {
        if from.is != Is::Work {
            return;
        }
        let ends = self.run.asked.iter().filter_map(|asked| asked.end.as_ref());
        let mut here = ends.filter(|(at, _)| *at >= from.at && *at <= key.at);
        let Some((at, how)) = here.next_back() else {
            return;
        };
        let follows = match how {
            How::Complete(stop) if stop == "tool_use" => needs(crate::screen::Ask::Permission),
            How::Complete(_) | How::Failed(_) => "review(finished)".to_owned(),
            How::HungUp => return,
        };
        self.truth.also.push((*at, key.at + SECOND, follows));
    }

    /// `fg`: what it shows now is what holds.
    fn resumed(&mut self, from: Segment, to: Segment) {
        self.suspended = false;
        let key = self.last_key(from.at, to.at, |aim| *aim == Aim::Foreground);
        let at = key.map_or(to.before, |key| key.at);
        let want = match to.is {
            Is::Work => vec!["busy".to_owned()],
            Is::Dialog(ask) => vec![needs(ask)],
            Is::Rest | Is::Shell | Is::Starting => {
                if let Some(spell) = self.spell.take() {
                    self.rest = self.outcome(&spell, to).0;
                    self.rest_at = to.at;
                }
                // The turn may go on for a moment before it ends.
                let also = (at, to.at + SECOND, "busy".to_owned());
                self.truth.also.push(also);
                self.rest_now(to.at)
            }
        };
        self.push(Kind::Resumed, [at, at, to.at, to.at + SECOND], want);
    }

    /// The badge at rest at this moment.
    fn rest_now(&self, at: i64) -> Vec<String> {
        match self.last_key(self.rest_at, at, |aim| *aim == Aim::Clear) {
            Some(_) => vec!["idle".to_owned()],
            None => self.rest.clone(),
        }
    }

    /// Claude goes to work.
    fn begins(&mut self, from: Segment, to: Segment) {
        let key = self.last_key(from.before - 300 * MS, to.at, |aim| {
            matches!(aim, Aim::Prompt(_) | Aim::Bang | Aim::Compact | Aim::Clear)
        });
        let (opener, at) = match key {
            Some(key) if key.aim == Aim::Clear => return,
            Some(key) if key.aim == Aim::Compact => (Opener::Compact, key.at),
            Some(key) => (Opener::Prompt, key.at),
            None => (Opener::Itself, to.before),
        };
        let before = self.rest_now(at);
        if opener == Opener::Itself {
            // What made it go is not known; its first request is.
            let request = self.main(from.at, to.at + SECOND).next_back();
            let at = request.map_or(to.before, |asked| asked.at.min(to.at));
            self.spell = Some(Spell {
                from: from.at,
                opener,
                before,
            });
            let window = [at - 600 * MS, at, to.at, to.at + 300 * MS];
            self.push(Kind::Itself, window, vec!["busy".to_owned()]);
        } else {
            self.spell = Some(Spell {
                from: at,
                opener,
                before,
            });
            let window = [at, at, to.at, to.at + 300 * MS];
            self.push(Kind::Prompt, window, vec!["busy".to_owned()]);
        }
        if matches!(to.is, Is::Dialog(_)) {
            self.asks(from, to);
        }
    }

    /// A dialog is drawn.
    fn asks(&mut self, from: Segment, to: Segment) {
        let Is::Dialog(ask) = to.is else { return };
        let calls = self.run.asked.iter().filter_map(|asked| match &asked.end {
            Some((at, How::Complete(stop))) if stop == "tool_use" => Some(*at),
            Some(_) | None => None,
        });
        let call = calls.filter(|at| *at >= from.at && *at <= to.at).max();
        let key = self.last_key(from.at, to.at, |aim| *aim == Aim::Approve);
        let lo = call.or(key.map(|key| key.at)).unwrap_or(to.before);
        let window = [lo, to.at, to.at, to.at + 500 * MS];
        self.push(Kind::Dialog, window, vec![needs(ask)]);
    }

    /// Claude is at rest again.
    fn ends(&mut self, _from: Segment, to: Segment) {
        let Some(spell) = self.spell.take() else {
            return;
        };
        let (rest, kind, lo, late) = self.outcome(&spell, to);
        self.rest = rest.clone();
        self.rest_at = to.at;
        // A key's end is counted from the key; what a queued prompt or a subagent made wait, from the end of the wait.
        let due = if matches!(kind, Kind::Interrupted | Kind::Refused) {
            (lo + SECOND).max(to.at + 300 * MS)
        } else if late {
            to.at + 800 * MS
        } else {
            to.at + 300 * MS
        };
        let itself = spell.opener == Opener::Itself;
        let again = kind == Kind::Compacted;
        let span = self.push(kind, [lo, lo, to.at, due], rest);
        span.itself = itself;
        span.again = again;
    }

    /// How a spell ended: the badge, what it was, since when it can have been, whether it had to be waited for.
    fn outcome(&self, spell: &Spell, to: Segment) -> (Vec<String>, Kind, i64, bool) {
        let one = |badge: &str| vec![badge.to_owned()];
        let key = self.last_key(spell.from, to.at, |aim| {
            matches!(aim, Aim::Interrupt | Aim::Refuse)
        });
        let late = self.agents(spell.from, to.at)
            || self
                .keys_in(spell.from, to.at)
                .filter(|key| matches!(key.aim, Aim::Prompt(_)))
                .count()
                > 0;
        let stopped = |key: &Key| {
            let kind = if key.aim == Aim::Refuse {
                Kind::Refused
            } else {
                Kind::Interrupted
            };
            (one("idle"), kind, key.at, false)
        };
        let mains: Vec<&Asked> = self.main(spell.from - 300 * MS, to.at).collect();
        let mut turns = mains.iter().rev().filter(|asked| asked.kind == "main");
        let Some(last) = turns.next() else {
            let end = mains.last().and_then(|asked| asked.end.as_ref());
            if spell.opener == Opener::Compact {
                let at = key.map(|key| key.at).or(end.map(|(at, _)| *at));
                let at = at.filter(|at| *at <= to.at).unwrap_or(to.before);
                return (spell.before.clone(), Kind::Compacted, at, false);
            }
            return match key {
                Some(key) => stopped(key),
                None => {
                    let mut both = spell.before.clone();
                    both.push("idle".to_owned());
                    both.dedup();
                    (both, Kind::Interrupted, to.before, true)
                }
            };
        };
        let end = last.end.as_ref().filter(|(at, _)| *at <= to.at);
        let after_end = key.filter(|key| end.is_some_and(|(at, _)| key.at > *at));
        match (end, key) {
            (Some((at, How::Complete(stop))), _) if stop == "tool_use" => match key {
                Some(key) => stopped(key),
                None => (
                    vec!["idle".to_owned(), "review(finished)".to_owned()],
                    Kind::Finished,
                    *at,
                    true,
                ),
            },
            (Some((at, How::Complete(stop))), _) => {
                let failed = stop == "max_tokens" || stop == "refusal";
                let (badge, kind) = if failed {
                    ("review(failed)", Kind::Failed)
                } else {
                    ("review(finished)", Kind::Finished)
                };
                match (after_end, self.tail(to.at)) {
                    (Some(key), Tail::Interrupted) => stopped(key),
                    (Some(key), Tail::Other | Tail::Failed) => (
                        vec!["idle".to_owned(), badge.to_owned()],
                        kind,
                        key.at.min(*at),
                        true,
                    ),
                    (Some(_), Tail::Done) | (None, _) => (one(badge), kind, *at, late),
                }
            }
            (Some((at, How::Failed(_))), _) => match after_end {
                Some(key) => stopped(key),
                None => (one("review(failed)"), Kind::Failed, *at, late),
            },
            (Some((_, How::HungUp)) | None, Some(key)) => stopped(key),
            (Some((_, How::HungUp)) | None, None) => (
                vec![
                    "idle".to_owned(),
                    "review(finished)".to_owned(),
                    "review(failed)".to_owned(),
                ],
                Kind::Finished,
                to.before,
                true,
            ),
        }
    }

    /// What stands above the box once it has come to rest.
    fn tail(&self, at: i64) -> Tail {
        let seen = self.run.seen.iter().rev();
        let mut settled = seen.filter(|seen| seen.at <= at + 600 * MS);
        settled.next().map_or(Tail::Other, |seen| seen.look.tail)
    }

    /// When the spinner of a `/clear` was gone again; the key's own moment if none was drawn.
    fn cleared(&self, at: i64) -> i64 {
        let until = at + 5 * SECOND;
        let next = self.keys_in(at, until).next().map_or(until, |key| key.at);
        let mut seen = self.run.seen.iter();
        let spinner =
            seen.find(|seen| seen.at > at && seen.at < next && seen.look.class == Class::Working);
        let gone = spinner.and_then(|_| seen.find(|seen| seen.look.class == Class::Ready));
        gone.map_or(at, |seen| seen.at)
    }

    /// What keys alone say.
    fn keys(&mut self) {
        for key in &self.run.keys {
            match key.aim {
                Aim::Clear => {
                    // At most a short spinner, then idle; a loaded machine draws it late.
                    let drawn = self.cleared(key.at).max(key.at + 600 * MS);
                    let also = (key.at, drawn + 400 * MS, "busy".to_owned());
                    self.truth.also.push(also);
                    self.truth.spans.push(Span {
                        kind: Kind::Cleared,
                        lo: key.at,
                        moment: key.at,
                        hi: drawn,
                        due: drawn + 400 * MS,
                        want: vec!["idle".to_owned()],
                        suspended: false,
                        again: false,
                        itself: false,
                    });
                }
                // The next dialog may take the place of the one that was answered.
                Aim::Approve => {
                    let also = (key.at, key.at + 1500 * MS, "busy".to_owned());
                    self.truth.also.push(also);
                }
                // With nothing to compact, too short to be drawn.
                Aim::Compact => {
                    let also = (key.at, key.at + SECOND, "busy".to_owned());
                    self.truth.also.push(also);
                }
                Aim::Prompt(_)
                | Aim::Bang
                | Aim::OpenMenu
                | Aim::CloseMenu
                | Aim::Interrupt
                | Aim::Refuse
                | Aim::Stray
                | Aim::Suspend
                | Aim::Foreground
                | Aim::Exit
                | Aim::Kill
                | Aim::Start => {}
            }
        }
    }
}

fn needs(ask: crate::screen::Ask) -> String {
    format!("needs-input({})", ask.word())
}
