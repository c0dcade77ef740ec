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
//! A function takes an answer that need not be an object as its only argument. An instruction also
//! serves where a function cannot: for an answer whose schema the client does not say.

use std::borrow::Cow;

use super::EncodeOptions;
use super::declare::{Declared, Parameters, emit};
use super::toolbox::{Calling, Mode, Toolbox, inside, note};
use crate::canon::{
    Backend, BadRequest, Loss, LossCode, Losses, OutputFormat, Request, SchemaForm,
};
use crate::json::write::ObjectWriter;
use crate::json::{Fields, Raw, Text};
use crate::schema::{ANSWER, Compiled, Emit, Placement};
use crate::upstream::generate_content::AnswerFunction;
use crate::upstream::generate_content::history::Rules;

/// How the answer is asked for.
#[derive(Debug, Default)]
pub(super) enum Output {
    /// In words.
    #[default]
    Words,
    /// In JSON mode, with a schema under its name.
    Json { schema: Option<(&'static str, String)> },
    /// As the arguments of this function, or one of them.
    Function(AnswerFunction),
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
            losses.add_with(LossCode::Ignored, || note(AT, LossCode::Ignored, detail));
            return Ok(());
        }
        Some(Mode::None) if !beside => {
            let detail = "no function may be called, and none goes with JSON output here";
            losses.add_with(LossCode::ToolDropped, || note("tools", LossCode::ToolDropped, detail));
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
    let OutputFormat::JsonSchema { schema, form, description, name: _ } = &request.output else {
        return Ok(());
    };
    let emit = match (form, rules.target.backend) {
        (SchemaForm::JsonSchema, _) => Emit::JsonSchema,
        (SchemaForm::Gemini, Backend::Developer) => Emit::ParametersDeveloper,
        (SchemaForm::Gemini, Backend::Vertex) => Emit::ParametersVertex,
    };
    let compiled = options.cache.compile_output(schema, *form, emit);
    refuse_invalid(&compiled, options)?;
    report(&compiled.losses, losses);
    let description = description.as_ref().filter(|words| !words.is_empty());
    let (name, json) = match compiled.placement {
        Placement::Absent => (None, None),
        Placement::JsonSchema => {
            let json = description.and_then(|words| with_description(&compiled.json, words));
            (Some("responseJsonSchema"), json)
        }
        Placement::Parameters => (Some("responseSchema"), None),
    };
    if description.is_some() && json.is_none() {
        let detail = "there is no place for the description of the answer; it was left out";
        losses.add_with(LossCode::Ignored, || note(AT, LossCode::Ignored, detail));
    }
    if let Some(name) = name {
        let json = json.unwrap_or_else(|| compiled.json.clone());
        toolbox.output = Output::Json { schema: Some((name, json)) };
    }
    Ok(())
}

/// The schema with the client's words about the answer before its own.
fn with_description(json: &str, words: &Text<'_>) -> Option<String> {
    let schema = Raw::parse(json.to_owned())?;
    let Fields(members) = schema.fields()?;
    let mut out = Vec::new();
    let mut object = ObjectWriter::new(&mut out);
    let mut has_description = false;
    for (name, value) in &members {
        match value.as_text().filter(|_| name == "description") {
            Some(own) => {
                has_description = true;
                object.string(name, &format!("{}\n\n{}", words.decode(), own.decode()));
            }
            None => object.raw(name, value),
        }
    }
    if !has_description {
        object.text("description", words);
    }
    drop(object);
    String::from_utf8(out).ok()
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
    let emit = match emit(*form, rules, options) {
        Emit::JsonSchema | Emit::JsonSchemaRaw => Emit::JsonSchema,
        Emit::ParametersDeveloper => Emit::ParametersDeveloper,
        Emit::ParametersVertex => Emit::ParametersVertex,
    };
    let mut compiled = options.cache.compile_output(schema, *form, emit);
    refuse_invalid(&compiled, options)?;
    // Arguments are an object; an answer that need not be one is put into one.
    let argument = (!compiled.is_object).then_some(ANSWER);
    let mut notes = vec![Cow::Borrowed(
        "Gives the final answer. Call it once, with the whole answer, when no other function is \
         needed any more; never answer in words.",
    )];
    if argument.is_some() {
        compiled = options.cache.compile_argument(schema, *form, emit);
        notes.push(Cow::Borrowed("The answer itself is the argument `answer`."));
    }
    report(&compiled.losses, losses);
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
        schema: Parameters::Compiled(compiled),
        response: None,
    });
    let detail = format!("this model gives JSON beside functions by calling one, `{name}`");
    losses.add_with(LossCode::Changed, || note(AT, LossCode::Changed, &detail));
    toolbox.output = Output::Function(AnswerFunction { name, argument });
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
    losses.add_with(LossCode::Changed, || note(AT, LossCode::Changed, detail));
}

fn refuse_invalid(compiled: &Compiled, options: &EncodeOptions<'_>) -> Result<(), BadRequest> {
    match compiled.invalid.as_ref().filter(|_| options.strict) {
        Some(fault) => {
            let reason = format!("the schema of the answer is not valid: {}", fault.reason);
            Err(BadRequest { at: inside(AT, &fault.at), reason })
        }
        None => Ok(()),
    }
}

fn report(found: &Losses, losses: &mut Losses) {
    losses.extend_as(found, |loss| Loss { at: inside(AT, &loss.at), ..loss.clone() });
}
