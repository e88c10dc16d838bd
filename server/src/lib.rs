//! Everything of purplemux that waits: files, processes, sockets, tmux and the hub that turns what they
//! say into events. Nothing here decides what a badge is; that is `purplemux_core::Fleet::step` alone.

pub mod hub;

pub mod effects;
pub mod files;
pub mod hooks;
pub mod ingest;
pub mod logfile;
pub mod net;
pub mod tmux;

pub mod tabs;

pub mod pane;

pub mod answer;
pub mod push;

pub mod web;

pub mod conversations;
pub mod settings;
pub mod store;

pub mod home;

pub mod claude;
pub mod cmd;

pub mod clock;
pub mod sys;
pub mod task;
