//! The hook settings for one version of Claude Code: which events it knows (one it does not know is a
//! blocking warning at every start), and how the hook is called.

use std::path::Path;

use serde_json::{Map, Value, json};

use crate::hooks::shell::quote;
use crate::hooks::version::Version;

/// Every event we register, with the first version known to know it: looked up in the published 2.0.77,
/// 2.1.31, 2.1.90 and 2.1.332, and where it came between two of them the later one counts. The seven
/// original names come first.
const EVENTS: [(&str, [u32; 3]); 17] = [
    ("SessionStart", [1, 0, 62]),
    ("UserPromptSubmit", [1, 0, 62]),
    ("Notification", [1, 0, 62]),
    ("Stop", [1, 0, 62]),
    ("StopFailure", [2, 1, 90]),
    ("PreCompact", [1, 0, 62]),
    ("PostCompact", [2, 1, 90]),
    ("SessionEnd", [2, 0, 77]),
    ("PreToolUse", [1, 0, 62]),
    ("PostToolUse", [1, 0, 62]),
    ("PostToolUseFailure", [2, 0, 77]),
    ("PermissionRequest", [2, 0, 77]),
    ("Elicitation", [2, 1, 90]),
    ("ElicitationResult", [2, 1, 90]),
    ("SubagentStart", [2, 0, 77]),
    ("SubagentStop", [1, 0, 62]),
    ("CwdChanged", [2, 1, 90]),
];

/// How many of [`EVENTS`] a version gets that nobody could find out.
const ORIGINAL: usize = 7;

/// The first version known to run a command hook in the background; 2.0.77 does not.
const ASYNC: [u32; 3] = [2, 1, 31];

/// Claude's own limit on the hook, in seconds. The hook is done in milliseconds or gives up by itself.
const TIMEOUT_S: u32 = 5;

/// The events that this version gets.
#[must_use]
pub fn events(version: Option<&Version>) -> Vec<&'static str> {
    match version {
        Some(version) => EVENTS
            .iter()
            .filter(|(_, since)| version.is_at_least(*since))
            .map(|(event, _)| *event)
            .collect(),
        None => EVENTS[..ORIGINAL].iter().map(|(event, _)| *event).collect(),
    }
}

/// The settings as a JSON value.
#[must_use]
pub fn value(home: &Path, version: Option<&Version>) -> Value {
    let script = quote(&home.join("status-hook.sh").to_string_lossy());
    let background = version.is_none_or(|version| version.is_at_least(ASYNC));
    let mut hooks = Map::new();
    for event in events(version) {
        let mut hook = json!({
            "type": "command",
            "command": format!("{script} {event}"),
            "timeout": TIMEOUT_S,
        });
        if background {
            hook["async"] = Value::Bool(true);
        }
        hooks.insert(event.to_owned(), json!([{ "hooks": [hook] }]));
    }
    json!({ "hooks": hooks })
}

/// The settings as they are written.
#[must_use]
pub fn text(home: &Path, version: Option<&Version>) -> String {
    format!("{:#}\n", value(home, version))
}

/// Ours added to the person's: their objects keep everything, their hooks come first, ours last.
/// `None`: theirs is no object, or has hooks in a shape that can't be added to.
#[must_use]
pub fn merge(theirs: Value, ours: &Value) -> Option<Value> {
    let Value::Object(mut merged) = theirs else {
        return None;
    };
    let hooks = merged
        .entry("hooks")
        .or_insert_with(|| Value::Object(Map::new()))
        .as_object_mut()?;
    for (event, groups) in ours.get("hooks")?.as_object()? {
        let all = hooks
            .entry(event)
            .or_insert_with(|| Value::Array(Vec::new()))
            .as_array_mut()?;
        all.extend(groups.as_array()?.iter().cloned());
    }
    Some(Value::Object(merged))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> Version {
        text.parse().unwrap()
    }

    #[test]
    fn a_version_gets_only_what_it_knows() {
        let of = |text: &str| events(Some(&version(text)));
        assert_eq!(of("2.1.332").len(), 17);
        assert!(!of("2.1.31").contains(&"StopFailure"));
        assert!(!of("2.1.31").contains(&"PostCompact"));
        assert!(of("2.1.90").contains(&"StopFailure"));
        assert!(!of("2.0.40").contains(&"PermissionRequest"));
        assert_eq!(
            events(None),
            [
                "SessionStart",
                "UserPromptSubmit",
                "Notification",
                "Stop",
                "StopFailure",
                "PreCompact",
                "PostCompact"
            ]
        );
    }

    #[test]
    fn the_hook_runs_in_the_background_and_is_quoted() {
        let value = value(
            Path::new("/home/o'hara/.purplemux"),
            Some(&version("2.1.332")),
        );
        let hook = &value["hooks"]["Stop"][0]["hooks"][0];
        assert_eq!(hook["async"], true);
        assert_eq!(
            hook["command"],
            r"'/home/o'\''hara/.purplemux/status-hook.sh' Stop"
        );
    }

    #[test]
    fn merging_drops_nothing_of_theirs() {
        let theirs = json!({
            "model": "x",
            "hooks": { "Stop": [{ "matcher": "a", "hooks": [] }], "Custom": [] },
        });
        let ours = json!({ "hooks": { "Stop": [1], "SessionStart": [2] } });
        assert_eq!(
            merge(theirs, &ours),
            Some(json!({
                "model": "x",
                "hooks": {
                    "Stop": [{ "matcher": "a", "hooks": [] }, 1],
                    "Custom": [],
                    "SessionStart": [2],
                },
            }))
        );
        assert_eq!(merge(json!([]), &ours), None);
        assert_eq!(merge(json!({ "hooks": 1 }), &ours), None);
        assert_eq!(merge(json!({ "hooks": { "Stop": {} } }), &ours), None);
    }
}
