//! Pass-through of an answer, observed by the decoder.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::{Buf as _, Bytes, BytesMut};
use http_body::{Body as _, Frame};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use serde::de::IgnoredAny;
use tokio::time::Sleep;
use toolgate_core::canon::{CallLog, Event, Failure, FailureKind, Finish, LossCode, Sink};
use toolgate_core::gemini::encode_error;
use toolgate_core::upstream::generate_content::StreamDecoder;

use super::array::Elements;
use crate::admission::Admitted;
use crate::api::RequestContext;
use crate::auth::Pass;
use crate::signatures::SignatureRecorder;
use crate::turn::{Attempts, Audit, Current, Deadlines, Due, silent, too_long};

/// The form of an answer. The pieces of a stream are given on whole or not at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// One object.
    Whole,
    Events,
    /// A stream whose pieces are the elements of an array.
    Array,
}

/// The upstream's body.
pub(super) struct Passing {
    body: Option<Incoming>,
    decoder: StreamDecoder,
    heard: Heard,
    audit: Option<Audit>,
    recorder: SignatureRecorder,
    deadlines: Deadlines,
    /// Rings when something may be due.
    alarm: Pin<Box<Sleep>>,
    idle: Duration,
    total: Duration,
    form: Form,
    elements: Elements,
    request_id: String,
    current: Arc<Current>,
    pass: Pass,
    /// Bytes that are held back.
    kept: BytesMut,
    /// How much of it is known to hold no end of an event: one of megabytes comes in many pieces.
    searched: usize,
    /// How much of it is whole elements, and whether some were given on before.
    whole: usize,
    has_given: bool,
    /// What follows everything else, in a piece of its own: where Google's JavaScript SDK sees it.
    last_words: Bytes,
    _admitted: Option<Arc<Admitted>>,
}

#[derive(Default)]
struct Heard {
    calls: CallLog,
    /// The client gets it piece by piece: thoughts are on its screen before anything else is.
    shows_thoughts: bool,
    /// Something came that a client shows or runs.
    visible: bool,
    /// The same, beside thoughts.
    said: bool,
    end: Option<Result<Finish, Failure>>,
}

impl Sink for Heard {
    fn event(&mut self, event: &Event<'_>) {
        self.calls.event(event);
        match event {
            Event::Call(_) | Event::Text(_) | Event::Media(_) | Event::Server(_) => {
                (self.visible, self.said) = (true, true);
            }
            Event::Thought(_) => self.visible |= self.shows_thoughts,
            Event::Finish(finish) => self.end = Some(Ok(finish.clone())),
            Event::Fail(failure) => self.end = Some(Err(failure.clone())),
            Event::Start(_) | Event::Signature { .. } | Event::Grounding(_) => {}
        }
    }
}

impl Passing {
    /// Reads until there is something to show, or the end: until then the turn can be saved.
    pub(super) async fn open(
        body: Incoming,
        form: Form,
        context: &RequestContext,
        attempts: &Attempts,
        audit: Audit,
        recorder: SignatureRecorder,
    ) -> Self {
        let decoder = StreamDecoder::new(attempts.exchange().clone(), context.turn.seed.ids(0));
        let is_stream = form != Form::Whole;
        // An answer in one piece may take as long as a turn may.
        let total = attempts.total();
        let idle = if is_stream { attempts.idle().min(total) } else { total };
        let ping = context.turn.current.config.ping;
        let mut passing = Self {
            body: Some(body),
            decoder,
            heard: Heard { shows_thoughts: is_stream, ..Heard::default() },
            audit: Some(audit),
            recorder,
            deadlines: Deadlines::new(ping, idle, total, Instant::now()),
            alarm: Box::pin(tokio::time::sleep(ping.min(idle))),
            idle,
            total,
            form,
            elements: Elements::default(),
            request_id: context.turn.request_id.clone(),
            current: Arc::clone(&context.turn.current),
            pass: context.turn.client.pass.clone(),
            kept: BytesMut::new(),
            searched: 0,
            whole: 0,
            has_given: false,
            last_words: Bytes::new(),
            _admitted: context.admitted.clone(),
        };
        while let Some(body) = &mut passing.body
            && !passing.heard.visible
        {
            match tokio::time::timeout(passing.deadlines.left(Instant::now()), body.frame()).await {
                Ok(Some(Ok(frame))) => {
                    passing.deadlines.heard(Instant::now());
                    if let Ok(bytes) = frame.into_data() {
                        passing.decoder.feed(&bytes, &mut passing.heard);
                        passing.keep(&bytes);
                    }
                }
                Ok(Some(Err(_)) | None) => passing.stop(),
                Err(_) => passing.ran_out_of_time(),
            }
            // An error that is the first word is the last.
            if matches!(passing.heard.end, Some(Err(_))) {
                passing.stop();
            }
        }
        passing.deadlines.heard(Instant::now());
        passing.deadlines.shown(Instant::now());
        passing
    }

