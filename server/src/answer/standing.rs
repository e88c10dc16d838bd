//! One ask for as long as it stands: reads its dialog from the screen for the card, again and again while it stands
//! and never before or after, and types the answers that the gate lets through, one at a time.
//!
//! It never decides who may answer; that is the gate's ([`super`]).

use std::time::Duration;

use purplemux_core::Time;
use purplemux_wire::browser::{Answer, Ask, AskKind, Card, CardOption, CardPart, Item};
use purplemux_wire::dialog::{Dialog, DialogKind, Front, squeezed};
use purplemux_wire::sentence::{Cause, Sentence};
use purplemux_wire::text::{NAME_CHARS_MAX, line};
use tokio::sync::{mpsc, oneshot};
use tracing::debug;

use super::check::{Eyes, Not, instead};
use super::sight::{Place, Seal, Sight};
use super::typing::{Done, Typist, words_option};
use super::{Means, Message, unsent};
use crate::clock;

/// Until something could be read: Claude draws a dialog within this of saying so.
const SOON: Duration = Duration::from_millis(60);
/// While the dialog is new: the person may answer in the terminal, and another may come.
const OFTEN: Duration = Duration::from_millis(250);
/// After that it stands, maybe for hours.
const SELDOM: Duration = Duration::from_secs(1);
const NEW_FOR: Duration = Duration::from_secs(60);
/// What could not be read by then is said to be unreadable.
const READ_WITHIN: Duration = Duration::from_secs(2);
/// Claude swallows keys for a moment after it has drawn a dialog, but not between several questions (measured, Claude
/// Code 2.1.332: none of 45 within 500 ms worked, all of 20 from 700 ms on).
const SETTLES_IN: Duration = Duration::from_millis(800);
/// Rows of a subject that a card shows: more than a screen has.
const ROWS_MAX: usize = 200;
/// Of one row, and of a question.
const CHARS_MAX: usize = 4000;

/// An answer that was let through.
#[derive(Debug)]
pub struct Job {
    /// The card's reading that it answers.
    pub reading: String,
    /// What.
    pub answer: Answer,
    /// Where what became of it goes.
    pub done: oneshot::Sender<Done>,
}

/// What the card was made from.
#[derive(Clone, Debug)]
struct Shown {
    reading: String,
    seal: Seal,
    /// When it takes keys for certain.
    ready: Time,
}

/// One ask's task, not yet running.
#[derive(Debug)]
pub struct Standing {
    /// The ask's id.
    pub ask: u64,
    /// Its row.
    pub item: String,
    /// By what means.
    pub means: Means,
}

impl Standing {
    /// Reads and types until the gate lets go of it.
    pub async fn run(self, mut jobs: mpsc::Receiver<Job>) {
        let Some(place) = self.place(&mut jobs).await else {
            return;
        };
        let mut reader = Reader {
            of: &self,
            place: &place,
            started: clock::boot(),
            shown: None,
            card: None,
            changed: clock::boot(),
            doubtful: None,
        };
        let mut next = clock::boot();
        loop {
            tokio::select! {
                job = jobs.recv() => match job {
                    Some(job) => {
                        reader.carry_out(job).await;
                        next = clock::boot();
                    }
                    None => return,
                },
                () = clock::reached(next) => {
                    reader.read().await;
                    next = clock::boot() + reader.interval();
                }
            }
        }
    }

    /// Where it is, once tmux has told of its pane; `None`: the ask is over. One outside our tabs never has a card,
    /// and the gate lets nothing through without.
    async fn place(&self, jobs: &mut mpsc::Receiver<Job>) -> Option<Place> {
        let mut listing = self.means.tmux.listing();
        loop {
            listing.mark_unchanged();
            let known = self.means.hub.explain(self.item.clone()).await.ok()?;
            let found = known.and_then(|known| {
                let agent = known.item.agent?;
                Place::of(&agent, known.item.pane.as_ref(), &self.means.tmux)
            });
            if found.is_some() {
                return found;
            }
            tokio::select! {
                changed = listing.changed() => changed.ok()?,
                job = jobs.recv() => drop(job?),
            }
        }
    }

    async fn show(&self, card: Option<Card>, part: bool) {
        // The hub has stopped; there is nobody to tell.
        drop(self.means.hub.card(self.ask, card.clone()).await);
        let ask = self.ask;
        drop(
            self.means
                .own
                .send(Message::Shown { ask, card, part })
                .await,
        );
    }
}

struct Reader<'a> {
    of: &'a Standing,
    place: &'a Place,
    started: Time,
    shown: Option<Shown>,
    card: Option<Card>,
    /// When the card last changed.
    changed: Time,
    /// Since when what is on the screen can't be read.
    doubtful: Option<Time>,
}

