//! Hooks into the text of a settings file and out of it again, in place: what the person wrote keeps its
//! order, its layout and its every byte. Pure; owns no file. It must never return text that it would not
//! take apart again: taking out what was put in gives the same bytes.

use std::ops::Range;

use serde_json::{Map, Value};
use thiserror::Error;

/// Why a text has no place for hooks.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NoPlace {
    /// With the parser's own words.
    #[error("it is no JSON: {0}")]
    NotJson(String),
    /// An array, a number, …
    #[error("it is no JSON object")]
    NotObject,
    /// `hooks` or one of its events.
    #[error("{0:?} in it is not of the form that Claude Code takes")]
    OddForm(String),
    /// JSON readers disagree about which counts.
    #[error("{0:?} stands in it twice")]
    Twice(String),
}

/// What was there before hooks were put in, and so stays when they are taken out, even if it is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Had {
    /// There was a `hooks`.
    pub hooks: bool,
    /// The events that it had.
    pub events: Vec<String>,
}

/// The text with these groups added, each at the end of its event's list. A text of blanks counts as `{}`,
/// as Claude Code takes it.
///
/// # Errors
/// There is no place for them.
pub fn insert(text: &str, groups: &Map<String, Value>) -> Result<String, NoPlace> {
    if text.trim().is_empty() {
        return insert("{}\n", groups);
    }
    let root = root(text)?;
    let style = Style::of(text, &root);
    let Some(hooks) = root.member("hooks")? else {
        let lists = groups
            .iter()
            .map(|(event, group)| (event.clone(), Value::Array(vec![group.clone()])))
            .collect();
        return Ok(style.append(
            text,
            &root,
            0,
            &style.member("hooks", &Value::Object(lists), 1),
        ));
    };
    let hooks_at = hooks.value.start;
    let mut text = text.to_owned();
    for (event, group) in groups {
        let odd = || NoPlace::OddForm(event.clone());
        let hooks =
            Container::at(&text, hooks_at, b'{').ok_or_else(|| NoPlace::OddForm("hooks".into()))?;
        text = match hooks.member(event)? {
            None => {
                let list = Value::Array(vec![group.clone()]);
                style.append(&text, &hooks, 1, &style.member(event, &list, 2))
            }
            Some(list) => {
                let list = Container::at(&text, list.value.start, b'[').ok_or_else(odd)?;
                style.append(&text, &list, 2, &style.value(group, 3))
            }
        };
    }
    Ok(text)
}

/// The text without the hooks whose command is ours, and without what held nothing else and was not there
/// before. A text without any comes back as it is.
///
/// # Errors
/// It can't be taken apart.
pub fn remove(text: &str, is_ours: impl Fn(&str) -> bool, had: &Had) -> Result<String, NoPlace> {
    if text.trim().is_empty() {
        return Ok(text.to_owned());
    }
    let root = root(text)?;
    let Some(hooks_member) = root.member("hooks")? else {
        return Ok(text.to_owned());
    };
    let Some(hooks) = Container::at(text, hooks_member.value.start, b'{') else {
        return Ok(text.to_owned());
    };
    let mut cuts = Vec::new();
    let mut touched = false;
    let empty_events = hooks.cut(&mut cuts, |event, cuts| {
        let Some(list) = Container::at(text, event.value.start, b'[') else {
            return false;
        };
        let before = cuts.len();
        let empty = list.cut(cuts, |group, cuts| {
            let Some(inner) = inner_hooks(text, group) else {
                return false;
            };
            inner.cut(cuts, |hook, _| {
                command(text, hook).is_some_and(|line| is_ours(&line))
            })
        });
        touched |= empty || cuts.len() > before;
        if empty && had.events.contains(&event.key) {
            cuts.push(list.inside());
            return false;
        }
        empty
    });
    if !touched {
        return Ok(text.to_owned());
    }
    if empty_events {
        if had.hooks {
            cuts.push(hooks.inside());
        } else {
            let index = root.items.iter().position(|item| item.key == "hooks");
            let mut seen = 0;
            let everything = root.cut(&mut cuts, |_, _| {
                seen += 1;
                Some(seen - 1) == index
            });
            if everything {
                cuts.push(root.inside());
            }
        }
    }
    Ok(without(text, cuts))
}

