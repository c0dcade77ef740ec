//! Every golden answer in every dialect, as files to be read.

use serde_json::Value;
use toolgate_core::translate::{Dialect, encode_error};

use toolgate_testing::golden::{bodies, folder, streams};
use toolgate_testing::grammar;
use toolgate_testing::pipeline::{DIALECTS, answer, asked, stamp, stream};

/// Compares with `golden/<kind>/<name>.snap`.
#[track_caller]
pub(crate) fn check(kind: &str, name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(folder().join(kind));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}

pub(crate) fn pretty(json: &[u8]) -> String {
    let value: Value = serde_json::from_slice(json).unwrap();
    serde_json::to_string_pretty(&value).unwrap()
}

fn check_streams(dialect: Dialect) {
    let asked = asked(dialect);
    for (scenario, bytes) in streams() {
        let out = stream(&asked, [&bytes[..]]);
        let text = String::from_utf8(out.clone()).unwrap();
        check("stream", &format!("{scenario}.{}", dialect.name()), &text);
        grammar::check_stream(dialect, &out);
    }
}

#[test]
fn streams_in_anthropic() {
    check_streams(Dialect::Anthropic);
}

#[test]
fn streams_in_responses() {
    check_streams(Dialect::Responses);
}

#[test]
fn streams_in_chat() {
    check_streams(Dialect::Chat);
}

#[test]
fn streams_in_gemini() {
    check_streams(Dialect::Gemini);
}

#[test]
fn bodies_in_all_dialects() {
    for dialect in DIALECTS {
        let asked = asked(dialect);
        for (scenario, bytes) in bodies() {
            let name = format!("{scenario}.{}", dialect.name());
            match answer(&asked, &bytes) {
                Ok(answer) => {
                    let out = asked.echo.encode_response(&answer, &stamp(), &asked.sealer);
                    check("unary", &name, &pretty(&out));
                    grammar::check_body(dialect, &out);
                }
                Err(failure) => {
                    let reply = encode_error(dialect, &failure, "req_1");
                    let text = format!("HTTP {}\n{}", reply.status, pretty(&reply.body));
                    check("unary", &name, &text);
                    grammar::check_error(dialect, &serde_json::from_slice(&reply.body).unwrap());
                }
            }
        }
    }
}
