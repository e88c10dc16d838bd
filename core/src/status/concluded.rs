//! How spells end and what rests then: rules 3 to 5. Reads evidence, moves phases; must never show or tell.

use super::*;

impl Agent {
    /// One step of the phase machine; `true`: something moved, look again.
    pub(super) fn conclude(&mut self, ctx: &mut Ctx, now: Stamp) -> bool {
        let phase = std::mem::replace(&mut self.phase, Phase::Unreported);
        let (phase, moved) = match phase {
            Phase::Unreported => {
                self.conclude_unreported(ctx, now);
                (Phase::Unreported, false)
            }
            Phase::Resting(mut rest) => match self.unseen_turn(ctx, now, &mut rest) {
                Some((start, idle_at)) => {
                    let mut spell = self.spell(start, start.boot, rest);
                    spell.recovered = true;
                    let held = match self.stay {
                        Stay::Unknown => Held::Unknown(self.shown_since),
                        Stay::None | Stay::Idle | Stay::Busy | Stay::Needs(_) | Stay::Review(_) => {
                            Held::Rest
                        }
                    };
                    let closing = Closing::new(spell, idle_at, Some(held));
                    (Phase::Closing(Box::new(closing)), true)
                }
                None => {
                    let moved = self.conclude_resting(ctx, now, &mut rest);
                    (Phase::Resting(rest), moved)
                }
            },
            Phase::Working(spell) => self.conclude_working(ctx, now, spell),
            Phase::Closing(closing) => self.conclude_closing(ctx, now, closing),
        };
        self.phase = phase;
        moved
    }

    fn conclude_unreported(&mut self, ctx: &mut Ctx, now: Stamp) {
        let (start, since) = match &self.restored {
            None => (Base::Nothing, self.found),
            Some(persisted) => match &persisted.badge {
                Badge::Idle => (Base::Idle { interrupted: false }, persisted.since),
                Badge::Busy(_) => (Base::Unknown, persisted.since),
                // That is no badge's moment, but from where on it is to be found out.
                Badge::Unknown => (Base::Unknown, self.found),
                Badge::NeedsInput(_) => (Base::Needs, persisted.since),
                Badge::Review(outcome) => (
                    Base::Ended(Stop {
                        error: outcome.error.clone(),
                        message: None,
                        shells: outcome.shells,
                        agents: 0,
                        wakes_at_ms: outcome.wakes_at_ms,
                    }),
                    persisted.since,
                ),
            },
        };
        let told_up_to = self.restored.as_ref().map(|persisted| persisted.since.boot);
        let restored = self.restored.is_some();
        // Until all witnesses were asked, the file may still have its say: what was shown stays.
        let held = restored && ctx.recovered.is_none();
        if restored
            && !held
            && self
                .file_first
                .is_none_or(|at| now.boot >= at + STATUS_GRACE)
        {
            self.read_once(ctx, now, |agent| &mut agent.restored_reading);
        }
        let told = base::Start {
            base: start,
            since,
            hooks_after: told_up_to.unwrap_or_default(),
            lines_after: told_up_to
                .unwrap_or_else(|| self.conversation_at.boot.max(self.key.born())),
        };
        let verdict = base::verdict(&self.turns, told.clone(), now.boot);
        self.base = Some(if held {
            let nothing = base::Start {
                hooks_after: Time(u64::MAX),
                lines_after: Time(u64::MAX),
                ..told
            };
            base::verdict(&self.turns, nothing, now.boot)
        } else {
            verdict.clone()
        });
        self.base_told = Some(verdict);

        let working = self.base.as_ref().is_some_and(|verdict| {
            matches!(verdict.base, Base::Busy | Base::Needs | Base::Ended(_))
        });
        let due = |after: Duration| {
            self.key_seen
                .is_some_and(|key| now.boot >= key.boot + after)
        };
        if self.file.is_some() || self.hooks_heard {
            // It was answered. Amber stays until there is a badge to follow it, which takes half a second.
            if working || !self.idle_hidden(now.boot) {
                self.startup = None;
            }
        } else if self.startup.is_none()
            && (due(STARTUP_SURE) || due(STARTUP_QUIET) && self.cpu_quiet)
        {
            self.serial += 1;
            let ask = Ask {
                id: ctx.ask(),
                kind: AskKind::Startup,
                text: None,
                tool: None,
                options: Vec::new(),
            };
            self.startup = Some(Dialog::new(self.serial, now, None, ask));
        }
    }

    /// Asks for the transcript unless that was done.
    fn read_once(
        &mut self,
        ctx: &mut Ctx,
        now: Stamp,
        reading: impl FnOnce(&mut Self) -> &mut Reading,
    ) {
        let request = self.requests + 1;
        let slot = reading(self);
        if *slot == Reading::NotAsked {
            *slot = Reading::Asked {
                request,
                at: now.boot,
            };
            self.requests = request;
            ctx.effects.push(Effect::ReadTranscript {
                agent: self.key.clone(),
                request,
            });
        }
    }

