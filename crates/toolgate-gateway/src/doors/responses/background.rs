//! `background: true`: the answer is made whether or not the client waits for it.
//!
//! Where gateways share a store, whoever makes an answer says so there as long as it does, and looks
//! whether the answer is still wanted: the others can tell, cancel and delete it.

use std::pin::{Pin, pin};
use std::sync::Arc;

use bytes::Bytes;
use toolgate_core::canon::{DecodeOptions, Encoder as _, Event, Failure, FailureKind, Start};
use toolgate_core::json::Raw;
use toolgate_core::responses::{
    Framing, StreamEncoder, decode_request, encode_broken_off, with_status,
};
use toolgate_core::translate::Echo;

use super::door::{DIALECT, json, wrong};
use super::live::{
    BEAT, IN_PROGRESS, LOOK, Live, QUEUED, elsewhere, is_unfinished, progress, say_alive, shown,
    status,
};
use crate::doors::Visit;
use crate::doors::turns::{self, Answered, Keeping};
use crate::reply::{self, Reply};
use crate::session::{self, Keeper, Opened, Record, Refused, Shown, Whole};
use crate::store::Kind;
use crate::turn::{Ask, Pump};

/// Whether a body asks for an answer in the background.
pub(super) fn is_asked_for(body: &[u8]) -> bool {
    if memchr::memmem::find(body, b"\"background\"").is_none() {
        return false;
    }
    session::fields_of(body).get("background").map(Raw::get) == Some("true")
}

/// Begins an answer.
pub(super) async fn begin(visit: Visit, opened: Opened) -> Result<Reply, Refused> {
    let (size, body) = (opened.body.len(), opened.body.clone());
    let decode = |visit: Visit| async move {
        let text = session::text(&body)?;
        let decoded = decode_request(text, &DecodeOptions { sealer: &visit.app.sealer })?;
        Ok::<_, Failure>((decoded.request.stream, decoded.echo))
    };
    let (streams, echo) = visit.compute(size, decode).await??;
    if !echo.is_stored() {
        return Err(wrong("background: needs store, which is false"));
    }
    let mut encoder = StreamEncoder::new(echo.clone(), visit.stamp(), visit.app.sealer.clone());
    let id = encoder.response_id().to_owned();
    let queued = restated(&encoder.response(), QUEUED, None);
    let live = visit.app.live.begin(visit.client.owner, &id);
    let mut opening = Vec::new();
    encoder.event(&Event::Start(Start::default()), &mut opening);
    let opening = Bytes::from(opening);
    // Who leaves before the model answers knows what to come back for.
    live.tell(&first_of(&opening));
    say_alive(&visit, &id, QUEUED);
    let (first, shown_first) = (opened.keeper.clone(), queued.clone());
    let keep = |_| async move { first.keep(&Echo::Responses(echo), &shown_first, false).await };
    visit.compute(size, keep).await?;
    let (keeper, live_here) = (opened.keeper, Arc::clone(&live));
    let task = Task { visit: visit.clone(), live: live_here, keeper, id, opening };
    let mut ask = Ask::new(DIALECT, opened.body, &visit.client);
    (ask.before, ask.stream) = (Arc::new(opened.before), Some(Framing::Sse));
    visit.app.tasks.spawn(task.run(ask, encoder));
    Ok(if streams { reply::stream("text/event-stream", shown(live, 0)) } else { json(queued.json) })
}

/// An answer in the making.
struct Task {
    visit: Visit,
    live: Arc<Live>,
    keeper: Keeper,
    id: String,
    /// The events before the first word.
    opening: Bytes,
}

impl Task {
    async fn run(self, ask: Ask, mut encoder: StreamEncoder) {
        let mut unwanted = pin!(self.until_unwanted());
        let begun = tokio::select! {
            begun = turns::run(&self.visit, &ask) => Some(begun),
            () = &mut unwanted => None,
        };
        // The question is not asked again.
        drop(ask);
        match begun {
            Some(Ok(outcome)) => {
                // A stream was asked for.
                if let Answered::Stream(pump) = outcome.result {
                    let keeper = self.keeper.clone();
                    let keeping = Keeping::new(keeper, outcome.echo, outcome.stamp, outcome.size);
                    self.pump(pump, &keeping, unwanted).await;
                }
            }
            Some(Err(failure)) => {
                let events = self.ended(&mut encoder, failure);
                self.keep(&encoder.object().into()).await;
                self.tell(&events);
            }
            None => {
                let events = self.ended(&mut encoder, cancelled());
                self.keep(&restated(&encoder.response(), CANCELLED, None)).await;
                self.tell(&events);
            }
        }
        let (app, owner) = (&self.visit.app, self.visit.client.owner);
        if self.record().await.is_some() {
            let mut shown = Shown::default();
            for event in self.live.events().iter() {
                shown.push(event, encoder.settings(), &[]);
            }
            self.keeper.keep_events(&self.id, &shown, encoder.settings());
            app.store.flush().await;
        }
        app.live.end(owner, &self.id);
        app.store.delete(owner, Kind::Live, &self.id);
    }

    /// Waits until somebody cancels or deletes the answer; tells others meanwhile that it is made.
    async fn until_unwanted(&self) {
        let mut cancelled = self.live.cancelled.subscribe();
        let store = &self.visit.app.store;
        if !store.is_shared() {
            // The sender lives as long as the answer does.
            return drop(cancelled.wait_for(|cancelled| *cancelled).await);
        }
        loop {
            let heard = cancelled.wait_for(|cancelled| *cancelled);
            if tokio::time::timeout(BEAT, heard).await.is_ok() {
                return;
            }
            let record = self.record().await;
            let is_wanted =
                record.is_some_and(|it| status(&it.answer).as_deref() != Some(CANCELLED));
            if !is_wanted && !store.is_degraded() {
                return;
            }
            say_alive(&self.visit, &self.id, self.live.status());
        }
    }

