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
use super::chain::{self, Origin, Pair};
use super::conversation::Tools;
use super::keeper::{Keeper, Question};
use super::{Opened, Refused, text};
use crate::doors::Visit;

/// Completes a request from the store; `None` where it is in no thread.
pub(crate) async fn open(visit: &Visit, body: &Bytes) -> Result<Option<Opened>, Refused> {
    // A key may be spelt with escapes, and a letter's escape begins like this.
    if [&b"\"thread\""[..], b"\\u00"].iter().all(|it| memchr::memmem::find(body, it).is_none()) {
        return Ok(None);
    }
    let fields: Fields<'_> = json::look(text(body)?, &Path::Root)?;
    let thread = fields.get("thread").filter(|raw| raw.kind() == Json::Object);
    let Some(thread) = thread.and_then(Raw::fields) else { return Ok(None) };
    let word =
        |name: &str| thread.get(name).and_then(Raw::as_text).map(|text| text.decode().into_owned());
    let (app, owner) = (&visit.app, visit.client.owner);
    let mut shared: Vec<_> =
        INHERITED.into_iter().filter_map(|name| place_of(body, given(&fields, name)?)).collect();
    shared.sort_unstable_by_key(|place| place.start);
    let mut keeper = Keeper {
        app: Arc::clone(app),
        owner,
        question: Question::Messages { body: body.clone(), shared },
        origin: Origin::default(),
        tools: Tools::Same,
    };
    let mut opened = (body.clone(), 0);
    if word("type").as_deref() == Some("continue") {
        // Where the id is missing or the messages are no list, the decoder says so.
        let Some(id) = word("previous_message_id") else { return Ok(None) };
        if given(&fields, "messages").is_some_and(|raw| raw.kind() != Json::Array) {
            return Ok(None);
        }
        let unknown = || Refused::Thread(ThreadRefusal::NotFound);
        let chain = chain::chain(app, owner, &id).await;
        // Who has everything sends it again, rather than go on without some of it.
        let chain = chain.filter(|chain| chain.missing.is_empty()).ok_or_else(unknown)?;
        opened = continued(&fields, &chain.pairs).ok_or_else(unknown)?;
        keeper.origin = Origin::after(chain.path);
    }
    let (body, earlier) = opened;
    Ok(Some(Opened { body, before: Before { earlier, ..Before::default() }, keeper }))
}

/// A place in the body that a thread was completed to, as its client counts: from the first message
/// of its own.
pub(crate) fn own_place(at: &mut String, earlier: usize) {
    let Some((number, rest)) = at.strip_prefix("messages[").and_then(|at| at.split_once(']'))
    else {
        return;
    };
    *at = match number.parse::<usize>().map(|number| number.checked_sub(earlier)) {
        Ok(Some(own)) => format!("messages[{own}]{rest}"),
        Ok(None) => format!("thread.{at}"),
        Err(_) => return,
    };
}

/// What a thread remembers beside its messages.
const INHERITED: [&str; 2] = ["system", "tools"];

/// What a request says under a name. `null` says nothing.
fn given<'f, 'a>(fields: &'f Fields<'a>, name: &str) -> Option<&'f Raw<'a>> {
    fields.get(name).filter(|raw| raw.kind() != Json::Null)
}

/// Where in a body a value stands that was read from it.
fn place_of(body: &Bytes, value: &Raw<'_>) -> Option<Range<usize>> {
    let start = (value.get().as_ptr() as usize).checked_sub(body.as_ptr() as usize)?;
    let end = start + value.get().len();
    (end <= body.len()).then_some(start..end)
}

/// The body with all messages of its thread, and how many come before its own.
fn continued(fields: &Fields<'_>, pairs: &[Pair]) -> Option<(Bytes, usize)> {
    let questions =
        pairs.iter().map(|(_, record)| serde_json::from_slice::<Fields<'_>>(&record.question));
    let questions: Vec<_> = questions.collect::<Result<_, _>>().ok()?;
    let inherited = INHERITED.map(|name| (name, given(fields, name).is_none()));
    let is_replaced = |name: &str| name == "messages" || inherited.contains(&(name, true));
    let mut out = b"{".to_vec();
    for (name, value) in fields.0.iter().filter(|(name, _)| !is_replaced(name)) {
        write::key(&mut out, name);
        out.extend_from_slice(value.get().as_bytes());
    }
    for name in INHERITED.into_iter().filter(|name| is_replaced(name)) {
        if let Some(value) = questions.iter().rev().find_map(|question| given(question, name)) {
            write::key(&mut out, name);
            out.extend_from_slice(value.get().as_bytes());
        }
    }
    write::key(&mut out, "messages");
    out.push(b'[');
    let mut earlier = 0;
    for (question, (_, record)) in questions.iter().zip(pairs) {
        earlier += add_messages(question, &mut out) + 1;
        let answer: Fields<'_> = serde_json::from_slice(&record.answer).ok()?;
        write::comma(&mut out);
        out.extend_from_slice(b"{\"role\":\"assistant\",\"content\":");
        out.extend_from_slice(answer.get("content")?.get().as_bytes());
        out.push(b'}');
    }
    add_messages(fields, &mut out);
    out.extend_from_slice(b"]}");
    Some((Bytes::from(out), earlier))
}

/// Adds a request's own messages, and says how many they are.
fn add_messages(fields: &Fields<'_>, out: &mut Vec<u8>) -> usize {
    let messages = fields.get("messages").and_then(Raw::items).unwrap_or_default();
    for message in &messages {
        write::comma(out);
        out.extend_from_slice(message.get().as_bytes());
    }
    messages.len()
}
