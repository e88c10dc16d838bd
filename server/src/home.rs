//! The home directory: `$PURPLEMUX_HOME`, else `~/.purplemux`. Owns its path, its permissions, the lock that
//! keeps a second server out, and how files get into it.
//!
//! It never trusts the umask (files are 0600 and directories 0700 whatever it says), never writes a file
//! in place, and never sets the process's umask either: the tmux server and every shell would inherit it.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use rustix::fs::{FlockOperation, flock};
use sha2::{Digest as _, Sha256};

use crate::clock;

/// The longest path a socket may have: `sun_path` holds 108 bytes with its end (unix(7)); the rest is room
/// for a temporary suffix.
pub const SOCKET_PATH_BYTES_MAX: usize = 100;

/// A lock that is held is tried again this often …
const LOCK_TRIES: u32 = 20;
/// … this far apart: a second in all.
const LOCK_RETRY: Duration = Duration::from_millis(50);

/// Where everything of one instance lives. Cheap to clone; holds no lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    dir: PathBuf,
    default: bool,
}

impl Home {
    /// The home this process is to use: `$PURPLEMUX_HOME`, else `~/.purplemux`. Touches nothing.
    ///
    /// # Errors
    /// Neither `PURPLEMUX_HOME` nor `HOME` is set.
    pub fn locate() -> Result<Self> {
        if let Some(chosen) = std::env::var_os("PURPLEMUX_HOME").filter(|home| !home.is_empty()) {
            return Self::at(Path::new(&chosen));
        }
        match standard() {
            Some(standard) => Self::at(&standard),
            None => {
                bail!("Neither PURPLEMUX_HOME nor HOME is set; set PURPLEMUX_HOME to a directory.")
            }
        }
    }

    /// The home at this path, which need not exist yet. Touches nothing.
    ///
    /// # Errors
    /// The path is empty.
    pub fn at(dir: &Path) -> Result<Self> {
        let dir = std::path::absolute(dir)
            .with_context(|| format!("{dir:?} is not a usable path for the home directory"))?;
        // The same directory under two names is one instance.
        let dir = fs::canonicalize(&dir).unwrap_or(dir);
        let default = standard()
            .map(|standard| fs::canonicalize(&standard).unwrap_or(standard))
            .is_some_and(|standard| standard == dir);
        Ok(Self { dir, default })
    }