    /// As [`Self::read_once`], for a reading that stands outside of `self` while a phase is at work.
    fn read(&mut self, ctx: &mut Ctx, now: Stamp, reading: &mut Reading) {
        if *reading == Reading::NotAsked {
            self.requests += 1;
            *reading = Reading::Asked {
                request: self.requests,
                at: now.boot,
            };
            ctx.effects.push(Effect::ReadTranscript {
                agent: self.key.clone(),
                request: self.requests,
            });
        }
    }

    fn conclude_resting(&mut self, ctx: &mut Ctx, now: Stamp, rest: &mut Rest) -> bool {
        // SessionStart outside a spell.
        let started = self
            .turns
            .deciding()
            .rfind(|t| matches!(t.what, What::Started))
            .map(|t| t.at)
            .filter(|at| at.boot > self.started_after(rest));
        if let Some(at) = started {
            rest.started = at.boot;
            rest.late = None;
            rest.question = None;
            if rest.badge != (RestBadge::Idle { label: None }) {
                self.drop_hidden(ctx, rest.episode.take());
                rest.badge = RestBadge::Idle { label: None };
                rest.since = at;
            }
            rest.started = rest.started.max(rest.ended);
            return true;
        }
        if self.late_end(ctx, now, rest) {
            return true;
        }
        if self.unseen_prompt(rest, now) {
            return true;
        }
        self.fill_in(rest);
        if let (Some(whose), RestBadge::Review { silent, .. }) = (rest.whose, &mut rest.badge) {
            *silent = !self.typed(whose);
        }

        // The lead of a prompt that the file never confirmed is over: its Stop may still come.
        let Some(status_since) = self.status.as_ref().map(|s| s.since) else {
            return false;
        };
        let led = self
            .turns
            .prompt_after(status_since.boot)
            .filter(|t| !self.leads(t.at.boot, now.boot) && t.at.boot > rest.led)
            .map(|t| (t.at, matches!(t.what, What::Prompted { typed: true })));
        if let Some((at, typed)) = led {
            rest.led = at.boot;
            let until = at.boot + LEAD + LATE;
            if now.boot < until {
                rest.late = Some(Late::new(at, at.boot + LEAD, typed));
                return true;
            }
        }
        self.hidden_question(ctx, now, rest, status_since)
    }

    /// A SessionStart since then makes idle. One that followed a turn while the server was down may be told late.
    fn started_after(&self, rest: &Rest) -> Time {
        let review = matches!(rest.badge, RestBadge::Review { .. });
        match rest.spell.filter(|_| rest.recovered && review) {
            None => rest.ended.max(rest.started),
            Some(start) => {
                let hooked = self.turns.prompt_after(start.boot).map(|t| t.at);
                let written = self.turns.prompt_line_after(start);
                let prompts = hooked.into_iter().chain(written).map(|at| at.boot);
                prompts.fold(start.boot.max(rest.used), Time::max)
            }
        }
    }

    /// It was started while the server was down, and began a turn that only the spool and the transcript tell of:
    /// since when, and when the file said that it rests or that `dialog open` stands over it.
    fn unseen_turn(
        &mut self,
        ctx: &mut Ctx,
        now: Stamp,
        rest: &mut Rest,
    ) -> Option<(Stamp, Stamp)> {
        let since = self.status.as_ref().map(|status| status.since);
        if let Some(past) = &rest.past
            && past
                .wanting
                .is_some_and(|(_, met_at)| Some(met_at) != since)
        {
            // It has been seen to go on since.
            rest.past = None;
        }
        let past = rest.past.as_mut()?;
        ctx.recovered?;
        self.read(ctx, now, &mut past.reading);
        if matches!(past.reading, Reading::Asked { at, .. } if now.boot < at + TRANSCRIPT_WAIT) {
            return None;
        }
        if let Some(again) = self.read_again(past.reading, now) {
            if now.boot >= again {
                past.reading = Reading::NotAsked;
                self.read(ctx, now, &mut past.reading);
            }
            return None;
        }
        let status = self.status.as_ref()?;
        let idle_at = status.since;
        let hooked = self.turns.newest_turn();
        // An old end marker may be that of a conversation that was resumed.
        let menu = status.kind() == StatusKind::Menu;
        let start = hooked.or_else(|| self.turns.newest_written(idle_at.earlier(500), menu));
        if let Some(start) = start.filter(|start| start.boot <= idle_at.boot) {
            rest.past = None;
            return Some((start, idle_at));
        }
        let (from, _) = *past.wanting.get_or_insert((now.boot, idle_at));
        if now.boot > from + LATE {
            rest.past = None;
        } else if past.next_read().is_some_and(|at| now.boot >= at) {
            past.reads += 1;
            past.reading = Reading::NotAsked;
            self.read(ctx, now, &mut past.reading);
        }
        None
    }

