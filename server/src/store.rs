//! `purplemux.db` (SQLite, WAL): workspaces, tabs, logins and login codes, settings, the badges that must
//! outlive a restart, and the journal. One thread owns the connection; everybody else holds a [`Store`] and asks.
//!
//! It never keeps a secret in the clear (only SHA-256 of codes, cookies and secrets comes in), and never
//! throws a damaged database away: it is set aside with a sentence that says where, and what the person has made
//! (layout, settings, sign-ins) comes back from the copy that [`kept`] makes of it.

mod kept;

use std::fs::{self, OpenOptions};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result, anyhow};
use futures_util::future::BoxFuture;
use purplemux_wire::sentence::{Cause, Sentence};
use rusqlite::{Connection, OptionalExtension as _, params};
use rusqlite_migration::{M, Migrations};
use tokio::sync::{mpsc, oneshot};

use crate::clock;
use crate::effects::journal::{Row, Shelf};
use crate::effects::persist::Keep;

/// Questions that may wait for the writer: at 20 µs each, a full queue is 20 ms of work; more is backpressure.
const QUEUE: usize = 1024;

/// Every version the schema ever had, oldest first; only ever appended to.
const MIGRATIONS: &[M<'_>] = &[M::up(
    "CREATE TABLE workspaces (
        id TEXT PRIMARY KEY, name TEXT NOT NULL, dir TEXT NOT NULL, position INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE tabs (
        id TEXT PRIMARY KEY,
        workspace TEXT NOT NULL REFERENCES workspaces(id),
        name TEXT, cwd TEXT NOT NULL, kind TEXT NOT NULL, position INTEGER NOT NULL,
        ended INTEGER NOT NULL DEFAULT 0, created_ms INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE logins (
        id TEXT PRIMARY KEY, authority TEXT NOT NULL,
        cookie_hash BLOB NOT NULL, secret_hash BLOB NOT NULL, created_ms INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE login_codes (hash BLOB PRIMARY KEY, expires_ms INTEGER NOT NULL) STRICT;
    CREATE TABLE settings (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
    CREATE TABLE badges (agent TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;",
), M::up(
    "CREATE TABLE journal (
        seq INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, agent TEXT, tab TEXT,
        verdict INTEGER NOT NULL, record TEXT NOT NULL
    ) STRICT;
    CREATE INDEX journal_agent ON journal (agent, seq) WHERE agent IS NOT NULL;
    CREATE INDEX journal_verdict ON journal (agent, seq) WHERE verdict;
    CREATE INDEX journal_tab ON journal (tab, seq) WHERE tab IS NOT NULL;
    CREATE TABLE journal_size (one INTEGER PRIMARY KEY CHECK (one = 1), bytes INTEGER NOT NULL) STRICT;
    INSERT INTO journal_size VALUES (1, 0);",
), M::up(
    "CREATE TABLE subscriptions (
        login TEXT PRIMARY KEY REFERENCES logins(id) ON DELETE CASCADE,
        address TEXT NOT NULL, choices TEXT NOT NULL, last TEXT
    ) STRICT;
    CREATE TABLE notifications (
        seq INTEGER PRIMARY KEY, episode INTEGER NOT NULL, row TEXT NOT NULL, title TEXT NOT NULL,
        about TEXT NOT NULL, text TEXT NOT NULL, at_ms INTEGER NOT NULL, ended_ms INTEGER
    ) STRICT;
    ALTER TABLE logins ADD COLUMN name TEXT NOT NULL DEFAULT '';
    ALTER TABLE logins ADD COLUMN seen_ms INTEGER NOT NULL DEFAULT 0;",
), M::up(
    "CREATE TABLE answers (
        seq INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, by TEXT NOT NULL, origin TEXT NOT NULL,
        item TEXT NOT NULL, title TEXT NOT NULL, asked TEXT NOT NULL, what TEXT NOT NULL,
        result TEXT NOT NULL, why TEXT
    ) STRICT;",
), M::up(
    "ALTER TABLE workspaces ADD COLUMN color TEXT;
    ALTER TABLE workspaces ADD COLUMN heading TEXT;
    ALTER TABLE workspaces ADD COLUMN panes TEXT;
    ALTER TABLE workspaces ADD COLUMN closing_ms INTEGER;
    ALTER TABLE tabs ADD COLUMN closing_ms INTEGER;
    ALTER TABLE tabs ADD COLUMN conversation TEXT;
    ALTER TABLE tabs ADD COLUMN conversation_title TEXT;
    ALTER TABLE tabs ADD COLUMN offered INTEGER NOT NULL DEFAULT 0;",
), M::up("ALTER TABLE answers ADD COLUMN said TEXT;")];

/// A workspace as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkspaceRow {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its default directory.
    pub dir: String,
    /// The word for its colour.
    pub color: Option<String>,
    /// The heading it stands under.
    pub group: Option<String>,
    /// Its panes, as JSON that only the layout reads.
    pub panes: Option<String>,
    /// It is closed, and can be brought back until then (unix ms).
    pub closing_ms: Option<i64>,
}

/// A tab as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TabRow {
    /// Its id; its tmux session is marked with it.
    pub id: String,
    /// Its workspace.
    pub workspace: String,
    /// The name the person gave it.
    pub name: Option<String>,
    /// The directory it was opened in, then the one that its shell was last seen in.
    pub cwd: String,
    /// `terminal`, `claude-code`, or `foreign` for a session that somebody else has made.
    pub kind: String,
    /// Its tmux session has ended.
    pub ended: bool,
    /// When it was made, unix ms.
    pub created_ms: i64,
    /// It is closed, and can be brought back until then (unix ms).
    pub closing_ms: Option<i64>,
    /// The conversation that runs in it, or ran when its shell ended.
    pub conversation: Option<String>,
    /// What that was called.
    pub conversation_title: Option<String>,
    /// Its shell was started again since: the conversation can be taken up.
    pub offered: bool,
}

/// A login: only hashes of what the browser holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoginRow {
    /// Its id; not secret.
    pub id: String,
    /// The authority (host and port) it was made for.
    pub authority: String,
    /// SHA-256 of the cookie's secret half.
    pub cookie_hash: Vec<u8>,
    /// SHA-256 of the secret in the page's localStorage.
    pub secret_hash: Vec<u8>,
    /// When it was made, unix ms.
    pub created_ms: i64,
    /// What its browser calls itself; empty if it did not say.
    pub name: String,
    /// When it was last used, unix ms, to the minute; 0: not since it was made.
    pub seen_ms: i64,
}

