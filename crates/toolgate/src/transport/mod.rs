//! Transport of requests: HTTP, or an implementation of the program.

mod exchange;
mod http;

pub use exchange::{Body, Exchange, HttpRequest, HttpResponse, Method, Transport, TransportError};

pub(crate) use self::http::Http;
