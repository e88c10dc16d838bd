//! What the witnesses say, written down. Moves the phase only where the status file itself is what moves it;
//! must never commit a badge.

use super::*;

impl Agent {
    pub(crate) fn on_found(&mut self, process: Process) {
        let Process {
            pane,
            parent_agent,
            cwd,
            hooks,
        } = process;
        // A look that saw less does not take back what an earlier one saw.
        self.process.pane = pane.or(self.process.pane.take());
        self.process.parent_agent = parent_agent.or(self.process.parent_agent.take());
        self.process.cwd = cwd.or(self.process.cwd.take());
        self.process.hooks = hooks.or(self.process.hooks.take());
    }

    pub(crate) fn on_stopped(&mut self, ctx: &mut Ctx, now: Stamp, stopped: bool) {
        if self.stopped == stopped {
            return;
        }
        self.stopped = stopped;
        let line = if stopped { "stopped (T)" } else { "goes on" };
        self.note(ctx, now, Source::Process, line.into());
        if !stopped && let Some(episode) = &mut self.episode {
            // Nobody was told while it stood still; whether to tell is looked at anew.
            episode.committed = episode.committed.max(now.boot);
        }
    }

    pub(crate) fn on_key_file(&mut self, ctx: &mut Ctx, now: Stamp) {
        if self.key_seen.is_none() {
            self.key_seen = Some(now);
            self.note(ctx, now, Source::File, "key file seen".into());
        }
    }

    /// The background job that this parked session went on in has ended: nothing works there any more.
    pub(crate) fn on_job_ended(&mut self, ctx: &mut Ctx, now: Stamp) {
        self.note(ctx, now, Source::Process, "its background job ended".into());
        if self.status.is_some() {
            self.phase = Phase::Resting(Box::new(Rest {
                ended: now.boot,
                started: now.boot,
                led: now.boot,
                ..Rest::idle(now)
            }));
        }
    }

    pub(crate) fn on_quiet(&mut self, quiet: bool) {
        self.cpu_quiet = quiet;
    }

    /// Claude removes its file when it leaves, but a file may also vanish under a living process, and the
    /// process outranks it (rule 1): it has left when it says so as well, or is dead.
    pub(crate) fn on_file_removed(&mut self, ctx: &mut Ctx, now: Stamp) {
        if self.removed.is_some() {
            return;
        }
        self.removed = Some(now.boot);
        self.file_torn = None;
        if let Some(ended) = self.ended {
            self.left.get_or_insert(ended);
        }
        self.note(ctx, now, Source::File, "removed".into());
    }

    /// The file vanished under a living process and a hook tells of something newer than its last word: from
    /// here on hooks and transcript decide, as where there never was a file, beginning with what is shown.
    fn go_on_without_file(&mut self) {
        if self.status.take().is_none() {
            return;
        }
        self.phase = Phase::Unreported;
        self.restored = self.shown.clone().map(|badge| Persisted {
            badge,
            since: self.shown_since,
            episode: self.episode.map(|episode| episode.id),
            tab: None,
        });
    }

    pub(crate) fn on_file_unreadable(&mut self, ctx: &mut Ctx, now: Stamp, why: &str) {
        self.file_torn.get_or_insert(now.boot);
        self.note(ctx, now, Source::File, format!("can't be read: {why}"));
    }

    pub(crate) fn on_file(&mut self, ctx: &mut Ctx, now: Stamp, at: Stamp, file: SessionFile) {
        if at.boot < self.file_at {
            return;
        }
        self.file_torn = None;
        if self.removed.is_none() && at.boot == self.file_at && self.file.as_ref() == Some(&file) {
            // Read twice: what was heard meanwhile is newer.
            return;
        }
        self.file_at = at.boot;
        // Its status is awaited from when it was written, however late it could be read.
        let met = if self.found_recovering {
            self.met(at.boot, now.boot)
        } else {
            at.boot.min(now.boot)
        };
        self.file_first.get_or_insert(met);
        self.left = None;
        self.removed = None;
        self.ended = None;
        if let Some(conversation) = &file.conversation
            && self.conversation.as_ref() != Some(conversation)
        {
            // A hook may have led: then the file's older word does not take it back.
            if self.conversation.is_none() || at.boot >= self.conversation_at.boot {
                self.converse(ctx, at, conversation.clone(), None);
            }
        }
        let status = file.status.map(|status| Status {
            status,
            waiting: file.waiting_for.clone(),
            since: file.status_since.unwrap_or(at),
        });
        let versioned = file.status_since.is_some();
        if self.file.is_none() && self.found_recovering {
            self.parked_when_found = file.parked_job.is_some() && now.boot.since(at.boot) > PARKING;
        }
        self.file = Some(file);
        let Some(mut status) = status else { return };
        if let Some(old) = &self.status {
            let same = old.status == status.status && old.waiting == status.waiting;
            if same && (!versioned || old.since.wall_ms == status.since.wall_ms) {
                return;
            }
            // The file can't go back in time, whatever the mapping of clocks says.
            status.since.boot = status.since.boot.max(old.since.boot);
        }
        status.since.boot = status.since.boot.min(now.boot);
        self.seen_shell |= status.status == FileStatus::Shell;
        let line = match (&status.status, &status.waiting) {
            (FileStatus::Idle, _) => "idle".to_owned(),
            (FileStatus::Shell, _) => "shell".to_owned(),
            (FileStatus::Busy, _) => "busy".to_owned(),
            (FileStatus::Waiting, None) => "waiting".to_owned(),
            (FileStatus::Waiting, Some(why)) => format!("waiting · {}", said::waiting_word(why)),
        };
        let rests = self.status.as_ref().map(Status::kind) == Some(StatusKind::Quiet);
        let says = match status.kind() {
            StatusKind::Quiet => Says::Idle,
            StatusKind::Busy => Says::Busy,
            // The person's own menu hides an idle.
            StatusKind::Menu if rests => Says::Idle,
            StatusKind::Menu | StatusKind::Dialog => Says::NeedsInput,
        };
        self.note_saying(ctx, status.since, Source::File, line, Some(says));
        let old = self.status.replace(status);
        let worked = matches!(self.phase, Phase::Working(_));
        self.on_status(ctx, old);
        if worked && let Phase::Closing(closing) = &mut self.phase {
            // On a loaded machine Claude writes its file up to 570 ms after the moment that it names in it (measured,
            // 2.1.332), and what comes next as late: the wait is for what is still to be written.
            closing.wait_from = closing.wait_from.max(at.boot.min(now.boot));
        }
    }

