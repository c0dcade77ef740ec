//! Laws 3 and 4: whatever the bytes and however they are cut, the events are the same and follow
//! the grammar (`decode` holds every event against it).

use proptest::prelude::*;
use proptest::sample::select;

use toolgate_testing::chunks::{chunk, json};
use toolgate_testing::decoding::{decode, exchange, exchange_of};

fn config() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::default() }
}

/// Pieces of streams, good and bad.
fn scraps() -> impl Strategy<Value = String> {
    let scrap = select(vec![
        "data: ",
        "data:",
        "\r\n",
        "\n",
        "\r",
        "\n\n",
        "\u{feff}",
        ": x",
        "event: y",
        "{",
        "}",
        "[",
        "]",
        ",",
        "\"",
        "\\",
        "é",
        "😀",
        "[DONE]",
        "null",
        "{}",
        "{\"error\":{\"code\":429}}",
        "{\"error\":",
        "{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a\"}]}}]}",
        "{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"\",\"thoughtSignature\":\"YQ\"}]},\"finishReason\":\"STOP\"}]}",
        "{\"candidates\":[{\"content\":{\"parts\":[{\"functionCall\":{\"name\":\"Bash\"}}]},\"finishReason\":\"STOP\"}]}",
        "{\"usageMetadata\":{\"promptTokenCount\":1}}",
        "{\"promptFeedback\":{\"blockReason\":\"SAFETY\"}}",
        "<html>",
    ]);
    prop::collection::vec(scrap, 0..24).prop_map(|scraps| scraps.concat())
}

/// Schemas that mean something.
fn schema() -> impl Strategy<Value = serde_json::Value> {
    use serde_json::json;
    let name = || select(vec!["command", "content", "status", "a"]);
    let kind =
        select(vec!["string", "integer", "number", "boolean", "array", "object", "null", "STRING"]);
    let leaf = prop_oneof![
        (kind.clone(), prop::option::weighted(0.2, -3i64..9)).prop_map(
            |(kind, bound)| match bound {
                Some(bound) =>
                    json!({"type": kind, "minimum": bound, "maxLength": 3, "maxItems": 2}),
                None => json!({"type": kind}),
            }
        ),
        (kind.clone(), kind).prop_map(|(a, b)| json!({"type": [a, b]})),
        Just(json!({"enum": ["pending", "DONE", 1, true]})),
        Just(json!({"type": "string", "enum": ["pending", "x"], "default": "x"})),
        Just(json!({"$ref": "#/$defs/self"})),
        Just(json!({"type": "integer", "default": 5, "nullable": true})),
        any::<bool>().prop_map(Into::into),
    ];
    leaf.prop_recursive(3, 16, 3, move |inner| {
        prop_oneof![
            inner.clone().prop_map(|items| json!({"type": "array", "items": items})),
            (prop::collection::vec((name(), inner.clone()), 0..4), prop::collection::vec(name(), 0..2), any::<bool>())
                .prop_map(|(members, required, open)| {
                    let members: serde_json::Map<_, _> = members.into_iter().map(|(k, v)| (k.to_owned(), v)).collect();
                    json!({"type": "object", "properties": members, "required": required, "additionalProperties": open})
                }),
            prop::collection::vec(inner.clone(), 1..3).prop_map(|any| json!({"anyOf": any})),
            prop::collection::vec(inner, 1..3).prop_map(|all| json!({"allOf": all})),
        ]
    })
}

/// Cut anywhere, the events stay the same.
fn check(bytes: &[u8], cuts: &[prop::sample::Index]) -> Result<(), TestCaseError> {
    let exchange = exchange();
    let whole = decode(&exchange, &[bytes]).events;
    let mut ends: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    ends.extend([0, bytes.len()]);
    ends.sort_unstable();
    let pieces: Vec<&[u8]> = ends.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
    prop_assert_eq!(decode(&exchange, &pieces).events, whole);
    Ok(())
}

fn cuts() -> impl Strategy<Value = Vec<prop::sample::Index>> {
    prop::collection::vec(any::<prop::sample::Index>(), 0..6)
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn law4_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200), cuts in cuts()) {
        check(&bytes, &cuts)?;
    }

    #[test]
    fn law4_any_scraps(text in scraps(), cuts in cuts()) {
        check(text.as_bytes(), &cuts)?;
    }

    #[test]
    fn law4_any_chunks(chunks in prop::collection::vec(chunk(), 0..8), cuts in cuts(), ascii in any::<bool>()) {
        let mut body = String::new();
        for chunk in &chunks {
            let mut json = chunk.to_string();
            if ascii {
                json = json.chars().map(|it| if it.is_ascii() { it.to_string() } else {
                    it.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect()
                }).collect();
            }
            body.push_str(&format!("data: {json}\r\n\r\n"));
        }
        check(body.as_bytes(), &cuts)?;
        let array = format!("[{}]", chunks.iter().map(ToString::to_string).collect::<Vec<_>>().join(",\r\n"));
        let events = decode(&exchange(), &[body.as_bytes()]).events.len();
        prop_assert_eq!(decode(&exchange(), &[array.as_bytes()]).events.len(), events);
    }

    /// Valid arguments are left alone, repaired ones are valid, and a second repair changes nothing.
    #[test]
    fn law6_arguments_of_any_schema(schema in schema(), args in json()) {
        use toolgate_core::canon::LossCode;
        use toolgate_core::json::Raw;
        let schema = serde_json::json!({"properties": {"todos": schema, "command": {"type": "string"}}, "required": ["todos"], "$defs": {"self": schema}});
        let entry = exchange_of(&[serde_json::json!({"name": "x", "input_schema": schema})]);
        let toolgate_core::upstream::generate_content::ToolInput::Json(checker) = &entry.tools[0].input else { unreachable!() };
        let args = Raw::of(&serde_json::json!({"command": " x", "todos": args})).unwrap();
        let checked = checker.check(args.clone());
        let violations = checked.losses.iter().filter(|it| it.code == LossCode::ArgumentViolation).count();
        prop_assert_eq!(checker.accepts(&args), checked.losses.is_empty());
        prop_assert_eq!(checker.violations(&args).is_empty(), checked.losses.is_empty());
        prop_assert_eq!(checker.accepts(&checked.args), violations == 0, "{:?}", checked);
        if checked.losses.is_empty() {
            prop_assert_eq!(checked.args.get(), args.get());
        }
        let again = checker.check(checked.args.clone());
        prop_assert_eq!(again.args.get(), checked.args.get());
    }
}
