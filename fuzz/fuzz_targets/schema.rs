//! Any schema compiles for every target, the same way twice, into what Google takes; and arguments
//! can be checked.
//!
//! The input is a schema; what follows the first blank line is arguments.
#![no_main]

#[path = "support/mutate.rs"]
mod mutate;

use libfuzzer_sys::fuzz_target;
use serde_json::value::RawValue;
use toolgate_core::canon::SchemaForm;
use toolgate_core::gemini::{Backend, Target};
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
                // As the client wrote it: that is the client's to answer for.
                Emit::JsonSchemaRaw => &[],
                Emit::ParametersDeveloper => &[Backend::Developer],
                Emit::ParametersVertex => &[Backend::Vertex],
            };
            for &backend in backends {
                if let Some(member) = member(&compiled, ["parametersJsonSchema", "parameters"]) {
                    taken(
                        &format!(
                            r#""tools":[{{"functionDeclarations":[{{"name":"f",{member}}}]}}]"#
                        ),
                        backend,
                    );
                }
                let answer = compile_output(&schema, form, emit);
                if let Some(member) = member(&answer, ["responseJsonSchema", "responseSchema"]) {
                    taken(
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

/// The member of a message that the schema is.
fn member(compiled: &Compiled, [json_schema, parameters]: [&str; 2]) -> Option<String> {
    let name = match compiled.placement {
        Placement::Absent => return None,
        Placement::JsonSchema => json_schema,
        Placement::Parameters => parameters,
    };
    Some(format!(r#""{name}":{}"#, compiled.json))
}

/// Google takes a request with this in it.
fn taken(field: &str, backend: Backend) {
    let body = format!(r#"{{"contents":[{{"parts":[{{"text":"x"}}]}}],{field}}}"#);
    for model in ["gemini-2.5-flash", "gemini-3.6-flash"] {
        let target = Target { model: model.to_owned(), backend };
        if let Err(error) = check_request(body.as_bytes(), &target, Method::Generate, &AnySignature)
        {
            panic!("{target:?} refuses: {}\n{body}", error.message);
        }
    }
}
