//! Tools, their names and the choice among them.

use serde_json::{Value, json};
use toolgate_core::canon::{
    Function, Loss, LossCode, OutputFormat, Request, SchemaForm, ServerTool, Target, Tool,
    ToolChoice, ToolName,
};
use toolgate_core::json::Text;
use toolgate_core::schema::{Cache, Emit, Placement};
use toolgate_core::upstream::generate_content::{
    EncodeOptions, Learned, SchemaPolicy, ToolInput, encode_request,
};

use crate::support::{
    NEW, OLD, asks, call, codes, dev, encode, encode_with, function, model, raw, result, says,
    text, tool, user, vertex,
};

fn with(tools: Vec<Tool<'static>>, tool_choice: ToolChoice<'static>) -> Request<'static> {
    Request { tools, tool_choice, ..asks("Do it.") }
}

fn search() -> Tool<'static> {
    Tool::Server(ServerTool::WebSearch { name: "web_search".into() })
}

fn one(name: &'static str) -> ToolChoice<'static> {
    ToolChoice::One(ToolName::plain(name))
}

fn allowed(required: bool, names: &[&'static str]) -> ToolChoice<'static> {
    let names = names.iter().map(|name| ToolName::plain(*name)).collect();
    ToolChoice::Allowed { required, names }
}

fn declared(body: &Value) -> Vec<&str> {
    let functions = body["tools"][0]["functionDeclarations"].as_array();
    functions.into_iter().flatten().filter_map(|it| it["name"].as_str()).collect()
}

#[test]
fn r1_a_declaration_holds_name_description_and_schema() {
    let request = with(vec![tool("read_file")], ToolChoice::Unset);
    let (body, encoded) = encode(&request, &dev(NEW));
    let own = function("read_file");
    let compiled = Cache::default().compile(own.parameters.as_ref(), own.form, Emit::JsonSchema);
    let mut want = json!({"name": "read_file", "description": "Does something."});
    if compiled.placement == Placement::JsonSchema {
        want["parametersJsonSchema"] = serde_json::from_str(&compiled.json).unwrap();
    }
    assert_eq!(body["tools"], json!([{"functionDeclarations": [want]}]));
    assert_eq!(encoded.exchange.tools.len(), 1);
    assert!(matches!(encoded.exchange.tools[0].input, ToolInput::Json(_)));
    assert_eq!(codes(&encoded), []);
}

#[test]
fn r2_all_functions_are_in_one_tool_in_their_order() {
    let names: Vec<String> = (0..40).map(|number| format!("tool_{}", 97 * number % 41)).collect();
    let tools = names.iter().map(|name| tool(name)).collect();
    let (body, _) = encode(&with(tools, ToolChoice::Unset), &dev(NEW));
    assert_eq!(body["tools"].as_array().unwrap().len(), 1);
    assert_eq!(declared(&body), names);
}

#[test]
fn r3_without_tools_there_is_no_tools_field() {
    for choice in [ToolChoice::Unset, ToolChoice::Auto, ToolChoice::Any, one("x")] {
        let (body, _) = encode(&with(Vec::new(), choice), &dev(NEW));
        assert_eq!((body.get("tools"), body.get("toolConfig")), (None, None));
    }
}

#[test]
fn r4_r5_g5_server_tools_are_markers_beside_or_instead_of_functions() {
    let tools = vec![
        search(),
        Tool::Server(ServerTool::CodeExecution { name: "code".into() }),
        Tool::Server(ServerTool::UrlContext { name: "fetch".into() }),
        Tool::Server(ServerTool::Gemini {
            kind: "google_maps".into(),
            body: raw(r#"{ "enableWidget": true }"#),
        }),
        search(),
    ];
    let (body, _) = encode(&with(tools, ToolChoice::Unset), &dev(NEW));
    let want = json!([
        {"googleSearch": {}}, {"codeExecution": {}}, {"urlContext": {}},
        {"googleMaps": {"enableWidget": true}},
    ]);
    assert_eq!(body["tools"], want);
}

#[test]
fn r8_the_body_is_camel_case_and_in_a_fixed_order() {
    let mut request = with(vec![tool("a")], ToolChoice::Auto);
    request.system = vec![Text::new("Be brief.")];
    request.settings.max_output_tokens = Some(10);
    request.gemini = vec![("safetySettings".into(), raw("[]"))];
    let (_, encoded) = encode(&request, &dev(NEW));
    let body: serde_json::Map<String, Value> = serde_json::from_slice(&encoded.body).unwrap();
    let keys: Vec<_> = body.keys().collect();
    let want = [
        "systemInstruction",
        "tools",
        "toolConfig",
        "contents",
        "generationConfig",
        "safetySettings",
    ];
    assert_eq!(keys, want);
    assert!(!String::from_utf8(encoded.body).unwrap().contains('\n'));
}

/// A request with a good tool, one with this schema, and another good one.
fn with_schema(schema: &str) -> Request<'static> {
    let (at, schema_field) = ("tools[1]".to_owned(), "input_schema");
    let odd = Function { parameters: Some(raw(schema)), at, schema_field, ..function("odd") };
    with(vec![tool("good"), Tool::Function(odd), tool("fine")], ToolChoice::Unset)
}

#[test]
fn r133_r134_r138_an_invalid_schema_is_an_error_or_a_loss() {
    let cache = Cache::default();
    for (schema, place) in [
        ("5", ""),
        ("false", ""),
        (r#""object""#, ""),
        (r#"{"type":"string"}"#, ".type"),
        (r#"{"required":5}"#, ".required"),
        (r#"{"required":["a",5],"properties":{"a":{}}}"#, ".required"),
        (r#"{"type":"wat"}"#, ".type"),
        (r#"{"type":7}"#, ".type"),
        (r##"{"type":"object","$ref":"#/nowhere"}"##, ".$ref"),
        (r##"{"properties":{"a":{"$ref":"#/$defs/A"}}}"##, ".properties.a.$ref"),
        (r#"{"properties":{"a":"text"}}"#, ".properties.a"),
        (r#"{"properties":{"a":{"type":"str"}}}"#, ".properties.a.type"),
        (r#"{"properties":{"a":{"items":[1]}}}"#, ".properties.a.items[0]"),
        (r#"{"properties":{"a":{"minLength":"3"}}}"#, ".properties.a.minLength"),
        (r#"{"properties":{"a":{"enum":{}}}}"#, ".properties.a.enum"),
        (r#"{"properties":{"a":{"anyOf":{}}}}"#, ".properties.a.anyOf"),
        (r#"{"properties":{"a":{"type":"string","required":true}}}"#, ".properties.a.required"),
        (r#"{"properties":{"a":{"minimum":3,"maximum":1}}}"#, ".properties.a.minimum"),
        (r#"{"properties":{},"required":["a"],"additionalProperties":false}"#, ".required"),
        (r#"{"properties":[1]}"#, ".properties"),
    ] {
        let request = with_schema(schema);
        for target in [dev(OLD), dev(NEW), vertex(NEW)] {
            let (body, encoded) = encode(&request, &target);
            assert_eq!(declared(&body), ["good", "odd", "fine"]);
            let place = format!("tools[1].input_schema{place}");
            let told = encoded
                .losses
                .iter()
                .any(|loss| loss.at == place && loss.tool.as_deref() == Some("odd"));
            assert!(told, "{schema}: {:?}", encoded.losses);
            for schema in [SchemaPolicy::Auto, SchemaPolicy::Raw, SchemaPolicy::Parameters] {
                let strict = EncodeOptions { strict: true, schema, ..EncodeOptions::new(&cache) };
                let error = encode_request(&request, &target, &strict).unwrap_err();
                assert_eq!(error.at, place);
                assert!(error.reason.contains("the tool `odd`"), "{error}");
                assert!(!error.reason.contains(';'), "{error}");
            }
        }
    }
}

#[test]
fn r133_strict_takes_what_is_merely_more_than_gemini_takes() {
    let cache = Cache::default();
    for schema in [
        "null",
        "true",
        "{}",
        r#"{"type":["object","null"]}"#,
        r#"{"type":["object","string"],"properties":{"a":{}}}"#,
        r#"{"anyOf":[{"properties":{"a":{}}},{"type":"array"}],"type":"object"}"#,
        r#"{"properties":{"a":{"type":"array"}}}"#,
        r#"{"properties":{"a":{"prefixItems":[{"type":"string"},{}],"items":false}}}"#,
        r#"{"properties":{"a":{"items":[{"type":"string"},{"type":"null"}]}}}"#,
        r#"{"properties":{"a":{"type":["string","integer","null"],"minimum":1}}}"#,
        r#"{"properties":{"a":{"type":"string","enum":["x",1,null,""]}}}"#,
        r#"{"properties":{"a":{"type":"string","minItems":1,"minLength":1.0}}}"#,
        r#"{"properties":{"a":{"minimum":1,"exclusiveMinimum":true,"not":{},"if":{},"then":{}}}}"#,
        r#"{"properties":{"a":{"allOf":[{"type":"string"},{"pattern":"x"}],"x-y":1,"madeUp":2}}}"#,
        r#"{"properties":{"a":{}},"required":["b"]}"#,
        r#"{"properties":{"a":{}},"required":["b"],"additionalProperties":true}"#,
        r#"{"properties":{"a":{"$ref":"https://example.com/a.json"}}}"#,
        r##"{"$defs":{"A":{"properties":{"a":{"$ref":"#/$defs/A"}},"required":["a"]}},"$ref":"#/$defs/A"}"##,
        r#"{"properties":{"a":{"type":"any"},"b":{"nullable":true,"deprecated":true},"c":false}}"#,
    ] {
        let request = with_schema(schema);
        for target in [dev(OLD), dev(NEW), vertex(NEW)] {
            for policy in [SchemaPolicy::Auto, SchemaPolicy::Parameters] {
                let options =
                    EncodeOptions { strict: true, schema: policy, ..EncodeOptions::new(&cache) };
                if let Err(error) = encode_request(&request, &target, &options) {
                    panic!("{schema}: {error}");
                }
            }
        }
    }
}

#[test]
fn r140_tools_can_be_switched_off() {
    let cache = Cache::default();
    let off = EncodeOptions { tools_enabled: false, ..EncodeOptions::new(&cache) };
    let (body, encoded) = encode_with(&with(vec![tool("a"), search()], one("a")), &dev(NEW), &off);
    assert_eq!((body.get("tools"), body.get("toolConfig")), (None, None));
    assert_eq!(codes(&encoded), [LossCode::Ignored]);
    assert!(encoded.exchange.tools.is_empty());
}

#[test]
fn r137_what_a_target_refused_before_is_left_out() {
    let cache = Cache::default();
    let mut learned = Learned::default();
    learned.tools.insert(ToolName::plain("bad"));
    learned.generation.insert("temperature".to_owned());
    learned.no_call_ids = true;
    let options = EncodeOptions { learned: &learned, ..EncodeOptions::new(&cache) };
    let mut request = says(vec![
        user(vec![text("Go.")]),
        model(vec![call("c1", "good", "{}")]),
        user(vec![result("c1", "done")]),
    ]);
    request.tools = vec![tool("bad"), tool("good")];
    request.settings.temperature = Some(0.5);
    let encoded = encode_request(&request, &dev(NEW), &options).unwrap();
    let body: Value = serde_json::from_slice(&encoded.body).unwrap();
    assert_eq!(declared(&body), ["good"]);
    assert_eq!(body.get("generationConfig"), None);
    assert_eq!(body["contents"][1]["parts"][0]["functionCall"].get("id"), None);
    assert_eq!(body["contents"][2]["parts"][0]["functionResponse"].get("id"), None);
    assert!(codes(&encoded).contains(&LossCode::ToolDropped));
}

#[test]
fn schemas_go_where_the_policy_says() {
    let cache = Cache::default();
    let freeform = Tool::Freeform {
        name: ToolName::plain("patch"),
        description: Some(Text::new("Applies a patch.")),
        grammar: Some(Text::new("start: line+")),
    };
    let request = with(vec![freeform], ToolChoice::Unset);
    let field = |target: &Target, policy| {
        let options = EncodeOptions { schema: policy, ..EncodeOptions::new(&cache) };
        let (body, encoded) = encode_with(&request, target, &options);
        assert!(matches!(encoded.exchange.tools[0].input, ToolInput::Freeform));
        let declaration = &body["tools"][0]["functionDeclarations"][0];
        let description = declaration["description"].as_str().unwrap();
        assert!(description.starts_with("Applies a patch.\n\n"), "{description}");
        assert!(description.ends_with("start: line+"), "{description}");
        let fields = ["parameters", "parametersJsonSchema"];
        let found = fields.into_iter().find(|name| declaration.get(name).is_some()).unwrap();
        assert_eq!(declaration[found]["required"], json!(["input"]));
        found
    };
    assert_eq!(field(&dev(NEW), SchemaPolicy::Auto), "parametersJsonSchema");
    assert_eq!(field(&vertex(OLD), SchemaPolicy::Auto), "parametersJsonSchema");
    assert_eq!(field(&dev("gemini-2.0-flash"), SchemaPolicy::Auto), "parameters");
    assert_eq!(field(&dev(NEW), SchemaPolicy::Parameters), "parameters");
    assert_eq!(field(&dev(NEW), SchemaPolicy::Raw), "parametersJsonSchema");
}

#[test]
fn deferred_tools_are_not_declared_and_513_are_too_many() {
    let hidden = Tool::Function(Function { deferred: true, ..function("hidden") });
    let (body, encoded) = encode(&with(vec![hidden, tool("seen")], ToolChoice::Auto), &dev(NEW));
    assert_eq!(declared(&body), ["seen"]);
    assert_eq!(encoded.exchange.tools.len(), 1);

    let many = (0..515).map(|number| tool(&format!("t{number}"))).collect();
    let (body, encoded) = encode(&with(many, ToolChoice::Unset), &dev(NEW));
    assert_eq!(declared(&body).len(), 512);
    assert_eq!(codes(&encoded), [LossCode::ToolDropped; 3]);
    // The tool that the client chose is not among the dropped ones.
    for choice in [one("t514"), allowed(true, &["t513", "t514"]), allowed(false, &["t514"])] {
        let many = (0..515).map(|number| tool(&format!("t{number}"))).collect();
        let (body, encoded) = encode(&with(many, choice), &dev(NEW));
        assert_eq!(declared(&body).len(), 512);
        assert!(declared(&body).contains(&"t514"));
        assert_eq!(codes(&encoded), [LossCode::ToolDropped; 3]);
    }
}

#[test]
fn b1_to_b3_one_map_for_declarations_history_choices_and_lists() {
    let long = "mcp__plugin_engineering_productivity_suite_issue_tracker__create_an_issue_now";
    let odd = [long, "21st_builder", "a/b", "a b", "a_b", "grüße", "dots.and-dashes"];
    let mut turns = vec![user(vec![text("Go.")])];
    turns.push(model(odd.iter().map(|name| call(name, name, "{}")).collect()));
    turns.push(user(odd.iter().map(|name| result(name, "ok")).collect()));
    turns.push(model(vec![call("gone", "no longer/declared", "{}")]));
    let names = odd.iter().map(|name| ToolName::plain(*name)).collect();
    let request = Request {
        tools: odd.iter().map(|name| tool(name)).collect(),
        tool_choice: ToolChoice::Allowed { required: true, names },
        ..says(turns)
    };
    let (body, encoded) = encode(&request, &dev(NEW));
    let names = declared(&body);
    let list: Vec<_> = body["toolConfig"]["functionCallingConfig"]["allowedFunctionNames"]
        .as_array()
        .unwrap()
        .iter()
        .map(|name| name.as_str().unwrap())
        .collect();
    assert_eq!(list, names);
    for (at, name) in names.iter().enumerate() {
        assert_eq!(body["contents"][1]["parts"][at]["functionCall"]["name"], *name);
        assert_eq!(body["contents"][2]["parts"][at]["functionResponse"]["name"], *name);
        assert_eq!(encoded.exchange.tools[at].alias, *name);
        assert_eq!(encoded.exchange.tools[at].name, ToolName::plain(odd[at]));
    }
    let gone = body["contents"][3]["parts"][0]["functionCall"]["name"].as_str().unwrap();
    assert!(gone.starts_with("no_longer_declared_"), "{gone}");
    let aliased = codes(&encoded).iter().filter(|code| **code == LossCode::NameAliased).count();
    assert_eq!(aliased, 5);
}

#[test]
fn b5_of_two_tools_with_one_name_the_last_counts() {
    let second = Tool::Function(Function {
        description: Some(Text::new("The second.")),
        ..function("same")
    });
    let inner = Tool::Function(Function {
        name: ToolName { namespace: Some("group".into()), name: "same".into() },
        ..function("same")
    });
    let request = with(vec![tool("same"), tool("other"), second, inner], ToolChoice::Unset);
    let (body, encoded) = encode(&request, &dev(NEW));
    assert_eq!(declared(&body), ["other", "same", "group__same"]);
    assert_eq!(body["tools"][0]["functionDeclarations"][1]["description"], "The second.");
    assert_eq!(codes(&encoded), [LossCode::ToolDropped, LossCode::NameAliased]);
}

#[track_caller]
fn check_choice(
    target: &Target,
    tools: Vec<Tool<'static>>,
    choice: ToolChoice<'static>,
    want: &Value,
) {
    let (body, _) = encode(&with(tools, choice), target);
    assert_eq!(body.get("toolConfig").unwrap_or(&Value::Null), want);
}

#[test]
fn r19_to_r27_choices_become_modes() {
    let calling = |mode: &str, names: &[&str]| match names {
        [] => json!({"functionCallingConfig": {"mode": mode}}),
        _ => json!({"functionCallingConfig": {"mode": mode, "allowedFunctionNames": names}}),
    };
    for (choice, want) in [
        (ToolChoice::Unset, Value::Null),
        (ToolChoice::Auto, calling("AUTO", &[])),
        (ToolChoice::Any, calling("ANY", &[])),
        (ToolChoice::None, calling("NONE", &[])),
        (one("b"), calling("ANY", &["b"])),
        (allowed(true, &["b", "a", "b"]), calling("ANY", &["b", "a"])),
        (allowed(false, &["b"]), calling("VALIDATED", &["b"])),
        (allowed(false, &["b", "unknown"]), calling("VALIDATED", &["b"])),
        (allowed(false, &[]), calling("NONE", &[])),
        (one("unknown"), Value::Null),
    ] {
        for target in [dev(OLD), dev(NEW), vertex(NEW)] {
            check_choice(&target, vec![tool("a"), tool("b")], choice.clone(), &want);
        }
    }
}

#[test]
fn r22_none_keeps_the_functions_and_not_the_server_tools() {
    let (body, _) = encode(&with(vec![tool("a"), search()], ToolChoice::None), &dev(NEW));
    assert_eq!(declared(&body), ["a"]);
    assert_eq!(body["tools"].as_array().unwrap().len(), 1);
}

#[test]
fn g1_no_calling_config_without_functions() {
    for choice in
        [one("web_search"), ToolChoice::Any, ToolChoice::Auto, allowed(true, &["web_search"])]
    {
        for target in [dev(OLD), dev(NEW), vertex(OLD), vertex(NEW)] {
            check_choice(&target, vec![search()], choice.clone(), &Value::Null);
        }
    }
}

#[test]
fn g2_g5_functions_beside_server_tools() {
    let both = || vec![tool("a"), search()];
    let flag = json!({"includeServerSideToolInvocations": true});
    check_choice(&dev(NEW), both(), ToolChoice::Unset, &flag);
    check_choice(&vertex(NEW), both(), ToolChoice::Unset, &Value::Null);
    check_choice(&dev(OLD), both(), ToolChoice::Unset, &Value::Null);
    check_choice(&vertex(OLD), both(), ToolChoice::Unset, &Value::Null);
    let validated = json!({
        "functionCallingConfig": {"mode": "VALIDATED"},
        "includeServerSideToolInvocations": true,
    });
    check_choice(&dev(NEW), both(), ToolChoice::Auto, &validated);

    for (target, want) in [(dev(NEW), 2), (vertex(NEW), 2), (dev(OLD), 1), (vertex(OLD), 1)] {
        let (body, encoded) = encode(&with(both(), ToolChoice::Unset), &target);
        assert_eq!(body["tools"].as_array().unwrap().len(), want, "{target:?}");
        assert_eq!(declared(&body), ["a"]);
        assert_eq!(codes(&encoded).len(), 2 - want);
    }
    // Who asks for the search by name shall have it.
    let (body, _) = encode(&with(both(), one("web_search")), &dev(OLD));
    assert_eq!(body["tools"], json!([{"googleSearch": {}}]));
    // A tool that the back end does not know is left out.
    let files = Tool::Server(ServerTool::Gemini { kind: "fileSearch".into(), body: raw("{}") });
    let (body, encoded) = encode(&with(vec![files], ToolChoice::Unset), &vertex(NEW));
    assert_eq!(body.get("tools"), None);
    assert_eq!(codes(&encoded), [LossCode::ToolDropped]);
}

#[test]
fn g4_allowed_tools_in_auto_mode_are_validated() {
    let want = json!({"functionCallingConfig": {
        "mode": "VALIDATED", "allowedFunctionNames": ["a"],
    }});
    check_choice(
        &vertex(NEW),
        vec![tool("a"), search()],
        allowed(false, &["web_search", "a"]),
        &want,
    );
    let none = json!({"functionCallingConfig": {"mode": "NONE"}});
    check_choice(&vertex(NEW), vec![tool("a"), search()], allowed(false, &["web_search"]), &none);
}

#[test]
fn g2_g4_allowed_tools_hold_for_geminis_own_tools_too() {
    let both = || vec![tool("a"), search()];
    let function = json!({"googleSearch": {}});
    for target in [dev(OLD), dev(NEW), vertex(OLD), vertex(NEW)] {
        for required in [false, true] {
            let (body, encoded) = encode(&with(both(), allowed(required, &["a"])), &target);
            assert_eq!(declared(&body), ["a"]);
            assert!(!body["tools"].as_array().unwrap().contains(&function), "{target:?}");
            assert_eq!(codes(&encoded), []);
            // Who allows nothing but the search shall have it.
            let (body, _) = encode(&with(both(), allowed(required, &["web_search"])), &target);
            assert!(body["tools"].as_array().unwrap().contains(&function), "{target:?}");
            let mode = &body["toolConfig"]["functionCallingConfig"]["mode"];
            assert!(declared(&body).is_empty() || mode == "NONE", "{target:?}");
        }
    }
}

#[test]
fn r20_geminis_own_mode_stays_what_it_is() {
    let own = |tool_choice| Request {
        gemini: vec![("toolConfig.functionCallingConfig.mode".into(), raw(r#""VALIDATED""#))],
        ..with(vec![tool("a"), tool("b")], tool_choice)
    };
    for (choice, mode) in [(ToolChoice::Auto, "VALIDATED"), (ToolChoice::None, "NONE")] {
        let (body, _) = encode(&own(choice), &dev(NEW));
        assert_eq!(body["toolConfig"], json!({"functionCallingConfig": {"mode": mode}}));
    }
}

#[test]
fn one_call_at_a_time_is_left_to_the_decoder() {
    for (parallel, want) in [(None, false), (Some(true), false), (Some(false), true)] {
        let request = Request { parallel_calls: parallel, ..asks("Go.") };
        assert_eq!(encode(&request, &dev(NEW)).1.exchange.one_call, want);
    }
}

#[test]
fn r100_a_gemini_clients_own_config_is_kept() {
    let mut request = with(vec![tool("a")], ToolChoice::Auto);
    request.gemini = vec![
        ("toolConfig.retrievalConfig".into(), raw(r#"{"languageCode":"de"}"#)),
        ("toolConfig.streamFunctionCallArguments".into(), raw("true")),
        ("labels".into(), raw(r#"{"team":"x"}"#)),
        ("store".into(), raw("true")),
        ("cachedContent".into(), raw("null")),
    ];
    let (body, encoded) = encode(&request, &vertex(NEW));
    assert_eq!(body["toolConfig"]["retrievalConfig"]["languageCode"], "de");
    assert_eq!(body["toolConfig"]["functionCallingConfig"]["streamFunctionCallArguments"], true);
    assert_eq!(body["labels"]["team"], "x");
    assert_eq!((body.get("store"), body.get("cachedContent")), (None, None));
    assert_eq!(codes(&encoded), [LossCode::Ignored]);
    let (body, _) = encode(&request, &dev(NEW));
    assert_eq!((body["store"].as_bool(), body.get("labels")), (Some(true), None));
}

/// A schema with more values than are read.
fn too_large() -> String {
    format!(r#"{{"anyOf":[{}]}}"#, vec!["{}"; 60_000].join(","))
}

#[test]
fn a_tool_whose_schema_is_too_large_is_left_out_with_its_name() {
    let request = with_schema(&too_large());
    let (body, encoded) = encode(&request, &dev(NEW));
    assert_eq!(declared(&body), ["good", "fine"]);
    assert_eq!(encoded.exchange.tools.len(), 2);
    let loss = encoded.losses.iter().find(|loss| loss.code == LossCode::ToolDropped).unwrap();
    assert_eq!((loss.at.as_str(), loss.tool.as_deref()), ("tools[1].input_schema", Some("odd")));
    assert!(loss.detail.contains("more than 50000 values"), "{}", loss.detail);
    let cache = Cache::default();
    let strict = EncodeOptions { strict: true, ..EncodeOptions::new(&cache) };
    let error = encode_request(&request, &dev(NEW), &strict).unwrap_err();
    assert_eq!(error.at, "tools[1].input_schema");
    assert!(error.reason.contains("`odd`") && error.reason.contains("50000 values"), "{error:?}");
}

#[test]
fn an_answer_schema_that_is_too_large_is_left_out_and_named() {
    let output = OutputFormat::JsonSchema {
        schema: raw(&too_large()),
        form: SchemaForm::JsonSchema,
        description: None,
        name: None,
    };
    for (model, tools) in [(NEW, vec![]), (OLD, vec![tool("read_file")])] {
        let request = Request { output: output.clone(), tools, ..asks("Do it.") };
        let (body, encoded) = encode(&request, &dev(model));
        assert_eq!(body["generationConfig"].get("responseJsonSchema"), None);
        assert!(body.to_string().len() < 10_000);
        let named = |loss: &&Loss| loss.detail.contains("the answer's schema was left out");
        assert_eq!(encoded.losses.iter().find(named).map(|loss| loss.at.as_str()), Some("output"));
    }
    let request = Request { output, ..asks("Do it.") };
    let cache = Cache::default();
    let strict = EncodeOptions { strict: true, ..EncodeOptions::new(&cache) };
    let error = encode_request(&request, &dev(NEW), &strict).unwrap_err();
    assert!(error.reason.contains("more than 50000 values"), "{error:?}");
}
