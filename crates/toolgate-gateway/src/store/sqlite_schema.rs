//! The forms that the SQLite store's file has had, and how an older one becomes the newest.

use rusqlite::{Connection, params};

use super::part_of;
use super::sqlite_file::{Place, Put};
use crate::auth::Owner;

/// What each version of the schema adds to the one before. Never change one that was released.
pub(super) const MIGRATIONS: [&str; 6] = [
    "
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
    ",
    // An entry is one row: what is written most often touches two trees instead of five.
    "
    CREATE TABLE list (
        number INTEGER PRIMARY KEY,
        owner BLOB NOT NULL,
        kind TEXT NOT NULL,
        id TEXT NOT NULL,
        until INTEGER NOT NULL,
        UNIQUE (owner, kind, id)
    ) STRICT;
    CREATE INDEX list_until ON list (until);
    CREATE TABLE list_value (
        number INTEGER PRIMARY KEY,
        list INTEGER NOT NULL REFERENCES list (number) ON DELETE CASCADE,
        value BLOB NOT NULL
    ) STRICT;
    CREATE INDEX list_value_list ON list_value (list);
    CREATE TABLE single (
        number INTEGER PRIMARY KEY,
        owner BLOB NOT NULL,
        kind TEXT NOT NULL,
        id TEXT NOT NULL,
        until INTEGER NOT NULL,
        value BLOB NOT NULL,
        UNIQUE (owner, kind, id)
    ) STRICT;
    INSERT INTO list SELECT number, owner, kind, id, until FROM entry WHERE kind = 'log';
    INSERT INTO list_value
        SELECT value.number, value.entry, value.value
        FROM value JOIN list ON list.number = value.entry;
    INSERT INTO single
        SELECT CASE kind WHEN 'own' THEN -entry.number END, owner, kind, id, until, value.value
        FROM entry JOIN value ON value.entry = entry.number
        WHERE kind <> 'log' ORDER BY until;
    DROP TABLE value;
    DROP TABLE entry;
    ALTER TABLE single RENAME TO entry;
    ",
    // An answer is one entry with its question. Its items are named after it.
    "
    UPDATE entry SET value = CAST(
        '{\"behind\":' || substr(value, 1, instr(value, x'0A') - 1)
        || ',\"question\":' || (length(value) - instr(value, x'0A')) || '}' || char(10)
        || substr(value, instr(value, x'0A') + 1)
        || coalesce((
            SELECT value FROM entry AS answer
            WHERE owner = entry.owner AND kind = 'answer' AND id = entry.id
        ), '') AS BLOB) WHERE kind = 'turn';
    DELETE FROM entry WHERE kind IN ('answer', 'item');
    UPDATE entry SET kind = 'answer' WHERE kind = 'turn';
    UPDATE entry SET value = CAST('{}' || char(10) || value AS BLOB) WHERE kind = 'events';
    ",
    // What is in maps is found by its place.
    "
    CREATE TABLE map_value (
        number INTEGER PRIMARY KEY,
        place INTEGER NOT NULL UNIQUE,
        owner BLOB NOT NULL,
        kind TEXT NOT NULL,
        map TEXT NOT NULL,
        name TEXT NOT NULL,
        until INTEGER NOT NULL,
        value BLOB NOT NULL
    ) STRICT;
    ",
    // An entry says itself in which map it is. `fill_maps` takes the others over.
    "
    ALTER TABLE entry ADD COLUMN place INTEGER;
    ALTER TABLE entry ADD COLUMN map TEXT;
    ALTER TABLE entry ADD COLUMN note TEXT;
    CREATE INDEX entry_place ON entry (place) WHERE place IS NOT NULL;
    ",
    // What says the same is a part of a map. `split_maps` makes them.
    "",
];

/// Brings a file into the newest form; several processes may try at once.
pub(super) fn migrate(connection: &Connection) -> rusqlite::Result<()> {
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
    if version < MAPS {
        fill_maps(connection)?;
    } else if version < PARTS {
        split_maps(connection)?;
    }
    connection.pragma_update(None, "user_version", MIGRATIONS.len() as i64)?;
    connection.execute_batch("COMMIT")
}

/// The version whose entries say in which maps they are.
const MAPS: usize = 5;
/// The version whose maps have parts.
const PARTS: usize = 6;

/// Brings what is in maps from where it was before: among the entries, then in a table of its own.
fn fill_maps(connection: &Connection) -> rusqlite::Result<()> {
    let mut all = connection.prepare(
        "SELECT owner, id, until, value FROM (
             SELECT owner, id, until, value, number FROM entry WHERE kind = 'content'
             UNION ALL SELECT owner, map || '/' || name, until, value, number FROM map_value)
         ORDER BY number",
    )?;
    let (mut rows, mut put) = (all.query([])?, Put::new(connection)?);
    while let Some(row) = rows.next()? {
        let (owner, id, until): ([u8; 16], String, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        put.put_older(Owner::kept(owner), &id, &row.get::<_, Vec<u8>>(3)?, until)?;
    }
    connection.execute_batch("DELETE FROM entry WHERE kind = 'content'; DROP TABLE map_value")
}

/// Makes a part of everything that says the same in a map: that stands first in its notes.
fn split_maps(connection: &Connection) -> rusqlite::Result<()> {
    let mut all = connection.prepare(
        "SELECT number, owner, map, note FROM entry NOT INDEXED WHERE place IS NOT NULL",
    )?;
    let mut update =
        connection.prepare("UPDATE entry SET place = ?, map = ?, note = ? WHERE number = ?")?;
    let mut rows = all.query([])?;
    while let Some(row) = rows.next()? {
        let (number, owner): (i64, [u8; 16]) = (row.get(0)?, row.get(1)?);
        let (map, note): (String, String) = (row.get(2)?, row.get(3)?);
        let (part, note) = note.split_once('/').unwrap_or((&note, "-"));
        let map = part_of(&map, part);
        let place = Place::of(Owner::kept(owner), &map).number();
        update.execute(params![place, map, note, number])?;
    }
    Ok(())
}
