//! Our hooks in the person's own settings, for the sessions that are not started in our tabs: only when the
//! person says so, backed up before, and out again to the byte. Owns the folder `global` of the home.
//!
//! It must never leave half a file, never lose an edit that somebody makes at the same moment, and never
//! replace a link by a file. Whatever it can't do safely it refuses, with what to do.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use super::edit;
use super::shell::quote;
use super::version::Version;
use super::{make_private, settings};
use crate::clock;
use crate::home::{hex, random_hex, write_atomic};

/// A settings file that others write at the same moment is tried for so long; an editor has closed it by then.
const PATIENCE: Duration = Duration::from_secs(1);
/// Between two tries.
const RETRY: Duration = Duration::from_millis(20);
/// A settings file is small; more than this is none.
const SETTINGS_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Claude's name for the file.
const FILE: &str = "settings.json";

/// What was done to one settings file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Done {
    /// Ours are in it now.
    Installed,
    /// It was as it should be.
    Unchanged,
    /// Ours are out, and it is what it was before.
    Restored,
    /// Ours are out, and what was changed meanwhile has stayed.
    Removed,
}

/// How one directory of Claude's stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct State {
    /// The file that Claude reads.
    pub file: PathBuf,
    /// The events of ours that are in it.
    pub events: Vec<String>,
    /// Ours were put into it and have not been taken out by us.
    pub recorded: bool,
    /// Hooks are switched off in it (`disableAllHooks`).
    pub off: bool,
    /// Why nothing can be said about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<String>,
}

/// What is remembered of one settings file, until ours are taken out of it.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    /// Claude's directory.
    dir: PathBuf,
    /// As it was before; `None`: there was none. The same text stands beside it, for a person to copy.
    before: Option<String>,
    /// As we left it.
    after: String,
}

/// Puts our hooks, for this version of Claude Code, into the settings in this directory of Claude's.
///
/// # Errors
/// Nothing was changed, for the reason that it says.
pub fn install(home: &Path, dir: &Path, version: Option<&Version>) -> Result<Done> {
    let target = Target::of(dir)?;
    let groups = groups(home, version);
    let kept = Kept::of(home, dir);
    let record = kept.read()?;
    target.change(|now| {
        let before = match (&record, now) {
            (_, None) => None,
            (Some(record), Some(now)) if record.after == now => record.before.clone(),
            (record, Some(now)) => Some(theirs(home, record.as_ref(), now)?),
        };
        let after = edit::insert(before.as_deref().unwrap_or("{}\n"), &groups)?;
        if now == Some(after.as_str()) {
            return Ok(None);
        }
        // First what is needed to undo it, then the deed.
        kept.write(&Record {
            dir: dir.to_owned(),
            before,
            after: after.clone(),
        })?;
        Ok(Some((Some(after), Done::Installed)))
    })
}

/// Takes our hooks out of the settings in this directory of Claude's.
///
/// # Errors
/// Nothing was changed, for the reason that it says.
pub fn uninstall(home: &Path, dir: &Path) -> Result<Done> {
    let kept = Kept::of(home, dir);
    let record = kept.read()?;
    if record.is_none() && !dir.join(FILE).exists() {
        return Ok(Done::Unchanged);
    }
    let target = Target::of(dir)?;
    let done = target.change(|now| {
        let Some(now) = now else {
            return Ok(None);
        };
        if let Some(record) = &record
            && record.after == now
        {
            return Ok(Some((record.before.clone(), Done::Restored)));
        }
        let theirs = theirs(home, record.as_ref(), now)?;
        if theirs == now {
            return Ok(None);
        }
        let made_by_us = record
            .as_ref()
            .is_some_and(|record| record.before.is_none());
        let empty = serde_json::from_str::<Value>(&theirs)
            .is_ok_and(|value| value.as_object().is_some_and(Map::is_empty));
        let back = (!(made_by_us && empty)).then_some(theirs);
        Ok(Some((back, Done::Removed)))
    })?;
    kept.forget()?;
    Ok(done)
}

/// Every directory of Claude's that ours were put into.
#[must_use]
pub fn recorded(home: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(home.join("global")).into_iter().flatten();
    let mut dirs: Vec<PathBuf> = entries
        .flatten()
        .filter_map(|entry| {
            let text = fs::read_to_string(entry.path().join("record.json")).ok()?;
            Some(serde_json::from_str::<Record>(&text).ok()?.dir)
        })
        .collect();
    dirs.sort();
    dirs
}

