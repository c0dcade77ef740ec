//! Errors of calls.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Error of a call. The text is sent to the model, except for [`Abort`](ToolError::Abort).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ToolError {
    /// The tool ends the run: [`Error::Tool`](crate::Error::Tool) has its error. Create it with
    /// [`ToolError::abort`].
    #[error("{0}")]
    Abort(Abort),
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

impl ToolError {
    /// Creates an error that ends the run. The model does not see it.
    ///
    /// ```
    /// use toolgate::{ToolError, tool};
    ///
    /// /// Reads a record.
    /// #[tool]
    /// async fn read(id: u64) -> Result<String, ToolError> {
    ///     Err(ToolError::abort(std::io::Error::other("the database is gone")))
    /// }
    /// ```
    pub fn abort(error: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::Abort(Abort(Arc::from(error.into())))
    }
}

/// Error with which a tool ended the run.
#[derive(Clone)]
pub struct Abort(Arc<dyn StdError + Send + Sync>);

impl Abort {
    /// The tool's error, with its own type.
    pub fn source(&self) -> &Arc<dyn StdError + Send + Sync> {
        &self.0
    }
}

/// Two are equal if they are clones of one.
impl PartialEq for Abort {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Abort {}

impl fmt::Debug for Abort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Abort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
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
