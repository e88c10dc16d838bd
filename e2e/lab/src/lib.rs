//! The instruments of the tests of kind *real* and *browser*: a fake of the Messages API whose answers are
//! scripted by the prompt, a throw-away home in which no dialog of Claude Code's blocks, and a driver that starts
//! the real Claude Code inside the real product and reads what it shows.
//!
//! Must never: touch the person's own home, tmux server or key; leave a process behind; end a process that it did
//! not start. Nothing outside the tests depends on this crate.

#![allow(
    clippy::disallowed_methods,
    reason = "it measures, and starts the programs under test"
)]
pub mod script;

pub mod fake;

pub mod home;

pub mod tmux;

pub mod sessions;

pub mod product;

pub mod answers;

pub mod course;

pub mod own;

pub mod badges;

pub mod latency;

pub mod clock;