/// What the text has before anything is put in.
///
/// # Errors
/// It can't be taken apart.
pub fn had(text: &str) -> Result<Had, NoPlace> {
    if text.trim().is_empty() {
        return Ok(Had::default());
    }
    let Some(member) = root(text)?.member("hooks")?.cloned() else {
        return Ok(Had::default());
    };
    let events = Container::at(text, member.value.start, b'{')
        .map(|hooks| hooks.items.into_iter().map(|event| event.key).collect())
        .unwrap_or_default();
    Ok(Had {
        hooks: true,
        events,
    })
}

fn root(text: &str) -> Result<Container, NoPlace> {
    // From here on the text is known to be JSON, and the scanner below need not doubt it.
    let value: Value =
        serde_json::from_str(text).map_err(|error| NoPlace::NotJson(error.to_string()))?;
    if !value.is_object() {
        return Err(NoPlace::NotObject);
    }
    Container::at(text, blank_end(text, 0), b'{').ok_or(NoPlace::NotObject)
}

fn inner_hooks(text: &str, group: &Item) -> Option<Container> {
    let group = Container::at(text, group.value.start, b'{')?;
    let hooks = group.items.iter().find(|member| member.key == "hooks")?;
    Container::at(text, hooks.value.start, b'[')
}

fn command(text: &str, hook: &Item) -> Option<String> {
    let hook: Value = serde_json::from_str(&text[hook.value.clone()]).ok()?;
    Some(hook.get("command")?.as_str()?.to_owned())
}

// ---- text ---------------------------------------------------------------------------------------------

/// A member of an object or an element of an array.
#[derive(Clone, Debug)]
struct Item {
    /// From the key, or the element itself.
    start: usize,
    /// Empty for an element.
    key: String,
    value: Range<usize>,
}

/// An object or an array.
#[derive(Debug)]
struct Container {
    /// Of its opening bracket.
    open: usize,
    /// Of its closing bracket.
    close: usize,
    items: Vec<Item>,
}

impl Container {
    /// The container of this bracket that begins there; `None`: something else does.
    fn at(text: &str, open: usize, bracket: u8) -> Option<Self> {
        let bytes = text.as_bytes();
        if bytes.get(open) != Some(&bracket) {
            return None;
        }
        let mut items = Vec::new();
        let mut at = blank_end(text, open + 1);
        while !matches!(bytes.get(at), None | Some(b'}' | b']')) {
            let start = at;
            let mut key = String::new();
            if bracket == b'{' {
                let end = value_end(text, at);
                key = serde_json::from_str(&text[at..end]).ok()?;
                // Past the colon.
                at = blank_end(text, blank_end(text, end) + 1);
            }
            let end = value_end(text, at);
            items.push(Item {
                start,
                key,
                value: at..end,
            });
            at = blank_end(text, end);
            if bytes.get(at) == Some(&b',') {
                at = blank_end(text, at + 1);
            }
        }
        Some(Self {
            open,
            close: at,
            items,
        })
    }

    fn member(&self, key: &str) -> Result<Option<&Item>, NoPlace> {
        let mut found = self.items.iter().filter(|item| item.key == key);
        match (found.next(), found.next()) {
            (first, None) => Ok(first),
            (_, Some(_)) => Err(NoPlace::Twice(key.to_owned())),
        }
    }

    fn inside(&self) -> Range<usize> {
        self.open + 1..self.close
    }

