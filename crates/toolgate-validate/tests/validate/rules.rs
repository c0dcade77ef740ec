//! Empty values, names, tools and ranges.

use serde_json::{Value, json};
use toolgate_validate::{AnySignature, Method, check_request};

use super::*;

#[test]
fn empty_values_are_refused() {
    let check = |body: Value, want: &str| refused(&target(NEW), &body, want);
    check(json!({}), "* GenerateContentRequest.contents: contents is not specified\n");
    check(
        json!({"contents": []}),
        "* GenerateContentRequest.contents: contents is not specified\n",
    );
    check(
        json!({"contents": [{"parts": [{"text": "a"}]}, {"role": "user", "parts": []}]}),
        "* GenerateContentRequest.contents[1].parts: contents.parts must not be empty.\n",
    );
    check(
        json!({"contents": [{"parts": [{}]}, {"parts": [{"text": "a"}, {"thought": true}]}]}),
        "* GenerateContentRequest.contents[0].parts[0].data: required oneof field 'data' must have \
         one initialized field\n\
         * GenerateContentRequest.contents[1].parts[1].data: required oneof field 'data' must have \
         one initialized field\n",
    );
    check(
        with(json!({"systemInstruction": {"parts": [{}]}})),
        "* GenerateContentRequest.system_instruction.parts[0].data: required oneof field 'data' \
         must have one initialized field\n",
    );
    check(
        with(json!({"tools": [{}]})),
        "* GenerateContentRequest.tools[0].tool_type: required one_of 'tool_type' must have one \
         initialized field\n",
    );
    check(
        with(json!({"tools": [{"functionDeclarations": []}]})),
        "* GenerateContentRequest.tools[0].tool_type: required one_of 'tool_type' must have one \
         initialized field\n",
    );
    let bare = json!({"contents": [
        {"role": "user", "parts": [{"text": "a"}]},
        {"role": "model", "parts": [{"text": "b"}, {"thoughtSignature": "AAAA"}]},
        {"role": "user", "parts": [{"text": "c"}]},
    ]});
    assert_eq!(accepted(&target(NEW), &bare).counts.bare_signatures, 1);
    accepted(
        &target(NEW),
        &json!({"contents": [
            {"role": "user", "parts": [{"text": ""}]}, {"role": "user", "parts": [{"text": "a"}]},
        ]}),
    );
}

#[test]
fn empty_values_are_refused_on_vertex() {
    let check = |body: Value, want: &str| {
        refused(&vertex(NEW), &body, &format!("Unable to submit request because {want}"));
    };
    check(json!({}), "at least one contents field is required.");
    check(
        json!({"contents": [{"role": "user", "parts": []}]}),
        "it must include at least one parts field, which describes the prompt input.",
    );
    check(
        json!({"contents": [{"role": "user", "parts": [{"text": ""}]}]}),
        "it must have a text parameter.",
    );
}

#[test]
fn invalid_names_are_refused() {
    let declared =
        |name: &str| with(json!({"tools": [{"functionDeclarations": [{"name": name}]}]}));
    let long = "x".repeat(129);
    let fits = "x".repeat(64);
    let words = |most: usize| {
        format!(
            "* GenerateContentRequest.tools[0].function_declarations[0].name: Invalid function \
             name. Must start with a letter or an underscore. Must be alphameric (a-z, A-Z, 0-9), \
             underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of {most}.\n"
        )
    };
    for bad in ["", "2fast", "a b", "a/b", ".a", "-a", "größe", &long] {
        refused(&target(NEW), &declared(bad), &words(128));
        refused(&target("gemini-2.5-flash"), &declared(bad), &words(64));
    }
    refused(&target("gemini-3-flash-preview"), &declared(&"x".repeat(65)), &words(64));
    for good in ["a", "_a", "A9_.:-", &fits] {
        accepted(&target(NEW), &declared(good));
        accepted(&target("gemini-2.5-flash"), &declared(good));
    }
}

#[test]
fn invalid_names_in_history_are_refused() {
    let history = |call: &str, answer: &str| {
        json!({"contents": [
            {"role": "user", "parts": [{"text": "Hi"}]},
            {"role": "model", "parts": [{"functionCall": {"name": call}, "thoughtSignature": "AAAA"}]},
            {"role": "user", "parts": [{"functionResponse": {"name": answer, "response": {}}}]},
        ]})
    };
    refused(
        &target(NEW),
        &history("a", ""),
        "* GenerateContentRequest.contents[2].parts[0].function_response.name: Name cannot be empty.\n",
    );
    refused(
        &target(NEW),
        &history("", "a"),
        "* GenerateContentRequest.contents[1].parts[0].function_call.name: Name cannot be empty.\n",
    );
    accepted(&target(NEW), &history("a", "a"));
}

