//! The way to the upstream: proxies, private CAs, hosts that cannot be reached.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, copy_bidirectional};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio_rustls::TlsAcceptor;
use toolgate_gateway::config::{Config, Sources};
use toolgate_gateway::{Embedded, Options, Running, start, start_with};
use toolgate_sim::{Sim, SimConfig};

use super::fake::fine;

/// A TLS server that relays to a port on loopback, and the file of its private CA.
async fn tls_relay(name: &str, target: u16) -> (u16, PathBuf) {
    let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new([name.to_owned()]).unwrap();
    let certificate = certificate.signed_by(&key, &ca).unwrap();
    let private = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], private)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else { return };
                let mut plain = TcpStream::connect(("127.0.0.1", target)).await.unwrap();
                // It ends when either side closes its connection.
                let _ = copy_bidirectional(&mut stream, &mut plain).await;
            });
        }
    });
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("ca-{port}.pem"));
    std::fs::write(&file, ca.pem()).unwrap();
    (port, file)
}

/// A CONNECT proxy that leads every name to one port on loopback, and the heads of its requests.
async fn proxy(target: u16) -> (u16, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let heads: Arc<Mutex<Vec<String>>> = Arc::default();
    let log = Arc::clone(&heads);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let log = Arc::clone(&log);
            tokio::spawn(async move {
                let mut stream = BufReader::new(stream);
                let mut head = String::new();
                while !head.ends_with("\r\n\r\n") {
                    assert_ne!(stream.read_line(&mut head).await.unwrap(), 0);
                }
                log.lock().unwrap().push(head);
                let mut plain = TcpStream::connect(("127.0.0.1", target)).await.unwrap();
                stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
                let _ = copy_bidirectional(&mut stream, &mut plain).await;
            });
        }
    });
    (port, heads)
}

/// An upstream that answers every request, whatever its Host header; returns its port.
async fn plain_upstream() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let service = super::service_fn(async |_: http::Request<super::Incoming>| {
                let body = bytes::Bytes::from(fine().1.to_string());
                Ok::<_, std::convert::Infallible>(http::Response::new(http_body_util::Full::new(
                    body,
                )))
            });
            let connection = hyper::server::conn::http1::Builder::new()
                .serve_connection(super::TokioIo::new(stream), service);
            tokio::spawn(connection);
        }
    });
    port
}

async fn gateway(upstream: &str, env: &[(&str, &str)]) -> Running {
    start(config(upstream, env)).await.unwrap()
}

fn config(upstream: &str, env: &[(&str, &str)]) -> Config {
    let settings = format!(
        "listen = \"127.0.0.1:0\"\nstore = \"memory\"\nlog = \"off\"\n[upstream]\nretries = 0\n{upstream}"
    );
    let env =
        |name: &str| env.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
    let file = Some(("test.toml", settings.as_str()));
    Config::resolve(&Sources { file, env: &env, flags: &[] }).unwrap()
}

async fn send(gateway: &Running, path: &str, body: Value) -> (u16, Value) {
    let (head, body) = send_with(gateway, path, &[], body).await;
    (head.status.as_u16(), body)
}

async fn send_with(
    gateway: &Running,
    path: &str,
    headers: &[(&str, &str)],
    body: Value,
) -> (http::response::Parts, Value) {
    let url = format!("http://{}{path}", gateway.addr);
    let mut request =
        if body.is_null() { http::Request::get(url) } else { http::Request::post(url) };
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let request = request.body(http_body_util::Full::new(bytes::Bytes::from(body))).unwrap();
    let http: super::Client<super::HttpConnector, _> =
        super::Client::builder(super::TokioExecutor::new()).build(super::HttpConnector::new());
    let (head, body) = http.request(request).await.unwrap().into_parts();
    let body = http_body_util::BodyExt::collect(body).await.unwrap().to_bytes();
    (head, serde_json::from_slice(&body).unwrap())
}

fn message() -> Value {
    let messages = json!([{"role": "user", "content": "Hi."}]);
    json!({"model": "gemini-3.6-flash", "max_tokens": 64, "messages": messages})
}