/// How the settings in this directory of Claude's stand.
#[must_use]
pub fn state(home: &Path, dir: &Path) -> State {
    let file = dir.join(FILE);
    let mut state = State {
        events: Vec::new(),
        recorded: Kept::of(home, dir).folder.join("record.json").exists(),
        off: false,
        unreadable: None,
        file,
    };
    let text = match read(&state.file) {
        Ok(Some(text)) => text,
        Ok(None) => return state,
        Err(why) => {
            state.unreadable = Some(format!("{why:#}"));
            return state;
        }
    };
    if text.trim().is_empty() {
        return state;
    }
    let value: Value = match serde_json::from_str(&text) {
        Ok(value) => value,
        Err(why) => {
            state.unreadable = Some(format!("it is no JSON: {why}"));
            return state;
        }
    };
    state.off = value["disableAllHooks"] == true;
    let ours = |group: &Value| {
        let hooks = group["hooks"].as_array();
        hooks.into_iter().flatten().any(|hook| {
            let command = hook["command"].as_str();
            command.is_some_and(|line| is_ours(home, line))
        })
    };
    for (event, groups) in value["hooks"].as_object().into_iter().flatten() {
        if groups.as_array().into_iter().flatten().any(ours) {
            state.events.push(event.clone());
        }
    }
    state.events.sort();
    state
}

/// Where the file as it was before is kept, for the person.
#[must_use]
pub fn backup(home: &Path, dir: &Path) -> Option<PathBuf> {
    let path = Kept::of(home, dir).folder.join(FILE);
    path.exists().then_some(path)
}

/// One group per event. The commands are those of `--settings` to the letter: of two that are the same,
/// Claude Code runs one (measured, 2.0.77 to 2.1.332; `async` and `timeout` may differ), so a session that
/// has both tells everything once.
fn groups(home: &Path, version: Option<&Version>) -> Map<String, Value> {
    let mut all = settings::value(home, version);
    let hooks = all["hooks"].take();
    let lists = hooks.as_object().cloned().unwrap_or_default();
    lists
        .into_iter()
        .map(|(event, mut list)| (event, list[0].take()))
        .collect()
}

fn is_ours(home: &Path, command: &str) -> bool {
    let script = quote(&home.join("status-hook.sh").to_string_lossy());
    command
        .strip_prefix(script.as_str())
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}

/// A settings text without ours. What held nothing but ours goes as well, unless it was there before.
fn theirs(home: &Path, record: Option<&Record>, now: &str) -> Result<String> {
    // It could be taken apart when it was written down.
    let had = record
        .and_then(|record| record.before.as_deref())
        .and_then(|before| edit::had(before).ok())
        .unwrap_or_default();
    edit::remove(now, |line| is_ours(home, line), &had).map_err(anyhow::Error::from)
}

// ---- what is remembered ------------------------------------------------------------------------------

/// The folder for one directory of Claude's.
struct Kept {
    folder: PathBuf,
}

impl Kept {
    fn of(home: &Path, dir: &Path) -> Self {
        use std::os::unix::ffi::OsStrExt as _;
        let real = fs::canonicalize(dir).unwrap_or_else(|_| dir.to_owned());
        let name = hex(&Sha256::digest(real.as_os_str().as_bytes()));
        Self {
            folder: home.join("global").join(&name[..16]),
        }
    }

    fn read(&self) -> Result<Option<Record>> {
        let path = self.folder.join("record.json");
        match fs::read_to_string(&path) {
            Ok(text) => Ok(serde_json::from_str(&text).ok()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("Can't read {}", path.display())),
        }
    }

    fn write(&self, record: &Record) -> Result<()> {
        let above = self.folder.parent().context("it lies in the home")?;
        make_private(above)?;
        make_private(&self.folder)?;
        if let Some(before) = &record.before {
            write_atomic(&self.folder.join(FILE), before.as_bytes(), 0o600)?;
        }
        let text = serde_json::to_string(record).context("a record is plain text")?;
        write_atomic(&self.folder.join("record.json"), text.as_bytes(), 0o600)
    }

