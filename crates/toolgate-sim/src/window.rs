//! What came in, for those who test.

use std::collections::VecDeque;

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Value, json};

/// A request that came in.
#[derive(Clone)]
pub struct Seen {
    /// Which request to a model it was, from 1; 0 for others.
    pub number: u64,
    /// `POST`
    pub method: String,
    /// The path.
    pub path: String,
    /// The query, without keys.
    pub query: String,
    /// The headers, without keys.
    pub headers: Vec<(String, String)>,
    /// The body as it came.
    pub raw: Bytes,
    /// The status that it got.
    pub status: u16,
    /// Why it was refused.
    pub refusal: Option<String>,
}

impl std::fmt::Debug for Seen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Seen")
            .field("number", &self.number)
            .field("method", &self.method)
            .field("path", &self.path)
            .field("bytes", &self.raw.len())
            .field("status", &self.status)
            .field("refusal", &self.refusal)
            .finish_non_exhaustive()
    }
}

impl Seen {
    /// The body, parsed; null if it is not JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.raw).unwrap_or(Value::Null)
    }

    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// All parts of all contents, with the role that said them.
    pub fn parts(&self) -> Vec<(String, Value)> {
        let body = self.json();
        let contents = body["contents"].as_array().cloned().unwrap_or_default();
        let mut parts = Vec::new();
        for content in contents {
            let role = content["role"].as_str().unwrap_or("user").to_owned();
            for part in content["parts"].as_array().into_iter().flatten() {
                parts.push((role.clone(), part.clone()));
            }
        }
        parts
    }

    /// The last response of a function.
    pub fn function_response(&self, name: &str) -> Option<Value> {
        let parts =
            self.parts().into_iter().rev().map(|(_, mut part)| part["functionResponse"].take());
        parts.into_iter().find(|response| response["name"] == *name)
    }

    /// The names of all declared functions, in order.
    pub fn function_names(&self) -> Vec<String> {
        let body = self.json();
        let tools = body["tools"].as_array().into_iter().flatten();
        let declared = tools.filter_map(|tool| tool["functionDeclarations"].as_array()).flatten();
        declared.filter_map(|it| it["name"].as_str()).map(str::to_owned).collect()
    }

    pub(crate) fn to_json(&self) -> Value {
        let headers: serde_json::Map<_, _> =
            self.headers.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
        json!({
            "number": self.number,
            "method": self.method,
            "path": self.path,
            "query": self.query,
            "headers": headers,
            "body": self.json(),
            "raw": String::from_utf8_lossy(&self.raw),
            "status": self.status,
            "refusal": self.refusal,
        })
    }
}

/// How often what happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Requests to models.
    pub requests: u64,
    /// Requests that were refused as Google would.
    pub refusals: u64,
    /// Requests that a script did not expect.
    pub unexpected: u64,
    /// Answers that said nothing because calls and responses did not match.
    pub mismatches: u64,
    /// Faults that were put in.
    pub faults: u64,
    /// Signatures that came back and were real.
    pub signatures: u64,
    /// Placeholders that came instead of signatures.
    pub placeholders: u64,
    /// Signatures that came back twice in one request.
    pub doubled: u64,
    /// Responses without the id that their call has.
    pub missing_ids: u64,
    /// Responses that were not in the order of their calls.
    pub reordered: u64,
    /// Answers that the client did not wait for.
    pub cancels: u64,
}

/// The last requests, within bounds.
#[derive(Debug, Default)]
pub(crate) struct Window {
    seen: VecDeque<Seen>,
    bytes: usize,
}

impl Window {
    pub(crate) fn push(&mut self, seen: Seen, most: usize, most_bytes: usize) {
        self.bytes += seen.raw.len();
        self.seen.push_back(seen);
        while self.seen.len() > most || self.bytes > most_bytes {
            let Some(gone) = self.seen.pop_front() else { break };
            self.bytes -= gone.raw.len();
        }
    }

    pub(crate) fn all(&self) -> Vec<Seen> {
        self.seen.iter().cloned().collect()
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}
