//! What must survive a restart, and the door to whoever stores it. Knows no database.

use std::fmt::Debug;

use futures_util::future::BoxFuture;
use purplemux_core::AgentKey;
use purplemux_core::event::Persisted;

/// A place where badges are kept over a restart. The store implements it.
pub trait Keep: Debug + Send + Sync + 'static {
    /// Keeps what is shown of an agent; done when it is written. Replaces what was kept before.
    fn persist(&self, agent: AgentKey, kept: Persisted) -> BoxFuture<'static, anyhow::Result<()>>;

    /// The agent is gone: nothing is kept of it any more.
    fn forget(&self, agent: AgentKey) -> BoxFuture<'static, anyhow::Result<()>>;
}
