//! Schemas made to hurt: time and size stay bounded, and the result is still one that Gemini takes.

use std::fmt::Write as _;
use std::time::Duration;

use toolgate_core::canon::{LossCode, SchemaForm};
use toolgate_core::json::Raw;
use toolgate_core::schema::{
    Cache, Compiled, Emit, MAX_VALUES, Placement, compile, compile_output,
};

use crate::{EMITS, validator};

/// Compiles for every target within a time that only an explosion exceeds.
#[track_caller]
fn survive(schema: &str) -> Vec<Compiled> {
    let raw = Raw::parse(schema.to_owned()).expect("JSON");
    let mut results = Vec::new();
    for emit in EMITS {
        #[expect(clippy::disallowed_methods, reason = "this test is about time")]
        let begin = std::time::Instant::now();
        let result = compile(Some(&raw), SchemaForm::JsonSchema, emit);
        let took = begin.elapsed();
        assert!(took < Duration::from_secs(60), "{emit:?} took {took:?}");
        validator::check(&result, schema);
        assert!(!result.losses.is_empty(), "nothing said");
        if emit == Emit::JsonSchema && result.placement == Placement::JsonSchema {
            let again = Raw::parse(result.json.clone()).expect("JSON");
            let again = compile(Some(&again), SchemaForm::JsonSchema, emit);
            assert!(again.json == result.json, "changes when compiled again");
        }
        results.push(result);
    }
    results
}

