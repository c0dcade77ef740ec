//! Parts of a Gemini client's request that are forwarded: model and verb, query parameters and headers by
//! allow-list.
//!
//! Everything that could act on an account (`x-goog-user-project`, quota users) goes along
//! only with the client's own credential. With the gateway's credentials it would let a client choose
//! the project that pays, or make Google refuse the gateway's keys. Credentials themselves never go
//! through here: the upstream client sends exactly one, in a header.

use std::borrow::Cow;

use http::header::{HeaderMap, HeaderName, HeaderValue};
use toolgate_core::canon::{Failure, FailureKind, brief, percent_decoded};

use crate::auth::Pass;

/// Headers that are always forwarded.
const HEADERS: [&str; 4] =
    ["user-agent", "x-goog-api-client", "x-goog-fieldmask", "x-server-timeout"];
/// Headers that are forwarded with the client's own credential only.
const ACCOUNT_HEADERS: [&str; 2] = ["x-goog-quota-user", "x-goog-user-project"];
/// Query parameters that are always forwarded, beside `alt`.
const PARAMETERS: [&str; 12] = [
    "fields",
    "$fields",
    "prettyPrint",
    "$prettyPrint",
    "pageSize",
    "page_size",
    "pageToken",
    "page_token",
    "filter",
    "orderBy",
    "languageCode",
    "view",
];
/// Query parameters that are forwarded with the client's own credential only.
const ACCOUNT_PARAMETERS: [&str; 4] = ["quotaUser", "$quotaUser", "userProject", "$userProject"];
/// Longest part of a client's path that an error repeats, in bytes.
const QUOTED: usize = 100;

/// A Gemini path, split.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Asked<'a> {
    /// The model, decoded, without `models/`; empty for the list.
    pub(super) model: String,
    /// `generateContent` and the like; empty for the model itself.
    pub(super) verb: String,
    /// The API version, where the path names one.
    pub(super) version: Option<&'a str>,
}

/// The query of a request as it goes upstream.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Query {
    /// Parameters, with `?` in front where there are any.
    pub(super) text: String,
    /// Whether a stream is to consist of events.
    pub(super) is_sse: bool,
}

/// Splits `/v1beta/models/gemini-x:verb`, also below a Vertex AI project and without a version. The
/// model's name is percent-decoded once; whether it can be a name is for the upstream client to check.
pub(super) fn read_path(path: &str) -> Result<Asked<'_>, Failure> {
    let missing = || {
        let message = format!("there is no {}", brief(path, QUOTED));
        Failure::new(FailureKind::NotFound, message)
    };
    let (before, rest) = path.rsplit_once("/models").ok_or_else(missing)?;
    let rest = match rest.strip_prefix('/') {
        None if rest.is_empty() => "",
        None => return Err(missing()),
        Some(rest) if rest.contains('/') => return Err(missing()),
        Some(rest) => rest,
    };
    let version = before.trim_start_matches('/').split('/').next().filter(|it| !it.is_empty());
    let name = decoded(rest).ok_or_else(|| bad("the model's name is not UTF-8".to_owned()))?;
    let (model, verb) = name.split_once(':').unwrap_or((&name, ""));
    if !verb.bytes().all(|it| it.is_ascii_alphabetic()) {
        return Err(missing());
    }
    if model.is_empty() && !verb.is_empty() {
        return Err(bad("the path names no model".to_owned()));
    }
    Ok(Asked { model: model.to_owned(), verb: verb.to_owned(), version })
}

/// Keeps the query parameters that may go upstream.
pub(super) fn forwarded_query(query: &str, pass: &Pass) -> Result<Query, Failure> {
    let mut forwarded = Query::default();
    let mut push = |pair: &str| {
        forwarded.text.push(if forwarded.text.is_empty() { '?' } else { '&' });
        forwarded.text.push_str(pair);
    };
    let mut alt = None;
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let Some(name) = decoded(name) else { continue };
        if matches!(&*name, "alt" | "$alt") {
            alt = Some(value);
        } else if PARAMETERS.contains(&&*name)
            || ACCOUNT_PARAMETERS.contains(&&*name) && is_own(pass)
        {
            push(pair);
        } else {
            tracing::debug!(name = &*brief(&name, QUOTED), "query parameter not forwarded");
        }
    }
    match alt {
        None => {}
        Some("json") => push("alt=json"),
        Some("sse") => push("alt=sse"),
        Some(_) => return Err(bad("alt: only `json` and `sse` are supported".to_owned())),
    }
    forwarded.is_sse = alt == Some("sse");
    Ok(forwarded)
}

