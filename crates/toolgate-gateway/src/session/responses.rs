//! A request of the Responses API and what the store adds to it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use toolgate_core::canon::{Failure, FailureKind, Losses};
use toolgate_core::json::{self, Fields, Kind as Json, Path, Raw};
use toolgate_core::responses::{
    Amendment, amend, item_references, may_name_items, resolve_references, response_of,
};
use toolgate_core::translate::Dialect;

use super::before::{Before, Said};
use super::chain::{self, Origin, Until};
use super::conversation::{Conversation, Sticky, Tools, id_of};
use super::items::without_ids;
use super::keeper::{Keeper, Question};
use super::record::Record;
use super::{Local, Opened, Refused};
use crate::doors::Visit;
use crate::offload::heavy;

/// Completes a request from the store, or from the last answer of its connection.
pub(crate) async fn open(
    visit: &Visit,
    body: &Bytes,
    local: Option<&Local>,
) -> Result<Opened, Refused> {
    let text = text(body)?;
    let keeper = Keeper {
        app: Arc::clone(&visit.app),
        owner: visit.client.owner,
        question: Question::Body { body: body.clone(), is_whole: true },
        origin: Origin::default(),
        tools: Tools::Same,
    };
    // Most requests hold all that they need, and are not read twice.
    let is_mentioned = |name: &str| memchr::memmem::find(body, name.as_bytes()).is_some();
    let mentions = ["previous_response_id", "\"conversation\""];
    if !mentions.into_iter().any(is_mentioned) && !may_name_items(text) {
        return Ok(Opened { body: body.clone(), before: Before::default(), keeper });
    }
    completed(visit, text, local, keeper).await
}

/// A body's text.
pub(crate) fn text(body: &[u8]) -> Result<&str, Failure> {
    std::str::from_utf8(body).map_err(|error| {
        let message = format!("the body is not UTF-8 (at byte {})", error.valid_up_to());
        Failure::new(FailureKind::InvalidRequest, message)
    })
}

async fn completed(
    visit: &Visit,
    body: &str,
    local: Option<&Local>,
    mut keeper: Keeper,
) -> Result<Opened, Refused> {
    let (app, owner) = (&visit.app, visit.client.owner);
    let found = referenced(visit, body).await?;
    let body = resolve_references(body, |id| found.get(id).cloned())?;
    let fields: Fields<'_> = json::look(&body, &Path::Root)?;
    let given = |name: &str| fields.get(name).filter(|raw| raw.kind() != Json::Null);
    let previous = given("previous_response_id").and_then(Raw::as_text);
    let named = given("conversation").and_then(name_of);
    let (tools, choice) = (given("tools"), given("tool_choice"));
    let (mut said, mut sticky, mut is_local) = (Vec::new(), None, false);
    let mut taken = BTreeSet::new();
    let mut losses = Losses::new();
    if previous.is_some() && named.is_some() {
        let at = Path::Root;
        return Err(at
            .field("conversation")
            .bad("cannot be used together with previous_response_id")
            .into());
    }
    if let Some(previous) = previous {
        let previous = previous.decode();
        let chain = chain::said_until(app, owner, &previous).await;
        match local.and_then(|local| local.said(&previous)).filter(|_| chain.is_err()) {
            Some(local) if !chain::is_deleted(app, owner, &previous).await => {
                (said, is_local) = (local, true);
            }
            Some(_) | None => {
                let Until { origin, said: until, losses: lost } = chain?;
                (keeper.origin, said, losses) = (origin, until, lost);
            }
        }
    }
    if let Some(name) = named {
        let conversation = Conversation { app, owner, id: &name };
        require(&conversation).await?;
        let seen;
        (seen, said) = conversation.read().await;
        if memchr::memmem::find(body.as_bytes(), b"\"id\"").is_some() {
            taken = said.iter().filter_map(|said| id_of(&said.json)).collect();
        }
        if tools.is_none() {
            sticky = conversation.tools().await;
        }
        keeper.tools = Tools::new(Dialect::Responses, tools.map(Raw::get), choice.map(Raw::get));
        keeper.origin.conversation = Some(seen);
    }
    let (whole, mut before) = composed(&body, said, sticky.as_ref(), choice.is_some())?;
    before.losses = losses;
    // What was not stored must stand in the question for whoever goes on from its answer.
    let question = if is_local {
        whole.clone()
    } else if taken.is_empty() {
        Bytes::copy_from_slice(body.as_bytes())
    } else {
        Bytes::from(without_ids(&body, &taken)?)
    };
    keeper.question = Question::Body { body: question, is_whole: false };
    let body = whole;
    Ok(Opened { body, before, keeper })
}

