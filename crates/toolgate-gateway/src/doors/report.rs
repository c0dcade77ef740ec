//! What could not be carried over, told to a client that asks for it.

use http::Request;
use http::header::{HeaderName, HeaderValue};
use hyper::body::Incoming;
use toolgate_core::canon::Losses;

use crate::reply::Reply;

/// Whether the client wants to hear of losses.
pub(crate) fn wants_report(request: &Request<Incoming>) -> bool {
    request.headers().contains_key("x-toolgate-report")
}

/// The most bytes of losses that a header may have.
const REPORT_LIMIT: usize = 6000;

/// Tells of the request's losses in a header.
pub(crate) fn add_report(reply: &mut Reply, losses: &Losses) {
    let mut shown = losses.as_slice();
    let text = loop {
        let Ok(text) = serde_json::to_string(shown) else { return };
        if text.len() <= REPORT_LIMIT {
            break text;
        }
        shown = &shown[..shown.len() / 2];
    };
    // Header values are ASCII: other characters become JSON escapes.
    let ascii: String = text
        .chars()
        .flat_map(|character| {
            let mut units = [0; 2];
            let escaped: Vec<char> = if character.is_ascii() {
                vec![character]
            } else {
                let units = character.encode_utf16(&mut units);
                units
                    .iter()
                    .flat_map(|unit| format!("\\u{unit:04x}").chars().collect::<Vec<_>>())
                    .collect()
            };
            escaped
        })
        .collect();
    let headers = reply.headers_mut();
    headers.insert(HeaderName::from_static("x-toolgate-losses"), HeaderValue::from(losses.len()));
    if let Ok(value) = HeaderValue::try_from(ascii) {
        headers.insert(HeaderName::from_static("x-toolgate-report"), value);
    }
}
