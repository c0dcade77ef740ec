//! The tables of the SQLite store.
//!
//! ```text
//!   entry   owner · kind · id ─► until when, how many bytes
//!   value   entry ─► its values, in order
//! ```

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::sqlite::At;
use super::{KEY, Kind, owner_of_the_gateway};

/// What each version of the schema adds to the one before. Never change one that was released.
const MIGRATIONS: [&str; 1] = ["
    CREATE TABLE entry (
        number INTEGER PRIMARY KEY,
        owner BLOB NOT NULL,
        kind TEXT NOT NULL,
        id TEXT NOT NULL,
        until INTEGER NOT NULL,
        bytes INTEGER NOT NULL,
        UNIQUE (owner, kind, id)
    ) STRICT;
    CREATE INDEX entry_until ON entry (until);
    CREATE TABLE value (
        number INTEGER PRIMARY KEY,
        entry INTEGER NOT NULL REFERENCES entry (number) ON DELETE CASCADE,
        value BLOB NOT NULL
    ) STRICT;
    CREATE INDEX value_entry ON value (entry);
"];

/// What an entry costs beside its values, roughly.
const OVERHEAD: usize = 200;
/// How often old entries are looked for.
const SWEEP: Duration = Duration::from_secs(30);

/// An open file.
pub(super) struct File {
    connection: Connection,
    limit: u64,
    bytes: u64,
    writing: bool,
    swept: Instant,
}

impl File {
    /// Takes a file into use, in the newest form.
    pub(super) fn new(connection: Connection, limit: u64) -> rusqlite::Result<Self> {
        connection.busy_timeout(Duration::from_secs(5))?;
        connection.execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON;
             PRAGMA journal_size_limit = 67108864; PRAGMA temp_store = MEMORY;",
        )?;
        connection.set_prepared_statement_cache_capacity(32);
        migrate(&connection)?;
        let mut file = Self { connection, limit, bytes: 0, writing: false, swept: Instant::now() };
        file.sweep()?;
        file.commit()?;
        Ok(file)
    }

    /// The key that is kept here; the first who comes brings it.
    pub(super) fn key(&mut self, new: [u8; 32]) -> rusqlite::Result<[u8; 32]> {
        let at = At { owner: owner_of_the_gateway(), kind: Kind::Own, id: KEY.to_owned() };
        self.begin()?;
        let kept = self.list(&at, 1)?.pop().and_then(|kept| <[u8; 32]>::try_from(&kept[..]).ok());
        let key = match kept {
            Some(kept) => kept,
            None => {
                let ever = Duration::from_secs(u64::from(u32::MAX));
                self.write(&at, &[Bytes::copy_from_slice(&new)], ever, true)?;
                new
            }
        };
        self.commit()?;
        Ok(key)
    }

    fn begin(&mut self) -> rusqlite::Result<()> {
        if !self.writing {
            self.connection.execute_batch("BEGIN IMMEDIATE")?;
            self.writing = true;
        }
        Ok(())
    }

    /// Makes what was written last.
    pub(super) fn commit(&mut self) -> rusqlite::Result<()> {
        if !self.writing {
            return Ok(());
        }
        if self.swept.elapsed() >= SWEEP {
            self.sweep()?;
        }
        self.shrink()?;
        self.writing = false;
        let committed = self.connection.execute_batch("COMMIT");
        if committed.is_err() {
            self.connection.execute_batch("ROLLBACK")?;
        }
        committed
    }

    /// The first values of an entry, if it is not too old.
    pub(super) fn list(&self, at: &At, most: usize) -> rusqlite::Result<Vec<Bytes>> {
        let mut statement = self.connection.prepare_cached(
            "SELECT value.value FROM entry JOIN value ON value.entry = entry.number
             WHERE owner = ? AND kind = ? AND id = ? AND until > ? ORDER BY value.number LIMIT ?",
        )?;
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let key = params![at.owner.bytes(), at.kind.name(), at.id, now(), most];
        let rows = statement.query_map(key, |row| row.get::<_, Vec<u8>>(0))?;
        rows.map(|row| row.map(Bytes::from)).collect()
    }

    /// Adds values to an entry, or puts them in place of those before.
    pub(super) fn write(
        &mut self,
        at: &At,
        values: &[Bytes],
        keep: Duration,
        replace: bool,
    ) -> rusqlite::Result<()> {
        self.begin()?;
        let until = now() + i64::try_from(keep.as_millis()).unwrap_or(i64::MAX / 2);
        let (owner, kind, id) = (at.owner.bytes(), at.kind.name(), &at.id);
        let added: usize = values.iter().map(Bytes::len).sum();
        let found: Option<(i64, u64, i64)> = self
            .connection
            .prepare_cached(
                "SELECT number, bytes, until FROM entry WHERE owner = ? AND kind = ? AND id = ?",
            )?
            .query_row(params![owner, kind, id], |row| {
                Ok((row.get(0)?, row.get::<_, i64>(1)?.unsigned_abs(), row.get(2)?))
            })
            .optional()?;
        let (number, before, fresh) = match found {
            Some((number, bytes, until)) => (Some(number), bytes, replace || until <= now()),
            None => (None, 0, true),
        };
        let kept = if fresh { (id.len() + OVERHEAD) as u64 } else { before };
        let bytes = kept + added as u64;
        self.bytes = (self.bytes + bytes).saturating_sub(before);
        let number = match number {
            Some(number) => {
                if fresh {
                    self.connection
                        .prepare_cached("DELETE FROM value WHERE entry = ?")?
                        .execute([number])?;
                }
                self.connection
                    .prepare_cached("UPDATE entry SET until = ?, bytes = ? WHERE number = ?")?
                    .execute(params![until, bytes.cast_signed(), number])?;
                number
            }
            None => self
                .connection
                .prepare_cached(
                    "INSERT INTO entry (owner, kind, id, until, bytes) VALUES (?, ?, ?, ?, ?)",
                )?
                .insert(params![owner, kind, id, until, bytes.cast_signed()])?,
        };
        let mut insert =
            self.connection.prepare_cached("INSERT INTO value (entry, value) VALUES (?, ?)")?;
        for value in values {
            insert.execute(params![number, &value[..]])?;
        }
        Ok(())
    }

    /// Forgets an entry; says whether there was one.
    pub(super) fn delete(&mut self, at: &At) -> rusqlite::Result<bool> {
        self.begin()?;
        let found: Option<(i64, i64)> = self
            .connection
            .prepare_cached(
                "DELETE FROM entry WHERE owner = ? AND kind = ? AND id = ? RETURNING bytes, until",
            )?
            .query_row(params![at.owner.bytes(), at.kind.name(), at.id], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .optional()?;
        self.bytes = self.bytes.saturating_sub(found.map_or(0, |(bytes, _)| bytes.unsigned_abs()));
        Ok(found.is_some_and(|(_, until)| until > now()))
    }

    /// Lets go of what is too old, and counts what is left.
    fn sweep(&mut self) -> rusqlite::Result<()> {
        self.begin()?;
        self.connection.prepare_cached("DELETE FROM entry WHERE until <= ?")?.execute([now()])?;
        let bytes: i64 = self
            .connection
            .prepare_cached("SELECT coalesce(sum(bytes), 0) FROM entry")?
            .query_row([], |row| row.get(0))?;
        self.bytes = bytes.unsigned_abs();
        self.swept = Instant::now();
        Ok(())
    }

    /// Lets go of the oldest where there is too much.
    fn shrink(&mut self) -> rusqlite::Result<()> {
        while self.bytes > self.limit {
            let mut statement = self.connection.prepare_cached(
                "DELETE FROM entry WHERE number IN (
                     SELECT number FROM entry WHERE kind <> 'own' ORDER BY until LIMIT 64
                 ) RETURNING bytes",
            )?;
            let freed = statement.query_map([], |row| row.get::<_, i64>(0))?;
            let freed: Vec<i64> = freed.collect::<rusqlite::Result<_>>()?;
            if freed.is_empty() {
                return Ok(());
            }
            self.bytes = self.bytes.saturating_sub(freed.iter().sum::<i64>().unsigned_abs());
        }
        Ok(())
    }
}

/// Brings a file into the newest form; several processes may try at once.
fn migrate(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch("BEGIN IMMEDIATE")?;
    let version: usize = connection.query_row("PRAGMA user_version", [], |row| {
        row.get::<_, i64>(0).map(|version| usize::try_from(version).unwrap_or(usize::MAX))
    })?;
    if version > MIGRATIONS.len() {
        connection.execute_batch("ROLLBACK")?;
        let reason = format!("the file has version {version}: it was made by a newer toolgate");
        return Err(rusqlite::Error::ToSqlConversionFailure(reason.into()));
    }
    for step in &MIGRATIONS[version..] {
        connection.execute_batch(step)?;
    }
    connection.pragma_update(None, "user_version", MIGRATIONS.len() as i64)?;
    connection.execute_batch("COMMIT")
}

/// Milliseconds since 1970.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
