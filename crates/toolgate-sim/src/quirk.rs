//! Occasional behaviour of Google: reported or documented, but not the rule.

use std::fmt;
use std::str::FromStr;

use serde_json::Value;
use toolgate_validate::{Data, GoogleError, Request};

/// Occasional behaviour of Google.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quirk {
    /// A missing signature is refused with the documented text.
    DocumentedSignatureText,
    /// An empty list in a result is refused.
    EmptyResults,
    /// Retired models (`gemini-2.0-flash`) answer, with the rules of their generation.
    RetiredModels,
}

const NAMES: [(&str, Quirk); 3] = [
    ("documented-signature-text", Quirk::DocumentedSignatureText),
    ("empty-results", Quirk::EmptyResults),
    ("retired-models", Quirk::RetiredModels),
];

impl fmt::Display for Quirk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(NAMES.iter().find(|(_, quirk)| quirk == self).map_or("", |(name, _)| name))
    }
}

impl FromStr for Quirk {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = NAMES.iter().find(|(name, _)| *name == text).map(|(_, quirk)| *quirk);
        found.ok_or_else(|| {
            let known: Vec<_> = NAMES.iter().map(|(name, _)| *name).collect();
            format!("unknown quirk `{text}`; known quirks: {}", known.join(", "))
        })
    }
}

/// Refuses results with an empty list.
pub(crate) fn check_empty_results(request: &Request) -> Result<(), GoogleError> {
    for part in request.contents.iter().flat_map(|content| &content.parts) {
        let Data::Response { response, .. } = &part.data else { continue };
        let empty =
            response.iter().find(|(_, value)| matches!(value, Value::Array(it) if it.is_empty()));
        if let Some((name, _)) = empty {
            return Err(GoogleError::invalid(format!(
                "Invalid function_response.response: field `{name}` has an empty value"
            )));
        }
    }
    Ok(())
}

/// Rewords the error for a missing signature as documented. Other errors are unchanged.
pub(crate) fn with_documented_text(error: GoogleError) -> GoogleError {
    let found = error.message.split_once("function call `default_api:").and_then(|(_, rest)| {
        let (name, rest) = rest.split_once("` , position ")?;
        Some((name, rest.split_once('.')?.0))
    });
    let Some((name, position)) = found else { return error };
    let message = format!(
        "Function call `{name}` in the `{position}.` content block is missing a `thought_signature`."
    );
    GoogleError { message, ..error }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for (name, quirk) in NAMES {
            assert_eq!(name.parse(), Ok(quirk));
            assert_eq!(quirk.to_string(), name);
        }
        assert!("tail".parse::<Quirk>().unwrap_err().contains("empty-results"));
    }
}
