//! Answering from anywhere: which dialog stands (a card beside its ask), who may answer it, and the keys.
//!
//! One gate for all: per ask one answer, from whichever device came first; everything else is refused, and told why. Every
//! ask that stands has a task of its own ([`standing`]) that reads its dialog and types. A key is typed only with a
//! [`check::Checked`], which nothing but a look of that moment gives. Nothing here touches a badge.

mod check;
mod prompt;
mod sight;
mod standing;
mod stop;
mod typing;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use purplemux_wire::browser::{Answer, Card, Item, Sending, ServerMsg};
use purplemux_wire::sentence::{Cause, Moment, Sentence, Then};
use purplemux_wire::text::line;
use tokio::sync::{broadcast, mpsc, oneshot};
use tracing::{info, warn};

use crate::hub;
use crate::ingest::process::ClaudeDirs;
use crate::store::{AnswerRow, Store};
use crate::{clock, task, tmux};
use sight::Place;
use standing::{Job, Standing};
use typing::Done;

/// Wishes that may wait for the gate, which takes microseconds for each.
const INBOX: usize = 256;
/// Answers that one ask's task may have before it: the gate lets one through.
const JOBS: usize = 1;
/// What a slow viewer may miss of others' answers; the cards themselves are part of every snapshot.
const TOLD: usize = 64;
/// Asks that are over and still told of: who was late is to hear who was first.
const OVER_MAX: usize = 64;
/// Answers that are kept in the log; some years' worth.
pub const LOG_MAX: u32 = 20_000;
/// Of an answer in the log and on other devices.
const WHAT_CHARS_MAX: usize = 200;
/// Of what was asked, in the log.
const ASKED_CHARS_MAX: usize = 1000;

/// Who answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asker {
    /// What others are told: the device's name.
    pub by: String,
    /// For the log: the login, or the process behind a command.
    pub origin: String,
    /// Tells viewers apart; 0: none.
    pub viewer: u64,
}

/// An answer as it came in.
#[derive(Clone, Debug)]
pub struct Wish {
    /// The viewer's number for it.
    pub request: u64,
    /// The row.
    pub item: String,
    /// The ask.
    pub ask: u64,
    /// The card's reading.
    pub reading: String,
    /// What.
    pub answer: Answer,
}

/// What an answer has come to, for everybody.
#[derive(Clone, Debug)]
pub struct Told {
    /// Who asked for it.
    viewer: u64,
    request: u64,
    message: ServerMsg,
}

impl Told {
    /// As this viewer is told it.
    #[must_use]
    pub fn to(&self, viewer: u64) -> ServerMsg {
        let mut message = self.message.clone();
        if let ServerMsg::Answered { request, .. } = &mut message {
            *request = (viewer == self.viewer).then_some(self.request);
        }
        message
    }
}

/// How it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// `Sent` or `Failed`.
    pub outcome: Sending,
    /// The answer in words.
    pub what: String,
    /// What to do, or what else to know.
    pub why: Option<Sentence>,
}

/// Why nothing was typed.
pub type Refusal = Sentence;

/// A refusal: nothing was typed because of this.
#[must_use]
pub fn unsent(cause: Cause) -> Refusal {
    Sentence {
        cause,
        then: Some(Then::NothingSent),
    }
}

/// The end of an answer that the gate has let through.
pub type Ending = oneshot::Receiver<Result<Ended, Refusal>>;

/// By what means asks are read and answered.
#[derive(Clone, Debug)]
pub(crate) struct Means {
    hub: hub::Handle,
    tmux: tmux::Handle,
    dirs: Arc<ClaudeDirs>,
    own: mpsc::Sender<Message>,
}

#[derive(Debug)]
pub(crate) enum Message {
    Answer {
        wish: Wish,
        asker: Asker,
        answer: oneshot::Sender<Result<Ending, Refusal>>,
    },
    Stop {
        item: String,
        asker: Asker,
        answer: oneshot::Sender<Result<Ending, Refusal>>,
    },
    Prompt {
        item: String,
        text: String,
        asker: Asker,
        answer: oneshot::Sender<Result<Ending, Refusal>>,
    },
    /// A dialog was read.
    Shown {
        ask: u64,
        card: Option<Card>,
        part: bool,
    },
    /// The first key of an answer has been typed.
    Typed { ask: u64 },
    /// An answer has come to its end.
    Answered { ask: u64, done: Done },
    /// A wish to stop has.
    Stopped { item: String, row: Box<AnswerRow> },
    /// A prompt has.
    Prompted { item: String, row: Box<AnswerRow> },
}

