//! `background: true`: the answer is made whether or not the client waits for it.
//!
//! Where gateways share a store, whoever makes an answer says so there as long as it does, and looks
//! whether the answer is still wanted: the others can tell, cancel and delete it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Frame;
use tokio::sync::watch;
use toolgate_core::canon::{DecodeOptions, Encoder as _, Event, Failure, FailureKind, Start};
use toolgate_core::json::Raw;
use toolgate_core::responses::{Framing, StreamEncoder, decode_request};
use toolgate_core::translate::Echo;

use super::door::{DIALECT, json, wrong};
use crate::auth::Owner;
use crate::doors::Visit;
use crate::doors::turns::{self, Answered, Keeping};
use crate::reply::{self, Body, Reply};
use crate::session::{self, Keeper, Opened, Refused};
use crate::store::Kind;
use crate::turn::{Ask, Pump};

/// The answers that are being made in the background.
#[derive(Debug, Default)]
pub struct LiveAnswers(Mutex<HashMap<(Owner, String), Arc<Live>>>);

/// One of them.
#[derive(Debug)]
pub(crate) struct Live {
    events: Mutex<Vec<Bytes>>,
    /// How many events there are, and whether these are all.
    told: watch::Sender<(usize, bool)>,
    cancelled: watch::Sender<bool>,
}

impl LiveAnswers {
    fn lock(&self) -> MutexGuard<'_, HashMap<(Owner, String), Arc<Live>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn get(&self, owner: Owner, id: &str) -> Option<Arc<Live>> {
        self.lock().get(&(owner, id.to_owned())).cloned()
    }

    fn begin(&self, owner: Owner, id: &str) -> Arc<Live> {
        let live = Arc::new(Live {
            events: Mutex::default(),
            told: watch::Sender::new((0, false)),
            cancelled: watch::Sender::new(false),
        });
        self.lock().insert((owner, id.to_owned()), Arc::clone(&live));
        live
    }

    fn end(&self, owner: Owner, id: &str) {
        if let Some(live) = self.lock().remove(&(owner, id.to_owned())) {
            live.told.send_modify(|(_, ended)| *ended = true);
        }
    }
}

impl Live {
    /// Asks for an early end.
    pub(super) fn cancel(&self) {
        self.cancelled.send_replace(true);
    }

    /// Waits for the end.
    pub(super) async fn ended(self: Arc<Self>) {
        // The sender lives as long as we do.
        drop(self.told.subscribe().wait_for(|(_, ended)| *ended).await);
    }

    fn events(&self) -> MutexGuard<'_, Vec<Bytes>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what a pump shows: whole events.
    fn tell(&self, bytes: &Bytes) {
        let mut events = self.events();
        let mut start = 0;
        for end in memchr::memmem::find_iter(bytes, b"\n\n") {
            events.push(bytes.slice(start..end + 2));
            start = end + 2;
        }
        let count = events.len();
        drop(events);
        self.told.send_modify(|(told, _)| *told = count);
    }
}

/// Shows the events of an answer from number `at` on, as they come.
pub(super) fn shown(live: Arc<Live>, at: usize) -> Body {
    let told = live.told.subscribe();
    let frames = stream::unfold((live, told, at), |(live, mut told, at)| async move {
        told.wait_for(|(count, ended)| *count > at || *ended).await.ok()?;
        let bytes = live.events().get(at..).unwrap_or_default().concat();
        if bytes.is_empty() {
            return None;
        }
        let next = at + memchr::memmem::find_iter(&bytes, b"\n\n").count();
        Some((Ok(Frame::data(Bytes::from(bytes))), (live, told, next)))
    });
    StreamBody::new(frames).boxed_unsync()
}

/// Whether a body asks for an answer in the background.
pub(super) fn is_asked_for(body: &[u8]) -> bool {
    if memchr::memmem::find(body, b"\"background\"").is_none() {
        return false;
    }
    session::fields_of(body).get("background").map(Raw::get) == Some("true")
}

