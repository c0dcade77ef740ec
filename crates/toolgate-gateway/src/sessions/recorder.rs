//! Records finished answers.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use bytes::Bytes;
use toolgate_core::gemini::{NativePieces, native_pieces};
use toolgate_core::responses;
use toolgate_core::translate::{Dialect, Echo};

use super::Sessions;
use super::chain::Origin;
use super::conversation::{Conversation, Tools};
use super::history::{History, StoredItem};
use super::items;
use super::log::Seen;
use super::record::{self, Asked, EncodedAnswer, EventLog};

/// Recorder of one answer.
#[derive(Clone, Debug)]
pub(crate) struct Recorder {
    pub(super) sessions: Sessions,
    pub(super) question: Question,
    pub(super) origin: Origin,
    pub(super) tools: Tools,
}

/// The request, as it is recorded with its answer.
#[derive(Clone, Debug)]
pub(super) enum Question {
    /// A request to the Responses API.
    Responses {
        body: Bytes,
        /// Items that the body names by id.
        references: BTreeMap<String, String>,
        /// Ids that other items of the conversation have.
        taken: BTreeSet<String>,
        /// History that is not stored.
        unstored: Option<Box<History>>,
    },
    /// A request to the native endpoint, and a token for the ids of the turn's items.
    Native { body: Bytes, token: String },
    /// A request in a message thread, and the places in it that the requests of a thread repeat.
    Messages { body: Bytes, repeated: Vec<Range<usize>> },
}

impl Question {
    /// A request to the Responses API that refers to nothing.
    pub(super) fn plain(body: Bytes) -> Self {
        let (references, taken) = (BTreeMap::new(), BTreeSet::new());
        Self::Responses { body, references, taken, unstored: None }
    }
}

impl Recorder {
    /// Stores a finished answer, and waits until it is durable. `has_signatures`: signatures of its calls
    /// were stored before, which have to be durable, too.
    pub(crate) async fn record(&self, echo: &Echo, answer: &EncodedAnswer, has_signatures: bool) {
        if self.put(echo, answer, has_signatures).await {
            self.sessions.store().flush().await;
        }
    }

    /// Puts a finished answer into the store; returns whether there is something to wait for.
    async fn put(&self, echo: &Echo, answer: &EncodedAnswer, has_signatures: bool) -> bool {
        if !self.is_stored(echo) && !has_signatures {
            return false;
        }
        match (&self.question, echo) {
            (Question::Responses { .. }, Echo::Responses(echo)) => {
                let question = self.stored_question(echo.input.clone());
                self.put_response(&question, echo.is_stored(), answer).await;
            }
            (Question::Native { body, token }, _) => {
                self.put_contents(body, token, &answer.json).await;
            }
            (Question::Messages { body, repeated }, _) => self.put_message(body, repeated, answer),
            (Question::Responses { .. }, Echo::Anthropic(_) | Echo::Chat(_) | Echo::Gemini(_)) => {}
        }
        true
    }

    /// Whether the answer is stored at all.
    fn is_stored(&self, echo: &Echo) -> bool {
        match echo {
            Echo::Responses(echo) => echo.is_stored() || self.origin.conversation.is_some(),
            Echo::Anthropic(_) | Echo::Chat(_) | Echo::Gemini(_) => true,
        }
    }

    /// Stores the events of a response, so that it can be streamed again. Returns the id of its settings where
    /// they are stored on their own.
    pub(crate) fn record_events(
        &self,
        id: &str,
        events: &EventLog,
        settings: &[u8],
    ) -> Option<String> {
        record::put_events(&self.sessions, id, events, settings)
    }