/// A device's push subscription; `address`, `choices` and `last` are JSON that only their owner reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubscriptionRow {
    /// Its login, which it ends with.
    pub login: String,
    /// Where it listens. A secret: whoever has it can write to the device's push service.
    pub address: String,
    /// What it wants.
    pub choices: String,
    /// How the last delivery went.
    pub last: Option<String>,
}

/// A notification as it is remembered.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct NotificationRow {
    /// Which stay.
    pub episode: u64,
    /// The row it was about.
    pub row: String,
    /// The session's title then.
    pub title: String,
    /// permission, question, plan, form, dialog, startup, finished or failed.
    pub about: String,
    /// What was asked, or Claude's last words.
    pub text: String,
    /// When somebody was first told, unix ms.
    pub at_ms: i64,
    /// When it was over.
    pub ended_ms: Option<i64>,
}

/// An answer as it is kept in the log: given, refused or failed.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct AnswerRow {
    /// When it came in, unix ms.
    pub at_ms: i64,
    /// Who: the device's name.
    pub by: String,
    /// Where from: the login's id, or the process behind a command.
    pub origin: String,
    /// The row it was for.
    pub item: String,
    /// The session's title then.
    pub title: String,
    /// What was asked.
    pub asked: String,
    /// What was answered; `stop` for an interrupt.
    pub what: String,
    /// `sent`, `failed`, or `refused`: then nothing was typed.
    pub result: String,
    /// Why it was refused or failed, in English.
    pub why: Option<String>,
    /// The same as its code and arguments; none in rows that were written before codes were.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub said: Option<Sentence>,
}

type Job = Box<dyn FnOnce(&mut Connection) + Send>;

/// The way to the database's thread. Cheap to clone; the thread ends with the last of them.
#[derive(Clone, Debug)]
pub struct Store {
    jobs: mpsc::Sender<Job>,
    damage: Arc<Damage>,
    /// The home that it lies in.
    dir: Arc<Path>,
}

/// There is no room for what was to be written. Says so to the person by itself, so nothing need be added.
#[derive(Debug, thiserror::Error)]
#[error(
    "The disk that holds {home} is full: free some space there, then try again. Badges go on meanwhile."
)]
pub struct Full {
    /// The home on it.
    pub home: String,
}

/// Less than this and SQLite can't even begin to write: a page, its log and their index.
const FREE_BYTES_MIN: u64 = 64 * 1024;

/// What was found out about the file's state while it is used. Leaf data.
#[derive(Debug, Default)]
struct Damage {
    found: AtomicBool,
    /// What the person has to know about a database that was set aside.
    notice: Mutex<Option<Cause>>,
}

impl Damage {
    fn note(&self, error: &rusqlite::Error) {
        if is_damage(error) {
            self.found.store(true, Ordering::Relaxed);
        }
    }

    fn say(&self, notice: Cause) {
        tracing::error!("{notice}");
        *self.notice.lock().unwrap_or_else(PoisonError::into_inner) = Some(notice);
    }
}

/// Opens the database, making or upgrading it, and starts its thread. A damaged one is set aside: see
/// [`Store::notice`].
///
/// # Errors
/// The file can't be made or a damaged one can't be set aside, or it was written by a newer version.
pub fn open(path: &Path) -> Result<Store> {
    let damage = Arc::new(Damage::default());
    let connection = match whole(path) {
        Ok(connection) => connection,
        Err(error)
            if error
                .chain()
                .filter_map(|cause| cause.downcast_ref())
                .any(is_damage) =>
        {
            replace(path, &format!("{error:#}"), &damage)?
        }
        Err(error) => return Err(error),
    };
    let copier = kept::Copier::start(path.to_owned(), Arc::clone(&damage))?;
    copier.follow(&connection)?;
    let (jobs, mut inbox) = mpsc::channel::<Job>(QUEUE);
    let file = Thread {
        path: path.to_owned(),
        damage: Arc::clone(&damage),
        copier,
    };
    std::thread::Builder::new()
        .name("store".to_owned())
        .spawn(move || {
            let mut connection = Some(connection);
            while let Some(job) = inbox.blocking_recv() {
                if file.damage.found.swap(false, Ordering::Relaxed) {
                    connection = file.replaced(connection.take());
                }
                if let Some(connection) = &mut connection {
                    job(connection);
                }
                // Without one nobody is answered, and every asker hears that.
            }
        })
        .context("Can't start the database's thread")?;
    let dir = path.parent().unwrap_or(Path::new("."));
    Ok(Store {
        jobs,
        damage,
        dir: dir.into(),
    })
}

/// What the database's thread needs when its file turns out to be damaged.
struct Thread {
    path: PathBuf,
    damage: Arc<Damage>,
    copier: kept::Copier,
}

impl Thread {
    /// A database in place of a damaged one; the old one if that can't be had, or if nothing is wrong with it: the
    /// damage may be that of one that was replaced already.
    fn replaced(&self, in_use: Option<Connection>) -> Option<Connection> {
        let sound = |connection: &Connection| check(connection, "PRAGMA quick_check(1)").is_ok();
        let damaged = match in_use {
            Some(connection) if sound(&connection) => return Some(connection),
            damaged_or_none => damaged_or_none,
        };
        // Closed first: what is still open would write into the file that is set aside.
        drop(damaged);
        let replaced = replace(&self.path, "found while it was used", &self.damage)
            .and_then(|connection| self.copier.follow(&connection).map(|()| connection));
        match replaced {
            Ok(connection) => Some(connection),
            Err(why) => {
                tracing::error!("The damaged database can't be replaced: {why:#}");
                connect(&self.path).ok()
            }
        }
    }
}

/// Sets a damaged database aside and makes a new one with what was kept of the old.
fn replace(path: &Path, why: &str, damage: &Damage) -> Result<Connection> {
    let aside = set_aside(path, clock::wall_ms())?;
    let aside = aside.display();
    let mut connection = connect(path)?;
    let (why, aside) = (why.to_owned(), aside.to_string());
    damage.say(match kept::restore(&mut connection, path) {
        Ok(true) => Cause::DatabaseDamaged { why, aside },
        Ok(false) => Cause::DatabaseAnew { why, aside },
        Err(copy) => Cause::DatabaseAnew {
            why: format!("{why}; its last good copy can't be used: {copy:#}"),
            aside,
        },
    });
    Ok(connection)
}

