//! Failures as OpenAI tells them.

use super::frames::{member, number};
use crate::canon::{BadRequest, Failure, FailureKind};
use crate::dialect::ErrorReply;
use crate::json::write;

/// Seconds to wait where Gemini did not say: Codex gives up on a 429 that names none.
const RETRY_SOON: u64 = 5;
/// The same where a quota is used up.
const RETRY_LATE: u64 = 3600;

/// What clients are told about a kind of failure.
struct Told {
    status: u16,
    kind: &'static str,
    code: Option<&'static str>,
    do_not_retry: bool,
}

/// The error reply for a failure before the first byte of an answer.
pub fn encode_error(failure: &Failure, request_id: &str) -> ErrorReply {
    let param = match failure.kind {
        FailureKind::InvalidRequest => path_in(&failure.message),
        FailureKind::ContextTooLong => Some("input"),
        FailureKind::NotFound => Some("model"),
        FailureKind::Authentication
        | FailureKind::Billing
        | FailureKind::Cut
        | FailureKind::EmptyTurn
        | FailureKind::Internal
        | FailureKind::MalformedCall
        | FailureKind::Overloaded
        | FailureKind::Permission
        | FailureKind::QuotaExhausted
        | FailureKind::RateLimited
        | FailureKind::Unsupported
        | FailureKind::Timeout
        | FailureKind::TooLarge
        | FailureKind::Unreachable
        | FailureKind::UpstreamProtocol => None,
    };
    reply(failure, param, request_id)
}

/// The error reply for a request that cannot be understood.
pub fn encode_bad_request(bad: &BadRequest, request_id: &str) -> ErrorReply {
    let param = Some(bad.at.as_str()).filter(|at| !at.is_empty());
    reply(&Failure::from(bad.clone()), param, request_id)
}

/// The WebSocket message for an error reply, one line.
pub fn error_message(reply: &ErrorReply) -> Vec<u8> {
    let mut out = b"{\"type\":\"error\"".to_vec();
    number(&mut out, "status", reply.status);
    out.push(b',');
    // The body is `{"error":…}`.
    let inside = reply.body.strip_prefix(b"{").and_then(|body| body.strip_suffix(b"}"));
    out.extend_from_slice(inside.unwrap_or(b"\"error\":null"));
    if let Some(seconds) = reply.retry_after {
        out.extend_from_slice(b",\"headers\":{");
        member(&mut out, "retry-after", &seconds.to_string());
        out.push(b'}');
    }
    out.extend_from_slice(b"}\n");
    out
}

/// An error's body, for whatever is no [`Failure`]: a response that is not stored, say.
pub fn error_body(message: &str, kind: &str, param: Option<&str>, code: Option<&str>) -> Vec<u8> {
    let mut out = b"{\"error\":{".to_vec();
    member(&mut out, "message", message);
    member(&mut out, "type", kind);
    for (name, value) in [("param", param), ("code", code)] {
        write::key(&mut out, name);
        match value {
            Some(value) => write::string(&mut out, value),
            None => out.extend_from_slice(b"null"),
        }
    }
    out.extend_from_slice(b"}}");
    out
}

fn reply(failure: &Failure, param: Option<&str>, request_id: &str) -> ErrorReply {
    let Told { status, kind, code, do_not_retry } = told(failure.kind);
    let message = format!("{} (request id: {request_id})", failed_message(failure));
    let default = match (status, do_not_retry) {
        (429, false) => Some(RETRY_SOON),
        (429, true) => Some(RETRY_LATE),
        _ => None,
    };
    ErrorReply {
        status,
        retry_after: failure.retry_after_seconds().or(default),
        do_not_retry,
        body: error_body(&message, kind, param, code),
    }
}

fn told(kind: FailureKind) -> Told {
    let (status, kind, code, do_not_retry) = match kind {
        FailureKind::InvalidRequest => (400, INVALID, None, false),
        FailureKind::ContextTooLong => (400, INVALID, Some("context_length_exceeded"), false),
        FailureKind::Authentication => (401, INVALID, Some("invalid_api_key"), false),
        FailureKind::Permission => (403, INVALID, Some("permission_denied"), false),
        FailureKind::NotFound => (404, INVALID, Some("model_not_found"), false),
        FailureKind::TooLarge => (413, INVALID, Some("request_too_large"), false),
        FailureKind::RateLimited => (429, "rate_limit_error", Some("rate_limit_exceeded"), false),
        FailureKind::QuotaExhausted | FailureKind::Billing => {
            (429, "insufficient_quota", Some("insufficient_quota"), true)
        }
        FailureKind::Internal => (500, SERVER, Some(SERVER), false),
        FailureKind::Unsupported => (501, INVALID, Some("unsupported"), true),
        FailureKind::Cut
        | FailureKind::EmptyTurn
        | FailureKind::MalformedCall
        | FailureKind::Unreachable
        | FailureKind::UpstreamProtocol => (502, SERVER, Some(SERVER), false),
        FailureKind::Overloaded => (503, SERVER, Some("server_is_overloaded"), false),
        FailureKind::Timeout => (504, SERVER, Some("timeout"), false),
    };
    Told { status, kind, code, do_not_retry }
}

