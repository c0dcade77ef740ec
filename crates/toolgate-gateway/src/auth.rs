//! Who asks, and with whose key the question goes on.

use std::borrow::Cow;
use std::net::IpAddr;

use http::header::{AUTHORIZATION, HOST, ORIGIN};
use http::{HeaderMap, Uri};
use ring::digest::{SHA256, digest};
use toolgate_core::canon::{Failure, FailureKind, percent_decoded};

use crate::config::{Config, Secret, UpstreamKind};

/// A client, admitted.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    /// Whose state this is: a digest of the key that was presented.
    pub owner: Owner,
    /// What the upstream is shown.
    pub pass: Pass,
}

/// Whose state something is. Two keys never have the same owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner([u8; 16]);

impl Owner {
    /// The owner that goes with a key; the empty key is "nobody in particular".
    pub fn of(key: &str) -> Self {
        let mut short = [0; 16];
        short.copy_from_slice(&digest(&SHA256, key.as_bytes()).as_ref()[..16]);
        Self(short)
    }

    /// One whose [bytes](Self::bytes) were kept.
    pub(crate) fn kept(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// For use in a store's keys.
    pub fn bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

/// What the upstream is shown.
#[derive(Clone, Debug)]
pub(crate) enum Pass {
    /// The client's own Gemini key.
    ApiKey(Secret),
    /// The client's own OAuth token.
    Bearer(Secret),
    /// The gateway's own keys.
    Pool,
}

/// The key that a request presents, and whether it came as a bearer token.
pub(crate) fn presented<'a>(headers: &'a HeaderMap, uri: &'a Uri) -> Option<(Cow<'a, str>, bool)> {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let bearer = || {
        let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
        let (scheme, token) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
    };
    header("x-goog-api-key")
        .or_else(|| header("x-api-key"))
        .map(|key| (Cow::Borrowed(key.trim()), false))
        .or_else(|| bearer().map(|token| (Cow::Borrowed(token), true)))
        .or_else(|| query_key(uri).map(|key| (key, false)))
        .filter(|(key, _)| !key.is_empty())
}

fn query_key(uri: &Uri) -> Option<Cow<'_, str>> {
    let key = uri.query()?.split('&').find_map(|pair| pair.strip_prefix("key="))?;
    if !key.contains(['%', '+']) {
        return Some(Cow::Borrowed(key));
    }
    let bytes = percent_decoded(&key.replace('+', " "));
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

/// Admits a client, or says why not.
pub(crate) fn admit(config: &Config, presented: Option<(&str, bool)>) -> Result<Client, Failure> {
    if !config.clients.keys.is_empty() {
        let Some((key, _)) = presented else {
            return Err(Failure::new(
                FailureKind::Authentication,
                "no key: send one of the gateway's client keys as x-api-key, x-goog-api-key or Authorization: Bearer",
            ));
        };
        // Every key is compared, so that the time does not tell which one was close.
        let known = config
            .clients
            .keys
            .iter()
            .fold(false, |known, candidate| known | same(candidate.expose(), key));
        if !known {
            let message = "the key is not one of the gateway's client keys";
            return Err(Failure::new(FailureKind::Authentication, message));
        }
        return Ok(Client { owner: Owner::of(key), pass: Pass::Pool });
    }
    let owner = Owner::of(presented.map_or("", |(key, _)| key));
    let has_own = config.upstream.auth.has_credentials();
    let pass = match (config.upstream.kind, presented) {
        (UpstreamKind::Sim, _) => Pass::Pool,
        (_, Some((key, _))) if looks_like_gemini(key) => Pass::ApiKey(Secret::new(key)),
        (UpstreamKind::Vertex, Some((token, true))) if token.starts_with("ya29.") => {
            Pass::Bearer(Secret::new(token))
        }
        _ if has_own => Pass::Pool,
        (_, Some((key, _))) => Pass::ApiKey(Secret::new(key)),
        // Another server may ask for no key at all; it will say so itself.
        (_, None) if config.upstream.url.is_some() => Pass::Pool,
        (_, None) => {
            return Err(Failure::new(
                FailureKind::Authentication,
                "no key: send your Gemini key as x-api-key, x-goog-api-key or Authorization: Bearer, or give the gateway one (GEMINI_API_KEY)",
            ));
        }
    };
    Ok(Client { owner, pass })
}

/// Whether a client that was admitted before would be admitted now.
pub(crate) fn readmit(config: &Config, client: &Client) -> Result<(), Failure> {
    let keys = &config.clients.keys;
    if keys.is_empty() || keys.iter().any(|key| Owner::of(key.expose()) == client.owner) {
        return Ok(());
    }
    let message = "the key is not one of the gateway's client keys any more";
    Err(Failure::new(FailureKind::Authentication, message))
}

/// Google's own forms of keys.
fn looks_like_gemini(key: &str) -> bool {
    key.starts_with("AIza") || key.starts_with("AQ.")
}

/// Compares without telling, by its time, how much was right.
fn same(a: &str, b: &str) -> bool {
    let (a, b) = (digest(&SHA256, a.as_bytes()), digest(&SHA256, b.as_bytes()));
    a.as_ref().iter().zip(b.as_ref()).fold(0, |difference, (x, y)| difference | (x ^ y)) == 0
}

/// A page in a browser may reach loopback under a name of its own (DNS rebinding) or send requests
/// across origins. Neither is a client of ours unless the configuration says so.
pub(crate) fn check_origin(
    config: &Config,
    listens: IpAddr,
    headers: &HeaderMap,
    uri: &Uri,
) -> Result<(), Failure> {
    let forbidden = |message: String| Err(Failure::new(FailureKind::Permission, message));
    let host = uri
        .authority()
        .map(http::uri::Authority::as_str)
        .or_else(|| headers.get(HOST).and_then(|value| value.to_str().ok()));
    if listens.is_loopback()
        && let Some(host) = host.map(host_name)
        && !is_loopback(host)
        && !config.clients.hosts.iter().any(|known| known.eq_ignore_ascii_case(host))
    {
        return forbidden(format!(
            "the Host header names `{host}`, which is not this gateway (clients.hosts allows more names)"
        ));
    }
    let origin = headers.get(ORIGIN).and_then(|value| value.to_str().ok());
    if let Some(origin) = origin
        && is_foreign(origin)
        && !allows_origin(config, origin)
    {
        return forbidden(format!(
            "web pages of {origin} may not call this gateway (clients.cors_origins)"
        ));
    }
    Ok(())
}

/// Whether this is a page of the web that is not ours. `null` is what browsers say for pages that hide
/// where they come from, such as sandboxed frames.
fn is_foreign(origin: &str) -> bool {
    let web = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    match web {
        Some(web) => !is_loopback(host_name(web)),
        None => origin.eq_ignore_ascii_case("null"),
    }
}

/// Whether pages of this origin may call.
pub(crate) fn allows_origin(config: &Config, origin: &str) -> bool {
    config.clients.cors_origins.iter().any(|allowed| allowed == "*" || allowed == origin)
}

fn host_name(host: &str) -> &str {
    if let Some(rest) = host.strip_prefix('[') {
        return rest.split_once(']').map_or(rest, |(name, _)| name);
    }
    host.rsplit_once(':').map_or(host, |(name, _)| name)
}

fn is_loopback(name: &str) -> bool {
    name.eq_ignore_ascii_case("localhost")
        || name.to_ascii_lowercase().ends_with(".localhost")
        || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Sources;

    fn config(file: &str) -> Config {
        let sources = Sources { file: Some(("test", file)), env: &|_| None, flags: &[] };
        Config::resolve(&sources).unwrap()
    }

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn keys_are_found_wherever_clients_put_them() {
        let plain = Uri::from_static("/v1/messages");
        for (pairs, uri, want) in [
            (vec![], Uri::from_static("/v1beta/models?key=a%2Bb"), Some(("a+b", false))),
            (vec![("x-api-key", "a")], plain.clone(), Some(("a", false))),
            (vec![("authorization", "Bearer b")], plain.clone(), Some(("b", true))),
            (vec![("authorization", "bearer b")], plain.clone(), Some(("b", true))),
            (vec![("x-goog-api-key", "c")], plain.clone(), Some(("c", false))),
            (vec![], Uri::from_static("/v1beta/models?x=1&key=d"), Some(("d", false))),
            (vec![("authorization", "Basic b")], plain.clone(), None),
            (vec![("x-api-key", "")], plain, None),
        ] {
            let headers = headers(&pairs);
            let found = presented(&headers, &uri);
            let found = found.as_ref().map(|(key, bearer)| (&**key, *bearer));
            assert_eq!(found, want, "{pairs:?}");
        }
    }

    #[test]
    fn only_known_keys_are_admitted_where_there_are_any() {
        let config = config("[clients]\nkeys = [\"client-1\", \"client-2\"]");
        assert!(admit(&config, Some(("client-2", true))).is_ok());
        assert!(admit(&config, Some(("client-3", true))).is_err());
        assert!(admit(&config, None).is_err());
    }

    #[test]
    fn r126_a_clients_own_gemini_key_goes_on() {
        let own = config("[upstream]\nkind = \"developer\"");
        let pass = |config: &Config, key| admit(config, key).map(|client| client.pass);
        assert!(matches!(pass(&own, Some(("whatever", true))), Ok(Pass::ApiKey(_))));
        assert!(pass(&own, None).is_err());
        let pooled = config("[upstream]\napi_keys = [\"k\"]");
        assert!(matches!(pass(&pooled, Some(("dummy", true))), Ok(Pass::Pool)));
        assert!(matches!(pass(&pooled, Some(("AIzaX", true))), Ok(Pass::ApiKey(_))));
        assert!(matches!(pass(&config(""), None), Ok(Pass::Pool)));
    }

    #[track_caller]
    fn origin(pairs: &[(&'static str, &'static str)], file: &str, want: bool) {
        let (config, uri) = (config(file), Uri::from_static("/"));
        let checked = check_origin(&config, config.listen.ip(), &headers(pairs), &uri);
        assert_eq!(checked.is_ok(), want, "{pairs:?}");
    }

    #[test]
    fn other_hosts_and_origins_are_refused_on_loopback() {
        origin(&[("host", "127.0.0.1:8741")], "", true);
        origin(&[("host", "localhost")], "", true);
        origin(&[("host", "[::1]:8741")], "", true);
        origin(&[], "", true);
        origin(&[("host", "evil.example:8741")], "", false);
        origin(&[("host", "gate.lan")], "[clients]\nhosts = [\"gate.lan\"]", true);
        origin(&[("host", "127.0.0.1"), ("origin", "https://evil.example")], "", false);
        origin(&[("host", "127.0.0.1"), ("origin", "http://localhost:3000")], "", true);
        origin(&[("host", "127.0.0.1"), ("origin", "vscode-webview://x")], "", true);
        origin(&[("host", "127.0.0.1"), ("origin", "null")], "", false);
        let all = "[clients]\ncors_origins = [\"*\"]";
        origin(&[("host", "127.0.0.1"), ("origin", "https://a.example")], all, true);
    }
}
