//! Requests.

use serde_json::{Value, json};
use toolgate_core::canon::{
    BadRequest, Effort, OutputFormat, SchemaForm, Thinking, ThinkingMode, ToolChoice, ToolName,
};
use toolgate_core::dialect::{DecodeOptions, Decoded};
use toolgate_core::gemini::{Echo, decode_count_tokens, decode_native, decode_request};
use toolgate_core::seal::Sealer;

use toolgate_testing::outline;

fn decode(body: &str) -> Result<Decoded<'_, Echo>, BadRequest> {
    let sealer = Sealer::default();
    decode_request(body, "models/gemini-3-pro", true, &DecodeOptions { sealer: &sealer })
}

/// A body with these parts, said by the user.
fn saying(parts: &str) -> String {
    format!(r#"{{"contents":[{{"role":"user","parts":{parts}}}]}}"#)
}

/// A body with this beside a turn.
fn with(fields: &str) -> String {
    format!(r#"{{"contents":[{{"parts":[{{"text":"hi"}}]}}],{fields}}}"#)
}

#[track_caller]
fn turns(body: &str, want: &[&str]) {
    let decoded = decode(body).unwrap();
    assert_eq!(outline::turns(&decoded.request), want, "{body}");
    assert_eq!(outline::losses(&decoded.losses), [""; 0], "{body}");
}

#[test]
fn roles() {
    turns(
        r#"{"contents":[{"parts":[{"text":"a"}]},{"role":"","parts":[{"text":"b"}]},{"role":"MODEL","parts":[{"text":"c"}]},
            {"role":"function","parts":[{"text":"d"}]},{"role":"system","parts":[{"text":"e"}]},{"role":"model"}]}"#,
        &[
            r#"user: "a""#,
            r#"user: "b""#,
            r#"model: "c""#,
            r#"user: "d""#,
            r#"instruction: "e""#,
            "model: nothing",
        ],
    );
}