    /// Makes the directory if it is missing, refuses one that is not ours, and closes one that others
    /// may enter.
    ///
    /// # Errors
    /// It can't be made, is no directory, or belongs to another user.
    pub fn prepare(self) -> Result<Self> {
        let shown = self.dir.display().to_string();
        if let Some(parent) = self.dir.parent() {
            fs::create_dir_all(parent)
                .with_context(|| format!("Can't make the directory that holds {shown}"))?;
        }
        match DirBuilder::new().mode(0o700).create(&self.dir) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => {
                return Err(error).with_context(|| {
                    format!("Can't make the home directory {shown}; set PURPLEMUX_HOME to a directory that you may write")
                });
            }
        }
        let meta =
            fs::metadata(&self.dir).with_context(|| format!("Can't look at the home {shown}"))?;
        if !meta.is_dir() {
            bail!(
                "{shown} is not a directory; move it away or set PURPLEMUX_HOME to another place."
            );
        }
        let me = rustix::process::geteuid().as_raw();
        if meta.uid() != me {
            bail!(
                "{shown} belongs to user {}, not to you (user {me}); set PURPLEMUX_HOME to a directory of your own.",
                meta.uid()
            );
        }
        if meta.mode() & 0o7777 != 0o700 {
            fs::set_permissions(&self.dir, fs::Permissions::from_mode(0o700))
                .with_context(|| format!("Can't close {shown} to other users"))?;
        }
        let dir = fs::canonicalize(&self.dir)
            .with_context(|| format!("Can't resolve the path of the home {shown}"))?;
        Ok(Self {
            dir,
            default: self.default,
        })
    }

    /// The directory itself.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// A file or folder of this home.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Whether this is `~/.purplemux` of the person.
    #[must_use]
    pub fn is_default(&self) -> bool {
        self.default
    }

    /// Eight hex digits of the path's SHA-256: tells instances apart in cookie and socket names.
    #[must_use]
    pub fn instance(&self) -> String {
        use std::os::unix::ffi::OsStrExt as _;
        hex(&Sha256::digest(self.dir.as_os_str().as_bytes()))[..8].to_owned()
    }

    /// A directory inside the home, made with 0700 if it is missing.
    ///
    /// # Errors
    /// It can't be made.
    pub fn subdir(&self, name: &str) -> Result<PathBuf> {
        let dir = self.path(name);
        match DirBuilder::new().mode(0o700).create(&dir) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => {
                return Err(error).with_context(|| format!("Can't make {}", dir.display()));
            }
        }
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o700))
            .with_context(|| format!("Can't close {} to other users", dir.display()))?;
        Ok(dir)
    }

    /// Where `purplemux.sock` is to be bound. A home whose path is too long for a socket gets it in the
    /// runtime directory, and a link at the usual place says where ([`Self::socket_to_reach`]).
    ///
    /// # Errors
    /// The runtime directory can't be made or belongs to somebody else.
    pub fn socket_to_bind(&self) -> Result<PathBuf> {
        let usual = self.path("purplemux.sock");
        if usual.as_os_str().len() <= SOCKET_PATH_BYTES_MAX {
            return Ok(usual);
        }
        let runtime = match std::env::var_os("XDG_RUNTIME_DIR").filter(|dir| !dir.is_empty()) {
            Some(dir) => PathBuf::from(dir),
            None => {
                let me = rustix::process::geteuid().as_raw();
                let dir = std::env::temp_dir().join(format!("purplemux-{me}"));
                Self::at(&dir)?.prepare()?.dir
            }
        };
        let bound = runtime.join(format!("purplemux-{}.sock", self.instance()));
        if bound.as_os_str().len() > SOCKET_PATH_BYTES_MAX {
            bail!(
                "The path {} is too long for a socket; set PURPLEMUX_HOME or XDG_RUNTIME_DIR to a shorter one.",
                bound.display()
            );
        }
        match fs::remove_file(&usual) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                return Err(error).with_context(|| format!("Can't replace {}", usual.display()));
            }
        }
        std::os::unix::fs::symlink(&bound, &usual)
            .with_context(|| format!("Can't link {}", usual.display()))?;
        Ok(bound)
    }

    /// Where a program connects to reach the server of this home.
    #[must_use]
    pub fn socket_to_reach(&self) -> PathBuf {
        let usual = self.path("purplemux.sock");
        if usual.as_os_str().len() <= SOCKET_PATH_BYTES_MAX {
            return usual;
        }
        fs::read_link(&usual).unwrap_or(usual)
    }

    /// Takes the single place of a server in this home, for as long as the returned value lives.
    ///
    /// # Errors
    /// Another server holds it; the message names its pid and the home.
    pub fn lock(&self) -> Result<Lock> {
        // The directory is locked as well as the file: a removed or replaced `lock` file then frees nothing.
        let dir =
            File::open(&self.dir).with_context(|| format!("Can't open {}", self.dir.display()))?;
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(self.path("lock"))
            .with_context(|| format!("Can't open the lock in {}", self.dir.display()))?;
        file.set_permissions(fs::Permissions::from_mode(0o600))
            .context("Can't close the lock file to other users")?;
        for handle in [&dir, &file] {
            match lock_soon(handle) {
                Ok(()) => {}
                Err(rustix::io::Errno::WOULDBLOCK) => {
                    let mut pid = String::new();
                    (&file)
                        .read_to_string(&mut pid)
                        .context("Can't read the lock")?;
                    let pid = pid.trim();
                    bail!(
                        "A purplemux server (process {}) is already running in {}; stop it, or set PURPLEMUX_HOME to another directory.",
                        if pid.is_empty() { "unknown" } else { pid },
                        self.dir.display()
                    );
                }
                Err(error) => {
                    return Err(error)
                        .with_context(|| format!("Can't lock {}", self.dir.display()));
                }
            }
        }
        self.sweep();
        file.set_len(0).context("Can't write the lock")?;
        file.rewind().context("Can't write the lock")?;
        writeln!(file, "{}", std::process::id()).context("Can't write the lock")?;
        Ok(Lock {
            _dir: dir,
            _file: file,
        })
    }

    /// Removes what a killed server has begun to write and nobody will finish; see [`write_atomic`]. Under the lock,
    /// so that nobody is writing now.
    fn sweep(&self) {
        let entries = fs::read_dir(&self.dir).into_iter().flatten().flatten();
        for entry in entries {
            let name = entry.file_name().to_string_lossy().into_owned();
            if is_temporary(&name)
                && let Err(error) = fs::remove_file(entry.path())
            {
                tracing::warn!("Can't remove the half-written {name}: {error}");
            }
        }
    }

    /// The token that hooks carry (it is good for posting events and nothing else), made at the first call.
    ///
    /// # Errors
    /// It can't be read or written.
    pub fn cli_token(&self) -> Result<String> {
        let path = self.path("cli-token");
        match fs::read_to_string(&path) {
            Ok(token) if token.trim().len() >= 32 => {
                fs::set_permissions(&path, fs::Permissions::from_mode(0o600))
                    .with_context(|| format!("Can't close {}", path.display()))?;
                return Ok(token.trim().to_owned());
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                return Err(error).with_context(|| format!("Can't read {}", path.display()));
            }
        }
        let token = random_hex::<32>();
        write_atomic(&path, format!("{token}\n").as_bytes(), 0o600)?;
        Ok(token)
    }
}