/// Opens it and looks whether all that must be right from the start is whole. The journal, which may be large, is
/// looked through later, by [`kept`].
fn whole(path: &Path) -> Result<Connection> {
    // SQLite takes an empty file for a new database. One that has a copy was more than that.
    let empty = fs::metadata(path).map_or(true, |meta| meta.len() == 0);
    if empty && kept::path(path).exists() {
        return Err(damaged("it is empty").into());
    }
    let connection = connect(path)?;
    for table in kept::tables(&connection, "main")? {
        check(&connection, &format!("PRAGMA main.quick_check('{table}')"))?;
    }
    check(&connection, "PRAGMA main.quick_check('badges')")?;
    Ok(connection)
}

fn check(connection: &Connection, pragma: &str) -> Result<()> {
    let verdict: String = connection.query_row(pragma, [], |row| row.get(0))?;
    if verdict != "ok" {
        return Err(damaged(&verdict).into());
    }
    Ok(())
}

fn damaged(why: &str) -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(
        rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT),
        Some(why.to_owned()),
    )
}

fn connect(path: &Path) -> Result<Connection> {
    // SQLite makes its -wal and -shm files with the permissions of the database, so this one decides all three.
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
        .with_context(|| format!("Can't open {}", path.display()))?;
    file.set_permissions(fs::Permissions::from_mode(0o600))
        .with_context(|| format!("Can't close {} to other users", path.display()))?;
    drop(file);
    let mut connection =
        Connection::open(path).with_context(|| format!("Can't open {}", path.display()))?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    Migrations::from_slice(MIGRATIONS)
        .to_latest(&mut connection)
        .context("Can't bring the database to this version's layout")?;
    Ok(connection)
}

fn is_damage(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(rusqlite::ErrorCode::DatabaseCorrupt | rusqlite::ErrorCode::NotADatabase)
    )
}

fn set_aside(path: &Path, now_ms: i64) -> Result<PathBuf> {
    let named = |path: &Path, suffix: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        PathBuf::from(name)
    };
    let aside = named(path, &format!(".damaged-{now_ms}"));
    match fs::rename(path, &aside) {
        Ok(()) => {}
        // It is gone altogether.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => {
            return Err(error)
                .with_context(|| format!("Can't set the damaged {} aside", path.display()));
        }
    }
    for suffix in ["-wal", "-shm"] {
        let beside = named(path, suffix);
        match fs::rename(&beside, named(&aside, suffix)) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => {
                return Err(error)
                    .with_context(|| format!("Can't set the damaged {} aside", beside.display()));
            }
        }
    }
    Ok(aside)
}

impl Store {
    /// Runs `job` on the database's thread and waits for its answer.
    async fn ask<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T> {
        let (answer, wait) = oneshot::channel();
        let damage = Arc::clone(&self.damage);
        let job: Job = Box::new(move |connection| {
            let done = job(connection).inspect_err(|error| damage.note(error));
            // Nobody waits any more: the work itself is done, only its answer is not wanted.
            drop(answer.send(done));
        });
        self.jobs
            .send(job)
            .await
            .map_err(|_| anyhow!("the database's thread has ended"))?;
        let done = wait.await.context("the database's thread has ended")?;
        done.map_err(|error| {
            if self.is_full(&error) {
                let home = self.dir.display().to_string();
                Full { home }.into()
            } else {
                error.into()
            }
        })
    }

