//! Files that the person handed to the page for a message: each in a directory of its own under `files/` of the home
//! (0700, the file 0600), removed after a day. Owns their names, their places and their end.
//!
//! Never writes outside that directory, never follows a link out of it, and never gives a file a name that a shell or
//! a terminal could take for anything but a name.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use thiserror::Error;

use crate::clock;
use crate::home::{Home, random_hex};

/// The largest file, bytes: the largest document that Claude takes (32 MB), with room.
pub const BYTES_MAX: u64 = 40 * 1024 * 1024;
/// All of them together, bytes: a day of screenshots.
pub const ALL_BYTES_MAX: u64 = 1024 * 1024 * 1024;
/// How long one is kept, at least, milliseconds.
pub const KEPT_MS: i64 = 24 * 60 * 60 * 1000;

/// Between two looks for old ones.
const LOOK_EVERY: Duration = Duration::from_secs(60 * 60);
/// The longest name, bytes; every file system takes 255.
const NAME_BYTES_MAX: usize = 100;
/// Of which an ending keeps so many where the name is cut.
const ENDING_BYTES_MAX: usize = 16;

/// Why a file was not kept. Nothing is left of it.
#[derive(Debug, Error)]
pub enum Refusal {
    /// More than [`BYTES_MAX`].
    #[error("The file is larger than {} MiB; hand over a smaller one, or its path.", BYTES_MAX >> 20)]
    TooLarge,
    /// More than [`ALL_BYTES_MAX`] with those of the last day.
    #[error("The files of the last day are more than {} MiB; remove some of {place}.", ALL_BYTES_MAX >> 20)]
    TooMany {
        /// Where they are.
        place: String,
    },
    /// There is no room.
    #[error("The disk is full; make room, then hand the file over again.")]
    Full,
    /// Anything else.
    #[error("{0:#}")]
    Failed(#[from] anyhow::Error),
}

impl Refusal {
    fn of(error: io::Error, what: &str) -> Self {
        let full = [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded];
        if full.contains(&error.kind()) {
            return Self::Full;
        }
        Self::Failed(anyhow::Error::new(error).context(what.to_owned()))
    }
}

/// Where they are kept. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Files {
    dir: PathBuf,
}

impl Files {
    /// Those of a home, and a task that removes the old ones, now and every hour.
    ///
    /// # Errors
    /// The directory can't be made, or is none of ours.
    pub fn start(home: &Home) -> anyhow::Result<Self> {
        let files = Self {
            dir: home.subdir("files")?,
        };
        let kept = files.clone();
        crate::task::spawn("old files", async move {
            loop {
                let kept = kept.clone();
                let look = tokio::task::spawn_blocking(move || kept.clean(clock::wall_ms()));
                if let Err(why) = look.await {
                    tracing::warn!("old files could not be looked for: {why}");
                }
                clock::passed(LOOK_EVERY).await;
            }
        });
        Ok(files)
    }

    /// A place for one more file of this name, as it may be called. Waits for the disk.
    ///
    /// # Errors
    /// There are too many already, or it can't be made.
    pub fn begin(&self, name: &str) -> Result<Incoming, Refusal> {
        if self.bytes() >= ALL_BYTES_MAX {
            return Err(Refusal::TooMany {
                place: self.dir.display().to_string(),
            });
        }
        let dir = self.dir.join(random_hex::<8>());
        DirBuilder::new()
            .mode(0o700)
            .create(&dir)
            .map_err(|error| Refusal::of(error, "Can't make a place for the file"))?;
        let path = dir.join(safe_name(name));
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path);
        let mut incoming = Incoming {
            dir,
            path,
            file: None,
            bytes: 0,
            kept: false,
        };
        incoming.file = Some(file.map_err(|error| Refusal::of(error, "Can't make the file"))?);
        Ok(incoming)
    }

    /// Removes what is older than [`KEPT_MS`]. What can't be removed is tried again at the next look.
    fn clean(&self, now_ms: i64) {
        let entries = match fs::read_dir(&self.dir) {
            Ok(entries) => entries,
            Err(why) => {
                tracing::warn!("can't look into {}: {why}", self.dir.display());
                return;
            }
        };
        for entry in entries.flatten() {
            let Ok(meta) = entry.metadata() else { continue };
            let old = meta
                .modified()
                .is_ok_and(|at| now_ms - clock::unix_ms(at) > KEPT_MS);
            if !old {
                continue;
            }
            let path = entry.path();
            // A link is removed itself, never what it leads to.
            let removed = if meta.is_dir() {
                fs::remove_dir_all(&path)
            } else {
                fs::remove_file(&path)
            };
            if let Err(why) = removed {
                tracing::warn!("can't remove {}: {why}", path.display());
            }
        }
    }

    /// How much is kept now. What can't be looked at counts as nothing.
    fn bytes(&self) -> u64 {
        let dirs = fs::read_dir(&self.dir).into_iter().flatten().flatten();
        dirs.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
            .flat_map(|entry| fs::read_dir(entry.path()).into_iter().flatten().flatten())
            .filter_map(|entry| entry.metadata().ok())
            .map(|meta| meta.len())
            .sum()
    }
}

/// A file that is on its way. Dropped before [`Incoming::keep`], nothing is left of it.
#[derive(Debug)]
pub struct Incoming {
    dir: PathBuf,
    path: PathBuf,
    file: Option<File>,
    bytes: u64,
    kept: bool,
}