    /// When something stamped at `at` is taken to have come, for what is awaited from then on. After a restart there
    /// are two seconds, however new it is to us.
    fn met(&self, at: Time, now: Time) -> Time {
        if self.found_recovering {
            now.min(at.max(self.found.boot + RECOVERY - STATUS_GRACE))
        } else {
            now
        }
    }

    fn converse(
        &mut self,
        ctx: &mut Ctx,
        at: Stamp,
        conversation: ConversationId,
        path: Option<Arc<str>>,
    ) {
        let first = self.conversation.is_none();
        self.conversation = Some(conversation.clone());
        self.conversation_at = at;
        self.transcript = path.clone();
        self.transcript_missing = false;
        if !first {
            self.turns.forget_transcript();
            self.read_up_to = None;
            self.title = None;
            self.title_named = false;
            self.first_prompt = None;
            self.last_message = None;
            self.context_tokens = None;
            self.usages.clear();
            // Without hooks this alone tells of `/clear` and `/resume` (rule 4).
            if let Phase::Resting(rest) = &mut self.phase {
                rest.badge = RestBadge::Idle { label: None };
                rest.since = at;
                rest.late = None;
                rest.recovered = false;
            }
            self.leave_turn_behind(ctx, at);
        }
        ctx.effects.push(Effect::UseTranscript {
            agent: self.key.clone(),
            path,
            conversation: Some(conversation.0),
        });
    }

    /// Another conversation is picked from a menu or begun anew, which can't be done in mid-turn: whatever turn the
    /// old one's end was looked for is over, and nobody asks any more how it ended.
    fn leave_turn_behind(&mut self, ctx: &mut Ctx, at: Stamp) {
        let menu = self.status.as_ref().map(Status::kind) == Some(StatusKind::Menu);
        let phase = std::mem::replace(&mut self.phase, Phase::Unreported);
        let spell = match phase {
            Phase::Working(spell) if menu => spell,
            Phase::Closing(closing) => closing.spell,
            Phase::Unreported | Phase::Resting(_) | Phase::Working(_) => {
                self.phase = phase;
                return;
            }
        };
        self.drop_hidden(ctx, spell.before.episode);
        self.asks.forget(at.boot);
        self.phase = Phase::Resting(Box::new(Rest {
            ended: at.boot,
            started: at.boot,
            led: at.boot,
            spell: Some(spell.start),
            recovered: spell.recovered,
            ..Rest::idle(at)
        }));
    }

