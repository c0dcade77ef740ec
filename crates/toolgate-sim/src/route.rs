//! Which method of the API a URL means.

use toolgate_core::canon::Backend;
use toolgate_validate::Method;

/// Resource that a URL addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// A method of a model.
    Model { backend: Backend, version: String, model: String, method: Method },
    /// A method that the simulator does not have.
    OtherMethod { version: String, model: String, method: String },
    /// `models.list`
    List(Backend),
    /// `models.get`
    Get { version: String, model: String },
    /// `cachedContents`, all or one by its name.
    Caches(Option<String>),
    /// Control endpoint of the simulator.
    Window(String),
    /// Nothing of Google's.
    Unknown,
}

/// Reads a path, percent-escapes and all.
pub(crate) fn route(path: &str) -> Route {
    let path = unescape(path);
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    let (version, rest) = match segments.split_first() {
        Some((&"__sim", rest)) => return Route::Window(rest.join("/")),
        Some((version, rest)) if matches!(*version, "v1" | "v1beta" | "v1beta1" | "v1alpha") => {
            (*version, rest)
        }
        _ => ("v1beta", &segments[..]),
    };
    let version = version.to_owned();
    let (backend, last) = match rest {
        ["cachedContents"] => return Route::Caches(None),
        ["cachedContents", id] => return Route::Caches(Some(format!("cachedContents/{id}"))),
        ["models"] => return Route::List(Backend::Developer),
        ["publishers", "google", "models"] => return Route::List(Backend::Vertex),
        ["models", last] => (Backend::Developer, *last),
        ["publishers", "google", "models", last]
        | ["projects", _, "locations", _, "publishers", "google", "models", last] => {
            (Backend::Vertex, *last)
        }
        _ => return Route::Unknown,
    };
    let Some((model, method)) = last.rsplit_once(':') else {
        return Route::Get { version, model: last.to_owned() };
    };
    let model = model.to_owned();
    let method = match method {
        "generateContent" => Method::Generate,
        "streamGenerateContent" => Method::Stream,
        "countTokens" => Method::CountTokens,
        other => return Route::OtherMethod { version, model, method: other.to_owned() },
    };
    Route::Model { backend, version, model, method }
}

/// The value of a query parameter.
pub(crate) fn parameter(query: &str, name: &str) -> Option<String> {
    query
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .find(|(key, _)| *key == name)
        .map(|(_, value)| unescape(&value.replace('+', " ")))
}

fn unescape(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        let digits = tail.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        match digits.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(escaped) if byte == b'%' => {
                bytes.push(escaped);
                rest = tail.get(2..).unwrap_or(&[]);
            }
            _ => {
                bytes.push(byte);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, want: Option<(Backend, &str, &str, Method)>) {
        let got = route(path);
        let got = if let Route::Model { backend, version, model, method } = &got {
            Some((*backend, version.as_str(), model.as_str(), *method))
        } else {
            None
        };
        assert_eq!(got, want, "{path}");
    }

    #[test]
    fn paths() {
        use Backend::{Developer, Vertex};
        use Method::{CountTokens, Generate, Stream};
        check("/v1beta/models/m:generateContent", Some((Developer, "v1beta", "m", Generate)));
        check("/v1/models/m:streamGenerateContent", Some((Developer, "v1", "m", Stream)));
        check("/models/m%3AcountTokens", Some((Developer, "v1beta", "m", CountTokens)));
        check(
            "/v1beta1/projects/p/locations/global/publishers/google/models/m:generateContent",
            Some((Vertex, "v1beta1", "m", Generate)),
        );
        check(
            "/v1beta1/publishers/google/models/m:streamGenerateContent",
            Some((Vertex, "v1beta1", "m", Stream)),
        );
        check("/v1beta/models/m:embedContent", None);
        check("/v1beta/cachedContents", None);
        assert_eq!(route("/v1/models"), Route::List(Developer));
        assert_eq!(route("/__sim/requests"), Route::Window("requests".into()));
        assert_eq!(
            route("/v1beta/models/m"),
            Route::Get { version: "v1beta".into(), model: "m".into() }
        );
    }

    #[test]
    fn parameters() {
        assert_eq!(parameter("alt=sse&key=a%2Bb", "key").as_deref(), Some("a+b"));
        assert_eq!(parameter("alt=sse", "key"), None);
    }
}
