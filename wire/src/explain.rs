//! "Why this state?": the answer of `/api/explain`, for the page, the command line and a report. Turns core's
//! evidence into it; the page shows it and concludes nothing.
//!
//! Must never decide a badge: it says how each witness's newest word stands to the badge that is shown.

use purplemux_core::Stamp;
use purplemux_core::view::{self, Badge, Evidence};
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::browser::{AskKind, Presence, State, state};

/// Transitions that are shown.
pub const TRANSITIONS_MAX: usize = 5;

/// Why an item shows what it shows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct Explanation {
    /// The item.
    pub item: String,
    /// Its title.
    pub title: String,
    /// The agent as `host:pid:start`; null where none runs.
    pub agent: Option<String>,
    /// The badge.
    pub state: Option<State>,
    /// Of its process.
    pub presence: Presence,
    /// Unix ms since when the state is this.
    #[ts(type = "number")]
    pub since_ms: i64,
    /// The server's wall clock, unix ms.
    #[ts(type = "number")]
    pub now_ms: i64,
    /// Why, as a word; the page has a sentence for each in every language.
    pub reason: Reason,
    /// With `reason: asked`: what is asked.
    pub ask: Option<AskKind>,
    /// With `reason: failed`: Claude's word for the failure.
    pub error: Option<String>,
    /// The same in one English sentence.
    pub sentence: String,
    /// The newest word of each witness: hook, file, transcript, process.
    pub witnesses: Vec<Testimony>,
    /// Everything that is remembered, newest first.
    pub evidence: Vec<Testimony>,
    /// The last badges, oldest first; the last one is the present one.
    pub transitions: Vec<Transition>,
}

/// The reasons there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// Something was asked and not answered.
    Asked,
    /// A turn began and has not ended.
    Working,
    /// A turn ended and nobody has looked.
    Finished,
    /// A turn ended with an error and nobody has looked.
    Failed,
    /// Waits for a prompt.
    Waiting,
    /// Waits for a prompt; the last turn was interrupted.
    Interrupted,
    /// Waits for a prompt; the person has read the last answer.
    Read,
    /// Was busy when the server stopped; not yet known again.
    Restarted,
    /// A process that has said nothing yet.
    Starting,
    /// The process ended.
    Ended,
    /// No agent.
    NoAgent,
}

/// Who said it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// A hook.
    Hook,
    /// Claude's own status file.
    File,
    /// The transcript.
    Transcript,
    /// The operating system.
    Process,
    /// The person at the page.
    Person,
    /// What was kept over a restart.
    Restart,
    /// Our own conclusion.
    Verdict,
}

/// How a witness's word stands to the badge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "kebab-case")]
pub enum Stand {
    /// The badge came with it.
    Decided,
    /// It fits the badge.
    Agrees,
    /// It does not fit, and is older than what decided.
    Older,
    /// It does not fit, and is newer: it does not count against what decided.
    Disagrees,
    /// It says nothing about the badge.
    Silent,
    /// This witness has never spoken.
    Missing,
}

/// One piece of evidence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct Testimony {
    /// Who said it.
    pub source: Source,
    /// What, in the source's own words; empty where it is missing.
    pub text: String,
    /// When, stamped at the source, unix ms.
    #[ts(type = "number | null")]
    pub at_ms: Option<i64>,
    /// Ms after the deciding event; negative: before it.
    #[ts(type = "number | null")]
    pub distance_ms: Option<i64>,
    /// How it stands to the badge.
    pub stand: Stand,
}

/// A badge and when it began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct Transition {
    /// Unix ms.
    #[ts(type = "number")]
    pub at_ms: i64,
    /// The badge.
    pub state: Option<State>,
    /// With `state: review`: it had failed.
    pub failed: bool,
}

impl Transition {
    /// This badge from then on.
    #[must_use]
    pub fn new(at_ms: i64, badge: Option<&Badge>) -> Self {
        Self {
            at_ms,
            state: badge.map(state),
            failed: matches!(badge, Some(Badge::Review(outcome)) if outcome.error.is_some()),
        }
    }
}

