//! Support for the code that `#[tool]` generates.
//!
//! A function may return a value or a `Result`, under any name: `io::Result`, `anyhow::Result`. A macro
//! sees only names, so method resolution decides: [`Fallible`] matches a `Result` directly,
//! [`Infallible`] matches every other type with one more reference.

use std::any::Any;
use std::fmt::Display;
use std::future::Future;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::{Context, IntoOutput, Output, Tool, ToolError};

/// Implemented for `Result`.
pub trait Fallible {
    /// Selects the conversion of a `Result`.
    fn __toolgate_returns(&self) -> OfResult {
        OfResult
    }
}

impl<T, E> Fallible for Result<T, E> {}

/// Implemented for references to any type.
pub trait Infallible {
    /// Selects the conversion of a value.
    fn __toolgate_returns(&self) -> OfValue {
        OfValue
    }
}

impl<T> Infallible for &T {}

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
    A: JsonSchema + DeserializeOwned + Send + 'static,
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
