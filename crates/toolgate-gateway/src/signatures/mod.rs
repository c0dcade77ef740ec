//! Thought signatures: stored when a call is delivered, restored when its result comes.

mod fingerprint;
mod lineup;
mod recorder;
mod restore;
mod store;

pub(crate) use self::fingerprint::{Fingerprint, session_of, spread};
pub(crate) use self::recorder::{SignatureRecorder, Undecoded};
pub(crate) use store::SignatureStore;
