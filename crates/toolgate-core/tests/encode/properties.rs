//! Every request is encoded so that Gemini accepts it, and twice to the same bytes.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use toolgate_core::canon::{
    Backend, Call, CallInput, Effort, Function, Issuer, MediaSource, OutputFormat, Part, Request,
    ResultPart, Role, SchemaForm, ServerTool, Settings, Signature, Target, Thinking, ThinkingMode,
    Tool, ToolChoice, ToolName, ToolResult, Turn,
};
use toolgate_core::json::Text;
use toolgate_core::schema::Cache;
use toolgate_core::seal::{Envelope, Sealed};
use toolgate_core::upstream::generate_content::{
    EncodeOptions, Learned, SchemaPolicy, encode_count_tokens, encode_request,
};

use crate::checker;
use crate::support::{picture, raw};

fn words() -> impl Strategy<Value = Text<'static>> {
    prop_oneof![Just(String::new()), "[a-zé\n\"😀]{0,12}"].prop_map(|words| Text::new(&words))
}

/// Few ids, so that they meet: some of ours, some changed, some foreign, some missing.
fn id() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        "[abc]",
        "(toolu|call)_tg[AB]{12}",
        Just("toolu_tgaaaaaaaaaaaa".to_owned()),
        Just("call_tgAAAAAAAAAAAA_gjl2yj5t".to_owned()),
        "[a-z/ü]{70}",
    ]
}

fn name() -> impl Strategy<Value = ToolName<'static>> {
    let namespace = option::weighted(0.2, prop_oneof![Just("ns"), Just("a b")]);
    let name = prop_oneof![
        Just("read".to_owned()),
        Just("read file".to_owned()),
        Just("ns__read".to_owned()),
        Just(String::new()),
        Just("final_answer".to_owned()),
        "[a-z]{80}",
        Just("1st".to_owned()),
    ];
    (namespace, name).prop_map(|(namespace, name)| ToolName {
        namespace: namespace.map(Into::into),
        name: name.into(),
    })
}

fn target() -> impl Strategy<Value = Target> {
    let models = [
        "gemini-2.0-flash",
        "gemini-2.5-flash",
        "gemini-2.5-pro",
        "gemini-3-flash-preview",
        "gemini-3.5-flash",
        "gemini-3.5-flash-lite",
        "gemini-3.8-flash",
        "gemini-4-argon",
    ];
    let backends = [Backend::Developer, Backend::Vertex];
    (prop::sample::select(models.to_vec()), prop::sample::select(backends.to_vec()))
        .prop_map(|(model, backend)| Target { model: model.to_owned(), backend })
}

fn signature() -> impl Strategy<Value = Signature<'static>> {
    let issuer = option::of((target(), any::<bool>()).prop_map(|(target, _)| target.issuer()));
    let value = prop_oneof!["[a-cA-C+/]{1,4}", Just("skip_thought_signature_validator".to_owned())];
    (value, issuer).prop_filter_map("empty", |(value, issuer): (String, Option<Issuer>)| {
        Signature::new(value, issuer)
    })
}

fn json() -> impl Strategy<Value = &'static str> {
    prop::sample::select(
        &["{}", "null", "[]", "5", r#"{"a":{"$ref":"x"}}"#, r#"{"error":"e"}"#, r#""text""#][..],
    )
}

fn result_part() -> impl Strategy<Value = ResultPart<'static>> {
    prop_oneof![
        words().prop_map(ResultPart::Text),
        json().prop_map(|json| ResultPart::Json(raw(json))),
        prop_oneof![Just("image/png"), Just("image/gif"), Just("")]
            .prop_map(|mime| ResultPart::Media(picture(mime, "iVBORw0KGgo="))),
        Just(ResultPart::Media(toolgate_core::canon::Media {
            source: MediaSource::Uri(Text::new("https://example.test/a.png")),
            ..picture("", "")
        })),
    ]
}

