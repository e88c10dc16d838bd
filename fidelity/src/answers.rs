//! `make answers`: answers at random moments to the real Claude Code, half of them late or doubled, and whether each
//! did what was meant and nothing else: no key in another dialog, none in Claude's box, and a reason for each refusal.
//!
//! What happened is concluded from files that Claude was or was not allowed to make, and from the screen; never from
//! what the product says of itself.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use purplemux_lab::answers::{Asked, Outcome, Person, answer_at};
use purplemux_lab::clock::until;
use purplemux_lab::product::{Lab, PATIENCE, Tab, TabKind};
use purplemux_sim::chance::Chance;
use serde_json::{Value, json};

/// A tab's conversation grows with every round, and Claude becomes slower with it.
const ROUNDS_PER_TAB: usize = 25;
/// For the first half second Claude takes no key (measured, 2.1.332): the person waits longer than that.
const DRAWN: Duration = Duration::from_millis(900);
/// A key that went astray has done what it does by then.
const ASTRAY: Duration = Duration::from_millis(600);

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dialog {
    /// Whether a command may run.
    Command,
    /// Whether a file may be written.
    File,
    /// One question.
    Question,
    /// Two, one after the other.
    Questions,
}

/// When the answer comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Moment {
    /// Somewhen while the dialog stands.
    InTime,
    /// After a key in the terminal.
    Late,
    /// For a dialog of an earlier round.
    Stale,
    /// With another answer, at nearly the same time.
    Doubled,
}

/// One round.
#[derive(Clone, Debug)]
pub struct Round {
    /// Counted from 0.
    pub number: usize,
    /// What was asked.
    pub dialog: Dialog,
    /// When it was answered.
    pub moment: Moment,
    /// The answers and what the product said of each.
    pub answers: Vec<(Value, Outcome)>,
    /// What went wrong; none of it may.
    pub wrong: Vec<String>,
}

/// What a dialog has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    /// What was asked may be done, and Claude goes on.
    Allowed,
    /// It may not, and Claude is told what to do instead; the fake ends the turn with words.
    Told,
    /// It may not, and the turn is over.
    Refused,
}

/// Plays `count` rounds.
///
/// # Errors
/// The lab does not work, or Claude does not: nothing that is judged.
pub fn play(seed: u64, count: usize, mut told: impl FnMut(&Round)) -> Result<Vec<Round>> {
    let lab = Lab::start("answers")?;
    let mut rounds = Vec::new();
    let mut chance = Chance::new(seed);
    while rounds.len() < count {
        let mut tab = lab.tab(TabKind::Claude)?;
        tab.ready()?;
        let mut person = Person::at(&lab, &tab)?;
        let mut before: Option<Asked> = None;
        for _ in 0..ROUNDS_PER_TAB.min(count - rounds.len()) {
            let player = Player {
                lab: &lab,
                tab: &mut tab,
                person: &mut person,
                number: rounds.len(),
            };
            let number = rounds.len();
            let round = player
                .round(&mut chance, &mut before)
                .with_context(|| format!("round {number} of seed {seed}; {}", tab.evidence()))?;
            told(&round);
            rounds.push(round);
        }
        drop(person);
        lab.run(&["tab", "close", "--force", &tab.id])?;
    }
    Ok(rounds)
}

struct Player<'a, 'lab> {
    lab: &'a Lab,
    tab: &'a mut Tab<'lab>,
    person: &'a mut Person,
    number: usize,
}

impl Player<'_, '_> {
    fn round(mut self, chance: &mut Chance, before: &mut Option<Asked>) -> Result<Round> {
        let dialog = match chance.between(0, 9) {
            0..=4 => Dialog::Command,
            5 | 6 => Dialog::File,
            7 | 8 => Dialog::Question,
            _ => Dialog::Questions,
        };
        let moment = match chance.between(0, 7) {
            0..=3 => Moment::InTime,
            4 => Moment::Stale,
            5 => Moment::Late,
            _ => Moment::Doubled,
        };
        let moment = if moment == Moment::Stale && before.is_none() {
            Moment::Late
        } else {
            moment
        };
        let mut round = Round {
            number: self.number,
            dialog,
            moment,
            answers: Vec::new(),
            wrong: Vec::new(),
        };
        self.tab.enter(&self.prompt(dialog))?;
        let asked = self.tab.open_card()?;
        thread::sleep(Duration::from_millis(chance.between(0, 1500)));
        let effect = match moment {
            Moment::InTime => {
                let (answer, effect) = draw(chance, &asked, dialog)?;
                let outcome = self.lab.answer(&asked, &answer)?;
                let sent = outcome.is_sent();
                round.answers.push((answer, outcome));
                sent.then_some(effect)
            }
            Moment::Late => {
                thread::sleep(DRAWN);
                let (key, effect) = key(chance, &asked, dialog)?;
                self.person.press(&key)?;
                thread::sleep(Duration::from_millis(chance.between(0, 700)));
                let (answer, _) = draw(chance, &asked, dialog)?;
                let outcome = self.lab.answer(&asked, &answer)?;
                if outcome.is_sent() {
                    round
                        .wrong
                        .push("an answer was sent after a key in the terminal".to_owned());
                }
                round.answers.push((answer, outcome));
                Some(effect)
            }
            Moment::Stale => {
                let old = before.clone().context("a round before")?;
                let (answer, _) = draw(chance, &old, dialog)?;
                let outcome = self.lab.answer(&old, &answer)?;
                if outcome.refused().is_none() {
                    round
                        .wrong
                        .push("an answer to an earlier dialog was not refused".to_owned());
                }
                round.answers.push((answer, outcome));
                thread::sleep(ASTRAY);
                let now = self.tab.open_card()?;
                if now.reading != asked.reading {
                    round
                        .wrong
                        .push("it reached the dialog that stands now".to_owned());
                }
                let (answer, effect) = draw(chance, &asked, dialog)?;
                let outcome = self.lab.answer(&asked, &answer)?;
                let sent = outcome.is_sent();
                round.answers.push((answer, outcome));
                sent.then_some(effect)
            }
            Moment::Doubled => self.doubled(chance, &asked, &mut round)?,
        };
        for (answer, outcome) in &round.answers {
            if !outcome.is_sent()
                && outcome.body["error"]
                    .as_str()
                    .is_none_or(|why| why.len() < 10)
            {
                round.wrong.push(format!("no reason: {answer} {outcome:?}"));
            }
        }
        self.judge(dialog, effect, &mut round)?;
        *before = Some(asked);
        Ok(round)
    }

