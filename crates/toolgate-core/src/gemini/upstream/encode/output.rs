//! JSON for an answer, in the ways that models allow.
//!
//! | the request also has | 3 and newer | 2.5 and older |
//! |---|---|---|
//! | no tools | JSON mode | JSON mode |
//! | functions | JSON mode | a function that takes the answer; one function must be called (`ANY`) |
//! | functions, none may be called | JSON mode | JSON mode, functions left out |
//! | functions, one must be called | no JSON mode: a call is not an answer in words | the same |
//! | only Gemini's own tools | JSON mode | an instruction |
//!
//! An instruction also serves where a function cannot: for an answer that need not be an object,
//! or whose schema the client does not say.

use std::borrow::Cow;
use std::sync::Arc;

use super::EncodeOptions;
use super::declare::{Declared, Parameters, emit};
use super::toolbox::{Calling, Mode, Toolbox, inside, note};
use crate::canon::{BadRequest, Loss, LossCode, Losses, OutputFormat, Request, SchemaForm};
use crate::gemini::upstream::Backend;
use crate::gemini::upstream::history::Rules;
use crate::json::{Kind, Raw, Text};
use crate::schema::{Emit, Placement, compile_output};

/// How the answer is asked for.
#[derive(Debug, Default)]
pub(super) enum Output {
    /// In words.
    #[default]
    Words,
    /// In JSON mode, with a schema under its name.
    Json { schema: Option<(&'static str, String)> },
    /// As the arguments of this function.
    Function(String),
}

/// Where losses about the answer's form are.
const AT: &str = "output";

/// Whether the answer's form may take one declaration more.
pub(super) fn may_need_function(request: &Request<'_>, rules: &Rules<'_>) -> bool {
    !beside_tools(rules) && request.output != OutputFormat::Text
}

fn beside_tools(rules: &Rules<'_>) -> bool {
    rules.profile.json_beside_tools && !rules.learned.no_json_beside_tools
}

/// Decides how the answer's form is asked for.
pub(super) fn plan_output<'r>(
    toolbox: &mut Toolbox<'r>,
    request: &'r Request<'r>,
    rules: &Rules<'_>,
    options: &EncodeOptions<'_>,
    losses: &mut Losses,
) -> Result<(), BadRequest> {
    if request.output == OutputFormat::Text {
        return Ok(());
    }
    let functions = !toolbox.functions.is_empty();
    let mode = toolbox.calling.as_ref().map(|calling| calling.mode);
    let beside = beside_tools(rules);
    match mode {
        Some(Mode::Any) => {
            let detail = "a function must be called, so the answer's form does not apply yet";
            losses.push(note(AT, LossCode::Ignored, detail));
            return Ok(());
        }
        Some(Mode::None) if !beside => {
            let detail = "no function may be called, and none goes with JSON output here";
            losses.push(note("tools", LossCode::ToolDropped, detail));
            toolbox.functions.clear();
            toolbox.entries.clear();
            toolbox.calling = None;
        }
        Some(Mode::Auto | Mode::Validated) | None if functions && !beside => {
            return answer_by_function(toolbox, request, rules, options, losses);
        }
        None if !toolbox.servers.is_empty() && !beside => {
            instruct(toolbox, request, losses);
            return Ok(());
        }
        Some(Mode::Auto | Mode::None | Mode::Validated) | None => {}
    }
    json_mode(toolbox, request, rules, options, losses)
}

fn json_mode<'r>(
    toolbox: &mut Toolbox<'r>,
    request: &'r Request<'r>,
    rules: &Rules<'_>,
    options: &EncodeOptions<'_>,
    losses: &mut Losses,
) -> Result<(), BadRequest> {
    toolbox.output = Output::Json { schema: None };
    let OutputFormat::JsonSchema { schema, form, .. } = &request.output else { return Ok(()) };
    let emit = match (form, rules.target.backend) {
        (SchemaForm::JsonSchema, _) => Emit::JsonSchema,
        (SchemaForm::Gemini, Backend::Developer) => Emit::ParametersDeveloper,
        (SchemaForm::Gemini, Backend::Vertex) => Emit::ParametersVertex,
    };
    // A function's parameters are an object; an answer need not be one.
    let mut compiled = None;
    if may_be_object(schema) {
        let object = options.cache.compile(Some(schema), *form, emit);
        compiled = Some(object).filter(|object| object.placement != Placement::Absent);
    }
    let compiled = compiled.unwrap_or_else(|| Arc::new(compile_output(schema, *form, emit)));
    if let Some(fault) = compiled.invalid.as_ref().filter(|_| options.strict) {
        let reason = format!("the schema of the answer is not valid: {}", fault.reason);
        return Err(BadRequest { at: inside(AT, &fault.at), reason });
    }
    report(&compiled.losses, losses);
    let name = match compiled.placement {
        Placement::Absent => return Ok(()),
        Placement::JsonSchema => "responseJsonSchema",
        Placement::Parameters => "responseSchema",
    };
    toolbox.output = Output::Json { schema: Some((name, compiled.json.clone())) };
    Ok(())
}

