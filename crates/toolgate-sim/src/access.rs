//! Access checks for requests that arrive over a connection.
//!
//! A web page can send requests to a port on the loopback address, under a DNS name of its own or
//! across origins. Model endpoints therefore check `Host` and `Origin`; control endpoints
//! (`/__sim/…`), which show prompts and decide what the model says, also need the control key.

use std::fmt;
use std::net::IpAddr;

use http::header::{CONTENT_TYPE, HOST, ORIGIN};
use http::request::Parts;
use http::{HeaderMap, Method};
use sha2::{Digest as _, Sha256};

use crate::route::{Route, route};

/// Header that carries the control key.
pub(crate) const CONTROL_KEY_HEADER: &str = "x-toolgate-control-key";

/// Key that control requests over HTTP must present.
#[derive(Clone, PartialEq, Eq)]
pub struct ControlKey(String);

impl ControlKey {
    /// Wraps a key.
    pub fn new(key: impl Into<String>) -> Self {
        Self(key.into())
    }

    /// Constant-time comparison.
    fn matches(&self, presented: &[u8]) -> bool {
        let (own, other) = (Sha256::digest(self.0.as_bytes()), Sha256::digest(presented));
        own.iter().zip(other.iter()).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
    }
}

impl fmt::Debug for ControlKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ControlKey(…)")
    }
}

/// Where a connection comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Via {
    /// This process, through [`Sim::connect`](crate::Sim::connect).
    Process,
    /// A socket that listens on this address.
    Socket(IpAddr),
}

/// Status and reason of a refusal.
pub(crate) type Refusal = (u16, String);

/// Checks the head of a request before its body is read.
pub(crate) fn check(head: &Parts, via: Via, key: Option<&ControlKey>) -> Result<(), Refusal> {
    if let Via::Socket(address) = via {
        check_host(head, address)?;
        check_origin(&head.headers)?;
    }
    match route(head.uri.path()) {
        Route::Window(_) => check_control(head, via, key),
        Route::Model { .. }
        | Route::OtherMethod { .. }
        | Route::List(_)
        | Route::Get { .. }
        | Route::Caches(_)
        | Route::Unknown => Ok(()),
    }
}

/// On a loopback address, only loopback names reach the simulator (DNS rebinding).
fn check_host(head: &Parts, listens: IpAddr) -> Result<(), Refusal> {
    if !listens.is_loopback() {
        return Ok(());
    }
    let mut named = head.headers.get_all(HOST).iter().map(|host| host.to_str().unwrap_or(""));
    let is_local = match (&head.uri.authority(), named.next(), named.next()) {
        (_, Some(_), Some(_)) | (None, None, None) => false,
        (authority, host, None) => {
            authority.is_none_or(|it| is_loopback(it.as_str())) && host.is_none_or(is_loopback)
        }
        (_, None, Some(_)) => false,
    };
    if is_local {
        return Ok(());
    }
    Err((403, "the Host header must name localhost or a loopback address".to_owned()))
}

/// Requests sent by web pages are refused: no page belongs to the simulator.
fn check_origin(headers: &HeaderMap) -> Result<(), Refusal> {
    let site = headers.get("sec-fetch-site").map(|site| site.as_bytes());
    let is_cross_site = site.is_some_and(|site| site != b"none" && site != b"same-origin");
    if headers.contains_key(ORIGIN) || is_cross_site {
        return Err((403, "requests from web pages are refused".to_owned()));
    }
    Ok(())
}

fn check_control(head: &Parts, via: Via, key: Option<&ControlKey>) -> Result<(), Refusal> {
    let refuse = |message: &str| Err((403, message.to_owned()));
    let key = match (via, key) {
        (Via::Socket(_), Some(key)) => key,
        (Via::Socket(_), None) => {
            return refuse("control endpoints are off: this simulator has no control key");
        }
        (Via::Process, _) => return refuse("control endpoints need a socket"),
    };
    let presented = head.headers.get(CONTROL_KEY_HEADER);
    if !presented.is_some_and(|presented| key.matches(presented.as_bytes())) {
        return refuse("control endpoints need the control key, in x-toolgate-control-key");
    }
    let kind = head.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or("");
    let kind = kind.split(';').next().unwrap_or("").trim().to_ascii_lowercase();
    if head.method == Method::POST && !matches!(&*kind, "application/json" | "application/toml") {
        let message = "the Content-Type must be application/json or application/toml";
        return Err((415, message.to_owned()));
    }
    Ok(())
}