    fn forget(&self) -> Result<()> {
        match fs::remove_dir_all(&self.folder) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => {
                return Err(error)
                    .with_context(|| format!("Can't remove {}", self.folder.display()));
            }
        }
        if let Some(above) = self.folder.parent() {
            // It holds those of other directories as long as it is not empty.
            drop(fs::remove_dir(above));
        }
        Ok(())
    }
}

// ---- the settings file -------------------------------------------------------------------------------

/// The settings file itself: where a link leads to.
struct Target {
    /// As the person knows it.
    shown: PathBuf,
    real: PathBuf,
}

impl Target {
    fn of(dir: &Path) -> Result<Self> {
        if !dir.is_dir() {
            bail!(
                "{} is no directory; start claude once so that it makes it, or name the right one with --config-dir.",
                dir.display()
            );
        }
        let shown = dir.join(FILE);
        let real = match fs::symlink_metadata(&shown) {
            // A file behind a link is changed where it lies, in a folder of dotfiles for example.
            Ok(meta) if meta.is_symlink() => fs::canonicalize(&shown).with_context(|| {
                format!(
                    "{} is a link to something that is not there; mend the link or remove it",
                    shown.display()
                )
            })?,
            Ok(_) => shown.clone(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => shown.clone(),
            Err(error) => {
                return Err(error).with_context(|| format!("Can't look at {}", shown.display()));
            }
        };
        Ok(Self { shown, real })
    }

    /// Reads the file, has `wanted` say what it is to be (`None`: nothing is to be done) and makes it so;
    /// begins again if somebody has written it meanwhile.
    fn change(
        &self,
        wanted: impl Fn(Option<&str>) -> Result<Option<(Option<String>, Done)>>,
    ) -> Result<Done> {
        let mut refused;
        let until = clock::boot() + PATIENCE;
        loop {
            let now = read(&self.real).with_context(|| self.named())?;
            match wanted(now.as_deref()) {
                Ok(None) => return Ok(Done::Unchanged),
                Ok(Some((next, done))) => {
                    refused = None;
                    if self.replace(now.as_deref(), next.as_deref())? {
                        return Ok(done);
                    }
                }
                // Somebody may be writing it just now: the next look finds it whole.
                Err(why) if why.is::<edit::NoPlace>() => refused = Some(why),
                Err(why) => return Err(why),
            }
            if clock::boot() >= until {
                break;
            }
            clock::passed_blocking(RETRY);
        }
        let shown = self.shown.display();
        Err(match refused {
            Some(why) => {
                anyhow!("{shown} was left as it is, because {why}. Mend it, then run this again.")
            }
            None => anyhow!(
                "{shown} was left as it is, because another program keeps writing it. Run this again when that has ended."
            ),
        })
    }

    fn named(&self) -> String {
        if self.real == self.shown {
            self.shown.display().to_string()
        } else {
            format!("{} ({})", self.shown.display(), self.real.display())
        }
    }

    /// Puts `next` in the place of `now`; false: the file is not `now` any more, and has been left alone.
    fn replace(&self, now: Option<&str>, next: Option<&str>) -> Result<bool> {
        let mode = match fs::metadata(&self.real) {
            Ok(meta) => {
                self.may_change(&meta)?;
                meta.mode() & 0o777
            }
            // Claude's settings may hold keys.
            Err(_) => 0o600,
        };
        let beside = self
            .real
            .with_file_name(format!(".{FILE}.{}", random_hex::<8>()));
        let outcome = match (now, next) {
            (_, Some(next)) => write_beside(&beside, next, mode)
                .and_then(|()| swap_in(&beside, &self.real, now, next)),
            (Some(now), None) => take_away(&beside, &self.real, now),
            (None, None) => Ok(true),
        };
        // It is gone already unless something went wrong.
        drop(fs::remove_file(&beside));
        outcome.with_context(|| {
            format!(
                "{} can't be written, and was left as it is; make its folder writable, or add by hand what `purplemux hooks show` prints",
                self.named()
            )
        })
    }

    fn may_change(&self, meta: &fs::Metadata) -> Result<()> {
        let named = self.named();
        let by_hand = "or add by hand what `purplemux hooks show` prints";
        if !meta.is_file() {
            bail!("{named} is no regular file; it was left as it is.");
        }
        if meta.uid() != rustix::process::geteuid().as_raw() {
            bail!(
                "{named} belongs to another user and was left as it is; make it yours, {by_hand}."
            );
        }
        // Somebody has said that it is not to be written; a rename would not even notice.
        if meta.mode() & 0o200 == 0 {
            bail!(
                "{named} is read-only and was left as it is; chmod u+w it, {by_hand} to where it comes from."
            );
        }
        if meta.nlink() > 1 {
            bail!(
                "{named} is one file under several names (hard links), which would be torn apart; it was left as it is. Make it a file of its own, {by_hand}."
            );
        }
        Ok(())
    }
}

/// The text of a settings file; `None`: there is none.
fn read(path: &Path) -> Result<Option<String>> {
    use std::io::Read as _;
    // Opening a pipe would wait for a writer.
    match fs::metadata(path) {
        Ok(meta) if !meta.is_file() => bail!("it is no regular file; it was left as it is"),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).context("it can't be read"),
    }
    let mut bytes = Vec::new();
    match File::open(path) {
        Ok(file) => file
            .take(SETTINGS_BYTES_MAX + 1)
            .read_to_end(&mut bytes)
            .context("it can't be read")?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).context("it can't be read; make it readable"),
    };
    if bytes.len() as u64 > SETTINGS_BYTES_MAX {
        bail!("it is larger than any settings; it was left as it is");
    }
    let text = String::from_utf8(bytes)
        .map_err(|_| anyhow!("it is no UTF-8 and was left as it is; save it as UTF-8"))?;
    Ok(Some(text))
}