    /// Whether it failed for want of room: SQLite calls it an error of the disk where its log can't grow.
    fn is_full(&self, error: &rusqlite::Error) -> bool {
        match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::DiskFull) => true,
            Some(rusqlite::ErrorCode::SystemIoFailure) => rustix::fs::statvfs(&*self.dir)
                .is_ok_and(|disk| disk.f_bavail.saturating_mul(disk.f_frsize) < FREE_BYTES_MIN),
            Some(_) | None => false,
        }
    }

    /// What the person has to know about a database that was damaged and set aside.
    #[must_use]
    pub fn notice(&self) -> Option<Cause> {
        let notice = &self.damage.notice;
        notice
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// The layout: all workspaces and all tabs, each in order.
    ///
    /// # Errors
    /// As for every question here: the database can't be read or written.
    pub async fn layout(&self) -> Result<(Vec<WorkspaceRow>, Vec<TabRow>)> {
        self.ask(|c| {
            let workspaces = c
                .prepare_cached(
                    "SELECT id, name, dir, color, heading, panes, closing_ms FROM workspaces
                     ORDER BY position, id",
                )?
                .query_map([], |row| {
                    Ok(WorkspaceRow {
                        id: row.get(0)?,
                        name: row.get(1)?,
                        dir: row.get(2)?,
                        color: row.get(3)?,
                        group: row.get(4)?,
                        panes: row.get(5)?,
                        closing_ms: row.get(6)?,
                    })
                })?
                .collect::<rusqlite::Result<_>>()?;
            let tabs = c
                .prepare_cached(
                    "SELECT id, workspace, name, cwd, kind, ended, created_ms, closing_ms,
                        conversation, conversation_title, offered
                     FROM tabs ORDER BY position, id",
                )?
                .query_map([], |row| {
                    Ok(TabRow {
                        id: row.get(0)?,
                        workspace: row.get(1)?,
                        name: row.get(2)?,
                        cwd: row.get(3)?,
                        kind: row.get(4)?,
                        ended: row.get(5)?,
                        created_ms: row.get(6)?,
                        closing_ms: row.get(7)?,
                        conversation: row.get(8)?,
                        conversation_title: row.get(9)?,
                        offered: row.get(10)?,
                    })
                })?
                .collect::<rusqlite::Result<_>>()?;
            Ok((workspaces, tabs))
        })
        .await
    }

    /// Puts the whole layout in the place of the one that is kept, at once: a person's is a few dozen rows.
    ///
    /// # Errors
    /// The database can't be written, and the layout in it stays as it was.
    pub async fn put_layout(&self, workspaces: Vec<WorkspaceRow>, tabs: Vec<TabRow>) -> Result<()> {
        self.ask(move |c| {
            let tx = c.transaction()?;
            let kept = |ids: Vec<&str>| serde_json::json!(ids).to_string();
            tx.execute(
                "DELETE FROM tabs WHERE id NOT IN (SELECT value FROM json_each(?1))",
                [kept(tabs.iter().map(|row| row.id.as_str()).collect())],
            )?;
            for (row, position) in workspaces.iter().zip(1_i64..) {
                tx.prepare_cached(
                    "INSERT INTO workspaces
                        (id, name, dir, color, heading, panes, closing_ms, position)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
                     ON CONFLICT (id) DO UPDATE SET name = excluded.name, dir = excluded.dir,
                        color = excluded.color, heading = excluded.heading, panes = excluded.panes,
                        closing_ms = excluded.closing_ms, position = excluded.position",
                )?
                .execute(params![
                    row.id,
                    row.name,
                    row.dir,
                    row.color,
                    row.group,
                    row.panes,
                    row.closing_ms,
                    position
                ])?;
            }
            for (row, position) in tabs.iter().zip(1_i64..) {
                tx.prepare_cached(
                    "INSERT INTO tabs
                        (id, workspace, name, cwd, kind, ended, created_ms, closing_ms,
                         conversation, conversation_title, offered, position)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
                     ON CONFLICT (id) DO UPDATE SET workspace = excluded.workspace,
                        name = excluded.name, cwd = excluded.cwd, kind = excluded.kind,
                        ended = excluded.ended, closing_ms = excluded.closing_ms,
                        conversation = excluded.conversation,
                        conversation_title = excluded.conversation_title,
                        offered = excluded.offered, position = excluded.position",
                )?
                .execute(params![
                    row.id,
                    row.workspace,
                    row.name,
                    row.cwd,
                    row.kind,
                    row.ended,
                    row.created_ms,
                    row.closing_ms,
                    row.conversation,
                    row.conversation_title,
                    row.offered,
                    position
                ])?;
            }
            // Last: their tabs are elsewhere or gone by now.
            tx.execute(
                "DELETE FROM workspaces WHERE id NOT IN (SELECT value FROM json_each(?1))",
                [kept(workspaces.iter().map(|row| row.id.as_str()).collect())],
            )?;
            tx.commit()
        })
        .await
    }

    /// Notes the directory that a tab's shell is in, for the case that it has to be started again.
    ///
    /// # Errors
    /// The database can't be written.
    pub async fn move_tab(&self, id: String, cwd: String) -> Result<()> {
        self.ask(move |c| {
            c.execute("UPDATE tabs SET cwd = ?2 WHERE id = ?1", params![id, cwd])
                .map(drop)
        })
        .await
    }

    /// All logins.
    ///
    /// # Errors
    /// The database can't be read.
    pub async fn logins(&self) -> Result<Vec<LoginRow>> {
        self.ask(|c| {
            c.prepare_cached(
                "SELECT id, authority, cookie_hash, secret_hash, created_ms, name, seen_ms FROM logins",
            )?
            .query_map([], |row| {
                Ok(LoginRow {
                    id: row.get(0)?,
                    authority: row.get(1)?,
                    cookie_hash: row.get(2)?,
                    secret_hash: row.get(3)?,
                    created_ms: row.get(4)?,
                    name: row.get(5)?,
                    seen_ms: row.get(6)?,
                })
            })?
            .collect()
        })
        .await
    }

    /// Adds a login.
    ///
    /// # Errors
    /// The database can't be written.
    pub async fn add_login(&self, row: LoginRow) -> Result<()> {
        self.ask(move |c| {
            c.execute(
                "INSERT INTO logins (id, authority, cookie_hash, secret_hash, created_ms, name, seen_ms)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                params![
                    row.id,
                    row.authority,
                    row.cookie_hash,
                    row.secret_hash,
                    row.created_ms,
                    row.name,
                    row.seen_ms
                ],
            )
            .map(drop)
        })
        .await
    }

    /// Notes when a login was last used.
    ///
    /// # Errors
    /// The database can't be written.
    pub async fn login_seen(&self, id: String, seen_ms: i64) -> Result<()> {
        self.ask(move |c| {
            c.execute(
                "UPDATE logins SET seen_ms = ?2 WHERE id = ?1",
                params![id, seen_ms],
            )
            .map(drop)
        })
        .await
    }

    /// Removes a login.
    ///
    /// # Errors
    /// The database can't be written.
    pub async fn remove_login(&self, id: String) -> Result<()> {
        self.ask(move |c| {
            c.execute("DELETE FROM logins WHERE id = ?1", [id])
                .map(drop)
        })
        .await
    }

    /// Keeps a login code's hash until it is used or `expires_ms` has passed.
    ///
    /// # Errors
    /// The database can't be written.
    pub async fn add_login_code(&self, hash: Vec<u8>, expires_ms: i64, now_ms: i64) -> Result<()> {
        self.ask(move |c| {
            let tx = c.transaction()?;
            tx.execute("DELETE FROM login_codes WHERE expires_ms <= ?1", [now_ms])?;
            tx.execute(
                "INSERT INTO login_codes (hash, expires_ms) VALUES (?1, ?2)",
                params![hash, expires_ms],
            )?;
            tx.commit()
        })
        .await
    }

    /// Uses a login code up: true exactly once for a code that was minted and has not expired.
    ///
    /// # Errors
    /// The database can't be written; the code is then not used up.
    pub async fn use_login_code(&self, hash: Vec<u8>, now_ms: i64) -> Result<bool> {
        // The lookup is by hash, so its timing says nothing about the code itself.
        self.ask(move |c| {
            let expires: Option<i64> = c
                .query_row(
                    "DELETE FROM login_codes WHERE hash = ?1 RETURNING expires_ms",
                    [hash],
                    |row| row.get(0),
                )
                .optional()?;
            Ok(expires.is_some_and(|expires_ms| now_ms < expires_ms))
        })
        .await
    }

    /// A setting's value, as it was put.
    ///
    /// # Errors
    /// The database can't be read.
    pub async fn setting(&self, key: &'static str) -> Result<Option<String>> {
        self.ask(move |c| {
            c.query_row("SELECT value FROM settings WHERE key = ?1", [key], |row| {
                row.get(0)
            })
            .optional()
        })
        .await
    }

    /// Puts a setting.
    ///
    /// # Errors
    /// The database can't be written.
    pub async fn set_setting(&self, key: &'static str, value: String) -> Result<()> {
        self.ask(move |c| {
            c.execute(
                "INSERT INTO settings (key, value) VALUES (?1, ?2)
                 ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                params![key, value],
            )
            .map(drop)
        })
        .await
    }

    /// What was kept of the agents, by key.
    ///
    /// # Errors
    /// The database can't be read.
    pub async fn badges(&self) -> Result<Vec<(String, String)>> {
        self.ask(|c| {
            c.prepare_cached("SELECT agent, value FROM badges ORDER BY agent")?
                .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
                .collect()
        })
        .await
    }
}

