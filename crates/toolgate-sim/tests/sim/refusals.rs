//! Google's refusals, each with a request that causes it.

use serde_json::{Value, json};
use toolgate_sim::Quirk;

use super::*;

const DECLARED: &str = "tools[0].function_declarations[0]";

/// Message of a refusal by a model of the Developer API; empty if the body is accepted.
fn refusal(sim: &Sim, model: &str, body: &Value) -> Option<String> {
    at(sim, &format!("/v1beta/models/{model}"), body)
}

fn vertex(model: &str, body: &Value) -> Option<String> {
    let place = "/v1beta1/projects/p/locations/global/publishers/google/models";
    at(&Sim::new(SimConfig::default()), &format!("{place}/{model}"), body)
}

/// Checks that all three methods give the same refusal in their own forms; countTokens has fewer rules.
fn at(sim: &Sim, path: &str, body: &Value) -> Option<String> {
    let ask = |suffix: &str| {
        let plan = sim.plan(&post(&format!("{path}:{suffix}"), body));
        (plan.status, plan.bytes())
    };
    let (status, whole) = ask("generateContent");
    let (streamed, events) = ask("streamGenerateContent?alt=sse");
    let (listed, array) = ask("streamGenerateContent");
    assert_eq!((status, status), (streamed, listed), "{body}");
    if status == 200 {
        return None;
    }
    let read = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).unwrap();
    let error = read(&whole)["error"].clone();
    assert_eq!((&error["code"], &error["status"]), (&json!(400), &json!("INVALID_ARGUMENT")));
    assert_eq!((&read(&events)["error"], &read(&array)[0]["error"]), (&error, &error));
    Some(error["message"].as_str().unwrap().to_owned())
}

#[track_caller]
fn refused(model: &str, body: Value, want: &str) {
    let sim = Sim::new(SimConfig::default());
    assert_eq!(refusal(&sim, model, &body).as_deref(), Some(want), "{body}");
}

#[track_caller]
fn refused_by_vertex(model: &str, body: Value, want: &str) {
    assert_eq!(vertex(model, &body).as_deref(), Some(want), "{body}");
}

fn function(field: &str, schema: Value) -> Value {
    prompt(
        "Hi",
        json!({"tools": [{"functionDeclarations": [{"name": "look", "description": "Looks", field: schema}]}]}),
    )
}

fn parameters(schema: Value) -> Value {
    function("parameters", schema)
}

fn property(schema: Value) -> Value {
    parameters(json!({"type": "OBJECT", "properties": {"x": schema}}))
}

fn json_schema(schema: Value) -> Value {
    function("parametersJsonSchema", schema)
}

fn talk(turns: Value) -> Value {
    json!({ "contents": turns })
}

fn model(parts: Value) -> Value {
    json!({"role": "model", "parts": parts})
}

fn call(name: &str) -> Value {
    let call = json!({"name": name, "args": {}});
    json!({"functionCall": call, "thoughtSignature": "skip_thought_signature_validator"})
}

fn result(name: &str, response: Value) -> Value {
    json!({"role": "user", "parts": [{"functionResponse": {"name": name, "response": response}}]})
}

fn nested(depth: usize) -> Value {
    (0..depth).fold(json!({"type": "STRING"}), |inner, _| json!({"type": "ARRAY", "items": inner}))
}

#[test]
fn a1_unknown_fields() {
    let names = "$schema additionalProperties const exclusiveMinimum exclusiveMaximum $ref $defs \
        propertyNames patternProperties multipleOf uniqueItems examples if then not x-order allOf";
    for name in names.split_whitespace() {
        refused(
            NEW,
            property(json!({"type": "STRING", name: "a"})),
            &format!(
                "Invalid JSON payload received. Unknown name \"{name}\" at \
                 '{DECLARED}.parameters.properties[0].value': Cannot find field."
            ),
        );
    }
    let union = parameters(json!({"type": "OBJECT", "properties": {
        "a": {"type": "STRING"},
        "b": {"anyOf": [{"type": "STRING"}, {"type": "STRING", "const": "x"}]},
    }, "additionalProperties": false}));
    refused(
        NEW,
        union,
        &format!(
            "Invalid JSON payload received. Unknown name \"additionalProperties\" at \
             '{DECLARED}.parameters': Cannot find field.\n\
             Invalid JSON payload received. Unknown name \"const\" at \
             '{DECLARED}.parameters.properties[1].value.any_of[1]': Cannot find field."
        ),
    );
}