    /// The file's status is another one, or the same one anew.
    fn on_status(&mut self, ctx: &mut Ctx, old: Option<Status>) {
        let Some(new) = self.status.clone() else {
            return;
        };
        let anew = old
            .as_ref()
            .is_some_and(|o| o.status == new.status && o.waiting == new.waiting);
        let kind = new.kind();
        let phase = std::mem::replace(&mut self.phase, Phase::Unreported);
        self.phase = match phase {
            Phase::Unreported => self.first_status(ctx, &new),
            Phase::Resting(rest) => match kind {
                StatusKind::Menu => self.menu_at_rest(rest, &new, old.as_ref()),
                StatusKind::Quiet => self.resting_anew(rest, &new, old.as_ref()),
                StatusKind::Busy | StatusKind::Dialog => {
                    let from = self.spell_from(&new, old.as_ref()).max(rest.ended);
                    Phase::Working(self.spell(new.since, from, rest))
                }
            },
            // From here on it was seen live.
            Phase::Working(mut spell) if spell.recovered && kind != StatusKind::Menu => {
                spell.recovered = false;
                self.phase = Phase::Working(spell);
                return self.on_status(ctx, old);
            }
            Phase::Working(mut spell) => match kind {
                StatusKind::Busy => {
                    if anew {
                        // It was idle in between, unseen: another spell, and the Stop of this one is spent.
                        Phase::Working(self.next_spell(spell, new.since, new.since))
                    } else {
                        self.asks.passed(new.since.boot);
                        if let Some(name) = spell.dialog.take().and_then(|d| d.name) {
                            // However soon it was answered.
                            self.asks.passed_by(&name);
                        }
                        spell.kept = false;
                        spell.menu = Reading::NotAsked;
                        Phase::Working(spell)
                    }
                }
                StatusKind::Dialog => {
                    if anew {
                        // It was busy in between, unseen.
                        self.asks.passed(new.since.boot);
                        spell.dialog = None;
                    } else if let Some(dialog) = spell
                        .dialog
                        .as_mut()
                        .filter(|d| !spell.kept || d.ask.kind == AskKind::Dialog)
                    {
                        // Another one has come to the front.
                        dialog.moved = true;
                        if let Some(name) = &dialog.name {
                            self.asks.passed_by(name);
                        }
                    }
                    spell.asked = true;
                    spell.kept = false;
                    Phase::Working(spell)
                }
                StatusKind::Menu => {
                    let answered = spell.dialog.as_ref().is_some_and(|d| d.answered.is_some());
                    if answered && !self.turns.open_tools(spell.start.boot).is_empty() {
                        // It was answered and the next tool asks: busy in between, unseen.
                        self.asks.passed(new.since.boot);
                        spell.dialog = None;
                        spell.kept = false;
                    } else {
                        spell.kept = spell.kept
                            || old.as_ref().is_some_and(|o| o.kind() == StatusKind::Dialog);
                    }
                    spell.menu = Reading::NotAsked;
                    Phase::Working(spell)
                }
                StatusKind::Quiet => {
                    let held = spell.dialog.clone().map(Held::Dialog);
                    Phase::Closing(Box::new(Closing::new(spell, new.since, held)))
                }
            },
            Phase::Closing(mut closing) => match kind {
                StatusKind::Menu => Phase::Closing(closing),
                StatusKind::Quiet => {
                    // Written anew: only a prompt tells that it was busy in between, unseen.
                    let idle_at = closing.idle_at;
                    let prompted = self.turns.prompt_after(idle_at.boot);
                    if anew && prompted.is_some_and(|t| t.at.boot <= new.since.boot) {
                        let spell = self.next_spell(closing.spell, idle_at, idle_at);
                        *closing = Closing::new(spell, new.since, None);
                    }
                    Phase::Closing(closing)
                }
                StatusKind::Busy | StatusKind::Dialog => {
                    let idle_at = closing.idle_at;
                    Phase::Working(self.next_spell(closing.spell, idle_at, new.since))
                }
            },
        };
    }

    /// The first status ever seen of this agent.
    fn first_status(&mut self, ctx: &mut Ctx, new: &Status) -> Phase {
        self.startup = None;
        self.base = None;
        self.base_told = None;
        let base_dialog = self.base_dialog.take();
        let restored = self.restored.take();
        let recovered = restored.is_some() || self.found_recovering && ctx.recovered.is_none();
        let Some(persisted) = restored else {
            let mut rest = Box::new(Rest::idle(new.since));
            rest.past = recovered.then(|| Past::of(Badge::Idle));
            return match new.kind() {
                StatusKind::Quiet | StatusKind::Menu if recovered => Phase::Resting(rest),
                StatusKind::Menu => self.menu_at_rest(rest, new, None),
                StatusKind::Quiet => match self.heard_unseen(&rest, None, new) {
                    None => Phase::Resting(rest),
                    Some(start) => {
                        let spell = self.spell(start, start.boot, rest);
                        Phase::Closing(Box::new(Closing::new(spell, new.since, None)))
                    }
                },
                StatusKind::Busy | StatusKind::Dialog => {
                    rest.since = self.found;
                    let from = self.spell_from(new, None);
                    let past = rest.past.clone();
                    let mut spell = self.spell(new.since, from, rest);
                    spell.before.past = past;
                    spell.recovered = recovered && new.kind() == StatusKind::Dialog;
                    Phase::Working(spell)
                }
            };
        };
        let mut rest = Box::new(Rest::idle(persisted.since));
        rest.recovered = true;
        rest.ended = persisted.since.boot;
        if let Badge::Review(outcome) = &persisted.badge {
            let serial = if let Stay::Review(shown) = self.stay {
                shown
            } else {
                self.serial += 1;
                self.serial
            };
            rest.badge = RestBadge::Review {
                serial,
                stop: Stop {
                    error: outcome.error.clone(),
                    message: None,
                    shells: outcome.shells,
                    agents: 0,
                    wakes_at_ms: outcome.wakes_at_ms,
                },
                silent: true,
            };
            let hidden = persisted.episode.filter(|_| self.episode.is_none());
            rest.episode = hidden.map(|id| Episode {
                id,
                committed: persisted.since.boot,
                notified: true,
                withdrawn: false,
                silenced: false,
                quiet: true,
                silent: true,
                told: None,
            });
        }
        let worked = match persisted.badge {
            Badge::Busy(_) | Badge::NeedsInput(_) | Badge::Unknown => true,
            Badge::Idle | Badge::Review(_) => false,
        };
        match new.kind() {
            StatusKind::Busy | StatusKind::Dialog => {
                let mut spell = self.spell(new.since, new.since.boot - SPELL_SKEW, rest);
                spell.before.past = Some(Past::of(persisted.badge.clone()));
                spell.recovered = new.kind() == StatusKind::Dialog;
                if let (Badge::NeedsInput(ask), StatusKind::Dialog) = (&persisted.badge, new.kind())
                    && new.since.wall_ms <= persisted.since.wall_ms
                {
                    // The same dialog still stands: same ask, same episode.
                    self.serial += 1;
                    let kept = Dialog::new(self.serial, persisted.since, None, ask.clone());
                    spell.dialog = Some(kept);
                    let told = persisted.episode.map(|id| Episode {
                        id,
                        committed: persisted.since.boot,
                        notified: true,
                        withdrawn: false,
                        silenced: false,
                        quiet: true,
                        silent: true,
                        told: Some(ask.id),
                    });
                    // It may have been shown already, and taken back; over is what is none any more.
                    let shown = self.episode.filter(|e| Some(e.id) == persisted.episode);
                    if let Some(episode) = shown.or(told) {
                        self.stay = Stay::Needs(self.serial);
                        self.shown = Some(persisted.badge.clone());
                        self.shown_since = persisted.since;
                        let old = self.episode.replace(episode);
                        self.drop_hidden(ctx, old.filter(|old| old.id != episode.id));
                    }
                }
                Phase::Working(spell)
            }
            StatusKind::Quiet | StatusKind::Menu => {
                // The wall clock may have been set meanwhile; the boot clock of a living process is the same.
                let unchanged = new.since.wall_ms == persisted.since.wall_ms
                    || new.since.boot <= persisted.since.boot;
                if !worked && unchanged {
                    return Phase::Resting(rest);
                }
                if let (Some(dialog), true) = (&base_dialog, unchanged) {
                    // The dialog that was shown still stands, behind `dialog open`.
                    let mut spell = self.spell(persisted.since, persisted.since.boot, rest);
                    spell.recovered = true;
                    spell.kept = true;
                    spell.dialog = Some(dialog.clone());
                    return Phase::Working(spell);
                }
                let start = Stamp {
                    boot: Time(persisted.since.boot.0 + 1),
                    wall_ms: persisted.since.wall_ms + i64::from(!worked),
                };
                let mut spell = self.spell(start, start.boot, rest);
                spell.recovered = true;
                let held = match (base_dialog, &persisted.badge) {
                    (Some(dialog), _) => Held::Dialog(dialog),
                    // A compaction, and nothing else, gives it back.
                    (None, Badge::Review(_)) => Held::Rest,
                    (
                        None,
                        Badge::Idle | Badge::Busy(_) | Badge::NeedsInput(_) | Badge::Unknown,
                    ) => Held::Unknown(match self.stay {
                        Stay::Unknown => self.shown_since,
                        Stay::None | Stay::Idle | Stay::Busy | Stay::Needs(_) | Stay::Review(_) => {
                            self.found
                        }
                    }),
                };
                Phase::Closing(Box::new(Closing::new(spell, new.since, Some(held))))
            }
        }
    }

