//! Fingerprint of a conversation, for finding signatures when a client has changed the ids of its calls.
//!
//! It is a hint only: a signature that it leads to belongs to the same client key, and to a call with the
//! same content.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::HeaderMap;
use ring::digest::{Context, SHA256};
use toolgate_core::canon::{Media, MediaSource, Part, Request, Role};
use toolgate_core::dialect::DecodeOptions;
use toolgate_core::gemini;
use toolgate_core::seal::Sealer;
use toolgate_core::translate::Echo;

use super::lineup::Predecessor;

/// Names of a conversation, and its last call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fingerprint {
    /// Hashes of the session's name and of the first user message. Empty: the conversation cannot be told
    /// from others.
    pub(crate) names: Vec<String>,
    /// Last call of the request's history.
    pub(crate) last: Predecessor,
}

/// Request headers that name a session.
const SESSION_HEADERS: [&str; 3] = ["x-claude-code-session-id", "session-id", "x-session-id"];
/// Maximum length of a session name, in bytes.
const MAX_SESSION_BYTES: usize = 256;
/// Model name for decoding a request whose model does not matter.
const NO_MODEL: &str = "unknown";
/// Number of bytes of the first user message that are hashed.
const OPENING_BYTES: usize = 2048;

/// Returns the session that the headers of a request name.
pub(crate) fn session_of(headers: &HeaderMap) -> Option<String> {
    let values = SESSION_HEADERS.iter().filter_map(|name| headers.get(*name)?.to_str().ok());
    let mut names = values.filter(|name| !name.is_empty() && name.len() <= MAX_SESSION_BYTES);
    names.next().map(str::to_owned)
}

impl Fingerprint {
    /// Fingerprint of a request in Gemini's dialect; empty where it cannot be decoded.
    pub(crate) fn of_body(sealer: &Sealer, body: &[u8], session: Option<&str>) -> Self {
        let options = DecodeOptions { sealer };
        let decoded = std::str::from_utf8(body)
            .ok()
            .and_then(|body| gemini::decode_request(body, NO_MODEL, false, &options).ok());
        match decoded {
            Some(decoded) => Self::new(session, &decoded.request, &Echo::Gemini(decoded.echo)),
            None => Self::default(),
        }
    }

    /// Number that all requests of the conversation have in common.
    pub(crate) fn home(&self) -> Option<u32> {
        self.names.last().map(|name| spread(name.as_bytes()))
    }

    pub(crate) fn new(session: Option<&str>, request: &Request<'_>, echo: &Echo) -> Self {
        let named = match echo {
            Echo::Responses(echo) => session.or(echo.prompt_cache_key.as_deref()),
            Echo::Anthropic(_) | Echo::Chat(_) | Echo::Gemini(_) => session,
        };
        let named =
            named.filter(|name| name.len() <= MAX_SESSION_BYTES).map(|name| hashed(b"s", [name]));
        let names = named.into_iter().chain(opening(request)).collect();
        Self { names, last: Predecessor::Unknown }
    }
}

/// Hash of the first user message. System instructions may change from day to day.
fn opening(request: &Request<'_>) -> Option<String> {
    let first = request.turns.iter().find(|turn| turn.role == Role::User)?;
    let mut left = OPENING_BYTES;
    let mut words = Vec::new();
    for part in &first.parts {
        let word = match part {
            Part::Text { text, .. } => text.opening(left),
            Part::Media(Media {
                source: MediaSource::Inline(text) | MediaSource::Uri(text),
                ..
            }) => text.opening(left),
            Part::Thought { .. }
            | Part::Call(_)
            | Part::Result(_)
            | Part::Sealed(_)
            | Part::Gemini(_) => continue,
        };
        left -= word.len();
        words.push(word);
    }
    let words: Vec<&str> = words.iter().map(|word| &**word).collect();
    (!words.is_empty()).then(|| hashed(b"o", words))
}

fn hashed<'w>(kind: &[u8], words: impl IntoIterator<Item = &'w str>) -> String {
    let mut hash = Context::new(&SHA256);
    hash.update(kind);
    for word in words {
        hash.update(word.as_bytes());
        hash.update(&[0]);
    }
    URL_SAFE_NO_PAD.encode(&hash.finish().as_ref()[..12])
}

/// Hash that spreads conversations over the key pool.
pub(crate) fn spread(bytes: &[u8]) -> u32 {
    let mut sum = flate2::Crc::new();
    sum.update(bytes);
    sum.sum()
}
