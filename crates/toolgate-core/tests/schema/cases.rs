//! The field cases A1–A16: shapes that broke other gateways.

use serde_json::{Value, json};
use toolgate_core::canon::{Loss, LossCode, SchemaForm};
use toolgate_core::json::Raw;
use toolgate_core::schema::{Emit, Placement, compile};

use crate::{EMITS, check, compiled, json_schema, parameters, places, value};

#[test]
fn a1_the_draft_is_not_sent() {
    let schema = r#"{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"q":{"type":"string"}},"required":["q"]}"#;
    for emit in EMITS {
        let result = compiled(schema, SchemaForm::JsonSchema, emit);
        assert!(!result.json.contains("$schema"), "{}", result.json);
        assert_eq!(places(&result), Vec::<&str>::new());
    }
}

#[test]
fn a2_several_types() {
    check(
        r#"{"type":["string","null"]}"#,
        r#"{"type":["string","null"]}"#,
        r#"{"type":"STRING","nullable":true}"#,
    );
    check(
        r#"{"type":["string","number","null"],"maxLength":5,"minimum":1}"#,
        r#"{"type":["string","number","null"],"minimum":1,"description":"At most 5 characters."}"#,
        r#"{"anyOf":[{"type":"STRING","nullable":true,"maxLength":5},{"type":"NUMBER","nullable":true,"minimum":1}]}"#,
    );
    check(
        r#"{"allOf":[{"type":["string","null"]}]}"#,
        r#"{"type":["string","null"]}"#,
        r#"{"type":"STRING","nullable":true}"#,
    );
    check(
        r#"{"anyOf":[{"type":["integer","null"]},{"type":"boolean"}]}"#,
        r#"{"anyOf":[{"type":["integer","null"]},{"type":"boolean"}]}"#,
        r#"{"anyOf":[{"type":"INTEGER","nullable":true},{"type":"BOOLEAN"}]}"#,
    );
    check(
        r#"{"type":"array","items":{"type":["string","null"]}}"#,
        r#"{"type":"array","items":{"type":["string","null"]}}"#,
        r#"{"type":"ARRAY","items":{"type":"STRING","nullable":true}}"#,
    );
    check(
        r#"{"type":["object","array"],"properties":{"a":{"type":"string"}},"items":{"type":"number"}}"#,
        r#"{"type":["array","object"],"properties":{"a":{"type":"string"}},"items":{"type":"number"}}"#,
        r#"{"anyOf":[{"type":"ARRAY","items":{"type":"NUMBER"}},{"type":"OBJECT","properties":{"a":{"type":"STRING"}}}]}"#,
    );
}

#[test]
fn a3_tuples_inside_arrays() {
    check(
        r#"{"type":"array","items":{"type":"array","prefixItems":[{"type":"string"},{"enum":["==","!="]},{}]}}"#,
        r#"{"type":"array","items":{"type":"array","prefixItems":[{"type":"string"},{"type":"string","enum":["==","!="]},{}],"items":{}}}"#,
        r#"{"type":"ARRAY","items":{"type":"ARRAY","description":"Items in this order: string, one of \"==\", \"!=\", any value.",
            "items":{"anyOf":[{"type":"STRING"},{"type":"STRING","enum":["==","!="]},{"type":"NUMBER"},{"type":"BOOLEAN"},{"type":"OBJECT"},{"type":"ARRAY","items":{"type":"STRING"}}]}}}"#,
    );
    check(
        r#"{"type":"array","items":[{"type":"string"},{"type":"integer"}],"additionalItems":false}"#,
        r#"{"type":"array","prefixItems":[{"type":"string"},{"type":"integer"}],"items":{},"maxItems":2}"#,
        r#"{"type":"ARRAY","items":{"anyOf":[{"type":"STRING"},{"type":"INTEGER"}]},"maxItems":2,"description":"Items in this order: string, integer."}"#,
    );
    check(
        r#"{"prefixItems":[{"type":"number"},{"type":"number"}],"items":false,"minItems":2}"#,
        r#"{"type":"array","prefixItems":[{"type":"number"},{"type":"number"}],"items":{},"minItems":2,"maxItems":2}"#,
        r#"{"type":"ARRAY","items":{"type":"NUMBER"},"minItems":2,"maxItems":2,"description":"Items in this order: number, number."}"#,
    );
}

