//! Every golden error.

use serde_json::Value;
use toolgate_core::canon::FailureKind::{self, *};
use toolgate_core::upstream::generate_content::decode_error;

use toolgate_testing::golden;

#[track_caller]
fn check(case: &str, kind: FailureKind, retry_after_ms: Option<u64>) {
    let case: Value = serde_json::from_slice(&golden::file(&format!("error/{case}.json"))).unwrap();
    let status = u16::try_from(case["status"].as_u64().unwrap()).unwrap();
    let body = case["body"].to_string();
    let failure = decode_error(status, body.as_bytes());
    assert_eq!((failure.kind, failure.retry_after_ms), (kind, retry_after_ms));
    assert_eq!(failure.upstream_status, Some(status));
    assert_eq!(failure.upstream_code.as_deref(), case["body"]["error"]["status"].as_str());
    assert_eq!(failure.message, case["body"]["error"]["message"].as_str().unwrap());
    assert_eq!(failure.upstream_body, Some(body));
}

#[test]
fn k4_errors() {
    check("rate_limit_429", RateLimited, Some(34_400));
    check("quota_per_day_429", QuotaExhausted, None);
    check("overloaded_503", Overloaded, None);
    check("invalid_400", InvalidRequest, None);
    check("api_key_400", Authentication, None);
    check("billing_402", Billing, None);
    check("not_found_404", NotFound, None);
    check("internal_500", Internal, None);
}

#[test]
fn not_worth_a_second_try() {
    for kind in [QuotaExhausted, Billing, Authentication, InvalidRequest, NotFound] {
        assert!(!kind.is_retryable());
    }
}
