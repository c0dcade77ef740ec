//! Compiler of a client's schema for a target.

use std::sync::Arc;

use super::Checker;
use super::emit;
use super::finding::{Effect, Findings};
use super::node::{Additional, Document, Node, Types};
use super::read::Reader;
use super::size;
use super::tree::Tree;
use crate::canon::{BadRequest, Loss, LossCode, Losses, SchemaForm};
use crate::json::Raw;

/// Form of the schema that the target accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
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

/// Member of the declaration that holds the schema.
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
    /// Addition to the function's description: constraints that the schema cannot express.
    pub note: Option<String>,
    /// Changes; `at` is a path inside the schema (`properties.a.const`).
    pub losses: Losses,
    /// First fault of the client's schema itself, and its place. It was
    /// repaired; who wants to be strict can refuse the request instead.
    pub invalid: Option<BadRequest>,
    /// Whether it says that the value is an object, and nothing else.
    pub is_object: bool,
    /// The client's schema, for checking arguments.
    pub checker: Arc<Checker>,
    /// The schema exceeds [`MAX_VALUES`](super::MAX_VALUES) or [`MAX_BYTES`](super::MAX_BYTES) and
    /// was not read. A function that has such a schema is not declared.
    pub is_too_large: bool,
    /// Work done, for tests of how it grows: schemas visited, merged and compared, names, values,
    /// text read and written.
    #[doc(hidden)]
    pub work: usize,
}

/// The argument of a function that takes an answer which need not be an object.
pub const ANSWER: &str = "answer";

/// Subject of a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Subject {
    /// A function's arguments.
    Arguments,
    /// An answer.
    Output,
    /// An answer that is a function's only argument.
    Argument,
}

/// Compiles the schema of a function's arguments: the result is always an object.
///
/// ```
/// use toolgate_core::canon::SchemaForm;
/// use toolgate_core::json::Raw;
/// use toolgate_core::schema::{Emit, compile};
///
/// let schema = Raw::parse(r#"{"properties":{"kind":{"const":"a"}}}"#.to_owned());
/// let compiled = compile(schema.as_ref(), SchemaForm::JsonSchema, Emit::JsonSchema);
/// assert_eq!(
///     compiled.json,
///     r#"{"type":"object","properties":{"kind":{"type":"string","enum":["a"]}}}"#
/// );
/// assert_eq!(compiled.losses[0].at, "properties.kind.const");
/// ```
pub fn compile(schema: Option<&Raw<'_>>, form: SchemaForm, emit: Emit) -> Compiled {
    compile_as(Subject::Arguments, schema, form, emit)
}

/// Compiles the schema of an answer or of a function's result, which may be of any type. What the
/// schema can no longer say is in its own description; it is absent where it says nothing.
pub fn compile_output(schema: &Raw<'_>, form: SchemaForm, emit: Emit) -> Compiled {
    compile_as(Subject::Output, Some(schema), form, emit)
}

pub(super) fn compile_as(
    subject: Subject,
    schema: Option<&Raw<'_>>,
    form: SchemaForm,
    emit: Emit,
) -> Compiled {
    let text = schema.map_or("null", Raw::get);
    if let Some(limit) = size::exceeded(text) {
        return too_large(subject, form, emit, &limit);
    }
    let tree = Tree::parse(text);
    let checker = Arc::new(schema.map(|_| Checker::of(&tree)).unwrap_or_default());
    let outcome = match subject {
        Subject::Arguments => arguments(&tree, form, emit),
        Subject::Output => output(&tree, form, emit),
        Subject::Argument => argument(&tree, form, emit),
    };
    finished(&tree, outcome, checker)
}

/// Outcome of a compilation, with places still as slices of the schema's text.
pub(super) struct Outcome<'t> {
    pub(super) placement: Placement,
    pub(super) json: String,
    pub(super) note: Option<String>,
    pub(super) findings: Findings<'t>,
    pub(super) invalid: Option<BadRequest>,
    pub(super) is_object: bool,
}

/// Stands for a schema that was not read; `limit` says why.
fn too_large(subject: Subject, form: SchemaForm, emit: Emit, limit: &str) -> Compiled {
    let (code, what) = match subject {
        Subject::Arguments => (LossCode::ToolDropped, "the tool"),
        Subject::Output | Subject::Argument => (LossCode::SchemaKeyword, "the answer's schema"),
    };
    let detail = format!("the schema is too large: {limit}; {what} was left out");
    let mut compiled = match subject {
        Subject::Arguments | Subject::Output => Compiled {
            placement: Placement::Absent,
            json: String::new(),
            note: None,
            losses: Losses::new(),
            invalid: None,
            is_object: false,
            checker: Arc::default(),
            is_too_large: true,
            work: 0,
        },
        // Any answer goes.
        Subject::Argument => {
            let tree = Tree::parse("true");
            finished(&tree, argument(&tree, form, emit), Arc::default())
        }
    };
    compiled.losses = [Loss { at: String::new(), code, detail, tool: None }].into_iter().collect();
    compiled.invalid = Some(BadRequest { at: String::new(), reason: limit.to_owned() });
    compiled.is_too_large = true;
    compiled
}

fn finished(tree: &Tree<'_>, mut outcome: Outcome<'_>, checker: Arc<Checker>) -> Compiled {
    outcome.findings.sort();
    let text = tree.text.len() + outcome.json.len();
    let work = outcome.findings.work + checker.size() + text / 16;
    Compiled {
        placement: outcome.placement,
        json: outcome.json,
        note: outcome.note,
        losses: outcome.findings.losses(tree),
        invalid: outcome.invalid,
        is_object: outcome.is_object,
        checker,
        is_too_large: false,
        work,
    }
}

