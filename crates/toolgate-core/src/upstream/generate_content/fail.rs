//! Google's errors: one table from its envelope to a [`Failure`].
//!
//! ```text
//! {"error": {"code": 429, "message": "…", "status": "RESOURCE_EXHAUSTED", "details": [
//!    {"@type": "…ErrorInfo",    "reason": "API_KEY_INVALID"},
//!    {"@type": "…QuotaFailure", "violations": [{"quotaId": "…PerDay…"}]},
//!    {"@type": "…RetryInfo",    "retryDelay": "34.4s"}]}}
//! ```
//!
//! The envelope comes as an object, as an array of one, or as an event; in front of it stand
//! proxies that answer with a page.

use std::ops::ControlFlow;

use serde_json::Value;

use crate::canon::{Failure, FailureKind};
use crate::sse::{Frame, FrameKind, Reader};

/// Reads an answer that is an error.
///
/// ```
/// use toolgate_core::canon::FailureKind;
/// use toolgate_core::upstream::generate_content::decode_error;
/// let body = br#"{"error":{"code":503,"message":"overloaded","status":"UNAVAILABLE"}}"#;
/// assert_eq!(decode_error(503, body).kind, FailureKind::Overloaded);
/// ```
pub fn decode_error(status: u16, body: &[u8]) -> Failure {
    let mut found = None;
    let mut take = |frame: Frame<'_>| {
        if frame.kind != FrameKind::Noise
            && let Ok(json) = std::str::from_utf8(frame.bytes)
            && let Some(error) = envelope(json)
        {
            found = Some(failure(Some(status), &error, json));
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    };
    let mut reader = Reader::default();
    // A frame that is too large is no error envelope.
    let _ = reader.feed(body, &mut take).and_then(|()| reader.finish(&mut take));
    found.unwrap_or_else(|| without_envelope(status, std::str::from_utf8(body).unwrap_or_default()))
}

/// Reads a chunk's `error` member; `chunk` is the whole chunk.
pub(super) fn failure_in_stream(error: &str, chunk: &str) -> Failure {
    let error = serde_json::from_str(error).unwrap_or_default();
    failure(None, &error, chunk)
}

fn envelope(json: &str) -> Option<Value> {
    let mut value: Value = serde_json::from_str(json).ok()?;
    if let Value::Array(values) = &mut value {
        value = values.first_mut()?.take();
    }
    value.get_mut("error").map(Value::take)
}

fn failure(http: Option<u16>, error: &Value, body: &str) -> Failure {
    let error = Error::read(error);
    let status = http
        .filter(|status| *status >= 400)
        .or(error.code)
        .or_else(|| error.word.as_deref().and_then(status_of_word))
        .or(http);
    let kind = kind(status, &error);
    let message = match (error.message.is_empty(), &error.word, status) {
        (false, _, _) => error.message.clone(),
        (true, Some(word), _) => format!("Gemini answered {word}"),
        (true, None, Some(status)) => format!("Gemini answered {status}"),
        (true, None, None) => "Gemini answered with an error that says nothing".to_owned(),
    };
    Failure {
        retry_after_ms: error.retry_after_ms.filter(|_| kind.is_retryable()),
        upstream_status: status,
        upstream_reason: error.reason(),
        upstream_code: error.word,
        upstream_body: Some(body.trim().to_owned()),
        ..Failure::new(kind, message)
    }
}

fn without_envelope(status: u16, body: &str) -> Failure {
    let title = || {
        let start = body.find("<title>")? + "<title>".len();
        let length = body.get(start..)?.find("</title>")?;
        body.get(start..start + length)
    };
    let said = match body.trim_start() {
        "" => None,
        page if page.starts_with('<') => title(),
        text => Some(text),
    };
    let message = match said.map(excerpt).filter(|said| !said.is_empty()) {
        Some(said) => format!("Gemini answered {status}: {said}"),
        None => format!("Gemini answered {status} and did not say why"),
    };
    let is_json =
        serde_json::from_str::<Value>(body).is_ok_and(|it| it.is_object() || it.is_array());
    Failure {
        upstream_status: Some(status),
        upstream_body: is_json.then(|| body.trim().to_owned()),
        ..Failure::new(kind(Some(status), &Error::default()), message)
    }
}

