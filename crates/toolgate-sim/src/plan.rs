//! Answers as lists of steps, and the body that performs them.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future as _;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::time::Sleep;

/// An answer that is decided but not yet sent.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The HTTP status.
    pub status: u16,
    /// `Content-Type`
    pub content_type: &'static str,
    /// Delay before the status.
    pub delay: Duration,
    /// Whether the connection is closed instead of answered.
    pub refuses_connection: bool,
    /// The body.
    pub steps: Vec<Step>,
}

/// A step of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Sends bytes.
    Send(Bytes),
    /// Flushes the bytes sent so far.
    Flush,
    /// Waits.
    Wait(Duration),
    /// Waits until the client closes the connection.
    Stall,
    /// Resets the connection.
    Reset,
}

/// The connection was reset by a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("connection reset by a simulated fault")]
pub struct Reset;

pub(crate) const JSON: &str = "application/json; charset=UTF-8";
pub(crate) const SSE: &str = "text/event-stream";

impl Plan {
    /// Answer with a complete body.
    pub(crate) fn whole(status: u16, content_type: &'static str, body: impl Into<Bytes>) -> Self {
        Self {
            status,
            content_type,
            delay: Duration::ZERO,
            refuses_connection: false,
            steps: vec![Step::Send(body.into())],
        }
    }

    /// All bytes of the body, without delays and resets.
    pub fn bytes(&self) -> Vec<u8> {
        let sent = self.steps.iter().filter_map(|step| match step {
            Step::Send(bytes) => Some(&bytes[..]),
            Step::Flush | Step::Wait(_) | Step::Stall | Step::Reset => None,
        });
        sent.collect::<Vec<_>>().concat()
    }
}

/// Body of an answer. If it is dropped before its end, it counts as cancelled by the client.
pub struct SimBody {
    steps: VecDeque<Step>,
    waiting: Option<Pin<Box<Sleep>>>,
    flushed: bool,
    cancels: Arc<AtomicU64>,
    reset: Arc<AtomicBool>,
}

impl SimBody {
    pub(crate) fn new(steps: Vec<Step>, cancels: Arc<AtomicU64>) -> Self {
        let steps = steps.into();
        Self { steps, waiting: None, flushed: false, cancels, reset: Arc::default() }
    }

    /// Sets the flag that a reset raises, so that the socket is reset instead of closed.
    pub(crate) fn on_reset(&mut self, flag: Arc<AtomicBool>) {
        self.reset = flag;
    }

    fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Reset>>> {
        loop {
            if let Some(waiting) = &mut self.waiting {
                std::task::ready!(waiting.as_mut().poll(cx));
                self.waiting = None;
            }
            match self.steps.front() {
                None => return Poll::Ready(None),
                Some(Step::Send(_)) => {
                    let Some(Step::Send(bytes)) = self.steps.pop_front() else { continue };
                    if !bytes.is_empty() {
                        return Poll::Ready(Some(Ok(bytes)));
                    }
                }
                Some(Step::Flush) if self.flushed => {
                    self.flushed = false;
                    self.steps.pop_front();
                }
                Some(Step::Flush) => {
                    // hyper flushes its buffer when the body is pending.
                    self.flushed = true;
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Some(&Step::Wait(time)) => {
                    self.steps.pop_front();
                    self.waiting = Some(Box::pin(tokio::time::sleep(time)));
                }
                Some(Step::Stall) => {
                    // Never popped: the next poll waits again.
                    self.waiting = Some(Box::pin(tokio::time::sleep(Duration::from_secs(86_400))));
                }
                Some(Step::Reset) => {
                    self.steps.clear();
                    self.reset.store(true, Ordering::Relaxed);
                    return Poll::Ready(Some(Err(Reset)));
                }
            }
        }
    }
}

impl Drop for SimBody {
    fn drop(&mut self) {
        if !self.steps.is_empty() || self.waiting.is_some() {
            self.cancels.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl fmt::Debug for SimBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimBody").field("steps", &self.steps.len()).finish_non_exhaustive()
    }
}

impl Body for SimBody {
    type Data = Bytes;
    type Error = Reset;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Reset>>> {
        self.poll_bytes(cx).map(|next| next.map(|bytes| bytes.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.steps.is_empty() && self.waiting.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        let mut total = 0;
        for step in &self.steps {
            let Step::Send(bytes) = step else { return SizeHint::default() };
            total += u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        }
        // A single piece has a Content-Length; several are a stream.
        if self.steps.len() == 1 { SizeHint::with_exact(total) } else { SizeHint::default() }
    }
}

impl futures_core::Stream for SimBody {
    type Item = Result<Bytes, Reset>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_bytes(cx)
    }
}
