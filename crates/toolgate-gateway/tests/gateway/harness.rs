//! A gateway with the simulator behind it, and a client before it.
#![allow(
    dead_code,
    unused_imports,
    clippy::allow_attributes,
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "each test file uses a part of it, and a test may fail"
)]

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;
use toolgate_gateway::config::{Config, Sources};
use toolgate_gateway::{Running, start};
use toolgate_sim::{Cassette, Driver, Exchange, RunningSim, Sim, SimConfig};
pub(crate) use toolgate_testing::endpoint::{ENDPOINTS, Endpoint, Reply};

/// A gateway, the simulator behind it, and a client.
pub(crate) struct Lab {
    pub(crate) sim: RunningSim,
    pub(crate) gateway: Running,
    pub(crate) url: String,
    pub(crate) http: Client<HttpConnector, Full<Bytes>>,
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
        Self::before(sim, &url, settings).await
    }

    /// A gateway with settings (TOML) whose upstream is `url`.
    pub(crate) async fn before(sim: RunningSim, url: &str, settings: &str) -> Self {
        let flags = [
            ("listen", "--listen", "127.0.0.1:0"),
            ("upstream.url", "--upstream-url", url),
            ("upstream.api_keys", "--api-key", "test"),
        ];
        let file = Some(("test.toml", settings));
        let config = Config::resolve(&Sources { file, env: &|_| None, flags: &flags }).unwrap();
        Self::of(sim, start(config).await.unwrap())
    }

    /// A gateway and a simulator that run already.
    pub(crate) fn of(sim: RunningSim, gateway: Running) -> Self {
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
    ) -> Reply {
        let mut request = Request::builder().method(method).uri(format!("{}{path}", self.url));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(body.into())).unwrap();
        let (head, body) = self.http.request(request).await.unwrap().into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Reply { status: head.status, headers: head.headers, body }
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

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Reply {
        self.send(Method::POST, path, &[("content-type", "application/json")], body.to_string())
            .await
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.send(Method::GET, path, &[], "").await
    }
}