#[test]
fn a2_wrong_types() {
    let at = format!("{DECLARED}.parameters.properties[0].value");
    for (schema, want) in [
        (
            json!({"type": ["string", "null"]}),
            format!(
                "Invalid JSON payload received. Unknown name \"type\" at '{at}': Proto field is \
                 not repeating, cannot start list."
            ),
        ),
        (
            json!({"type": "enum"}),
            format!(
                "Invalid value at '{at}.type' \
                 (type.googleapis.com/google.ai.generativelanguage.v1beta.Type), \"enum\""
            ),
        ),
        (
            json!({"type": "STRING", "enum": [2]}),
            format!("Invalid value at '{at}.enum[0]' (TYPE_STRING), 2"),
        ),
    ] {
        refused(NEW, property(schema), &want);
    }
}

#[test]
fn inconsistent_schemas() {
    let root = format!("* GenerateContentRequest.{DECLARED}.parameters");
    let inside = format!("{root}.properties[x]");
    for (schema, want) in [
        (json!({"type": "NUMBER", "enum": ["1"]}), "enum: only allowed for STRING type"),
        (json!({"enum": ["1"]}), "enum: only allowed for STRING type"),
        (json!({"type": "STRING", "enum": ["", "a"]}), "enum[0]: cannot be empty"),
        (json!({"type": "ARRAY"}), "items: missing field."),
        (
            json!({"type": "STRING", "items": {"type": "STRING"}}),
            "items: field predicate failed: $type == Type.ARRAY",
        ),
        (
            json!({"properties": {"y": {"type": "STRING"}}}),
            "properties: only allowed for OBJECT type",
        ),
        (json!({"type": "STRING", "required": ["y"]}), "required: only allowed for OBJECT type"),
        (
            json!({"type": "OBJECT", "properties": {"": {"type": "STRING"}}}),
            "properties[]: key cannot be empty",
        ),
        (
            json!({"type": "OBJECT", "properties": {}}),
            "properties: should be non-empty for OBJECT type",
        ),
        (json!({"description": "Anything"}), "type: must be specified"),
    ] {
        refused(NEW, property(schema), &format!("{inside}.{want}\n"));
    }
    // A branch must not require a property that only its parent has.
    refused(
        NEW,
        property(json!({"anyOf": [
            {"type": "STRING"}, {"type": "NUMBER"},
            {"type": "OBJECT", "properties": {"a": {"type": "STRING"}}, "required": ["a", "b"]},
        ]})),
        &format!("{inside}.any_of[2].required[1]: property is not defined\n"),
    );
    // Refused by legacy models only.
    let once = Sim::new(SimConfig { quirks: vec![Quirk::RetiredModels], ..SimConfig::default() });
    for (body, want) in [
        (
            parameters(json!({"type": "OBJECT", "properties": {}})),
            format!("{root}.properties: should be non-empty for OBJECT type\n"),
        ),
        (
            property(json!({"type": "STRING", "format": "uri"})),
            format!("{inside}.format: only 'enum' and 'date-time' are supported for STRING type\n"),
        ),
    ] {
        assert_eq!(refusal(&once, "gemini-2.0-flash", &body), Some(want));
        assert_eq!(refusal(&once, NEW, &body), None);
    }
}