    /// A spell ended as idle for want of evidence; within 30 s it may still come (rule 4).
    fn late_end(&mut self, ctx: &mut Ctx, now: Stamp, rest: &mut Rest) -> bool {
        let Some(mut late) = rest.late else {
            return false;
        };
        if now.boot > late.from + LATE {
            rest.late = None;
            return true;
        }
        // A prompt line written since the file said its last word began something newer, and what follows is that one's.
        let known = self.status.as_ref().map_or(rest.ended, |s| s.since.boot);
        let next = self.turns.prompt_line_after(late.start);
        let next = next.filter(|line| late.until.is_some() && line.boot > known.max(rest.ended));
        let newest = self.turns.deciding().next_back().filter(|t| {
            t.at.boot >= late.start.boot
                && late.until.is_none_or(|until| t.at.boot <= until)
                && next.is_none_or(|next| t.at.boot < next.boot)
        });
        if newest
            .is_some_and(|t| matches!(t.what, What::Prompted { .. }) && t.at.boot > late.start.boot)
        {
            // Something newer has begun.
            return false;
        }
        // Unseen, a queued prompt was taken up: the Stop before it is spent.
        let spent = newest
            .filter(|t| t.what.stop().is_some())
            .and_then(|t| self.turns.prompt_line_after(t.at))
            .filter(|line| late.until.is_none_or(|until| line.boot <= until));
        let (stop, by_transcript) = match newest.map(|t| &t.what) {
            Some(What::Stopped(stop)) if spent.is_none() => (stop.clone(), false),
            Some(What::Started) => {
                self.drop_hidden(ctx, rest.episode.take());
                rest.late = None;
                rest.badge = RestBadge::Idle { label: None };
                return true;
            }
            Some(_) | None => match self.turns.end_between(spent.unwrap_or(late.start), next) {
                TranscriptEnd::Ended { error, message } => (bare_stop(error, message), true),
                TranscriptEnd::Interrupted => {
                    rest.late = None;
                    rest.badge = RestBadge::Idle {
                        label: Some("interrupted".into()),
                    };
                    return true;
                }
                TranscriptEnd::Compacted
                | TranscriptEnd::Cut
                | TranscriptEnd::Nothing
                | TranscriptEnd::Prompted => {
                    if late.next_read().is_some_and(|at| now.boot >= at) {
                        late.reads += 1;
                        rest.late = Some(late);
                        self.read(ctx, now, &mut Reading::NotAsked);
                    }
                    return false;
                }
            },
        };
        self.drop_hidden(ctx, rest.episode.take());
        rest.late = None;
        self.serial += 1;
        rest.badge = RestBadge::Review {
            serial: self.serial,
            stop,
            silent: !late.typed,
        };
        rest.spell = Some(late.start);
        rest.since = now;
        rest.by_transcript = by_transcript;
        rest.used = self.turns.newest_stop();
        let unheard = by_transcript && !rest.recovered;
        self.hooks_silent |= unheard && self.newest_hook < late.start.boot - LEAD;
        true
    }

    /// The person's own menu was opened over a turn that the file did not tell of, and whose prompt's hook came late:
    /// its end is looked for as any other's.
    fn unseen_prompt(&self, rest: &mut Rest, now: Stamp) -> bool {
        let menu = self
            .status
            .as_ref()
            .filter(|s| s.kind() == StatusKind::Menu);
        let Some(menu) = menu.map(|s| s.since.boot) else {
            return false;
        };
        let done = rest.ended.max(rest.used).max(rest.started).max(rest.led);
        let done = done.max(rest.since.boot.min(menu));
        let unseen = self.turns.deciding().rev().skip_while(|t| t.at.boot > menu);
        let mut unseen = unseen.take_while(|t| t.at.boot > done);
        let Some((start, typed)) = unseen.find_map(|t| Some((t.at, t.what.prompt()?))) else {
            return false;
        };
        rest.led = start.boot;
        rest.late = Some(Late::new(start, now.boot, typed).of_spell(menu));
        true
    }

