//! Endpoints for operators.

use std::net::SocketAddr;

use http::header::{ACCEPT, CONTENT_SECURITY_POLICY, HeaderValue};
use http::{HeaderMap, Method, StatusCode};

use crate::api::reply::{self, Reply};
use crate::identity::{self, NONCE_HEADER};
use crate::state::Gateway;

/// The process lives.
pub(crate) fn health() -> Reply {
    reply::json(StatusCode::OK, "{\"status\":\"ok\"}")
}

/// Whether requests can be answered: not while connections to the upstream fail.
pub(crate) fn ready(gateway: &Gateway) -> Reply {
    let current = gateway.current();
    let upstream = format!("{:?}", current.config.upstream.kind).to_ascii_lowercase();
    match current.link.outage() {
        None => reply::json(
            StatusCode::OK,
            format!("{{\"status\":\"ready\",\"upstream\":\"{upstream}\"}}"),
        ),
        Some(reason) => reply::json(
            StatusCode::SERVICE_UNAVAILABLE,
            format!(
                "{{\"status\":\"unreachable\",\"upstream\":\"{upstream}\",\"reason\":\"{reason}\"}}"
            ),
        ),
    }
}

/// Counters, for Prometheus.
pub(crate) fn metrics(gateway: &Gateway) -> Reply {
    let text = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    reply::with_type(StatusCode::OK, text, reply::full(gateway.services.metrics.text()))
}

/// The root: a page with the counters for browsers, otherwise the version and the endpoints.
pub(crate) fn index(gateway: &Gateway, method: &Method, headers: &HeaderMap) -> Reply {
    if *method == Method::HEAD {
        return reply::json(StatusCode::OK, "");
    }
    let accepts = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if accepts.contains("text/html") {
        let page = reply::full(include_str!("dashboard.html"));
        let mut page = reply::with_type(StatusCode::OK, "text/html; charset=utf-8", page);
        page.headers_mut().insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
        return page;
    }
    let kind = gateway.config().upstream.kind;
    let text = format!(
        "toolgate {}: tools on Gemini for every agent\nupstream: {kind:?}\n\n\
         POST /v1/messages            Anthropic Messages\n\
         POST /v1/responses           OpenAI Responses\n\
         POST /v1/chat/completions    OpenAI Chat Completions\n\
         POST /v1beta/models/MODEL:generateContent    Gemini\n\
         GET  /metrics /healthz /readyz\n",
        env!("CARGO_PKG_VERSION")
    );
    reply::with_type(StatusCode::OK, "text/plain; charset=utf-8", reply::full(text))
}

/// The page loads nothing and connects to this gateway only.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
                      connect-src 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Proves whose gateway this is, on loopback connections only.
pub(crate) fn identity(gateway: &Gateway, local: Option<SocketAddr>, headers: &HeaderMap) -> Reply {
    let local = local.filter(|address| address.ip().to_canonical().is_loopback());
    let (Some(secret), Some(address)) = (&gateway.identity, local) else {
        return reply::json(StatusCode::NOT_FOUND, r#"{"error":"this gateway has no identity"}"#);
    };
    let nonce = headers.get(NONCE_HEADER).and_then(|nonce| nonce.to_str().ok());
    match nonce.filter(|nonce| identity::is_nonce(nonce)) {
        Some(nonce) => {
            let proof = identity::prove(secret, &gateway.config(), address, nonce);
            reply::json(StatusCode::OK, proof)
        }
        None => {
            let body = r#"{"error":"x-toolgate-nonce must be 64 hexadecimal digits"}"#;
            reply::json(StatusCode::BAD_REQUEST, body)
        }
    }
}
