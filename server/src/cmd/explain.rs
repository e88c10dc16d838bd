//! `purplemux explain`: why a session shows what it shows, and one agent's journal as a recorded run. What is
//! printed is what the server says.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use purplemux_wire::explain::{Explanation, Source, Stand, Testimony, Transition, span};
use purplemux_wire::journal;
use purplemux_wire::recording;
use serde::Deserialize;

use super::client::{Client, block_on, plain, print, table};
use super::{Common, status};

/// Its options.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// A tab's id, or an agent as host:pid:start
    #[arg(value_name = "TAB")]
    item: String,
    /// Write the agent's journal into this new directory, as a recorded run that can be played again
    #[arg(long, value_name = "DIR", conflicts_with = "json")]
    export: Option<PathBuf>,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Deserialize)]
struct About {
    agent: String,
    records: Vec<String>,
}

/// Runs it.
///
/// # Errors
/// No server runs, there is no such session, or the directory can't be written.
pub fn run(options: &Options) -> Result<()> {
    let client = Client::new(&options.common.home()?);
    let item = percent(&options.item);
    if let Some(dir) = &options.export {
        let about: About = block_on(client.get(&format!("/api/journal?item={item}")))?;
        return export(&about, dir);
    }
    let said: Explanation = block_on(client.get(&format!("/api/explain?item={item}")))?;
    if options.common.json {
        return print(&serde_json::to_string(&said)?);
    }
    print(&text(&said))
}

/// A value of a query.
fn percent(text: &str) -> String {
    text.bytes().fold(String::new(), |mut out, byte| {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.') {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
        out
    })
}

fn text(said: &Explanation) -> String {
    let mut out = format!("{}: {}\n", plain(&said.title), plain(&said.sentence));
    let rows = |all: &[Testimony]| -> Vec<Vec<String>> {
        all.iter().map(|line| row(line, said.now_ms)).collect()
    };
    let head = ["WITNESS", "SAID", "AT", "DISTANCE", ""];
    let mut witnesses = vec![head.map(str::to_owned).to_vec()];
    witnesses.extend(rows(&said.witnesses));
    out.push_str(&format!("\n{}\n", table(&witnesses)));
    if !said.evidence.is_empty() {
        let head = ["EVIDENCE", "SAID", "AT", "DISTANCE", ""];
        let mut evidence = vec![head.map(str::to_owned).to_vec()];
        evidence.extend(rows(&said.evidence));
        out.push_str(&format!("\n{}\n", table(&evidence)));
    }
    if !said.transitions.is_empty() {
        let path: Vec<String> = said.transitions.iter().map(transition).collect();
        out.push_str(&format!("\n{}\n", path.join(" → ")));
    }
    out.trim_end().to_owned()
}

fn row(line: &Testimony, now_ms: i64) -> Vec<String> {
    let source = match line.source {
        Source::Hook => "hook",
        Source::File => "status file",
        Source::Transcript => "transcript",
        Source::Process => "process",
        Source::Person => "person",
        Source::Restart => "restart",
        Source::Verdict => "badge",
    };
    let distance = match (line.stand, line.distance_ms, line.at_ms) {
        (Stand::Decided, _, Some(at_ms)) | (_, None, Some(at_ms)) => {
            format!("{} ago", span(now_ms - at_ms))
        }
        (_, Some(ms), Some(_)) => distance(ms),
        (_, _, None) => String::new(),
    };
    let stand = match line.stand {
        Stand::Decided => "decided",
        Stand::Agrees => "agrees",
        Stand::Older => "disagrees, older",
        Stand::Disagrees => "disagrees",
        Stand::Silent => "",
        Stand::Missing => "missing",
    };
    vec![
        source.to_owned(),
        plain(&line.text),
        line.at_ms
            .map(|at_ms| clock_time(at_ms, "%H:%M:%S%.3f"))
            .unwrap_or_default(),
        distance,
        stand.to_owned(),
    ]
}

/// Signed, from the deciding event: `+0.407 s`, `-2m 04s`.
fn distance(ms: i64) -> String {
    let sign = if ms < 0 { '-' } else { '+' };
    let size = ms.saturating_abs();
    if size < 60_000 {
        format!("{sign}{}.{:03} s", size / 1000, size % 1000)
    } else {
        format!("{sign}{}", span(size))
    }
}

fn transition(transition: &Transition) -> String {
    let word = match transition.state {
        None => "none",
        Some(state) => status::word(state),
    };
    let failed = if transition.failed { " (failed)" } else { "" };
    format!(
        "{word}{failed} {}",
        clock_time(transition.at_ms, "%H:%M:%S")
    )
}

fn clock_time(ms: i64, format: &str) -> String {
    jiff::Timestamp::from_millisecond(ms)
        .unwrap_or_default()
        .to_zoned_datetime(jiff::tz::TimeZone::system())
        .strftime(format)
        .to_string()
}

fn export(about: &About, dir: &Path) -> Result<()> {
    let agent = journal::agent_key(&about.agent)
        .with_context(|| format!("{:?} is no agent", about.agent))?;
    let mut records = Vec::with_capacity(about.records.len());
    for line in &about.records {
        match journal::decode(line) {
            Ok(record) => records.push(record),
            Err(why) => eprintln!("purplemux: A record is left out: {why}."),
        }
    }
    let run = recording::of_agent(&agent, &records)
        .with_context(|| format!("The journal holds nothing about {}", about.agent))?;
    fs::create_dir_all(dir).with_context(|| format!("Can't make {}", dir.display()))?;
    if fs::read_dir(dir)?.next().is_some() {
        bail!(
            "{} is not empty; name a new directory, so that nothing written by hand is lost.",
            dir.display()
        );
    }
    for (name, text) in run.files() {
        let path = dir.join(name);
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .with_context(|| format!("Can't write {}", path.display()))?;
    }
    print(&format!(
        "{} records of {} are in {}; write what was right into {}.",
        records.len(),
        about.agent,
        dir.display(),
        dir.join("expect").display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_signed_and_to_the_millisecond() {
        let said = [0, 407, -90, 59_999, -124_000].map(distance);
        assert_eq!(
            said,
            ["+0.000 s", "+0.407 s", "-0.090 s", "+59.999 s", "-2m 04s"]
        );
    }

    #[test]
    fn an_agent_is_one_value_of_a_query() {
        assert_eq!(percent("my host:1:2&x"), "my%20host%3A1%3A2%26x");
    }
}