const INVALID: &str = "invalid_request_error";
const SERVER: &str = "server_error";

/// The code of `response.failed`: Codex acts upon these.
pub(super) fn code_of(kind: FailureKind) -> &'static str {
    match kind {
        FailureKind::RateLimited => "rate_limit_exceeded",
        FailureKind::QuotaExhausted | FailureKind::Billing => "insufficient_quota",
        FailureKind::Overloaded => "server_is_overloaded",
        FailureKind::ContextTooLong => "context_length_exceeded",
        FailureKind::Authentication
        | FailureKind::InvalidRequest
        | FailureKind::NotFound
        | FailureKind::Permission
        | FailureKind::TooLarge
        | FailureKind::Unsupported => "invalid_prompt",
        FailureKind::Cut
        | FailureKind::EmptyTurn
        | FailureKind::Internal
        | FailureKind::MalformedCall
        | FailureKind::Timeout
        | FailureKind::Unreachable
        | FailureKind::UpstreamProtocol => SERVER,
    }
}

/// The message, with the waiting time in the words that Codex looks for.
pub(super) fn failed_message(failure: &Failure) -> String {
    match (failure.kind, failure.retry_after_seconds()) {
        (FailureKind::RateLimited, Some(seconds)) => {
            format!("{} Please try again in {seconds}s.", failure.message)
        }
        _ => failure.message.clone(),
    }
}

/// The path that a [`BadRequest`]'s message begins with.
fn path_in(message: &str) -> Option<&str> {
    let (path, _) = message.split_once(": ")?;
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.[]$".contains(&byte);
    (!path.is_empty() && path.bytes().all(fits)).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(kind: FailureKind, want: (u16, Option<u64>, bool), body: &str) {
        let reply = encode_error(&Failure::new(kind, "why"), "req_1");
        assert_eq!((reply.status, reply.retry_after, reply.do_not_retry), want, "{kind:?}");
        assert_eq!(String::from_utf8(reply.body).unwrap(), body, "{kind:?}");
    }

    #[test]
    fn r136_failures_are_told_in_openais_form() {
        let body = |kind: &str, param: &str, code: &str| {
            format!(
                r#"{{"error":{{"message":"why (request id: req_1)","type":"{kind}","param":{param},"code":{code}}}}}"#
            )
        };
        let invalid = "invalid_request_error";
        check(FailureKind::InvalidRequest, (400, None, false), &body(invalid, "null", "null"));
        check(
            FailureKind::ContextTooLong,
            (400, None, false),
            &body(invalid, "\"input\"", "\"context_length_exceeded\""),
        );
        check(
            FailureKind::Authentication,
            (401, None, false),
            &body(invalid, "null", "\"invalid_api_key\""),
        );
        check(
            FailureKind::NotFound,
            (404, None, false),
            &body(invalid, "\"model\"", "\"model_not_found\""),
        );
        check(
            FailureKind::RateLimited,
            (429, Some(5), false),
            &body("rate_limit_error", "null", "\"rate_limit_exceeded\""),
        );
        for kind in [FailureKind::QuotaExhausted, FailureKind::Billing] {
            let body = body("insufficient_quota", "null", "\"insufficient_quota\"");
            check(kind, (429, Some(3600), true), &body);
        }
        check(
            FailureKind::Overloaded,
            (503, None, false),
            &body("server_error", "null", "\"server_is_overloaded\""),
        );
        check(
            FailureKind::Timeout,
            (504, None, false),
            &body("server_error", "null", "\"timeout\""),
        );
        check(
            FailureKind::Unsupported,
            (501, None, true),
            &body(invalid, "null", "\"unsupported\""),
        );
    }

    #[test]
    fn k4_the_waiting_time_is_told() {
        let mut failure = Failure::new(FailureKind::RateLimited, "slow down.");
        failure.retry_after_ms = Some(34_400);
        let reply = encode_error(&failure, "r");
        assert_eq!(reply.retry_after, Some(35));
        let body = String::from_utf8(reply.body.clone()).unwrap();
        assert!(body.contains("Please try again in 35s."), "{body}");
        let message: serde_json::Value = serde_json::from_slice(&error_message(&reply)).unwrap();
        assert_eq!((&message["type"], &message["status"]), (&"error".into(), &429.into()));
        assert_eq!(message["error"]["code"], "rate_limit_exceeded");
        assert_eq!(message["headers"]["retry-after"], "35");
    }

    #[test]
    fn a_broken_field_is_named() {
        let bad = BadRequest { at: "input[2].call_id".into(), reason: "missing".into() };
        for reply in [encode_bad_request(&bad, "r"), encode_error(&bad.clone().into(), "r")] {
            let body = String::from_utf8(reply.body).unwrap();
            assert!(body.contains(r#""param":"input[2].call_id""#), "{body}");
        }
        assert_eq!(path_in("no such thing: x"), None);
    }
}
