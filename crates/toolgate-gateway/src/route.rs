//! Which door a request goes through.

use std::sync::Arc;

use http::header::{ACCEPT_ENCODING, HeaderName, HeaderValue, ORIGIN};
use http::{Method, Request, StatusCode};
use hyper::body::Incoming;
use toolgate_core::canon::{Failure, FailureKind};
use toolgate_core::responses;
use toolgate_core::translate::Dialect;

use crate::app::{App, overloaded};
use crate::auth::Owner;
use crate::clock::Seed;
use crate::doors::encoding::{Encoding, KNOWN};
use crate::doors::{self, Visit};
use crate::identity::{self, IDENTITY_PATH};
use crate::line::Line;
use crate::reply::{self, Reply};
use crate::server::LocalAddress;
use crate::turn::{Ledger, session_of};
use crate::{auth, doors::ops};

/// Answers one request. Whatever happens, the answer names the request's id.
pub(crate) async fn answer(app: Arc<App>, line: &Arc<Line>, request: Request<Incoming>) -> Reply {
    let (request_id, seed) = app.next_request();
    let origin = request.headers().get(ORIGIN).cloned();
    let door = door(request.method(), request.uri().path(), request.headers());
    let mut reply = match admitted(&app, &request, door) {
        Ok(None) => route(app.clone(), line, request, door, &request_id, seed).await,
        Ok(Some(reply)) => unread(request, reply).await,
        Err(failure) => {
            let reply = refused(&app, door.dialect(), &failure, &request_id);
            unread(request, reply).await
        }
    };
    let headers = reply.headers_mut();
    if let Ok(id) = HeaderValue::try_from(&request_id) {
        for name in ["x-toolgate-request-id", "request-id", "x-request-id"] {
            headers.insert(HeaderName::from_static(name), id.clone());
        }
    }
    if let Some(origin) = origin
        && origin.to_str().is_ok_and(|text| auth::allows_origin(&app.config(), text))
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
    reply
}

/// A failure that no door sees, written down.
fn refused(app: &Arc<App>, dialect: Dialect, failure: &Failure, request_id: &str) -> Reply {
    Ledger::new(Arc::clone(app), dialect, Owner::of(""), request_id).failed(failure);
    reply::failure(dialect, failure, request_id)
}

/// A reply to a request whose body nobody needs.
async fn unread(request: Request<Incoming>, reply: Reply) -> Reply {
    doors::unread(request).await;
    reply
}

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

/// Checks that come before everything else. `Some`: an answer that needs nothing more.
fn admitted(app: &App, request: &Request<Incoming>, door: Door) -> Result<Option<Reply>, Failure> {
    let config = app.config();
    auth::check_origin(&config, app.started.listen.ip(), request.headers(), request.uri())?;
    if request.method() == Method::OPTIONS {
        return Ok(Some(ops::preflight(&config, request.headers())));
    }
    match door {
        Door::Health => Ok(Some(ops::health())),
        Door::Identity => {
            let local = request.extensions().get::<LocalAddress>().map(|address| address.0);
            let secret = app.identity.as_ref();
            Ok(Some(identity::answer(secret, &config, local, request.headers())))
        }
        Door::Ready => Ok(Some(ops::ready(app))),
        Door::Metrics => Ok(Some(ops::metrics(app))),
        Door::Dashboard => Ok(Some(ops::index(app, request.method(), request.headers()))),
        Door::Telemetry => Ok(Some(reply::json(StatusCode::OK, "{}"))),
        Door::ChatCompletions
        | Door::CountTokens
        | Door::Gemini
        | Door::Messages
        | Door::Models(_)
        | Door::Native
        | Door::Responses
        | Door::Unknown(_) => Ok(None),
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

async fn route(
    app: Arc<App>,
    line: &Arc<Line>,
    request: Request<Incoming>,
    door: Door,
    request_id: &str,
    seed: Seed,
) -> Reply {
    let dialect = door.dialect();
    let here = Arc::clone(&app);
    let fail = |failure: &Failure| refused(&here, dialect, failure, request_id);
    // OpenAI's word for what Gemini does not find is a model; here it is a path.
    let missing = |message: String| match dialect {
        Dialect::Anthropic | Dialect::Gemini => fail(&Failure::new(FailureKind::NotFound, message)),
        Dialect::Chat | Dialect::Responses => {
            drop(fail(&Failure::new(FailureKind::NotFound, message.clone())));
            let message = format!("{message} (request id: {request_id})");
            let body = responses::error_body(&message, "invalid_request_error", None, None);
            reply::json(StatusCode::NOT_FOUND, body)
        }
    };
    let Some(room) = app.admit() else {
        return unread(request, fail(&overloaded())).await;
    };
    let current = app.current();
    let length = head_length(&request);
    if length > current.config.limits.header {
        let message = format!("the request's head has {length} bytes, which is too many");
        let mut reply = fail(&Failure::new(FailureKind::TooLarge, message));
        *reply.status_mut() = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        return unread(request, reply).await;
    }
    let presented = auth::presented(request.headers(), request.uri());
    let presented = presented.as_ref().map(|(key, is_bearer)| (&**key, *is_bearer));
    let client = match auth::admit(&current.config, presented) {
        Ok(client) => client,
        Err(failure) => return unread(request, fail(&failure)).await,
    };
    if let Err(unknown) = Encoding::of(request.headers()) {
        let message = format!("the body's Content-Encoding is `{unknown}`; known are {KNOWN}");
        let mut reply = fail(&Failure::new(FailureKind::InvalidRequest, message));
        *reply.status_mut() = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        reply.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static(KNOWN));
        return unread(request, reply).await;
    }
    let session = session_of(request.headers());
    let visit = Visit {
        app,
        current,
        client,
        request_id: request_id.to_owned(),
        seed,
        session,
        room: Some(Arc::new(room.on(line))),
    };
    let asked = || format!("{} {}", request.method(), request.uri().path());
    let is_post = request.method() == Method::POST;
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    match door {
        Door::Messages | Door::ChatCompletions | Door::Native | Door::CountTokens if !is_post => {
            let reply = missing(format!("{} does not exist; POST does", asked()));
            unread(request, reply).await
        }
        Door::Models(_) if !reads => {
            let reply = missing(format!("{} does not exist; GET does", asked()));
            unread(request, reply).await
        }
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
        | Door::Telemetry => reply::json(StatusCode::OK, "{}"),
        Door::Unknown(_) => {
            let reply = missing(format!("there is no {}", asked()));
            unread(request, reply).await
        }
    }
}
