//! Executor: permits, timeouts, cancellation, bounds.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::{OwnedSemaphorePermit, mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::entry::{Entry, Slot};
use crate::limit;
use crate::{Control, Failure, Output, Progress, Request};

/// Calls of one source that may wait for a permit.
const MAX_WAITING: usize = 1024;

/// Time in which a source has to end a call that was cancelled.
const CANCEL_GRACE: Duration = Duration::from_secs(5);

/// One call on its way to a source.
pub(crate) struct Job {
    pub(crate) entry: Arc<Entry>,
    pub(crate) slot: Arc<Slot>,
    pub(crate) request: Request,
    pub(crate) cancel: CancellationToken,
    pub(crate) progress: Option<mpsc::Sender<Progress>>,
}

/// Runs a call: exactly one result, at the deadline of the request at the latest.
pub(crate) async fn run(job: Job) -> Result<Output, Failure> {
    let Job { entry, slot, request, cancel, progress } = job;
    let limits = slot.tool.limits;
    let deadline = request.deadline;
    let began = Instant::now();
    let late = Failure::Timeout { limit: deadline - began };
    let permits = tokio::select! {
        biased;
        () = cancel.cancelled() => return Err(Failure::Cancelled),
        permits = permits(&entry, &slot) => permits?,
        () = tokio::time::sleep_until(deadline) => return Err(late),
    };
    let control =
        Control { cancel: CancellationToken::new(), pulse: watch::Sender::new(0), progress };
    // Held here, so that the channel stays open if the source drops its control.
    let pulse = control.pulse.clone();
    let mut pulses = pulse.subscribe();
    let stop = control.cancel.clone();
    let mut call = Arc::clone(&entry.source).call(request, control);
    let mut idle_end = Instant::now() + limits.idle_timeout;
    let failure = loop {
        tokio::select! {
            biased;
            result = &mut call => {
                let mut output = result?;
                limit::apply(&mut output, &limits);
                return Ok(output);
            }
            () = cancel.cancelled() => break Failure::Cancelled,
            Ok(()) = pulses.changed() => idle_end = Instant::now() + limits.idle_timeout,
            () = tokio::time::sleep_until(idle_end.min(deadline)) => {
                let limit = limits.idle_timeout;
                break if idle_end < deadline { Failure::Timeout { limit } } else { late };
            }
        }
    };
    abandon(call, &stop, permits);
    Err(failure)
}

/// Lets a source cancel a call in the background. The permits are held until it has.
fn abandon(
    call: BoxFuture<'static, Result<Output, Failure>>,
    stop: &CancellationToken,
    permits: Permits,
) {
    stop.cancel();
    tokio::spawn(async move {
        let _ = tokio::time::timeout(CANCEL_GRACE, call).await;
        drop(permits);
    });
}

type Permits = (OwnedSemaphorePermit, OwnedSemaphorePermit);

async fn permits(entry: &Entry, slot: &Slot) -> Result<Permits, Failure> {
    let _waiting = Waiting::enter(&entry.waiting)?;
    let closed = |_| Failure::Cancelled;
    // The tool first: a call that waits for its turn must not hold a place of the source.
    let tool = Arc::clone(&slot.permits).acquire_owned().await.map_err(closed)?;
    let source = Arc::clone(&entry.permits).acquire_owned().await.map_err(closed)?;
    Ok((tool, source))
}

/// A place in the queue of a source.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn enter(count: &'a AtomicUsize) -> Result<Self, Failure> {
        let place = Self(count);
        if count.fetch_add(1, Ordering::Relaxed) >= MAX_WAITING {
            return Err(Failure::Busy);
        }
        Ok(place)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
