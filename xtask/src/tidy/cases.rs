//! The catalogue of situations against the tests: every id of docs/cases.txt has, of each kind that its
//! line names, a test that carries it, or the pair stands in docs/cases-open.txt, never both, and that list
//! only shrinks. Reads names and places alone; whether a test deserves its id is for its reader.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

use regex::Regex;

use super::{Breach, Source};

const CATALOGUE: &str = "docs/cases.txt";
const OPEN: &str = "docs/cases-open.txt";

/// An id and a kind of test.
type Pair = (String, String);
type Pairs = BTreeSet<Pair>;

/// What is wrong between catalogue, open list and tests; `earlier` are the open lists of the past.
pub(super) fn breaches(sources: &[Source], earlier: &[Pairs]) -> Vec<Breach> {
    let text = |path: &str| {
        sources
            .iter()
            .find(|source| source.path == path)
            .map(|source| source.text.as_str())
            .unwrap_or_default()
    };
    let catalogue = pairs_wanted(text(CATALOGUE));
    let open = pairs_listed(text(OPEN));
    let carried = carried(sources);
    let breach = |place: &str, what: String| Breach {
        place: place.to_owned(),
        what,
    };

    let mut breaches = Vec::new();
    for pair in &catalogue {
        let (id, kind) = pair;
        let place = carried
            .get(id)
            .and_then(|places| places.iter().find(|place| covers(place, kind)));
        match (place, open.contains(pair)) {
            (Some(place), true) => breaches.push(breach(
                place,
                format!("carries {id} as {kind}, so take `{id} {kind}` out of {OPEN}"),
            )),
            (None, false) => breaches.push(breach(
                CATALOGUE,
                format!("no test of kind {kind} carries {id}, and {OPEN} does not list it"),
            )),
            (Some(_), false) | (None, true) => {}
        }
    }
    for (id, places) in &carried {
        if !catalogue.iter().any(|(known, _)| known == id) {
            breaches.push(breach(
                &places[0],
                format!("carries {id}, which {CATALOGUE} does not know"),
            ));
        }
    }
    for (id, kind) in open.difference(&catalogue) {
        breaches.push(breach(
            OPEN,
            format!("lists `{id} {kind}`, which {CATALOGUE} does not ask for"),
        ));
    }
    for pair in &open {
        if earlier.iter().any(|list| !list.contains(pair)) {
            breaches.push(breach(
                OPEN,
                format!(
                    "`{} {}` was not open before: the list only shrinks",
                    pair.0, pair.1
                ),
            ));
        }
    }
    breaches
}

/// Whether a test at this place is of that kind. A fault or an attack may be tried at any depth that has
/// what is to be broken.
fn covers(place: &str, kind: &str) -> bool {
    let file = place.split(':').next().unwrap_or(place);
    let real = file
        .rsplit('/')
        .next()
        .is_some_and(|name| file.contains("/tests/") && name.starts_with("real"));
    let within = |folders: &[&str]| folders.iter().any(|folder| file.starts_with(folder));
    match kind {
        "script" => within(&["core/", "wire/", "server/src/", "web/src/"]),
        "recording" => within(&["wire/tests/"]),
        "real" => real,
        "server" => within(&["server/"]),
        "browser" => within(&["e2e/browser/"]),
        "bench" => within(&["bench/"]),
        "fault" => real || within(&["server/", "e2e/browser/"]),
        "security" => true,
        _ => false,
    }
}

/// The open lists of every commit that leads here and touched the file; none where Git or the history is
/// missing (an archive, a shallow clone), since then there is nothing to compare with. Lists from before
/// kinds were told apart name ids alone and say nothing about pairs.
#[expect(clippy::disallowed_methods, reason = "the history is Git's to tell")]
pub(super) fn earlier_open_lists(root: &Path) -> Vec<Pairs> {
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
        .filter(|text| rows(text).all(|row| row.split_whitespace().nth(1).is_some()))
        .map(|text| pairs_listed(&text))
        .collect()
}

/// The lines that say something; `#` opens a comment.
fn rows(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .filter(|line| !line.starts_with('#') && !line.trim().is_empty())
}

/// `P01 what happens | script, real` asks for two pairs.
fn pairs_wanted(text: &str) -> Pairs {
    rows(text)
        .filter_map(|row| {
            let (id, _) = row.split_once(' ')?;
            let (_, kinds) = row.rsplit_once('|')?;
            Some(
                kinds
                    .split(',')
                    .map(move |kind| (id.to_owned(), kind.trim().to_owned())),
            )
        })
        .flatten()
        .collect()
}

