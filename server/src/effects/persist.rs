//! What must survive a restart: a badge as text, and the door to whoever stores it. Knows no database.
//!
//! Text that can't be read back is dropped with a warning: evidence decides anew then, as for an agent
//! never seen before.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use futures_util::future::BoxFuture;
use purplemux_core::event::Persisted;
use purplemux_core::view::{Ask, AskKind, Doing, Outcome};
use purplemux_core::{AgentKey, Badge, EpisodeId, HostId, Stamp, TabId, Time};
use serde::{Deserialize, Serialize};

use super::journal::Row;
use crate::clock;

/// A place where badges are kept over a restart. The store implements it; it need not understand either
/// text.
pub trait Keep: Debug + Send + Sync + 'static {
    /// Keeps what is shown of an agent (`host:pid:start`); done when it is written, and the verdict with it
    /// in the journal. Replaces what was kept of it before.
    fn persist(
        &self,
        agent: String,
        value: String,
        verdict: Option<Row>,
    ) -> BoxFuture<'static, Result<()>>;

    /// The agent is gone: nothing is kept of it any more but the journal.
    fn forget(&self, agent: String, verdict: Option<Row>) -> BoxFuture<'static, Result<()>>;
}

/// What is kept of every agent, with what could not be written yet: it is written when the disk takes it.
#[derive(Debug)]
pub struct Badges {
    keep: Arc<dyn Keep>,
    /// By agent; `None`: to be forgotten. One value each, so no more than there are agents.
    unwritten: BTreeMap<String, Option<String>>,
}

impl Badges {
    /// Nothing is waiting to be written.
    #[must_use]
    pub fn new(keep: Arc<dyn Keep>) -> Self {
        Self {
            keep,
            unwritten: BTreeMap::new(),
        }
    }

    /// Keeps what is shown of an agent, or with `None` nothing any more, and the verdict in the journal.
    ///
    /// # Errors
    /// It can't be written now; [`Self::again`] tries again, without the verdict.
    pub async fn put(
        &mut self,
        agent: &AgentKey,
        kept: Option<&Persisted>,
        verdict: Option<Row>,
    ) -> Result<()> {
        let agent = agent.to_string();
        let value = kept
            .map(|kept| encode(kept, clock::boot_id()))
            .transpose()?;
        let written = self.write(agent.clone(), value.clone(), verdict).await;
        match &written {
            Ok(()) => self.unwritten.remove(&agent),
            Err(_) => self.unwritten.insert(agent, value),
        };
        written
    }

    /// Writes what could not be written.
    ///
    /// # Errors
    /// Some of it still can't.
    pub async fn again(&mut self) -> Result<()> {
        while let Some((agent, value)) = self.unwritten.pop_first() {
            if let Err(why) = self.write(agent.clone(), value.clone(), None).await {
                self.unwritten.insert(agent, value);
                return Err(why);
            }
        }
        Ok(())
    }

    /// Nothing is waiting to be written.
    #[must_use]
    pub fn are_written(&self) -> bool {
        self.unwritten.is_empty()
    }