    /// The question as it is stored: `{"input":…}`, with the items that it refers to. Tools are part of the
    /// answer. `input` is its place in the body.
    fn stored_question(&self, input: Option<Range<usize>>) -> StoredQuestion {
        let Question::Responses { body, references, taken, unstored } = &self.question else {
            return StoredQuestion::default();
        };
        if references.is_empty() && taken.is_empty() && unstored.is_none() {
            return StoredQuestion { body: body.clone(), input, ..StoredQuestion::default() };
        }
        let body = std::str::from_utf8(body).unwrap_or("{}");
        let mut all = unstored.as_ref().and_then(|it| it.split_items().ok()).unwrap_or_default();
        for item in responses::input_items(body).unwrap_or_default() {
            let item = match responses::reference_of(&item).and_then(|id| references.get(&id)) {
                Some(stored) => stored.clone(),
                None => items::without_taken_id(&item, taken),
            };
            all.push(item);
        }
        StoredQuestion {
            rewritten: Some(format!("{{\"input\":[{}]}}", all.join(","))),
            ..StoredQuestion::default()
        }
    }

    async fn put_response(&self, question: &StoredQuestion, store: bool, answer: &EncodedAnswer) {
        let Some(id) = answer.id() else { return };
        if store {
            let asked = Asked { origin: &self.origin, body: question.pieces(), shared: &[] };
            record::put(&self.sessions, &id, &asked, answer);
        }
        if let Some(seen) = &self.origin.conversation {
            if !answer.is_finished() {
                return;
            }
            let question = question.pieces().concat();
            let question = std::str::from_utf8(&question).unwrap_or("{}");
            let input = items::input_items(question, &id).unwrap_or_default();
            let stored = input.into_iter().chain(answer.items());
            let stored: Vec<_> =
                stored.map(|json| StoredItem { dialect: Dialect::Responses, json }).collect();
            self.add_to(seen, &stored, &self.tools).await;
        }
    }

    fn put_message(&self, body: &Bytes, repeated: &[Range<usize>], answer: &EncodedAnswer) {
        let Some(id) = answer.id() else { return };
        let asked = Asked { origin: &self.origin, body: [b"", body, b""], shared: repeated };
        record::put(&self.sessions, &id, &asked, answer);
    }

    async fn put_contents(&self, body: &Bytes, token: &str, object: &[u8]) {
        let Some(seen) = &self.origin.conversation else { return };
        let body = std::str::from_utf8(body).unwrap_or("{}");
        let NativePieces { contents, tools, tool_config, .. } =
            native_pieces(body).unwrap_or_default();
        let stored = |(at, content): (usize, &String)| {
            let json = items::content_item(content, token, at);
            StoredItem { dialect: Dialect::Gemini, json }
        };
        let answer = answered_content(object);
        let all: Vec<_> = contents.iter().chain(&answer).enumerate().map(stored).collect();
        let tools = Tools::new(Dialect::Gemini, tools.as_deref(), tool_config.as_deref());
        self.add_to(seen, &all, &tools).await;
    }

    /// Adds a turn to its conversation, unless that was deleted while the turn was in progress.
    async fn add_to(&self, seen: &Seen, stored: &[StoredItem], tools: &Tools) {
        let conversation = Conversation { sessions: &self.sessions, id: &seen.name };
        if conversation.go_on(seen).await {
            conversation.add(stored);
            conversation.set_tools(tools).await;
        }
    }
}

/// A question as it is stored.
#[derive(Default)]
struct StoredQuestion {
    body: Bytes,
    /// Place of `input` in the body.
    input: Option<Range<usize>>,
    /// The whole question, where it differs from the body.
    rewritten: Option<String>,
}

impl StoredQuestion {
    fn pieces(&self) -> [&[u8]; 3] {
        if let Some(rewritten) = &self.rewritten {
            return [b"", rewritten.as_bytes(), b""];
        }
        match self.input.clone().and_then(|place| self.body.get(place)) {
            Some(input) => [b"{\"input\":", input, b"}"],
            None => [b"", b"{}", b""],
        }
    }
}

/// `candidates[0].content`
fn answered_content(object: &[u8]) -> Option<String> {
    let fields = items::fields_of(object);
    let candidates = fields.get("candidates")?.items()?;
    let candidate = candidates.first()?.fields()?;
    let content = candidate.get("content")?;
    content.fields()?.get("parts")?;
    Some(content.get().to_owned())
}
