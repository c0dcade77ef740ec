//! Stored responses: retrieve, list, cancel, delete.

use bytes::Bytes;
use toolgate_core::json::{Raw, write};

use super::background;
use super::endpoints::{json, wrong};
use super::page::{Page, parameter};
use crate::api::RequestContext;
use crate::api::reply::{self, Reply};
use crate::offload::heavy;
use crate::sessions::{self, Record, SessionError, away};

fn missing(id: &str) -> SessionError {
    SessionError::Missing {
        message: format!("response with id '{id}' not found"),
        param: Some("response_id"),
        code: Some("response_not_found"),
    }
}

/// The response object. Anthropic messages, which are stored beside them, are none.
async fn object(context: &RequestContext, id: &str) -> Result<Bytes, SessionError> {
    if !id.starts_with("resp_") {
        return Err(missing(id));
    }
    let record = Record::get(&context.sessions(), id).await;
    record.map(|record| record.answer).ok_or_else(|| missing(id))
}

/// `GET /v1/responses/{id}`
pub(super) async fn retrieve(
    context: &RequestContext,
    id: &str,
    query: &str,
) -> Result<Reply, SessionError> {
    let object = object(context, id).await?;
    if parameter(query, "stream") != Some("true") {
        heavy(object.len()).await;
        return Ok(json(background::settled(context, id, object).await));
    }
    let start = match parameter(query, "starting_after").map(str::parse::<usize>) {
        None => 0,
        Some(Ok(number)) => number.saturating_add(1),
        Some(Err(_)) => return Err(wrong("starting_after: must be a sequence number")),
    };
    if let Some(response) = context.sessions().in_progress(id) {
        let body = background::events_body(response, start);
        return Ok(reply::stream("text/event-stream", body));
    }
    let events = match background::complete_events(context, id).await {
        Some(events) => background::frames_from(&events, start),
        None if context.turn.services.store.is_degraded() => return Err(away().into()),
        None => match background::interrupted_events(context, id, start).await {
            Some(events) => Bytes::from(events),
            None => return Err(wrong(NOT_STREAMED)),
        },
    };
    Ok(reply::stream("text/event-stream", reply::full(events)))
}

const NOT_STREAMED: &str =
    "stream: only responses that were streamed, or made in the background, can be streamed again";

/// `DELETE /v1/responses/{id}`
pub(super) async fn delete(context: &RequestContext, id: &str) -> Result<Reply, SessionError> {
    object(context, id).await?;
    let sessions = context.sessions();
    if let Some(response) = sessions.in_progress(id) {
        response.cancel();
        // Its last writes are deleted with the rest.
        response.ended().await;
    }
    sessions::delete_response(&sessions, id).await;
    sessions.ended_elsewhere(id).await;
    if object(context, id).await.is_ok() {
        // It was stored in the same moment.
        sessions::delete_response(&sessions, id).await;
    }
    let mut out = b"{".to_vec();
    write::key(&mut out, "id");
    write::string(&mut out, id);
    out.extend_from_slice(b",\"object\":\"response\",\"deleted\":true}");
    Ok(json(out))
}

/// `POST /v1/responses/{id}/cancel`
pub(super) async fn cancel(context: &RequestContext, id: &str) -> Result<Reply, SessionError> {
    let stored = object(context, id).await?;
    let size = stored.len();
    let is_background = |_| async move {
        sessions::fields_of(&stored).get("background").map(Raw::get) == Some("true")
    };
    if !context.compute(size, is_background).await? {
        return Err(wrong("only a response that is made in the background can be cancelled"));
    }
    if let Some(response) = context.sessions().in_progress(id) {
        response.cancel();
        response.ended().await;
    }
    let (stored, id) = (object(context, id).await?, id.to_owned());
    let settle = |context: RequestContext| async move {
        let stored = background::cancel_elsewhere(&context, &id, stored).await;
        background::settled(&context, &id, stored).await
    };
    Ok(json(context.compute(size, settle).await?))
}

/// `GET /v1/responses/{id}/input_items`
pub(super) async fn input_items(
    context: &RequestContext,
    id: &str,
    query: &str,
) -> Result<Reply, SessionError> {
    object(context, id).await?;
    let items = sessions::question_items(&context.sessions(), id).await;
    Ok(json(Page::new(query)?.of(items.ok_or_else(|| missing(id))?)?))
}
