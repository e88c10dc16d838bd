//! The rules about one file at a time. Each is plain text matching on lines: good enough to catch a slip,
//! and never a judge of style that a formatter or a linter already is.

use std::sync::LazyLock;

use regex::Regex;

use super::{Breach, Source};

pub(super) type Rule = fn(&[Source]) -> Vec<Breach>;

/// Every rule, in the order in which STYLE.md gives them.
pub(super) const ALL: [Rule; 9] = [
    core_depends_on_nothing,
    core_is_pure,
    files_say_what_they_own,
    names_say_what_a_thing_is,
    results_are_not_thrown_away,
    tests_run,
    nothing_sleeps,
    the_repository_stands_alone,
    documents_name_what_exists,
];

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a pattern written here and covered by a test")
}

/// The part of a line before a `//` comment. A `//` within a string cuts too much, which for the words
/// searched here only ever hides a false alarm.
fn code(line: &str) -> &str {
    line.split("//").next().unwrap_or("")
}

/// `core` has no dependency, so it can know nothing of the world but what `std` offers.
fn core_depends_on_nothing(sources: &[Source]) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for source in sources
        .iter()
        .filter(|source| source.path == "core/Cargo.toml")
    {
        let mut counts = false;
        for (number, line) in source.lines() {
            let line = line.trim();
            if let Some(section) = line.strip_prefix('[') {
                let section = section.trim_end_matches(']');
                counts = section.contains("dependencies") && !section.contains("dev-dependencies");
                if counts && !section.ends_with("dependencies") {
                    breaches.push(source.breach(number, "core depends on nothing but std"));
                }
            } else if counts && !line.is_empty() && !line.starts_with('#') {
                breaches.push(source.breach(number, "core depends on nothing but std"));
            }
        }
    }
    breaches
}

/// Of `std`, `core` uses only what computes: no clock, file, socket, process, thread or environment.
fn core_is_pure(sources: &[Source]) -> Vec<Breach> {
    static WORLD: LazyLock<Regex> = LazyLock::new(|| {
        regex(
            r"\bstd::(fs|net|env|process|thread|io|os)\b|\bstd::\{[^}]*\b(fs|net|env|process|thread|io|os)\b|\b(SystemTime|Instant|serde|tokio|rand)\b|\be?print(ln)?!|\bunsafe\b",
        )
    });
    let mut breaches = Vec::new();
    for source in sources {
        if !(source.path.starts_with("core/src/") && source.is(&[".rs"])) {
            continue;
        }
        for (number, line) in source.lines() {
            if let Some(found) = WORLD.find(code(line)) {
                breaches.push(source.breach(
                    number,
                    format!(
                        "core knows nothing of the world: {:?} belongs in server",
                        found.as_str()
                    ),
                ));
            }
        }
    }
    breaches
}

/// Every source file opens by saying what it owns and what it must never do.
fn files_say_what_they_own(sources: &[Source]) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for source in sources {
        let text = source.text.trim_start();
        let (opens, how) = if source.is(&[".rs"]) {
            (text.starts_with("//!"), "`//!`")
        } else if source.is(&[".ts", ".js", ".mjs"]) {
            (
                text.starts_with("//") || text.starts_with("/*") || text.starts_with("#!"),
                "a comment",
            )
        } else if source.is(&[".svelte"]) {
            (text.starts_with("<!--"), "`<!-- … -->`")
        } else {
            continue;
        };
        if !opens {
            breaches.push(source.breach(
                1,
                format!("open with {how}: what this file owns, what it must never do"),
            ));
        }
    }
    breaches
}

/// No name that could stand for anything.
fn names_say_what_a_thing_is(sources: &[Source]) -> Vec<Breach> {
    static DECLARED: LazyLock<Regex> = LazyLock::new(|| {
        regex(
            r"^\s*(?:export |default |pub(?:\([^)]*\))? )*(struct|enum|trait|union|class|interface|type|mod)\s+(\w*(Manager|Service|Helpers?|Utils?))\b",
        )
    });
    const STEMS: [&str; 8] = [
        "util", "utils", "helper", "helpers", "misc", "types", "manager", "managers",
    ];
    let mut breaches = Vec::new();
    for source in sources {
        if !source.is(&[".rs", ".ts", ".js", ".mjs", ".svelte"]) {
            continue;
        }
        let stems = source
            .path
            .split('/')
            .map(|part| part.split('.').next().unwrap_or(part));
        if let Some(stem) = stems.into_iter().find(|stem| STEMS.contains(stem)) {
            breaches.push(source.breach(1, format!("{stem:?} says nothing: name what it holds")));
        }
        for (number, line) in source.lines() {
            if let Some(found) = DECLARED.captures(code(line)) {
                breaches.push(source.breach(
                    number,
                    format!("{:?} says nothing: name what it is", &found[2]),
                ));
            }
        }
    }
    breaches
}

