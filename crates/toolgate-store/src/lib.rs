//! State that outlives a request: signatures, answers, conversations.
//!
//! ```text
//!   owner · kind · id ────────► value            put · get · delete
//!                     └───────► list of items    append · list · erase · delete
//!   owner · session · content ► calls            put_call · find_calls
//! ```
//!
//! A [`Store`] is memory, a SQLite file, a Valkey or Redis server, or nothing. All hold this contract;
//! `tests/contract.rs` checks it and `tests/faults.rs` checks what happens when a disk, a lock or a
//! server fails.
//!
//! # Ownership
//!
//! Every entry belongs to an [`Owner`]. An operation sees entries of its own owner only. Stores write
//! owners as a hash that is keyed with a secret of the store.
//!
//! # Writes
//!
//! [`put`](Store::put), [`put_call`](Store::put_call), [`append`](Store::append),
//! [`erase`](Store::erase) and [`delete`](Store::delete) queue a write and return at once.
//!
//! * **Ordering.** Writes of one process are committed in the order in which they were made. Items that
//!   are appended together stay together. Items have a unique stamp, so that an append that is retried
//!   adds nothing twice.
//! * **Visibility.** A read sees all writes that the same process made before it to the same entry: it
//!   waits for them. Other processes see a write once it is committed.
//! * **Durability.** [`flush`](Store::flush) returns `true` when all writes before it are committed.
//!   Committed writes survive the end of the process in any form, `kill -9` included. They survive the
//!   end of the machine as far as the operating system or the server had written them to disk: SQLite
//!   runs with `synchronous=NORMAL`, which syncs at checkpoints.
//! * **Failure.** A commit that fails is retried, with increasing delays, until it succeeds. A flush
//!   waits at most 5 seconds, and not at all in the rest of an outage; then it returns `false`, counts
//!   [`Metrics::unconfirmed`] and the turn goes on. Unconfirmed writes are lost if the process ends.
//! * **Bounds.** Up to 64 MiB of writes are queued, or as much as the store may hold if that is less.
//!   Writes beyond that are dropped, counted in [`Metrics::lost`] and logged.
//!
//! # Reads
//!
//! [`get`](Store::get), [`list`](Store::list) and [`find_calls`](Store::find_calls) run on blocking
//! threads (SQLite) or on the server, never on the thread of the caller. While
//! [`is_degraded`](Store::is_degraded) is true, a miss is inconclusive: the entry may exist where it
//! cannot be read now.
//!
//! # Expiry and eviction
//!
//! An entry expires at the end of the time that its last write gave it. Where the store holds more
//! than its limit, the owner that uses most loses its oldest entries first, so that one client key
//! cannot evict the state of another that uses less. The newest entry of a store is never evicted.
//! A server has its own limit and policy.
//!
//! # Deletes
//!
//! When a delete is confirmed, the text is gone from the SQLite file and from its write-ahead log. If
//! another process reads the log at that moment, it is gone with the next commit.

mod cache;
mod key;
mod memory;
mod queue;
mod sqlite;
mod store;
mod valkey;

use std::time::{SystemTime, UNIX_EPOCH};

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;

pub use key::{Kind, Owner, Stamp};
pub use store::{Call, Content, FoundCall, Item, Location, OpenError, Options, Store};

/// Metrics of a store.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    /// 1 while the server cannot be reached.
    pub away: Gauge,
    /// Bytes of writes that are not committed.
    pub queued_bytes: Gauge,
    /// Writes that were dropped.
    pub lost: Counter,
    /// Flushes that ended without a confirmation.
    pub unconfirmed: Counter,
}

/// Returns the time in milliseconds since 1970.
fn now_millis() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
}
