//! Google's errors in every dialect.

use std::fmt::Write as _;

use serde_json::Value;
use toolgate_core::translate::{Dialect, encode_error};
use toolgate_core::upstream::generate_content::decode_error;

use crate::snapshots;
use toolgate_testing::golden::inputs;
use toolgate_testing::grammar;
use toolgate_testing::pipeline::DIALECTS;

#[test]
fn k4_every_error_in_every_dialect() {
    for (case, json) in inputs("error", ".json") {
        let recorded: Value = serde_json::from_slice(&json).unwrap();
        let status = u16::try_from(recorded["status"].as_u64().unwrap()).unwrap();
        let failure = decode_error(status, recorded["body"].to_string().as_bytes());
        let mut shown = String::new();
        for dialect in DIALECTS {
            let reply = encode_error(dialect, &failure, "req_1");
            write!(shown, "{}: HTTP {}", dialect.name(), reply.status).unwrap();
            if let Some(seconds) = reply.retry_after {
                write!(shown, ", Retry-After: {seconds}").unwrap();
            }
            if reply.do_not_retry {
                shown.push_str(", x-should-retry: false");
            }
            writeln!(shown, "\n{}\n", snapshots::pretty(&reply.body)).unwrap();
            grammar::check_error(dialect, &serde_json::from_slice(&reply.body).unwrap());
        }
        snapshots::check("error", &case, &shown);
    }
}

#[track_caller]
fn check(case: &str, want: [(u16, &str, Option<u64>, bool); 4]) {
    let (_, json) = inputs("error", ".json").into_iter().find(|(name, _)| name == case).unwrap();
    let recorded: Value = serde_json::from_slice(&json).unwrap();
    let status = u16::try_from(recorded["status"].as_u64().unwrap()).unwrap();
    let failure = decode_error(status, recorded["body"].to_string().as_bytes());
    for (dialect, (status, kind, retry_after, do_not_retry)) in DIALECTS.into_iter().zip(want) {
        let reply = encode_error(dialect, &failure, "req_1");
        let body: Value = serde_json::from_slice(&reply.body).unwrap();
        let field = match dialect {
            Dialect::Anthropic | Dialect::Chat | Dialect::Responses => "type",
            Dialect::Gemini => "status",
        };
        let got = (reply.status, &body["error"][field], reply.retry_after, reply.do_not_retry);
        assert_eq!(
            got,
            (status, &Value::from(kind), retry_after, do_not_retry),
            "{case} {dialect:?}"
        );
    }
}

#[test]
fn r130_errors_have_each_dialects_status_and_type() {
    let limited = "rate_limit_error";
    let exhausted = "RESOURCE_EXHAUSTED";
    check(
        "rate_limit_429",
        [
            (429, limited, Some(35), false),
            (429, limited, Some(35), false),
            (429, limited, Some(35), false),
            (429, exhausted, Some(35), false),
        ],
    );
    check(
        "overloaded_503",
        [
            (529, "overloaded_error", None, false),
            (503, "server_error", None, false),
            (503, "server_error", None, false),
            (503, "UNAVAILABLE", None, false),
        ],
    );
    check(
        "api_key_400",
        [
            (401, "authentication_error", None, false),
            (401, "invalid_request_error", None, false),
            (401, "authentication_error", None, true),
            (400, "INVALID_ARGUMENT", None, true),
        ],
    );
    check(
        "invalid_400",
        [
            (400, "invalid_request_error", None, false),
            (400, "invalid_request_error", None, false),
            (400, "invalid_request_error", None, true),
            (400, "INVALID_ARGUMENT", None, true),
        ],
    );
}

/// Trying again soon does not help, and clients are told so.
#[test]
fn k4_what_is_used_up_is_not_to_be_tried_again() {
    for case in ["quota_per_day_429", "billing_402"] {
        let (_, json) = inputs("error", ".json").into_iter().find(|(it, _)| it == case).unwrap();
        let recorded: Value = serde_json::from_slice(&json).unwrap();
        let status = u16::try_from(recorded["status"].as_u64().unwrap()).unwrap();
        let failure = decode_error(status, recorded["body"].to_string().as_bytes());
        assert!(!failure.kind.is_retryable(), "{case}");
        for dialect in DIALECTS {
            assert!(encode_error(dialect, &failure, "req_1").do_not_retry, "{case} {dialect:?}");
        }
    }
}
