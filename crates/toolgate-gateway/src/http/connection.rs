//! Per-connection state shared by the socket and its requests: write deadline, requests in progress.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use http::Version;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;

use crate::state::Gateway;

/// State of one connection.
#[derive(Debug)]
pub(crate) struct Connection {
    opened: Instant,
    /// From when on the time counts that an answer may take, in milliseconds after `opened`.
    began: AtomicU64,
    /// Requests that are read or answered.
    busy: AtomicUsize,
    /// Something came that is not a request's whole head yet.
    is_half: AtomicBool,
    /// How far the body of the current request has been received; a [`BodyState`].
    body: AtomicU8,
    /// Data that is read before the connection is closed; a [`Linger`].
    linger: AtomicU8,
    /// Progress of the request that is answered.
    stage: AtomicU8,
    /// Whether its client may get interim responses.
    takes_interim: AtomicBool,
}

/// How far a request's body has been received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum BodyState {
    /// To its end, or there is none.
    Received,
    /// Not to its end.
    Unread,
    /// Not to its end when its deadline passed.
    Late,
}

/// Amount that is read, and discarded, of a client that is still sending when its connection is closed. A
/// socket that is closed with unread data is reset, and the client may never see the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Linger {
    /// Nothing: the client is not sending.
    No,
    /// Little: the client has not proved that it may use the gateway.
    Stranger,
    /// As much as comes in the time.
    Client,
}

impl Linger {
    /// Maximum number of bytes that are read, and the time for them.
    fn limits(self) -> (usize, Duration) {
        match self {
            Self::No => (0, Duration::ZERO),
            Self::Stranger => (64 << 10, Duration::from_secs(1)),
            Self::Client => (usize::MAX, Duration::from_secs(5)),
        }
    }
}

/// A request is being read.
const READING: u8 = 0;
/// A request is whole, and nothing of its answer is written.
const WHOLE: u8 = 1;
/// Some of the answer is written.
const ANSWERING: u8 = 2;

/// An interim response, which clients skip.
const INTERIM: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
/// How often a connection that its client has closed for writing is looked at.
const PROBE_INTERVAL: Duration = Duration::from_millis(50);

/// Start time of a connection without a deadline.
const ENDLESS: u64 = u64::MAX;

impl Connection {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            opened: Instant::now(),
            began: AtomicU64::new(0),
            busy: AtomicUsize::new(0),
            is_half: AtomicBool::new(false),
            body: AtomicU8::new(BodyState::Received as u8),
            linger: AtomicU8::new(Linger::No as u8),
            stage: AtomicU8::new(READING),
            takes_interim: AtomicBool::new(false),
        })
    }

    /// A request's head is there.
    pub(crate) fn asked(self: &Arc<Self>, version: Version) -> Busy {
        self.is_half.store(false, Ordering::Relaxed);
        self.stage.store(READING, Ordering::Relaxed);
        self.takes_interim.store(version == Version::HTTP_11, Ordering::Relaxed);
        self.begin();
        self.busy()
    }

    /// The time that an answer may take counts from now.
    pub(crate) fn begin(&self) {
        let now = u64::try_from(self.opened.elapsed().as_millis()).unwrap_or(0);
        self.began.store(now, Ordering::Relaxed);
    }

    /// The request is complete: the time for its answer counts from now.
    pub(crate) fn received(&self) {
        self.begin();
        self.stage.store(WHOLE, Ordering::Relaxed);
    }

    /// The connection becomes a WebSocket.
    pub(crate) fn upgrade(&self) {
        self.began.store(ENDLESS, Ordering::Relaxed);
    }

    /// Notes how far the current request's body has been received.
    pub(crate) fn set_body(&self, state: BodyState) {
        self.body.store(state as u8, Ordering::Relaxed);
    }

    /// How far the current request's body has been received.
    pub(crate) fn body(&self) -> BodyState {
        match self.body.load(Ordering::Relaxed) {
            state if state == BodyState::Received as u8 => BodyState::Received,
            state if state == BodyState::Late as u8 => BodyState::Late,
            _ => BodyState::Unread,
        }
    }

    /// The connection is closed after this answer, though the client may still be sending.
    pub(crate) fn linger(&self, linger: Linger) {
        self.linger.store(linger as u8, Ordering::Relaxed);
    }

    fn lingers(&self) -> Linger {
        match self.linger.load(Ordering::Relaxed) {
            linger if linger == Linger::Stranger as u8 => Linger::Stranger,
            linger if linger == Linger::Client as u8 => Linger::Client,
            _ => Linger::No,
        }
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

    /// Whether there is a request of whose answer nothing is written.
    fn may_await_answer(&self) -> bool {
        self.busy.load(Ordering::Relaxed) > 0
            && self.takes_interim.load(Ordering::Relaxed)
            && self.stage.load(Ordering::Relaxed) != ANSWERING
    }

    fn heard(&self) {
        if self.busy.load(Ordering::Relaxed) == 0 {
            self.is_half.store(true, Ordering::Relaxed);
        }
    }
}

