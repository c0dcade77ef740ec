//! Read-only connections.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use rusqlite::{Connection, OpenFlags, OptionalExtension as _, params};
use tokio::sync::Semaphore;

use crate::key::{Kind, Owner, OwnerHasher, STAMP_LEN, Stamp};
use crate::now_millis;
use crate::store::{Content, FoundCall, Item, newest};

/// Maximum number of read-only connections.
const MAX_READERS: usize = 4;
/// How long a read waits for locks, which others hold for a moment when they open or close the file.
const READ_BUSY_TIMEOUT: Duration = Duration::from_secs(1);

/// Pool of read-only connections.
#[derive(Debug)]
pub(super) struct Readers {
    path: PathBuf,
    owners: OwnerHasher,
    permits: Semaphore,
    idle: Arc<Mutex<Vec<Reader>>>,
}

/// A value and when it expires.
pub(super) type Found = Option<(Bytes, i64)>;

impl Readers {
    pub(super) fn new(path: &Path, secret: &[u8; 32]) -> Self {
        let owners = OwnerHasher::new(secret);
        let (permits, idle) = (Semaphore::new(MAX_READERS), Arc::default());
        Self { path: path.to_owned(), owners, permits, idle }
    }

    /// Runs a read on a blocking thread.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Reader) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, String> {
        let _permit = self.permits.acquire().await.map_err(|error| error.to_string())?;
        let idle = Arc::clone(&self.idle);
        let reader = idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let (path, owners) = (self.path.clone(), self.owners.clone());
        let task = tokio::task::spawn_blocking(move || {
            let reader = match reader {
                Some(reader) => reader,
                None => Reader::open(&path, owners)?,
            };
            let found = read(&reader)?;
            let mut idle = idle.lock().unwrap_or_else(PoisonError::into_inner);
            // The permit of a read whose caller left may have been given to another.
            if idle.len() < MAX_READERS {
                idle.push(reader);
            }
            Ok(found)
        });
        // A connection that failed is dropped, and another one opened for the next read.
        let found: rusqlite::Result<T> = task.await.map_err(|error| error.to_string())?;
        found.map_err(|error| error.to_string())
    }
}

/// A read-only connection.
#[derive(Debug)]
pub(super) struct Reader {
    connection: Connection,
    owners: OwnerHasher,
}

impl Reader {
    fn open(path: &Path, owners: OwnerHasher) -> rusqlite::Result<Self> {
        // Readers share the index of the log with the writer, and therefore open it for writing, too.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(READ_BUSY_TIMEOUT)?;
        connection.execute_batch("PRAGMA query_only = ON; PRAGMA cache_size = -2048")?;
        Ok(Self { connection, owners })
    }

    /// Runs several queries on one snapshot, which costs one lock.
    fn snapshot<T>(&self, read: impl FnOnce() -> rusqlite::Result<T>) -> rusqlite::Result<T> {
        self.connection.prepare_cached("BEGIN")?.execute([])?;
        let found = read()?;
        self.connection.prepare_cached("COMMIT")?.execute([])?;
        Ok(found)
    }

    pub(super) fn get(
        &self,
        owner: Owner,
        kind: Kind,
        ids: &[String],
    ) -> rusqlite::Result<Vec<Found>> {
        let (owner, now) = (self.owners.name(owner), now_millis());
        self.snapshot(|| {
            let mut get = self.connection.prepare_cached(
                "SELECT value, expires FROM entry
                 WHERE owner = ? AND kind = ? AND id = ? AND expires > ?",
            )?;
            let mut one = |id: &String| -> rusqlite::Result<Found> {
                let row = params![owner, kind.name(), id, now];
                get.query_row(row, |row| Ok((row.get::<_, Vec<u8>>(0)?.into(), row.get(1)?)))
                    .optional()
            };
            ids.iter().map(&mut one).collect()
        })
    }

    pub(super) fn list(&self, owner: Owner, kind: Kind, id: &str) -> rusqlite::Result<Vec<Item>> {
        let mut list = self.connection.prepare_cached(
            "SELECT item.stamp, item.value FROM entry JOIN item ON item.entry = entry.seq
             WHERE owner = ? AND kind = ? AND id = ? AND expires > ? ORDER BY item.seq",
        )?;
        let row = params![self.owners.name(owner), kind.name(), id, now_millis()];
        let item = |row: &rusqlite::Row<'_>| {
            let stamp = row.get::<_, [u8; STAMP_LEN]>(0)?;
            Ok(Item { stamp: Stamp(stamp), value: row.get::<_, Vec<u8>>(1)?.into() })
        };
        list.query_map(row, item)?.collect()
    }

    pub(super) fn has_calls(&self, owner: Owner, sessions: &[String]) -> rusqlite::Result<bool> {
        let owner = self.owners.name(owner);
        let mut find = self
            .connection
            .prepare_cached("SELECT 1 FROM call WHERE owner = ? AND session = ? LIMIT 1")?;
        for session in sessions {
            if find.exists(params![owner, session])? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    pub(super) fn find_calls(
        &self,
        owner: Owner,
        sessions: &[String],
        contents: &[Content],
    ) -> rusqlite::Result<Vec<FoundCall>> {
        let (owner, now) = (self.owners.name(owner), now_millis());
        let mut found = Vec::new();
        self.snapshot(|| {
            let mut find = self.connection.prepare_cached(
                "SELECT seq, token, previous FROM call
                 WHERE owner = ? AND session = ? AND content = ? AND expires > ?
                 ORDER BY seq DESC LIMIT ?",
            )?;
            for (session, name) in sessions.iter().enumerate() {
                for (content, wanted) in contents.iter().enumerate() {
                    let limit = i64::try_from(wanted.limit).unwrap_or(i64::MAX);
                    let row = params![owner, name, wanted.key, now, limit];
                    let rows = find.query_map(row, |row| {
                        let (token, previous) = (row.get(1)?, row.get(2)?);
                        let call = FoundCall { session, content, token, previous };
                        Ok((row.get::<_, i64>(0)?, call))
                    })?;
                    for row in rows {
                        found.push(row?);
                    }
                }
            }
            Ok(())
        })?;
        Ok(newest(found, contents))
    }
}
