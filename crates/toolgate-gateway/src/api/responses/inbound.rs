//! Receiving side of a WebSocket: bounds the time and the memory that an incomplete message takes.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};
use toolgate_core::canon::Failure;
use toolgate_store::Owner;

use crate::admission::BodyRoom;
use crate::receive::{Pace, late};
use crate::turn::Services;

/// Message that is being received. The socket fills it, the connection takes it.
#[derive(Clone, Debug)]
pub(super) struct Inbound(Arc<Mutex<Receiving>>);

#[derive(Debug)]
struct Receiving {
    services: Arc<Services>,
    owner: Owner,
    idle: Duration,
    /// Bytes received since the last complete message.
    received: usize,
    room: Option<BodyRoom>,
    pace: Option<Pace>,
    /// Since when the connection does not read.
    paused: Option<Instant>,
    failure: Option<Failure>,
}

impl Inbound {
    pub(super) fn new(services: Arc<Services>, owner: Owner, idle: Duration) -> Self {
        let (received, room, pace, paused, failure) = (0, None, None, None, None);
        Self(Arc::new(Mutex::new(Receiving {
            services,
            owner,
            idle,
            received,
            room,
            pace,
            paused,
            failure,
        })))
    }

    /// The memory of the message that is now complete.
    pub(super) fn complete(&self) -> Option<BodyRoom> {
        let mut state = self.state();
        (state.received, state.pace) = (0, None);
        state.room.take()
    }

    /// Reason why the connection is to be closed, where there is one.
    pub(super) fn failure(&self) -> Option<Failure> {
        self.state().failure.take()
    }

    /// Notes whether the connection reads: the deadline does not run while it does not.
    pub(super) fn set_reading(&self, reads: bool) {
        let mut state = self.state();
        if !reads {
            state.paused.get_or_insert_with(Instant::now);
        } else if let Some(since) = state.paused.take()
            && let Some(pace) = &mut state.pace
        {
            pace.skip(since.elapsed());
        }
    }

    fn state(&self) -> MutexGuard<'_, Receiving> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Receiving {
    fn receive(&mut self, count: usize) -> Result<(), Failure> {
        let idle = self.idle;
        self.received = self.received.saturating_add(count);
        self.pace.get_or_insert_with(|| Pace::new(idle)).advance(count);
        match &mut self.room {
            Some(room) => room.grow(self.received, usize::MAX).map(drop),
            none @ None => {
                *none = Some(self.services.admission.try_body(self.owner, self.received)?);
                Ok(())
            }
        }
    }
}

/// Socket that counts the bytes that it reads in an [`Inbound`].
#[derive(Debug)]
pub(super) struct Counted<S> {
    io: S,
    inbound: Inbound,
    alarm: Option<Pin<Box<Sleep>>>,
}

impl<S> Counted<S> {
    pub(super) fn new(io: S, inbound: Inbound) -> Self {
        Self { io, inbound, alarm: None }
    }

    /// The socket itself, for reading data that is discarded.
    pub(super) fn uncounted(&mut self) -> &mut S {
        &mut self.io
    }

    fn fail(&mut self, failure: Failure) -> Poll<io::Result<()>> {
        let error = io::Error::other(failure.message.clone());
        self.inbound.state().failure = Some(failure);
        Poll::Ready(Err(error))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Counted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let before = into.filled().len();
        if let Poll::Ready(read) = Pin::new(&mut this.io).poll_read(context, into) {
            let count = into.filled().len() - before;
            let received = this.inbound.state().receive(count);
            return match received {
                Ok(()) => Poll::Ready(read),
                Err(failure) => this.fail(failure),
            };
        }
        let (deadline, idle) = {
            let state = this.inbound.state();
            (state.pace.map(|pace| pace.deadline()), state.idle)
        };
        let Some(deadline) = deadline else {
            this.alarm = None;
            return Poll::Pending;
        };
        let alarm = this.alarm.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline)));
        if alarm.deadline() != deadline {
            alarm.as_mut().reset(deadline);
        }
        match alarm.as_mut().poll(context) {
            Poll::Ready(()) => this.fail(late(idle)),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Counted<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }
}