/// The items that a body only names, where they are known.
async fn referenced(visit: &Visit, body: &str) -> Result<BTreeMap<String, String>, Refused> {
    let references = item_references(body)?;
    let mut found = BTreeMap::new();
    if references.is_empty() {
        return Ok(found);
    }
    let owner = visit.client.owner;
    let mut answers: Vec<_> =
        references.iter().filter_map(|reference| response_of(&reference.id)).collect();
    answers.sort_unstable();
    answers.dedup();
    let records = Record::all(&visit.app, owner, &answers).await;
    for (id, record) in answers.iter().zip(records) {
        let Some(record) = record.filter(|record| !record.is_deleted()) else { continue };
        heavy(record.size()).await;
        for item in record.items(id)? {
            if let Some(id) = id_of(&item) {
                found.insert(id, item);
            }
        }
    }
    Ok(found)
}

/// `"name"` or `{"id":"name"}`; whatever else it is, the decoder refuses it.
fn name_of(raw: &Raw<'_>) -> Option<String> {
    if let Some(text) = raw.as_text() {
        return Some(text.decode().into_owned());
    }
    raw.fields()?.get("id")?.as_text().map(|text| text.decode().into_owned())
}

/// Names that we gave out must be known; others are begun when they are first used.
pub(super) async fn require(conversation: &Conversation<'_>) -> Result<(), Refused> {
    let id = conversation.id;
    if id.is_empty() || id.len() > NAME_LIMIT {
        let message = format!("conversation: a name has 1 to {NAME_LIMIT} bytes");
        return Err(Failure::new(FailureKind::InvalidRequest, message).into());
    }
    let store = &conversation.app.store;
    if (!id.starts_with("conv_") && !store.is_degraded()) || conversation.head().await.is_some() {
        return Ok(());
    }
    if store.is_degraded() {
        return Err(super::away().into());
    }
    Err(Refused::Missing {
        message: format!("conversation with id '{id}' not found"),
        param: Some("conversation"),
        code: Some("conversation_not_found"),
    })
}

/// The longest name of a conversation.
const NAME_LIMIT: usize = 512;

/// The body with what its own dialect said last, and the rest before it.
fn composed(
    body: &str,
    mut said: Vec<Said>,
    sticky: Option<&Sticky>,
    chooses: bool,
) -> Result<(Bytes, Before), Refused> {
    let own = said.iter().rev().take_while(|said| said.dialect == Dialect::Responses).count();
    let own: Vec<String> =
        said.split_off(said.len() - own).into_iter().map(|said| said.json).collect();
    let mut before = Before::new(&said);
    let mut amendment = Amendment { items: &own, ..Amendment::default() };
    match sticky {
        Some(Sticky { dialect: Dialect::Responses, tools, choice }) => {
            amendment.tools = Some(tools);
            amendment.tool_choice = choice.as_deref();
        }
        Some(sticky) => before.tools = Some((sticky.dialect, sticky.body())),
        None => {}
    }
    before.old_choice = !chooses && sticky.is_some_and(|sticky| sticky.choice.is_some());
    Ok((Bytes::from(amend(body, &amendment)?), before))
}
