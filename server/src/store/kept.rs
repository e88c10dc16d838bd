//! The last good copy of what the person has made: layout, settings, sign-ins, devices; all tables but those that
//! evidence fills (badges, the journal, what was notified) and codes that are good for minutes. Made anew, whole, soon after each
//! change, from a connection of its own; used when the database turns out to be damaged.
//!
//! Must never hold the database's thread up, and never replace a good copy by one that is not whole.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use anyhow::{Context as _, Result};
use rusqlite::{Connection, OpenFlags, params};
use tracing::warn;

use super::{Damage, check, is_damage};
use crate::clock;

/// What is not copied: it is seen again, grows without end, or is good for minutes.
const LEFT_OUT: [&str; 5] = [
    "badges",
    "journal",
    "journal_size",
    "login_codes",
    "notifications",
];

/// Changes come in bursts: a workspace and its tabs.
const SOON: Duration = Duration::from_millis(200);

/// Where the copy of this database lies.
pub(super) fn path(database: &Path) -> PathBuf {
    database.with_extension("kept")
}

/// The tables of a database that the copy has, in the order in which they refer to each other.
pub(super) fn tables(connection: &Connection, database: &str) -> rusqlite::Result<Vec<String>> {
    let all: Vec<String> = connection
        .prepare(&format!(
            "SELECT name FROM {database}.sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite!_%' ESCAPE '!' ORDER BY rowid"
        ))?
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    Ok(all
        .into_iter()
        .filter(|table| !LEFT_OUT.contains(&table.as_str()))
        .collect())
}

/// The thread that makes the copy.
#[derive(Debug)]
pub(super) struct Copier {
    changed: SyncSender<()>,
}

impl Copier {
    /// Looks through the whole database once, then copies whenever something has changed. Ends with the last
    /// connection that [`Self::follow`] was given.
    pub(super) fn start(database: PathBuf, damage: Arc<Damage>) -> Result<Self> {
        let (changed, changes) = sync_channel(1);
        std::thread::Builder::new()
            .name("kept copy".to_owned())
            .spawn(move || run(&database, &damage, &changes))
            .context("Can't start the thread that copies the layout")?;
        Ok(Self { changed })
    }

    /// Copies after every change that this connection makes.
    pub(super) fn follow(&self, connection: &Connection) -> Result<()> {
        let changed = self.changed.clone();
        connection.update_hook(Some(
            move |_: rusqlite::hooks::Action, _: &str, table: &str, _: i64| {
                if !LEFT_OUT.contains(&table) {
                    // It fails where one waits already, which then holds this change, too.
                    changed.try_send(()).ok();
                }
            },
        ))?;
        // What was changed before, by a migration or by another process's last act.
        self.changed.try_send(()).ok();
        Ok(())
    }
}

fn run(database: &Path, damage: &Damage, changes: &Receiver<()>) {
    if let Err(why) = look_through(database) {
        let found = why
            .chain()
            .filter_map(|cause| cause.downcast_ref())
            .any(is_damage);
        if found {
            warn!("The database is damaged: {why:#}");
            damage.found.store(true, Ordering::Relaxed);
        }
    }
    let mut failing = false;
    while changes.recv().is_ok() {
        clock::passed_blocking(SOON);
        match copy(database) {
            Ok(()) => failing = false,
            Err(why) if !failing => {
                failing = true;
                warn!("The layout can't be copied; the copy stays as it was: {why:#}");
            }
            Err(_) => {}
        }
    }
}

fn look_through(database: &Path) -> Result<()> {
    let connection = Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    check(&connection, "PRAGMA quick_check(1)")
}

/// Makes a copy beside the old one and puts it in its place when it is whole.
fn copy(database: &Path) -> Result<()> {
    let connection = Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let new = database.with_extension("kept-new");
    remove(&new)?;
    crate::home::write_atomic(&new, b"", 0o600)?;
    let name = new.to_str().context("the home's path is no UTF-8")?;
    connection.execute("ATTACH ?1 AS kept", [name])?;
    // One file, whole or not at all: nothing beside it.
    connection.pragma_update(Some("kept"), "journal_mode", "MEMORY")?;
    {
        let all = connection.unchecked_transaction()?;
        for table in tables(&all, "main")? {
            check(&all, &format!("PRAGMA main.quick_check('{table}')"))?;
            let sql: String = all.query_row(
                "SELECT sql FROM main.sqlite_schema WHERE type = 'table' AND name = ?1",
                [&table],
                |row| row.get(0),
            )?;
            let (_, columns) = sql.split_once('(').context("a table has columns")?;
            all.execute_batch(&format!(
                "CREATE TABLE kept.\"{table}\" ({columns}; INSERT INTO kept.\"{table}\" SELECT * FROM main.\"{table}\";"
            ))?;
        }
        all.commit()?;
    }
    connection.execute_batch("DETACH kept")?;
    fs::rename(&new, path(database)).context("Can't put the copy in its place")?;
    // What is in the database's log alone is lost with it.
    connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?;
    Ok(())
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error).with_context(|| format!("Can't remove {}", path.display())),
    }
}

/// Fills a new database from the copy; false if there is none.
///
/// # Errors
/// The copy can't be read, or is damaged itself; the database is then empty as before.
pub(super) fn restore(connection: &mut Connection, database: &Path) -> Result<bool> {
    let copy = path(database);
    if !copy.exists() {
        return Ok(false);
    }
    let name = copy.to_str().context("the home's path is no UTF-8")?;
    connection.execute("ATTACH ?1 AS kept", [name])?;
    let restored = fill(connection);
    connection.execute_batch("DETACH kept")?;
    restored?;
    // What is in the database's log alone is lost with it, and nothing may be written for long.
    connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?;
    Ok(true)
}

fn fill(connection: &mut Connection) -> Result<()> {
    check(connection, "PRAGMA kept.quick_check(1)")?;
    let all = connection.transaction()?;
    let here = tables(&all, "main")?;
    for table in tables(&all, "kept")? {
        if !here.contains(&table) {
            continue;
        }
        // A copy that an earlier version made may lack columns; those get their defaults.
        let columns: Vec<String> = all
            .prepare(
                "SELECT '\"' || name || '\"' FROM pragma_table_info(?1, 'kept')
                 WHERE name IN (SELECT name FROM pragma_table_info(?1, 'main'))",
            )?
            .query_map(params![table], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        let columns = columns.join(", ");
        all.execute(
            &format!(
                "INSERT OR REPLACE INTO main.\"{table}\" ({columns}) SELECT {columns} FROM kept.\"{table}\""
            ),
            [],
        )?;
    }
    all.commit()?;
    Ok(())
}
