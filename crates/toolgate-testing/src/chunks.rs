//! Chunks as Gemini might send them.

use proptest::prelude::*;
use proptest::sample::select;

/// Any JSON, mostly made of what tools take.
pub fn json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i32>().prop_map(Into::into),
        any::<f64>().prop_map(Into::into),
        "\\PC{0,6}".prop_map(Into::into),
        select(vec!["1", "true", "{\"a\":1}", "[1.0]", "PENDING"]).prop_map(Into::into),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let name = select(vec![
            "command",
            "todos",
            "content",
            "status",
            "timeout",
            "file_path",
            "input",
            "a",
            "é",
        ]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
            prop::collection::vec((name, inner), 0..4).prop_map(|members| members
                .into_iter()
                .map(|(k, v)| (k.to_owned(), v))
                .collect::<serde_json::Map<_, _>>()
                .into()),
        ]
    })
}

fn part() -> impl Strategy<Value = serde_json::Value> {
    let name = select(vec!["Bash", "Read", "TodoWrite", "bash", "default_api:Read", "other", ""]);
    let path = select(vec![
        "$.command",
        "$.todos[0].content",
        "$.todos[1]",
        "$.a['b'][2]",
        "$",
        "x",
        "$.todos[99999]",
    ]);
    let piece = (path, "\\PC{0,4}", any::<bool>(), json()).prop_map(|(path, text, more, value)| {
        if value.is_number() {
            serde_json::json!({"jsonPath": path, "numberValue": value})
        } else {
            serde_json::json!({"jsonPath": path, "stringValue": text, "willContinue": more})
        }
    });
    let call = (
        prop::option::of(name),
        prop::option::of(json()),
        prop::option::of(prop::collection::vec(piece, 0..3)),
        prop::option::of(any::<bool>()),
        prop::option::of(select(vec!["id1", "id2"])),
    )
        .prop_map(|(name, args, partial, more, id)| {
            serde_json::json!({"functionCall": {"name": name, "args": args, "partialArgs": partial, "willContinue": more, "id": id}})
        });
    let text = ("\\PC{0,8}", prop::option::of(any::<bool>()))
        .prop_map(|(text, thought)| serde_json::json!({"text": text, "thought": thought}));
    let other = select(vec![
        "executableCode",
        "toolCall",
        "inlineData",
        "fileData",
        "novel",
        "partMetadata",
    ]);
    let other = (other, json()).prop_map(|(kind, body)| match kind {
        "inlineData" | "fileData" => serde_json::json!({kind: {"data": "QQ", "fileUri": "gs://a"}}),
        _ => serde_json::json!({kind: body}),
    });
    let signature = prop::option::weighted(0.3, select(vec!["YQ==", ""]));
    (prop_oneof![3 => text, 4 => call, 1 => other], signature).prop_map(|(mut part, signature)| {
        if let Some(signature) = signature {
            part["thoughtSignature"] = signature.into();
        }
        part
    })
}

/// One chunk of an answer, good or bad.
pub fn chunk() -> impl Strategy<Value = serde_json::Value> {
    let finish = select(vec![
        "STOP",
        "STOP",
        "MAX_TOKENS",
        "SAFETY",
        "MALFORMED_FUNCTION_CALL",
        "UNEXPECTED_TOOL_CALL",
        "NEW",
        "",
    ]);
    (prop::collection::vec(part(), 0..4), prop::option::weighted(0.4, finish), any::<u16>())
        .prop_map(|(parts, finish, tokens)| {
            serde_json::json!({
                "candidates": [{"content": {"parts": parts}, "finishReason": finish}],
                "usageMetadata": {"promptTokenCount": tokens},
            })
        })
}
