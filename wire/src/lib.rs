//! Bytes to values and back, one file per protocol, both directions. Depends on `purplemux-core`, never
//! the reverse; opens no file and no socket itself.

pub mod hook;
pub mod session_file;
pub mod status_line;
pub mod transcript;

pub mod dialog;
pub mod screen;
pub mod tmux;

pub mod browser;
pub mod frame;
pub mod sentence;

pub mod explain;
pub mod journal;
pub mod push;
pub mod recording;

pub mod typescript;

mod cron;
mod json;
pub mod text;
