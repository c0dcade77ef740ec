//! Loss report: what could not be carried over, in a header for clients that ask for it.

use http::Request;
use http::header::{HeaderName, HeaderValue};
use toolgate_core::canon::{Loss, Losses, brief};

use crate::api::reply::Reply;

/// Whether the client asks for a loss report.
pub(crate) fn wants_report<B>(request: &Request<B>) -> bool {
    request.headers().contains_key("x-toolgate-report")
}

/// Maximum length of the header, in bytes.
const MAX_REPORT_BYTES: usize = 6000;
/// Minimum length of a loss in bytes: `{"at":"","code":"ignored","detail":""}` and a comma.
const MIN_LOSS_BYTES: usize = 39;
/// Maximum lengths of a place and a detail in bytes, tried until all losses fit.
const FIELD_LENGTHS: [usize; 5] = [1000, 240, 120, 60, 30];

/// Adds the losses to a reply, if there is a report to make.
pub(crate) fn with_report(mut reply: Reply, losses: Option<Losses>) -> Reply {
    let Some(losses) = losses else { return reply };
    let headers = reply.headers_mut();
    headers.insert(HeaderName::from_static("x-toolgate-losses"), HeaderValue::from(losses.total()));
    if let Ok(value) = HeaderValue::try_from(report(&losses)) {
        headers.insert(HeaderName::from_static("x-toolgate-report"), value);
    }
    reply
}

/// The losses as a list. Where there is no room, they are shortened, and then the last ones are left out.
fn report(losses: &[Loss]) -> String {
    let mut shown = Vec::new();
    for most in FIELD_LENGTHS {
        shown = losses
            .iter()
            .take(MAX_REPORT_BYTES / MIN_LOSS_BYTES)
            .map(|loss| short(loss, most))
            .collect();
        if room(&shown) == losses.len() {
            break;
        }
    }
    shown.truncate(room(&shown));
    format!("[{}]", shown.join(","))
}

/// Number of losses that there is room for.
fn room(shown: &[String]) -> usize {
    let mut used = 1;
    let fits = |one: &&String| {
        used += one.len() + 1;
        used <= MAX_REPORT_BYTES
    };
    shown.iter().take_while(fits).count()
}

/// A loss in JSON, and in ASCII as headers are: other characters become escapes.
fn short(loss: &Loss, most: usize) -> String {
    let short = Loss {
        at: brief(&loss.at, most).into_owned(),
        code: loss.code,
        detail: brief(&loss.detail, most).into_owned(),
        tool: loss.tool.as_deref().map(|tool| brief(tool, most).into_owned()),
    };
    let mut ascii = String::new();
    for character in serde_json::to_string(&short).unwrap_or_default().chars() {
        if character.is_ascii() {
            ascii.push(character);
        } else {
            let units = character.encode_utf16(&mut [0; 2]).to_vec();
            ascii.extend(units.into_iter().map(|unit| format!("\\u{unit:04x}")));
        }
    }
    ascii
}
