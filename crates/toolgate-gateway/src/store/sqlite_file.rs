//! The tables of the SQLite store.
//!
//! ```text
//!   entry        owner · kind · id ─► its value, until when it is kept, a map and the note there
//!   list         owner · kind · id ─► until when it is kept
//!   list_value   list ─► its values, in order
//! ```
//!
//! Entries are numbered in the order in which they were written, and live about equally long: the
//! first are the oldest. What is kept for ever has numbers below zero.
//!
//! Ids of entries begin with the time, so that new ones are added at one end. Names of maps come from
//! anywhere: what is in one is found by a short [`Place`], of which a page holds very many, so that
//! there are few pages to write. An entry that is in several maps has a row more for each of the
//! others.

use std::ops::Deref;
use std::time::{Duration, Instant};

use rusqlite::{CachedStatement, Connection, OptionalExtension as _, params};

use super::change::{At, What, changes};
use super::sqlite_read::Reader;
use super::sqlite_schema::migrate;
use super::tail::Batch;
use super::{KEY, Kind, Shape, map_and_part, owner_of_the_gateway, part_of};
use crate::auth::Owner;
use crate::clock;

/// How often old entries are looked for.
const SWEEP: Duration = Duration::from_secs(30);

/// How long others who have the file are waited for, and how long where it is tried again soon.
const PATIENCE: Duration = Duration::from_secs(5);
const SHORT_PATIENCE: Duration = Duration::from_millis(250);

/// Changes that cannot be kept, however often that is tried.
#[derive(Debug, Default)]
pub(super) struct Refused {
    pub(super) count: u64,
    /// Why the first of them cannot.
    pub(super) first: Option<rusqlite::Error>,
}

impl Refused {
    /// Takes down what came of a change. What went wrong with the file is an error for all of them.
    fn note(
        &mut self,
        connection: &Connection,
        written: rusqlite::Result<()>,
    ) -> rusqlite::Result<()> {
        match written {
            // Some errors have undone what was written before.
            Err(error) if is_its_own_fault(&error) && !connection.is_autocommit() => {
                self.count += 1;
                self.first.get_or_insert(error);
                Ok(())
            }
            written => written,
        }
    }
}

/// Whether something failed for what was to be written or where, not for the whole file or the disk.
pub(super) fn is_its_own_fault(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode as Code;
    error.sqlite_error_code().is_none_or(|code| {
        matches!(
            code,
            Code::ApiMisuse
                | Code::ConstraintViolation
                | Code::DatabaseCorrupt
                | Code::ParameterOutOfRange
                | Code::TooBig
                | Code::TypeMismatch
                | Code::Unknown
        )
    })
}

/// An open file.
#[derive(Debug)]
pub(super) struct File {
    reader: Reader,
    limit: u64,
    /// Bytes that were written since the file's size was looked at.
    unseen: u64,
    writing: bool,
    swept: Instant,
}

impl Deref for File {
    type Target = Reader;

    fn deref(&self) -> &Reader {
        &self.reader
    }
}

impl File {
    /// Takes a file into use, in the newest form.
    pub(super) fn new(connection: Connection, limit: u64) -> rusqlite::Result<Self> {
        connection.busy_timeout(PATIENCE)?;
        connection.execute_batch(
            "PRAGMA page_size = 16384; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON;
             PRAGMA journal_size_limit = 67108864; PRAGMA temp_store = MEMORY;
             PRAGMA wal_autocheckpoint = 1024; PRAGMA cache_size = -8192;",
        )?;
        migrate(&connection)?;
        let (reader, swept) = (Reader::new(connection)?, Instant::now());
        let mut file = Self { reader, limit, unseen: 0, writing: false, swept };
        file.sweep()?;
        file.commit()?;
        Ok(file)
    }

