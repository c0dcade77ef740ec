//! Conversion of tools to Gemini's `functionDeclarations`.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};
use toolgate_core::canon::SchemaForm;
use toolgate_core::json::Raw;
use toolgate_core::schema::{Emit, Placement, compile};

use crate::{Catalogue, Definition, Tool, ToolName};

/// Longest function name that Gemini accepts.
const MAX_FUNCTION_NAME: usize = 64;

/// Most declarations that Gemini accepts in one request.
const MAX_DECLARATIONS: usize = 512;

/// Tools in Gemini's form.
#[derive(Clone, Debug)]
pub struct GeminiTools {
    /// JSON text of one `Tool`: `{"functionDeclarations":[…]}`.
    pub json: Box<RawValue>,
    /// Tool of each function name in the declarations.
    pub names: BTreeMap<String, ToolName>,
}

/// Reason why tools have no form that Gemini accepts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConvertError {
    /// A source cannot be listed.
    #[error("tools of `{source_name}` cannot be listed: {fault}")]
    Listing {
        /// Namespace of the source.
        source_name: String,
        /// Kind of the failure.
        fault: &'static str,
    },
    /// The schema of a tool exceeds the limits of Gemini.
    #[error("the schema of `{0}` is too large")]
    TooLarge(ToolName),
    /// There are more tools than Gemini accepts in one request.
    #[error("{0} tools; Gemini accepts at most 512 in one request")]
    TooMany(usize),
    /// A schema is no JSON.
    #[error("the schema of `{0}` is not valid")]
    Schema(ToolName),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Declaration<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<Box<RawValue>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Declarations {
    function_declarations: Vec<Box<RawValue>>,
}

/// Converts a catalogue: all of its tools or an error.
///
/// # Errors
/// Fails if a source of the catalogue could not be listed, or a tool cannot be converted.
pub fn convert(catalogue: &Catalogue) -> Result<GeminiTools, ConvertError> {
    if let Some((source, failure)) = catalogue.failures.first() {
        return Err(ConvertError::Listing {
            source_name: source.to_string(),
            fault: failure.kind(),
        });
    }
    if catalogue.tools.len() > MAX_DECLARATIONS {
        return Err(ConvertError::TooMany(catalogue.tools.len()));
    }
    let mut names = BTreeMap::new();
    let mut declarations = Vec::with_capacity(catalogue.tools.len());
    for tool in &catalogue.tools {
        let name = function_name(&tool.name);
        declarations.push(declaration(tool, &name)?);
        names.insert(name, tool.name.clone());
    }
    let tools = Declarations { function_declarations: declarations };
    let json = serde_json::value::to_raw_value(&tools)
        .map_err(|_| ConvertError::TooMany(catalogue.tools.len()))?;
    Ok(GeminiTools { json, names })
}

/// Converts one tool to a `FunctionDeclaration`.
///
/// # Errors
/// Fails if the schema of the tool cannot be converted.
pub fn convert_tool(tool: &Arc<Tool>) -> Result<Box<RawValue>, ConvertError> {
    declaration(tool, &function_name(&tool.name))
}

fn declaration(tool: &Tool, name: &str) -> Result<Box<RawValue>, ConvertError> {
    let invalid = || ConvertError::Schema(tool.name.clone());
    let Definition { description, input_schema, .. } = &tool.definition;
    let schema = Raw::parse(input_schema.get().to_owned()).ok_or_else(invalid)?;
    let compiled = compile(Some(&schema), SchemaForm::JsonSchema, Emit::ParametersDeveloper);
    if compiled.is_too_large {
        return Err(ConvertError::TooLarge(tool.name.clone()));
    }
    let parameters = match compiled.placement {
        Placement::Absent => None,
        Placement::Parameters | Placement::JsonSchema => {
            Some(RawValue::from_string(compiled.json).map_err(|_| invalid())?)
        }
    };
    let description = match (description.clone(), compiled.note) {
        (Some(text), Some(note)) => Some(format!("{text}\n\n{note}")),
        (text, note) => text.or(note),
    };
    serde_json::value::to_raw_value(&Declaration { name, description, parameters })
        .map_err(|_| invalid())
}

/// Returns the function name of a tool: `namespace__name`, or a part of it and a hash where that is
/// too long or could be the name of another tool.
pub fn function_name(name: &ToolName) -> String {
    let plain = format!("{}__{}", name.namespace(), name.name());
    let starts = plain.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let is_unique = !name.namespace().contains("__") && !name.namespace().ends_with('_');
    if plain.len() <= MAX_FUNCTION_NAME && starts && is_unique && !name.name().starts_with('_') {
        return plain;
    }
    let hash = Sha256::digest(name.to_string().as_bytes());
    let digits: String = hash.iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    let start = if starts { "" } else { "_" };
    let room = MAX_FUNCTION_NAME - digits.len() - 1 - start.len();
    let head: String = plain.chars().take(room).collect();
    format!("{start}{head}_{digits}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t18_long_names_stay_distinct() {
        let name = |text: &str| text.parse::<ToolName>().map(|it| function_name(&it)).unwrap();
        assert_eq!(name("github.search_code"), "github__search_code");
        let long = format!("server.{}", "x".repeat(100));
        let (a, b) = (name(&format!("{long}a")), name(&format!("{long}b")));
        assert_ne!(a, b);
        assert!(a.len() <= 64 && b.len() <= 64);
        assert_ne!(name("a__b.c"), name("a.b__c"));
        assert_ne!(name("a_.b"), name("a._b"));
        assert!(name("1a.b").starts_with('_'));
    }
}