fn write_beside(beside: &Path, text: &str, mode: u32) -> io::Result<()> {
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(beside)?;
    file.set_permissions(fs::Permissions::from_mode(mode))?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// The two files change places in one step, so what is displaced can still be looked at: if it is not what
/// we have read, somebody has written it since, and theirs goes back.
fn swap_in(beside: &Path, real: &Path, now: Option<&str>, next: &str) -> io::Result<bool> {
    let Some(now) = now else {
        return match renameat_with(CWD, beside, CWD, real, RenameFlags::NOREPLACE) {
            Ok(()) => Ok(true),
            Err(rustix::io::Errno::EXIST) => Ok(false),
            // A file system without it.
            Err(rustix::io::Errno::INVAL) if !real.exists() => {
                fs::rename(beside, real).map(|()| true)
            }
            Err(error) => Err(error.into()),
        };
    };
    match renameat_with(CWD, beside, CWD, real, RenameFlags::EXCHANGE) {
        Ok(()) => {}
        Err(rustix::io::Errno::NOENT) => return Ok(false),
        // A file system that can't exchange: look once more, then rename.
        Err(rustix::io::Errno::INVAL) => {
            if fs::read(real)? != now.as_bytes() {
                return Ok(false);
            }
            return fs::rename(beside, real).map(|()| true);
        }
        Err(error) => return Err(error.into()),
    }
    if fs::read(beside)? == now.as_bytes() {
        // Who had it open before writes into what is displaced now.
        clock::passed_blocking(RETRY);
        if fs::read(beside)? == now.as_bytes() {
            fs::remove_file(beside)?;
            return Ok(true);
        }
    }
    // Back again; and if that displaces something newer still, the newest has the last word.
    renameat_with(CWD, beside, CWD, real, RenameFlags::EXCHANGE)?;
    if fs::read(beside)? != next.as_bytes() {
        renameat_with(CWD, beside, CWD, real, RenameFlags::EXCHANGE)?;
    }
    Ok(false)
}

/// Removes the file if it is still `now`.
fn take_away(beside: &Path, real: &Path, now: &str) -> io::Result<bool> {
    match fs::rename(real, beside) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(error),
    }
    if fs::read(beside)? == now.as_bytes() {
        fs::remove_file(beside)?;
        return Ok(true);
    }
    match renameat_with(CWD, beside, CWD, real, RenameFlags::NOREPLACE) {
        // Whoever has made it anew meanwhile has the newer one.
        Ok(()) | Err(rustix::io::Errno::EXIST) => Ok(false),
        Err(rustix::io::Errno::INVAL) => fs::rename(beside, real).map(|()| false),
        Err(error) => Err(error.into()),
    }
}