impl Store {
    /// All push subscriptions.
    ///
    /// # Errors
    /// The database can't be read.
    pub async fn subscriptions(&self) -> Result<Vec<SubscriptionRow>> {
        self.ask(|c| {
            c.prepare_cached("SELECT login, address, choices, last FROM subscriptions")?
                .query_map([], |row| {
                    Ok(SubscriptionRow {
                        login: row.get(0)?,
                        address: row.get(1)?,
                        choices: row.get(2)?,
                        last: row.get(3)?,
                    })
                })?
                .collect()
        })
        .await
    }

    /// Puts a login's subscription in place of an earlier one.
    ///
    /// # Errors
    /// The database can't be written, or there is no such login.
    pub async fn put_subscription(&self, row: SubscriptionRow) -> Result<()> {
        self.ask(move |c| {
            c.execute(
                "INSERT INTO subscriptions (login, address, choices, last) VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT (login) DO UPDATE SET address = excluded.address,
                    choices = excluded.choices, last = excluded.last",
                params![row.login, row.address, row.choices, row.last],
            )
            .map(drop)
        })
        .await
    }

    /// Removes a login's subscription, if there is one.
    ///
    /// # Errors
    /// The database can't be written.
    pub async fn remove_subscription(&self, login: String) -> Result<()> {
        self.ask(move |c| {
            c.execute("DELETE FROM subscriptions WHERE login = ?1", [login])
                .map(drop)
        })
        .await
    }

    /// Notes how the last delivery to a login went.
    ///
    /// # Errors
    /// The database can't be written.
    pub async fn set_delivery(&self, login: String, last: String) -> Result<()> {
        self.ask(move |c| {
            c.execute(
                "UPDATE subscriptions SET last = ?2 WHERE login = ?1",
                params![login, last],
            )
            .map(drop)
        })
        .await
    }

    /// Remembers a notification, or what it says now if its stay is known already; the oldest beyond `most` go.
    ///
    /// # Errors
    /// The database can't be written.
    pub async fn add_notification(&self, row: NotificationRow, most: u32) -> Result<()> {
        self.ask(move |c| {
            let tx = c.transaction()?;
            let episode = i64::try_from(row.episode).unwrap_or(i64::MAX);
            let known = tx.execute(
                "UPDATE notifications SET title = ?3, about = ?4, text = ?5
                 WHERE row = ?2 AND episode = ?1 AND ended_ms IS NULL",
                params![episode, row.row, row.title, row.about, row.text],
            )?;
            if known == 0 {
                tx.execute(
                    "INSERT INTO notifications (episode, row, title, about, text, at_ms, ended_ms)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                    params![episode, row.row, row.title, row.about, row.text, row.at_ms, row.ended_ms],
                )?;
                tx.execute(
                    "DELETE FROM notifications WHERE seq <= (SELECT max(seq) FROM notifications) - ?1",
                    [most],
                )?;
            }
            tx.commit()
        })
        .await
    }

    /// Notes that a stay is over; the row it was about, if it was open. Numbers of stays begin anew with each
    /// start of the server, so the newest of that number is meant.
    ///
    /// # Errors
    /// The database can't be written.
    pub async fn end_notification(&self, episode: u64, at_ms: i64) -> Result<Option<String>> {
        self.ask(move |c| {
            c.query_row(
                "UPDATE notifications SET ended_ms = ?2 WHERE ended_ms IS NULL
                    AND seq = (SELECT max(seq) FROM notifications WHERE episode = ?1) RETURNING row",
                params![i64::try_from(episode).unwrap_or(i64::MAX), at_ms],
                |row| row.get(0),
            )
            .optional()
        })
        .await
    }

    /// The notifications that are remembered, newest first.
    ///
    /// # Errors
    /// The database can't be read.
    pub async fn notifications(&self) -> Result<Vec<NotificationRow>> {
        self.ask(|c| {
            c.prepare_cached(
                "SELECT episode, row, title, about, text, at_ms, ended_ms FROM notifications
                 ORDER BY seq DESC",
            )?
            .query_map([], |row| {
                Ok(NotificationRow {
                    episode: u64::try_from(row.get::<_, i64>(0)?).unwrap_or(0),
                    row: row.get(1)?,
                    title: row.get(2)?,
                    about: row.get(3)?,
                    text: row.get(4)?,
                    at_ms: row.get(5)?,
                    ended_ms: row.get(6)?,
                })
            })?
            .collect()
        })
        .await
    }

    /// Writes an answer into the log; the oldest beyond `most` go.
    ///
    /// # Errors
    /// The database can't be written.
    pub async fn add_answer(&self, row: AnswerRow, most: u32) -> Result<()> {
        let said = row.said.as_ref().map(serde_json::to_string).transpose()?;
        self.ask(move |c| {
            let tx = c.transaction()?;
            tx.execute(
                "INSERT INTO answers (at_ms, by, origin, item, title, asked, what, result, why, said)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
                params![
                    row.at_ms, row.by, row.origin, row.item, row.title, row.asked, row.what,
                    row.result, row.why, said
                ],
            )?;
            tx.execute(
                "DELETE FROM answers WHERE seq <= (SELECT max(seq) FROM answers) - ?1",
                [most],
            )?;
            tx.commit()
        })
        .await
    }

    /// The newest answers of the log, newest first.
    ///
    /// # Errors
    /// The database can't be read.
    pub async fn answers(&self, most: u32) -> Result<Vec<AnswerRow>> {
        self.ask(move |c| {
            c.prepare_cached(
                "SELECT at_ms, by, origin, item, title, asked, what, result, why, said FROM answers
                 ORDER BY seq DESC LIMIT ?1",
            )?
            .query_map([most], |row| {
                Ok(AnswerRow {
                    at_ms: row.get(0)?,
                    by: row.get(1)?,
                    origin: row.get(2)?,
                    item: row.get(3)?,
                    title: row.get(4)?,
                    asked: row.get(5)?,
                    what: row.get(6)?,
                    result: row.get(7)?,
                    why: row.get(8)?,
                    said: row
                        .get::<_, Option<String>>(9)?
                        .and_then(|said| serde_json::from_str(&said).ok()),
                })
            })?
            .collect()
        })
        .await
    }
}