    /// The transcript decided before the Stop was here: now it adds what it alone knows.
    fn fill_in(&self, rest: &mut Rest) {
        if !rest.by_transcript {
            return;
        }
        let (Some(start), RestBadge::Review { stop: known, .. }) = (rest.spell, &mut rest.badge)
        else {
            return;
        };
        // Of the turn that ended then: what was heard before its prompt, or after another one since, is another's.
        let prompt = |t: &&Turn| t.what.prompt().is_some();
        let own = self
            .turns
            .deciding()
            .filter(prompt)
            .rfind(|t| t.at.boot <= rest.ended);
        let from = own.map_or(start.boot, |own| own.at.boot.max(start.boot));
        let next = self
            .turns
            .deciding()
            .filter(prompt)
            .find(|t| t.at.boot > rest.ended);
        let stop = self
            .turns
            .deciding()
            .rev()
            .filter(|t| t.at.boot >= from && next.is_none_or(|next| t.at.boot < next.at.boot))
            .find_map(|t| Some((t.at, t.what.stop()?)))
            .filter(|(at, _)| {
                // A queued turn that followed it has no prompt's hook.
                let line = self.turns.prompt_line_after(*at);
                line.is_none_or(|line| line.boot > rest.ended)
            })
            .map(|(_, stop)| stop);
        if let Some(stop) = stop {
            // Whether it failed was shown already; only a kind may become more exact.
            let error = match (&known.error, &stop.error) {
                (Some(_), Some(exact)) => Some(exact.clone()),
                (kept, _) => kept.clone(),
            };
            *known = Stop {
                error,
                ..stop.clone()
            };
            rest.by_transcript = false;
            rest.used = self.turns.newest_stop();
        }
    }

    /// Q15: a question stands open while the file stays idle. `true`: it was answered, and its end is looked for.
    fn hidden_question(
        &mut self,
        ctx: &mut Ctx,
        now: Stamp,
        rest: &mut Rest,
        status_since: Stamp,
    ) -> bool {
        let asked = self
            .asks
            .iter()
            .rev()
            .find(|a| {
                a.lane.is_none()
                    && a.at.boot > status_since.boot.max(rest.ended)
                    && matches!(&a.wanted, Wanted::Tool(t) if &*t.name == QUESTION_TOOL)
            })
            .map(|a| (a.at, a.words()));
        let Some((at, words)) = asked else {
            return self.question_answered(now, rest);
        };
        let newer_prompt = self.turns.prompt_after(at.boot).is_some();
        let open_in_transcript = self
            .turns
            .open_lines(at.earlier(5_000))
            .iter()
            .any(|t| &*t.name == QUESTION_TOOL);
        let mut question = match rest.question.take() {
            Some(question) if question.at == at => question,
            Some(_) | None => HiddenQuestion {
                at,
                reading: Reading::NotAsked,
                dialog: None,
            },
        };
        if newer_prompt || question.dialog.is_some() && !open_in_transcript {
            self.asks.forget_main(at.boot);
            rest.question = Some(question);
            return self.question_answered(now, rest);
        }
        if now.boot >= at.boot + END_WAIT {
            self.read(ctx, now, &mut question.reading);
            if question.dialog.is_none()
                && open_in_transcript
                && matches!(question.reading, Reading::Answered { ok: true, .. })
            {
                self.serial += 1;
                question.dialog = Some(Dialog::asking(self.serial, at, words, ctx.ask()));
            }
        }
        rest.question = Some(question);
        false
    }

    /// Claude works on behind a file that says idle: its Stop makes review as after any unseen turn.
    fn question_answered(&self, now: Stamp, rest: &mut Rest) -> bool {
        let question = rest.question.take().filter(|q| q.dialog.is_some());
        let late = question.map(|q| Late::new(q.at, now.boot, true));
        rest.late = late.or(rest.late);
        late.is_some()
    }

    /// Main-lane turn events of a spell, oldest first. Prompts and PreCompacts after its end are the next one's.
    pub(super) fn deciding(&self, spell: &Spell, end: Time) -> Vec<&Turn> {
        self.turns
            .deciding()
            .filter(|t| {
                if matches!(t.what, What::Prompted { .. } | What::CompactStarted) {
                    t.at.boot >= spell.from && t.at.boot <= end
                } else {
                    t.at.boot >= spell.start.boot
                }
            })
            .collect()
    }

    /// A person asked for this spell: by a typed prompt, or by something that no hook tells (`!command`).
    pub(super) fn typed(&self, spell: Whose) -> bool {
        let written: Vec<&Line> = {
            let lines = self.turns.lines();
            lines
                .filter(|l| l.belongs(spell.start.earlier(500)) && l.at.boot >= spell.from)
                .collect()
        };
        let mut prompts = written.iter().filter_map(|l| l.prompt()).peekable();
        let waking = self.wakes_at_ms_before(spell).is_some_and(|wakes| {
            (wakes - WAKE_EARLY_MS..=wakes + WAKE_SLACK_MS).contains(&spell.start.wall_ms)
        });
        // The hook of a wake-up's prompt looks like a person's; the transcript's first line of the turn tells.
        if waking && (written.is_empty() || prompts.peek() == Some(&false)) {
            return false;
        }
        let hooked: Vec<bool> = {
            let hooks = self.turns.deciding();
            hooks
                .filter(|t| t.at.boot >= spell.from && t.at.boot <= spell.end)
                .filter_map(|t| t.what.prompt())
                .collect()
        };
        if !hooked.is_empty() {
            return hooked.contains(&true);
        }
        // Without a hook the transcript may tell that it was a task's notification.
        prompts.peek().is_none() || prompts.any(|typed| typed)
    }

