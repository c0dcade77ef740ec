//! Responses in progress: those of this gateway, and those of gateways that share its store.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::watch;
use toolgate_store::Owner;

use super::{Sessions, items};
use crate::store::Kind;

/// Status before the model begins to answer.
pub(crate) const QUEUED: &str = "queued";
/// Status from then on.
pub(crate) const IN_PROGRESS: &str = "in_progress";

/// Interval at which a gateway announces a response in progress in the store.
pub(crate) const HEARTBEAT: Duration = Duration::from_secs(1);
/// Silence after which a response of another gateway counts as interrupted.
const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(10);
/// Interval at which a response of another gateway is polled.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Background responses of this gateway that are in progress.
#[derive(Debug, Default)]
pub(super) struct InProgress(Mutex<HashMap<(Owner, String), Arc<BackgroundResponse>>>);

/// A background response in progress.
#[derive(Debug)]
pub(crate) struct BackgroundResponse {
    events: Mutex<Vec<Bytes>>,
    /// The model has begun to answer.
    is_answering: AtomicBool,
    /// Number of events, and whether these are all.
    progress: watch::Sender<(usize, bool)>,
    cancelled: watch::Sender<bool>,
}

impl InProgress {
    fn lock(&self) -> MutexGuard<'_, HashMap<(Owner, String), Arc<BackgroundResponse>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BackgroundResponse {
    /// Requests cancellation.
    pub(crate) fn cancel(&self) {
        self.cancelled.send_replace(true);
    }

    /// Waits for the request to cancel.
    pub(crate) async fn cancelled(&self) {
        // The sender lives as long as the response.
        drop(self.cancelled.subscribe().wait_for(|cancelled| *cancelled).await);
    }

    /// Waits for the end.
    pub(crate) async fn ended(&self) {
        // The sender lives as long as the response.
        drop(self.progress.subscribe().wait_for(|(_, ended)| *ended).await);
    }

    pub(crate) fn status(&self) -> &'static str {
        if self.is_answering.load(Ordering::Relaxed) { IN_PROGRESS } else { QUEUED }
    }

    /// Notes that the model has begun to answer.
    pub(crate) fn set_answering(&self) {
        self.is_answering.store(true, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Bytes>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All events so far.
    pub(crate) fn events(&self) -> Vec<Bytes> {
        self.lock().clone()
    }

    /// Adds events.
    pub(crate) fn push(&self, new: impl IntoIterator<Item = Bytes>) {
        let mut events = self.lock();
        events.extend(new);
        let count = events.len();
        drop(events);
        self.progress.send_modify(|(known, _)| *known = count);
    }

    /// Waits for the events from number `start` on. Returns them with the number of the next one, and `None`
    /// after the last.
    pub(crate) async fn events_from(&self, start: usize) -> Option<(Bytes, usize)> {
        let mut progress = self.progress.subscribe();
        let is_ready = |(count, ended): &(usize, bool)| *count > start || *ended;
        progress.wait_for(is_ready).await.ok()?;
        let events = self.lock();
        let new = events.get(start..).filter(|new| !new.is_empty())?;
        Some((Bytes::from(new.concat()), events.len()))
    }
}

impl Sessions {
    /// Response in progress in this gateway.
    pub(crate) fn in_progress(&self, id: &str) -> Option<Arc<BackgroundResponse>> {
        self.state.in_progress.lock().get(&(self.owner, id.to_owned())).cloned()
    }

    /// Registers a response in progress.
    pub(crate) fn begin(&self, id: &str) -> Arc<BackgroundResponse> {
        let response = Arc::new(BackgroundResponse {
            events: Mutex::default(),
            is_answering: AtomicBool::new(false),
            progress: watch::Sender::new((0, false)),
            cancelled: watch::Sender::new(false),
        });
        let key = (self.owner, id.to_owned());
        self.state.in_progress.lock().insert(key, Arc::clone(&response));
        response
    }

    /// Removes a response that has ended.
    pub(crate) fn end(&self, id: &str) {
        let ended = self.state.in_progress.lock().remove(&(self.owner, id.to_owned()));
        if let Some(response) = ended {
            response.progress.send_modify(|(_, ended)| *ended = true);
        }
        self.store().delete(self.owner, Kind::Live, id);
    }

    /// Announces a response in progress to other gateways.
    pub(crate) fn announce(&self, id: &str, status: &'static str) {
        if self.store().is_shared() {
            let status = Bytes::from_static(status.as_bytes());
            self.store().put(self.owner, Kind::Live, id, status, HEARTBEAT_TIMEOUT);
        }
    }

    /// Status of a response in progress in any gateway; `None` where none works on it.
    pub(crate) async fn progress(&self, id: &str) -> Option<&'static str> {
        match self.in_progress(id) {
            Some(response) => Some(response.status()),
            None => self.progress_elsewhere(id).await,
        }
    }

    /// Status of a response in progress in another gateway; `None` where none works on it.
    pub(crate) async fn progress_elsewhere(&self, id: &str) -> Option<&'static str> {
        match self.store().get_one(self.owner, Kind::Live, id).await {
            Some(status) if status == IN_PROGRESS => Some(IN_PROGRESS),
            Some(_) => Some(QUEUED),
            None => self.store().is_degraded().then_some(QUEUED),
        }
    }

    /// Waits until no other gateway works on a response, for a limited time.
    pub(crate) async fn ended_elsewhere(&self, id: &str) {
        let ended = async {
            while !self.store().is_degraded() && self.progress_elsewhere(id).await.is_some() {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        };
        drop(tokio::time::timeout(HEARTBEAT_TIMEOUT, ended).await);
    }
}

/// Whether the status of a stored response is that of one in progress.
pub(crate) fn is_unfinished(object: &[u8]) -> bool {
    status(object).is_some_and(|it| it == QUEUED || it == IN_PROGRESS)
}

/// `status` of a stored response.
pub(crate) fn status(object: &[u8]) -> Option<String> {
    items::text_of(&items::fields_of(object), "status")
}