impl Reader<'_> {
    fn interval(&self) -> Duration {
        let now = clock::boot();
        match &self.card {
            None => SOON,
            Some(_) if self.doubtful.is_some() => SOON,
            Some(_) if now.since(self.changed) < NEW_FOR => OFTEN,
            Some(_) => SELDOM,
        }
    }

    fn eyes(&self) -> Eyes<'_> {
        let Means { tmux, dirs, .. } = &self.of.means;
        Eyes {
            place: self.place,
            tmux,
            dirs,
        }
    }

    /// The ask as it is shown now; `None`: it is over.
    fn asked(&self) -> Option<(Ask, Option<String>)> {
        let snapshots = self.of.means.hub.snapshots();
        let snapshot = snapshots.borrow();
        let item = snapshot
            .items
            .iter()
            .find(|item| is_about(item, self.of.ask))?;
        let ask = item.detail.ask.clone()?;
        Some((ask, item.detail.tool.clone()))
    }

    /// Looks once, and shows what has changed.
    async fn read(&mut self) {
        let Some((ask, tool)) = self.asked() else {
            return;
        };
        let sight = match self.eyes().look().await {
            Ok(sight) => sight,
            Err(why) => {
                debug!(ask = self.of.ask, "its screen can't be read: {why}");
                self.doubt(why.into()).await;
                return;
            }
        };
        match understood(&ask, tool.as_deref(), &sight) {
            Ok((dialog, seal)) => {
                self.doubtful = None;
                let reading = dialog.reading();
                let same = self
                    .shown
                    .as_ref()
                    .is_some_and(|shown| shown.reading == reading && shown.seal == seal);
                if !same {
                    let next_part = dialog.part.is_some()
                        && self.shown.as_ref().is_some_and(|had| had.seal == seal);
                    let ready = match &self.shown {
                        Some(had) if next_part => had.ready,
                        Some(_) | None => sight.at + SETTLES_IN,
                    };
                    self.shown = Some(Shown {
                        reading,
                        seal,
                        ready,
                    });
                }
                self.show(card_of(&dialog), dialog.part.is_some()).await;
            }
            Err(Not::Yet(why)) => self.doubt(why).await,
            Err(Not::Other(why)) => {
                self.doubtful = None;
                self.shown = None;
                self.show(cannot(why), false).await;
            }
        }
    }

    /// Something can't be read: after a while that is said, and until then what was shown stays.
    async fn doubt(&mut self, why: Cause) {
        let now = clock::boot();
        let since = *self.doubtful.get_or_insert(now);
        if now.since(since) >= READ_WITHIN {
            self.shown = None;
            self.show(cannot(why), false).await;
        }
    }

    async fn show(&mut self, card: Card, part: bool) {
        if self.card.as_ref() == Some(&card) {
            return;
        }
        let other = self.card.as_ref().map(|had| &had.reading) != Some(&card.reading);
        if other {
            self.changed = clock::boot();
            debug!(
                ask = self.of.ask,
                after_ms = self.changed.since(self.started).as_millis(),
                "its card"
            );
        }
        self.card = Some(card.clone());
        self.of.show(Some(card), part).await;
    }

    async fn carry_out(&mut self, job: Job) {
        let done = self.typed_out(&job).await;
        if job.done.send(done).is_err() {
            debug!("nobody waits for what became of an answer");
        }
        // What stands there now is shown at once.
        self.read().await;
    }

    async fn typed_out(&mut self, job: &Job) -> Done {
        let refused = |why: Cause| Done::Refused(unsent(why));
        let shown = match &self.shown {
            Some(shown) if shown.reading == job.reading => shown.clone(),
            Some(_) => return refused(Cause::PromptChanged),
            // It was let through with the card from before.
            None => {
                let why = self.card.as_ref().and_then(|card| card.said.clone());
                return refused(why.map_or(Cause::PromptChanged, |said| said.cause));
            }
        };
        clock::reached(shown.ready).await;
        if self.asked().is_none() {
            return refused(Cause::Over);
        }
        let fits = |dialog: &Dialog| {
            self.asked()
                .is_some_and(|(ask, tool)| fits(&ask, tool.as_deref(), dialog))
        };
        let (own, ask) = (&self.of.means.own, self.of.ask);
        // Only news: a gate that is too busy to hear it hears the end.
        let typed = || drop(own.try_send(Message::Typed { ask }));
        let typist = Typist {
            eyes: self.eyes(),
            seal: &shown.seal,
            reading: &job.reading,
            fits: &fits,
            typed: &typed,
        };
        typist.type_out(&job.answer).await
    }
}

/// Whether this row shows this ask.
pub fn is_about(item: &Item, ask: u64) -> bool {
    item.detail.ask.as_ref().is_some_and(|it| it.id == ask)
}

