//! docs/api.md says how an item looks: its schema is compared with what the program writes.

use std::collections::BTreeSet;
use std::path::Path;

use purplemux_wire::browser::{
    Ask, AskKind, Card, CardOption, CardPart, Detail, Item, Presence, Resume, Shell, State, Tokens,
};
use serde_json::{Value, json};

fn schema() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/api.md");
    let docs = std::fs::read_to_string(path).expect("docs/api.md");
    let block = docs
        .split("```json\n")
        .skip(1)
        .filter_map(|rest| rest.split_once("\n```"))
        .map(|(block, _)| block)
        .find(|block| block.contains("\"title\": \"item\""));
    serde_json::from_str(block.expect("the schema of an item")).expect("JSON")
}

/// An item with everything in it.
fn full() -> Value {
    let item = Item {
        id: "t".into(),
        host: "h".into(),
        tab: Some("t".into()),
        workspace: Some("w".into()),
        pid: Some(1),
        session_id: Some("s".into()),
        cwd: Some("/".into()),
        branch: Some("main".into()),
        state: Some(State::NeedsInput),
        since_ms: 1,
        detail: Detail {
            doing: Some("tool".into()),
            tool: Some("Bash".into()),
            arg: Some("ls".into()),
            agents: Some(1),
            shells: Some(1),
            ask: Some(Ask {
                id: 1,
                kind: AskKind::Plan,
                text: "x".into(),
                options: vec!["Yes".into()],
                card: Some(card()),
            }),
            outcome: Some("finished".into()),
            error: Some("e".into()),
            wakes_at_ms: Some(1),
            label: Some("l".into()),
        },
        presence: Presence::Running,
        title: "t".into(),
        last_message: Some("m".into()),
        tool: Some("Bash".into()),
        tokens: Tokens { context: Some(1) },
        context_pct: Some(1),
        model: Some("claude-opus-5-5".to_owned()),
        ports: vec![1],
        terminal: true,
        shell: Some(Shell::Running),
        foreign: false,
        covered: false,
        hooks: true,
        attention: true,
        episode: Some(1),
        resume: Some(Resume {
            conversation: "c".into(),
            title: "t".into(),
        }),
    };
    serde_json::to_value(item).expect("plain data")
}

fn card() -> Card {
    Card {
        reading: "r".into(),
        title: "t".into(),
        subject: vec!["s".into()],
        question: "q".into(),
        options: vec![CardOption {
            number: Some(1),
            label: "Yes".into(),
            note: "n".into(),
            checked: Some(true),
            marked: true,
        }],
        part: Some(CardPart {
            index: 0,
            count: 1,
            titles: vec!["t".into()],
            answered: vec![true],
        }),
        submit: true,
        reject: true,
        words: true,
        cannot: Some("c".into()),
        said: Some(purplemux_wire::sentence::Cause::Over.into()),
    }
}

fn keys(value: &Value) -> BTreeSet<&str> {
    let object = value.as_object().expect("an object");
    object.keys().map(String::as_str).collect()
}

/// Whether the schema admits the value, and names all that is in it.
fn admits(schema: &Value, value: &Value, at: &str) {
    if let Some(words) = schema["enum"].as_array() {
        assert!(words.contains(value), "{at}: {value} is none of {words:?}");
        return;
    }
    let is = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let types = schema["type"].as_array().cloned();
    let types = types.unwrap_or_else(|| vec![schema["type"].clone()]);
    assert!(
        types.contains(&json!(is)),
        "{at}: {is} is none of {types:?}"
    );
    match value {
        Value::Object(fields) => {
            assert_eq!(keys(value), keys(&schema["properties"]), "{at}");
            for (key, value) in fields {
                admits(&schema["properties"][key], value, &format!("{at}.{key}"));
            }
        }
        Value::Array(all) => {
            for value in all {
                admits(&schema["items"], value, at);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn the_schema_of_an_item_is_what_is_written() {
    let schema = schema();
    admits(&schema, &full(), "item");
    let required: Vec<&str> = schema["required"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    assert_eq!(
        required.iter().copied().collect::<BTreeSet<_>>(),
        keys(&full())
    );
    let words = |key: &str| schema["properties"][key]["enum"].clone();
    let states = [
        Some(State::Idle),
        Some(State::Busy),
        Some(State::NeedsInput),
        Some(State::Review),
        Some(State::Unknown),
        None,
    ];
    assert_eq!(words("state"), json!(states));
    let presences = [
        Presence::None,
        Presence::Starting,
        Presence::Running,
        Presence::Suspended,
        Presence::Elsewhere,
        Presence::Gone,
    ];
    assert_eq!(words("presence"), json!(presences));
    let kinds = [
        AskKind::Permission,
        AskKind::Question,
        AskKind::Plan,
        AskKind::Form,
        AskKind::Dialog,
        AskKind::Startup,
    ];
    let ask = &schema["properties"]["detail"]["properties"]["ask"]["properties"];
    assert_eq!(ask["kind"]["enum"], json!(kinds));
}