/// `P01 real` is one pair.
fn pairs_listed(text: &str) -> Pairs {
    rows(text)
        .filter_map(|row| {
            let mut words = row.split_whitespace();
            Some((
                words.next()?.to_owned(),
                words.next().unwrap_or_default().to_owned(),
            ))
        })
        .collect()
}

/// Every id that a test, a measurement or a recording carries, with the places (`file:line`).
fn carried(sources: &[Source]) -> BTreeMap<String, Vec<String>> {
    static TITLE: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r#"\b(?:test|it|describe)\s*\(\s*["'`]([^"'`]*)"#).expect("covered by a test")
    });
    static FUNCTION: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"^\s*(?:pub )?(?:async )?fn (\$?\w+)").expect("covered by a test")
    });
    static STRING: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r#""([A-Z]\d\d [^"]*)""#).expect("covered by a test"));
    let mut carried: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for source in sources {
        let mut note = |number: usize, ids: Vec<String>| {
            for id in ids {
                carried
                    .entry(id)
                    .or_default()
                    .push(format!("{}:{number}", source.path));
            }
        };
        if source.path.starts_with("bench/") {
            // A measurement carries the id in the title that it prints.
            for (number, line) in source.lines() {
                for title in STRING.captures_iter(line) {
                    note(number, ids_of_title(&title[1]));
                }
            }
        } else if source.is(&[".rs"]) {
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
        } else if source.is(&["/expect"]) {
            for (number, line) in source.lines() {
                if let Some(ids) = line.strip_prefix("cases ") {
                    note(number, ids.split_whitespace().map(str::to_owned).collect());
                }
            }
        }
    }
    carried
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

    fn pairs(list: &[&str]) -> Pairs {
        pairs_listed(&list.join("\n"))
    }

    /// What is found with a catalogue of P01, P02 and W02, an open list, one Rust and one browser test file.
    fn found(open: &str, rust: &str, script: &str, earlier: &[Pairs]) -> Vec<String> {
        let sources = [
            source(
                CATALOGUE,
                "# Plain\nP01 one | script\nP02 two | script\n\nW02 three | browser\n",
            ),
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
            found(
                "W02 browser\n",
                RUST,
                "",
                &[pairs(&["P01 real", "W02 browser"])]
            ),
            [""; 0]
        );
    }

    #[test]
    fn a_case_in_neither_place_is_found() {
        assert_eq!(found("", RUST, "", &[]).len(), 1);
    }

    #[test]
    fn a_case_in_both_places_is_found() {
        assert_eq!(found("P01 script\n", RUST, SCRIPT, &[]).len(), 1);
    }

    #[test]
    fn a_test_of_another_kind_is_not_enough() {
        let script = "test(\"P02 W02 both\", async () => {});\n";
        let rust = "#[test]\nfn p01_start() {}\n";
        assert_eq!(found("", rust, script, &[]).len(), 1);
        assert!(covers("e2e/lab/tests/real_hooks.rs:3", "real"));
        assert!(covers("bench/src/hooks.rs:3", "bench"));
        assert!(!covers("server/tests/status.rs:3", "real"));
        assert!(!covers("server/tests/status.rs:3", "script"));
    }

    #[test]
    fn an_unknown_id_is_found() {
        assert_eq!(found("Z99 script\n", RUST, SCRIPT, &[]).len(), 1);
        let rust = format!("{RUST}#[tokio::test(start_paused = true)]\nasync fn x77_odd() {{}}\n");
        assert_eq!(found("", &rust, SCRIPT, &[]).len(), 1);
    }

    #[test]
    fn a_recording_is_a_test_of_its_kind() {
        let sources = |cases: &str| {
            [
                source(
                    "wire/tests/recordings/s05/expect",
                    &format!("cases {cases}\nt0 1\n"),
                ),
                source(CATALOGUE, "P01 one | recording\n"),
                source(OPEN, ""),
            ]
        };
        assert_eq!(breaches(&sources("P01"), &[]), []);
        assert_eq!(breaches(&sources("P01 Q99"), &[]).len(), 1);
    }

    #[test]
    fn a_measurement_carries_the_id_it_prints() {
        let sources = [
            source(
                "bench/src/hooks.rs",
                "    row(\"K01 a hook over sh\", figures);\n",
            ),
            source(CATALOGUE, "K01 one | bench\n"),
            source(OPEN, ""),
        ];
        assert_eq!(breaches(&sources, &[]), []);
    }

    #[test]
    fn an_open_list_that_grows_is_found() {
        assert_eq!(
            found(
                "W02 browser\n",
                RUST,
                "",
                &[pairs(&["W02 browser"]), pairs(&["P01 script"])]
            )
            .len(),
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
