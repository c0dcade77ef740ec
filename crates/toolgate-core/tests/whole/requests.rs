//! Every request is either encoded so that Google accepts it, or refused with a reason.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};
use toolgate_core::canon::{Backend, Issuer, Signature, Target};
use toolgate_core::json::Raw;
use toolgate_core::schema::Cache;
use toolgate_core::seal::{Envelope, Sealed, Sealer};
use toolgate_core::translate::Dialect;
use toolgate_core::upstream::generate_content::{
    EncodeOptions, encode_count_tokens, encode_request,
};
use toolgate_validate::{AnySignature, Method, check_request};

use toolgate_testing::pipeline::{self, DIALECTS};
use toolgate_testing::schemas::schema;

/// One message of a client, in no dialect.
#[derive(Clone, Debug)]
enum Said {
    User(Vec<Piece>),
    Model(Vec<Piece>),
    Instruction(String),
}

#[derive(Clone, Debug)]
enum Piece {
    Text(String),
    Thought(String, Option<String>),
    Picture(&'static str),
    Call { id: String, name: String, args: Value, carried: Option<String> },
    Result { id: String, name: String, content: Vec<Self>, is_error: bool },
    Carrier(String),
}

fn words() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), "[a-zé\n\"😀\u{2028}]{0,12}"]
}

/// Few, so that they meet.
fn id() -> impl Strategy<Value = String> {
    let ids =
        ["a", "b", "toolu_tgAAAAAAAAAAAA", "call_tgAAAAAAAAAAAA_gjl2yj5t", "x/y ü", "toolu_01-ab"];
    prop_oneof![4 => select(ids.to_vec()).prop_map(str::to_owned), 1 => "[a-z]{70}"]
}

fn name() -> impl Strategy<Value = String> {
    let names =
        ["read", "read file", "a/b", "a b", "1st", "final_answer", "default_api:x", "web_search"];
    prop_oneof![6 => select(names.to_vec()).prop_map(str::to_owned), 1 => "[a-z]{80}"]
}

fn target() -> impl Strategy<Value = Target> {
    let models = [
        "gemini-2.0-flash",
        "gemini-2.5-flash",
        "gemini-3-flash-preview",
        "gemini-3.5-flash",
        "gemini-3.6-flash",
        "gemini-3.8-flash",
    ];
    (select(models.to_vec()), select(&[Backend::Developer, Backend::Vertex][..]))
        .prop_map(|(model, backend)| Target { model: model.to_owned(), backend })
}