/// The name `gemini.test` has an address only in the proxy, and its CA is in a file only.
#[tokio::test]
async fn the_upstream_is_reached_through_a_proxy_with_a_private_ca() {
    let (tls, ca_file) = tls_relay("gemini.test", plain_upstream().await).await;
    let (proxy, heads) = proxy(tls).await;
    let upstream = format!("url = \"https://gemini.test:{tls}\"\nca_file = {ca_file:?}");
    let address = format!("http://user:pass@127.0.0.1:{proxy}");
    let gateway = gateway(&upstream, &[("HTTPS_PROXY", &address)]).await;
    let (status, body) = send(&gateway, "/v1/messages", message()).await;
    assert_eq!(status, 200, "{body}");
    let head = heads.lock().unwrap()[0].to_ascii_lowercase();
    assert!(head.starts_with(&format!("connect gemini.test:{tls} http/1.1")), "{head}");
    assert!(head.contains("proxy-authorization: basic dxnlcjpwyxnz"), "{head}");
    assert_eq!(body["content"][0]["text"], "Fine.");
}

/// With no key configured, a Gemini key of the client reaches Gemini; other requests get the simulator,
/// and their answers name it.
#[tokio::test]
async fn r126_a_clients_gemini_key_reaches_gemini_without_configuration() {
    const GOOGLE: &str = "generativelanguage.googleapis.com";
    let (tls, ca_file) = tls_relay(GOOGLE, plain_upstream().await).await;
    let (proxy, heads) = proxy(tls).await;
    let address = format!("http://127.0.0.1:{proxy}");
    let sim = Sim::new(SimConfig::default());
    let embedded = Some(Embedded::new(move || sim.connect()));
    let settings = config(&format!("ca_file = {ca_file:?}"), &[("HTTPS_PROXY", &address)]);
    let options = Options { simulator: embedded, ..Options::default() };
    let gateway = start_with(settings, options).await.unwrap();
    for (key, is_simulated) in
        [("AIzaOwnKey", false), ("AQ.own-key", false), ("sk-other", true), ("", true)]
    {
        let sent = heads.lock().unwrap().len();
        let (head, body) =
            send_with(&gateway, "/v1/messages", &[("x-api-key", key)], message()).await;
        assert_eq!(head.status, 200, "{key}: {body}");
        let named = head.headers.get("x-toolgate-upstream").map(|it| it.to_str().unwrap());
        assert_eq!(named, is_simulated.then_some("simulator"), "{key}");
        let is_googles = body["content"][0]["text"] == "Fine.";
        assert_eq!(is_googles, !is_simulated, "{key}: {body}");
        let heads = heads.lock().unwrap();
        if is_simulated {
            assert_eq!(heads.len(), sent, "{key}");
        } else {
            assert!(heads[0].starts_with(&format!("CONNECT {GOOGLE}:443")), "{heads:?}");
        }
    }
}

/// Paths that other base URLs make, and a 404 that names the right one.
#[tokio::test]
async fn paths_of_other_base_urls_are_served() {
    let gateway = gateway("kind = \"developer\"\nurl = \"http://127.0.0.1:9\"", &[]).await;
    for path in ["/messages", "/v1/v1/messages", "/responses", "/v1beta/openai/chat/completions"] {
        let (status, body) = send(&gateway, path, json!({"model": 1})).await;
        assert_eq!(status, 400, "{path}: {body}");
    }
    let (status, body) = send(&gateway, "/v2/messages", message()).await;
    let text = body["error"]["message"].as_str().unwrap();
    assert!(status == 404 && text.contains("base URL should be"), "{body}");
}

