//! `cargo xtask total`: sums what the runners of a test run reported. Reads their machine-readable reports
//! alone, never their screens, and never lets a part that ran nothing pass for one that passed.

use std::fmt::Write as _;
use std::ops::AddAssign;
use std::path::Path;

use anyhow::{Context, anyhow, bail};

/// What one report, or all of them, came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    passed: u64,
    failed: u64,
    skipped: u64,
}

impl AddAssign for Count {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

/// Prints a line per part and, last, the sum alone on its line. True when nothing failed.
///
/// # Errors
/// `parts` can't be read, or a line of it is not four fields. A report that is missing or broken is no
/// error here but one failed test of its part.
pub fn run(parts: &Path) -> anyhow::Result<bool> {
    let text =
        std::fs::read_to_string(parts).with_context(|| format!("reading {}", parts.display()))?;
    let (table, sum) = total(&text, |report| {
        std::fs::read_to_string(report).with_context(|| format!("reading {report}"))
    })?;
    print!("{table}");
    println!(
        "{} passed, {} failed, {} skipped",
        sum.passed, sum.failed, sum.skipped
    );
    Ok(sum.failed == 0)
}

/// The table of all parts and their sum; `read` brings a report's text.
fn total(
    parts: &str,
    read: impl Fn(&str) -> anyhow::Result<String>,
) -> anyhow::Result<(String, Count)> {
    let mut table = String::new();
    let mut sum = Count::default();
    for line in parts.lines() {
        let [kind, name, code, report] = line.split('\t').collect::<Vec<_>>()[..] else {
            bail!("not a part: {line:?}");
        };
        let code: i32 = code
            .parse()
            .with_context(|| format!("exit code of {name}"))?;
        let counted = match kind {
            "check" => Ok(Count::default()),
            "junit" => read(report).and_then(|text| junit(&text)),
            "vitest" => read(report).and_then(|text| vitest(&text)),
            other => bail!("{name}: no such kind of part: {other:?}"),
        };
        let (count, note) = match counted {
            Ok(count) => verdict(kind, code, count),
            Err(error) => (
                Count {
                    failed: 1,
                    ..Count::default()
                },
                format!("no report ({error:#}), exit code {code}"),
            ),
        };
        sum += count;
        let Count {
            passed,
            failed,
            skipped,
        } = count;
        writeln!(
            table,
            "{name:12} {passed:6} passed {failed:4} failed {skipped:4} skipped  {note}"
        )?;
    }
    if sum == Count::default() {
        sum.failed = 1;
        table.push_str("nothing ran\n");
    }
    Ok((table, sum))
}

/// What a part comes to when its exit code is taken together with its report: the code alone decides a
/// check, an empty report is a failure, and so is a bad code that no failed test explains.
fn verdict(kind: &str, code: i32, mut count: Count) -> (Count, String) {
    if kind == "check" {
        if code == 0 {
            count.passed = 1;
            return (count, String::new());
        }
        count.failed = 1;
        return (count, format!("exit code {code}"));
    }
    if count.passed + count.failed == 0 {
        count.failed = 1;
        return (count, format!("reported no test, exit code {code}"));
    }
    if code != 0 && count.failed == 0 {
        count.failed = 1;
        return (count, format!("exit code {code} though no test failed"));
    }
    (count, String::new())
}

/// Counts the test cases of a JUnit report as cargo-nextest and Node's runner write it. A case is failed
/// when it holds `failure` or `error`, skipped when it holds `skipped`, however deep its suite lies.
fn junit(text: &str) -> anyhow::Result<Count> {
    let document = roxmltree::Document::parse(text).context("not XML")?;
    let mut count = Count::default();
    for case in document
        .descendants()
        .filter(|node| node.has_tag_name("testcase"))
    {
        let holds = |name: &str| case.children().any(|child| child.has_tag_name(name));
        if holds("failure") || holds("error") {
            count.failed += 1;
        } else if holds("skipped") {
            count.skipped += 1;
        } else {
            count.passed += 1;
        }
    }
    Ok(count)
}

/// Counts vitest's JSON report (the format of Jest's). A file that could not be loaded has no test in it
/// and is one failure.
fn vitest(text: &str) -> anyhow::Result<Count> {
    let report: serde_json::Value = serde_json::from_str(text).context("not JSON")?;
    let number = |key: &str| {
        report[key]
            .as_u64()
            .ok_or_else(|| anyhow!("no number {key:?} in the report"))
    };
    let files = report["testResults"]
        .as_array()
        .ok_or_else(|| anyhow!("no testResults in the report"))?;
    let unloaded = files
        .iter()
        .filter(|file| {
            file["status"] == "failed"
                && file["assertionResults"]
                    .as_array()
                    .is_none_or(Vec::is_empty)
        })
        .count() as u64;
    Ok(Count {
        passed: number("numPassedTests")?,
        failed: number("numFailedTests")? + unloaded,
        skipped: number("numPendingTests")? + number("numTodoTests")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(passed: u64, failed: u64, skipped: u64) -> Count {
        Count {
            passed,
            failed,
            skipped,
        }
    }

    const NEXTEST: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="nextest-run" tests="3" failures="1" errors="0">
  <testsuite name="purplemux-core" tests="2" disabled="0" errors="0" failures="1">
    <testcase name="a" classname="core" time="0.1"/>
    <testcase name="b" classname="core" time="0.1"><failure type="test failure">x &lt; y</failure></testcase>
  </testsuite>
  <testsuite name="xtask" tests="1"><testcase name="c" classname="xtask"/></testsuite>
</testsuites>"#;

    const NODE: &str = r#"<?xml version="1.0" encoding="utf-8"?>
<testsuites>
  <testsuite name="a page" time="1" tests="2" failures="0" skipped="1">
    <testcase name="shows a dot" time="0.5" classname="test"/>
    <testcase name="later" time="0" classname="test"><skipped type="skipped" message="true"/></testcase>
  </testsuite>
  <testcase name="alone" time="0.1" classname="test"/>
</testsuites>"#;

    const VITEST: &str = r#"{"numTotalTests":4,"numPassedTests":3,"numFailedTests":0,"numPendingTests":1,
        "numTodoTests":0,"testResults":[
          {"name":"a","status":"passed","assertionResults":[{"status":"passed"}]},
          {"name":"b","status":"failed","assertionResults":[],"message":"cannot import"}]}"#;

    #[test]
    fn reports_are_counted_by_their_cases() {
        assert_eq!(junit(NEXTEST).unwrap(), count(2, 1, 0));
        assert_eq!(junit(NODE).unwrap(), count(2, 0, 1));
        assert_eq!(vitest(VITEST).unwrap(), count(3, 1, 1));
    }

    #[test]
    fn the_sum_is_over_all_parts() {
        let parts =
            "check\tfmt\t0\t-\ncheck\tclippy\t101\t-\njunit\trust\t100\tn\nvitest\tweb\t1\tv\n";
        let (table, sum) = total(parts, |report| {
            Ok(if report == "n" { NEXTEST } else { VITEST }.to_owned())
        })
        .unwrap();
        assert_eq!(sum, count(6, 3, 1));
        assert_eq!(table.lines().count(), 4);
    }

    #[test]
    fn a_suite_that_reports_no_test_is_a_failure() {
        let none = r#"<testsuites name="nextest-run" tests="0"/>"#;
        for (report, code) in [(none, "0"), (none, "4"), ("", "0"), ("<testsuites>", "0")] {
            let parts = format!("junit\trust\t{code}\tr\n");
            let (_, sum) = total(&parts, |_| Ok(report.to_owned())).unwrap();
            assert_eq!(sum, count(0, 1, 0), "{report:?}, exit code {code}");
        }
        let (_, sum) = total("junit\trust\t0\tr\n", |_| bail!("no such file")).unwrap();
        assert_eq!(sum, count(0, 1, 0));
    }

    #[test]
    fn a_bad_exit_code_without_a_failed_test_is_a_failure() {
        let (_, sum) = total("junit\tbrowser\t1\tr\n", |_| Ok(NODE.to_owned())).unwrap();
        assert_eq!(sum, count(2, 1, 1));
    }

    #[test]
    fn a_run_of_nothing_is_a_failure() {
        assert_eq!(total("", |_| bail!("unread")).unwrap().1, count(0, 1, 0));
    }
}