    /// Keeps and tells an answer as it comes.
    async fn pump(
        &self,
        mut pump: Box<Pump>,
        keeping: &Keeping,
        mut unwanted: Pin<&mut impl Future<Output = ()>>,
    ) {
        let mut is_cancelled = false;
        loop {
            let bytes = tokio::select! {
                bytes = pump.next() => bytes,
                () = &mut unwanted, if !is_cancelled => {
                    is_cancelled = true;
                    pump.abort(cancelled());
                    continue;
                }
            };
            let Some(bytes) = bytes else { return };
            if pump.has_ended()
                && let Some(whole) = keeping.whole(&pump, &self.visit)
            {
                // What had ended well before that is what it is.
                if is_cancelled && status(&whole.json).as_deref() == Some("failed") {
                    self.keep(&restated(&whole.json, CANCELLED, None)).await;
                } else if self.record().await.is_some() {
                    keeping.keeper.keep(&keeping.echo, &whole, true).await;
                }
            }
            self.tell(&bytes);
        }
    }

    /// Keeps the object, unless it was deleted.
    async fn keep(&self, answer: &Whole) {
        if let Some(record) = self.record().await {
            record.put_answer(&self.visit.app, self.visit.client.owner, &self.id, answer);
        }
    }

    /// What is kept of it, unless it was deleted.
    async fn record(&self) -> Option<Record> {
        Record::get(&self.visit.app, self.visit.client.owner, &self.id).await
    }

    /// The client has its answer already: a failure is one more thing to be asked for.
    fn ended(&self, encoder: &mut StreamEncoder, failure: Failure) -> Bytes {
        let mut out = self.opening.to_vec();
        encoder.event(&Event::Fail(failure), &mut out);
        Bytes::from(out)
    }

    fn tell(&self, bytes: &Bytes) {
        let before = self.live.status();
        self.live.tell(bytes);
        if before == QUEUED {
            say_alive(&self.visit, &self.id, self.live.status());
        }
    }
}

/// The first of some events.
fn first_of(events: &Bytes) -> Bytes {
    let end = memchr::memmem::find(events, b"\n\n");
    events.slice(..end.map_or(events.len(), |end| end + 2))
}

/// Nobody wants it any more.
const CANCELLED: &str = "cancelled";

/// What whoever watches an answer sees of its early end: OpenAI's streams have no other word for it.
fn cancelled() -> Failure {
    Failure::new(FailureKind::Cut, "the response was cancelled")
}

/// Why an answer is not made to its end.
fn stopped() -> Failure {
    Failure::new(FailureKind::Internal, "the gateway was stopped before the end")
}

/// A stored object as it is now: what nobody makes any more has failed.
pub(super) async fn settled(visit: &Visit, id: &str, object: Bytes) -> Bytes {
    if !is_unfinished(&object) {
        return object;
    }
    if let Some(status) = progress(&visit.app, visit.client.owner, id).await {
        return Bytes::from(restated(&object, status, None).json);
    }
    // It may have ended since it was looked for.
    let kept = Record::get(&visit.app, visit.client.owner, id).await;
    let object = kept.map_or(object, |record| record.answer);
    if !is_unfinished(&object) {
        return object;
    }
    let failure = stopped();
    tracing::warn!(request = %visit.request_id, response = id, "{failure}");
    Bytes::from(restated(&object, "failed", Some(&failure)).json)
}

/// Cancels an answer that is made elsewhere.
pub(super) async fn cancel_elsewhere(visit: &Visit, id: &str, object: Bytes) -> Bytes {
    let (app, owner) = (&visit.app, visit.client.owner);
    if !is_unfinished(&object) || elsewhere(app, owner, id).await.is_none() {
        return object;
    }
    let cancelled = restated(&object, CANCELLED, None);
    if let Some(record) = Record::get(app, owner, id).await {
        record.put_answer(app, owner, id, &cancelled);
    }
    app.store.flush().await;
    Bytes::from(cancelled.json)
}

/// The events from number `at` on of an answer whose maker was stopped, and its events with it.
pub(super) async fn broken_off(visit: &Visit, id: &str, at: usize) -> Option<Vec<u8>> {
    let object = Record::get(&visit.app, visit.client.owner, id).await?.answer;
    let failure = match status(&object)?.as_str() {
        QUEUED | IN_PROGRESS => stopped(),
        CANCELLED => cancelled(),
        _ => return None,
    };
    let object = std::str::from_utf8(&object).ok()?;
    Some(encode_broken_off(object, &failure, u64::try_from(at).unwrap_or(u64::MAX)))
}

/// The events of an answer that was made here or elsewhere, when it is made.
pub(super) async fn events(visit: &Visit, id: &str) -> Option<Bytes> {
    let (store, owner) = (&visit.app.store, visit.client.owner);
    loop {
        // In this order: an end between the two looks is not missed.
        let is_elsewhere = elsewhere(&visit.app, owner, id).await.is_some();
        let events = session::events(&visit.app, owner, id).await;
        if events.is_some() || !is_elsewhere || store.is_degraded() {
            return events;
        }
        tokio::time::sleep(LOOK).await;
    }
}

fn restated(object: &[u8], status: &str, failure: Option<&Failure>) -> Whole {
    with_status(&String::from_utf8_lossy(object), status, failure).into()
}
