//! An upstream whose answers a test chooses, and which records its requests.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};
use toolgate_gateway::Running;
use toolgate_gateway::config::{Config, Sources};
use toolgate_gateway::start;

/// A request as it reached the upstream.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) uri: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

impl Seen {
    /// The API key that was presented.
    pub(crate) fn key(&self) -> &str {
        self.header("x-goog-api-key")
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The names of the functions that were declared.
    pub(crate) fn functions(&self) -> Vec<&str> {
        let declared = self.body["tools"][0]["functionDeclarations"].as_array();
        declared.into_iter().flatten().filter_map(|it| it["name"].as_str()).collect()
    }
}

/// A gateway and the upstream behind it.
pub(crate) struct Fake {
    pub(crate) gateway: Running,
    seen: Arc<Mutex<Vec<Seen>>>,
    http: Client<HttpConnector, Full<Bytes>>,
}

impl Fake {
    /// Starts an upstream that answers as the function says, and a gateway with these settings.
    pub(crate) async fn start(
        settings: &str,
        answer: impl Fn(&Seen) -> (u16, Value) + Send + Sync + 'static,
    ) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (log, answer) = (Arc::clone(&seen), Arc::new(answer));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (log, answer) = (Arc::clone(&log), Arc::clone(&answer));
                let service = service_fn(move |request: Request<Incoming>| {
                    let (log, answer) = (Arc::clone(&log), Arc::clone(&answer));
                    async move {
                        let (head, body) = request.into_parts();
                        let body = body.collect().await.unwrap().to_bytes();
                        let body = serde_json::from_slice(&body).unwrap_or_default();
                        let uri = head.uri.to_string();
                        let seen = Seen { uri, headers: head.headers, body };
                        let (status, body) = answer(&seen);
                        log.lock().unwrap().push(seen);
                        let reply = Response::builder()
                            .status(status)
                            .header("content-type", "application/json")
                            .body(Full::new(Bytes::from(body.to_string())));
                        Ok::<_, Infallible>(reply.unwrap())
                    }
                });
                let connection = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service);
                tokio::spawn(connection);
            }
        });
        let upstream = format!("[upstream]\nkind = \"developer\"\nurl = {url:?}\nretries = 0\n");
        let settings = format!(
            "listen = \"127.0.0.1:0\"\nstore = \"memory\"\nlog = \"off\"\n{}",
            settings.replace("[upstream]\n", &upstream)
        );
        let file = Some(("test.toml", settings.as_str()));
        let config = Config::resolve(&Sources { file, env: &|_| None, flags: &[] }).unwrap();
        let gateway = start(config).await.unwrap();
        let http = Client::builder(TokioExecutor::new()).build(HttpConnector::new());
        Self { gateway, seen, http }
    }

    /// Everything that reached the upstream since this was called last.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        std::mem::take(&mut *self.seen.lock().unwrap())
    }

    /// Sends a request; the answer's status, headers and body.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: &Value,
    ) -> (u16, HeaderMap, String) {
        let url = format!("http://{}{path}", self.gateway.addr);
        let mut request = Request::builder().method(method).uri(url);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let request = request.body(Full::new(Bytes::from(body))).unwrap();
        let (head, body) = self.http.request(request).await.unwrap().into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        (head.status.as_u16(), head.headers, String::from_utf8(body.to_vec()).unwrap())
    }

    /// Posts JSON with a client's key; the answer's status and body.
    pub(crate) async fn post(&self, path: &str, key: &str, body: &Value) -> (u16, String) {
        let (status, _, body) = self.send(Method::POST, path, &[("x-api-key", key)], body).await;
        (status, body)
    }
}

/// An answer of one word.
pub(crate) fn fine() -> (u16, Value) {
    let content = json!({"role": "model", "parts": [{"text": "Fine."}]});
    let usage = json!({"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2});
    let candidate = json!({"content": content, "finishReason": "STOP", "index": 0});
    (200, json!({"candidates": [candidate], "usageMetadata": usage, "totalTokens": 7}))
}

/// An error of Google's, with a reason where there is one.
pub(crate) fn refused(code: u16, status: &str, reason: &str, message: &str) -> (u16, Value) {
    let mut error = json!({"code": code, "status": status, "message": message});
    if !reason.is_empty() {
        let kind = "type.googleapis.com/google.rpc.ErrorInfo";
        error["details"] = json!([{"@type": kind, "reason": reason, "domain": "googleapis.com"}]);
    }
    (code, json!({ "error": error }))
}
