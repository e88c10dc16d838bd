//! The catalogue of situations against the tests: every id of docs/cases.txt is carried by a test's name
//! or listed in docs/cases-open.txt, never both, and that list only shrinks. Reads names alone; whether a
//! test deserves its id is for its reader.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

use regex::Regex;

use super::{Breach, Source};

const CATALOGUE: &str = "docs/cases.txt";
const OPEN: &str = "docs/cases-open.txt";

type Ids = BTreeSet<String>;

/// What is wrong between catalogue, open list and tests; `earlier` are the open lists of the past.
pub(super) fn breaches(sources: &[Source], earlier: &[Ids]) -> Vec<Breach> {
    let listed = |path: &str| {
        sources
            .iter()
            .find(|source| source.path == path)
            .map(|source| ids_listed(&source.text))
            .unwrap_or_default()
    };
    let catalogue = listed(CATALOGUE);
    let open = listed(OPEN);
    let tested = ids_tested(sources);
    let breach = |place: &str, what: String| Breach {
        place: place.to_owned(),
        what,
    };

    let mut breaches = Vec::new();
    for id in &catalogue {
        match (tested.get(id), open.contains(id)) {
            (Some(place), true) => breaches.push(breach(
                place,
                format!("carries {id}, so take {id} out of {OPEN}"),
            )),
            (None, false) => breaches.push(breach(
                CATALOGUE,
                format!("no test carries {id}, and {OPEN} does not list it"),
            )),
            (Some(_), false) | (None, true) => {}
        }
    }
    for (id, place) in tested.iter().filter(|(id, _)| !catalogue.contains(*id)) {
        breaches.push(breach(
            place,
            format!("carries {id}, which {CATALOGUE} does not know"),
        ));
    }
    // What a recording is evidence for; the test that replays it carries the id in its own name.
    for source in sources.iter().filter(|source| source.is(&["/expect"])) {
        for (number, line) in source.lines() {
            let Some(ids) = line.strip_prefix("cases ") else {
                continue;
            };
            for id in ids.split_whitespace().filter(|id| !catalogue.contains(*id)) {
                breaches.push(source.breach(
                    number,
                    format!("names {id}, which {CATALOGUE} does not know"),
                ));
            }
        }
    }
    for id in open.difference(&catalogue) {
        breaches.push(breach(
            OPEN,
            format!("lists {id}, which {CATALOGUE} does not know"),
        ));
    }
    for id in &open {
        if earlier.iter().any(|list| !list.contains(id)) {
            breaches.push(breach(
                OPEN,
                format!("{id} was not open before: the list only shrinks"),
            ));
        }
    }
    breaches
}

/// The open lists of every commit that leads here and touched the file; none where Git or the history is
/// missing (an archive, a shallow clone), since then there is nothing to compare with.
#[expect(clippy::disallowed_methods, reason = "the history is Git's to tell")]
pub(super) fn earlier_open_lists(root: &Path) -> Vec<Ids> {
    let git = |arguments: &[&str]| {
        let output = Command::new("git")
            .arg("-C")
            .arg(root)
            .args(arguments)
            .output()
            .ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then_some(text)
    };
    git(&["log", "--format=%H", "--diff-filter=AM", "--", OPEN])
        .unwrap_or_default()
        .lines()
        .filter_map(|commit| git(&["show", &format!("{commit}:{OPEN}")]))
        .map(|text| ids_listed(&text))
        .collect()
}

/// The ids at the start of lines; `#` opens a comment.
fn ids_listed(text: &str) -> Ids {
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_whitespace().next())
        .map(str::to_owned)
        .collect()
}

/// Every id that a test's name carries, with the place of one such test.
fn ids_tested(sources: &[Source]) -> BTreeMap<String, String> {
    static TITLE: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r#"\b(?:test|it|describe)\s*\(\s*["'`]([^"'`]*)"#).expect("covered by a test")
    });
    static FUNCTION: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"^\s*(?:pub )?(?:async )?fn (\$?\w+)").expect("covered by a test")
    });
    let mut tested = BTreeMap::new();
    for source in sources {
        let mut note = |number: usize, ids: Vec<String>| {
            for id in ids {
                tested
                    .entry(id)
                    .or_insert_with(|| format!("{}:{number}", source.path));
            }
        };
        if source.is(&[".rs"]) {
            // An attribute that speaks of a test makes the next function one.
            let mut marked = false;
            for (number, line) in source.lines() {
                let trimmed = line.trim_start();
                if trimmed.starts_with("#[") {
                    marked |= trimmed.contains("test");
                } else if let Some(function) = FUNCTION.captures(line) {
                    if marked {
                        note(number, ids_of_function(&function[1]));
                    }
                    marked = false;
                }
            }
        } else if source.is(&[".test.ts", ".test.mjs", ".test.js"]) {
            for (number, line) in source.lines() {
                for title in TITLE.captures_iter(line) {
                    note(number, ids_of_title(&title[1]));
                }
            }
        }
    }
    tested
}

