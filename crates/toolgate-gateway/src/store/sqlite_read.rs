//! Reading the tables of the SQLite store.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::time::Duration;

use bytes::Bytes;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::change::At;
use super::sqlite_file::{Place, id_behind, now};
use super::{Kind, Wanted, part_of};
use crate::auth::Owner;

/// A value, and until when it is kept.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    pub(super) value: Bytes,
    pub(super) until: i64,
}

/// What is in a map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Noted {
    /// Which of the maps and parts that were asked for.
    pub(super) map: usize,
    pub(super) part: usize,
    pub(super) id: String,
    pub(super) note: String,
    pub(super) until: i64,
}

/// So many entries of a map are told apart by their places, before any of them is read.
const FEW: usize = 16;

/// Somebody who reads.
#[derive(Debug)]
pub(super) struct Reader {
    pub(super) connection: Connection,
}

impl Reader {
    pub(super) fn new(connection: Connection) -> rusqlite::Result<Self> {
        connection.set_prepared_statement_cache_capacity(32);
        // Else a statement is made anew for every range that it is asked for.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        Ok(Self { connection })
    }

    /// The value of an entry, if it is not too old.
    pub(super) fn get(&self, at: At<'_>) -> rusqlite::Result<Option<Kept>> {
        let mut statement = self.connection.prepare_cached(
            "SELECT value, until FROM entry WHERE owner = ? AND kind = ? AND id = ? AND until > ?",
        )?;
        let key = params![at.owner.bytes(), at.kind.name(), at.id, now()];
        let kept = |row: &Row<'_>| {
            Ok(Kept { value: row.get::<_, Vec<u8>>(0)?.into(), until: row.get(1)? })
        };
        statement.query_row(key, kept).optional()
    }

    /// The values of several entries.
    pub(super) fn get_all(
        &self,
        owner: Owner,
        kind: Kind,
        ids: &[String],
    ) -> rusqlite::Result<Vec<Option<Kept>>> {
        let read = || ids.iter().map(|id| self.get(At { owner, kind, id })).collect();
        if ids.len() < 2 { read() } else { self.at_once(read) }
    }

    /// Reads several things. The file's locks, which cost more than a read, are taken once.
    fn at_once<T>(&self, read: impl FnOnce() -> rusqlite::Result<T>) -> rusqlite::Result<T> {
        if !self.connection.is_autocommit() {
            return read();
        }
        self.connection.prepare_cached("BEGIN")?.execute([])?;
        let found = read();
        let end = self.connection.prepare_cached("COMMIT").and_then(|mut end| end.execute([]));
        if end.is_err() {
            self.roll_back();
        }
        found
    }

    /// What was put into parts of maps last and is not too old, in that order.
    pub(super) fn in_parts(&self, wanted: Wanted<'_>) -> rusqlite::Result<Vec<Noted>> {
        let Wanted { owner, maps, parts } = wanted;
        let mut all = Vec::new();
        self.at_once(|| {
            for (map, name) in maps.iter().enumerate() {
                let there = self.places(Place::of(owner, name))?;
                // Most have nothing of the kind: nobody has to know what it would be called.
                if there.as_ref().is_some_and(Vec::is_empty) {
                    continue;
                }
                let mut statement = self.connection.prepare_cached(
                    "SELECT number, note, kind, id, until FROM entry INDEXED BY entry_place
                     WHERE place = ? AND owner = ? AND map = ? AND until > ? ORDER BY number DESC",
                )?;
                for (part, its) in parts().iter().enumerate() {
                    let name = part_of(name, &its.name);
                    let place = Place::of(owner, &name).number();
                    if there.as_ref().is_some_and(|there| !there.contains(&place)) {
                        continue;
                    }
                    let key = params![place, owner.bytes(), name, now()];
                    let rows = statement.query_map(key, |row| noted(row, map, part))?;
                    for row in rows.take(its.most) {
                        all.push(row?);
                    }
                }
            }
            Ok(())
        })?;
        all.sort_by_key(|(number, _)| *number);
        Ok(all.into_iter().map(|(_, noted)| noted).collect())
    }

    /// The places where something is in a map, if there are few of them.
    fn places(&self, map: Place) -> rusqlite::Result<Option<Vec<i64>>> {
        let mut statement = self.connection.prepare_cached(
            "SELECT place FROM entry INDEXED BY entry_place WHERE place BETWEEN ? AND ?",
        )?;
        let places = statement.query_map(map.all(), |row| row.get(0))?;
        let places = places.take(FEW + 1).collect::<rusqlite::Result<Vec<i64>>>()?;
        Ok((places.len() <= FEW).then_some(places))
    }

    /// The values of a list, if it is not too old.
    pub(super) fn list(&self, at: At<'_>) -> rusqlite::Result<Vec<Bytes>> {
        let mut statement = self.connection.prepare_cached(
            "SELECT value FROM list JOIN list_value ON list_value.list = list.number
             WHERE owner = ? AND kind = ? AND id = ? AND until > ? ORDER BY list_value.number",
        )?;
        let key = params![at.owner.bytes(), at.kind.name(), at.id, now()];
        let rows = statement.query_map(key, |row| row.get::<_, Vec<u8>>(0))?;
        rows.map(|row| row.map(Bytes::from)).collect()
    }

    /// Ends a transaction, where the error before has not done so.
    pub(super) fn roll_back(&self) {
        if !self.connection.is_autocommit()
            && let Err(error) = self.connection.execute_batch("ROLLBACK")
        {
            // Whoever begins the next finds it, and is here again.
            tracing::debug!(%error, "a transaction could not be undone");
        }
    }
}

