//! What a connection's socket and its requests tell each other.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;

use crate::app::App;

/// One connection.
#[derive(Debug)]
pub(crate) struct Line {
    opened: Instant,
    /// From when on the time counts that an answer may take, in milliseconds after `opened`.
    began: AtomicU64,
    /// Requests that are read or answered.
    busy: AtomicUsize,
    /// Something came that is not a request's whole head yet.
    is_half: AtomicBool,
}

/// In place of a beginning: what is sent has no end.
const ENDLESS: u64 = u64::MAX;

impl Line {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            opened: Instant::now(),
            began: AtomicU64::new(0),
            busy: AtomicUsize::new(0),
            is_half: AtomicBool::new(false),
        })
    }

    /// A request's head is there.
    pub(crate) fn asked(self: &Arc<Self>) -> Busy {
        self.is_half.store(false, Ordering::Relaxed);
        self.begin();
        self.busy()
    }

    /// The time that an answer may take counts from now.
    pub(crate) fn begin(&self) {
        let now = u64::try_from(self.opened.elapsed().as_millis()).unwrap_or(0);
        self.began.store(now, Ordering::Relaxed);
    }

    /// It is no longer about requests and answers.
    pub(crate) fn upgrade(&self) {
        self.began.store(ENDLESS, Ordering::Relaxed);
    }

    /// A request is read or answered for as long as this is kept.
    pub(crate) fn busy(self: &Arc<Self>) -> Busy {
        self.busy.fetch_add(1, Ordering::Relaxed);
        Busy(Arc::clone(self))
    }

    /// Whether all that is going on is a head that is not whole yet.
    pub(crate) fn is_half(&self) -> bool {
        self.is_half.load(Ordering::Relaxed)
    }

    fn heard(&self) {
        if self.busy.load(Ordering::Relaxed) == 0 {
            self.is_half.store(true, Ordering::Relaxed);
        }
    }
}

/// A request on a connection.
#[derive(Debug)]
pub(crate) struct Busy(Arc<Line>);

impl Busy {
    /// The request is whole.
    pub(crate) fn begin(&self) {
        self.0.begin();
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.busy.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A connection's socket. Whoever does not take an answer within the time that a turn may have is cut
/// off, and the turn with it: nobody asks a turn how long it takes while its client does not read.
#[derive(Debug)]
pub(crate) struct Socket {
    stream: TcpStream,
    line: Arc<Line>,
    app: Arc<App>,
    /// Which beginning it counts from, and when it is over. There is none as long as clients read.
    alarm: Option<(u64, Pin<Box<Sleep>>)>,
}

/// What the client may take to read the last of it.
const LAST: Duration = Duration::from_secs(2);

impl Socket {
    pub(crate) fn new(stream: TcpStream, line: Arc<Line>, app: Arc<App>) -> Self {
        Self { stream, line, app, alarm: None }
    }

    fn wrote(
        &mut self,
        context: &mut Context<'_>,
        wrote: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        let began = self.line.began.load(Ordering::Relaxed);
        if wrote.is_ready() {
            if began == ENDLESS {
                self.alarm = None;
            }
            return wrote;
        }
        let alarm = match &mut self.alarm {
            Some((from, alarm)) if *from == began => alarm,
            Some(_) | None => {
                let total = self.app.config().upstream.total;
                let from = match began {
                    ENDLESS => Instant::now(),
                    began => self.line.opened + Duration::from_millis(began) + LAST,
                };
                let alarm = Box::pin(tokio::time::sleep_until((from + total).into()));
                &mut self.alarm.insert((began, alarm)).1
            }
        };
        ready!(alarm.as_mut().poll(context));
        let why = "the client does not take its answer";
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, why)))
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, into);
        if into.filled().len() > before {
            self.line.heard();
        }
        read
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let wrote = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.wrote(context, wrote)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let wrote = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.wrote(context, wrote)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
