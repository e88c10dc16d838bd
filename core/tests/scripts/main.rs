//! Scripts: situations of the case catalogue told as signals with times, each with the whole course of badges,
//! notifications and withdrawals that has to follow. Named by the case's id.

mod bounds;
mod dsl;

mod g10_recovery;
mod g11_hooks;
mod g15_transcripts;
mod g16_net;
mod g1_plain;
mod g2_asks;
mod g3_interrupts;
mod g4_background;
mod g5_compaction;
mod g6_conversations;
mod g7_errors;
mod g8_processes;
mod g9_identity;
mod told;
mod why;
