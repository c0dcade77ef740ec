//! The rules of schemas, a row for each of Google's refusals.

use serde_json::{Value, json};

use super::*;

const AT: &str = "* GenerateContentRequest.tools[0].function_declarations[0].parameters";

/// One property `x` of a function on the Developer API.
#[track_caller]
fn check(property: Value, want: &[&str]) {
    let body = with_parameters(json!({"type": "object", "properties": {"x": property}}));
    let lines: Vec<_> = want.iter().map(|line| format!("{AT}.properties[x]{line}\n")).collect();
    if want.is_empty() {
        accepted(&target(NEW), &body);
    } else {
        refused(&target(NEW), &body, &lines.concat());
    }
}

#[test]
fn faulty_parameters_are_refused() {
    check(json!({"type": "integer", "enum": ["1"]}), &[".enum: only allowed for STRING type"]);
    check(json!({"enum": ["a"]}), &[".enum: only allowed for STRING type"]);
    check(json!({"type": "string", "enum": ["", "b"]}), &[".enum[0]: cannot be empty"]);
    check(json!({"type": "array"}), &[".items: missing field."]);
    check(
        json!({"type": "string", "items": {"type": "string"}}),
        &[".items: field predicate failed: $type == Type.ARRAY"],
    );
    check(
        json!({"type": "string", "properties": {"a": {"type": "string"}}, "required": ["a"]}),
        &[".properties: only allowed for OBJECT type", ".required: only allowed for OBJECT type"],
    );
    check(
        json!({"anyOf": [{"properties": {"a": {"type": "string"}}}, {"type": "null"}]}),
        &[".any_of[0].properties: only allowed for OBJECT type"],
    );
    check(
        json!({"type": "object", "properties": {"": {"type": "string"}}}),
        &[".properties[]: key cannot be empty"],
    );
    check(
        json!({"type": "object", "properties": {}}),
        &[".properties: should be non-empty for OBJECT type"],
    );
    check(
        json!({"anyOf": [{"type": "string"}, {"type": "null"}, {
            "type": "object", "properties": {"a": {"type": "string"}}, "required": ["a", "ghost"]
        }]}),
        &[".any_of[2].required[1]: property is not defined"],
    );
    check(
        json!({"type": "object", "properties": {"a": {"type": "string"}}, "propertyOrdering": ["b"]}),
        &[".property_ordering[0]: property is not defined"],
    );
    check(json!({}), &[".type: must be specified"]);
    check(json!({"type": "array", "items": {}}), &[".items.type: must be specified"]);
    check(json!({"description": "Anything"}), &[".type: must be specified"]);
    // Accepted.
    check(json!({"type": "object"}), &[]);
    check(
        json!({"type": "string", "format": "uri", "default": "a", "title": "T", "example": 1}),
        &[],
    );
    check(json!({"description": "D", "anyOf": [{"type": "string"}, {"type": "null"}]}), &[]);
    check(json!({"type": "STRING", "nullable": true, "enum": ["a"]}), &[]);
}

#[test]
fn every_fault_has_its_line() {
    let body = with_parameters(json!({"type": "object", "required": ["nope"], "properties": {
        "a": {"type": "array"}, "b": {"type": "number", "enum": ["1"]},
    }}));
    refused(
        &target(NEW),
        &body,
        &format!(
            "{AT}.required[0]: property is not defined\n{AT}.properties[a].items: missing field.\n\
             {AT}.properties[b].enum: only allowed for STRING type\n"
        ),
    );
}

#[test]
fn the_root_must_be_an_object() {
    let want = "`lookup` functionDeclaration parameters schema should be of type OBJECT.";
    for schema in [json!({"type": "string"}), json!({"anyOf": [{"type": "object"}]})] {
        refused(&target(NEW), &with_parameters(schema.clone()), want);
        refused(&target(NEW), &with_json_schema(schema), want);
    }
    for schema in [json!({"type": "object", "properties": {}}), json!({"type": "OBJECT"})] {
        accepted(&target(NEW), &with_parameters(schema.clone()));
        accepted(&target(NEW), &with_json_schema(schema));
    }
    accepted(&target(NEW), &with_json_schema(json!({})));
}