/// What the operating system says at the moment of asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// The process.
    pub pid: u32,
    /// It lives, with the same start time.
    pub alive: bool,
    /// The number behind `%` of its pane.
    pub pane: Option<u32>,
}

/// Everything that an explanation is made of.
#[derive(Clone, Copy, Debug)]
pub struct Known<'a> {
    /// The row.
    pub item: &'a view::Item,
    /// What was said, newest first.
    pub evidence: &'a [Evidence],
    /// The badges since the server started, newest first.
    pub history: &'a [(Stamp, Option<Badge>)],
    /// Those before, newest first, from the journal.
    pub earlier: &'a [Transition],
    /// The process now.
    pub process: Option<Look>,
    /// Now.
    pub now: Stamp,
}

/// Puts it together.
#[must_use]
pub fn explain(known: Known<'_>) -> Explanation {
    let Known {
        item,
        evidence,
        now,
        ..
    } = known;
    let decided = evidence.iter().find(|line| line.decided);
    let reason = reason(item, decided);
    let ask = match &item.badge {
        Some(Badge::NeedsInput(ask)) => Some(ask.kind.into()),
        Some(Badge::Idle | Badge::Busy(_) | Badge::Review(_) | Badge::Unknown) | None => None,
    };
    let error = match &item.badge {
        Some(Badge::Review(outcome)) => outcome.error.as_deref().map(str::to_owned),
        Some(Badge::Idle | Badge::Busy(_) | Badge::NeedsInput(_) | Badge::Unknown) | None => None,
    };
    let testify = |line: &Evidence| testimony(line, item, decided);
    Explanation {
        item: item.id.to_string(),
        title: item.title.to_string(),
        agent: item.agent.as_ref().map(ToString::to_string),
        state: item.badge.as_ref().map(state),
        presence: item.presence.into(),
        since_ms: item.since.wall_ms,
        now_ms: now.wall_ms,
        reason,
        ask,
        sentence: sentence(item, reason, ask, error.as_deref(), now),
        error,
        witnesses: witnesses(known, &testify, decided),
        evidence: evidence.iter().map(testify).collect(),
        transitions: transitions(known),
    }
}

fn reason(item: &view::Item, decided: Option<&Evidence>) -> Reason {
    match &item.badge {
        Some(Badge::NeedsInput(_)) => Reason::Asked,
        Some(Badge::Busy(_)) => Reason::Working,
        Some(Badge::Review(outcome)) if outcome.error.is_some() => Reason::Failed,
        Some(Badge::Review(_)) => Reason::Finished,
        Some(Badge::Unknown) => Reason::Restarted,
        Some(Badge::Idle) if item.label.as_deref() == Some("interrupted") => Reason::Interrupted,
        Some(Badge::Idle) if decided.is_some_and(|e| e.source == view::Source::Person) => {
            Reason::Read
        }
        Some(Badge::Idle) => Reason::Waiting,
        None => match item.presence {
            view::Presence::Starting
            | view::Presence::Running
            | view::Presence::Suspended
            | view::Presence::Elsewhere => Reason::Starting,
            view::Presence::Gone => Reason::Ended,
            view::Presence::None => Reason::NoAgent,
        },
    }
}