#[test]
fn a8_schemas_that_are_too_deep_or_too_large() {
    let object = |depth| json!({"type": "OBJECT", "properties": {"x": nested(depth)}});
    let named =
        "FunctionDeclaration 'look' in the request exceeds the maximum allowed nesting depth.";
    refused(NEW, parameters(object(31)), named);
    refused(NEW, json_schema(object(31)), named);
    let mut unnamed = parameters(object(31));
    drop(unnamed["tools"][0]["functionDeclarations"][0].as_object_mut().unwrap().remove("name"));
    refused(
        NEW,
        unnamed,
        "A FunctionDeclaration in the request exceeds the maximum allowed nesting depth.",
    );
    for field in ["responseSchema", "responseJsonSchema"] {
        let config = json!({"responseMimeType": "application/json", field: object(31)});
        refused(
            NEW,
            prompt("Hi", json!({ "generationConfig": config })),
            "A schema in GenerationConfig in the request exceeds the maximum allowed nesting depth.",
        );
    }
    let circle = json!({"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}, "required": ["next"]});
    refused(
        NEW,
        json_schema(json!({
            "type": "object", "properties": {"x": {"$ref": "#/$defs/node"}}, "required": ["x"],
            "$defs": {"node": circle},
        })),
        "maximum schema depth exceeded",
    );
    let sim = Sim::new(SimConfig::default());
    let many = vec!["a long name for one thing"; 40];
    let list = json!({"type": "array", "maxItems": 900, "items": {"type": "string", "enum": many}});
    let mut body = json_schema(json!({"type": "object", "properties": {"x": list}}));
    body["toolConfig"] = json!({"functionCallingConfig": {"mode": "ANY"}});
    let got = refusal(&sim, NEW, &body).unwrap();
    assert!(
        got.starts_with(
            "The specified schema produces a constraint that has too many states for serving.  \
             Typical causes of this error are schemas with lots of text"
        ),
        "{got}"
    );
    refused(
        NEW,
        json_schema(json!({"type": "object", "properties": {
            "x": {"type": "array", "maxItems": 1000, "items": {"type": "string"}},
        }})),
        "Request contains an invalid argument.",
    );
}

#[test]
fn a4_vertex_words_its_refusals_differently() {
    let more = "Learn more: https://cloud.google.com/vertex-ai/generative-ai/docs/multimodal/function-calling";
    let union =
        json!({"description": "One of two", "anyOf": [{"type": "STRING"}, {"type": "NUMBER"}]});
    refused_by_vertex(
        NEW,
        property(union),
        &format!(
            "Unable to submit request because `look` functionDeclaration `parameters.x` schema \
             specified other fields alongside any_of. When using any_of, it must be the only field \
             set. {more}"
        ),
    );
    refused_by_vertex(
        NEW,
        parameters(json!({"type": "STRING"})),
        &format!(
            "Unable to submit request because `look` functionDeclaration parameters schema should \
             be of type OBJECT. {more}"
        ),
    );
    let width = json!({"type": "OBJECT", "properties": {"width": {"description": "Any"}}});
    refused_by_vertex(
        NEW,
        property(json!({"type": "OBJECT", "properties": {"meta": width}})),
        &format!(
            "Unable to submit request because `look` functionDeclaration \
             `parameters.x.meta.width` schema didn't specify the schema type field. {more}"
        ),
    );
}

#[test]
fn a7_refused_json_schemas() {
    refused(
        NEW,
        json_schema(json!({"type": "object", "properties": {
            "x": {"$ref": "#/$defs/X", "type": "string"},
        }, "$defs": {"X": {"type": "string"}}})),
        "$ref 'X' was set alongside unsupported fields. If a schema node has $ref set, then \
         only description and default can be set alongside it",
    );
    refused(
        NEW,
        json_schema(json!({"type": "object", "properties": {
            "target_object": {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/Missing"}]},
        }})),
        "reference to undefined schema at properties.target_object.anyOf.1",
    );
    refused(
        NEW,
        json_schema(json!({"type": "object", "properties": []})),
        "value for properties at top-level must be an object",
    );
}

#[test]
fn b1_invalid_names() {
    let named =
        |name: &str| prompt("Hi", json!({"tools": [{"functionDeclarations": [{"name": name}]}]}));
    let words = |most: usize| {
        format!(
            "* GenerateContentRequest.{DECLARED}.name: Invalid function name. Must start with a \
             letter or an underscore. Must be alphameric (a-z, A-Z, 0-9), underscores (_), dots \
             (.), colons (:), or dashes (-), with a maximum length of {most}.\n"
        )
    };
    for bad in ["1a", "a b", "a/b", "größe"] {
        refused(OLD, named(bad), &words(64));
    }
    refused(OLD, named(&"x".repeat(65)), &words(64));
    refused(
        OLD,
        talk(json!([user("Hi"), model(json!([call("a")])), result("", json!({}))])),
        "* GenerateContentRequest.contents[2].parts[0].function_response.name: Name cannot be empty.\n",
    );
}

#[test]
fn e1_order_of_turns() {
    let call_first = "Please ensure that function call turn comes immediately after a user turn or \
        after a function response turn.";
    let response_first = "Please ensure that function response turn comes immediately after a \
        function call turn.";
    let count = "Please ensure that the number of function response parts is equal to the number of \
        function call parts of the function call turn.";
    refused(OLD, talk(json!([model(json!([call("a")])), result("a", json!({}))])), call_first);
    refused(OLD, talk(json!([result("a", json!({}))])), response_first);
    refused(OLD, talk(json!([user("Hi"), result("a", json!({}))])), response_first);
    let two = model(json!([call("a"), call("b")]));
    refused(OLD, talk(json!([user("Hi"), two, result("a", json!({}))])), count);
    let function = json!({"role": "function", "parts": result("a", json!({}))["parts"]});
    refused(
        NEW,
        talk(json!([user("Hi"), model(json!([call("a")])), function])),
        "Role 'function' is not supported. Please use a valid role: SYSTEM, SYSTEM_1, USER, \
         ASSISTANT, DEVELOPER, CONTEXT, USER_CONTEXT, MODEL, USER.",
    );
    refused(
        OLD,
        talk(json!([{"role": "assistant", "parts": [{"text": "Hi"}]}])),
        "Please use a valid role: user, model.",
    );
    let ends = "Requests ending with a model turn are not supported.";
    let prefill = model(json!([{"text": "The answer"}]));
    refused(NEW, talk(json!([user("Hi"), prefill])), ends);
    refused("gemini-3.5-flash-lite", talk(json!([user("Hi"), prefill])), ends);
    refused(NEW, talk(json!([user("Hi"), prefill, user("")])), ends);
    let sim = Sim::new(SimConfig::default());
    for (name, body) in [
        (NEW, talk(json!([user("Hi"), prefill, user(" ")]))),
        ("gemini-3.5-flash", talk(json!([user("Hi"), prefill]))),
        (OLD, talk(json!([user("Hi"), prefill]))),
    ] {
        assert_eq!(refusal(&sim, name, &body), None, "{name}");
    }
}

#[test]
fn e4_empty_contents() {
    refused(NEW, json!({}), "* GenerateContentRequest.contents: contents is not specified\n");
    refused(
        NEW,
        talk(json!([user("Hi"), {"role": "user", "parts": []}])),
        "* GenerateContentRequest.contents[1].parts: contents.parts must not be empty.\n",
    );
    refused(
        NEW,
        talk(json!([{"role": "user", "parts": [{}]}])),
        "* GenerateContentRequest.contents[0].parts[0].data: required oneof field 'data' must have \
         one initialized field\n",
    );
    refused_by_vertex(
        NEW,
        json!({}),
        "Unable to submit request because at least one contents field is required.",
    );
    refused_by_vertex(
        NEW,
        talk(json!([{"role": "user", "parts": []}])),
        "Unable to submit request because it must include at least one parts field, which \
         describes the prompt input.",
    );
    refused_by_vertex(
        NEW,
        talk(json!([user("")])),
        "Unable to submit request because it must have a text parameter.",
    );
}

/// Observed once in the field, so it is a quirk that is off by default.
#[test]
fn empty_values_in_results() {
    let body = |response: Value| {
        talk(json!([user("Hi"), model(json!([call("a")])), result("a", response)]))
    };
    let sim = Sim::new(SimConfig { quirks: vec![Quirk::EmptyResults], ..SimConfig::default() });
    assert_eq!(
        refusal(&sim, NEW, &body(json!({"results": [], "count": 0}))).as_deref(),
        Some("Invalid function_response.response: field `results` has an empty value")
    );
    assert_eq!(refusal(&sim, NEW, &body(json!({"results": [1]}))), None);
    assert_eq!(refusal(&Sim::new(SimConfig::default()), NEW, &body(json!({"results": []}))), None);
}

#[test]
fn c1_missing_and_forged_signatures() {
    let unsigned = json!({"functionCall": {"name": "look", "args": {}}});
    let step =
        |part: Value| talk(json!([user("Hi"), model(json!([part])), result("look", json!({}))]));
    refused(
        NEW,
        step(unsigned.clone()),
        "Function call is missing a thought_signature in functionCall parts. This is required for \
         tools to work correctly, and missing thought_signature may lead to degraded model \
         performance. Additional data, function call `default_api:look` , position 2. Please refer \
         to https://ai.google.dev/gemini-api/docs/thought-signatures for more details.",
    );
    refused_by_vertex(
        NEW,
        step(unsigned.clone()),
        "Unable to submit request because function call `default_api:look` in the 2. content block \
         is missing a `thought_signature`. Learn more: \
         https://cloud.google.com/vertex-ai/generative-ai/docs/thought-signatures",
    );
    let documented = Sim::new(SimConfig {
        quirks: vec![Quirk::DocumentedSignatureText],
        ..SimConfig::default()
    });
    assert_eq!(
        refusal(&documented, NEW, &step(unsigned.clone())).as_deref(),
        Some("Function call `look` in the `2.` content block is missing a `thought_signature`.")
    );
    let signed = |signature: &str| {
        let mut part = unsigned.clone();
        part["thoughtSignature"] = json!(signature);
        step(part)
    };
    refused(NEW, signed("EqQBCgIYAhIMforeign+"), "Corrupted thought signature.");
    refused_by_vertex(NEW, signed("EqQBCgIYAhIMforeign+"), "Thought signature is not valid");
    // Both services accept the placeholder; only the Developer API accepts it in base64.
    refused_by_vertex(
        NEW,
        signed("c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="),
        "Thought signature is not valid",
    );
    refused(
        NEW,
        signed("not base64!"),
        "Invalid value at 'contents[1].parts[0].thought_signature' (TYPE_BYTES), Base64 decoding \
         failed for \"not base64!\"",
    );
    // A signature of another model is invalid.
    let sim = Sim::new(SimConfig::default());
    let asked = prompt("What is the weather in Tokyo?", json!({"tools": tools(&["get_weather"])}));
    let turn = model_turn(&stream(&sim, "gemini-3.7-flash", &asked));
    let body = talk(json!([asked["contents"][0], turn, answers(&turn, json!({"output": 1}))]));
    assert_eq!(refusal(&sim, NEW, &body).as_deref(), Some("Invalid thought signature."));
    // The last one is a finish reason, not an error.
    let sim = scripted(Script::new().text("").finish_with("MISSING_THOUGHT_SIGNATURE"));
    let (status, answer) = generate(&sim, NEW, &prompt("Hi", json!({})));
    assert_eq!(
        (status, &answer["candidates"][0]["finishReason"]),
        (200, &json!("MISSING_THOUGHT_SIGNATURE"))
    );
}

#[test]
fn cached_contents() {
    let sim = Sim::new(SimConfig::default());
    let ask = |verb: &str, path: &str, body: &Value| {
        let request = Request::builder().method(verb).uri(path).header("x-goog-api-key", "test");
        let plan = sim.plan(&request.body(Bytes::from(body.to_string())).unwrap());
        (plan.status, serde_json::from_slice::<Value>(&plan.bytes()).unwrap())
    };
    let kept = |words: usize| {
        let book = "word ".repeat(words);
        json!({
            "model": format!("models/{NEW}"), "ttl": "300s", "displayName": "A book",
            "systemInstruction": {"parts": [{"text": book}]}, "tools": tools(&["get_weather"]),
        })
    };
    let (status, small) = ask("POST", "/v1beta/cachedContents", &kept(46));
    assert_eq!((status, &small["error"]["status"]), (400, &json!("INVALID_ARGUMENT")));
    assert_eq!(
        small["error"]["message"],
        "Cached content is too small. total_token_count=97, min_total_token_count=1024"
    );
    let (_, unknown) = ask("POST", "/v1beta/cachedContents", &json!({"colour": 1, "model": NEW}));
    assert!(unknown["error"]["message"].as_str().unwrap().contains("colour"), "{unknown}");
    let (status, made) = ask("POST", "/v1beta/cachedContents", &kept(2000));
    assert_eq!((status, &made["displayName"]), (200, &json!("A book")));
    let name = made["name"].as_str().unwrap();
    assert_eq!(ask("GET", &format!("/v1beta/{name}"), &json!({})), (200, made.clone()));
    assert_eq!(ask("GET", "/v1beta/cachedContents", &json!({})).1["cachedContents"], json!([made]));

    let using = prompt("What is the weather in Oslo?", json!({"cachedContent": name}));
    let (status, answer) = generate(&sim, NEW, &using);
    assert_eq!(status, 200, "{answer}");
    let call = &answer["candidates"][0]["content"]["parts"][0]["functionCall"];
    assert_eq!(call["args"], json!({"city": "Oslo"}), "the kept tools are there");
    let usage = &answer["usageMetadata"];
    assert_eq!(usage["cachedContentTokenCount"], made["usageMetadata"]["totalTokenCount"]);
    assert!(usage["promptTokenCount"].as_u64() > usage["cachedContentTokenCount"].as_u64());
    let both = prompt("Hi", json!({"cachedContent": name, "tools": tools(&["a"])}));
    refused(
        NEW,
        both,
        "CachedContent can not be used with GenerateContent request setting system_instruction, \
         tools or tool_config.\n\nProposed fix: move those values to CachedContent from \
         GenerateContent request.",
    );
    let (status, other) = generate(&sim, OLD, &using);
    assert_eq!(status, 400);
    assert!(other["error"]["message"].as_str().unwrap().contains("has to be the same"), "{other}");
    assert_eq!(ask("DELETE", &format!("/v1beta/{name}"), &json!({})), (200, json!({})));
    let (status, gone) = generate(&sim, NEW, &using);
    assert_eq!(status, 403);
    assert_eq!(gone["error"]["message"], "CachedContent not found (or permission denied)");
}
