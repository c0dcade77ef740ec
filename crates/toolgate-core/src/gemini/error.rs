//! Google's error envelope.
//!
//! Google's own errors are passed on unchanged; toolgate's errors have the same form.

use crate::canon::{Failure, FailureKind};
use crate::dialect::ErrorReply;
use crate::json::write::{ArrayWriter, ObjectWriter};
use crate::json::{Kind, Raw};

/// How long to wait after a 429 that does not say it.
const RETRY_AFTER: u64 = 5;

/// A failure as Google would answer it, `{"error":{…}}`.
pub fn encode_error(failure: &Failure, request_id: &str) -> ErrorReply {
    reply(failure, |body| match &failure.upstream_body {
        Some(own) if google_error(failure).is_some() => body.extend_from_slice(own.as_bytes()),
        Some(_) | None => write_error(body, failure, Some(request_id)),
    })
}

/// The same in an array, `[{"error":{…}}]`, as a stream without `alt=sse` has it.
pub fn encode_error_list(failure: &Failure, request_id: &str) -> ErrorReply {
    reply(failure, |body| {
        write_error(ArrayWriter::new(body).element(), failure, Some(request_id));
    })
}

fn reply(failure: &Failure, write_body: impl FnOnce(&mut Vec<u8>)) -> ErrorReply {
    let (code, _) = code_and_status(failure);
    let mut body = Vec::with_capacity(256);
    write_body(&mut body);
    ErrorReply {
        status: code,
        retry_after: retry_after(failure),
        do_not_retry: !failure.kind.is_retryable(),
        body,
    }
}

fn retry_after(failure: &Failure) -> Option<u64> {
    match failure.retry_after_seconds() {
        // Google names a short wait even where the day's quota is used up.
        _ if matches!(failure.kind, FailureKind::Billing | FailureKind::QuotaExhausted) => None,
        None if failure.kind == FailureKind::RateLimited => Some(RETRY_AFTER),
        known => known,
    }
}

/// The error object that Google sent, out of its array where it came in one.
fn google_error(failure: &Failure) -> Option<Raw<'static>> {
    let raw = Raw::parse(failure.upstream_body.clone()?)?;
    let object = match raw.kind() {
        Kind::Array => raw.items()?.first()?.clone().into_owned(),
        Kind::Object => raw,
        Kind::Bool | Kind::Null | Kind::Number | Kind::String => return None,
    };
    let is_error = object.fields()?.get("error").map(Raw::kind) == Some(Kind::Object);
    is_error.then_some(object)
}

/// Writes the envelope on one line.
pub(super) fn write_error(out: &mut Vec<u8>, failure: &Failure, request_id: Option<&str>) {
    if let Some(own) = google_error(failure) {
        own.write(out);
        return;
    }
    let (code, status) = code_and_status(failure);
    let mut envelope = ObjectWriter::new(out);
    let mut error = envelope.object("error");
    error.integer("code", code);
    match request_id {
        Some(id) => error.string("message", &format!("{} (request id: {id})", failure.message)),
        None => error.string("message", &failure.message),
    }
    error.string("status", status);
    write_details(&mut error, failure);
}

fn write_details(error: &mut ObjectWriter<'_>, failure: &Failure) {
    let mut detail = |name: &str, write: &dyn Fn(&mut ObjectWriter<'_>)| {
        let mut details = error.array("details");
        let mut detail = details.object();
        detail.string("@type", &format!("type.googleapis.com/google.rpc.{name}"));
        write(&mut detail);
    };
    match failure.kind {
        FailureKind::InvalidRequest => detail("BadRequest", &|detail| {
            let (field, description) = place(&failure.message);
            let mut violations = detail.array("fieldViolations");
            let mut violation = violations.object();
            violation.optional_string("field", Some(field).filter(|field| !field.is_empty()));
            violation.string("description", description);
        }),
        FailureKind::RateLimited => detail("RetryInfo", &|detail| {
            let ms = failure.retry_after_ms.unwrap_or(RETRY_AFTER * 1000);
            detail.string("retryDelay", &seconds(ms));
        }),
        // Tells Google's clients that waiting a minute does not help.
        FailureKind::QuotaExhausted => detail("QuotaFailure", &|detail| {
            detail.array("violations").object().string("quotaId", "RequestsPerDay");
        }),
        FailureKind::Authentication => detail("ErrorInfo", &|detail| {
            detail.string("reason", "API_KEY_INVALID");
            detail.string("domain", "googleapis.com");
        }),
        FailureKind::Billing
        | FailureKind::Cut
        | FailureKind::ContextTooLong
        | FailureKind::EmptyTurn
        | FailureKind::Internal
        | FailureKind::MalformedCall
        | FailureKind::NotFound
        | FailureKind::Overloaded
        | FailureKind::Permission
        | FailureKind::Unsupported
        | FailureKind::Timeout
        | FailureKind::TooLarge
        | FailureKind::Unreachable
        | FailureKind::UpstreamProtocol => {}
    }
}

/// A duration as protocol buffers write it.
fn seconds(ms: u64) -> String {
    match (ms / 1000, ms % 1000) {
        (whole, 0) => format!("{whole}s"),
        (whole, rest) => format!("{whole}.{rest:03}s"),
    }
}

/// The place in the body that a message begins with, as `BadRequest` writes it, and the rest.
fn place(message: &str) -> (&str, &str) {
    let is_path = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.[]$".contains(&byte);
    match message.split_once(": ") {
        Some((path, reason)) if path.bytes().all(is_path) => (path, reason),
        Some(_) | None => ("", message),
    }
}

/// Google's own status where it gave one, so that it agrees with the body that is passed on.
fn code_and_status(failure: &Failure) -> (u16, &'static str) {
    let (code, status) = match failure.kind {
        FailureKind::InvalidRequest | FailureKind::ContextTooLong => (400, "INVALID_ARGUMENT"),
        FailureKind::Authentication => (401, "UNAUTHENTICATED"),
        FailureKind::Billing => (402, "RESOURCE_EXHAUSTED"),
        FailureKind::Permission => (403, "PERMISSION_DENIED"),
        FailureKind::NotFound => (404, "NOT_FOUND"),
        FailureKind::TooLarge => (413, "INVALID_ARGUMENT"),
        FailureKind::QuotaExhausted | FailureKind::RateLimited => (429, "RESOURCE_EXHAUSTED"),
        FailureKind::EmptyTurn
        | FailureKind::Internal
        | FailureKind::MalformedCall
        | FailureKind::UpstreamProtocol => (500, "INTERNAL"),
        FailureKind::Unsupported => (501, "UNIMPLEMENTED"),
        FailureKind::Cut | FailureKind::Overloaded | FailureKind::Unreachable => {
            (503, "UNAVAILABLE")
        }
        FailureKind::Timeout => (504, "DEADLINE_EXCEEDED"),
    };
    let passed_on = failure.upstream_status.filter(|code| (400..600).contains(code));
    match google_error(failure).and(passed_on) {
        Some(upstream) => (upstream, status),
        None => (code, status),
    }
}
