//! Client authentication, and the credential that the upstream gets.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::AUTHORIZATION;
use http::{HeaderMap, Uri};
use ring::digest::{SHA256, digest};
use toolgate_core::canon::{Failure, FailureKind, percent_decoded};
pub(crate) use toolgate_store::Owner;

use crate::config::{Config, Secret, UpstreamKind};

/// An authenticated client.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    /// Owner of the client's state: a digest of its key.
    pub owner: Owner,
    /// Credential for the upstream.
    pub pass: Pass,
}

/// Credential for the upstream.
#[derive(Clone, Debug)]
pub(crate) enum Pass {
    /// The client's own Gemini key.
    ApiKey(Secret),
    /// The client's own OAuth token.
    Bearer(Secret),
    /// The gateway's own keys.
    Pool,
}

/// A key that a request presents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Presented<'a> {
    key: Cow<'a, str>,
    /// It came as `Authorization: Bearer`.
    is_bearer: bool,
}

/// Maximum number of keys of a request that are looked at.
const MAX_PRESENTED: usize = 8;

/// The keys that a request presents, in the order in which they count: `x-goog-api-key`, `x-api-key`,
/// `Authorization: Bearer`, `?key=`.
pub(crate) fn presented<'a>(headers: &'a HeaderMap, uri: &'a Uri) -> Vec<Presented<'a>> {
    let values = |name: &'static str| {
        headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).map(str::trim)
    };
    let key = |key| Presented { key, is_bearer: false };
    let named = values("x-goog-api-key").chain(values("x-api-key"));
    let bearer = values("authorization")
        .filter_map(|value| credentials(value, "bearer"))
        .map(|token| Presented { key: Cow::Borrowed(token), is_bearer: true });
    named
        .map(|value| key(Cow::Borrowed(value)))
        .chain(bearer)
        .chain(query_keys(uri).map(key))
        .filter(|presented| !presented.key.is_empty())
        .take(MAX_PRESENTED)
        .collect()
}

/// The rest of an `Authorization` header of this scheme.
fn credentials<'a>(value: &'a str, wanted: &str) -> Option<&'a str> {
    let (scheme, rest) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case(wanted).then_some(rest.trim())
}

fn query_keys(uri: &Uri) -> impl Iterator<Item = Cow<'_, str>> {
    let pairs = uri.query().unwrap_or_default().split('&');
    pairs.filter_map(|pair| pair.strip_prefix("key=")).filter_map(|key| {
        if !key.contains(['%', '+']) {
            return Some(Cow::Borrowed(key));
        }
        let bytes = percent_decoded(&key.replace('+', " "));
        String::from_utf8(bytes).ok().map(Cow::Owned)
    })
}

/// Admits an operator: any request where there are no client keys, otherwise one with a client key, also as the
/// user name or the password of basic authentication, which browsers ask for.
pub(crate) fn admit_operator(
    config: &Config,
    headers: &HeaderMap,
    uri: &Uri,
) -> Result<(), Failure> {
    if config.clients.keys.is_empty() {
        return Ok(());
    }
    let mut keys = presented(headers, uri);
    let basic = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let basic = basic.and_then(|value| credentials(value, "basic"));
    let basic = basic.and_then(|text| STANDARD.decode(text).ok());
    if let Some((user, password)) = basic
        .as_deref()
        .and_then(|it| std::str::from_utf8(it).ok())
        .and_then(|it| it.split_once(':'))
    {
        keys.extend(
            [user, password]
                .map(|key| Presented { key: Cow::Owned(key.to_owned()), is_bearer: false }),
        );
    }
    known(config, &keys).map(|_| ())
}

