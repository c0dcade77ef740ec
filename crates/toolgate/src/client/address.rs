//! URLs of Google's APIs.

use toolgate_core::gemini::Backend;

/// Google's service, with the settings that its URLs need.
#[derive(Clone, Debug)]
pub(crate) enum Service {
    /// The Gemini Developer API.
    Developer,
    /// Vertex AI. Without a project, it is used with an API key ("express mode").
    Vertex { project: Option<String>, location: String },
}

/// URLs of the models.
#[derive(Clone, Debug)]
pub(crate) struct Address {
    pub(crate) backend: Backend,
    /// URL of the collection of models, up to and including `/models`.
    models: String,
    /// URL of the list of models.
    pub(crate) list: String,
}

impl Address {
    pub(crate) fn new(service: &Service, base: Option<&str>, version: Option<&str>) -> Self {
        match service {
            Service::Developer => {
                let base = base.unwrap_or("https://generativelanguage.googleapis.com");
                let models =
                    format!("{}/{}/models", without_slash(base), version.unwrap_or("v1beta"));
                Self { backend: Backend::Developer, list: models.clone(), models }
            }
            Service::Vertex { project, location } => {
                let host = match (base, location.as_str()) {
                    (Some(base), _) => without_slash(base).to_owned(),
                    (None, "global") => "https://aiplatform.googleapis.com".to_owned(),
                    (None, region @ ("us" | "eu")) => {
                        format!("https://aiplatform.{region}.rep.googleapis.com")
                    }
                    (None, location) => format!("https://{location}-aiplatform.googleapis.com"),
                };
                let root = format!("{host}/{}", version.unwrap_or("v1beta1"));
                let list = format!("{root}/publishers/google/models");
                let models = match project {
                    Some(project) => format!(
                        "{root}/projects/{project}/locations/{location}/publishers/google/models"
                    ),
                    None => list.clone(),
                };
                Self { backend: Backend::Vertex, models, list }
            }
        }
    }

    /// URL of a model; with a `verb` (`:generateContent`), of a method.
    pub(crate) fn of(&self, model: &str, verb: &str) -> String {
        let model = model.strip_prefix("models/").unwrap_or(model);
        // `tunedModels/x` is a sibling of `models/x`.
        let (folder, name) = match model.split_once('/') {
            Some((folder, name)) if self.backend == Backend::Developer => (Some(folder), name),
            _ => (None, model),
        };
        let mut url = match (folder, self.models.rsplit_once('/')) {
            (Some(folder), Some((root, _))) => format!("{root}/{}", segment(folder)),
            _ => self.models.clone(),
        };
        url.push('/');
        url.push_str(&segment(name));
        url.push_str(verb);
        url
    }
}

fn without_slash(base: &str) -> &str {
    base.trim_end_matches('/')
}

/// Percent-encodes a path segment.
pub(crate) fn segment(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~@".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(service: &Service, base: Option<&str>, model: &str, want: &str) {
        assert_eq!(Address::new(service, base, None).of(model, ":x"), want);
    }

    #[test]
    fn urls_of_models() {
        let google = "https://generativelanguage.googleapis.com/v1beta";
        let developer = Service::Developer;
        check(&developer, None, "gemini-x", &format!("{google}/models/gemini-x:x"));
        check(&developer, None, "models/gemini-x", &format!("{google}/models/gemini-x:x"));
        check(&developer, None, "tunedModels/a b", &format!("{google}/tunedModels/a%20b:x"));
        check(&developer, Some("http://h:1/"), "m", "http://h:1/v1beta/models/m:x");
        let vertex = |project: Option<&str>, location: &str| Service::Vertex {
            project: project.map(ToOwned::to_owned),
            location: location.to_owned(),
        };
        let path = |location: &str| {
            format!("v1beta1/projects/p/locations/{location}/publishers/google/models/m:x")
        };
        for (location, host) in [
            ("global", "aiplatform.googleapis.com"),
            ("eu", "aiplatform.eu.rep.googleapis.com"),
            ("us-east1", "us-east1-aiplatform.googleapis.com"),
        ] {
            let want = format!("https://{host}/{}", path(location));
            check(&vertex(Some("p"), location), None, "m", &want);
        }
        let express = "https://aiplatform.googleapis.com/v1beta1/publishers/google/models/m:x";
        check(&vertex(None, "global"), None, "m", express);
    }
}
