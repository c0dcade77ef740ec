//! Keeps answers when they are finished.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use toolgate_core::json::{Raw, write};
use toolgate_core::translate::{Dialect, Echo};

use super::before::Said;
use super::chain::Behind;
use super::conversation::{Conversation, Tools, id_of};
use super::items;
use crate::app::App;
use crate::auth::Owner;
use crate::store::Kind;

/// Knows where an answer belongs.
#[derive(Clone, Debug)]
pub(crate) struct Keeper {
    pub(super) app: Arc<App>,
    pub(super) owner: Owner,
    /// The question, as far as it is new.
    pub(super) question: Question,
    pub(super) behind: Behind,
    pub(super) tools: Tools,
}

/// What was asked.
#[derive(Clone, Debug)]
pub(super) enum Question {
    /// Of the Responses API: the body.
    Body(Bytes),
    /// Of the native endpoint: contents, and a token for the ids of the turn's items.
    Contents { contents: Vec<String>, token: String },
    /// Of a message thread: the body.
    Messages(Bytes),
}

impl Keeper {
    /// Keeps a finished answer, given as its client got it in one piece.
    pub(crate) async fn keep(&self, echo: &Echo, object: &[u8]) {
        match (&self.question, echo) {
            (Question::Body(body), Echo::Responses(echo)) => {
                self.keep_response(body, echo.store != Some(false), object).await;
            }
            (Question::Contents { contents, token }, _) => {
                self.keep_contents(contents, token, object).await;
            }
            (Question::Messages(body), _) => self.keep_message(body, object),
            (Question::Body(_), Echo::Anthropic(_) | Echo::Chat(_) | Echo::Gemini(_)) => {}
        }
        self.app.store.settle().await;
    }

    /// Keeps the events of a response that will be kept itself, so that it can be streamed again.
    pub(crate) fn keep_events(&self, id: &str, events: Vec<u8>) {
        let keep = self.app.config().state_retention;
        self.app.store.put(self.owner, Kind::Events, id, Bytes::from(events), keep);
    }

    async fn keep_response(&self, body: &Bytes, store: bool, object: &[u8]) {
        if !store && self.behind.conversation.is_none() {
            return;
        }
        let fields = items::fields_of(object);
        let text =
            |name: &str| fields.get(name).and_then(Raw::as_text).map(|it| it.decode().into_owned());
        let Some(id) = text("id") else { return };
        let output = items::output_items(&fields);
        if store {
            self.store_response(&id, &asked(body), object, &output);
        }
        let is_good = matches!(text("status").as_deref(), Some("completed" | "incomplete"));
        if let Some((conversation, _)) = self.behind.conversation.as_ref().filter(|_| is_good) {
            let conversation = Conversation { app: &self.app, owner: self.owner, id: conversation };
            let question = std::str::from_utf8(body).unwrap_or("{}");
            let input = items::input_items(question, &id).unwrap_or_default();
            let said = input.into_iter().chain(output);
            let said: Vec<_> =
                said.map(|json| Said { dialect: Dialect::Responses, json }).collect();
            conversation.touch(now()).await;
            conversation.add(&said);
            conversation.set_tools(&self.tools).await;
        }
    }

    /// Makes a response one that can be asked for.
    fn store_response(&self, id: &str, body: &Bytes, object: &[u8], output: &[String]) {
        self.store_answer(id, body, object);
        let (store, keep) = (&self.app.store, self.app.config().state_retention);
        for item in output.iter().filter_map(|item| id_of(item)) {
            store.put(self.owner, Kind::Item, &item, Bytes::copy_from_slice(id.as_bytes()), keep);
        }
    }

    fn keep_message(&self, body: &Bytes, object: &[u8]) {
        let fields = items::fields_of(object);
        let Some(id) = fields.get("id").and_then(Raw::as_text) else { return };
        self.store_answer(&id.decode(), body, object);
    }

    /// Makes an answer one that can be gone on from.
    fn store_answer(&self, id: &str, body: &Bytes, object: &[u8]) {
        let (store, keep) = (&self.app.store, self.app.config().state_retention);
        store.put(self.owner, Kind::Turn, id, self.behind.with(body), keep);
        store.put(self.owner, Kind::Answer, id, Bytes::copy_from_slice(object), keep);
    }

    async fn keep_contents(&self, contents: &[String], token: &str, object: &[u8]) {
        let Some((id, _)) = &self.behind.conversation else { return };
        let conversation = Conversation { app: &self.app, owner: self.owner, id };
        let said = |(at, content): (usize, &String)| {
            let json = items::content_item(content, token, at);
            Said { dialect: Dialect::Gemini, json }
        };
        let answer = answered_content(object);
        let all: Vec<_> = contents.iter().chain(&answer).enumerate().map(said).collect();
        conversation.touch(now()).await;
        conversation.add(&all);
        conversation.set_tools(&self.tools).await;
    }
}

/// As much of a question as is asked for again: what was said. The tools stand in the answer.
fn asked(body: &[u8]) -> Bytes {
    let mut out = b"{".to_vec();
    if let Some(input) = items::fields_of(body).get("input") {
        write::key(&mut out, "input");
        input.write(&mut out);
    }
    out.push(b'}');
    Bytes::from(out)
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
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