/// Takes a lock that may be just about to be freed: the kernel frees those of a killed server only when it
/// has taken the process apart (measured: 70 to 85 ms after kill -9), and a supervisor starts the next at once.
fn lock_soon(handle: &File) -> rustix::io::Result<()> {
    for _ in 0..LOCK_TRIES {
        match flock(handle, FlockOperation::NonBlockingLockExclusive) {
            Err(rustix::io::Errno::WOULDBLOCK) => clock::passed_blocking(LOCK_RETRY),
            taken_or_failed => return taken_or_failed,
        }
    }
    flock(handle, FlockOperation::NonBlockingLockExclusive)
}

/// `~/.purplemux`, if it can be told.
fn standard() -> Option<PathBuf> {
    std::env::var_os("HOME")
        .filter(|home| !home.is_empty())
        .map(|home| PathBuf::from(home).join(".purplemux"))
}

/// Proof of being the only server in a home. The kernel gives it up with the process, however that ends.
#[derive(Debug)]
pub struct Lock {
    _dir: File,
    _file: File,
}

/// Writes a file whole or not at all: a temporary name beside it, then a rename. `mode` holds whatever
/// the umask is.
///
/// # Errors
/// The directory can't be written or the disk is full; the old file is then still there.
pub fn write_atomic(path: &Path, bytes: &[u8], mode: u32) -> Result<()> {
    let name = path
        .file_name()
        .with_context(|| format!("{} names no file", path.display()))?
        .to_string_lossy()
        .into_owned();
    let temporary = path.with_file_name(temporary(&name));
    let written = (|| -> io::Result<()> {
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(&temporary)?;
        file.set_permissions(fs::Permissions::from_mode(mode))?;
        file.write_all(bytes)?;
        file.sync_data()?;
        fs::rename(&temporary, path)
    })();
    if let Err(error) = written {
        // Best effort: the write's own error is the one to report.
        drop(fs::remove_file(&temporary));
        return Err(error).with_context(|| format!("Can't write {}", path.display()));
    }
    Ok(())
}

/// The name under which a file is written until it is whole.
fn temporary(name: &str) -> String {
    format!(".{name}.{}", random_hex::<8>())
}

