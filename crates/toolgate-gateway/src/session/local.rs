//! The last answer of a connection.

use bytes::Bytes;
use toolgate_core::responses;
use toolgate_core::translate::Dialect;

use super::before::{Before, Said};
use super::items;
use super::record::Whole;

/// What a WebSocket can go on from although it was not stored.
#[derive(Clone, Debug)]
pub(crate) struct Local {
    id: String,
    /// The whole question, what its dialect said before included.
    body: Bytes,
    /// What does not stand in it.
    before: Vec<Said>,
    output: Vec<String>,
}

impl Local {
    /// A connection's last answer, if that is what this is.
    pub(crate) fn new(body: Bytes, before: &Before, answer: &Whole) -> Option<Self> {
        let said = answer.said();
        let fields = items::fields_of(&said);
        let id = answer.id()?.into_owned();
        Some(Self { id, body, before: before.said(), output: items::output_items(&fields) })
    }

    /// Number of bytes that have to be read to continue from it.
    pub(crate) fn size(&self) -> usize {
        let before = self.before.iter().map(|said| said.json.len());
        let output = self.output.iter().map(String::len);
        self.body.len() + before.chain(output).sum::<usize>()
    }

    /// All that was said up to the answer with this id, if this is it.
    pub(super) fn said(&self, id: &str) -> Option<Vec<Said>> {
        if self.id != id {
            return None;
        }
        let body = std::str::from_utf8(&self.body).ok()?;
        let asked = responses::input_items(body).ok()?;
        let asked = asked.iter().filter(|item| !items::is_trigger(item));
        let asked = asked.map(|item| item.get().to_owned());
        let said = asked.chain(self.output.iter().cloned());
        let said = said.map(|json| Said { dialect: Dialect::Responses, json });
        Some(self.before.iter().cloned().chain(said).collect())
    }
}
