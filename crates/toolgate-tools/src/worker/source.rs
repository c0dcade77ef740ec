//! A pool of workers as a source of tools.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::watch::Receiver;

use super::pool::Pool;
use crate::process::ChildCommand;
use crate::{Control, Failure, Listed, Output, ProcessGuard, Request, Source};

/// Whether calls of one session go to the same process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Affinity {
    /// The least busy process runs the call.
    None,
    /// The process of the session, if it has a free place.
    #[default]
    Hint,
    /// The process of the session; the call waits for it.
    Strict,
}

/// Options of a worker pool.
#[derive(Clone, Debug)]
pub struct WorkerOptions {
    /// Command of one process. It speaks MCP over its standard streams.
    pub command: ChildCommand,
    /// Number of processes.
    pub processes: usize,
    /// Calls that one process runs at the same time.
    pub concurrency: usize,
    /// Whether calls of one session go to the same process.
    pub affinity: Affinity,
    /// Calls after which a process is replaced.
    pub recycle_calls: Option<u64>,
    /// Age at which a process is replaced.
    pub recycle_age: Option<Duration>,
    /// Resident memory at which a process is replaced, in bytes.
    pub recycle_memory: Option<u64>,
    /// Files and folders whose changes reload the code.
    pub watch: Vec<PathBuf>,
    /// Interval at which they are looked at.
    pub watch_interval: Duration,
    /// Time for a process to start and list its tools.
    pub start_timeout: Duration,
    /// Interval of health probes.
    pub probe_interval: Duration,
    /// Time in which a process has to answer a probe; then it is killed.
    pub stuck_timeout: Duration,
    /// Time for calls in progress when a process is replaced.
    pub drain_timeout: Duration,
    /// Time after which the process of an unused session is forgotten.
    pub session_ttl: Duration,
}

impl WorkerOptions {
    /// Options with defaults for one process.
    pub fn new(command: ChildCommand) -> Self {
        Self {
            command,
            processes: 1,
            concurrency: 8,
            affinity: Affinity::Hint,
            recycle_calls: None,
            recycle_age: None,
            recycle_memory: None,
            watch: Vec::new(),
            watch_interval: Duration::from_secs(1),
            start_timeout: Duration::from_secs(30),
            probe_interval: Duration::from_secs(5),
            stuck_timeout: Duration::from_secs(30),
            drain_timeout: Duration::from_secs(600),
            session_ttl: Duration::from_secs(3600),
        }
    }
}

/// A pool of worker processes.
///
/// Processes start with the first use. A process takes calls once it has listed its tools. When it
/// ends, its calls fail and it is started again: after a pause that doubles, and with a long pause
/// after five ends in a minute.
pub struct WorkerPool {
    pool: Arc<Pool>,
}

impl std::fmt::Debug for WorkerPool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WorkerPool").finish_non_exhaustive()
    }
}

impl WorkerPool {
    /// A pool that has not started yet. `label` names it in logs.
    pub fn new(label: &str, options: WorkerOptions, guard: &ProcessGuard) -> Self {
        Self { pool: Arc::new(Pool::new(label, options, guard)) }
    }

    /// Ids of the processes that are ready.
    pub fn process_ids(&self) -> Vec<u32> {
        self.pool.process_ids()
    }
}

impl Drop for WorkerPool {
    fn drop(&mut self) {
        self.pool.stop();
    }
}

impl Source for WorkerPool {
    fn list(self: Arc<Self>) -> BoxFuture<'static, Result<Vec<Listed>, Failure>> {
        Box::pin(async move { self.pool.list().await })
    }

    fn call(
        self: Arc<Self>,
        request: Request,
        control: Control,
    ) -> BoxFuture<'static, Result<Output, Failure>> {
        Box::pin(async move { self.pool.call(request, control).await })
    }

    fn changes(&self) -> Option<Receiver<u64>> {
        Some(self.pool.changes())
    }

    fn is_trusted(&self) -> bool {
        true
    }

    fn close(self: Arc<Self>) -> BoxFuture<'static, ()> {
        Box::pin(async move { self.pool.close().await })
    }
}