#[test]
fn a4_the_root_is_always_an_object() {
    for schema in [
        "{}",
        r#"{"properties":{}}"#,
        "null",
        r#"{"type":"string"}"#,
        "true",
        "[]",
        r#"{"type":"array","items":{}}"#,
    ] {
        for emit in EMITS.into_iter().chain([Emit::JsonSchemaRaw]) {
            let result = compiled(schema, SchemaForm::JsonSchema, emit);
            assert_eq!(result.placement, Placement::Absent, "{schema}");
        }
    }
    let missing = compile(None, SchemaForm::JsonSchema, Emit::JsonSchema);
    assert_eq!((missing.placement, missing.losses.len()), (Placement::Absent, 0));
    let text = json_schema(r#"{"type":"string"}"#);
    assert_eq!(places(&text), ["type"]);
    assert!(text.invalid.is_some());
    for (schema, want) in [
        (r#"{"properties":{"a":{}}}"#, r#"{"type":"object","properties":{"a":{}}}"#),
        (
            r#"{"type":["object","null"],"properties":{"a":{}}}"#,
            r#"{"type":"object","properties":{"a":{}}}"#,
        ),
        (
            r#"{"type":"object","additionalProperties":{"type":"number"}}"#,
            r#"{"type":"object","properties":{},"additionalProperties":{"type":"number"}}"#,
        ),
        (
            r##"{"$ref":"#/$defs/A","$defs":{"A":{"type":"object","properties":{"a":{"type":"string"}}}}}"##,
            r#"{"type":"object","properties":{"a":{"type":"string"}}}"#,
        ),
    ] {
        assert_eq!(value(&json_schema(schema).json), value(want), "{schema}");
    }
}

#[test]
fn a4_unions_at_the_root_become_one_object() {
    let schema = r#"{"oneOf":[
        {"type":"object","properties":{"kind":{"const":"file"},"path":{"type":"string"}},"required":["kind","path"]},
        {"type":"object","properties":{"kind":{"const":"text"},"text":{"type":"string"}},"required":["kind"]}]}"#;
    for result in [json_schema(schema), parameters(schema)] {
        let json = value(&result.json.to_lowercase());
        let want = json!({"type":"object","properties":{"kind":{"type":"string","enum":["file","text"]},
            "path":{"type":"string"},"text":{"type":"string"}},"required":["kind"]});
        assert_eq!(json, want);
        let note = result.note.unwrap();
        assert_eq!(
            note,
            r#"Give one of these sets of arguments: (1) `kind` "file", `path`; (2) `kind` "text", optionally `text`."#
        );
    }
    let schema = r#"{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"anyOf":[{"required":["a"]},{"required":["b"]}]}"#;
    let result = json_schema(schema);
    assert_eq!(result.note.as_deref(), Some("Give at least one of these: `a`; `b`."));
    assert_eq!(places(&result), ["anyOf"]);
}

#[test]
fn a5_functions_without_arguments() {
    for schema in [
        r#"{"type":"object"}"#,
        r#"{"type":"object","properties":{}}"#,
        r#"{"type":"object","properties":{},"additionalProperties":false,"required":[]}"#,
        r#"{"type":"object","properties":[]}"#,
        r#"{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{},"additionalProperties":false}"#,
    ] {
        for emit in EMITS {
            let result = compiled(schema, SchemaForm::JsonSchema, emit);
            assert_eq!(
                (result.placement, result.json.as_str()),
                (Placement::Absent, ""),
                "{schema}"
            );
        }
    }
    let nested = r#"{"type":"object","properties":{"options":{"type":"object","properties":{}}},"required":["options"]}"#;
    let want =
        json!({"type":"object","properties":{"options":{"type":"object"}},"required":["options"]});
    assert_eq!(value(&json_schema(nested).json), want);
    let want =
        json!({"type":"OBJECT","properties":{"options":{"type":"OBJECT"}},"required":["options"]});
    assert_eq!(value(&parameters(nested).json), want);
}