fn is_temporary(name: &str) -> bool {
    let random = name
        .strip_prefix('.')
        .and_then(|rest| rest.rsplit_once('.'));
    random.is_some_and(|(name, random)| {
        !name.is_empty()
            && random.len() == 16
            && random.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

/// `N` random bytes of the operating system in hex.
#[must_use]
pub fn random_hex<const N: usize>() -> String {
    use rand::TryRngCore as _;
    let mut bytes = [0_u8; N];
    rand::rngs::OsRng
        .try_fill_bytes(&mut bytes)
        .expect("getrandom(2) can't fail on Linux once the system is up");
    hex(&bytes)
}

/// Lower-case hex.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            write!(text, "{byte:02x}").expect("writing to a String can't fail");
            text
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home(dir: &Path) -> Home {
        Home::at(dir).unwrap().prepare().unwrap()
    }

    #[test]
    fn a_lock_outlives_the_removal_of_its_file() {
        let root = tempfile::tempdir().unwrap();
        let home = home(&root.path().join("h"));
        let held = home.lock().unwrap();
        fs::remove_file(home.path("lock")).unwrap();
        home.lock()
            .expect_err("the directory itself is still locked");
        drop(held);
        home.lock().unwrap();
    }

    #[test]
    fn a_lock_that_is_being_freed_is_waited_for() {
        let root = tempfile::tempdir().unwrap();
        let home = home(&root.path().join("h"));
        let held = home.lock().unwrap();
        std::thread::scope(|scope| {
            let next = scope.spawn(|| home.lock());
            clock::passed_blocking(LOCK_RETRY * 3);
            drop(held);
            next.join().unwrap().unwrap();
        });
    }

    #[test]
    fn a_refused_second_server_is_told_who_holds_the_home() {
        let root = tempfile::tempdir().unwrap();
        let home = home(&root.path().join("h"));
        let _held = home.lock().unwrap();
        let message = home.lock().unwrap_err().to_string();
        assert!(
            message.contains(&std::process::id().to_string()),
            "{message}"
        );
        assert!(
            message.contains(&home.dir().display().to_string()),
            "{message}"
        );
    }

    #[test]
    fn a_loose_directory_is_closed_and_a_file_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("h");
        fs::create_dir(&dir).unwrap();
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o777)).unwrap();
        home(&dir);
        assert_eq!(fs::metadata(&dir).unwrap().mode() & 0o777, 0o700);
        let file = root.path().join("f");
        fs::write(&file, "").unwrap();
        let refused = Home::at(&file).unwrap().prepare();
        refused.expect_err("a file is no home");
    }

    #[test]
    fn a_long_home_gets_its_socket_elsewhere_and_is_still_found() {
        let root = tempfile::tempdir().unwrap();
        let home = home(&root.path().join("x".repeat(120)));
        let bound = home.socket_to_bind().unwrap();
        assert!(bound.as_os_str().len() <= SOCKET_PATH_BYTES_MAX);
        assert_eq!(home.socket_to_reach(), bound);
    }

    #[test]
    fn what_was_half_written_is_swept_away_by_the_next_server() {
        let root = tempfile::tempdir().unwrap();
        let home = home(&root.path().join("h"));
        let half = home.path(&temporary("port"));
        let others = [".notes", ".hidden.txt", "port", ".x.0123456789abcdeg"];
        for path in others.map(|name| home.path(name)).iter().chain([&half]) {
            fs::write(path, "").unwrap();
        }
        let _held = home.lock().unwrap();
        assert!(!half.exists());
        assert!(others.iter().all(|name| home.path(name).exists()));
    }

    #[test]
    fn the_token_is_made_once() {
        let root = tempfile::tempdir().unwrap();
        let home = home(&root.path().join("h"));
        let token = home.cli_token().unwrap();
        assert_eq!(token.len(), 64);
        assert_eq!(home.cli_token().unwrap(), token);
        let mode = fs::metadata(home.path("cli-token")).unwrap().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
