//! What one exchange with Gemini is about.

use std::sync::Arc;

use crate::canon::{Issuer, ToolName};
use crate::schema::Checker;

/// Which of Google's services.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Backend {
    /// The Gemini Developer API (`generativelanguage.googleapis.com`).
    Developer,
    /// Vertex AI (`aiplatform.googleapis.com`).
    Vertex,
}

/// Whom a request is for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    /// The model by Gemini's name, without `models/`.
    pub model: String,
    /// The service.
    pub backend: Backend,
}

impl Target {
    /// Who will have issued the signatures of the answer.
    pub fn issuer(&self) -> Issuer {
        Issuer { model: self.model.clone(), backend: self.backend }
    }
}

/// What the answer's decoder must know of the request.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// Whom the request went to.
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
    /// What it takes.
    pub input: ToolInput,
}

/// What a function takes.
#[derive(Clone, Debug)]
pub enum ToolInput {
    /// JSON that follows the client's own schema.
    Json(Arc<Checker>),
    /// Text, which Gemini gives as the argument `input`.
    Freeform,
}