    /// Idle anew, or shell after idle: it was busy in between, unseen, and that ends as any other spell does. If its
    /// hooks were heard it is known to have been more than a menu or a shell that ended. After the person's own menu
    /// only a prompt tells of one.
    fn resting_anew(&mut self, rest: Box<Rest>, new: &Status, old: Option<&Status>) -> Phase {
        let Some(old) = old else {
            return Phase::Resting(rest);
        };
        let heard = self.heard_unseen(&rest, Some(old), new);
        let prompted = || {
            let prompt = self.turns.prompt_after(old.since.boot.max(rest.ended));
            prompt.is_some_and(|t| t.at.boot <= new.since.boot)
        };
        if old.kind() != StatusKind::Quiet && (heard.is_none() || !prompted()) {
            return Phase::Resting(rest);
        }
        // All markers of a turn are written before the file says idle (measured: 9 to 200 ms, 2.1.332).
        let done = rest.ended.max(rest.used).max(rest.started);
        let after = Stamp {
            boot: old.since.boot.max(done) + JUST_AFTER,
            ..old.since.later_ms()
        };
        let looked_for = rest.late.map(|late| late.start);
        let start = heard.or(looked_for).unwrap_or(after);
        let held = heard.is_none().then_some(Held::Rest);
        let spell = self.spell(start, start.boot, rest);
        Phase::Closing(Box::new(Closing::new(spell, new.since, held)))
    }

    /// The person's own menu, unless hooks were heard of a turn that it stands over: then the file was busy in
    /// between, unseen.
    fn menu_at_rest(&mut self, rest: Box<Rest>, new: &Status, old: Option<&Status>) -> Phase {
        let rested = old.is_none_or(|o| o.kind() == StatusKind::Quiet);
        match self.heard_unseen(&rest, old, new).filter(|_| rested) {
            None => Phase::Resting(rest),
            Some(start) => Phase::Working(self.spell(start, start.boot, rest)),
        }
    }

    /// Where hooks say that something began between two words of the file that both rest, or before its first.
    fn heard_unseen(&self, rest: &Rest, old: Option<&Status>, new: &Status) -> Option<Stamp> {
        let known = old.map_or(Time(0), |old| old.since.boot);
        let after = known.max(rest.ended).max(rest.used);
        let mut unseen = self
            .turns
            .deciding()
            .filter(|t| t.at.boot > after && t.at.boot <= new.since.boot);
        let first = unseen.find(|t| match &t.what {
            What::Prompted { .. } | What::Stopped(_) | What::CompactStarted => true,
            // Of a tool that was cut off, its hook's process may have been slow to start.
            What::ToolStarted(_) => t.at.boot > after + SPELL_SKEW,
            What::ToolEnded(_)
            | What::Asked(_)
            | What::FormAsked(_)
            | What::FormAnswered
            | What::CompactEnded
            | What::Started
            | What::PromptNoticed => false,
        });
        first.map(|t| t.at)
    }

