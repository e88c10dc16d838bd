//! The script language of the fake API: what a prompt asks the "model" to do, as a pure function from a request to
//! a [`Plan`]. Owns the grammar and the reading of a conversation; knows no sockets and no time.
//!
//! A prompt is a list of steps split by ` ;; `. Each step is one message of the assistant; the number of messages
//! with a `tool_result` after the newest prompt of the person says which step is next, so the fake keeps no memory
//! of conversations and serves any number of them at once.
//!
//! | step | answer |
//! | --- | --- |
//! | `say X` | the text X |
//! | `slow N X` | the text X, word by word over N seconds |
//! | `quick STEP` | STEP without the time that a model takes to its first token |
//! | `sleep N [then STEP]` | nothing for N seconds, then STEP (else `ok`) |
//! | `bash: CMD`, `bg: CMD` | the Bash tool, in the foreground or the background |
//! | `read F`, `write F` | the Read or the Write tool |
//! | `ask`, `ask2` | AskUserQuestion with one or two questions |
//! | `plan`, `enterplan` | ExitPlanMode, EnterPlanMode |
//! | `task: A >> B`, `bgtask: …` | a subagent whose own script is `A ;; B` |
//! | `par: A \|\| B` | the tools of A and B in one message |
//! | `tool: NAME JSON` | any tool |
//! | `usage N STEP` | STEP, reporting N input tokens |
//! | `error S [xK]` | HTTP status S, K times (default: always), then `recovered` |
//! | `cut N` | a stream that breaks off after N seconds |
//! | `max`, `refuse` | the stop reasons `max_tokens` and `refusal` |
//!
//! `/compact take N seconds` makes the compaction last that long. Anything else is echoed. When the steps are used up, a tool result is answered with `done`.

use std::time::Duration;

use serde_json::{Value, json};

/// One answer of the fake: when, how fast, what, and how it ends.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Before the first byte.
    pub delay: Duration,
    /// Answers faster than any model could.
    pub quick: bool,
    /// The text is spread over this long; zero sends it at once.
    pub spread: Duration,
    /// The content blocks.
    pub blocks: Vec<Block>,
    /// `stop_reason` of the message.
    pub stop: &'static str,
    /// Input tokens to report; otherwise an estimate.
    pub input_tokens: Option<u64>,
    /// Answer with an error instead.
    pub failure: Option<Failure>,
    /// Drop the connection in the middle of the first block.
    pub cut: bool,
}

/// An HTTP error to answer with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The HTTP status.
    pub status: u16,
    /// So many times for the same step of the same conversation; afterwards the answer is `recovered`.
    pub times: u32,
}

/// A content block of the assistant's message.
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    /// Text.
    Text(String),
    /// A call of a tool that the request offered.
    ToolUse {
        /// The tool's name.
        name: String,
        /// Its input.
        input: Value,
    },
}

/// What kind of request the fake took it for; kept in its log so that tests can wait for the right one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A turn of the main lane or of a subagent.
    Main,
    /// A summary for compaction.
    Compact,
    /// A title, a classification or another request without tools.
    Helper,
}

/// A decision with what it was based on.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// What to answer.
    pub plan: Plan,
    /// What the request was taken for.
    pub kind: Kind,
    /// The newest prompt.
    pub prompt: String,
    /// Which step of it is answered.
    pub step: usize,
}

/// Where a conversation stands.
#[derive(Clone, Debug, Default, PartialEq)]
struct Place {
    prompt: String,
    step: usize,
    refused: bool,
    task_notification: bool,
}

/// Decides the answer to the body of a `POST /v1/messages`.
pub fn decide(body: &Value, compact_delay: Duration) -> Decision {
    let place = locate(body);
    let Place { prompt, step, .. } = place;
    if is_compaction(body) {
        let mut plan = say(
            "<analysis>lab</analysis>\n<summary>\n1. Primary Request: lab\n2. All done\n</summary>",
        );
        plan.delay = asked_for(body).unwrap_or(compact_delay);
        return Decision {
            plan,
            kind: Kind::Compact,
            prompt,
            step,
        };
    }
    let tools = tool_names(body);
    let schema = output_schema(body);
    if tools.is_empty() || schema.is_some() {
        let text = schema.map_or_else(|| "lab".to_owned(), |schema| fill(schema).to_string());
        return Decision {
            plan: say(&text),
            kind: Kind::Helper,
            prompt,
            step,
        };
    }
    let plan = if place.task_notification && prompt.is_empty() {
        say("noticed the finished background task")
    } else if prompt.starts_with("This session is being continued") {
        // The first request after a compaction in mid-turn.
        Plan {
            spread: Duration::from_secs(6),
            ..say("carrying on with the task after the compaction")
        }
    } else if place.refused {
        say("understood, not doing that")
    } else {
        match prompt.split(" ;; ").nth(step) {
            Some(text) => parse(text, &tools),
            None => say("done"),
        }
    };
    Decision {
        plan,
        kind: Kind::Main,
        prompt,
        step,
    }
}

