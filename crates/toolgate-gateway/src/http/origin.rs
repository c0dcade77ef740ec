//! Host and origin checks: a web page reaches the gateway only if it is the gateway's own.
//!
//! A page in a browser may reach loopback under a name of its own (DNS rebinding), which its Host header
//! tells, or call across origins, which its Origin header tells. Programs send no Origin.

use std::net::IpAddr;

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_MAX_AGE, ALLOW,
    EXPECT, HOST, ORIGIN,
};
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Request, StatusCode, Uri, Version};
use toolgate_core::canon::{Failure, FailureKind};

use crate::api::reply::{self, Reply};
use crate::config::Config;

/// Checks what HTTP asks of every request: one Host, and no expectation that is not known.
pub(crate) fn check_protocol<B>(request: &Request<B>) -> Result<(), (StatusCode, &'static str)> {
    let refused = |status, message| Err((status, message));
    let mut hosts = request.headers().get_all(HOST).iter();
    match (hosts.next(), hosts.next()) {
        (Some(host), None) => {
            let is_host = |text: &str| text.is_empty() || text.parse::<Authority>().is_ok();
            if !host.to_str().is_ok_and(|text| is_host(text) && !text.contains('@')) {
                return refused(StatusCode::BAD_REQUEST, "the Host header is not a host");
            }
        }
        (Some(_), Some(_)) => {
            return refused(StatusCode::BAD_REQUEST, "there is more than one Host header");
        }
        (None, _) if request.version() >= Version::HTTP_11 => {
            return refused(StatusCode::BAD_REQUEST, "there is no Host header");
        }
        (None, _) => {}
    }
    let is_known =
        |value: &HeaderValue| value.as_bytes().trim_ascii().eq_ignore_ascii_case(b"100-continue");
    if !request.headers().get_all(EXPECT).iter().all(is_known) {
        let message = "the Expect header asks for something other than 100-continue";
        return refused(StatusCode::EXPECTATION_FAILED, message);
    }
    Ok(())
}

/// Refuses hosts and origins that are not the gateway's own and not configured.
pub(crate) fn check_origin(
    config: &Config,
    listens: IpAddr,
    headers: &HeaderMap,
    uri: &Uri,
) -> Result<(), Failure> {
    let forbidden = |message: String| Err(Failure::new(FailureKind::Permission, message));
    let host = uri
        .authority()
        .map(Authority::as_str)
        .or_else(|| headers.get(HOST).and_then(|value| value.to_str().ok()));
    if listens.is_loopback()
        && let Some(host) = host.map(host_name)
        && !is_loopback(host)
        && !is_named(config, host)
    {
        return forbidden(format!(
            "the Host header names `{host}`, which is not this gateway (clients.hosts allows more names)"
        ));
    }
    for origin in headers.get_all(ORIGIN) {
        let text = origin.to_str().unwrap_or_default();
        if !is_own(config, text, host) && !allows_origin(config, text) {
            let shown = String::from_utf8_lossy(origin.as_bytes());
            return forbidden(format!(
                "web pages of `{shown}` may not call this gateway (clients.cors_origins)"
            ));
        }
    }
    Ok(())
}

/// Whether pages of this origin may call across origins.
pub(crate) fn allows_origin(config: &Config, origin: &str) -> bool {
    config.clients.cors_origins.iter().any(|allowed| allowed == "*" || allowed == origin)
}

/// Whether an origin is the address that the request was sent to, under a name that cannot be made to
/// point here: an address, `localhost`, or one of `clients.hosts`.
fn is_own(config: &Config, origin: &str, host: Option<&str>) -> bool {
    let parts = origin
        .strip_prefix("http://")
        .map(|rest| (rest, 80))
        .or_else(|| origin.strip_prefix("https://").map(|rest| (rest, 443)));
    let (Some((origin, port)), Some(host)) = (parts, host) else { return false };
    let name = host_name(origin);
    let is_fixed = name.parse::<IpAddr>().is_ok()
        || name.eq_ignore_ascii_case("localhost")
        || is_named(config, name);
    is_fixed
        && name.eq_ignore_ascii_case(host_name(host))
        && port_of(origin, port).is_some_and(|own| Some(own) == port_of(host, port))
}

fn is_named(config: &Config, host: &str) -> bool {
    config.clients.hosts.iter().any(|known| known.eq_ignore_ascii_case(host))
}

/// The host of an authority.
fn host_name(authority: &str) -> &str {
    if let Some(rest) = authority.strip_prefix('[') {
        return rest.split_once(']').map_or(rest, |(name, _)| name);
    }
    authority.rsplit_once(':').map_or(authority, |(name, _)| name)
}

/// The port of an authority; `None` where it is none.
fn port_of(authority: &str, default: u16) -> Option<u16> {
    let after = match authority.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map_or("", |(_, port)| port),
        None => authority.find(':').map_or("", |at| &authority[at..]),
    };
    match after.strip_prefix(':') {
        Some(port) => port.parse().ok(),
        None => after.is_empty().then_some(default),
    }
}

