//! `POST /v1/responses/compact`: a conversation in, a summary of it out.

use std::sync::Arc;

use bytes::Bytes;
use http::Request;
use hyper::body::Incoming;
use toolgate_core::json::{Raw, write};
use toolgate_core::responses::{encode_compacted, input_items};

use super::create::open;
use super::door::{DIALECT, json, wrong};
use crate::doors::Visit;
use crate::doors::turns::{self, Answered};
use crate::reply::Reply;
use crate::session::{self, Opened, Refused};
use crate::turn::Ask;

pub(super) async fn compact(visit: &Visit, request: Request<Incoming>) -> Result<Reply, Refused> {
    let report = turns::wants_report(&request);
    let body = visit.body(request).await?;
    let opened = open(visit, body, None).await?;
    let size = opened.body.len();
    let work = |_| async move { asked(&opened).map(|body| (body, opened)) };
    let (triggered, opened) = visit.compute(size, work).await??;
    let mut ask = Ask::new(DIALECT, triggered, &visit.client);
    ask.before = Arc::new(opened.before);
    let outcome = turns::run(visit, &ask).await?;
    let Answered::Whole(answer) = outcome.result else { return Ok(json("{}")) };
    let (body, stamp) = (opened.body, outcome.stamp);
    let encode = |visit: Visit| async move {
        let token = stamp.ids.clone().long_token();
        let items = conversation(session::text(&body)?)?;
        let kept = items.iter().enumerate().filter(|(_, item)| is_users(item));
        let kept = kept.filter_map(|(at, item)| Raw::parse(session::named_item(item, &token, at)));
        let kept: Vec<_> = kept.collect();
        Ok::<_, Refused>(encode_compacted(&answer, &kept, &stamp, &visit.app.sealer))
    };
    let mut reply = json(visit.compute(outcome.size, encode).await??);
    if report {
        turns::add_report(&mut reply, &outcome.losses);
    }
    Ok(reply)
}

/// The items of a body that are to be summed up.
fn conversation(body: &str) -> Result<Vec<Raw<'_>>, Refused> {
    let mut items = input_items(body)?;
    items.retain(|item| !session::is_trigger(item));
    Ok(items)
}

/// The body that asks for the summary.
fn asked(opened: &Opened) -> Result<Bytes, Refused> {
    let text = session::text(&opened.body)?;
    let items = conversation(text)?;
    let fields = session::fields_of(text.as_bytes());
    let is_silent = items.is_empty() || fields.get("input").map(Raw::get) == Some("\"\"");
    if is_silent && opened.before.turns.is_empty() {
        return Err(wrong("input: missing, and there is nothing before it"));
    }
    triggered(text, &items)
}

/// The body with a request for a summary at its end.
fn triggered(body: &str, items: &[Raw<'_>]) -> Result<Bytes, Refused> {
    let fields = session::fields_of(body.as_bytes());
    let mut out = b"{".to_vec();
    let left_out = ["input", "stream", "background", "store"];
    for (name, value) in fields.0.iter().filter(|(name, _)| !left_out.contains(&name.as_ref())) {
        write::key(&mut out, name);
        out.extend_from_slice(value.get().as_bytes());
    }
    write::key(&mut out, "input");
    out.push(b'[');
    for item in items {
        write::comma(&mut out);
        out.extend_from_slice(item.get().as_bytes());
    }
    write::comma(&mut out);
    out.extend_from_slice(b"{\"type\":\"compaction_trigger\"}]}");
    Ok(Bytes::from(out))
}

/// Whether an item is a message of the user's.
fn is_users(item: &Raw<'_>) -> bool {
    let fields = item.fields().unwrap_or_default();
    let is = |name: &str, word: &str| {
        fields.get(name).and_then(Raw::as_text).is_some_and(|text| text.decode() == word)
    };
    is("role", "user") && (is("type", "message") || fields.get("type").is_none())
}
