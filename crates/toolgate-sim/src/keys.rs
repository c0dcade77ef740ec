//! API keys: checks and redaction.

use http::HeaderMap;
use toolgate_core::canon::Backend;
use toolgate_validate::GoogleError;

use crate::config::Keys;
use crate::errors;
use crate::route;

impl Keys {
    /// Checks the key of a request: in `x-goog-api-key`, in the query, or as a bearer token.
    pub(crate) fn check(
        &self,
        backend: Backend,
        query: &str,
        headers: &HeaderMap,
    ) -> Result<(), GoogleError> {
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let bearer = header("authorization")
            .and_then(|value| value.split_once(' '))
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
            .map(|(_, token)| token.trim().to_owned());
        let key =
            header("x-goog-api-key").map(str::to_owned).or_else(|| route::parameter(query, "key"));
        let is_token = key.is_none();
        let Some(given) = key.or(bearer).filter(|given| !given.is_empty()) else {
            return match (self, backend) {
                (Self::NotNeeded, _) => Ok(()),
                (Self::Any | Self::These(_), Backend::Developer) => Err(errors::no_key()),
                (Self::Any | Self::These(_), Backend::Vertex) => Err(errors::bad_token(true)),
            };
        };
        let is_valid = match self {
            Self::NotNeeded => true,
            Self::Any => given != "invalid",
            Self::These(keys) => keys.contains(&given),
        };
        match (is_valid, is_token) {
            (true, _) => Ok(()),
            (false, true) => Err(errors::bad_token(false)),
            (false, false) => Err(errors::bad_key()),
        }
    }
}

/// Query without keys, for the request log.
pub(crate) fn without_key(query: &str) -> String {
    let is_shown = |pair: &&str| !pair.starts_with("key=") && !pair.starts_with("access_token=");
    query.split('&').filter(is_shown).collect::<Vec<_>>().join("&")
}

/// Headers without secrets, for the request log.
pub(crate) fn without_secrets(headers: &HeaderMap) -> Vec<(String, String)> {
    let secret = ["authorization", "x-goog-api-key", "x-api-key", "cookie"];
    headers
        .iter()
        .filter(|(name, _)| !secret.contains(&name.as_str()))
        .map(|(name, value)| {
            (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned())
        })
        .collect()
}