/// Several who read beside the one who writes.
#[derive(Debug, Default)]
pub(super) struct Readers(Vec<Mutex<Reader>>);

/// There are as many as can read at a time, up to so many.
const MOST: usize = 4;
/// How long one waits for a file that others set up.
const PATIENCE: Duration = Duration::from_millis(50);

impl Readers {
    /// Opens a file that is there, and in its newest form.
    pub(super) fn open(path: &Path) -> rusqlite::Result<Self> {
        let count = std::thread::available_parallelism().map_or(1, usize::from).min(MOST);
        let open = |_| {
            let connection = Connection::open(path)?;
            connection.busy_timeout(PATIENCE)?;
            connection.execute_batch("PRAGMA query_only = ON; PRAGMA cache_size = -2048")?;
            Reader::new(connection).map(Mutex::new)
        };
        (0..count).map(open).collect::<rusqlite::Result<_>>().map(Self)
    }

    /// One that nobody uses. A thread has the same again and again.
    pub(super) fn free(&self) -> Option<MutexGuard<'_, Reader>> {
        static THREADS: AtomicUsize = AtomicUsize::new(0);
        thread_local! {
            static THREAD: usize = THREADS.fetch_add(1, Ordering::Relaxed);
        }
        let first = THREAD.with(|thread| thread % self.0.len().max(1));
        let (before, after) = self.0.split_at(first);
        after.iter().chain(before).find_map(|reader| match reader.try_lock() {
            Ok(reader) => Some(reader),
            Err(TryLockError::Poisoned(reader)) => {
                let reader = reader.into_inner();
                reader.roll_back();
                Some(reader)
            }
            Err(TryLockError::WouldBlock) => None,
        })
    }
}

/// What a part of a map has, and its number in the file.
fn noted(row: &Row<'_>, map: usize, part: usize) -> rusqlite::Result<(i64, Noted)> {
    let (kind, id) = (row.get_ref(2)?.as_str()?, row.get_ref(3)?.as_str()?);
    let id = if kind == Kind::Map.name() { id_behind(id) } else { id }.to_owned();
    Ok((row.get(0)?, Noted { map, part, id, note: row.get(1)?, until: row.get(4)? }))
}
