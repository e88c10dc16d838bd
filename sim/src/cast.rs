//! All models of one history: one for each pane, one for each session in the background. Keeps their clocks
//! together and puts what they emitted and what is right into one.

use crate::claude::{BEGIN, Claude};
use crate::script::{Act, Step};
use crate::truth::{Due, Entry, Played, Row, Signal, Truth, What};

/// The panes of a history and what runs in them.
#[derive(Debug)]
pub struct Cast {
    now: u64,
    /// Every model, in the order in which they came.
    all: Vec<Claude>,
    /// Which of them is in each pane.
    panes: Vec<usize>,
    /// The row that each model's truth is about now.
    rows: Vec<Row>,
    /// What was right in a row before its model left it.
    past: Vec<(usize, Row, Vec<Entry>)>,
}

impl Cast {
    /// So many empty panes.
    #[must_use]
    pub fn new(panes: usize) -> Self {
        Self {
            now: BEGIN,
            all: (0..panes)
                .map(|pane| Claude::new(pane, Some(pane), BEGIN))
                .collect(),
            panes: (0..panes).collect(),
            rows: (0..panes).map(Row::Tab).collect(),
            past: Vec::new(),
        }
    }

    /// How many panes there are.
    #[must_use]
    pub fn panes(&self) -> usize {
        self.panes.len()
    }

    /// What runs in this pane.
    #[must_use]
    pub fn pane(&self, pane: usize) -> &Claude {
        &self.all[self.panes[pane % self.panes.len()]]
    }

    /// A background session lives that no pane shows.
    #[must_use]
    pub fn job(&self) -> Option<usize> {
        let mut jobs = self.rows.iter().zip(&self.all);
        jobs.position(|(row, claude)| matches!(row, Row::Job(_)) && !claude.is_dead())
    }

    /// Time passes for all until `step.wait` is over, then the act is done.
    pub fn take(&mut self, step: &Step) {
        self.settle(step.wait);
        let pane = step.pane % self.panes.len();
        let place = self.panes[pane];
        if step.act == Act::StopJob {
            if let Some(job) = self.job() {
                self.all[job].take(step);
            }
            return;
        }
        let free = self.all[place].is_dead();
        self.all[place].take(step);
        if let (Act::Dispatch(turn), true) = (&step.act, free) {
            let number = self.all.len();
            let mut job = Claude::new(number, None, BEGIN);
            job.settle(self.now - BEGIN);
            job.dispatch(turn, step.seed ^ 1);
            self.rows.push(Row::Job(number));
            self.all.push(job);
        }
        if let Some((entries, free)) = self.all[place].leaves_its_pane() {
            self.past.push((place, Row::Tab(pane), entries));
            self.rows[place] = Row::Job(place);
            let number = self.all.len();
            let next = Claude::new(number, Some(pane), self.now).free_from(free);
            self.rows.push(Row::Tab(pane));
            self.panes[pane] = number;
            self.all.push(next);
        }
    }

    /// Lets time pass for all.
    pub fn settle(&mut self, ms: u64) {
        self.now += ms;
        for claude in &mut self.all {
            claude.settle(ms);
        }
    }

    /// One of them is in the middle of something that ends within a moment.
    #[must_use]
    pub fn is_moving(&self) -> bool {
        self.all.iter().any(Claude::is_moving)
    }

    /// All that was emitted and what is right.
    #[must_use]
    pub fn finish(self) -> Played {
        let panes = self.panes.len();
        let hooks_vanish = self.all.iter().any(Claude::was_unheard);
        let mut played = Played {
            signals: Vec::new(),
            casts: Vec::new(),
            births: Vec::new(),
            truths: Vec::new(),
            panes,
            end: self.now,
            hooks_vanish,
        };
        let mut parts: Vec<(Row, Vec<Entry>)> = Vec::new();
        let mut past = self.past;
        for (number, (claude, row)) in self.all.into_iter().zip(self.rows).enumerate() {
            let (first, process) = (played.signals.len(), played.births.len());
            let own = claude.process();
            let (signals, births, entries) = claude.finish();
            played.casts.push(first);
            let signals = signals.into_iter();
            played
                .signals
                .extend(signals.map(|signal| signal.map(|signal| of_process(signal, process))));
            played.births.extend(births.into_iter().map(|mut birth| {
                birth.parent = birth.parent.map(|parent| parent + process);
                birth
            }));
            while let Some(place) = past.iter().position(|(cast, _, _)| *cast == number) {
                let (_, row, entries) = past.remove(place);
                parts.push((row, moved(entries, first)));
            }
            let row = match row {
                Row::Tab(pane) => Row::Tab(pane),
                Row::Job(_) => Row::Job(process + own),
            };
            parts.push((row, moved(entries, first)));
        }
        for (row, entries) in parts {
            match played.truths.iter_mut().find(|truth| truth.row == row) {
                Some(truth) => truth.entries.extend(entries),
                None => played.truths.push(Truth { row, entries }),
            }
        }
        played
    }
}

/// Numbers of processes count over the whole history.
fn of_process(mut signal: Signal, first: usize) -> Signal {
    match &mut signal.what {
        What::Hook { process, .. }
        | What::Wrote { process, .. }
        | What::Removed { process }
        | What::Found { process }
        | What::KeyFile { process }
        | What::Quiet { process, .. }
        | What::Stopped { process, .. }
        | What::Died { process } => *process += first,
        What::Line { .. } | What::Looked { .. } => {}
    }
    signal
}

fn moved(mut entries: Vec<Entry>, first: usize) -> Vec<Entry> {
    for entry in &mut entries {
        match &mut entry.due {
            Due::Answered { request, result } => {
                *request += first;
                *result += first;
            }
            Due::Never | Due::At(_) => {}
            Due::After { all, ms: _ } => all.iter_mut().for_each(|id| *id += first),
            Due::End {
                hook, file, lines, ..
            } => {
                *hook += first;
                *file += first;
                lines.iter_mut().for_each(|id| *id += first);
            }
            Due::Unless { told, file } => {
                told.iter_mut().for_each(|id| *id += first);
                *file += first;
            }
            Due::Unread(id) => *id += first,
            Due::IfRead {
                look,
                died,
                came: _,
            } => {
                *look += first;
                *died += first;
            }
            Due::Silence { file, busy } => {
                *file += first;
                if let Some(busy) = busy {
                    *busy += first;
                }
            }
        }
    }
    entries
}
