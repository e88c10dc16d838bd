//! When the person last typed in terminals of ours, to the millisecond. tmux tells it of other clients in whole seconds,
//! and counts as typing what a browser reports of focus and mouse. Leaf data: the lock is never held while anything
//! waits.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use purplemux_core::Time;

use crate::clock;

/// Our own terminals, by the process of their `tmux attach`.
#[derive(Clone, Debug, Default)]
pub struct Typed {
    last: Arc<Mutex<HashMap<u32, Option<Time>>>>,
}

impl Typed {
    /// A terminal of ours is attached by this process.
    pub fn attached(&self, client: u32) {
        self.lock().entry(client).or_default();
    }

    /// It is no more.
    pub fn left(&self, client: u32) {
        self.lock().remove(&client);
    }

    /// Its viewer has sent this; what it reports of focus and mouse is no key.
    pub fn heard(&self, client: u32, bytes: &[u8]) {
        if !is_report(bytes) {
            self.lock().insert(client, Some(clock::boot()));
        }
    }

    /// `None`: that process is no terminal of ours. `Some(None)`: nothing was typed in it.
    #[must_use]
    pub fn last(&self, client: u32) -> Option<Option<Time>> {
        self.lock().get(&client).copied()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<u32, Option<Time>>> {
        // Every change of it is one step; it is whole whatever its holder did when it panicked.
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Nothing but reports of focus (`CSI I`, `CSI O`) and of the mouse (`CSI < … M`, `CSI < … m`).
fn is_report(bytes: &[u8]) -> bool {
    let mut rest = bytes;
    while !rest.is_empty() {
        let Some(after) = rest.strip_prefix(b"\x1b[") else {
            return false;
        };
        rest = match after {
            [b'I' | b'O', rest @ ..] => rest,
            [b'<', mouse @ ..] => {
                let Some(end) = mouse
                    .iter()
                    .position(|byte| !byte.is_ascii_digit() && *byte != b';')
                else {
                    return false;
                };
                if !matches!(mouse[end], b'M' | b'm') {
                    return false;
                }
                &mouse[end + 1..]
            }
            _ => return false,
        };
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_no_keys() {
        for report in ["\x1b[I", "\x1b[O\x1b[I", "\x1b[<0;12;3M\x1b[<0;12;3m", ""] {
            assert!(is_report(report.as_bytes()), "{report:?}");
        }
        for keys in ["1", "\x1b", "\x1b[A", "\x1b[O1", "\x1b[<0;1", "\x1b[<x"] {
            assert!(!is_report(keys.as_bytes()), "{keys:?}");
        }
        let typed = Typed::default();
        assert_eq!(typed.last(7), None);
        typed.attached(7);
        typed.heard(7, b"\x1b[O");
        assert_eq!(typed.last(7), Some(None));
        typed.heard(7, b"1");
        assert!(typed.last(7).flatten().is_some());
        typed.left(7);
        assert_eq!(typed.last(7), None);
    }
}
