//! Google's error envelope.

use serde_json::{Value, json};

/// A refusal with Google's wording and envelope.
#[derive(Clone, Debug, PartialEq)]
pub struct GoogleError {
    /// The HTTP status.
    pub code: u16,
    /// The status name, such as `INVALID_ARGUMENT`.
    pub status: &'static str,
    /// The message.
    pub message: String,
    /// Details: `google.rpc.*` objects.
    pub details: Vec<Value>,
}

/// One field violation of a `BadRequest` detail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The snake_case path of the faulty message; empty for the request itself.
    pub field: String,
    /// The description.
    pub description: String,
}

impl GoogleError {
    /// A 400 without details.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self { code: 400, status: "INVALID_ARGUMENT", message: message.into(), details: Vec::new() }
    }

    /// A 400 that names no field, which Google returns surprisingly often.
    pub fn unspecific() -> Self {
        Self::invalid("Request contains an invalid argument.")
    }

    /// Faults of the first stage: a line and a violation each.
    pub fn parse(violations: &[Violation]) -> Self {
        let lines: Vec<_> = violations.iter().map(|it| it.description.as_str()).collect();
        let violations: Vec<_> = violations
            .iter()
            .map(|Violation { field, description }| match field.as_str() {
                "" => json!({"description": description}),
                _ => json!({"field": field, "description": description}),
            })
            .collect();
        let detail = json!({
            "@type": "type.googleapis.com/google.rpc.BadRequest",
            "fieldViolations": violations,
        });
        Self { details: vec![detail], ..Self::invalid(lines.join("\n")) }
    }

    /// A 404 for a model that does not exist or lacks the method.
    pub fn model_not_found(model: &str, version: &str, method: &str) -> Self {
        let message = format!(
            "models/{model} is not found for API version {version}, or is not supported for \
             {method}. Call ModelService.ListModels to see the list of available models and their \
             supported methods."
        );
        Self { code: 404, status: "NOT_FOUND", message, details: Vec::new() }
    }

    /// Returns the envelope.
    pub fn to_json(&self) -> Value {
        let mut error = json!({
            "code": self.code,
            "message": self.message,
            "status": self.status,
        });
        if let (Some(error), false) = (error.as_object_mut(), self.details.is_empty()) {
            error.insert("details".to_owned(), Value::Array(self.details.clone()));
        }
        json!({ "error": error })
    }

    /// Returns the response body, indented as Google's.
    pub fn to_body(&self) -> Vec<u8> {
        let mut body = serde_json::to_vec_pretty(&self.to_json()).unwrap_or_default();
        body.push(b'\n');
        body
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_googles_envelope() {
        let violation = |field: &str| Violation { field: field.into(), description: "D".into() };
        assert_eq!(
            GoogleError::parse(&[violation("tools[0]"), violation("")]).to_json(),
            json!({"error": {
                "code": 400,
                "message": "D\nD",
                "status": "INVALID_ARGUMENT",
                "details": [{
                    "@type": "type.googleapis.com/google.rpc.BadRequest",
                    "fieldViolations": [{"field": "tools[0]", "description": "D"}, {"description": "D"}],
                }],
            }})
        );
        assert_eq!(
            GoogleError::unspecific().to_json(),
            json!({"error": {
                "code": 400,
                "message": "Request contains an invalid argument.",
                "status": "INVALID_ARGUMENT",
            }})
        );
    }
}
