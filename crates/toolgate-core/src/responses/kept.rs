//! Response objects that were kept while they were in the making.

use super::error::{code_of, failed_message};
use super::frames::{Frames, Framing, member};
use crate::canon::Failure;
use crate::json::{self, Fields, write};

/// A response object with another status. Its `error` says why it failed, where it did.
///
/// ```
/// use toolgate_core::responses::with_status;
///
/// let kept = r#"{"id":"resp_1","status":"queued","error":null,"output":[]}"#;
/// let now = with_status(kept, "in_progress", None);
/// assert_eq!(now, br#"{"id":"resp_1","status":"in_progress","error":null,"output":[]}"#);
/// ```
pub fn with_status(object: &str, status: &str, failure: Option<&Failure>) -> Vec<u8> {
    let fields: Fields<'_> = json::parse(object).unwrap_or_default();
    let mut out = Vec::with_capacity(object.len() + 128);
    out.push(b'{');
    for (name, value) in &fields.0 {
        match (name.as_ref(), failure) {
            ("status", _) => member(&mut out, name, status),
            ("error", Some(failure)) => {
                write::key(&mut out, name);
                out.push(b'{');
                member(&mut out, "code", code_of(failure.kind));
                member(&mut out, "message", &failed_message(failure));
                out.push(b'}');
            }
            ("error", None) => {
                write::key(&mut out, name);
                out.extend_from_slice(b"null");
            }
            _ => {
                write::key(&mut out, name);
                value.write(&mut out);
            }
        }
    }
    out.push(b'}');
    out
}

/// The events of a stored response that was interrupted, from number `from` on. Its own events
/// is lost; that it failed comes after whatever the client has seen.
pub fn encode_broken_off(object: &str, failure: &Failure, from: u64) -> Vec<u8> {
    let mut frames = Frames::new(Framing::Sse, None).numbered_from(from);
    let mut out = Vec::new();
    let mut event = |kind: &str, response: &[u8]| {
        frames.event(&mut out, kind, |out| {
            write::key(out, "response");
            out.extend_from_slice(response);
        });
    };
    let running = with_status(object, "in_progress", None);
    let opening = ["response.created", "response.in_progress"];
    let left = usize::try_from(from).ok().and_then(|from| opening.get(from..));
    for kind in left.unwrap_or_default() {
        event(kind, &running);
    }
    event("response.failed", &with_status(object, "failed", Some(failure)));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canon::FailureKind;

    #[test]
    fn a_response_that_broke_off_is_told_to_its_end() {
        let kept = r#"{"id":"resp_1","status":"queued","error":null,"output":[]}"#;
        let failure = Failure::new(FailureKind::Internal, "why");
        let told = |from| {
            let events = String::from_utf8(encode_broken_off(kept, &failure, from)).unwrap();
            let data = events.lines().filter_map(|line| line.strip_prefix("data: "));
            let numbered = data.map(|data| {
                let event: serde_json::Value = serde_json::from_str(data).unwrap();
                let status = event["response"]["status"].as_str().unwrap();
                (event["sequence_number"].as_u64().unwrap(), status.to_owned())
            });
            numbered.collect::<Vec<_>>()
        };
        let event = |number, status: &str| (number, status.to_owned());
        let end = [event(0, "in_progress"), event(1, "in_progress"), event(2, "failed")];
        assert_eq!(told(0), end);
        assert_eq!(told(1), end[1..]);
        assert_eq!(told(2), end[2..]);
        assert_eq!(told(57), [event(57, "failed")]);
        assert_eq!(told(u64::MAX), [event(u64::MAX, "failed")]);
        let failed = with_status(kept, "failed", Some(&failure));
        let want = r#"{"id":"resp_1","status":"failed","error":{"code":"server_error","message":"why"},"output":[]}"#;
        assert_eq!(String::from_utf8(failed).unwrap(), want);
    }
}