impl Keep for Store {
    fn persist(
        &self,
        agent: String,
        value: String,
        verdict: Option<Row>,
    ) -> BoxFuture<'static, Result<()>> {
        let store = self.clone();
        Box::pin(async move {
            store
                .ask(move |c| {
                    let tx = c.transaction()?;
                    tx.prepare_cached(
                        "INSERT INTO badges (agent, value) VALUES (?1, ?2)
                         ON CONFLICT (agent) DO UPDATE SET value = excluded.value",
                    )?
                    .execute(params![agent, value])?;
                    append(&tx, verdict.as_slice())?;
                    tx.commit()
                })
                .await
        })
    }

    fn forget(&self, agent: String, verdict: Option<Row>) -> BoxFuture<'static, Result<()>> {
        let store = self.clone();
        Box::pin(async move {
            store
                .ask(move |c| {
                    let tx = c.transaction()?;
                    tx.execute("DELETE FROM badges WHERE agent = ?1", [agent])?;
                    append(&tx, verdict.as_slice())?;
                    tx.commit()
                })
                .await
        })
    }
}

/// What a record costs beside its own text: its keys, and its share of the indexes.
const ROW_BYTES: usize = 100;

/// Records removed at a time, so that a badge never waits long.
const PRUNE_ROWS: u32 = 512;

impl Shelf for Store {
    fn append(&self, rows: Vec<Row>) -> BoxFuture<'static, Result<u64>> {
        let store = self.clone();
        Box::pin(async move {
            store
                .ask(move |c| {
                    let tx = c.transaction()?;
                    append(&tx, &rows)?;
                    let bytes = journal_bytes(&tx)?;
                    tx.commit()?;
                    Ok(bytes)
                })
                .await
        })
    }

    fn prune(&self, before_ms: i64, bytes_max: u64) -> BoxFuture<'static, Result<bool>> {
        let store = self.clone();
        Box::pin(async move { store.ask(move |c| prune(c, before_ms, bytes_max)).await })
    }
}

fn append(c: &Connection, rows: &[Row]) -> rusqlite::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let mut insert = c.prepare_cached(
        "INSERT INTO journal (seq, at_ms, agent, tab, verdict, record) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?;
    let mut bytes = 0;
    for row in rows {
        insert.execute(params![
            row.seq,
            row.at_ms,
            row.agent,
            row.tab,
            row.verdict,
            row.record
        ])?;
        bytes += row.record.len() + ROW_BYTES;
    }
    c.prepare_cached("UPDATE journal_size SET bytes = bytes + ?1")?
        .execute([i64::try_from(bytes).unwrap_or(i64::MAX)])
        .map(drop)
}

fn journal_bytes(c: &Connection) -> rusqlite::Result<u64> {
    let bytes: i64 = c
        .prepare_cached("SELECT bytes FROM journal_size")?
        .query_row([], |row| row.get(0))?;
    Ok(u64::try_from(bytes).unwrap_or(0))
}

/// Removes at most [`PRUNE_ROWS`] of the oldest; whether there may be more.
fn prune(c: &mut Connection, before_ms: i64, bytes_max: u64) -> rusqlite::Result<bool> {
    let tx = c.transaction()?;
    let mut left = journal_bytes(&tx)?;
    let mut removed: Option<i64> = None;
    let mut count = 0;
    {
        let mut oldest = tx.prepare_cached(
            "SELECT seq, at_ms, octet_length(record) FROM journal ORDER BY seq LIMIT ?1",
        )?;
        let mut rows = oldest.query([PRUNE_ROWS])?;
        while let Some(row) = rows.next()? {
            let at_ms: i64 = row.get(1)?;
            if at_ms >= before_ms && left <= bytes_max {
                break;
            }
            let bytes: i64 = row.get(2)?;
            left = left.saturating_sub(u64::try_from(bytes).unwrap_or(0) + ROW_BYTES as u64);
            removed = Some(row.get(0)?);
            count += 1;
        }
    }
    if let Some(seq) = removed {
        tx.execute("DELETE FROM journal WHERE seq <= ?1", [seq])?;
        tx.execute(
            "UPDATE journal_size SET bytes = ?1",
            [i64::try_from(left).unwrap_or(i64::MAX)],
        )?;
    }
    tx.commit()?;
    Ok(count == PRUNE_ROWS)
}

impl Store {
    /// The number of the newest record of the journal; 0: there is none.
    ///
    /// # Errors
    /// The database can't be read.
    pub async fn newest_record(&self) -> Result<i64> {
        self.ask(|c| {
            c.query_row("SELECT coalesce(max(seq), 0) FROM journal", [], |row| {
                row.get(0)
            })
        })
        .await
    }

    /// The newest verdicts about an agent, newest first, as they were written.
    ///
    /// # Errors
    /// The database can't be read.
    pub async fn verdicts(&self, agent: String, most: u32) -> Result<Vec<String>> {
        self.ask(move |c| {
            c.prepare_cached(
                "SELECT record FROM journal WHERE agent = ?1 AND verdict ORDER BY seq DESC LIMIT ?2",
            )?
            .query_map(params![agent, most], |row| row.get(0))?
            .collect()
        })
        .await
    }

    /// The agent that was last shown in a tab.
    ///
    /// # Errors
    /// The database can't be read.
    pub async fn last_agent(&self, tab: String) -> Result<Option<String>> {
        self.ask(move |c| {
            c.query_row(
                "SELECT agent FROM journal WHERE tab = ?1 ORDER BY seq DESC LIMIT 1",
                [tab],
                |row| row.get(0),
            )
            .optional()
            .map(Option::flatten)
        })
        .await
    }