/// One English sentence; a stopped process is said first.
fn sentence(
    item: &view::Item,
    reason: Reason,
    ask: Option<AskKind>,
    error: Option<&str>,
    now: Stamp,
) -> String {
    let age = span(now.wall_ms - item.since.wall_ms);
    let unanswered = "nothing since then shows an answer";
    let why = match reason {
        Reason::Asked => match ask {
            Some(AskKind::Permission) | None => {
                format!("Claude asked for permission {age} ago, and {unanswered}.")
            }
            Some(AskKind::Question) => {
                format!("Claude asked a question {age} ago, and {unanswered}.")
            }
            Some(AskKind::Plan) => {
                format!("Claude presented a plan {age} ago, and {unanswered}.")
            }
            Some(AskKind::Form) => {
                format!("A tool server asked for values {age} ago, and {unanswered}.")
            }
            Some(AskKind::Dialog) => format!(
                "Claude opened a dialog {age} ago, and nothing since then shows that it was closed."
            ),
            Some(AskKind::Startup) => {
                format!("Claude has asked something before it starts, {age} ago, and {unanswered}.")
            }
        },
        Reason::Working => {
            format!("Claude began to work {age} ago, and nothing since then shows an end.")
        }
        Reason::Finished => {
            format!("Claude finished {age} ago, and nobody has looked at it since.")
        }
        Reason::Failed => format!(
            "Claude stopped with an error ({}) {age} ago, and nobody has looked at it since.",
            error.unwrap_or("unknown")
        ),
        Reason::Waiting => format!("Claude has been waiting for a prompt for {age}."),
        Reason::Interrupted => {
            format!("The last turn was interrupted {age} ago; Claude waits for a prompt.")
        }
        Reason::Read => format!("The last answer was read {age} ago; Claude waits for a prompt."),
        Reason::Restarted => {
            "Claude was busy when the server stopped; no witness has said yet what it does now."
                .to_owned()
        }
        Reason::Starting => "Claude is starting and has not said anything yet.".to_owned(),
        Reason::Ended => "Claude has ended.".to_owned(),
        Reason::NoAgent => "No Claude runs here.".to_owned(),
    };
    if item.presence == view::Presence::Suspended {
        return format!("The process is stopped (Ctrl+Z). {why}");
    }
    why
}

/// A duration as people say it: `12s`, `2m 04s`, `3h 20m`, `2d 1h`.
#[must_use]
pub fn span(ms: i64) -> String {
    let seconds = ms.max(0) / 1000;
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    if minutes == 0 {
        format!("{seconds}s")
    } else if hours == 0 {
        format!("{minutes}m {:02}s", seconds % 60)
    } else if days == 0 {
        format!("{hours}h {:02}m", minutes % 60)
    } else {
        format!("{days}d {}h", hours % 24)
    }
}

fn testimony(line: &Evidence, item: &view::Item, decided: Option<&Evidence>) -> Testimony {
    let distance_ms = decided.map(|by| line.at.wall_ms - by.at.wall_ms);
    let fits = match (&item.badge, line.says) {
        (Some(badge), Some(says)) => Some(says.fits(badge)),
        (None, _) | (_, None) => None,
    };
    let stand = match fits {
        _ if line.decided => Stand::Decided,
        None => Stand::Silent,
        Some(true) => Stand::Agrees,
        Some(false) if distance_ms.is_none_or(|ms| ms > 0) => Stand::Disagrees,
        Some(false) => Stand::Older,
    };
    Testimony {
        source: source(line.source),
        text: line.line.to_string(),
        at_ms: Some(line.at.wall_ms),
        distance_ms,
        stand,
    }
}

fn source(source: view::Source) -> Source {
    match source {
        view::Source::Hook => Source::Hook,
        view::Source::File => Source::File,
        view::Source::Transcript => Source::Transcript,
        view::Source::Process => Source::Process,
        view::Source::Person => Source::Person,
        view::Source::Restart => Source::Restart,
        view::Source::Verdict => Source::Verdict,
    }
}

