//! What runs beside the requests: WebSockets, turns in the background.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

/// Time that an incomplete request has left when the gateway is stopping.
pub(crate) const DRAIN_GRACE: Duration = Duration::from_secs(1);

/// Tasks that a drain waits for.
#[derive(Clone, Debug)]
pub(crate) struct Tasks(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    running: watch::Sender<usize>,
    leaving: watch::Sender<bool>,
}

impl Default for Tasks {
    fn default() -> Self {
        let (running, leaving) = (watch::Sender::new(0), watch::Sender::new(false));
        Self(Arc::new(Inner { running, leaving }))
    }
}

impl Tasks {
    /// Runs a task.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let running = Running::new(self.clone());
        tokio::spawn(async move {
            task.await;
            drop(running);
        });
    }

    /// Resolves when tasks that could go on for ever should end.
    pub(crate) fn leave(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut leaving = self.0.leaving.subscribe();
        // The sender lives as long as the gateway.
        async move { drop(leaving.wait_for(|leave| *leave).await) }
    }

    /// Asks all tasks to end, and waits until they have.
    pub(crate) async fn drain(&self) {
        self.0.leaving.send_replace(true);
        drop(self.0.running.subscribe().wait_for(|running| *running == 0).await);
    }
}

/// Counts a task for as long as it runs, however it ends.
struct Running(Tasks);

impl Running {
    fn new(tasks: Tasks) -> Self {
        tasks.0.running.send_modify(|running| *running += 1);
        Self(tasks)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.0.running.send_modify(|running| *running -= 1);
    }
}
