//! Rows of Gemini's own rules: forms to rework, forms that it refuses, and the keyword table.

use toolgate_core::canon::SchemaForm;
use toolgate_core::schema::{KEYWORDS, Treatment};

use crate::{EMITS, check, compiled, json_schema, parameters, places, value};

/// Each provokes one of Gemini's refusals when it is sent as it is. `compiled` runs the validator,
/// which knows those refusals.
#[test]
fn no_refusal_of_gemini_is_provoked() {
    for (refusal, property) in [
        (
            "Unknown name",
            r#"{"$schema":"x","const":1,"exclusiveMinimum":1,"propertyNames":{},"multipleOf":2,"uniqueItems":true,"examples":[],"if":{},"then":{},"not":{},"x-y":1}"#,
        ),
        ("cannot start list", r#"{"type":["string","array"],"items":{"type":["null","integer"]}}"#),
        ("Invalid value at type", r#"{"type":"enum"}"#),
        ("Invalid value at type", r#"{"type":["file","date"]}"#),
        ("numeric enum", r#"{"type":"string","enum":[2]}"#),
        ("enum only allowed for STRING", r#"{"type":"integer","enum":["a"]}"#),
        ("enum only allowed for STRING", r#"{"enum":["a","b"]}"#),
        ("enum cannot be empty", r#"{"type":"string","enum":[""]}"#),
        ("enum cannot be empty", r#"{"type":"string","enum":[]}"#),
        ("items missing field", r#"{"type":"array"}"#),
        ("items missing field", r#"{"type":["array","null"]}"#),
        ("items predicate failed", r#"{"type":"string","items":{"type":"string"}}"#),
        (
            "items predicate failed",
            r#"{"anyOf":[{"type":"string"},{"type":"array"}],"items":{"type":"string"}}"#,
        ),
        ("properties only allowed for OBJECT", r#"{"properties":{"a":{"type":"string"}}}"#),
        (
            "properties only allowed for OBJECT",
            r#"{"anyOf":[{"properties":{"a":{"type":"string"}}},{"required":["a"]}]}"#,
        ),
        (
            "properties only allowed for OBJECT",
            r#"{"type":"array","properties":{"a":{}},"required":["a"]}"#,
        ),
        (
            "key cannot be empty",
            r#"{"type":"object","properties":{"":{"type":"string"},"a":{}},"required":[""]}"#,
        ),
        ("should be non-empty", r#"{"type":"object","properties":{}}"#),
        ("should be non-empty", r#"{"type":"object","properties":{"":{}}}"#),
        (
            "property is not defined",
            r#"{"type":"object","properties":{"a":{}},"required":["a","b"]}"#,
        ),
        (
            "property is not defined",
            r#"{"type":"object","properties":{"a":{}},"anyOf":[{"properties":{"c":{}},"required":["a","c"]},{"required":["ghost"]}]}"#,
        ),
        (
            "property is not defined",
            r#"{"type":"object","properties":{"a":{}},"propertyOrdering":["b"]}"#,
        ),
        ("format", r#"{"type":"string","format":"uri"}"#),
        ("format", r#"{"type":"integer","format":"uint64"}"#),
        ("type must be specified", r#"{"description":"anything"}"#),
        ("type must be specified", "true"),
        (
            "too complex",
            r#"{"type":"array","items":{"type":"array","items":{"type":"string"},"maxItems":5000},"maxItems":5000}"#,
        ),
        (
            "any_of siblings",
            r#"{"type":"string","description":"D","anyOf":[{"format":"date-time"},{"pattern":"^a"}]}"#,
        ),
        (
            "any_of siblings",
            r#"{"nullable":true,"title":"T","default":1,"oneOf":[{"type":"integer"},{"type":"string"}]}"#,
        ),
        (
            "$ref siblings",
            r##"{"$ref":"#/$defs/X","type":"object","title":"T","nullable":true,"required":["x"]}"##,
        ),
        (
            "undefined schema",
            r##"{"anyOf":[{"$ref":"#/$defs/Missing"},{"$ref":"other.json#/a"}]}"##,
        ),
        ("int64", r#"{"type":"array","items":{},"minItems":1.5,"maxItems":"1e3"}"#),
        (
            "pattern: 5",
            r#"{"type":"string","pattern":5,"title":{},"description":[1],"format":true}"#,
        ),
    ] {
        let schema = format!(
            r#"{{"type":"object","properties":{{"p":{property}}},"required":["p"],"$defs":{{"X":{{"type":"object","properties":{{"x":{{}}}}}}}}}}"#
        );
        for form in [SchemaForm::JsonSchema, SchemaForm::Gemini] {
            for emit in EMITS {
                let result = compiled(&schema, form, emit);
                let json = value(&result.json);
                assert!(json["properties"].get("p").is_some(), "{refusal}: {}", result.json);
            }
        }
    }
}

#[test]
fn references_are_found_however_they_are_written() {
    for (reference, found) in [
        ("#/$defs/X", true),
        ("#/definitions/X", true),
        ("#/definitions/Y", true),
        ("#/properties/a/items", true),
        ("#/$defs/Outer/$defs/Inner", true),
        ("#/$defs/Odd~1Name%20x", true),
        ("#anchor", true),
        ("#old", true),
        ("https://example.com/s/inner.json", true),
        ("inner.json", true),
        ("X", true),
        ("#/$defs/Nope", false),
        ("https://example.com/other.json", false),
        ("#/properties/a/type", false),
    ] {
        let schema = format!(
            r##"{{"$id":"https://example.com/s/root.json","type":"object","properties":{{"a":{{"type":"array","items":{{"const":"found"}}}},"p":{{"$ref":"{reference}"}}}},
            "$defs":{{"X":{{"const":"found"}},"Outer":{{"$defs":{{"Inner":{{"const":"found"}}}}}},"Odd/Name x":{{"const":"found"}},
                "A":{{"$anchor":"anchor","const":"found"}},"O":{{"id":"#old","const":"found"}},"I":{{"$id":"inner.json","const":"found"}}}},
            "definitions":{{"Y":{{"const":"found"}}}}}}"##
        );
        let json = value(&parameters(&schema).json);
        assert_eq!(json["properties"]["p"]["enum"][0] == "found", found, "{reference}: {json}");
        json_schema(&schema);
    }
}

#[test]
fn nested_definitions_of_one_name_are_kept_apart() {
    let schema = r##"{"type":"object","properties":{
        "a":{"type":"array","items":{"$ref":"#/$defs/Item"},"$defs":{"Item":{"type":"string"}}},
        "b":{"type":"array","items":{"$ref":"#/$defs/Item"},"$defs":{"Item":{"type":"number"}}},
        "c":{"$ref":"#/properties/a/$defs/Item"}}}"##;
    let json = value(&json_schema(schema).json);
    assert_eq!(json["properties"]["a"]["items"]["$ref"], "#/$defs/Item");
    assert_eq!(json["properties"]["b"]["items"]["$ref"], "#/$defs/Item_2");
    assert_eq!(json["properties"]["c"]["$ref"], "#/$defs/Item");
    assert_eq!(json["$defs"]["Item_2"]["type"], "number");
}

#[test]
fn the_whole_schema_may_refer_to_itself() {
    let schema = r##"{"type":"object","properties":{"name":{"type":"string"},"child":{"$ref":"#"}},"required":["name","child"]}"##;
    let result = json_schema(schema);
    let json = value(&result.json);
    assert_eq!(json["properties"]["child"]["$ref"], "#/$defs/Root");
    assert_eq!(json["$defs"]["Root"]["required"], serde_json::json!(["name"]));
}

#[test]
fn booleans_are_schemas() {
    let schema =
        r#"{"type":"object","properties":{"yes":true,"no":false},"required":["yes","no"]}"#;
    let result = json_schema(schema);
    assert_eq!(result.json, r#"{"type":"object","properties":{"yes":{}},"required":["yes"]}"#);
    assert_eq!(places(&result), ["required", "properties.no"]);
}

#[test]
fn all_of_says_what_all_say() {
    check(
        r#"{"allOf":[{"type":"number","minimum":1,"description":"A"},{"type":"integer","minimum":3,"maximum":9,"description":"B"}],"title":"T"}"#,
        r#"{"type":"integer","title":"T","description":"A. B","minimum":3,"maximum":9}"#,
        r#"{"type":"INTEGER","title":"T","description":"A. B","minimum":3,"maximum":9}"#,
    );
    check(
        r#"{"allOf":[{"enum":["a","b"]},{"enum":["b","c"]}]}"#,
        r#"{"type":"string","enum":["b"]}"#,
        r#"{"type":"STRING","enum":["b"]}"#,
    );
    // What contradicts itself is not refused.
    check(
        r#"{"allOf":[{"type":"string"},{"type":"number"}]}"#,
        r#"{"type":"string"}"#,
        r#"{"type":"STRING"}"#,
    );
    check(
        r#"{"allOf":[{"anyOf":[{"type":"string"},{"type":"number"}]},{"anyOf":[{"type":"number"},{"type":"boolean"}]}]}"#,
        r#"{"type":"number"}"#,
        r#"{"type":"NUMBER"}"#,
    );
    let schema = r##"{"allOf":[{"$ref":"#/$defs/Base"},{"properties":{"b":{"type":"string"}},"required":["b","a"]}],
        "$defs":{"Base":{"type":"object","properties":{"a":{"type":"string"},"next":{"$ref":"#/$defs/Base"}}}}}"##;
    let json = value(&json_schema(schema).json);
    assert_eq!(json["required"], serde_json::json!(["b", "a"]));
    assert_eq!(json["properties"]["next"]["$ref"], "#/$defs/Base");
}

#[test]
fn formats_by_target() {
    let says = |format: &str| format!(r#"{{"type":"string","format":"{format}"}}"#);
    check(&says("date-time"), &says("date-time"), r#"{"type":"STRING","format":"date-time"}"#);
    check(&says("uri"), &says("uri"), r#"{"type":"STRING","description":"Format: uri."}"#);
    check(
        &says("color"),
        r#"{"type":"string","description":"Format: color."}"#,
        r#"{"type":"STRING","description":"Format: color."}"#,
    );
    check(
        r#"{"type":"integer","format":"int64"}"#,
        r#"{"type":"integer","format":"int64"}"#,
        r#"{"type":"INTEGER","format":"int64"}"#,
    );
}

/// A property with the keyword, and a word that stands for it in the compiled schema.
fn sample(keyword: &str) -> Option<&'static str> {
    Some(match keyword {
        "$anchor" | "$dynamicAnchor" => r#"{"type":"string","@":"x"}"#,
        "$comment" | "contentEncoding" | "contentMediaType" | "markdownDescription" => {
            r#"{"type":"string","description":"d","@":"x"}"#
        }
        "$ref" | "$dynamicRef" => r##"{"@":"#/$defs/X"}"##,
        "$recursiveRef" => r##"{"@":"#"}"##,
        "$recursiveAnchor" | "deprecated" | "readOnly" | "writeOnly" | "strict" => {
            r#"{"type":"string","@":true}"#
        }
        "$id" | "id" | "$schema" => r#"{"type":"string","@":"https://example.com/x"}"#,
        "$vocabulary" | "externalDocs" | "xml" => r#"{"type":"string","@":{}}"#,
        "additionalItems" => {
            r#"{"type":"array","items":[{"type":"string"}],"@":{"type":"number"}}"#
        }
        "unevaluatedItems" => {
            r#"{"type":"array","prefixItems":[{"type":"string"}],"@":{"type":"number"}}"#
        }
        "additionalProperties" | "unevaluatedProperties" => {
            r#"{"type":"object","@":{"type":"number"}}"#
        }
        "allOf" => r#"{"@":[{"type":"string"}]}"#,
        "anyOf" | "oneOf" => r#"{"@":[{"type":"string"},{"type":"number"}]}"#,
        "const" => r#"{"@":"x"}"#,
        "contains" => r#"{"type":"array","items":{},"@":{"type":"string"}}"#,
        "minContains" | "maxContains" => r#"{"type":"array","items":{},"contains":{},"@":2}"#,
        "contentSchema" | "not" => r#"{"type":"string","@":{"type":"number"}}"#,
        "default" | "example" => r#"{"type":"string","@":"x"}"#,
        "dependencies" | "dependentRequired" => r#"{"type":"object","@":{"a":["b"]}}"#,
        "dependentSchemas" => r#"{"type":"object","@":{"a":{"type":"object"}}}"#,
        "description" | "title" => r#"{"type":"string","@":"x"}"#,
        "discriminator" => r#"{"type":"object","@":{"propertyName":"kind"}}"#,
        "if" => r#"{"type":"object","@":{"required":["a"]}}"#,
        "then" | "else" => r#"{"type":"object","if":{},"@":{"required":["a"]}}"#,
        "enum" => r#"{"@":["a"]}"#,
        "enumDescriptions" | "enumNames" => r#"{"enum":["a"],"@":["x"]}"#,
        "examples" => r#"{"type":"string","@":["x"]}"#,
        "exclusiveMaximum" | "exclusiveMinimum" | "minimum" | "maximum" | "multipleOf" => {
            r#"{"type":"integer","@":5}"#
        }
        "format" => r#"{"type":"string","@":"date-time"}"#,
        "items" => r#"{"type":"array","@":{"type":"string"}}"#,
        "maxItems" | "minItems" => r#"{"type":"array","items":{"type":"string"},"@":5}"#,
        "maxLength" | "minLength" => r#"{"type":"string","@":5}"#,
        "maxProperties" | "minProperties" => {
            r#"{"type":"object","properties":{"a":{"type":"string"}},"@":1}"#
        }
        "nullable" => r#"{"type":"string","@":true}"#,
        "pattern" => r#"{"type":"string","@":"^a$"}"#,
        "patternProperties" | "properties" => r#"{"type":"object","@":{"a":{"type":"string"}}}"#,
        "prefixItems" => r#"{"type":"array","@":[{"type":"string"}]}"#,
        "propertyNames" => r#"{"type":"object","@":{"pattern":"^a"}}"#,
        "propertyOrdering" | "required" => {
            r#"{"type":"object","properties":{"a":{"type":"string"}},"@":["a"]}"#
        }
        "type" => r#"{"@":"string"}"#,
        "uniqueItems" => r#"{"type":"array","items":{"type":"string"},"@":true}"#,
        "x-*" => r#"{"type":"string","x-other":1}"#,
        // At the root of the schema below.
        "$defs" | "definitions" => r##"{"$ref":"#/@/X"}"##,
        _ => return None,
    })
}

#[test]
fn the_keyword_table_tells_the_truth() {
    for keyword in KEYWORDS {
        let property =
            sample(keyword.name).unwrap_or_else(|| panic!("no sample of {}", keyword.name));
        let property = property.replace('@', keyword.name);
        let home = if keyword.name == "definitions" { "definitions" } else { "$defs" };
        let schema = format!(
            r#"{{"type":"object","properties":{{"p":{property}}},"{home}":{{"X":{{"type":"object","properties":{{"q":{{"type":"string"}}}}}}}}}}"#
        );
        let name = if keyword.name == "x-*" { "x-other" } else { keyword.name };
        for (result, treatment) in
            [(json_schema(&schema), keyword.json_schema), (parameters(&schema), keyword.parameters)]
        {
            let json = value(&result.json);
            let at_root = matches!(name, "$defs" | "definitions");
            let place = if at_root { &json } else { &json["properties"]["p"] };
            let is_sent = place.get(name).is_some();
            let is_named =
                result.losses.iter().any(|loss| loss.at == format!("properties.p.{name}"));
            let text = format!("{name} is {}: {json} {:?}", treatment.name(), result.losses);
            match treatment {
                Treatment::Kept => assert!(is_sent && !is_named, "{text}"),
                Treatment::Used => assert!(!is_sent && !is_named, "{text}"),
                Treatment::Described => {
                    assert!(!is_sent && is_named, "{text}");
                    assert!(result.json.contains("description"), "{text}");
                }
                Treatment::Dropped => assert!(!is_sent && is_named, "{text}"),
                // References say the same in another place; that is no loss.
                Treatment::Rewritten if at_root || name.ends_with("ef") => {
                    assert!(!is_sent, "{text}")
                }
                Treatment::Rewritten => assert!(!is_sent && is_named, "{text}"),
            }
        }
    }
}

#[test]
fn the_documentation_lists_every_keyword() {
    let page = include_str!("../../../../docs/schema.md");
    let rows: Vec<Vec<&str>> = page
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| line.trim_matches('|').split(" | ").map(str::trim).collect())
        .collect();
    let want: Vec<Vec<String>> = KEYWORDS
        .iter()
        .map(|keyword| {
            vec![
                format!("`{}`", keyword.name),
                keyword.json_schema.name().to_owned(),
                keyword.parameters.name().to_owned(),
                keyword.how.to_owned(),
            ]
        })
        .collect();
    assert_eq!(rows, want);
}