/// The newest word of each of the four. What decided is shown for its own witness even if a newer word of it
/// agrees; the process is asked at this moment.
fn witnesses(
    known: Known<'_>,
    testify: &impl Fn(&Evidence) -> Testimony,
    decided: Option<&Evidence>,
) -> Vec<Testimony> {
    let newest = |who: view::Source| {
        let mut of_it = known.evidence.iter().filter(|line| line.source == who);
        decided
            .filter(|line| line.source == who)
            .or_else(|| of_it.clone().find(|line| line.says.is_some()))
            .or_else(|| of_it.next())
    };
    let missing = |source| Testimony {
        source,
        text: String::new(),
        at_ms: None,
        distance_ms: None,
        stand: Stand::Missing,
    };
    let mut all: Vec<Testimony> = [
        view::Source::Hook,
        view::Source::File,
        view::Source::Transcript,
    ]
    .into_iter()
    .map(|who| {
        let Some(line) = newest(who) else {
            return missing(source(who));
        };
        let mut said = testify(line);
        if let (view::Source::File, Some(look)) = (who, known.process) {
            said.text = format!("sessions/{}.json · {}", look.pid, said.text);
        }
        said
    })
    .collect();
    all.push(match known.process {
        None => missing(Source::Process),
        Some(look) => {
            let pane = look.pane.map(|pane| format!(", pane %{pane}"));
            let pane = pane.unwrap_or_default();
            let word = if look.alive { "alive" } else { "ended" };
            let fits = look.alive == known.item.badge.is_some();
            Testimony {
                source: Source::Process,
                text: format!("claude {} {word}{pane}", look.pid),
                at_ms: Some(known.now.wall_ms),
                distance_ms: decided.map(|by| known.now.wall_ms - by.at.wall_ms),
                stand: if fits {
                    Stand::Agrees
                } else {
                    Stand::Disagrees
                },
            }
        }
    });
    all
}

