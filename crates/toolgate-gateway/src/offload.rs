//! Long computations run on threads of their own, so that no connection waits for another's.
//!
//! ```text
//!   serving thread        run(owner, work) ──► polls work ──► small: done here
//!                                                  │
//!                                          heavy(bytes) in work
//!                                                  ▼
//!   translation threads                   queue, by owner ──► polls the rest ──► back to the caller
//! ```
//!
//! Work is a future. It begins on the serving thread and moves to a translation thread at the first
//! [`heavy`] that announces more than [`INLINE_BYTES`]: often the size of a computation is known only
//! after the store was read. Owners take turns, and the work of one owner runs in the order in which it
//! came. Dropping the future of [`Offload::run`] cancels the work: before it starts, or at its next await.

use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use toolgate_core::canon::{Failure, FailureKind};
use toolgate_store::Owner;

/// Computations over at most this many bytes run on the serving thread: 256 KiB.
///
/// Translating a conversation of this size takes 0.2 ms in a release build, and 2 ms where it consists
/// of messages of one character.
pub(crate) const INLINE_BYTES: usize = 256 << 10;

/// Idle time after which a translation thread gives its memory back.
const CALM_DELAY: Duration = Duration::from_secs(1);

type Job = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Translation threads and the work that waits for them.
#[derive(Debug)]
pub(crate) struct Offload(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
}

/// Jobs by owner. Owners are served in turn.
#[derive(Default)]
struct Queue {
    jobs: HashMap<Owner, VecDeque<Job>>,
    /// Owners that have jobs, the next one first.
    owners: VecDeque<Owner>,
    /// Called by each thread when it has been idle for [`CALM_DELAY`]: gives its memory back.
    calm: Option<fn()>,
    is_closed: bool,
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queue").field("owners", &self.owners.len()).finish_non_exhaustive()
    }
}

thread_local! {
    static POLL: Cell<Place> = const { Cell::new(Place::Elsewhere) };
}

/// Where the current poll happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Outside of [`Offload::run`].
    Elsewhere,
    /// In [`Offload::run`], on a serving thread.
    Serving,
    /// The same, and the work has asked to be moved.
    Leaving,
    /// On a translation thread.
    Translating,
}

/// Announces that what follows computes over `bytes` bytes. Within [`Offload::run`] it goes on, where
/// that is a lot, on a translation thread; outside of it this does nothing.
pub(crate) async fn heavy(bytes: usize) {
    if bytes <= INLINE_BYTES {
        return;
    }
    poll_fn(|_| match POLL.get() {
        Place::Elsewhere | Place::Translating => Poll::Ready(()),
        Place::Serving | Place::Leaving => {
            POLL.set(Place::Leaving);
            Poll::Pending
        }
    })
    .await;
}

/// Between two stages of a long computation: it ends here if its client has left.
pub(crate) async fn checkpoint() {
    if POLL.get() == Place::Translating {
        tokio::task::yield_now().await;
    }
}

impl Offload {
    /// Starts `threads` translation threads.
    pub(crate) fn start(threads: usize) -> io::Result<Self> {
        let this = Self(Arc::default());
        for number in 0..threads.max(1) {
            let runtime = Builder::new_current_thread().enable_all().build()?;
            let shared = Arc::clone(&this.0);
            let name = format!("translate-{number}");
            std::thread::Builder::new().name(name).spawn(move || shared.serve(&runtime))?;
        }
        Ok(this)
    }

    /// Runs `work`, on a translation thread from its first [`heavy`] computation on.
    pub(crate) fn run<T, F>(
        &self,
        owner: Owner,
        work: F,
    ) -> impl Future<Output = Result<T, Failure>> + Send + use<'_, T, F>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        // Boxed before anything else: the futures of requests stay small.
        let mut work: Pin<Box<dyn Future<Output = T> + Send>> = Box::pin(work);
        async move {
            if let Some(done) = poll_fn(|context| poll_here(work.as_mut(), context)).await {
                return Ok(done);
            }
            let (mut done, result) = oneshot::channel();
            let job = async move {
                let value = tokio::select! {
                    biased;
                    () = done.closed() => return,
                    value = work => value,
                };
                // A client that has left in this moment needs no result.
                drop(done.send(value));
            };
            self.0.push(owner, Box::pin(job));
            result.await.map_err(|_| {
                let message =
                    "the computation ended without a result, which is a defect of the gateway";
                Failure::new(FailureKind::Internal, message)
            })
        }
    }

    /// Has each translation thread call `calm` a second after its last job.
    pub(crate) fn calm_with(&self, calm: fn()) {
        self.0.lock().calm = Some(calm);
    }
}

/// The threads end after the jobs that they run.
impl Drop for Offload {
    fn drop(&mut self) {
        self.0.lock().is_closed = true;
        self.0.changed.notify_all();
    }
}

