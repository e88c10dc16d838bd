//! The base mapping with nothing but the seven original hooks: what a badge is that believes hooks alone. It is
//! played over the hooks that our recorder heard in the same runs, and judged as the product is.
//!
//! Written from the mapping's description. Must never share anything with `core`, or the comparison proves nothing.

use crate::heard::{Heard, Run, Shown, Told};

/// What it would have shown and told in a run.
///
/// It is given every advantage: each hook counts from the moment its process started, none is ever lost while the
/// server is down, and the interrupt line counts from the time that Claude wrote into it.
#[must_use]
pub fn play(run: &Run) -> (Vec<Shown>, Vec<Told>) {
    let hooks = run.heard.iter().map(|heard| (heard.at, badge(heard)));
    let lines = run.interrupts.iter().map(|at| (*at, Some("idle")));
    let mut all: Vec<(i64, Option<&str>)> = hooks.chain(lines).collect();
    all.sort_by_key(|(at, _)| *at);
    let mut shown: Vec<Shown> = vec![Shown {
        at: run.from,
        badge: "idle".to_owned(),
        suspended: false,
    }];
    let mut told = Vec::new();
    for (at, badge) in all {
        let Some(badge) = badge else { continue };
        if badge == "needs-input" || badge == "review" {
            told.push(Told {
                at,
                state: badge.to_owned(),
                silent: false,
            });
        }
        if shown.last().is_none_or(|last| last.badge != badge) {
            shown.push(Shown {
                at,
                badge: badge.to_owned(),
                suspended: false,
            });
        }
    }
    (shown, told)
}

/// What a hook makes of the badge; `None`: it leaves it alone.
fn badge(heard: &Heard) -> Option<&'static str> {
    match (heard.event.as_str(), heard.kind.as_str()) {
        ("SessionStart", "compact") => None,
        ("SessionStart", _) => Some("idle"),
        ("UserPromptSubmit", _) => Some("busy"),
        ("Notification", "permission_prompt" | "worker_permission_prompt") => Some("needs-input"),
        ("Stop" | "StopFailure", _) => Some("review"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(at: i64, event: &str, kind: &str) -> Heard {
        Heard {
            at,
            event: event.to_owned(),
            kind: kind.to_owned(),
        }
    }

    #[test]
    fn the_mapping_is_the_described_one() {
        let run = Run {
            heard: vec![
                heard(1, "SessionStart", "startup"),
                heard(2, "UserPromptSubmit", ""),
                heard(3, "Notification", "idle_prompt"),
                heard(4, "Notification", "permission_prompt"),
                heard(5, "PreCompact", ""),
                heard(6, "SessionStart", "compact"),
                heard(7, "Stop", ""),
                heard(8, "UserPromptSubmit", ""),
            ],
            interrupts: vec![9],
            ..Run::default()
        };
        let (shown, told) = play(&run);
        let story: Vec<&str> = shown.iter().map(|shown| shown.badge.as_str()).collect();
        assert_eq!(
            story,
            ["idle", "busy", "needs-input", "review", "busy", "idle"]
        );
        let told: Vec<&str> = told.iter().map(|told| told.state.as_str()).collect();
        assert_eq!(told, ["needs-input", "review"]);
    }
}