    /// Everything in the journal from an agent's first record to its last that is its own or nobody's,
    /// oldest first, as it was written.
    ///
    /// # Errors
    /// The database can't be read.
    pub async fn records_about(&self, agent: String) -> Result<Vec<String>> {
        self.ask(move |c| {
            c.prepare_cached(
                "SELECT record FROM journal
                 WHERE seq BETWEEN (SELECT min(seq) FROM journal WHERE agent = ?1)
                               AND (SELECT max(seq) FROM journal WHERE agent = ?1)
                   AND (agent = ?1 OR agent IS NULL)
                 ORDER BY seq",
            )?
            .query_map([agent], |row| row.get(0))?
            .collect()
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt as _;

    fn fresh() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("purplemux.db");
        (dir, path)
    }

    fn record(seq: i64, at_ms: i64, agent: &str, bytes: usize) -> Row {
        Row {
            seq,
            at_ms,
            agent: Some(agent.to_owned()),
            tab: None,
            verdict: true,
            record: "x".repeat(bytes),
        }
    }

    async fn kept_seqs(store: &Store) -> Vec<i64> {
        store
            .ask(|c| {
                c.prepare("SELECT seq FROM journal ORDER BY seq")?
                    .query_map([], |row| row.get(0))?
                    .collect()
            })
            .await
            .unwrap()
    }

    #[tokio::test]
    async fn the_journal_forgets_what_is_old_and_what_is_too_much() {
        let (_dir, path) = fresh();
        let store = open(&path).unwrap();
        let rows = (1..=2000).map(|n| record(n, n, "a", 900)).collect();
        let bytes = store.append(rows).await.unwrap();
        assert_eq!(bytes, 2000 * 1000);
        while store.prune(1001, u64::MAX).await.unwrap() {}
        assert_eq!(kept_seqs(&store).await, (1001..=2000).collect::<Vec<_>>());
        while store.prune(0, 10_000).await.unwrap() {}
        assert_eq!(kept_seqs(&store).await, (1991..=2000).collect::<Vec<_>>());
        // What is within both bounds stays.
        assert!(!store.prune(1991, 10_000).await.unwrap());
        assert_eq!(
            store.append(vec![record(2001, 0, "a", 0)]).await.unwrap(),
            10_100
        );
    }

    #[tokio::test]
    async fn rows_are_written_together_or_not_at_all() {
        let (_dir, path) = fresh();
        let store = open(&path).unwrap();
        store.append(vec![record(5, 0, "a", 1)]).await.unwrap();
        let twice = vec![record(6, 0, "a", 1), record(5, 0, "a", 1)];
        assert!(store.append(twice).await.is_err());
        assert_eq!(kept_seqs(&store).await, [5]);
        assert_eq!(store.append(vec![record(7, 0, "b", 1)]).await.unwrap(), 202);
        assert_eq!(store.records_about("a".into()).await.unwrap().len(), 1);
        assert_eq!(store.last_agent("t".into()).await.unwrap(), None);
    }

    #[test]
    fn migrations_are_valid() {
        Migrations::from_slice(MIGRATIONS).validate().unwrap();
    }

    #[tokio::test]
    async fn a_code_works_once_and_not_after_its_time() {
        let (_dir, path) = fresh();
        let store = open(&path).unwrap();
        store.add_login_code(vec![1], 600_000, 0).await.unwrap();
        assert!(!store.use_login_code(vec![2], 1).await.unwrap());
        assert!(store.use_login_code(vec![1], 599_999).await.unwrap());
        assert!(!store.use_login_code(vec![1], 1).await.unwrap());
        store.add_login_code(vec![3], 600_000, 0).await.unwrap();
        assert!(!store.use_login_code(vec![3], 600_000).await.unwrap());
    }

    fn workspace(name: &str) -> WorkspaceRow {
        WorkspaceRow {
            id: "w".into(),
            name: name.into(),
            dir: "/".into(),
            color: None,
            group: None,
            panes: None,
            closing_ms: None,
        }
    }

    #[tokio::test]
    async fn what_was_kept_is_there_after_a_reopening() {
        let (_dir, path) = fresh();
        let workspace = WorkspaceRow {
            color: Some("teal".into()),
            group: Some("work".into()),
            panes: Some("{}".into()),
            closing_ms: Some(7),
            ..workspace("main")
        };
        let tab = TabRow {
            id: "t-1".into(),
            workspace: "w".into(),
            name: None,
            cwd: "/".into(),
            kind: "terminal".into(),
            ended: false,
            created_ms: 5,
            closing_ms: Some(6),
            conversation: Some("c".into()),
            conversation_title: Some("Fix it".into()),
            offered: true,
        };
        let store = open(&path).unwrap();
        store
            .put_layout(vec![workspace.clone()], vec![tab.clone()])
            .await
            .unwrap();
        store.persist("a".into(), "1".into(), None).await.unwrap();
        let verdict = record(1, 0, "a", 10);
        store
            .persist("a".into(), "2".into(), Some(verdict.clone()))
            .await
            .unwrap();
        drop(store);
        let store = open(&path).unwrap();
        assert_eq!(store.notice(), None);
        let layout = store.layout().await.unwrap();
        assert_eq!(layout, (vec![workspace], vec![tab]));
        let badges = store.badges().await.unwrap();
        assert_eq!(badges, [("a".to_owned(), "2".to_owned())]);
        let verdicts = store.verdicts("a".into(), 5).await.unwrap();
        assert_eq!(verdicts, [verdict.record]);
        assert_eq!(store.newest_record().await.unwrap(), 1);
    }

    #[tokio::test]
    async fn a_database_of_an_earlier_version_keeps_its_tabs() {
        let (_dir, path) = fresh();
        let mut old = Connection::open(&path).unwrap();
        // The last before workspaces had colours and panes.
        let earlier = 4;
        Migrations::from_slice(MIGRATIONS)
            .to_version(&mut old, earlier)
            .unwrap();
        old.execute_batch(
            "INSERT INTO workspaces VALUES ('w', 'main', '/', 1), ('v', 'other', '/tmp', 2);
             INSERT INTO tabs VALUES ('t-2', 'w', NULL, '/', 'terminal', 6, 0, 1),
                ('t-1', 'w', 'mine', '/', 'terminal', 5, 1, 2);",
        )
        .unwrap();
        drop(old);
        let store = open(&path).unwrap();
        let (workspaces, tabs) = store.layout().await.unwrap();
        assert_eq!(workspaces[0], workspace("main"));
        assert_eq!(workspaces[1].id, "v");
        let seen: Vec<_> = tabs.iter().map(|tab| (&*tab.id, tab.ended)).collect();
        assert_eq!(seen, [("t-1", true), ("t-2", false)]);
        assert_eq!(tabs[0].name.as_deref(), Some("mine"));
        assert!(
            tabs.iter()
                .all(|tab| tab.closing_ms.is_none() && !tab.offered)
        );
    }

    #[tokio::test]
    async fn a_layout_is_put_in_the_place_of_the_one_before() {
        let (_dir, path) = fresh();
        let store = open(&path).unwrap();
        let other = WorkspaceRow {
            id: "v".into(),
            ..workspace("other")
        };
        let tab = |id: &str, workspace: &str| TabRow {
            id: id.into(),
            workspace: workspace.into(),
            name: None,
            cwd: "/".into(),
            kind: "terminal".into(),
            ended: false,
            created_ms: 5,
            closing_ms: None,
            conversation: None,
            conversation_title: None,
            offered: false,
        };
        let first = vec![workspace("main"), other.clone()];
        let tabs = vec![tab("t-1", "w"), tab("t-2", "w")];
        store.put_layout(first, tabs).await.unwrap();
        // The first workspace goes, one of its tabs to the other, and the other is before it.
        let moved = vec![tab("t-2", "v")];
        store
            .put_layout(vec![other.clone()], moved.clone())
            .await
            .unwrap();
        assert_eq!(store.layout().await.unwrap(), (vec![other.clone()], moved));
        // One that can't be kept leaves what there was.
        let lost = vec![tab("t-3", "nowhere")];
        store
            .put_layout(vec![other.clone()], lost)
            .await
            .unwrap_err();
        let (_, tabs) = store.layout().await.unwrap();
        assert_eq!(tabs, [tab("t-2", "v")]);
    }

    fn damage(path: &Path, how: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = fs::read(path).unwrap();
        how(&mut bytes);
        fs::write(path, bytes).unwrap();
    }

    fn aside(dir: &Path) -> usize {
        let names = fs::read_dir(dir).unwrap().flatten();
        names
            .filter(|entry| {
                let name = entry.file_name().to_string_lossy().into_owned();
                name.starts_with("purplemux.db.damaged-")
                    && !name.ends_with("-wal")
                    && !name.ends_with("-shm")
            })
            .count()
    }

    #[tokio::test]
    async fn a_damaged_database_is_set_aside_and_a_new_one_works() {
        let (dir, path) = fresh();
        fs::write(&path, vec![b'x'; 8192]).unwrap();
        let store = open(&path).unwrap();
        let notice = store.notice().unwrap().to_string();
        assert!(notice.contains("purplemux.db.damaged-"), "{notice}");
        assert!(notice.contains("begin anew"), "{notice}");
        assert_eq!(aside(dir.path()), 1);
        assert!(store.layout().await.unwrap().1.is_empty());
    }

    async fn with_layout(path: &Path) -> Store {
        let store = open(path).unwrap();
        store
            .put_layout(vec![workspace("mine")], Vec::new())
            .await
            .unwrap();
        store
            .set_setting("journal.text", "false".into())
            .await
            .unwrap();
        store
    }

    /// Waits until the copy holds this many workspaces.
    fn copied(path: &Path, wanted: usize) {
        let count = || -> rusqlite::Result<usize> {
            let copy = Connection::open(kept::path(path))?;
            let count: i64 =
                copy.query_row("SELECT count(*) FROM workspaces, settings", [], |row| {
                    row.get(0)
                })?;
            Ok(usize::try_from(count).unwrap())
        };
        for _ in 0..500 {
            if count().is_ok_and(|count| count == wanted) {
                return;
            }
            clock::passed_blocking(std::time::Duration::from_millis(10));
        }
        panic!("{:?}", count());
    }

    #[tokio::test]
    async fn h09_whatever_happens_to_the_file_the_layout_comes_from_the_copy() {
        let hurts: [fn(&mut Vec<u8>); 4] = [
            |bytes| bytes.fill(b'x'),
            |bytes| bytes.truncate(5000),
            Vec::clear,
            |bytes| bytes[4096..].fill(0xA5),
        ];
        for hurt in hurts {
            let (dir, path) = fresh();
            let store = with_layout(&path).await;
            copied(&path, 1);
            drop(store);
            // As after a crash: what the file lacks would lie in the log beside it.
            for _ in 0..500 {
                if !path.with_extension("db-wal").exists() {
                    break;
                }
                clock::passed_blocking(std::time::Duration::from_millis(10));
            }
            damage(&path, hurt);
            let store = open(&path).unwrap();
            let notice = store.notice().expect("it was damaged").to_string();
            assert!(notice.contains("come from the last good copy"), "{notice}");
            assert_eq!(aside(dir.path()), 1);
            assert_eq!(store.layout().await.unwrap().0[0].name, "mine");
            let text = store.setting("journal.text").await.unwrap();
            assert_eq!(text.as_deref(), Some("false"));
            // All else works: badges and the journal are there, and empty.
            store
                .persist("a".into(), "1".into(), Some(record(1, 0, "a", 1)))
                .await
                .unwrap();
            assert_eq!(kept_seqs(&store).await, [1]);
        }
    }

    #[tokio::test]
    async fn h09_damage_that_is_met_later_is_mended_while_it_runs() {
        let (dir, path) = fresh();
        let store = with_layout(&path).await;
        let rows = (1..=2000).map(|n| record(n, n, "a", 900)).collect();
        store.append(rows).await.unwrap();
        copied(&path, 1);
        drop(store);
        for _ in 0..500 {
            if !path.with_extension("db-wal").exists() {
                break;
            }
            clock::passed_blocking(std::time::Duration::from_millis(10));
        }
        // The journal's pages, which nobody reads at the start.
        damage(&path, |bytes| {
            let from = bytes.len() / 2 / 4096 * 4096;
            bytes[from..].fill(0xA5);
        });
        let store = open(&path).unwrap();
        assert_eq!(store.layout().await.unwrap().0[0].name, "mine");
        // Whether the look through it comes first, or somebody who asks: it is found and replaced.
        for _ in 0..500 {
            if store.notice().is_some() {
                break;
            }
            // It fails as long as the damaged file is in use.
            drop(store.records_about("a".into()).await);
            clock::passed_blocking(std::time::Duration::from_millis(10));
        }
        let notice = store.notice().expect("the damage is found").to_string();
        assert!(notice.contains("come from the last good copy"), "{notice}");
        assert_eq!(aside(dir.path()), 1);
        assert_eq!(store.layout().await.unwrap().0[0].name, "mine");
        store.append(vec![record(2001, 0, "a", 1)]).await.unwrap();
    }

    #[tokio::test]
    async fn all_its_files_are_private() {
        let (dir, path) = fresh();
        let store = open(&path).unwrap();
        store.set_setting("k", "v".into()).await.unwrap();
        assert_eq!(store.setting("k").await.unwrap().as_deref(), Some("v"));
        for entry in fs::read_dir(dir.path()).unwrap() {
            let meta = entry.unwrap().metadata().unwrap();
            assert_eq!(meta.mode() & 0o777, 0o600);
        }
    }
}
