//! `POST /v1/responses/compact`: a conversation in, a summary of it out.

use bytes::Bytes;
use http::Request;
use hyper::body::Incoming;
use toolgate_core::json::{Raw, write};
use toolgate_core::responses::{encode_compacted, input_items};

use super::door::{DIALECT, json, wrong};
use crate::doors::Visit;
use crate::doors::turns::{self, Answered};
use crate::reply::Reply;
use crate::session::{self, Refused};
use crate::turn::Ask;

pub(super) async fn compact(visit: &Visit, request: Request<Incoming>) -> Result<Reply, Refused> {
    let report = turns::wants_report(&request);
    let body = visit.body(request).await?;
    let opened = session::open_responses(visit, &body, None).await?;
    let text = session::text(&opened.body)?;
    let mut items = input_items(text)?;
    items.retain(|item| !session::is_trigger(item));
    let fields = session::fields_of(text.as_bytes());
    let is_silent = items.is_empty() || fields.get("input").map(Raw::get) == Some("\"\"");
    if is_silent && opened.before.turns.is_empty() {
        return Err(wrong("input: missing, and there is nothing before it"));
    }
    let mut ask = Ask::new(DIALECT, triggered(text, &items)?, &visit.client);
    ask.before = opened.before;
    let outcome = turns::run(visit, &ask).await?;
    let Answered::Whole(answer) = outcome.result else { return Ok(json("{}")) };
    let token = outcome.stamp.ids.clone().long_token();
    let kept = items.iter().enumerate().filter(|(_, item)| is_users(item));
    let kept = kept.filter_map(|(at, item)| Raw::parse(session::named_item(item, &token, at)));
    let kept: Vec<_> = kept.collect();
    let compacted = encode_compacted(&answer, &kept, &outcome.stamp, &visit.app.sealer);
    let mut reply = json(compacted);
    if report {
        turns::add_report(&mut reply, &outcome.losses);
    }
    Ok(reply)
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