/// Compiles the schema of a function's arguments.
pub(super) fn arguments<'t>(tree: &'t Tree<'t>, form: SchemaForm, emit: Emit) -> Outcome<'t> {
    if form == SchemaForm::Gemini && emit::is_valid_parameters(tree, true) {
        return as_it_is(tree, Placement::Parameters);
    }
    let lowered = matches!(emit, Emit::ParametersDeveloper | Emit::ParametersVertex);
    let (mut document, mut findings) = Reader::new(tree, form, lowered).document(tree, true);
    if lowered {
        document = emit::lower(&document, &mut findings);
    } else {
        emit::clean(&mut document, &mut findings);
    }
    let invalid = findings.first_fault(tree);
    let mut note = notes(&mut document.root);
    if takes_nothing(&document.root, lowered) {
        if let Some(description) = document.root.description.take() {
            note = Some(match note {
                Some(note) => format!("{description} {note}"),
                None => description.into_owned(),
            });
        }
        let json = String::new();
        let placement = Placement::Absent;
        return Outcome { placement, json, note, findings, invalid, is_object: true };
    }
    match emit {
        Emit::JsonSchemaRaw => Outcome { invalid, ..as_written(tree, form) },
        Emit::JsonSchema | Emit::ParametersDeveloper | Emit::ParametersVertex => {
            let (placement, json) = written(&document, lowered);
            Outcome { placement, json, note, findings, invalid, is_object: true }
        }
    }
}

fn output<'t>(tree: &'t Tree<'t>, form: SchemaForm, emit: Emit) -> Outcome<'t> {
    if form == SchemaForm::Gemini && emit::is_valid_parameters(tree, false) {
        let may_be_null = tree.get("nullable").and_then(Tree::as_bool) == Some(true);
        let named = tree.get("type").and_then(Tree::as_str).and_then(Types::by_name);
        let is_object = named == Some(Types::OBJECT) && !may_be_null;
        return Outcome { is_object, ..as_it_is(tree, Placement::Parameters) };
    }
    if emit == Emit::JsonSchemaRaw {
        return as_it_is(tree, placement_of(form));
    }
    let lowered = matches!(emit, Emit::ParametersDeveloper | Emit::ParametersVertex);
    let (document, findings) = Reader::new(tree, form, lowered).document(tree, false);
    if document.root.is_any() && !document.root.is_annotated() {
        let (placement, json, invalid) =
            (Placement::Absent, String::new(), findings.first_fault(tree));
        return Outcome { placement, json, note: None, findings, invalid, is_object: false };
    }
    let is_object = document.root.types == Types::OBJECT && document.root.any_of.is_empty();
    Outcome { is_object, ..of_any_type(tree, document, findings, lowered) }
}

/// An object with the answer in it.
fn argument<'t>(tree: &'t Tree<'t>, form: SchemaForm, emit: Emit) -> Outcome<'t> {
    let lowered = matches!(emit, Emit::ParametersDeveloper | Emit::ParametersVertex);
    let (mut document, findings) = Reader::new(tree, form, lowered).document(tree, false);
    let mut object = Node::of_type(tree.text, Types::OBJECT);
    let answer = std::mem::replace(&mut document.root, Node::any(tree.text));
    object.object_mut().properties.push((ANSWER.into(), answer));
    object.object_mut().required.push(ANSWER.into());
    document.root = object;
    of_any_type(tree, document, findings, lowered)
}

fn of_any_type<'t>(
    tree: &Tree<'t>,
    mut document: Document<'t>,
    mut findings: Findings<'t>,
    lowered: bool,
) -> Outcome<'t> {
    if lowered {
        document = emit::lower(&document, &mut findings);
    } else {
        emit::clean(&mut document, &mut findings);
    }
    let (placement, json) = written(&document, lowered);
    let invalid = findings.first_fault(tree);
    Outcome { placement, json, note: None, findings, invalid, is_object: true }
}

fn written(document: &Document<'_>, lowered: bool) -> (Placement, String) {
    if lowered {
        (Placement::Parameters, emit::parameters(document))
    } else {
        (Placement::JsonSchema, emit::json_schema(document))
    }
}

fn as_it_is<'t>(tree: &Tree<'t>, placement: Placement) -> Outcome<'t> {
    let (json, findings) = (tree.to_json(), Findings::default());
    Outcome { placement, json, note: None, findings, invalid: None, is_object: true }
}

/// Where a schema goes that is sent as the client wrote it.
fn placement_of(form: SchemaForm) -> Placement {
    match form {
        SchemaForm::JsonSchema => Placement::JsonSchema,
        SchemaForm::Gemini => Placement::Parameters,
    }
}

/// The client's own text, with a type at the root where it has none.
fn as_written<'t>(tree: &'t Tree<'t>, form: SchemaForm) -> Outcome<'t> {
    let mut outcome = as_it_is(tree, placement_of(form));
    if tree.get("type").is_none() && tree.get("$ref").is_none() && tree.is_object() {
        outcome.json.insert_str(1, r#""type":"object","#);
        let detail = "arguments are always an object; the type was added";
        outcome.findings.push(tree.text, "type", Effect::Adjusted, detail);
    }
    outcome
}

/// The root's notes, moved out: they belong into the function's own description.
fn notes(root: &mut Node<'_>) -> Option<String> {
    let notes = std::mem::take(&mut root.notes);
    (!notes.is_empty()).then(|| notes.iter().collect::<Vec<_>>().join(" "))
}

/// Whether there is nothing that the model could give.
fn takes_nothing(root: &Node<'_>, lowered: bool) -> bool {
    root.object.as_deref().is_none_or(|object| {
        let open = matches!(object.additional, Additional::Allowed | Additional::Each(_));
        object.properties.is_empty() && (lowered || !open)
    })
}
