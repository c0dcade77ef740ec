//! Nothing of a schema disappears silently: every literal and every bound is in the compiled schema, in
//! its descriptions, or in a loss at its place.

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use toolgate_core::canon::SchemaForm;
use toolgate_core::schema::Compiled;

use crate::{compiled, json_schema, places};

/// Keywords with values that say something about a value, and the kind of mark that each gets.
const MARKED: &[(&str, Mark)] = &[
    ("const", Mark::Literal),
    ("contentEncoding", Mark::Word),
    ("contentMediaType", Mark::Word),
    ("default", Mark::Literal),
    ("enum", Mark::Literals),
    ("example", Mark::Literal),
    ("exclusiveMaximum", Mark::Number),
    ("exclusiveMinimum", Mark::Number),
    ("format", Mark::Word),
    ("maxItems", Mark::Number),
    ("maxLength", Mark::Number),
    ("maxProperties", Mark::Number),
    ("maximum", Mark::Number),
    ("minItems", Mark::Number),
    ("minLength", Mark::Number),
    ("minProperties", Mark::Number),
    ("minimum", Mark::Number),
    ("multipleOf", Mark::Number),
    ("pattern", Mark::Word),
    ("x-unknown", Mark::Word),
    ("invented", Mark::Word),
];

#[derive(Clone, Copy)]
enum Mark {
    /// One value of any type.
    Literal,
    /// A list of values.
    Literals,
    Number,
    Word,
}

/// Keywords that hold a schema.
const SCHEMAS: &[&str] = &["items", "additionalProperties", "not", "contains", "propertyNames"];
/// Keywords that hold a list of schemas.
const LISTS: &[&str] = &["anyOf", "oneOf", "prefixItems"];

fn types() -> impl Strategy<Value = Option<Value>> {
    let names = ["string", "number", "integer", "boolean", "array", "object", "null"];
    let one = prop::sample::select(names.to_vec()).prop_map(Value::from);
    let two = prop::sample::subsequence(names.to_vec(), 2).prop_map(Value::from);
    prop_oneof![2 => Just(None), 6 => one.prop_map(Some), 2 => two.prop_map(Some)]
}

/// Stands for a literal until it is numbered.
fn literal() -> impl Strategy<Value = Value> {
    prop::sample::select(vec![json!("s"), json!(1), json!([1]), json!({"a": 1})])
}

/// A schema whose values are not numbered yet. Unions have no siblings: merging would make one bound
/// of two, of which the weaker one says nothing.
fn unmarked() -> impl Strategy<Value = Value> {
    let marked =
        prop::sample::subsequence(MARKED.iter().map(|(name, _)| *name).collect::<Vec<_>>(), 0..4);
    let leaf = (types(), marked, prop::collection::vec(literal(), 1..4)).prop_map(
        |(types, marked, literals)| {
            let mut schema = Map::new();
            schema.extend(types.map(|types| ("type".to_owned(), types)));
            for name in marked {
                let value = if name == "enum" {
                    Value::from(literals.clone())
                } else {
                    literals[0].clone()
                };
                schema.insert(name.to_owned(), value);
            }
            // Of two bounds the weaker one says nothing.
            for (bound, other) in [("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")]
            {
                if schema.contains_key(other) {
                    schema.remove(bound);
                }
            }
            Value::Object(schema)
        },
    );
    leaf.prop_recursive(3, 24, 4, |inner| {
        let one = (prop::sample::select(SCHEMAS.to_vec()), inner.clone(), types()).prop_map(
            |(name, schema, types)| {
                let mut outer = Map::from_iter([(name.to_owned(), schema)]);
                outer.extend(types.map(|types| ("type".to_owned(), types)));
                Value::Object(outer)
            },
        );
        let list =
            (prop::sample::select(LISTS.to_vec()), prop::collection::vec(inner.clone(), 1..4))
                .prop_map(|(name, schemas)| json!({name: schemas}));
        let object = prop::collection::vec(("[a-e]", inner), 1..4).prop_map(|members| {
            json!({"type": "object", "properties": members.into_iter().collect::<Map<_, _>>()})
        });
        prop_oneof![one, list, object]
    })
}

/// Numbers every literal and bound of a schema, and lists the place and text of each.
#[derive(Default)]
struct Marks {
    next: u64,
    all: Vec<(String, String)>,
}

impl Marks {
    fn schema(&mut self, schema: &mut Value, at: &str) {
        let Some(members) = schema.as_object_mut() else { return };
        for (name, value) in members {
            let at = format!("{at}{name}");
            if let Some((_, mark)) = MARKED.iter().find(|(marked, _)| marked == name) {
                self.value(value, *mark, &at);
            } else if SCHEMAS.contains(&name.as_str()) {
                self.schema(value, &format!("{at}."));
            } else if LISTS.contains(&name.as_str()) {
                for (index, schema) in value.as_array_mut().into_iter().flatten().enumerate() {
                    self.schema(schema, &format!("{at}[{index}]."));
                }
            } else if name == "properties" {
                for (name, schema) in value.as_object_mut().into_iter().flatten() {
                    self.schema(schema, &format!("{at}.{name}."));
                }
            }
        }
    }

