//! HTTP client of the sources: checked addresses, same-origin redirects, bounded bodies.

use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs as _};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::rt::{TokioExecutor, TokioTimer};

use crate::Failure;

/// Redirects that one request follows.
const MAX_REDIRECTS: usize = 3;

/// Time to open a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Addresses that may be connected to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Addresses {
    /// Every address: the operator wrote the URL.
    #[default]
    Any,
    /// Public addresses only: the URL comes from a request. All addresses of a name have to be public,
    /// and the connection goes to one of those that were checked.
    Public,
}

/// HTTP client. Clones share its connections.
#[derive(Clone)]
pub(crate) struct HttpClient {
    client: Client<HttpsConnector<HttpConnector<Resolver>>, Full<Bytes>>,
    addresses: Addresses,
}

impl HttpClient {
    pub(crate) fn new(addresses: Addresses) -> io::Result<Self> {
        let mut tcp = HttpConnector::new_with_resolver(Resolver { addresses });
        tcp.set_nodelay(true);
        tcp.enforce_http(false);
        tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
        let https = hyper_rustls::HttpsConnectorBuilder::new()
            .with_tls_config(toolgate_transport::tls_config(None).map_err(io::Error::other)?)
            .https_or_http()
            .enable_all_versions()
            .wrap_connector(tcp);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(Duration::from_secs(60))
            .build(https);
        Ok(Self { client, addresses })
    }

    /// Sends a request and returns the head of the response. Redirects (307 and 308) are followed
    /// within the origin.
    pub(crate) async fn send(
        &self,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
        body: &Bytes,
    ) -> Result<Response<Incoming>, Failure> {
        let mut uri = uri.clone();
        for _ in 0..=MAX_REDIRECTS {
            self.check(&uri)?;
            let mut request = Request::new(Full::new(body.clone()));
            *request.method_mut() = method.clone();
            *request.uri_mut() = uri.clone();
            *request.headers_mut() = headers.clone();
            let response =
                self.client.request(request).await.map_err(|error| unreachable(&error))?;
            let status = response.status();
            if !matches!(status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT) {
                return Ok(response);
            }
            let refused = Failure::Http { status: status.as_u16() };
            let location = response.headers().get(header::LOCATION);
            let location =
                location.and_then(|it| it.to_str().ok()).ok_or_else(|| refused.clone())?;
            uri = same_origin(&uri, location).ok_or(refused)?;
        }
        Err(Failure::Http { status: StatusCode::LOOP_DETECTED.as_u16() })
    }

    fn check(&self, uri: &Uri) -> Result<(), Failure> {
        if self.addresses == Addresses::Any {
            return Ok(());
        }
        let refused = || Failure::Unreachable("the address is not allowed".to_owned());
        let host = uri.host().ok_or_else(refused)?;
        let is_literal = host.parse::<IpAddr>().is_ok() || host.starts_with('[');
        let has_user = uri.authority().is_some_and(|it| it.as_str().contains('@'));
        if uri.scheme_str() != Some("https") || is_literal || has_user {
            return Err(refused());
        }
        Ok(())
    }
}

/// Error of the client, without the address that it tried.
fn unreachable(error: &hyper_util::client::legacy::Error) -> Failure {
    if error.is_connect() {
        return Failure::Unreachable("no connection".to_owned());
    }
    // The request may have been received.
    Failure::Crashed
}

/// Returns the target of a redirect if it has the same origin.
fn same_origin(from: &Uri, location: &str) -> Option<Uri> {
    if location.starts_with('/') && !location.starts_with("//") {
        let mut parts = from.clone().into_parts();
        parts.path_and_query = Some(location.parse().ok()?);
        return Uri::from_parts(parts).ok();
    }
    let to: Uri = location.parse().ok()?;
    let port = |uri: &Uri| {
        uri.port_u16().unwrap_or_else(|| if uri.scheme_str() == Some("https") { 443 } else { 80 })
    };
    let same = to.scheme() == from.scheme() && to.host() == from.host() && port(&to) == port(from);
    same.then_some(to)
}

