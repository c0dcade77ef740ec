//! Threads that serve connections, each with a runtime of its own.
//!
//! Everything of a turn happens on one thread: the client's connection, the translation, and the
//! connection to Gemini, which comes from that thread's own pool. No event of a stream has to wake
//! another thread, which would cost more than translating the event.

use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::sync::{mpsc, oneshot};

/// Maximum time that the end waits for the threads.
const JOIN_TIMEOUT: Duration = Duration::from_secs(1);

/// Work for a serving thread: created where the connection was accepted, run where it is served.
type Work = Box<dyn FnOnce() -> Pin<Box<dyn Future<Output = ()> + Send>> + Send>;

/// All serving threads.
#[derive(Debug)]
pub(crate) struct ServingThreads(Vec<ServingThread>);

#[derive(Debug)]
struct ServingThread {
    work: mpsc::UnboundedSender<Work>,
    /// As many more owners as connections are open.
    open: Arc<()>,
    thread: JoinHandle<()>,
}

thread_local! {
    static HERE: Cell<usize> = const { Cell::new(0) };
}

/// Index of this serving thread. Any other thread counts as the first.
pub(crate) fn here() -> usize {
    HERE.get()
}

impl ServingThreads {
    /// Starts `count` threads.
    pub(crate) fn start(count: usize) -> io::Result<Self> {
        (0..count.max(1)).map(ServingThread::start).collect::<io::Result<_>>().map(Self)
    }

    /// Gives work to the thread that has the least.
    pub(crate) fn give<W, F>(&self, work: W)
    where
        W: FnOnce() -> F + Send + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let Some(thread) = self.0.iter().min_by_key(|thread| Arc::strong_count(&thread.open))
        else {
            return;
        };
        let open = Arc::clone(&thread.open);
        let work: Work = Box::new(move || {
            let serving = work();
            Box::pin(async move {
                serving.await;
                drop(open);
            })
        });
        if thread.work.send(work).is_err() {
            tracing::error!("a thread that serves connections is gone");
        }
    }

    /// Has every thread do something, between what else it does.
    pub(crate) fn each(&self, act: fn()) {
        for thread in &self.0 {
            let work: Work = Box::new(move || {
                act();
                Box::pin(std::future::ready(()))
            });
            // A thread that is gone has nothing to do.
            drop(thread.work.send(work));
        }
    }

    /// Ends what still runs, and waits for the threads, but not for one that computes.
    pub(crate) async fn end(self) {
        let threads: Vec<_> = self.0.into_iter().map(|thread| thread.thread).collect();
        let (joined, all_joined) = oneshot::channel();
        let join = move || {
            for thread in threads {
                if thread.join().is_err() {
                    tracing::error!("a thread that served connections has panicked");
                }
            }
            // The end may not have waited.
            let _ = joined.send(());
        };
        if std::thread::Builder::new().spawn(join).is_ok()
            && tokio::time::timeout(JOIN_TIMEOUT, all_joined).await.is_err()
        {
            tracing::warn!("a serving thread is still busy; not waiting for it");
        }
    }
}

impl ServingThread {
    fn start(number: usize) -> io::Result<Self> {
        let (work, mut given) = mpsc::unbounded_channel::<Work>();
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let serve = move || {
            HERE.set(number);
            runtime.block_on(async move {
                while let Some(work) = given.recv().await {
                    tokio::spawn(work());
                }
            });
        };
        let thread = std::thread::Builder::new().name(format!("serve-{number}")).spawn(serve)?;
        Ok(Self { work, open: Arc::new(()), thread })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_end_does_not_wait_for_a_thread_that_computes() {
        let threads = ServingThreads::start(2).unwrap();
        let (_hold, held) = std::sync::mpsc::channel::<()>();
        threads.give(move || async move {
            let _ = held.recv();
        });
        // Without a bound this never returns.
        threads.end().await;
    }
}
