//! `logs/server.log`: bounded while the server runs. At its bound the log begins anew, and the one before
//! it is kept beside it. Must never fail for a line: a log that can't be written is no reason to stop.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// The log begins anew at this size; with the one before it, it takes twice that.
pub const BYTES_MAX: u64 = 8 * 1024 * 1024;

/// The open log. One write is one line.
#[derive(Debug)]
pub struct LogFile {
    path: PathBuf,
    file: File,
    bytes: u64,
    bytes_max: u64,
}

impl LogFile {
    /// Goes on with the log at `path`, or begins it, closed to other users.
    ///
    /// # Errors
    /// It can't be written.
    pub fn open(path: PathBuf, bytes_max: u64) -> io::Result<Self> {
        let (file, bytes) = open(&path)?;
        let mut log = Self {
            path,
            file,
            bytes,
            bytes_max,
        };
        if log.bytes >= log.bytes_max {
            log.begin_anew()?;
        }
        Ok(log)
    }

    fn begin_anew(&mut self) -> io::Result<()> {
        fs::rename(&self.path, self.path.with_extension("log.1"))?;
        (self.file, self.bytes) = open(&self.path)?;
        Ok(())
    }
}

fn open(path: &Path) -> io::Result<(File, u64)> {
    let file = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)?;
    file.set_permissions(Permissions::from_mode(0o600))?;
    let bytes = file.metadata()?.len();
    Ok((file, bytes))
}

impl Write for LogFile {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.bytes >= self.bytes_max && self.begin_anew().is_err() {
            // Its folder is gone or closed: as much again goes to the file that is open, then another attempt.
            self.bytes = 0;
        }
        let written = self.file.write(line)?;
        self.bytes = self
            .bytes
            .saturating_add(u64::try_from(written).unwrap_or(u64::MAX));
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &[u8] = b"0123456789abcdef\n";

    fn size(path: &Path) -> u64 {
        fs::metadata(path).unwrap().len()
    }

    #[test]
    fn it_is_bounded_while_it_is_written_and_keeps_the_one_before() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("server.log");
        let before = dir.path().join("server.log.1");
        let mut log = LogFile::open(path.clone(), 1000).unwrap();
        for _ in 0..1000 {
            log.write_all(LINE).unwrap();
            assert!(size(&path) < 1000 + LINE.len() as u64);
        }
        assert!((1000..1100).contains(&size(&before)));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
        for path in [&path, &before] {
            assert!(
                fs::read(path)
                    .unwrap()
                    .chunks(LINE.len())
                    .all(|l| l == LINE)
            );
            let mode = fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode, 0o600);
        }
    }

    #[test]
    fn a_long_one_is_put_aside_at_the_start_and_a_short_one_goes_on() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("server.log");
        fs::write(&path, LINE).unwrap();
        let mut log = LogFile::open(path.clone(), 20).unwrap();
        log.write_all(LINE).unwrap();
        drop(log);
        assert_eq!(size(&path), 2 * LINE.len() as u64);
        drop(LogFile::open(path.clone(), 20).unwrap());
        assert_eq!(size(&path), 0);
        assert_eq!(
            size(&dir.path().join("server.log.1")),
            2 * LINE.len() as u64
        );
    }

    #[test]
    fn without_its_folder_it_goes_on() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("logs/server.log");
        fs::create_dir(dir.path().join("logs")).unwrap();
        let mut log = LogFile::open(path.clone(), 40).unwrap();
        fs::remove_dir_all(dir.path().join("logs")).unwrap();
        for _ in 0..10 {
            log.write_all(LINE).unwrap();
        }
        fs::create_dir(dir.path().join("logs")).unwrap();
        fs::write(&path, "").unwrap();
        for _ in 0..10 {
            log.write_all(LINE).unwrap();
        }
        assert!(size(&path) > 0);
    }
}
