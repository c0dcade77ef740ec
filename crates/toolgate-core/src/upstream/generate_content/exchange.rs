//! What one exchange with Gemini is about.

use std::sync::Arc;

use crate::canon::{Target, ToolName};
use crate::schema::Checker;

/// Facts of the request that the decoder of its answer needs.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// Target of the request.
    pub target: Target,
    /// The functions that were declared.
    pub tools: Vec<ToolEntry>,
    /// The client wants one call at a time: the others are left out.
    pub one_call: bool,
    /// The function that stands for a structured answer.
    pub answer_function: Option<AnswerFunction>,
}

/// A function that stands for a structured answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerFunction {
    /// Its name upstream.
    pub name: String,
    /// The argument that is the answer; without one, the arguments together are.
    pub argument: Option<&'static str>,
}

/// A function as Gemini knows it.
#[derive(Clone, Debug)]
pub struct ToolEntry {
    /// Its name upstream.
    pub alias: String,
    /// Its name for the client.
    pub name: ToolName<'static>,
    /// Form of its input.
    pub input: ToolInput,
}

/// Form of a function's input.
#[derive(Clone, Debug)]
pub enum ToolInput {
    /// JSON that follows the client's own schema.
    Json(Arc<Checker>),
    /// Text, which Gemini gives as the argument `input`.
    Freeform,
}
