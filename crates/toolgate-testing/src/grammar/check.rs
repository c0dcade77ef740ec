//! Dispatch to the grammar checker of a dialect.

use serde_json::Value;
use toolgate_core::translate::Dialect;

use super::{anthropic, chat, gemini, responses};

/// A stream follows its dialect's grammar. A Chat client is taken to have asked for usage.
#[track_caller]
pub fn check_stream(dialect: Dialect, bytes: &[u8]) {
    let verdict = match dialect {
        Dialect::Anthropic => anthropic::check_stream(bytes),
        Dialect::Responses => responses::check_stream(bytes),
        Dialect::Chat => {
            chat::check_stream(bytes, true);
            Ok(())
        }
        Dialect::Gemini => {
            gemini::check_sse(bytes);
            Ok(())
        }
    };
    if let Err(why) = verdict {
        panic!("{why}\n{}", String::from_utf8_lossy(bytes));
    }
}

/// A body follows its dialect's grammar.
#[track_caller]
pub fn check_body(dialect: Dialect, bytes: &[u8]) {
    let verdict = match dialect {
        Dialect::Anthropic => anthropic::check_message(bytes),
        Dialect::Responses => responses::check_response(bytes),
        Dialect::Chat => {
            chat::check_response(bytes);
            Ok(())
        }
        Dialect::Gemini => {
            gemini::check_response(bytes);
            Ok(())
        }
    };
    if let Err(why) = verdict {
        panic!("{why}\n{}", String::from_utf8_lossy(bytes));
    }
}

/// An error body has its dialect's form.
#[track_caller]
pub fn check_error(dialect: Dialect, body: &Value) {
    match dialect {
        Dialect::Anthropic => {
            assert_eq!(body["type"], "error", "{body}");
            assert!(body["error"]["type"].is_string(), "{body}");
            assert!(body["error"]["message"].is_string(), "{body}");
            assert!(body["request_id"].is_string(), "{body}");
        }
        Dialect::Chat | Dialect::Responses => chat::check_error(body),
        Dialect::Gemini => gemini::check_error(body),
    }
}
