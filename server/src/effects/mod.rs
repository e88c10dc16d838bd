//! Effects: what `step` wants done, carried out. Answers come back to the hub as events. Nothing here
//! may decide whether to do it.

pub mod journal;
pub mod persist;
