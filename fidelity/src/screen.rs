//! What a capture of the pane shows, as a person reads it: a spinner, a dialog, a menu, the prompt's box, a shell.
//! Written from captures of Claude Code 2.1.332 at 110 columns.
//!
//! Pure. Must know nothing of status files, hooks or purplemux; where the picture says nothing it says nothing.

use serde::{Deserialize, Serialize};

/// What is asked, by the look of the dialog.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ask {
    /// May this tool run?
    Permission,
    /// Claude's questions, and the page on which the answers are submitted.
    Question,
    /// Leave the plan mode?
    Plan,
    /// The dialog of the auto mode that can't check an action.
    Dialog,
}

impl Ask {
    /// As the badge names it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Permission => "permission",
            Self::Question => "question",
            Self::Plan => "plan",
            Self::Dialog => "dialog",
        }
    }
}

/// What the pane shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// A shell has the terminal.
    Shell,
    /// Claude has the terminal, and has drawn nothing that is known.
    Blank,
    /// The prompt's box, and nothing moves.
    Ready,
    /// A spinner, or a hint that Esc interrupts, or a subagent at work.
    Working,
    /// A dialog of Claude's.
    Dialog(Ask),
    /// A menu that the person opened.
    Menu {
        /// A spinner turns above it.
        working: bool,
    },
}

/// The last thing above the box.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tail {
    /// `✻ Brewed for 3s · done`.
    Done,
    /// `⎿  Interrupted`.
    Interrupted,
    /// `● API Error: …`.
    Failed,
    /// Anything else.
    #[default]
    Other,
}

/// A capture, read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Look {
    /// What it shows.
    pub class: Class,
    /// What stands above the box.
    pub tail: Tail,
    /// Something is written in the box.
    pub draft: bool,
}

/// The glyphs that Claude's spinner goes through, and that it leaves in front of what a turn took.
const GLYPHS: [char; 7] = ['·', '✢', '✳', '✶', '✻', '✽', '*'];

/// The programs that a shell prompt can come from.
const SHELLS: [&str; 5] = ["bash", "-bash", "sh", "zsh", "fish"];

/// Reads a capture; `command` is tmux's `#{pane_current_command}`.
#[must_use]
pub fn read(command: &str, screen: &str) -> Look {
    let nothing = |class| Look {
        class,
        tail: Tail::Other,
        draft: false,
    };
    if SHELLS.contains(&command) {
        return nothing(Class::Shell);
    }
    if command != "claude" {
        return nothing(Class::Blank);
    }
    let lines: Vec<&str> = screen.lines().map(str::trim_end).collect();
    let Some((top, bottom)) = the_box(&lines) else {
        return nothing(without_box(&lines));
    };
    let (above, below) = (&lines[..top], &lines[bottom + 1..]);
    let hint = |line: &&str| line.contains("esc to interrupt") || line.trim().starts_with('◯');
    let class = if below.iter().any(hint) || spins(above) {
        Class::Working
    } else if completes(above) {
        // The list of commands hides the spinner.
        Class::Blank
    } else {
        Class::Ready
    };
    let written = lines[top + 1].trim_start_matches(['❯', '!']).trim();
    Look {
        class,
        tail: tail(above),
        draft: !written.is_empty(),
    }
}

/// The rules above and below the prompt's box. A dialog has rules too, but no prompt's sign after the first.
fn the_box(lines: &[&str]) -> Option<(usize, usize)> {
    let rules = |line: &str| line.starts_with("──────────");
    let bottom = lines.iter().rposition(|line| rules(line))?;
    let top = lines[..bottom].iter().rposition(|line| rules(line))?;
    let first = lines.get(top + 1)?;
    let box_ = bottom - top >= 2 && (first.starts_with('❯') || first.starts_with('!'));
    box_.then_some((top, bottom))
}

/// Whether commands are offered for what is written in the box.
fn completes(above: &[&str]) -> bool {
    let mut last = above.iter().rev().filter(|line| !line.is_empty()).take(8);
    last.any(|line| line.starts_with("  ❯ /") || line.starts_with("    /"))
}

fn without_box(lines: &[&str]) -> Class {
    let shown: Vec<&str> = lines
        .iter()
        .copied()
        .filter(|line| !line.is_empty())
        .collect();
    let low = shown.len().saturating_sub(30);
    let has = |text: &str| shown[low..].iter().any(|line| line.contains(text));
    if has("Auto mode can't check actions") {
        return Class::Dialog(Ask::Dialog);
    }
    if has("Enter to select") || has("Review your answers") {
        return Class::Dialog(Ask::Question);
    }
    if has("Exit plan mode?") || has("Would you like to proceed?") || has("Ready to code?") {
        return Class::Dialog(Ask::Plan);
    }
    if has("Do you want to") && has("Esc to cancel") {
        return Class::Dialog(Ask::Permission);
    }
    // Its renderers draw the edge differently: after a kill -9 the next Claude uses its classic one.
    let edges = ["▔▔▔▔▔▔▔▔▔▔", "──────────"];
    let is_edge = |line: &&str| edges.iter().any(|edge| line.starts_with(edge));
    let edge = lines.iter().rposition(is_edge);
    if let Some(edge) = edge
        && ["Esc to close", "Esc to cancel", "Esc to go back"]
            .iter()
            .any(|hint| has(hint))
    {
        return Class::Menu {
            working: spins(&lines[..edge]),
        };
    }
    Class::Blank
}

/// What stands behind the corner that Claude draws before results; a no-break space is among its blanks.
fn result(line: &str) -> Option<&str> {
    line.trim_start().strip_prefix('⎿').map(str::trim_start)
}

