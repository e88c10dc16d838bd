//! `cargo xtask gen`: writes the TypeScript types that `wire` declares, or with `--check` fails when the
//! checked-in file differs. Owns where the file lies, never what is in it.

use std::path::Path;

use anyhow::{Context, bail};

/// Relative to the repository's root.
const TYPES: &str = "web/src/wire/protocol.ts";

/// Writes the file below `root`, or compares it with what is there.
///
/// # Errors
/// The file can't be read or written; with `check`, it differs.
pub fn run(root: &Path, check: bool) -> anyhow::Result<()> {
    let path = root.join(TYPES);
    let types = purplemux_wire::typescript::types();
    if check {
        let found = std::fs::read_to_string(&path).with_context(|| format!("reading {TYPES}"))?;
        if found != types {
            bail!("{TYPES} is not what wire declares; run `cargo xtask gen` and commit the result");
        }
        return Ok(());
    }
    if let Some(dir) = path.parent() {
        std::fs::create_dir_all(dir).with_context(|| format!("making {}", dir.display()))?;
    }
    std::fs::write(&path, types).with_context(|| format!("writing {TYPES}"))
}
