//! Handle of the signatures of one owner.

use std::sync::Arc;
use std::time::Duration;

use toolgate_store::Owner;

use crate::store::Store;

/// Signatures of the calls of one client.
#[derive(Clone, Debug)]
pub(crate) struct SignatureStore {
    pub(super) store: Arc<Store>,
    pub(super) owner: Owner,
    pub(super) retention: Duration,
}

impl SignatureStore {
    pub(crate) fn new(store: Arc<Store>, owner: Owner, retention: Duration) -> Self {
        Self { store, owner, retention }
    }
}