/// The dialog, if it can be answered from here.
fn understood(ask: &Ask, tool: Option<&str>, sight: &Sight) -> Result<(Dialog, Seal), Not> {
    if let Some(why) = &sight.deaf {
        return Err(Not::Other(why.clone()));
    }
    let seal = match &sight.seal {
        Some(seal) if seal.asks() => seal.clone(),
        Some(_) => return Err(Not::Yet(Cause::NotWaiting)),
        None => return Err(Not::Yet(Cause::NoStatus)),
    };
    match &sight.front {
        Front::Dialog(dialog) if fits(ask, tool, dialog) => Ok((dialog.clone(), seal)),
        // What is asked may be heard of a moment after it is drawn, or before.
        Front::Dialog(_) => Err(Not::Yet(Cause::NotTheAsked)),
        // Claude says that it waits some milliseconds before it has drawn what for, and after it was answered.
        Front::Prompt { draft: None } => Err(Not::Yet(Cause::NoDialog)),
        front @ (Front::Prompt { draft: Some(_) } | Front::Menu(_) | Front::Other) => {
            Err(instead(front))
        }
    }
}

/// Whether this dialog can be the one that hooks and status file speak of. It never makes a dialog true: it only keeps
/// one away that is certainly another.
pub fn fits(ask: &Ask, tool: Option<&str>, dialog: &Dialog) -> bool {
    use DialogKind::{Form, Other, Permission, Plan, Question, Trust};
    let kind = match (ask.kind, tool) {
        (AskKind::Permission, Some(_)) => matches!(dialog.kind, Permission | Other),
        // The file calls a plan so as well.
        (AskKind::Permission, None) => matches!(dialog.kind, Permission | Plan | Other),
        (AskKind::Plan, _) => matches!(dialog.kind, Plan | Other),
        (AskKind::Question, Some(_)) => dialog.kind == Question,
        (AskKind::Question, None) => matches!(dialog.kind, Question | Form | Other),
        (AskKind::Form, _) => matches!(dialog.kind, Form | Other),
        (AskKind::Startup, _) => matches!(dialog.kind, Trust | Other),
        (AskKind::Dialog, _) => dialog.kind != Trust,
    };
    kind && shows(ask, tool, dialog)
}

/// Tools whose argument stands in their dialog as it is.
const SHOWN_WHOLE: [&str; 2] = ["Bash", "AskUserQuestion"];
/// And those where it is a path, which may be drawn without its directory.
const SHOWN_BY_NAME: [&str; 4] = ["Edit", "Write", "MultiEdit", "NotebookEdit"];

fn shows(ask: &Ask, tool: Option<&str>, dialog: &Dialog) -> bool {
    let Some(tool) = tool else {
        return true;
    };
    // The first question's words; the others' are not known.
    let first = dialog.part.as_ref().is_none_or(|part| part.index == 0);
    if ask.text.is_empty() || !first {
        return true;
    }
    if SHOWN_WHOLE.contains(&tool) {
        dialog.shows(&as_drawn(&ask.text))
    } else if SHOWN_BY_NAME.contains(&tool) {
        let name = ask.text.rsplit('/').next().unwrap_or(&ask.text);
        let title = squeezed(&dialog.title).contains(&squeezed(name));
        title || dialog.shows(name)
    } else {
        true
    }
}

/// A text as it was cleaned, without what the cleaning added to ordinary ones.
fn as_drawn(text: &str) -> String {
    // A cut one says how much is missing.
    let text = match text.rsplit_once("… (+") {
        Some((kept, rest))
            if rest
                .strip_suffix(')')
                .is_some_and(|n| n.parse::<u64>().is_ok()) =>
        {
            kept
        }
        Some(_) | None => text,
    };
    text.replace('⏎', " ")
}

fn cannot(why: Cause) -> Card {
    let said = Sentence::from(why);
    Card {
        cannot: Some(said.english()),
        said: Some(said),
        ..Card::default()
    }
}

/// What a viewer is shown of a dialog; everything invisible is made visible.
fn card_of(dialog: &Dialog) -> Card {
    let shown = |text: &str, most: usize| line(text, most).to_string();
    let words = match dialog.kind {
        DialogKind::Permission | DialogKind::Plan => true,
        DialogKind::Question => words_option(dialog).is_some(),
        DialogKind::Trust | DialogKind::Form | DialogKind::Other => false,
    };
    let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let boxes = dialog.options.iter().any(|choice| choice.checked.is_some());
    Card {
        reading: dialog.reading(),
        title: shown(&dialog.title, NAME_CHARS_MAX),
        subject: dialog
            .subject
            .iter()
            .take(ROWS_MAX)
            .map(|row| indented(row))
            .collect(),
        question: shown(&dialog.question, CHARS_MAX),
        options: dialog
            .options
            .iter()
            .enumerate()
            .map(|(at, choice)| CardOption {
                number: choice.number,
                label: shown(&choice.label, CHARS_MAX),
                note: shown(&choice.note, CHARS_MAX),
                checked: choice.checked,
                // Between boxes the mark says nothing about an answer.
                marked: !boxes && at == dialog.marked,
            })
            .collect(),
        part: dialog.part.as_ref().map(|part| CardPart {
            index: number(part.index),
            count: number(part.count),
            titles: part
                .titles
                .iter()
                .map(|title| shown(title, NAME_CHARS_MAX))
                .collect(),
            answered: part.answered.clone(),
        }),
        submit: dialog.submit,
        reject: true,
        words: words && !dialog.submit,
        cannot: None,
        said: None,
    }
}

