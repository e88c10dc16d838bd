//! What is shown and who is told: episodes, notifications, what is kept over a restart, what is watched
//! (rule 6). Must never look at evidence.

use super::*;

impl Agent {
    /// The rest that lies under the present phase.
    fn under(&mut self) -> Option<&mut Rest> {
        match &mut self.phase {
            Phase::Unreported => None,
            Phase::Resting(rest) => Some(rest),
            Phase::Working(spell) => Some(&mut spell.before),
            Phase::Closing(closing) => Some(&mut closing.spell.before),
        }
    }

    /// A review that a spell hides is over as soon as the spell is more than a compaction (C01).
    pub(super) fn take_back_hidden(&mut self, ctx: &mut Ctx) {
        let spell = match &self.phase {
            Phase::Unreported => return,
            Phase::Resting(_) => None,
            Phase::Working(spell) => Some(spell),
            Phase::Closing(closing) => Some(&closing.spell),
        };
        let mere = match spell {
            Some(spell) => self.mere_compaction(spell, self.clock),
            // Hidden while resting: by a lead. Only a prompt's takes the review back.
            None => self.prompt_lead(self.clock).is_none(),
        };
        if mere {
            return;
        }
        let key = self.key.clone();
        if let Some(rest) = self.under()
            && let Some(episode) = &mut rest.episode
            && episode.notified
            && !episode.withdrawn
        {
            episode.withdrawn = true;
            ctx.effects.push(Effect::Withdraw {
                agent: key,
                episode: episode.id,
            });
        }
    }

    /// An episode ends for good.
    pub(super) fn drop_hidden(&mut self, ctx: &mut Ctx, episode: Option<Episode>) {
        let Some(episode) = episode else { return };
        if let Some(restored) = &mut self.restored
            && restored.episode == Some(episode.id)
        {
            restored.episode = None;
        }
        if episode.notified && !episode.withdrawn {
            ctx.effects.push(Effect::Withdraw {
                agent: self.key.clone(),
                episode: episode.id,
            });
        }
    }

    pub(super) fn show(&mut self, ctx: &mut Ctx, now: Stamp, target: Target) {
        if target.stay == self.stay {
            if let Some(episode) = &mut self.episode
                && !episode.notified
            {
                episode.silent = target.silent;
            }
            if target.badge != self.shown {
                self.shown = target.badge;
                // Another ask, another outcome: worth keeping. What a busy agent does is not.
                if self.episode.is_some() {
                    self.persist(ctx);
                }
            }
            if self.kept_beneath != self.beneath() {
                self.persist(ctx);
            }
            return;
        }
        let ended = self.episode.take();
        let old_stay = self.stay;
        let mut ended_for_good = ended;
        if target.stay == Stay::Busy
            && let Some(rest) = self.under()
            && let RestBadge::Review { serial, .. } = rest.badge
            && old_stay == Stay::Review(serial)
            && rest.episode.is_none()
        {
            rest.episode = ended;
            ended_for_good = None;
        }
        self.drop_hidden(ctx, ended_for_good);
        self.take_back_hidden(ctx);

        self.episode = match target.stay {
            Stay::Needs(_) | Stay::Review(_) => {
                let hidden = if matches!(target.stay, Stay::Review(_)) {
                    match &mut self.phase {
                        Phase::Resting(rest) => rest.episode.take(),
                        Phase::Closing(closing) => closing.spell.before.episode.take(),
                        Phase::Unreported | Phase::Working(_) => None,
                    }
                } else {
                    None
                };
                let restored = self
                    .restored
                    .as_ref()
                    .filter(|p| target.since == p.since)
                    .and_then(|p| p.episode);
                Some(match (hidden, restored) {
                    (Some(mut episode), _) => {
                        episode.committed = now.boot;
                        episode
                    }
                    (None, restored) => Episode {
                        id: restored.unwrap_or_else(|| ctx.episode()),
                        committed: now.boot,
                        notified: restored.is_some(),
                        withdrawn: false,
                        silenced: false,
                        quiet: target.quiet,
                        silent: target.silent,
                        told: None,
                    },
                })
            }
            Stay::None | Stay::Idle | Stay::Busy | Stay::Unknown => None,
        };
        self.stay = target.stay;
        self.shown_since = target.since;
        self.shown = target.badge;
        self.note_badge(ctx, now);
        self.persist(ctx);
    }

    fn persist(&mut self, ctx: &mut Ctx) {
        let beneath = self.beneath();
        self.kept_beneath.clone_from(&beneath);
        if let Some(badge) = &self.shown {
            ctx.effects.push(Effect::Persist {
                agent: self.key.clone(),
                badge: badge.clone(),
                since: self.shown_since,
                episode: self.episode.map(|e| e.id),
                beneath,
            });
        }
    }

