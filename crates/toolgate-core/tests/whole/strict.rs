//! Bodies that fuzzing found: they are encoded so that Google accepts them, or refused with a reason.

use serde_json::{Value, json};
use toolgate_core::canon::{Backend, Target};
use toolgate_core::schema::Cache;
use toolgate_core::seal::Sealer;
use toolgate_core::translate::Dialect;
use toolgate_core::upstream::generate_content::{EncodeOptions, encode_request};

use crate::requests::check;
use toolgate_testing::pipeline;

/// Google takes it, whatever the model.
#[track_caller]
fn taken(dialect: Dialect, body: &Value) {
    let body = body.to_string();
    pipeline::decode(dialect, &body, &Sealer::default()).unwrap();
    check(dialect, &body).unwrap();
}

/// The client is told where the fault is.
#[track_caller]
fn refused(dialect: Dialect, body: &Value, at: &str) {
    let body = body.to_string();
    let error = pipeline::decode(dialect, &body, &Sealer::default()).map(|_| ()).unwrap_err();
    assert_eq!(error.at, at, "{}", error.reason);
}

/// A body with a picture, and the place of its bytes.
fn picture(dialect: Dialect, bytes: &str) -> (Value, &'static str) {
    let url = format!("data:image/png;base64,{bytes}");
    match dialect {
        Dialect::Anthropic => {
            let source = json!({"type": "base64", "media_type": "image/png", "data": bytes});
            let content = json!([{"type": "image", "source": source}]);
            let messages = json!([{"role": "user", "content": content}]);
            let body = json!({"model": "m", "max_tokens": 9, "messages": messages});
            (body, "messages[0].content[0].source.data")
        }
        Dialect::Responses => {
            let content = json!([{"type": "input_image", "image_url": url}]);
            let body = json!({"model": "m", "input": [{"role": "user", "content": content}]});
            (body, "input[0].content[0].image_url")
        }
        Dialect::Chat => {
            let content = json!([{"type": "image_url", "image_url": {"url": url}}]);
            let body = json!({"model": "m", "messages": [{"role": "user", "content": content}]});
            (body, "messages[0].content[0].image_url.url")
        }
        Dialect::Gemini => {
            let parts = json!([{"inlineData": {"mimeType": "image/png", "data": bytes}}]);
            let body = json!({"contents": [{"role": "user", "parts": parts}]});
            (body, "contents[0].parts[0].inlineData.data")
        }
    }
}

#[test]
fn bytes_that_are_no_base64_are_named() {
    for dialect in pipeline::DIALECTS {
        for bytes in ["iVBO!w==", "iV=BO", "iVBOR", "ä"] {
            let (body, at) = picture(dialect, bytes);
            refused(dialect, &body, at);
        }
    }
}

#[test]
fn base64_that_others_forgive_is_put_right() {
    let same = ["iVBORw0KGgo=", "iVBORw0KGgo", "iVBO\nRw0K\r\nGgo=\n", "iVBORw0KGgo==="];
    for dialect in pipeline::DIALECTS {
        for bytes in same.into_iter().chain(["+_-/", "-_-_"]) {
            taken(dialect, &picture(dialect, bytes).0);
        }
    }
}

#[test]
fn an_answer_that_is_no_object_has_a_schema_that_google_reads() {
    let schemas = [
        json!({"type": "array", "items": {"$ref": "#/definitions/a"}, "definitions": {"a": {"type": "string"}}}),
        json!({"type": "string", "properties": 5}),
        json!({"enum": ["a", "", 3]}),
        json!({"type": "array", "maxItems": 100_000, "items": {"type": ["string", "null"]}}),
        json!({"type": "object", "properties": {}, "additionalProperties": false}),
        json!({"type": "object", "properties": []}),
        json!(true),
        json!({}),
    ];
    for schema in schemas {
        let format = json!({"name": "x", "schema": schema});
        let mut body = json!({
            "model": "m",
            "messages": [{"role": "user", "content": "Hi."}],
            "response_format": {"type": "json_schema", "json_schema": format},
        });
        taken(Dialect::Chat, &body);
        let function = json!({"name": "f", "parameters": {"type": "object"}});
        body["tools"] = json!([{"type": "function", "function": function}]);
        taken(Dialect::Chat, &body);
    }
}

