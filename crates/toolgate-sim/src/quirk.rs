//! What Google has done at times: reported or documented, but not what it does as a rule.

use std::fmt;
use std::str::FromStr;

use serde_json::Value;
use toolgate_validate::{Data, GoogleError, Request};

/// Something that Google has done at times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quirk {
    /// A missing signature is refused in the words of the documentation.
    DocumentedSignatureText,
    /// An empty list in a result is refused.
    EmptyResults,
    /// Models that were withdrawn (`gemini-2.0-flash`) answer, by the rules of their time.
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
            format!("no quirk `{text}`; there are {}", known.join(", "))
        })
    }
}

/// Refuses the first empty list of a result.
pub(crate) fn no_empty_results(request: &Request) -> Result<(), GoogleError> {
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

/// Says that a signature is missing as the documentation has it; other errors stay as they are.
pub(crate) fn as_documented(error: GoogleError) -> GoogleError {
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
    fn names_are_read_as_they_are_written() {
        for (name, quirk) in NAMES {
            assert_eq!(name.parse(), Ok(quirk));
            assert_eq!(quirk.to_string(), name);
        }
        assert!("tail".parse::<Quirk>().unwrap_err().contains("empty-results"));
    }
}
