//! Which door a request goes through.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http::header::{
    ACCEPT_ENCODING, ALLOW, CONNECTION, HeaderName, HeaderValue, ORIGIN, WWW_AUTHENTICATE,
};
use http::{Method, Request, StatusCode};
use hyper::body::{Body as _, Incoming};
use toolgate_core::canon::{Failure, FailureKind};
use toolgate_core::responses;
use toolgate_core::translate::{Dialect, encode_error};

use crate::app::App;
use crate::auth::{self, Owner};
use crate::clock::Seed;
use crate::doors::encoding::{Encoding, KNOWN};
use crate::doors::{self, Visit, ops};
use crate::identity::{self, IDENTITY_PATH};
use crate::line::{BodyState, Line, Linger};
use crate::origin;
use crate::receive::{Pace, receive};
use crate::reply::{self, Reply};
use crate::server::LocalAddress;
use crate::turn::{Ledger, session_of};

/// Answers one request. Whatever happens, the answer names the request's id.
pub(crate) async fn answer(app: Arc<App>, line: &Arc<Line>, request: Request<Incoming>) -> Reply {
    let (request_id, seed) = app.next_request();
    let origin = request.headers().get(ORIGIN).cloned();
    let is_complete = request.body().is_end_stream();
    line.set_body(if is_complete { BodyState::Received } else { BodyState::Unread });
    // Until it is known who asks.
    line.linger(Linger::Stranger);
    let mut reply = route(Arc::clone(&app), line, request, &request_id, seed).await;
    let headers = reply.headers_mut();
    if let Ok(id) = HeaderValue::try_from(&request_id) {
        for name in ["x-toolgate-request-id", "request-id", "x-request-id"] {
            headers.insert(HeaderName::from_static(name), id.clone());
        }
    }
    if let Some(origin) = origin
        && origin.to_str().is_ok_and(|text| origin::allows_origin(&app.config(), text))
    {
        headers.insert(http::header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(http::header::VARY, HeaderValue::from_static("origin"));
        headers.insert(
            http::header::ACCESS_CONTROL_EXPOSE_HEADERS,
            HeaderValue::from_static(
                "x-toolgate-request-id, request-id, x-request-id, retry-after",
            ),
        );
    }
    match line.body() {
        BodyState::Received => line.linger(Linger::No),
        // What is left of the body cannot be told from the next request.
        BodyState::Unread => drop(headers.insert(CONNECTION, HeaderValue::from_static("close"))),
        BodyState::Late => {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
            *reply.status_mut() = StatusCode::REQUEST_TIMEOUT;
        }
    }
    reply
}

/// A request on its way to its endpoint.
struct Routing<'a> {
    app: Arc<App>,
    line: &'a Arc<Line>,
    request_id: &'a str,
    dialect: Dialect,
}

impl Routing<'_> {
    /// A refusal before the endpoint, counted and logged.
    fn refused(&self, failure: &Failure, status: Option<StatusCode>) -> Reply {
        self.note(failure);
        let reply = encode_error(self.dialect, failure, self.request_id);
        reply::error(match status {
            Some(status) => reply::with_status(reply, status),
            None => reply,
        })
    }

    fn note(&self, failure: &Failure) {
        let owner = Owner::of("");
        Ledger::new(Arc::clone(&self.app), self.dialect, owner, self.request_id).failed(failure);
    }

    /// A path that does not exist. OpenAI's error for what Gemini does not find is about models; this one
    /// is about the path.
    fn missing(&self, asked: &str) -> Reply {
        let message = format!("there is no {asked}");
        match self.dialect {
            Dialect::Anthropic | Dialect::Gemini => {
                self.refused(&Failure::new(FailureKind::NotFound, message), None)
            }
            Dialect::Chat | Dialect::Responses => {
                self.note(&Failure::new(FailureKind::NotFound, message.clone()));
                let message = format!("{message} (request id: {})", self.request_id);
                let body = responses::error_body(&message, "invalid_request_error", None, None);
                reply::json(StatusCode::NOT_FOUND, body)
            }
        }
    }

    /// A method that the path does not have.
    fn no_method(&self, asked: &str, allowed: &'static str) -> Reply {
        let message = format!("there is no {asked}; this path has {allowed}");
        let failure = Failure::new(FailureKind::InvalidRequest, message);
        let mut reply = self.refused(&failure, Some(StatusCode::METHOD_NOT_ALLOWED));
        reply.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
        reply
    }

    /// Reads a short body that is not needed, so that the connection can be used again.
    async fn discard(&self, body: &mut Incoming) {
        if self.line.body() == BodyState::Unread
            && body.size_hint().lower() <= DISCARDED as u64
            && receive(body, DISCARDED, Pace::new(DISCARD_TIME), Ok::<_, Infallible>).await.is_ok()
        {
            self.line.set_body(BodyState::Received);
        }
    }
}

