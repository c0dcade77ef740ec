//! Log of received requests and counters, for tests.

use std::collections::VecDeque;

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Value, json};

/// A received request.
#[derive(Clone)]
pub struct RecordedRequest {
    /// Number among the requests to models, from 1; 0 for other requests.
    pub number: u64,
    /// `POST`
    pub method: String,
    /// The path.
    pub path: String,
    /// The query, without keys.
    pub query: String,
    /// The headers, without keys.
    pub headers: Vec<(String, String)>,
    /// The body as received.
    pub raw: Bytes,
    /// Status of the answer.
    pub status: u16,
    /// Message of the refusal.
    pub refusal: Option<String>,
}

impl std::fmt::Debug for RecordedRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RecordedRequest")
            .field("number", &self.number)
            .field("method", &self.method)
            .field("path", &self.path)
            .field("bytes", &self.raw.len())
            .field("status", &self.status)
            .field("refusal", &self.refusal)
            .finish_non_exhaustive()
    }
}

impl RecordedRequest {
    /// Returns the parsed body; null if it is not JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.raw).unwrap_or(Value::Null)
    }

    /// Returns the value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// All parts of all contents, with their roles.
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

    /// Returns the last response of a function.
    pub fn function_response(&self, name: &str) -> Option<Value> {
        let parts =
            self.parts().into_iter().rev().map(|(_, mut part)| part["functionResponse"].take());
        parts.into_iter().find(|response| response["name"] == *name)
    }

    /// Names of all declared functions, in order.
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

/// Counters of events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Requests to models.
    pub requests: u64,
    /// Requests refused with a Google error.
    pub refusals: u64,
    /// Requests that the script or the recording did not expect.
    pub unexpected: u64,
    /// Empty answers because of a mismatch of calls and responses.
    pub mismatches: u64,
    /// Injected faults.
    pub faults: u64,
    /// Genuine signatures received.
    pub signatures: u64,
    /// Placeholders received instead of signatures.
    pub placeholders: u64,
    /// Repeated signatures within one request.
    pub doubled: u64,
    /// Responses that lack the id of their call.
    pub missing_ids: u64,
    /// Responses out of the order of their calls.
    pub reordered: u64,
    /// Answers that the client cancelled.
    pub cancels: u64,
}

/// The last requests, bounded in number and bytes.
#[derive(Debug, Default)]
pub(crate) struct RequestLog {
    requests: VecDeque<RecordedRequest>,
    bytes: usize,
}

impl RequestLog {
    pub(crate) fn push(&mut self, request: RecordedRequest, max_requests: usize, max_bytes: usize) {
        self.bytes += request.raw.len();
        self.requests.push_back(request);
        while self.requests.len() > max_requests || self.bytes > max_bytes {
            let Some(evicted) = self.requests.pop_front() else { break };
            self.bytes -= evicted.raw.len();
        }
    }

    pub(crate) fn all(&self) -> Vec<RecordedRequest> {
        self.requests.iter().cloned().collect()
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}
