//! A client's schema, made ready for checking.

use std::cell::Cell;

use super::Losses;
use super::build::build;
use super::fit::{Fit, Node, NodeId, Types};
use super::repair::{Repair, Repairer};
use super::tape::Tape;
use crate::canon::{Loss, LossCode};
use crate::json::{Kind, Raw};
use crate::schema::size;
use crate::schema::tree::Tree;

/// A client's schema, made ready for checking. The default takes any object.
#[derive(Clone, Debug, Default)]
pub struct Checker {
    /// Empty where nothing is known but that arguments are an object.
    nodes: Vec<Node>,
    root: NodeId,
}

/// Result of checking a call's arguments.
#[derive(Clone, Debug)]
pub struct Checked<'a> {
    /// The arguments as they came, or repaired.
    pub args: Raw<'a>,
    /// Repairs and violations; places begin with `args`.
    pub losses: Losses,
    /// Comparisons made, for tests of how they grow.
    #[doc(hidden)]
    pub work: usize,
}

impl Checker {
    /// Takes a JSON Schema (or Gemini's `Schema`). Never fails: unreadable keywords are not checked.
    pub fn new(schema: Option<&Raw<'_>>) -> Self {
        let Some(schema) = schema else { return Self::default() };
        if size::exceeded(schema.get()).is_some() {
            return Self::default();
        }
        Self::of(&Tree::parse(schema.get()))
    }

    /// The same for a schema that has been read, within its limits of size.
    pub(in crate::schema) fn of(schema: &Tree<'_>) -> Self {
        let (nodes, root) = build(schema);
        // A schema that refuses every object is not about arguments; they always are one.
        if !nodes.get(root).is_some_and(|node| node.allowed.has(Types::OBJECT)) {
            return Self::default();
        }
        Self { nodes, root }
    }

    /// About how many bytes it takes, the text of the schema aside.
    pub(in crate::schema) fn bytes(&self) -> usize {
        self.nodes.len() * size_of::<Node>()
    }

    /// How many schemas it is made of.
    pub(in crate::schema) fn size(&self) -> usize {
        self.nodes.len()
    }

    /// Whether the arguments fit as they are.
    pub fn accepts(&self, args: &Raw<'_>) -> bool {
        self.fits(args).0
    }

    /// Whether the arguments fit, whether that was found out, and the comparisons it took.
    fn fits(&self, args: &Raw<'_>) -> (bool, bool, usize) {
        if args.kind() != Kind::Object {
            return (false, true, 0);
        }
        if self.nodes.is_empty() {
            return (true, true, 0);
        }
        let Some(tape) = Tape::new(args.get()) else { return (true, false, 0) };
        let most = Fit::steps_for(tape.len());
        let steps = Cell::new(most);
        let fit = Fit::new(&self.nodes, &tape, &steps);
        let fits = fit.fits(self.root, 0, 0);
        (fits, !fits || !fit.is_exhausted(), most - steps.get())
    }

    /// Checks arguments, and repairs harmless differences.
    ///
    /// Comparisons are limited: 100,000, and 50 for each value of the arguments. Arguments that need
    /// more are passed on as they are, with [`LossCode::ArgumentUnchecked`].
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
        let (fits, decided, work) = self.fits(&args);
        if fits {
            let losses = if decided { Losses::new() } else { vec![unchecked()] };
            return Checked { args, losses, work };
        }
        if let Some(object) = object_in_string(&args) {
            let mut checked = self.check(object);
            checked.losses.insert(0, loss(LossCode::ArgumentRepaired, Repair::JsonText.detail()));
            checked.work += work;
            return checked;
        }
        if args.kind() != Kind::Object {
            let losses = vec![loss(LossCode::ArgumentViolation, "expected object")];
            return Checked { args, losses, work };
        }
        let Some((edited, mut losses, repairs)) = self.repair(&args, true) else {
            return Checked { args, losses: Losses::new(), work };
        };
        let args = edited.and_then(Raw::parse).unwrap_or(args);
        let is_settled = |loss: &Loss| {
            matches!(loss.code, LossCode::ArgumentViolation | LossCode::ArgumentUnchecked)
        };
        let mut work = work + repairs;
        if !losses.iter().any(is_settled) {
            let (fits, _, again) = self.fits(&args);
            work += again;
            if !fits {
                // Schemas can contradict themselves: a repair for one part can break another.
                losses.push(loss(LossCode::ArgumentViolation, "does not fit the schema"));
            }
        }
        Checked { args, losses, work }
    }

    /// Returns the violations of arguments that are not repaired (R36).
    pub fn violations(&self, args: &Raw<'_>) -> Losses {
        if args.kind() != Kind::Object {
            return vec![loss(LossCode::ArgumentViolation, "expected object")];
        }
        self.repair(args, false).map(|(_, losses, _)| losses).unwrap_or_default()
    }

    /// Returns the repaired arguments, if any, the losses and the number of comparisons. `None`: the
    /// arguments fit.
    fn repair(
        &self,
        args: &Raw<'_>,
        is_repairing: bool,
    ) -> Option<(Option<String>, Losses, usize)> {
        if self.nodes.is_empty() {
            return None;
        }
        let tape = Tape::new(args.get())?;
        let most = Fit::steps_for(tape.len());
        let steps = Cell::new(most);
        let fit = Fit::new(&self.nodes, &tape, &steps);
        if fit.fits(self.root, 0, 0) {
            return fit.is_exhausted().then(|| (None, vec![unchecked()], most));
        }
        let (edited, mut losses) = Repairer::new(fit, is_repairing).run(self.root, args.get());
        if steps.get() == 0 {
            // The findings so far are incomplete.
            return Some((None, vec![unchecked()], most));
        }
        if losses.is_empty() {
            // A schema that refers to itself without end has no place to name.
            losses.push(loss(LossCode::ArgumentViolation, "does not fit the schema"));
        }
        Some((edited, losses, most - steps.get()))
    }
}

fn loss(code: LossCode, detail: &str) -> Loss {
    Loss { at: "args".to_owned(), code, detail: detail.to_owned(), tool: None }
}

fn unchecked() -> Loss {
    let detail = "too much to compare with the schema; the arguments were passed on unchecked";
    loss(LossCode::ArgumentUnchecked, detail)
}

fn object_in_string(args: &Raw<'_>) -> Option<Raw<'static>> {
    let text = args.as_text()?.decode().into_owned();
    Raw::parse(text).filter(|inner| inner.kind() == Kind::Object)
}