/// Largest body that is read though it is not needed.
const DISCARDED: usize = 64 << 10;
/// Time that such a body may take.
const DISCARD_TIME: Duration = Duration::from_secs(5);

/// Where a request wants to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Door {
    CountTokens,
    Dashboard,
    Health,
    Messages,
    Metrics,
    Models(Dialect),
    ChatCompletions,
    Gemini,
    Identity,
    Native,
    Ready,
    Responses,
    Telemetry,
    Unknown(Dialect),
}

impl Door {
    /// The dialect of its errors.
    fn dialect(self) -> Dialect {
        match self {
            Self::CountTokens | Self::Messages | Self::Telemetry => Dialect::Anthropic,
            Self::Gemini | Self::Native => Dialect::Gemini,
            Self::Responses => Dialect::Responses,
            Self::ChatCompletions
            | Self::Dashboard
            | Self::Health
            | Self::Identity
            | Self::Metrics
            | Self::Ready => Dialect::Chat,
            Self::Models(dialect) | Self::Unknown(dialect) => dialect,
        }
    }
}

fn door(method: &Method, path: &str, headers: &http::HeaderMap) -> Door {
    let path = path.trim_end_matches('/');
    match path {
        "/v1/messages" => Door::Messages,
        "/v1/messages/count_tokens" => Door::CountTokens,
        "/v1/chat/completions" | "/chat/completions" => Door::ChatCompletions,
        "/v1/gemini" => Door::Native,
        "/healthz" => Door::Health,
        IDENTITY_PATH => Door::Identity,
        "/readyz" => Door::Ready,
        "/metrics" => Door::Metrics,
        "" => Door::Dashboard,
        "/api/hello" => Door::Health,
        "/v1/metrics"
        | "/v1/logs"
        | "/v1/traces"
        | "/api/event_logging/batch"
        | "/api/event_logging/v2/batch" => Door::Telemetry,
        _ if path == "/v1/responses"
            || path.starts_with("/v1/responses/")
            || path == "/v1/conversations"
            || path.starts_with("/v1/conversations/") =>
        {
            Door::Responses
        }
        _ if is_gemini(method, path, headers) => Door::Gemini,
        _ if path == "/v1/models" || path.starts_with("/v1/models/") => {
            Door::Models(spoken(headers))
        }
        _ => Door::Unknown(spoken(headers)),
    }
}

/// Gemini's own paths; `/v1/models` belongs to whoever's headers say so.
fn is_gemini(method: &Method, path: &str, headers: &http::HeaderMap) -> bool {
    let Some((version, rest)) = path.strip_prefix('/').and_then(|path| path.split_once('/')) else {
        return false;
    };
    match version {
        "v1beta" | "v1beta1" | "v1alpha" => true,
        "v1" if rest.starts_with("projects/") || rest.starts_with("publishers/") => true,
        "v1" if rest.starts_with("models") => {
            (method == Method::POST && rest.contains(':')) || spoken(headers) == Dialect::Gemini
        }
        "models" => rest.contains(':'),
        _ => false,
    }
}

/// The dialect that a request's headers speak.
fn spoken(headers: &http::HeaderMap) -> Dialect {
    if headers.contains_key("anthropic-version") {
        Dialect::Anthropic
    } else if headers.contains_key("x-goog-api-key") || headers.contains_key("x-goog-api-client") {
        Dialect::Gemini
    } else {
        Dialect::Chat
    }
}

/// About how long a request's head is, as it came.
fn head_length(request: &Request<Incoming>) -> usize {
    let path = request.uri().path_and_query().map_or(0, |path| path.as_str().len());
    request
        .headers()
        .iter()
        .fold(path, |sum, (name, value)| sum + name.as_str().len() + value.as_bytes().len() + 4)
}

/// The methods of a path. There is no such path: Google's error for Gemini's endpoints, otherwise `None`.
fn methods(door: Door, path: &str) -> Result<&'static str, Option<Failure>> {
    match door {
        Door::ChatCompletions
        | Door::CountTokens
        | Door::Messages
        | Door::Native
        | Door::Telemetry => Ok("POST"),
        Door::Dashboard
        | Door::Health
        | Door::Identity
        | Door::Metrics
        | Door::Models(_)
        | Door::Ready => Ok("GET, HEAD"),
        Door::Gemini => doors::gemini_methods(path).map_err(Some),
        Door::Responses => doors::responses_methods(path).ok_or(None),
        Door::Unknown(_) => Err(None),
    }
}

