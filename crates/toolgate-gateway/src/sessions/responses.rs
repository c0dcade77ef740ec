//! Opens the session of a request to the Responses API.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use toolgate_core::canon::{Failure, FailureKind};
use toolgate_core::json::Path;
use toolgate_core::responses::{Parsed, response_of};
use toolgate_core::translate::Dialect;

use super::chain::{self, Origin};
use super::conversation::{Conversation, Tools, id_of};
use super::history::History;
use super::record::Record;
use super::recorder::{Question, Recorder};
use super::{LastAnswer, Opened, SessionError, Sessions};
use crate::offload::heavy;

/// Maximum length of a conversation's name, in bytes.
const MAX_NAME_BYTES: usize = 512;

/// Returns the text of a body.
pub(crate) fn text(body: &[u8]) -> Result<&str, Failure> {
    std::str::from_utf8(body).map_err(|error| {
        let message = format!("the body is not UTF-8 (at byte {})", error.valid_up_to());
        Failure::new(FailureKind::InvalidRequest, message)
    })
}

/// Reads the history of a request from the store, or from the last answer of its connection.
pub(crate) async fn open(
    sessions: &Sessions,
    parsed: &Parsed<'_>,
    body: &Bytes,
    last: Option<&LastAnswer>,
) -> Result<Opened, SessionError> {
    let mut history = History::default();
    let mut recorder = Recorder {
        sessions: sessions.clone(),
        question: Question::plain(body.clone()),
        origin: Origin::default(),
        tools: Tools::Same,
    };
    let (mut taken, mut unstored) = (BTreeSet::new(), None);
    let (previous, named) = (parsed.previous_response_id(), parsed.conversation());
    if previous.is_some() && named.is_some() {
        let reason = "cannot be used together with previous_response_id";
        return Err(Path::Root.field("conversation").bad(reason).into());
    }
    if let Some(previous) = previous {
        let chain = chain::history_until(sessions, previous).await;
        let local = last.and_then(|last| last.history(previous)).filter(|_| chain.is_err());
        match local {
            Some(local) if !chain::is_deleted(sessions, previous).await => {
                // It is not stored: the next answer's record must hold it.
                unstored = Some(Box::new(local.clone()));
                history = local;
            }
            Some(_) | None => (recorder.origin, history) = chain?,
        }
    }
    if let Some(name) = named {
        let conversation = Conversation { sessions, id: name };
        require(&conversation).await?;
        let (seen, stored) = conversation.read().await;
        if parsed.has_item_ids() {
            taken = stored.iter().filter_map(|item| id_of(&item.json)).collect();
        }
        history = History::of_conversation(stored, Dialect::Responses);
        if parsed.tools().is_none() {
            let has_choice = parsed.tool_choice().is_some();
            history.set_tools(conversation.tools().await, Dialect::Responses, has_choice);
        }
        recorder.tools = Tools::new(Dialect::Responses, parsed.tools(), parsed.tool_choice());
        recorder.origin.conversation = Some(seen);
    }
    history.references = referenced(sessions, parsed).await?;
    let references = history.references.clone();
    recorder.question = Question::Responses { body: body.clone(), references, taken, unstored };
    Ok(Opened { history, recorder })
}

/// Items that a request names by id, where they are stored.
async fn referenced(
    sessions: &Sessions,
    parsed: &Parsed<'_>,
) -> Result<BTreeMap<String, String>, SessionError> {
    let references = parsed.references();
    let mut found = BTreeMap::new();
    if references.is_empty() {
        return Ok(found);
    }
    let mut answers: Vec<_> = references.iter().filter_map(|id| response_of(id)).collect();
    answers.sort_unstable();
    answers.dedup();
    let records = Record::all(sessions, &answers).await;
    for (id, record) in answers.iter().zip(records) {
        let Some(record) = record.filter(|record| !record.is_deleted()) else { continue };
        heavy(record.size()).await;
        let items = record.items(id)?.filter_map(|item| Some((id_of(&item)?, item)));
        found.extend(items.filter(|(id, _)| references.contains(id)));
    }
    Ok(found)
}

/// Checks that a conversation can be used. Names that the gateway gave out must be stored; others are created
/// when they are first used.
pub(super) async fn require(conversation: &Conversation<'_>) -> Result<(), SessionError> {
    let id = conversation.id;
    if id.is_empty() || id.len() > MAX_NAME_BYTES {
        let message = format!("conversation: a name has 1 to {MAX_NAME_BYTES} bytes");
        return Err(Failure::new(FailureKind::InvalidRequest, message).into());
    }
    let store = conversation.sessions.store();
    if (!id.starts_with("conv_") && !store.is_degraded()) || conversation.head().await.is_some() {
        return Ok(());
    }
    if store.is_degraded() {
        return Err(super::away().into());
    }
    Err(SessionError::Missing {
        message: format!("conversation with id '{id}' not found"),
        param: Some("conversation"),
        code: Some("conversation_not_found"),
    })
}
