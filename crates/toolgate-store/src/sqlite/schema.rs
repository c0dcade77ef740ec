//! Tables of the SQLite store, and whose database a file is.
//!
//! ```text
//!   entry    owner · kind · id ─► value, expiry
//!   item     entry ─► items of a list, in the order of `seq`
//!   call     owner · session · content ─► token of a call and of the one before it
//!   usage    owner ─► bytes of its entries, maintained by triggers
//!   secret   secrets of the store
//! ```
//!
//! Items and calls belong to an entry and are removed with it, so that expiry and eviction look at
//! `entry` only.

use rusqlite::{Connection, ErrorCode, OptionalExtension as _};

/// Marks a file as ours, in the header field that SQLite has for it.
pub(super) const APPLICATION_ID: i32 = i32::from_be_bytes(*b"tgst");
/// Version of the schema. A file of an older one is set aside.
const VERSION: i32 = 1;

const SCHEMA: &str = "
    CREATE TABLE secret (
        name TEXT PRIMARY KEY,
        value BLOB NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE usage (
        owner BLOB PRIMARY KEY,
        bytes INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE entry (
        seq INTEGER PRIMARY KEY,
        owner BLOB NOT NULL,
        kind TEXT NOT NULL,
        id TEXT NOT NULL,
        expires INTEGER NOT NULL,
        bytes INTEGER NOT NULL,
        value BLOB NOT NULL,
        UNIQUE (owner, kind, id)
    ) STRICT;
    CREATE INDEX entry_age ON entry (owner, expires);
    CREATE TABLE item (
        seq INTEGER PRIMARY KEY,
        entry INTEGER NOT NULL REFERENCES entry (seq) ON DELETE CASCADE,
        stamp BLOB NOT NULL,
        value BLOB NOT NULL,
        UNIQUE (entry, stamp)
    ) STRICT;
    CREATE TABLE call (
        seq INTEGER NOT NULL REFERENCES entry (seq) ON DELETE CASCADE,
        session TEXT NOT NULL,
        owner BLOB NOT NULL,
        content TEXT NOT NULL,
        token TEXT NOT NULL,
        previous TEXT NOT NULL,
        expires INTEGER NOT NULL,
        PRIMARY KEY (seq, session)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX call_content ON call (owner, session, content, seq);
    CREATE TRIGGER entry_added AFTER INSERT ON entry BEGIN
        INSERT INTO usage VALUES (new.owner, new.bytes)
        ON CONFLICT DO UPDATE SET bytes = bytes + excluded.bytes;
    END;
    CREATE TRIGGER entry_changed AFTER UPDATE OF bytes ON entry BEGIN
        UPDATE usage SET bytes = bytes + new.bytes - old.bytes WHERE owner = new.owner;
    END;
    CREATE TRIGGER entry_removed AFTER DELETE ON entry BEGIN
        UPDATE usage SET bytes = bytes - old.bytes WHERE owner = old.owner;
    END;
";

/// Identity of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// Nothing yet.
    Empty,
    /// A store of this version.
    Current,
    /// A store of an older version.
    Older,
    /// A store of a newer version.
    Newer,
    /// The database of another program.
    Foreign,
    /// A store that is damaged, and how.
    Damaged(String),
}

/// Identifies a database without changing it. `is_checked`: its pages are checked for damage.
pub(super) fn inspect(connection: &Connection, is_checked: bool) -> rusqlite::Result<Content> {
    let number = |pragma: &str| connection.query_row(pragma, [], |row| row.get::<_, i32>(0));
    let (application, version) = (number("PRAGMA application_id")?, number("PRAGMA user_version")?);
    if application == 0 {
        let has = |table: &str| {
            let query = "SELECT 1 FROM sqlite_schema WHERE name = ?";
            connection.query_row(query, [table], |_| Ok(())).optional()
        };
        // Stores that had no application id yet.
        let is_older = version > 0 && has("entry")?.is_some() && has("entry_place")?.is_some();
        let tables = number("SELECT count(*) FROM sqlite_schema")?;
        return Ok(match (is_older, tables, version) {
            (true, ..) => Content::Older,
            (false, 0, 0) => Content::Empty,
            (false, ..) => Content::Foreign,
        });
    }
    if application != APPLICATION_ID {
        return Ok(Content::Foreign);
    }
    match version.cmp(&VERSION) {
        std::cmp::Ordering::Less => return Ok(Content::Older),
        std::cmp::Ordering::Greater => return Ok(Content::Newer),
        std::cmp::Ordering::Equal => {}
    }
    if !is_checked {
        return Ok(Content::Current);
    }
    let found: String =
        connection.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0))?;
    Ok(if found == "ok" { Content::Current } else { Content::Damaged(found) })
}

/// Whether an error says that the file itself is damaged.
pub(super) fn is_damage(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error_code();
    matches!(code, Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

/// Creates the tables where there are none.
pub(super) fn create(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction =
        connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    // Another process may have been faster.
    if inspect(&transaction, false)? == Content::Empty {
        transaction.execute_batch(SCHEMA)?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", VERSION)?;
    }
    transaction.commit()
}
