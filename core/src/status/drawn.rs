//! What ought to be shown for the phase as it is: the badge with its details, the words of an ask. Moves nothing.

use super::*;

impl Agent {
    /// Gives every open dialog its words, and a new id when it is another one.
    pub(super) fn draw_dialogs(&mut self, ctx: &mut Ctx) {
        let phase = std::mem::replace(&mut self.phase, Phase::Unreported);
        self.phase = match phase {
            Phase::Unreported => {
                self.draw_base_dialog(ctx);
                Phase::Unreported
            }
            Phase::Working(mut spell) => {
                spell.dialog = self.drawn(ctx, &mut spell);
                Phase::Working(spell)
            }
            other @ (Phase::Resting(_) | Phase::Closing(_)) => other,
        };
    }

    /// The dialog of a spell, as the file tells of it.
    fn drawn(&mut self, ctx: &mut Ctx, spell: &mut Spell) -> Option<Dialog> {
        if self.headless() {
            return None;
        }
        let old = spell.dialog.take();
        let Some(status) = self.status.clone() else {
            return old;
        };
        match status.kind() {
            StatusKind::Dialog => Some(self.card(ctx, old, spell, &status)),
            StatusKind::Menu if spell.kept => old,
            StatusKind::Menu if self.menu_is_dialog(spell) => {
                let words = self.menu_words(spell);
                let mut dialog = match old {
                    // What it was taken for has its result.
                    Some(old) if !self.menu_is_about(spell, &old) => blank(ctx, old, words),
                    Some(_) | None => self.redraw(ctx, old, words, status.since),
                };
                dialog.answered = None;
                Some(dialog)
            }
            // It is about another tool, which the transcript will name: this one's result is older than the dialog.
            StatusKind::Menu
                if self.menu_is_read_for(spell)
                    && old.as_ref().is_some_and(|dialog| !self.has_result(dialog)) =>
            {
                old.map(|dialog| blank(ctx, dialog, bare_words(&WaitingFor::DialogOpen)))
            }
            // Its tool has its result: the file is about to say so.
            StatusKind::Menu => old.filter(|d| d.ask.tool.is_some()).and_then(|mut dialog| {
                let answered = *dialog.answered.get_or_insert(self.clock);
                (self.clock < answered + ANSWERED_STAYS).then_some(dialog)
            }),
            StatusKind::Quiet | StatusKind::Busy => None,
        }
    }

    /// The transcript is still to tell whose menu it is.
    fn menu_is_read_for(&self, spell: &Spell) -> bool {
        match spell.menu {
            Reading::NotAsked => self.file_torn.is_none(),
            Reading::Asked { at, .. } => self.clock < at + TRANSCRIPT_WAIT,
            Reading::Answered { .. } => false,
        }
    }

    fn draw_base_dialog(&mut self, ctx: &mut Ctx) {
        let asked = self.base.as_ref().and_then(|verdict| {
            (verdict.base == Base::Needs).then(|| {
                let words = verdict.asks.iter().next().map(|ask| ask.words());
                (words, verdict.since)
            })
        });
        let kept = self.restored.as_ref().and_then(|p| match &p.badge {
            Badge::NeedsInput(ask) => Some(ask.clone()),
            Badge::Idle | Badge::Busy(_) | Badge::Review(_) | Badge::Unknown => None,
        });
        self.base_dialog = asked.filter(|_| !self.headless()).map(|(words, since)| {
            let old = self.base_dialog.take();
            match (words, kept) {
                (None, Some(ask)) if old.is_none() => {
                    self.serial += 1;
                    Dialog::new(self.serial, since, None, ask)
                }
                (words, _) => {
                    let words = words.unwrap_or(Words {
                        name: None,
                        kind: AskKind::Permission,
                        text: None,
                        tool: None,
                        options: Vec::new(),
                    });
                    self.redraw(ctx, old, words, since)
                }
            }
        });
    }

