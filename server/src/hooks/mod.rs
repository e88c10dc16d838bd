//! What is written into the home so that Claude Code tells us what it does: the hook settings per
//! version, the hook script, and the shell integration. It must never write outside the home, but for
//! [`global`], when a person says so.

pub mod settings;
pub mod version;

pub mod merged;
pub mod shell;
pub mod status_line;

pub mod global;

mod edit;
mod script;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::home::write_atomic;

/// The settings that a Claude of this version is started with (`--settings`); `None`: a version nobody
/// could find out.
#[must_use]
pub fn settings_path(home: &Path, version: Option<version::Version>) -> PathBuf {
    let folder = home.join("hooks.d");
    match version {
        Some(version) => folder.join(format!("{version}.json")),
        None => folder.join("unknown.json"),
    }
}

/// Writes everything there is to write, anew at every start: the binary or the home may have moved.
///
/// # Errors
/// The home can't be written.
pub fn write(home: &Path) -> Result<()> {
    let program = std::env::current_exe().context("where this program is")?;
    for folder in ["hooks.d", "shell", "spool", "merged"] {
        make_private(&home.join(folder))?;
    }
    script::write(home, &program)?;
    shell::write(home, &program)?;
    // The version that the person would start by hand, if that can be told without starting it.
    let version = version::on_path().and_then(|claude| version::of(home, &claude, false));
    let text = settings::text(home, version.as_ref());
    write_atomic(&home.join("hooks.json"), text.as_bytes(), 0o600)?;
    write_settings(home, version.as_ref())?;
    write_settings(home, None)?;
    Ok(())
}

/// Writes the settings of one version, if they are not there as they should be.
///
/// # Errors
/// The home can't be written.
pub fn write_settings(home: &Path, version: Option<&version::Version>) -> Result<PathBuf> {
    let path = settings_path(home, version.cloned());
    let text = settings::text(home, version);
    if std::fs::read_to_string(&path).ok().as_deref() != Some(&text) {
        write_atomic(&path, text.as_bytes(), 0o600)?;
    }
    Ok(path)
}

fn make_private(folder: &Path) -> Result<()> {
    use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
    match std::fs::DirBuilder::new().mode(0o700).create(folder) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error).with_context(|| format!("making {}", folder.display())),
    }
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700))
        .with_context(|| format!("closing {}", folder.display()))
}