/// The way to the gate.
#[derive(Clone, Debug)]
pub struct Handle {
    inbox: mpsc::Sender<Message>,
    told: broadcast::Sender<Arc<Told>>,
}

impl Handle {
    /// What becomes of every answer from now on.
    #[must_use]
    pub fn told(&self) -> broadcast::Receiver<Arc<Told>> {
        self.told.subscribe()
    }

    /// Asks for an answer to be typed. Returns as soon as the gate has let it through; the end is told by [`Ending`]
    /// and to every viewer.
    ///
    /// # Errors
    /// Why nothing is typed.
    pub async fn answer(&self, wish: Wish, asker: Asker) -> Result<Ending, Refusal> {
        self.ask(|answer| Message::Answer {
            wish,
            asker,
            answer,
        })
        .await
    }

    /// Asks for the agent of a row to be interrupted.
    ///
    /// # Errors
    /// Why nothing is typed.
    pub async fn stop(&self, item: String, asker: Asker) -> Result<Ending, Refusal> {
        self.ask(|answer| Message::Stop {
            item,
            asker,
            answer,
        })
        .await
    }

    /// Asks for a prompt to be typed into the box of a row's agent.
    ///
    /// # Errors
    /// Why nothing is typed.
    pub async fn prompt(
        &self,
        item: String,
        text: String,
        asker: Asker,
    ) -> Result<Ending, Refusal> {
        self.ask(|answer| Message::Prompt {
            item,
            text,
            asker,
            answer,
        })
        .await
    }

    async fn ask(
        &self,
        message: impl FnOnce(oneshot::Sender<Result<Ending, Refusal>>) -> Message,
    ) -> Result<Ending, Refusal> {
        let (answer, answered) = oneshot::channel();
        let sent = self.inbox.send(message(answer)).await;
        sent.map_err(|_| unsent(Cause::ServerStopping))?;
        let answered = answered.await;
        answered.map_err(|_| unsent(Cause::ServerStopping))?
    }
}

/// Starts the gate. It reads a card for every ask from now on, and ends with the hub.
#[must_use]
pub fn start(hub: hub::Handle, tmux: tmux::Handle, store: Store) -> Handle {
    let (inbox, messages) = mpsc::channel(INBOX);
    let told = broadcast::Sender::new(TOLD);
    let handle = Handle {
        inbox: inbox.clone(),
        told: told.clone(),
    };
    let means = Means {
        dirs: hub.witnesses().processes.claude_dirs(),
        hub,
        tmux,
        own: inbox,
    };
    let gate = Gate {
        means,
        store,
        told,
        asks: BTreeMap::new(),
        running: BTreeMap::new(),
        over: VecDeque::new(),
        stops: BTreeSet::new(),
        prompts: BTreeSet::new(),
    };
    task::spawn("answers", gate.run(messages));
    handle
}

/// An answer that was given, or is being.
#[derive(Clone, Debug)]
struct Given {
    reading: String,
    what: String,
    by: String,
    at_ms: i64,
}

impl Given {
    fn is_being(&self) -> Refusal {
        unsent(Cause::BeingAnswered {
            by: self.by.clone(),
            what: self.what.clone(),
        })
    }

    fn already(&self) -> Refusal {
        unsent(Cause::Answered {
            by: self.by.clone(),
            at: Moment(self.at_ms),
            what: self.what.clone(),
        })
    }
}

/// An ask that stands.
struct Open {
    jobs: mpsc::Sender<Job>,
    item: String,
    card: Option<Card>,
    given: Vec<Given>,
}

/// An answer on its way; its ask may be over before it is.
struct Running {
    given: Given,
    item: String,
    /// What the log says of the ask.
    asked: String,
    title: String,
    asker: Asker,
    request: u64,
    ended: oneshot::Sender<Result<Ended, Refusal>>,
}

struct Gate {
    means: Means,
    store: Store,
    told: broadcast::Sender<Arc<Told>>,
    asks: BTreeMap<u64, Open>,
    running: BTreeMap<u64, Running>,
    /// Who answered what is over.
    over: VecDeque<(u64, Given)>,
    /// Rows that are being interrupted.
    stops: BTreeSet<String>,
    /// Rows to which a prompt is on its way.
    prompts: BTreeSet<String>,
}

