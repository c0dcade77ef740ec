//! Store in a Valkey or Redis server that several gateways share.
//!
//! ```text
//!   put, append, delete ─► queue ─► writer task ─► server ─► get, list, find_calls
//!                      └─► local copy ───────────────────────┘ while the server is away
//! ```
//!
//! While the server is away, reads are answered from the copy of what this process has written or read,
//! writes stay queued, and flushes do not wait. A server that comes back empty gets what it has lost
//! from the copies of all gateways.

mod command;
mod reconnect;
mod store;
mod writer;

pub(crate) use store::Valkey;