    /// From where on prompts belong to a spell that begins now.
    fn spell_from(&self, new: &Status, old: Option<&Status>) -> Time {
        let start = new.since.boot;
        let quiet_since = old.map_or(Time(0), |o| o.since.boot);
        let lead = self
            .turns
            .prompt_after(quiet_since)
            .filter(|t| start.since(t.at.boot) <= LEAD)
            .or_else(|| self.turns.compaction_after(quiet_since))
            .map_or(start, |t| t.at.boot);
        lead.min(start - SPELL_SKEW)
    }

    pub(super) fn spell(&self, start: Stamp, from: Time, mut before: Box<Rest>) -> Box<Spell> {
        before.late = None;
        before.past = None;
        before.question = None;
        Box::new(Spell {
            start,
            from,
            before,
            typed: false,
            recovered: false,
            dialog: None,
            asked: self
                .status
                .as_ref()
                .is_some_and(|s| s.kind() == StatusKind::Dialog),
            kept: false,
            menu: Reading::NotAsked,
        })
    }

    /// Another spell follows `spell`, which was idle from `idle_at` on, without the badge having moved.
    pub(super) fn next_spell(
        &mut self,
        spell: Box<Spell>,
        idle_at: Stamp,
        start: Stamp,
    ) -> Box<Spell> {
        let typed = spell.typed || self.typed(spell.whose(idle_at.boot));
        let unheard = Unheard {
            start: spell.start,
            began: spell.from,
            idle_at,
            typed,
            from: (start.boot - SPELL_SKEW).max(idle_at.boot),
            next: start.boot,
        };
        let newest = self
            .deciding(&spell, idle_at.boot)
            .into_iter()
            .rfind(|t| t.at.boot < start.boot);
        let stop = newest.and_then(|t| t.what.stop()).cloned().or_else(|| {
            let (start, from) = unheard.heard();
            self.turns.move_stop_before(start, from, unheard.end())
        });
        let mut before = spell.before;
        self.unheard = match stop {
            Some(stop) => {
                self.spend(&mut before, unheard, stop);
                None
            }
            None => Some(unheard),
        };
        // A hidden review that was taken back can't come again.
        before.episode = before.episode.filter(|e| e.notified && !e.withdrawn);
        before.ended = idle_at.boot;
        self.asks.forget(idle_at.boot - ASK_SKEW);
        self.turns.forget_queue();
        Box::new(Spell {
            start,
            from: unheard.from,
            before,
            typed,
            recovered: false,
            dialog: None,
            asked: self
                .status
                .as_ref()
                .is_some_and(|s| s.kind() == StatusKind::Dialog),
            kept: false,
            menu: Reading::NotAsked,
        })
    }

    /// A Stop is spent: it shows only if what follows proves to be a mere compaction.
    fn spend(&mut self, before: &mut Rest, spell: Unheard, stop: Stop) {
        self.serial += 1;
        before.badge = RestBadge::Review {
            serial: self.serial,
            stop,
            silent: !spell.typed,
        };
        before.since = spell.idle_at;
        before.recovered = false;
        before.spell = Some(spell.start);
    }

    /// Puts a late Stop where it belongs: into the spell that was followed by another at once.
    fn place(&mut self, turn: &mut Turn) {
        let Some(spell) = self.unheard.filter(|spell| {
            let (start, from) = spell.heard();
            self.turns.ends_turn_before(start, from, turn)
        }) else {
            return;
        };
        let Some(stop) = turn.what.stop().cloned() else {
            return;
        };
        turn.at = spell.end();
        self.unheard = None;
        let mut phase = std::mem::replace(&mut self.phase, Phase::Unreported);
        let now = match &mut phase {
            Phase::Working(now) => Some(now.as_mut()),
            Phase::Closing(closing) => Some(closing.spell.as_mut()),
            Phase::Unreported | Phase::Resting(_) => None,
        };
        if let Some(now) = now.filter(|now| now.start.boot == spell.next) {
            self.spend(&mut now.before, spell, stop);
        }
        self.phase = phase;
    }

