//! Worker processes: a pool of identical MCP servers that run code of the operator.

mod pool;
mod slot;
mod source;
mod watch;

pub use source::{Affinity, WorkerOptions, WorkerPool};
