//! Any schema compiles for every target, the same way twice, and arguments can be checked.
//!
//! The input is a schema; what follows the first blank line is arguments.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use toolgate_core::canon::SchemaForm;
use toolgate_core::json::Raw;
use toolgate_core::schema::{Cache, Emit, Placement, compile};

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
                    serde_json::from_str::<Value>(&compiled.json).unwrap();
                }
            }
            assert_eq!(compile(Some(&schema), form, emit).json, compiled.json);
            assert_eq!(cache.compile(Some(&schema), form, emit).json, compiled.json);
            if let Some(args) = Raw::parse(args.to_owned()) {
                let checked = compiled.checker.check(args);
                serde_json::from_str::<&serde_json::value::RawValue>(checked.args.get()).unwrap();
            }
        }
    }
});
