//! `background: true`: the answer is generated whether or not the client waits for it.
//!
//! Gateways that share a store announce the responses in progress there, and check whether they were cancelled
//! or deleted.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use futures_util::stream;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Frame;
use toolgate_core::canon::{Encoder as _, Event, Failure, FailureKind, Start};
use toolgate_core::responses::{StreamEncoder, encode_broken_off, with_status};
use toolgate_core::translate::Echo;

use super::create::OpenedTurn;
use super::endpoints::{DIALECT, json, wrong};
use crate::api::RequestContext;
use crate::api::answer::StreamRecording;
use crate::api::reply::{self, Body, Reply};
use crate::sessions::progress::{
    BackgroundResponse, HEARTBEAT, IN_PROGRESS, POLL_INTERVAL, QUEUED, is_unfinished, status,
};
use crate::sessions::{self, EncodedAnswer, EventLog, Record, Recorder, SessionError, Sessions};
use crate::turn::{self, Answered, Input, Prepared, TurnStream};

/// Status of a response that was cancelled.
const CANCELLED: &str = "cancelled";
/// Separates the events of a stream.
const FRAME_END: &[u8] = b"\n\n";

/// Starts a response.
pub(super) async fn begin(
    context: RequestContext,
    opened: OpenedTurn,
    prepared: Result<Box<Prepared>, Failure>,
) -> Result<Reply, SessionError> {
    let OpenedTurn { input, echo, recorder, .. } = opened;
    let Echo::Responses(echo) = echo else { return Err(wrong("background: not supported here")) };
    if !echo.is_stored() {
        return Err(wrong("background: needs store, which is false"));
    }
    let sealer = context.turn.services.sealer.clone();
    let mut encoder = StreamEncoder::new(echo.clone(), context.turn.stamp(), sealer);
    let id = encoder.response_id().to_owned();
    let queued = restated(&encoder.response(), QUEUED, None);
    let sessions = context.sessions();
    let response = sessions.begin(&id);
    let mut opening = Vec::new();
    encoder.event(&Event::Start(Start::default()), &mut opening);
    let opening = Bytes::from(opening);
    // A client that disconnects before the model answers knows the id to come back for.
    response.push(split_frames(&opening).take(1));
    sessions.announce(&id, QUEUED);
    let streams = echo.stream;
    let (first, shown) = (recorder.clone(), queued.clone());
    let record = |_| async move { first.record(&Echo::Responses(echo), &shown, false).await };
    context.compute(input.source.size(), record).await?;
    let shown = Arc::clone(&response);
    let is_open = AtomicBool::new(false);
    let task =
        Task { context: context.clone(), sessions, response, recorder, id, opening, is_open };
    context.gateway.tasks.spawn(task.run(input, prepared, encoder));
    Ok(if streams {
        reply::stream("text/event-stream", events_body(shown, 0))
    } else {
        json(queued.json)
    })
}

/// Body of a reply that streams the events of a response in progress, from number `start` on.
pub(super) fn events_body(response: Arc<BackgroundResponse>, start: usize) -> Body {
    let frames = stream::unfold((response, start), |(response, start)| async move {
        let (bytes, next) = response.events_from(start).await?;
        Some((Ok(Frame::data(bytes)), (response, next)))
    });
    StreamBody::new(frames).boxed_unsync()
}

/// A response in progress.
struct Task {
    context: RequestContext,
    sessions: Sessions,
    response: Arc<BackgroundResponse>,
    recorder: Recorder,
    id: String,
    /// Events before the answer. The first of them is delivered when the response starts.
    opening: Bytes,
    is_open: AtomicBool,
}

