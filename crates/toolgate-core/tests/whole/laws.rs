//! Laws 4, 6 and 7 over the whole path.

use proptest::prelude::*;
use serde_json::Value;
use toolgate_core::schema::Cache;
use toolgate_core::seal::Sealer;
use toolgate_core::translate::{Dialect, encode_error};

use toolgate_testing::chunks::chunk;
use toolgate_testing::client;
use toolgate_testing::golden::{self};
use toolgate_testing::grammar;
use toolgate_testing::pipeline::{self, DIALECTS, answer, ask, asked, stamp, stream, target};

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn law4_whatever_gemini_says_every_dialect_keeps_to_its_grammar(
        chunks in prop::collection::vec(chunk(), 0..6),
        size in 1_usize..400,
    ) {
        let bytes: String = chunks.iter().map(|chunk| format!("data: {chunk}\r\n\r\n")).collect();
        for dialect in DIALECTS {
            let asked = asked(dialect);
            let whole = stream(&asked, [bytes.as_bytes()]);
            grammar::check_stream(dialect, &whole);
            prop_assert!(stream(&asked, bytes.as_bytes().chunks(size)) == whole);
            match answer(&asked, bytes.as_bytes()) {
                Ok(answer) => {
                    let body = asked.echo.encode_response(&answer, &stamp(), &asked.sealer);
                    grammar::check_body(dialect, &body);
                    let (one, other) = (client::read(dialect, &whole), client::read(dialect, &body));
                    prop_assert_eq!(&one.text, &other.text);
                    prop_assert_eq!(one.names(), other.names());
                    for (one, other) in one.calls.iter().zip(&other.calls) {
                        // A client that parses numbers may write them differently.
                        let read: Value = serde_json::from_str(&one.args).unwrap();
                        prop_assert!(one.args == other.args || read.to_string().as_str() == other.args);
                        prop_assert_eq!(&one.id, &other.id);
                    }
                    prop_assert_eq!(one.stop, other.stop);
                    prop_assert_eq!(one.usage, other.usage);
                }
                Err(failure) => {
                    let reply = encode_error(dialect, &failure, "req_1");
                    grammar::check_error(dialect, &serde_json::from_slice(&reply.body).unwrap());
                }
            }
        }
    }
}

/// Everything that a careless translator changes: names that mean something in schemas, numbers as
/// they are written, the order of members, escapes, emptiness.
const HARD: &str = r##"{"title":"T","$ref":"#/x","zebra":1.0,"apple":12345678901234567890,"small":-0.0,"exp":1e5,"tenth":0.10,"default":null,"const":[1,1.50,"1"],"format":{"required":["ghost"],"type":"object","properties":{}},"unicode":"日本 🎌 é","escaped":"\u00e9\/\t","":"","nested":{"title":{"title":[{}]}}}"##;