/// Members of Google's error envelope that decide the failure.
#[derive(Debug, Default)]
struct Error {
    code: Option<u16>,
    word: Option<String>,
    message: String,
    /// Reasons of `ErrorInfo`, then those of the older `errors` list.
    reasons: Vec<String>,
    has_error_info: bool,
    per_day: bool,
    retry_after_ms: Option<u64>,
}

impl Error {
    fn read(error: &Value) -> Self {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let list = |value: &Value, name: &str| {
            value.get(name).and_then(Value::as_array).cloned().unwrap_or_default()
        };
        let code = match &error["code"] {
            Value::Number(code) => code.as_u64().and_then(|code| code.try_into().ok()),
            Value::String(code) => code.parse().ok(),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        };
        let mut read = Self {
            code: code.filter(|code| (400..600).contains(code)),
            word: text(&error["status"]),
            message: text(&error["message"]).or_else(|| text(error)).unwrap_or_default(),
            ..Self::default()
        };
        for detail in list(error, "details") {
            read.reasons.extend(text(&detail["reason"]));
            let metadata = &detail["metadata"];
            read.per_day |= ["quota_limit", "quotaId", "quota_id"]
                .iter()
                .any(|name| is_per_day(&metadata[*name]));
            read.per_day |= list(&detail, "violations").iter().any(|it| is_per_day(&it["quotaId"]));
            if let Some(delay) = detail["retryDelay"].as_str() {
                read.retry_after_ms = duration_ms(delay);
            }
        }
        read.has_error_info = !read.reasons.is_empty();
        for old in list(error, "errors") {
            read.reasons.extend(text(&old["reason"]));
        }
        read.retry_after_ms = read.retry_after_ms.or_else(|| retry_in_words(&read.message));
        read
    }

    fn has_reason(&self, names: &[&str]) -> bool {
        self.reasons.iter().any(|reason| names.contains(&reason.as_str()))
    }

    /// The reason to report: one that refuses the credential, or that of `ErrorInfo`. The older
    /// list only repeats the status (`forbidden`, `badRequest`).
    fn reason(&self) -> Option<String> {
        let refusing = self.reasons.iter().find(|reason| is_listed(CREDENTIAL_REFUSED, reason));
        let stated = || self.reasons.first().filter(|_| self.has_error_info);
        refusing.or_else(stated).cloned()
    }

    /// Whether the message begins with one of these phrases. Values that Google quotes from the
    /// request come later in a message, so a client cannot imitate such an error.
    fn begins_with(&self, phrases: &[&str]) -> bool {
        begins_with(&self.message, phrases)
    }

    fn says(&self, words: &[&str]) -> bool {
        let message = self.message.to_ascii_lowercase();
        words.iter().any(|word| message.contains(word))
    }
}

fn is_per_day(quota: &Value) -> bool {
    quota.as_str().is_some_and(|quota| quota.contains("PerDay"))
}

fn kind(status: Option<u16>, error: &Error) -> FailureKind {
    let is_bad_key = !error.has_error_info && error.begins_with(BAD_KEY_PHRASES);
    if error.has_reason(BAD_KEY) || is_bad_key {
        return FailureKind::Authentication;
    }
    if error.has_reason(&["BILLING_DISABLED"]) {
        return FailureKind::Billing;
    }
    if error.says(TOO_LONG) {
        return FailureKind::ContextTooLong;
    }
    if error.says(&["payload size exceeds"]) {
        return FailureKind::TooLarge;
    }
    match status {
        Some(400) if error.word.as_deref() == Some("FAILED_PRECONDITION") => {
            if error.says(&["billing"]) {
                FailureKind::Billing
            } else if error.says(&["location", "country", "region"]) {
                FailureKind::Permission
            } else {
                FailureKind::InvalidRequest
            }
        }
        Some(401) => FailureKind::Authentication,
        Some(402) => FailureKind::Billing,
        Some(403) => FailureKind::Permission,
        Some(404) => FailureKind::NotFound,
        Some(408 | 504) => FailureKind::Timeout,
        // `ABORTED`: it got into the way of another request. Nothing is wrong with it.
        Some(409) if error.word.as_deref() != Some("ALREADY_EXISTS") => FailureKind::Overloaded,
        Some(413) => FailureKind::TooLarge,
        Some(429) if error.per_day || error.has_reason(&["dailyLimitExceeded"]) => {
            FailureKind::QuotaExhausted
        }
        Some(429) => FailureKind::RateLimited,
        Some(499) => FailureKind::Cut,
        Some(400..=498) => FailureKind::InvalidRequest,
        Some(501) => FailureKind::Unsupported,
        Some(503 | 529) => FailureKind::Overloaded,
        Some(500..=599) => FailureKind::Internal,
        Some(_) => FailureKind::UpstreamProtocol,
        None => FailureKind::Internal,
    }
}

