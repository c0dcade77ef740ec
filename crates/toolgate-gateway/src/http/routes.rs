//! The table of routes. `docs/operations.md` lists its patterns; a test compares the two.

use http::{HeaderMap, Method};
use toolgate_core::canon::{Failure, percent_decoded};
use toolgate_core::translate::Dialect;

use crate::api::{ResponsesEndpoint as Responses, gemini_methods};
use crate::identity::IDENTITY_PATH;

/// One row of the table.
#[derive(Debug)]
pub(super) struct Route {
    pub(super) methods: &'static str,
    /// Path: `{name}` stands for one segment, `{*}` at the end for any number of them.
    pub(super) pattern: &'static str,
    /// Dialect of replies; `None`: the one that the headers tell.
    pub(super) dialect: Option<Dialect>,
    pub(super) handler: Handler,
}

/// Endpoint of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Handler {
    Messages,
    CountTokens,
    Chat,
    Responses(Responses),
    Gemini,
    Native,
    Models,
    Dashboard,
    Health,
    Identity,
    Metrics,
    Ready,
    Telemetry,
}

/// Credentials that a handler requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// None.
    Open,
    /// A client key, where there are any; as user name or password of basic authentication, too.
    Operator,
    /// A client key, or the client's own Gemini credential.
    Client,
}

const fn route(
    methods: &'static str,
    pattern: &'static str,
    dialect: Option<Dialect>,
    handler: Handler,
) -> Route {
    Route { methods, pattern, dialect, handler }
}

const ANTHROPIC: Option<Dialect> = Some(Dialect::Anthropic);
const CHAT: Option<Dialect> = Some(Dialect::Chat);
const GEMINI: Option<Dialect> = Some(Dialect::Gemini);
const RESPONSES: Option<Dialect> = Some(Dialect::Responses);
/// Methods of a Gemini path depend on its verb.
const BY_PATH: &str = "";

/// All routes. The first pattern that matches a path decides; its rows name the methods.
pub(super) const ROUTES: &[Route] = &[
    route("POST", "/v1/messages", ANTHROPIC, Handler::Messages),
    route("POST", "/v1/messages/count_tokens", ANTHROPIC, Handler::CountTokens),
    route("GET", "/v1/responses", RESPONSES, Handler::Responses(Responses::WebSocket)),
    route("POST", "/v1/responses", RESPONSES, Handler::Responses(Responses::Create)),
    route("POST", "/v1/responses/compact", RESPONSES, Handler::Responses(Responses::Compact)),
    route("GET", "/v1/responses/{id}", RESPONSES, Handler::Responses(Responses::Retrieve)),
    route("DELETE", "/v1/responses/{id}", RESPONSES, Handler::Responses(Responses::Delete)),
    route("POST", "/v1/responses/{id}/cancel", RESPONSES, Handler::Responses(Responses::Cancel)),
    route(
        "GET",
        "/v1/responses/{id}/input_items",
        RESPONSES,
        Handler::Responses(Responses::InputItems),
    ),
    route(
        "POST",
        "/v1/conversations",
        RESPONSES,
        Handler::Responses(Responses::CreateConversation),
    ),
    route(
        "GET",
        "/v1/conversations/{id}",
        RESPONSES,
        Handler::Responses(Responses::RetrieveConversation),
    ),
    route(
        "POST",
        "/v1/conversations/{id}",
        RESPONSES,
        Handler::Responses(Responses::UpdateConversation),
    ),
    route(
        "DELETE",
        "/v1/conversations/{id}",
        RESPONSES,
        Handler::Responses(Responses::DeleteConversation),
    ),
    route(
        "GET",
        "/v1/conversations/{id}/items",
        RESPONSES,
        Handler::Responses(Responses::ListItems),
    ),
    route(
        "POST",
        "/v1/conversations/{id}/items",
        RESPONSES,
        Handler::Responses(Responses::AddItems),
    ),
    route(
        "GET",
        "/v1/conversations/{id}/items/{item}",
        RESPONSES,
        Handler::Responses(Responses::RetrieveItem),
    ),
    route(
        "DELETE",
        "/v1/conversations/{id}/items/{item}",
        RESPONSES,
        Handler::Responses(Responses::DeleteItem),
    ),
    route("POST", "/v1/chat/completions", CHAT, Handler::Chat),
    route("POST", "/v1/gemini", GEMINI, Handler::Native),
    route(BY_PATH, "/v1beta/{*}", GEMINI, Handler::Gemini),
    route(BY_PATH, "/v1beta1/{*}", GEMINI, Handler::Gemini),
    route(BY_PATH, "/v1alpha/{*}", GEMINI, Handler::Gemini),
    route(BY_PATH, "/v1/projects/{*}", GEMINI, Handler::Gemini),
    route(BY_PATH, "/v1/publishers/{*}", GEMINI, Handler::Gemini),
    route(BY_PATH, "/v1/models/{model}:{verb}", GEMINI, Handler::Gemini),
    route("GET, HEAD", "/v1/models", None, Handler::Models),
    route("GET, HEAD", "/v1/models/{*}", None, Handler::Models),
    route("GET, HEAD", "/", CHAT, Handler::Dashboard),
    route("GET, HEAD", "/healthz", CHAT, Handler::Health),
    route("GET, HEAD", "/api/hello", CHAT, Handler::Health),
    route("GET, HEAD", "/readyz", CHAT, Handler::Ready),
    route("GET, HEAD", "/metrics", CHAT, Handler::Metrics),
    route("GET, HEAD", IDENTITY_PATH, CHAT, Handler::Identity),
    route("POST", "/v1/metrics", ANTHROPIC, Handler::Telemetry),
    route("POST", "/v1/logs", ANTHROPIC, Handler::Telemetry),
    route("POST", "/v1/traces", ANTHROPIC, Handler::Telemetry),
    route("POST", "/api/event_logging/batch", ANTHROPIC, Handler::Telemetry),
    route("POST", "/api/event_logging/v2/batch", ANTHROPIC, Handler::Telemetry),
];