/// The plan of one step.
pub fn parse(step: &str, tools: &[&str]) -> Plan {
    let step = step.trim();
    match step {
        "max" => {
            return Plan {
                stop: "max_tokens",
                ..say("cut by max tokens")
            };
        }
        "refuse" => {
            return Plan {
                blocks: Vec::new(),
                stop: "refusal",
                ..say("")
            };
        }
        "ask" => return call("AskUserQuestion", json!({"questions": [colour()]})),
        "ask2" => return call("AskUserQuestion", json!({"questions": [colour(), shape()]})),
        "plan" => {
            return call(
                "ExitPlanMode",
                json!({"plan": "# Plan\n\n1. Do one thing\n2. Do another thing\n"}),
            );
        }
        "enterplan" => return call("EnterPlanMode", json!({})),
        _ => {}
    }
    if let Some(command) = step.strip_prefix("bash:") {
        return call(
            "Bash",
            json!({"command": command.trim(), "description": "Run a lab command"}),
        );
    }
    if let Some(command) = step.strip_prefix("bg:") {
        let input = json!({"command": command.trim(), "description": "Run in background", "run_in_background": true});
        return call("Bash", input);
    }
    if let Some(parts) = step.strip_prefix("par:") {
        let uses = parts.split("||").flat_map(|part| parse(part, tools).blocks);
        return call_all(
            uses.filter(|block| matches!(block, Block::ToolUse { .. }))
                .collect(),
        );
    }
    for (prefix, background) in [("task:", false), ("bgtask:", true)] {
        if let Some(steps) = step.strip_prefix(prefix) {
            let tool = if tools.contains(&"Agent") {
                "Agent"
            } else {
                "Task"
            };
            let input = json!({
                "description": "Lab subagent",
                "prompt": steps.trim().replace(">>", ";;"),
                "subagent_type": "general-purpose",
                "run_in_background": background,
            });
            return call(tool, input);
        }
    }
    let (word, rest) = step.split_once(char::is_whitespace).unwrap_or((step, ""));
    let rest = rest.trim_start();
    match word {
        "say" => say(rest),
        "quick" => Plan {
            quick: true,
            ..parse(rest, tools)
        },
        "read" if !rest.contains(' ') => call("Read", json!({"file_path": rest})),
        "write" if !rest.contains(' ') => call(
            "Write",
            json!({"file_path": rest, "content": "written by the lab\n"}),
        ),
        "slow" => match timed(rest) {
            Some((spread, text)) => Plan {
                spread,
                ..say(text)
            },
            None => say(step),
        },
        "sleep" => match timed(rest) {
            Some((wait, then)) => {
                let mut plan = parse(then.strip_prefix("then ").unwrap_or("say ok"), tools);
                plan.delay += wait;
                plan
            }
            None => say(step),
        },
        "usage" => match rest
            .split_once(' ')
            .and_then(|(n, then)| Some((n.parse().ok()?, then)))
        {
            Some((tokens, then)) => Plan {
                input_tokens: Some(tokens),
                ..parse(then, tools)
            },
            None => say(step),
        },
        "error" => match failure(rest) {
            Some(failure) => Plan {
                failure: Some(failure),
                ..say("")
            },
            None => say(step),
        },
        "cut" => match timed(rest) {
            Some((spread, _)) => Plan {
                spread,
                cut: true,
                ..say(&"this stream will break ".repeat(8))
            },
            None => say(step),
        },
        "tool:" => match rest
            .split_once(' ')
            .and_then(|(name, input)| Some((name, object(input)?)))
        {
            Some((name, input)) => call(name, input),
            None => say(step),
        },
        _ => say(step),
    }
}

/// A plain text answer; empty text becomes `ok`, because a message without text looks like a fault to Claude.
pub fn say(text: &str) -> Plan {
    let text = if text.is_empty() { "ok" } else { text };
    Plan {
        delay: Duration::ZERO,
        quick: false,
        spread: Duration::ZERO,
        blocks: vec![Block::Text(text.to_owned())],
        stop: "end_turn",
        input_tokens: None,
        failure: None,
        cut: false,
    }
}

fn call(name: &str, input: Value) -> Plan {
    call_all(vec![Block::ToolUse {
        name: name.to_owned(),
        input,
    }])
}

