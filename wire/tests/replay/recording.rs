//! A recording as a list of moments in order, still in Claude's own words.

use std::path::Path;

use serde_json::Value;

/// One line of a recording.
#[derive(Clone, Debug)]
pub struct Moment {
    /// Unix ms at which it is known to the server.
    pub at: i64,
    pub what: What,
}

#[derive(Clone, Debug)]
pub enum What {
    /// A name in the sessions folder came, or its content changed; `None`: it is gone.
    File {
        name: String,
        content: Option<String>,
    },
    /// A hook process started at `stamp`.
    Hook(Hook),
    /// A line came to a transcript.
    Line { path: String, line: String },
}

#[derive(Clone, Debug)]
pub struct Hook {
    pub id: String,
    /// Unix ms stamped by the hook process.
    pub stamp: i64,
    pub event: String,
    pub payload: String,
    pub claude_pid: Option<u32>,
    /// Pids of Claude processes further up.
    pub ancestors: Vec<u32>,
    pub tmux: Option<String>,
    pub tmux_pane: Option<String>,
    pub job: bool,
}

/// Reads the folder of one run.
pub fn load(dir: &Path) -> Vec<Moment> {
    let mut moments = Vec::new();
    for value in lines(&dir.join("sessions.jsonl")) {
        let gone = value["gone"].as_bool().unwrap_or(false);
        moments.push(Moment {
            at: millis(&value),
            what: What::File {
                name: string(&value, "file"),
                content: (!gone).then(|| value["value"].to_string()),
            },
        });
    }
    for (number, value) in lines(&dir.join("hooks.jsonl")).iter().enumerate() {
        moments.push(Moment {
            at: millis(value),
            what: What::Hook(hook(number, value)),
        });
    }
    for value in lines(&dir.join("transcript.jsonl")) {
        moments.push(Moment {
            at: millis(&value),
            what: What::Line {
                path: string(&value, "file"),
                line: value["line"].to_string(),
            },
        });
    }
    moments.sort_by_key(|moment| moment.at);
    moments
}

fn hook(number: usize, value: &Value) -> Hook {
    let env = |name: &str| value["env"][name].as_str().map(str::to_owned);
    let mut claudes: Vec<u32> = value["ppids"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|parent| parent[1] == "claude")
        .filter_map(|parent| u32::try_from(parent[0].as_u64()?).ok())
        .collect();
    let named = env("CLAUDE_PID").and_then(|pid| pid.parse().ok());
    let claude_pid = named.or_else(|| claudes.first().copied());
    claudes.retain(|&pid| Some(pid) != claude_pid);
    Hook {
        id: format!("hook-{number}"),
        stamp: millis(value),
        event: string(value, "event"),
        payload: value["input"].to_string(),
        claude_pid,
        ancestors: claudes,
        tmux: env("TMUX"),
        tmux_pane: env("TMUX_PANE"),
        job: env("CLAUDE_JOB_DIR").is_some(),
    }
}

fn lines(path: &Path) -> Vec<Value> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        // A run in which no hook fired has no such file.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Vec::new(),
        Err(error) => panic!("{}: {error}", path.display()),
    };
    let read = |line: &str| {
        serde_json::from_str(line).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    text.lines()
        .filter(|line| !line.trim().is_empty())
        .map(read)
        .collect()
}

fn millis(value: &Value) -> i64 {
    value["ts"]
        .as_i64()
        .expect("every line of a recording has `ts`")
}

fn string(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_default().to_owned()
}
