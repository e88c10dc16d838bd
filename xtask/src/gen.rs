//! `cargo xtask gen`: writes the TypeScript types that `wire` declares and the sentences that it says, or with `--check`
//! fails when a checked-in file differs. Owns where the files lie, never what is in them.

use std::path::Path;

use anyhow::{Context, bail};

/// The types and the server's sentences, relative to the repository's root.
const TYPES: &str = "web/src/wire/protocol.ts";
const SENTENCES: &str = "web/src/wire/sentences.ts";

/// Writes the files below `root`, or compares them with what is there.
///
/// # Errors
/// A file can't be read or written; with `check`, one differs.
pub fn run(root: &Path, check: bool) -> anyhow::Result<()> {
    one(root, TYPES, &purplemux_wire::typescript::types(), check)?;
    one(
        root,
        SENTENCES,
        &purplemux_wire::typescript::sentences(),
        check,
    )
}

fn one(root: &Path, name: &str, wanted: &str, check: bool) -> anyhow::Result<()> {
    let path = root.join(name);
    if check {
        let found = std::fs::read_to_string(&path).with_context(|| format!("reading {name}"))?;
        if found != wanted {
            bail!("{name} is not what wire declares; run `cargo xtask gen` and commit the result");
        }
        return Ok(());
    }
    if let Some(dir) = path.parent() {
        std::fs::create_dir_all(dir).with_context(|| format!("making {}", dir.display()))?;
    }
    std::fs::write(&path, wanted).with_context(|| format!("writing {name}"))
}