/// One keyword, in every position.
#[track_caller]
fn everywhere(keyword: &str, json_says: &str, parameters_say: &str) {
    let name = keyword.split('"').nth(1).unwrap();
    let around = [
        (r#"{"type":"object","properties":{"p":@}}"#, format!("properties.p.{name}")),
        (
            r#"{"type":"object","properties":{"p":{"type":"object","properties":{"q":@}}}}"#,
            format!("properties.p.properties.q.{name}"),
        ),
        (
            r#"{"type":"object","properties":{"p":{"anyOf":[@,{"type":"boolean"}]}}}"#,
            format!("properties.p.anyOf[0].{name}"),
        ),
        (
            r#"{"type":"object","properties":{"p":{"type":"array","items":@}}}"#,
            format!("properties.p.items.{name}"),
        ),
    ];
    for (shape, at) in around {
        let schema = shape.replace('@', &format!("{{{keyword}}}"));
        for (result, says) in
            [(json_schema(&schema), json_says), (parameters(&schema), parameters_say)]
        {
            assert!(
                !result.json.contains(&format!("\"{name}\":")),
                "{keyword} left in {}",
                result.json
            );
            assert!(result.json.contains(says), "{says} is not in {}", result.json);
            assert!(places(&result).contains(&at.as_str()), "{at} is not in {:?}", places(&result));
            assert!(result.losses.iter().all(|loss| loss.code == LossCode::SchemaKeyword));
        }
    }
}

#[test]
fn a6_keywords_that_gemini_does_not_know() {
    everywhere(r#""exclusiveMinimum":0,"type":"integer""#, r#""minimum":1"#, r#""minimum":1"#);
    everywhere(r#""exclusiveMaximum":9,"type":"integer""#, r#""maximum":8"#, r#""maximum":8"#);
    everywhere(
        r#""exclusiveMinimum":0.5,"type":"number""#,
        r#""description":"Greater than 0.5.","minimum":0.5"#,
        "Greater than 0.5.",
    );
    everywhere(
        r#""uniqueItems":true,"type":"array","items":{"type":"string"}"#,
        "No two items are alike.",
        "No two items are alike.",
    );
    everywhere(
        r#""propertyNames":{"pattern":"^a"},"type":"object""#,
        r#"Property names must fit: {\"pattern\":\"^a\"}."#,
        "Property names must fit",
    );
    everywhere(r#""deprecated":true,"type":"string""#, "Deprecated.", "Deprecated.");
    everywhere(r#""$comment":"later","type":"string""#, "string", "STRING");
    everywhere(r#""enumDescriptions":["first"],"enum":["a"]"#, r#"\"a\": first."#, "first");
    everywhere(r#""multipleOf":5,"type":"integer""#, "A multiple of 5.", "A multiple of 5.");
    everywhere(
        r#""not":{"type":"string"}"#,
        r#"Must not fit: {\"type\":\"string\"}."#,
        "Must not fit",
    );
    everywhere(
        r#""if":{"required":["a"]},"then":{"required":["b"]},"type":"object""#,
        "If it fits",
        "it must fit",
    );
    everywhere(
        r#""contains":{"type":"string"},"type":"array","items":{}"#,
        "At least one item must fit",
        "At least one item",
    );
    everywhere(
        r#""dependentRequired":{"a":["b","c"]},"type":"object""#,
        "With `a` also give `b` and `c`.",
        "With `a`",
    );
    everywhere(
        r#""patternProperties":{"^x-":{"type":"string"}},"type":"object""#,
        r#""additionalProperties":{"type":"string"}"#,
        "^x-",
    );
    everywhere(
        r#""contentEncoding":"base64","type":"string""#,
        "Encoded as base64.",
        "Encoded as base64.",
    );
    everywhere(r#""readOnly":true,"type":"string""#, "string", "STRING");
    everywhere(r#""const":"x""#, r#""enum":["x"]"#, r#""enum":["x"]"#);
    everywhere(r#""oneOf":[{"type":"string"},{"type":"integer"}]"#, r#""anyOf""#, r#""anyOf""#);
    everywhere(
        r#""allOf":[{"type":"string"},{"description":"d"}]"#,
        r#"{"type":"string","description":"d"}"#,
        r#""description":"d""#,
    );
}

#[test]
fn a6_keywords_that_only_parameters_act_on() {
    check(
        r#"{"type":"string","pattern":"^a+$","minLength":2,"maxLength":9,"description":"Name"}"#,
        r#"{"type":"string","description":"Name. Pattern: `^a+$`. 2 to 9 characters."}"#,
        r#"{"type":"STRING","description":"Name","pattern":"^a+$","minLength":2,"maxLength":9}"#,
    );
    check(
        r#"{"type":"object","minProperties":1,"properties":{"a":{"type":"string"}}}"#,
        r#"{"type":"object","properties":{"a":{"type":"string"}},"description":"At least 1 property."}"#,
        r#"{"type":"OBJECT","properties":{"a":{"type":"STRING"}},"minProperties":1}"#,
    );
    check(
        r#"{"type":"string","pattern":"^(?!x)"}"#,
        r#"{"type":"string","description":"Pattern: `^(?!x)`."}"#,
        r#"{"type":"STRING","description":"Pattern: `^(?!x)`."}"#,
    );
    let draft4 = r#"{"type":"integer","minimum":3,"exclusiveMinimum":true,"maximum":7,"exclusiveMaximum":false}"#;
    check(
        draft4,
        r#"{"type":"integer","minimum":4,"maximum":7}"#,
        r#"{"type":"INTEGER","minimum":4,"maximum":7}"#,
    );
}

#[test]
fn a7_nothing_beside_a_union_or_a_reference_is_lost() {
    check(
        r#"{"anyOf":[{"type":"string"},{"type":"null"}],"default":"x","title":"T","description":"D"}"#,
        r#"{"title":"T","description":"D","default":"x","anyOf":[{"type":"string"},{"type":"null"}]}"#,
        r#"{"type":"STRING","nullable":true,"title":"T","description":"D","default":"x"}"#,
    );
    check(
        r#"{"anyOf":[{"type":"string"},{"type":"integer"}],"default":3,"description":"D"}"#,
        r#"{"description":"D","default":3,"anyOf":[{"type":"string"},{"type":"integer"}]}"#,
        r#"{"anyOf":[{"type":"STRING","description":"D"},{"type":"INTEGER","description":"D","default":3}]}"#,
    );
    check(
        r#"{"type":"object","properties":{"a":{"type":"string"}},"anyOf":[{"properties":{"b":{"type":"string"}},"required":["a","b"]},{"properties":{"c":{"type":"string"}}}]}"#,
        r#"{"anyOf":[{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"required":["a","b"]},
                     {"type":"object","properties":{"a":{"type":"string"},"c":{"type":"string"}}}]}"#,
        r#"{"anyOf":[{"type":"OBJECT","properties":{"a":{"type":"STRING"},"b":{"type":"STRING"}},"required":["a","b"]},
                     {"type":"OBJECT","properties":{"a":{"type":"STRING"},"c":{"type":"STRING"}}}]}"#,
    );
    let schema = r##"{"type":"object","properties":{"p":{"$ref":"#/$defs/X","description":"D"},"q":{"$ref":"#/$defs/X","nullable":true},
        "r":{"$ref":"#/$defs/X","properties":{"b":{"type":"string"}}}},"$defs":{"X":{"type":"object","properties":{"a":{"type":"string"}}}}}"##;
    let json = value(&json_schema(schema).json);
    assert_eq!(json["properties"]["p"], json!({"description":"D","anyOf":[{"$ref":"#/$defs/X"}]}));
    assert_eq!(json["properties"]["q"], json!({"anyOf":[{"$ref":"#/$defs/X"},{"type":"null"}]}));
    assert_eq!(
        json["properties"]["r"],
        json!({"type":"object","properties":{"b":{"type":"string"},"a":{"type":"string"}}})
    );
    let json = value(&parameters(schema).json);
    assert_eq!(
        json["properties"]["p"],
        json!({"type":"OBJECT","description":"D","properties":{"a":{"type":"STRING"}}})
    );
    assert_eq!(json["properties"]["q"]["nullable"], true);
}

#[test]
fn a7_a_type_beside_a_reference_does_not_undo_it() {
    let defs = r##""$defs":{"N":{"type":"object","properties":{"next":{"$ref":"#/$defs/N","type":"object"}}}}"##;
    for (property, want) in [
        (r##"{"$ref":"#/$defs/N","type":"object"}"##, json!({"$ref":"#/$defs/N"})),
        (
            r##"{"$ref":"#/$defs/N","type":["object","null"]}"##,
            json!({"anyOf":[{"$ref":"#/$defs/N"},{"type":"null"}]}),
        ),
        (
            r##"{"allOf":[{"$ref":"#/$defs/N"}],"description":"D"}"##,
            json!({"description":"D","anyOf":[{"$ref":"#/$defs/N"}]}),
        ),
        (
            r##"{"allOf":[{"type":"object"},{"$ref":"#/$defs/N"}],"nullable":true}"##,
            json!({"anyOf":[{"$ref":"#/$defs/N"},{"type":"null"}]}),
        ),
        (
            r##"{"type":"object","oneOf":[{"$ref":"#/$defs/N"},{"type":"object","properties":{"a":{}}}]}"##,
            json!({"anyOf":[{"$ref":"#/$defs/N"},{"type":"object","properties":{"a":{}}}]}),
        ),
    ] {
        let schema = format!(r#"{{"type":"object","properties":{{"p":{property}}},{defs}}}"#);
        let json = value(&json_schema(&schema).json);
        assert_eq!(json["properties"]["p"], want, "{property}");
        assert_eq!(json["$defs"]["N"]["properties"]["next"], json!({"$ref":"#/$defs/N"}));
        parameters(&schema);
    }
}

#[test]
fn a8_circles_are_kept_where_gemini_takes_them_and_cut_elsewhere() {
    let tree = r##"{"type":"object","properties":{"root":{"$ref":"#/$defs/Node"}},"required":["root"],"$defs":{"Node":{"type":"object",
        "properties":{"name":{"type":"string"},"children":{"type":"array","items":{"$ref":"#/$defs/Node"}}},"required":["name"]}}}"##;
    let result = json_schema(tree);
    assert_eq!(value(&result.json), value(tree));
    assert_eq!(places(&result), Vec::<&str>::new());
    let required = tree.replace(r#"["name"]"#, r#"["name","children"]"#);
    let result = json_schema(&required);
    let node = &value(&result.json)["$defs"]["Node"];
    assert_eq!(node["required"], json!(["name"]));
    assert_eq!(node["properties"]["children"]["description"], "Always give this.");
    assert_eq!(places(&result), ["$defs.Node.required"]);
    // A reference back without a property between has no option to end.
    let list = r##"{"type":"object","properties":{"v":{"$ref":"#/$defs/J"}},"$defs":{"J":{"anyOf":[{"type":"string"},{"type":"array","items":{"$ref":"#/$defs/J"}}]}}}"##;
    let json = value(&json_schema(list).json);
    assert_eq!(
        json["$defs"]["J"]["anyOf"][1]["items"],
        json!({"description":"The same form again (J)."})
    );
    let mutual = r##"{"type":"object","properties":{"a":{"$ref":"#/$defs/A"}},"$defs":{
        "A":{"type":"object","properties":{"b":{"$ref":"#/$defs/B"}},"required":["b"]},
        "B":{"type":"object","properties":{"a":{"$ref":"#/$defs/A"}},"required":["a"]}}}"##;
    for result in [json_schema(mutual), parameters(mutual)] {
        assert!(result.json.len() < 1000, "{}", result.json);
    }
    let turns = parameters(tree).json.matches("children").count();
    assert_eq!(turns, 3);
}

#[test]
fn a9_a_hopeless_schema_is_repaired_not_refused() {
    let schema = r#"{"type":"object","additionalProperties":{"type":7},"anyOf":["x",{"type":"null"},5],"properties":{"a":true,"b":false,"c":[1],"d":"string"},"required":{"a":1}}"#;
    for emit in EMITS {
        let result = compiled(schema, SchemaForm::JsonSchema, emit);
        assert_ne!(result.placement, Placement::Absent);
        assert!(result.invalid.is_some());
        let json = value(&result.json);
        assert_eq!(json["properties"]["d"]["type"].as_str().unwrap().to_lowercase(), "string");
        assert_eq!(json["properties"].get("b"), None);
    }
}

#[test]
fn a10_data_is_not_touched() {
    let data = r#"{"items":[{"title":"a","format":"b","const":1,"default":2.0,"$ref":"x","type":["q"],"additionalProperties":false,"n":123456789012345678901234567890}]}"#;
    let schema = format!(
        r#"{{"type":"object","properties":{{"todo":{{"type":"object","default":{data}}}}}}}"#
    );
    for emit in EMITS {
        let result = compiled(&schema, SchemaForm::JsonSchema, emit);
        assert!(result.json.contains(&format!(r#""default":{data}"#)), "{}", result.json);
    }
}

#[test]
fn a11_property_names_are_not_keywords() {
    let names = [
        "ref",
        "title",
        "$schema",
        "additionalProperties",
        "$ref",
        "type",
        "required",
        "properties",
        "enum",
        "default",
        "anyOf",
        "$defs",
        "not",
        "const",
        "items",
    ];
    let properties: Vec<String> =
        names.iter().map(|name| format!(r#""{name}":{{"type":"string"}}"#)).collect();
    let schema = format!(
        r#"{{"type":"object","properties":{{{}}},"required":["ref","$ref","type"]}}"#,
        properties.join(",")
    );
    let result = json_schema(&schema);
    assert_eq!(result.json, schema);
    let lowered = parameters(&schema);
    assert_eq!(
        lowered.json,
        schema
            .replace(r#""type":"string"}"#, r#""type":"STRING"}"#)
            .replacen("object", "OBJECT", 1)
    );
    assert!(result.losses.is_empty() && lowered.losses.is_empty());
}

#[test]
fn a12_bare_property_maps_and_required_flags() {
    let bare = r#"{"name":{"type":"string","required":true},"due":{"type":"string"}}"#;
    let want = json!({"type":"object","properties":{"name":{"type":"string"},"due":{"type":"string"}},"required":["name"]});
    let result = json_schema(bare);
    assert_eq!(value(&result.json), want);
    assert!(result.invalid.is_some());
    check(
        &format!(r#"{{"type":"array","items":{bare}}}"#),
        &json!({"type":"array","items":want}).to_string(),
        r#"{"type":"ARRAY","items":{"type":"OBJECT","properties":{"name":{"type":"STRING"},"due":{"type":"STRING"}},"required":["name"]}}"#,
    );
    let flags = r#"{"type":"object","properties":{"a":{"type":"string","required":true},"b":{"type":"string","required":false}}}"#;
    assert_eq!(value(&json_schema(flags).json)["required"], json!(["a"]));
    // Names that are also keywords, and properties beside `type`.
    let odd = r#"{"type":"object","description":"D","title":{"type":"string"},"items":{"type":"array","items":{"type":"string"}}}"#;
    let json = value(&json_schema(odd).json);
    assert_eq!(json["properties"]["title"], json!({"type":"string"}));
    assert_eq!(json["properties"]["items"]["type"], "array");
    // Data that looks like a schema is data.
    check(
        r#"{"default":{"type":"x"}}"#,
        r#"{"default":{"type":"x"}}"#,
        r#"{"anyOf":[{"type":"STRING"},{"type":"NUMBER"},{"type":"BOOLEAN"},{"type":"OBJECT","default":{"type":"x"}},{"type":"ARRAY","items":{"type":"STRING"}}]}"#,
    );
}

#[test]
fn a13_vendor_keywords_go() {
    everywhere(r#""encrypted":true,"type":"string""#, "string", "STRING");
    everywhere(r#""x-order":3,"type":"string""#, "string", "STRING");
    everywhere(r#""examples":["a","b"],"type":"string""#, r#"Examples: \"a\", \"b\"."#, "Examples");
}

#[test]
fn a14_defaults_stay() {
    let schema =
        r#"{"type":"object","properties":{"n":{"type":"integer","default":3}},"required":["n"]}"#;
    assert_eq!(json_schema(schema).json, schema);
    assert!(parameters(schema).json.contains(r#""default":3"#));
}

#[test]
fn a15_lists_of_numbers_and_booleans_force_their_type() {
    check(
        r#"{"type":"integer","enum":[3,1,2]}"#,
        r#"{"type":"integer","enum":[3,1,2]}"#,
        r#"{"type":"INTEGER","minimum":1,"maximum":3,"description":"Must be one of: 3, 1, 2."}"#,
    );
    check(
        r#"{"enum":[0.5,2]}"#,
        r#"{"type":"number","enum":[0.5,2]}"#,
        r#"{"type":"NUMBER","minimum":0.5,"maximum":2,"description":"Must be one of: 0.5, 2."}"#,
    );
    check(
        r#"{"const":true}"#,
        r#"{"type":"boolean","description":"Must be true."}"#,
        r#"{"type":"BOOLEAN","description":"Must be true."}"#,
    );
    check(
        r#"{"enum":["a",1,null]}"#,
        r#"{"anyOf":[{"type":["string","integer"],"enum":["a",1]},{"type":"null"}]}"#,
        r#"{"anyOf":[{"type":"STRING","nullable":true,"enum":["a"]},{"type":"INTEGER","nullable":true,"minimum":1,"maximum":1,"description":"Must be 1."}]}"#,
    );
    check(
        r#"{"type":"integer","enum":["1","2"]}"#,
        r#"{"type":"integer","enum":[1,2]}"#,
        r#"{"type":"INTEGER","minimum":1,"maximum":2,"description":"Must be one of: 1, 2."}"#,
    );
    check(
        r#"{"type":"number","enum":["1e3"," 0.1","-7","x"]}"#,
        r#"{"type":"number","enum":[1000,0.1,-7]}"#,
        r#"{"type":"NUMBER","minimum":-7,"maximum":1000,"description":"Must be one of: 1000, 0.1, -7."}"#,
    );
    check(
        r#"{"type":"integer","enum":["2.0","0.5","3"]}"#,
        r#"{"type":"integer","enum":[2,3]}"#,
        r#"{"type":"INTEGER","minimum":2,"maximum":3,"description":"Must be one of: 2, 3."}"#,
    );
    check(
        r#"{"type":"string","enum":[1,"two"]}"#,
        r#"{"type":"string","enum":["1","two"]}"#,
        r#"{"type":"STRING","enum":["1","two"]}"#,
    );
}

#[test]
fn a16_numbers_in_any_spelling() {
    let schema = r#"{"type":"object","properties":{
        "a":{"type":"array","items":{"type":"string"},"minItems":1.0,"maxItems":"10"},
        "b":{"type":"integer","minimum":-9223372036854775808,"maximum":18446744073709551616},
        "c":{"type":"array","items":{},"maxItems":9223372036854775808},
        "d":{"type":"number","minimum":"0.5","maximum":1e400}}}"#;
    let result = json_schema(schema);
    let want = r#"{"type":"object","properties":{"a":{"type":"array","items":{"type":"string"},"minItems":1,"maxItems":10},"b":{"type":"integer","minimum":-9223372036854775808,"maximum":18446744073709551616},"c":{"type":"array","items":{}},"d":{"type":"number","minimum":0.5}}}"#;
    assert_eq!(result.json, want);
    let at = [
        "properties.a.minItems",
        "properties.a.maxItems",
        "properties.c.maxItems",
        "properties.d.minimum",
        "properties.d.maximum",
    ];
    assert_eq!(places(&result), at);
    parameters(schema);
}

#[test]
fn schemas_that_contradict_each_other_are_reported() {
    for (schema, at) in [
        (r#"{"allOf":[{"type":"string"},{"type":"integer"}]}"#, "allOf"),
        (r#"{"allOf":[{"enum":["a"]},{"enum":["b"]}]}"#, "allOf"),
        (r#"{"anyOf":[{"type":"string"}],"allOf":[{"anyOf":[{"type":"integer"}]}]}"#, "anyOf"),
    ] {
        let result = json_schema(&format!(r#"{{"properties":{{"a":{schema}}}}}"#));
        let at = format!("properties.a.{at}");
        let told = |loss: &Loss| loss.at == at && loss.detail.starts_with("no value fits");
        assert!(result.losses.iter().any(told), "{schema}: {:?}", result.losses);
        assert_eq!(result.invalid.unwrap().at, at);
    }
}

#[test]
fn r133_r134_a_faulty_schema_is_named() {
    for (schema, fault) in [
        (
            r#"{"type":"object","properties":{"a":{"type":7}}}"#,
            Some("properties.a.type: `type` must be the name of a type, or a list of them"),
        ),
        (r#"{"type":"object","properties":{"a":{"pattern":"x"}}}"#, None),
    ] {
        for emit in EMITS {
            let invalid = compiled(schema, SchemaForm::JsonSchema, emit).invalid;
            assert_eq!(invalid.map(|fault| fault.to_string()).as_deref(), fault);
        }
    }
    // However much else there is to say.
    let many: Vec<String> = (0..150).map(|at| format!(r#""p{at}":{{"const":{at}}}"#)).collect();
    let schema = format!(r#"{{"properties":{{{},"z":5}}}}"#, many.join(","));
    assert_eq!(json_schema(&schema).invalid.unwrap().at, "properties.z");
}

#[test]
fn r6_r7_r8_r13_everyday_schemas_convert_whole() {
    let schema = r#"{"type":"object","properties":{
        "city_Name":{"type":"string","description":"Which","format":"date-time","enum":["a","b"]},
        "n":{"type":"number","format":"double","minimum":0,"maximum":1},"i":{"type":"integer","format":"int64"},"b":{"type":"boolean"},
        "list":{"type":"array","items":{"type":"object","properties":{"deep":{"type":"array","items":{"type":"string"}}},"required":["deep"]},"minItems":1,"maxItems":3}},
        "required":["city_Name","list"]}"#;
    let result = json_schema(schema);
    assert_eq!(value(&result.json), value(schema));
    assert!(result.losses.is_empty());
    let lowered = parameters(schema);
    assert_eq!(value(&lowered.json.to_lowercase()), value(&schema.to_lowercase()));
    assert!(lowered.losses.is_empty());
    assert!(lowered.json.contains(r#""city_Name":{"type":"STRING""#));
}

#[test]
fn r14_other_keywords_are_no_error() {
    let schema = r#"{"type":"object","properties":{"a":{"type":"string","madeUp":{"x":[1]}}},"unheardOf":true}"#;
    for emit in EMITS {
        let result = compiled(schema, SchemaForm::JsonSchema, emit);
        assert_eq!(places(&result), ["unheardOf", "properties.a.madeUp"]);
    }
}

#[test]
fn r16_types_change_case_all_the_way_down() {
    let schema = r#"{"type":"object","properties":{"a":{"type":"array","items":{"type":"object","properties":{"type":{"type":"boolean"}}}}}}"#;
    let want = r#"{"type":"OBJECT","properties":{"a":{"type":"ARRAY","items":{"type":"OBJECT","properties":{"type":{"type":"BOOLEAN"}}}}}}"#;
    assert_eq!(parameters(schema).json, want);
    let back = compiled(
        &want.replace(
            r#"{"type":"BOOLEAN"}"#,
            r#"{"type":"BOOLEAN","nullable":true,"format":"odd"}"#,
        ),
        SchemaForm::Gemini,
        Emit::JsonSchema,
    );
    assert_eq!(back.placement, Placement::JsonSchema);
    assert_eq!(
        value(&back.json)["properties"]["a"]["items"]["properties"]["type"]["type"],
        json!(["boolean", "null"])
    );
}

#[test]
fn r12_geminis_own_form_passes_as_it_is() {
    let schema = r#"{"type":"OBJECT","properties":{"city":{"type":"STRING","description":"x","nullable":true},"days":{"type":"ARRAY","items":{"type":"INTEGER"},"max_items":"5"}},"required":["city"],"propertyOrdering":["city","days"]}"#;
    for emit in EMITS {
        let result = compiled(schema, SchemaForm::Gemini, emit);
        assert_eq!((result.placement, result.json.as_str()), (Placement::Parameters, schema));
        assert!(result.losses.is_empty());
    }
}

#[test]
fn r12_geminis_own_form_is_converted_where_it_would_be_refused() {
    let schema = r##"{"type":"OBJECT","properties":{"a":{"any_of":[{"type":"STRING"},{"type":"INTEGER"}],"nullable":true,"description":"D"},
        "b":{"ref":"#/defs/B"},"c":{"type":"ARRAY","min_items":"1"}},"defs":{"B":{"type":"OBJECT","properties":{"x":{"type":"NUMBER"}}}},"property_ordering":["c","a","ghost"]}"##;
    let result = compiled(schema, SchemaForm::Gemini, Emit::JsonSchema);
    let json = value(&result.json);
    assert_eq!(
        json["properties"]["a"],
        json!({"description":"D","anyOf":[{"type":"string"},{"type":"integer"},{"type":"null"}]})
    );
    assert_eq!(json["properties"]["b"], json!({"$ref":"#/$defs/B"}));
    assert_eq!(json["properties"]["c"], json!({"type":"array","items":{},"minItems":1}));
    assert_eq!(json["propertyOrdering"], json!(["c", "a"]));
    let result = compiled(schema, SchemaForm::Gemini, Emit::ParametersVertex);
    let json = value(&result.json);
    assert_eq!(
        json["properties"]["a"],
        json!({"anyOf":[{"type":"STRING","nullable":true,"description":"D"},{"type":"INTEGER","nullable":true,"description":"D"}]})
    );
    assert_eq!(
        json["properties"]["b"],
        json!({"type":"OBJECT","properties":{"x":{"type":"NUMBER"}}})
    );
}

#[test]
fn raw_is_sent_as_the_client_wrote_it() {
    let raw = |schema: &str| {
        let raw = Raw::parse(schema.to_owned()).unwrap();
        compile(Some(&raw), SchemaForm::JsonSchema, Emit::JsonSchemaRaw)
    };
    let schema =
        r#"{"type":"object","properties":{"a":{"const":1,"not":{"type":"null"},"x-y":1}}}"#;
    assert_eq!(raw(schema).json, schema);
    assert_eq!(raw(schema).placement, Placement::JsonSchema);
    let untyped = raw(r#"{"properties":{"a":{}}}"#);
    assert_eq!(untyped.json, r#"{"type":"object","properties":{"a":{}}}"#);
    assert_eq!(places(&untyped), ["type"]);
}

#[test]
fn answers_may_have_any_type_at_the_root() {
    let raw = Raw::parse(r#"{"type":"array","items":{"const":"x"}}"#.to_owned()).unwrap();
    let compile = |emit| toolgate_core::schema::compile_output(&raw, SchemaForm::JsonSchema, emit);
    assert_eq!(
        compile(Emit::JsonSchema).json,
        r#"{"type":"array","items":{"type":"string","enum":["x"]}}"#
    );
    assert_eq!(
        compile(Emit::ParametersVertex).json,
        r#"{"type":"ARRAY","items":{"type":"STRING","enum":["x"]}}"#
    );
    assert_eq!(compile(Emit::JsonSchemaRaw).json, raw.get());
}

#[test]
fn losses_say_what_happened_in_words() {
    let result =
        json_schema(r#"{"type":"object","properties":{"a":{"type":"string","pattern":"^a$"}}}"#);
    let loss: Value = serde_json::to_value(&result.losses[0]).unwrap();
    assert_eq!(
        loss,
        json!({"at":"properties.a.pattern","code":"schema_keyword","detail":"Gemini does not act on `pattern`; the description says it"})
    );
}
