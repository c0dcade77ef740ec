//! Envelopes: signatures that clients keep for us.
//!
//! Each dialect has a field that it is built to echo (Anthropic's `thinking.signature`, the Responses
//! API's `reasoning.encrypted_content`). An envelope in this field names the issuer of the signature
//! and the part that it belongs to:
//!
//! ```text
//! tg1.<mac>.<back end>.<model>.<on>.<payload>
//!
//! on = c:<call token>:<tool mark>  the call with this id, of this tool  payload: the signature
//!    | t:<len>          the last len bytes of text  payload: the signature
//!    | h:<len>          … of thought                payload: the signature
//!    | p                a part of its own           payload: base64url of the part's JSON
//! ```
//!
//! With a key, the MAC keeps a client from making envelopes of its own. Without one it is `-`.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use crate::canon::{Backend, Issuer, Signature, ToolMark};
pub use crate::canon::{Envelope, Sealed};
use crate::json::Raw;

/// Seals and opens envelopes.
#[derive(Clone, Default)]
pub struct Sealer {
    /// Has taken the key in; each envelope goes on from a copy.
    keyed: Option<Hmac<Sha256>>,
}

/// Result of opening a text that a client sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opened<'a> {
    /// An envelope of ours.
    Ours(Envelope<'a>),
    /// It looks like ours, but the MAC is wrong or it cannot be read.
    Forged,
    /// It is no envelope of ours.
    Foreign,
}

impl Sealer {
    /// A sealer with a key: without the key, no valid envelopes can be made.
    pub fn with_key(key: [u8; 32]) -> Self {
        Self { keyed: Hmac::new_from_slice(&key).ok() }
    }

    /// Makes an envelope's text: printable ASCII without quotes or backslashes.
    pub fn seal(&self, envelope: &Envelope<'_>) -> String {
        let Issuer { model, backend } = &envelope.issuer;
        let mut body = String::with_capacity(128 + envelope.on.payload_len());
        body.push(backend_letter(*backend));
        body.push('.');
        URL_SAFE_NO_PAD.encode_string(model, &mut body);
        body.push('.');
        match &envelope.on {
            Sealed::Call { token, signature } => {
                body.push_str("c:");
                body.push_str(token);
                if let Some(ToolMark(mark)) = signature.mark() {
                    body.push(':');
                    URL_SAFE_NO_PAD.encode_string(mark, &mut body);
                }
                body.push('.');
                body.push_str(signature.expose());
            }
            Sealed::Text { len, signature } => measured(&mut body, "t:", *len, signature),
            Sealed::Thought { len, signature } => measured(&mut body, "h:", *len, signature),
            Sealed::Part(raw) => {
                body.push_str("p.");
                URL_SAFE_NO_PAD.encode_string(&*raw.compact(), &mut body);
            }
        }
        self.marked(MARK, &body)
    }

    /// A body with its mark and its MAC before it.
    fn marked(&self, mark: &str, body: &str) -> String {
        let mut text = String::with_capacity(mark.len() + 23 + body.len());
        text.push_str(mark);
        match self.mac(body) {
            Some(mac) => URL_SAFE_NO_PAD.encode_string(mac, &mut text),
            None => text.push('-'),
        }
        text.push('.');
        text.push_str(body);
        text
    }

    /// Opens a text that a client sent.
    pub fn open<'a>(&self, text: &'a str) -> Opened<'a> {
        let Some(rest) = text.strip_prefix(MARK) else { return Opened::Foreign };
        let Some((mac, body)) = rest.split_once('.') else { return Opened::Forged };
        if !self.verifies(mac, body) {
            return Opened::Forged;
        }
        read_body(body).map_or(Opened::Forged, Opened::Ours)
    }

    /// Seals words of our own that a client keeps for us (the summary of a conversation).
    pub fn seal_text(&self, text: &str) -> String {
        let body = format!("s.{}", URL_SAFE_NO_PAD.encode(text));
        self.marked(TEXT_MARK, &body)
    }

    /// Reads what [`seal_text`](Self::seal_text) made; `None` for anything else.
    pub fn open_text(&self, sealed: &str) -> Option<String> {
        let (mac, body) = sealed.strip_prefix(TEXT_MARK)?.split_once('.')?;
        if !self.verifies(mac, body) {
            return None;
        }
        String::from_utf8(URL_SAFE_NO_PAD.decode(body.strip_prefix("s.")?).ok()?).ok()
    }

    fn mac(&self, body: &str) -> Option<[u8; 16]> {
        let mut mac = self.keyed.clone()?;
        mac.update(body.as_bytes());
        let mut short = [0; 16];
        short.copy_from_slice(&mac.finalize().into_bytes()[..16]);
        Some(short)
    }

    fn verifies(&self, mac: &str, body: &str) -> bool {
        let Some(mut real) = self.keyed.clone() else { return true };
        let Ok(claimed) = URL_SAFE_NO_PAD.decode(mac) else { return false };
        real.update(body.as_bytes());
        claimed.len() == 16 && real.verify_truncated_left(&claimed).is_ok()
    }
}

impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.keyed.is_some() { "Sealer(keyed)" } else { "Sealer(open)" })
    }
}

const MARK: &str = "tg1.";
const TEXT_MARK: &str = "tgs1.";

/// Writes what belongs to a stretch of text, and how long that is.
fn measured(body: &mut String, on: &str, len: usize, signature: &Signature<'_>) {
    body.push_str(on);
    body.push_str(itoa::Buffer::new().format(len));
    body.push('.');
    body.push_str(signature.expose());
}

fn backend_letter(backend: Backend) -> char {
    match backend {
        Backend::Developer => 'd',
        Backend::Vertex => 'v',
    }
}

fn read_body(body: &str) -> Option<Envelope<'_>> {
    let mut fields = body.splitn(4, '.');
    let backend = match fields.next()? {
        "d" => Backend::Developer,
        "v" => Backend::Vertex,
        _ => return None,
    };
    let model = String::from_utf8(URL_SAFE_NO_PAD.decode(fields.next()?).ok()?).ok()?;
    let issuer = Issuer { model, backend };
    let (on, payload) = (fields.next()?, fields.next()?);
    let signature = || Signature::new(payload, Some(issuer.clone()));
    let on = match on.split_once(':') {
        Some(("c", call)) => {
            let (token, mark) = match call.split_once(':') {
                Some((token, mark)) => {
                    let mark = URL_SAFE_NO_PAD.decode(mark).ok()?.try_into().ok()?;
                    (token, Some(ToolMark(mark)))
                }
                None => (call, None),
            };
            Sealed::Call { token: token.into(), signature: signature()?.marked(mark) }
        }
        Some(("t", len)) => Sealed::Text { len: len.parse().ok()?, signature: signature()? },
        Some(("h", len)) => Sealed::Thought { len: len.parse().ok()?, signature: signature()? },
        None if on == "p" => {
            let json = String::from_utf8(URL_SAFE_NO_PAD.decode(payload).ok()?).ok()?;
            Sealed::Part(Raw::parse(json)?)
        }
        _ => return None,
    };
    Some(Envelope { on, issuer })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canon::ToolName;

    fn envelope(on: Sealed<'_>) -> Envelope<'_> {
        let issuer = Issuer { model: "gemini-3.6-flash".into(), backend: Backend::Developer };
        Envelope { on, issuer }
    }

    fn signed() -> Signature<'static> {
        let issuer = Issuer { model: "gemini-3.6-flash".into(), backend: Backend::Developer };
        Signature::new("AY89a1/+57b05e78dc==", Some(issuer)).unwrap()
    }

    #[test]
    fn what_is_sealed_can_be_opened() {
        let part = Raw::parse(r#"{"toolCall":{"id":"a.b"}}"#.into()).unwrap();
        for on in [
            Sealed::Call { token: "tgabc_x".into(), signature: signed() },
            Sealed::Call {
                token: "tgabc_x".into(),
                signature: signed().of_tool(&ToolName::plain("read")),
            },
            Sealed::Text { len: 12, signature: signed() },
            Sealed::Thought { len: 0, signature: signed() },
            Sealed::Part(part),
        ] {
            for sealer in [Sealer::default(), Sealer::with_key([7; 32])] {
                let text = sealer.seal(&envelope(on.clone()));
                assert_eq!(sealer.open(&text), Opened::Ours(envelope(on.clone())), "{text}");
            }
        }
    }

    #[test]
    fn nobody_else_can_seal() {
        let ours = Sealer::with_key([1; 32]);
        let text =
            Sealer::with_key([2; 32]).seal(&envelope(Sealed::Text { len: 1, signature: signed() }));
        assert_eq!(ours.open(&text), Opened::Forged);
        let open = Sealer::default().seal(&envelope(Sealed::Text { len: 1, signature: signed() }));
        assert_eq!(ours.open(&open), Opened::Forged);
        assert_eq!(ours.open("EqQBCgIYAhIM"), Opened::Foreign);
        assert_eq!(ours.open("tg1."), Opened::Forged);
    }

    #[test]
    fn words_can_be_sealed() {
        for sealer in [Sealer::default(), Sealer::with_key([7; 32])] {
            let sealed = sealer.seal_text("Übersicht\n\"x\"");
            assert_eq!(sealer.open_text(&sealed).as_deref(), Some("Übersicht\n\"x\""));
            assert_eq!(sealer.open(&sealed), Opened::Foreign);
        }
        let open = Sealer::default().seal_text("x");
        assert_eq!(Sealer::with_key([7; 32]).open_text(&open), None);
        assert_eq!(Sealer::default().open_text("gAAAAA"), None);
    }

    #[test]
    fn law8_debug_keeps_signatures_secret() {
        let shown = format!("{:?}", envelope(Sealed::Text { len: 1, signature: signed() }));
        assert!(!shown.contains("AY89"), "{shown}");
    }
}