#[test]
fn legacy_models_are_stricter() {
    let old = target("gemini-2.0-flash");
    refused(
        &old,
        &with_parameters(json!({"type": "object", "properties": {}})),
        &format!("{AT}.properties: should be non-empty for OBJECT type\n"),
    );
    refused(
        &old,
        &with_parameters(
            json!({"type": "object", "properties": {"x": {"type": "string", "format": "uri"}}}),
        ),
        &format!(
            "{AT}.properties[x].format: only 'enum' and 'date-time' are supported for STRING type\n"
        ),
    );
}

#[test]
fn vertex_words_its_refusals_differently() {
    let learn = "Learn more: https://cloud.google.com/vertex-ai/generative-ai/docs/multimodal/\
                 function-calling";
    let check = |schema: Value, want: &str| {
        refused(
            &vertex(NEW),
            &with_parameters(schema),
            &format!("Unable to submit request because {want} {learn}"),
        );
    };
    let object = |property: Value| json!({"type": "object", "properties": {"x": property}});
    for sibling in [json!({"type": "string"}), json!({"description": "D"}), json!({"items": {}})] {
        let mut union = json!({"anyOf": [{"type": "string"}, {"type": "integer"}]});
        union.as_object_mut().unwrap().extend(sibling.as_object().unwrap().clone());
        check(
            object(union),
            "`lookup` functionDeclaration `parameters.x` schema specified other fields alongside \
             any_of. When using any_of, it must be the only field set.",
        );
    }
    check(
        json!({"type": "string"}),
        "`lookup` functionDeclaration parameters schema should be of type OBJECT.",
    );
    check(
        object(json!({"type": "object", "properties": {"y": {"description": "D"}}})),
        "`lookup` functionDeclaration `parameters.x.y` schema didn't specify the schema type field.",
    );
    accepted(&vertex(NEW), &with_parameters(object(json!({"type": "integer", "enum": ["1"]}))));
    accepted(
        &vertex(NEW),
        &with_parameters(json!({
            "type": "object",
            "properties": {"x": {"ref": "#/defs/a"}},
            "defs": {"a": {"type": "object", "additionalProperties": false}},
        })),
    );
    // This rule applies to `parameters` only: a JSON Schema may have sibling keywords.
    accepted(
        &vertex(NEW),
        &with_json_schema(object(json!({"description": "D", "anyOf": [{"type": "string"}]}))),
    );
}

