//! Plays a recorded run of the real Claude Code into the fleet with a clock of its own, and compares what
//! was shown with what a person wrote down beforehand. Must never write into a recording.

pub mod expect;
pub mod judge;
pub mod perturb;
pub mod recording;
pub mod world;