/// A request on a connection.
#[derive(Debug)]
pub(crate) struct Busy(Arc<Connection>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.busy.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Socket of a connection. A client that does not read its answer within the time of a turn is disconnected, and
/// its turn ends: while a client does not read, its turn is not polled, and cannot time out itself.
#[derive(Debug)]
pub(crate) struct Socket {
    stream: TcpStream,
    connection: Arc<Connection>,
    gateway: Arc<Gateway>,
    /// Which beginning it counts from, and when it is over. There is none as long as clients read.
    alarm: Option<(u64, Pin<Box<Sleep>>)>,
    /// Set once the sending side is closed.
    closing: Option<Closing>,
    /// Rings while the client has closed its side before the answer to its last request.
    /// Also returns whether the interim response is sent.
    probe: Option<(Pin<Box<Sleep>>, bool)>,
}

/// A socket of which only the receiving side is open.
#[derive(Debug)]
struct Closing {
    /// Bytes that may still be read.
    left: usize,
    until: Pin<Box<Sleep>>,
}

/// Bytes that are thrown away at a time.
const DISCARDED: usize = 16 << 10;

/// Time that the client has to read the end of an answer.
const LAST_READ_TIME: Duration = Duration::from_secs(2);

impl Socket {
    pub(crate) fn new(
        stream: TcpStream,
        connection: Arc<Connection>,
        gateway: Arc<Gateway>,
    ) -> Self {
        Self { stream, connection, gateway, alarm: None, closing: None, probe: None }
    }

    /// The client has closed its side, and may still want an answer: some close it when they have sent
    /// their request. A client that is gone resets the connection when something is sent to it. So it is
    /// sent an interim response, which clients skip; after a reset the turn ends, as for every client that
    /// leaves. Resolves when the end of the input is to be believed.
    fn poll_half_closed(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let wait = || Box::pin(tokio::time::sleep(PROBE_INTERVAL));
            let (probe, is_sent) = self.probe.get_or_insert_with(|| (wait(), false));
            ready!(probe.as_mut().poll(context));
            if self.connection.busy.load(Ordering::Relaxed) == 0 {
                return Poll::Ready(Ok(()));
            }
            match self.connection.stage.load(Ordering::Relaxed) {
                READING => return Poll::Ready(Ok(())),
                WHOLE if !*is_sent => {
                    *is_sent = true;
                    // A full socket needs no probe.
                    let _ = self.stream.try_write(INTERIM);
                }
                _ => {}
            }
            if let Some(error) = self.stream.take_error()? {
                return Poll::Ready(Err(error));
            }
            *probe = wait();
        }
    }

    fn wrote(
        &mut self,
        context: &mut Context<'_>,
        wrote: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        let began = self.connection.began.load(Ordering::Relaxed);
        if wrote.is_ready() {
            if began == ENDLESS {
                self.alarm = None;
            }
            return wrote;
        }
        let alarm = match &mut self.alarm {
            Some((from, alarm)) if *from == began => alarm,
            Some(_) | None => {
                let total = self.gateway.config().upstream.total;
                let from = match began {
                    ENDLESS => Instant::now(),
                    began => self.connection.opened + Duration::from_millis(began) + LAST_READ_TIME,
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
        if self.probe.is_some() {
            return self.poll_half_closed(context);
        }
        let read = Pin::new(&mut self.stream).poll_read(context, into);
        let is_end = matches!(read, Poll::Ready(Ok(()))) && into.filled().len() == before;
        if is_end && into.remaining() > 0 && self.connection.may_await_answer() {
            return self.poll_half_closed(context);
        }
        if into.filled().len() > before {
            self.connection.heard();
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
        if bytes != INTERIM {
            self.connection.stage.store(ANSWERING, Ordering::Relaxed);
        }
        let wrote = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.wrote(context, wrote)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.connection.stage.store(ANSWERING, Ordering::Relaxed);
        let wrote = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.wrote(context, wrote)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    /// Closes the sending side, and waits for a client that is still sending as [`Linger`] says.
    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let closing = match &mut this.closing {
            Some(closing) => closing,
            none @ None => {
                ready!(Pin::new(&mut this.stream).poll_shutdown(context))?;
                let (left, time) = this.connection.lingers().limits();
                if left == 0 {
                    return Poll::Ready(Ok(()));
                }
                none.insert(Closing { left, until: Box::pin(tokio::time::sleep(time)) })
            }
        };
        let mut discarded = [0; DISCARDED];
        // Once the limit is reached the client is left to read its answer.
        while closing.left > 0 && !closing.until.is_elapsed() {
            let most = closing.left.min(DISCARDED);
            let mut into = ReadBuf::new(&mut discarded[..most]);
            match Pin::new(&mut this.stream).poll_read(context, &mut into) {
                Poll::Ready(Ok(())) if into.filled().is_empty() => return Poll::Ready(Ok(())),
                Poll::Ready(Ok(())) => closing.left -= into.filled().len(),
                // The client is gone.
                Poll::Ready(Err(_)) => return Poll::Ready(Ok(())),
                Poll::Pending => break,
            }
        }
        closing.until.as_mut().poll(context).map(Ok)
    }
}