impl Gate {
    async fn run(mut self, mut messages: mpsc::Receiver<Message>) {
        let mut snapshots = self.means.hub.snapshots();
        self.follow();
        loop {
            tokio::select! {
                message = messages.recv() => match message {
                    Some(message) => self.hear(message).await,
                    None => return,
                },
                changed = snapshots.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    hub::pages_first().await;
                    self.follow();
                }
            }
        }
    }

    /// Begins with asks that are new, and lets go of those that are over.
    fn follow(&mut self) {
        let snapshots = self.means.hub.snapshots();
        let standing: BTreeMap<u64, String> = snapshots
            .borrow()
            .items
            .iter()
            .filter_map(|item| Some((item.detail.ask.as_ref()?.id, item.id.clone())))
            .collect();
        let mut over = Vec::new();
        self.asks.retain(|ask, open| {
            let stands = standing.contains_key(ask);
            if !stands && let Some(given) = open.given.pop() {
                over.push((*ask, given));
            }
            stands
        });
        for (ask, given) in over {
            self.remember(ask, given);
        }
        for (ask, item) in standing {
            if !self.asks.contains_key(&ask) {
                self.begin(ask, item);
            }
        }
    }

    /// Its task ends with the sender, once the answer that it may be typing has ended.
    fn begin(&mut self, ask: u64, item: String) {
        let (jobs, waiting) = mpsc::channel(JOBS);
        let standing = Standing {
            ask,
            item: item.clone(),
            means: self.means.clone(),
        };
        task::spawn("ask", standing.run(waiting));
        let open = Open {
            jobs,
            item,
            card: None,
            given: Vec::new(),
        };
        self.asks.insert(ask, open);
    }

    fn remember(&mut self, ask: u64, given: Given) {
        self.over.push_back((ask, given));
        if self.over.len() > OVER_MAX {
            self.over.pop_front();
        }
    }

    async fn hear(&mut self, message: Message) {
        match message {
            Message::Answer {
                wish,
                asker,
                answer,
            } => {
                let let_through = self.let_through(&wish, &asker);
                if let Err(why) = &let_through {
                    let row = AnswerRow {
                        result: "refused".to_owned(),
                        why: Some(why.english()),
                        said: Some(why.clone()),
                        ..self.row(&wish.item, &asker, in_words(None, &wish.answer))
                    };
                    self.log(row).await;
                }
                task::answer(answer, let_through);
            }
            Message::Stop {
                item,
                asker,
                answer,
            } => {
                let let_through = self.let_stop(item, asker).await;
                task::answer(answer, let_through);
            }
            Message::Prompt {
                item,
                text,
                asker,
                answer,
            } => {
                let let_through = self.let_prompt(item, text, asker).await;
                task::answer(answer, let_through);
            }
            Message::Shown { ask, card, part } => self.shown(ask, card, part),
            Message::Typed { ask } => self.tell(ask, Sending::Sending, None),
            Message::Answered { ask, done } => self.answered(ask, done).await,
            Message::Stopped { item, row } => {
                self.stops.remove(&item);
                self.log(*row).await;
            }
            Message::Prompted { item, row } => {
                self.prompts.remove(&item);
                self.log(*row).await;
            }
        }
    }

    /// The one place that decides whether an answer may be typed at all; whether it still can is checked at the
    /// screen.
    fn let_through(&mut self, wish: &Wish, asker: &Asker) -> Result<Ending, Refusal> {
        if let Some(running) = self.running.get(&wish.ask) {
            return Err(running.given.is_being());
        }
        let Some(open) = self.asks.get(&wish.ask) else {
            let given = self.over.iter().rev().find(|(ask, _)| *ask == wish.ask);
            return Err(match given {
                Some((_, given)) => given.already(),
                None => unsent(Cause::Over),
            });
        };
        let changed = || unsent(Cause::PromptChanged);
        if open.item != wish.item {
            return Err(changed());
        }
        if let Some(given) = open
            .given
            .iter()
            .find(|given| given.reading == wish.reading)
        {
            return Err(given.already());
        }
        let card = open.card.as_ref();
        let card = card.ok_or_else(|| unsent(Cause::DialogNotRead))?;
        if let Some(why) = &card.said {
            return Err(unsent(why.cause.clone()));
        }
        if card.reading != wish.reading {
            return Err(changed());
        }
        let given = Given {
            reading: wish.reading.clone(),
            what: in_words(Some(card), &wish.answer),
            by: asker.by.clone(),
            at_ms: clock::wall_ms(),
        };
        let (done, is_done) = oneshot::channel();
        let (own, ask) = (self.means.own.clone(), wish.ask);
        let job = Job {
            reading: wish.reading.clone(),
            answer: wish.answer.clone(),
            done,
        };
        let busy = |_| given.is_being();
        let row = self.row(&wish.item, asker, String::new());
        open.jobs.try_send(job).map_err(busy)?;
        task::spawn("an answer", async move {
            let done = is_done.await.unwrap_or_else(|_| Done::Failed {
                why: Cause::Unfinished.into(),
                answered: true,
            });
            drop(own.send(Message::Answered { ask, done }).await);
        });
        let (ended, ending) = oneshot::channel();
        let running = Running {
            given,
            item: wish.item.clone(),
            asked: row.asked,
            title: row.title,
            asker: asker.clone(),
            request: wish.request,
            ended,
        };
        self.running.insert(wish.ask, running);
        Ok(ending)
    }

    fn shown(&mut self, ask: u64, card: Option<Card>, part: bool) {
        let Some(open) = self.asks.get_mut(&ask) else {
            return;
        };
        // Of several questions another one stands now: the person may come back to an earlier one and answer anew.
        if let Some(card) = card.as_ref().filter(|_| part) {
            open.given.retain(|given| given.reading == card.reading);
        }
        open.card = card;
    }

    async fn answered(&mut self, ask: u64, done: Done) {
        let (outcome, why, counts) = match done {
            Done::Sent => (Sending::Sent, None, true),
            Done::Failed { why, answered } => (Sending::Failed, Some(why), answered),
            Done::Refused(why) => {
                if let Some(running) = self.running.remove(&ask) {
                    self.log(AnswerRow {
                        result: "refused".to_owned(),
                        why: Some(why.english()),
                        said: Some(why.clone()),
                        ..running.row()
                    })
                    .await;
                    task::answer(running.ended, Err(why));
                }
                return;
            }
        };
        self.tell(ask, outcome, why.clone());
        let Some(running) = self.running.remove(&ask) else {
            return;
        };
        let word = match outcome {
            Sending::Sent => "sent",
            Sending::Sending | Sending::Failed => "failed",
        };
        self.log(AnswerRow {
            result: word.to_owned(),
            why: why.as_ref().map(Sentence::english),
            said: why.clone(),
            ..running.row()
        })
        .await;
        let Running { given, ended, .. } = running;
        let what = given.what.clone();
        if counts {
            match self.asks.get_mut(&ask) {
                Some(open) => open.given.push(given),
                None => self.remember(ask, given),
            }
        }
        task::answer(ended, Ok(Ended { outcome, what, why }));
    }

    /// Tells every viewer how the answer of an ask goes.
    fn tell(&self, ask: u64, outcome: Sending, why: Option<Sentence>) {
        let Some(running) = self.running.get(&ask) else {
            return;
        };
        let Given {
            reading,
            what,
            by,
            at_ms,
        } = running.given.clone();
        let told = Told {
            viewer: running.asker.viewer,
            request: running.request,
            message: ServerMsg::Answered {
                request: None,
                item: running.item.clone(),
                ask,
                reading,
                outcome,
                what,
                by,
                at_ms,
                why: why.as_ref().map(Sentence::english),
                said: why,
            },
        };
        // With no viewer there is nobody to tell.
        drop(self.told.send(Arc::new(told)));
    }

    async fn let_stop(&mut self, item: String, asker: Asker) -> Result<Ending, Refusal> {
        if self.stops.contains(&item) {
            return Err(unsent(Cause::StoppingAlready));
        }
        let place = self.place(&item).await;
        let place = place.ok_or_else(|| unsent(Cause::NoTabToStop))?;
        let row = self.row(&item, &asker, "stop".to_owned());
        self.stops.insert(item.clone());
        let (ended, ending) = oneshot::channel();
        let means = self.means.clone();
        task::spawn("a stop", async move {
            let done = stop::stop(&place, &means).await;
            let row = Box::new(with_end(row, &done));
            drop(means.own.send(Message::Stopped { item, row }).await);
            task::answer(ended, done);
        });
        Ok(ending)
    }

    async fn let_prompt(
        &mut self,
        item: String,
        text: String,
        asker: Asker,
    ) -> Result<Ending, Refusal> {
        if self.prompts.contains(&item) {
            return Err(unsent(Cause::AnotherMessage));
        }
        let place = self.place(&item).await;
        let place = place.ok_or_else(|| unsent(Cause::NoClaudeHere))?;
        let row = self.row(&item, &asker, line(&text, WHAT_CHARS_MAX).to_string());
        self.prompts.insert(item.clone());
        let (ended, ending) = oneshot::channel();
        let means = self.means.clone();
        task::spawn("a prompt", async move {
            let done = prompt::prompt(&place, &means, &text).await;
            let row = Box::new(with_end(row, &done));
            drop(means.own.send(Message::Prompted { item, row }).await);
            task::answer(ended, done);
        });
        Ok(ending)
    }

    /// Where the agent of a row can be typed to.
    async fn place(&self, item: &str) -> Option<Place> {
        let known = self.means.hub.explain(item.to_owned()).await.ok()??;
        let agent = known.item.agent?;
        Place::of(&agent, known.item.pane.as_ref(), &self.means.tmux)
    }

    /// What the log says of an answer to this row's ask; its result is still to come.
    fn row(&self, item: &str, asker: &Asker, what: String) -> AnswerRow {
        let snapshots = self.means.hub.snapshots();
        let snapshot = snapshots.borrow();
        let row = snapshot.items.iter().find(|row| row.id == item);
        AnswerRow {
            at_ms: clock::wall_ms(),
            by: asker.by.clone(),
            origin: asker.origin.clone(),
            item: item.to_owned(),
            title: row.map(|row| row.title.clone()).unwrap_or_default(),
            asked: row.map(|row| asked_in_words(row)).unwrap_or_default(),
            what,
            result: String::new(),
            why: None,
            said: None,
        }
    }

    async fn log(&self, row: AnswerRow) {
        info!(
            by = row.by,
            origin = row.origin,
            item = row.item,
            result = row.result,
            "an answer"
        );
        if let Err(why) = self.store.add_answer(row, LOG_MAX).await {
            warn!("An answer can't be written down: {why:#}");
        }
    }
}