/// Begins an answer.
pub(super) async fn begin(visit: Visit, opened: Opened) -> Result<Reply, Refused> {
    let text = session::text(&opened.body)?;
    let decoded = decode_request(text, &DecodeOptions { sealer: &visit.app.sealer })
        .map_err(Failure::from)?;
    let (streams, echo) = (decoded.request.stream, decoded.echo);
    if echo.store == Some(false) {
        return Err(wrong("background: needs store, which is false"));
    }
    let encoder = StreamEncoder::new(echo.clone(), visit.stamp(), visit.app.sealer.clone());
    let id = encoder.response_id().to_owned();
    let queued = with_status(&encoder.response(), "queued");
    let live = visit.app.live.begin(visit.client.owner, &id);
    say_alive(&visit, &id);
    opened.keeper.keep(&Echo::Responses(echo), &queued).await;
    let task = Task { visit: visit.clone(), live: Arc::clone(&live), keeper: opened.keeper, id };
    let mut ask = Ask::new(DIALECT, opened.body, visit.client.owner);
    (ask.before, ask.stream) = (opened.before, Some(Framing::Sse));
    visit.app.tasks.spawn(task.run(ask, encoder));
    Ok(if streams { reply::stream("text/event-stream", shown(live, 0)) } else { json(queued) })
}

/// An answer in the making.
struct Task {
    visit: Visit,
    live: Arc<Live>,
    keeper: Keeper,
    id: String,
}

impl Task {
    async fn run(self, ask: Ask, encoder: StreamEncoder) {
        let mut cancelled = self.live.cancelled.subscribe();
        let made = tokio::select! {
            made = self.make(&ask, encoder) => made,
            // The sender lives as long as the answer does.
            _ = cancelled.wait_for(|cancelled| *cancelled) => None,
            () = self.until_unwanted() => None,
        };
        let (app, owner) = (&self.visit.app, self.visit.client.owner);
        if made.is_none()
            && let Some(queued) = app.store.get_one(owner, Kind::Answer, &self.id).await
        {
            let keep = app.config().state_retention;
            let cancelled = Bytes::from(with_status(&queued, "cancelled"));
            app.store.put(owner, Kind::Answer, &self.id, cancelled, keep);
        }
        if app.store.get_one(owner, Kind::Answer, &self.id).await.is_some() {
            let events = self.live.events().concat();
            let keep = app.config().state_retention;
            app.store.put(owner, Kind::Events, &self.id, Bytes::from(events), keep);
            app.store.settle().await;
        }
        app.live.end(owner, &self.id);
        app.store.delete(owner, Kind::Live, &self.id).await;
    }

    /// Tells others that the answer is being made, until one of them cancels or deletes it.
    async fn until_unwanted(&self) {
        let store = &self.visit.app.store;
        if !store.is_shared() {
            return std::future::pending().await;
        }
        loop {
            tokio::time::sleep(BEAT).await;
            let object = store.get_one(self.visit.client.owner, Kind::Answer, &self.id).await;
            let is_wanted = object.is_some_and(|it| status(&it).as_deref() != Some("cancelled"));
            if !is_wanted && !store.is_away() {
                return;
            }
            say_alive(&self.visit, &self.id);
        }
    }

    async fn make(&self, ask: &Ask, encoder: StreamEncoder) -> Option<()> {
        let outcome = match turns::run(&self.visit, ask).await {
            Ok(outcome) => outcome,
            Err(failure) => {
                self.fail(failure, encoder).await;
                return Some(());
            }
        };
        let Answered::Stream(pump) = outcome.result else { return None };
        let keeper = self.keeper.clone();
        let keeping = Keeping::new(keeper, outcome.echo, outcome.stamp);
        self.pump(pump, &keeping).await;
        Some(())
    }