const BAD_KEY: &[&str] = &[
    "API_KEY_INVALID",
    "API_KEY_EXPIRED",
    "ACCESS_TOKEN_EXPIRED",
    "ACCESS_TOKEN_INVALID",
    "ACCESS_TOKEN_TYPE_UNSUPPORTED",
    "CREDENTIALS_MISSING",
    "keyInvalid",
    "keyExpired",
    "authError",
];

/// Beginnings of messages about a bad key that come without a reason.
const BAD_KEY_PHRASES: &[&str] = &["api key not valid", "api key expired", "api key not found"];

/// Reasons for which Google refuses a credential, or the project behind it, whatever is requested:
/// those of `google.api.ErrorReason`, the `CheckError` codes of older services, and those of the
/// `errors` list. Not listed are reasons that concern one resource (`IAM_PERMISSION_DENIED`), the
/// request itself (`SYSTEM_PARAMETER_UNSUPPORTED`, `OVERLOADED_CREDENTIALS`) or a quota.
const CREDENTIAL_REFUSED: &[&str] = &[
    "ACCESS_TOKEN_EXPIRED",
    "ACCESS_TOKEN_INVALID",
    "ACCESS_TOKEN_SCOPE_INSUFFICIENT",
    "ACCESS_TOKEN_TYPE_UNSUPPORTED",
    "ACCOUNT_STATE_INVALID",
    "API_KEY_ANDROID_APP_BLOCKED",
    "API_KEY_EXPIRED",
    "API_KEY_HTTP_REFERRER_BLOCKED",
    "API_KEY_INVALID",
    "API_KEY_IOS_APP_BLOCKED",
    "API_KEY_IP_ADDRESS_BLOCKED",
    "API_KEY_NOT_FOUND",
    "API_KEY_SERVICE_BLOCKED",
    "BILLING_DISABLED",
    "CONSUMER_INVALID",
    "CONSUMER_SUSPENDED",
    "CREDENTIALS_MISSING",
    "GCP_SUSPENDED",
    "LOCATION_POLICY_VIOLATED",
    "LOCATION_TAX_POLICY_VIOLATED",
    "MISSING_ORIGIN",
    "ORG_RESTRICTION_VIOLATION",
    "PROJECT_DELETED",
    "PROJECT_INVALID",
    "RESOURCE_PROJECT_INVALID",
    "RESOURCE_USAGE_RESTRICTION_VIOLATED",
    "SECURITY_POLICY_VIOLATED",
    "SERVICE_DISABLED",
    "SERVICE_NOT_ACTIVATED",
    "SERVICE_NOT_VISIBLE",
    "USER_BLOCKED_BY_ADMIN",
    "USER_PROJECT_DENIED",
    "accessNotConfigured",
    "authError",
    "ipRefererBlocked",
    "keyExpired",
    "keyInvalid",
];

/// Beginnings of messages that refuse a credential and come without a reason.
const CREDENTIAL_REFUSED_PHRASES: &[&str] = &[
    "your api key was reported as leaked",
    "your project has been denied access",
    "permission denied: consumer",
    "method doesn't allow unregistered callers",
    "user location is not supported",
    "gemini api free tier is not available",
];