    /// The key that is kept here; the first who comes brings it.
    pub(super) fn key(&mut self, new: [u8; 32]) -> rusqlite::Result<[u8; 32]> {
        let at = At { owner: owner_of_the_gateway(), kind: Kind::Own, id: KEY };
        self.begin()?;
        let kept = self.get(at)?.and_then(|kept| <[u8; 32]>::try_from(&kept.value[..]).ok());
        if kept.is_none() {
            self.put_for_ever(-1, at, &new)?;
        }
        self.commit()?;
        Ok(kept.unwrap_or(new))
    }

    /// Begins to write, if it has not begun.
    pub(super) fn begin(&mut self) -> rusqlite::Result<()> {
        if !self.writing {
            self.connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
            self.writing = true;
        }
        Ok(())
    }

    /// Begins to write, unless others have the file for long.
    pub(super) fn begin_soon(&mut self) -> rusqlite::Result<()> {
        self.connection.busy_timeout(SHORT_PATIENCE)?;
        let begun = self.begin();
        self.connection.busy_timeout(PATIENCE)?;
        if begun.is_err() {
            self.undo();
        }
        begun
    }

    /// Makes what was written last, all of it or, where that fails, nothing.
    pub(super) fn commit(&mut self) -> rusqlite::Result<()> {
        if !self.writing {
            return Ok(());
        }
        let committed = self.try_commit();
        if committed.is_err() {
            self.undo();
        }
        committed
    }

    fn try_commit(&mut self) -> rusqlite::Result<()> {
        if self.swept.elapsed() >= SWEEP {
            self.sweep()?;
        }
        self.shrink()?;
        self.connection.prepare_cached("COMMIT")?.execute([])?;
        self.writing = false;
        Ok(())
    }

    /// Forgets what was written and not made to last.
    pub(super) fn undo(&mut self) {
        self.writing = false;
        // What was let go is there again: it is looked for the next time.
        self.unseen = self.limit;
        self.roll_back();
    }

    /// Writes the changes of a log. One that cannot be kept holds up no other.
    pub(super) fn write(&mut self, log: &[u8], refused: &mut Refused) -> rusqlite::Result<()> {
        self.begin()?;
        self.unseen += log.len() as u64;
        let mut put = Put::new(&self.connection)?;
        let mut added = Vec::new();
        for change in changes(log) {
            match change.what {
                What::Put(value, notes) => {
                    let written = put.put(change.at, value, &notes, change.until);
                    refused.note(&self.connection, written)?;
                }
                What::Append(values) => added.push((change.at, values, change.until)),
            }
        }
        drop(put);
        // Lists begin anywhere in the file: neighbours belong to the same pages of it.
        added.sort_by_key(|(at, ..)| *at);
        for (at, values, until) in added {
            let written = self.append(at, &values, until);
            refused.note(&self.connection, written)?;
        }
        Ok(())
    }

    /// Writes what a tail holds, as far as it is not there: all of it or nothing.
    pub(super) fn bring_home(
        &mut self,
        tail: usize,
        batches: &[Batch],
        refused: &mut Refused,
    ) -> rusqlite::Result<u64> {
        let known = self.last_of(tail)?;
        let mut last = known;
        let mut written = Ok(());
        for batch in batches.iter().filter(|batch| batch.number > known) {
            written = written.and_then(|()| self.write(&batch.log, refused));
            last = batch.number;
        }
        if last > known {
            let set = written.and_then(|()| self.set_last_of(tail, last));
            set.and_then(|()| self.commit()).inspect_err(|_| self.undo())?;
        }
        Ok(last)
    }

    /// The number of the last batch of a tail that is here.
    pub(super) fn last_of(&self, tail: usize) -> rusqlite::Result<u64> {
        let kept = self.get(at_tail(&tail_id(tail)))?;
        Ok(kept.and_then(|kept| std::str::from_utf8(&kept.value).ok()?.parse().ok()).unwrap_or(0))
    }