/// The golden request with a tool beside the others that takes anything.
fn with_keep(dialect: Dialect) -> String {
    let body = golden::request(dialect);
    let tool = match dialect {
        Dialect::Anthropic => r#"{"name":"Keep","input_schema":{"type":"object"}}"#,
        Dialect::Responses => r#"{"type":"function","name":"Keep","parameters":{"type":"object"}}"#,
        Dialect::Chat => {
            r#"{"type":"function","function":{"name":"Keep","parameters":{"type":"object"}}}"#
        }
        Dialect::Gemini => {
            let declared = r#""functionDeclarations": ["#;
            let keep = r#"{"name":"Keep","parametersJsonSchema":{"type":"object"}},"#;
            assert!(body.contains(declared));
            return body.replacen(declared, &format!("{declared}{keep}"), 1);
        }
    };
    assert!(body.contains(r#""tools": ["#));
    body.replacen(r#""tools": ["#, &format!(r#""tools": [{tool},"#), 1)
}

#[test]
fn law6_arguments_reach_the_client_as_they_were_written() {
    let stream_bytes = format!(
        "data: {{\"candidates\":[{{\"content\":{{\"parts\":[{{\"functionCall\":{{\"name\":\"Keep\",\"args\":{HARD}}}}}],\"role\":\"model\"}},\"finishReason\":\"STOP\"}}]}}\r\n\r\n"
    );
    for dialect in DIALECTS {
        let asked = ask(dialect, &with_keep(dialect));
        let streamed = stream(&asked, [stream_bytes.as_bytes()]);
        let whole = answer(&asked, stream_bytes.as_bytes()).unwrap();
        let body = asked.echo.encode_response(&whole, &stamp(), &asked.sealer);
        for bytes in [streamed, body] {
            let text = String::from_utf8(bytes).unwrap();
            // As JSON within a string, or as JSON.
            let quoted = serde_json::to_string(HARD).unwrap();
            let found = text.contains(HARD) || text.contains(quoted.trim_matches('"'));
            assert!(found, "{dialect:?}\n{text}");
        }
    }
}

/// A conversation with a call of `Keep` and its result, in a dialect.
fn history(dialect: Dialect) -> String {
    let base = with_keep(dialect);
    let quoted = serde_json::to_string(HARD).unwrap();
    let (list, turns) = match dialect {
        Dialect::Anthropic => (
            "messages",
            format!(
                r#"{{"role":"user","content":"a"}},{{"role":"assistant","content":[{{"type":"tool_use","id":"toolu_1","name":"Keep","input":{HARD}}}]}},{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"toolu_1","content":{quoted}}}]}},"#
            ),
        ),
        Dialect::Responses => (
            "input",
            format!(
                r#"{{"role":"user","content":"a"}},{{"type":"function_call","call_id":"call_1","name":"Keep","arguments":{quoted}}},{{"type":"function_call_output","call_id":"call_1","output":{quoted}}},"#
            ),
        ),
        Dialect::Chat => (
            "messages",
            format!(
                r#"{{"role":"user","content":"a"}},{{"role":"assistant","content":null,"tool_calls":[{{"id":"call_1","type":"function","function":{{"name":"Keep","arguments":{quoted}}}}}]}},{{"role":"tool","tool_call_id":"call_1","content":{quoted}}},"#
            ),
        ),
        Dialect::Gemini => (
            "contents",
            format!(
                r#"{{"role":"user","parts":[{{"text":"a"}}]}},{{"role":"model","parts":[{{"functionCall":{{"name":"Keep","args":{HARD}}}}}]}},{{"role":"user","parts":[{{"functionResponse":{{"name":"Keep","response":{HARD}}}}}]}},"#
            ),
        ),
    };
    let opening = format!("\"{list}\": [");
    assert!(base.contains(&opening), "{base}");
    base.replacen(&opening, &format!("{opening}{turns}"), 1)
}

#[test]
fn law6_arguments_and_results_reach_gemini_as_they_were_written() {
    for dialect in DIALECTS {
        let body = history(dialect);
        let decoded = pipeline::decode(dialect, &body, &Sealer::default()).unwrap();
        for model in ["gemini-2.5-flash", "gemini-3.6-flash"] {
            let target = toolgate_core::canon::Target { model: model.to_owned(), ..target() };
            let encoded = pipeline::encode(&decoded.request, &target).unwrap();
            let sent = String::from_utf8(encoded.body).unwrap();
            assert!(sent.contains(&format!("\"args\":{HARD}")), "{dialect:?}\n{sent}");
            let quoted = serde_json::to_string(HARD).unwrap();
            // Gemini takes a `$ref` in a response for one of its own: such a result goes as text.
            assert!(sent.contains(&quoted), "{dialect:?}\n{sent}");
        }
    }
}

#[test]
fn law6_results_that_are_json_stay_json() {
    let result = HARD.replace("$ref", "ref");
    let body = history(Dialect::Gemini).replace(HARD, &result);
    let decoded = pipeline::decode(Dialect::Gemini, &body, &Sealer::default()).unwrap();
    let encoded = pipeline::encode(&decoded.request, &target()).unwrap();
    let sent = String::from_utf8(encoded.body).unwrap();
    assert!(sent.contains(&format!("\"response\":{result}")), "{sent}");
}

#[test]
fn law7_the_same_request_is_the_same_bytes() {
    use toolgate_core::upstream::generate_content::{EncodeOptions, encode_request};
    for dialect in DIALECTS {
        let body = history(dialect);
        let cache = Cache::default();
        let sent = |cache: &Cache| {
            let decoded = pipeline::decode(dialect, &body, &Sealer::default()).unwrap();
            encode_request(&decoded.request, &target(), &EncodeOptions::new(cache)).unwrap()
        };
        let first = sent(&cache);
        // From the cache, and with a cache that knows nothing.
        for again in [sent(&cache), sent(&Cache::default())] {
            assert_eq!(again.body, first.body, "{dialect:?}");
            assert_eq!(again.losses, first.losses, "{dialect:?}");
        }
    }
}