#[tokio::test]
async fn loopback_is_reached_directly_unless_a_proxy_is_configured() {
    let sim = Sim::start(SimConfig::default()).await.unwrap();
    let port = sim.address().port();
    let (tls, ca_file) = tls_relay("localhost", port).await;
    let (proxy, heads) = proxy(tls).await;
    let upstream = format!("url = \"https://localhost:{tls}\"\nca_file = {ca_file:?}");
    let address = format!("http://127.0.0.1:{proxy}");
    let direct = gateway(&upstream, &[("all_proxy", &address)]).await;
    assert_eq!(send(&direct, "/v1/messages", message()).await.0, 200);
    assert!(heads.lock().unwrap().is_empty());
    let configured = gateway(&format!("{upstream}\nproxy = {address:?}"), &[]).await;
    assert_eq!(send(&configured, "/v1/messages", message()).await.0, 200);
    assert_eq!(heads.lock().unwrap().len(), 1);
    assert_eq!(sim.counters().requests, 2);
}

/// E3: an upstream that cannot be reached is named as such, and the gateway is not ready meanwhile.
#[tokio::test]
async fn an_unreachable_upstream_is_named_and_readiness_follows() {
    // A port that is bound but does not listen refuses connections.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let port = socket.local_addr().unwrap().port();
    let gateway = gateway(&format!("url = \"http://127.0.0.1:{port}\""), &[]).await;
    assert_eq!(send(&gateway, "/readyz", Value::Null).await.0, 200);
    for _ in 0..2 {
        let (status, body) = send(&gateway, "/v1/messages", message()).await;
        assert_eq!((status, &body["error"]["type"]), (502, &json!("api_error")), "{body}");
        let text = body["error"]["message"].as_str().unwrap();
        assert!(text.contains(&format!("cannot connect to 127.0.0.1:{port}")), "{text}");
    }
    let (status, body) = send(&gateway, "/readyz", Value::Null).await;
    assert_eq!(status, 503, "{body}");
    assert_eq!(
        body,
        json!({"status": "unreachable", "upstream": "developer", "reason": "connect"})
    );
    assert_eq!(send(&gateway, "/healthz", Value::Null).await.0, 200);
    // The server is back: the first answer makes the gateway ready.
    let listener = socket.listen(8).unwrap();
    let sim = Sim::new(SimConfig::default());
    tokio::spawn(toolgate_sim::serve(sim, listener, std::future::pending()));
    assert_eq!(send(&gateway, "/v1/messages", message()).await.0, 200);
    assert_eq!(send(&gateway, "/readyz", Value::Null).await.0, 200);
}

#[tokio::test]
async fn a_name_without_an_address_is_named() {
    // A label of 64 characters is no name: the resolver refuses it without a query.
    let name = "x".repeat(64);
    let gateway = gateway(&format!("url = \"http://{name}.test\""), &[]).await;
    let chat =
        json!({"model": "gemini-3.6-flash", "messages": [{"role": "user", "content": "Hi."}]});
    for (path, body, status) in [
        ("/v1/chat/completions", chat, 502),
        ("/v1/messages", message(), 502),
        (
            "/v1beta/models/gemini-3.6-flash:generateContent",
            json!({"contents": [{"parts": [{"text": "Hi."}]}]}),
            503,
        ),
    ] {
        let (given, body) = send(&gateway, path, body).await;
        assert_eq!(given, status, "{body}");
        assert!(body["error"]["message"].as_str().unwrap().contains("cannot resolve"), "{body}");
    }
    let (_, ready) = send(&gateway, "/readyz", Value::Null).await;
    assert_eq!(ready["reason"], "dns");
}

#[tokio::test]
async fn an_unusable_ca_file_or_proxy_is_refused_at_the_start() {
    for (setting, want) in [
        ("ca_file = \"absent.pem\"", "absent.pem"),
        ("proxy = \"socks5://user:hunter2@proxy\"", "is not the URL of an HTTP proxy"),
    ] {
        let settings = format!(
            "listen = \"127.0.0.1:0\"\nstore = \"memory\"\nlog = \"off\"\n[upstream]\nurl = \"http://127.0.0.1:1\"\n{setting}"
        );
        let file = Some(("test.toml", settings.as_str()));
        let error = match Config::resolve(&Sources { file, env: &|_| None, flags: &[] }) {
            Ok(config) => start(config).await.err().map(|error| error.to_string()),
            Err(error) => Some(error.to_string()),
        };
        let error = error.unwrap();
        assert!(error.contains(want) && !error.contains("hunter2"), "{error}");
    }
}
