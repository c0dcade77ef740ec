//! Framing of answers: SSE, JSON array, or a single JSON body.

use bytes::Bytes;
use serde_json::{Value, json};
use toolgate_core::canon::Backend;
use toolgate_validate::{Method, Request};

use crate::fault::Fault;
use crate::plan::{JSON, Plan, SSE, Step};
use crate::route;
use crate::tokens;
use crate::turn::Turn;

/// Whether the query requests server-sent events.
pub(crate) fn is_sse(query: &str) -> bool {
    route::parameter(query, "alt").as_deref() == Some("sse")
}

/// Applies faults to an answer.
pub(crate) fn with_faults(mut plan: Plan, faults: &[Fault]) -> Plan {
    for fault in faults {
        fault.apply_to_plan(&mut plan);
    }
    plan
}

/// Frames responses for their method.
pub(crate) fn frame_chunks(chunks: Vec<Vec<u8>>, turn: &Turn, method: Method, query: &str) -> Plan {
    let mut plan = Plan::whole(200, JSON, Bytes::new());
    plan.delay = turn.delay;
    plan.steps.clear();
    let is_sse = is_sse(query);
    if method != Method::Stream {
        let is_plain = route::parameter(query, "prettyPrint").as_deref() == Some("false");
        let body = chunks.into_iter().next().unwrap_or_default();
        plan.steps.push(Step::Send(if is_plain { body.into() } else { indented(&body).into() }));
        return plan;
    }
    if is_sse {
        plan.content_type = SSE;
    }
    let last = chunks.len().saturating_sub(1);
    for (at, mut chunk) in chunks.into_iter().enumerate() {
        if at > 0 && !turn.pace.is_zero() {
            plan.steps.push(Step::Wait(turn.pace));
        }
        if is_sse {
            chunk.extend_from_slice(b"\r\n\r\n");
        } else {
            let before: &[u8] = if at == 0 { b"[" } else { b",\r\n" };
            let after: &[u8] = if at == last { b"\n]\n" } else { b"\n" };
            chunk = [before, &chunk, after].concat();
        }
        plan.steps.push(Step::Send(chunk.into()));
    }
    // A stream has no length, even if it is a single chunk.
    plan.steps.push(Step::Flush);
    plan
}

/// Answer of countTokens.
pub(crate) fn count_tokens(request: &Request, backend: Backend) -> Plan {
    let prompt = tokens::of_request(request);
    let mut details = vec![json!({"modality": "TEXT", "tokenCount": prompt.text})];
    if prompt.media > 0 {
        details.push(json!({"modality": "IMAGE", "tokenCount": prompt.media}));
    }
    let mut body = json!({"totalTokens": prompt.total(), "promptTokensDetails": details});
    if backend == Backend::Vertex {
        body["totalBillableCharacters"] = json!(prompt.text * 4);
    }
    json_plan(&body)
}

/// Indented JSON answer.
pub(crate) fn json_plan(value: &Value) -> Plan {
    let mut body = serde_json::to_vec_pretty(value).unwrap_or_default();
    body.push(b'\n');
    Plan::whole(200, JSON, body)
}

/// Indents JSON, as Google does by default.
fn indented(json: &[u8]) -> Vec<u8> {
    let value: Value = serde_json::from_slice(json).unwrap_or_default();
    let mut body = serde_json::to_vec_pretty(&value).unwrap_or_default();
    body.push(b'\n');
    body
}
