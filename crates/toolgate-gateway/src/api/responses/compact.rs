//! `POST /v1/responses/compact`: replaces a conversation by a summary.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http::Request;
use toolgate_core::dialect::DecodeOptions;
use toolgate_core::json::Raw;
use toolgate_core::responses::{encode_compacted, input_items, parse_request};
use toolgate_core::translate::Echo;

use super::endpoints::{DIALECT, json, wrong};
use crate::api::RequestContext;
use crate::api::loss_report::{wants_report, with_report};
use crate::api::reply::Reply;
use crate::api::source::{BodySource, Form};
use crate::sessions::{SessionError, is_trigger, named_item, open_responses, text};
use crate::turn::{self, Answered, Input, Prepared};

pub(super) async fn compact(
    context: &RequestContext,
    request: Request<Bytes>,
) -> Result<Reply, SessionError> {
    let (started, report) = (Instant::now(), wants_report(&request));
    let (source, prepared) = prepare(context, request.into_body()).await?;
    let audit = context.turn.audit(DIALECT).since(started);
    let input = Input::new(Arc::clone(&source) as _);
    let outcome = turn::run(&context.turn, &input, Some(prepared), audit).await?;
    // The request is for an answer in one piece.
    let Answered::Whole(answer) = outcome.answer else { return Ok(json("{}")) };
    let stamp = outcome.stamp;
    let encode = |context: RequestContext| async move {
        let token = stamp.ids.clone().long_token();
        let items = all_items(&source)?;
        let named = items.iter().enumerate().filter(|(_, item)| is_user_message(item));
        let named = named.filter_map(|(at, item)| Raw::parse(named_item(item, &token, at)));
        let users: Vec<_> = named.collect();
        let sealer = &context.turn.services.sealer;
        Ok::<_, SessionError>(encode_compacted(&answer, &users, &stamp, sealer))
    };
    let reply = json(context.compute(outcome.size, encode).await??);
    Ok(with_report(reply, report.then_some(outcome.losses)))
}

/// Reads the body, fetches its history, and prepares the turn that summarizes it.
async fn prepare(
    context: &RequestContext,
    body: Bytes,
) -> Result<(Arc<BodySource>, Prepared), SessionError> {
    let size = body.len();
    let memory = context.reserve(size).await?;
    let work = |context: RequestContext| async move {
        let _memory = memory;
        let options = DecodeOptions { sealer: &context.turn.services.sealer };
        let parsed = parse_request(text(&body)?)?;
        let session = open_responses(&context.sessions(), &parsed, &body, None).await?;
        let history = session.history;
        if !parsed.has_input() && history.is_empty() {
            return Err(wrong("input: missing, and the request continues nothing"));
        }
        let _memory = context.reserve_history(&history)?;
        let source =
            BodySource { dialect: DIALECT, body: body.clone(), form: Form::Summary, history };
        let source = Arc::new(source);
        let decoded = parsed.into_summary().decode(&source.history.stored(), &options)?;
        let mut decoded = decoded.map_echo(Echo::Responses);
        source.history.complete(&mut decoded, options)?;
        let input = Input::new(Arc::clone(&source) as _);
        let prepared = turn::prepare_decoded(&context.turn, &input, decoded).await?;
        Ok((Arc::clone(&source), prepared))
    };
    context.compute(size, work).await?
}

/// All items of the conversation: clients keep those of the user.
fn all_items(source: &BodySource) -> Result<Vec<Raw<'static>>, SessionError> {
    let own = input_items(text(&source.body)?)?;
    let own = own.iter().filter(|item| !is_trigger(item)).map(|item| item.get().to_owned());
    let stored = source.history.split_items()?;
    Ok(stored.into_iter().chain(own).filter_map(Raw::parse).collect())
}

/// Whether an item is a message of the user's.
fn is_user_message(item: &Raw<'_>) -> bool {
    let fields = item.fields().unwrap_or_default();
    let is = |name: &str, word: &str| {
        fields.get(name).and_then(Raw::as_text).is_some_and(|text| text.decode() == word)
    };
    is("role", "user") && (is("type", "message") || fields.get("type").is_none())
}
