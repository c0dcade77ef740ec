//! Functions as they are declared.

use std::borrow::Cow;
use std::sync::Arc;

use super::toolbox::inside;
use super::{EncodeOptions, SchemaPolicy};
use crate::canon::{Backend, BadRequest, Function, Loss, Losses, SchemaForm};
use crate::json::{Kind, Raw, Text};
use crate::schema::{Compiled, Emit};
use crate::upstream::generate_content::ToolInput;
use crate::upstream::generate_content::history::Rules;

/// A function as it is declared.
#[derive(Debug)]
pub(super) struct Declared<'r> {
    pub(super) alias: String,
    pub(super) description: Option<&'r Text<'r>>,
    /// Further text of the description.
    pub(super) notes: Vec<Cow<'r, str>>,
    pub(super) schema: Parameters,
    /// The schema of the result, under its name.
    pub(super) response: Option<(&'static str, &'r Raw<'r>)>,
}

/// A function's parameters, under their name.
#[derive(Debug)]
pub(super) enum Parameters {
    Compiled(Arc<Compiled>),
    Written(&'static str, Cow<'static, str>),
}

/// Declares a function; `None` where its schema is too large, which is a loss or, with strict
/// validation, an error.
pub(super) fn declare_function<'r>(
    function: &'r Function<'r>,
    alias: String,
    place: &str,
    rules: &Rules<'_>,
    options: &EncodeOptions<'_>,
    losses: &mut Losses,
) -> Result<Option<(Declared<'r>, ToolInput)>, BadRequest> {
    let emit = emit(function.form, rules, options);
    let compiled = options.cache.compile(function.parameters.as_ref(), function.form, emit);
    let name = function.name.to_string();
    let place = inside(place, function.schema_field);
    if let Some(fault) = compiled.invalid.as_ref().filter(|_| options.strict) {
        let reason = format!("the schema of the tool `{name}` is not valid: {}", fault.reason);
        return Err(BadRequest { at: inside(&place, &fault.at), reason });
    }
    losses.extend_as(&compiled.losses, |loss| Loss {
        at: inside(&place, &loss.at),
        tool: Some(name.clone()),
        ..loss.clone()
    });
    if compiled.is_too_large {
        return Ok(None);
    }
    let response = function.response.as_ref().filter(|raw| raw.kind() != Kind::Null);
    let input = ToolInput::Json(Arc::clone(&compiled.checker));
    let declared = Declared {
        alias,
        description: function.description.as_ref(),
        notes: compiled.note.clone().map(Cow::Owned).into_iter().collect(),
        schema: Parameters::Compiled(compiled),
        response: response.map(|raw| match function.form {
            SchemaForm::JsonSchema => ("responseJsonSchema", raw),
            SchemaForm::Gemini => ("response", raw),
        }),
    };
    Ok(Some((declared, input)))
}

/// A tool that takes text is a function of one string.
pub(super) fn declare_freeform<'r>(
    alias: String,
    description: Option<&'r Text<'r>>,
    grammar: Option<&'r Text<'r>>,
    rules: &Rules<'_>,
    options: &EncodeOptions<'_>,
) -> Declared<'r> {
    let mut notes = vec![Cow::Borrowed(
        "Give the whole input as one string, `input`, exactly as the tool shall get it: no JSON \
         and no quotes around it.",
    )];
    if let Some(grammar) = grammar {
        notes.push(Cow::Borrowed("The input must follow this grammar:"));
        notes.push(grammar.decode());
    }
    let schema = match emit(SchemaForm::JsonSchema, rules, options) {
        Emit::JsonSchema | Emit::JsonSchemaRaw => Parameters::Written(
            "parametersJsonSchema",
            r#"{"type":"object","properties":{"input":{"type":"string"}},"required":["input"]}"#
                .into(),
        ),
        Emit::ParametersDeveloper | Emit::ParametersVertex => Parameters::Written(
            "parameters",
            r#"{"type":"OBJECT","properties":{"input":{"type":"STRING"}},"required":["input"]}"#
                .into(),
        ),
    };
    Declared { alias, description, notes, schema, response: None }
}

/// In which form this target gets a schema that is written in `form`.
pub(super) fn emit(form: SchemaForm, rules: &Rules<'_>, options: &EncodeOptions<'_>) -> Emit {
    let parameters = match rules.target.backend {
        Backend::Developer => Emit::ParametersDeveloper,
        Backend::Vertex => Emit::ParametersVertex,
    };
    let understood = rules.profile.json_schema && !options.learned.no_json_schema;
    match options.schema {
        SchemaPolicy::Parameters => parameters,
        SchemaPolicy::JsonSchema => Emit::JsonSchema,
        SchemaPolicy::Raw => Emit::JsonSchemaRaw,
        SchemaPolicy::Auto if understood && form == SchemaForm::JsonSchema => Emit::JsonSchema,
        SchemaPolicy::Auto => parameters,
    }
}