/// Polls work on the thread that it began on; `None`: it wants to be moved.
fn poll_here<T>(
    work: Pin<&mut (dyn Future<Output = T> + Send)>,
    context: &mut Context<'_>,
) -> Poll<Option<T>> {
    let before = POLL.get();
    let here = if before == Place::Translating { before } else { Place::Serving };
    POLL.set(here);
    let polled = work.poll(context);
    let wants_to_move = POLL.replace(before) == Place::Leaving;
    match polled {
        Poll::Ready(done) => Poll::Ready(Some(done)),
        Poll::Pending if wants_to_move => Poll::Ready(None),
        Poll::Pending => Poll::Pending,
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, owner: Owner, job: Job) {
        let mut queue = self.lock();
        let jobs = queue.jobs.entry(owner).or_default();
        let is_first = jobs.is_empty();
        jobs.push_back(job);
        if is_first {
            queue.owners.push_back(owner);
        }
        drop(queue);
        self.changed.notify_one();
    }

    /// A translation thread.
    fn serve(&self, runtime: &Runtime) {
        POLL.set(Place::Translating);
        let mut has_worked = false;
        let mut queue = self.lock();
        while !queue.is_closed {
            if let Some(job) = queue.next() {
                drop(queue);
                // A task of its own: a panic ends the job, not the thread.
                runtime.block_on(async { drop(tokio::spawn(job).await) });
                has_worked = true;
                queue = self.lock();
            } else if has_worked {
                let waited = self.changed.wait_timeout(queue, CALM_DELAY);
                let (idle, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
                has_worked = !timeout.timed_out();
                let calm = idle.calm.filter(|_| !has_worked);
                drop(idle);
                if let Some(calm) = calm {
                    calm();
                }
                queue = self.lock();
            } else {
                queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }
}

impl Queue {
    fn next(&mut self) -> Option<Job> {
        let owner = self.owners.pop_front()?;
        let jobs = self.jobs.get_mut(&owner)?;
        let job = jobs.pop_front();
        if jobs.is_empty() {
            self.jobs.remove(&owner);
        } else {
            self.owners.push_back(owner);
        }
        job
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    const LARGE: usize = INLINE_BYTES + 1;

    fn owner(name: &str) -> Owner {
        Owner::of(name)
    }

    async fn thread_after(bytes: usize) -> Option<String> {
        heavy(bytes).await;
        checkpoint().await;
        thread::current().name().map(str::to_owned)
    }

    /// Polls a future that is not done once, and drops it where it is given away.
    async fn poll_once(mut future: impl Future + Unpin) {
        poll_fn(|context| {
            assert!(Pin::new(&mut future).poll(context).is_pending());
            Poll::Ready(())
        })
        .await;
    }

    #[tokio::test]
    async fn only_large_work_moves_to_a_translation_thread() {
        let here = thread::current().name().map(str::to_owned);
        let pool = Offload::start(1).unwrap();
        let run = |bytes| pool.run(owner("a"), thread_after(bytes));
        assert_eq!(run(INLINE_BYTES).await.unwrap(), here);
        assert_eq!(run(LARGE).await.unwrap().as_deref(), Some("translate-0"));
        assert_eq!(thread_after(LARGE).await, here, "outside of run, nothing moves");
    }

    #[tokio::test]
    async fn the_serving_thread_goes_on_while_work_blocks() {
        let pool = Offload::start(1).unwrap();
        let (finish, blocked) = mpsc::channel::<()>();
        let work = pool.run(owner("a"), async move {
            heavy(LARGE).await;
            blocked.recv().unwrap();
        });
        // `join!` polls the second future on this thread while the work blocks its own.
        let (done, ()) = tokio::join!(work, async { finish.send(()).unwrap() });
        done.unwrap();
    }

    /// Starts a job that holds the only thread until the sender is used.
    fn hold(pool: &Offload) -> mpsc::Sender<()> {
        let (finish, held) = mpsc::channel::<()>();
        let (began, begun) = mpsc::channel::<()>();
        let job = async move {
            began.send(()).unwrap();
            held.recv().unwrap();
        };
        pool.0.push(owner("holder"), Box::pin(job));
        begun.recv().unwrap();
        finish
    }

    #[tokio::test]
    async fn owners_take_turns() {
        let pool = Offload::start(1).unwrap();
        let finish = hold(&pool);
        let (order, ran) = mpsc::channel();
        for (name, number) in [("a", 1), ("a", 2), ("a", 3), ("b", 4), ("c", 5), ("b", 6)] {
            let order = order.clone();
            pool.0.push(owner(name), Box::pin(async move { order.send(number).unwrap() }));
        }
        finish.send(()).unwrap();
        let ran: Vec<i32> = ran.iter().take(6).collect();
        assert_eq!(ran, [1, 4, 5, 2, 6, 3]);
    }

    #[tokio::test]
    async fn work_whose_client_has_left_does_not_start() {
        let pool = Offload::start(1).unwrap();
        let finish = hold(&pool);
        let (started, starts) = mpsc::channel();
        let left = Box::pin(pool.run(owner("a"), async move {
            heavy(LARGE).await;
            started.send(()).unwrap();
        }));
        // Polled once, so that it is queued, and dropped.
        poll_once(left).await;
        finish.send(()).unwrap();
        pool.run(owner("a"), thread_after(LARGE)).await.unwrap();
        assert!(starts.recv().is_err(), "the job was dropped unstarted");
    }

    #[tokio::test]
    async fn work_whose_client_leaves_ends_at_the_next_checkpoint() {
        let pool = Offload::start(1).unwrap();
        let (began, begun) = mpsc::channel();
        let (finish, held) = mpsc::channel::<()>();
        let (second, stages) = mpsc::channel::<()>();
        let mut work = Box::pin(pool.run(owner("a"), async move {
            heavy(LARGE).await;
            began.send(()).unwrap();
            held.recv().unwrap();
            checkpoint().await;
            second.send(()).unwrap();
        }));
        poll_once(work.as_mut()).await;
        begun.recv().unwrap();
        drop(work);
        finish.send(()).unwrap();
        assert!(stages.recv().is_err(), "the second stage was not reached");
    }

    #[tokio::test]
    async fn a_panic_is_a_failure_of_that_request_only() {
        let pool = Offload::start(1).unwrap();
        let broken = pool.run(owner("a"), async {
            heavy(LARGE).await;
            assert_eq!(1, 2, "a defect");
        });
        assert_eq!(broken.await.unwrap_err().kind, FailureKind::Internal);
        pool.run(owner("a"), thread_after(LARGE)).await.unwrap();
    }
}