    /// The wake-up that the newest Stop before this spell announced.
    fn wakes_at_ms_before(&self, spell: Whose) -> Option<i64> {
        self.turns
            .deciding()
            .rev()
            .filter(|t| t.at.boot < spell.start.boot)
            .find_map(|t| t.what.stop().map(|stop| stop.wakes_at_ms))
            .flatten()
    }

    /// Nothing but a compaction is known of the spell, and something is. Where Claude has nothing to compact, the
    /// process of the PreCompact hook starts when the spell is over.
    pub(super) fn mere_compaction(&self, spell: &Spell, end: Time) -> bool {
        let events = self.deciding(spell, end + SPELL_SKEW);
        !events.is_empty()
            && events.iter().all(|t| t.compacts())
            && matches!(
                self.turns.end_in_transcript(spell.start),
                TranscriptEnd::Nothing | TranscriptEnd::Compacted | TranscriptEnd::Interrupted
            )
    }

    /// Rule 5, for `dialog open` that came from busy.
    fn conclude_working(
        &mut self,
        ctx: &mut Ctx,
        now: Stamp,
        mut spell: Box<Spell>,
    ) -> (Phase, bool) {
        let status = match &self.status {
            // While the file can't be read the menu may be closed already, and the Stop's idle not yet written.
            Some(status)
                if status.kind() == StatusKind::Menu && !spell.kept && self.file_torn.is_none() =>
            {
                status.clone()
            }
            Some(_) | None => return (Phase::Working(spell), false),
        };
        let events = self.deciding(&spell, now.boot);
        let hooked = !events.is_empty();
        // The hooks of what follows a Stop may be late: then the transcript has gone on.
        let stopped = events
            .last()
            .is_some_and(|t| t.what.stop().is_some() && !self.turns.worked_after(t.at));
        let tool_open = !self.turns.open_tools(spell.start.boot).is_empty();
        let answered = matches!(spell.menu, Reading::Answered { .. });
        let ended = !tool_open
            && (answered || !hooked)
            && matches!(
                self.turns.end_in_transcript(spell.start),
                TranscriptEnd::Ended { .. }
            );
        if stopped || ended {
            let reading = spell.menu;
            let mut closing = Closing::new(spell, status.since, None);
            if answered {
                closing.reading = reading;
            }
            return (Phase::Closing(Box::new(closing)), true);
        }
        if now.boot >= status.since.boot + END_WAIT {
            let mut menu = spell.menu;
            self.read(ctx, now, &mut menu);
            spell.menu = menu;
        }
        (Phase::Working(spell), false)
    }

    /// `dialog open` from busy is a dialog of Claude's (rule 5).
    pub(super) fn menu_is_dialog(&self, spell: &Spell) -> bool {
        if spell.kept {
            return spell.dialog.is_some();
        }
        if spell.dialog.is_none() && self.file_torn.is_some() {
            // It was answered, or never was one; what the file says now is not known.
            return false;
        }
        if !self.turns.open_tools(spell.start.boot).is_empty() {
            return true;
        }
        (spell.dialog.is_some() || matches!(spell.menu, Reading::Answered { ok: true, .. }))
            && self.tool_stands_open(spell.start)
    }

    /// A tool started since `from` has no result. Its PreToolUse may be late or lost: then the transcript has the call.
    pub(super) fn tool_stands_open(&self, from: Stamp) -> bool {
        let mut written = self.turns.open_lines(from).into_iter();
        !self.turns.open_tools(from.boot).is_empty() || written.any(|call| !self.turns.ended(call))
    }