/// A row as it is drawn: what stands before its first letter says where it belongs.
fn indented(row: &str) -> String {
    let blanks = row.len() - row.trim_start_matches(' ').len();
    format!("{}{}", &row[..blanks], line(row, CHARS_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use purplemux_core::witness::FileStatus;
    use purplemux_wire::dialog::Choice;

    fn dialog(kind: DialogKind, subject: &[&str]) -> Dialog {
        Dialog {
            kind,
            title: "Bash command".to_owned(),
            subject: subject.iter().map(|row| (*row).to_owned()).collect(),
            question: "Do you want to proceed?".to_owned(),
            options: vec![Choice {
                number: Some(1),
                label: "Yes\u{202e}".to_owned(),
                note: String::new(),
                checked: None,
            }],
            marked: 0,
            part: None,
            submit: false,
            offers_words: false,
        }
    }

    fn ask(kind: AskKind, text: &str) -> Ask {
        Ask {
            id: 1,
            kind,
            text: text.to_owned(),
            options: Vec::new(),
            card: None,
        }
    }

    #[test]
    fn a02_a_dialog_about_another_command_does_not_fit() {
        let wanted = ask(AskKind::Permission, "touch a.txt ⏎ rm b");
        let shown = dialog(DialogKind::Permission, &["touch a.txt", "rm b"]);
        assert!(fits(&wanted, Some("Bash"), &shown));
        let another = dialog(DialogKind::Permission, &["touch c.txt"]);
        assert!(!fits(&wanted, Some("Bash"), &another));
        assert!(fits(&wanted, None, &another), "no hook has told");
        let edit = ask(AskKind::Permission, "/home/dev/a.txt");
        assert!(fits(&edit, Some("Edit"), &shown), "drawn by its name");
        assert!(!fits(&edit, Some("Edit"), &another));
    }

    #[test]
    fn a02_a_dialog_of_another_kind_does_not_fit() {
        let shown = dialog(DialogKind::Permission, &["touch a.txt"]);
        for kind in [
            AskKind::Plan,
            AskKind::Startup,
            AskKind::Form,
            AskKind::Question,
        ] {
            assert!(!fits(&ask(kind, ""), Some("Bash"), &shown), "{kind:?}");
        }
        assert!(fits(&ask(AskKind::Dialog, ""), None, &shown));
        let plan = dialog(DialogKind::Plan, &[]);
        assert!(
            fits(&ask(AskKind::Permission, ""), None, &plan),
            "the file's word"
        );
        assert!(!fits(&ask(AskKind::Permission, "x"), Some("Bash"), &plan));
    }

    #[test]
    fn a01_a_dialog_that_is_not_drawn_yet_is_waited_for() {
        let seen = |front| Sight {
            at: clock::boot(),
            front,
            in_mode: false,
            seal: Some(Seal::Status {
                status: FileStatus::Waiting,
                since_ms: 1,
            }),
            deaf: None,
            somebody_types: false,
        };
        let wanted = ask(AskKind::Permission, "touch a.txt");
        let read = |front| understood(&wanted, Some("Bash"), &seen(front));
        let yet = read(Front::Prompt { draft: None });
        assert!(matches!(yet, Err(Not::Yet(_))), "{yet:?}");
        let menu = read(Front::Menu("Select model".into()));
        assert!(matches!(menu, Err(Not::Other(_))), "{menu:?}");
        let drawn = dialog(DialogKind::Permission, &["touch a.txt"]);
        assert!(read(Front::Dialog(drawn)).is_ok());
    }

    #[test]
    fn s05_a_card_hides_nothing() {
        let card = card_of(&dialog(DialogKind::Permission, &["  rm \u{200b}x\x1b[31m"]));
        assert_eq!(card.subject, ["  rm ‹U+200B›x␛[31m"]);
        assert_eq!(card.options[0].label, "Yes‹U+202E›");
    }

    #[test]
    fn a_cut_command_is_compared_as_far_as_it_goes() {
        assert_eq!(as_drawn("touch a… (+12)"), "touch a");
        assert_eq!(as_drawn("echo … (+x)"), "echo … (+x)");
    }
}