    /// What is kept in the stead of the badge: what a compaction hides and gives back, since a restart in the middle
    /// of it must not lose that; that a turn's end is still looked for, where it is idle for want of evidence; of a
    /// parked session nothing, since its job goes on; and without a status how far hooks and transcript were taken in.
    fn beneath(&self) -> Option<Persisted> {
        let unknown = |since| Persisted {
            badge: Badge::Unknown,
            since,
            episode: None,
            tab: None,
        };
        if self.parked_job().is_some() {
            return Some(unknown(self.shown_since));
        }
        match &self.phase {
            Phase::Unreported => return self.told_beneath(),
            Phase::Resting(rest) if self.shown == Some(Badge::Unknown) => {
                let since = self.status.as_ref().map_or(rest.since, |s| s.since);
                return Some(unknown(since.earlier(500)));
            }
            Phase::Resting(rest) => {
                if let (Some(late), RestBadge::Idle { .. }) = (rest.late, &rest.badge)
                    && late.until.is_some()
                    && self.shown == Some(Badge::Idle)
                    && !self.cut_off(rest, late.start)
                {
                    return Some(unknown(late.start));
                }
            }
            Phase::Closing(closing) if self.shown == Some(Badge::Unknown) => {
                return Some(unknown(closing.spell.start));
            }
            Phase::Working(_) | Phase::Closing(_) => {}
        }
        let Some(Badge::Busy(_)) = &self.shown else {
            return None;
        };
        let rest = match &self.phase {
            Phase::Working(spell) if self.mere_compaction(spell, self.clock) => &spell.before,
            Phase::Closing(closing)
                if self.mere_compaction(&closing.spell, closing.idle_at.boot) =>
            {
                &closing.spell.before
            }
            Phase::Resting(rest) if self.prompt_lead(self.clock).is_none() => rest,
            Phase::Unreported | Phase::Resting(_) | Phase::Working(_) | Phase::Closing(_) => {
                return None;
            }
        };
        let badge = match (&rest.past, &rest.badge) {
            (Some(past), _) => match &past.badge {
                // What was asked then is not asked under a compaction.
                Badge::NeedsInput(_) => Badge::Unknown,
                Badge::Idle | Badge::Busy(_) | Badge::Review(_) | Badge::Unknown => {
                    past.badge.clone()
                }
            },
            (None, RestBadge::Idle { .. }) => Badge::Idle,
            (None, RestBadge::Review { stop, .. }) => Badge::Review(self.outcome(stop)),
        };
        Some(Persisted {
            badge,
            since: rest.since,
            episode: rest.episode.map(|episode| episode.id),
            tab: None,
        })
    }

    /// A restart found a menu over a turn that was cut off in a tool. The next one would take that tool for asking.
    fn cut_off(&self, rest: &Rest, start: Stamp) -> bool {
        let menu = self.status.as_ref().map(Status::kind) == Some(StatusKind::Menu);
        menu && rest.recovered && self.tool_stands_open(start)
    }

    /// What is kept of a verdict that is newer than the badge that is shown, or the same badge from another moment.
    fn told_beneath(&self) -> Option<Persisted> {
        let told = self.base_told.as_ref()?;
        let badge = match &told.base {
            Base::Nothing => return None,
            Base::Unknown => return self.restored.clone(),
            Base::Idle { .. } => Badge::Idle,
            Base::Busy => Badge::Busy(Doing::default()),
            Base::Needs => Badge::NeedsInput(match (&self.base_dialog, told.asks.iter().next()) {
                (Some(dialog), _) => dialog.ask.clone(),
                (None, Some(ask)) => ask.words().into_ask(0),
                (None, None) => bare_words(&WaitingFor::Permission).into_ask(0),
            }),
            Base::Ended(stop) => Badge::Review(self.outcome(stop)),
        };
        let same = self
            .shown
            .as_ref()
            .is_some_and(|shown| word(shown) == word(&badge));
        let newer = !same || told.since.boot > self.shown_since.boot;
        newer.then(|| Persisted {
            badge,
            since: told.since,
            episode: self.episode.map(|e| e.id).filter(|_| same),
            tab: None,
        })
    }

    /// Whether somebody may be told of the present episode at all.
    pub(super) fn tellable(&self) -> bool {
        !self.stopped
            && !self.headless()
            && !self.nested()
            && self.parked_job().is_none()
            && match &self.phase {
                Phase::Unreported | Phase::Resting(_) | Phase::Working(_) => true,
                Phase::Closing(closing) => closing.question.is_some(),
            }
    }

