//! Responses that were stored: asked for, listed, cancelled, deleted.

use bytes::Bytes;
use toolgate_core::json::{Raw, write};

use super::door::{json, wrong};
use super::page::{Page, parameter};
use super::{background, live};
use crate::doors::Visit;
use crate::offload::heavy;
use crate::reply::{self, Reply};
use crate::session::{self, Record, Refused, away};

fn missing(id: &str) -> Refused {
    Refused::Missing {
        message: format!("response with id '{id}' not found"),
        param: Some("response_id"),
        code: Some("response_not_found"),
    }
}

/// The object of a response. Messages of Anthropic's are none.
async fn object(visit: &Visit, id: &str) -> Result<Bytes, Refused> {
    if !id.starts_with("resp_") {
        return Err(missing(id));
    }
    let record = Record::get(&visit.app, visit.client.owner, id).await;
    record.map(|record| record.answer).ok_or_else(|| missing(id))
}

/// `GET /v1/responses/{id}`
pub(super) async fn retrieve(visit: &Visit, id: &str, query: &str) -> Result<Reply, Refused> {
    let object = object(visit, id).await?;
    if parameter(query, "stream") != Some("true") {
        heavy(object.len()).await;
        return Ok(json(background::settled(visit, id, object).await));
    }
    let after = match parameter(query, "starting_after").map(str::parse::<usize>) {
        None => 0,
        Some(Ok(number)) => number.saturating_add(1),
        Some(Err(_)) => return Err(wrong("starting_after: must be a sequence number")),
    };
    if let Some(live) = visit.app.live.get(visit.client.owner, id) {
        return Ok(reply::stream("text/event-stream", live::shown(live, after)));
    }
    let events = match background::events(visit, id).await {
        Some(events) => from(&events, after),
        None if visit.app.store.is_degraded() => return Err(away().into()),
        None => match background::broken_off(visit, id, after).await {
            Some(events) => Bytes::from(events),
            None => return Err(wrong(NOT_STREAMED)),
        },
    };
    Ok(reply::stream("text/event-stream", reply::full(events)))
}

const NOT_STREAMED: &str =
    "stream: only responses that were streamed, or made in the background, can be streamed again";

/// The events from number `at` on.
fn from(events: &Bytes, at: usize) -> Bytes {
    let Some(last) = at.checked_sub(1) else { return events.clone() };
    let end = memchr::memmem::find_iter(events, b"\n\n").nth(last);
    events.slice(end.map_or(events.len(), |end| end + 2)..)
}

/// `DELETE /v1/responses/{id}`
pub(super) async fn delete(visit: &Visit, id: &str) -> Result<Reply, Refused> {
    object(visit, id).await?;
    let (app, owner) = (&visit.app, visit.client.owner);
    if let Some(live) = app.live.get(owner, id) {
        live.cancel();
        // What it still writes down is deleted with the rest.
        live.ended().await;
    }
    session::delete_response(app, owner, id).await;
    live::ended_elsewhere(app, owner, id).await;
    if object(visit, id).await.is_ok() {
        // It was written down in the same moment.
        session::delete_response(app, owner, id).await;
    }
    let mut out = b"{".to_vec();
    write::key(&mut out, "id");
    write::string(&mut out, id);
    out.extend_from_slice(b",\"object\":\"response\",\"deleted\":true}");
    Ok(json(out))
}

/// `POST /v1/responses/{id}/cancel`
pub(super) async fn cancel(visit: &Visit, id: &str) -> Result<Reply, Refused> {
    let kept = object(visit, id).await?;
    let size = kept.len();
    let is_background = |_| async move {
        session::fields_of(&kept).get("background").map(Raw::get) == Some("true")
    };
    if !visit.compute(size, is_background).await? {
        return Err(wrong("only a response that is made in the background can be cancelled"));
    }
    if let Some(live) = visit.app.live.get(visit.client.owner, id) {
        live.cancel();
        live.ended().await;
    }
    let (kept, id) = (object(visit, id).await?, id.to_owned());
    let settle = |visit: Visit| async move {
        let kept = background::cancel_elsewhere(&visit, &id, kept).await;
        background::settled(&visit, &id, kept).await
    };
    Ok(json(visit.compute(size, settle).await?))
}

/// `GET /v1/responses/{id}/input_items`
pub(super) async fn input_items(visit: &Visit, id: &str, query: &str) -> Result<Reply, Refused> {
    object(visit, id).await?;
    let items = session::question_items(&visit.app, visit.client.owner, id).await;
    Ok(json(Page::new(query)?.of(items.ok_or_else(|| missing(id))?)?))
}