/// Checks a request in the order of what the checks cost, and hands it to its endpoint. A request without
/// a valid key takes no concurrency slot and no memory, and its body is not read.
async fn route(
    app: Arc<App>,
    line: &Arc<Line>,
    request: Request<Incoming>,
    request_id: &str,
    seed: Seed,
) -> Reply {
    let door = door(request.method(), request.uri().path(), request.headers());
    let dialect = door.dialect();
    let current = app.current();
    let config = &current.config;
    let on = Routing { app: Arc::clone(&app), line, request_id, dialect };
    if let Err((status, message)) = origin::check_protocol(&request) {
        return on.refused(&Failure::new(FailureKind::InvalidRequest, message), Some(status));
    }
    let length = head_length(&request);
    if length > config.limits.header {
        let message = format!("the request's head has {length} bytes, which is too many");
        let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        return on.refused(&Failure::new(FailureKind::TooLarge, message), Some(status));
    }
    let listens = app.started.listen.ip();
    if let Err(failure) = origin::check_origin(config, listens, request.headers(), request.uri()) {
        return on.refused(&failure, None);
    }
    let method = request.method().clone();
    if method == Method::OPTIONS {
        return ops::preflight(config, request.headers());
    }
    let allowed = methods(door, request.uri().path());
    let is_allowed = |allowed: &str| allowed.split(", ").any(|it| it == method.as_str());
    let client = match door {
        Door::Health | Door::Identity | Door::Ready => None,
        Door::Dashboard | Door::Metrics | Door::Telemetry => {
            if let Err(failure) = auth::admit_operator(config, request.headers(), request.uri()) {
                let mut reply = on.refused(&failure, None);
                // Browsers ask for a password.
                let challenge = HeaderValue::from_static("Basic realm=\"toolgate\"");
                reply.headers_mut().insert(WWW_AUTHENTICATE, challenge);
                return reply;
            }
            None
        }
        Door::ChatCompletions
        | Door::CountTokens
        | Door::Gemini
        | Door::Messages
        | Door::Models(_)
        | Door::Native
        | Door::Responses
        | Door::Unknown(_) => {
            let presented = auth::presented(request.headers(), request.uri());
            match auth::admit(config, &presented) {
                Ok(client) => Some(client),
                Err(failure) => return on.refused(&failure, None),
            }
        }
    };
    line.linger(Linger::Client);
    let (head, mut body) = request.into_parts();
    let may_need_body = match door {
        Door::Gemini => !matches!(method, Method::GET | Method::HEAD),
        Door::ChatCompletions
        | Door::CountTokens
        | Door::Dashboard
        | Door::Health
        | Door::Identity
        | Door::Messages
        | Door::Metrics
        | Door::Models(_)
        | Door::Native
        | Door::Ready
        | Door::Responses
        | Door::Telemetry
        | Door::Unknown(_) => method == Method::POST,
    };
    let needs_body =
        may_need_body && client.is_some() && allowed.as_ref().is_ok_and(|it| is_allowed(it));
    if !needs_body {
        on.discard(&mut body).await;
    }
    let request = Request::from_parts(head, body);
    let asked = || format!("{method} {}", request.uri().path());
    match allowed {
        Err(None) => return on.missing(&asked()),
        Err(Some(failure)) => return on.refused(&failure, None),
        Ok(allowed) if !is_allowed(allowed) => return on.no_method(&asked(), allowed),
        Ok(_) => {}
    }
    let Some(client) = client else {
        return match door {
            Door::Dashboard => ops::index(&app, &method, request.headers()),
            Door::Metrics => ops::metrics(&app),
            Door::Ready => ops::ready(&app),
            Door::Health => ops::health(),
            Door::Identity => {
                let local = request.extensions().get::<LocalAddress>().map(|address| address.0);
                identity::answer(app.identity.as_ref(), config, local, request.headers())
            }
            Door::ChatCompletions
            | Door::CountTokens
            | Door::Gemini
            | Door::Messages
            | Door::Models(_)
            | Door::Native
            | Door::Responses
            | Door::Telemetry
            | Door::Unknown(_) => reply::json(StatusCode::OK, "{}"),
        };
    };
    if let Err(unknown) = Encoding::of(request.headers()) {
        let message = format!("the body's Content-Encoding is `{unknown}`; known are {KNOWN}");
        let failure = Failure::new(FailureKind::InvalidRequest, message);
        let mut reply = on.refused(&failure, Some(StatusCode::UNSUPPORTED_MEDIA_TYPE));
        reply.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static(KNOWN));
        return reply;
    }
    let room = match app.admit(client.owner) {
        Ok(room) => Some(Arc::new(room.on(line))),
        Err(failure) => return on.refused(&failure, None),
    };
    let session = session_of(request.headers());
    let request_id = request_id.to_owned();
    let visit = Visit { app, current, client, request_id, seed, session, room };
    match door {
        Door::Messages | Door::ChatCompletions => doors::turn(visit, dialect, request).await,
        Door::Native => doors::native(visit, request).await,
        Door::CountTokens => doors::count_tokens(visit, request).await,
        Door::Responses => doors::responses(visit, request).await,
        Door::Gemini => doors::gemini(visit, request).await,
        Door::Models(_) => doors::models(visit, dialect, &request).await,
        Door::Dashboard
        | Door::Health
        | Door::Identity
        | Door::Metrics
        | Door::Ready
        | Door::Telemetry
        | Door::Unknown(_) => on.missing(&asked()),
    }
}