    fn redraw(&mut self, ctx: &mut Ctx, old: Option<Dialog>, words: Words, since: Stamp) -> Dialog {
        match old {
            None => {
                self.serial += 1;
                Dialog::asking(self.serial, since, words, ctx.ask())
            }
            // Its request has its result, or is not here yet: what was known stays on the card.
            Some(dialog)
                if words.name.is_none()
                    && (dialog.name.is_some()
                        || words.text.is_none()
                        || dialog.ask.text.is_some()) =>
            {
                dialog
            }
            Some(mut dialog) => {
                let same = match &dialog.name {
                    Some(name) => words.name.as_ref() == Some(name),
                    None => dialog.ask.text.is_none() || dialog.ask.text == words.text,
                };
                let id = if same { dialog.ask.id } else { ctx.ask() };
                dialog.name.clone_from(&words.name);
                dialog.ask = words.into_ask(id);
                dialog
            }
        }
    }

    /// The card of a dialog that the file tells of.
    fn card(
        &mut self,
        ctx: &mut Ctx,
        old: Option<Dialog>,
        spell: &Spell,
        status: &Status,
    ) -> Dialog {
        let waiting = status.waiting.clone().unwrap_or(WaitingFor::Permission);
        let since = status.since.boot;
        let opened = old.as_ref().map_or(since, |d| d.since.boot.min(since));
        let standing = Standing {
            opened,
            late: self.heard_late >= opened,
            since,
            // Once the file tells of another, what was shown says nothing about this one.
            shown: old
                .as_ref()
                .filter(|d| !d.moved)
                .and_then(|d| d.name.as_ref()),
            alone: self.alone(),
        };
        let bare = bare_words(&waiting);
        let (words, doubt) = match self.asks.front(&self.turns, &waiting, standing) {
            Front::Is(ask) => (ask.words(), false),
            Front::Doubt(kind) => {
                let kind = kind.unwrap_or(bare.kind);
                (Words { kind, ..bare }, true)
            }
            Front::Unheard => (self.open_question(spell, status).unwrap_or(bare), false),
        };
        let (bare, heard) = (words.text.is_none(), words.name.is_some());
        let mut dialog = match old {
            Some(old) if old.moved => Dialog::asking(old.serial, old.since, words, ctx.ask()),
            Some(old) if doubt => blank(ctx, old, words),
            Some(_) | None => self.redraw(ctx, old, words, status.since),
        };
        let known = dialog.name.is_some() || bare && self.has_result(&dialog);
        if doubt || heard || !known {
            dialog.answered = None;
            return dialog;
        }
        let answered = *dialog.answered.get_or_insert(self.clock);
        if self.clock < answered + ANSWERED_STAYS {
            return dialog;
        }
        let bare = bare_words(&waiting);
        // While the file can't be read it names no other kind.
        let kind = match self.file_torn {
            Some(_) => dialog.ask.kind,
            None => bare.kind,
        };
        blank(ctx, dialog, Words { kind, ..bare })
    }

    /// Nobody but the main lane is at work, as far as hooks and transcript tell.
    fn alone(&self) -> bool {
        let since = self.turns.newest_stop_alone();
        let lanes = self.turns.hooks().filter(|t| t.at.boot > since);
        let mut lanes = lanes.filter_map(|t| t.lane.as_ref());
        let ended = self.ended_subagents.values().filter(|at| **at > since);
        // What began before this server did, the transcript has to tell first.
        let told = !self.found_recovering || self.read_up_to.is_some();
        told && self.subagents.is_empty()
            && lanes.all(|lane| self.ended_subagents.contains_key(lane))
            && self.turns.delegated_since(since) <= ended.count()
    }

    /// The tool that a card from before a restart names has its result.
    fn has_result(&self, dialog: &Dialog) -> bool {
        let Some(name) = &dialog.ask.tool else {
            return false;
        };
        let mut results = self.turns.results_after(dialog.since.boot);
        results.any(|tool| tool.name == *name && words_of(tool).text == dialog.ask.text)
    }

