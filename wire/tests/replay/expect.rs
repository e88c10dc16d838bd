//! The `expect` file of a recording: its format is described in `recordings/README.md`.

use std::collections::BTreeMap;

/// A whole file. All times but `t0` are ms since the start of the run.
#[derive(Debug, Default)]
pub struct Expect {
    pub cases: Vec<String>,
    /// Unix ms of the run's zero.
    pub t0: i64,
    pub agents: BTreeMap<char, Judged>,
}

/// What is said about one agent.
#[derive(Debug, Default)]
pub struct Judged {
    pub pid: u32,
    pub died: Option<i64>,
    /// Stopped and continued moments, in order.
    pub stops: Vec<(i64, bool)>,
    /// From here on the process uses no CPU.
    pub quiet: Option<i64>,
    pub changes: Vec<Window>,
    pub moments: Vec<Moment>,
    pub pushes: Option<Range>,
    pub withdrawn: Option<Range>,
    pub silent: Option<Range>,
}

/// A change of badge.
#[derive(Debug)]
pub struct Window {
    pub from: i64,
    pub to: i64,
    pub badge: Badge,
    pub labels: Vec<String>,
}

/// What holds at one moment.
#[derive(Debug)]
pub struct Moment {
    pub at: i64,
    pub badge: Badge,
    pub labels: Vec<String>,
    pub ask: Option<String>,
}

/// The word and what belongs to it for good: what is asked, or the outcome. `what` may be left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Badge {
    pub word: String,
    pub what: Option<String>,
}

impl Badge {
    /// The seen badge is the one meant.
    pub fn admits(&self, seen: &Badge) -> bool {
        self.word == seen.word && (self.what.is_none() || self.what == seen.what)
    }
}

impl std::fmt::Display for Badge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.what {
            Some(what) => write!(f, "{} {what}", self.word),
            None => f.write_str(&self.word),
        }
    }
}

/// `n` or `n..m`, both ends included.
#[derive(Clone, Copy, Debug)]
pub struct Range {
    pub from: i64,
    pub to: i64,
}

impl Range {
    fn parse(text: &str) -> Option<Self> {
        let (from, to) = text.split_once("..").unwrap_or((text, text));
        Some(Self {
            from: from.parse().ok()?,
            to: to.parse().ok()?,
        })
    }

    pub fn has(self, value: i64) -> bool {
        (self.from..=self.to).contains(&value)
    }
}

impl std::fmt::Display for Range {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.from == self.to {
            write!(f, "{}", self.from)
        } else {
            write!(f, "{}..{}", self.from, self.to)
        }
    }
}

/// Reads a file; a line that can't be read fails the test that needs it.
pub fn parse(text: &str) -> Expect {
    let mut expect = Expect::default();
    for (number, line) in text.lines().enumerate() {
        let words = words(line);
        if !words.is_empty() {
            statement(&mut expect, &words)
                .unwrap_or_else(|| panic!("expect, line {}: `{line}`", number + 1));
        }
    }
    expect
}

fn statement(expect: &mut Expect, words: &[String]) -> Option<()> {
    let (first, rest) = words.split_first()?;
    match first.as_str() {
        "cases" => expect.cases = rest.to_vec(),
        "t0" => expect.t0 = rest.first()?.parse().ok()?,
        "agent" => {
            let judged = Judged {
                pid: rest.get(1)?.parse().ok()?,
                ..Judged::default()
            };
            expect.agents.insert(letter(rest.first()?)?, judged);
        }
        "died" => agent(expect, rest)?.died = Some(rest.get(1)?.parse().ok()?),
        "stopped" | "continued" => {
            let at = rest.get(1)?.parse().ok()?;
            agent(expect, rest)?.stops.push((at, first == "stopped"));
        }
        "quiet" => agent(expect, rest)?.quiet = Some(rest.get(1)?.parse().ok()?),
        "pushes" => agent(expect, rest)?.pushes = Some(Range::parse(rest.get(1)?)?),
        "withdrawn" => agent(expect, rest)?.withdrawn = Some(Range::parse(rest.get(1)?)?),
        "silent" => agent(expect, rest)?.silent = Some(Range::parse(rest.get(1)?)?),
        "at" => {
            let at = rest.first()?.parse().ok()?;
            let (mut labels, ask) = match rest.iter().position(|word| word == "ask") {
                Some(mark) => (rest[2..mark].to_vec(), Some(rest.get(mark + 1)?.clone())),
                None => (rest.get(2..)?.to_vec(), None),
            };
            let badge = badge(&mut labels)?;
            agent(expect, &rest[1..])?.moments.push(Moment {
                at,
                badge,
                labels,
                ask,
            });
        }
        _ => {
            let window = Range::parse(rest.first()?)?;
            let mut labels = rest.get(1..)?.to_vec();
            let badge = badge(&mut labels)?;
            agent(expect, words)?.changes.push(Window {
                from: window.from,
                to: window.to,
                badge,
                labels,
            });
        }
    }
    Some(())
}

fn agent<'a>(expect: &'a mut Expect, words: &[String]) -> Option<&'a mut Judged> {
    expect.agents.get_mut(&letter(words.first()?)?)
}

fn letter(word: &str) -> Option<char> {
    let mut chars = word.chars();
    chars
        .next()
        .filter(|c| c.is_ascii_uppercase() && chars.next().is_none())
}

/// Takes the badge off the front of `words` and leaves the labels.
fn badge(words: &mut Vec<String>) -> Option<Badge> {
    let known = ["none", "idle", "busy", "needs-input", "review", "unknown"];
    if words.is_empty() {
        return None;
    }
    let word = words.remove(0);
    let belongs = |what: &String| match word.as_str() {
        "needs-input" => [
            "permission",
            "question",
            "plan",
            "form",
            "dialog",
            "startup",
        ]
        .contains(&what.as_str()),
        "review" => what == "finished" || what.starts_with("failed("),
        _ => false,
    };
    let what = words.first().filter(|what| belongs(what)).cloned();
    if what.is_some() {
        words.remove(0);
    }
    known
        .contains(&word.as_str())
        .then_some(Badge { word, what })
}

/// Words of a line up to `#`; a text in double quotes is one word.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = line.trim_start();
    while !rest.is_empty() && !rest.starts_with('#') {
        let (word, tail) = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
            None => rest.split_once(char::is_whitespace).unwrap_or((rest, "")),
        };
        words.push(word.to_owned());
        rest = tail.trim_start();
    }
    words
}