    /// Cuts out the items that `goes` says, each with the comma that went with it. True: it had some and all
    /// of them go; then nothing is cut, since what holds it may go as well.
    fn cut(
        &self,
        cuts: &mut Vec<Range<usize>>,
        mut goes: impl FnMut(&Item, &mut Vec<Range<usize>>) -> bool,
    ) -> bool {
        let before = cuts.len();
        let flags: Vec<bool> = self.items.iter().map(|item| goes(item, cuts)).collect();
        let Some(first_kept) = flags.iter().position(|goes| !goes) else {
            let all = !self.items.is_empty();
            if all {
                cuts.truncate(before);
            }
            return all;
        };
        if first_kept > 0 {
            cuts.push(self.items[0].start..self.items[first_kept].start);
        }
        for (index, goes) in flags.iter().enumerate().skip(first_kept + 1) {
            if *goes {
                cuts.push(self.items[index - 1].value.end..self.items[index].value.end);
            }
        }
        false
    }
}

fn without(text: &str, mut cuts: Vec<Range<usize>>) -> String {
    cuts.sort_by_key(|cut| (cut.start, std::cmp::Reverse(cut.end)));
    let mut kept = String::with_capacity(text.len());
    let mut at = 0;
    for cut in cuts {
        if cut.start > at {
            kept.push_str(&text[at..cut.start]);
        }
        at = at.max(cut.end);
    }
    kept.push_str(&text[at..]);
    kept
}

fn blank_end(text: &str, from: usize) -> usize {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
    from + text.as_bytes()[from..]
        .iter()
        .take_while(|byte| blank(byte))
        .count()
}

/// Where the value that begins at `from` ends.
fn value_end(text: &str, from: usize) -> usize {
    let bytes = text.as_bytes();
    let mut depth = 0_usize;
    let mut at = from;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => {
                at += 1;
                while bytes.get(at).is_some_and(|byte| *byte != b'"') {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
                if depth == 0 {
                    return at + 1;
                }
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth <= 1 => return at + depth,
            b'}' | b']' => depth -= 1,
            b',' | b':' | b' ' | b'\t' | b'\n' | b'\r' if depth == 0 => return at,
            _ => {}
        }
        at += 1;
    }
    at
}

/// How the person's file is laid out.
#[derive(Debug)]
struct Style {
    /// One step of indentation; `None`: all on one line.
    indent: Option<String>,
    newline: &'static str,
}

impl Style {
    fn of(text: &str, root: &Container) -> Self {
        let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
        let indent = match root.items.first() {
            None => Some("  ".to_owned()),
            Some(first) => text[root.open + 1..first.start]
                .rsplit_once('\n')
                .map(|(_, indent)| indent.to_owned()),
        };
        Self { indent, newline }
    }

    /// A value as it stands `depth` steps in.
    fn value(&self, value: &Value, depth: usize) -> String {
        let Some(indent) = &self.indent else {
            return value.to_string();
        };
        let pretty = format!("{value:#}");
        let mut lines = pretty.lines();
        let mut text = lines.next().unwrap_or_default().to_owned();
        for line in lines {
            let inner = line.trim_start_matches(' ');
            // serde_json indents by two blanks.
            let steps = (line.len() - inner.len()) / 2;
            text.push_str(self.newline);
            text.push_str(&indent.repeat(depth + steps));
            text.push_str(inner);
        }
        text
    }

    fn member(&self, key: &str, value: &Value, depth: usize) -> String {
        let colon = if self.indent.is_some() { ": " } else { ":" };
        format!("{}{colon}{}", Value::from(key), self.value(value, depth))
    }