/// Whether Google refused the credential, or the project that it belongs to, and not the request:
/// every request with the same credential fails until its owner changes something.
///
/// ```
/// use toolgate_core::upstream::generate_content::{decode_error, refuses_credential};
/// let leaked = br#"{"error":{"code":403,"status":"PERMISSION_DENIED",
///     "message":"Your API key was reported as leaked. Please use another API key."}}"#;
/// assert!(refuses_credential(&decode_error(403, leaked)));
/// let model = br#"{"error":{"code":403,"status":"PERMISSION_DENIED",
///     "message":"You do not have permission to access the model."}}"#;
/// assert!(!refuses_credential(&decode_error(403, model)));
/// ```
pub fn refuses_credential(failure: &Failure) -> bool {
    if failure.upstream_status.is_none() {
        return false;
    }
    match (failure.kind, &failure.upstream_reason) {
        (FailureKind::Authentication | FailureKind::Billing, _) => true,
        (_, Some(reason)) => is_listed(CREDENTIAL_REFUSED, reason),
        (FailureKind::Permission, None) => {
            begins_with(&failure.message, CREDENTIAL_REFUSED_PHRASES)
        }
        (_, None) => false,
    }
}

fn is_listed(reasons: &[&str], reason: &str) -> bool {
    reasons.contains(&reason)
}

fn begins_with(message: &str, phrases: &[&str]) -> bool {
    phrases.iter().any(|phrase| {
        message.get(..phrase.len()).is_some_and(|start| start.eq_ignore_ascii_case(phrase))
    })
}

/// How Google words it when the conversation does not fit; it has used both 400 and 500 for it.
const TOO_LONG: &[&str] = &[
    "exceeds the maximum number of tokens",
    "exceeds the maximum token",
    "input token count (",
    "input context is too long",
    "input is too long",
];

/// The beginning of a text, on one line.
pub(super) fn excerpt(text: &str) -> String {
    const LENGTH: usize = 200;
    let line: String =
        text.chars().map(|it| if it.is_control() { ' ' } else { it }).take(LENGTH).collect();
    let mut words = line.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.len() > line.len() {
        words.push('…');
    }
    words
}

fn status_of_word(word: &str) -> Option<u16> {
    Some(match word {
        "INVALID_ARGUMENT" | "FAILED_PRECONDITION" | "OUT_OF_RANGE" => 400,
        "UNAUTHENTICATED" => 401,
        "PERMISSION_DENIED" => 403,
        "NOT_FOUND" => 404,
        "ABORTED" | "ALREADY_EXISTS" => 409,
        "RESOURCE_EXHAUSTED" => 429,
        "CANCELLED" => 499,
        "INTERNAL" | "UNKNOWN" | "DATA_LOSS" => 500,
        "UNIMPLEMENTED" => 501,
        "UNAVAILABLE" => 503,
        "DEADLINE_EXCEEDED" => 504,
        _ => return None,
    })
}

/// `34.4s` → 34400, rounded up.
fn duration_ms(delay: &str) -> Option<u64> {
    let delay = delay.trim();
    let (number, unit) = match delay.strip_suffix("ms") {
        Some(number) => (number, 1.0),
        None => (delay.strip_suffix('s')?, 1000.0),
    };
    // Ten digits and a fraction are enough for anything that a client would wait for.
    let plain = number.len() <= 24 && number.bytes().all(|it| it.is_ascii_digit() || it == b'.');
    let ms = (number.parse::<f64>().ok().filter(|_| plain)? * unit * 1000.0).round() / 1000.0;
    (ms < 1e15).then(|| ms.ceil() as u64)
}

/// Messages end in "Please retry in 34.4s." even where `RetryInfo` is missing.
fn retry_in_words(message: &str) -> Option<u64> {
    let at = message.find("retry in ")? + "retry in ".len();
    let delay = message.get(at..)?.split_whitespace().next()?;
    duration_ms(delay.trim_end_matches(['.', ',', ';']))
}

#[cfg(test)]
mod tests;