fn call_all(uses: Vec<Block>) -> Plan {
    let mut plan = say("I'll use a tool.");
    plan.blocks.extend(uses);
    plan.stop = "tool_use";
    plan
}

fn colour() -> Value {
    json!({"question": "Which colour should the badge have?", "header": "Colour", "multiSelect": false, "options": [
        {"label": "Amber", "description": "warm"}, {"label": "Violet", "description": "cool"}]})
}

fn shape() -> Value {
    json!({"question": "Which shape?", "header": "Shape", "multiSelect": false, "options": [
        {"label": "Dot", "description": "round"}, {"label": "Bar", "description": "flat"}]})
}

/// `N REST` with N in seconds.
fn timed(text: &str) -> Option<(Duration, &str)> {
    let (number, rest) = text.split_once(' ').unwrap_or((text, ""));
    let seconds = number.parse().ok()?;
    Some((Duration::try_from_secs_f64(seconds).ok()?, rest))
}

/// `S [xK]`.
fn failure(text: &str) -> Option<Failure> {
    let mut words = text.split_whitespace();
    let status = words.next()?.parse().ok()?;
    let times = match words.next() {
        Some(word) => word.strip_prefix('x')?.parse().ok()?,
        None => u32::MAX,
    };
    Some(Failure { status, times })
}

fn object(text: &str) -> Option<Value> {
    let value: Value = serde_json::from_str(&text.replace(">>", ";;")).ok()?;
    value.is_object().then_some(value)
}

fn tool_names(body: &Value) -> Vec<&str> {
    list(&body["tools"])
        .iter()
        .filter_map(|tool| tool["name"].as_str())
        .collect()
}

fn output_schema(body: &Value) -> Option<&Value> {
    let format = &body["output_config"]["format"];
    let format = if format.is_null() {
        &body["output_format"]
    } else {
        format
    };
    (!format.is_null()).then_some(&format["schema"])
}

/// The smallest object that satisfies a schema: titles and classifications want one.
fn fill(schema: &Value) -> Value {
    let properties = schema["properties"].as_object();
    let fields = properties.into_iter().flatten().map(|(name, property)| {
        let value = match (property["enum"].get(0), property["type"].as_str()) {
            (Some(first), _) => first.clone(),
            (None, Some("boolean")) => json!(false),
            (None, Some("number" | "integer")) => json!(0),
            (None, Some("array")) => json!([]),
            (None, Some("object")) => json!({}),
            (None, _) => json!("Lab session"),
        };
        (name.clone(), value)
    });
    Value::Object(fields.collect())
}

/// How long a compaction is to take, where the person has said so beside `/compact`.
fn asked_for(body: &Value) -> Option<Duration> {
    let last = list(&body["messages"]).last()?.to_string();
    let (_, wish) = last.rsplit_once("take ")?;
    let (seconds, rest) = wish.split_once(' ')?;
    rest.starts_with("seconds")
        .then(|| seconds.parse().ok().map(Duration::from_secs))?
}

fn is_compaction(body: &Value) -> bool {
    let last = list(&body["messages"])
        .last()
        .map(Value::to_string)
        .unwrap_or_default();
    last.contains("detailed summary of")
        || last.contains("CRITICAL: Respond with TEXT ONLY")
        || body["system"]
            .to_string()
            .contains("summarizing conversations")
}

/// Walks back from the newest message to the newest thing that a person said.
fn locate(body: &Value) -> Place {
    let mut place = Place::default();
    let mut newest_results_read = false;
    for message in list(&body["messages"])
        .iter()
        .rev()
        .filter(|message| message["role"] == "user")
    {
        let texts = texts(message);
        if texts
            .iter()
            .any(|text| text.contains("<task-notification>"))
        {
            place.task_notification = true;
            if !newest_results_read {
                return place;
            }
        }
        let prompt = texts.iter().rev().find_map(|text| person_said(text));
        let results: Vec<&Value> = list(&message["content"])
            .iter()
            .filter(|block| block["type"] == "tool_result")
            .collect();
        if let Some(prompt) = prompt {
            place.prompt = prompt;
            return place;
        }
        if !results.is_empty() {
            if !newest_results_read {
                newest_results_read = true;
                place.refused = results.iter().any(|result| {
                    let result = result.to_string();
                    result.contains("doesn't want to") || result.contains("rejected")
                });
            }
            place.step += 1;
        }
    }
    place
}