/// Keeps the headers that may go upstream.
pub(super) fn forwarded_headers(
    headers: &HeaderMap,
    pass: &Pass,
) -> Vec<(HeaderName, HeaderValue)> {
    let account = ACCOUNT_HEADERS.iter().filter(|_| is_own(pass));
    let names = HEADERS.iter().chain(account);
    let named = names.filter_map(|name| {
        headers.get(*name).map(|value| (HeaderName::from_static(name), value.clone()))
    });
    named.collect()
}

/// Whether the upstream is shown the client's own credential.
fn is_own(pass: &Pass) -> bool {
    match pass {
        Pass::ApiKey(_) | Pass::Bearer(_) => true,
        Pass::Pool => false,
    }
}

fn decoded(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains('%') {
        return Some(Cow::Borrowed(text));
    }
    String::from_utf8(percent_decoded(text)).ok().map(Cow::Owned)
}

fn bad(message: String) -> Failure {
    Failure::new(FailureKind::InvalidRequest, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Secret;

    #[test]
    fn paths_are_decoded_once_and_split() {
        for (path, model, verb, version) in [
            ("/v1beta/models/g:generateContent", "g", "generateContent", Some("v1beta")),
            ("/v1beta/models/g%3AcountTokens", "g", "countTokens", Some("v1beta")),
            ("/v1/projects/p/locations/l/publishers/google/models/g:x", "g", "x", Some("v1")),
            ("/models/g:x", "g", "x", None),
            ("/v1beta/models", "", "", Some("v1beta")),
            ("/v1beta/models/", "", "", Some("v1beta")),
            ("/v1beta/models/a%2F..%2Fb:x", "a/../b", "x", Some("v1beta")),
            ("/v1beta/models/a%252Fb:x", "a%2Fb", "x", Some("v1beta")),
            ("/v1beta/models/a%00b:x", "a\0b", "x", Some("v1beta")),
        ] {
            let asked = read_path(path).unwrap();
            assert_eq!((&*asked.model, &*asked.verb, asked.version), (model, verb, version));
        }
        for (path, kind) in [
            ("/v1beta/modelsx:y", FailureKind::NotFound),
            ("/v1beta/models/g/operations/1", FailureKind::NotFound),
            ("/v1beta/tunedModels/g:x", FailureKind::NotFound),
            ("/v1beta/models%2Fg:x", FailureKind::NotFound),
            ("/v1beta/models/g:x/../../y", FailureKind::NotFound),
            ("/v1beta/models/g:a%3Fb", FailureKind::NotFound),
            ("/v1beta/models/:generateContent", FailureKind::InvalidRequest),
            ("/v1beta/models/%ff:generateContent", FailureKind::InvalidRequest),
        ] {
            assert_eq!(read_path(path).unwrap_err().kind, kind, "{path}");
        }
    }

    #[test]
    fn parameters_about_an_account_need_the_clients_own_credential() {
        let own = Pass::ApiKey(Secret::new("k"));
        for (query, pooled, with_own) in [
            ("alt=sse", "?alt=sse", "?alt=sse"),
            (
                "%24alt=sse&prettyPrint=false",
                "?prettyPrint=false&alt=sse",
                "?prettyPrint=false&alt=sse",
            ),
            (
                "pageSize=5&pageToken=a%2Fb",
                "?pageSize=5&pageToken=a%2Fb",
                "?pageSize=5&pageToken=a%2Fb",
            ),
            ("key=1&access_token=2&oauth_token=3&bearer_token=4&%6Bey=5", "", ""),
            ("callback=f&$httpHeaders=a&%24.xgafv=1&upload_protocol=raw&x", "", ""),
            ("quotaUser=u&%24userProject=p", "", "?quotaUser=u&%24userProject=p"),
        ] {
            assert_eq!(forwarded_query(query, &Pass::Pool).unwrap().text, pooled, "{query}");
            assert_eq!(forwarded_query(query, &own).unwrap().text, with_own, "{query}");
        }
        assert!(forwarded_query("alt=json&$alt=sse", &own).unwrap().is_sse);
        assert!(!forwarded_query("alt=json", &own).unwrap().is_sse);
        assert!(forwarded_query("alt=proto", &own).is_err());
    }
}
