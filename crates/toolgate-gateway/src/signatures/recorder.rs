//! Stores the signatures of an answer's calls as they are delivered.

use bytes::Bytes;
use tokio::sync::oneshot;
use toolgate_core::canon::{Call, TextSignature};
use toolgate_core::seal::Sealer;

use super::SignatureStore;
use super::fingerprint::Fingerprint;
use super::restore::predecessor;

/// Signature recorder of one answer.
#[derive(Debug)]
pub(crate) struct SignatureRecorder {
    store: SignatureStore,
    fingerprint: Fingerprint,
    /// Source of the fingerprint where it is not known yet.
    undecoded: Option<Undecoded>,
    /// The model requires its signatures back: unsigned calls are recorded, too.
    is_required: bool,
    /// The dialect has no field for the signature of the last text.
    records_text: bool,
    /// Calls that the client has got.
    delivered: Vec<Call<'static>>,
}

/// A request that is passed through undecoded. Only a call needs its fingerprint.
#[derive(Debug)]
pub(crate) enum Undecoded {
    /// Small enough to be decoded with the first call.
    Body { body: Bytes, session: Option<String>, sealer: Sealer },
    /// Being decoded on a translation thread while Gemini answers.
    Pending(oneshot::Receiver<Fingerprint>),
}

impl SignatureRecorder {
    pub(crate) fn new(store: SignatureStore, fingerprint: Fingerprint, is_required: bool) -> Self {
        let (undecoded, delivered) = (None, Vec::new());
        Self { store, fingerprint, undecoded, is_required, records_text: false, delivered }
    }

    /// Records the signature of the answer's last text, too.
    pub(crate) fn with_text(self) -> Self {
        Self { records_text: true, ..self }
    }

    /// Recorder for the answer to an undecoded request.
    pub(crate) fn undecoded(store: SignatureStore, source: Undecoded, is_required: bool) -> Self {
        let recorder = Self::new(store, Fingerprint::default(), is_required);
        Self { undecoded: Some(source), ..recorder }
    }

    /// Records the calls that the client has got so far. It may run them whatever comes after, so the
    /// signatures are stored at once. A signature may arrive after its call.
    pub(crate) fn deliver(&mut self, calls: &[Call<'static>]) {
        for (at, call) in calls.iter().enumerate() {
            match self.delivered.get_mut(at) {
                Some(known) if known.signature.is_none() && call.signature.is_some() => {
                    known.signature.clone_from(&call.signature);
                }
                Some(_) => continue,
                None => self.delivered.push(call.clone()),
            }
            self.record(at);
        }
    }

    /// Records the signature of the last text of a complete answer.
    pub(crate) fn deliver_text(&self, signed: Option<&TextSignature>) {
        if let (true, Some(signed)) = (self.records_text, signed) {
            self.store.put_text(signed);
        }
    }

    fn record(&mut self, at: usize) {
        let call = &self.delivered[at];
        if !self.is_required && call.signature.is_none() {
            return;
        }
        if let Some(source) = self.undecoded.take() {
            self.fingerprint = source.fingerprint();
        }
        let previous = match at.checked_sub(1) {
            Some(before) => predecessor(&self.delivered[before].id),
            None => self.fingerprint.last.clone(),
        };
        self.store.put(call, &previous, &self.fingerprint);
    }
}

impl Undecoded {
    fn fingerprint(self) -> Fingerprint {
        match self {
            Self::Body { body, session, sealer } => {
                Fingerprint::of_body(&sealer, &body, session.as_deref())
            }
            Self::Pending(mut pending) => pending.try_recv().unwrap_or_default(),
        }
    }
}
