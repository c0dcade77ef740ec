//! Answers in the making: those of this gateway, and what gateways that share a store tell each other.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Frame;
use tokio::sync::watch;

use crate::app::App;
use crate::auth::Owner;
use crate::doors::Visit;
use crate::reply::Body;
use crate::session;
use crate::store::Kind;

/// How events begin that say nothing of the answer.
const CREATED: &[u8] = b"event: response.created\n";
const ALIVE: &[u8] = b"event: response.in_progress\n";

/// Before the model begins to answer.
pub(super) const QUEUED: &str = "queued";
/// From then on.
pub(super) const IN_PROGRESS: &str = "in_progress";
/// The answers that are being made in the background.
#[derive(Debug, Default)]
pub struct LiveAnswers(Mutex<HashMap<(Owner, String), Arc<Live>>>);

/// One of them.
#[derive(Debug)]
pub(crate) struct Live {
    events: Mutex<Vec<Bytes>>,
    /// Whether the model has begun to answer.
    answers: AtomicBool,
    /// How many events there are, and whether these are all.
    told: watch::Sender<(usize, bool)>,
    pub(super) cancelled: watch::Sender<bool>,
}

impl LiveAnswers {
    fn lock(&self) -> MutexGuard<'_, HashMap<(Owner, String), Arc<Live>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn get(&self, owner: Owner, id: &str) -> Option<Arc<Live>> {
        self.lock().get(&(owner, id.to_owned())).cloned()
    }

    pub(super) fn begin(&self, owner: Owner, id: &str) -> Arc<Live> {
        let live = Arc::new(Live {
            events: Mutex::default(),
            answers: AtomicBool::new(false),
            told: watch::Sender::new((0, false)),
            cancelled: watch::Sender::new(false),
        });
        self.lock().insert((owner, id.to_owned()), Arc::clone(&live));
        live
    }

    pub(super) fn end(&self, owner: Owner, id: &str) {
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

    /// How far it is.
    pub(super) fn status(&self) -> &'static str {
        if self.answers.load(Ordering::Relaxed) { IN_PROGRESS } else { QUEUED }
    }

    pub(super) fn events(&self) -> MutexGuard<'_, Vec<Bytes>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what is shown: whole events. The first of them may come twice: it does not wait for the
    /// model.
    pub(super) fn tell(&self, bytes: &Bytes) {
        let mut events = self.events();
        let mut start = 0;
        for end in memchr::memmem::find_iter(bytes, b"\n\n") {
            let event = bytes.slice(start..end + 2);
            start = end + 2;
            if !event.starts_with(CREATED) || events.is_empty() {
                let is_opening = event.starts_with(CREATED) || event.starts_with(ALIVE);
                self.answers.fetch_or(!is_opening, Ordering::Relaxed);
                events.push(event);
            }
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

/// How often somebody who makes an answer says so.
pub(super) const BEAT: Duration = Duration::from_secs(1);
/// After how long a silence nobody makes it any more.
const SILENCE: Duration = Duration::from_secs(10);
/// How often an answer that is made elsewhere is looked for.
pub(super) const LOOK: Duration = Duration::from_millis(200);
/// Tells other gateways that an answer is being made, and how far it is.
pub(super) fn say_alive(visit: &Visit, id: &str, status: &'static str) {
    let store = &visit.app.store;
    if store.is_shared() {
        let status = Bytes::from_static(status.as_bytes());
        store.put(visit.client.owner, Kind::Live, id, status, SILENCE);
    }
}

/// How far an answer is, as far as one can tell; `None`: nobody makes it.
pub(crate) async fn progress(app: &App, owner: Owner, id: &str) -> Option<&'static str> {
    match app.live.get(owner, id) {
        Some(live) => Some(live.status()),
        None => elsewhere(app, owner, id).await,
    }
}

/// How far another gateway is with this answer; `None`: it makes none.
pub(super) async fn elsewhere(app: &App, owner: Owner, id: &str) -> Option<&'static str> {
    let store = &app.store;
    match store.get_one(owner, Kind::Live, id).await {
        Some(status) if status == IN_PROGRESS => Some(IN_PROGRESS),
        Some(_) => Some(QUEUED),
        None => store.is_degraded().then_some(QUEUED),
    }
}

/// Waits, not for ever, until no other gateway makes an answer.
pub(super) async fn ended_elsewhere(app: &App, owner: Owner, id: &str) {
    let ended = async {
        while !app.store.is_degraded() && elsewhere(app, owner, id).await.is_some() {
            tokio::time::sleep(LOOK).await;
        }
    };
    drop(tokio::time::timeout(SILENCE, ended).await);
}

/// Whether an object says that it is being made.
pub(crate) fn is_unfinished(object: &[u8]) -> bool {
    status(object).is_some_and(|it| it == QUEUED || it == IN_PROGRESS)
}

/// What an object says of itself.
pub(super) fn status(object: &[u8]) -> Option<String> {
    session::text_of(&session::fields_of(object), "status")
}
