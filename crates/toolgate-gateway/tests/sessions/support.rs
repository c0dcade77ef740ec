//! A gateway on a port of its own, and a client for it.

// The dialect's rules, as the core's own tests have them.
#[path = "../../../toolgate-core/tests/grammar/responses.rs"]
pub(crate) mod grammar;

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use toolgate_gateway::config::{Config, Sources};
use toolgate_gateway::{Running, start};
use toolgate_sim::{RunningSim, Script, Sim, SimConfig};

/// A gateway and the simulator behind it.
pub(crate) struct Gate {
    pub(crate) running: Running,
    pub(crate) sim: RunningSim,
    client: Client<HttpConnector, Full<Bytes>>,
}

fn config(sim: &RunningSim, settings: &str) -> Config {
    let url = sim.url();
    let file = format!(
        "listen = \"127.0.0.1:0\"\n{settings}\n[upstream]\nkind = \"developer\"\nurl = \"{url}\"\napi_keys = [\"k\"]\n"
    );
    let sources = Sources { file: Some(("test", &file)), env: &|_| None, flags: &[] };
    Config::resolve(&sources).unwrap()
}

/// An answer, read to its end.
#[derive(Debug)]
pub(crate) struct Got {
    pub(crate) status: u16,
    pub(crate) text: String,
}

impl Got {
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("{self:?}"))
    }

    /// The JSON of a success.
    #[track_caller]
    pub(crate) fn ok(&self) -> Value {
        assert_eq!(self.status, 200, "{self:?}");
        self.json()
    }

    /// The data of server-sent events.
    #[track_caller]
    pub(crate) fn events(&self) -> Vec<Value> {
        assert_eq!(self.status, 200, "{self:?}");
        let data = self.text.lines().filter_map(|line| line.strip_prefix("data: "));
        data.map(|data| serde_json::from_str(data).unwrap()).collect()
    }
}

impl Gate {
    /// With the demo model behind it.
    pub(crate) async fn new() -> Self {
        Self::with(SimConfig::default(), "").await
    }

    /// With a script behind it.
    pub(crate) async fn scripted(script: Script) -> Self {
        Self::with(SimConfig::scripted(script), "").await
    }

    /// With settings of its own.
    pub(crate) async fn with(sim: SimConfig, settings: &str) -> Self {
        let sim = Sim::start(sim).await.unwrap();
        Self::before(sim, settings).await
    }

    /// Before a simulator that runs already.
    pub(crate) async fn before(sim: RunningSim, settings: &str) -> Self {
        let running = start(config(&sim, settings)).await.unwrap();
        let client = Client::builder(TokioExecutor::new()).build_http();
        Self { running, sim, client }
    }

    /// Takes other settings into force.
    pub(crate) fn reload(&self, settings: &str) {
        self.running.reload(config(&self.sim, settings)).unwrap();
    }

    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        key: &str,
        body: Option<&Value>,
    ) -> Got {
        self.send_with(method, path, &[("authorization", &format!("Bearer {key}"))], body).await
    }

    pub(crate) async fn send_with(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Got {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("http://{}{path}", self.running.addr))
            .header("content-type", "application/json");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = body.map_or_else(Bytes::new, |body| Bytes::from(body.to_string()));
        let response = self.client.request(request.body(Full::new(body)).unwrap()).await.unwrap();
        let status = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        Got { status, text: String::from_utf8(bytes.to_vec()).unwrap() }
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Got {
        self.send(Method::POST, path, "a", Some(&body)).await
    }

    /// The report of losses beside an answer.
    pub(crate) async fn reported(&self, path: &str, body: &Value) -> (String, Got) {
        let url = format!("http://{}{path}", self.running.addr);
        let request = Request::post(url)
            .header("authorization", "Bearer a")
            .header("x-toolgate-report", "1")
            .body(Full::new(Bytes::from(body.to_string())));
        let response = self.client.request(request.unwrap()).await.unwrap();
        let report = response.headers().get("x-toolgate-report");
        let report = report.map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default();
        let status = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (report, Got { status, text: String::from_utf8(bytes.to_vec()).unwrap() })
    }

    pub(crate) async fn get(&self, path: &str) -> Got {
        self.send(Method::GET, path, "a", None).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Got {
        self.send(Method::DELETE, path, "a", None).await
    }

    /// A response, in one piece.
    pub(crate) async fn respond(&self, body: Value) -> Value {
        self.post("/v1/responses", body).await.ok()
    }

    /// What the model was last asked.
    #[track_caller]
    pub(crate) fn last_asked(&self) -> Value {
        let seen = self.sim.requests();
        serde_json::from_slice(&seen.last().unwrap().raw).unwrap()
    }

    /// No request was refused, no signature was missing or used twice.
    #[track_caller]
    pub(crate) fn check_signatures(&self, real: bool) {
        let counters = self.sim.counters();
        assert_eq!(counters.refusals, 0, "{counters:?}");
        assert_eq!((counters.placeholders, counters.doubled), (0, 0), "{counters:?}");
        assert_eq!(counters.signatures > 0, real, "{counters:?}");
    }
}

/// A tool in the Responses form.
pub(crate) fn tool(name: &str) -> Value {
    json!({
        "type": "function",
        "name": name,
        "description": format!("Does {name}"),
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    })
}

/// The items of a type.
pub(crate) fn items<'v>(response: &'v Value, kind: &str) -> Vec<&'v Value> {
    let output = response["output"].as_array().map(Vec::as_slice).unwrap_or_default();
    output.iter().filter(|item| item["type"] == kind).collect()
}

/// The words of a response.
pub(crate) fn words(response: &Value) -> String {
    let messages = items(response, "message");
    messages.iter().filter_map(|item| item["content"][0]["text"].as_str()).collect()
}
