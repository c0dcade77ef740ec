//! What could not be carried over, told to a client that asks for it.

use http::Request;
use http::header::{HeaderName, HeaderValue};
use hyper::body::Incoming;
use toolgate_core::canon::{Loss, Losses, brief};

use crate::reply::Reply;

/// Whether the client wants to hear of losses.
pub(crate) fn wants_report(request: &Request<Incoming>) -> bool {
    request.headers().contains_key("x-toolgate-report")
}

/// The most bytes of losses that a header may have.
const REPORT_LIMIT: usize = 6000;
/// The fewest bytes that a loss takes: `{"at":"","code":"ignored","detail":""}` and a comma.
const SHORTEST: usize = 39;
/// How much of its place and of its detail a loss may say, until all of them fit.
const LENGTHS: [usize; 5] = [1000, 240, 120, 60, 30];

/// Tells of the request's losses in a header.
pub(crate) fn add_report(reply: &mut Reply, losses: &Losses) {
    let headers = reply.headers_mut();
    headers.insert(HeaderName::from_static("x-toolgate-losses"), HeaderValue::from(losses.total()));
    if let Ok(value) = HeaderValue::try_from(report(losses)) {
        headers.insert(HeaderName::from_static("x-toolgate-report"), value);
    }
}

/// The losses as a list. Where there is no room, they are told in fewer words, and then the last
/// ones are left out.
fn report(losses: &[Loss]) -> String {
    let mut told = Vec::new();
    for most in LENGTHS {
        told = losses.iter().take(REPORT_LIMIT / SHORTEST).map(|loss| short(loss, most)).collect();
        if room(&told) == losses.len() {
            break;
        }
    }
    told.truncate(room(&told));
    format!("[{}]", told.join(","))
}

/// How many of them there is room for.
fn room(told: &[String]) -> usize {
    let mut used = 1;
    let fits = |one: &&String| {
        used += one.len() + 1;
        used <= REPORT_LIMIT
    };
    told.iter().take_while(fits).count()
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
