//! The hook settings for one version of Claude Code: which events it knows (one it does not know is a
//! blocking warning at every start), and how the hook is called.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use crate::hooks::shell::quote;
use crate::hooks::version::Version;

/// Every event we register. The seven original names come first.
const REGISTERED: [&str; 17] = [
    "SessionStart",
    "UserPromptSubmit",
    "Notification",
    "Stop",
    "StopFailure",
    "PreCompact",
    "PostCompact",
    "SessionEnd",
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "PermissionRequest",
    "Elicitation",
    "ElicitationResult",
    "SubagentStart",
    "SubagentStop",
    "CwdChanged",
];

/// How many of [`REGISTERED`] a version gets that nobody could find out.
const ORIGINAL: usize = 7;

/// What each version knows whose package was read, by `cargo xtask hook-events`.
const KNOWN: &str = include_str!("events.json");

/// What a version knows: what the newest one does that was read and is not newer. Names come and do not go
/// (so far), and one that is new to a version in between is done without.
fn known(version: &Version) -> Option<&'static [String]> {
    static TABLE: LazyLock<BTreeMap<Version, Vec<String>>> = LazyLock::new(|| {
        let table: BTreeMap<String, Vec<String>> =
            serde_json::from_str(KNOWN).expect("a test reads it");
        let read = |(version, events): (String, Vec<String>)| Some((version.parse().ok()?, events));
        table.into_iter().filter_map(read).collect()
    });
    let (_, events) = TABLE.range(..=version.clone()).next_back()?;
    Some(events)
}

/// The first version known to run a command hook in the background; 2.0.77 does not.
const ASYNC: [u32; 3] = [2, 1, 31];

/// Claude's own limit on the hook, in seconds. The hook is done in milliseconds or gives up by itself.
const TIMEOUT_S: u32 = 5;

/// The events that this version gets.
#[must_use]
pub fn events(version: Option<&Version>) -> Vec<&'static str> {
    let Some(version) = version else {
        return REGISTERED[..ORIGINAL].to_vec();
    };
    let known = known(version).unwrap_or_default();
    REGISTERED
        .into_iter()
        .filter(|event| known.iter().any(|name| name == event))
        .collect()
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
        assert!(!of("2.1.76").contains(&"StopFailure"));
        assert!(of("2.1.76").contains(&"PostCompact"));
        assert!(of("2.1.90").contains(&"StopFailure"));
        assert_eq!(of("2.1.89"), of("2.1.76"));
        assert_eq!(of("9.0.0").len(), 17);
        // Hooks are older than the oldest version that was read; what it knew nobody has looked up.
        assert!(of("1.0.40").is_empty());
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
