//! Templates of HTTP requests.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use http::{Method, Uri};
use serde_json::Value;
use serde_json::value::RawValue;

/// Template of a request: `GET https://api.example.com/v1/weather/{city}`.
///
/// Placeholders stand in the path and in values of the query, never in the scheme or the host.
#[derive(Clone, Debug)]
pub struct HttpTemplate {
    method: Method,
    /// Scheme and authority.
    origin: String,
    path: Vec<Piece>,
    query: Vec<(String, Vec<Piece>)>,
    body: Body,
}

/// Body of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Body {
    /// No body.
    #[default]
    None,
    /// All arguments, as one JSON object.
    All,
    /// One argument, as JSON.
    Argument(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Argument(String),
}

/// Reason why a template is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TemplateError {
    /// The request is not `METHOD URL`.
    #[error("write `METHOD https://host/path`, as in `GET https://example.com/{{id}}`")]
    Form,
    /// The method is not one of those that a tool may use.
    #[error("unsupported method `{0}`: use GET, HEAD, POST, PUT, PATCH or DELETE")]
    Method(String),
    /// The URL is not absolute, or has a placeholder or a user before its path.
    #[error("the URL must begin with http:// or https:// and a fixed host")]
    Url,
    /// A `{` has no `}`, or a placeholder has no name.
    #[error("malformed placeholder in `{0}`")]
    Placeholder(String),
}

/// A request that is ready to be sent.
#[derive(Debug)]
pub(super) struct Filled {
    pub(super) method: Method,
    pub(super) uri: Uri,
    pub(super) body: Option<String>,
}

impl HttpTemplate {
    /// Reads a template.
    ///
    /// # Errors
    /// Fails if the request is not of the form `METHOD URL`, or a placeholder stands where an argument
    /// could change the address.
    pub fn new(
        request: &str,
        query: impl IntoIterator<Item = (String, String)>,
        body: Body,
    ) -> Result<Self, TemplateError> {
        let (method, url) = request.trim().split_once(' ').ok_or(TemplateError::Form)?;
        let method = match method {
            "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE" => {
                method.parse().map_err(|_| TemplateError::Method(method.to_owned()))?
            }
            other => return Err(TemplateError::Method(other.to_owned())),
        };
        let url = url.trim();
        let scheme = ["https://", "http://"].into_iter().find(|it| url.starts_with(it));
        let scheme = scheme.ok_or(TemplateError::Url)?;
        let rest = url.strip_prefix(scheme).unwrap_or_default();
        let (authority, path) = match rest.find(['/', '?', '#']) {
            Some(at) => rest.split_at(at),
            None => (rest, "/"),
        };
        let is_fixed = !authority.is_empty() && !authority.contains(['{', '}', '@', ' ']);
        if !is_fixed || path.contains('#') {
            return Err(TemplateError::Url);
        }
        let (path, fixed_query) = path.split_once('?').unwrap_or((path, ""));
        let mut pairs = Vec::new();
        for pair in fixed_query.split('&').filter(|it| !it.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            pairs.push((name.to_owned(), pieces(value)?));
        }
        for (name, value) in query {
            pairs.push((name, pieces(&value)?));
        }
        let path = if path.is_empty() { "/" } else { path };
        let template = Self {
            method,
            origin: format!("{scheme}{authority}"),
            path: pieces(path)?,
            query: pairs,
            body,
        };
        let probe: Result<Uri, _> = template.origin.parse();
        probe.map_err(|_| TemplateError::Url)?;
        Ok(template)
    }

    /// Makes a request of arguments.
    pub(super) fn fill(&self, arguments: &RawValue) -> Result<Filled, String> {
        let object: BTreeMap<String, &RawValue> = serde_json::from_str(arguments.get())
            .map_err(|_| "the arguments are no object".to_owned())?;
        let mut url = self.origin.clone();
        let mut segment = String::new();
        for piece in &self.path {
            match piece {
                Piece::Text(text) => segment.push_str(text),
                Piece::Argument(name) => {
                    let value = object.get(name).and_then(|it| scalar(it));
                    let value = value.ok_or_else(|| format!("`{name}` is required"))?;
                    if value.is_empty() {
                        return Err(format!("`{name}` is empty"));
                    }
                    encode(&value, &mut segment);
                }
            }
        }
        // Servers resolve dot segments, and some do so after decoding.
        if segment.split('/').any(is_dots) {
            return Err("a path segment is `.` or `..`".to_owned());
        }
        url.push_str(&segment);
        let mut separator = '?';
        for (name, pieces) in &self.query {
            for value in query_values(pieces, &object) {
                url.push(separator);
                separator = '&';
                encode(name, &mut url);
                url.push('=');
                encode(&value, &mut url);
            }
        }
        let body = match &self.body {
            Body::None => None,
            Body::All => Some(arguments.get().to_owned()),
            Body::Argument(name) => object.get(name).map(|it| it.get().to_owned()),
        };
        let uri = url.parse().map_err(|_| "the arguments make no valid URL".to_owned())?;
        Ok(Filled { method: self.method.clone(), uri, body })
    }