/// `q16_q17_menus` carries Q16 and Q17. After the first id, `sNN` names a recording, not a case.
fn ids_of_function(name: &str) -> Vec<String> {
    let mut ids: Vec<String> = Vec::new();
    for part in name.split('_') {
        if !is_id(part) || (!ids.is_empty() && part.starts_with('s')) {
            break;
        }
        ids.push(part.to_uppercase());
    }
    ids
}

/// "W02, W03: composition" carries W02 and W03.
fn ids_of_title(title: &str) -> Vec<String> {
    title
        .split([' ', ',', ':', '+', '/'])
        .filter(|part| !part.is_empty())
        .take_while(|part| is_id(&part.to_lowercase()))
        .map(str::to_uppercase)
        .collect()
}

fn is_id(part: &str) -> bool {
    matches!(part.as_bytes(), [b'a'..=b'z', b'0'..=b'9', b'0'..=b'9'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source {
            path: path.to_owned(),
            text: text.to_owned(),
        }
    }

    fn ids(list: &[&str]) -> Ids {
        list.iter().map(|id| (*id).to_owned()).collect()
    }

    /// What is found with a catalogue of P01, P02 and W02, an open list, one Rust and one browser test file.
    fn found(open: &str, rust: &str, script: &str, earlier: &[Ids]) -> Vec<String> {
        let sources = [
            source(CATALOGUE, "# Plain\nP01 one\nP02 two\n\nW02 three\n"),
            source(OPEN, open),
            source("core/tests/scripts.rs", rust),
            source("e2e/browser/ime.test.mjs", script),
        ];
        breaches(&sources, earlier)
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    const RUST: &str = "#[test]\nfn p01_p02_start() {}\nfn p09_no_test() {}\n";
    const SCRIPT: &str = "test(\"W02 composition\", async () => {});\n";

    #[test]
    fn every_case_in_a_test_or_open_is_well() {
        assert_eq!(found("", RUST, SCRIPT, &[]), [""; 0]);
        assert_eq!(
            found("W02 later\n", RUST, "", &[ids(&["P01", "W02"])]),
            [""; 0]
        );
    }

    #[test]
    fn a_case_in_neither_place_is_found() {
        assert_eq!(found("", RUST, "", &[]).len(), 1);
    }

    #[test]
    fn a_case_in_both_places_is_found() {
        assert_eq!(found("P01\n", RUST, SCRIPT, &[]).len(), 1);
    }

    #[test]
    fn an_unknown_id_is_found() {
        assert_eq!(found("Z99\n", RUST, SCRIPT, &[]).len(), 1);
        let rust = format!("{RUST}#[tokio::test(start_paused = true)]\nasync fn x77_odd() {{}}\n");
        assert_eq!(found("", &rust, SCRIPT, &[]).len(), 1);
    }

    #[test]
    fn a_recording_of_an_unknown_case_is_found() {
        let recording = source("wire/tests/recordings/s05/expect", "cases P01 Q99\nt0 1\n");
        let listed = source(CATALOGUE, "P01 one\n");
        let open = source(OPEN, "P01\n");
        assert_eq!(breaches(&[recording, listed, open], &[]).len(), 1);
    }

    #[test]
    fn an_open_list_that_grows_is_found() {
        assert_eq!(
            found("W02\n", RUST, "", &[ids(&["W02"]), ids(&["P01"])]).len(),
            1
        );
    }

    #[test]
    fn names_carry_ids_at_their_front() {
        assert_eq!(ids_of_function("q16_q17_menus"), ["Q16", "Q17"]);
        assert_eq!(ids_of_function("q01_s05_left_alone"), ["Q01"]);
        assert_eq!(ids_of_function("s01_foreign_origin"), ["S01"]);
        assert_eq!(ids_of_function("start_p01"), [""; 0]);
        assert_eq!(ids_of_title("W02, W03: composition"), ["W02", "W03"]);
        assert_eq!(ids_of_title("types in the terminal"), [""; 0]);
    }
}
