//! The decisions of purplemux, and nothing else: evidence goes in as [`Event`]s, badges come out as
//! [`Item`]s and things to do as [`Effect`]s.
//!
//! Depends on `std` alone. It never reads a clock, a file or a socket, never parses a format and never
//! picks a random number; whoever calls it brings the time along.

pub mod ids;
pub mod time;

pub mod event;
pub mod witness;

pub mod effect;
pub mod view;

pub mod alerts;
pub mod fleet;
pub mod net;

mod status;

mod asks;
mod base;
mod turns;

pub use effect::Effect;
pub use event::Event;
pub use fleet::{Changes, Fleet};
pub use ids::{
    AgentKey, ConversationId, EpisodeId, HookId, HostId, PaneKey, TabId, TmuxServer, WorkspaceId,
};
pub use time::{Stamp, Time};
pub use view::{Badge, Evidence, Item};