fn part() -> impl Strategy<Value = Part<'static>> {
    let call =
        (id(), name(), json(), option::of(signature())).prop_map(|(id, tool, args, signature)| {
            let input = CallInput::Json(raw(args));
            Part::Call(Call { id: id.into(), upstream_id: None, tool, input, signature })
        });
    let result = (id(), option::of(name()), any::<bool>(), vec(result_part(), 0..3)).prop_map(
        |(id, tool, is_error, content)| {
            let call_id = (!id.is_empty()).then(|| id.into());
            Part::Result(ToolResult { call_id, tool, is_error, content, modifiers: Vec::new() })
        },
    );
    let sealed = (0..5, id(), 0..9_usize, signature(), target()).prop_map(
        |(kind, token, len, signature, target)| {
            let on = match kind {
                0 => Sealed::Call { token: token.into(), signature },
                1 => Sealed::Text { len, signature },
                2 => Sealed::Thought { len, signature },
                3 => Sealed::Part(raw(r#"{"toolCall":{"id":"1"},"thoughtSignature":"YWJj"}"#)),
                _ => Sealed::Part(raw(r#"{"executableCode":{"code":"1"}}"#)),
            };
            Part::Sealed(Envelope { on, issuer: target.issuer() })
        },
    );
    let own = prop::sample::select(
        &[
            r#"{"executableCode":{"code":"1"},"thoughtSignature":"YWJj"}"#,
            r#"{"tool_call":{"id":"1"}}"#,
            r#"{"thought_signature":"YWJj"}"#,
            r#"{"text":null}"#,
            r#"{"functionCall":{"name":"x"}}"#,
            r#"{"text":"","mediaResolution":{"level":"MEDIA_RESOLUTION_LOW"}}"#,
            r#"{"text":"a","partMetadata":{}}"#,
            "[]",
        ][..],
    );
    prop_oneof![
        3 => (words(), option::of(signature()))
            .prop_map(|(text, signature)| Part::Text { text, signature }),
        1 => (words(), option::of(signature()))
            .prop_map(|(text, signature)| Part::Thought { text, signature }),
        1 => Just(Part::Media(picture("image/png", "iVBORw0KGgo="))),
        4 => call,
        4 => result,
        1 => sealed,
        1 => own.prop_map(|json| Part::Gemini(raw(json))),
    ]
}

fn turn() -> impl Strategy<Value = Turn<'static>> {
    let roles = [Role::User, Role::Model, Role::Model, Role::Instruction];
    (prop::sample::select(roles.to_vec()), vec(part(), 0..5))
        .prop_map(|(role, parts)| Turn { role, parts })
}

fn tool() -> impl Strategy<Value = Tool<'static>> {
    let schemas = ["null", "{}", r#"{"type":"object","properties":{"a":{"type":"string"}}}"#];
    prop_oneof![
        4 => (name(), prop::sample::select(schemas.to_vec()), any::<bool>()).prop_map(
            |(name, schema, deferred)| Tool::Function(Function {
                name,
                description: None,
                parameters: Some(raw(schema)),
                form: SchemaForm::JsonSchema,
                response: None,
                deferred,
                at: String::new(),
                schema_field: "parameters",
            })
        ),
        1 => name().prop_map(|name| Tool::Freeform { name, description: None, grammar: None }),
        1 => Just(Tool::Server(ServerTool::WebSearch { name: "web_search".into() })),
    ]
}

fn choice() -> impl Strategy<Value = ToolChoice<'static>> {
    prop_oneof![
        Just(ToolChoice::Unset),
        Just(ToolChoice::Auto),
        Just(ToolChoice::Any),
        Just(ToolChoice::None),
        name().prop_map(ToolChoice::One),
        (any::<bool>(), vec(name(), 0..3))
            .prop_map(|(required, names)| ToolChoice::Allowed { required, names }),
    ]
}

fn output() -> impl Strategy<Value = OutputFormat<'static>> {
    let schemas =
        [r#"{"type":"object","properties":{"a":{"type":"string"}}}"#, r#"{"type":"array"}"#];
    prop_oneof![
        3 => Just(OutputFormat::Text),
        1 => Just(OutputFormat::Json),
        1 => prop::sample::select(schemas.to_vec()).prop_map(|schema| OutputFormat::JsonSchema {
            name: None,
            description: None,
            schema: raw(schema),
            form: SchemaForm::JsonSchema,
        }),
    ]
}

fn settings() -> impl Strategy<Value = (Settings<'static>, Thinking)> {
    let efforts = [Effort::None, Effort::Minimal, Effort::Low, Effort::High, Effort::Max];
    let modes = [ThinkingMode::Unset, ThinkingMode::Off, ThinkingMode::On];
    (
        option::of(1..200_000_i64),
        option::of(-9.0..9.0_f64),
        vec(words(), 0..8),
        option::of(any::<i64>()),
        option::of(0..4_i64),
        prop::sample::select(modes.to_vec()),
        option::of(prop::sample::select(efforts.to_vec())),
        option::of(-1..40_000_i64),
        option::of(any::<bool>()),
    )
        .prop_map(|(tokens, heat, stop, seed, count, mode, effort, budget, show)| {
            let settings = Settings {
                max_output_tokens: tokens,
                temperature: heat,
                top_p: heat,
                stop,
                seed,
                candidates: count,
                logprobs: count,
                ..Settings::default()
            };
            (settings, Thinking { mode, effort, budget, show })
        })
}

fn request() -> impl Strategy<Value = Request<'static>> {
    (vec(turn(), 0..8), vec(tool(), 0..6), choice(), output(), settings(), vec(words(), 0..2))
        .prop_map(|(turns, tools, tool_choice, output, (settings, thinking), system)| Request {
            turns,
            tools,
            tool_choice,
            output,
            settings,
            thinking,
            system,
            ..Request::default()
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn law7_any_request_is_encoded_by_the_rules_and_always_the_same(
        request in request(),
        target in target(),
        no_ids in any::<bool>(),
    ) {
        let cache = Cache::default();
        let options = EncodeOptions::new(&cache);
        let Ok(encoded) = encode_request(&request, &target, &options) else { return Ok(()) };
        let body: serde_json::Value = serde_json::from_slice(&encoded.body).expect("JSON");
        if let Err(broken) = checker::check(&body, &target) {
            let sent = String::from_utf8_lossy(&encoded.body);
            return Err(TestCaseError::fail(format!("{broken}\n{sent}")));
        }
        let again = encode_request(&request, &target, &options).expect("it did before");
        prop_assert_eq!(&encoded.body, &again.body);
        prop_assert_eq!(&encoded.losses, &again.losses);

        // Placing first, or leaving it to the encoder, is the same.
        let mut placed = request.clone();
        placed.place_signatures();
        let placed = encode_request(&placed, &target, &options).expect("it did before");
        prop_assert_eq!(&encoded.body, &placed.body);

        // Other options do not break anything either.
        let learned = Learned { no_call_ids: no_ids, no_mixed_tools: true, ..Learned::default() };
        let options = EncodeOptions {
            strict: true,
            tools_enabled: no_ids,
            schema: SchemaPolicy::Parameters,
            learned: &learned,
            ..options
        };
        if let Ok(encoded) = encode_count_tokens(&request, &target, &options) {
            prop_assert!(serde_json::from_slice::<serde_json::Value>(&encoded.body).is_ok());
        }
    }
}