    /// Takes down that a tail's batches are here up to a number.
    pub(super) fn set_last_of(&mut self, tail: usize, last: u64) -> rusqlite::Result<()> {
        self.begin()?;
        let (id, number) = (tail_id(tail), FIRST_TAIL - tail as i64);
        self.put_for_ever(number, at_tail(&id), last.to_string().as_bytes())
    }

    /// Puts something that has a number of its own.
    fn put_for_ever(&self, number: i64, at: At<'_>, value: &[u8]) -> rusqlite::Result<()> {
        let mut insert = self.connection.prepare_cached(
            "INSERT OR REPLACE INTO entry (number, owner, kind, id, until, value)
             VALUES (?, ?, ?, ?, ?, ?)",
        )?;
        let (owner, kind) = (at.owner.bytes(), at.kind.name());
        insert.execute(params![number, owner, kind, at.id, i64::MAX, value]).map(drop)
    }

    /// Adds values to a list.
    fn append(&mut self, at: At<'_>, values: &[&[u8]], until: i64) -> rusqlite::Result<()> {
        self.begin()?;
        let (owner, kind, id) = (at.owner.bytes(), at.kind.name(), at.id);
        // One that is too old is as good as gone.
        self.connection
            .prepare_cached(
                "DELETE FROM list WHERE owner = ? AND kind = ? AND id = ? AND until <= ?",
            )?
            .execute(params![owner, kind, id, now()])?;
        let number: i64 = self
            .connection
            .prepare_cached(
                "INSERT INTO list (owner, kind, id, until) VALUES (?, ?, ?, ?)
                 ON CONFLICT DO UPDATE SET until = excluded.until RETURNING number",
            )?
            .query_row(params![owner, kind, id, until], |row| row.get(0))?;
        let mut insert = self
            .reader
            .connection
            .prepare_cached("INSERT INTO list_value (list, value) VALUES (?, ?)")?;
        for value in values {
            insert.execute(params![number, value])?;
            self.unseen += value.len() as u64;
        }
        Ok(())
    }

    /// Forgets an entry or a list; says whether there was one.
    pub(super) fn delete(&mut self, at: At<'_>) -> rusqlite::Result<bool> {
        self.begin()?;
        let delete = if at.kind.shape() == Shape::List {
            "DELETE FROM list WHERE owner = ? AND kind = ? AND id = ? RETURNING until"
        } else {
            "DELETE FROM entry WHERE owner = ? AND kind = ? AND id = ? RETURNING until"
        };
        let until: Option<i64> = self
            .connection
            .prepare_cached(delete)?
            .query_row(params![at.owner.bytes(), at.kind.name(), at.id], |row| row.get(0))
            .optional()?;
        Ok(until.is_some_and(|until| until > now()))
    }

