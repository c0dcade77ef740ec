//! Thought signatures that can be verified.
//!
//! ```text
//! base64( "TGS" issuer(8) content(…) nonce(8) padding mac(16) )
//! ```
//!
//! The nonce makes two signatures of the same content differ, as Google's do. The MAC covers everything
//! before it. An altered signature is corrupted; a signature of another part, model or service is
//! invalid. The content of a call is its name and the values of its arguments: clients re-encode
//! arguments and gateways repair them, so one value in common is enough. The content of a text is the
//! text.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use toolgate_core::canon::{Backend, Target};
use toolgate_validate::{Data, Part, SignatureCheck, SignatureVerdict};

/// Issues and checks signatures.
#[derive(Clone)]
pub struct Signer {
    key: [u8; 32],
    length: usize,
}

impl std::fmt::Debug for Signer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Signer").field("length", &self.length).finish_non_exhaustive()
    }
}

const MAGIC: &[u8] = b"TGS";
const MAC_BYTES: usize = 16;

impl Signer {
    /// Creates a signer of signatures with about `length` characters.
    pub fn new(seed: u64, length: usize) -> Self {
        let mut hash = Sha256::new();
        hash.update(b"toolgate-sim signatures");
        hash.update(seed.to_be_bytes());
        Self { key: hash.finalize().into(), length }
    }

    /// Signs a part of an answer by `target`. Every `nonce` gives another signature.
    pub fn sign(&self, target: &Target, data: &Data, nonce: u64) -> String {
        let mut raw = MAGIC.to_vec();
        raw.extend(issuer(target));
        raw.extend(content(data));
        raw.extend(nonce.to_be_bytes());
        // Pseudorandom padding, derived from the content.
        let mut block: [u8; 32] = Sha256::digest(&raw).into();
        while raw.len() + MAC_BYTES < self.length * 3 / 4 {
            raw.extend(block);
            block = Sha256::digest(block).into();
        }
        raw.extend(self.mac(&raw));
        STANDARD.encode(raw)
    }

    fn mac(&self, bytes: &[u8]) -> [u8; MAC_BYTES] {
        let mut short = [0; MAC_BYTES];
        // HMAC accepts keys of any length.
        if let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.key) {
            mac.update(bytes);
            short.copy_from_slice(&mac.finalize().into_bytes()[..MAC_BYTES]);
        }
        short
    }

    fn verdict(&self, target: &Target, data: &Data, signature: &str) -> SignatureVerdict {
        let bare = signature.trim_end_matches('=');
        let decoded = STANDARD_NO_PAD.decode(bare).or_else(|_| URL_SAFE_NO_PAD.decode(bare));
        let Some((raw, mac)) = decoded
            .as_ref()
            .ok()
            .and_then(|raw| raw.split_at_checked(raw.len().checked_sub(MAC_BYTES)?))
        else {
            return SignatureVerdict::Corrupted;
        };
        if self.mac(raw) != mac {
            return SignatureVerdict::Corrupted;
        }
        let belongs = raw
            .strip_prefix(MAGIC)
            .and_then(|rest| rest.strip_prefix(&issuer(target)))
            .is_some_and(|rest| is_content_of(rest, data));
        if belongs { SignatureVerdict::Real } else { SignatureVerdict::Invalid }
    }
}

impl SignatureCheck for Signer {
    fn check(&self, target: &Target, part: &Part, signature: &str) -> SignatureVerdict {
        self.verdict(target, &part.data, signature)
    }
}

fn issuer(target: &Target) -> [u8; 8] {
    let service = match target.backend {
        Backend::Developer => "developer",
        Backend::Vertex => "vertex",
    };
    short_hash(&[service, &target.model])
}

/// Content of a part: a kind byte, and hashes of the name and the values.
fn content(data: &Data) -> Vec<u8> {
    let mut out = Vec::new();
    match data {
        // Clients may return an empty text part without its text.
        Data::None => out.extend(content(&Data::Text(String::new()))),
        Data::Text(text) => {
            out.push(b't');
            out.extend(short_hash(&[text]));
        }
        Data::Call { name, args, .. } => {
            out.push(b'c');
            out.extend(short_hash(&[name]));
            let values = values(args);
            out.push(u8::try_from(values.len()).unwrap_or(u8::MAX));
            out.extend(values.iter().take(255).flatten());
        }
        Data::Server(name, value) => {
            out.push(b's');
            out.extend(short_hash(&[name, &value["code"].to_string()]));
        }
        Data::Media { mime, .. } => {
            out.push(b'm');
            out.extend(short_hash(&[mime]));
        }
        Data::Response { name, .. } => {
            out.push(b'r');
            out.extend(short_hash(&[name]));
        }
    }
    out
}

