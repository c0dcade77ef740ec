//! Failures as Anthropic words them.
//!
//! Reference: <https://docs.claude.com/en/api/errors>.

use super::compose::member;
use crate::canon::{Failure, FailureKind};
use crate::dialect::ErrorReply;
use crate::json::write;

/// Writes a failure that is known before anything was streamed.
pub fn encode_error(failure: &Failure, request_id: &str) -> ErrorReply {
    let (status, _) = verdict(failure.kind);
    let retry_after = failure.retry_after_seconds();
    // Some clients give up where a 429 does not say when to come back.
    let is_limited = failure.kind == FailureKind::RateLimited;
    let retry_after = retry_after.or_else(|| is_limited.then_some(SOON));
    let mut body = b"{\"type\":\"error\"".to_vec();
    write_error(&mut body, failure);
    member(&mut body, "request_id", request_id);
    body.push(b'}');
    ErrorReply { status, retry_after, do_not_retry: is_final(failure.kind), body }
}

/// Seconds until a rate limit may have passed, where Gemini did not say.
const SOON: u64 = 5;

/// Writes `,"error":{…}`.
pub(super) fn write_error(out: &mut Vec<u8>, failure: &Failure) {
    let (_, kind) = verdict(failure.kind);
    write::key(out, "error");
    out.push(b'{');
    member(out, "type", kind);
    match too_long(failure) {
        Some(message) => member(out, "message", &message),
        None => member(out, "message", &failure.message),
    }
    out.push(b'}');
}

/// The status and the type of error.
fn verdict(kind: FailureKind) -> (u16, &'static str) {
    match kind {
        FailureKind::InvalidRequest | FailureKind::ContextTooLong => (400, "invalid_request_error"),
        FailureKind::Authentication => (401, "authentication_error"),
        FailureKind::Billing => (402, "billing_error"),
        FailureKind::Permission => (403, "permission_error"),
        FailureKind::NotFound => (404, "not_found_error"),
        FailureKind::TooLarge => (413, "request_too_large"),
        FailureKind::RateLimited | FailureKind::QuotaExhausted => (429, "rate_limit_error"),
        FailureKind::Internal => (500, "api_error"),
        FailureKind::Unsupported => (501, "not_supported"),
        FailureKind::Cut
        | FailureKind::EmptyTurn
        | FailureKind::MalformedCall
        | FailureKind::Unreachable
        | FailureKind::UpstreamProtocol => (502, "api_error"),
        FailureKind::Timeout => (504, "timeout_error"),
        FailureKind::Overloaded => (529, "overloaded_error"),
    }
}

/// Whether a client that goes by the status alone would try again for nothing.
fn is_final(kind: FailureKind) -> bool {
    match kind {
        FailureKind::Billing | FailureKind::QuotaExhausted | FailureKind::Unsupported => true,
        FailureKind::Authentication
        | FailureKind::Cut
        | FailureKind::ContextTooLong
        | FailureKind::EmptyTurn
        | FailureKind::Internal
        | FailureKind::InvalidRequest
        | FailureKind::MalformedCall
        | FailureKind::NotFound
        | FailureKind::Overloaded
        | FailureKind::Permission
        | FailureKind::RateLimited
        | FailureKind::Timeout
        | FailureKind::TooLarge
        | FailureKind::Unreachable
        | FailureKind::UpstreamProtocol => false,
    }
}

/// Clients look for these words, and for the numbers, before they shorten the conversation.
fn too_long(failure: &Failure) -> Option<String> {
    if failure.kind != FailureKind::ContextTooLong {
        return None;
    }
    let message = &failure.message;
    let number_after = |mark: &str| {
        let rest = message.get(message.find(mark)? + mark.len()..)?;
        let digits = rest.trim_start_matches([' ', '(', ':']);
        let digits: String =
            digits.chars().take_while(|it| it.is_ascii_digit() || *it == ',').collect();
        digits.replace(',', "").parse::<u64>().ok()
    };
    Some(match (number_after("token count"), number_after("tokens allowed")) {
        (Some(count), Some(limit)) => {
            format!("prompt is too long: {count} tokens > {limit} maximum")
        }
        _ => format!("prompt is too long: {message}"),
    })
}

/// Why a thread cannot be had. Anthropic's SDKs know both answers and send everything again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadRefusal {
    /// The answer to continue from is not known.
    NotFound,
    /// Conversations are not remembered here.
    Unsupported,
}