impl Task {
    async fn run(
        self,
        input: Input,
        prepared: Result<Box<Prepared>, Failure>,
        mut encoder: StreamEncoder,
    ) {
        let mut stopped = pin!(self.until_stopped());
        let turn = async {
            let mut audit = self.context.turn.audit(DIALECT);
            match prepared {
                Ok(prepared) => turn::run(&self.context.turn, &input, Some(*prepared), audit).await,
                Err(failure) => {
                    audit.failed(&failure);
                    Err(failure)
                }
            }
        };
        let outcome = tokio::select! {
            outcome = turn => Some(outcome),
            () = &mut stopped => None,
        };
        match outcome {
            Some(Ok(outcome)) => {
                // The input asks for a stream.
                if let Answered::Stream(stream) = outcome.answer {
                    let recorder = self.recorder.clone();
                    let (echo, stamp, size) = (outcome.echo, outcome.stamp, outcome.size);
                    let recording = StreamRecording::new(recorder, echo, stamp, size);
                    self.forward(stream, &recording, stopped).await;
                }
            }
            Some(Err(failure)) => {
                let events = self.failed_events(&mut encoder, failure);
                self.store(&encoder.object().into()).await;
                self.push(&events);
            }
            None => {
                let events = self.failed_events(&mut encoder, cancelled());
                self.store(&restated(&encoder.response(), CANCELLED, None)).await;
                self.push(&events);
            }
        }
        drop(input);
        if self.record().await.is_some() {
            let mut events = EventLog::default();
            for event in self.response.events() {
                events.push(&event, encoder.settings(), &[]);
            }
            self.recorder.record_events(&self.id, &events, encoder.settings());
            self.sessions.store().flush().await;
        }
        self.sessions.end(&self.id);
    }

    /// Waits until the response is cancelled or deleted; announces meanwhile that it is in progress.
    async fn until_stopped(&self) {
        let store = self.sessions.store();
        if !store.is_shared() {
            return self.response.cancelled().await;
        }
        loop {
            if tokio::time::timeout(HEARTBEAT, self.response.cancelled()).await.is_ok() {
                return;
            }
            let record = self.record().await;
            let is_wanted =
                record.is_some_and(|it| status(&it.answer).as_deref() != Some(CANCELLED));
            if !is_wanted && !store.is_degraded() {
                return;
            }
            self.sessions.announce(&self.id, self.response.status());
        }
    }

    /// Forwards the events of the turn, and stores its answer.
    async fn forward(
        &self,
        mut stream: Box<TurnStream>,
        recording: &StreamRecording,
        mut stopped: Pin<&mut impl Future<Output = ()>>,
    ) {
        let mut is_cancelled = false;
        loop {
            let bytes = tokio::select! {
                bytes = stream.next() => bytes,
                () = &mut stopped, if !is_cancelled => {
                    is_cancelled = true;
                    stream.abort(cancelled());
                    continue;
                }
            };
            let Some(bytes) = bytes else { return };
            let is_opening = self.response.status() == QUEUED;
            if is_opening && stream.translator().seen().visible {
                self.response.set_answering();
                self.sessions.announce(&self.id, IN_PROGRESS);
            }
            if stream.has_ended()
                && let Some(answer) = recording.answer(&stream, &self.context)
            {
                // An answer that was complete before it was cancelled stays complete.
                if is_cancelled && answer.status == "failed" {
                    self.store(&restated(&answer.json, CANCELLED, None)).await;
                } else if self.record().await.is_some() {
                    recording.recorder.record(&recording.echo, &answer, true).await;
                }
            }
            self.push(&bytes);
        }
    }

    /// Stores the response object, unless it was deleted.
    async fn store(&self, answer: &EncodedAnswer) {
        if let Some(record) = self.record().await {
            record.put_answer(&self.sessions, &self.id, answer);
        }
    }

    /// The stored response, unless it was deleted.
    async fn record(&self) -> Option<Record> {
        Record::get(&self.sessions, &self.id).await
    }

    /// Events of a failure. The client has its reply already.
    fn failed_events(&self, encoder: &mut StreamEncoder, failure: Failure) -> Bytes {
        let mut out = self.opening.to_vec();
        encoder.event(&Event::Fail(failure), &mut out);
        Bytes::from(out)
    }