    /// No request was heard: a question's open call says the same, since only one can be open. A plan's does not:
    /// beside it another tool may be what is asked about.
    fn open_question(&self, spell: &Spell, status: &Status) -> Option<Words> {
        if status.waiting != Some(WaitingFor::Input) {
            return None;
        }
        let mut open = self.turns.open_tools(spell.start.boot);
        if open.is_empty() {
            open = self.turns.open_lines(spell.start.earlier(500));
        }
        let by = status.since.boot + ASK_SKEW;
        open.retain(|t| &*t.name == QUESTION_TOOL && self.turns.started_by(t, by));
        match open.as_slice() {
            [question] => Some(words_of(question)),
            [] | [_, _, ..] => None,
        }
    }

    /// Tools that a dialog may be about which nothing but one of them backs, oldest first.
    fn menu_tools(&self, spell: &Spell) -> Vec<&ToolCall> {
        let open = self.turns.open_tools(spell.start.boot);
        if open.is_empty() {
            return self.turns.open_lines(spell.start);
        }
        open
    }

    /// The tool on the card is still one of them.
    fn menu_is_about(&self, spell: &Spell, dialog: &Dialog) -> bool {
        let ask = &dialog.ask;
        let mut tools = self.menu_tools(spell).into_iter();
        tools.any(|t| ask.tool.as_ref() == Some(&t.name) && ask.text == t.arg)
    }

    /// What a dialog asks that nothing but an unanswered tool backs.
    fn menu_words(&self, spell: &Spell) -> Words {
        let open = self.menu_tools(spell);
        let tool = open.last();
        Words {
            name: None,
            kind: AskKind::Dialog,
            text: tool.and_then(|t| t.arg.clone()),
            tool: tool.map(|t| t.name.clone()),
            options: Vec::new(),
        }
    }

    fn doing(&self) -> Doing {
        let spell = match &self.phase {
            Phase::Working(spell) => Some(spell),
            Phase::Closing(closing) => Some(&closing.spell),
            Phase::Unreported | Phase::Resting(_) => None,
        };
        let compacting = match (spell, &self.phase) {
            (Some(spell), _) => self
                .deciding(spell, self.clock)
                .iter()
                .rev()
                .find(|t| t.compacts())
                .is_some_and(|t| matches!(t.what, What::CompactStarted)),
            (None, Phase::Resting(_)) => self.compaction_lead().is_some(),
            (None, _) => self.base.as_ref().is_some_and(|b| b.compacting),
        };
        let closing = matches!(self.phase, Phase::Closing(_));
        let since = spell.map_or(Time(0), |s| s.start.boot);
        let tool = self
            .turns
            .open_tools(since)
            .last()
            .copied()
            .or_else(|| {
                let from = spell.map_or(self.found, |s| s.start);
                let hooked = self.turns.deciding().any(|t| t.at.boot >= since);
                if hooked {
                    None
                } else {
                    self.turns.open_lines(from).last().copied()
                }
            })
            .map(|t| (t.name.clone(), t.arg.clone()));
        let listed = spell.and_then(|s| {
            self.deciding(s, self.clock)
                .iter()
                .rev()
                .find_map(|t| t.what.stop().map(|stop| stop.agents))
        });
        let known = u32::try_from(self.subagents.len()).unwrap_or(u32::MAX);
        Doing {
            tool: tool.filter(|_| !closing),
            compacting: compacting && !closing,
            retrying: !closing
                && self
                    .turns
                    .retries(spell.map_or(self.shown_since, |s| s.start)),
            agents: if known == 0 && self.ended_subagents.is_empty() {
                listed.unwrap_or(0)
            } else {
                known
            },
        }
    }

    /// A PreCompact while the file stays idle (C06). One that is hardly newer than that idle belongs to the spell
    /// before it.
    fn compaction_lead(&self) -> Option<Stamp> {
        let since = self.status.as_ref()?.since.boot;
        let after = self.turns.compaction_after(since + SPELL_SKEW);
        after.map(|t| t.at)
    }

