//! `/v1/conversations`

use std::collections::BTreeSet;

use bytes::Bytes;
use http::Request;
use toolgate_core::json::{self, Fields, Kind as Json, Path, Raw, write};
use toolgate_core::responses::check_metadata;
use toolgate_core::translate::Dialect;

use super::endpoints::{json as answer, wrong};
use super::page::{Page, list};
use crate::api::RequestContext;
use crate::api::reply::Reply;
use crate::offload::heavy;
use crate::sessions::{self, Conversation, Head, SessionError, Sessions, StoredItem, Tools, id_of};

/// The most items that one request may add.
const ITEMS: usize = 20;

fn missing(id: &str) -> SessionError {
    SessionError::Missing {
        message: format!("conversation with id '{id}' not found"),
        param: Some("conversation_id"),
        code: Some("conversation_not_found"),
    }
}

fn of<'v>(sessions: &'v Sessions, id: &'v str) -> Conversation<'v> {
    Conversation { sessions, id }
}

async fn head(conversation: &Conversation<'_>) -> Result<Head, SessionError> {
    conversation.head().await.ok_or_else(|| missing(conversation.id))
}

/// The conversation object, with the tools that it remembers: an extension of OpenAI's.
async fn shown(conversation: &Conversation<'_>, head: &Head) -> Reply {
    let mut out = b"{".to_vec();
    write::key(&mut out, "id");
    write::string(&mut out, conversation.id);
    out.extend_from_slice(b",\"object\":\"conversation\"");
    write::key(&mut out, "created_at");
    write::integer(&mut out, head.created);
    write::key(&mut out, "metadata");
    out.extend_from_slice(head.metadata.as_bytes());
    if let Some(sticky) = conversation.tools().await {
        write::key(&mut out, "tools");
        out.extend_from_slice(sticky.tools.as_bytes());
        if let Some(choice) = &sticky.choice {
            write::key(&mut out, "tool_choice");
            out.extend_from_slice(choice.as_bytes());
        }
    }
    out.push(b'}');
    answer(out)
}

/// Members of a body about a conversation.
struct Given {
    metadata: Option<String>,
    items: Option<Vec<String>>,
    tools: Tools,
}

