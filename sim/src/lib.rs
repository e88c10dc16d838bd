//! A simulator that repeats by seed: a reference model of Claude Code and of the person at its keyboard
//! emits what the witnesses would see, an adversary spoils it, a fleet decides, and the badge is compared
//! with the model's truth.
//!
//! The model knows what was measured and what the cases call right. It must never be written from how
//! `core` decides: two hands that agree are worth more than one.

pub mod script;
pub mod truth;

pub mod author;
pub mod cast;
pub mod claude;

pub mod adversary;
pub mod judge;
pub mod world;

pub mod chance;
pub mod trial;