/// Whether the last thing that Claude drew there is a spinner.
fn spins(above: &[&str]) -> bool {
    for line in above.iter().rev() {
        if result(line).is_some_and(|text| text.starts_with("Running…")) {
            return true;
        }
        let mut chars = line.chars();
        match chars.next() {
            Some(first) if GLYPHS.contains(&first) && chars.next() == Some(' ') => {
                return line.contains('…')
                    || line.contains("retrying in")
                    || line.contains("Waiting for");
            }
            Some('●' | '❯' | '!') => return false,
            Some(_) | None => {}
        }
    }
    false
}

fn tail(above: &[&str]) -> Tail {
    for line in above.iter().rev() {
        let mut chars = line.chars();
        match chars.next() {
            Some(first) if GLYPHS.contains(&first) && chars.next() == Some(' ') => {
                return if line.contains(" for ") && !line.contains("Waiting for") {
                    Tail::Done
                } else {
                    Tail::Other
                };
            }
            Some('●') if line.contains("API Error") => return Tail::Failed,
            Some('●' | '❯' | '!') => return Tail::Other,
            Some(_) | None => {}
        }
        if result(line).is_some_and(|text| text.starts_with("Interrupted")) {
            return Tail::Interrupted;
        }
    }
    Tail::Other
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: &str = "────────────────────────────────────────";
    const EDGE: &str = "▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔";

    fn boxed(above: &str, text: &str, below: &str) -> Look {
        read(
            "claude",
            &format!("{above}\n\n{RULE}\n❯ {text}\n{RULE}\n{below}\n"),
        )
    }

    #[test]
    fn a_box_with_nothing_moving_is_ready_and_says_how_the_turn_went() {
        let done = boxed(
            "❯ say x\n\n● x\n\n✻ Brewed for 0s · done 9:02 AM\n\n        tmux focus-events off",
            "",
            "  ⏸ manual mode on · ? for shortcuts",
        );
        assert_eq!(
            (done.class, done.tail, done.draft),
            (Class::Ready, Tail::Done, false)
        );
        let stopped = boxed(
            "❯ slow 9 x\n  ⎿ \u{a0}Interrupted · What should Claude do instead?",
            "",
            "",
        );
        assert_eq!(
            (stopped.class, stopped.tail),
            (Class::Ready, Tail::Interrupted)
        );
        let failed = boxed("❯ error 400\n\n● API Error: 400 lab error 400", "", "");
        assert_eq!((failed.class, failed.tail), (Class::Ready, Tail::Failed));
        let back = boxed("● warm up", "sleep 20 then say late", "  ⏸ manual mode on");
        assert_eq!((back.class, back.draft), (Class::Ready, true));
    }

    #[test]
    fn a_spinner_a_hint_or_a_subagent_is_work() {
        let spinner =
            "● Running a lab command\n\n✽ Schlepping… (2s · ↓ 20 tokens)\n  ⎿  Tip: Use Plan Mode";
        assert_eq!(
            boxed(spinner, "say queued", "  ⏸ manual mode on").class,
            Class::Working
        );
        assert_eq!(
            boxed("", "", "  ⏸ manual mode on · esc to interrupt").class,
            Class::Working
        );
        let agents = boxed(
            "● main done\n\n✻ Waiting for 1 background agent to finish",
            "",
            "  ● main\n  ◯ general-purpose  Lab subagent",
        );
        assert_eq!(agents.class, Class::Working);
        let over = "✻ Waiting for 1 background agent to finish\n\n● Agent \"Lab\" finished\n\n● noticed\n\n✻ Baked for 10s";
        assert_eq!(boxed(over, "", "").class, Class::Ready);
        let offered =
            "❯ slow 2 word\n\n  ❯ /config        Open settings\n    /doctor        Health-check";
        assert_eq!(boxed(offered, "/config", "").class, Class::Blank);
        let retry = "❯ error 500\n\n✻ 500 lab error 500 · retrying in 2s · attempt 3/10";
        assert_eq!(boxed(retry, "x", "").class, Class::Working);
        assert_eq!(
            boxed("! sleep 6\n  ⎿  Running… (1s)", "x", "").class,
            Class::Working
        );
    }

    #[test]
    fn dialogs_are_told_from_each_other_and_from_menus() {
        let permission =
            format!("{RULE}\n Bash command\n Do you want to proceed?\n ❯ 1. Yes\n\n Esc to cancel");
        assert_eq!(
            read("claude", &permission).class,
            Class::Dialog(Ask::Permission)
        );
        let question = format!(
            "{RULE}\n ☐ Colour\n\nWhich?\n\n❯ 1. Amber\n{RULE}\n  4. Chat about this\n\nEnter to select"
        );
        assert_eq!(
            read("claude", &question).class,
            Class::Dialog(Ask::Question)
        );
        let plan = format!("{EDGE}\n\n   Exit plan mode?\n\n   ❯ 1. Yes\n     2. No");
        assert_eq!(read("claude", &plan).class, Class::Dialog(Ask::Plan));
        let menu = format!(
            "✶ Envisioning… (4s)\n{EDGE}\n  Select model\n\n  ❯ 1. Default\n\n  Enter to save · Esc to cancel"
        );
        assert_eq!(read("claude", &menu).class, Class::Menu { working: true });
        let idle = format!("✻ Brewed for 6s · done\n{EDGE}\n  Help  General\n\n  Esc to close");
        assert_eq!(read("claude", &idle).class, Class::Menu { working: false });
        let classic =
            format!("❯ /help\n\n{RULE}\n  Help  General\n\n  ←/→ to switch · Esc to close");
        assert_eq!(
            read("claude", &classic).class,
            Class::Menu { working: false }
        );
        assert_eq!(read("bash", &menu).class, Class::Shell);
        assert_eq!(read("claude", "").class, Class::Blank);
    }
}