    /// Two answers, the same or not, and which of them was taken.
    fn doubled(
        &self,
        chance: &mut Chance,
        asked: &Asked,
        round: &mut Round,
    ) -> Result<Option<Effect>> {
        let first = draw(chance, asked, round.dialog)?;
        let second = if chance.percent(50) {
            first.clone()
        } else {
            draw(chance, asked, round.dialog)?
        };
        let gap = Duration::from_millis(chance.between(0, 60));
        let socket = self.lab.socket();
        let tap = |wait: Duration, answer: &Value| {
            thread::sleep(wait);
            answer_at(&socket, asked, answer)
        };
        let outcomes = thread::scope(|scope| {
            let taps = [
                scope.spawn(|| tap(Duration::ZERO, &first.0)),
                scope.spawn(|| tap(gap, &second.0)),
            ];
            taps.map(|tap| tap.join().unwrap_or_else(|_| bail!("a tap broke off")))
        });
        let mut effect = None;
        for (outcome, (answer, means)) in outcomes.into_iter().zip([first, second]) {
            let outcome = outcome?;
            if outcome.is_sent() && effect.replace(means).is_some() {
                round.wrong.push("both answers were sent".to_owned());
            }
            round.answers.push((answer, outcome));
        }
        Ok(effect)
    }

    /// Two things that Claude wants to do, one after the other: a key too many would reach the second.
    fn prompt(&self, dialog: Dialog) -> String {
        let (first, then) = (
            self.first(),
            format!("bash: touch {} ;; say done", self.second()),
        );
        match dialog {
            Dialog::Command => format!("bash: touch {first} ;; {then}"),
            Dialog::File => format!("write {first} ;; {then}"),
            Dialog::Question => format!("ask ;; {then}"),
            Dialog::Questions => format!("ask2 ;; {then}"),
        }
    }

    fn first(&self) -> String {
        format!("r{}a.txt", self.number)
    }

    fn second(&self) -> String {
        format!("r{}b.txt", self.number)
    }

    /// Looks at what has come of it, then brings the tab back to an empty box.
    fn judge(&mut self, dialog: Dialog, effect: Option<Effect>, round: &mut Round) -> Result<()> {
        let second = format!("touch {}", self.second());
        // Of two questions one is answered; the other one stands.
        let stands = match (dialog, effect) {
            (Dialog::Questions, Some(Effect::Allowed)) => Some("Which shape?"),
            (_, Some(Effect::Allowed)) => Some(second.as_str()),
            (_, Some(Effect::Told | Effect::Refused) | None) => None,
        };
        let in_front = |tab: &Tab<'_>, words: &str| {
            let screen = tab.screen();
            let rows: Vec<&str> = screen.trim_end().lines().collect();
            let dialog = rows
                .iter()
                .rposition(|row| row.starts_with("────") || row.starts_with('╌'));
            let end = rows[rows.len().saturating_sub(16)..].join("\n");
            dialog.is_some() && tab.in_box().is_none() && end.contains(words)
        };
        if let Some(words) = stands {
            let shown = until(PATIENCE, || in_front(self.tab, words).then_some(()));
            if shown.is_none() {
                round
                    .wrong
                    .push(format!("{words:?} never stood:\n{}", self.tab.screen()));
            }
            thread::sleep(ASTRAY);
            if !in_front(self.tab, words) {
                round
                    .wrong
                    .push(format!("a key reached {words:?}:\n{}", self.tab.screen()));
            }
        }
        // A key in the box would stay there.
        let typed = until(PATIENCE, || {
            let typed = self.tab.in_box();
            if typed.is_none() {
                self.tab.pane.keys(&["Escape"]).ok()?;
                thread::sleep(DRAWN);
            }
            typed
        });
        let typed = typed.with_context(|| format!("no box:\n{}", self.tab.screen()))?;
        if !typed.is_empty() {
            round.wrong.push(format!("{typed:?} stands in the box"));
            self.tab.pane.keys(&["C-u"])?;
        }
        let made = self.tab.dir.join(self.first()).exists();
        let may =
            effect == Some(Effect::Allowed) && matches!(dialog, Dialog::Command | Dialog::File);
        if effect.is_some() && made != may {
            round.wrong.push(format!("{} exists: {made}", self.first()));
        }
        if self.tab.dir.join(self.second()).exists() {
            round.wrong.push(format!("{} was made", self.second()));
        }
        let ended = until(PATIENCE, || {
            let item = self.tab.item()?;
            matches!(item["state"].as_str(), Some("idle" | "review")).then_some(())
        });
        ended.with_context(|| format!("it never came to rest: {:?}", self.tab.item()))
    }
}

