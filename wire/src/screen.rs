//! What stands on Claude's screen (measured, Claude Code 2.1.332), read where nothing else says it, to show it.
//!
//! Must never be used to decide anything: a screen holds whatever a program has printed.

use std::sync::Arc;

use crate::text::{NAME_CHARS_MAX, line};

/// The question of a dialog that Claude draws before it has started, in its own words: whether a folder is trusted,
/// what is wrong with the settings. `None`: there is no such dialog on this screen.
#[must_use]
pub fn startup_question(screen: &[String]) -> Option<Arc<str>> {
    let is_rule = |row: &&String| {
        let row = row.trim();
        !row.is_empty() && row.chars().all(|c| c == '─')
    };
    // Above the newest rule stands what was on the screen before.
    let from = screen
        .iter()
        .rposition(|row| is_rule(&row))
        .map_or(0, |at| at + 1);
    let dialog = &screen[from..];
    let options = dialog
        .iter()
        .position(|row| row.trim_start().starts_with('❯'))?;
    dialog[options..]
        .iter()
        .any(|row| row.trim_start().starts_with("Enter to confirm"))
        .then_some(())?;
    let paragraphs: Vec<String> = dialog[..options]
        .split(|row| row.trim().is_empty())
        .map(|rows| {
            let rows: Vec<&str> = rows.iter().map(|row| row.trim()).collect();
            rows.join(" ")
        })
        .filter(|paragraph| !paragraph.is_empty())
        .collect();
    let question = paragraphs.iter().find_map(|paragraph| {
        Some(paragraph.split_inclusive('?').next()?).filter(|asked| asked.ends_with('?'))
    });
    let said = question.or_else(|| paragraphs.first().map(String::as_str))?;
    Some(line(said, NAME_CHARS_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(screen: &str) -> Option<String> {
        let rows: Vec<String> = screen.lines().map(str::to_owned).collect();
        startup_question(&rows).map(|text| text.to_string())
    }

    /// Recorded run s26: the first start in a folder.
    const TRUST: &str = "$ claude --permission-mode manual

──────────────────────────────────────────────────────────────────────
 Accessing workspace:

 /home/dev/proj

 Quick safety check: Is this a project you created or one you trust? (Like your own code, a well-known open
 source project, or work from your team). If not, take a moment to review what's in this folder first.

 Claude Code'll be able to read, edit, and execute files here.

 Security guide

 ❯ No, exit
   Yes, I trust this folder

 Enter to confirm · Esc to cancel
";

    /// Recorded run d3.
    const WARNING: &str = "$ is this a question? no

──────────────────────────────────────────────────────────────────────
  Settings Warning

  /home/dev/run/a.json
  └ hooks.NotAnEventYet: Unknown hook event \"NotAnEventYet\" was ignored.

  The values listed above were skipped; the rest of the file is in effect.

  ❯ 1. Continue
    2. Fix with Claude
    3. Exit and fix manually

  Enter to confirm · Esc to cancel
";

    #[test]
    fn d06_a_start_up_dialog_is_named_by_its_own_words() {
        assert_eq!(
            asked(TRUST).as_deref(),
            Some("Quick safety check: Is this a project you created or one you trust?")
        );
        assert_eq!(asked(WARNING).as_deref(), Some("Settings Warning"));
    }

    #[test]
    fn d06_what_is_no_dialog_is_none() {
        let half = TRUST.split("Security guide").next().unwrap_or_default();
        assert_eq!(asked(half), None, "it is being drawn");
        assert_eq!(asked("$ ls\n❯ something?\n"), None, "a prompt of a shell's");
        assert_eq!(asked(""), None);
        let started = format!("{TRUST}\n──────────\n ❯ \n──────────\n ? for shortcuts\n");
        assert_eq!(asked(&started), None, "it was answered");
    }
}