impl Handler {
    pub(super) fn access(self) -> Access {
        match self {
            Self::Health | Self::Identity | Self::Ready => Access::Open,
            Self::Dashboard | Self::Metrics | Self::Telemetry => Access::Operator,
            Self::Messages
            | Self::CountTokens
            | Self::Chat
            | Self::Responses(_)
            | Self::Gemini
            | Self::Native
            | Self::Models => Access::Client,
        }
    }
}

/// The route of a request.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) dialect: Dialect,
    /// `None`: there is no such path.
    pub(super) path: Option<FoundPath>,
}

/// A path of the table.
#[derive(Debug)]
pub(super) struct FoundPath {
    /// Methods of the path, or Google's error for a path that Gemini does not have.
    pub(super) methods: Result<String, Failure>,
    /// Handler for the method of the request; another of the path where it has none.
    pub(super) handler: Handler,
    /// Parameters of the path, decoded, in order.
    pub(super) parameters: Vec<String>,
}

impl FoundPath {
    /// Whether the path has this method.
    pub(super) fn allows(&self, method: &Method) -> bool {
        let methods = self.methods.as_deref().unwrap_or_default();
        methods.split(", ").any(|it| it == method.as_str())
    }
}

/// Finds the route of a request.
pub(super) fn find(method: &Method, path: &str, headers: &HeaderMap) -> Found {
    let spoken = spoken(headers);
    let path = path.trim_end_matches('/');
    let is_googles = path.strip_prefix("/v1/models").is_some() && spoken == Dialect::Gemini;
    let found = ROUTES.iter().find_map(|route| Some((route, matches(route.pattern, path)?)));
    let (handler, dialect, pattern, parameters) = match found {
        Some((route, _)) if route.handler == Handler::Models && is_googles => {
            (Handler::Gemini, GEMINI, BY_PATH, Vec::new())
        }
        // Only a call has a verb; a model's name may have a colon.
        Some((route, _))
            if route.pattern.starts_with("/v1/models/{model}:")
                && method != Method::POST
                && !is_googles =>
        {
            (Handler::Models, None, "/v1/models/{*}", Vec::new())
        }
        Some((route, parameters)) => (route.handler, route.dialect, route.pattern, parameters),
        None => return Found { dialect: spoken, path: None },
    };
    let dialect = dialect.unwrap_or(spoken);
    if handler == Handler::Gemini {
        let methods = gemini_methods(path).map(str::to_owned);
        return Found { dialect, path: Some(FoundPath { methods, handler, parameters }) };
    }
    let rows = || ROUTES.iter().filter(|route| route.pattern == pattern);
    let methods: Vec<_> = rows().map(|route| route.methods).collect();
    let is_own = |route: &&Route| route.methods.split(", ").any(|it| it == method.as_str());
    let handler = rows().find(is_own).map_or(handler, |route| route.handler);
    let methods = Ok(methods.join(", "));
    Found { dialect, path: Some(FoundPath { methods, handler, parameters }) }
}

/// Prefixes that stand for `/v1` where clients are given another base URL: none, twice, or that of
/// Google's OpenAI-compatible API.
const BASE_HABITS: &[(&str, &str)] = &[
    ("/v1/v1beta/", "/v1beta/"),
    ("/v1beta/v1beta/", "/v1beta/"),
    ("/v1/v1/", "/v1/"),
    ("/v1beta/openai/v1/", "/v1/"),
    ("/v1beta/openai/", "/v1/"),
    ("/messages", "/v1/messages"),
    ("/responses", "/v1/responses"),
    ("/conversations", "/v1/conversations"),
    ("/chat/completions", "/v1/chat/completions"),
    ("/models", "/v1/models"),
];

/// Path of the table that a client means by `path`; `None` where it is such a path already.
pub(super) fn known_path(path: &str) -> Option<String> {
    BASE_HABITS.iter().find_map(|(prefix, known)| {
        let rest = path.strip_prefix(prefix)?;
        let is_whole = prefix.ends_with('/') || rest.is_empty() || rest.starts_with('/');
        is_whole.then(|| format!("{known}{rest}"))
    })
}

