//! The translating endpoints of a gateway: a request for each, and the rules for its answer.

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};

use crate::golden;
use crate::grammar::{anthropic, chat, responses};

/// Response of the gateway to a test client.
#[derive(Debug)]
pub struct Reply {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Reply {
    /// A good answer with this body.
    pub fn ok(body: Bytes) -> Self {
        Self { status: StatusCode::OK, headers: HeaderMap::new(), body }
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("not JSON: {}", self.text()))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// The data of every SSE frame that is JSON.
    pub fn events(&self) -> Vec<Value> {
        self.text()
            .lines()
            .filter_map(|line| line.strip_prefix("data:"))
            .filter_map(|data| serde_json::from_str(data.trim()).ok())
            .collect()
    }
}

/// The endpoints that translate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint {
    Anthropic,
    Chat,
    Responses,
}

pub const ENDPOINTS: [Endpoint; 3] = [Endpoint::Anthropic, Endpoint::Chat, Endpoint::Responses];

impl Endpoint {
    pub fn path(self) -> &'static str {
        match self {
            Self::Anthropic => "/v1/messages",
            Self::Chat => "/v1/chat/completions",
            Self::Responses => "/v1/responses",
        }
    }

    /// A question with three tools, in this endpoint's dialect.
    pub fn ask(self, stream: bool) -> Value {
        let model = "gemini-3.6-flash";
        let words = "Have a look, and tell me what is left to do.";
        let schemas = tools();
        match self {
            Self::Anthropic => json!({
                "model": model, "max_tokens": 4096, "stream": stream,
                "thinking": {"type": "adaptive"},
                "messages": [{"role": "user", "content": words}],
                "tools": schemas.iter().map(|(name, schema)| json!({"name": name, "description": "A tool.", "input_schema": schema})).collect::<Vec<_>>(),
            }),
            Self::Chat => json!({
                "model": model, "stream": stream, "reasoning_effort": "medium",
                "stream_options": if stream { json!({"include_usage": true}) } else { Value::Null },
                "messages": [{"role": "user", "content": words}],
                "tools": schemas.iter().map(|(name, schema)| json!({"type": "function", "function": {"name": name, "description": "A tool.", "parameters": schema}})).collect::<Vec<_>>(),
            }),
            Self::Responses => json!({
                "model": model, "stream": stream, "reasoning": {"summary": "auto"},
                "input": words,
                "tools": schemas.iter().map(|(name, schema)| json!({"type": "function", "name": name, "description": "A tool.", "parameters": schema})).collect::<Vec<_>>(),
            }),
        }
    }

    /// Checks a reply against the rules of the dialect.
    #[track_caller]
    pub fn check(self, got: &Reply, stream: bool) {
        if !got.status.is_success() {
            self.check_error(got);
            return;
        }
        match (self, stream) {
            (Self::Anthropic, true) => anthropic::check_stream(&got.body).unwrap(),
            (Self::Anthropic, false) => anthropic::check_message(&got.body).unwrap(),
            (Self::Chat, true) => drop(chat::check_stream(&got.body, true)),
            (Self::Chat, false) => drop(chat::check_response(&got.body)),
            (Self::Responses, true) => responses::check_stream(&got.body).unwrap(),
            (Self::Responses, false) => responses::check_response(&got.body).unwrap(),
        }
    }

    /// Whether a client is told that there is no answer, at once or in the end.
    pub fn is_error(self, got: &Reply) -> bool {
        if !got.status.is_success() {
            return true;
        }
        let events = got.events();
        let Some(last) = events.last() else { return false };
        match self {
            Self::Anthropic => last["type"] == "error",
            Self::Chat => last["error"].is_object(),
            Self::Responses => last["type"] == "response.failed",
        }
    }

    /// Every error is JSON in the endpoint's dialect and names the request.
    #[track_caller]
    pub fn check_error(self, got: &Reply) {
        let body = got.json();
        let id = got.header("x-toolgate-request-id").unwrap().to_owned();
        assert!(got.text().contains(&id), "no request id in {body}");
        match self {
            Self::Anthropic => {
                assert_eq!(body["type"], "error", "{body}");
                assert!(body["error"]["type"].is_string(), "{body}");
            }
            Self::Chat | Self::Responses => {
                assert!(body["error"]["type"].is_string(), "{body}");
                assert!(body["error"]["message"].is_string(), "{body}");
            }
        }
    }
}

/// Names and schemas of the tools that the golden answers call.
fn tools() -> Vec<(String, Value)> {
    let request: Value = serde_json::from_slice(&golden::file("tools.anthropic.json")).unwrap();
    let tools = request["tools"].as_array().unwrap();
    tools
        .iter()
        .map(|tool| (tool["name"].as_str().unwrap().to_owned(), tool["input_schema"].clone()))
        .collect()
}
