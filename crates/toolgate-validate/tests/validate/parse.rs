//! The first stage.

use serde_json::{Value, json};
use toolgate_validate::{AnySignature, Method, check_request};

use super::*;

/// Checks the messages of a refused body, without their common prefix.
#[track_caller]
fn check(body: Value, want: &[&str]) {
    let error = ask(&target(NEW), &body).expect_err(&body.to_string());
    let got: Vec<_> = error.message.lines().collect();
    assert_eq!(got, want, "{body}");
    let violations = error.details[0]["fieldViolations"].as_array().unwrap();
    let described: Vec<_> =
        violations.iter().map(|it| it["description"].as_str().unwrap()).collect();
    assert_eq!(described, want);
}

fn unknown(name: &str, at: &str) -> String {
    format!("Invalid JSON payload received. Unknown name \"{name}\" at '{at}': Cannot find field.")
}

#[test]
fn unknown_names_are_all_listed() {
    let keywords = [
        "$schema",
        "additionalProperties",
        "const",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "$ref",
        "$defs",
        "propertyNames",
        "patternProperties",
        "multipleOf",
        "uniqueItems",
        "examples",
        "if",
        "then",
        "not",
        "x-order",
        "allOf",
        "oneOf",
        "encrypted",
    ];
    for keyword in keywords {
        check(
            with_parameters(json!({"type": "object", "properties": {
                "a": {"type": "string"},
                "b": {"type": "string", keyword: true},
            }})),
            &[&unknown(
                keyword,
                "tools[0].function_declarations[0].parameters.properties[1].value",
            )],
        );
    }
    check(
        json!({"contents": [{"parts": [{"text": "Hi", "mood": 1}]}], "input": "x", "tools": [
            {"function_declarations": [{"name": "a", "parameters": {"any_of": [{"const": 1}], "strict": true}}]}
        ]}),
        &[
            "Invalid JSON payload received. Unknown name \"input\": Cannot find field.",
            &unknown("mood", "contents[0].parts[0]"),
            &unknown("strict", "tools[0].function_declarations[0].parameters"),
            &unknown("const", "tools[0].function_declarations[0].parameters.any_of[0]"),
        ],
    );
}

#[test]
fn violations_name_the_message() {
    let body = with_parameters(json!({"type": "object", "strict": true}));
    let error = ask(&target(NEW), &body).unwrap_err();
    assert_eq!(
        error.to_json()["error"]["details"],
        json!([{
            "@type": "type.googleapis.com/google.rpc.BadRequest",
            "fieldViolations": [{
                "field": "tools[0].function_declarations[0].parameters",
                "description": unknown("strict", "tools[0].function_declarations[0].parameters"),
            }],
        }])
    );
}

#[test]
fn values_of_the_wrong_type_are_refused() {
    let parameters = "tools[0].function_declarations[0].parameters";
    let in_parameters = |schema| with_parameters(schema);
    check(
        in_parameters(json!({"type": ["string", "null"]})),
        &[&format!(
            "Invalid JSON payload received. Unknown name \"type\" at '{parameters}': Proto field \
             is not repeating, cannot start list."
        )],
    );
    check(
        in_parameters(json!({"type": "enum"})),
        &[&format!(
            "Invalid value at '{parameters}.type' \
             (type.googleapis.com/google.ai.generativelanguage.v1beta.Type), \"enum\""
        )],
    );
    check(
        in_parameters(json!({"enum": [2], "pattern": 5, "minItems": 1.5, "maxItems": "1e3"})),
        &[
            &format!("Invalid value at '{parameters}.enum[0]' (TYPE_STRING), 2"),
            &format!("Invalid value at '{parameters}.pattern' (TYPE_STRING), 5"),
            &format!("Invalid value at '{parameters}.min_items' (TYPE_INT64), 1.5"),
            &format!("Invalid value at '{parameters}.max_items' (TYPE_INT64), \"1e3\""),
        ],
    );
    check(
        in_parameters(json!({"title": {}, "properties": [], "nullable": 1})),
        &[
            &format!(
                "Invalid value at '{parameters}' (title), Starting an object on a scalar field"
            ),
            &format!(
                "Invalid value at '{parameters}' (Map), Cannot bind a list to map for field \
                 'properties'."
            ),
            &format!("Invalid value at '{parameters}.nullable' (TYPE_BOOL), 1"),
        ],
    );
    check(
        with(json!({"systemInstruction": "Be brief"})),
        &["Invalid value at 'system_instruction' \
           (type.googleapis.com/google.ai.generativelanguage.v1beta.Content), \"Be brief\""],
    );
    check(
        with(json!({"generationConfig": {"seed": 3_000_000_000_u64, "topK": 1.5, "topP": "many"}})),
        &[
            "Invalid value at 'generation_config.seed' (TYPE_INT32), 3000000000",
            "Invalid value at 'generation_config.top_k' (TYPE_INT32), 1.5",
            "Invalid value at 'generation_config.top_p' (TYPE_FLOAT), \"many\"",
        ],
    );
}

#[test]
fn results_are_objects() {
    let body = |response: Value| {
        json!({"contents": [
            {"role": "user", "parts": [{"text": "Hi"}]},
            {"role": "model", "parts": [{"functionCall": {"name": "a", "args": {}}, "thoughtSignature": "AAAA"}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "a", "response": response}}]},
        ]})
    };
    check(
        body(json!([1, 2])),
        &["Invalid JSON payload received. Unknown name \"response\" at \
           'contents[2].parts[0].function_response': Proto field is not repeating, cannot start list."],
    );
    check(
        body(json!("done")),
        &["Invalid value at 'contents[2].parts[0].function_response.response' \
           (type.googleapis.com/google.protobuf.Struct), \"done\""],
    );
    accepted(&target(NEW), &body(json!({"deep": {"$schema": [1, {"any": null}]}})));
}

