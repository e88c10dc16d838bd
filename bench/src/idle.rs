//! What ten idle tabs cost: processor time, memory, and processes started. A process that was started and has
//! ended leaves its page faults in the server's account (field 11 of `/proc/PID/stat`), so none can be missed
//! between two looks.

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use purplemux_lab::clock::until;

use crate::numbers::single;
use crate::server::Server;

const TABS: usize = 10;

/// What comes with opening tabs must be over before the look begins.
const SETTLE: Duration = Duration::from_secs(5);

/// Measures and prints; true if the promises were kept.
pub fn measure(seconds: u64) -> anyhow::Result<bool> {
    let server = Server::start()?;
    for _ in 1..TABS {
        server.tab()?;
    }
    pass(SETTLE);
    let before = Account::of(server.pid()?)?;
    pass(Duration::from_secs(seconds));
    let after = Account::of(server.pid()?)?;

    let busy = after.cpu_seconds_since(&before) / seconds as f64 * 100.0;
    let mut kept = single("processor, 10 idle tabs", busy, 1.0, "% of a core");
    kept &= single(
        "memory, 10 idle tabs",
        after.rss_kib as f64 / 1024.0,
        40.0,
        "MiB",
    );
    let started = before.of_children != after.of_children || before.children != after.children;
    println!(
        "{:<50} {:>9}  promise: none",
        "processes started meanwhile",
        if started { "some" } else { "none" }
    );
    kept &= !started;
    Ok(kept)
}

/// Lets time pass; what is measured is that nothing happens in it.
fn pass(time: Duration) {
    until::<()>(time, || None);
}

/// What a process has cost so far.
pub struct Account {
    cpu_ticks: u64,
    /// Page faults and processor time of children that have ended.
    of_children: (u64, u64),
    /// Children that live.
    children: Vec<String>,
    /// Resident memory now.
    pub rss_kib: u64,
}

impl Account {
    /// Of a process that lives.
    pub fn of(pid: u32) -> anyhow::Result<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
        // The name in parentheses may hold spaces.
        let (_, rest) = stat.rsplit_once(") ").context("a stat line")?;
        let fields: Vec<&str> = rest.split(' ').collect();
        // `rest` begins with field 3.
        let field = |number: usize| -> anyhow::Result<u64> {
            fields
                .get(number - 3)
                .and_then(|text| text.parse().ok())
                .with_context(|| format!("field {number} of /proc/{pid}/stat"))
        };
        let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
        let rss_kib = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .and_then(|rest| rest.trim().strip_suffix("kB"))
            .and_then(|text| text.trim().parse().ok())
            .context("VmRSS")?;
        let mut children = Vec::new();
        for task in fs::read_dir(format!("/proc/{pid}/task"))? {
            let listed = fs::read_to_string(task?.path().join("children")).unwrap_or_default();
            children.extend(listed.split_whitespace().map(str::to_owned));
        }
        children.sort();
        ensure!(rss_kib > 0, "the server has ended");
        Ok(Self {
            cpu_ticks: field(14)? + field(15)?,
            of_children: (field(11)?, field(16)? + field(17)?),
            children,
            rss_kib,
        })
    }

    /// Processor time that it has used since, in seconds.
    pub fn cpu_seconds_since(&self, before: &Self) -> f64 {
        let ticks = rustix::param::clock_ticks_per_second() as f64;
        (self.cpu_ticks - before.cpu_ticks) as f64 / ticks
    }
}