    fn conclude_closing(
        &mut self,
        ctx: &mut Ctx,
        now: Stamp,
        mut closing: Box<Closing>,
    ) -> (Phase, bool) {
        let answered = self.question_over(ctx, now, &mut closing);
        if answered {
            return (Phase::Closing(closing), true);
        }
        if let Some(start) = self.asked_unseen(&closing) {
            let spell = self.next_spell(closing.spell, closing.idle_at, start);
            return (Phase::Working(spell), true);
        }
        if let Some(idle_at) = self.idle_again(&closing) {
            // The hook of the prompt in between came late.
            let spell = self.next_spell(closing.spell, closing.idle_at, closing.idle_at);
            let closing = Closing::new(spell, idle_at, None);
            return (Phase::Closing(Box::new(closing)), true);
        }
        closing.queued |= self.turns.prompt_queued();
        if self.turns.prompt_after(closing.idle_at.boot).is_some()
            && matches!(closing.held, Some(Held::Dialog(_)))
        {
            // A prompt came after: the dialog is history, whatever becomes of that prompt.
            closing.held = None;
        }
        if ctx.recovered.is_some() && self.dialog_found(&closing) {
            let mut spell = closing.spell;
            spell.menu = closing.reading;
            return (Phase::Working(spell), true);
        }
        let mut close = self.close(&closing, now);
        if closing.spell.recovered && ctx.recovered.is_none() && !matches!(close, Close::Read) {
            // What was spooled while the server was down may not all have been heard.
            close = Close::Wait;
        }
        if let Close::Before = close
            && closing.spell.before.past.is_some()
        {
            match self.ask_transcript(&closing, true, now) {
                Some(undecided) => close = undecided,
                None => self.judge_past(&mut closing.spell),
            }
        }
        let whose = closing.spell.whose(closing.idle_at.boot);
        let silent = !(closing.spell.typed || self.typed(whose));
        let Closing { spell, idle_at, .. } = &mut *closing;
        let mut rest = Rest {
            ended: idle_at.boot,
            spell: Some(spell.start),
            recovered: spell.recovered,
            led: spell.before.led.max(idle_at.boot),
            started: idle_at.boot,
            ..Rest::idle(*idle_at)
        };
        match close {
            Close::Wait => return (Phase::Closing(closing), false),
            Close::Read => {
                let mut reading = Reading::NotAsked;
                self.read(ctx, now, &mut reading);
                closing.reading = reading;
                return (Phase::Closing(closing), false);
            }
            Close::Before => {
                let before = spell.before.clone();
                if let RestBadge::Review { .. } = before.badge {
                    rest.since = before.since;
                }
                rest.badge = before.badge;
                rest.episode = before.episode;
                rest.recovered = before.recovered;
                rest.spell = before.spell;
                // A compaction inside a turn whose other hooks are late looks the same until they come.
                let late = Late::new(spell.start, now.boot, !silent);
                rest.late = Some(late.of_spell(idle_at.boot));
            }
            Close::Review {
                stop,
                by_transcript,
            } => {
                self.serial += 1;
                rest.badge = RestBadge::Review {
                    serial: self.serial,
                    stop,
                    silent,
                };
                rest.by_transcript = by_transcript;
                rest.whose = (!spell.typed).then_some(whose);
                let unheard = by_transcript && !spell.recovered;
                self.hooks_silent |= unheard && self.newest_hook < spell.from - LEAD;
                rest.used = self.turns.newest_stop();
            }
            Close::Idle { label, wanting } => {
                rest.badge = RestBadge::Idle {
                    label: label.map(Arc::from),
                };
                let late = |start| Late::new(start, now.boot, !silent).of_spell(idle_at.boot);
                rest.late = wanting.map(late);
            }
        }
        if let Some(hidden) = spell.before.episode.take()
            && rest.episode.is_none()
        {
            self.drop_hidden(ctx, Some(hidden));
        }
        let idle_at = *idle_at;
        self.asks.forget(idle_at.boot);
        self.subagents.clear();
        self.turns.forget_queue();
        (Phase::Resting(Box::new(rest)), true)
    }

    /// A restart found a compaction at work: what rests under it is what was known then, and what the spool and the
    /// transcript say of the time between.
    fn judge_past(&mut self, spell: &mut Spell) {
        let Some(past) = spell.before.past.take() else {
            return;
        };
        let since = spell.before.since;
        let newest = self
            .turns
            .deciding()
            .rfind(|t| t.at.boot > since.boot && t.at.boot < spell.from && !t.compacts());
        let written = self.turns.end_between(since, Some(spell.start));
        // Unseen, a queued prompt was taken up.
        let followed = newest
            .and_then(|t| self.turns.prompt_line_after(t.at))
            .is_some_and(|line| line.boot < spell.start.boot);
        let stop = match newest.map(|t| &t.what) {
            Some(What::Started) => None,
            Some(What::Stopped(stop)) if written != TranscriptEnd::Interrupted && !followed => {
                Some(stop.clone())
            }
            Some(_) | None => match written {
                TranscriptEnd::Ended { error, message } => Some(bare_stop(error, message)),
                TranscriptEnd::Nothing | TranscriptEnd::Compacted if newest.is_none() => {
                    match past.badge {
                        // Nothing happened.
                        Badge::Idle | Badge::Review(_) => return,
                        Badge::Busy(_) | Badge::NeedsInput(_) | Badge::Unknown => None,
                    }
                }
                TranscriptEnd::Nothing
                | TranscriptEnd::Compacted
                | TranscriptEnd::Interrupted
                | TranscriptEnd::Cut
                | TranscriptEnd::Prompted => None,
            },
        };
        let before = &mut spell.before;
        before.recovered = true;
        before.badge = match stop {
            None => RestBadge::Idle { label: None },
            Some(stop) => {
                self.serial += 1;
                RestBadge::Review {
                    serial: self.serial,
                    stop,
                    silent: true,
                }
            }
        };
    }