    pub(crate) fn on_transcript(&mut self, ctx: &mut Ctx, now: Stamp, facts: Vec<TranscriptFact>) {
        let given = !facts.is_empty();
        for fact in facts {
            if fact.sidechain {
                continue;
            }
            let mut rewound = None;
            let wall_ms = fact.written_ms.unwrap_or(now.wall_ms);
            let at = Stamp {
                boot: self.written(ctx, now, wall_ms),
                wall_ms,
            };
            if let Some((line, says)) = said::transcript_line(&fact.kind) {
                self.note_saying(ctx, at, Source::Transcript, line, Some(says));
            }
            match &fact.kind {
                TranscriptKind::TurnEnded { last_message } => {
                    if last_message.is_some() {
                        self.last_message.clone_from(last_message);
                    }
                }
                TranscriptKind::Usage {
                    model,
                    context_tokens,
                } => self.used(wall_ms, model.as_ref(), *context_tokens),
                TranscriptKind::Title { text, named } => self.entitle(text, *named),
                // The file's own first prompt, whichever prompt was the first that we heard of.
                TranscriptKind::FirstPrompt { text } => {
                    self.first_prompt = Some((Time(0), shortened(text)));
                }
                TranscriptKind::LastWords { text } => {
                    self.last_message.get_or_insert_with(|| text.clone());
                }
                TranscriptKind::Rewound { to_ms } => rewound = Some(*to_ms),
                TranscriptKind::ApiError { .. }
                | TranscriptKind::Interrupted
                | TranscriptKind::Prompted { .. }
                | TranscriptKind::ToolStarted { .. }
                | TranscriptKind::ToolEnded { .. }
                | TranscriptKind::Enqueued
                | TranscriptKind::Dequeued
                | TranscriptKind::CompactBoundary
                | TranscriptKind::Requested
                | TranscriptKind::ContinuedIn { .. } => {}
            }
            if let TranscriptKind::ToolEnded { use_id } = &fact.kind
                && let Some(call) = self.turns.call(use_id)
            {
                // Its hook may be late or lost: the request is answered all the same.
                self.asks.tool_ended(at, None, call);
            }
            if matches!(fact.kind, TranscriptKind::Enqueued) && at.boot < self.key.born() {
                // It waited in another process, which ended before it took it up.
                continue;
            }
            if let TranscriptKind::Interrupted = &fact.kind {
                self.asks.main_interrupted(at.boot);
            }
            self.turns.read(Line {
                at,
                seen: now.boot,
                kind: fact.kind,
            });
            if let Some(to_ms) = rewound {
                self.last_message = self.turns.last_words().cloned();
                self.usages
                    .retain(|(at, _)| to_ms.is_some_and(|to| *at <= to));
                self.context_tokens = self.usages.back().map(|(_, tokens)| *tokens);
            }
        }
        self.read_up_to = Some(now.boot);
        self.transcript_missing &= !given;
    }

    /// Tokens in the context, and the model that counted them.
    fn used(&mut self, wall_ms: i64, model: Option<&Arc<str>>, tokens: Option<u64>) {
        if let Some(model) = model {
            self.model = Some(model.clone());
        }
        if let Some(tokens) = tokens {
            self.context_tokens = Some(tokens);
            self.usages.push_back((wall_ms, tokens));
            if self.usages.len() > USAGES_MAX {
                self.usages.pop_front();
            }
        }
    }

    fn on_status_line(&mut self, line: &StatusLine) {
        // It was too large, or nothing that is known was in it.
        if *line == StatusLine::default() {
            return;
        }
        if let Some(model) = &line.model {
            self.model = Some(model.clone());
        }
        // The transcript counts them more often, and takes them back when the person goes back.
        self.context_tokens = self.context_tokens.or(line.context_tokens);
        self.status_line = Some(line.clone());
    }

    /// Tokens that the context holds; of another model than that of now it says nothing.
    pub(crate) fn context_window(&self) -> Option<u64> {
        let line = self.status_line.as_ref()?;
        let same = line.model.is_none() || line.model == self.model;
        same.then_some(line.context_window)?
    }

    fn entitle(&mut self, text: &Arc<str>, named: bool) {
        if named || !self.title_named {
            self.title = Some(text.clone());
            self.title_named = named;
        }
    }

    /// When a line with this wall time was written: after the last read, and not in the future; where that can't be,
    /// before it, if the clock stood so then. Else now is the best that is known.
    fn written(&self, ctx: &Ctx, now: Stamp, wall_ms: i64) -> Time {
        let read = self.read_up_to.map_or(Time(0), |at| at - READ_SLACK);
        let moments = || ctx.clocks.moments(wall_ms).filter(|at| *at <= now.boot);
        let unread = moments().find(|at| *at >= read);
        unread
            .or_else(|| moments().find(|at| read.since(*at) <= LATE_LINE))
            .unwrap_or(now.boot)
    }

    pub(crate) fn on_transcript_read(&mut self, now: Stamp, request: u64, ok: bool) {
        let answer = |reading: &mut Reading| {
            if let Reading::Asked { request: asked, .. } = reading
                && *asked == request
            {
                *reading = Reading::Answered { ok, at: now.boot };
            }
        };
        answer(&mut self.restored_reading);
        match &mut self.phase {
            Phase::Unreported => {}
            Phase::Resting(rest) => {
                if let Some(past) = &mut rest.past {
                    answer(&mut past.reading);
                }
                if let Some(question) = &mut rest.question {
                    answer(&mut question.reading);
                }
            }
            Phase::Working(spell) => answer(&mut spell.menu),
            Phase::Closing(closing) => answer(&mut closing.reading),
        }
    }

