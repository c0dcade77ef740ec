//! Every input gets an answer, and the same one each time.

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use toolgate_validate::{AnySignature, Method, check_request};

use super::*;

/// Field names and keywords, so that some values pass the first stage.
const NAMES: [&str; 36] = [
    "contents",
    "parts",
    "text",
    "role",
    "functionCall",
    "functionResponse",
    "name",
    "args",
    "response",
    "id",
    "thoughtSignature",
    "tools",
    "functionDeclarations",
    "parameters",
    "parametersJsonSchema",
    "type",
    "properties",
    "items",
    "anyOf",
    "enum",
    "required",
    "$ref",
    "$defs",
    "maxItems",
    "toolConfig",
    "functionCallingConfig",
    "mode",
    "allowed_function_names",
    "generationConfig",
    "thinkingConfig",
    "thinkingBudget",
    "inlineData",
    "data",
    "default",
    "propertyOrdering",
    "x",
];

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-3.0..3.0_f64).prop_map(Value::from),
        proptest::sample::select(
            &[
                "user",
                "model",
                "object",
                "STRING",
                "array",
                "a",
                "",
                "#/$defs/x",
                "#",
                "AAAA",
                "ANY"
            ][..]
        )
        .prop_map(Value::from),
        "[a-z0-9é _/-]{0,12}".prop_map(Value::from),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(10, 120, 6, |inner| {
        let member = (proptest::sample::select(&NAMES[..]), inner.clone());
        prop_oneof![
            proptest::collection::vec(inner, 0..4).prop_map(Value::from),
            proptest::collection::vec(member, 0..5).prop_map(|members| {
                let members = members.into_iter().map(|(name, value)| (name.to_owned(), value));
                Value::Object(members.collect::<Map<_, _>>())
            }),
        ]
    })
}

proptest! {
    #[test]
    fn any_json_gets_an_answer(body in value(), schema in value(), part in value()) {
        let talk = json!({"contents": [
            {"role": "user", "parts": [{"text": "Hi"}]},
            {"role": "model", "parts": [part]},
            {"role": "user", "parts": [part]},
        ]});
        for body in [body, with_parameters(schema.clone()), with_json_schema(schema), talk] {
            for target in [target("gemini-2.5-flash"), target(NEW), vertex(NEW)] {
                for method in [Method::Generate, Method::CountTokens] {
                    let ask = || {
                        let got = check_request(body.to_string().as_bytes(), &target, method, &AnySignature);
                        got.map(|accepted| accepted.counts).map_err(|error| error.to_body())
                    };
                    prop_assert_eq!(ask(), ask());
                }
            }
        }
    }

    #[test]
    fn any_bytes_get_an_answer(body in proptest::collection::vec(any::<u8>(), 0..200), text in "[{}\\[\\]\",:a-z0-9\\\\ ]{0,80}") {
        for body in [body, text.into_bytes()] {
            let _ = check_request(&body, &target(NEW), Method::Generate, &AnySignature);
        }
    }
}
