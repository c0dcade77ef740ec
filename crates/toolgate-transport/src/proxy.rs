//! Selection of a proxy for a URL.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use http::Uri;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};

use crate::SetupError;

/// Rules that select an HTTP proxy for a URL.
///
/// ```
/// use toolgate_transport::Proxy;
///
/// let env = |name: &str| (name == "https_proxy").then(|| "http://proxy:3128".to_owned());
/// let proxy = Proxy::from_env(&env)?;
/// assert!(proxy.is_used_for("https://generativelanguage.googleapis.com"));
/// assert!(!proxy.is_used_for("https://localhost:8443"));
/// # Ok::<(), toolgate_transport::SetupError>(())
/// ```
#[derive(Clone, Default)]
pub struct Proxy {
    matcher: Option<Arc<Matcher>>,
    includes_loopback: bool,
}

impl Proxy {
    /// Never uses a proxy.
    pub fn none() -> Self {
        Self::default()
    }

    /// Reads `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY`, or their lower-case names. They apply to `https`
    /// URLs; hosts on loopback and plain `http` URLs are reached directly.
    pub fn from_env(env: &dyn Fn(&str) -> Option<String>) -> Result<Self, SetupError> {
        let get = |upper: &str| {
            let names = [upper.to_owned(), upper.to_ascii_lowercase()];
            names.into_iter().find_map(|name| {
                env(&name).filter(|value| !value.trim().is_empty()).map(|value| (name, value))
            })
        };
        let Some((name, url)) = get("HTTPS_PROXY").or_else(|| get("ALL_PROXY")) else {
            return Ok(Self::none());
        };
        check(&name, &url)?;
        let exceptions = get("NO_PROXY").map(|(_, value)| value).unwrap_or_default();
        let matcher = Matcher::builder().https(url.trim()).no(exceptions).build();
        Ok(Self { matcher: Some(Arc::new(matcher)), includes_loopback: false })
    }

    /// Uses one proxy for every URL, loopback and plain `http` included. Credentials stand in the URL:
    /// `http://user:password@proxy:3128`.
    pub fn for_all(url: &str) -> Result<Self, SetupError> {
        check("proxy", url)?;
        let matcher = Matcher::builder().all(url.trim()).build();
        Ok(Self { matcher: Some(Arc::new(matcher)), includes_loopback: true })
    }

    /// Whether a URL is reached through a proxy.
    pub fn is_used_for(&self, url: &str) -> bool {
        url.parse().is_ok_and(|url| self.intercept(&url).is_some())
    }

    pub(crate) fn intercept(&self, url: &Uri) -> Option<Intercept> {
        let matcher = self.matcher.as_ref()?;
        if !self.includes_loopback && url.host().is_none_or(is_loopback) {
            return None;
        }
        matcher.intercept(url)
    }
}

/// Shows the proxy without its credentials.
impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.matcher {
            Some(matcher) => write!(f, "Proxy({matcher:?})"),
            None => f.write_str("Proxy(none)"),
        }
    }
}

/// Refuses a URL that names no HTTP proxy. The message has the setting's name only: the URL may hold a
/// password.
fn check(setting: &str, url: &str) -> Result<(), SetupError> {
    let uri: Option<Uri> = url.trim().parse().ok();
    let is_http = uri.is_some_and(|uri| {
        uri.host().is_some_and(|host| !host.is_empty())
            && matches!(uri.scheme_str(), None | Some("http" | "https"))
    });
    if is_http {
        return Ok(());
    }
    let reason = "is not the URL of an HTTP proxy, such as http://proxy.example:3128";
    Err(SetupError(format!("{setting} {reason}")))
}

fn is_loopback(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    match host.parse::<IpAddr>() {
        Ok(address) => address.is_loopback(),
        Err(_) => {
            let host = host.to_ascii_lowercase();
            host == "localhost" || host.ends_with(".localhost")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_env(env: &[(&str, &str)], url: &str, want: Option<&str>) {
        let get = |name: &str| {
            env.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        };
        let used = Proxy::from_env(&get).unwrap().intercept(&url.parse().unwrap());
        assert_eq!(used.map(|it| it.uri().to_string()).as_deref(), want, "{env:?} {url}");
    }

    #[test]
    fn the_environment_selects_a_proxy() {
        let google = "https://generativelanguage.googleapis.com/v1beta";
        let proxy = Some("http://proxy:3128/");
        for name in ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"] {
            check_env(&[(name, "http://proxy:3128")], google, proxy);
            check_env(&[(name, "user:password@proxy:3128")], google, proxy);
        }
        let both = [("HTTPS_PROXY", "http://proxy:3128"), ("ALL_PROXY", "http://other:1")];
        check_env(&both, google, proxy);
        check_env(&[("HTTP_PROXY", "http://proxy:3128")], google, None);
        check_env(&[("HTTPS_PROXY", "")], google, None);
        for exception in
            ["*", "googleapis.com", ".googleapis.com", "a.b, generativelanguage.googleapis.com"]
        {
            for name in ["NO_PROXY", "no_proxy"] {
                check_env(&[("HTTPS_PROXY", "http://proxy:3128"), (name, exception)], google, None);
            }
        }
        check_env(
            &[("HTTPS_PROXY", "http://proxy:3128"), ("NO_PROXY", "10.0.0.0/8")],
            google,
            proxy,
        );
        let private = "https://10.1.2.3/";
        check_env(
            &[("HTTPS_PROXY", "http://proxy:3128"), ("NO_PROXY", "10.0.0.0/8")],
            private,
            None,
        );
    }

    #[test]
    fn loopback_is_reached_directly_unless_requested() {
        for url in
            ["https://localhost:1", "https://a.localhost", "https://127.0.0.9", "https://[::1]:1"]
        {
            check_env(&[("ALL_PROXY", "http://proxy:3128")], url, None);
            assert!(Proxy::for_all("http://proxy:3128").unwrap().is_used_for(url), "{url}");
        }
        check_env(&[("ALL_PROXY", "http://proxy:3128")], "http://example.com", None);
        assert!(!Proxy::none().is_used_for("https://example.com"));
    }

    #[test]
    fn unusable_proxies_are_errors_without_their_credentials() {
        for url in ["socks5://user:hunter2@proxy:1", "http://", "ht tp://user:hunter2@x", "/path"] {
            let error = Proxy::for_all(url).unwrap_err().to_string();
            assert!(error.starts_with("proxy is not the URL of an HTTP proxy"), "{error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
        let shown = format!("{:?}", Proxy::for_all("http://user:hunter2@proxy:1").unwrap());
        assert!(shown.contains("proxy:1") && !shown.contains("hunter2"), "{shown}");
    }
}
