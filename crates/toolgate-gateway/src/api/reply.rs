//! Answers over HTTP.

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use http::{Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use toolgate_core::canon::Failure;
use toolgate_core::dialect::ErrorReply;
use toolgate_core::translate::{Dialect, encode_error};

/// The body of every answer.
pub(crate) type Body = UnsyncBoxBody<Bytes, std::io::Error>;
/// Every answer.
pub(crate) type Reply = Response<Body>;

/// A body in one piece.
pub(crate) fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}

/// A JSON answer.
pub(crate) fn json(status: StatusCode, body: impl Into<Bytes>) -> Reply {
    with_type(status, "application/json", full(body))
}

/// An answer of some type.
pub(crate) fn with_type(status: StatusCode, content_type: &'static str, body: Body) -> Reply {
    let mut reply = Response::new(body);
    *reply.status_mut() = status;
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    reply
}

/// A stream of server-sent events, or of anything else that must not be kept or gathered.
pub(crate) fn stream(content_type: &'static str, body: Body) -> Reply {
    let mut reply = with_type(StatusCode::OK, content_type, body);
    reply.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    reply
        .headers_mut()
        .insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    reply
}

/// A failure in the client's dialect.
pub(crate) fn failure(dialect: Dialect, failure: &Failure, request_id: &str) -> Reply {
    let mut reply = encode_error(dialect, failure, request_id);
    reply.do_not_retry |= failure.is_retried;
    error(reply)
}

/// The same error with another status. Gemini's body repeats it.
pub(crate) fn with_status(mut reply: ErrorReply, status: StatusCode) -> ErrorReply {
    const CODE: &[u8] = b"{\"error\":{\"code\":";
    if let Some(rest) = reply.body.strip_prefix(CODE) {
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let code = status.as_str().bytes();
        drop(reply.body.splice(CODE.len()..CODE.len() + digits, code));
    }
    reply.status = status.as_u16();
    reply
}

/// An error that is written already.
pub(crate) fn error(reply: ErrorReply) -> Reply {
    let ErrorReply { status, retry_after, do_not_retry, body } = reply;
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut reply = json(status, body);
    if let Some(seconds) = retry_after {
        reply.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    if do_not_retry {
        let name = HeaderName::from_static("x-should-retry");
        reply.headers_mut().insert(name, HeaderValue::from_static("false"));
    }
    reply
}
