//! The way of a request to its endpoint.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{
    ACCEPT_ENCODING, ALLOW, CONNECTION, HeaderName, HeaderValue, ORIGIN, WWW_AUTHENTICATE,
};
use http::{Method, Request, StatusCode, Uri};
use hyper::body::{Body as _, Incoming};
use toolgate_core::canon::{Failure, FailureKind};
use toolgate_core::responses;
use toolgate_core::translate::{Dialect, encode_error};

use super::connection::{BodyState, Connection, Linger};
use super::decompress::{Encoding, KNOWN};
use super::origin;
use super::request::{discard_body, receive_body};
use super::routes::{self, Access, FoundPath, Handler};
use super::server::LocalAddress;
use crate::api::reply::{self, Reply};
use crate::api::{self, RequestContext, ops};
use crate::auth::{self, Pass};
use crate::clock::Seed;
use crate::signatures::session_of;
use crate::state::Gateway;
use crate::turn::{Audit, Context};

/// Answers one request. Every reply names the id of its request.
pub(super) async fn answer(
    gateway: Arc<Gateway>,
    connection: &Arc<Connection>,
    request: Request<Incoming>,
) -> Reply {
    let (request_id, seed) = gateway.next_request();
    let request = with_known_path(request);
    let origin = request.headers().get(ORIGIN).cloned();
    let is_complete = request.body().is_end_stream();
    connection.set_body(if is_complete { BodyState::Received } else { BodyState::Unread });
    // Until the client is authenticated.
    connection.linger(Linger::Stranger);
    let mut reply = route(Arc::clone(&gateway), connection, request, &request_id, seed).await;
    let headers = reply.headers_mut();
    if let Ok(id) = HeaderValue::try_from(&request_id) {
        for name in ["x-toolgate-request-id", "request-id", "x-request-id"] {
            headers.insert(HeaderName::from_static(name), id.clone());
        }
    }
    if let Some(origin) = origin
        && origin.to_str().is_ok_and(|text| origin::allows_origin(&gateway.config(), text))
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
    match connection.body() {
        BodyState::Received => connection.linger(Linger::No),
        // The rest of the body cannot be told from the next request.
        BodyState::Unread => drop(headers.insert(CONNECTION, HeaderValue::from_static("close"))),
        BodyState::Late => {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
            *reply.status_mut() = StatusCode::REQUEST_TIMEOUT;
        }
    }
    reply
}

/// Errors of a request before it reaches its endpoint.
struct Refusals<'a> {
    gateway: &'a Gateway,
    request_id: &'a str,
    dialect: Dialect,
}

impl Refusals<'_> {
    /// Counts and logs a failure; returns its reply.
    fn refuse(&self, failure: &Failure, status: Option<StatusCode>) -> Reply {
        self.count(failure);
        let reply = encode_error(self.dialect, failure, self.request_id);
        reply::error(match status {
            Some(status) => reply::with_status(reply, status),
            None => reply,
        })
    }

    fn count(&self, failure: &Failure) {
        let services = Arc::clone(&self.gateway.services);
        Audit::new(services, self.dialect, self.request_id).failed(failure);
    }

    /// A path that does not exist. OpenAI's `not_found` error is about models; this one is about the path.
    fn missing(&self, requested: &str) -> Reply {
        let base = match self.dialect {
            Dialect::Anthropic | Dialect::Gemini => "http://HOST:PORT",
            Dialect::Chat | Dialect::Responses => "http://HOST:PORT/v1",
        };
        let message = format!("there is no {requested}; the client's base URL should be {base}");
        match self.dialect {
            Dialect::Anthropic | Dialect::Gemini => {
                self.refuse(&Failure::new(FailureKind::NotFound, message), None)
            }
            Dialect::Chat | Dialect::Responses => {
                self.count(&Failure::new(FailureKind::NotFound, message.clone()));
                let message = format!("{message} (request id: {})", self.request_id);
                let body = responses::error_body(&message, "invalid_request_error", None, None);
                reply::json(StatusCode::NOT_FOUND, body)
            }
        }
    }

    /// A method that the path does not have.
    fn no_method(&self, requested: &str, allowed: &str) -> Reply {
        let message = format!("there is no {requested}; this path has {allowed}");
        let failure = Failure::new(FailureKind::InvalidRequest, message);
        let mut reply = self.refuse(&failure, Some(StatusCode::METHOD_NOT_ALLOWED));
        if let Ok(allowed) = HeaderValue::try_from(allowed) {
            reply.headers_mut().insert(ALLOW, allowed);
        }
        reply
    }
}