    /// The same, and it has ended while the file can't be read: it may still say busy.
    fn compaction_unread(&self) -> Option<Stamp> {
        self.file_torn?;
        let since = self.status.as_ref()?.since.boot;
        self.turns.compacted_after(since + SPELL_SKEW).map(|t| t.at)
    }

    /// A prompt stamped at `at` makes busy until the file had its second to follow, and could be read to say so.
    pub(super) fn leads(&self, at: Time, now: Time) -> bool {
        now < at + LEAD || self.file_torn.is_some_and(|torn| torn <= at + LEAD)
    }

    /// A prompt that the file has not confirmed yet (rule 3).
    pub(super) fn prompt_lead(&self, now: Time) -> Option<Stamp> {
        let since = self.status.as_ref()?.since.boot;
        self.turns
            .prompt_after(since)
            .map(|t| t.at)
            .filter(|at| self.leads(at.boot, now))
    }

    pub(super) fn outcome(&self, stop: &Stop) -> Outcome {
        let shells = match self.status.as_ref().map(|s| s.status) {
            Some(FileStatus::Shell) => stop.shells.max(1),
            Some(FileStatus::Idle | FileStatus::Busy | FileStatus::Waiting) if self.seen_shell => 0,
            Some(FileStatus::Idle | FileStatus::Busy | FileStatus::Waiting) | None => stop.shells,
        };
        Outcome {
            error: stop.error.clone(),
            shells,
            wakes_at_ms: stop.wakes_at_ms,
        }
    }

    pub(super) fn target(&self, now: Stamp, recovered: Option<Time>) -> Target {
        let none = Target {
            badge: None,
            stay: Stay::None,
            since: self.found,
            silent: false,
            quiet: false,
        };
        let busy = |since: Stamp| Target {
            badge: Some(Badge::Busy(self.doing())),
            stay: Stay::Busy,
            since,
            ..none.clone()
        };
        if self.hidden() || self.left.is_some() {
            return none;
        }
        if self.headless() {
            return busy(self.found);
        }
        if self.parked_when_found() {
            // Its job is still looked for; if there is none any more, nothing works there.
            let (badge, stay) = match recovered {
                None => (Badge::Unknown, Stay::Unknown),
                Some(_) => (Badge::Idle, Stay::Idle),
            };
            return Target {
                badge: Some(badge),
                stay,
                ..none
            };
        }
        let needs = |dialog: &Dialog, quiet: bool| Target {
            badge: Some(Badge::NeedsInput(dialog.ask.clone())),
            stay: Stay::Needs(dialog.serial),
            since: dialog.since,
            silent: false,
            quiet,
        };
        match &self.phase {
            Phase::Unreported => self.base_target(now, recovered, &none, busy, needs),
            Phase::Resting(rest) => {
                if let Some(dialog) = rest.question.as_ref().and_then(|q| q.dialog.as_ref()) {
                    needs(dialog, false)
                } else if let Some(at) = self
                    .compaction_lead()
                    .or_else(|| self.compaction_unread())
                    .or(self.prompt_lead(now.boot))
                {
                    busy(at)
                } else {
                    self.rest_target(rest, &none)
                }
            }
            Phase::Working(spell) => match &spell.dialog {
                Some(dialog) => needs(dialog, spell.recovered),
                None => busy(spell.start),
            },
            Phase::Closing(closing) => match &closing.held {
                _ if let Some(dialog) = &closing.question => needs(dialog, false),
                _ if self
                    .turns
                    .prompt_after(closing.idle_at.boot)
                    .is_some_and(|t| self.leads(t.at.boot, now.boot)) =>
                {
                    busy(closing.spell.start)
                }
                Some(Held::Dialog(dialog)) => needs(dialog, true),
                Some(Held::Unknown(since)) => Target {
                    badge: Some(Badge::Unknown),
                    stay: Stay::Unknown,
                    since: *since,
                    ..none.clone()
                },
                Some(Held::Rest) => self.rest_target(&closing.spell.before, &none),
                None => busy(closing.spell.start),
            },
        }
    }