async fn read(context: &RequestContext, request: Request<Bytes>) -> Result<Given, SessionError> {
    let body = request.into_body();
    heavy(body.len()).await;
    if body.is_empty() {
        return Ok(Given { metadata: None, items: None, tools: Tools::Same });
    }
    let fields: Fields<'_> = json::look(sessions::text(&body)?, &Path::Root)?;
    let given = |name: &str| fields.get(name).filter(|raw| raw.kind() != Json::Null);
    let metadata = given("metadata");
    if let Some(metadata) = metadata {
        check_metadata(metadata)?;
    }
    let listed = given("items");
    let items = match listed.map(Raw::items) {
        None => Vec::new(),
        Some(Some(items)) if items.len() <= ITEMS => items,
        Some(Some(_)) => return Err(wrong(format!("items: at most {ITEMS} at a time"))),
        Some(None) => return Err(wrong("items: expected an array of items")),
    };
    if let Some(at) = items.iter().position(sessions::is_trigger) {
        return Err(wrong(format!("items[{at}]: only the input of a response may end in this")));
    }
    let token = context.turn.stamp().ids.token();
    let named = |(at, item): (usize, &Raw<'_>)| sessions::named_item(item, &token, at);
    let (tools, choice) = (given("tools"), given("tool_choice"));
    let items: Vec<_> = items.iter().enumerate().map(named).collect();
    let more = [("tools", tools), ("tool_choice", choice)];
    sessions::check_items(&items, &more, &context.turn.services.sealer)?;
    let tools = Tools::new(Dialect::Responses, tools.map(Raw::get), choice.map(Raw::get));
    let items = listed.map(|_| items);
    Ok(Given { metadata: metadata.map(|raw| raw.get().to_owned()), items, tools })
}

/// Whether every item has an id of its own; `taken` are those that others have.
fn check_ids(items: &[String], mut taken: BTreeSet<String>) -> Result<(), SessionError> {
    for (at, id) in items.iter().enumerate().filter_map(|(at, item)| Some((at, id_of(item)?))) {
        if taken.contains(&id) {
            return Err(wrong(format!("items[{at}].id: there is an item '{id}' already")));
        }
        taken.insert(id);
    }
    Ok(())
}

fn said(items: &[String]) -> Vec<StoredItem> {
    let said = |json: &String| StoredItem { dialect: Dialect::Responses, json: json.clone() };
    items.iter().map(said).collect()
}

/// `POST /v1/conversations`
pub(super) async fn create(
    context: &RequestContext,
    request: Request<Bytes>,
) -> Result<Reply, SessionError> {
    let given = read(context, request).await?;
    let items = given.items.unwrap_or_default();
    check_ids(&items, BTreeSet::new())?;
    let mut stamp = context.turn.stamp();
    stamp.ids.token();
    let id = format!("conv_{}", stamp.ids.token());
    let sessions = context.sessions();
    let conversation = of(&sessions, &id);
    let metadata = given.metadata.unwrap_or_else(|| "{}".to_owned());
    let head = Head::new(stamp.created, metadata);
    conversation.set_head(&head);
    conversation.add(&said(&items));
    conversation.set_tools(&given.tools).await;
    context.turn.services.store.flush().await;
    Ok(shown(&conversation, &head).await)
}

/// `GET /v1/conversations/{id}`
pub(super) async fn retrieve(context: &RequestContext, id: &str) -> Result<Reply, SessionError> {
    let sessions = context.sessions();
    let conversation = of(&sessions, id);
    let head = head(&conversation).await?;
    Ok(shown(&conversation, &head).await)
}

/// `POST /v1/conversations/{id}`
pub(super) async fn update(
    context: &RequestContext,
    id: &str,
    request: Request<Bytes>,
) -> Result<Reply, SessionError> {
    let sessions = context.sessions();
    let conversation = of(&sessions, id);
    let mut head = head(&conversation).await?;
    let given = read(context, request).await?;
    if let Some(metadata) = given.metadata {
        head.metadata = metadata;
    }
    conversation.set_head(&head);
    conversation.set_tools(&given.tools).await;
    context.turn.services.store.flush().await;
    Ok(shown(&conversation, &head).await)
}

/// `DELETE /v1/conversations/{id}`
pub(super) async fn delete(context: &RequestContext, id: &str) -> Result<Reply, SessionError> {
    let sessions = context.sessions();
    let conversation = of(&sessions, id);
    head(&conversation).await?;
    conversation.forget().await;
    let mut out = b"{".to_vec();
    write::key(&mut out, "id");
    write::string(&mut out, id);
    out.extend_from_slice(b",\"object\":\"conversation.deleted\",\"deleted\":true}");
    Ok(answer(out))
}

/// All items, oldest first. Contents of Gemini's dialect are shown as such.
async fn all(conversation: &Conversation<'_>) -> Vec<String> {
    let (_, said) = conversation.read().await;
    said.into_iter().map(|said| said.json).collect()
}

/// `GET /v1/conversations/{id}/items`
pub(super) async fn items(
    context: &RequestContext,
    id: &str,
    query: &str,
) -> Result<Reply, SessionError> {
    let sessions = context.sessions();
    let conversation = of(&sessions, id);
    head(&conversation).await?;
    Ok(answer(Page::new(query)?.of(all(&conversation).await)?))
}

/// `POST /v1/conversations/{id}/items`
pub(super) async fn add(
    context: &RequestContext,
    id: &str,
    request: Request<Bytes>,
) -> Result<Reply, SessionError> {
    let sessions = context.sessions();
    let conversation = of(&sessions, id);
    let head = head(&conversation).await?;
    let given = read(context, request).await?;
    let items = given.items.ok_or_else(|| wrong("items: missing"))?;
    let taken = all(&conversation).await;
    check_ids(&items, taken.iter().filter_map(|item| id_of(item)).collect())?;
    conversation.set_head(&head);
    conversation.add(&said(&items));
    context.turn.services.store.flush().await;
    Ok(answer(list(&items, false)))
}

fn no_item(item: &str) -> SessionError {
    SessionError::Missing {
        message: format!("item with id '{item}' not found"),
        param: Some("item_id"),
        code: Some("item_not_found"),
    }
}

/// `GET /v1/conversations/{id}/items/{item}`
pub(super) async fn item(
    context: &RequestContext,
    id: &str,
    item: &str,
) -> Result<Reply, SessionError> {
    let sessions = context.sessions();
    let conversation = of(&sessions, id);
    head(&conversation).await?;
    let found = all(&conversation).await.into_iter().find(|it| id_of(it).as_deref() == Some(item));
    found.map(answer).ok_or_else(|| no_item(item))
}

/// `DELETE /v1/conversations/{id}/items/{item}`
pub(super) async fn remove(
    context: &RequestContext,
    id: &str,
    item: &str,
) -> Result<Reply, SessionError> {
    let sessions = context.sessions();
    let conversation = of(&sessions, id);
    let head = head(&conversation).await?;
    if !all(&conversation).await.iter().any(|it| id_of(it).as_deref() == Some(item)) {
        return Err(no_item(item));
    }
    conversation.remove(item).await;
    context.turn.services.store.flush().await;
    Ok(shown(&conversation, &head).await)
}
