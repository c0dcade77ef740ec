//! Keeps answers when they are finished.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use toolgate_core::json::{self, Fields};
use toolgate_core::translate::{Dialect, Echo};

use super::before::Said;
use super::chain::Origin;
use super::conversation::{Conversation, Tools};
use super::items;
use super::log::Seen;
use super::record::{self, Asked, Shown, Whole};
use crate::app::App;
use crate::auth::Owner;

/// Knows where an answer belongs.
#[derive(Clone, Debug)]
pub(crate) struct Keeper {
    pub(super) app: Arc<App>,
    pub(super) owner: Owner,
    /// The question, as far as it is new.
    pub(super) question: Question,
    pub(super) origin: Origin,
    pub(super) tools: Tools,
}

/// What was asked.
#[derive(Clone, Debug)]
pub(super) enum Question {
    /// Of the Responses API: the body, and whether it is the one that was decoded.
    Body { body: Bytes, is_whole: bool },
    /// Of the native endpoint: contents, and a token for the ids of the turn's items.
    Contents { contents: Vec<String>, token: String },
    /// Of a message thread: the body, and where in it stands what all questions of a thread repeat.
    Messages { body: Bytes, shared: Vec<Range<usize>> },
}

impl Keeper {
    /// Keeps a finished answer, and waits until it would survive; `signed`: whether signatures of
    /// its calls were kept before, which have to survive too.
    pub(crate) async fn keep(&self, echo: &Echo, answer: &Whole, signed: bool) {
        if self.put(echo, answer, signed).await {
            self.app.store.flush().await;
        }
    }

    /// The same at the end of a stream.
    pub(crate) async fn keep_streamed(&self, echo: &Echo, answer: &Whole, signed: bool) {
        if self.put(echo, answer, signed).await {
            self.app.store.flush().await;
        }
    }

    /// Puts a finished answer into the store; says whether there is something to wait for.
    async fn put(&self, echo: &Echo, answer: &Whole, signed: bool) -> bool {
        // Who wants nothing kept has nothing to wait for.
        if !self.is_wanted(echo) && !signed {
            return false;
        }
        match (&self.question, echo) {
            (Question::Body { body, is_whole }, Echo::Responses(echo)) => {
                let input = echo.input.clone().filter(|_| *is_whole);
                self.keep_response(body, input, echo.is_stored(), answer).await;
            }
            (Question::Contents { contents, token }, _) => {
                self.keep_contents(contents, token, &answer.json).await;
            }
            (Question::Messages { body, shared }, _) => self.keep_message(body, shared, answer),
            (Question::Body { .. }, Echo::Anthropic(_) | Echo::Chat(_) | Echo::Gemini(_)) => {}
        }
        true
    }

    /// Whether an answer is kept at all.
    fn is_wanted(&self, echo: &Echo) -> bool {
        match echo {
            Echo::Responses(echo) => echo.is_stored() || self.origin.conversation.is_some(),
            Echo::Anthropic(_) | Echo::Chat(_) | Echo::Gemini(_) => true,
        }
    }

    /// Keeps the events of a response that will be kept itself, so that it can be streamed again.
    /// Says under which id the settings are kept, if they are.
    pub(crate) fn keep_events(&self, id: &str, events: &Shown, settings: &[u8]) -> Option<String> {
        record::put_events(&self.app, self.owner, id, events, settings)
    }

    async fn keep_response(
        &self,
        body: &Bytes,
        input: Option<Range<usize>>,
        store: bool,
        answer: &Whole,
    ) {
        let Some(id) = answer.id() else { return };
        if store {
            let body = asked(body, input);
            let asked = Asked { origin: &self.origin, body, shared: &[] };
            record::put(&self.app, self.owner, &id, &asked, answer);
        }
        if let Some(seen) = &self.origin.conversation {
            let said = answer.said();
            let fields = items::fields_of(&said);
            let status = items::text_of(&fields, "status");
            if !matches!(status.as_deref(), Some("completed" | "incomplete")) {
                return;
            }
            let question = std::str::from_utf8(body).unwrap_or("{}");
            let input = items::input_items(question, &id).unwrap_or_default();
            let said = input.into_iter().chain(items::output_items(&fields));
            let said: Vec<_> =
                said.map(|json| Said { dialect: Dialect::Responses, json }).collect();
            self.add_to(seen, &said).await;
        }
    }

    fn keep_message(&self, body: &Bytes, shared: &[Range<usize>], answer: &Whole) {
        let Some(id) = answer.id() else { return };
        let asked = Asked { origin: &self.origin, body: [b"", body, b""], shared };
        record::put(&self.app, self.owner, &id, &asked, answer);
    }

    async fn keep_contents(&self, contents: &[String], token: &str, object: &[u8]) {
        let Some(seen) = &self.origin.conversation else { return };
        let said = |(at, content): (usize, &String)| {
            let json = items::content_item(content, token, at);
            Said { dialect: Dialect::Gemini, json }
        };
        let answer = answered_content(object);
        let all: Vec<_> = contents.iter().chain(&answer).enumerate().map(said).collect();
        self.add_to(seen, &all).await;
    }

    /// Adds a turn to its conversation, unless that was deleted while the turn was under way.
    async fn add_to(&self, seen: &Seen, said: &[Said]) {
        let conversation = Conversation { app: &self.app, owner: self.owner, id: &seen.name };
        if conversation.go_on(seen).await {
            conversation.add(said);
            conversation.set_tools(&self.tools).await;
        }
    }
}

/// As much of a question as is asked for again: what was said. The tools stand in the answer.
/// `input`: where that stands, where it is known.
fn asked(body: &[u8], input: Option<Range<usize>>) -> [&[u8]; 3] {
    let look = || {
        let fields: Fields<'_> = json::parse(std::str::from_utf8(body).ok()?).ok()?;
        fields.0.into_iter().find(|(name, _)| name == "input")?.1.as_borrowed().map(str::as_bytes)
    };
    match input.and_then(|place| body.get(place)).or_else(look) {
        Some(input) => [b"{\"input\":", input, b"}"],
        None => [b"", b"{}", b""],
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
