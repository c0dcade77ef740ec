//! Anthropic's message threads: a request that holds only what is new.
//!
//! Anthropic's SDKs begin a thread by default when they run tools, and go on in it with nothing but
//! the results. System prompt and tools are those that the thread was last given.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use toolgate_core::anthropic::ThreadRefusal;
use toolgate_core::json::{self, Fields, Kind as Json, Path, Raw, write};

use super::before::Before;
use super::chain::{self, Behind, Pair};
use super::conversation::Tools;
use super::keeper::{Keeper, Question};
use super::{Opened, Refused, text};
use crate::doors::Visit;

/// Completes a request from the store; `None` where it is in no thread.
pub(crate) async fn open(visit: &Visit, body: &Bytes) -> Result<Option<Opened>, Refused> {
    if memchr::memmem::find(body, b"\"thread\"").is_none() {
        return Ok(None);
    }
    let fields: Fields<'_> = json::look(text(body)?, &Path::Root)?;
    let thread = fields.get("thread").filter(|raw| raw.kind() == Json::Object);
    let Some(thread) = thread.and_then(Raw::fields) else { return Ok(None) };
    let word =
        |name: &str| thread.get(name).and_then(Raw::as_text).map(|text| text.decode().into_owned());
    let (app, owner) = (&visit.app, visit.client.owner);
    let mut shared: Vec<_> =
        INHERITED.into_iter().filter_map(|name| place_of(body, fields.get(name)?)).collect();
    shared.sort_unstable_by_key(|place| place.start);
    let mut keeper = Keeper {
        app: Arc::clone(app),
        owner,
        question: Question::Messages { body: body.clone(), shared },
        behind: Behind::default(),
        tools: Tools::Same,
    };
    let mut whole = body.clone();
    if word("type").as_deref() == Some("continue") {
        // Where the id is missing, the decoder says so.
        let Some(id) = word("previous_message_id") else { return Ok(None) };
        let unknown = || Refused::Thread(ThreadRefusal::NotFound);
        let chain = chain::chain(app, owner, &id).await;
        // Who has everything sends it again, rather than go on without some of it.
        let chain = chain.filter(|chain| chain.missing.is_empty()).ok_or_else(unknown)?;
        whole = continued(&fields, &chain.pairs).ok_or_else(unknown)?;
        keeper.behind.path = chain.path;
    }
    Ok(Some(Opened { body: whole, before: Before::default(), keeper }))
}

/// What a thread remembers beside its messages.
const INHERITED: [&str; 2] = ["system", "tools"];

/// Where in a body a value stands that was read from it.
fn place_of(body: &Bytes, value: &Raw<'_>) -> Option<Range<usize>> {
    let start = (value.get().as_ptr() as usize).checked_sub(body.as_ptr() as usize)?;
    let end = start + value.get().len();
    (end <= body.len()).then_some(start..end)
}

/// The body with all messages of its thread.
fn continued(fields: &Fields<'_>, pairs: &[Pair]) -> Option<Bytes> {
    let questions =
        pairs.iter().map(|(_, record)| serde_json::from_slice::<Fields<'_>>(&record.question));
    let questions: Vec<_> = questions.collect::<Result<_, _>>().ok()?;
    let mut out = b"{".to_vec();
    for (name, value) in fields.0.iter().filter(|(name, _)| name != "messages") {
        write::key(&mut out, name);
        out.extend_from_slice(value.get().as_bytes());
    }
    for name in INHERITED.into_iter().filter(|name| fields.get(name).is_none()) {
        if let Some(value) = questions.iter().rev().find_map(|question| question.get(name)) {
            write::key(&mut out, name);
            out.extend_from_slice(value.get().as_bytes());
        }
    }
    write::key(&mut out, "messages");
    out.push(b'[');
    for (question, (_, record)) in questions.iter().zip(pairs) {
        add_messages(question, &mut out);
        let answer: Fields<'_> = serde_json::from_slice(&record.answer).ok()?;
        write::comma(&mut out);
        out.extend_from_slice(b"{\"role\":\"assistant\",\"content\":");
        out.extend_from_slice(answer.get("content")?.get().as_bytes());
        out.push(b'}');
    }
    add_messages(fields, &mut out);
    out.extend_from_slice(b"]}");
    Some(Bytes::from(out))
}

fn add_messages(fields: &Fields<'_>, out: &mut Vec<u8>) {
    for message in fields.get("messages").and_then(Raw::items).unwrap_or_default() {
        write::comma(out);
        out.extend_from_slice(message.get().as_bytes());
    }
}
