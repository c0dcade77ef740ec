//! Writer thread of the SQLite store: commits queued writes in batches.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::database::Database;
use super::files;
use crate::Metrics;
use crate::queue::{Backoff, Batch, CONFIRM_TIMEOUT, Queue};

/// How long a turn waits for others to share its transaction.
const GROUP_DELAY: Duration = Duration::from_millis(1);
/// Longest delay between attempts to commit.
const MAX_BACKOFF: Duration = Duration::from_secs(2);

/// State of the writer thread.
pub(super) struct Writer {
    queue: Arc<Queue>,
    database: Database,
    path: PathBuf,
    /// Which file is at the path, as long as it is the open one.
    identity: Option<(u64, u64)>,
    metrics: Metrics,
}

impl Writer {
    pub(super) fn new(
        queue: Arc<Queue>,
        database: Database,
        path: PathBuf,
        metrics: Metrics,
    ) -> Self {
        let identity = files::identity(&path);
        Self { queue, database, path, identity, metrics }
    }

    /// Commits until the queue is closed.
    pub(super) async fn run(mut self) {
        while self.queue.is_due().await {
            // This thread has nothing else to do, and its runtime rounds times up to whole milliseconds.
            std::thread::sleep(GROUP_DELAY);
            let batch = self.queue.take();
            if batch.writes.is_empty() {
                // A flush that waited for the batch before.
                self.queue.committed(batch, 0);
            } else {
                self.commit(batch).await;
            }
        }
        self.queue.abandon();
    }

    /// Commits a batch, however long that takes. A closed queue is given a few more seconds.
    async fn commit(&mut self, mut batch: Batch) {
        let mut backoff = Backoff::new(MAX_BACKOFF);
        let mut closed_since: Option<Instant> = None;
        loop {
            match self.database.commit(&batch.writes) {
                Ok(rejected) => {
                    self.check_identity(batch.writes.len());
                    return self.queue.committed(batch, rejected);
                }
                Err(error) => self.queue.failed(&mut batch, &error),
            }
            if self.queue.is_closed() {
                let since = *closed_since.get_or_insert_with(Instant::now);
                if since.elapsed() > CONFIRM_TIMEOUT {
                    return self.queue.abandon();
                }
            }
            tokio::time::sleep(backoff.next()).await;
        }
    }

    /// Counts writes as lost that went to a file which was deleted or replaced under this process.
    fn check_identity(&mut self, writes: usize) {
        if files::identity(&self.path) == self.identity && self.identity.is_some() {
            return;
        }
        self.metrics.lost.inc_by(writes as u64);
        if self.identity.take().is_some() {
            tracing::error!(
                path = %self.path.display(),
                "state file deleted or replaced; its state is lost when this process exits"
            );
        }
    }
}

/// Marks the queue as closed when the writer ends, also by a panic.
pub(super) struct CloseOnDrop(pub(super) Arc<Queue>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.close();
        self.0.abandon();
    }
}