fn is_loopback(name: &str) -> bool {
    name.eq_ignore_ascii_case("localhost")
        || name.to_ascii_lowercase().ends_with(".localhost")
        || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// Answers a CORS preflight request.
pub(crate) fn preflight(config: &Config, headers: &HeaderMap) -> Reply {
    let mut reply = reply::json(StatusCode::NO_CONTENT, "");
    let methods = HeaderValue::from_static("GET, POST, DELETE, OPTIONS");
    let origin = headers.get(ORIGIN).and_then(|value| value.to_str().ok());
    let to = reply.headers_mut();
    to.insert(ALLOW, methods.clone());
    if origin.is_some_and(|origin| allows_origin(config, origin)) {
        to.insert(ACCESS_CONTROL_ALLOW_METHODS, methods);
        to.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("*, authorization"));
        to.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    }
    reply
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Sources;

    fn config(file: &str) -> Config {
        let sources = Sources { file: Some(("test", file)), env: &|_| None, flags: &[] };
        Config::resolve(&sources).unwrap()
    }

    #[track_caller]
    fn check(host: &'static str, origin: &'static str, file: &str, want: bool) {
        let mut headers = HeaderMap::new();
        for (name, value) in [(HOST, host), (ORIGIN, origin)] {
            if !value.is_empty() {
                headers.insert(name, value.parse().unwrap());
            }
        }
        let (config, uri) = (config(file), Uri::from_static("/"));
        let checked = check_origin(&config, config.listen.ip(), &headers, &uri);
        assert_eq!(checked.is_ok(), want, "{host} {origin}");
    }

    #[test]
    fn other_hosts_are_refused_on_loopback() {
        for host in ["127.0.0.1:8741", "localhost", "[::1]:8741", "a.localhost", ""] {
            check(host, "", "", true);
        }
        check("evil.example:8741", "", "", false);
        check("gate.lan", "", "[clients]\nhosts = [\"gate.lan\"]", true);
    }

    #[test]
    fn only_the_gateway_s_own_origin_may_call() {
        for (host, origin, want) in [
            ("127.0.0.1:8741", "http://127.0.0.1:8741", true),
            ("localhost:8741", "http://localhost:8741", true),
            ("LOCALHOST:8741", "http://localhost:8741", true),
            ("[::1]:8741", "http://[::1]:8741", true),
            ("127.0.0.1", "http://127.0.0.1", true),
            ("127.0.0.1:80", "http://127.0.0.1", true),
            ("127.0.0.1:8741", "http://localhost:8741", false),
            ("127.0.0.1:8741", "http://127.0.0.1:3000", false),
            ("127.0.0.1:8741", "http://localhost:3000", false),
            ("127.0.0.1:8741", "http://evil.localhost", false),
            ("evil.localhost:8741", "http://evil.localhost:8741", false),
            ("127.0.0.1:8741", "https://evil.example", false),
            ("127.0.0.1:8741", "http://127.0.0.1:8741.evil.example", false),
            ("127.0.0.1:8741", "http://127.0.0.1:8741@evil.example", false),
            ("127.0.0.1:8741", "file://", false),
            ("127.0.0.1:8741", "null", false),
            ("127.0.0.1:8741", "chrome-extension://abc", false),
            ("127.0.0.1:8741", "vscode-webview://x", false),
            ("", "http://127.0.0.1:8741", false),
        ] {
            check(host, origin, "", want);
        }
    }

    #[test]
    fn configured_origins_may_call() {
        let all = "[clients]\ncors_origins = [\"*\"]";
        check("127.0.0.1", "https://a.example", all, true);
        check("127.0.0.1", "null", all, true);
        let one = "[clients]\ncors_origins = [\"http://localhost:3000\"]";
        check("127.0.0.1", "http://localhost:3000", one, true);
        check("127.0.0.1", "http://localhost:3001", one, false);
        let named = "[clients]\nhosts = [\"gate.lan\"]";
        check("gate.lan", "https://gate.lan", named, true);
        check("gate.lan", "https://other.lan", named, false);
        let public = "listen = \"0.0.0.0:80\"\n[clients]\nkeys = [\"client-key\"]";
        check("10.0.0.7:80", "http://10.0.0.7", public, true);
        check("rebound.example", "http://rebound.example", public, false);
    }

    #[test]
    fn requests_name_one_host_and_expect_nothing_unknown() {
        for (pairs, version, want) in [
            (&[("host", "a")][..], Version::HTTP_11, 0),
            (&[], Version::HTTP_10, 0),
            (&[], Version::HTTP_11, 400),
            (&[("host", "a"), ("host", "a")], Version::HTTP_11, 400),
            (&[("host", "a"), ("host", "b")], Version::HTTP_10, 400),
            (&[("host", "a b")], Version::HTTP_11, 400),
            (&[("host", "u@a")], Version::HTTP_11, 400),
            (&[("host", "a"), ("expect", "100-Continue")], Version::HTTP_11, 0),
            (&[("host", "a"), ("expect", "200-ok")], Version::HTTP_11, 417),
        ] {
            let mut request = Request::builder().version(version);
            for (name, value) in pairs {
                request = request.header(*name, *value);
            }
            let checked = check_protocol(&request.body(()).unwrap());
            assert_eq!(checked.err().map_or(0, |(status, _)| status.as_u16()), want, "{pairs:?}");
        }
    }
}