    fn rest_target(&self, rest: &Rest, none: &Target) -> Target {
        if rest
            .past
            .as_ref()
            .is_some_and(|past| past.wanting.is_none())
        {
            // Nobody has seen what it did before it was met.
            return Target {
                badge: Some(Badge::Unknown),
                stay: Stay::Unknown,
                since: self.found,
                ..none.clone()
            };
        }
        match &rest.badge {
            RestBadge::Idle { .. } => Target {
                badge: Some(Badge::Idle),
                stay: Stay::Idle,
                since: rest.since,
                ..none.clone()
            },
            RestBadge::Review {
                serial,
                stop,
                silent,
            } => Target {
                badge: Some(Badge::Review(self.outcome(stop))),
                stay: Stay::Review(*serial),
                since: rest.since,
                // A failure is news even where nobody typed.
                silent: *silent && stop.error.is_none(),
                quiet: rest.recovered,
            },
        }
    }

    fn base_target(
        &self,
        now: Stamp,
        recovered: Option<Time>,
        none: &Target,
        busy: impl Fn(Stamp) -> Target,
        needs: impl Fn(&Dialog, bool) -> Target,
    ) -> Target {
        if let Some(dialog) = &self.startup {
            return needs(dialog, self.found_recovering);
        }
        let Some(verdict) = &self.base else {
            return none.clone();
        };
        let quiet = self.found_recovering
            && recovered.is_none_or(|recovered| verdict.since.boot <= recovered);
        match &verdict.base {
            Base::Nothing if self.restored.is_none() && self.idle_hidden(now.boot) => none.clone(),
            Base::Nothing | Base::Idle { .. } => {
                if self.restored.is_none() && self.idle_hidden(now.boot) {
                    return none.clone();
                }
                Target {
                    badge: Some(Badge::Idle),
                    stay: Stay::Idle,
                    since: verdict.since,
                    ..none.clone()
                }
            }
            Base::Unknown => Target {
                badge: Some(Badge::Unknown),
                stay: Stay::Unknown,
                since: verdict.since,
                ..none.clone()
            },
            Base::Busy => busy(verdict.since),
            Base::Needs => match &self.base_dialog {
                Some(dialog) => needs(dialog, quiet),
                None => busy(verdict.since),
            },
            Base::Ended(stop) => Target {
                badge: Some(Badge::Review(self.outcome(stop))),
                stay: Stay::Review(verdict.since.boot.0),
                since: verdict.since,
                silent: false,
                quiet,
            },
        }
    }

    /// Idle by SessionStart is shown only when no status can come any more.
    pub(super) fn idle_hidden(&self, now: Time) -> bool {
        // A badge that was shown does not go because a SessionStart comes late; only amber of a start-up waits.
        let new = self.stay == Stay::None || self.startup.is_some();
        new && self.idle_shown_at().is_none_or(|at| now < at)
    }

    pub(super) fn idle_shown_at(&self) -> Option<Time> {
        let base_known = self.base.as_ref().is_some_and(|v| v.base != Base::Nothing);
        if let Some(file) = self.file_first {
            return Some(file.max(self.first_start.unwrap_or(file)) + STATUS_GRACE);
        }
        // Whoever fires hooks has started, though its start itself was not heard.
        if !base_known && !self.hooks_heard {
            return None;
        }
        let heard = self.first_start.unwrap_or(self.found.boot);
        Some(match &self.key_seen {
            Some(key) => key.boot.max(heard) + STATUS_GRACE,
            None => heard + FILE_GRACE,
        })
    }
}

/// The card with no more than the file says: its words may be another's.
fn blank(ctx: &mut Ctx, mut dialog: Dialog, bare: Words) -> Dialog {
    if dialog.ask.tool != bare.tool || dialog.ask.text != bare.text {
        dialog.ask = bare.into_ask(ctx.ask());
    }
    dialog
}