/// Declares a function that takes the answer, and has one function called: another one, or this.
fn answer_by_function<'r>(
    toolbox: &mut Toolbox<'r>,
    request: &'r Request<'r>,
    rules: &Rules<'_>,
    options: &EncodeOptions<'_>,
    losses: &mut Losses,
) -> Result<(), BadRequest> {
    let OutputFormat::JsonSchema { schema, form, description, name: _ } = &request.output else {
        instruct(toolbox, request, losses);
        return Ok(());
    };
    let emit = emit(*form, rules, options);
    let compiled = options.cache.compile(Some(schema), *form, emit);
    if !may_be_object(schema) {
        instruct(toolbox, request, losses);
        return Ok(());
    }
    report(&compiled.losses, losses);
    let mut notes = vec![Cow::Borrowed(
        "Gives the final answer. Call it once, with the whole answer, when no other function is \
         needed any more; never answer in words.",
    )];
    notes.extend(compiled.note.clone().map(Cow::Owned));
    // Where no member is named, the answer may be any object.
    let parameters = match (compiled.placement, emit) {
        (Placement::JsonSchema | Placement::Parameters, _) => Parameters::Compiled(compiled),
        (Placement::Absent, Emit::JsonSchema | Emit::JsonSchemaRaw) => {
            Parameters::Written("parametersJsonSchema", r#"{"type":"object"}"#.into())
        }
        (Placement::Absent, Emit::ParametersDeveloper | Emit::ParametersVertex) => {
            Parameters::Written("parameters", r#"{"type":"OBJECT"}"#.into())
        }
    };
    let name = rules.names.fresh("final_answer");
    let mut allowed = toolbox.calling.take().map(|calling| calling.allowed).unwrap_or_default();
    if !allowed.is_empty() {
        allowed.push(name.clone());
    }
    toolbox.calling = Some(Calling { mode: Mode::Any, allowed });
    toolbox.functions.push(Declared {
        alias: name.clone(),
        description: description.as_ref(),
        notes,
        schema: parameters,
        response: None,
    });
    let detail = format!("this model gives JSON beside functions by calling one, `{name}`");
    losses.push(note(AT, LossCode::Changed, &detail));
    toolbox.output = Output::Function(name);
    Ok(())
}

/// Says in words what form the answer shall have.
fn instruct(toolbox: &mut Toolbox<'_>, request: &Request<'_>, losses: &mut Losses) {
    let mut words = String::from(
        "When you give your final answer, give it as JSON only: no other words, no Markdown.",
    );
    match &request.output {
        OutputFormat::Text => return,
        OutputFormat::Json => words.push_str(" It must be one JSON object."),
        OutputFormat::JsonSchema { description, schema, .. } => {
            if let Some(description) = description {
                words.push_str("\n\n");
                words.push_str(&Text::decode(description));
            }
            words.push_str("\n\nIt must follow this schema:\n");
            words.push_str(&schema.compact());
        }
    }
    toolbox.instruction = Some(words);
    let detail = "the answer's form is asked for in the instructions; this model cannot be bound";
    losses.push(note(AT, LossCode::Changed, detail));
}

/// Whether something that follows the schema can be an object.
fn may_be_object(schema: &Raw<'_>) -> bool {
    let Some(fields) = schema.fields() else { return schema.kind() == Kind::Bool };
    let object = |raw: &Raw<'_>| {
        raw.as_text().is_some_and(|text| text.decode().eq_ignore_ascii_case("object"))
    };
    match fields.get("type") {
        None => fields.get("items").is_none() && fields.get("enum").is_none(),
        Some(kind) => object(kind) || kind.items().is_some_and(|kinds| kinds.iter().any(object)),
    }
}

fn report(found: &Losses, losses: &mut Losses) {
    losses.extend(found.iter().map(|loss| Loss { at: inside(AT, &loss.at), ..loss.clone() }));
}