    /// Reason of an answer without content, where Gemini gave one.
    pub(super) fn refusal(&self) -> Option<&Failure> {
        match &self.heard.end {
            Some(Err(failure)) if self.body.is_none() && !self.heard.visible => {
                // An error about the model's own turn is an answer.
                let is_told = failure.upstream_status.is_some()
                    || matches!(
                        failure.kind,
                        FailureKind::Cut | FailureKind::Timeout | FailureKind::UpstreamProtocol
                    );
                Some(failure).filter(|_| is_told)
            }
            Some(_) | None => None,
        }
    }

    /// The idle or total timeout of the upstream has expired.
    fn ran_out_of_time(&mut self) {
        let is_over =
            self.form != Form::Whole && self.deadlines.due(Instant::now(), true) == Due::Over;
        let failure = if is_over { too_long(self.total) } else { silent(self.idle) };
        self.decoder.abort(failure, &mut self.heard);
        self.stop();
    }

    /// Takes the audit, for another attempt at the turn.
    pub(super) fn give_up(&mut self) -> Option<Audit> {
        self.audit.take()
    }

    /// Whether it ended without anything that a client could go on with.
    pub(super) fn is_no_good(&self) -> bool {
        let Some(Err(failure)) = &self.heard.end else { return false };
        let is_idle = matches!(failure.kind, FailureKind::EmptyTurn | FailureKind::MalformedCall);
        is_idle && self.body.is_none() && !self.heard.visible
    }

    /// Nothing more comes.
    fn stop(&mut self) {
        if self.body.take().is_some() {
            self.decoder.finish(&mut self.heard);
            match self.form {
                Form::Whole => {}
                Form::Events => {
                    self.mend_end();
                    if let Some(error) = self.terminal_error() {
                        self.append_error(error);
                    }
                }
                Form::Array => self.end_array(),
            }
        }
    }

    /// Ends an array where it was cut, and with an error in place of an end that looks like a success.
    fn end_array(&mut self) {
        let error = self.terminal_error();
        if error.is_none() && self.elements.has_ended() {
            return;
        }
        let finish = memchr::memmem::find(&self.kept, FINISH).filter(|_| error.is_some());
        let said = finish.unwrap_or(self.kept.len());
        let mut elements =
            if self.has_given { Elements::behind_one() } else { Elements::default() };
        let whole = elements.feed(&self.kept[..said]);
        self.kept.truncate(whole);
        elements.end(error.as_deref(), &mut self.kept);
    }

    /// Keeps bytes until they can be given on.
    fn keep(&mut self, bytes: &[u8]) {
        if self.form == Form::Array {
            let whole = self.elements.feed(bytes);
            if whole > 0 {
                self.whole = self.kept.len() + whole;
            }
        }
        self.kept.extend_from_slice(bytes);
    }

    /// Writes down how it ended.
    fn account(&mut self) {
        self.note();
        let Some(mut audit) = self.audit.take() else { return };
        match &mut self.heard.end {
            Some(Ok(finish)) => {
                // The tap does not know the client's tools, so no call counts as unknown.
                finish.losses.remove_code(LossCode::UnknownTool);
                audit.done(finish);
            }
            Some(Err(failure)) => audit.failed(&self.current.redacted(failure, &self.pass)),
            None => audit.answered(),
        }
    }

    /// An error that came in the middle may repeat a key.
    fn unkeyed(&self, bytes: Bytes) -> Bytes {
        if !matches!(self.heard.end, Some(Err(_))) {
            return bytes;
        }
        let text = std::str::from_utf8(&bytes).ok();
        match text.and_then(|text| self.current.without_keys(text, &self.pass)) {
            Some(clean) => Bytes::from(clean),
            None => bytes,
        }
    }