    async fn write(
        &self,
        agent: String,
        value: Option<String>,
        verdict: Option<Row>,
    ) -> Result<()> {
        match value {
            Some(value) => self.keep.persist(agent, value, verdict).await,
            None => self.keep.forget(agent, verdict).await,
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Kept {
    badge: KeptBadge,
    since_boot_ns: u64,
    since_ms: i64,
    boot_id: String,
    episode: Option<u64>,
    tab: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
enum KeptBadge {
    Idle,
    Busy {
        compacting: bool,
    },
    NeedsInput {
        id: u64,
        kind: KeptAsk,
        text: Option<String>,
        tool: Option<String>,
        options: Vec<String>,
    },
    Review {
        error: Option<String>,
        shells: u32,
        wakes_at_ms: Option<i64>,
    },
    Unknown,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum KeptAsk {
    Permission,
    Question,
    Plan,
    Form,
    Dialog,
    Startup,
}

/// The text that is kept. What a busy agent is doing at the moment is left out: it is seen again.
pub fn encode(persisted: &Persisted, boot_id: &str) -> Result<String> {
    let text = |text: &Option<Arc<str>>| text.as_deref().map(str::to_owned);
    let badge = match &persisted.badge {
        Badge::Idle => KeptBadge::Idle,
        Badge::Busy(doing) => KeptBadge::Busy {
            compacting: doing.compacting,
        },
        Badge::NeedsInput(ask) => KeptBadge::NeedsInput {
            id: ask.id,
            kind: match ask.kind {
                AskKind::Permission => KeptAsk::Permission,
                AskKind::Question => KeptAsk::Question,
                AskKind::Plan => KeptAsk::Plan,
                AskKind::Form => KeptAsk::Form,
                AskKind::Dialog => KeptAsk::Dialog,
                AskKind::Startup => KeptAsk::Startup,
            },
            text: text(&ask.text),
            tool: text(&ask.tool),
            options: ask.options.iter().map(|o| o.as_ref().to_owned()).collect(),
        },
        Badge::Review(outcome) => KeptBadge::Review {
            error: text(&outcome.error),
            shells: outcome.shells,
            wakes_at_ms: outcome.wakes_at_ms,
        },
        Badge::Unknown => KeptBadge::Unknown,
    };
    serde_json::to_string(&Kept {
        badge,
        since_boot_ns: persisted.since.boot.0,
        since_ms: persisted.since.wall_ms,
        boot_id: boot_id.to_owned(),
        episode: persisted.episode.map(|episode| episode.0),
        tab: persisted.tab.as_ref().map(|tab| tab.as_str().to_owned()),
    })
    .context("a badge as JSON")
}

/// Reads a kept row back. After a reboot its boot time means nothing: it becomes the boot itself and the
/// wall time alone says how old it is (every agent of that boot is gone then anyway).
pub fn decode(agent: &str, value: &str, boot_id: &str) -> Result<(AgentKey, Persisted)> {
    let agent = agent_key(agent).with_context(|| format!("{agent:?} is no agent"))?;
    let kept: Kept = serde_json::from_str(value).context("a kept badge")?;
    let text = |text: Option<String>| text.map(Arc::<str>::from);
    let badge = match kept.badge {
        KeptBadge::Idle => Badge::Idle,
        KeptBadge::Busy { compacting } => Badge::Busy(Doing {
            compacting,
            ..Doing::default()
        }),
        KeptBadge::NeedsInput {
            id,
            kind,
            text: asked,
            tool,
            options,
        } => Badge::NeedsInput(Ask {
            id,
            kind: match kind {
                KeptAsk::Permission => AskKind::Permission,
                KeptAsk::Question => AskKind::Question,
                KeptAsk::Plan => AskKind::Plan,
                KeptAsk::Form => AskKind::Form,
                KeptAsk::Dialog => AskKind::Dialog,
                KeptAsk::Startup => AskKind::Startup,
            },
            text: text(asked),
            tool: text(tool),
            options: options.into_iter().map(Arc::from).collect(),
        }),
        KeptBadge::Review {
            error,
            shells,
            wakes_at_ms,
        } => Badge::Review(Outcome {
            error: text(error),
            shells,
            wakes_at_ms,
        }),
        KeptBadge::Unknown => Badge::Unknown,
    };
    let since = Stamp {
        boot: if kept.boot_id == boot_id {
            Time(kept.since_boot_ns)
        } else {
            Time(0)
        },
        wall_ms: kept.since_ms,
    };
    Ok((
        agent,
        Persisted {
            badge,
            since,
            episode: kept.episode.map(EpisodeId),
            tab: kept.tab.map(TabId::from),
        },
    ))
}

/// Reads `host:pid:start` as [`AgentKey`]'s `Display` writes it.
fn agent_key(text: &str) -> Option<AgentKey> {
    let mut parts = text.rsplitn(3, ':');
    let start = parts.next()?.parse().ok()?;
    let pid = parts.next()?.parse().ok()?;
    let host = HostId::from(parts.next()?);
    Some(AgentKey { host, pid, start })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn persisted(badge: Badge) -> Persisted {
        Persisted {
            badge,
            since: Stamp {
                boot: Time(7),
                wall_ms: 8,
            },
            episode: Some(EpisodeId(3)),
            tab: Some(TabId::from("t1")),
        }
    }

    #[test]
    fn what_was_kept_comes_back() {
        let badges = [
            Badge::Idle,
            Badge::Busy(Doing {
                compacting: true,
                ..Doing::default()
            }),
            Badge::NeedsInput(Ask {
                id: 9,
                kind: AskKind::Plan,
                text: Some("do it?".into()),
                tool: None,
                options: vec!["Yes".into()],
            }),
            Badge::Review(Outcome {
                error: Some("rate_limit".into()),
                shells: 1,
                wakes_at_ms: Some(5),
            }),
            Badge::Unknown,
        ];
        for badge in badges {
            let before = persisted(badge);
            let value = encode(&before, "boot-a").unwrap();
            let (agent, after) = decode("my:host:12:34", &value, "boot-a").unwrap();
            assert_eq!(after, before);
            assert_eq!(agent.to_string(), "my:host:12:34");
        }
    }

    #[test]
    fn another_boot_keeps_only_the_wall_time() {
        let value = encode(&persisted(Badge::Idle), "boot-a").unwrap();
        let (_, after) = decode("h:1:2", &value, "boot-b").unwrap();
        assert_eq!(after.since.boot, Time(0));
        assert_eq!(after.since.wall_ms, 8);
    }

    #[test]
    fn rubbish_is_an_error() {
        assert!(decode("h:1:2", "{", "b").is_err());
        assert!(decode("h:x:2", "{}", "b").is_err());
    }
}