/// An error is handled, passed on or named; it is never thrown away by a line that looks like tidying.
fn results_are_not_thrown_away(sources: &[Source]) -> Vec<Breach> {
    static RUST: LazyLock<Regex> = LazyLock::new(|| regex(r"^\s*let _ = .*\("));
    static SCRIPT: LazyLock<Regex> = LazyLock::new(|| {
        regex(r"catch\s*(\([^)]*\))?\s*\{\s*\}|\.catch\(\s*\(\w*\)\s*=>\s*\{\s*\}\s*\)")
    });
    let mut breaches = Vec::new();
    for source in sources {
        let (pattern, what) = if source.is(&[".rs"]) {
            (
                &*RUST,
                "a result is thrown away: handle it, or name why it can't matter",
            )
        } else if source.is(&[".ts", ".js", ".mjs", ".svelte"]) {
            (
                &*SCRIPT,
                "an empty catch: handle it, or say why nothing is to be done",
            )
        } else {
            continue;
        };
        for (number, line) in source.lines() {
            if pattern.is_match(code(line)) {
                breaches.push(source.breach(number, what));
            }
        }
    }
    breaches
}

/// A test that is switched off, or that switches the others off, proves nothing.
fn tests_run(sources: &[Source]) -> Vec<Breach> {
    static RUST: LazyLock<Regex> = LazyLock::new(|| regex(r"^\s*#\[ignore\b"));
    static SCRIPT: LazyLock<Regex> = LazyLock::new(|| {
        regex(r"\b(test|it|describe|suite)\.(only|skip|todo)\b|\bx(it|describe)\(")
    });
    let mut breaches = Vec::new();
    for source in sources {
        let pattern = if source.is(&[".rs"]) {
            &*RUST
        } else if source.is(&[".ts", ".js", ".mjs"]) {
            &*SCRIPT
        } else {
            continue;
        };
        for (number, line) in source.lines() {
            if pattern.is_match(code(line)) {
                breaches.push(source.breach(number, "every test runs: mend it or remove it"));
            }
        }
    }
    breaches
}

/// Waiting is for a condition or a deadline of the state, never for a guessed while: `sleep` has one home,
/// the clock.
fn nothing_sleeps(sources: &[Source]) -> Vec<Breach> {
    static SLEEP: LazyLock<Regex> =
        LazyLock::new(|| regex(r"\b(thread::sleep|time::sleep|sleep)\("));
    let mut breaches = Vec::new();
    for source in sources {
        if !(source.path.starts_with("server/src/") && source.is(&[".rs"]))
            || source.path == "server/src/clock.rs"
        {
            continue;
        }
        for (number, line) in source.lines() {
            if SLEEP.is_match(code(line)) {
                breaches.push(source.breach(number, "no sleep as glue: wait for what is awaited"));
            }
        }
    }
    breaches
}

/// Nothing here reads, or sends a reader to, a folder beside the repository.
fn the_repository_stands_alone(sources: &[Source]) -> Vec<Breach> {
    static BESIDE: LazyLock<Regex> = LazyLock::new(|| regex(r"\.\./shared\b"));
    let mut breaches = Vec::new();
    for source in sources
        .iter()
        .filter(|source| source.path != "xtask/src/tidy/rules.rs")
    {
        for (number, line) in source.lines() {
            if BESIDE.is_match(line) {
                breaches.push(source.breach(number, "a path out of the repository"));
            }
        }
    }
    breaches
}

