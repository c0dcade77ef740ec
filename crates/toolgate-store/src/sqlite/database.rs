//! The connection that writes.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{CachedStatement, Connection, ErrorCode, OptionalExtension as _, Params, params};

use super::evict;
use super::files::{self, Presence};
use super::schema::{self, Content};
use super::wal;
use crate::key::{Key, Kind, OwnerHasher, Stamp};
use crate::now_millis;
use crate::queue::{CallIndex, Change, Write};
use crate::store::{Item, OpenError};

/// How long opening waits for locks of other processes.
const OPEN_BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// How long one attempt to commit waits for locks of other processes.
const WRITE_BUSY_TIMEOUT: Duration = Duration::from_millis(250);
/// Interval at which expired entries are removed.
const EXPIRY_INTERVAL: Duration = Duration::from_secs(30);
/// Approximate cost of an entry, a call and an item beside their text.
const ENTRY_OVERHEAD: usize = 128;
const CALL_OVERHEAD: usize = 192;
const ITEM_OVERHEAD: usize = 64;
/// Name of the store's secret.
const SECRET: &str = "store";

const PRAGMAS: &str = "
    PRAGMA page_size = 8192;
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = NORMAL;
    PRAGMA foreign_keys = ON;
    PRAGMA secure_delete = ON;
    PRAGMA temp_store = MEMORY;
    PRAGMA cache_size = -8192;
    PRAGMA wal_autocheckpoint = 4096;
    PRAGMA journal_size_limit = 67108864;
";

/// An open database.
#[derive(Debug)]
pub(super) struct Database {
    pub(super) connection: Connection,
    owners: OwnerHasher,
    max_bytes: u64,
    next_expiry: Instant,
    /// Whether deleted text may still be in the write-ahead log.
    is_scrub_due: bool,
    /// Tells other processes that the store is in use.
    _presence: Presence,
}

impl Database {
    /// Opens or creates a store. Returns its secret, too.
    pub(super) fn open(
        path: &Path,
        max_bytes: u64,
        new_secret: [u8; 32],
    ) -> Result<(Self, [u8; 32]), OpenError> {
        let failed = |error: &dyn std::fmt::Display| OpenError {
            place: path.display().to_string(),
            reason: error.to_string(),
        };
        files::make_private(path).map_err(|error| failed(&error))?;
        let (presence, is_alone) = Presence::take(path).map_err(|error| failed(&error))?;
        if is_alone {
            wal::keep_if_damaged(path);
        }
        let mut connection = match connect(path, is_alone) {
            Ok((connection, Content::Empty | Content::Current)) => connection,
            Ok((connection, content)) => {
                drop(connection);
                replace(path, &content, is_alone).map_err(|reason| failed(&reason))?
            }
            Err(error) if schema::is_damage(&error) && files::has_our_mark(path) => {
                let content = Content::Damaged(error.to_string());
                replace(path, &content, is_alone).map_err(|reason| failed(&reason))?
            }
            Err(error) => return Err(failed(&error)),
        };
        let secret = prepare(&mut connection, new_secret, is_alone).map_err(|it| failed(&it))?;
        presence.share().map_err(|error| failed(&error))?;
        let database = Self {
            connection,
            owners: OwnerHasher::new(&secret),
            max_bytes,
            next_expiry: Instant::now(),
            is_scrub_due: false,
            _presence: presence,
        };
        Ok((database, secret))
    }

    /// Commits writes, all of them or, where that fails, none. Returns how many were rejected: writes
    /// that the database can never take.
    pub(super) fn commit(&mut self, writes: &[Write]) -> rusqlite::Result<u64> {
        let committed = self.try_commit(writes);
        if committed.is_err() && !self.connection.is_autocommit() {
            self.connection.execute_batch("ROLLBACK")?;
        }
        if committed.is_ok() && self.is_scrub_due {
            self.is_scrub_due = !self.truncate_log()?;
        }
        committed
    }

