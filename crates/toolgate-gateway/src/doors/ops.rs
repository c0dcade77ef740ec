//! For whoever runs the gateway.

use http::header::{
    ACCEPT, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_MAX_AGE,
    ALLOW, CONTENT_SECURITY_POLICY, HeaderValue, ORIGIN,
};
use http::{HeaderMap, Method, StatusCode};

use crate::app::App;
use crate::config::Config;
use crate::origin;
use crate::reply::{self, Reply};

/// The process lives.
pub(crate) fn health() -> Reply {
    reply::json(StatusCode::OK, "{\"status\":\"ok\"}")
}

/// It can take requests.
pub(crate) fn ready(app: &App) -> Reply {
    let upstream = format!("{:?}", app.config().upstream.kind).to_ascii_lowercase();
    reply::json(StatusCode::OK, format!("{{\"status\":\"ready\",\"upstream\":\"{upstream}\"}}"))
}

/// Counters, for Prometheus.
pub(crate) fn metrics(app: &App) -> Reply {
    let text = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    reply::with_type(StatusCode::OK, text, reply::full(app.metrics.text()))
}

/// What stands at the root: the counters for whoever looks with a browser, and else who this is and where
/// its doors are.
pub(crate) fn index(app: &App, method: &Method, headers: &HeaderMap) -> Reply {
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
    let kind = app.config().upstream.kind;
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

/// The page brings all that it needs, and talks to nobody but us.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
                      connect-src 'self'; base-uri 'none'; frame-ancestors 'none'";

/// A browser asks whether it may ask.
pub(crate) fn preflight(config: &Config, headers: &HeaderMap) -> Reply {
    let mut reply = reply::json(StatusCode::NO_CONTENT, "");
    let methods = HeaderValue::from_static("GET, POST, DELETE, OPTIONS");
    let origin = headers.get(ORIGIN).and_then(|value| value.to_str().ok());
    let to = reply.headers_mut();
    to.insert(ALLOW, methods.clone());
    if origin.is_some_and(|origin| origin::allows_origin(config, origin)) {
        to.insert(ACCESS_CONTROL_ALLOW_METHODS, methods);
        to.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("*, authorization"));
        to.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    }
    reply
}
