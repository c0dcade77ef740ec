//! Real connections on loopback: a TLS server with a private CA, and a CONNECT proxy.
#![expect(clippy::panic, clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod servers;

use std::time::Duration;

use servers::{ProxyServer, TlsServer};
use toolgate_core::canon::{Failure, FailureKind};
use toolgate_transport::{
    ConnectErrorKind, HttpRequest, HttpTransport, Method, Proxy, Settings, Transport as _,
    TransportError,
};

async fn get(url: String, settings: Settings) -> Result<(u16, String), TransportError> {
    let transport = HttpTransport::new(&settings).unwrap();
    let request = HttpRequest { method: Method::Get, url, headers: Vec::new(), body: Vec::new() };
    let response = transport.send(request).await?;
    let status = response.status;
    Ok((status, String::from_utf8(response.bytes().await?).unwrap()))
}

#[track_caller]
fn check_kind(
    result: Result<(u16, String), TransportError>,
    kind: ConnectErrorKind,
    parts: &[&str],
) {
    let Err(TransportError::Connect(error)) = result else { panic!("{result:?}") };
    let shown = error.to_string();
    assert_eq!(error.kind, kind, "{shown}");
    for part in parts {
        assert!(shown.contains(part), "no {part:?} in {shown:?}");
    }
    assert_eq!(Failure::from(error).kind, FailureKind::Unreachable);
}

#[tokio::test]
async fn a_ca_file_is_trusted() {
    let server = TlsServer::start("localhost").await;
    let url = format!("https://localhost:{}/", server.port);
    let trusting = Settings { ca_file: Some(server.ca_file()), ..Settings::default() };
    assert_eq!(get(url.clone(), trusting).await.unwrap(), (200, "GET / over TLS".to_owned()));
    let port = server.port.to_string();
    let untrusted = get(url, Settings::default()).await;
    check_kind(
        untrusted,
        ConnectErrorKind::Tls,
        &["TLS handshake with localhost:", &port, "UnknownIssuer"],
    );
}

#[tokio::test]
async fn an_unusable_ca_file_is_named() {
    let folder = servers::folder();
    let empty = folder.join("empty.pem");
    std::fs::write(&empty, "no certificate").unwrap();
    for (path, want) in [(empty, "has no certificate"), (folder.join("absent.pem"), "No such file")]
    {
        let settings = Settings { ca_file: Some(path.clone()), ..Settings::default() };
        let error = HttpTransport::new(&settings).unwrap_err().to_string();
        assert!(error.contains(want) && error.contains(path.to_str().unwrap()), "{error}");
    }
}

/// The name `gemini.test` has an address only in the proxy.
#[tokio::test]
async fn requests_are_tunnelled_through_a_proxy() {
    let server = TlsServer::start("gemini.test").await;
    let proxy = ProxyServer::start(server.port, Some("Basic dXNlcjpwYXNz")).await;
    let url = format!("https://gemini.test:{}/v1", server.port);
    let address = format!("http://user:pass@127.0.0.1:{}", proxy.port);
    for name in ["HTTPS_PROXY", "all_proxy"] {
        let env = |asked: &str| (asked == name).then(|| address.clone());
        let settings = Settings {
            ca_file: Some(server.ca_file()),
            proxy: Proxy::from_env(&env).unwrap(),
            ..Settings::default()
        };
        let answer = get(url.clone(), settings).await.unwrap();
        assert_eq!(answer, (200, "GET /v1 over TLS".to_owned()), "{name}");
    }
    let tunnel = format!("CONNECT gemini.test:{} HTTP/1.1", server.port);
    assert_eq!(proxy.requests(), [tunnel.clone(), tunnel]);
}

#[tokio::test]
async fn a_proxy_that_refuses_is_named() {
    let proxy = ProxyServer::start(1, Some("Basic dXNlcjpwYXNz")).await;
    let port = proxy.port.to_string();
    let through =
        |proxy: &str| Settings { proxy: Proxy::for_all(proxy).unwrap(), ..Settings::default() };
    let anonymous = format!("http://127.0.0.1:{port}");
    let refused = get("https://gemini.test/".to_owned(), through(&anonymous)).await;
    check_kind(
        refused,
        ConnectErrorKind::Proxy,
        &["127.0.0.1:", &port, "proxy authorization required"],
    );
    let wrong = format!("http://user:hunter2@127.0.0.1:{port}");
    let refused = get("https://gemini.test/".to_owned(), through(&wrong)).await.unwrap_err();
    assert!(!refused.to_string().contains("hunter2"), "{refused}");
    // Nothing listens there.
    let closed = servers::closed_port().await;
    let absent =
        get("https://gemini.test/".to_owned(), through(&format!("http://127.0.0.1:{closed}")))
            .await;
    check_kind(absent, ConnectErrorKind::Proxy, &["refused"]);
}

#[tokio::test]
async fn loopback_bypasses_the_proxy_of_the_environment() {
    let server = TlsServer::start("localhost").await;
    let closed = servers::closed_port().await;
    let env = |name: &str| (name == "HTTPS_PROXY").then(|| format!("http://127.0.0.1:{closed}"));
    let settings = Settings {
        ca_file: Some(server.ca_file()),
        proxy: Proxy::from_env(&env).unwrap(),
        ..Settings::default()
    };
    let url = format!("https://localhost:{}/direct", server.port);
    assert_eq!(get(url, settings).await.unwrap().1, "GET /direct over TLS");
}

#[tokio::test]
async fn failures_name_their_kind_and_host() {
    // A label of 64 characters is no name: the resolver refuses it without asking anybody.
    let name = "x".repeat(64);
    let unknown = get(format!("http://{name}.test/"), Settings::default()).await;
    check_kind(unknown, ConnectErrorKind::Dns, &["cannot resolve", &name]);
    let closed = servers::closed_port().await;
    let refused = get(format!("http://127.0.0.1:{closed}/"), Settings::default()).await;
    check_kind(refused, ConnectErrorKind::Connect, &["cannot connect to 127.0.0.1:", "refused"]);
    let silent = servers::silent_port().await;
    let settings = Settings { connect_timeout: Duration::from_millis(50), ..Settings::default() };
    let late = get(format!("https://localhost:{}/", silent.port), settings).await;
    check_kind(late, ConnectErrorKind::Timeout, &["no connection to localhost:"]);
    let scheme = get("ftp://localhost/".to_owned(), Settings::default()).await;
    check_kind(scheme, ConnectErrorKind::Connect, &["neither http:// nor https://"]);
}