    /// Names of all placeholders.
    pub fn placeholders(&self) -> Vec<&str> {
        let queries = self.query.iter().flat_map(|(_, pieces)| pieces);
        let names = self.path.iter().chain(queries).filter_map(|piece| match piece {
            Piece::Argument(name) => Some(name.as_str()),
            Piece::Text(_) => None,
        });
        let body = match &self.body {
            Body::Argument(name) => Some(name.as_str()),
            Body::None | Body::All => None,
        };
        names.chain(body).collect()
    }

    /// Checks that the schema of the arguments has every placeholder.
    pub(crate) fn missing_in(&self, schema: &Value) -> Option<&str> {
        let properties = schema.get("properties");
        self.placeholders()
            .into_iter()
            .find(|name| properties.and_then(|it| it.get(name)).is_none())
    }
}

fn is_dots(segment: &str) -> bool {
    matches!(segment, "." | "..")
}

/// Splits a template at its placeholders.
fn pieces(text: &str) -> Result<Vec<Piece>, TemplateError> {
    let malformed = || TemplateError::Placeholder(text.to_owned());
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        let (before, after) = rest.split_at(at);
        if !before.is_empty() {
            pieces.push(Piece::Text(before.to_owned()));
        }
        let inner = after.strip_prefix('{').ok_or_else(malformed)?;
        let (name, tail) = inner.split_once('}').ok_or_else(malformed)?;
        if name.is_empty() || name.contains('{') {
            return Err(malformed());
        }
        pieces.push(Piece::Argument(name.to_owned()));
        rest = tail;
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest.to_owned()));
    }
    Ok(pieces)
}

/// Text of a value in a URL: strings without quotes, numbers as they were written.
fn scalar(value: &RawValue) -> Option<String> {
    match value.get().as_bytes().first() {
        Some(b'"') => serde_json::from_str(value.get()).ok(),
        Some(b'n') | None => None,
        Some(_) => Some(value.get().to_owned()),
    }
}

/// Values of one name in the query: none where an argument is missing, several for a list.
fn query_values(pieces: &[Piece], arguments: &BTreeMap<String, &RawValue>) -> Vec<String> {
    if let [Piece::Argument(name)] = pieces
        && let Some(value) = arguments.get(name)
        && let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(value.get())
    {
        return items.into_iter().filter_map(scalar).collect();
    }
    let mut text = String::new();
    for piece in pieces {
        match piece {
            Piece::Text(part) => text.push_str(part),
            Piece::Argument(name) => match arguments.get(name).and_then(|it| scalar(it)) {
                Some(value) => text.push_str(&value),
                None => return Vec::new(),
            },
        }
    }
    vec![text]
}

/// Percent-encodes everything but unreserved characters.
fn encode(text: &str, out: &mut String) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(request: &str, query: &[(&str, &str)], arguments: &str) -> Result<String, String> {
        let query = query.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let template = HttpTemplate::new(request, query, Body::None).unwrap();
        let raw: Box<RawValue> = serde_json::from_str(arguments).unwrap();
        template.fill(&raw).map(|it| it.uri.to_string())
    }

    #[test]
    fn arguments_are_encoded() {
        let cases = [
            (r#"{"city":"Zürich / CH"}"#, "https://a.example/w/Z%C3%BCrich%20%2F%20CH"),
            (r#"{"city":"x?y=1#z"}"#, "https://a.example/w/x%3Fy%3D1%23z"),
            (r#"{"city":"@evil.example/"}"#, "https://a.example/w/%40evil.example%2F"),
            (r#"{"city":"a\r\nb"}"#, "https://a.example/w/a%0D%0Ab"),
            (r#"{"city":1e2}"#, "https://a.example/w/1e2"),
        ];
        for (arguments, expected) in cases {
            assert_eq!(
                fill("GET https://a.example/w/{city}", &[], arguments).as_deref(),
                Ok(expected)
            );
        }
    }

    #[test]
    fn arguments_cannot_leave_their_segment() {
        for arguments in
            [r#"{"city":".."}"#, r#"{"city":"."}"#, r#"{"city":""}"#, "{}", r#"{"city":null}"#]
        {
            let filled = fill("GET https://a.example/w/{city}/now", &[], arguments);
            assert!(filled.is_err(), "{arguments} {filled:?}");
        }
        assert!(fill("GET https://a.example/{a}{b}", &[], r#"{"a":".","b":"."}"#).is_err());
    }

    #[test]
    fn queries_are_built() {
        let query = [("unit", "{unit}"), ("tag", "{tags}"), ("q", "name:{n}")];
        let url = "GET https://a.example/w?fixed=1";
        assert_eq!(
            fill(url, &query, r#"{"tags":["a","b c"],"n":"x&y"}"#).as_deref(),
            Ok("https://a.example/w?fixed=1&tag=a&tag=b%20c&q=name%3Ax%26y")
        );
        assert_eq!(fill(url, &query, "{}").as_deref(), Ok("https://a.example/w?fixed=1"));
    }

    #[test]
    fn templates_have_a_fixed_host() {
        for bad in [
            "https://a.example/",
            "TRACE https://a.example/",
            "GET https://{host}/",
            "GET https://a.example{port}/",
            "GET https://user@a.example/",
            "GET ftp://a.example/",
            "GET /relative",
            "GET https://a.example/{",
            "GET https://a.example/{}",
            "GET https://a.example/x}",
        ] {
            assert!(HttpTemplate::new(bad, [], Body::None).is_err(), "{bad}");
        }
    }
}