    pub(crate) fn on_hook(&mut self, ctx: &mut Ctx, now: Stamp, hook: &Hook) {
        if let HookKind::StatusLine { line } = &hook.kind {
            self.on_status_line(line);
            return;
        }
        self.hooks_heard = true;
        self.locate(ctx, hook);
        let at = hook.at;
        self.newest_hook = self.newest_hook.max(at.boot);
        if now.boot.since(at.boot) > HOOK_LATE {
            self.heard_late = now.boot;
        }
        self.hooks_silent = false;
        let lane = hook.agent_id.clone();
        if let Some(left) = self.left
            && at.boot > left
            && !matches!(hook.kind, HookKind::SessionEnd { .. })
        {
            self.left = None;
            self.ended = None;
        }
        if self.left.is_none()
            && lane.is_none()
            && self.removed.is_some_and(|removed| at.boot > removed)
            && moves_a_turn(&hook.kind)
        {
            self.go_on_without_file();
        }
        let (line, what) = match &hook.kind {
            HookKind::SessionStart { source } => {
                let met = self.met(at.boot, now.boot);
                self.first_start.get_or_insert(met);
                let what = match source {
                    StartSource::Compact => What::CompactEnded,
                    StartSource::Startup
                    | StartSource::Resume
                    | StartSource::Clear
                    | StartSource::Fork
                    | StartSource::Other(_) => What::Started,
                };
                (
                    format!("SessionStart · {}", said::start_word(source)),
                    Some(what),
                )
            }
            HookKind::SessionEnd { reason } => {
                let goes_on = matches!(&**reason, "clear" | "resume");
                if !goes_on {
                    self.ended = Some(at.boot);
                    // With a file, the file's going has to confirm it. A version without files: nothing
                    // else says so before the process is gone.
                    if self.file.is_none() || self.removed.is_some() {
                        self.left.get_or_insert(at.boot);
                    }
                }
                (format!("SessionEnd · {reason}"), None)
            }
            HookKind::Prompt {
                text,
                task_notification,
            } => {
                if !task_notification
                    && self
                        .first_prompt
                        .as_ref()
                        .is_none_or(|(first, _)| at.boot < *first)
                {
                    self.first_prompt = Some((at.boot, shortened(text)));
                }
                let what = What::Prompted {
                    typed: !task_notification,
                };
                ("UserPromptSubmit".to_owned(), Some(what))
            }
            HookKind::ToolStarted { tool } => (
                format!("PreToolUse · {}", tool.name),
                Some(What::ToolStarted(tool.clone())),
            ),
            HookKind::ToolEnded { tool } => (
                format!("PostToolUse · {}", tool.name),
                Some(What::ToolEnded(tool.clone())),
            ),
            HookKind::ToolFailed { tool, .. } => (
                format!("PostToolUseFailure · {}", tool.name),
                Some(What::ToolEnded(tool.clone())),
            ),
            HookKind::PermissionRequested { tool } => (
                format!("PermissionRequest · {}", tool.name),
                Some(What::Asked(tool.clone())),
            ),
            HookKind::Notified { kind, .. } => {
                let prompt = matches!(
                    kind.as_deref(),
                    Some("permission_prompt" | "worker_permission_prompt")
                );
                (
                    format!("Notification · {}", kind.as_deref().unwrap_or("-")),
                    prompt.then_some(What::PromptNoticed),
                )
            }
            HookKind::FormAsked { server, message } => (
                format!("Elicitation · {server}"),
                Some(What::FormAsked(message.clone())),
            ),
            HookKind::FormAnswered => ("ElicitationResult".to_owned(), Some(What::FormAnswered)),
            HookKind::Stopped {
                last_message,
                background,
                wakes_at_ms,
                ..
            } => {
                let background = background.clone().unwrap_or_default();
                let stop = Stop {
                    error: None,
                    message: last_message.clone(),
                    shells: background.shells,
                    agents: background.agents,
                    wakes_at_ms: *wakes_at_ms,
                };
                let line = format!(
                    "Stop · {} shells, {} agents running",
                    background.shells, background.agents
                );
                (line, Some(What::Stopped(stop)))
            }
            HookKind::StopFailed { error, message } => (
                format!("StopFailure · {error}"),
                Some(What::Stopped(bare_stop(
                    Some(error.clone()),
                    message.clone(),
                ))),
            ),
            HookKind::SubagentStarted { id, kind } => {
                if !kind.is_empty() && !self.ended_subagents.contains_key(id) {
                    self.subagents.insert(id.clone());
                }
                (format!("SubagentStart · {kind}"), None)
            }
            HookKind::SubagentStopped { id, kind } => {
                if !kind.is_empty() {
                    self.subagents.remove(id);
                    self.ended_subagents.insert(id.clone(), at.boot);
                    if self.ended_subagents.len() > 256 {
                        self.ended_subagents.pop_first();
                    }
                }
                (format!("SubagentStop · {kind}"), None)
            }
            HookKind::CompactStarted { manual } => (
                format!("PreCompact · {}", if *manual { "manual" } else { "auto" }),
                Some(What::CompactStarted),
            ),
            HookKind::CompactEnded => ("PostCompact".to_owned(), Some(What::CompactEnded)),
            HookKind::CwdChanged { cwd } => {
                self.cwd = Some((at.boot, cwd.clone()));
                (format!("CwdChanged · {cwd}"), None)
            }
            // Taken before: it is no hook.
            HookKind::StatusLine { .. } => return,
            HookKind::Unknown { name } => (format!("{name} · not known"), None),
        };
        self.note_saying(ctx, at, Source::Hook, line, said::hook_says(hook));
        let Some(what) = what else { return };
        let prompt = hook.prompt_id.clone();
        let mut turn = Turn {
            at,
            lane,
            prompt,
            what,
        };
        self.place(&mut turn);
        if self.turns.add(turn.clone()) {
            self.on_turn(&turn);
        }
    }

