//! Answers in the form that their method gives them.

use bytes::Bytes;
use serde_json::{Value, json};
use toolgate_core::gemini::Backend;
use toolgate_validate::{Method, Request};

use crate::fault::Fault;
use crate::plan::{JSON, Plan, SSE, Step};
use crate::route;
use crate::tokens;
use crate::turn::Turn;

/// Whether a stream is asked for as events.
pub(crate) fn is_sse(query: &str) -> bool {
    route::parameter(query, "alt").as_deref() == Some("sse")
}

/// Lets the faults befall an answer.
pub(crate) fn hindered(mut plan: Plan, faults: &[Fault]) -> Plan {
    for fault in faults {
        fault.hinder(&mut plan);
    }
    plan
}

/// Puts responses into the frames of their method.
pub(crate) fn framed(chunks: Vec<Vec<u8>>, turn: &Turn, method: Method, query: &str) -> Plan {
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
    // A stream has no length, even if it is one chunk.
    plan.steps.push(Step::Flush);
    plan
}

/// The answer of countTokens.
pub(crate) fn counted(request: &Request, backend: Backend) -> Plan {
    let prompt = tokens::of_request(request);
    let mut details = vec![json!({"modality": "TEXT", "tokenCount": prompt.text})];
    if prompt.media > 0 {
        details.push(json!({"modality": "IMAGE", "tokenCount": prompt.media}));
    }
    let mut body = json!({"totalTokens": prompt.total(), "promptTokensDetails": details});
    if backend == Backend::Vertex {
        body["totalBillableCharacters"] = json!(prompt.text * 4);
    }
    pretty(&body)
}

/// A JSON answer.
pub(crate) fn pretty(value: &Value) -> Plan {
    let mut body = serde_json::to_vec_pretty(value).unwrap_or_default();
    body.push(b'\n');
    Plan::whole(200, JSON, body)
}

/// Google indents its answers unless told not to.
fn indented(json: &[u8]) -> Vec<u8> {
    let value: Value = serde_json::from_slice(json).unwrap_or_default();
    let mut body = serde_json::to_vec_pretty(&value).unwrap_or_default();
    body.push(b'\n');
    body
}
