//! Store in one SQLite file.
//!
//! ```text
//!   put, append, delete ─► queue ─► writer thread ─► file (WAL)
//!   get, list, find_calls ◄─ read-only connections ◄──┘
//! ```
//!
//! The writer thread owns the only connection that writes. It commits the queue in batches: `BEGIN
//! IMMEDIATE`, all writes, eviction, `COMMIT`, then it acknowledges the flushes. SQLite's write-ahead
//! log is the only log. Reads use a few read-only connections on blocking threads.

mod database;
mod evict;
mod files;
mod read;
mod schema;
mod store;
#[cfg(test)]
mod tests;
mod wal;
mod writer;

pub(crate) use store::Sqlite;
