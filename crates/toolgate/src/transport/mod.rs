//! How requests reach Gemini: over HTTP, unless a program brings something else.

mod exchange;
mod http;

pub use exchange::{Body, Exchange, HttpRequest, HttpResponse, Method, Transport, TransportError};

pub(crate) use self::http::Http;
