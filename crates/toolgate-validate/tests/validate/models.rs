//! Capabilities of each generation of models.

use serde_json::{Value, json};

use super::*;

const OLD: &str = "gemini-2.5-flash";

fn thinking(config: Value) -> Value {
    with(json!({"generationConfig": {"thinkingConfig": config}}))
}

#[test]
fn unknown_models_are_not_found() {
    let error = ask(&target("gemini-nonexistent"), &with(json!({}))).unwrap_err();
    assert_eq!((error.code, error.status), (404, "NOT_FOUND"));
    assert_eq!(
        error.message,
        "models/gemini-nonexistent is not found for API version v1beta, or is not supported for \
         generateContent. Call ModelService.ListModels to see the list of available models and \
         their supported methods."
    );
}

#[test]
fn thinking_levels_and_budgets() {
    let check = |model: &str, config: Value, want: Option<&str>| match want {
        Some(want) => refused(&target(model), &thinking(config), want),
        None => drop(accepted(&target(model), &thinking(config))),
    };
    let no_minimal = Some(
        "Thinking level MINIMAL is not supported for this model. Please retry with other thinking \
         level.",
    );
    for model in
        ["gemini-3-pro-preview", "gemini-3.1-pro-preview", "gemini-3.7-flash", "gemini-3.8-flash"]
    {
        check(model, json!({"thinkingLevel": "MINIMAL"}), no_minimal);
    }
    for model in [
        "gemini-3-flash-preview",
        "gemini-3.1-flash-lite",
        "gemini-3.5-flash",
        "gemini-3.5-flash-lite",
        NEW,
    ] {
        check(model, json!({"thinkingLevel": "minimal"}), None);
    }
    for model in [OLD, "gemini-2.5-pro"] {
        let want = Some("Thinking level is not supported for this model.");
        check(model, json!({"thinkingLevel": "LOW"}), want);
    }
    check(
        NEW,
        json!({"thinkingLevel": "LOW", "thinkingBudget": 1024}),
        Some("You can only set only one of thinking budget and thinking level."),
    );
    let always = Some("Budget 0 is invalid. This model only works in thinking mode.");
    check("gemini-2.5-pro", json!({"thinkingBudget": 0}), always);
    check(NEW, json!({"thinkingBudget": 0}), always);
    refused(
        &vertex("gemini-2.5-pro"),
        &thinking(json!({"thinkingBudget": 0})),
        "The model does not support setting thinking_budget to 0.",
    );
    check(
        "gemini-2.5-flash-lite",
        json!({"thinkingBudget": 256}),
        Some("The thinking budget 256 is invalid. Please choose a value between 512 and 24576."),
    );
    check(
        "gemini-2.5-pro",
        json!({"thinkingBudget": 64000}),
        Some("The thinking budget 64000 is invalid. Please choose a value between 128 and 32768."),
    );
    for (model, budget) in [
        (OLD, 0),
        (OLD, 24576),
        (OLD, -1),
        ("gemini-2.5-flash-lite", 0),
        ("gemini-2.5-pro", 128),
        (NEW, 512),
    ] {
        check(model, json!({"thinkingBudget": budget}), None);
    }
}

#[test]
fn unsupported_settings_are_refused() {
    let config = |config: Value| with(json!({"generationConfig": config}));
    let three = "gemini-3-flash-preview";
    refused(
        &target(three),
        &config(json!({"candidateCount": 2})),
        "Multiple candidates is not enabled for this model",
    );
    accepted(&target(OLD), &config(json!({"candidateCount": 2})));
    accepted(&target(three), &config(json!({"candidateCount": 1})));
    for penalty in ["presencePenalty", "frequencyPenalty"] {
        for model in [OLD, NEW] {
            refused(
                &target(model),
                &config(json!({penalty: 0.5})),
                "Penalty is not enabled for this model",
            );
            accepted(&vertex(model), &config(json!({penalty: 0.5})));
        }
    }
    for logprobs in [json!({"logprobs": 3}), json!({"responseLogprobs": true})] {
        refused(&target(NEW), &config(logprobs.clone()), "Logprobs is not enabled for this model");
        accepted(&vertex(NEW), &config(logprobs));
    }
    accepted(
        &target("gemini-3.8-flash"),
        &config(json!({"temperature": 1, "topP": 0.9, "topK": 40})),
    );
}

