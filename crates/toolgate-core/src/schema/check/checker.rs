//! A client's schema, made ready for checking.

use std::cell::Cell;

use super::Losses;
use super::build::build;
use super::fit::{Fit, Node, NodeId, Types, allowed, together};
use super::mend::Mend;
use super::tape::Tape;
use crate::canon::{Loss, LossCode};
use crate::json::{Kind, Raw};

/// A client's schema, made ready for checking. The default takes any object.
#[derive(Clone, Debug, Default)]
pub struct Checker {
    /// Empty where nothing is known but that arguments are an object.
    nodes: Vec<Node>,
    root: NodeId,
}

/// What came of checking a call's arguments.
#[derive(Clone, Debug)]
pub struct Checked<'a> {
    /// The arguments: as they came, or mended.
    pub args: Raw<'a>,
    /// What was mended, and what does not fit. Places begin with `args`.
    pub losses: Losses,
}

impl Checker {
    /// Takes a JSON Schema (or Gemini's `Schema`). Never fails: what it cannot read it does not check.
    pub fn new(schema: Option<&Raw<'_>>) -> Self {
        let Some(schema) = schema else { return Self::default() };
        let (nodes, root) = build(schema.get());
        // A schema that refuses every object is not about arguments; they always are one.
        if !allowed(&nodes, &together(&nodes, &[root])).has(Types::OBJECT) {
            return Self::default();
        }
        Self { nodes, root }
    }

    /// Whether the arguments fit as they are.
    pub fn accepts(&self, args: &Raw<'_>) -> bool {
        if args.kind() != Kind::Object {
            return false;
        }
        if self.nodes.is_empty() {
            return true;
        }
        let Some(tape) = Tape::new(args.get()) else { return true };
        let steps = Cell::new(Fit::steps_for(tape.len()));
        Fit { nodes: &self.nodes, tape: &tape, steps: &steps }.fits(self.root, 0, 0)
    }

    /// Checks arguments, and mends what is harmless.
    ///
    /// ```
    /// use toolgate_core::json::Raw;
    /// use toolgate_core::schema::Checker;
    /// let json = |text: &str| Raw::parse(text.to_owned()).unwrap();
    /// let schema = json(r#"{"type":"object","properties":{"n":{"type":"integer"}}}"#);
    /// let checked = Checker::new(Some(&schema)).check(json(r#"{"n": 3.0, "x": 1.50}"#));
    /// assert_eq!(checked.args.get(), r#"{"n": 3, "x": 1.50}"#);
    /// assert_eq!(checked.losses[0].at, "args.n");
    /// ```
    pub fn check<'a>(&self, args: Raw<'a>) -> Checked<'a> {
        if self.accepts(&args) {
            return Checked { args, losses: Losses::new() };
        }
        if let Some(object) = object_in_string(&args) {
            let mut checked = self.check(object);
            checked
                .losses
                .insert(0, loss(LossCode::ArgumentRepaired, "JSON text became an object"));
            return checked;
        }
        if args.kind() != Kind::Object {
            let losses = vec![loss(LossCode::ArgumentViolation, "expected object")];
            return Checked { args, losses };
        }
        let Some((edited, mut losses)) = self.mend(&args, true) else {
            return Checked { args, losses: Losses::new() };
        };
        let args = edited.and_then(Raw::parse).unwrap_or(args);
        let is_violation = |loss: &Loss| loss.code == LossCode::ArgumentViolation;
        if !losses.iter().any(is_violation) && !self.accepts(&args) {
            // Schemas can contradict themselves; what was mended for one part breaks another.
            losses.push(loss(LossCode::ArgumentViolation, "does not fit the schema"));
        }
        Checked { args, losses }
    }

    /// What of the arguments does not fit the schema, as they are (R36).
    pub fn violations(&self, args: &Raw<'_>) -> Losses {
        if args.kind() != Kind::Object {
            return vec![loss(LossCode::ArgumentViolation, "expected object")];
        }
        self.mend(args, false).map(|(_, losses)| losses).unwrap_or_default()
    }

    fn mend(&self, args: &Raw<'_>, mending: bool) -> Option<(Option<String>, Losses)> {
        if self.nodes.is_empty() {
            return None;
        }
        let tape = Tape::new(args.get())?;
        let steps = Cell::new(Fit::steps_for(tape.len()));
        let fit = Fit { nodes: &self.nodes, tape: &tape, steps: &steps };
        if fit.fits(self.root, 0, 0) {
            return None;
        }
        let (edited, mut losses) = Mend::new(fit, mending).run(self.root, args.get());
        if losses.is_empty() {
            // A schema that refers to itself without end: nobody can say where.
            losses.push(loss(LossCode::ArgumentViolation, "does not fit the schema"));
        }
        Some((edited, losses))
    }
}

fn loss(code: LossCode, detail: &str) -> Loss {
    Loss { at: "args".to_owned(), code, detail: detail.to_owned(), tool: None }
}

fn object_in_string(args: &Raw<'_>) -> Option<Raw<'static>> {
    let text = args.as_text()?.decode().into_owned();
    Raw::parse(text).filter(|inner| inner.kind() == Kind::Object)
}