/// Length of a request's head in bytes, about as it was sent.
fn head_length(request: &Request<Incoming>) -> usize {
    let path = request.uri().path_and_query().map_or(0, |path| path.as_str().len());
    request
        .headers()
        .iter()
        .fold(path, |sum, (name, value)| sum + name.as_str().len() + value.as_bytes().len() + 4)
}

/// Checks a request, the cheapest check first, and hands it to its endpoint. A request without a
/// valid key takes no slot and no memory, and its body is not read.
async fn route(
    gateway: Arc<Gateway>,
    connection: &Arc<Connection>,
    request: Request<Incoming>,
    request_id: &str,
    seed: Seed,
) -> Reply {
    let found = routes::find(request.method(), request.uri().path(), request.headers());
    let dialect = found.dialect;
    let current = gateway.current();
    let config = Arc::clone(&current.config);
    let refusals = Refusals { gateway: &gateway, request_id, dialect };
    if let Err((status, message)) = origin::check_protocol(&request) {
        return refusals.refuse(&Failure::new(FailureKind::InvalidRequest, message), Some(status));
    }
    let length = head_length(&request);
    if length > config.limits.header {
        let message = format!("the request's head has {length} bytes, which is too many");
        let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        return refusals.refuse(&Failure::new(FailureKind::TooLarge, message), Some(status));
    }
    let listens = gateway.started.listen.ip();
    if let Err(failure) = origin::check_origin(&config, listens, request.headers(), request.uri()) {
        return refusals.refuse(&failure, None);
    }
    let method = request.method().clone();
    if method == Method::OPTIONS {
        return origin::preflight(&config, request.headers());
    }
    let access = found.path.as_ref().map_or(Access::Client, |path| path.handler.access());
    let client = match access {
        Access::Open => None,
        Access::Operator => {
            if let Err(failure) = auth::admit_operator(&config, request.headers(), request.uri()) {
                let mut reply = refusals.refuse(&failure, None);
                // Browsers ask for a password.
                let challenge = HeaderValue::from_static("Basic realm=\"toolgate\"");
                reply.headers_mut().insert(WWW_AUTHENTICATE, challenge);
                return reply;
            }
            None
        }
        Access::Client => {
            let presented = auth::presented(request.headers(), request.uri());
            match auth::admit(&config, &presented) {
                Ok(client) => Some(client),
                Err(failure) => return refusals.refuse(&failure, None),
            }
        }
    };
    connection.linger(Linger::Client);
    let (head, mut body) = request.into_parts();
    let takes_body = found.path.as_ref().is_some_and(|path| takes_body(path, &method));
    let needs_body = takes_body && client.is_some();
    if !needs_body {
        discard_body(connection, &mut body).await;
    }
    let request = Request::from_parts(head, body);
    let requested = || format!("{method} {}", request.uri().path());
    let path = match found.path {
        None => return refusals.missing(&requested()),
        Some(FoundPath { methods: Err(failure), .. }) => return refusals.refuse(&failure, None),
        Some(path) if !path.allows(&method) => {
            let allowed = path.methods.unwrap_or_default();
            return refusals.no_method(&requested(), &allowed);
        }
        Some(path) => path,
    };
    let Some(client) = client else { return open_endpoint(&gateway, path.handler, &request) };
    if let Err(unknown) = Encoding::of(request.headers()) {
        let message = format!("the body's Content-Encoding is `{unknown}`; known are {KNOWN}");
        let failure = Failure::new(FailureKind::InvalidRequest, message);
        let mut reply = refusals.refuse(&failure, Some(StatusCode::UNSUPPORTED_MEDIA_TYPE));
        reply.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static(KNOWN));
        return reply;
    }
    let admitted = match gateway.services.admission.admit(client.owner) {
        Ok(admitted) => Arc::new(admitted),
        Err(failure) => return refusals.refuse(&failure, None),
    };
    // The connection is busy as long as the answer takes.
    admitted.hold(connection.busy());
    let context = Context {
        services: Arc::clone(&gateway.services),
        current,
        client,
        request_id: request_id.to_owned(),
        seed,
        session: session_of(request.headers()),
    };
    let request = if needs_body {
        match receive_body(&gateway, &context, &admitted, connection, request).await {
            Ok(request) => request,
            Err(failure) => {
                let is_late = connection.body() == BodyState::Late;
                return refusals.refuse(&failure, is_late.then_some(StatusCode::REQUEST_TIMEOUT));
            }
        }
    } else {
        request.map(|_| Bytes::new())
    };
    let has_own_key = matches!(context.client.pass, Pass::ApiKey(_));
    let is_simulated = context.current.link.is_embedded(has_own_key);
    let gateway = Arc::clone(&gateway);
    let context = RequestContext { gateway, turn: context, admitted: Some(admitted) };
    let mut reply = client_endpoint(path, dialect, context, request).await;
    if is_simulated {
        let simulator = HeaderValue::from_static("simulator");
        reply.headers_mut().insert(HeaderName::from_static("x-toolgate-upstream"), simulator);
    }
    reply
}