fn object(properties: &str, definitions: &str) -> String {
    format!(r#"{{"type":"object","properties":{{{properties}}},"$defs":{{{definitions}}}}}"#)
}

fn joined(count: usize, one: impl Fn(usize) -> String) -> String {
    (0..count).map(one).collect::<Vec<_>>().join(",")
}

#[test]
fn a8_sixty_levels() {
    for (open, close) in [
        (r#"{"type":"object","properties":{"a":"#, "}}"),
        (r#"{"type":"array","items":"#, "}"),
        (r#"{"anyOf":[{"type":"null"},"#, "]}"),
        (r#"{"type":"object","additionalProperties":"#, "}"),
        (r#"{"allOf":["#, "]}"),
    ] {
        for levels in [28, 29, 30, 31, 60, 65, 1000] {
            let inner =
                format!("{}{{\"type\":\"string\"}}{}", open.repeat(levels), close.repeat(levels));
            let schema = object(&format!(r#""p":{inner},"q":{{"const":1}}"#), "");
            survive(&schema);
        }
    }
}

#[test]
fn thirty_levels_are_kept_whole() {
    let levels = 27;
    let inner = format!(
        r#"{}{{"type":"string","const":"x"}}{}"#,
        r#"{"type":"object","properties":{"a":"#.repeat(levels),
        "}}".repeat(levels)
    );
    for result in survive(&object(&format!(r#""p":{inner}"#), "")) {
        assert!(result.json.contains(r#""enum":["x"]"#));
        assert_eq!(result.losses.len(), 1);
    }
}

/// However deep a schema is, it is read once; arguments are checked at every realistic depth.
#[test]
fn a8_deep_schemas_are_checked() {
    for levels in [60, 12_000] {
        let nested = |open: &str, inner: &str, close: &str| {
            format!("{}{inner}{}", open.repeat(levels), close.repeat(levels))
        };
        let schema = nested(r#"{"type":"object","properties":{"a":"#, r#"{"type":"string"}"#, "}}");
        let raw = |json: &str| Raw::parse(json.to_owned()).expect("JSON");
        for result in survive(&object(&format!(r#""p":{schema}"#), "")) {
            let args = |inner: &str| raw(&format!(r#"{{"p":{inner}}}"#));
            assert!(result.checker.accepts(&args(r#"{"a":{"a":{}}}"#)));
            assert!(!result.checker.accepts(&args(r#"{"a":{"a":[]}}"#)));
            if levels == 60 {
                assert!(result.checker.accepts(&args(&nested(r#"{"a":"#, r#""x""#, "}"))));
                assert!(!result.checker.accepts(&args(&nested(r#"{"a":"#, "5", "}"))));
            }
        }
    }
}

#[test]
fn brackets_without_end() {
    let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    survive(&object(
        &format!(r#""p":{{"default":{deep}}},"q":{{"enum":[{deep}]}},"r":{{"const":1}}"#),
        "",
    ));
    let deep = format!("{}1{}", r#"{"not":"#.repeat(50_000), "}".repeat(50_000));
    survive(&object(&format!(r#""p":{deep}"#), ""));
}

#[test]
fn a8_references_that_double() {
    let definitions = joined(40, |at| {
        format!(
            r##""d{at}":{{"type":"object","properties":{{"l":{{"$ref":"#/$defs/d{0}"}},"r":{{"$ref":"#/$defs/d{0}"}}}}}}"##,
            at + 1
        )
    });
    let schema = object(
        r##""p":{"$ref":"#/$defs/d0"}"##,
        &format!(r#"{definitions},"d40":{{"type":"string"}}"#),
    );
    for result in survive(&schema) {
        assert!(result.json.len() < 600_000, "{}", result.json.len());
    }
    for combine in ["allOf", "anyOf"] {
        let definitions = joined(40, |at| {
            format!(
                r##""d{at}":{{"type":"object","{combine}":[{{"$ref":"#/$defs/d{0}"}},{{"$ref":"#/$defs/d{0}"}},{{"properties":{{"p{at}":{{"type":"string"}}}}}}]}}"##,
                at + 1
            )
        });
        survive(&object(
            r##""p":{"$ref":"#/$defs/d0"}"##,
            &format!(r#"{definitions},"d40":{{"type":"object"}}"#),
        ));
    }
}

#[test]
fn a8_everything_refers_to_everything() {
    for required in ["", r#","required":["p0","p1","p2"]"#] {
        let definitions = joined(30, |at| {
            let properties = joined(30, |to| format!(r##""p{to}":{{"$ref":"#/$defs/d{to}"}}"##));
            format!(
                r#""d{at}":{{"type":"object","properties":{{{properties}}}{required},"not":{{}}}}"#
            )
        });
        survive(&object(r##""p":{"$ref":"#/$defs/d0"}"##, &definitions));
    }
    let definitions = joined(30, |at| {
        let branches = joined(30, |to| format!(r##"{{"$ref":"#/$defs/d{to}"}}"##));
        format!(
            r#""d{at}":{{"type":"object","properties":{{"x":{{"type":"string"}}}},"anyOf":[{branches}]}}"#
        )
    });
    survive(&object(r##""p":{"$ref":"#/$defs/d0"}"##, &definitions));
}

#[test]
fn a_chain_of_thousands_of_definitions() {
    for link in [
        r##"{"$ref":"#/$defs/d@"}"##,
        r##"{"type":"array","items":{"$ref":"#/$defs/d@"}}"##,
        r##"{"type":"object","properties":{"a":{"$ref":"#/$defs/d@"}}}"##,
        r##"{"allOf":[{"$ref":"#/$defs/d@"},{"type":"object"}]}"##,
        r##"{"$ref":"#/$defs/d@","description":"x","minProperties":1}"##,
    ] {
        let definitions = joined(3_000, |at| {
            format!(r#""d{at}":{}"#, link.replace('@', &((at + 1) % 3_000).to_string()))
        });
        survive(&object(r##""p":{"$ref":"#/$defs/d0"},"q":{"const":1}"##, &definitions));
    }
}

#[test]
fn ten_thousand_properties() {
    let properties =
        joined(10_000, |at| format!(r#""property_{at}":{{"type":"string","pattern":"^{at}$"}}"#));
    let required = joined(10_000, |at| format!(r#""property_{at}""#));
    let schema = format!(
        r#"{{"type":"object","properties":{{{properties}}},"required":[{required},"ghost"]}}"#
    );
    for result in survive(&schema) {
        assert!(result.json.contains(r#""property_9999""#));
    }
    let merged = format!(
        r#"{{"allOf":[{{"properties":{{{properties}}}}},{{"properties":{{{properties}}},"required":[{required}]}}]}}"#
    );
    survive(&merged);
}

#[test]
fn wide_unions_and_lists() {
    let branches = joined(2_000, |at| {
        format!(r#"{{"type":"object","properties":{{"k":{{"const":"{at}"}}}}}}"#)
    });
    survive(&object(&format!(r#""p":{{"anyOf":[{branches}]}}"#), ""));
    survive(&object(
        &format!(r#""p":{{"type":"object","properties":{{"x":{{}}}},"oneOf":[{branches}]}}"#),
        "",
    ));
    survive(&format!(r#"{{"type":"object","anyOf":[{branches}]}}"#));
    let values = joined(30_000, |at| format!(r#""value {at}""#));
    survive(&object(&format!(r#""p":{{"enum":[{values},null,""]}}"#), ""));
    let values = joined(30_000, |at| at.to_string());
    survive(&object(&format!(r#""p":{{"enum":[{values},null,true]}}"#), ""));
}

#[test]
fn five_megabytes() {
    let text = "long ".repeat(1_000_000);
    for result in survive(&object(
        &format!(r#""p":{{"type":"string","description":"{text}"}},"q":{{"const":1}}"#),
        "",
    )) {
        assert!(result.json.contains(r#""q":"#));
    }
    survive(&object(&format!(r#""p":{{"type":"string","default":"{text}"}}"#), ""));
    survive(&object(&format!(r#""p":{{"const":"{text}"}}"#), ""));
    survive(&object(&format!(r#""{text}":{{"const":1}}"#), ""));
    let words = "word ".repeat(50);
    let mut properties = String::new();
    for at in 0..20_000 {
        let _ = write!(
            properties,
            r#""p{at}":{{"type":"object","properties":{{"a":{{"type":"string","description":"{words} {at}"}}}}}},"#
        );
    }
    survive(&object(&format!(r#"{properties}"last":{{}}"#), ""));
    let definitions =
        joined(20_000, |at| format!(r#""d{at}":{{"type":"string","description":"{words} {at}"}}"#));
    let uses = joined(20_000, |at| format!(r##""p{at}":{{"$ref":"#/$defs/d{at}"}}"##));
    survive(&object(&uses, &definitions));
}

#[test]
fn what_is_too_large_to_be_read_is_reported_and_not_sent() {
    let text = format!(r#""p":{{"type":"string","description":"{}"}}"#, "x".repeat(9_000_000));
    let branches = joined(MAX_VALUES, |_| "{}".to_owned());
    for (schema, limit) in [
        (object(&text, ""), "more than 8 MiB"),
        (format!(r#"{{"anyOf":[{branches}]}}"#), "more than 50000 values"),
    ] {
        for result in survive(&schema) {
            assert!(result.is_too_large);
            assert_eq!((result.placement, result.json.as_str()), (Placement::Absent, ""));
            assert_eq!(result.losses.len(), 1);
            assert_eq!(result.losses[0].code, LossCode::ToolDropped);
            assert!(result.losses[0].detail.contains(limit), "{}", result.losses[0].detail);
            assert!(result.invalid.is_some_and(|fault| fault.reason.contains(limit)));
            let args = Raw::parse(r#"{"any": "thing"}"#.to_owned()).expect("JSON");
            assert!(result.checker.accepts(&args));
        }
        let raw = Raw::parse(schema).expect("JSON");
        let answer = compile_output(&raw, SchemaForm::JsonSchema, Emit::JsonSchema);
        assert!(answer.is_too_large && answer.placement == Placement::Absent);
        assert!(answer.losses[0].detail.ends_with("the answer's schema was left out"));
        let answer = Cache::new(1).compile_argument(&raw, SchemaForm::JsonSchema, Emit::JsonSchema);
        assert_eq!(
            answer.json,
            r#"{"type":"object","properties":{"answer":{}},"required":["answer"]}"#
        );
        assert!(answer.losses[0].detail.contains(limit));
    }
}

#[test]
fn max_items_add_up() {
    let arrays = joined(100, |at| {
        format!(r#""p{at}":{{"type":"array","items":{{"type":"string"}},"maxItems":{}}}"#, 10 + at)
    });
    for result in survive(&object(&arrays, "")) {
        assert!(result.json.contains(r#""maxItems":10"#), "the smallest stay");
        assert!(result.json.contains("At most 109 items."));
        assert!(result.losses.iter().any(|loss| loss.at == "properties.p99.maxItems"));
    }
    // A definition counts as often as it is used.
    let uses = joined(100, |at| format!(r##""p{at}":{{"$ref":"#/$defs/L"}}"##));
    let result = survive(&object(&uses, r#""L":{"type":"array","items":{},"maxItems":10}"#));
    assert!(!result[0].json.contains("maxItems"), "{}", result[0].json);
}
