//! OpenAI's error body. The table is the only place that knows which failure is which.

use crate::canon::{Failure, FailureKind};
use crate::dialect::ErrorReply;
use crate::json::write;

/// `Retry-After` of a 429 without one, in seconds: some clients give up otherwise.
const RETRY_AFTER: u64 = 5;

/// A failure as OpenAI's API would answer it.
pub fn encode_error(failure: &Failure, request_id: &str) -> ErrorReply {
    let row = row(failure.kind);
    let retry_after = match failure.retry_after_seconds() {
        // Google names a short wait even where the day's quota is used up.
        _ if row.kind == QUOTA => None,
        None if row.status == 429 => Some(RETRY_AFTER),
        known => known,
    };
    let mut body = Vec::with_capacity(256);
    write_error(&mut body, failure, Some(request_id));
    ErrorReply { status: row.status, retry_after, do_not_retry: !failure.kind.is_retryable(), body }
}

/// Writes `{"error":{…}}`.
pub(super) fn write_error(out: &mut Vec<u8>, failure: &Failure, request_id: Option<&str>) {
    let Row { kind, code, .. } = row(failure.kind);
    out.extend_from_slice(b"{\"error\":{");
    write::key(out, "message");
    match request_id {
        Some(id) => write::string(out, &format!("{} (request id: {id})", failure.message)),
        None => write::string(out, &failure.message),
    }
    write::key(out, "type");
    write::string(out, kind);
    write::key(out, "param");
    match param(failure) {
        Some(path) => write::string(out, path),
        None => out.extend_from_slice(b"null"),
    }
    write::key(out, "code");
    match code {
        Some(code) => write::string(out, code),
        None => out.extend_from_slice(b"null"),
    }
    out.extend_from_slice(b"}}");
}

/// The place in the body that a message begins with, as `BadRequest` writes it.
fn param(failure: &Failure) -> Option<&str> {
    if failure.kind != FailureKind::InvalidRequest {
        return None;
    }
    let (path, _) = failure.message.split_once(": ")?;
    let is_path = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.[]$".contains(&byte);
    (!path.is_empty() && path.bytes().all(is_path)).then_some(path)
}

const QUOTA: &str = "insufficient_quota";

struct Row {
    status: u16,
    kind: &'static str,
    code: Option<&'static str>,
}

fn row(kind: FailureKind) -> Row {
    const INVALID: &str = "invalid_request_error";
    const SERVER: &str = "server_error";
    let (status, kind, code) = match kind {
        FailureKind::InvalidRequest => (400, INVALID, None),
        FailureKind::ContextTooLong => (400, INVALID, Some("context_length_exceeded")),
        FailureKind::Authentication => (401, "authentication_error", Some("invalid_api_key")),
        FailureKind::Permission => (403, "permission_error", Some("permission_denied")),
        FailureKind::NotFound => (404, INVALID, Some("model_not_found")),
        FailureKind::TooLarge => (413, INVALID, Some("request_too_large")),
        FailureKind::RateLimited => (429, "rate_limit_error", Some("rate_limit_exceeded")),
        FailureKind::Billing | FailureKind::QuotaExhausted => (429, QUOTA, Some(QUOTA)),
        FailureKind::Internal => (500, SERVER, Some("internal_error")),
        FailureKind::Unsupported => (501, INVALID, Some("unsupported")),
        FailureKind::Cut => (502, SERVER, Some("upstream_disconnected")),
        FailureKind::EmptyTurn => (502, SERVER, Some("empty_response")),
        FailureKind::MalformedCall => (502, SERVER, Some("malformed_function_call")),
        FailureKind::Unreachable => (502, SERVER, Some("upstream_unreachable")),
        FailureKind::UpstreamProtocol => (502, SERVER, Some("bad_gateway")),
        FailureKind::Overloaded => (503, SERVER, Some("overloaded")),
        FailureKind::Timeout => (504, SERVER, Some("timeout")),
    };
    Row { status, kind, code }
}