fn is_content_of(signed: &[u8], data: &Data) -> bool {
    let mine = content(data);
    let Data::Call { args, .. } = data else { return signed.starts_with(&mine) };
    let (Some(head), Some(count)) = (mine.get(..9), signed.get(9)) else { return false };
    if !signed.starts_with(head) {
        return false;
    }
    let signed: Vec<_> = signed[10..].chunks_exact(4).take(usize::from(*count)).collect();
    signed.is_empty() || values(args).iter().any(|value| signed.contains(&&value[..]))
}

/// Hashes of the scalars in the arguments. `3` and `"3"` have the same hash.
fn values(args: &Map<String, Value>) -> Vec<[u8; 4]> {
    let mut todo: Vec<&Value> = args.values().collect();
    let mut found = Vec::new();
    while let Some(value) = todo.pop() {
        let word = match value {
            Value::Object(members) => {
                todo.extend(members.values());
                continue;
            }
            Value::Array(items) => {
                todo.extend(items);
                continue;
            }
            Value::Number(number) => number.as_f64().unwrap_or(0.0).to_string(),
            Value::String(text) => match text.parse::<f64>() {
                Ok(number) => number.to_string(),
                Err(_) => text.to_lowercase(),
            },
            Value::Null | Value::Bool(_) => value.to_string(),
        };
        let [a, b, c, d, ..] = short_hash(&[&word]);
        found.push([a, b, c, d]);
    }
    found
}

fn short_hash(words: &[&str]) -> [u8; 8] {
    let mut hash = Sha256::new();
    for word in words {
        hash.update(word.len().to_be_bytes());
        hash.update(word);
    }
    let mut out = [0; 8];
    out.copy_from_slice(&hash.finalize()[..8]);
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call(name: &str, args: &Value) -> Data {
        Data::Call { id: None, name: name.into(), args: args.as_object().unwrap().clone() }
    }

    fn flash(backend: Backend) -> Target {
        Target { model: "gemini-3.6-flash".into(), backend }
    }

    #[test]
    fn altered_and_moved_signatures_are_detected() {
        use SignatureVerdict::{Corrupted, Invalid, Real};
        let signer = Signer::new(1, 300);
        let here = flash(Backend::Developer);
        let paris = call("weather", &json!({"city": "Paris", "days": 3}));
        let token = signer.sign(&here, &paris, 7);
        assert_ne!(token, signer.sign(&here, &paris, 8));
        assert!(token.len() > 200 && token.len() < 400, "{}", token.len());
        let url_safe = token.replace('+', "-").replace('/', "_");
        let mut altered = token.clone().into_bytes();
        altered[40] = if altered[40] == b'A' { b'B' } else { b'A' };
        let altered = String::from_utf8(altered).unwrap();
        let elsewhere = Target { model: "gemini-3.7-flash".into(), backend: Backend::Developer };
        for (target, data, token, want) in [
            (&here, &paris, &*token, Real),
            (&here, &paris, token.trim_end_matches('='), Real),
            (&here, &paris, &*url_safe, Real),
            (&here, &call("weather", &json!({"days": "3.0", "city": "paris"})), &*token, Real),
            (&here, &call("weather", &json!({"city": "Rome", "days": 1})), &*token, Invalid),
            (&here, &call("news", &json!({"city": "Paris"})), &*token, Invalid),
            (&here, &Data::Text("Paris".into()), &*token, Invalid),
            (&elsewhere, &paris, &*token, Invalid),
            (&flash(Backend::Vertex), &paris, &*token, Invalid),
            (&here, &paris, &*altered, Corrupted),
            (&here, &paris, &token[4..], Corrupted),
            (&here, &paris, "EqQBCgIYAhIM", Corrupted),
            (&here, &paris, "", Corrupted),
        ] {
            assert_eq!(signer.verdict(target, data, token), want, "{data:?}");
        }
        assert_eq!(Signer::new(2, 300).verdict(&here, &paris, &token), Corrupted);
    }

    #[test]
    fn a_text_signature_covers_the_whole_text() {
        use SignatureVerdict::{Invalid, Real};
        let (signer, here) = (Signer::new(1, 0), flash(Backend::Developer));
        let token = signer.sign(&here, &Data::Text(String::new()), 0);
        assert_eq!(signer.verdict(&here, &Data::Text(String::new()), &token), Real);
        assert_eq!(signer.verdict(&here, &Data::None, &token), Real);
        assert_eq!(signer.verdict(&here, &Data::Text("merged".into()), &token), Invalid);
        let none = signer.sign(&here, &call("now", &json!({})), 0);
        assert_eq!(signer.verdict(&here, &call("now", &json!({"zone": "UTC"})), &none), Real);
    }
}
