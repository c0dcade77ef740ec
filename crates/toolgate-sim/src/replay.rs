//! Replay of recorded exchanges.
//!
//! A cassette is a JSON list of `{method, path, query, request, status, content_type, response}`;
//! `response` is the body as it was sent, stream frames included. A request gets the recorded answers
//! for the last segment of its path, in order; the last one repeats. Requests are not compared.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::plan::{JSON, Plan, SSE, Step};

/// Recorded exchanges.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cassette {
    exchanges: Vec<(Exchange, Vec<Bytes>)>,
}

/// One recorded exchange.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Exchange {
    /// `POST`
    pub method: String,
    /// The path, without the query.
    pub path: String,
    /// The query, in whatever form it was recorded.
    pub query: Value,
    /// The request's body.
    pub request: Value,
    /// The HTTP status.
    pub status: u16,
    /// `Content-Type`
    pub content_type: String,
    /// The answer's body.
    pub response: Value,
}

impl Cassette {
    /// Reads a cassette.
    pub fn parse(json: &str) -> Result<Self, serde_json::Error> {
        let exchanges: Vec<Exchange> = serde_json::from_str(json)?;
        Ok(Self::new(exchanges))
    }

    /// Creates a cassette. Bodies are split into frames once, here.
    pub fn new(exchanges: Vec<Exchange>) -> Self {
        let exchanges = exchanges.into_iter().map(|exchange| {
            let body = exchange
                .response
                .as_str()
                .map_or_else(|| exchange.response.to_string(), str::to_owned);
            let frames = frames(&Bytes::from(body));
            (exchange, frames)
        });
        Self { exchanges: exchanges.collect() }
    }

    /// Answer to the next request for a path; `None` if none was recorded.
    pub(crate) fn next(&self, used: &mut Vec<u64>, path: &str) -> Option<Plan> {
        used.resize(self.exchanges.len(), 0);
        let method = |path: &str| path.rsplit('/').next().unwrap_or("").to_owned();
        let wanted = method(path);
        let matching = || {
            let all = self.exchanges.iter().enumerate();
            all.filter(|(_, (exchange, _))| method(&exchange.path) == wanted)
        };
        let (at, (exchange, frames)) = matching()
            .find(|(at, _)| used.get(*at).is_some_and(|used| *used == 0))
            .or_else(|| matching().next_back())?;
        if let Some(used) = used.get_mut(at) {
            *used += 1;
        }
        let content_type = if exchange.content_type.starts_with(SSE) { SSE } else { JSON };
        let mut plan = Plan::whole(exchange.status, content_type, Bytes::new());
        plan.steps = frames.iter().cloned().map(Step::Send).collect();
        Some(plan)
    }
}

/// Splits a body after every blank line.
fn frames(body: &Bytes) -> Vec<Bytes> {
    let mut frames = Vec::new();
    let mut start = 0;
    for at in 0..body.len() {
        let end = at + 1;
        let is_blank =
            body[start..end].ends_with(b"\r\n\r\n") || body[start..end].ends_with(b"\n\n");
        if is_blank {
            frames.push(body.slice(start..end));
            start = end;
        }
    }
    if start < body.len() {
        frames.push(body.slice(start..));
    }
    frames
}
