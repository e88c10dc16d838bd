//! `cargo xtask tidy`, and a test: the rules of the house that no compiler and no linter knows. Reads the
//! repository's files as text and never changes one. Each rule is a function from files to breaches, with
//! a test that shows what it catches.

mod cases;
mod rules;

use std::fmt;
use std::path::Path;

use anyhow::Context;

/// A text file of the repository.
struct Source {
    /// Relative to the root, with `/` on every system.
    path: String,
    text: String,
}

impl Source {
    /// The lines with their numbers, counted from 1.
    fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text
            .lines()
            .enumerate()
            .map(|(index, line)| (index + 1, line))
    }

    fn breach(&self, line: usize, what: impl Into<String>) -> Breach {
        Breach {
            place: format!("{}:{line}", self.path),
            what: what.into(),
        }
    }

    fn is(&self, endings: &[&str]) -> bool {
        endings.iter().any(|ending| self.path.ends_with(ending))
    }
}

/// One place that breaks a rule, and what to do about it.
#[derive(Debug, PartialEq, Eq)]
struct Breach {
    place: String,
    what: String,
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}

/// Prints every breach; true when there is none.
///
/// # Errors
/// A file of the repository can't be read.
pub fn run(root: &Path) -> anyhow::Result<bool> {
    let breaches = breaches(root)?;
    for breach in &breaches {
        println!("{breach}");
    }
    Ok(breaches.is_empty())
}

fn breaches(root: &Path) -> anyhow::Result<Vec<Breach>> {
    let mut sources = Vec::new();
    collect(root, root, &mut sources)?;
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    let mut breaches: Vec<Breach> = rules::ALL.iter().flat_map(|rule| rule(&sources)).collect();
    breaches.extend(cases::breaches(&sources, &cases::earlier_open_lists(root)));
    Ok(breaches)
}

/// Folders of others: built, installed or written by tests, and Git's own.
const FOREIGN: [&str; 7] = [
    "target",
    "node_modules",
    "dist",
    ".git",
    "results",
    ".svelte-kit",
    ".cache",
];

/// What the rules read; everything else (fonts, pictures, recordings) is left alone.
const READ: [&str; 13] = [
    ".rs", ".toml", ".ts", ".js", ".mjs", ".svelte", ".css", ".html", ".md", ".txt", ".sh", ".yml",
    "expect",
];

fn collect(root: &Path, folder: &Path, sources: &mut Vec<Source>) -> anyhow::Result<()> {
    let entries =
        std::fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    for entry in entries {
        let entry = entry.with_context(|| format!("reading {}", folder.display()))?;
        let path = entry.path();
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let kind = entry
            .file_type()
            .with_context(|| format!("{}", path.display()))?;
        if kind.is_dir() {
            if !FOREIGN.contains(&&*name) {
                collect(root, &path, sources)?;
            }
        } else if kind.is_file() && READ.iter().any(|ending| name.ends_with(ending)) {
            let relative = path.strip_prefix(root).unwrap_or(&path);
            // Recordings are bytes of other programs and need not be UTF-8.
            let Ok(text) = std::fs::read_to_string(&path) else {
                continue;
            };
            sources.push(Source {
                path: relative.to_string_lossy().replace('\\', "/"),
                text,
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repository_is_tidy() {
        let breaches = breaches(&crate::root()).unwrap();
        let list: Vec<String> = breaches.iter().map(ToString::to_string).collect();
        assert!(list.is_empty(), "\n{}", list.join("\n"));
    }
}
