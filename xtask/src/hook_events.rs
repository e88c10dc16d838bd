//! `cargo xtask hook-events`: which hook events each version of Claude Code knows, read from its own package.
//! Owns where the table lies and how it is read out of a program, never which of the events we register.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use anyhow::{Context, bail};
use regex::bytes::Regex;
use serde_json::Value;

/// Relative to the repository's root.
const TABLE: &str = "server/src/hooks/events.json";

/// The packages that the tests install, relative to the root; the others are named on the command line.
const INSTALLED: [&str; 2] = ["e2e", "e2e/node_modules/claude-code-without-status"];

/// The events that a version knows, in its own order.
type Events = Vec<String>;
type Table = BTreeMap<[u32; 3], Events>;

/// Reads the versions that the tests install and those in `folders` (where npm has installed one each), and
/// writes what they know into the table below `root`; with `check`, compares instead.
///
/// # Errors
/// A package or the table can't be read; with `check`, they differ.
pub fn run(root: &Path, folders: &[PathBuf], check: bool) -> anyhow::Result<()> {
    let path = root.join(TABLE);
    let text = std::fs::read_to_string(&path).with_context(|| format!("reading {TABLE}"))?;
    let mut table = parse(&text)?;
    let installed = INSTALLED.iter().map(|folder| root.join(folder));
    for folder in installed.chain(folders.iter().cloned()) {
        let (version, events) = of_folder(&folder)?;
        let [major, minor, patch] = version;
        if check && table.get(&version) != Some(&events) {
            bail!(
                "{TABLE} does not say of {major}.{minor}.{patch} what its package says; run `cargo xtask hook-events` with the same folders and commit the result"
            );
        }
        table.insert(version, events);
    }
    let written = print(&table);
    if check {
        if written != text {
            bail!("{TABLE} is not as it is generated; run `cargo xtask hook-events`");
        }
        return Ok(());
    }
    std::fs::write(&path, written).with_context(|| format!("writing {TABLE}"))
}

/// The version and the events of the Claude Code in a package, or in the folder that npm has installed one in.
fn of_folder(folder: &Path) -> anyhow::Result<([u32; 3], Events)> {
    let packages = folder.join("node_modules/@anthropic-ai");
    let native = |entry: &std::fs::DirEntry| {
        let name = entry.file_name();
        name.to_string_lossy().starts_with("claude-code-linux-")
    };
    // From about 2.1.113 on the package is a launcher of a binary in another one.
    let binary = std::fs::read_dir(&packages)
        .into_iter()
        .flatten()
        .flatten()
        .find(native);
    let package = match binary {
        Some(entry) => entry.path(),
        None if packages.is_dir() => packages.join("claude-code"),
        None => folder.to_owned(),
    };
    let about = std::fs::read_to_string(package.join("package.json"))
        .with_context(|| format!("no Claude Code in {}: npm ci in e2e", folder.display()))?;
    let about: Value = serde_json::from_str(&about).context("package.json")?;
    let version = about["version"].as_str().context("a version")?;
    let program = ["claude", "cli.js"]
        .into_iter()
        .map(|name| package.join(name))
        .find(|path| path.is_file())
        .with_context(|| format!("no program in {}", package.display()))?;
    let bytes = std::fs::read(&program).with_context(|| program.display().to_string())?;
    let events = known(&bytes).with_context(|| {
        format!(
            "no list of hook events in {}: has its form changed?",
            program.display()
        )
    })?;
    Ok((numbers(version)?, events))
}

/// The list that Claude checks the names in its settings against: of those in the program that begin like it,
/// the longest (measured, 1.0.62 to 2.1.332; the others are choices from it).
fn known(program: &[u8]) -> Option<Events> {
    static LIST: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r#"\["PreToolUse","PostToolUse"(,"[A-Za-z]{1,40}"){1,200}\]"#)
            .expect("covered by a test")
    });
    let longest = LIST.find_iter(program).max_by_key(|found| found.len())?;
    serde_json::from_slice(longest.as_bytes()).ok()
}

fn parse(text: &str) -> anyhow::Result<Table> {
    let table: BTreeMap<String, Events> =
        serde_json::from_str(text).with_context(|| format!("{TABLE} is not understood"))?;
    table
        .into_iter()
        .map(|(version, events)| Ok((numbers(&version)?, events)))
        .collect()
}

/// One line per version, the oldest first.
fn print(table: &Table) -> String {
    let lines: Vec<String> = table
        .iter()
        .map(|([major, minor, patch], events)| {
            format!(
                "  \"{major}.{minor}.{patch}\": {}",
                Value::from(events.clone())
            )
        })
        .collect();
    format!("{{\n{}\n}}\n", lines.join(",\n"))
}

fn numbers(version: &str) -> anyhow::Result<[u32; 3]> {
    let numbers: Vec<u32> = version
        .split('.')
        .map(str::parse)
        .collect::<Result<_, _>>()
        .with_context(|| format!("{version:?} is no version"))?;
    <[u32; 3]>::try_from(numbers).map_err(|_| anyhow::anyhow!("{version:?} is no version"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_what_the_installed_packages_say() {
        run(&crate::root(), &[], true).unwrap();
    }

    #[test]
    fn the_longest_list_of_its_kind_is_meant() {
        let program = br#"a=["PreToolUse","PostToolUse","Stop"];b=["PreToolUse","PostToolUse","Stop","New"],c=["Stop"]"#;
        assert_eq!(
            known(program).unwrap(),
            ["PreToolUse", "PostToolUse", "Stop", "New"]
        );
        assert_eq!(known(b"[\"PreToolUse\", \"PostToolUse\"]"), None);
    }

    #[test]
    fn a_package_that_says_something_else_is_found() {
        let root = std::env::temp_dir().join(format!("pmx-events-{}", std::process::id()));
        let package = root.join("e2e/node_modules/claude-code-without-status");
        let native = root.join("e2e/node_modules/@anthropic-ai/claude-code-linux-x64");
        for (folder, version, program, list) in [
            (
                &package,
                "2.1.90",
                "cli.js",
                r#"["PreToolUse","PostToolUse","Stop"]"#,
            ),
            (
                &native,
                "2.1.332",
                "claude",
                r#"["PreToolUse","PostToolUse","Stop","New"]"#,
            ),
        ] {
            std::fs::create_dir_all(folder).unwrap();
            let about = format!("{{\"version\": \"{version}\"}}");
            std::fs::write(folder.join("package.json"), about).unwrap();
            std::fs::write(folder.join(program), list).unwrap();
        }
        let table = root.join(TABLE);
        std::fs::create_dir_all(table.parent().unwrap()).unwrap();
        std::fs::write(&table, "{}").unwrap();
        assert!(run(&root, &[], true).is_err());
        run(&root, &[], false).unwrap();
        run(&root, &[], true).unwrap();
        let written = std::fs::read_to_string(&table).unwrap();
        assert!(
            written.starts_with("{\n  \"2.1.90\": [\"PreToolUse\""),
            "{written}"
        );
        std::fs::write(&table, written.replace("New", "Newer")).unwrap();
        assert!(run(&root, &[], true).is_err());
        std::fs::remove_dir_all(&root).unwrap();
    }
}
