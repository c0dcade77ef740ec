//! Requests.

use serde_json::{Value, json};
use toolgate_core::canon::{
    BadRequest, Effort, OutputFormat, Thinking, ThinkingMode, ToolChoice, ToolName,
};
use toolgate_core::chat::{Echo, decode_request};
use toolgate_core::dialect::{DecodeOptions, Decoded};
use toolgate_core::seal::Sealer;

use toolgate_testing::outline;

fn decode(body: &str) -> Result<Decoded<'_, Echo>, BadRequest> {
    decode_request(body, &DecodeOptions { sealer: &Sealer::default() })
}

/// A body with these messages and nothing else.
fn saying(messages: &str) -> String {
    format!(r#"{{"model":"gemini-3-pro","messages":{messages}}}"#)
}

/// A body with this beside a model and a message.
fn with(fields: &str) -> String {
    format!(r#"{{"model":"gemini-3-pro","messages":[{{"role":"user","content":"hi"}}],{fields}}}"#)
}

#[track_caller]
fn turns(messages: &str, want: &[&str]) {
    let body = saying(messages);
    let decoded = decode(&body).unwrap();
    assert_eq!(outline::turns(&decoded.request), want, "{messages}");
    assert_eq!(outline::losses(&decoded.losses), [""; 0], "{messages}");
}

#[test]
fn roles() {
    turns(r#"[{"role":"user","content":"hi"}]"#, &[r#"user: "hi""#]);
    turns(r#"[{"role":"user","content":""}]"#, &["user: nothing"]);
    turns(r#"[{"role":"assistant","content":null}]"#, &["model: nothing"]);
    turns(
        r#"[{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"refusal","refusal":"no"}]}]"#,
        &[r#"model: "a""#, r#"model: "no""#],
    );
    turns(
        r#"[{"role":"assistant","content":null,"refusal":"I will not"}]"#,
        &[r#"model: "I will not""#],
    );
}

#[test]
fn instructions_stand_where_they_were_said() {
    let body = saying(
        r#"[{"role":"system","content":"a"},{"role":"developer","content":[{"type":"text","text":"b"}]},
            {"role":"system","content":""},{"role":"user","content":"hi"},{"role":"system","content":"c"}]"#,
    );
    let decoded = decode(&body).unwrap();
    let system: Vec<_> = decoded.request.system.iter().map(|text| text.literal()).collect();
    assert_eq!(system, [r#""a""#, r#""b""#]);
    assert_eq!(outline::turns(&decoded.request), [r#"user: "hi""#, r#"instruction: "c""#]);
}

#[test]
fn r39_calls_and_results() {
    turns(
        r#"[{"role":"assistant","content":"Looking.","tool_calls":[
              {"id":"call_1","type":"function","function":{"name":"weather","arguments":"{\"city\": \"Rome\"}"}},
              {"id":"call_2","type":"custom","custom":{"name":"patch","input":"*** Begin"}}]},
            {"role":"tool","tool_call_id":"call_2","content":"done"},
            {"role":"tool","tool_call_id":"call_1","content":[{"type":"text","text":"22 °C"}]}]"#,
        &[
            r#"model: "Looking.""#,
            r#"model: call call_1 weather {"city": "Rome"}"#,
            r#"model: call call_2 patch text "*** Begin""#,
            r#"user: result call_2 "done""#,
            r#"user: result call_1 "22 °C""#,
        ],
    );
}

#[test]
fn legacy_calls_are_known_by_name() {
    turns(
        r#"[{"role":"assistant","content":null,"function_call":{"name":"weather","arguments":"{}"}},
            {"role":"function","name":"weather","content":"warm"}]"#,
        &["model: call  weather {}", r#"user: result of weather "warm""#],
    );
}

#[test]
fn r45_arguments_that_are_not_json_break_nothing() {
    #[track_caller]
    fn check(arguments: &str, want: &str, loss: bool) {
        let call = format!(r#"{{"id":"c","function":{{"name":"f","arguments":{arguments}}}}}"#);
        let body = saying(&format!(r#"[{{"role":"assistant","tool_calls":[{call}]}}]"#));
        let decoded = decode(&body).unwrap();
        assert_eq!(outline::turns(&decoded.request), [format!("model: call c f {want}")]);
        assert_eq!(decoded.losses.len(), usize::from(loss), "{:?}", decoded.losses);
    }
    check(r#""""#, "{}", false);
    check("null", "{}", false);
    check(r#"" ""#, "{}", false);
    check(r#""{\"a\":1.0}""#, r#"{"a":1.0}"#, false);
    check(r#"{"a":1}"#, r#"{"a":1}"#, false);
    check(r#""[1]""#, "[1]", false);
    check(r#""{\"a\":""#, r#"{"_raw":"{\"a\":"}"#, true);
    check(r#""plain \"words\"""#, r#"{"_raw":"plain \"words\""}"#, true);
    check(r#""{\"a\":1}{\"b\":2}""#, r#"{"_raw":"{\"a\":1}{\"b\":2}"}"#, true);
}

#[test]
fn a10_arguments_keep_words_that_schemas_use() {
    turns(
        r#"[{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":
            {"name":"todo","arguments":"{\"items\":[{\"title\":\"a\",\"format\":\"b\",\"const\":1,\"$ref\":2}]}"}}]}]"#,
        &[r#"model: call c todo {"items":[{"title":"a","format":"b","const":1,"$ref":2}]}"#],
    );
}

#[test]
fn f1_media_in_messages_and_results() {
    #[track_caller]
    fn check(part: &str, want: &str) {
        turns(
            &format!(r#"[{{"role":"user","content":[{part}]}}]"#),
            &[&format!("user: media {want}")],
        );
        turns(
            &format!(r#"[{{"role":"tool","tool_call_id":"c","content":[{part}]}}]"#),
            &[&format!("user: result c media {want}")],
        );
    }
    check(
        r#"{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBOR/w=="}}"#,
        r#"image/png inline "iVBOR/w=""#,
    );
    check(
        r#"{"type":"image_url","image_url":{"url":"data:image\/png;base64,iV\/w"}}"#,
        r#"image/png inline "iV/w""#,
    );
    check(
        r#"{"type":"image_url","image_url":"https://pictures.test/a.png"}"#,
        r#"? uri "https://pictures.test/a.png""#,
    );
    check(
        r#"{"type":"input_audio","input_audio":{"data":"UklG","format":"wav"}}"#,
        r#"audio/wav inline "UklG""#,
    );
    check(
        r#"{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,JVBE"}}"#,
        r#"application/pdf inline "JVBE" named a.pdf"#,
    );
    check(
        r#"{"type":"file","file":{"filename":"a.csv","file_data":"YSxi"}}"#,
        r#"text/csv inline "YSxi" named a.csv"#,
    );
    check(
        r#"{"type":"file","file":{"file_id":"gs://bucket/a.pdf"}}"#,
        r#"? uri "gs://bucket/a.pdf""#,
    );
}

#[test]
fn thoughts_come_first() {
    turns(
        r#"[{"role":"assistant","content":"a","reasoning_content":"hm"}]"#,
        &[r#"model: thought "hm""#, r#"model: "a""#],
    );
    turns(
        r#"[{"role":"assistant","content":"","reasoning":"hm","reasoning_content":""}]"#,
        &[r#"model: thought "hm""#],
    );
    turns(r#"[{"role":"assistant","content":"a","reasoning":{"x":1}}]"#, &[r#"model: "a""#]);
}

#[test]
fn c1_googles_own_signatures_are_taken() {
    turns(
        r#"[{"role":"assistant","content":"a","extra_content":{"google":{"thought_signature":"AB+/"}},
            "tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"},
                           "extra_content":{"google":{"thought_signature":"CD\/="}}},
                          {"id":"d","type":"function","function":{"name":"f","arguments":"{}"},
                           "extra_content":{"google":{"thought_signature":""}}}]}]"#,
        &[r#"model: "a" signed AB+/"#, "model: call c f {} signed CD/=", "model: call d f {}"],
    );
    turns(
        r#"[{"role":"assistant","content":null,"extra_content":{"google":{"thought_signature":"AB"}}}]"#,
        &[r#"model: "" signed AB"#],
    );
}

#[test]
fn c11_forged_envelopes_are_left_out() {
    let body = saying(
        r#"[{"role":"assistant","content":"a","extra_content":{"google":{"thought_signature":"tg1.-.nonsense"}},
            "tool_calls":[{"id":"c","function":{"name":"f"},"extra_content":{"google":{"thought_signature":"tg1.x"}}}]}]"#,
    );
    let decoded = decode(&body).unwrap();
    assert_eq!(outline::turns(&decoded.request), [r#"model: "a""#, "model: call c f {}"]);
    assert_eq!(
        outline::losses(&decoded.losses),
        [
            "ForeignSignature messages[0].extra_content",
            "ForeignSignature messages[0].tool_calls[0].extra_content"
        ],
    );
}

#[test]
fn what_sdks_echo_is_known() {
    turns(
        r#"[{"role":"assistant","content":"a","refusal":null,"annotations":[],"audio":null,"parsed":null,
            "function_call":null,"reasoning_details":[],"tool_calls":[{"index":0,"id":"c","type":"function",
            "function":{"name":"f","arguments":"{}","parsed_arguments":{}}}]}]"#,
        &[r#"model: "a""#, "model: call c f {}"],
    );
    let body = r#"{"model":"m","messages":[{"role":"user","content":"hi"},
        {"role":"assistant","content":"a","audio":{"id":"audio_1"}}]}"#;
    let decoded = decode(body).unwrap();
    assert_eq!(outline::losses(&decoded.losses), ["PartDropped messages[1].audio"]);
}

#[test]
fn tools_in_all_forms() {
    #[track_caller]
    fn check(fields: &str, want: &[&str]) {
        let body = with(fields);
        let decoded = decode(&body).unwrap();
        assert_eq!(outline::tools(&decoded.request), want, "{fields}");
        assert_eq!(outline::losses(&decoded.losses), [""; 0], "{fields}");
    }
    check(
        r#""tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object"},"strict":false}},
                    {"type":"function","name":"g","parameters":null}]"#,
        &[
            r#"function f JsonSchema {"type":"object"} at tools[0].function"#,
            "function g JsonSchema none at tools[1]",
        ],
    );
    check(
        r#""tools":[{"type":"custom","custom":{"name":"a"}},
            {"type":"custom","custom":{"name":"b","format":{"type":"text"}}},
            {"type":"custom","custom":{"name":"c","format":{"type":"grammar","grammar":{"syntax":"regex","definition":"a|b"}}}}]"#,
        &["freeform a free", "freeform b free", r#"freeform c "syntax: regex\na|b""#],
    );
    check(
        r#""functions":[{"name":"f","parameters":{}}]"#,
        &["function f JsonSchema {} at functions[0]"],
    );
    check(r#""web_search_options":{}"#, &[r#"WebSearch { name: "web_search" }"#]);
    check(
        r#""tools":[{"type":"web_search"},{"google_search":{}},{"urlContext":{}},{"type":"code_interpreter"}]"#,
        &[
            r#"WebSearch { name: "web_search" }"#,
            r#"WebSearch { name: "web_search" }"#,
            r#"UrlContext { name: "url_context" }"#,
            r#"CodeExecution { name: "code_execution" }"#,
        ],
    );
}

#[test]
fn r25_r26_tool_choice() {
    #[track_caller]
    fn check(fields: &str, want: &ToolChoice<'_>) {
        let body = with(fields);
        assert_eq!(&decode(&body).unwrap().request.tool_choice, want, "{fields}");
    }
    let one = |name| ToolChoice::One(ToolName::plain(name));
    check(r#""n":1"#, &ToolChoice::Unset);
    check(r#""tool_choice":null"#, &ToolChoice::Unset);
    check(r#""tool_choice":"auto""#, &ToolChoice::Auto);
    check(r#""tool_choice":"required""#, &ToolChoice::Any);
    check(r#""tool_choice":"none""#, &ToolChoice::None);
    check(r#""tool_choice":{"type":"function","function":{"name":"f"}}"#, &one("f"));
    check(r#""tool_choice":{"type":"function","name":"f"}"#, &one("f"));
    check(r#""tool_choice":{"type":"custom","custom":{"name":"p"}}"#, &one("p"));
    check(r#""function_call":"none""#, &ToolChoice::None);
    check(r#""function_call":{"name":"f"}"#, &one("f"));
    let names = vec![ToolName::plain("f"), ToolName::plain("p")];
    for (mode, required) in [("auto", false), ("required", true)] {
        check(
            &format!(
                r#""tool_choice":{{"type":"allowed_tools","allowed_tools":{{"mode":"{mode}","tools":[
                   {{"type":"function","function":{{"name":"f"}}}},{{"type":"custom","custom":{{"name":"p"}}}}]}}}}"#
            ),
            &ToolChoice::Allowed { required, names: names.clone() },
        );
    }
    check(
        r#""tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"web_search"}]}"#,
        &ToolChoice::Allowed { required: false, names: vec![ToolName::plain("web_search")] },
    );
}

#[test]
fn thinking_by_every_name() {
    #[track_caller]
    fn check(fields: &str, mode: ThinkingMode, rest: (Option<Effort>, Option<i64>, Option<bool>)) {
        let body = with(fields);
        let (effort, budget, show) = rest;
        let decoded = decode(&body).unwrap();
        assert_eq!(decoded.request.thinking, Thinking { mode, effort, budget, show }, "{fields}");
        assert_eq!(outline::losses(&decoded.losses), [""; 0], "{fields}");
    }
    use ThinkingMode::{Off, On, Unset};
    check(r#""n":1"#, Unset, (None, None, None));
    check(r#""reasoning_effort":"none""#, Off, (Some(Effort::None), None, Some(false)));
    check(r#""reasoning_effort":"xhigh""#, On, (Some(Effort::XHigh), None, Some(true)));
    check(
        r#""reasoning":{"effort":"low","exclude":true}"#,
        On,
        (Some(Effort::Low), None, Some(false)),
    );
    check(r#""thinking":{"type":"disabled"}"#, Off, (None, None, Some(false)));
    check(
        r#""thinking":{"type":"enabled","budget_tokens":2048}"#,
        On,
        (None, Some(2048), Some(true)),
    );
    check(r#""enable_thinking":false"#, Off, (None, None, Some(false)));
    check(
        r#""extra_body":{"google":{"thinking_config":{"thinking_budget":800.0,"include_thoughts":true},"thought_tag_marker":"think"}}"#,
        On,
        (None, Some(800), Some(true)),
    );
    check(
        r#""google":{"thinkingConfig":{"thinkingLevel":"HIGH","includeThoughts":false}}"#,
        On,
        (Some(Effort::High), None, Some(false)),
    );
}

#[test]
fn output_formats() {
    #[track_caller]
    fn check(format: &str, want: &str) {
        let body = with(&format!(r#""response_format":{format}"#));
        let shown = match decode(&body).unwrap().request.output {
            OutputFormat::Text => "text".to_owned(),
            OutputFormat::Json => "json".to_owned(),
            OutputFormat::JsonSchema { name, schema, .. } => {
                format!(
                    "{} {}",
                    name.map_or_else(|| "?".into(), |name| name.decode().into_owned()),
                    schema.get()
                )
            }
        };
        assert_eq!(shown, want, "{format}");
    }
    check("null", "text");
    check(r#"{"type":"text"}"#, "text");
    check(r#"{"type":"json_object"}"#, "json");
    check(
        r#"{"type":"json_schema","json_schema":{"name":"n","strict":true,"schema":{"type":"object"}}}"#,
        r#"n {"type":"object"}"#,
    );
    check(r#"{"type":"json_schema","json_schema":{"name":"n"}}"#, "json");
    check(r#"{"type":"json_object","schema":{}}"#, "? {}");
}

#[test]
fn settings() {
    let body = with(
        r#""max_tokens":1,"max_completion_tokens":2,"temperature":0,"top_p":0.5,"top_k":40,"stop":["a","b"],
           "seed":7,"presence_penalty":1,"frequency_penalty":-1,"parallel_tool_calls":false,"stream":true,
           "stream_options":{"include_usage":true,"include_obfuscation":false},
           "user":"u","store":false,"metadata":{},"prediction":{"type":"content","content":"x"},"prompt_cache_key":"k",
           "extra_body":{"google":{"cached_content":"cachedContents/a","safety_settings":[]}}"#,
    );
    let Decoded { request, echo, losses } = decode(&body).unwrap();
    let settings = &request.settings;
    assert_eq!(settings.max_output_tokens, Some(2));
    assert_eq!(
        (settings.temperature, settings.top_p, settings.top_k),
        (Some(0.0), Some(0.5), Some(40.0))
    );
    assert_eq!((settings.presence_penalty, settings.frequency_penalty), (Some(1.0), Some(-1.0)));
    assert_eq!(settings.seed, Some(7));
    assert_eq!(settings.stop.iter().map(|stop| stop.decode()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!((request.parallel_calls, request.stream), (Some(false), true));
    let copied: Vec<_> = request.gemini.iter().map(|(key, raw)| (&**key, raw.get())).collect();
    assert_eq!(copied, [("cachedContent", r#""cachedContents/a""#), ("safetySettings", "[]")]);
    assert!(echo.include_usage && !echo.legacy_functions);
    assert_eq!(echo.model, "gemini-3-pro");
    assert_eq!(outline::losses(&losses), ["Ignored prediction"]);
    // The answer has no place for probabilities: they are not asked for.
    let asked = with(r#""logprobs":true,"top_logprobs":3"#);
    let asked = decode(&asked).unwrap();
    assert_eq!(asked.request.settings.logprobs, None);
    assert_eq!(outline::losses(&asked.losses), ["Ignored logprobs"]);
    let one = with(r#""stop":"x""#);
    assert_eq!(decode(&one).unwrap().request.settings.stop.len(), 1);
}

#[test]
fn law5_what_means_nothing_is_named() {
    #[track_caller]
    fn check(body: &str, want: &[&str]) {
        assert_eq!(outline::losses(&decode(body).unwrap().losses), want, "{body}");
    }
    check(
        &with(r#""logit_bias":{"50256":-100},"verbosity":"low","n":2"#),
        &["Ignored logit_bias", "Ignored n", "Ignored verbosity"],
    );
    check(
        &with(
            r#""logit_bias":{},"verbosity":"medium","n":1,"service_tier":"auto","modalities":["text"]"#,
        ),
        &[],
    );
    check(
        &with(
            r#""logprobs":true,"top_logprobs":3,"service_tier":"flex","modalities":["text","audio"],"audio":{}"#,
        ),
        &["Ignored logprobs", "Ignored modalities", "Ignored service_tier"],
    );
    check(&with(r#""reasoning_effort":"galactic""#), &["Ignored reasoning_effort"]);
    check(&with(r#""store":true,"metadata":{"a":"b"}"#), &["Ignored store"]);
    check(&with(r#""store":false"#), &[]);
    check(
        &with(
            r#""tools":[{"type":"function","function":{"name":"f","strict":true}},
            {"type":"function","function":{"name":"g","strict":false}},
            {"type":"function","name":"h","strict":true}]"#,
        ),
        &["Ignored tools[0].function.strict", "Ignored tools[2].strict"],
    );
    check(
        &with(r#""web_search_options":{"search_context_size":"low"}"#),
        &["Ignored web_search_options"],
    );
    check(&with(r#""tools":[{"type":"hologram"}]"#), &["ToolDropped tools[0]"]);
    check(
        &with(r#""new_thing":1,"tools":[{"type":"function","function":{"name":"f","colour":2}}]"#),
        &["UnknownField new_thing", "UnknownField tools[0].function.colour"],
    );
    check(
        &saying(
            r#"[{"role":"user","name":"Ann","content":[{"type":"smell"},{"type":"text","text":"a","x":1}]}]"#,
        ),
        &[
            "Ignored messages[0].name",
            "UnknownField messages[0].content[1].x",
            "PartDropped messages[0].content[0]",
        ],
    );
    check(
        &saying(
            r#"[{"role":"user","content":[{"type":"file","file":{"file_id":"file-abc"}},
        {"type":"image_url","image_url":{"url":"https://a.test/a","detail":"high"}}]}]"#,
        ),
        &[
            "PartDropped messages[0].content[0].file.file_id",
            "Ignored messages[0].content[1].image_url.detail",
        ],
    );
}

#[test]
fn broken_fields_are_errors_with_their_place() {
    #[track_caller]
    fn check(body: &str, at: &str) {
        assert_eq!(decode(body).unwrap_err().at, at, "{body}");
    }
    check("", "");
    check("{", "");
    check("5", "");
    check(r#"{"messages":[]}"#, "model");
    check(&with(r#""n":0"#), "n");
    check(&with(r#""n":-1"#), "n");
    check(r#"{"model":"m"}"#, "messages");
    check(&saying("{}"), "messages");
    check(&saying(r#"[{"role":"user","content":5}]"#), "messages[0].content");
    check(&saying(r#"[{"role":"alien"}]"#), "messages[0].role");
    check(&saying(r#"[{"content":"x"}]"#), "messages[0].role");
    check(
        &saying(r#"[{"role":"user","content":[{"type":"text"}]}]"#),
        "messages[0].content[0].text",
    );
    check(
        &saying(r#"[{"role":"user","content":[{"type":"text","text":5}]}]"#),
        "messages[0].content[0].text",
    );
    check(
        &saying(
            r#"[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:nonsense"}}]}]"#,
        ),
        "messages[0].content[0].image_url.url",
    );
    check(&saying(r#"[{"role":"tool","content":"x"}]"#), "messages[0].tool_call_id");
    check(
        &saying(r#"[{"role":"assistant","tool_calls":[{"id":"c","type":"function"}]}]"#),
        "messages[0].tool_calls[0].function",
    );
    check(
        &saying(
            r#"[{"role":"assistant","tool_calls":[{"id":"c","function":{"arguments":"{}"}}]}]"#,
        ),
        "messages[0].tool_calls[0].function.name",
    );
    check(
        &saying(r#"[{"role":"assistant","tool_calls":[{"id":5,"function":{"name":"f"}}]}]"#),
        "messages[0].tool_calls[0].id",
    );
    check(&with(r#""temperature":"hot""#), "temperature");
    check(&with(r#""stop":5"#), "stop");
    check(&with(r#""stop":["a",5]"#), "stop[1]");
    check(&with(r#""tool_choice":"maybe""#), "tool_choice");
    check(&with(r#""tool_choice":{"type":"function"}"#), "tool_choice.function.name");
    check(&with(r#""tools":[{"type":"function","function":{}}]"#), "tools[0].function.name");
    check(&with(r#""response_format":{"type":"xml"}"#), "response_format.type");
    check(&with(r#""response_format":{"type":"json_schema"}"#), "response_format.json_schema");
}

/// A body that has about everything.
fn rich() -> Value {
    json!({
        "model": "m", "stream": true, "stream_options": {"include_usage": true},
        "messages": [
            {"role": "system", "content": [{"type": "text", "text": "s"}]},
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}]},
            {"role": "assistant", "content": "a", "reasoning_content": "r",
             "extra_content": {"google": {"thought_signature": "AA"}},
             "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}},
                            {"id": "d", "type": "custom", "custom": {"name": "g", "input": "i"}}]},
            {"role": "tool", "tool_call_id": "c", "content": "x"},
            {"role": "function", "name": "f", "content": null}],
        "tools": [{"type": "function", "function": {"name": "f", "parameters": {}}},
                  {"type": "custom", "custom": {"name": "g", "format": {"type": "grammar", "grammar": {"syntax": "lark", "definition": "d"}}}}],
        "tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "f"}}]}},
        "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {}}},
        "stop": ["a"], "temperature": 1.0, "google": {"thinking_config": {"thinking_budget": 1}}
    })
}

#[test]
fn r34_no_shape_of_input_panics() {
    let odd = [
        json!(null),
        json!(true),
        json!(-1.5),
        json!("x"),
        json!([]),
        json!({}),
        json!([[]]),
        json!({"type": "text"}),
    ];
    let body = rich();
    let mut places = Vec::new();
    collect(&body, String::new(), &mut places);
    assert!(places.len() > 80);
    for place in &places {
        for value in &odd {
            let mut broken = body.clone();
            *broken.pointer_mut(place).unwrap() = value.clone();
            let text = broken.to_string();
            let _ = decode(&text);
        }
    }
    let text = body.to_string();
    for end in (0..text.len()).step_by(5) {
        assert!(decode(&text[..end]).is_err());
    }
    let deep =
        format!(r#"[{{"role":"user","content":{}1{}}}]"#, "[".repeat(9999), "]".repeat(9999));
    assert!(decode(&saying(&deep)).is_err());
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