#[test]
fn inconsistent_tools_are_refused() {
    let check = |more: Value, want: &str| refused(&target(NEW), &with(more), want);
    let one = json!([{"functionDeclarations": [{"name": "a"}]}]);
    check(
        json!({"tools": [{"functionDeclarations": [{"name": "a"}, {"name": "b"}]}, {"functionDeclarations": [{"name": "a"}]}]}),
        "Duplicate function declaration found: a",
    );
    for config in [json!({}), json!({"mode": "AUTO"}), json!({"mode": "NONE"})] {
        check(
            json!({"toolConfig": {"functionCallingConfig": config}, "tools": [{"googleSearch": {}}]}),
            "Function calling config is set without function_declarations.",
        );
    }
    let many: Vec<_> = (0..513).map(|n| json!({"name": format!("f{n}")})).collect();
    check(
        json!({"tools": [{"functionDeclarations": many}]}),
        "The GenerateContentRequest proto is invalid:\n  * tools[0].function_declarations: \
         [FIELD_INVALID] At most 512 function declarations can be specified.",
    );
    for config in [
        json!({"allowedFunctionNames": ["a"]}),
        json!({"mode": "AUTO", "allowedFunctionNames": ["a"]}),
    ] {
        check(
            json!({"tools": one, "toolConfig": {"functionCallingConfig": config}}),
            "Please set allowed_function_names only when function calling mode is ANY.",
        );
    }
    check(
        json!({"tools": one, "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["b"]}}}),
        "Request contains an invalid argument.",
    );
    for mode in ["ANY", "VALIDATED"] {
        accepted(
            &target(NEW),
            &with(json!({
                "tools": one, "toolConfig": {"functionCallingConfig": {"mode": mode, "allowedFunctionNames": ["a"]}},
            })),
        );
    }
    for more in [
        json!({"tools": one}),
        json!({"systemInstruction": {"parts": [{"text": "a"}]}}),
        json!({"toolConfig": {}}),
    ] {
        let mut more = more;
        more["cachedContent"] = json!("cachedContents/x");
        check(
            more,
            "CachedContent can not be used with GenerateContent request setting \
             system_instruction, tools or tool_config.\n\nProposed fix: move those values to \
             CachedContent from GenerateContent request.",
        );
    }
    accepted(&target(NEW), &with(json!({"cachedContent": "cachedContents/x"})));
    let split = with(json!({"tools": [
        {"functionDeclarations": [{"name": "a"}]}, {"functionDeclarations": [{"name": "b"}]},
    ]}));
    assert_eq!(accepted(&target(NEW), &split).counts.split_functions, 1);
}

#[test]
fn values_out_of_range_are_refused() {
    let check = |config: Value, want: &str| {
        refused(&target(NEW), &with(json!({"generationConfig": config})), want);
    };
    check(
        json!({"stopSequences": ["1", "2", "3", "4", "5", "6"]}),
        "the number of stop_sequences must not exceed 5",
    );
    for temperature in [-0.1, 2.1] {
        check(json!({"temperature": temperature}), "temperature must be in the range [0.0, 2.0]");
    }
    for most in [0, -1] {
        check(json!({"maxOutputTokens": most}), "Request contains an invalid argument.");
    }
    for budget in [-2, 65_536] {
        check(
            json!({"thinkingConfig": {"thinkingBudget": budget}}),
            "thinking_budget must be in the range [-1, 65535]",
        );
    }
    check(
        json!({"responseMimeType": "image/png"}),
        "* GenerateContentRequest.generation_config.response_mime_type: allowed mimetypes are \
         `text/plain`, `application/json`, `application/xml`, `application/yaml` and \
         `text/x.enum`.\n",
    );
    accepted(
        &target(NEW),
        &with(json!({"generationConfig": {
            "stopSequences": ["1", "2", "3", "4", "5"], "temperature": 2, "maxOutputTokens": 1, "topP": 0.5,
        }})),
    );
}

#[test]
fn references_in_results_name_media() {
    let body = |response: Value, parts: Value| {
        json!({"contents": [
            {"role": "user", "parts": [{"text": "Hi"}]},
            {"role": "model", "parts": [{"functionCall": {"name": "a"}, "thoughtSignature": "AAAA"}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "a", "response": response, "parts": parts}}]},
        ]})
    };
    refused(
        &target(NEW),
        &body(json!({"output": [{"schema": {"$ref": "#/$defs/X"}}]}), json!([])),
        "The referenced name `#/$defs/X` in function_response.response does not match to a \
         display_name in the function_response.parts.",
    );
    accepted(&target(NEW), &body(json!({"output": "{\"$ref\": \"#/$defs/X\"}"}), json!([])));
    accepted(
        &vertex(NEW),
        &body(
            json!({"output": {"$ref": "photo.png"}}),
            json!([{"inlineData": {"mimeType": "image/png", "data": "AAAA", "displayName": "photo.png"}}]),
        ),
    );
}

#[test]
fn counting_tokens_skips_the_rules_of_turns() {
    let ask = |body: Value| {
        check_request(body.to_string().as_bytes(), &target(NEW), Method::CountTokens, &AnySignature)
    };
    // A response without its call is accepted: gemini-cli counts such requests.
    let lone =
        json!([{"role": "user", "parts": [{"functionResponse": {"name": "a", "response": {}}}]}]);
    assert!(ask(json!({"contents": lone})).is_ok());
    let long = ask(json!({"generateContentRequest": {
        "model": "models/gemini-3.6-flash",
        "contents": lone,
        "systemInstruction": {"parts": [{"text": "Be brief"}]},
        "tools": [{"functionDeclarations": [{"name": "a"}]}],
    }}))
    .unwrap();
    assert_eq!(long.request.functions.len(), 1);
    for (body, want) in [
        (json!({}), "* CountTokensRequest.contents: contents is not specified\n"),
        (
            json!({"contents": [{"parts": [{"text": "a"}]}, {"parts": [{}]}]}),
            "* CountTokensRequest.contents[1].parts[0].data: required oneof field 'data' must have \
             one initialized field\n",
        ),
        (
            json!({"contents": lone, "systemInstruction": {}}),
            "Invalid JSON payload received. Unknown name \"systemInstruction\": Cannot find field.",
        ),
    ] {
        assert_eq!(ask(body).unwrap_err().message, want);
    }
    let body =
        json!({"contents": lone, "systemInstruction": {"parts": [{"text": "a"}]}, "tools": []});
    let on_vertex = check_request(
        body.to_string().as_bytes(),
        &vertex(NEW),
        Method::CountTokens,
        &AnySignature,
    );
    assert!(on_vertex.is_ok());
}