    /// Lets go of what is too old.
    fn sweep(&mut self) -> rusqlite::Result<()> {
        self.begin()?;
        for sweep in [
            "DELETE FROM entry WHERE number >= 0 AND number < coalesce(
                 (SELECT number FROM entry WHERE number >= 0 AND until > ?1
                  ORDER BY number LIMIT 1), 9223372036854775807)",
            "DELETE FROM list WHERE until <= ?",
        ] {
            self.connection.prepare_cached(sweep)?.execute([now()])?;
        }
        self.swept = Instant::now();
        Ok(())
    }

    /// Lets go of the oldest where there is too much. Looking costs a little, so that it is done
    /// when a part of what fits has been written.
    fn shrink(&mut self) -> rusqlite::Result<()> {
        if self.unseen < self.limit / 64 {
            return Ok(());
        }
        self.unseen = 0;
        loop {
            let over = self.used()?.saturating_sub(self.limit);
            if over == 0 || !self.let_go(over)? {
                return Ok(());
            }
        }
    }

    /// Lets go of some of the oldest, not of much more than so many bytes, and never of the newest.
    /// Says whether there was any.
    fn let_go(&self, over: u64) -> rusqlite::Result<bool> {
        let entry = self.first(
            "SELECT until, number FROM entry WHERE number >= 0
             AND number < (SELECT max(number) FROM entry) ORDER BY number LIMIT 1",
        )?;
        let list = self.first(
            "SELECT until, number FROM list
             WHERE number <> (SELECT number FROM list ORDER BY until DESC LIMIT 1)
             ORDER BY until LIMIT 1",
        )?;
        match (entry, list) {
            (Some((entry, _)), Some((list, number))) if list < entry => self.drop_list(number)?,
            (Some(_), _) => self.drop_entries(over)?,
            (None, Some((_, number))) => self.drop_list(number)?,
            (None, None) => return self.drop_longest(),
        }
        Ok(true)
    }

    fn first(&self, look: &str) -> rusqlite::Result<Option<(i64, i64)>> {
        let mut look = self.connection.prepare_cached(look)?;
        look.query_row([], |row| Ok((row.get(0)?, row.get(1)?))).optional()
    }

    /// Lets go of the oldest entries, until so many bytes are free.
    fn drop_entries(&self, over: u64) -> rusqlite::Result<()> {
        let mut oldest = self.connection.prepare_cached(
            "SELECT number, length(value) FROM entry WHERE number >= 0
             AND number < (SELECT max(number) FROM entry) ORDER BY number LIMIT 16",
        )?;
        let mut rows = oldest.query([])?;
        let (mut last, mut freed) = (-1, 0);
        while let Some(row) = rows.next()?
            && freed < over
        {
            last = row.get(0)?;
            freed += row.get::<_, i64>(1)?.unsigned_abs();
        }
        drop(rows);
        let delete = "DELETE FROM entry WHERE number BETWEEN 0 AND ?";
        self.connection.prepare_cached(delete)?.execute([last]).map(drop)
    }

    fn drop_list(&self, number: i64) -> rusqlite::Result<()> {
        let delete = "DELETE FROM list WHERE number = ?";
        self.connection.prepare_cached(delete)?.execute([number]).map(drop)
    }

    /// Lets go of the only list, where it takes most of the room: it may grow for ever, which an entry
    /// does not.
    fn drop_longest(&self) -> rusqlite::Result<bool> {
        let longest = self.first(
            "SELECT sum(length(value)), list FROM list_value GROUP BY list ORDER BY 1 DESC LIMIT 1",
        )?;
        match longest {
            Some((bytes, number)) if bytes.unsigned_abs() > self.limit / 2 => {
                self.drop_list(number).map(|()| true)
            }
            Some(_) | None => Ok(false),
        }
    }

    /// How many bytes of the file hold something.
    fn used(&self) -> rusqlite::Result<u64> {
        let number = |pragma: &str| -> rusqlite::Result<u64> {
            let number = self.connection.prepare_cached(pragma)?.query_row([], |row| row.get(0));
            number.map(i64::unsigned_abs)
        };
        let pages = number("PRAGMA page_count")?.saturating_sub(number("PRAGMA freelist_count")?);
        Ok(pages * number("PRAGMA page_size")?)
    }
}

/// The statement for what is put, looked for once.
pub(super) struct Put<'f>(CachedStatement<'f>);

impl<'f> Put<'f> {
    pub(super) fn new(connection: &'f Connection) -> rusqlite::Result<Self> {
        let insert =
            "INSERT OR REPLACE INTO entry (owner, kind, id, until, value, place, map, note)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?)";
        connection.prepare_cached(insert).map(Self)
    }

    /// Writes an entry, in place of what was there, and what maps note of it. As an entry of its own,
    /// a map comes from an older version.
    fn put(
        &mut self,
        at: At<'_>,
        value: &[u8],
        notes: &[(&str, &str)],
        until: i64,
    ) -> rusqlite::Result<()> {
        if at.kind == Kind::Map {
            return self.put_older(at.owner, at.id, value, until);
        }
        let mut notes = notes.iter().copied();
        self.row(at, value, notes.next(), until)?;
        for (count, note) in (1..).zip(notes) {
            self.also_in(at, count, note, until)?;
        }
        Ok(())
    }