#[test]
fn faulty_json_schemas_are_refused() {
    let object = |property: Value| json!({"type": "object", "properties": {"x": property}});
    let check = |schema: Value, want: &str| refused(&target(NEW), &with_json_schema(schema), want);
    check(
        json!({"type": "object", "$defs": {"Pick": {"type": "string"}}, "properties": {"x": {
            "$ref": "#/$defs/Pick", "type": "string"
        }}}),
        "$ref 'Pick' was set alongside unsupported fields. If a schema node has $ref set, then \
         only description and default can be set alongside it",
    );
    check(
        object(json!({"anyOf": [{"type": "null"}, {"$ref": "#/$defs/Nope"}]})),
        "reference to undefined schema at properties.x.anyOf.1",
    );
    check(
        json!({"type": "object", "definitions": {"A": {}}, "properties": {"x": {"$ref": "#/definitions/A"}}}),
        "reference to undefined schema at properties.x",
    );
    check(
        json!({"type": "object", "properties": []}),
        "value for properties at top-level must be an object",
    );
    check(object(json!(true)), "value for x at properties must be an object");
    check(
        object(json!({"type": "array", "maxItems": 961, "items": {"type": "string"}})),
        "Request contains an invalid argument.",
    );
    check(
        json!({"type": "object", "properties": {
            "a": {"type": "array", "maxItems": 500, "items": {}}, "b": {"type": "array", "maxItems": 500, "items": {}},
        }}),
        "Request contains an invalid argument.",
    );
    let node = |required: Value| {
        json!({"type": "object", "properties": {"root": {"$ref": "#/$defs/Node"}}, "$defs": {
            "Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}, "required": required},
        }})
    };
    check(node(json!(["next"])), "maximum schema depth exceeded");
    accepted(&target(NEW), &with_json_schema(node(json!([]))));
    for fine in [
        json!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "additionalProperties": false}),
        object(json!({"type": ["string", "null"], "const": "a", "pattern": "^a", "minLength": 1})),
        object(
            json!({"type": "array", "prefixItems": [{"type": "string"}, {}], "items": false, "uniqueItems": true}),
        ),
        object(
            json!({"oneOf": [{"type": "integer", "enum": [1, 2]}], "not": {"type": "null"}, "description": "D"}),
        ),
        json!({"type": "object", "properties": {"$ref": {"type": "string"}, "type": {"type": "string"}}, "required": ["$ref", "ghost"]}),
        json!({"type": "object", "$defs": {"A": {"$anchor": "a", "type": "string"}}, "properties": {"x": {"$ref": "#a", "default": "z", "description": "D"}}}),
    ] {
        accepted(&target(NEW), &with_json_schema(fine));
    }
}

#[test]
fn schemas_nested_too_deeply_are_refused() {
    let nested = |levels: usize| {
        let mut schema = json!({"type": "string"});
        for _ in 1..levels {
            schema = json!({"type": "array", "items": schema});
        }
        schema
    };
    let object = |levels: usize| json!({"type": "object", "properties": {"x": nested(levels)}});
    accepted(&target(NEW), &with_parameters(object(31)));
    let named =
        "FunctionDeclaration 'lookup' in the request exceeds the maximum allowed nesting depth.";
    refused(&target(NEW), &with_parameters(object(32)), named);
    refused(&target(NEW), &with_json_schema(object(32)), named);
    refused(
        &target(NEW),
        &with(json!({"tools": [{"functionDeclarations": [{"parameters": object(32)}]}]})),
        "A FunctionDeclaration in the request exceeds the maximum allowed nesting depth.",
    );
    for field in ["responseSchema", "responseJsonSchema"] {
        refused(
            &target(NEW),
            &with(
                json!({"generationConfig": {"responseMimeType": "application/json", field: object(32)}}),
            ),
            "A schema in GenerationConfig in the request exceeds the maximum allowed nesting depth.",
        );
    }
}

#[test]
fn many_references_are_followed_once() {
    let mut defs = serde_json::Map::new();
    for n in 0..200 {
        let next = format!("#/$defs/D{}", (n + 1) % 200);
        defs.insert(
            format!("D{n}"),
            json!({
                "type": "object",
                "properties": {"a": {"$ref": next}, "b": {"$ref": next}},
                "required": if n % 2 == 0 { json!(["a", "b"]) } else { json!([]) },
            }),
        );
    }
    let schema =
        json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/D0"}}, "$defs": defs});
    accepted(&target(NEW), &with_json_schema(schema));
}

#[test]
fn schemas_with_too_many_states_are_refused() {
    let schema = json!({"type": "object", "properties": {"x": {
        "type": "array", "maxItems": 900, "items": {"type": "string", "enum": vec!["a long name for one thing"; 40]}
    }}});
    let body = |mode: &str| {
        let mut body = with_json_schema(schema.clone());
        body["toolConfig"] = json!({"functionCallingConfig": {"mode": mode}});
        body
    };
    accepted(&target(NEW), &body("AUTO"));
    let error = ask(&target(NEW), &body("ANY")).unwrap_err();
    assert!(
        error.message.starts_with(
            "The specified schema produces a constraint that has too many states for serving.  \
             Typical causes"
        ),
        "{}",
        error.message
    );
}
