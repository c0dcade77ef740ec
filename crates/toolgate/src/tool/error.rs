//! Errors of calls.

use std::time::Duration;

/// Error of a call. The text is sent to the model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ToolError {
    /// Invalid arguments. The model's fault; it may correct them.
    #[error("{0}")]
    Arguments(String),
    /// The request was cancelled.
    #[error("the call was cancelled")]
    Cancelled,
    /// The tool has no handler.
    #[error("`{0}` is declared, but nothing runs it here")]
    Declared(String),
    /// The call was not approved.
    #[error("the call was denied: {0}")]
    Denied(String),
    /// The tool returned an error.
    #[error("{0}")]
    Failed(String),
    /// Unknown tool.
    #[error("function not found: `{tool}`; there is {}", listed(.known))]
    NotFound {
        /// Name in the call.
        tool: String,
        /// Known names.
        known: Vec<String>,
    },
    /// The tool panicked. The program's fault.
    #[error("the tool panicked: {0}")]
    Panicked(String),
    /// The call timed out.
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
