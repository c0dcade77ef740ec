//! Any schema compiles deterministically, for every target, into one that Google accepts; and
//! arguments can be checked against it.
//!
//! The input is a schema, a blank line, and arguments.
#![no_main]

#[path = "support/mutate.rs"]
mod mutate;

use libfuzzer_sys::fuzz_target;
use serde_json::value::RawValue;
use toolgate_core::canon::{Backend, SchemaForm, Target};
use toolgate_core::json::Raw;
use toolgate_core::schema::{Cache, Compiled, Emit, Placement, compile, compile_output};
use toolgate_validate::{AnySignature, Method, check_request};

fuzz_target!(|input: &str| {
    let (schema, args) = input.split_once("\n\n").unwrap_or((input, "{}"));
    let Some(schema) = Raw::parse(schema.to_owned()) else { return };
    let cache = Cache::new(2);
    for form in [SchemaForm::JsonSchema, SchemaForm::Gemini] {
        for emit in [
            Emit::JsonSchema,
            Emit::JsonSchemaRaw,
            Emit::ParametersDeveloper,
            Emit::ParametersVertex,
        ] {
            let compiled = compile(Some(&schema), form, emit);
            match compiled.placement {
                Placement::Absent => assert!(compiled.json.is_empty()),
                Placement::JsonSchema | Placement::Parameters => {
                    serde_json::from_str::<&RawValue>(&compiled.json).unwrap();
                }
            }
            assert_eq!(compile(Some(&schema), form, emit).json, compiled.json);
            assert_eq!(cache.compile(Some(&schema), form, emit).json, compiled.json);
            if let Some(args) = Raw::parse(args.to_owned()) {
                let checked = compiled.checker.check(args);
                serde_json::from_str::<&RawValue>(checked.args.get()).unwrap();
            }
            let backends: &[Backend] = match emit {
                Emit::JsonSchema => &[Backend::Developer, Backend::Vertex],
                // Unchanged from the client, so it may be refused.
                Emit::JsonSchemaRaw => &[],
                Emit::ParametersDeveloper => &[Backend::Developer],
                Emit::ParametersVertex => &[Backend::Vertex],
            };
            for &backend in backends {
                if let Some(member) = member(&compiled, ["parametersJsonSchema", "parameters"]) {
                    check_accepted(
                        &format!(
                            r#""tools":[{{"functionDeclarations":[{{"name":"f",{member}}}]}}]"#
                        ),
                        backend,
                    );
                }
                let answer = compile_output(&schema, form, emit);
                if let Some(member) = member(&answer, ["responseJsonSchema", "responseSchema"]) {
                    check_accepted(
                        &format!(
                            r#""generationConfig":{{"responseMimeType":"application/json",{member}}}"#
                        ),
                        backend,
                    );
                }
            }
        }
    }
});

/// Member of the request that holds the schema.
fn member(compiled: &Compiled, [json_schema, parameters]: [&str; 2]) -> Option<String> {
    let name = match compiled.placement {
        Placement::Absent => return None,
        Placement::JsonSchema => json_schema,
        Placement::Parameters => parameters,
    };
    Some(format!(r#""{name}":{}"#, compiled.json))
}

/// Checks that Google accepts a request with this field.
fn check_accepted(field: &str, backend: Backend) {
    let body = format!(r#"{{"contents":[{{"parts":[{{"text":"x"}}]}}],{field}}}"#);
    for model in ["gemini-2.5-flash", "gemini-3.6-flash"] {
        let target = Target { model: model.to_owned(), backend };
        if let Err(error) = check_request(body.as_bytes(), &target, Method::Generate, &AnySignature)
        {
            panic!("{target:?} refuses: {}\n{body}", error.message);
        }
    }
}
