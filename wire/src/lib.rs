//! Bytes to values and back, one file per protocol, both directions. Depends on `purplemux-core`, never
//! the reverse; opens no file and no socket itself.

pub mod browser;
pub mod frame;
pub mod typescript;
