//! `make fidelity`: random scripts through the whole product with the real Claude Code, several sessions at a time,
//! some with restarts of the server; and what was shown and told held against what was right.
//!
//! What is right is concluded from the keys, the log of the fake API and the looks of the screen, and from nothing
//! else: [`truth`] never reads what [`judge`] judges.

#![allow(
    clippy::disallowed_methods,
    reason = "it measures, and starts the programs under test"
)]

pub mod answers;

pub mod lab;
pub mod report;

pub mod script;

pub mod player;
pub mod stage;
pub mod terminal;

pub mod heard;
pub mod screen;
pub mod truth;

pub mod base;
pub mod judge;
