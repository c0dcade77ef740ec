//! Going on with an answer that Gemini has stopped in the middle (`CONTINUATION`).

use crate::json::write::ObjectWriter;
use crate::json::{self, Fields};

/// How often Gemini is asked to go on with one answer.
pub const MAX_CONTINUATIONS: u32 = 16;

const FIELD: &str = "continuationToken";

/// The same request, asking for the rest of its answer.
///
/// ```
/// use toolgate_core::upstream::generate_content::continued;
/// let body = continued(br#"{"contents":[],"continuationToken":"QQ=="}"#, "Qg==");
/// assert_eq!(body, br#"{"contents":[],"continuationToken":"Qg=="}"#);
/// ```
pub fn continued(body: &[u8], token: &str) -> Vec<u8> {
    let text = std::str::from_utf8(body).unwrap_or_default();
    let fields: Fields<'_> = json::parse(text).unwrap_or_default();
    let mut out = Vec::with_capacity(body.len() + token.len() + FIELD.len() + 8);
    let mut object = ObjectWriter::new(&mut out);
    for (name, value) in fields.0.iter().filter(|(name, _)| name != FIELD) {
        object.raw(name, value);
    }
    object.string(FIELD, token);
    drop(object);
    out
}
