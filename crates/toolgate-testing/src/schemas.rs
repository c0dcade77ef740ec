//! Random schemas.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

pub fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => "[a-e]",
        1 => prop::sample::select(vec![
            "type", "properties", "required", "$ref", "items", "title", "description", "enum",
            "default", "", "with space", "ü", "anyOf", "additionalProperties", "$defs",
        ]).prop_map(str::to_owned),
    ]
}

fn type_name() -> impl Strategy<Value = Value> {
    prop::sample::select(vec![
        "string", "number", "integer", "boolean", "array", "object", "null", "STRING", "OBJECT",
        "str", "any", "nonsense",
    ])
    .prop_map(Value::from)
}

fn data() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-5_i64..20).prop_map(Value::from),
        any::<f64>().prop_map(|float| json!(float)),
        "[a-c]{0,2}".prop_map(Value::from),
        Just(json!("10")),
        Just(json!(u64::MAX)),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec((name(), inner), 0..3)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn reference() -> impl Strategy<Value = Value> {
    prop::sample::select(vec![
        "#",
        "#/$defs/a",
        "#/$defs/b",
        "#/$defs/c",
        "#/definitions/d",
        "#/properties/a",
        "#/properties/a/items",
        "#/properties/b/anyOf/0",
        "#missing",
        "https://example.com/x.json",
        "a",
        "#/$defs/a/properties/b",
        "",
    ])
    .prop_map(Value::from)
}

/// One keyword with a value that is mostly, but not always, of the right kind.
fn keyword(
    schema: impl Strategy<Value = Value> + Clone + 'static,
) -> impl Strategy<Value = (String, Value)> {
    let list = prop::collection::vec(schema.clone(), 0..4).prop_map(Value::from);
    let map = prop::collection::vec((name(), schema.clone()), 0..4)
        .prop_map(|members| Value::Object(members.into_iter().collect()))
        .boxed();
    let names = prop::collection::vec(name().prop_map(Value::from), 0..3).prop_map(Value::from);
    let types = prop::collection::vec(type_name(), 0..3).prop_map(Value::from);
    let values = prop::collection::vec(data(), 0..4).prop_map(Value::from);
    let of = |names: &'static [&'static str]| prop::sample::select(names).prop_map(str::to_owned);
    prop_oneof![
        6 => (Just("type".to_owned()), type_name()),
        1 => (Just("type".to_owned()), types),
        4 => (of(&["properties", "$defs", "definitions"]), map.clone()),
        1 => (of(&["patternProperties", "dependentSchemas", "dependencies"]), map),
        3 => (of(&["items", "additionalProperties", "not", "if", "then", "else", "contains",
                   "propertyNames", "additionalItems", "unevaluatedItems", "unevaluatedProperties"]), schema),
        3 => (of(&["anyOf", "oneOf", "allOf", "prefixItems", "items"]), list),
        2 => (of(&["required", "propertyOrdering"]), names),
        2 => (Just("enum".to_owned()), values),
        3 => (of(&["$ref", "$dynamicRef"]), reference()),
        3 => (of(&["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength",
                   "maxLength", "minItems", "maxItems", "minProperties", "maxProperties",
                   "multipleOf", "default", "const", "example", "nullable", "uniqueItems",
                   "deprecated", "required", "description", "title", "format", "pattern", "x-other",
                   "strange", "properties", "anyOf", "$id", "$anchor"]), data()),
        2 => (of(&["description", "title", "format", "pattern"]), "[a-z ]{0,12}".prop_map(Value::from)),
    ]
}

/// Any schema, good or bad.
pub fn schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({"type": "string"})),
        Just(json!({"type": "integer", "enum": [1, 2]})),
        Just(json!({})),
        any::<bool>().prop_map(Value::from),
        reference().prop_map(|reference| json!({"$ref": reference})),
        data(),
    ];
    leaf.prop_recursive(5, 60, 6, |inner| {
        prop::collection::vec(keyword(inner), 0..6)
            .prop_map(|members| Value::Object(members.into_iter().collect::<Map<_, _>>()))
    })
}
