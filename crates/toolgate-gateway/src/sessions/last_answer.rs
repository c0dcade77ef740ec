//! The last answer of a WebSocket connection, which a request may continue although it is not stored.

use bytes::Bytes;

use super::history::{History, ResponseItems};
use super::record::EncodedAnswer;

/// The last answer of a connection, with its history.
#[derive(Clone, Debug)]
pub(crate) struct LastAnswer {
    id: String,
    history: History,
}

impl LastAnswer {
    /// `question` is the body that was answered, `history` its history.
    pub(crate) fn new(question: Bytes, history: &History, answer: &EncodedAnswer) -> Option<Self> {
        let id = answer.id()?.into_owned();
        let mut history = history.without_tools();
        history.items.push(ResponseItems::Question(question));
        history.items.push(ResponseItems::Answer(Bytes::from(answer.without_repetitions())));
        Some(Self { id, history })
    }

    /// Number of bytes that have to be decoded to continue from it.
    pub(crate) fn size(&self) -> usize {
        self.history.size()
    }

    /// History up to the answer with this id, if this is the answer.
    pub(super) fn history(&self, id: &str) -> Option<History> {
        (self.id == id).then(|| self.history.clone())
    }
}