    /// The text with one more item at the end of a container that is `depth` steps in.
    fn append(&self, text: &str, container: &Container, depth: usize, item: &str) -> String {
        let inner = match &self.indent {
            Some(indent) => format!("{}{}", self.newline, indent.repeat(depth + 1)),
            None => String::new(),
        };
        let (cut, added) = match container.items.last() {
            Some(last) => {
                // As the person parts the items before.
                let first = &container.items[0];
                let gap = &text[container.open + 1..first.start];
                let gap = if gap.contains('\n') { gap } else { " " };
                let gap = if self.indent.is_none() { "" } else { gap };
                (last.value.end..last.value.end, format!(",{gap}{item}"))
            }
            None => {
                let close = match &self.indent {
                    Some(indent) => format!("{}{}", self.newline, indent.repeat(depth)),
                    None => String::new(),
                };
                (container.inside(), format!("{inner}{item}{close}"))
            }
        };
        format!("{}{added}{}", &text[..cut.start], &text[cut.end..])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const OURS: &str = "'/h/status-hook.sh' ";

    fn groups() -> Map<String, Value> {
        ["SessionStart", "Stop", "Notification"]
            .into_iter()
            .map(|event| {
                let command = format!("{OURS}{event}");
                let hook = json!({ "type": "command", "command": command, "async": true });
                (event.to_owned(), json!({ "hooks": [hook] }))
            })
            .collect()
    }

    fn ours(command: &str) -> bool {
        command.starts_with(OURS)
    }

    /// Puts ours in, checks what came of it, takes them out again.
    fn there_and_back(text: &str) -> String {
        let with = insert(text, &groups()).unwrap();
        let value: Value = serde_json::from_str(&with).unwrap();
        for event in ["SessionStart", "Stop", "Notification"] {
            let list = value["hooks"][event].as_array().unwrap();
            let last = &list.last().unwrap()["hooks"][0]["command"];
            assert_eq!(last.as_str().unwrap(), format!("{OURS}{event}"), "{with}");
        }
        remove(&with, ours, &had(text).unwrap()).unwrap()
    }

    #[test]
    fn what_is_put_in_comes_out_again_to_the_byte() {
        for text in [
            "{}",
            "{}\n",
            "{\n}\n",
            "{\"model\":\"x\"}",
            "{ \"model\": \"x\" }\n",
            "{\n  \"model\": \"x\"\n}\n",
            "{\r\n\t\"model\": \"x\"\r\n}\r\n",
            "{\n    \"hooks\": {},\n    \"z\": [1, {\"a\": \"}\\\"\"}]\n}",
            "{\n  \"hooks\": {\n    \"Stop\": [\n      {\"matcher\": \"\", \"hooks\": [{\"type\": \"command\", \"command\": \"say 'done'\"}]}\n    ]\n  }\n}\n",
            "{\"hooks\":{\"Stop\":[],\"Custom\":[{\"hooks\":[]}]}}",
            "{\n  \"hooks\": { \"Stop\": [] , \"PreToolUse\" : [ ] }\n}\n",
        ] {
            let back = there_and_back(text);
            if text == "{\n}\n" {
                // Blanks in an empty object are the one thing that is not remembered here.
                assert_eq!(back, "{}\n");
            } else {
                assert_eq!(back, text);
            }
        }
    }

    #[test]
    fn the_layout_is_the_person_s() {
        let with = insert("{\n    \"model\": \"x\"\n}\n", &groups()).unwrap();
        assert!(
            with.starts_with("{\n    \"model\": \"x\",\n    \"hooks\": {\n        \"Notification\": [\n            {\n"),
            "{with}"
        );
        let one_line = insert("{\"model\":\"x\"}", &groups()).unwrap();
        assert!(!one_line.contains('\n') && one_line.starts_with("{\"model\":\"x\",\"hooks\":{"));
    }

    #[test]
    fn blanks_are_an_empty_object() {
        let with = insert(" \n", &groups()).unwrap();
        assert!(with.starts_with("{\n  \"hooks\": {"), "{with}");
        assert_eq!(remove(&with, ours, &Had::default()).unwrap(), "{}\n");
    }

    #[test]
    fn what_the_person_did_meanwhile_survives() {
        let text = "{\n  \"model\": \"x\"\n}\n";
        let with = insert(text, &groups()).unwrap();
        // Claude Code itself writes the whole file anew, and the person puts a hook into our group.
        let mut value: Value = serde_json::from_str(&with).unwrap();
        value["theme"] = json!("dark");
        let theirs = json!({ "type": "command", "command": "theirs" });
        let group = value["hooks"]["Stop"][0]["hooks"].as_array_mut().unwrap();
        group.insert(0, theirs.clone());
        let out = remove(&format!("{value:#}\n"), ours, &had(text).unwrap()).unwrap();
        let out: Value = serde_json::from_str(&out).unwrap();
        assert_eq!(
            out,
            json!({ "model": "x", "theme": "dark", "hooks": { "Stop": [{ "hooks": [theirs] }] } })
        );
    }

    #[test]
    fn what_was_there_before_stays_though_it_is_empty() {
        let text = "{\"hooks\":{\"Stop\":[]}}";
        let with = insert(text, &groups()).unwrap();
        let pretty = format!("{:#}", serde_json::from_str::<Value>(&with).unwrap());
        let out = remove(&pretty, ours, &had(text).unwrap()).unwrap();
        let out: Value = serde_json::from_str(&out).unwrap();
        assert_eq!(out, json!({ "hooks": { "Stop": [] } }));
    }

    #[test]
    fn what_has_no_place_is_refused_with_a_reason() {
        let why = |text: &str| insert(text, &groups()).unwrap_err().to_string();
        assert!(why("{\"a\": 1,}").contains("no JSON"));
        assert!(why("[]").contains("object"));
        assert!(why("{\"hooks\": 7}").contains("hooks"));
        assert!(why("{\"hooks\": {\"Stop\": {}}}").contains("Stop"));
        assert!(why("{\"hooks\": {}, \"hooks\": {}}").contains("twice"));
    }

    fn json_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "[ -~äß\\n\\\\\"{}\\[\\],:]{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::btree_map("[a-z\"{ ]{1,4}", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    fn settings() -> impl Strategy<Value = Value> {
        let group = json_value().prop_map(|extra| json!({ "matcher": "x", "hooks": [extra] }));
        let list = proptest::collection::vec(group, 0..3).prop_map(Value::from);
        let events = proptest::sample::subsequence(vec!["Stop", "SessionStart", "Other"], 0..=3);
        let hooks = (events, proptest::collection::vec(list, 3)).prop_map(|(events, lists)| {
            let pairs = events.into_iter().map(str::to_owned).zip(lists);
            Value::Object(pairs.collect())
        });
        let others = proptest::collection::btree_map("[a-g]{1,3}", json_value(), 0..4);
        (others, proptest::option::of(hooks)).prop_map(|(others, hooks)| {
            let mut all: Map<String, Value> = others.into_iter().collect();
            all.extend(hooks.map(|hooks| ("hooks".to_owned(), hooks)));
            Value::Object(all)
        })
    }

    proptest! {
        #[test]
        fn any_settings_come_back_to_the_byte(value in settings(), pretty: bool) {
            let text = if pretty { format!("{value:#}\n") } else { value.to_string() };
            prop_assert_eq!(there_and_back(&text), text);
        }

        #[test]
        fn theirs_is_the_same_with_ours_beside_it(value in settings(), pretty: bool) {
            let text = if pretty { format!("{value:#}\n") } else { value.to_string() };
            let with: Value = serde_json::from_str(&insert(&text, &groups()).unwrap()).unwrap();
            for (key, theirs) in value.as_object().unwrap() {
                if key != "hooks" {
                    prop_assert_eq!(&with[key], theirs);
                }
            }
            for (event, theirs) in value["hooks"].as_object().into_iter().flatten() {
                let theirs = theirs.as_array().unwrap();
                let both = with["hooks"][event].as_array().unwrap();
                prop_assert_eq!(&both[..theirs.len()], &theirs[..]);
            }
        }
    }
}