    pub(super) fn tell(&mut self, ctx: &mut Ctx, now: Stamp) {
        if self.parked_job().is_some()
            && let Some(episode) = &mut self.episode
            && episode.notified
            && !episode.withdrawn
        {
            // What is shown from now on is the job's.
            episode.withdrawn = true;
            ctx.effects.push(Effect::Withdraw {
                agent: self.key.clone(),
                episode: episode.id,
            });
        }
        if !self.tellable() {
            return;
        }
        let (Some(episode), Some(badge)) = (&mut self.episode, &self.shown) else {
            return;
        };
        if episode.silenced || episode.quiet || episode.withdrawn {
            return;
        }
        let ask = match badge {
            Badge::NeedsInput(ask) => Some(ask.id),
            Badge::Idle | Badge::Busy(_) | Badge::Review(_) | Badge::Unknown => None,
        };
        let silent = if !episode.notified {
            if now.boot < episode.committed + DWELL {
                return;
            }
            episode.silent
        } else if ask.is_some() && episode.told.is_some() && episode.told != ask {
            // Another ask in the same episode: the card changes, nobody is called again.
            true
        } else {
            return;
        };
        episode.notified = true;
        episode.told = ask;
        ctx.effects.push(Effect::Notify {
            agent: self.key.clone(),
            episode: episode.id,
            badge: badge.clone(),
            silent,
        });
    }

    pub(super) fn watch(&mut self, ctx: &mut Ctx) {
        let transcript = match self.stay {
            Stay::Busy | Stay::Needs(_) | Stay::Review(_) | Stay::Unknown => true,
            // Without status and hooks the transcript alone may tell of a turn.
            Stay::None | Stay::Idle => {
                self.stay == Stay::Idle && self.status.is_none() && !self.hooks_heard
            }
        };
        if transcript != self.watching {
            self.watching = transcript;
            ctx.effects.push(Effect::WatchTranscript {
                agent: self.key.clone(),
                on: transcript,
            });
        }
        let cpu = self.key_seen.is_some()
            && self.file.is_none()
            && !self.hooks_heard
            && self.startup.is_none()
            && self.left.is_none();
        if cpu != self.watching_cpu {
            self.watching_cpu = cpu;
            ctx.effects.push(Effect::WatchCpu {
                agent: self.key.clone(),
                on: cpu,
            });
        }
    }

    /// The person has read the end of the answer, or put a review away.
    pub(crate) fn on_seen(&mut self, ctx: &mut Ctx, now: Stamp, episode: EpisodeId) {
        if self.episode.is_none_or(|e| e.id != episode) || !matches!(self.stay, Stay::Review(_)) {
            return;
        }
        self.note(ctx, now, Source::Person, "read".into());
        let error = match &self.shown {
            Some(Badge::Review(outcome)) => outcome.error.clone(),
            Some(Badge::Idle | Badge::Busy(_) | Badge::NeedsInput(_) | Badge::Unknown) | None => {
                None
            }
        };
        match &mut self.phase {
            Phase::Resting(rest) => {
                rest.badge = RestBadge::Idle {
                    label: error.map(|e| Arc::from(format!("failed: {e}"))),
                };
                rest.since = now;
                rest.late = None;
                rest.by_transcript = false;
                // Its Stop may still be on its way.
                rest.used = rest.used.max(now.boot);
            }
            Phase::Closing(closing) => {
                closing.spell.before.badge = RestBadge::Idle { label: None };
                closing.spell.before.since = now;
            }
            Phase::Unreported => {
                // What was said so far is dealt with: the replay begins anew from here.
                self.restored = Some(Persisted {
                    badge: Badge::Idle,
                    since: now,
                    episode: None,
                    tab: None,
                });
                self.restored_reading = Reading::Answered {
                    ok: true,
                    at: now.boot,
                };
            }
            Phase::Working(_) => {}
        }
    }

    pub(crate) fn on_dismissed(&mut self, ctx: &mut Ctx, now: Stamp, id: EpisodeId) {
        if self.episode.is_none_or(|e| e.id != id) {
            return;
        }
        if matches!(self.stay, Stay::Review(_)) {
            self.on_seen(ctx, now, id);
            return;
        }
        let key = self.key.clone();
        if let Some(episode) = &mut self.episode
            && !episode.silenced
        {
            episode.silenced = true;
            if episode.notified && !episode.withdrawn {
                episode.withdrawn = true;
                ctx.effects.push(Effect::Withdraw {
                    agent: key,
                    episode: id,
                });
            }
            self.note(ctx, now, Source::Person, "not now".into());
        }
    }

    /// The process is gone: nothing of it is shown any more.
    pub(crate) fn on_died(&mut self, ctx: &mut Ctx, now: Stamp) {
        self.note(ctx, now, Source::Process, "ended".into());
        let episode = self.episode.take();
        self.drop_hidden(ctx, episode);
        let hidden = self.under().and_then(|rest| rest.episode.take());
        self.drop_hidden(ctx, hidden);
        if self.watching {
            ctx.effects.push(Effect::WatchTranscript {
                agent: self.key.clone(),
                on: false,
            });
        }
        if self.watching_cpu {
            ctx.effects.push(Effect::WatchCpu {
                agent: self.key.clone(),
                on: false,
            });
        }
        ctx.effects.push(Effect::Forget {
            agent: self.key.clone(),
        });
    }
}
