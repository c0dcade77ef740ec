//! A gateway on a port of its own, and a client for it.

pub(crate) use toolgate_testing::grammar::responses as grammar;

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use toolgate_gateway::config::{Config, Sources};
use toolgate_gateway::{Running, start};
use toolgate_sim::{RunningSim, Script, Sim, SimConfig};

/// A gateway and the simulator behind it.
pub(crate) struct Gate {
    pub(crate) running: Running,
    pub(crate) sim: RunningSim,
    client: Client<HttpConnector, Full<Bytes>>,
}

fn config(url: &str, settings: &str) -> Config {
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
        let url = sim.url();
        Self::at(sim, &url, settings).await
    }

    async fn at(sim: RunningSim, url: &str, settings: &str) -> Self {
        let running = start(config(url, settings)).await.unwrap();
        let client = Client::builder(TokioExecutor::new()).build_http();
        Self { running, sim, client }
    }

    /// With a model whose answers are held back until they are let go.
    pub(crate) async fn held(script: Script, settings: &str) -> (Self, Hold) {
        let sim = Sim::start(SimConfig::scripted(script)).await.unwrap();
        let (hold, url) = Hold::before(&sim).await;
        (Self::at(sim, &url, settings).await, hold)
    }

    /// Waits until the model was asked so often.
    pub(crate) async fn until_asked(&self, times: usize) {
        until(async || self.sim.requests().len() >= times).await;
    }

    /// Takes other settings into force.
    pub(crate) fn reload(&self, settings: &str) {
        self.running.reload(config(&self.sim.url(), settings)).unwrap();
    }

    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        key: &str,
        body: Option<&Value>,
    ) -> Got {
        self.send_with(method, path, &[("authorization", &format!("Bearer client-{key}"))], body)
            .await
    }

    pub(crate) async fn send_with(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Got {
        let body = body.map(Value::to_string).unwrap_or_default();
        self.send_text(method, path, headers, body).await
    }

    async fn send_text(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: String,
    ) -> Got {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("http://{}{path}", self.running.addr))
            .header("content-type", "application/json");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(Bytes::from(body))).unwrap();
        let response = self.client.request(request).await.unwrap();
        let status = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        Got { status, text: String::from_utf8(bytes.to_vec()).unwrap() }
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Got {
        self.send(Method::POST, path, "a", Some(&body)).await
    }

    /// A body that is spelt in a way of its own.
    pub(crate) async fn post_text(&self, path: &str, body: String) -> Got {
        self.send_text(Method::POST, path, &[("authorization", "Bearer client-a")], body).await
    }

    /// The report of losses beside an answer.
    pub(crate) async fn reported(&self, path: &str, body: &Value) -> (String, Got) {
        let url = format!("http://{}{path}", self.running.addr);
        let request = Request::post(url)
            .header("authorization", "Bearer client-a")
            .header("x-toolgate-report", "1")
            .body(Full::new(Bytes::from(body.to_string())));
        let response = self.client.request(request.unwrap()).await.unwrap();
        let report = response.headers().get("x-toolgate-report");
        let report = report.map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default();
        let status = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (report, Got { status, text: String::from_utf8(bytes.to_vec()).unwrap() })
    }

    /// The first events of a stream, as many as wanted. Then the client leaves.
    pub(crate) async fn first_events(&self, path: &str, body: &Value, count: usize) -> Vec<Value> {
        let url = format!("http://{}{path}", self.running.addr);
        let request = Request::post(url).header("authorization", "Bearer client-a");
        let request = request.body(Full::new(Bytes::from(body.to_string()))).unwrap();
        let response = self.client.request(request).await.unwrap();
        let mut got = Got { status: response.status().as_u16(), text: String::new() };
        let mut body = response.into_body();
        while got.text.matches("\n\n").count() < count {
            let frame = body.frame().await.unwrap().unwrap().into_data().unwrap();
            got.text.push_str(std::str::from_utf8(&frame).unwrap());
        }
        got.events()
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

    /// The last request to the model.
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

/// Holds the model's answers back.
pub(crate) struct Hold(watch::Sender<bool>);

impl Hold {
    /// A proxy between a simulator and its clients.
    async fn before(sim: &RunningSim) -> (Self, String) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let to = sim.url().trim_start_matches("http://").to_owned();
        let (hold, held) = watch::channel(true);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(&to).await.unwrap();
                let (mut asks, mut hears) = client.into_split();
                let (mut answers, mut listens) = server.into_split();
                let mut held = held.clone();
                tokio::spawn(async move { tokio::io::copy(&mut asks, &mut listens).await });
                tokio::spawn(async move {
                    let mut bytes = vec![0; 1 << 16];
                    while let Ok(count @ 1..) = answers.read(&mut bytes).await {
                        let is_let_go = held.wait_for(|held| !held).await.is_ok();
                        if !is_let_go || hears.write_all(&bytes[..count]).await.is_err() {
                            return;
                        }
                    }
                });
            }
        });
        (Self(hold), url)
    }

    pub(crate) fn set(&self, held: bool) {
        self.0.send_replace(held);
    }
}

/// Waits until something is so.
pub(crate) async fn until(is_so: impl AsyncFn() -> bool) {
    for _ in 0..4000 {
        if is_so().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("it never was so");
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

/// Texts of the last request to the model, in order.
pub(crate) fn asked(gate: &Gate) -> Vec<String> {
    let asked = gate.last_asked();
    let contents = asked["contents"].as_array().unwrap();
    let parts = contents.iter().flat_map(|content| content["parts"].as_array().unwrap());
    parts.filter_map(|part| part["text"].as_str()).map(str::to_owned).collect()
}