    /// Writes down the calls that are given on.
    fn note(&mut self) {
        if let Some(audit) = &mut self.audit {
            audit.deliver(&self.heard.calls);
            self.recorder.deliver(&self.heard.calls);
        }
    }

    /// Returns an error for a turn of nothing but thoughts, or one that was cut: both look like a success. gemini-cli
    /// asks again after an end without a finish, but not where it has just given results; opencode does
    /// not know of malformed calls. A turn with calls continues from them; a client that
    /// retried would run them twice.
    fn terminal_error(&self) -> Option<Vec<u8>> {
        let Some(Err(failure)) = &self.heard.end else { return None };
        let is_silent = match failure.kind {
            // One that showed nothing at all is Gemini's own word, which clients know.
            FailureKind::EmptyTurn => self.heard.visible,
            FailureKind::MalformedCall => self.heard.visible && !self.heard.said,
            FailureKind::Cut | FailureKind::Timeout => self.heard.calls.is_empty(),
            FailureKind::Authentication
            | FailureKind::Billing
            | FailureKind::ContextTooLong
            | FailureKind::Internal
            | FailureKind::InvalidRequest
            | FailureKind::NotFound
            | FailureKind::Overloaded
            | FailureKind::Permission
            | FailureKind::QuotaExhausted
            | FailureKind::RateLimited
            | FailureKind::TooLarge
            | FailureKind::Unreachable
            | FailureKind::Unsupported
            | FailureKind::UpstreamProtocol => false,
        };
        let failure = is_silent.then(|| self.current.redacted(failure, &self.pass))?;
        Some(encode_error(&failure, &self.request_id).body)
    }

    /// Ends events with an error, in place of an end that looks like a success.
    fn append_error(&mut self, error: Vec<u8>) {
        let said = finish_at(&self.kept).unwrap_or_else(|| events_end(&self.kept));
        self.kept.truncate(said);
        self.kept.extend_from_slice(b"data: ");
        self.kept.extend_from_slice(&error);
        self.kept.extend_from_slice(b"\r\n\r\n");
        self.last_words = Bytes::from(error);
    }

    /// Whether the end of a turn without a word is kept back until it is known for one.
    fn holds_back_finish(&self) -> bool {
        let may = self.form != Form::Whole && self.body.is_some() && !self.heard.said;
        may && memchr::memmem::find(&self.kept, FINISH).is_some()
    }

    /// White space between the elements of an array, or before the first. Events have none: Google's own
    /// clients refuse whatever is no data.
    fn sign_of_life(&self) -> Option<Bytes> {
        match self.form {
            Form::Array => Some(Bytes::from_static(b"\n")),
            Form::Events | Form::Whole => None,
        }
    }

    /// What of the kept bytes can be given on.
    fn whole_pieces(&mut self) -> Bytes {
        if self.form == Form::Array && self.body.is_some() {
            let whole = self.kept.split_to(std::mem::take(&mut self.whole)).freeze();
            self.has_given |= !whole.is_empty();
            return whole;
        }
        if self.form == Form::Events && self.body.is_some() {
            // An end may have begun before.
            let from = self.searched.saturating_sub(3);
            let whole = match events_end(&self.kept[from..]) {
                0 => 0,
                end => from + end,
            };
            let whole = self.kept.split_to(whole).freeze();
            self.searched = self.kept.len();
            return whole;
        }
        self.kept.split().freeze()
    }

    /// Puts the last event in order. One that was cut would keep clients from asking again: gemini-cli
    /// gives up on JSON that it cannot read. Google's errors in a stream are not events.
    fn mend_end(&mut self) {
        let whole = events_end(&self.kept);
        let rest = &self.kept[whole..];
        match rest.strip_prefix(b"data:") {
            Some(data) if serde_json::from_slice::<IgnoredAny>(data).is_ok() => {
                // Only its empty line is missing, or a part of it.
                let end = whole + rest.trim_ascii_end().len();
                self.kept.truncate(end);
                self.kept.extend_from_slice(b"\r\n\r\n");
            }
            Some(_) => self.kept.truncate(whole),
            None if b"data:".starts_with(rest) => self.kept.truncate(whole),
            None => {}
        }
    }
}

