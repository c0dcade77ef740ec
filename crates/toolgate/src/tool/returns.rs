//! Support for the code that `#[tool]` generates.
//!
//! A function may return a value or a `Result`, under any name: `io::Result`, `anyhow::Result`. A macro
//! sees only names, so method resolution on `&Returned<T>` decides, in this order:
//!
//! | value | method | error |
//! |---|---|---|
//! | `Result<_, ToolError>` | of `Returned` itself | stays what it is |
//! | any other `Result` | of [`Fallible`] | becomes text |
//! | everything else | of [`Infallible`], with one more reference | |

use std::any::Any;
use std::fmt::Display;
use std::future::Future;

use super::{Context, IntoOutput, Output, Tool, ToolArgument, ToolError};

/// Return value of a tool.
#[derive(Clone, Copy, Debug)]
pub struct Returned<T>(pub T);

impl<T> Returned<Result<T, ToolError>> {
    /// Selects the conversion that keeps the error.
    pub fn __toolgate_returns(&self) -> OfToolResult {
        OfToolResult
    }
}

/// Implemented for `Result`.
pub trait Fallible {
    /// Selects the conversion of a `Result`.
    fn __toolgate_returns(&self) -> OfResult {
        OfResult
    }
}

impl<T, E> Fallible for Returned<Result<T, E>> {}

/// Implemented for references to any type.
pub trait Infallible {
    /// Selects the conversion of a value.
    fn __toolgate_returns(&self) -> OfValue {
        OfValue
    }
}

impl<T> Infallible for &Returned<T> {}

/// Conversion of a `Result` with this crate's error.
#[derive(Clone, Copy, Debug)]
pub struct OfToolResult;

impl OfToolResult {
    /// Converts to an output.
    pub fn convert<T: IntoOutput>(self, value: Result<T, ToolError>) -> Converted {
        value.and_then(IntoOutput::into_output)
    }
}

/// Conversion of a `Result`.
#[derive(Clone, Copy, Debug)]
pub struct OfResult;

impl OfResult {
    /// Converts to an output or an error text.
    pub fn convert<T: IntoOutput, E: Display>(self, value: Result<T, E>) -> Converted {
        match value {
            Ok(value) => value.into_output(),
            // The alternate form of anyhow's errors includes the causes.
            Err(error) => Err(ToolError::Failed(format!("{error:#}"))),
        }
    }
}

/// Conversion of a value.
#[derive(Clone, Copy, Debug)]
pub struct OfValue;

impl OfValue {
    /// Converts to an output.
    pub fn convert<T: IntoOutput>(self, value: T) -> Converted {
        value.into_output()
    }
}

type Converted = Result<Output, ToolError>;

/// Creates the tool of a function.
pub fn tool<A, F, R>(name: &str, description: &str, run: F) -> Tool
where
    A: ToolArgument + Send + 'static,
    F: Fn(A, Context) -> R + Send + Sync + 'static,
    R: Future<Output = Converted> + Send + 'static,
{
    Tool::bound(name, description, run)
}

/// Runs a function on a blocking thread.
pub async fn blocking<F>(run: F) -> Converted
where
    F: FnOnce() -> Converted + Send + 'static,
{
    let span = tracing::Span::current();
    match tokio::task::spawn_blocking(move || span.in_scope(run)).await {
        Ok(converted) => converted,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => Err(ToolError::Panicked(panic_message(&*panic))),
            Err(_) => Err(ToolError::Cancelled),
        },
    }
}

/// Message of a panic.
pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> String {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => (*text).to_owned(),
        (None, Some(text)) => text.clone(),
        (None, None) => "it did not say why".to_owned(),
    }
}