    /// Written idle anew, and a prompt was stamped in between: it was busy, unseen. Since when it is idle.
    fn idle_again(&self, closing: &Closing) -> Option<Stamp> {
        let status = self.status.as_ref()?;
        let prompt = self.turns.prompt_after(closing.idle_at.boot)?.at.boot;
        let again = status.kind() == StatusKind::Quiet && prompt <= status.since.boot;
        again.then_some(status.since)
    }

    /// `dialog open` came after that idle, and a turn began in between whose tool has no result: the file was busy,
    /// unseen, and Claude asks. Where that turn began.
    fn asked_unseen(&self, closing: &Closing) -> Option<Stamp> {
        let status = self.status.as_ref()?;
        let hooked = self.turns.prompt_after(closing.idle_at.boot).map(|t| t.at);
        // The hook of a prompt that waited is older; the transcript tells when it was taken up.
        let prompt = hooked.or_else(|| self.turns.prompt_line_after(closing.idle_at))?;
        let asks = status.kind() == StatusKind::Menu
            && prompt.boot <= status.since.boot
            && !self.turns.open_tools(prompt.boot).is_empty();
        asks.then_some(prompt)
    }

    /// A restart found `dialog open`, and an unanswered tool behind it: no menu of the person's. A tool that was cut
    /// off has no result either; a compaction, a start or an end since tells that.
    fn dialog_found(&self, closing: &Closing) -> bool {
        let over = self.turns.deciding().rfind(|t| match &t.what {
            What::CompactStarted | What::Started | What::Stopped(_) => true,
            What::Prompted { .. }
            | What::ToolStarted(_)
            | What::ToolEnded(_)
            | What::Asked(_)
            | What::FormAsked(_)
            | What::FormAnswered
            | What::CompactEnded
            | What::PromptNoticed => false,
        });
        let start = closing.spell.start;
        let from = over
            .map(|over| over.at)
            .filter(|at| at.boot > start.boot)
            .unwrap_or(start);
        closing.spell.recovered
            && self
                .status
                .as_ref()
                .is_some_and(|s| s.kind() == StatusKind::Menu)
            && matches!(closing.reading, Reading::Answered { .. })
            && self.tool_stands_open(from)
    }

    /// Q15 where the file turned idle as the question opened: shows it, or says that it is answered.
    fn question_over(&mut self, ctx: &mut Ctx, now: Stamp, closing: &mut Closing) -> bool {
        if closing.spell.asked
            || closing.held.is_some()
            || !matches!(closing.reading, Reading::Answered { ok: true, .. })
        {
            return false;
        }
        let start = closing.spell.start;
        let asked = self
            .asks
            .iter()
            .rev()
            .find(|a| {
                a.lane.is_none()
                    && a.at.boot >= start.boot
                    && matches!(&a.wanted, Wanted::Tool(t) if &*t.name == QUESTION_TOOL)
            })
            .map(|a| (a.at, a.words()))
            .filter(|(at, _)| self.turns.prompt_after(at.boot).is_none())
            .filter(|_| {
                self.turns
                    .open_lines(start)
                    .iter()
                    .any(|t| &*t.name == QUESTION_TOOL)
            });
        match (asked, &closing.question) {
            (Some((at, words)), None) => {
                self.serial += 1;
                closing.question = Some(Dialog::asking(self.serial, at, words, ctx.ask()));
                false
            }
            (None, Some(_)) => {
                closing.question = None;
                closing.wait_from = now.boot;
                closing.reading = Reading::NotAsked;
                true
            }
            (Some(_), Some(_)) | (None, None) => false,
        }
    }

