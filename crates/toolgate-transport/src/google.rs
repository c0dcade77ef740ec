//! Hosts, paths and methods of Google's APIs.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use toolgate_core::canon::Backend;

/// URL that exchanges a service account's signed assertion for an OAuth token.
pub const OAUTH_TOKEN_URL: &str = "https://oauth2.googleapis.com/token";
/// OAuth scope of Vertex AI.
pub const CLOUD_PLATFORM_SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";

/// Page size of model lists; the largest that Google accepts.
const MODELS_PER_PAGE: u32 = 1000;
/// Characters that are encoded in a path segment: all but RFC 3986's unreserved ones and `@`.
const ENCODED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'@');

/// Google's service, with the settings that its URLs need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Service {
    /// The Gemini Developer API.
    Developer,
    /// Vertex AI.
    Vertex {
        /// The project; without one, an API key is needed ("express mode").
        project: Option<String>,
        /// The location: `global`, `us`, `eu`, or a region.
        location: String,
    },
}

impl Service {
    /// The back end whose rules apply.
    pub fn backend(&self) -> Backend {
        match self {
            Self::Developer => Backend::Developer,
            Self::Vertex { .. } => Backend::Vertex,
        }
    }

    /// Google's base URL, without the API version.
    pub fn base_url(&self) -> String {
        match self {
            Self::Developer => "https://generativelanguage.googleapis.com".to_owned(),
            Self::Vertex { location, .. } => match location.as_str() {
                "global" => "https://aiplatform.googleapis.com".to_owned(),
                "us" | "eu" => format!("https://aiplatform.{location}.rep.googleapis.com"),
                region => format!("https://{region}-aiplatform.googleapis.com"),
            },
        }
    }

    /// API version with all features.
    pub fn api_version(&self) -> &'static str {
        match self {
            Self::Developer => "v1beta",
            Self::Vertex { .. } => "v1beta1",
        }
    }
}

/// Method of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// `countTokens`
    CountTokens,
    /// `generateContent`: the answer in one piece.
    Generate,
    /// `streamGenerateContent`: the answer as server-sent events.
    Stream,
}

impl Verb {
    /// Suffix of the model's path, with its query.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::CountTokens => ":countTokens",
            Self::Generate => ":generateContent",
            Self::Stream => ":streamGenerateContent?alt=sse",
        }
    }
}

/// URLs of one service.
///
/// ```
/// use toolgate_transport::{Endpoints, Service, Verb};
///
/// let endpoints = Endpoints::new(&Service::Developer, None, None);
/// let path = endpoints.method_path("gemini-3.6-flash", Verb::Generate);
/// assert_eq!(path, "/v1beta/models/gemini-3.6-flash:generateContent");
/// assert_eq!(endpoints.base(), "https://generativelanguage.googleapis.com");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoints {
    backend: Backend,
    base: String,
    models: String,
    list: String,
}

impl Endpoints {
    /// Creates the URLs of a service. `base` and `version` replace Google's.
    pub fn new(service: &Service, base: Option<&str>, version: Option<&str>) -> Self {
        let base =
            base.map_or_else(|| service.base_url(), |it| it.trim_end_matches('/').to_owned());
        let version = version.unwrap_or_else(|| service.api_version());
        let (models, list) = match service {
            Service::Developer => {
                let models = format!("/{version}/models");
                (models.clone(), models)
            }
            Service::Vertex { project, location } => {
                // One list serves all projects.
                let list = format!("/{version}/publishers/google/models");
                let models = match project {
                    Some(project) => format!(
                        "/{version}/projects/{project}/locations/{location}/publishers/google/models"
                    ),
                    None => list.clone(),
                };
                (models, list)
            }
        };
        Self { backend: service.backend(), base, models, list }
    }

    /// The back end whose rules apply.
    pub fn backend(&self) -> Backend {
        self.backend
    }

    /// Base URL, without the API version.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Path of the collection of models, up to and including `/models`.
    pub fn models_path(&self) -> &str {
        &self.models
    }

    /// Path of the list of models.
    pub fn list_path(&self) -> &str {
        &self.list
    }

    /// Path of a page of the list of models.
    pub fn page_path(&self, token: Option<&str>) -> String {
        let mut path = format!("{}?pageSize={MODELS_PER_PAGE}", self.list);
        if let Some(token) = token {
            path.push_str("&pageToken=");
            path.push_str(&path_segment(token));
        }
        path
    }

    /// Path of a model.
    pub fn model_path(&self, model: &str) -> String {
        let model = model.strip_prefix("models/").unwrap_or(model);
        // `tunedModels/x` is a sibling of `models/x`.
        match (self.backend, model.split_once('/'), self.models.rsplit_once('/')) {
            (Backend::Developer, Some((folder, name)), Some((root, _))) => {
                format!("{root}/{}/{}", path_segment(folder), path_segment(name))
            }
            _ => format!("{}/{}", self.models, path_segment(model)),
        }
    }

    /// Path of a model's method, with its query.
    pub fn method_path(&self, model: &str, verb: Verb) -> String {
        let mut path = self.model_path(model);
        path.push_str(verb.suffix());
        path
    }

    /// URL of a path.
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }
}

/// Percent-encodes a path segment or a query value.
pub fn path_segment(name: &str) -> Cow<'_, str> {
    utf8_percent_encode(name, ENCODED).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(service: &Service, base: Option<&str>, model: &str, want: &str) {
        let endpoints = Endpoints::new(service, base, None);
        let url = endpoints.url(&endpoints.method_path(model, Verb::Generate));
        assert_eq!(url, format!("{want}:generateContent"));
    }

    #[test]
    fn urls_of_models() {
        let google = "https://generativelanguage.googleapis.com/v1beta";
        let developer = Service::Developer;
        check(&developer, None, "gemini-x", &format!("{google}/models/gemini-x"));
        check(&developer, None, "models/gemini-x", &format!("{google}/models/gemini-x"));
        check(&developer, None, "tunedModels/a b", &format!("{google}/tunedModels/a%20b"));
        check(&developer, Some("http://h:1/"), "m", "http://h:1/v1beta/models/m");
        let vertex = |project: Option<&str>, location: &str| Service::Vertex {
            project: project.map(ToOwned::to_owned),
            location: location.to_owned(),
        };
        let path = |location: &str| {
            format!("v1beta1/projects/p/locations/{location}/publishers/google/models/m")
        };
        for (location, host) in [
            ("global", "aiplatform.googleapis.com"),
            ("eu", "aiplatform.eu.rep.googleapis.com"),
            ("us-east1", "us-east1-aiplatform.googleapis.com"),
        ] {
            let want = format!("https://{host}/{}", path(location));
            check(&vertex(Some("p"), location), None, "m", &want);
        }
        let express = "https://aiplatform.googleapis.com/v1beta1/publishers/google/models/m";
        check(&vertex(None, "global"), None, "m", express);
        check(&vertex(None, "global"), None, "m/x", &format!("{express}%2Fx"));
    }

    #[test]
    fn vertex_lists_models_beside_all_projects() {
        let vertex = Service::Vertex { project: Some("p".into()), location: "global".into() };
        for (service, want) in [
            (Service::Developer, "/v1beta/models?pageSize=1000&pageToken=a%2Fb"),
            (vertex, "/v1beta1/publishers/google/models?pageSize=1000&pageToken=a%2Fb"),
        ] {
            assert_eq!(Endpoints::new(&service, None, None).page_path(Some("a/b")), want);
        }
    }
}
