//! The numbers: every latency of a run, kept in `e2e/results/latency.json` and as a table beside it.
//!
//! A number is reported always and fails a test only above five times its deadline: the machine of a test is shared,
//! and the deadline itself is asserted where the clock is ours.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::Path;

use anyhow::Context as _;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::home::e2e_dir;

/// All measures of all tests, as stored.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Book {
    measures: BTreeMap<String, Measure>,
}

/// One kind of latency.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Measure {
    deadline_ms: f64,
    count: usize,
    median_ms: f64,
    p95_ms: f64,
    max_ms: f64,
    /// By test, so that a repeated test replaces its own numbers.
    tests: BTreeMap<String, Vec<f64>>,
}

/// Collects the numbers of one test; writes them when dropped, also when the test failed.
pub struct Ledger {
    test: String,
    measures: BTreeMap<String, (f64, Vec<f64>)>,
}

impl Ledger {
    /// For the test of this name.
    pub fn new(test: &str) -> Self {
        Self {
            test: test.to_owned(),
            measures: BTreeMap::new(),
        }
    }

    /// Takes a number down; true if it is within five times its deadline. Negative: the badge was there before
    /// Claude's own write, because a hook came first.
    #[must_use]
    pub fn record(&mut self, measure: &str, deadline_ms: f64, from_ns: i64, to_ns: i64) -> bool {
        // Nanoseconds of a test fit into a float's 53 bits.
        let ms = (to_ns - from_ns) as f64 / 1e6;
        self.add(measure, deadline_ms, ms);
        ms <= 5.0 * deadline_ms
    }

    /// Takes a number down that is no span between two stamps.
    pub fn add(&mut self, measure: &str, deadline: f64, value: f64) {
        let runs = self.measures.entry(measure.to_owned());
        runs.or_insert((deadline, Vec::new())).1.push(value);
    }

    /// One line per measure of this test.
    pub fn report(&self) -> String {
        let mut text = String::new();
        for (measure, (deadline, runs)) in &self.measures {
            let runs: Vec<String> = runs.iter().map(|ms| format!("{ms:.1}")).collect();
            writeln!(
                text,
                "{}: {measure}: {} ms (deadline {deadline} ms)",
                self.test,
                runs.join(", ")
            )
            .expect("a string takes everything");
        }
        text
    }

    fn save(&self, dir: &Path) -> anyhow::Result<()> {
        fs::create_dir_all(dir)?;
        let lock = File::create(dir.join("latency.lock"))?;
        flock(&lock, FlockOperation::LockExclusive)?;
        let path = dir.join("latency.json");
        let mut book: Book = match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).unwrap_or_default(),
            Err(_) => Book::default(),
        };
        for measure in book.measures.values_mut() {
            measure.tests.remove(&self.test);
        }
        for (name, (deadline_ms, runs)) in &self.measures {
            let measure = book.measures.entry(name.clone()).or_default();
            measure.deadline_ms = *deadline_ms;
            measure.tests.insert(self.test.clone(), runs.clone());
        }
        for measure in book.measures.values_mut() {
            measure.sum_up();
        }
        book.measures.retain(|_, measure| measure.count > 0);
        fs::write(&path, serde_json::to_vec_pretty(&book)?)
            .with_context(|| format!("write {}", path.display()))?;
        fs::write(dir.join("latency.txt"), table(&book))?;
        Ok(())
    }
}

impl Drop for Ledger {
    fn drop(&mut self) {
        if self.measures.is_empty() {
            return;
        }
        eprint!("{}", self.report());
        if let Err(why) = self.save(&e2e_dir().join("results")) {
            eprintln!("the numbers are not saved: {why:#}");
        }
    }
}

impl Measure {
    fn sum_up(&mut self) {
        let mut all: Vec<f64> = self.tests.values().flatten().copied().collect();
        all.sort_by(f64::total_cmp);
        self.count = all.len();
        self.median_ms = rank(&all, 50);
        self.p95_ms = rank(&all, 95);
        self.max_ms = rank(&all, 100);
    }
}

/// The smallest value that `percent` of the sorted ones do not exceed.
fn rank(sorted: &[f64], percent: usize) -> f64 {
    let place = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(place).copied().unwrap_or(0.0)
}

fn table(book: &Book) -> String {
    let mut text = format!(
        "{:<44} {:>5} {:>9} {:>9} {:>9} {:>9}\n",
        "ms", "runs", "median", "p95", "max", "deadline"
    );
    for (name, m) in &book.measures {
        writeln!(
            text,
            "{name:<44} {:>5} {:>9.1} {:>9.1} {:>9.1} {:>9.0}",
            m.count, m.median_ms, m.p95_ms, m.max_ms, m.deadline_ms
        )
        .expect("a string takes everything");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_values_that_were_measured() {
        let twenty: Vec<f64> = (1..=20).map(f64::from).collect();
        assert_eq!(
            (rank(&twenty, 50), rank(&twenty, 95), rank(&twenty, 100)),
            (10.0, 19.0, 20.0)
        );
        assert_eq!((rank(&[7.0], 50), rank(&[], 95)), (7.0, 0.0));
    }

    #[test]
    fn a_repeated_test_replaces_its_own_numbers_only() {
        let dir = tempfile::tempdir().unwrap();
        for (test, ms) in [("a", 10), ("b", 20), ("a", 30)] {
            let mut ledger = Ledger::new(test);
            assert!(ledger.record("file to line", 300.0, 0, ms * 1_000_000));
            ledger.save(dir.path()).unwrap();
            ledger.measures.clear();
        }
        let book: Book =
            serde_json::from_slice(&fs::read(dir.path().join("latency.json")).unwrap()).unwrap();
        let measure = &book.measures["file to line"];
        assert_eq!((measure.count, measure.max_ms), (2, 30.0));
        assert!(
            fs::read_to_string(dir.path().join("latency.txt"))
                .unwrap()
                .contains("file to line")
        );
    }

    #[test]
    fn five_times_the_deadline_is_the_limit() {
        let mut ledger = Ledger::new("limit");
        assert!(ledger.record("x", 300.0, 0, 1_500_000_000));
        assert!(!ledger.record("x", 300.0, 0, 1_500_100_000));
        assert!(
            ledger.record("x", 300.0, 5_000_000, 0),
            "a hook that came first is no fault"
        );
        ledger.measures.clear();
    }
}