    /// Writes that an entry is in another map. `number` tells its maps apart.
    fn also_in(
        &mut self,
        at: At<'_>,
        number: u32,
        note: (&str, &str),
        until: i64,
    ) -> rusqlite::Result<()> {
        // The number first: the others are in the order of time, as their ids are.
        let at = At { kind: Kind::Map, id: &format!("{number}/{}", at.id), ..at };
        self.row(at, b"", Some(note), until)
    }

    /// Writes what an older version had in a map: the id says the map, and what a call says and its
    /// number there; the value says the time and the token, if there was one.
    pub(super) fn put_older(
        &mut self,
        owner: Owner,
        id: &str,
        value: &[u8],
        until: i64,
    ) -> rusqlite::Result<()> {
        let token = std::str::from_utf8(value).ok().and_then(|text| text.split_once(' '));
        // The oldest form was not that of a map, and is not read any more.
        let (Some((_, token)), Some((map, name))) = (token, id.split_once('/')) else {
            return Ok(());
        };
        let Some((content, _)) = name.split_once('/').filter(|_| !token.is_empty()) else {
            return Ok(());
        };
        let at = At { owner, kind: Kind::Signature, id: token };
        // It was not noted what came before.
        let map = part_of(map, content);
        self.also_in(at, Place::of(owner, &map).map, (&map, "-"), until)
    }

    fn row(
        &mut self,
        at: At<'_>,
        value: &[u8],
        note: Option<(&str, &str)>,
        until: i64,
    ) -> rusqlite::Result<()> {
        let place = note.map(|(map, _)| Place::of(at.owner, map).number());
        let (map, note) = note.unzip();
        let (owner, kind) = (at.owner.bytes(), at.kind.name());
        self.0.execute(params![owner, kind, at.id, until, value, place, map, note]).map(drop)
    }
}

/// The entry that is [also in](Put::also_in) a map, by the id of the row that says so.
pub(super) fn id_behind(id: &str) -> &str {
    id.split_once('/').map_or(id, |(_, id)| id)
}

/// Where a part of a map is: a number that belongs to it, and seldom to another. Those of a map are
/// beside each other. It stands in files: it is never changed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    map: u32,
    part: u32,
}

impl Place {
    pub(super) fn of(owner: Owner, name: &str) -> Self {
        let sum = |pieces: &[&[u8]]| {
            let mut sum = flate2::Crc::new();
            pieces.iter().for_each(|piece| sum.update(piece));
            sum.sum()
        };
        let (map, part) = map_and_part(name);
        Self { map: sum(&[owner.bytes(), map.as_bytes()]), part: sum(&[part.as_bytes()]) }
    }

    pub(super) fn number(self) -> i64 {
        (u64::from(self.map) << 32 | u64::from(self.part)).cast_signed()
    }

    /// Where the first and the last part of the map can be.
    pub(super) fn all(self) -> [i64; 2] {
        [0, u32::MAX].map(|part| Self { part, ..self }.number())
    }
}

/// What is kept for ever has numbers below zero: the key has -1, the first tail this.
const FIRST_TAIL: i64 = -1000;

/// Where it stands how far a tail has been brought home.
fn at_tail(id: &str) -> At<'_> {
    At { owner: owner_of_the_gateway(), kind: Kind::Own, id }
}

fn tail_id(tail: usize) -> String {
    format!("tail{tail}")
}

/// Until when something is kept that is kept for a while from now.
pub(super) fn until(keep: Duration) -> i64 {
    now() + i64::try_from(keep.as_millis()).unwrap_or(i64::MAX / 2)
}

/// Milliseconds since 1970.
pub(super) fn now() -> i64 {
    i64::try_from(clock::millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
