//! What holds for every stream and every body.

use proptest::prelude::*;
use serde_json::{Value, json};
use toolgate_core::canon::{
    CallInput, Event, Failure, FailureKind, FinishReason, Media, MediaSource,
};
use toolgate_core::dialect::DecodeOptions;
use toolgate_core::json::{Raw, Text};
use toolgate_core::responses::{Echo, Stored, StoredItems, decode_request, parse_request};
use toolgate_core::seal::Sealer;
use toolgate_core::upstream::generate_content::{decode_activity, decode_grounding};

use super::{call, curious, echo_of, encode, finish, issuer, raw, signature, start};

/// A step of a conversation, to be made grammatical.
#[derive(Clone, Debug)]
enum Step {
    Text(String),
    Thought(String),
    Sign(bool, usize),
    Call(bool),
    Server(&'static str, &'static str),
    Grounding,
    Media,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        "[aé😀\"\\\\\n\u{2028}]{1,6}".prop_map(Step::Text),
        "[aé😀\"\\\\\n\u{2028}]{1,6}".prop_map(Step::Thought),
        (any::<bool>(), 0usize..12).prop_map(|(thought, len)| Step::Sign(thought, len)),
        any::<bool>().prop_map(Step::Call),
        Just(Step::Server("executableCode", r#"{"executableCode":{"code":"1+1"}}"#)),
        Just(Step::Server("codeExecutionResult", r#"{"codeExecutionResult":{"output":"2"}}"#)),
        Just(Step::Server(
            "toolCall",
            r#"{"toolCall":{"toolType":"GOOGLE_SEARCH_WEB","args":{"queries":["q"]}}}"#
        )),
        Just(Step::Server("somethingNew", r#"{"somethingNew":{}}"#)),
        Just(Step::Grounding),
        Just(Step::Media),
    ]
}

fn ends() -> impl Strategy<Value = Option<FinishReason>> {
    prop_oneof![
        Just(Some(FinishReason::Stop)),
        Just(Some(FinishReason::ToolCalls)),
        Just(Some(FinishReason::MaxTokens)),
        Just(Some(FinishReason::Blocked("SAFETY".into()))),
        Just(None),
    ]
}

fn echoes() -> impl Strategy<Value = Echo> {
    let with_issuer = || Echo { issuer: Some(issuer()), ..curious() };
    prop_oneof![
        Just(curious()),
        Just(with_issuer()),
        Just(echo_of(&json!({"model": "m", "input": "x"}))),
        Just(echo_of(&json!({"model": "m", "input": [{"type": "compaction_trigger"}]}))),
        Just(echo_of(
            &json!({"model": "m", "input": "x", "tools": [{"type": "custom", "name": "f"}]})
        )),
    ]
}

/// Events for the steps, in the grammar of `canon::Event`.
fn events<'a>(steps: &'a [Step], ids: &'a [String], end: Option<FinishReason>) -> Vec<Event<'a>> {
    let metadata = r#"{"webSearchQueries":["q"],"groundingChunks":[{"web":{"uri":"u"}}],"groundingSupports":[{"segment":{"endIndex":1,"text":"a"},"groundingChunkIndices":[0]}]}"#;
    let mut events = vec![start()];
    let mut run = (false, 0);
    for (step, id) in steps.iter().zip(ids) {
        let (event, next) = match step {
            Step::Text(text) => {
                (Event::Text(Text::new(text)), (false, text.len() + if run.0 { 0 } else { run.1 }))
            }
            Step::Thought(text) => (
                Event::Thought(Text::new(text)),
                (true, text.len() + if run.0 { run.1 } else { 0 }),
            ),
            Step::Sign(thought, len) => {
                let most = if run.0 == *thought { run.1 } else { 0 };
                let len = (*len).min(most);
                let signature = signature("sig");
                (Event::Signature { thought: *thought, len, signature }, (false, 0))
            }
            Step::Call(signed) => {
                let mut call = call(id, "f", r#"{"input":"x"}"#);
                call.signature = signed.then(|| signature("sig"));
                (Event::Call(call), (false, 0))
            }
            Step::Server(kind, part) => {
                let body = raw(part).fields().unwrap().get(kind).unwrap().clone().into_owned();
                let (kind, part) = ((*kind).into(), raw(part));
                let activity = decode_activity(kind, body, part, None);
                (Event::Server(activity), (false, 0))
            }
            Step::Grounding => (Event::Grounding(decode_grounding(raw(metadata))), (false, 0)),
            Step::Media => {
                let modifiers = vec![("thoughtSignature".into(), raw("\"s\""))];
                let media = Media {
                    mime: Some("image/png".into()),
                    source: MediaSource::Inline(Text::new("iVBO")),
                    name: None,
                    modifiers,
                };
                (Event::Media(media), (false, 0))
            }
        };
        run = next;
        events.push(event);
    }
    events.push(match end {
        Some(reason) => finish(reason),
        None => Event::Fail(Failure::new(FailureKind::Cut, "cut")),
    });
    events
}

/// Any JSON, small.
fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-z{}\"\\[é]{0,6}".prop_map(Value::from),
        Just(json!("data:image/png;base64,iVBO")),
        Just(json!("tg1.-.d.bQ.c:tga.sig")),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((name(), inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn name() -> impl Strategy<Value = String> {
    prop::sample::select(
        "type id role content call_id name namespace arguments input output status text tools \
         encrypted_content summary action actions operation result function custom format mode \
         allowed_tools image_url file_data file_url file_id filename input_audio data parameters"
            .split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>(),
    )
}

fn item() -> impl Strategy<Value = Value> {
    let kind = prop::sample::select(vec![
        "message",
        "function_call",
        "function_call_output",
        "custom_tool_call",
        "custom_tool_call_output",
        "reasoning",
        "item_reference",
        "compaction",
        "local_shell_call",
        "local_shell_call_output",
        "shell_call_output",
        "apply_patch_call",
        "apply_patch_call_output",
        "computer_call",
        "computer_call_output",
        "tool_search_call",
        "tool_search_output",
        "additional_tools",
        "image_generation_call",
        "mcp_call",
        "input_text",
        "input_image",
        "function",
        "namespace",
        "custom",
        "allowed_tools",
    ]);
    (kind, prop::collection::vec((name(), anything()), 0..6)).prop_map(|(kind, members)| {
        let mut item: serde_json::Map<String, Value> = members.into_iter().collect();
        item.insert("type".into(), kind.into());
        Value::Object(item)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Whatever Gemini says, the stream follows OpenAI's grammar, and the unary body is its end.
    #[test]
    fn law4_every_stream_is_grammatical(
        steps in prop::collection::vec(step(), 0..12),
        end in ends(),
        echo in echoes(),
    ) {
        let ids: Vec<String> = (0..steps.len()).map(|n| format!("tg{n}")).collect();
        encode(&events(&steps, &ids, end), &echo);
    }

    /// No request makes the decoder panic, and every refusal names its place.
    #[test]
    fn nothing_panics(
        items in prop::collection::vec(item(), 0..4),
        tools in prop::collection::vec(item(), 0..3),
        choice in prop_oneof![anything(), item()],
        cut in 0usize..2000,
    ) {
        let sealer = Sealer::default();
        let options = DecodeOptions { sealer: &sealer };
        let body = json!({"model": "m", "input": items, "tools": tools, "tool_choice": choice});
        let body = body.to_string();
        if let Err(bad) = decode_request(&body, &options) {
            prop_assert!(!bad.at.is_empty(), "{bad}");
        }
        let stored = Stored { items: vec![StoredItems::Input(&body)], ..Stored::default() };
        let _ = parse_request(&body).map(|parsed| parsed.decode(&stored, &options));
        let cut = body.get(..cut.min(body.len())).unwrap_or(&body);
        prop_assert_eq!(decode_request(cut, &options).is_err(), cut.len() < body.len()
            || decode_request(&body, &options).is_err());
    }
}

/// Arguments reach the request as they were written.
#[test]
fn law6_arguments_are_not_touched() {
    let arguments = r#"{"title":"a","$ref":1.50,"é":"\u00e9","z":[1e3,{"const":2}],"a":null}"#;
    let body = json!({"model": "m", "input": [
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": arguments},
    ]})
    .to_string();
    let sealer = Sealer::default();
    let decoded = decode_request(&body, &DecodeOptions { sealer: &sealer }).unwrap();
    let call = decoded.request.calls().next().unwrap();
    let CallInput::Json(input) = &call.input else { panic!("{call:?}") };
    assert_eq!(input.get(), arguments);
    let same: Raw<'_> = raw(arguments);
    assert_eq!(*input, same);
}

/// Cost grows with the body, not with its square.
#[test]
fn large_bodies_are_read_in_one_go() {
    let many = |json: &str, n: usize| vec![json; n].join(",");
    let sealer = Sealer::default();
    for items in [
        many(r#"{"type":"from_the_future","x":[1,2,3]}"#, 20_000),
        many(r#"{"type":"local_shell_call_output","id":"x","output":"y"}"#, 20_000),
        format!(
            r#"{{"role":"user","content":[{}]}}"#,
            many(r#"{"type":"hologram","of":"something that no version knows"}"#, 20_000)
        ),
        format!(
            r#"{{"type":"tool_search_output","tools":[{}]}}"#,
            many(r#"{"type":"function","name":"a"}"#, 2_000)
        ),
    ] {
        let tools = many(r#"{"type":"function","name":"f"}"#, 2_000);
        let allowed =
            many(r#"{"type":"function","name":"g"},{"type":"namespace","name":"n"}"#, 5_000);
        let body = format!(
            r#"{{"model":"m","input":[{items}],"tools":[{tools}],"tool_choice":{{"type":"allowed_tools","mode":"auto","tools":[{allowed}]}}}}"#
        );
        decode_request(&body, &DecodeOptions { sealer: &sealer }).unwrap();
    }
}