/// An answer, and what it means for Claude. None that changes what Claude asks later.
fn draw(chance: &mut Chance, asked: &Asked, dialog: Dialog) -> Result<(Value, Effect)> {
    let question = matches!(dialog, Dialog::Question | Dialog::Questions);
    Ok(match chance.between(0, 9) {
        0..=4 if question => (
            json!({"do": "choose", "option": chance.between(0, 1)}),
            Effect::Allowed,
        ),
        5..=7 if question => (
            json!({"do": "words", "text": "1 or 2 of them"}),
            Effect::Allowed,
        ),
        0..=3 => (
            asked
                .choice("Yes")
                .unwrap_or(json!({"do": "choose", "option": 0})),
            Effect::Allowed,
        ),
        4 | 5 => {
            let last = asked.labels().len().saturating_sub(1);
            (json!({"do": "choose", "option": last}), Effect::Refused)
        }
        6 | 7 => (
            json!({"do": "words", "text": "use 1 file, or 2"}),
            Effect::Told,
        ),
        _ => (json!({"do": "reject"}), Effect::Refused),
    })
}

/// A key that answers in the terminal.
fn key(chance: &mut Chance, asked: &Asked, dialog: Dialog) -> Result<(String, Effect)> {
    Ok(match dialog {
        Dialog::Question | Dialog::Questions => (chance.between(1, 2).to_string(), Effect::Allowed),
        Dialog::Command | Dialog::File if chance.percent(50) => ("1".to_owned(), Effect::Allowed),
        Dialog::Command | Dialog::File => (asked.labels().len().to_string(), Effect::Refused),
    })
}

/// What came of all rounds, in Markdown.
#[must_use]
pub fn table(rounds: &[Round]) -> String {
    let mut out = String::from(
        "| asked | moment | rounds | answers | sent | refused | failed | wrong |\n|---|---|---|---|---|---|---|---|\n",
    );
    let mut kinds: BTreeMap<(Dialog, Moment), Vec<&Round>> = BTreeMap::new();
    for round in rounds {
        kinds
            .entry((round.dialog, round.moment))
            .or_default()
            .push(round);
    }
    let mut line = |name: &str, rounds: &[&Round]| {
        let answers: Vec<&Outcome> = rounds
            .iter()
            .flat_map(|round| round.answers.iter().map(|(_, outcome)| outcome))
            .collect();
        let sent = answers.iter().filter(|outcome| outcome.is_sent()).count();
        let refused = answers
            .iter()
            .filter(|outcome| outcome.refused().is_some())
            .count();
        let wrong = rounds
            .iter()
            .filter(|round| !round.wrong.is_empty())
            .count();
        // A string takes everything.
        writeln!(
            out,
            "| {name} | {} | {} | {sent} | {refused} | {} | {wrong} |",
            rounds.len(),
            answers.len(),
            answers.len() - sent - refused,
        )
        .unwrap_or_default();
    };
    for ((dialog, moment), rounds) in &kinds {
        line(&format!("{dialog:?} | {moment:?}"), rounds);
    }
    line("all |", &rounds.iter().collect::<Vec<_>>());
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    for (_, outcome) in rounds.iter().flat_map(|round| &round.answers) {
        if !outcome.is_sent() {
            let why = outcome.body["error"].as_str().unwrap_or_default();
            *reasons.entry(without_particulars(why)).or_default() += 1;
        }
    }
    out.push('\n');
    for (why, count) in reasons {
        writeln!(out, "- {count} × {why}").unwrap_or_default();
    }
    out
}

/// A reason without who answered what and when: that is another one each time.
fn without_particulars(why: &str) -> String {
    let (before, rest) = why.split_once(" (").unwrap_or((why, ""));
    let (_, after) = rest.split_once(')').unwrap_or(("", rest));
    let before = before.split_once(" at ").map_or(before, |(what, _)| what);
    format!("{before}{after}")
}
