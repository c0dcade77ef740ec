//! Structured answers.

use std::ops::Deref;

use serde::de::DeserializeOwned;

use crate::tool::bind;
use crate::{Message, Response};

/// A parsed answer, with the response that it came in. Dereferences to the value.
#[derive(Clone, Debug)]
pub struct Typed<T> {
    /// The value.
    pub value: T,
    /// The response: usage, history, losses.
    pub response: Response,
}

impl<T> Deref for Typed<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

/// Message that tells the model why its answer did not parse.
pub(crate) fn correction(reason: &str) -> Message {
    Message::new(format!(
        "Your answer does not have the requested form: {reason}. Answer again with JSON that fits the \
         schema, and nothing else."
    ))
}

/// Parses JSON, with or without code fences.
pub(crate) fn parse<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    bind(unfenced(text)).map_err(|error| error.to_string())
}

fn unfenced(text: &str) -> &str {
    let text = text.trim();
    let Some(inner) = text.strip_prefix("```").and_then(|it| it.strip_suffix("```")) else {
        return text;
    };
    inner.strip_prefix("json").unwrap_or(inner).trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_fences_are_removed() {
        for text in ["[1,2]", " [1,2]\n", "```json\n[1,2]\n```", "```\n[1,2]```"] {
            assert_eq!(parse::<Vec<u8>>(text).unwrap(), [1, 2], "{text}");
        }
        let error = parse::<Vec<u8>>("[1,\"a\"]").unwrap_err();
        assert_eq!(error, "[1]: invalid type: string \"a\", expected u8");
    }
}