#[test]
fn json_output_with_functions() {
    let body = |mode: &str, format: Value| {
        with(json!({
            "tools": [{"functionDeclarations": [{"name": "a"}]}],
            "toolConfig": {"functionCallingConfig": {"mode": mode}},
            "generationConfig": format,
        }))
    };
    let mime = json!({"responseMimeType": "application/json"});
    let newest = json!({"responseFormat": {"text": {"mimeType": "APPLICATION_JSON", "schema": {"type": "object"}}}});
    for format in [mime, newest] {
        refused(
            &target(OLD),
            &body("AUTO", format.clone()),
            "Function calling with a response mime type: 'application/json' is unsupported",
        );
        for model in ["gemini-3-flash-preview", "gemini-3.5-flash", NEW, "gemini-3.8-flash"] {
            accepted(&target(model), &body("AUTO", format.clone()));
            accepted(&target(model), &body("VALIDATED", format.clone()));
            refused(
                &target(model),
                &body("ANY", format.clone()),
                "Forced function calling (ANY mode) with a response mime type: 'application/json' \
                 is unsupported",
            );
        }
    }
    refused(
        &target(OLD),
        &with(
            json!({"tools": [{"googleSearch": {}}], "generationConfig": {"responseMimeType": "application/json"}}),
        ),
        "Tool use with a response mime type: 'application/json' is unsupported",
    );
}

#[test]
fn g2_built_in_tools_beside_functions() {
    let body = |flag: bool| {
        let mut body = with(
            json!({"tools": [{"googleSearch": {}}, {"functionDeclarations": [{"name": "a"}]}]}),
        );
        if flag {
            body["toolConfig"] = json!({"includeServerSideToolInvocations": true});
        }
        body
    };
    refused(&target(OLD), &body(false), "Tool use with function calling is unsupported");
    refused(
        &target(OLD),
        &body(true),
        "Tool call context circulation is not enabled for models/gemini-2.5-flash",
    );
    refused(
        &vertex(OLD),
        &body(false),
        "Multiple tools are supported only when they are all search tools.",
    );
    for model in ["gemini-3-flash-preview", NEW, "gemini-3.8-flash"] {
        refused(
            &target(model),
            &body(false),
            "Please enable tool_config.include_server_side_tool_invocations to use Built-in tools \
             with Function calling.",
        );
        accepted(&target(model), &body(true));
        accepted(&vertex(model), &body(false));
    }
}

#[test]
fn f1_media_in_results() {
    let body = json!({"contents": [
        {"role": "user", "parts": [{"text": "Hi"}]},
        {"role": "model", "parts": [{"functionCall": {"name": "a"}, "thoughtSignature": "AAAA"}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "a", "response": {}, "parts": [
            {"inlineData": {"mimeType": "image/png", "data": "AAAA"}},
        ]}}]},
    ]});
    refused(
        &target(OLD),
        &body,
        "Unable to submit request because `function_response.parts` is not supported for this model",
    );
    accepted(&target("gemini-3-flash-preview"), &body);
}

#[test]
fn a_fault_hides_the_later_stages() {
    // All three stages are at fault; each error appears once the stage before it is fixed.
    let mut body = with(json!({
        "colour": 1,
        "tools": [{"functionDeclarations": [{"name": "a"}, {"name": "a"}]}],
        "generationConfig": {"thinkingConfig": {"thinkingLevel": "LOW"}},
    }));
    let said = |body: &Value| ask(&target(OLD), body).unwrap_err().message;
    assert!(said(&body).contains("colour"));
    body.as_object_mut().unwrap().remove("colour");
    assert_eq!(said(&body), "Duplicate function declaration found: a");
    body["tools"] = json!([]);
    assert_eq!(said(&body), "Thinking level is not supported for this model.");
}