    fn try_commit(&mut self, writes: &[Write]) -> rusqlite::Result<u64> {
        self.execute("BEGIN IMMEDIATE", [])?;
        let mut rejected = 0;
        for write in writes {
            match self.apply(write) {
                Ok(()) => {}
                // Some errors roll the transaction back.
                Err(error) if is_rejection(&error) && !self.connection.is_autocommit() => {
                    rejected += 1;
                    tracing::debug!(%error, "write rejected");
                }
                Err(error) => return Err(error),
            }
        }
        if self.next_expiry <= Instant::now() {
            evict::remove_expired(&self.connection)?;
            self.next_expiry = Instant::now() + EXPIRY_INTERVAL;
        }
        evict::shrink(&self.connection, self.max_bytes)?;
        self.execute("COMMIT", [])?;
        Ok(rejected)
    }

    fn apply(&mut self, Write { key, change, expires }: &Write) -> rusqlite::Result<()> {
        let owner = &self.owners.name(key.owner);
        match change {
            Change::Put(value) => self.put(owner, key, value, 0, *expires).map(drop),
            Change::PutCall(value, index) => {
                let entry = self.put(owner, key, value, index.sessions.len(), *expires)?;
                self.put_call(owner, key, entry, index, *expires)
            }
            Change::Append(items) => self.append(owner, key, items, *expires),
            Change::Erase(stamp) => {
                self.is_scrub_due = true;
                self.erase(owner, key, *stamp)
            }
            Change::Delete => {
                self.is_scrub_due |= key.kind.holds_text();
                let delete = "DELETE FROM entry WHERE owner = ? AND kind = ? AND id = ?";
                self.execute(delete, params![owner, key.kind.name(), key.id])
            }
        }
    }

    fn put(
        &self,
        owner: &[u8; 16],
        key: &Key,
        value: &[u8],
        calls: usize,
        expires: i64,
    ) -> rusqlite::Result<i64> {
        let bytes = ENTRY_OVERHEAD + key.id.len() + value.len() + calls * CALL_OVERHEAD;
        let mut put = self.statement(
            "INSERT INTO entry (owner, kind, id, expires, bytes, value) VALUES (?, ?, ?, ?, ?, ?)
             ON CONFLICT (owner, kind, id) DO UPDATE
             SET expires = excluded.expires, bytes = excluded.bytes, value = excluded.value
             RETURNING seq",
        )?;
        let row = params![owner, key.kind.name(), key.id, expires, bytes as i64, value];
        put.query_row(row, |row| row.get(0))
    }

    fn put_call(
        &self,
        owner: &[u8; 16],
        key: &Key,
        entry: i64,
        index: &CallIndex,
        expires: i64,
    ) -> rusqlite::Result<()> {
        let mut insert = self.statement(
            "INSERT OR REPLACE INTO call (seq, owner, session, content, token, previous, expires)
             VALUES (?, ?, ?, ?, ?, ?, ?)",
        )?;
        for session in &index.sessions {
            let names = (&index.content, &key.id, &index.previous);
            insert.execute(params![entry, owner, session, names.0, names.1, names.2, expires])?;
        }
        Ok(())
    }

    fn append(
        &self,
        owner: &[u8; 16],
        key: &Key,
        items: &[Item],
        expires: i64,
    ) -> rusqlite::Result<()> {
        let (kind, id) = (key.kind.name(), &key.id);
        // A list that has expired begins anew.
        let delete = "DELETE FROM entry WHERE owner = ? AND kind = ? AND id = ? AND expires <= ?";
        self.execute(delete, params![owner, kind, id, now_millis()])?;
        let added: usize = items.iter().map(|item| ITEM_OVERHEAD + item.value.len()).sum();
        let new = ENTRY_OVERHEAD + id.len() + added;
        let mut upsert = self.statement(
            "INSERT INTO entry (owner, kind, id, expires, bytes, value)
             VALUES (?1, ?2, ?3, ?4, ?5, x'')
             ON CONFLICT (owner, kind, id) DO UPDATE
             SET expires = excluded.expires, bytes = bytes + ?6 RETURNING seq",
        )?;
        let row = params![owner, kind, id, expires, new as i64, added as i64];
        let entry: i64 = upsert.query_row(row, |row| row.get(0))?;
        drop(upsert);
        let mut insert =
            self.statement("INSERT OR IGNORE INTO item (entry, stamp, value) VALUES (?, ?, ?)")?;
        for item in items {
            insert.execute(params![entry, item.stamp.as_bytes(), &item.value[..]])?;
        }
        Ok(())
    }