/// What the person said in one text block, if anything: Claude wraps its own remarks in tags.
fn person_said(text: &str) -> Option<String> {
    const REMARKS: [&str; 9] = [
        "<command-",
        "<local-command",
        "<bash-stdout",
        "<bash-stderr",
        "<task-notification",
        "<session",
        "<system-reminder",
        "[Request interrupted",
        "Caveat:",
    ];
    let text = without_reminders(text);
    let text = text.trim();
    if text.is_empty() || REMARKS.iter().any(|remark| text.starts_with(remark)) {
        return None;
    }
    if text.starts_with("<bash-input") {
        return Some("say saw the output".to_owned());
    }
    if text.starts_with("<teammate-message") {
        let inside = text
            .split_once('>')?
            .1
            .trim_end()
            .trim_end_matches("</teammate-message>");
        return Some(inside.trim().to_owned());
    }
    Some(text.to_owned())
}

fn without_reminders(text: &str) -> String {
    let (open, close) = ("<system-reminder>", "</system-reminder>");
    let mut left = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(open) {
        left.push_str(before);
        match after.split_once(close) {
            Some((_, behind)) => rest = behind,
            None => return left + open + after,
        }
    }
    left + rest
}

fn texts(message: &Value) -> Vec<&str> {
    let content = &message["content"];
    if let Some(text) = content.as_str() {
        return vec![text];
    }
    let texts = list(content).iter().filter(|block| block["type"] == "text");
    texts.filter_map(|block| block["text"].as_str()).collect()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOOLS: [&str; 2] = ["Bash", "Agent"];

    fn request(messages: Value) -> Value {
        json!({"tools": [{"name": "Bash"}, {"name": "Agent"}], "messages": messages})
    }

    fn answer(messages: Value) -> Decision {
        decide(&request(messages), Duration::from_secs(2))
    }

    fn text(plan: &Plan) -> String {
        let texts = plan.blocks.iter().filter_map(|block| match block {
            Block::Text(text) => Some(text.as_str()),
            Block::ToolUse { .. } => None,
        });
        texts.collect::<Vec<_>>().join("|")
    }

    fn uses(plan: &Plan) -> Vec<(&str, &Value)> {
        let uses = plan.blocks.iter().filter_map(|block| match block {
            Block::ToolUse { name, input } => Some((name.as_str(), input)),
            Block::Text(_) => None,
        });
        uses.collect()
    }

    fn result(text: &str) -> Value {
        json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": text}]})
    }

    #[test]
    fn the_steps_of_text_and_time() {
        assert_eq!(text(&parse("say hello there", &TOOLS)), "hello there");
        assert_eq!(text(&parse("anything else", &TOOLS)), "anything else");
        let slow = parse("slow 2.5 one two", &TOOLS);
        assert_eq!(
            (slow.spread, text(&slow)),
            (Duration::from_millis(2500), "one two".into())
        );
        let late = parse("sleep 20 then say late", &TOOLS);
        assert_eq!(
            (late.delay, text(&late)),
            (Duration::from_secs(20), "late".into())
        );
        let both = parse("sleep 1 then sleep 2 then bash: ls", &TOOLS);
        assert_eq!((both.delay, uses(&both).len()), (Duration::from_secs(3), 1));
        assert_eq!(text(&parse("sleep 3", &TOOLS)), "ok");
        assert_eq!(
            text(&parse("slow down please", &TOOLS)),
            "slow down please",
            "not a number: echoed"
        );
        assert_eq!(parse("usage 9000 say x", &TOOLS).input_tokens, Some(9000));
        assert!(parse("quick say x", &TOOLS).quick && !parse("say x", &TOOLS).quick);
    }

    #[test]
    fn the_steps_that_use_tools() {
        let bash = parse("bash: touch a.txt", &TOOLS);
        assert_eq!(bash.stop, "tool_use");
        assert_eq!(uses(&bash)[0].1["command"], "touch a.txt");
        assert_eq!(
            uses(&parse("bg: sleep 9", &TOOLS))[0].1["run_in_background"],
            true
        );
        assert_eq!(uses(&parse("read notes.txt", &TOOLS))[0].0, "Read");
        assert_eq!(uses(&parse("write out.txt", &TOOLS))[0].0, "Write");
        assert_eq!(
            uses(&parse("ask2", &TOOLS))[0].1["questions"]
                .as_array()
                .unwrap()
                .len(),
            2
        );
        assert_eq!(uses(&parse("plan", &TOOLS))[0].0, "ExitPlanMode");
        let task = parse("task: slow 8 x >> say d", &TOOLS);
        assert_eq!(uses(&task)[0].0, "Agent");
        assert_eq!(uses(&task)[0].1["prompt"], "slow 8 x ;; say d");
        assert_eq!(uses(&parse("task: say x", &["Task"]))[0].0, "Task");
        let two = parse("par: bash: a || bash: b", &TOOLS);
        assert_eq!(
            uses(&two)
                .iter()
                .map(|(_, input)| &input["command"])
                .collect::<Vec<_>>(),
            ["a", "b"]
        );
        let any = parse(r#"tool: Grep {"pattern":"x"}"#, &TOOLS);
        assert_eq!(uses(&any)[0], ("Grep", &json!({"pattern": "x"})));
    }

    #[test]
    fn the_steps_that_fail() {
        assert_eq!(
            parse("error 500 x3", &TOOLS).failure,
            Some(Failure {
                status: 500,
                times: 3
            })
        );
        assert_eq!(
            parse("error 429", &TOOLS).failure,
            Some(Failure {
                status: 429,
                times: u32::MAX
            })
        );
        assert!(parse("cut 2", &TOOLS).cut);
        assert_eq!(parse("max", &TOOLS).stop, "max_tokens");
        assert_eq!(
            (
                parse("refuse", &TOOLS).stop,
                parse("refuse", &TOOLS).blocks.len()
            ),
            ("refusal", 0)
        );
    }

    #[test]
    fn tool_results_after_the_prompt_choose_the_step() {
        let prompt = json!({"role": "user", "content": [
            {"type": "text", "text": "<system-reminder>today</system-reminder>"},
            {"type": "text", "text": "bash: a ;; say b"}]});
        let reply = json!({"role": "assistant", "content": []});
        assert_eq!(uses(&answer(json!([prompt])).plan)[0].1["command"], "a");
        let second = answer(json!([prompt, reply, result("ok")]));
        assert_eq!((second.step, text(&second.plan)), (1, "b".into()));
        let third = answer(json!([prompt, reply, result("ok"), reply, result("ok")]));
        assert_eq!(text(&third.plan), "done");
    }

    #[test]
    fn only_the_newest_prompt_counts() {
        let messages = json!([
            {"role": "user", "content": "bash: old ;; say old"}, {"role": "assistant", "content": []}, result("ok"),
            {"role": "assistant", "content": []}, {"role": "user", "content": "say new"}]);
        let decision = answer(messages);
        assert_eq!((decision.step, decision.prompt.as_str()), (0, "say new"));
    }

    #[test]
    fn a_refused_tool_ends_the_script() {
        let refusal = result("The user doesn't want to proceed with this tool use.");
        let decision = answer(json!([{"role": "user", "content": "bash: a ;; bash: b"}, refusal]));
        assert_eq!(text(&decision.plan), "understood, not doing that");
    }

    #[test]
    fn claude_s_own_remarks_are_no_prompts() {
        let interrupted = json!({"role": "user", "content": [{"type": "text", "text": "[Request interrupted by user]"}]});
        let decision = answer(json!([{"role": "user", "content": "say first"}, interrupted]));
        assert_eq!(decision.prompt, "say first");
        let bang = json!([{"role": "user", "content": "bash: again"}, {"role": "user", "content": "<bash-input>ls</bash-input>"},
            {"role": "user", "content": "<bash-stdout>x</bash-stdout>"}]);
        assert_eq!(text(&answer(bang).plan), "saw the output");
        let notice = json!([{"role": "user", "content": "bg: x"}, result("started"),
            {"role": "user", "content": "<task-notification>done</task-notification>"}]);
        assert_eq!(
            text(&answer(notice).plan),
            "noticed the finished background task"
        );
    }

    #[test]
    fn helpers_and_compaction_are_answered_in_kind() {
        let title = json!({"messages": [{"role": "user", "content": "say x"}], "output_config": {"format": {"schema":
            {"properties": {"title": {"type": "string"}, "isNew": {"type": "boolean"}, "kind": {"enum": ["a", "b"]}}}}}});
        let decision = decide(&title, Duration::ZERO);
        assert_eq!(decision.kind, Kind::Helper);
        let filled: Value = serde_json::from_str(&text(&decision.plan)).unwrap();
        assert_eq!(
            filled,
            json!({"title": "Lab session", "isNew": false, "kind": "a"})
        );
        let compact = request(
            json!([{"role": "user", "content": "Create a detailed summary of the conversation"}]),
        );
        let decision = decide(&compact, Duration::from_secs(2));
        assert_eq!(
            (decision.kind, decision.plan.delay),
            (Kind::Compact, Duration::from_secs(2))
        );
        let asked = request(
            json!([{"role": "user", "content": "Create a detailed summary of it. Additional: take 9 seconds"}]),
        );
        let decision = decide(&asked, Duration::from_secs(2));
        assert_eq!(decision.plan.delay, Duration::from_secs(9));
    }
}