fn transitions(known: Known<'_>) -> Vec<Transition> {
    let since_start = known
        .history
        .iter()
        .map(|(since, badge)| Transition::new(since.wall_ms, badge.as_ref()));
    let mut all: Vec<Transition> = Vec::new();
    for transition in since_start.chain(known.earlier.iter().cloned()) {
        // What was restored is the same badge once more.
        let again = all.last().is_some_and(|newer| {
            newer.state == transition.state && newer.at_ms == transition.at_ms
        });
        if !again {
            all.push(transition);
        }
    }
    all.truncate(TRANSITIONS_MAX);
    all.reverse();
    all
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use purplemux_core::view::Says;
    use purplemux_core::{AgentKey, HostId, Time};

    use super::*;

    const NOW: Stamp = at(200_000);

    const fn at(ms: u64) -> Stamp {
        Stamp {
            boot: Time::from_ms(ms),
            wall_ms: 1_796_000_000_000 + ms as i64,
        }
    }

    fn row(badge: Option<Badge>, since: Stamp) -> view::Item {
        view::Item {
            id: Arc::from("tab-1"),
            host: HostId::from("here"),
            tab: Some("tab-1".into()),
            workspace: None,
            agent: Some(AgentKey {
                host: HostId::from("here"),
                pid: 48213,
                start: 8,
            }),
            pane: None,
            conversation: None,
            cwd: None,
            badge,
            since,
            presence: view::Presence::Running,
            title: Arc::from("Refactor auth"),
            last_message: None,
            label: None,
            context_tokens: None,
            context_window: None,
            model: None,
            hooks: true,
            attention: false,
            episode: None,
        }
    }

    fn asking() -> Badge {
        Badge::NeedsInput(view::Ask {
            id: 1,
            kind: view::AskKind::Permission,
            text: None,
            tool: None,
            options: Vec::new(),
        })
    }

    fn line(ms: u64, source: view::Source, says: Option<Says>, decided: bool) -> Evidence {
        Evidence {
            at: at(ms),
            source,
            line: Arc::from("word"),
            says,
            decided,
        }
    }

    fn explained(item: &view::Item, evidence: &[Evidence]) -> Explanation {
        explain(Known {
            item,
            evidence,
            history: &[],
            earlier: &[],
            process: Some(Look {
                pid: 48213,
                alive: true,
                pane: Some(4),
            }),
            now: NOW,
        })
    }

    #[test]
    fn each_witness_stands_to_the_badge_as_it_spoke() {
        let item = row(Some(asking()), at(76_000));
        let said = explained(
            &item,
            &[
                line(76_400, view::Source::File, Some(Says::NeedsInput), false),
                line(76_000, view::Source::Hook, Some(Says::NeedsInput), true),
                line(75_900, view::Source::Hook, Some(Says::Open), false),
                line(60_000, view::Source::Transcript, Some(Says::Review), false),
            ],
        );
        let stands: Vec<_> = said
            .witnesses
            .iter()
            .map(|w| (w.source, w.stand, w.distance_ms))
            .collect();
        assert_eq!(
            stands,
            [
                (Source::Hook, Stand::Decided, Some(0)),
                (Source::File, Stand::Agrees, Some(400)),
                (Source::Transcript, Stand::Older, Some(-16_000)),
                (Source::Process, Stand::Agrees, Some(124_000)),
            ]
        );
        assert_eq!(said.witnesses[1].text, "sessions/48213.json · word");
        assert_eq!(said.witnesses[3].text, "claude 48213 alive, pane %4");
        assert_eq!(said.evidence.len(), 4);
        assert_eq!(
            said.sentence,
            "Claude asked for permission 2m 04s ago, and nothing since then shows an answer."
        );
    }

    #[test]
    fn who_never_spoke_is_missing_and_who_spoke_later_against_it_disagrees() {
        let item = row(Some(Badge::Busy(view::Doing::default())), at(10_000));
        let said = explained(
            &item,
            &[
                line(12_000, view::Source::Hook, Some(Says::NeedsInput), false),
                line(10_000, view::Source::File, Some(Says::Busy), true),
            ],
        );
        let stands: Vec<_> = said.witnesses.iter().map(|w| w.stand).collect();
        assert_eq!(
            stands,
            [
                Stand::Disagrees,
                Stand::Decided,
                Stand::Missing,
                Stand::Agrees
            ]
        );
        assert_eq!(said.witnesses[2].at_ms, None);
    }

    #[test]
    fn every_badge_has_its_sentence() {
        let sentence =
            |item: &view::Item, evidence: &[Evidence]| explained(item, evidence).sentence;
        let failed = Badge::Review(view::Outcome {
            error: Some(Arc::from("rate_limit")),
            shells: 0,
            wakes_at_ms: None,
        });
        assert_eq!(
            sentence(&row(Some(failed), at(197_000)), &[]),
            "Claude stopped with an error (rate_limit) 3s ago, and nobody has looked at it since."
        );
        let read = line(190_000, view::Source::Person, None, true);
        assert_eq!(
            sentence(&row(Some(Badge::Idle), at(190_000)), &[read]),
            "The last answer was read 10s ago; Claude waits for a prompt."
        );
        let mut stopped = row(Some(Badge::Idle), at(190_000));
        stopped.presence = view::Presence::Suspended;
        assert!(sentence(&stopped, &[]).starts_with("The process is stopped (Ctrl+Z). "));
        let mut gone = row(None, at(0));
        gone.presence = view::Presence::Gone;
        assert_eq!(sentence(&gone, &[]), "Claude has ended.");
    }

    #[test]
    fn the_last_five_badges_come_oldest_first_and_a_restored_one_once() {
        let item = row(Some(Badge::Idle), at(9));
        let said = explain(Known {
            item: &item,
            evidence: &[],
            history: &[
                (at(9), Some(Badge::Idle)),
                (at(8), Some(asking())),
                (at(7), Some(Badge::Unknown)),
            ],
            earlier: &[
                Transition::new(at(7).wall_ms, Some(&Badge::Unknown)),
                Transition::new(at(6).wall_ms, Some(&Badge::Idle)),
                Transition::new(at(5).wall_ms, Some(&asking())),
                Transition::new(at(4).wall_ms, Some(&Badge::Idle)),
            ],
            process: None,
            now: NOW,
        });
        let times: Vec<i64> = said.transitions.iter().map(|t| t.at_ms).collect();
        assert_eq!(times, [5, 6, 7, 8, 9].map(|ms| at(ms).wall_ms));
        assert_eq!(said.transitions[4].state, Some(State::Idle));
    }

    #[test]
    fn spans_are_what_people_say() {
        let said = [-1, 999, 59_000, 124_000, 3_600_000, 90_000_000].map(span);
        assert_eq!(said, ["0s", "0s", "59s", "2m 04s", "1h 00m", "1d 1h"]);
    }
}