/// Envelopes of ours, things of other vendors, and rubbish.
fn carrier() -> impl Strategy<Value = String> {
    let ours = (0..5, id(), 0..9_usize, target()).prop_map(|(kind, id, len, target)| {
        let issuer = Issuer { model: target.model, backend: target.backend };
        let signature = Signature::new("c2lnbmVk", Some(issuer.clone())).unwrap();
        let token = toolgate_core::canon::call_token(&id).to_owned().into();
        let raw = |json: &str| Raw::parse(json.to_owned()).unwrap();
        let on = match kind {
            0 => Sealed::Call { token, signature },
            1 => Sealed::Text { len, signature },
            2 => Sealed::Thought { len, signature },
            3 => Sealed::Part(raw(r#"{"toolCall":{"id":"1","toolType":"GOOGLE_SEARCH_WEB"},"thoughtSignature":"YWJj"}"#)),
            _ => Sealed::Part(raw(r#"{"executableCode":{"code":"1","language":"PYTHON"}}"#)),
        };
        Sealer::default().seal(&Envelope { on, issuer })
    });
    prop_oneof![4 => ours, 1 => Just("EqQBCgIYAhIM".to_owned()), 1 => Just("tg1.rubbish".to_owned()), 1 => Just(String::new())]
}

fn args() -> impl Strategy<Value = Value> {
    let values = [
        json!({}),
        json!({"path": "a", "title": {"$ref": 1.5}}),
        json!({"": null, "ü": [1, "2", {}]}),
    ];
    select(values.to_vec())
}

fn result_piece() -> impl Strategy<Value = Piece> {
    prop_oneof![
        3 => words().prop_map(Piece::Text),
        1 => select(&["image/png", "image/gif", "application/pdf"][..]).prop_map(Piece::Picture),
    ]
}

fn model_piece() -> impl Strategy<Value = Piece> {
    prop_oneof![
        2 => words().prop_map(Piece::Text),
        2 => (words(), option::of(carrier())).prop_map(|(text, signature)| Piece::Thought(text, signature)),
        1 => carrier().prop_map(Piece::Carrier),
        4 => (id(), name(), args(), option::weighted(0.3, carrier()))
            .prop_map(|(id, name, args, carried)| Piece::Call { id, name, args, carried }),
    ]
}

fn user_piece() -> impl Strategy<Value = Piece> {
    prop_oneof![
        2 => words().prop_map(Piece::Text),
        1 => select(&["image/png", "application/pdf"][..]).prop_map(Piece::Picture),
        4 => (id(), name(), vec(result_piece(), 0..3), any::<bool>())
            .prop_map(|(id, name, content, is_error)| Piece::Result { id, name, content, is_error }),
    ]
}

fn said() -> impl Strategy<Value = Said> {
    prop_oneof![
        4 => vec(user_piece(), 0..4).prop_map(Said::User),
        4 => vec(model_piece(), 0..5).prop_map(Said::Model),
        1 => words().prop_map(Said::Instruction),
    ]
}

/// Tools as names and schemas.
fn tools() -> impl Strategy<Value = Vec<(String, Value)>> {
    let known = select(vec![
        json!({"type": "object", "properties": {"path": {"type": "string"}}}),
        json!({}),
        json!(null),
        json!({"type": "string"}),
    ]);
    vec((name(), prop_oneof![2 => known, 1 => schema()]), 0..5)
}

fn picture(mime: &str) -> String {
    format!("data:{mime};base64,iVBORw0KGgo=")
}

fn anthropic_piece(piece: &Piece) -> Value {
    match piece {
        Piece::Text(text) => json!({"type": "text", "text": text}),
        Piece::Thought(text, signature) => {
            let signature = signature.clone().unwrap_or_default();
            json!({"type": "thinking", "thinking": text, "signature": signature})
        }
        Piece::Picture(mime) => {
            let kind = if *mime == "application/pdf" { "document" } else { "image" };
            let source = json!({"type": "base64", "media_type": mime, "data": "iVBORw0KGgo="});
            json!({"type": kind, "source": source})
        }
        Piece::Call { id, name, args, .. } => {
            json!({"type": "tool_use", "id": id, "name": name, "input": args})
        }
        Piece::Result { id, content, is_error, .. } => {
            let content: Vec<Value> = content.iter().map(anthropic_piece).collect();
            json!({"type": "tool_result", "tool_use_id": id, "content": content, "is_error": is_error})
        }
        Piece::Carrier(data) => json!({"type": "redacted_thinking", "data": data}),
    }
}

fn anthropic(conversation: &[Said], tools: &[(String, Value)]) -> Value {
    let messages = conversation.iter().map(|said| match said {
        Said::User(pieces) => {
            let content: Vec<Value> = pieces.iter().map(anthropic_piece).collect();
            json!({"role": "user", "content": content})
        }
        Said::Model(pieces) => {
            let content: Vec<Value> = pieces.iter().map(anthropic_piece).collect();
            json!({"role": "assistant", "content": content})
        }
        Said::Instruction(words) => json!({"role": "system", "content": words}),
    });
    let tools = tools.iter().map(|(name, schema)| json!({"name": name, "input_schema": schema}));
    json!({
        "model": "claude-sonnet-4-5",
        "max_tokens": 100,
        "messages": messages.collect::<Vec<_>>(),
        "tools": tools.collect::<Vec<_>>(),
    })
}

fn responses(conversation: &[Said], tools: &[(String, Value)]) -> Value {
    let content = |pieces: &[Piece]| -> Vec<Value> {
        let part = |piece: &Piece| match piece {
            Piece::Text(text) => Some(json!({"type": "input_text", "text": text})),
            Piece::Picture(mime) => {
                Some(json!({"type": "input_image", "image_url": picture(mime), "detail": "auto"}))
            }
            _ => None,
        };
        pieces.iter().filter_map(part).collect()
    };
    let mut input = Vec::new();
    for said in conversation {
        match said {
            Said::Instruction(words) => input.push(json!({"role": "developer", "content": words})),
            Said::User(pieces) => {
                for piece in pieces {
                    input.push(match piece {
                        Piece::Result { id, content: said, .. } => {
                            json!({"type": "function_call_output", "call_id": id, "output": content(said)})
                        }
                        other => {
                            json!({"type": "message", "role": "user", "content": content(std::slice::from_ref(other))})
                        }
                    });
                }
            }
            Said::Model(pieces) => {
                for piece in pieces {
                    input.push(match piece {
                        Piece::Call { id, name, args, .. } => {
                            json!({"type": "function_call", "call_id": id, "name": name, "arguments": args.to_string()})
                        }
                        Piece::Thought(text, signature) => {
                            json!({"type": "reasoning", "summary": [{"type": "summary_text", "text": text}], "encrypted_content": signature})
                        }
                        Piece::Carrier(data) => {
                            json!({"type": "reasoning", "summary": [], "encrypted_content": data})
                        }
                        Piece::Text(text) => {
                            json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]})
                        }
                        Piece::Picture(_) | Piece::Result { .. } => continue,
                    });
                }
            }
        }
    }
    let tools = tools
        .iter()
        .map(|(name, schema)| json!({"type": "function", "name": name, "parameters": schema}));
    json!({"model": "gpt-5.1", "input": input, "tools": tools.collect::<Vec<_>>()})
}

fn chat(conversation: &[Said], tools: &[(String, Value)]) -> Value {
    let carried = |value: &str| json!({"google": {"thought_signature": value}});
    let parts = |pieces: &[Piece]| -> Vec<Value> {
        let part = |piece: &Piece| match piece {
            Piece::Text(text) => Some(json!({"type": "text", "text": text})),
            Piece::Picture(mime) => {
                Some(json!({"type": "image_url", "image_url": {"url": picture(mime)}}))
            }
            _ => None,
        };
        pieces.iter().filter_map(part).collect()
    };
    let mut messages = Vec::new();
    for said in conversation {
        match said {
            Said::Instruction(words) => {
                messages.push(json!({"role": "developer", "content": words}))
            }
            Said::User(pieces) => {
                for piece in pieces {
                    messages.push(match piece {
                        Piece::Result { id, content, .. } => {
                            json!({"role": "tool", "tool_call_id": id, "content": parts(content)})
                        }
                        other => {
                            json!({"role": "user", "content": parts(std::slice::from_ref(other))})
                        }
                    });
                }
            }
            Said::Model(pieces) => {
                let mut message = json!({"role": "assistant", "content": null});
                for piece in pieces {
                    match piece {
                        Piece::Text(text) => message["content"] = Value::from(text.as_str()),
                        Piece::Thought(text, _) => {
                            message["reasoning_content"] = Value::from(text.as_str())
                        }
                        Piece::Carrier(data) => message["extra_content"] = carried(data),
                        Piece::Call { id, name, args, carried: value } => {
                            let function = json!({"name": name, "arguments": args.to_string()});
                            let mut call =
                                json!({"id": id, "type": "function", "function": function});
                            if let Some(value) = value {
                                call["extra_content"] = carried(value);
                            }
                            if message["tool_calls"].is_null() {
                                message["tool_calls"] = json!([]);
                            }
                            message["tool_calls"].as_array_mut().unwrap().push(call);
                        }
                        Piece::Picture(_) | Piece::Result { .. } => {}
                    }
                }
                messages.push(message);
            }
        }
    }
    let tools = tools.iter().map(|(name, schema)| {
        json!({"type": "function", "function": {"name": name, "parameters": schema}})
    });
    json!({"model": "gpt-5.1", "messages": messages, "tools": tools.collect::<Vec<_>>()})
}

fn gemini(conversation: &[Said], tools: &[(String, Value)]) -> Value {
    let part = |piece: &Piece| match piece {
        Piece::Text(text) => json!({"text": text}),
        Piece::Thought(text, signature) => {
            json!({"text": text, "thought": true, "thoughtSignature": signature.as_ref().map(|_| "YWJj")})
        }
        Piece::Picture(mime) => json!({"inlineData": {"mimeType": mime, "data": "iVBORw0KGgo="}}),
        Piece::Call { id, name, args, carried } => json!({
            "functionCall": {"id": id, "name": name, "args": args},
            "thoughtSignature": carried.as_ref().map(|_| "YWJj"),
        }),
        Piece::Result { id, name, is_error, content } => {
            let key = if *is_error { "error" } else { "output" };
            let mut response = json!({"name": name, "response": {key: format!("{content:?}")}});
            if id.len() > 1 {
                response["id"] = Value::from(id.as_str());
            }
            json!({"function_response": response})
        }
        Piece::Carrier(data) => {
            json!({"thoughtSignature": if data.len() % 2 == 0 { "YWJj" } else { "a" }})
        }
    };
    let contents = conversation.iter().map(|said| match said {
        Said::User(pieces) => {
            json!({"role": "user", "parts": pieces.iter().map(part).collect::<Vec<_>>()})
        }
        Said::Model(pieces) => {
            json!({"role": "model", "parts": pieces.iter().map(part).collect::<Vec<_>>()})
        }
        Said::Instruction(words) => json!({"role": "user", "parts": {"text": words}}),
    });
    let tools = tools.iter().enumerate().map(|(at, (name, schema))| {
        let key = if at.is_multiple_of(2) { "parametersJsonSchema" } else { "parameters" };
        json!({"name": name, key: schema})
    });
    let tools = json!([{"functionDeclarations": tools.collect::<Vec<_>>()}]);
    json!({"contents": contents.collect::<Vec<_>>(), "tools": tools})
}

/// Further members of a request: tool choice, thinking, form of the answer, settings.
fn extras(dialect: Dialect) -> BoxedStrategy<Vec<(&'static str, Value)>> {
    let of = |rows: Vec<(&'static str, Vec<Value>)>| {
        let rows: Vec<_> = rows
            .into_iter()
            .map(|(name, values)| {
                option::weighted(0.3, select(values)).prop_map(move |it| (name, it))
            })
            .collect();
        rows.prop_map(|rows| {
            rows.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
        })
        .boxed()
    };
    let schema = json!({"type": "object", "properties": {"a": {"type": "string", "const": "x"}}, "required": ["a"]});
    match dialect {
        Dialect::Anthropic => of(vec![
            (
                "tool_choice",
                vec![
                    json!({"type": "auto", "disable_parallel_tool_use": true}),
                    json!({"type": "any"}),
                    json!({"type": "none"}),
                    json!({"type": "tool", "name": "read"}),
                    json!({"type": "tool", "name": "web_search"}),
                ],
            ),
            (
                "thinking",
                vec![
                    json!({"type": "adaptive"}),
                    json!({"type": "enabled", "budget_tokens": 1024}),
                    json!({"type": "enabled", "budget_tokens": 90000}),
                    json!({"type": "disabled"}),
                ],
            ),
            (
                "output_config",
                vec![
                    json!({"effort": "max"}),
                    json!({"format": {"type": "json_schema", "schema": schema}}),
                ],
            ),
            ("stop_sequences", vec![json!(["a", "", "b", "c", "d", "e", "f"])]),
            ("temperature", vec![json!(0), json!(1)]),
            ("top_k", vec![json!(5)]),
            ("system", vec![json!("Be kind."), json!([{"type": "text", "text": ""}])]),
        ]),
        Dialect::Responses => of(vec![
            (
                "tool_choice",
                vec![
                    json!("required"),
                    json!("none"),
                    json!({"type": "function", "name": "read"}),
                    json!({"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "read"}]}),
                ],
            ),
            (
                "reasoning",
                vec![
                    json!({"effort": "xhigh", "summary": "auto"}),
                    json!({"effort": "none"}),
                    json!({"effort": "minimal"}),
                ],
            ),
            (
                "text",
                vec![
                    json!({"format": {"type": "json_schema", "name": "x", "schema": schema}}),
                    json!({"format": {"type": "json_object"}}),
                ],
            ),
            ("parallel_tool_calls", vec![json!(false)]),
            ("instructions", vec![json!("Be kind."), json!("")]),
            ("top_logprobs", vec![json!(3)]),
        ]),
        Dialect::Chat => of(vec![
            (
                "tool_choice",
                vec![
                    json!("required"),
                    json!("none"),
                    json!({"type": "function", "function": {"name": "read"}}),
                ],
            ),
            ("reasoning_effort", vec![json!("high"), json!("none"), json!("minimal")]),
            (
                "response_format",
                vec![
                    json!({"type": "json_object"}),
                    json!({"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}),
                ],
            ),
            ("stop", vec![json!("x"), json!(["a", "b"])]),
            ("n", vec![json!(1), json!(2)]),
            ("presence_penalty", vec![json!(1.5)]),
            ("logprobs", vec![json!(true)]),
            ("seed", vec![json!(5), json!(9_999_999_999_i64)]),
        ]),
        Dialect::Gemini => of(vec![
            (
                "toolConfig",
                vec![
                    json!({"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["read"]}}),
                    json!({"function_calling_config": {"mode": "auto"}}),
                    json!({"functionCallingConfig": {"mode": "VALIDATED"}}),
                ],
            ),
            (
                "generationConfig",
                vec![
                    json!({"thinkingConfig": {"thinkingBudget": 0}}),
                    json!({"thinkingConfig": {"thinkingLevel": "low", "include_thoughts": true}}),
                    json!({"responseMimeType": "application/json", "responseSchema": {"type": "OBJECT"}}),
                    json!({"candidateCount": 2, "topK": 4}),
                ],
            ),
            (
                "systemInstruction",
                vec![json!({"role": "system", "parts": [{"text": "Be kind."}]}), json!("x")],
            ),
            ("safetySettings", vec![json!([])]),
        ]),
    }
}

fn with_extras(
    mut body: Value,
    extras: Vec<(&'static str, Value)>,
    search: bool,
    dialect: Dialect,
) -> String {
    for (name, value) in extras {
        body[name] = value;
    }
    if search {
        let tool = match dialect {
            Dialect::Anthropic => json!({"type": "web_search_20250305", "name": "web_search"}),
            Dialect::Responses => json!({"type": "web_search"}),
            Dialect::Chat => {
                json!({"type": "custom", "custom": {"name": "free", "format": {"type": "text"}}})
            }
            Dialect::Gemini => json!({"google_search": {}}),
        };
        body["tools"].as_array_mut().unwrap().push(tool);
    }
    body.to_string()
}

/// Reads the body and sends it to every target.
pub(crate) fn check(dialect: Dialect, body: &str) -> Result<(), TestCaseError> {
    let Ok(mut decoded) = pipeline::decode(dialect, body, &Sealer::default()) else {
        return Ok(());
    };
    decoded.request.place_signatures();
    let cache = Cache::default();
    let options = EncodeOptions::new(&cache);
    for model in [
        "gemini-2.0-flash",
        "gemini-2.5-flash",
        "gemini-3-flash-preview",
        "gemini-3.5-flash",
        "gemini-3.6-flash",
        "gemini-3.8-flash",
    ] {
        for backend in [Backend::Developer, Backend::Vertex] {
            let target = Target { model: model.to_owned(), backend };
            let refused = |method: Method, body: &[u8]| match check_request(
                body,
                &target,
                method,
                &AnySignature,
            ) {
                Ok(accepted) if accepted.mismatch.is_some() => {
                    Some(format!("{:?}", accepted.mismatch))
                }
                Ok(_) => None,
                Err(error) => Some(error.message),
            };
            if let Ok(encoded) = encode_request(&decoded.request, &target, &options)
                && let Some(why) = refused(Method::Stream, &encoded.body)
            {
                let sent = String::from_utf8_lossy(&encoded.body);
                return Err(TestCaseError::fail(format!(
                    "{target:?}: {why}\nsent {sent}\nasked {body}"
                )));
            }
            if let Ok(encoded) = encode_count_tokens(&decoded.request, &target, &options)
                && let Some(why) = refused(Method::CountTokens, &encoded.body)
            {
                let sent = String::from_utf8_lossy(&encoded.body);
                return Err(TestCaseError::fail(format!("count {target:?}: {why}\nsent {sent}")));
            }
        }
    }
    Ok(())
}

fn any_extras() -> impl Strategy<Value = [Vec<(&'static str, Value)>; 4]> {
    let [a, b, c, d] = DIALECTS.map(extras);
    (a, b, c, d).prop_map(|(a, b, c, d)| [a, b, c, d])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, max_shrink_iters: 2000, ..ProptestConfig::default() })]

    #[test]
    fn r49_google_takes_whatever_a_client_sends(
        conversation in vec(said(), 0..6),
        tools in tools(),
        extras in any_extras(),
        search in any::<bool>(),
    ) {
        for (dialect, extras) in DIALECTS.into_iter().zip(extras) {
            let body = match dialect {
                Dialect::Anthropic => anthropic(&conversation, &tools),
                Dialect::Responses => responses(&conversation, &tools),
                Dialect::Chat => chat(&conversation, &tools),
                Dialect::Gemini => gemini(&conversation, &tools),
            };
            check(dialect, &with_extras(body, extras, search, dialect))?;
        }
    }

    /// A9: each tool by itself, and a bad one beside good ones.
    #[test]
    fn a9_google_takes_whatever_a_tool_declares(schemas in vec(schema(), 1..4)) {
        let tools: Vec<_> =
            schemas.into_iter().enumerate().map(|(at, schema)| (format!("tool_{at}"), schema)).collect();
        let conversation = [Said::User(vec![Piece::Text("Hi.".to_owned())])];
        check(Dialect::Anthropic, &anthropic(&conversation, &tools).to_string())?;
        check(Dialect::Gemini, &gemini(&conversation, &tools).to_string())?;
    }
}