#[test]
fn an_answer_of_no_length_is_refused_in_the_clients_words() {
    let chat = |name: &str| json!({"model": "m", "messages": [{"role": "user", "content": "Hi."}], name: 0});
    refused(Dialect::Chat, &chat("max_tokens"), "max_tokens");
    refused(Dialect::Chat, &chat("max_completion_tokens"), "max_completion_tokens");
    let body = json!({
        "contents": [{"parts": [{"text": "Hi."}]}],
        "generationConfig": {"maxOutputTokens": 0},
    });
    refused(Dialect::Gemini, &body, "generationConfig.maxOutputTokens");
}

#[test]
fn definitions_that_refer_to_each_other_are_all_kept_within_the_limits() {
    let long = json!({"type": "array", "maxItems": 100_000, "items": {"type": "string"}});
    let mut deep = json!({"type": "string"});
    for _ in 0..40 {
        deep = json!({"type": "object", "properties": {"a": deep}});
    }
    let node = json!({"type": "object", "properties": {"name": {"$ref": "#"}}});
    let other = json!({"type": "object", "properties": {"back": {"$ref": "#/$defs/one"}, "long": long, "deep": deep}});
    let one = json!({"type": "object", "properties": {"other": {"$ref": "#/$defs/other"}}});
    let schemas = [
        json!({"type": "object", "properties": {"tree": {"$ref": "#/$defs/node"}, "long": long}, "$defs": {"node": node}}),
        json!({"type": "object", "properties": {"one": {"$ref": "#/$defs/one"}}, "$defs": {"one": one, "other": other}}),
        json!({"type": "object", "properties": {"one": {"$ref": "#/$defs/other"}}, "$defs": {"one": one, "other": other}}),
    ];
    for schema in schemas {
        let body = json!({
            "model": "m",
            "max_tokens": 9,
            "messages": [{"role": "user", "content": "Hi."}],
            "tools": [{"name": "f", "input_schema": schema}],
        });
        taken(Dialect::Anthropic, &body);
    }
}

/// There are numbers that no other reader has.
#[test]
fn numbers_beyond_all_numbers_are_left_out() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "number", "default": "HUGE", "description": "d"}}});
    let body = json!({
        "model": "m",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": "Hi."}],
        "tools": [{"name": "f", "input_schema": schema}],
    });
    let body = body.to_string().replace("\"HUGE\"", "1e4300");
    pipeline::decode(Dialect::Anthropic, &body, &Sealer::default()).unwrap();
    check(Dialect::Anthropic, &body).unwrap();
}

/// Forcing one of Gemini's own tools leaves no function to call; forbidding functions leaves those.
#[test]
fn g1_choices_among_functions_and_geminis_own_tools() {
    let encoded = |dialect: Dialect, body: &Value| -> Value {
        let body = body.to_string();
        let decoded = pipeline::decode(dialect, &body, &Sealer::default()).unwrap();
        let target = Target { model: "gemini-3.6-flash".to_owned(), backend: Backend::Developer };
        let cache = Cache::default();
        let encoded =
            encode_request(&decoded.request, &target, &EncodeOptions::new(&cache)).unwrap();
        serde_json::from_slice(&encoded.body).unwrap()
    };
    let forced = json!({
        "model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "q"}],
        "tools": [
            {"type": "web_search_20250305", "name": "web_search"},
            {"name": "f", "description": "d", "input_schema": {"type": "object"}},
        ],
        "tool_choice": {"type": "tool", "name": "web_search"},
    });
    let forbidden = json!({
        "contents": [{"role": "user", "parts": [{"text": "q"}]}],
        "tools": [{"googleSearch": {}}, {"functionDeclarations": [{"name": "f", "description": "d"}]}],
        "toolConfig": {"functionCallingConfig": {"mode": "NONE"}, "includeServerSideToolInvocations": true},
    });
    for (dialect, body) in [(Dialect::Anthropic, forced), (Dialect::Gemini, forbidden)] {
        let sent = encoded(dialect, &body);
        assert_eq!(sent["toolConfig"]["functionCallingConfig"]["mode"], "NONE", "{sent}");
        assert!(sent["tools"].to_string().contains("googleSearch"), "{sent}");
    }
}