/// Reads a body of at most `limit` bytes.
pub(crate) async fn read_body(body: Incoming, limit: usize) -> Result<Bytes, Failure> {
    let mut body = body;
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| Failure::Crashed)?;
        if let Ok(data) = frame.into_data() {
            if bytes.len() + data.len() > limit {
                return Err(Failure::TooLarge { limit });
            }
            bytes.extend_from_slice(&data);
        }
    }
    Ok(bytes.into())
}

/// Resolves names; where addresses are restricted, all of them have to be allowed.
#[derive(Clone)]
struct Resolver {
    addresses: Addresses,
}

impl tower_service::Service<Name> for Resolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let addresses = self.addresses;
        Box::pin(async move {
            let host = name.as_str().to_owned();
            let found = tokio::task::spawn_blocking(move || {
                (host.as_str(), 0).to_socket_addrs().map(Iterator::collect::<Vec<_>>)
            })
            .await
            .map_err(io::Error::other)??;
            let allowed = addresses == Addresses::Any || found.iter().all(|it| is_public(it.ip()));
            if !allowed {
                return Err(io::Error::new(
                    io::ErrorKind::PermissionDenied,
                    "the name has an address that is not public",
                ));
            }
            Ok(found.into_iter())
        })
    }
}

/// Whether an address is global unicast.
pub(crate) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    !(address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_broadcast()
        || address.is_documentation()
        || address.is_multicast()
        || a == 0
        || a >= 240
        || (a == 100 && (64..128).contains(&b))
        || (a == 198 && (b == 18 || b == 19))
        || (a == 192 && b == 0 && c == 0)
        || (a == 192 && b == 88 && c == 99))
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let [first, second, ..] = address.segments();
    // Global unicast is 2000::/3; within it: documentation, ORCHID, Teredo and 6to4, which embed
    // addresses of the other protocol.
    first & 0xE000 == 0x2000
        && !(first == 0x2001 && (second < 0x0200 || second == 0x0DB8))
        && first != 0x2002
        && !(first == 0x3FFF && second < 0x1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t37_only_global_addresses_are_public() {
        let public = ["8.8.8.8", "203.1.0.1", "2606:4700::1111", "2a00:1450::1"];
        let other = [
            "127.0.0.1",
            "10.0.0.1",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "224.0.0.1",
            "255.255.255.255",
            "198.18.0.1",
            "192.0.2.1",
            "192.0.0.8",
            "::1",
            "::",
            "fe80::1",
            "fc00::1",
            "ff02::1",
            "::ffff:10.0.0.1",
            "64:ff9b::a00:1",
            "2002:7f00:1::",
            "2001:db8::1",
            "2001:0:1::",
        ];
        for (list, expected) in [(&public[..], true), (&other[..], false)] {
            for address in list {
                assert_eq!(is_public(address.parse().unwrap()), expected, "{address}");
            }
        }
    }

    #[test]
    fn t28_redirects_stay_within_the_origin() {
        let from: Uri = "https://a.example/mcp".parse().unwrap();
        for (location, expected) in [
            ("/mcp/", Some("https://a.example/mcp/")),
            ("https://a.example:443/x", Some("https://a.example:443/x")),
            ("http://a.example/mcp/", None),
            ("https://b.example/mcp/", None),
            ("//b.example/mcp/", None),
            ("https://a.example:8443/", None),
        ] {
            let target = same_origin(&from, location).map(|it| it.to_string());
            assert_eq!(target.as_deref(), expected, "{location}");
        }
    }

    #[tokio::test]
    async fn t37_requests_cannot_reach_private_addresses() {
        let client = HttpClient::new(Addresses::Public).unwrap();
        for url in [
            "http://example.com/",
            "https://127.0.0.1/",
            "https://[::1]/",
            "https://user@example.com/",
            "https://localhost/",
        ] {
            let sent = client
                .send(&Method::GET, &url.parse().unwrap(), &HeaderMap::new(), &Bytes::new())
                .await;
            assert!(matches!(sent, Err(Failure::Unreachable(_))), "{url}");
        }
    }
}