/// Matches a path without a slash at its end; returns its parameters.
fn matches(pattern: &str, path: &str) -> Option<Vec<String>> {
    if pattern == "/" {
        return path.is_empty().then(Vec::new);
    }
    let mut parameters = Vec::new();
    let mut segments = path.split('/');
    for wanted in pattern.split('/') {
        if wanted == "{*}" {
            return segments.next().map(|_| parameters);
        }
        let segment = segments.next()?;
        match wanted {
            "{model}:{verb}" => {
                let has_verb = segment.contains(':') || segments.any(|it| it.contains(':'));
                return has_verb.then_some(parameters);
            }
            _ if wanted.starts_with('{') => {
                let decoded = String::from_utf8(percent_decoded(segment));
                parameters.push(decoded.unwrap_or_else(|_| segment.to_owned()));
            }
            _ if wanted == segment => {}
            _ => return None,
        }
    }
    segments.next().is_none().then_some(parameters)
}

/// Dialect that the headers of a request tell.
fn spoken(headers: &HeaderMap) -> Dialect {
    if headers.contains_key("anthropic-version") {
        Dialect::Anthropic
    } else if headers.contains_key("x-goog-api-key") || headers.contains_key("x-goog-api-client") {
        Dialect::Gemini
    } else {
        Dialect::Chat
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(method: &Method, path: &str, header: &'static str, want: &str) {
        let mut headers = HeaderMap::new();
        if !header.is_empty() {
            headers.insert(header, "x".parse().unwrap());
        }
        let found = find(method, path, &headers);
        let shown = match &found.path {
            None => format!("none {}", found.dialect.name()),
            Some(it) => {
                let methods = it.methods.as_deref().unwrap_or("error");
                format!(
                    "{:?} {} {methods} {}",
                    it.handler,
                    found.dialect.name(),
                    it.parameters.join("/")
                )
            }
        };
        assert_eq!(shown.trim_end(), want, "{method} {path}");
    }

    #[test]
    fn paths_of_other_base_urls_are_known() {
        for (path, want) in [
            ("/messages", Some("/v1/messages")),
            ("/messages/count_tokens", Some("/v1/messages/count_tokens")),
            ("/messagesx", None),
            ("/responses/resp_1/cancel", Some("/v1/responses/resp_1/cancel")),
            ("/models", Some("/v1/models")),
            ("/models/m:generateContent", Some("/v1/models/m:generateContent")),
            ("/v1/v1/messages", Some("/v1/messages")),
            ("/v1beta/openai/chat/completions", Some("/v1/chat/completions")),
            ("/v1beta/v1beta/models/m:countTokens", Some("/v1beta/models/m:countTokens")),
            ("/v1/messages", None),
            ("/v1beta/models/m:generateContent", None),
            ("/", None),
        ] {
            assert_eq!(known_path(path).as_deref(), want, "{path}");
        }
    }

    #[test]
    fn paths_lead_to_their_endpoints() {
        let (chat, anthropic) = (Dialect::Chat.name(), Dialect::Anthropic.name());
        let (gemini, responses) = (Dialect::Gemini.name(), Dialect::Responses.name());
        check(&Method::POST, "/v1/messages/", "", &format!("Messages {anthropic} POST"));
        check(
            &Method::GET,
            "/v1/responses/a%2Fb",
            "",
            &format!("Responses(Retrieve) {responses} GET, DELETE a/b"),
        );
        check(
            &Method::GET,
            "/v1/responses/compact",
            "",
            &format!("Responses(Compact) {responses} POST"),
        );
        check(
            &Method::PUT,
            "/v1/conversations/c",
            "",
            &format!("Responses(RetrieveConversation) {responses} GET, POST, DELETE c"),
        );
        check(&Method::GET, "/v1/models", "", &format!("Models {chat} GET, HEAD"));
        check(
            &Method::GET,
            "/v1/models/m",
            "anthropic-version",
            &format!("Models {anthropic} GET, HEAD"),
        );
        check(
            &Method::GET,
            "/v1/models",
            "x-goog-api-key",
            &format!("Gemini {gemini} GET, HEAD, POST, PATCH, DELETE"),
        );
        check(&Method::POST, "/v1/models/m:generateContent", "", &format!("Gemini {gemini} POST"));
        check(&Method::GET, "/v1beta/tunedModels/x", "", &format!("Gemini {gemini} error"));
        check(&Method::GET, "", "", &format!("Dashboard {chat} GET, HEAD"));
        check(&Method::GET, "/v1/nothing", "", &format!("none {chat}"));
    }

    /// Every pattern is in the documentation.
    #[test]
    fn the_documentation_lists_every_route() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operations.md");
        let docs = std::fs::read_to_string(path).unwrap();
        for route in ROUTES {
            let shown = format!("`{}`", route.pattern);
            assert!(docs.contains(&shown), "docs/operations.md lacks {shown}");
        }
    }
}