#[test]
fn brackets_may_be_missing() {
    turns(r#"{"contents":{"role":"user","parts":{"text":"a"}}}"#, &[r#"user: "a""#]);
    turns(r#"{"contents":[{"parts":"a"}],"tools":{"google_search":{}}}"#, &[r#"user: "a""#]);
}

#[test]
fn null_means_not_set() {
    turns(
        r#"{"contents":[{"role":null,"parts":[{"text":"a","thought":false,"thoughtSignature":null,"functionCall":null}]}],
            "toolConfig":null,"safetySettings":null,"tools":[{"codeExecution":null,"functionDeclarations":null}],
            "generationConfig":{"temperature":null,"thinkingConfig":null},"systemInstruction":null}"#,
        &[r#"user: "a""#],
    );
}

#[test]
fn r33_every_kind_of_part() {
    #[track_caller]
    fn check(part: &str, want: &str) {
        turns(&saying(&format!("[{part}]")), &[&format!("user: {want}")]);
    }
    check(r#"{"text":"a\nb"}"#, r#""a\nb""#);
    check(r#"{"text":"a","thoughtSignature":"A+/="}"#, r#""a" signed A+/="#);
    check(r#"{"text":"a","thought_signature":"A-_"}"#, r#""a" signed A-_"#);
    check(r#"{"text":"hm","thought":true,"thoughtSignature":"AA"}"#, r#"thought "hm" signed AA"#);
    check(r#"{"thoughtSignature":"AA"}"#, r#""" signed AA"#);
    check(r#"{"text":"","thoughtSignature":""}"#, r#""""#);
    check(
        r#"{"inlineData":{"mimeType":"image/png","data":"iV"}}"#,
        r#"media image/png inline "iV""#,
    );
    check(
        r#"{"inline_data":{"mime_type":"video/mp4","data":"AA","display_name":"v"},"video_metadata":{"fps":1},"thoughtSignature":"SS"}"#,
        r#"media video/mp4 inline "AA" named v videoMetadata={"fps":1} thoughtSignature="SS""#,
    );
    check(
        r#"{"fileData":{"fileUri":"gs://b/a.pdf","mimeType":"application/pdf"}}"#,
        r#"media application/pdf uri "gs://b/a.pdf""#,
    );
    check(
        r#"{"functionCall":{"id":"x1","name":"f","args":{"b":1.0,"a":[]}},"thoughtSignature":"AA"}"#,
        r#"call x1 f {"b":1.0,"a":[]} signed AA"#,
    );
    check(r#"{"function_call":{"name":"f"}}"#, "call  f {}");
    check(
        r#"{"functionResponse":{"id":"x1","name":"f","response":{"output":"22 °C"},"scheduling":"SILENT","will_continue":true}}"#,
        r#"result x1 of f json {"output":"22 °C"} scheduling="SILENT" willContinue=true"#,
    );
    check(r#"{"function_response":{"name":"f","response":"words"}}"#, r#"result of f "words""#);
    check(
        r#"{"functionResponse":{"name":"f","response":[1],"parts":[{"inlineData":{"mimeType":"image/png","data":"iV"}}]}}"#,
        r#"result of f json [1] media image/png inline "iV""#,
    );
    for own in [
        r#"{"executableCode":{"language":"PYTHON","code":"1"},"thoughtSignature":"AA"}"#,
        r#"{"codeExecutionResult":{"outcome":"OUTCOME_OK"}}"#,
        r#"{"toolCall":{"id":"s"},"thoughtSignature":"AA"}"#,
        r#"{"tool_response":{"id":"s","response":{}}}"#,
        r#"{"hologram":{"x":1},"thoughtSignature":"AA"}"#,
        r#"{"text":"a","partMetadata":{"k":"v"}}"#,
    ] {
        check(own, &format!("gemini {own}"));
    }
}

#[test]
fn a_turn_of_gemini_cli() {
    turns(
        r#"{"contents":[
            {"role":"model","parts":[{"text":"Writing."},{"functionCall":{"id":"sh_1","args":{"c":"x"},"name":"sh"},"thoughtSignature":"AA"},
                                     {"functionCall":{"id":"sh_2","args":{},"name":"sh"}},{"thoughtSignature":"BB"}]},
            {"role":"user","parts":[{"functionResponse":{"id":"sh_1","name":"sh","response":{"output":"a"}}},
                                    {"inlineData":{"mimeType":"image/png","data":"iV"}},
                                    {"functionResponse":{"id":"sh_1","name":"sh","response":{"output":"a"}}}]}]}"#,
        &[
            r#"model: "Writing.""#,
            r#"model: call sh_1 sh {"c":"x"} signed AA"#,
            "model: call sh_2 sh {}",
            r#"model: "" signed BB"#,
            r#"user: result sh_1 of sh json {"output":"a"}"#,
            r#"user: media image/png inline "iV""#,
            r#"user: result sh_1 of sh json {"output":"a"}"#,
        ],
    );
}

#[test]
fn system_instructions() {
    #[track_caller]
    fn check(system: &str, want: &[&str]) {
        let body = with(&format!(r#""system_instruction":{system}"#));
        let decoded = decode(&body).unwrap();
        let got: Vec<_> = decoded.request.system.iter().map(|text| text.literal()).collect();
        assert_eq!(got, want, "{system}");
        assert_eq!(outline::losses(&decoded.losses), [""; 0], "{system}");
    }
    check(
        r#"{"role":"model","parts":[{"text":"a","thought":false},{"text":""},{"text":"b"}]}"#,
        &[r#""a""#, r#""b""#],
    );
    check(r#"{"parts":{"text":"a"}}"#, &[r#""a""#]);
    check(r#""a""#, &[r#""a""#]);
    check(r#"[{"text":"a"}]"#, &[r#""a""#]);
    check(r#"{"text":"a"}"#, &[r#""a""#]);
    check("{}", &[]);
}

#[test]
fn tools_in_both_spellings() {
    #[track_caller]
    fn check(tools: &str, want: &[&str]) {
        let body = with(&format!(r#""tools":{tools}"#));
        let decoded = decode(&body).unwrap();
        assert_eq!(outline::tools(&decoded.request), want, "{tools}");
        assert_eq!(outline::losses(&decoded.losses), [""; 0], "{tools}");
    }
    check(
        r#"[{"functionDeclarations":[{"name":"f","parameters":{"type":"OBJECT"},"response":{"type":"STRING"}}]},
            {"function_declarations":[{"name":"g","parameters_json_schema":{"type":"object"},"response_json_schema":{}}]}]"#,
        &[
            r#"function f Gemini {"type":"OBJECT"} at tools[0].functionDeclarations[0]"#,
            r#"function g JsonSchema {"type":"object"} at tools[1].functionDeclarations[0]"#,
        ],
    );
    check(
        r#"{"functionDeclarations":{"name":"f"}}"#,
        &["function f JsonSchema none at tools[0].functionDeclarations"],
    );
    check(
        r#"[{"googleSearch":{}},{"url_context":{},"codeExecution":{}},{"google_maps":{"enableWidget":true}},
            {"googleSearch":{"timeRangeFilter":{}}},{"mcpServers":[]},{"brandNew":{"a":1}}]"#,
        &[
            r#"WebSearch { name: "google_search" }"#,
            r#"UrlContext { name: "url_context" }"#,
            r#"CodeExecution { name: "code_execution" }"#,
            r#"Gemini { kind: "googleMaps", body: {"enableWidget":true} }"#,
            r#"Gemini { kind: "googleSearch", body: {"timeRangeFilter":{}} }"#,
            r#"Gemini { kind: "mcpServers", body: [] }"#,
            r#"Gemini { kind: "brandNew", body: {"a":1} }"#,
        ],
    );
}

#[test]
fn r20_r23_modes() {
    #[track_caller]
    fn check(config: &str, want: &ToolChoice<'_>) {
        let body = with(&format!(
            r#""toolConfig":{{"functionCallingConfig":{config}}},"tools":[{{"functionDeclarations":[{{"name":"f"}},{{"name":"g"}}]}}]"#
        ));
        assert_eq!(&decode(&body).unwrap().request.tool_choice, want, "{config}");
    }
    let names = |names: &[&'static str]| names.iter().map(|name| ToolName::plain(*name)).collect();
    let allowed = |required, list| ToolChoice::Allowed { required, names: names(list) };
    check("{}", &ToolChoice::Unset);
    check(r#"{"mode":"MODE_UNSPECIFIED"}"#, &ToolChoice::Unset);
    check(r#"{"mode":"AUTO"}"#, &ToolChoice::Auto);
    check(r#"{"mode":"any"}"#, &ToolChoice::Any);
    check(r#"{"mode":2}"#, &ToolChoice::Any);
    check(r#"{"mode":"NONE","allowedFunctionNames":["f"]}"#, &ToolChoice::None);
    check(
        r#"{"mode":"ANY","allowed_function_names":["f"]}"#,
        &ToolChoice::One(ToolName::plain("f")),
    );
    check(r#"{"mode":"ANY","allowedFunctionNames":["f","g"]}"#, &allowed(true, &["f", "g"]));
    check(r#"{"mode":"VALIDATED","allowedFunctionNames":"g"}"#, &allowed(false, &["g"]));
    check(r#"{"mode":"VALIDATED"}"#, &ToolChoice::Auto);
    check(r#"{"mode":"AUTO","allowedFunctionNames":["f"]}"#, &allowed(false, &["f"]));
    // No list stays no list, and the mode goes along.
    let tools = r#""tools":[{"functionDeclarations":[{"name":"f"}]},{"googleSearch":{}}]"#;
    let config = |config: &str| {
        with(&format!(r#"{tools},"toolConfig":{{"functionCallingConfig":{config}}}"#))
    };
    let body = config(r#"{"mode":"VALIDATED"}"#);
    let kept = decode(&body).unwrap().request.gemini;
    assert_eq!(kept[0].0, "toolConfig.functionCallingConfig.mode");
    // A list is about functions: Gemini's own tools stay.
    let body = config(r#"{"mode":"VALIDATED","allowedFunctionNames":["f"]}"#);
    let choice = decode(&body).unwrap().request.tool_choice;
    assert_eq!(choice, allowed(false, &["f", "google_search"]));
}

#[test]
fn the_rest_of_tool_config_is_kept() {
    let body = with(
        r#""tool_config":{"retrieval_config":{"languageCode":"en"},"includeServerSideToolInvocations":true}"#,
    );
    let decoded = decode(&body).unwrap();
    let kept: Vec<_> =
        decoded.request.gemini.iter().map(|(key, raw)| (&**key, raw.get())).collect();
    assert_eq!(
        kept,
        [
            ("toolConfig.retrievalConfig", r#"{"languageCode":"en"}"#),
            ("toolConfig.includeServerSideToolInvocations", "true"),
        ],
    );
}

#[test]
fn generation_config() {
    let body = with(
        r#""generation_config":{"temperature":1,"top_p":"0.95","topK":64,"candidateCount":1,"max_output_tokens":"100",
            "stopSequences":["a"],"seed":5.0,"presencePenalty":0.5,"frequency_penalty":-0.5,"response_modalities":["TEXT"],
            "mediaResolution":"MEDIA_RESOLUTION_LOW","someNewThing":{"a":1}},
           "safety_settings":[],"cachedContent":"cachedContents/a","labels":{"k":"v"},"serviceTier":"flex","store":true,"model":"models/x""#,
    );
    let Decoded { request, echo, losses } = decode(&body).unwrap();
    let settings = &request.settings;
    assert_eq!(
        (settings.temperature, settings.top_p, settings.top_k),
        (Some(1.0), Some(0.95), Some(64.0)),
    );
    assert_eq!(
        (settings.candidates, settings.max_output_tokens, settings.seed),
        (Some(1), Some(100), Some(5)),
    );
    assert_eq!((settings.presence_penalty, settings.frequency_penalty), (Some(0.5), Some(-0.5)),);
    assert_eq!(settings.stop.len(), 1);
    let generation: Vec<_> =
        request.gemini_generation.iter().map(|(key, raw)| (&**key, raw.get())).collect();
    assert_eq!(
        generation,
        [
            ("responseModalities", r#"["TEXT"]"#),
            ("mediaResolution", r#""MEDIA_RESOLUTION_LOW""#),
            ("someNewThing", r#"{"a":1}"#),
        ],
    );
    let copied: Vec<_> = request.gemini.iter().map(|(key, _)| &**key).collect();
    assert_eq!(copied, ["safetySettings", "cachedContent", "labels", "serviceTier", "store"]);
    assert_eq!((&*request.model, &*echo.model), ("gemini-3-pro", "gemini-3-pro"));
    assert!(request.stream);
    assert_eq!(outline::losses(&losses), [""; 0]);
}

#[test]
fn thinking_config() {
    #[track_caller]
    fn check(config: &str, want: Thinking) {
        let body = with(&format!(r#""generationConfig":{{"thinkingConfig":{config}}}"#));
        assert_eq!(decode(&body).unwrap().request.thinking, want, "{config}");
    }
    let unset = Thinking::default();
    let on = Thinking { mode: ThinkingMode::On, ..unset };
    check("{}", unset);
    check(r#"{"include_thoughts":true}"#, Thinking { show: Some(true), ..unset });
    check(r#"{"thinkingLevel":"high"}"#, Thinking { effort: Some(Effort::High), ..on });
    check(r#"{"thinking_level":"MINIMAL"}"#, Thinking { effort: Some(Effort::Minimal), ..on });
    check(r#"{"thinkingBudget":8192}"#, Thinking { budget: Some(8192), ..on });
    check(r#"{"thinkingBudget":-1}"#, Thinking { budget: Some(-1), ..on });
    check(
        r#"{"thinkingBudget":0}"#,
        Thinking { mode: ThinkingMode::Off, budget: Some(0), ..unset },
    );
}

#[test]
fn output_formats() {
    #[track_caller]
    fn check(config: &str, want: &str) {
        let body = with(&format!(r#""generationConfig":{{{config}}}"#));
        let request = decode(&body).unwrap().request;
        let mut shown = match request.output {
            OutputFormat::Text => "text".to_owned(),
            OutputFormat::Json => "json".to_owned(),
            OutputFormat::JsonSchema { schema, form: SchemaForm::Gemini, .. } => {
                format!("gemini {}", schema.get())
            }
            OutputFormat::JsonSchema { schema, form: SchemaForm::JsonSchema, .. } => {
                format!("schema {}", schema.get())
            }
        };
        for (key, raw) in &request.gemini_generation {
            shown += &format!(" {key}={}", raw.get());
        }
        assert_eq!(shown, want, "{config}");
    }
    check(r#""responseMimeType":"text/plain""#, "text");
    check(r#""response_mime_type":"application/json""#, "json");
    check(
        r#""responseMimeType":"application/json","responseSchema":{"type":"OBJECT"}"#,
        r#"gemini {"type":"OBJECT"}"#,
    );
    check(
        r#""response_json_schema":{"type":"object"},"responseMimeType":"application/json""#,
        r#"schema {"type":"object"}"#,
    );
    check(r#""_responseJsonSchema":{"type":"object"}"#, r#"schema {"type":"object"}"#);
    check(
        r#""responseMimeType":"text/x.enum","responseSchema":{"enum":["a"]}"#,
        r#"text responseMimeType="text/x.enum" responseSchema={"enum":["a"]}"#,
    );
    check(
        r#""responseFormat":{"text":{"mimeType":"APPLICATION_JSON","schema":{"type":"object"}}}"#,
        r#"schema {"type":"object"}"#,
    );
    check(r#""responseFormat":{"image":{}}"#, r#"text responseFormat={"image":{}}"#);
}

#[test]
fn law5_what_means_nothing_is_named() {
    #[track_caller]
    fn check(body: &str, want: &[&str]) {
        assert_eq!(outline::losses(&decode(body).unwrap().losses), want, "{body}");
    }
    check(
        &with(r#""fancy":1,"conversation":"c""#),
        &["UnknownField fancy", "UnknownField conversation"],
    );
    check(
        &saying(r#"[{"text":"a","fancy":1},{}]"#),
        &["UnknownField contents[0].parts[0].fancy", "PartDropped contents[0].parts[1]"],
    );
    check(&saying(r#"[{"functionCall":{}}]"#), &["PartDropped contents[0].parts[0]"]);
    check(
        &saying(
            r#"[{"functionResponse":{"name":"f","response":{},"parts":[{}]},"thoughtSignature":"A"}]"#,
        ),
        &[
            "Ignored contents[0].parts[0].thoughtSignature",
            "PartDropped contents[0].parts[0].functionResponse.parts[0]",
        ],
    );
    check(
        &with(
            r#""tools":[{"functionDeclarations":[{"name":"f","parameters":{},"parametersJsonSchema":{},"behavior":"BLOCKING","x":1}]}]"#,
        ),
        &[
            "UnknownField tools[0].functionDeclarations[0].x",
            "Ignored tools[0].functionDeclarations[0].parameters",
            "Ignored tools[0].functionDeclarations[0].behavior",
        ],
    );
    check(
        &with(
            r#""generationConfig":{"candidateCount":2,"responseLogprobs":true,"thinkingConfig":{"thinkingLevel":"EXTREME","z":1}}"#,
        ),
        &[
            "UnknownField generationConfig.thinkingConfig.z",
            "Ignored generationConfig.thinkingConfig.thinkingLevel",
        ],
    );
}

#[test]
fn broken_fields_are_errors_with_their_place() {
    #[track_caller]
    fn check(body: &str, at: &str) {
        assert_eq!(decode(body).unwrap_err().at, at, "{body}");
    }
    check("nonsense", "");
    check(r#"{"contents":"a"}"#, "contents");
    check(r#"{"contents":[{"role":"alien","parts":[]}]}"#, "contents[0].role");
    check(r#"{"contents":[{"parts":5}]}"#, "contents[0].parts");
    check(&saying(r#"[{"text":5}]"#), "contents[0].parts[0].text");
    check(&saying(r#"[5]"#), "contents[0].parts[0]");
    check(
        &saying(r#"[{"text":"a","thoughtSignature":5}]"#),
        "contents[0].parts[0].thoughtSignature",
    );
    check(&saying(r#"[{"functionCall":{"args":{}}}]"#), "contents[0].parts[0].functionCall.name");
    check(&saying(r#"[{"inlineData":{}}]"#), "contents[0].parts[0].inlineData.data");
    check(
        &with(r#""tools":[{"functionDeclarations":[{}]}]"#),
        "tools[0].functionDeclarations[0].name",
    );
    check(
        &with(r#""tools":[{"functionDeclarations":[{"name":5}]}]"#),
        "tools[0].functionDeclarations[0].name",
    );
    check(&with(r#""tools":[5]"#), "tools[0]");
    check(
        &with(r#""toolConfig":{"functionCallingConfig":{"mode":"MAYBE"}}"#),
        "toolConfig.functionCallingConfig.mode",
    );
    check(&with(r#""generationConfig":{"temperature":"hot"}"#), "generationConfig.temperature");
    check(&with(r#""generationConfig":{"seed":1.5}"#), "generationConfig.seed");
    check(
        &with(r#""generationConfig":{"stopSequences":[1]}"#),
        "generationConfig.stopSequences[0]",
    );
    check(&with(r#""systemInstruction":5"#), "systemInstruction");
}

#[test]
fn r100_r101_the_native_path() {
    let sealer = Sealer::default();
    let native = |body| decode_native(body, &DecodeOptions { sealer: &sealer });
    let body = r#"{"model":"gemini-3-flash","input":"What is the weather in Tokyo?","tools":[{"functionDeclarations":
        [{"name":"get_weather","parameters":{"type":"OBJECT"}}]}],"conversation":"gemini-tool-test","stream":false}"#;
    let first = native(body).unwrap();
    assert_eq!(
        outline::turns(&first.decoded.request),
        [r#"user: "What is the weather in Tokyo?""#]
    );
    assert_eq!(first.conversation.as_deref(), Some("gemini-tool-test"));
    assert_eq!(first.decoded.request.model, "gemini-3-flash");
    assert!(first.has_tools && !first.decoded.request.stream);
    assert_eq!(outline::losses(&first.decoded.losses), [""; 0]);

    #[track_caller]
    fn check(input: &str, want: &[&str]) {
        let sealer = Sealer::default();
        let body = format!(r#"{{"model":"m","stream":true,"input":{input}}}"#);
        let native = decode_native(&body, &DecodeOptions { sealer: &sealer }).unwrap();
        assert_eq!(outline::turns(&native.decoded.request), want, "{input}");
        assert!(native.decoded.request.stream && !native.has_tools);
    }
    check(r#"{"text":"a"}"#, &[r#"user: "a""#]);
    check(r#"["a",{"text":"b"}]"#, &[r#"user: "a""#, r#"user: "b""#]);
    check(
        r#"[{"functionResponse":{"name":"f","response":{"a":1}}}]"#,
        &[r#"user: result of f json {"a":1}"#],
    );
    check(r#"{"role":"model","parts":[{"text":"a"}]}"#, &[r#"model: "a""#]);
    check(
        r#"[{"role":"user","parts":[{"text":"a"}]},{"role":"model","parts":[{"text":"b"}]}]"#,
        &[r#"user: "a""#, r#"model: "b""#],
    );
    assert_eq!(native(r#"{"input":"a"}"#).unwrap_err().at, "model");
    assert_eq!(native(r#"{"model":"m","input":5}"#).unwrap_err().at, "input");
    assert_eq!(native(r#"{"model":"m","conversation":5}"#).unwrap_err().at, "conversation");
    let named = native(r#"{"model":"m","conversation":{"id":"c"}}"#).unwrap();
    assert_eq!(named.conversation.as_deref(), Some("c"));
}

#[test]
fn counting_takes_contents_or_a_request() {
    let sealer = Sealer::default();
    let count = |body| decode_count_tokens(body, "m", &DecodeOptions { sealer: &sealer });
    let alone = count(r#"{"contents":[{"parts":[{"text":"a"}]}]}"#).unwrap();
    assert_eq!(outline::turns(&alone.request), [r#"user: "a""#]);
    let whole = count(
        r#"{"generate_content_request":{"model":"models/x","contents":[{"parts":[{"text":"a"}]}],
            "systemInstruction":{"parts":[{"text":"s"}]},"tools":[{"functionDeclarations":[{"name":"f"}]}]}}"#,
    )
    .unwrap();
    assert_eq!(outline::turns(&whole.request), [r#"user: "a""#]);
    assert_eq!((whole.request.system.len(), whole.request.tools.len()), (1, 1));
    let error = count(r#"{"generateContentRequest":{"contents":[{"parts":5}]}}"#).unwrap_err();
    assert_eq!(error.at, "generateContentRequest.contents[0].parts");
}

#[test]
fn r34_no_shape_of_input_panics() {
    let body = json!({
        "contents": [
            {"role": "user", "parts": [{"text": "a"}, {"inlineData": {"mimeType": "m", "data": "d"}}, {"fileData": {"fileUri": "u"}}]},
            {"role": "model", "parts": [{"functionCall": {"id": "i", "name": "f", "args": {"a": 1}}, "thoughtSignature": "s"},
                                        {"executableCode": {"code": "c"}}]},
            {"role": "function", "parts": [{"functionResponse": {"name": "f", "response": {"o": 1}, "parts": [{"inlineData": {"data": "d"}}]}}]}],
        "systemInstruction": {"parts": [{"text": "s"}]},
        "tools": [{"functionDeclarations": [{"name": "f", "parameters": {}}]}, {"googleSearch": {}}],
        "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["f"]}},
        "generationConfig": {"temperature": 1, "stopSequences": ["a"], "thinkingConfig": {"thinkingBudget": 1},
                             "responseFormat": {"text": {"mimeType": "APPLICATION_JSON", "schema": {}}}},
        "input": "a", "conversation": {"id": "c"}, "model": "m", "stream": true,
        "generateContentRequest": {"contents": []}
    });
    let odd =
        [json!(null), json!(true), json!(-1.5), json!("x"), json!([]), json!({}), json!([[]])];
    let sealer = Sealer::default();
    let options = DecodeOptions { sealer: &sealer };
    let all = |text: &str| {
        let native = decode_native(text, &options).is_err();
        let count = decode_count_tokens(text, "m", &options).is_err();
        decode(text).is_err() && native && count
    };
    let mut places = Vec::new();
    collect(&body, String::new(), &mut places);
    assert!(places.len() > 60);
    for place in &places {
        for value in &odd {
            let mut broken = body.clone();
            *broken.pointer_mut(place).unwrap() = value.clone();
            all(&broken.to_string());
        }
    }
    let text = body.to_string();
    for end in (0..text.len()).step_by(5) {
        assert!(all(&text[..end]));
    }
    let deep = format!(r#"{{"contents":{}1{}}}"#, "[".repeat(9999), "]".repeat(9999));
    assert!(decode(&deep).is_err());
}

fn collect(value: &Value, at: String, places: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (key, member) in members {
                collect(member, format!("{at}/{key}"), places);
            }
        }
        Value::Array(members) => {
            for (index, member) in members.iter().enumerate() {
                collect(member, format!("{at}/{index}"), places);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    places.push(at);
}