    fn erase(&self, owner: &[u8; 16], key: &Key, stamp: Stamp) -> rusqlite::Result<()> {
        let mut find = self.statement(
            "SELECT item.seq, entry.seq, length(item.value) FROM entry JOIN item ON item.entry = entry.seq
             WHERE owner = ? AND kind = ? AND id = ? AND stamp = ?",
        )?;
        let row = params![owner, key.kind.name(), key.id, stamp.as_bytes()];
        let found = find.query_row(row, |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?))
        });
        let Some((item, entry, bytes)) = found.optional()? else { return Ok(()) };
        self.execute("UPDATE item SET value = x'' WHERE seq = ?", [item])?;
        self.execute("UPDATE entry SET bytes = bytes - ? WHERE seq = ?", [bytes, entry])
    }

    /// Moves the write-ahead log into the file and empties it. Returns whether that was possible: others
    /// may be reading it.
    fn truncate_log(&self) -> rusqlite::Result<bool> {
        let mut checkpoint = self.statement("PRAGMA wal_checkpoint(TRUNCATE)")?;
        checkpoint.query_row([], |row| row.get::<_, i64>(0)).map(|busy| busy == 0)
    }

    fn statement(&self, sql: &str) -> rusqlite::Result<CachedStatement<'_>> {
        self.connection.prepare_cached(sql)
    }

    fn execute(&self, sql: &str, params: impl Params) -> rusqlite::Result<()> {
        self.statement(sql)?.execute(params).map(drop)
    }
}

/// Opens a connection and identifies the database.
fn connect(path: &Path, is_alone: bool) -> rusqlite::Result<(Connection, Content)> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(OPEN_BUSY_TIMEOUT)?;
    let content = schema::inspect(&connection, is_alone)?;
    Ok((connection, content))
}

/// Sets a file aside that cannot be used, if it is ours, and opens a new one.
fn replace(path: &Path, content: &Content, is_alone: bool) -> Result<Connection, String> {
    let (why, detail) = match content {
        Content::Older => ("older", "it has the schema of an older version"),
        Content::Damaged(how) => ("damaged", how.as_str()),
        Content::Newer => return Err("it belongs to a newer version of toolgate".to_owned()),
        Content::Foreign | Content::Empty | Content::Current => {
            return Err("it is the database of another program".to_owned());
        }
    };
    if !is_alone {
        return Err(format!("it is {why} ({detail}), and another gateway uses it"));
    }
    let aside = files::set_aside(path, why).map_err(|error| error.to_string())?;
    tracing::error!(
        path = %path.display(),
        aside = %aside.display(),
        detail,
        "state file {why}, set aside; starting with an empty one"
    );
    files::make_private(path).map_err(|error| error.to_string())?;
    connect(path, true).map(|(connection, _)| connection).map_err(|error| error.to_string())
}

/// Sets a connection up for writing, creates the tables and returns the secret.
fn prepare(
    connection: &mut Connection,
    new_secret: [u8; 32],
    is_alone: bool,
) -> rusqlite::Result<[u8; 32]> {
    connection.set_prepared_statement_cache_capacity(32);
    connection.execute_batch(PRAGMAS)?;
    schema::create(connection)?;
    connection.execute(
        "INSERT OR IGNORE INTO secret (name, value) VALUES (?, ?)",
        params![SECRET, new_secret],
    )?;
    if is_alone {
        connection.execute("DELETE FROM entry WHERE kind = ?", [Kind::Live.name()])?;
    }
    let select = "SELECT value FROM secret WHERE name = ?";
    let secret = connection.query_row(select, [SECRET], |row| row.get(0))?;
    connection.busy_timeout(WRITE_BUSY_TIMEOUT)?;
    Ok(secret)
}

/// Whether an error is about one write, not about the file or the disk.
fn is_rejection(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error_code();
    code.is_none_or(|code| {
        matches!(
            code,
            ErrorCode::ApiMisuse
                | ErrorCode::ConstraintViolation
                | ErrorCode::ParameterOutOfRange
                | ErrorCode::TooBig
                | ErrorCode::TypeMismatch
                | ErrorCode::Unknown
        )
    })
}
