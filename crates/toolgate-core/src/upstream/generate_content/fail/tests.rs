use super::*;
use FailureKind::*;

#[track_caller]
fn check(status: u16, error: &str, kind: FailureKind, retry_after_ms: Option<u64>) {
    let inner = format!("{{\"error\":{error}}}");
    for body in [inner.clone(), format!("[{inner}\n]"), format!("data: {inner}\r\n\r\n")] {
        let failure = decode_error(status, body.as_bytes());
        assert_eq!((failure.kind, failure.retry_after_ms), (kind, retry_after_ms), "{body}");
        assert_eq!(failure.upstream_body.as_deref(), Some(inner.as_str()));
    }
    let in_stream = failure_in_stream(error, &inner);
    assert_eq!((in_stream.kind, in_stream.retry_after_ms), (kind, retry_after_ms), "{inner}");
}

#[test]
fn table() {
    let plain =
        |code: u16, word: &str| format!(r#"{{"code":{code},"message":"m","status":"{word}"}}"#);
    for (code, word, kind) in [
        (400, "INVALID_ARGUMENT", InvalidRequest),
        (400, "FAILED_PRECONDITION", InvalidRequest),
        (401, "UNAUTHENTICATED", Authentication),
        (402, "RESOURCE_EXHAUSTED", Billing),
        (403, "PERMISSION_DENIED", Permission),
        (404, "NOT_FOUND", NotFound),
        (409, "ABORTED", Overloaded),
        (409, "ALREADY_EXISTS", InvalidRequest),
        (413, "", TooLarge),
        (429, "RESOURCE_EXHAUSTED", RateLimited),
        (499, "CANCELLED", Cut),
        (500, "INTERNAL", Internal),
        (501, "UNIMPLEMENTED", Unsupported),
        (502, "", Internal),
        (503, "UNAVAILABLE", Overloaded),
        (504, "DEADLINE_EXCEEDED", Timeout),
    ] {
        check(code, &plain(code, word), kind, None);
    }
    check(429, r#"{"message":"m","status":"RESOURCE_EXHAUSTED"}"#, RateLimited, None);
}

#[test]
fn what_the_details_say() {
    check(
        400,
        r#"{"code":400,"message":"m","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID","domain":"googleapis.com"}]}"#,
        Authentication,
        None,
    );
    check(
        429,
        r#"{"code":429,"message":"m","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.4s"}]}"#,
        RateLimited,
        Some(34_400),
    );
    check(
        429,
        r#"{"code":429,"message":"m","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"47s"}]}"#,
        QuotaExhausted,
        None,
    );
    check(
        429,
        r#"{"code":429,"message":"m","errors":[{"message":"m","domain":"global","reason":"rateLimitExceeded"}]}"#,
        RateLimited,
        None,
    );
    check(
        403,
        r#"{"code":403,"message":"m","details":[{"reason":"BILLING_DISABLED"}]}"#,
        Billing,
        None,
    );
}

#[test]
fn what_the_message_says() {
    let message = |code: u16, word: &str, message: &str| {
        format!(r#"{{"code":{code},"message":"{message}","status":"{word}"}}"#)
    };
    for (code, word, said, kind, retry) in [
        (
            400,
            "INVALID_ARGUMENT",
            "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
            ContextTooLong,
            None,
        ),
        (
            400,
            "INVALID_ARGUMENT",
            "API key not valid. Please pass a valid API key.",
            Authentication,
            None,
        ),
        (
            400,
            "FAILED_PRECONDITION",
            "User location is not supported for the API use.",
            Permission,
            None,
        ),
        (400, "FAILED_PRECONDITION", "Please enable billing.", Billing, None),
        (
            400,
            "INVALID_ARGUMENT",
            "Request payload size exceeds the limit: 20971520 bytes.",
            TooLarge,
            None,
        ),
        (
            429,
            "RESOURCE_EXHAUSTED",
            "Quota exceeded. Please retry in 12.074824224s.",
            RateLimited,
            Some(12_075),
        ),
        (429, "RESOURCE_EXHAUSTED", "Please retry in 840.5ms.", RateLimited, Some(841)),
        (429, "RESOURCE_EXHAUSTED", "Please retry in a while", RateLimited, None),
    ] {
        check(code, &message(code, word, said), kind, retry);
    }
}

#[test]
fn bodies_that_are_no_envelope() {
    for (status, body, kind, message) in [
        (
            413,
            "<!DOCTYPE html><html><head><title>Error 413 (Request Entity Too Large)!!1</title></head></html>",
            TooLarge,
            "Gemini answered 413: Error 413 (Request Entity Too Large)!!1",
        ),
        (
            502,
            "<html>\r\n<body>nothing</body></html>",
            Internal,
            "Gemini answered 502 and did not say why",
        ),
        (503, "", Overloaded, "Gemini answered 503 and did not say why"),
        (503, "upstream connect error", Overloaded, "Gemini answered 503: upstream connect error"),
        (302, "", UpstreamProtocol, "Gemini answered 302 and did not say why"),
    ] {
        let failure = decode_error(status, body.as_bytes());
        assert_eq!((failure.kind, failure.message.as_str()), (kind, message));
        assert_eq!(failure.upstream_body, None);
        assert_eq!(failure.upstream_status, Some(status));
    }
    let odd = decode_error(500, br#"{"oops":true}"#);
    assert_eq!(odd.upstream_body.as_deref(), Some(r#"{"oops":true}"#));
    assert_eq!(decode_error(400, br#"{"error":"no"}"#).message, "no");
    assert_eq!(decode_error(400, &[0xFF, 0xFE, b'{']).kind, InvalidRequest);
}

/// Google's envelope with an `ErrorInfo` reason, and without one where it is empty.
fn google_error(code: u16, word: &str, message: &str, reason: &str) -> Failure {
    let mut error = serde_json::json!({"code": code, "message": message, "status": word});
    if !reason.is_empty() {
        let info = "type.googleapis.com/google.rpc.ErrorInfo";
        error["details"] = serde_json::json!([{"@type": info, "reason": reason}]);
    }
    decode_error(code, serde_json::json!({ "error": error }).to_string().as_bytes())
}

#[test]
fn permanent_refusals_of_a_credential_are_told_apart_by_reason() {
    let denied = "PERMISSION_DENIED";
    for (code, word, message, reason) in [
        (403, denied, "Your API key was reported as leaked. Please use another API key.", ""),
        (403, denied, "Your project has been denied access. Please contact support.", ""),
        (403, denied, "Permission denied: Consumer 'api_key:x' has been suspended.", ""),
        (403, denied, "m", "SERVICE_DISABLED"),
        (403, denied, "m", "BILLING_DISABLED"),
        (400, "INVALID_ARGUMENT", "m", "API_KEY_INVALID"),
        (400, "INVALID_ARGUMENT", "API key expired. Please renew the API key.", ""),
        (403, denied, "m", "API_KEY_SERVICE_BLOCKED"),
        (403, denied, "m", "API_KEY_HTTP_REFERRER_BLOCKED"),
        (403, denied, "m", "API_KEY_IP_ADDRESS_BLOCKED"),
        (403, denied, "m", "API_KEY_ANDROID_APP_BLOCKED"),
        (403, denied, "m", "API_KEY_IOS_APP_BLOCKED"),
        (403, denied, "m", "CONSUMER_SUSPENDED"),
        (403, denied, "m", "CONSUMER_INVALID"),
        (403, denied, "m", "USER_PROJECT_DENIED"),
        (401, "UNAUTHENTICATED", "m", "ACCESS_TOKEN_EXPIRED"),
        (401, "UNAUTHENTICATED", "m", ""),
        (402, "RESOURCE_EXHAUSTED", "m", ""),
        (400, "FAILED_PRECONDITION", "User location is not supported for the API use.", ""),
    ] {
        let failure = google_error(code, word, message, reason);
        assert!(refuses_credential(&failure), "{code} {word} {message} {reason}");
        let want = Some(reason).filter(|reason| !reason.is_empty());
        assert_eq!(failure.upstream_reason.as_deref(), want);
    }
    for (code, word, message, reason) in [
        (403, denied, "You do not have permission to access tuned model `x`.", ""),
        (403, denied, "Consumer has been suspended, says a model's name", "IAM_PERMISSION_DENIED"),
        (403, denied, "Your API key was reported as leaked.", "IAM_PERMISSION_DENIED"),
        (404, "NOT_FOUND", "models/x is not found", ""),
        (429, "RESOURCE_EXHAUSTED", "m", "RATE_LIMIT_EXCEEDED"),
        (503, "UNAVAILABLE", "m", ""),
        (400, "FAILED_PRECONDITION", "The File x is not in an ACTIVE state.", ""),
    ] {
        let failure = google_error(code, word, message, reason);
        assert!(!refuses_credential(&failure), "{code} {word} {message} {reason}");
    }
    let old =
        br#"{"error":{"code":403,"message":"m","errors":[{"reason":"accessNotConfigured"}]}}"#;
    assert!(refuses_credential(&decode_error(403, old)));
    let own = Failure::new(Authentication, "the gateway has no key");
    assert!(!refuses_credential(&own), "it is not Google's word");
}

#[test]
fn a_value_that_google_quotes_is_no_word_about_the_key() {
    for quoted in
        ["API key not valid", "api key expired", "has been suspended", "reported as leaked"]
    {
        let message =
            format!("Invalid value at 'generation_config.seed' (TYPE_INT32), \"{quoted}\"");
        let failure = google_error(400, "INVALID_ARGUMENT", &message, "");
        assert_eq!(failure.kind, InvalidRequest, "{message}");
        assert!(!refuses_credential(&failure), "{message}");
    }
}