/// A document's links, and the files it names in code marks by their path from the root, exist.
fn documents_name_what_exists(sources: &[Source]) -> Vec<Breach> {
    static LINK: LazyLock<Regex> = LazyLock::new(|| regex(r"\]\(([^)#:\s]+)(#[^)]*)?\)"));
    static NAMED: LazyLock<Regex> = LazyLock::new(|| {
        regex(r"`((core|wire|server|web|e2e|xtask|docs|scripts|bench)/[\w./-]+\.\w+)`")
    });
    let root = crate::root();
    let mut breaches = Vec::new();
    for source in sources.iter().filter(|source| source.is(&[".md"])) {
        let folder = root.join(&source.path);
        let folder = folder.parent().unwrap_or(&root);
        for (number, line) in source.lines() {
            let links = LINK
                .captures_iter(line)
                .map(|found| (found[1].to_owned(), folder));
            let named = NAMED
                .captures_iter(line)
                .map(|found| (found[1].to_owned(), &*root));
            for (path, from) in links.chain(named) {
                if !from.join(&path).exists() {
                    breaches
                        .push(source.breach(number, format!("names {path}, which does not exist")));
                }
            }
        }
    }
    breaches
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many breaches `rule` finds in one file.
    fn found(rule: Rule, path: &str, text: &str) -> usize {
        rule(&[Source {
            path: path.to_owned(),
            text: text.to_owned(),
        }])
        .len()
    }

    #[test]
    fn core_may_not_depend() {
        let rule = core_depends_on_nothing;
        let fine =
            "[package]\nname = \"x\"\n[dependencies]\n\n[dev-dependencies]\nproptest = \"1\"\n";
        assert_eq!(found(rule, "core/Cargo.toml", fine), 0);
        assert_eq!(
            found(rule, "core/Cargo.toml", "[dependencies]\nserde = \"1\"\n"),
            1
        );
        assert_eq!(found(rule, "core/Cargo.toml", "[dependencies.serde]\n"), 1);
        assert_eq!(
            found(
                rule,
                "core/Cargo.toml",
                "[target.'cfg(unix)'.dependencies]\nlibc = \"1\"\n"
            ),
            1
        );
        assert_eq!(
            found(rule, "wire/Cargo.toml", "[dependencies]\nserde = \"1\"\n"),
            0
        );
    }

    #[test]
    fn core_may_not_see_the_world() {
        let rule = core_is_pure;
        for line in [
            "use std::time::Instant;",
            "let now = SystemTime::now();",
            "use std::{collections::BTreeMap, fs};",
            "std::env::var(\"HOME\")",
            "println!(\"{x}\");",
        ] {
            assert_eq!(found(rule, "core/src/status.rs", line), 1, "{line}");
            assert_eq!(found(rule, "server/src/hub.rs", line), 0, "{line}");
        }
        let fine = "//! Never reads an Instant.\nuse std::collections::BTreeMap;\nuse std::time::Duration;\n";
        assert_eq!(found(rule, "core/src/status.rs", fine), 0);
    }

    #[test]
    fn a_file_without_its_opening_is_found() {
        let rule = files_say_what_they_own;
        assert_eq!(found(rule, "server/src/hub.rs", "use std::fs;\n"), 1);
        assert_eq!(
            found(rule, "server/src/hub.rs", "//! The hub.\nuse std::fs;\n"),
            0
        );
        assert_eq!(found(rule, "web/src/link.ts", "export {}\n"), 1);
        assert_eq!(
            found(rule, "web/src/link.ts", "/** The link. */\nexport {}\n"),
            0
        );
        assert_eq!(found(rule, "web/src/App.svelte", "<script>\n"), 1);
        assert_eq!(
            found(rule, "web/src/App.svelte", "<!-- The page. -->\n<script>\n"),
            0
        );
    }

    #[test]
    fn empty_names_are_found() {
        let rule = names_say_what_a_thing_is;
        assert_eq!(found(rule, "web/src/wire/types.ts", ""), 1);
        assert_eq!(found(rule, "server/src/utils/mod.rs", ""), 1);
        assert_eq!(
            found(rule, "server/src/a.rs", "pub struct PaneManager {"),
            1
        );
        assert_eq!(found(rule, "server/src/a.rs", "trait StatusService {}"), 1);
        assert_eq!(
            found(rule, "server/src/cmd/service.rs", "fn install_service() {}"),
            0
        );
    }

    #[test]
    fn thrown_away_results_are_found() {
        let rule = results_are_not_thrown_away;
        assert_eq!(found(rule, "a.rs", "    let _ = file.sync_all();"), 1);
        assert_eq!(found(rule, "a.rs", "    let _guard = lock.enter();"), 0);
        assert_eq!(found(rule, "a.ts", "try { x() } catch { }"), 1);
        assert_eq!(found(rule, "a.ts", "p.catch(() => {})"), 1);
        assert_eq!(
            found(rule, "a.ts", "try { x() } catch (error) { show(error) }"),
            0
        );
    }

    #[test]
    fn tests_that_do_not_run_are_found() {
        let rule = tests_run;
        assert_eq!(found(rule, "a.rs", "    #[ignore = \"slow\"]"), 1);
        assert_eq!(found(rule, "a.test.ts", "it.skip(\"x\", () => {})"), 1);
        assert_eq!(found(rule, "a.test.mjs", "test.only(\"x\", () => {})"), 1);
        assert_eq!(
            found(rule, "a.test.mjs", "test(\"only the dot\", () => {})"),
            0
        );
    }

    #[test]
    fn sleeping_is_found() {
        let rule = nothing_sleeps;
        assert_eq!(
            found(
                rule,
                "server/src/hub.rs",
                "tokio::time::sleep(later).await;"
            ),
            1
        );
        assert_eq!(
            found(
                rule,
                "server/src/hub.rs",
                "tokio::time::sleep_until(at).await;"
            ),
            0
        );
        assert_eq!(
            found(
                rule,
                "server/src/clock.rs",
                "tokio::time::sleep(later).await;"
            ),
            0
        );
    }

    #[test]
    fn paths_out_of_the_repository_are_found() {
        let rule = the_repository_stands_alone;
        assert_eq!(found(rule, "docs/a.md", "see ../shared/design.md"), 1);
        assert_eq!(found(rule, "docs/a.md", "see ../README.md"), 0);
    }

    #[test]
    fn documents_that_name_nothing_are_found() {
        let rule = documents_name_what_exists;
        assert_eq!(found(rule, "README.md", "[design](docs/nowhere.md)"), 1);
        assert_eq!(
            found(
                rule,
                "docs/x.md",
                "[up](../Cargo.toml#top) and [out](https://example.org/x)"
            ),
            0
        );
        assert_eq!(
            found(
                rule,
                "README.md",
                "`core/src/nowhere.rs` and `core/src/lib.rs`"
            ),
            1
        );
    }
}