impl Incoming {
    /// Takes the next piece. Waits for the disk.
    ///
    /// # Errors
    /// It is too large, or can't be written.
    pub fn write(&mut self, piece: &[u8]) -> Result<(), Refusal> {
        self.bytes += piece.len() as u64;
        if self.bytes > BYTES_MAX {
            return Err(Refusal::TooLarge);
        }
        let file = self.file.as_mut().context("the file is closed")?;
        file.write_all(piece)
            .map_err(|error| Refusal::of(error, "Can't write the file"))
    }

    /// It is whole: where it is, and how large.
    ///
    /// # Errors
    /// The disk has not taken it.
    pub fn keep(mut self) -> Result<(PathBuf, u64), Refusal> {
        let file = self.file.take().context("the file is closed")?;
        // A full disk of a network says so only now.
        file.sync_all()
            .map_err(|error| Refusal::of(error, "Can't write the file"))?;
        self.kept = true;
        Ok((self.path.clone(), self.bytes))
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        if !self.kept
            && let Err(why) = fs::remove_dir_all(&self.dir)
        {
            tracing::warn!("can't remove {}: {why}", self.dir.display());
        }
    }
}

/// The name as it may stand in a message, a shell and a terminal without meaning anything else: letters and digits of
/// every script, and `.`, `_` and `-` inside. Its ending stays.
fn safe_name(name: &str) -> String {
    let base = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let plain: String = base
        .chars()
        .map(|c| match c {
            '.' | '_' | '-' => c,
            c if c.is_alphanumeric() => c,
            _ => '_',
        })
        .collect();
    let plain = plain.trim_start_matches(['.', '-']).trim_end_matches('.');
    if plain.trim_matches('_').is_empty() {
        return "file".to_owned();
    }
    if plain.len() <= NAME_BYTES_MAX {
        return plain.to_owned();
    }
    let (stem, ending) = match Path::new(plain).extension().and_then(|end| end.to_str()) {
        Some(end) if end.len() <= ENDING_BYTES_MAX => {
            (plain.strip_suffix(end).unwrap_or(plain), end)
        }
        Some(_) | None => (plain, ""),
    };
    let mut cut = stem.trim_end_matches('.');
    let room = NAME_BYTES_MAX - ending.len() - 1;
    while cut.len() > room {
        let mut chars = cut.chars();
        chars.next_back();
        cut = chars.as_str();
    }
    if ending.is_empty() {
        cut.to_owned()
    } else {
        format!("{cut}.{ending}")
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    fn files(dir: &Path) -> Files {
        Files {
            dir: dir.to_owned(),
        }
    }

    #[test]
    fn a_name_is_nothing_but_a_name() {
        for (given, kept) in [
            ("photo.png", "photo.png"),
            ("螢幕快照 2026.png", "螢幕快照_2026.png"),
            ("../../etc/passwd", "passwd"),
            ("C:\\Users\\me\\a b.txt", "a_b.txt"),
            ("-rf", "rf"),
            (".bashrc", "bashrc"),
            ("$(rm -rf ~);`x`.txt", "__rm_-rf_____x_.txt"),
            ("a\nb\u{1b}[31m\u{202e}gnp.exe", "a_b__31m_gnp.exe"),
            ("…", "file"),
            ("", "file"),
            ("..", "file"),
        ] {
            assert_eq!(safe_name(given), kept, "{given:?}");
        }
        let long = safe_name(&format!("{}.tar.gz", "長".repeat(200)));
        assert!(
            long.len() <= NAME_BYTES_MAX && long.ends_with(".gz"),
            "{long}"
        );
        assert!(safe_name(&"x".repeat(400)).len() <= NAME_BYTES_MAX);
        assert!(safe_name(&format!("a.{}", "x".repeat(400))).len() <= NAME_BYTES_MAX);
    }

    #[test]
    fn one_is_kept_for_its_owner_alone_and_two_of_a_name_are_two() {
        let dir = tempfile::tempdir().unwrap();
        let all = files(dir.path());
        let mut one = all.begin("a.txt").unwrap();
        one.write(b"first").unwrap();
        let (one, bytes) = one.keep().unwrap();
        assert_eq!(bytes, 5);
        let mut two = all.begin("a.txt").unwrap();
        two.write(b"second").unwrap();
        let (two, _) = two.keep().unwrap();
        assert_eq!(fs::read(&one).unwrap(), b"first");
        assert_eq!(fs::read(&two).unwrap(), b"second");
        assert_eq!(fs::metadata(&one).unwrap().mode() & 0o777, 0o600);
        assert_eq!(
            fs::metadata(one.parent().unwrap()).unwrap().mode() & 0o777,
            0o700
        );
        assert_eq!(all.bytes(), 11);
    }

    #[test]
    fn of_one_that_does_not_come_whole_nothing_is_left() {
        let dir = tempfile::tempdir().unwrap();
        let all = files(dir.path());
        let mut cut = all.begin("a").unwrap();
        cut.write(b"half").unwrap();
        drop(cut);
        let mut large = all.begin("b").unwrap();
        let piece = vec![0; 8 * 1024 * 1024];
        for _ in 0..5 {
            large.write(&piece).unwrap();
        }
        assert!(matches!(large.write(b"x"), Err(Refusal::TooLarge)));
        drop(large);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_is_older_than_a_day_goes_and_a_link_leads_nowhere() {
        let (dir, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let all = files(dir.path());
        fs::write(outside.path().join("mine"), "x").unwrap();
        std::os::unix::fs::symlink(outside.path(), dir.path().join("link")).unwrap();
        let (path, _) = all.begin("a").unwrap().keep().unwrap();
        let now = clock::wall_ms();
        all.clean(now + KEPT_MS - 60_000);
        assert!(path.exists());
        all.clean(now + KEPT_MS + 60_000);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        assert!(outside.path().join("mine").exists());
    }
}
