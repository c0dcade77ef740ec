//! Where requests go, and what clients must present.

use http::Uri;
use serde::{Deserialize, Serialize};
use toolgate_transport::Service;

use super::{Config, Upstream, UpstreamKind};

/// Key that a client must present.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    /// One of `clients.keys`.
    ClientKey,
    /// A Gemini key of its own: the gateway has no credentials.
    GeminiKey,
    /// None.
    Open,
}

impl Config {
    /// Returns the key that clients must present.
    pub fn access(&self) -> Access {
        let has_target = self.upstream.kind == UpstreamKind::Sim || self.upstream.url.is_some();
        if !self.clients.keys.is_empty() {
            Access::ClientKey
        } else if has_target || self.upstream.auth.has_credentials() {
            Access::Open
        } else {
            Access::GeminiKey
        }
    }
}

impl Upstream {
    /// Base URL of upstream requests; `None` for the embedded simulator.
    pub fn base_url(&self) -> Option<String> {
        match (&self.url, self.kind) {
            (Some(url), _) => Some(url.clone()),
            (None, UpstreamKind::Sim) => None,
            (None, UpstreamKind::Developer | UpstreamKind::Vertex) => {
                Some(self.service().base_url())
            }
        }
    }

    /// Google's service, or the one that the upstream simulates.
    pub(crate) fn service(&self) -> Service {
        match self.kind {
            UpstreamKind::Developer | UpstreamKind::Sim => Service::Developer,
            UpstreamKind::Vertex => {
                Service::Vertex { project: self.project.clone(), location: self.location.clone() }
            }
        }
    }

    /// Host (and port, where the URL has one) of upstream requests, without credentials.
    pub fn host(&self) -> String {
        let Some(url) = self.base_url() else { return "embedded simulator".to_owned() };
        let uri = url.parse::<Uri>().ok();
        let host = uri.as_ref().and_then(|uri| {
            let host = uri.host()?;
            Some(uri.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")))
        });
        host.unwrap_or_else(|| "an address without a host".to_owned())
    }

    /// Service and place that answer: equal for two configurations that ask the same upstream.
    pub fn target(&self) -> String {
        let Some(url) = self.base_url() else { return "simulator".to_owned() };
        let plain =
            match url.split_once("://").map(|(scheme, rest)| (scheme, rest.rsplit_once('@'))) {
                Some((scheme, Some((_, place)))) => format!("{scheme}://{place}"),
                Some((_, None)) | None => url,
            };
        match (self.kind, &self.project) {
            (UpstreamKind::Vertex, Some(project)) => {
                format!("{plain} {project} {}", self.location)
            }
            (UpstreamKind::Vertex, None) | (UpstreamKind::Developer | UpstreamKind::Sim, _) => {
                plain
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Sources;

    fn config(file: &str) -> Config {
        let sources = Sources { file: Some(("test", file)), env: &|_| None, flags: &[] };
        Config::resolve(&sources).unwrap()
    }

    #[test]
    fn hosts_are_named_for_every_upstream() {
        let vertex = "[upstream]\nkind = \"vertex\"\nbearer_token = \"t\"\n";
        for (file, host, access) in [
            ("".to_owned(), "embedded simulator", Access::Open),
            (
                "[upstream]\nkind = \"developer\"".to_owned(),
                "generativelanguage.googleapis.com",
                Access::GeminiKey,
            ),
            (
                "[upstream]\napi_keys = [\"k\"]".to_owned(),
                "generativelanguage.googleapis.com",
                Access::Open,
            ),
            (
                "[upstream]\nurl = \"http://ann:s3cret@example.test:9000/base/\"".to_owned(),
                "example.test:9000",
                Access::Open,
            ),
            (vertex.to_owned(), "aiplatform.googleapis.com", Access::Open),
            (
                format!("{vertex}location = \"eu\""),
                "aiplatform.eu.rep.googleapis.com",
                Access::Open,
            ),
            (
                format!("{vertex}location = \"us-east1\"\n[clients]\nkeys = [\"client-key\"]"),
                "us-east1-aiplatform.googleapis.com",
                Access::ClientKey,
            ),
        ] {
            let config = config(&file);
            assert_eq!(config.upstream.host(), host);
            assert_eq!(config.access(), access, "{host}");
            assert!(!config.upstream.target().contains("s3cret"));
        }
    }
}