/// The first of the presented keys that is a client key. Keys that are none do not hide it.
fn known<'a>(config: &Config, presented: &'a [Presented<'_>]) -> Result<&'a str, Failure> {
    // All keys are compared, so that the time does not depend on the match.
    let is_known = |key: &str| {
        let keys = config.clients.keys.iter();
        keys.fold(false, |known, candidate| known | constant_time_eq(candidate.expose(), key))
    };
    let first = presented.iter().fold(None, |first: Option<&str>, presented| {
        let is_known = is_known(&presented.key);
        first.or_else(|| is_known.then_some(&*presented.key))
    });
    let message = if presented.is_empty() {
        "no key: send one of the gateway's client keys as x-api-key, x-goog-api-key or Authorization: Bearer"
    } else {
        "the key is not one of the gateway's client keys"
    };
    first.ok_or_else(|| Failure::new(FailureKind::Authentication, message))
}

/// Authenticates a client. Where there are no client keys, a key of Google's own form counts before others.
pub(crate) fn admit(config: &Config, presented: &[Presented<'_>]) -> Result<Client, Failure> {
    if !config.clients.keys.is_empty() {
        let key = known(config, presented)?;
        return Ok(Client { owner: Owner::of(key), pass: Pass::Pool });
    }
    let own = presented.iter().find(|it| looks_like_gemini(&it.key)).or_else(|| presented.first());
    let presented = own.map(|it| (&*it.key, it.is_bearer));
    let owner = Owner::of(presented.map_or("", |(key, _)| key));
    let has_own = config.upstream.auth.has_credentials();
    let pass = match (config.upstream.kind, presented) {
        (UpstreamKind::Sim, Some((key, _)))
            if config.upstream.is_fallback && looks_like_gemini(key) =>
        {
            Pass::ApiKey(Secret::new(key))
        }
        (UpstreamKind::Sim, _) => Pass::Pool,
        (_, Some((key, _))) if looks_like_gemini(key) => Pass::ApiKey(Secret::new(key)),
        (UpstreamKind::Vertex, Some((token, true))) if token.starts_with("ya29.") => {
            Pass::Bearer(Secret::new(token))
        }
        _ if has_own => Pass::Pool,
        (_, Some((key, _))) => Pass::ApiKey(Secret::new(key)),
        // Another server may need no key; if it does, its error is passed on.
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

/// Constant-time comparison.
fn constant_time_eq(a: &str, b: &str) -> bool {
    let (a, b) = (digest(&SHA256, a.as_bytes()), digest(&SHA256, b.as_bytes()));
    a.as_ref().iter().zip(b.as_ref()).fold(0, |difference, (x, y)| difference | (x ^ y)) == 0
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

    fn key(key: &str, is_bearer: bool) -> Presented<'_> {
        Presented { key: Cow::Borrowed(key), is_bearer }
    }

    #[test]
    fn keys_are_found_wherever_clients_put_them() {
        let plain = Uri::from_static("/v1/messages");
        for (pairs, uri, want) in [
            (vec![], Uri::from_static("/v1beta/models?key=a%2Bb"), vec![key("a+b", false)]),
            (vec![("x-api-key", "a")], plain.clone(), vec![key("a", false)]),
            (vec![("authorization", "Bearer b")], plain.clone(), vec![key("b", true)]),
            (vec![("authorization", "bearer b")], plain.clone(), vec![key("b", true)]),
            (vec![("x-goog-api-key", "c")], plain.clone(), vec![key("c", false)]),
            (vec![], Uri::from_static("/v1beta/models?x=1&key=d"), vec![key("d", false)]),
            (vec![("authorization", "Basic b")], plain.clone(), vec![]),
            (vec![("x-api-key", "")], plain.clone(), vec![]),
            (
                vec![("authorization", "Bearer b"), ("x-api-key", "a"), ("x-goog-api-key", "c")],
                plain,
                vec![key("c", false), key("a", false), key("b", true)],
            ),
        ] {
            assert_eq!(presented(&headers(&pairs), &uri), want, "{pairs:?}");
        }
        let many = vec![("x-api-key", "a"); 20];
        assert_eq!(presented(&headers(&many), &Uri::from_static("/")).len(), MAX_PRESENTED);
    }

    #[test]
    fn only_known_keys_are_admitted_where_there_are_any() {
        let config = config("[clients]\nkeys = [\"client-1\", \"client-2\"]");
        assert!(admit(&config, &[key("client-2", true)]).is_ok());
        assert!(admit(&config, &[key("client-3", true)]).is_err());
        assert!(admit(&config, &[]).is_err());
    }

    #[test]
    fn a_foreign_key_does_not_hide_a_known_one() {
        let keyed = config("[clients]\nkeys = [\"client-1\", \"client-2\"]");
        let owner = |keys: &[Presented<'_>]| admit(&keyed, keys).map(|client| client.owner).ok();
        let (foreign, one, two) =
            (key("sk-ant", false), key("client-1", true), key("client-2", true));
        assert_eq!(owner(&[foreign.clone(), two.clone()]), Some(Owner::of("client-2")));
        assert_eq!(owner(&[one, two]), Some(Owner::of("client-1")), "the first one counts");
        assert_eq!(owner(std::slice::from_ref(&foreign)), None);
        let own = config("[upstream]\nkind = \"developer\"");
        match admit(&own, &[foreign, key("AIzaX", true)]).unwrap().pass {
            Pass::ApiKey(key) => assert_eq!(key.expose(), "AIzaX"),
            Pass::Bearer(_) | Pass::Pool => panic!("the client's own key is used"),
        }
    }

    #[test]
    fn counters_need_a_client_key_where_there_are_any() {
        let keyed = config("[clients]\nkeys = [\"client-1\"]");
        let basic = |text: &str| format!("Basic {}", STANDARD.encode(text));
        for (value, uri, want) in [
            ("Bearer client-1".to_owned(), "/metrics", true),
            (basic("any:client-1"), "/", true),
            (basic("client-1:"), "/", true),
            (basic("any:client-2"), "/", false),
            ("Basic client-1".to_owned(), "/", false),
            ("none".to_owned(), "/?key=client-1", true),
            ("none".to_owned(), "/", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, value.parse().unwrap());
            let admitted = admit_operator(&keyed, &headers, &uri.parse().unwrap());
            assert_eq!(admitted.is_ok(), want, "{value} {uri}");
        }
        let uri = Uri::from_static("/");
        assert!(admit_operator(&config(""), &HeaderMap::new(), &uri).is_ok());
    }

    #[test]
    fn r126_a_clients_own_gemini_key_goes_on() {
        let own = config("[upstream]\nkind = \"developer\"");
        let pass = |config: &Config, name: Option<&str>| {
            let keys: Vec<_> = name.map(|name| key(name, true)).into_iter().collect();
            admit(config, &keys).map(|client| client.pass)
        };
        assert!(matches!(pass(&own, Some("whatever")), Ok(Pass::ApiKey(_))));
        assert!(pass(&own, None).is_err());
        let pooled = config("[upstream]\napi_keys = [\"k\"]");
        assert!(matches!(pass(&pooled, Some("dummy")), Ok(Pass::Pool)));
        assert!(matches!(pass(&pooled, Some("AIzaX")), Ok(Pass::ApiKey(_))));
        assert!(matches!(pass(&config(""), None), Ok(Pass::Pool)));
    }
}
