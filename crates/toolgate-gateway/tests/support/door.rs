//! The doors as clients know them: what is asked there, and the rules for what comes back.
#![allow(
    dead_code,
    clippy::allow_attributes,
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "each test file uses a part of it, and a test may fail"
)]

// The dialects' rules, as the core's own tests have them.
#[path = "../../../toolgate-core/tests/grammar/anthropic.rs"]
mod anthropic_grammar;
#[path = "../../../toolgate-core/tests/grammar/chat.rs"]
mod chat_grammar;
#[path = "../../../toolgate-core/tests/grammar/responses.rs"]
mod responses_grammar;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};

/// What a client got.
#[derive(Debug)]
pub(crate) struct Got {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Got {
    /// A good answer with this body.
    pub(crate) fn ok(body: Bytes) -> Self {
        Self { status: StatusCode::OK, headers: HeaderMap::new(), body }
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("not JSON: {}", self.text()))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// The data of every SSE frame that is JSON.
    pub(crate) fn events(&self) -> Vec<Value> {
        self.text()
            .lines()
            .filter_map(|line| line.strip_prefix("data:"))
            .filter_map(|data| serde_json::from_str(data.trim()).ok())
            .collect()
    }
}

/// The doors that translate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Door {
    Anthropic,
    Chat,
    Responses,
}

pub(crate) const DOORS: [Door; 3] = [Door::Anthropic, Door::Chat, Door::Responses];

impl Door {
    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::Anthropic => "/v1/messages",
            Self::Chat => "/v1/chat/completions",
            Self::Responses => "/v1/responses",
        }
    }

    /// A question with three tools, in this door's dialect.
    pub(crate) fn ask(self, stream: bool) -> Value {
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

    /// Holds what came to the dialect's own rules.
    #[track_caller]
    pub(crate) fn check(self, got: &Got, stream: bool) {
        if !got.status.is_success() {
            self.check_error(got);
            return;
        }
        match (self, stream) {
            (Self::Anthropic, true) => anthropic_grammar::check_stream(&got.body).unwrap(),
            (Self::Anthropic, false) => anthropic_grammar::check_message(&got.body).unwrap(),
            (Self::Chat, true) => drop(chat_grammar::check_stream(&got.body, true)),
            (Self::Chat, false) => drop(chat_grammar::check_response(&got.body)),
            (Self::Responses, true) => responses_grammar::check_stream(&got.body).unwrap(),
            (Self::Responses, false) => responses_grammar::check_response(&got.body).unwrap(),
        }
    }

    /// Whether a client is told that there is no answer, at once or in the end.
    pub(crate) fn is_error(self, got: &Got) -> bool {
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

    /// Every error is JSON in the door's dialect and names the request.
    #[track_caller]
    pub(crate) fn check_error(self, got: &Got) {
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
    let golden = include_str!("../../../toolgate-core/tests/golden/tools.anthropic.json");
    let request: Value = serde_json::from_str(golden).unwrap();
    let tools = request["tools"].as_array().unwrap();
    tools
        .iter()
        .map(|tool| (tool["name"].as_str().unwrap().to_owned(), tool["input_schema"].clone()))
        .collect()
}