/// Whether an authority (`host`, `host:port`) names this machine's loopback interface.
fn is_loopback(authority: &str) -> bool {
    let name = match authority.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map_or(rest, |(name, _)| name),
        None => authority.rsplit_once(':').map_or(authority, |(name, _)| name),
    };
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use http::Request;

    use super::*;

    const LOOPBACK: Via = Via::Socket(IpAddr::V4(Ipv4Addr::LOCALHOST));
    const PUBLIC: Via = Via::Socket(IpAddr::V4(Ipv4Addr::UNSPECIFIED));

    #[track_caller]
    fn status(via: Via, method: Method, path: &str, headers: &[(&str, &str)]) -> u16 {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (head, ()) = request.body(()).unwrap().into_parts();
        let key = ControlKey::new("right-key");
        check(&head, via, Some(&key)).map_or_else(|(status, _)| status, |()| 200)
    }

    #[test]
    fn only_loopback_names_reach_a_loopback_port() {
        for (host, want) in [
            ("127.0.0.1:8742", 200),
            ("localhost", 200),
            ("[::1]:8742", 200),
            ("evil.example", 403),
            ("evil.localhost", 403),
            ("", 403),
        ] {
            let path = "/v1beta/models";
            assert_eq!(status(LOOPBACK, Method::GET, path, &[("host", host)]), want, "{host}");
        }
        let twice = [("host", "localhost"), ("host", "evil.example")];
        assert_eq!(status(LOOPBACK, Method::GET, "/v1beta/models", &twice), 403);
        assert_eq!(status(LOOPBACK, Method::GET, "/v1beta/models", &[]), 403);
        assert_eq!(status(LOOPBACK, Method::GET, "http://evil.example/v1beta/models", &[]), 403);
        assert_eq!(status(PUBLIC, Method::GET, "/v1beta/models", &[("host", "sim")]), 200);
    }

    #[test]
    fn web_pages_are_refused_on_every_endpoint() {
        for path in ["/v1beta/models", "/v1beta/models/m:generateContent", "/__sim/requests"] {
            for (name, value) in [
                ("origin", "https://evil.example"),
                ("origin", "http://localhost:3000"),
                ("origin", "null"),
                ("sec-fetch-site", "cross-site"),
                ("sec-fetch-site", "same-site"),
            ] {
                let headers = [("host", "localhost"), (name, value)];
                assert_eq!(status(LOOPBACK, Method::GET, path, &headers), 403, "{path} {value}");
            }
        }
        // Node's fetch sends this one.
        let node = [("host", "localhost"), ("sec-fetch-mode", "cors")];
        assert_eq!(status(LOOPBACK, Method::GET, "/v1beta/models", &node), 200);
    }

    #[test]
    fn control_requests_need_the_key_and_a_type_that_forms_cannot_send() {
        let host = ("host", "localhost");
        let right = (CONTROL_KEY_HEADER, "right-key");
        for (method, path, headers, want) in [
            (Method::GET, "/__sim/requests", vec![host], 403),
            (Method::GET, "/__sim/requests", vec![host, (CONTROL_KEY_HEADER, "wrong")], 403),
            (Method::GET, "/__sim/requests", vec![host, right], 200),
            (Method::GET, "//__sim/requests", vec![host], 403),
            (Method::GET, "/%5f_sim/requests", vec![host], 403),
            (Method::DELETE, "/__sim/requests", vec![host, right], 200),
            (Method::POST, "/__sim/script", vec![host, right], 415),
            (Method::POST, "/__sim/script", vec![host, right, ("content-type", "text/plain")], 415),
            (
                Method::POST,
                "/__sim/script",
                vec![host, right, ("content-type", "Application/JSON; charset=utf-8")],
                200,
            ),
        ] {
            let got = status(LOOPBACK, method, path, &headers);
            assert_eq!(got, want, "{path} {headers:?}");
        }
        assert_eq!(status(Via::Process, Method::GET, "/__sim/requests", &[host, right]), 403);
        assert_eq!(status(Via::Process, Method::GET, "/v1beta/models", &[]), 200);
        assert!(!format!("{:?}", ControlKey::new("right-key")).contains("right"));
    }
}