/// Writes the refusal of a request's `thread`.
pub fn encode_thread_error(refusal: ThreadRefusal, request_id: &str) -> ErrorReply {
    let (status, kind, message, code) = match refusal {
        ThreadRefusal::NotFound => (
            404,
            "not_found_error",
            "thread: the message to continue from is not known here",
            "thread_not_found",
        ),
        ThreadRefusal::Unsupported => (
            400,
            "invalid_request_error",
            "thread: conversations are not remembered here; send all messages",
            "thread_unsupported_request",
        ),
    };
    let mut body = b"{\"type\":\"error\",\"error\":{".to_vec();
    member(&mut body, "type", kind);
    member(&mut body, "message", message);
    write::key(&mut body, "details");
    body.push(b'{');
    member(&mut body, "error_code", code);
    if refusal == ThreadRefusal::Unsupported {
        body.extend_from_slice(b",\"unsupported\":[]");
    }
    body.extend_from_slice(b"}}");
    member(&mut body, "request_id", request_id);
    body.push(b'}');
    ErrorReply { status, retry_after: None, do_not_retry: false, body }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(failure: &Failure, status: u16, kind: &str, retry_after: Option<u64>, is_final: bool) {
        let reply = encode_error(failure, "req_1");
        let body: serde_json::Value = serde_json::from_slice(&reply.body).unwrap();
        assert_eq!(reply.status, status, "{:?}", failure.kind);
        assert_eq!(body["type"], "error");
        assert_eq!(body["error"]["type"], kind);
        assert_eq!(body["request_id"], "req_1");
        assert_eq!(reply.retry_after, retry_after);
        assert_eq!(reply.do_not_retry, is_final);
    }

    #[test]
    fn r136_every_failure_has_its_status_and_type() {
        use FailureKind as Kind;
        let of = |kind| Failure::new(kind, "why");
        check(&of(Kind::InvalidRequest), 400, "invalid_request_error", None, false);
        check(&of(Kind::ContextTooLong), 400, "invalid_request_error", None, false);
        check(&of(Kind::Authentication), 401, "authentication_error", None, false);
        check(&of(Kind::Billing), 402, "billing_error", None, true);
        check(&of(Kind::Permission), 403, "permission_error", None, false);
        check(&of(Kind::NotFound), 404, "not_found_error", None, false);
        check(&of(Kind::TooLarge), 413, "request_too_large", None, false);
        check(&of(Kind::RateLimited), 429, "rate_limit_error", Some(SOON), false);
        check(&of(Kind::QuotaExhausted), 429, "rate_limit_error", None, true);
        check(&of(Kind::Internal), 500, "api_error", None, false);
        check(&of(Kind::Unsupported), 501, "not_supported", None, true);
        check(&of(Kind::EmptyTurn), 502, "api_error", None, false);
        check(&of(Kind::MalformedCall), 502, "api_error", None, false);
        check(&of(Kind::Cut), 502, "api_error", None, false);
        check(&of(Kind::UpstreamProtocol), 502, "api_error", None, false);
        check(&of(Kind::Timeout), 504, "timeout_error", None, false);
        check(&of(Kind::Overloaded), 529, "overloaded_error", None, false);
    }

    #[test]
    fn k4_retry_after_is_rounded_up() {
        let mut failure = Failure::new(FailureKind::RateLimited, "wait");
        failure.retry_after_ms = Some(34_400);
        check(&failure, 429, "rate_limit_error", Some(35), false);
        failure.kind = FailureKind::Overloaded;
        check(&failure, 529, "overloaded_error", Some(35), false);
    }

    #[test]
    fn a_long_prompt_is_named_as_clients_expect() {
        let said = |message: &str| {
            let failure = Failure::new(FailureKind::ContextTooLong, message);
            let body: serde_json::Value =
                serde_json::from_slice(&encode_error(&failure, "r").body).unwrap();
            body["error"]["message"].as_str().unwrap().to_owned()
        };
        assert_eq!(
            said(
                "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."
            ),
            "prompt is too long: 1200000 tokens > 1048576 maximum"
        );
        assert_eq!(
            said("The input token count exceeds the maximum number of tokens allowed 1048576."),
            "prompt is too long: The input token count exceeds the maximum number of tokens \
             allowed 1048576."
        );
    }

    #[test]
    fn threads_are_refused_so_that_sdks_send_everything() {
        for (refusal, status, code) in [
            (ThreadRefusal::Unsupported, 400, "thread_unsupported_request"),
            (ThreadRefusal::NotFound, 404, "thread_not_found"),
        ] {
            let reply = encode_thread_error(refusal, "req_1");
            let body: serde_json::Value = serde_json::from_slice(&reply.body).unwrap();
            assert_eq!(reply.status, status);
            assert_eq!(body["error"]["details"]["error_code"], code);
            assert_eq!(body["request_id"], "req_1");
        }
    }
}
