//! Why a call has no result.

use std::time::Duration;

/// Why a call has no result. The model is told the text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ToolError {
    /// The arguments are not what the tool takes. The model's fault; it may try again.
    #[error("{0}")]
    Arguments(String),
    /// The request was cancelled.
    #[error("the call was cancelled")]
    Cancelled,
    /// The tool is only declared: its calls are the caller's to answer.
    #[error("`{0}` is declared, but nothing runs it here")]
    Declared(String),
    /// Whoever was asked said no.
    #[error("the call was denied: {0}")]
    Denied(String),
    /// The tool said so.
    #[error("{0}")]
    Failed(String),
    /// There is no such tool.
    #[error("function not found: `{tool}`; there is {}", listed(.known))]
    NotFound {
        /// What was called.
        tool: String,
        /// What could have been.
        known: Vec<String>,
    },
    /// The tool panicked. The program's fault.
    #[error("the tool panicked: {0}")]
    Panicked(String),
    /// The tool took too long.
    #[error("the tool took longer than {0:?} and was given up")]
    TimedOut(Duration),
}

impl From<String> for ToolError {
    fn from(message: String) -> Self {
        Self::Failed(message)
    }
}

impl From<&str> for ToolError {
    fn from(message: &str) -> Self {
        Self::Failed(message.to_owned())
    }
}

fn listed(names: &[String]) -> String {
    let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    if names.is_empty() { "no tool at all".to_owned() } else { names.join(", ") }
}