/// Where the last event ends that is there as a whole.
fn events_end(bytes: &[u8]) -> usize {
    let ends = |end: &[u8]| memchr::memmem::rfind(bytes, end).map(|at| at + end.len());
    ends(b"\n\n").max(ends(b"\r\n\r\n")).unwrap_or(0)
}

/// What stands in the piece of a stream that ends the turn.
const FINISH: &[u8] = b"\"finishReason\"";

/// Where the first event begins that ends the turn.
fn finish_at(bytes: &[u8]) -> Option<usize> {
    let at = memchr::memmem::find(bytes, FINISH)?;
    Some(events_end(&bytes[..at]))
}

impl http_body::Body for Passing {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        let bytes = ready!(self.poll_bytes(context));
        self.deadlines.shown(Instant::now());
        Poll::Ready(bytes.map(|bytes| Ok(Frame::data(bytes))))
    }
}

impl Passing {
    /// The next bytes for the client.
    fn poll_bytes(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let this = self;
        loop {
            if this.body.is_none() {
                // Before the client sees the end: it may come back at once.
                this.account();
            }
            if this.kept.has_remaining() && !this.holds_back_finish() {
                let bytes = this.whole_pieces();
                if !bytes.is_empty() {
                    return Poll::Ready(Some(bytes));
                }
            }
            let Some(body) = &mut this.body else {
                let last = std::mem::take(&mut this.last_words);
                return Poll::Ready((!last.is_empty()).then_some(last));
            };
            match Pin::new(body).poll_frame(context) {
                Poll::Ready(Some(Ok(frame))) => {
                    this.deadlines.heard(Instant::now());
                    if this.deadlines.due(Instant::now(), true) == Due::Over {
                        this.ran_out_of_time();
                        continue;
                    }
                    let Ok(bytes) = frame.into_data() else { continue };
                    this.decoder.feed(&bytes, &mut this.heard);
                    this.note();
                    let bytes = this.unkeyed(bytes);
                    // The usual case: whole events, which need no copy.
                    let is_whole =
                        [&b"\n\n"[..], b"\r\n\r\n"].iter().any(|end| bytes.ends_with(end));
                    let may_finish = !this.heard.said && finish_at(&bytes).is_some();
                    let is_next = match this.form {
                        Form::Whole => true,
                        Form::Events => is_whole && !may_finish,
                        Form::Array => false,
                    };
                    if this.kept.is_empty() && is_next {
                        return Poll::Ready(Some(bytes));
                    }
                    this.keep(&bytes);
                }
                // However it ended: Gemini's clients retry after an error that they are told, while
                // they give up on a broken connection.
                Poll::Ready(Some(Err(_)) | None) => this.stop(),
                Poll::Pending => {
                    ready!(this.alarm.as_mut().poll(context));
                    match this.deadlines.due(Instant::now(), true) {
                        Due::Over | Due::Idle => this.ran_out_of_time(),
                        Due::Nothing(time) => {
                            this.alarm.as_mut().reset((Instant::now() + time).into())
                        }
                        Due::Ping => {
                            this.deadlines.shown(Instant::now());
                            if let Some(sign) = this.sign_of_life() {
                                return Poll::Ready(Some(sign));
                            }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{events_end, finish_at};

    #[test]
    fn d6_events_are_given_on_whole() {
        for (bytes, want) in [
            ("", 0),
            ("data: {", 0),
            ("data: {}\n\n", 10),
            ("data: {}\r\n\r\ndata", 12),
            ("data: {}\n\ndata: {}\r\n\r\n{", 22),
            ("data: {}\n", 0),
        ] {
            assert_eq!(events_end(bytes.as_bytes()), want, "{bytes:?}");
        }
    }

    #[test]
    fn h2_the_end_is_found() {
        for (bytes, want) in [
            ("data: {}\n\n", None),
            ("data: {\"finishReason\":\"STOP\"}\n\n", Some(0)),
            ("data: {}\r\n\r\ndata: {\"finishReason\":\"STOP\"}\r\n\r\n", Some(12)),
        ] {
            assert_eq!(finish_at(bytes.as_bytes()), want, "{bytes:?}");
        }
    }
}
