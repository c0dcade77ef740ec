//! Handle of the sessions of one owner.

use std::sync::Arc;
use std::time::Duration;

use toolgate_store::Owner;

use super::history::History;
use super::progress::InProgress;
use super::recorder::Recorder;
use super::shared_text::SharedTexts;
use crate::store::Store;

/// Session state that all clients share.
#[derive(Debug)]
pub(crate) struct SessionState {
    pub(super) store: Arc<Store>,
    pub(super) texts: SharedTexts,
    pub(super) in_progress: InProgress,
}

impl SessionState {
    pub(crate) fn new(store: Arc<Store>) -> Self {
        Self { store, texts: SharedTexts::default(), in_progress: InProgress::default() }
    }
}

/// Sessions of one client key.
#[derive(Clone, Debug)]
pub(crate) struct Sessions {
    pub(super) state: Arc<SessionState>,
    pub(super) owner: Owner,
    pub(super) retention: Duration,
}

impl Sessions {
    pub(crate) fn new(state: Arc<SessionState>, owner: Owner, retention: Duration) -> Self {
        Self { state, owner, retention }
    }

    pub(crate) fn store(&self) -> &Store {
        &self.state.store
    }
}

/// The session of a request.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) history: History,
    /// Records the answer.
    pub(crate) recorder: Recorder,
}
