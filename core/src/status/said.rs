//! What was said of one agent, in words, for "why this state": a bounded list, the badges so far, and which
//! word the present badge came with. Must decide nothing: the badge is concluded elsewhere.

use super::*;

/// Evidence kept for "why this state".
const EVIDENCE_MAX: usize = 200;
/// Badges kept for it: the present one and the five before.
const HISTORY_MAX: usize = 6;

impl Agent {
    pub(super) fn note(&mut self, ctx: &mut Ctx, at: Stamp, source: Source, line: String) {
        self.note_saying(ctx, at, source, line, None);
    }

    pub(super) fn note_saying(
        &mut self,
        ctx: &mut Ctx,
        at: Stamp,
        source: Source,
        line: String,
        says: Option<Says>,
    ) {
        let line: Arc<str> = Arc::from(line);
        self.evidence.push_front(Evidence {
            at,
            source,
            line: line.clone(),
            says,
            decided: false,
        });
        if self.evidence.len() > EVIDENCE_MAX {
            self.forget_evidence();
        }
        ctx.effects.push(Effect::Record {
            agent: self.key.clone(),
            at,
            line,
        });
    }

    /// The oldest line goes, but neither the one that decided nor any witness's newest word.
    fn forget_evidence(&mut self) {
        let oldest = (0..self.evidence.len()).rev().find(|&at| {
            let line = &self.evidence[at];
            let mut newer = self.evidence.iter().take(at);
            let newest_word =
                line.says.is_some() && !newer.any(|e| e.source == line.source && e.says.is_some());
            !line.decided && !newest_word
        });
        if let Some(at) = oldest.or(self.evidence.len().checked_sub(1)) {
            self.evidence.remove(at);
        }
    }

    pub(crate) fn evidence(&self) -> Vec<Evidence> {
        self.evidence.iter().cloned().collect()
    }

    /// The badges so far, newest first; bounded.
    pub(crate) fn history(&self) -> Vec<(Stamp, Option<Badge>)> {
        self.history.iter().cloned().collect()
    }

    /// The badge that is shown has just become another one.
    pub(super) fn note_badge(&mut self, ctx: &mut Ctx, now: Stamp) {
        self.mark_decision();
        let line = self.shown.as_ref().map_or("none", word);
        self.note(ctx, now, Source::Verdict, line.to_owned());
        self.history
            .push_front((self.shown_since, self.shown.clone()));
        self.history.truncate(HISTORY_MAX);
    }

    /// The newest word that says what is shown is what it came with; failing that the newest that fits it.
    fn mark_decision(&mut self) {
        let shown = self.shown.clone();
        let by = |fits: &dyn Fn(&Evidence) -> bool| self.evidence.iter().position(fits);
        let read = |e: &Evidence| e.source == Source::Person && shown == Some(Badge::Idle);
        let found = match &shown {
            Some(Badge::Unknown) => by(&|e| e.source == Source::Restart),
            Some(badge) => by(&|e| read(e) || e.says.is_some_and(|says| says.is(badge)))
                .or_else(|| by(&|e| e.says.is_some_and(|says| says.fits(badge)))),
            None => None,
        };
        let found = found.or_else(|| by(&|e| e.source != Source::Verdict));
        for (at, line) in self.evidence.iter_mut().enumerate() {
            line.decided = Some(at) == found;
        }
    }
}

/// A transcript's line in words, if it tells what the agent does.
pub(super) fn transcript_line(kind: &TranscriptKind) -> Option<(String, Says)> {
    Some(match kind {
        TranscriptKind::TurnEnded { .. } => ("the turn ended".to_owned(), Says::Review),
        TranscriptKind::ApiError { kind, .. } => (format!("API error · {kind}"), Says::Review),
        TranscriptKind::Interrupted => ("interrupted".to_owned(), Says::Idle),
        TranscriptKind::Prompted { .. } => ("prompt".to_owned(), Says::Busy),
        TranscriptKind::ToolStarted { tool } => {
            (format!("tool_use {}, no result yet", tool.name), Says::Open)
        }
        TranscriptKind::ToolEnded { .. } => ("tool_result".to_owned(), Says::Busy),
        TranscriptKind::Enqueued
        | TranscriptKind::Dequeued
        | TranscriptKind::CompactBoundary
        | TranscriptKind::ContinuedIn { .. }
        | TranscriptKind::Usage { .. }
        | TranscriptKind::Requested
        | TranscriptKind::Title { .. }
        | TranscriptKind::FirstPrompt { .. }
        | TranscriptKind::LastWords { .. }
        | TranscriptKind::Rewound { .. } => return None,
    })
}

/// What a hook says about the badge by itself. A subagent's tools say nothing about the main lane.
pub(super) fn hook_says(hook: &Hook) -> Option<Says> {
    let main = hook.agent_id.is_none();
    match &hook.kind {
        HookKind::SessionStart { source } => {
            (*source != StartSource::Compact).then_some(Says::Idle)
        }
        HookKind::Prompt { .. } | HookKind::FormAnswered | HookKind::CompactStarted { .. } => {
            Some(Says::Busy)
        }
        HookKind::ToolStarted { .. } => main.then_some(Says::Open),
        HookKind::ToolEnded { .. } | HookKind::ToolFailed { .. } => main.then_some(Says::Busy),
        HookKind::PermissionRequested { .. } | HookKind::FormAsked { .. } => Some(Says::NeedsInput),
        HookKind::Notified { kind, .. } => matches!(
            kind.as_deref(),
            Some("permission_prompt" | "worker_permission_prompt")
        )
        .then_some(Says::NeedsInput),
        HookKind::Stopped { .. } | HookKind::StopFailed { .. } => main.then_some(Says::Review),
        HookKind::SessionEnd { .. }
        | HookKind::SubagentStarted { .. }
        | HookKind::SubagentStopped { .. }
        | HookKind::CompactEnded
        | HookKind::CwdChanged { .. }
        | HookKind::StatusLine { .. }
        | HookKind::Unknown { .. } => None,
    }
}

/// Claude's own word for why a session started.
pub(super) fn start_word(source: &StartSource) -> &str {
    match source {
        StartSource::Startup => "startup",
        StartSource::Resume => "resume",
        StartSource::Clear => "clear",
        StartSource::Compact => "compact",
        StartSource::Fork => "fork",
        StartSource::Other(word) => word,
    }
}

/// Claude's own word for what it waits for.
pub(super) fn waiting_word(waiting: &WaitingFor) -> &str {
    match waiting {
        WaitingFor::Permission => "permission prompt",
        WaitingFor::Input => "input needed",
        WaitingFor::DialogOpen => "dialog open",
        WaitingFor::Other(word) => word,
    }
}