    /// Rule 4: how does this spell end?
    fn close(&self, closing: &Closing, now: Stamp) -> Close {
        let Closing {
            spell,
            idle_at,
            question,
            ..
        } = closing;
        if question.is_some() {
            return Close::Wait;
        }
        // A prompt newer than idle makes busy for a second; only then the end is judged.
        if self
            .turns
            .prompt_after(idle_at.boot)
            .is_some_and(|t| self.leads(t.at.boot, now.boot))
        {
            return Close::Wait;
        }
        if self
            .turns
            .prompt_line_after(*idle_at)
            .is_some_and(|at| self.leads(at.boot, now.boot))
        {
            return Close::Wait;
        }
        if self.mere_compaction(spell, idle_at.boot) {
            return Close::Before;
        }
        let events = self.deciding(spell, idle_at.boot);
        // It may have gone on already.
        let waited = now.boot >= closing.wait_from + END_WAIT && self.file_torn.is_none();
        match events.last() {
            Some(Turn {
                what: What::Stopped(stop),
                at,
                ..
            }) => {
                let prompts = || {
                    let all = events.iter();
                    all.filter(|t| matches!(t.what, What::Prompted { .. }))
                };
                // A second prompt can only have been queued, however soon it came.
                let prompt_waits = closing.queued
                    || prompts().count() > 1
                    || prompts().any(|t| t.at.boot > spell.start.boot + SPELL_SKEW);
                // What came after it while the server was down, nobody has seen.
                // What the file says after that idle is not known: the Stop may be the next turn's.
                let unread = self.file_torn.is_some() && at.boot > idle_at.boot;
                let sure = idle_at.boot.since(at.boot) < STOP_FRESH
                    && !unread
                    && stop.agents == 0
                    && !prompt_waits
                    && !spell.recovered;
                let review = Close::Review {
                    stop: stop.clone(),
                    by_transcript: false,
                };
                if sure {
                    return review;
                }
                match self.ask_transcript(closing, waited, now) {
                    Some(undecided) => undecided,
                    None if self.turns.interrupted_after(*at) => Close::Idle {
                        label: Some("interrupted"),
                        wanting: None,
                    },
                    None => match self.turns.prompt_line_after(*at) {
                        // Unseen, a queued prompt was taken up: that Stop is spent.
                        Some(next) => self.close_by_transcript(closing, next),
                        None => review,
                    },
                }
            }
            // What followed it while the server was down may be told late.
            Some(Turn {
                what: What::Started,
                at,
                ..
            }) if spell.recovered && at.boot < self.found.boot => {
                match self.ask_transcript(closing, waited, now) {
                    Some(undecided) => undecided,
                    None => self.close_by_transcript(closing, *at),
                }
            }
            Some(Turn {
                what: What::Started,
                ..
            }) => Close::Idle {
                label: None,
                wanting: None,
            },
            Some(_) | None => match self.ask_transcript(closing, waited, now) {
                Some(undecided) => undecided,
                None => self.close_by_transcript(closing, spell.start),
            },
        }
    }

    /// What is still to be awaited before the transcript may decide; `None`: it may.
    fn ask_transcript(&self, closing: &Closing, waited: bool, now: Stamp) -> Option<Close> {
        let again = self
            .read_again(closing.reading, now)
            .filter(|_| closing.spell.recovered || closing.spell.before.past.is_some());
        match closing.reading {
            _ if !waited => Some(Close::Wait),
            _ if let Some(again) = again => Some(if now.boot < again {
                Close::Wait
            } else {
                Close::Read
            }),
            Reading::NotAsked => Some(Close::Read),
            Reading::Asked { at, .. } if now.boot < at + TRANSCRIPT_WAIT => Some(Close::Wait),
            Reading::Asked { .. } | Reading::Answered { .. } => None,
        }
    }

    /// When a transcript that could not be read is to be asked again, of what happened before a start of the server.
    fn read_again(&self, reading: Reading, now: Stamp) -> Option<Time> {
        match reading {
            Reading::Answered { ok: false, at } if now.boot < self.found.boot + RECOVERY => {
                Some(at + READ_AGAIN)
            }
            Reading::NotAsked | Reading::Asked { .. } | Reading::Answered { .. } => None,
        }
    }

    /// What the transcript says of a spell since `start`.
    fn close_by_transcript(&self, closing: &Closing, start: Stamp) -> Close {
        let kept = matches!(closing.held, Some(Held::Rest));
        let events = self.deciding(&closing.spell, closing.idle_at.boot);
        let untouched = events.is_empty();
        let unprompted = !events.iter().any(|t| t.what.prompt().is_some());
        match self.turns.end_in_transcript(start) {
            TranscriptEnd::Ended { error, message } => Close::Review {
                stop: bare_stop(error, message),
                by_transcript: true,
            },
            TranscriptEnd::Interrupted => Close::Idle {
                label: Some("interrupted"),
                wanting: None,
            },
            TranscriptEnd::Compacted if unprompted => Close::Before,
            // Nothing is known to have happened while the server was down.
            TranscriptEnd::Nothing if kept && untouched => Close::Before,
            TranscriptEnd::Cut => Close::Idle {
                label: Some("ended without Stop"),
                wanting: Some(start),
            },
            TranscriptEnd::Nothing | TranscriptEnd::Prompted | TranscriptEnd::Compacted => {
                Close::Idle {
                    label: None,
                    wanting: Some(start),
                }
            }
        }
    }
}
