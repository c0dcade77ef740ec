//! Google's errors apart from validation: keys, quotas, server errors.

use serde_json::{Value, json};
use toolgate_validate::GoogleError;

/// Detail with the reason and the service.
fn info(reason: &str) -> Value {
    json!({
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": reason,
        "domain": "googleapis.com",
        "metadata": {"service": "generativelanguage.googleapis.com"},
    })
}

/// Missing key on the Developer API.
pub(crate) fn no_key() -> GoogleError {
    error(
        403,
        "Method doesn't allow unregistered callers (callers without established identity). Please \
         use API Key or other form of API consumer identity to call this API.",
    )
}

/// Unknown key, which Google reports as a bad request.
pub(crate) fn bad_key() -> GoogleError {
    let message = "API key not valid. Please pass a valid API key.";
    let localized = json!({
        "@type": "type.googleapis.com/google.rpc.LocalizedMessage",
        "locale": "en-US",
        "message": message,
    });
    let details = vec![info("API_KEY_INVALID"), localized];
    GoogleError { details, ..GoogleError::invalid(message) }
}

/// Invalid access token, or a missing one on Vertex.
pub(crate) fn bad_token(missing: bool) -> GoogleError {
    let what = if missing {
        "Request is missing required authentication credential."
    } else {
        "Request had invalid authentication credentials."
    };
    let reason = if missing { "CREDENTIALS_MISSING" } else { "ACCESS_TOKEN_TYPE_UNSUPPORTED" };
    let details = vec![info(reason)];
    let message = format!(
        "{what} Expected OAuth 2 access token, login cookie or other valid authentication \
         credential. See https://developers.google.com/identity/sign-in/web/devconsole-project."
    );
    GoogleError { details, ..error(401, &message) }
}

/// Unknown model in `models.get`.
pub(crate) fn no_model(model: &str, version: &str) -> GoogleError {
    error(404, &format!("Model is not found: models/{model} for api version {version}"))
}

/// Unknown cache, or another caller's.
pub(crate) fn no_cache() -> GoogleError {
    error(403, "CachedContent not found (or permission denied)")
}

/// Unknown URL.
pub(crate) fn no_such_url() -> GoogleError {
    error(404, "Requested entity was not found.")
}

/// Request that the script or the recording does not expect. No client retries this status, so that a
/// test fails at once.
pub(crate) fn unexpected(what: &str) -> GoogleError {
    error(501, &format!("toolgate-sim: {what}"))
}

/// Error with this status; an empty message stands for Google's usual text.
pub(crate) fn error(code: u16, message: &str) -> GoogleError {
    let (status, default_message) = match code {
        400 => ("INVALID_ARGUMENT", "Request contains an invalid argument."),
        401 => ("UNAUTHENTICATED", "Request had invalid authentication credentials."),
        402 => ("RESOURCE_EXHAUSTED", "Your prepayment credits are depleted."),
        403 => ("PERMISSION_DENIED", "The caller does not have permission"),
        404 => ("NOT_FOUND", "Requested entity was not found."),
        409 => ("ABORTED", "The operation was aborted."),
        413 => ("INVALID_ARGUMENT", "Request payload size exceeds the limit."),
        429 => (
            "RESOURCE_EXHAUSTED",
            "You exceeded your current quota, please check your plan and billing details.",
        ),
        499 => ("CANCELLED", "The operation was cancelled."),
        501 => ("UNIMPLEMENTED", "The operation is not implemented."),
        503 => ("UNAVAILABLE", "The model is overloaded. Please try again later."),
        504 => ("DEADLINE_EXCEEDED", "The request timed out. Please try again."),
        _ => ("INTERNAL", "An internal error has occurred. Please retry."),
    };
    let message = if message.is_empty() { default_message } else { message }.to_owned();
    GoogleError { code, status, message, details: Vec::new() }
}

/// Exhausted quota; `per` is `Minute` or `Day`.
pub(crate) fn quota(message: &str, per: &str, model: &str, retry: &str) -> GoogleError {
    let metric = "generativelanguage.googleapis.com/generate_content_free_tier_requests";
    let details = vec![
        json!({
            "@type": "type.googleapis.com/google.rpc.QuotaFailure",
            "violations": [{
                "quotaMetric": metric,
                "quotaId": format!("GenerateRequestsPer{per}PerProjectPerModel-FreeTier"),
                "quotaDimensions": {"location": "global", "model": model},
                "quotaValue": "50",
            }],
        }),
        json!({
            "@type": "type.googleapis.com/google.rpc.Help",
            "links": [{
                "description": "Learn more about Gemini API quotas",
                "url": "https://ai.google.dev/gemini-api/docs/rate-limits",
            }],
        }),
        json!({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": retry}),
    ];
    GoogleError { details, ..error(429, message) }
}
