//! What the code of `#[tool]` is made of.
//!
//! A function may return a value or a `Result`, under whatever name: `io::Result`, `anyhow::Result`.
//! A macro sees names only, so the compiler decides: [`Fallible`] is found for a `Result` without,
//! [`Infallible`] for everything else with one more reference.

use std::any::Any;
use std::fmt::Display;
use std::future::Future;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::{Context, IntoOutput, Output, Tool, ToolError};

/// Found for a `Result`.
pub trait Fallible {
    /// Says that it is one.
    fn __toolgate_returns(&self) -> OfResult {
        OfResult
    }
}

impl<T, E> Fallible for Result<T, E> {}

/// Found for everything else.
pub trait Infallible {
    /// Says that it is a value.
    fn __toolgate_returns(&self) -> OfValue {
        OfValue
    }
}

impl<T> Infallible for &T {}

/// A `Result`: its error is for the model.
#[derive(Clone, Copy, Debug)]
pub struct OfResult;

impl OfResult {
    /// The output, or the error in words.
    pub fn convert<T: IntoOutput, E: Display>(self, value: Result<T, E>) -> Converted {
        match value {
            Ok(value) => value.into_output(),
            // The alternate form tells the causes too, where the error has one.
            Err(error) => Err(ToolError::Failed(format!("{error:#}"))),
        }
    }
}

/// A value.
#[derive(Clone, Copy, Debug)]
pub struct OfValue;

impl OfValue {
    /// The output.
    pub fn convert<T: IntoOutput>(self, value: T) -> Converted {
        value.into_output()
    }
}

type Converted = Result<Output, ToolError>;

/// The tool of a function.
pub fn tool<A, F, R>(name: &str, description: &str, run: F) -> Tool
where
    A: JsonSchema + DeserializeOwned + Send + 'static,
    F: Fn(A, Context) -> R + Send + Sync + 'static,
    R: Future<Output = Converted> + Send + 'static,
{
    Tool::bound(name, description, run)
}

/// Runs a function that is not `async` where it may block.
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

/// What a panic said.
pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> String {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => (*text).to_owned(),
        (None, Some(text)) => text.clone(),
        (None, None) => "it did not say why".to_owned(),
    }
}