/// Replaces a path that a client made from another base URL by the path of the table.
fn with_known_path(mut request: Request<Incoming>) -> Request<Incoming> {
    let Some(path) = routes::known_path(request.uri().path()) else { return request };
    let path = match request.uri().query() {
        Some(query) => format!("{path}?{query}"),
        None => path,
    };
    let mut parts = request.uri().clone().into_parts();
    parts.path_and_query = path.parse().ok();
    if let Ok(uri) = Uri::from_parts(parts) {
        *request.uri_mut() = uri;
    }
    request
}

/// Whether the handler of a path reads the body of a request with this method.
fn takes_body(path: &FoundPath, method: &Method) -> bool {
    let may_have_body = match path.handler {
        Handler::Gemini => !matches!(*method, Method::GET | Method::HEAD),
        Handler::Messages
        | Handler::CountTokens
        | Handler::Chat
        | Handler::Responses(_)
        | Handler::Native
        | Handler::Models
        | Handler::Dashboard
        | Handler::Health
        | Handler::Identity
        | Handler::Metrics
        | Handler::Ready
        | Handler::Telemetry => *method == Method::POST,
    };
    may_have_body && path.allows(method)
}

/// Serves an endpoint that needs no client.
fn open_endpoint(gateway: &Gateway, handler: Handler, request: &Request<Incoming>) -> Reply {
    match handler {
        Handler::Dashboard => ops::index(gateway, request.method(), request.headers()),
        Handler::Metrics => ops::metrics(gateway),
        Handler::Ready => ops::ready(gateway),
        Handler::Health => ops::health(),
        Handler::Identity => {
            let local = request.extensions().get::<LocalAddress>().map(|address| address.0);
            ops::identity(gateway, local, request.headers())
        }
        Handler::Telemetry
        | Handler::Messages
        | Handler::CountTokens
        | Handler::Chat
        | Handler::Responses(_)
        | Handler::Gemini
        | Handler::Native
        | Handler::Models => reply::json(StatusCode::OK, "{}"),
    }
}

/// Serves an endpoint of a client.
async fn client_endpoint(
    path: FoundPath,
    dialect: Dialect,
    context: RequestContext,
    request: Request<Bytes>,
) -> Reply {
    match path.handler {
        Handler::Messages => api::messages(context, request).await,
        Handler::CountTokens => api::count_tokens(context, request).await,
        Handler::Chat => api::completions(context, request).await,
        Handler::Responses(endpoint) => {
            api::responses(endpoint, context, request, path.parameters).await
        }
        Handler::Gemini => api::generate(context, request).await,
        Handler::Native => api::native(context, request).await,
        Handler::Models => api::models(context, dialect, &request).await,
        Handler::Dashboard
        | Handler::Health
        | Handler::Identity
        | Handler::Metrics
        | Handler::Ready
        | Handler::Telemetry => reply::json(StatusCode::OK, "{}"),
    }
}
