//! Random schemas: every input compiles to a schema that Gemini accepts.

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use toolgate_core::canon::SchemaForm;
use toolgate_core::schema::Emit;

use crate::compiled;
use toolgate_testing::schemas::{name, schema};

/// Found by chance: constraints on numbers beside a list of values without a number.
#[test]
fn nothing_stands_beside_a_union_that_comes_of_values() {
    let values = json!({"minimum": 0, "enum": [null, []]});
    let text = json!({"type": "object", "properties": {"p": values}}).to_string();
    for emit in crate::EMITS {
        compiled(&text, SchemaForm::JsonSchema, emit);
    }
}

/// Found by chance: branches that say the same once what means nothing has gone.
#[test]
fn branches_that_have_become_the_same_are_one() {
    let branches = json!({"required": [], "anyOf": [{"minProperties": 0.0}, {}]});
    let text = json!({"type": "object", "properties": {"p": branches}}).to_string();
    for emit in crate::EMITS {
        compiled(&text, SchemaForm::JsonSchema, emit);
    }
    let json = compiled(&text, SchemaForm::JsonSchema, Emit::JsonSchema).json;
    assert_eq!(json, r#"{"type":"object","properties":{"p":{"type":"object"}}}"#);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_schema_gives_something_that_gemini_takes(schema in schema()) {
        let text = schema.to_string();
        for form in [SchemaForm::JsonSchema, SchemaForm::Gemini] {
            for emit in crate::EMITS {
                compiled(&text, form, emit);
            }
        }
    }

    #[test]
    fn definitions_may_refer_to_each_other_in_any_way(
        schemas in prop::collection::vec(schema(), 7),
        required in prop::collection::vec(name(), 0..4),
    ) {
        let mut schemas = schemas.into_iter();
        let mut next = || schemas.next().unwrap_or_default();
        let text = json!({
            "type": "object",
            "properties": {"a": next(), "b": next(), "c": {"$ref": "#/$defs/a"}},
            "required": required,
            "$defs": {"a": next(), "b": next(), "c": next()},
            "definitions": {"d": next(), "a": next()},
        })
        .to_string();
        for emit in crate::EMITS {
            compiled(&text, SchemaForm::JsonSchema, emit);
        }
    }

    #[test]
    fn an_object_with_random_properties_keeps_their_order(schemas in prop::collection::vec(schema(), 1..5)) {
        let members = schemas.into_iter().enumerate();
        let properties: Map<String, Value> =
            members.map(|(at, schema)| (format!("p{}", 9 - at), schema)).collect();
        let text = json!({"type": "object", "properties": properties}).to_string();
        let result = compiled(&text, SchemaForm::JsonSchema, Emit::JsonSchema);
        if let Ok(json) = serde_json::from_str::<Value>(&result.json) {
            let got: Vec<&String> = json["properties"].as_object().into_iter().flat_map(Map::keys).collect();
            let mut sorted = got.clone();
            sorted.sort_by(|a, b| b.cmp(a));
            prop_assert_eq!(got, sorted);
        }
    }
}