    /// A new word of a hook: asks open and close, the newest Stop brings Claude's last words.
    fn on_turn(&mut self, turn: &Turn) {
        match &turn.what {
            What::Asked(tool) => self.open_ask(turn, Wanted::Tool(tool.clone())),
            What::FormAsked(message) => self.open_ask(turn, Wanted::Form(message.clone())),
            What::ToolEnded(tool) => {
                let call = tool
                    .use_id
                    .as_ref()
                    .and_then(|id| self.turns.call(id))
                    .unwrap_or(tool);
                self.asks.tool_ended(turn.at, turn.lane.as_ref(), call);
            }
            What::FormAnswered => self.asks.form_answered(turn.at),
            What::Stopped(stop) => {
                let newest = self
                    .turns
                    .deciding()
                    .rfind(|t| matches!(t.what, What::Stopped(_)));
                if turn.lane.is_none() && newest == Some(turn) {
                    if stop.message.is_some() {
                        self.last_message.clone_from(&stop.message);
                    }
                    self.wakes_at_ms = stop.wakes_at_ms;
                    if stop.agents == 0 {
                        self.subagents.clear();
                    }
                }
            }
            What::Prompted { .. }
            | What::ToolStarted(_)
            | What::CompactStarted
            | What::CompactEnded
            | What::Started
            | What::PromptNoticed => {}
        }
    }

    /// Keeps a request, unless what answers it came first or its spell is long over.
    fn open_ask(&mut self, turn: &Turn, wanted: Wanted) {
        let over = match &self.phase {
            Phase::Unreported => false,
            Phase::Resting(rest) => turn.at.boot + ASK_SKEW <= rest.ended,
            Phase::Working(spell) => turn.at.boot + ASK_SKEW < spell.start.boot,
            Phase::Closing(closing) => turn.at.boot + ASK_SKEW < closing.spell.start.boot,
        };
        let lane = turn.lane.as_ref();
        let answered = match &wanted {
            Wanted::Tool(_) => {
                let mut results = self.turns.results_since(turn.at.boot, lane);
                results.any(|ended| wanted.ends_with(ended))
            }
            Wanted::Form(_) => {
                let mut since = self.turns.hooks().filter(|t| t.at.boot >= turn.at.boot);
                since.any(|t| matches!(t.what, What::FormAnswered))
            }
        };
        if !over && !answered {
            self.asks.add(turn.at, turn.lane.clone(), wanted);
        }
    }

    /// Conversation, transcript and directory as the payload has them.
    fn locate(&mut self, ctx: &mut Ctx, hook: &Hook) {
        let speaks_of_old = matches!(
            hook.kind,
            HookKind::SessionEnd { .. } | HookKind::Notified { .. }
        );
        if hook.agent_id.is_some() || speaks_of_old {
            return;
        }
        if let Some(cwd) = &hook.cwd
            && self.cwd.as_ref().is_none_or(|(at, _)| hook.at.boot >= *at)
        {
            self.cwd = Some((hook.at.boot, cwd.clone()));
        }
        let Some(conversation) = &hook.conversation else {
            return;
        };
        if self.conversation.as_ref() == Some(conversation) {
            if let Some(path) = &hook.transcript
                && self.transcript.as_ref() != Some(path)
            {
                self.transcript = Some(path.clone());
                ctx.effects.push(Effect::UseTranscript {
                    agent: self.key.clone(),
                    path: Some(path.clone()),
                    conversation: Some(conversation.0.clone()),
                });
            }
            return;
        }
        let starts = matches!(hook.kind, HookKind::SessionStart { .. });
        let leads = self.conversation.is_none()
            || hook.at.boot > self.conversation_at.boot && (starts || self.file.is_none());
        if leads {
            let first = self.conversation.is_none();
            let kept = match &self.phase {
                Phase::Resting(rest) if !first => Some(rest.clone()),
                Phase::Resting(_) | Phase::Unreported | Phase::Working(_) | Phase::Closing(_) => {
                    None
                }
            };
            self.converse(ctx, hook.at, conversation.clone(), hook.transcript.clone());
            // The SessionStart itself decides by rule 4, not the id it brings.
            if let Some(rest) = kept {
                self.phase = Phase::Resting(rest);
            }
        }
    }
}

/// The first words of a prompt, as a title.
fn shortened(text: &str) -> Arc<str> {
    let line = text.trim().lines().next().unwrap_or_default();
    match line.char_indices().nth(TITLE_CHARS) {
        None => Arc::from(line),
        Some((end, _)) => Arc::from(format!("{}…", line[..end].trim_end())),
    }
}

/// Whether it tells of a turn's course: what a file without a voice can't contradict.
fn moves_a_turn(kind: &HookKind) -> bool {
    match kind {
        HookKind::Prompt { .. }
        | HookKind::ToolStarted { .. }
        | HookKind::ToolEnded { .. }
        | HookKind::ToolFailed { .. }
        | HookKind::PermissionRequested { .. }
        | HookKind::FormAsked { .. }
        | HookKind::FormAnswered
        | HookKind::Stopped { .. }
        | HookKind::StopFailed { .. } => true,
        HookKind::SessionStart { .. }
        | HookKind::SessionEnd { .. }
        | HookKind::Notified { .. }
        | HookKind::SubagentStarted { .. }
        | HookKind::SubagentStopped { .. }
        | HookKind::CompactStarted { .. }
        | HookKind::CompactEnded
        | HookKind::CwdChanged { .. }
        | HookKind::StatusLine { .. }
        | HookKind::Unknown { .. } => false,
    }
}