    /// Delivers events. The first of the turn was delivered when the response started.
    fn push(&self, bytes: &Bytes) {
        let known = usize::from(!self.is_open.swap(true, Ordering::Relaxed));
        self.response.push(split_frames(bytes).skip(known));
    }
}

/// Splits whole events.
fn split_frames(bytes: &Bytes) -> impl Iterator<Item = Bytes> {
    let ends = memchr::memmem::find_iter(bytes, FRAME_END).map(|at| at + FRAME_END.len());
    let mut start = 0;
    ends.map(move |end| {
        let frame = bytes.slice(start..end);
        start = end;
        frame
    })
}

/// The events from number `start` on.
pub(super) fn frames_from(events: &Bytes, start: usize) -> Bytes {
    let Some(last) = start.checked_sub(1) else { return events.clone() };
    let end = memchr::memmem::find_iter(events, FRAME_END).nth(last);
    events.slice(end.map_or(events.len(), |end| end + FRAME_END.len())..)
}

/// The failure that a watched response ends with when it is cancelled: OpenAI's streams have no event for it.
fn cancelled() -> Failure {
    Failure::new(FailureKind::Cut, "the response was cancelled")
}

fn interrupted() -> Failure {
    Failure::new(FailureKind::Internal, "the gateway was stopped before the end")
}

/// A stored response as it is now: one that no gateway works on any more has failed.
pub(super) async fn settled(context: &RequestContext, id: &str, object: Bytes) -> Bytes {
    if !is_unfinished(&object) {
        return object;
    }
    let sessions = context.sessions();
    if let Some(status) = sessions.progress(id).await {
        return Bytes::from(restated(&object, status, None).json);
    }
    // It may have ended in the meantime.
    let record = Record::get(&sessions, id).await;
    let object = record.map_or(object, |record| record.answer);
    if !is_unfinished(&object) {
        return object;
    }
    let failure = interrupted();
    tracing::warn!(request = %context.turn.request_id, response = id, "{failure}");
    Bytes::from(restated(&object, "failed", Some(&failure)).json)
}

/// Cancels a response that another gateway works on.
pub(super) async fn cancel_elsewhere(context: &RequestContext, id: &str, object: Bytes) -> Bytes {
    let sessions = context.sessions();
    if !is_unfinished(&object) || sessions.progress_elsewhere(id).await.is_none() {
        return object;
    }
    let cancelled = restated(&object, CANCELLED, None);
    if let Some(record) = Record::get(&sessions, id).await {
        record.put_answer(&sessions, id, &cancelled);
    }
    sessions.store().flush().await;
    Bytes::from(cancelled.json)
}

/// The events from number `start` on of a response whose gateway was stopped, and its events with it.
pub(super) async fn interrupted_events(
    context: &RequestContext,
    id: &str,
    start: usize,
) -> Option<Vec<u8>> {
    let object = Record::get(&context.sessions(), id).await?.answer;
    let failure = match status(&object)?.as_str() {
        QUEUED | IN_PROGRESS => interrupted(),
        CANCELLED => cancelled(),
        _ => return None,
    };
    let object = std::str::from_utf8(&object).ok()?;
    Some(encode_broken_off(object, &failure, u64::try_from(start).unwrap_or(u64::MAX)))
}

/// The events of a response, when it is complete, in whichever gateway.
pub(super) async fn complete_events(context: &RequestContext, id: &str) -> Option<Bytes> {
    let sessions = context.sessions();
    loop {
        // In this order: an end between the two reads is not missed.
        let is_elsewhere = sessions.progress_elsewhere(id).await.is_some();
        let events = sessions::events(&sessions, id).await;
        if events.is_some() || !is_elsewhere || sessions.store().is_degraded() {
            return events;
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

fn restated(object: &[u8], status: &str, failure: Option<&Failure>) -> EncodedAnswer {
    with_status(&String::from_utf8_lossy(object), status, failure).into()
}