    async fn pump(&self, mut pump: Box<Pump>, keeping: &Keeping) {
        while let Some(bytes) = pump.next().await {
            if pump.has_ended()
                && let Some(object) = keeping.object(&pump, &self.visit)
            {
                keeping.keeper.keep(&keeping.echo, &object).await;
            }
            self.live.tell(&bytes);
        }
    }

    /// The client has its answer already: a failure is one more thing to be asked for.
    async fn fail(&self, failure: Failure, mut encoder: StreamEncoder) {
        let mut out = Vec::new();
        encoder.event(&Event::Start(Start::default()), &mut out);
        encoder.event(&Event::Fail(failure), &mut out);
        let (app, owner) = (&self.visit.app, self.visit.client.owner);
        let object = Bytes::from(encoder.response());
        app.store.put(owner, Kind::Answer, &self.id, object, app.config().state_retention);
        self.live.tell(&Bytes::from(out));
    }
}

/// How often somebody who makes an answer says so.
const BEAT: Duration = Duration::from_secs(1);
/// After how long a silence nobody makes it any more.
const SILENCE: Duration = Duration::from_secs(10);
/// How often an answer that is made elsewhere is looked for.
const LOOK: Duration = Duration::from_millis(200);

fn say_alive(visit: &Visit, id: &str) {
    let store = &visit.app.store;
    if store.is_shared() {
        store.put(visit.client.owner, Kind::Live, id, Bytes::from_static(b"1"), SILENCE);
    }
}

/// Whether another gateway makes this answer, as far as one can tell.
async fn is_elsewhere(visit: &Visit, id: &str) -> bool {
    let store = &visit.app.store;
    store.is_shared()
        && (store.get_one(visit.client.owner, Kind::Live, id).await.is_some() || store.is_away())
}

fn is_unfinished(object: &[u8]) -> bool {
    status(object).is_some_and(|it| it == "queued" || it == "in_progress")
}

/// A stored object as it is now: what nobody makes any more has failed.
pub(super) async fn settled(visit: &Visit, id: &str, object: Bytes) -> Bytes {
    let is_here = visit.app.live.get(visit.client.owner, id).is_some();
    if !is_unfinished(&object) || is_here || is_elsewhere(visit, id).await {
        return object;
    }
    let failure = Failure::new(FailureKind::Internal, "the gateway was stopped before the end");
    tracing::warn!(request = %visit.request_id, response = id, "{failure}");
    Bytes::from(with_status(&object, "failed"))
}

/// Cancels an answer that is made elsewhere.
pub(super) async fn cancel_elsewhere(visit: &Visit, id: &str, object: Bytes) -> Bytes {
    if !is_unfinished(&object) || !is_elsewhere(visit, id).await {
        return object;
    }
    let (app, owner) = (&visit.app, visit.client.owner);
    let cancelled = Bytes::from(with_status(&object, "cancelled"));
    app.store.put(owner, Kind::Answer, id, cancelled.clone(), app.config().state_retention);
    app.store.settle().await;
    cancelled
}

/// The events of an answer that was made here or elsewhere, when it is made.
pub(super) async fn events(visit: &Visit, id: &str) -> Option<Bytes> {
    let (store, owner) = (&visit.app.store, visit.client.owner);
    loop {
        // In this order: an end between the two looks is not missed.
        let is_elsewhere = is_elsewhere(visit, id).await;
        let events = store.get_one(owner, Kind::Events, id).await;
        if events.is_some() || !is_elsewhere || store.is_away() {
            return events;
        }
        tokio::time::sleep(LOOK).await;
    }
}

fn status(object: &[u8]) -> Option<String> {
    session::fields_of(object)
        .get("status")
        .and_then(Raw::as_text)
        .map(|text| text.decode().into_owned())
}

/// A response object with another status.
fn with_status(object: &[u8], new: &str) -> Vec<u8> {
    let text = String::from_utf8_lossy(object);
    let old = status(object).unwrap_or_default();
    text.replacen(&format!("\"status\":\"{old}\""), &format!("\"status\":\"{new}\""), 1)
        .into_bytes()
}