#[test]
fn signatures_are_base64() {
    let signed = |signature: &str| {
        with(json!({"contents": [
            {"role": "model", "parts": [{"text": "", "thoughtSignature": signature}]},
            {"role": "user", "parts": [{"text": "Hi"}]},
        ]}))
    };
    for signature in ["AY89a1/_57b05e78dc", "not base64!", "AAAAA", "AAA===="] {
        check(
            signed(signature),
            &[&format!(
                "Invalid value at 'contents[0].parts[0].thought_signature' (TYPE_BYTES), Base64 \
                 decoding failed for \"{signature}\""
            )],
        );
    }
    for signature in ["AAAA", "AAA=", "AAA", "-_-_", "+/+/", "skip_thought_signature_validator"] {
        accepted(&target(NEW), &signed(signature));
    }
}

#[test]
fn only_one_field_of_a_oneof_is_accepted() {
    check(
        json!({"systemInstruction": {"parts": [{"text": "a"}]}, "system_instruction": {"parts": [{"text": "b"}]}}),
        &["Invalid value (oneof), oneof field '_system_instruction' is already set. Cannot set \
           'system_instruction'"],
    );
    check(
        json!({"contents": [{"parts": [{"text": "a", "inlineData": {"mimeType": "image/png", "data": "AAAA"}}]}]}),
        &["Invalid value at 'contents[0].parts[0]' (oneof), oneof field 'data' is already set. \
           Cannot set 'inlineData'"],
    );
    // Null is the same as absent, and a message in two spellings is merged.
    let both = accepted(
        &target(NEW),
        &with(json!({
            "systemInstruction": null,
            "system_instruction": {"parts": [{"text": "b"}]},
            "tools": [{"functionDeclarations": [{"name": "a"}], "codeExecution": null}],
            "toolConfig": {"functionCallingConfig": {"mode": "any"}},
            "tool_config": {"function_calling_config": {"allowed_function_names": "a"}},
        })),
    );
    assert_eq!(both.request.calling.allowed, ["a"]);
    assert!(both.request.system.is_some());
}

#[test]
fn both_spellings_of_a_name_are_accepted() {
    let got = accepted(
        &target(NEW),
        &json!({
            "contents": {"parts": {"text": "Hi"}},
            "tools": {"function_declarations": {"name": "a", "parameters": {
                "type": 6,
                "properties": {"b": {"type": "array", "items": {"type": "String"}, "min_items": "1", "maxItems": 2.0}},
                "required": "b",
            }}},
            "generation_config": {"thinking_config": {"include_thoughts": true, "thinkingLevel": "low"}, "topK": 40.0, "temperature": "0.5"},
            "safetySettings": null,
            "serviceTier": "standard",
        }),
    );
    assert_eq!(got.request.contents[0].role, "user");
    assert_eq!(got.request.settings.thinking_level.as_deref(), Some("LOW"));
    assert!(got.request.settings.include_thoughts);
    assert_eq!(got.request.functions[0].name, "a");
}

#[test]
fn back_ends_know_different_fields() {
    let streamed = with(json!({
        "tools": [{"functionDeclarations": [{"name": "a"}]}],
        "toolConfig": {"functionCallingConfig": {"streamFunctionCallArguments": true}},
    }));
    check(
        streamed.clone(),
        &[&unknown("streamFunctionCallArguments", "tool_config.function_calling_config")],
    );
    accepted(&vertex(NEW), &streamed);
    let mixed = with(json!({
        "tools": [{"googleSearch": {}}, {"functionDeclarations": [{"name": "a"}]}],
        "toolConfig": {"includeServerSideToolInvocations": true},
    }));
    accepted(&target(NEW), &mixed);
    let error = ask(&vertex(NEW), &mixed).unwrap_err();
    assert_eq!(error.message, unknown("includeServerSideToolInvocations", "tool_config"));
    for (field, value) in [("labels", json!({"a": "b"})), ("modelArmorConfig", json!({}))] {
        accepted(&vertex(NEW), &with(json!({field: value})));
        let error = ask(&target(NEW), &with(json!({field: value}))).unwrap_err();
        assert!(error.message.contains("Cannot find field."), "{}", error.message);
    }
}

#[test]
fn bodies_that_are_not_a_message_are_refused() {
    let ask = |body: &str| {
        check_request(body.as_bytes(), &target(NEW), Method::Generate, &AnySignature)
            .unwrap_err()
            .message
    };
    assert_eq!(
        ask("[]"),
        "Invalid JSON payload received. Unknown name \"\": Root element must be a message."
    );
    assert_eq!(ask(""), "* GenerateContentRequest.contents: contents is not specified\n");
    assert!(ask("{\"contents\": [").starts_with("Invalid JSON payload received. Unexpected end"));
    assert!(
        check_request(b"{\"contents\": \"\xff\"}", &target(NEW), Method::Generate, &AnySignature)
            .unwrap_err()
            .message
            .ends_with("Encountered non UTF-8 code points.")
    );
}

#[test]
fn deep_and_long_bodies_are_refused() {
    let wide: Vec<_> = (0..200_000).map(|n| format!("\"x{n}\":{n}")).collect();
    let deep = format!("{}1{}", "{\"a\":".repeat(5000), "}".repeat(5000));
    for body in [format!("{{{}}}", wide.join(",")), deep, "[".repeat(1_000_000)] {
        assert!(
            check_request(body.as_bytes(), &target(NEW), Method::Generate, &AnySignature).is_err()
        );
    }
}