    fn value(&mut self, value: &mut Value, mark: Mark, at: &str) {
        match mark {
            Mark::Literals => {
                for literal in value.as_array_mut().into_iter().flatten() {
                    self.value(literal, Mark::Literal, at);
                }
            }
            Mark::Literal => {
                let number = self.number(at);
                *value = match value {
                    Value::Number(_) => Value::from(number),
                    Value::Array(_) => json!([number]),
                    Value::Object(_) => json!({"a": number}),
                    Value::Null | Value::Bool(_) | Value::String(_) => {
                        Value::from(format!("v{number}"))
                    }
                };
            }
            Mark::Number => *value = Value::from(self.number(at)),
            Mark::Word => *value = Value::from(format!("w{}", self.number(at))),
        }
    }

    fn number(&mut self, at: &str) -> u64 {
        self.next += 1;
        let number = 7_000_000 + self.next;
        self.all.push((at.to_owned(), number.to_string()));
        number
    }

    /// The first mark of which no trace is left.
    fn lost(&self, compiled: &Compiled) -> Option<&(String, String)> {
        let losses = compiled.losses.iter();
        let mut text: String = losses.map(|loss| format!("{}\n", loss.detail)).collect();
        text.push_str(&compiled.json);
        text.push_str(compiled.note.as_deref().unwrap_or_default());
        // A union that comes down to one branch is that branch: its places have no branches.
        let places: Vec<String> = places(compiled).into_iter().map(without_branches).collect();
        let is_named = |place: &str| {
            let place = without_branches(place);
            let is_around = |at: &String| {
                let rest = place.strip_prefix(at.as_str());
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
            };
            // The root is no place: a loss there must name the value.
            places.iter().any(|at| !at.is_empty() && is_around(at))
        };
        self.all.iter().find(|(place, mark)| !text.contains(mark) && !is_named(place))
    }
}

/// `properties.p.anyOf[0].enum` as `properties.p.enum`.
fn without_branches(place: &str) -> String {
    let is_branch = |step: &&str| step.starts_with("anyOf[") || step.starts_with("oneOf[");
    place.split('.').filter(|step| !is_branch(step)).collect::<Vec<_>>().join(".")
}

#[track_caller]
fn check_marked(mut property: Value) -> Result<(), TestCaseError> {
    let mut marks = Marks::default();
    marks.schema(&mut property, "properties.p.");
    let text = json!({"type": "object", "properties": {"p": property}}).to_string();
    for emit in crate::EMITS {
        let compiled = compiled(&text, SchemaForm::JsonSchema, emit);
        if let Some((place, mark)) = marks.lost(&compiled) {
            let (json, losses) = (&compiled.json, places(&compiled));
            let what = format!(
                "{emit:?}: {mark} at {place} of {text}\nis not in {json}\nlosses {losses:?}"
            );
            return Err(TestCaseError::fail(what));
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn every_value_of_a_schema_is_sent_described_or_reported(property in unmarked()) {
        check_marked(property)?;
    }
}

/// Field case: an `enum` that lists the items of an array, and one that lists strings of a number.
#[test]
fn an_enum_that_does_not_fit_its_type_is_described() {
    let rows = [
        (
            r#"{"type":"array","items":{"type":"string"},"enum":["view","like"]}"#,
            r#"Allowed items: "view", "like"."#,
        ),
        (
            r#"{"type":"integer","enum":["Group A","Group B"]}"#,
            r#"Allowed values: "Group A", "Group B"."#,
        ),
        (r#"{"type":"boolean","const":"yes"}"#, r#"Allowed values: "yes"."#),
        (r#"{"type":"object","enum":[1,2]}"#, "Allowed values: 1, 2."),
    ];
    for (property, want) in rows {
        let text = format!(r#"{{"type":"object","properties":{{"p":{property}}}}}"#);
        for emit in crate::EMITS {
            let compiled = compiled(&text, SchemaForm::JsonSchema, emit);
            let json = crate::value(&compiled.json);
            assert_eq!(json["properties"]["p"]["description"], want, "{emit:?} {property}");
            assert!(places(&compiled).contains(&"properties.p.enum"), "{emit:?} {property}");
        }
    }
}

#[test]
fn values_beyond_a_descriptions_limit_are_counted() {
    let values: Vec<Value> =
        (0..500).map(|at| json!([format!("a value with number {at}")])).collect();
    let text = json!({"type": "object", "properties": {"p": {"enum": values}}}).to_string();
    let json = crate::value(&json_schema(&text).json);
    let description = json["properties"]["p"]["description"].as_str().unwrap();
    let listed = description.matches("a value with").count();
    assert!(description.ends_with(&format!(" and {} more.", 500 - listed)), "{description}");
}