fn with_end(row: AnswerRow, done: &Result<Ended, Refusal>) -> AnswerRow {
    let (result, said) = match done {
        Ok(ended) if ended.outcome == Sending::Sent => ("sent", ended.why.clone()),
        Ok(ended) => ("failed", ended.why.clone()),
        Err(why) => ("refused", Some(why.clone())),
    };
    AnswerRow {
        result: result.to_owned(),
        why: said.as_ref().map(Sentence::english),
        said,
        ..row
    }
}

impl Running {
    fn row(&self) -> AnswerRow {
        AnswerRow {
            at_ms: self.given.at_ms,
            by: self.asker.by.clone(),
            origin: self.asker.origin.clone(),
            item: self.item.clone(),
            title: self.title.clone(),
            asked: self.asked.clone(),
            what: self.given.what.clone(),
            result: String::new(),
            why: None,
            said: None,
        }
    }
}

/// What is asked, as the log keeps it.
fn asked_in_words(item: &Item) -> String {
    let Some(ask) = &item.detail.ask else {
        return String::new();
    };
    let card = ask.card.as_ref();
    let text = match card {
        Some(card) if ask.text.is_empty() => card.subject.join(" ⏎ ") + " " + &card.question,
        Some(_) | None => ask.text.clone(),
    };
    let tool = item.detail.tool.as_deref();
    let text = format!("{} {}", tool.unwrap_or_default(), text);
    line(&text, ASKED_CHARS_MAX).to_string()
}

/// An answer as the other devices and the log are told it.
fn in_words(card: Option<&Card>, answer: &Answer) -> String {
    let label = |option: &u32| {
        let options = card.map(|card| card.options.as_slice()).unwrap_or_default();
        let option = usize::try_from(*option).ok().and_then(|at| options.get(at));
        option.map_or_else(|| "an option".to_owned(), |option| option.label.clone())
    };
    let what = match answer {
        Answer::Choose { option } => label(option),
        Answer::Check { options } => {
            let labels: Vec<String> = options.iter().map(label).collect();
            labels.join(", ")
        }
        Answer::Reject => "Esc".to_owned(),
        Answer::Words { text } => text.clone(),
        Answer::Submit => "Submit".to_owned(),
    };
    line(&what, WHAT_CHARS_MAX).to_string()
}
