//! A gateway with the simulator behind it, and a client before it.
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
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use toolgate_gateway::config::{Config, Sources};
use toolgate_gateway::{Running, start};
use toolgate_sim::{Cassette, Driver, Exchange, RunningSim, Sim, SimConfig};

/// A gateway, the simulator behind it, and a client.
pub(crate) struct Lab {
    pub(crate) sim: RunningSim,
    pub(crate) gateway: Running,
    pub(crate) url: String,
    http: Client<HttpConnector, Full<Bytes>>,
}

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

impl Lab {
    /// The demo model behind a gateway with default settings.
    pub(crate) async fn new() -> Self {
        Self::with(SimConfig::default(), "").await
    }

    /// A gateway with settings (TOML) before a simulator.
    pub(crate) async fn with(sim: SimConfig, settings: &str) -> Self {
        let sim = Sim::start(sim).await.unwrap();
        let url = sim.url();
        let flags = [
            ("listen", "--listen", "127.0.0.1:0"),
            ("upstream.url", "--upstream-url", url.as_str()),
            ("upstream.api_keys", "--api-key", "test"),
        ];
        let file = Some(("test.toml", settings));
        let config = Config::resolve(&Sources { file, env: &|_| None, flags: &flags }).unwrap();
        let gateway = start(config).await.unwrap();
        let url = format!("http://{}", gateway.addr);
        let http = Client::builder(TokioExecutor::new()).build(HttpConnector::new());
        Self { sim, gateway, url, http }
    }

    /// Answers that were written down, one for each request, the last again and again.
    pub(crate) async fn replaying(answers: &[(u16, &str, &str)], settings: &str) -> Self {
        let exchanges = ["generateContent", "streamGenerateContent"].iter().flat_map(|verb| {
            answers.iter().map(move |(status, kind, body)| Exchange {
                path: format!("/v1beta/models/gemini-3.6-flash:{verb}"),
                status: *status,
                content_type: (*kind).to_owned(),
                response: Value::String((*body).to_owned()),
                ..Exchange::default()
            })
        });
        let driver = Driver::Replay(Cassette::new(exchanges.collect()));
        Self::with(SimConfig { driver, ..SimConfig::default() }, settings).await
    }

    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Got {
        let mut request = Request::builder().method(method).uri(format!("{}{path}", self.url));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(body.into())).unwrap();
        let (head, body) = self.http.request(request).await.unwrap().into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Got { status: head.status, headers: head.headers, body }
    }

    /// Asks, and waits for the answer's head only.
    pub(crate) async fn open(
        &self,
        path: &str,
        body: &Value,
    ) -> http::Response<hyper::body::Incoming> {
        let request = Request::post(format!("{}{path}", self.url));
        let request = request.body(Full::new(Bytes::from(body.to_string()))).unwrap();
        self.http.request(request).await.unwrap()
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Got {
        self.send(Method::POST, path, &[("content-type", "application/json")], body.to_string())
            .await
    }

    pub(crate) async fn get(&self, path: &str) -> Got {
        self.send(Method::GET, path, &[], "").await
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

/// The golden streams and what became of them.
pub(crate) fn golden_stream(name: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../toolgate-core/tests/golden/stream");
    std::fs::read_to_string(format!("{folder}/{name}.gemini.sse")).unwrap()
}

/// A golden error: status and body.
pub(crate) fn golden_error(name: &str) -> (u16, String) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../toolgate-core/tests/golden/error");
    let text = std::fs::read_to_string(format!("{folder}/{name}.json")).unwrap();
    let value: Value = serde_json::from_str(&text).unwrap();
    (value["status"].as_u64().unwrap() as u16, value["body"].to_string())
}
