//! Which conversation a request belongs to, as far as that can be told from outside.
//!
//! For finding signatures again when a client has changed the ids of its calls. It is never more
//! than a hint: whatever is found belongs to the same key, and to a call that says the same.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::HeaderMap;
use ring::digest::{Context, SHA256};
use toolgate_core::canon::{DecodeOptions, Media, MediaSource, Part, Request, Role};
use toolgate_core::gemini;
use toolgate_core::translate::Echo;

use super::lineup::Before;
use super::plan::sum;
use crate::app::App;

/// The names of a conversation, and how far it has come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Trace {
    /// Its names. None: it cannot be told from others.
    pub(super) names: Vec<String>,
    /// Its last call.
    pub(super) last: Before,
}

/// Where clients say which session a request belongs to.
const HEADERS: [&str; 3] = ["x-claude-code-session-id", "session-id", "x-session-id"];
/// The longest name of a session that is believed.
const LONGEST: usize = 256;
/// Model name for decoding a request whose model does not matter.
const NO_MODEL: &str = "unknown";
/// How much of a conversation's opening tells it from others.
const OPENING: usize = 2048;

/// The session that a request's headers name.
pub(crate) fn session_of(headers: &HeaderMap) -> Option<String> {
    let values = HEADERS.iter().filter_map(|name| headers.get(*name)?.to_str().ok());
    let mut names = values.filter(|name| !name.is_empty() && name.len() <= LONGEST);
    names.next().map(str::to_owned)
}

impl Trace {
    /// That of a question in Gemini's words. What cannot be read has none.
    pub(super) fn of_unread(app: &App, body: &[u8], session: Option<&str>) -> Self {
        let options = DecodeOptions { sealer: &app.sealer };
        let decoded = std::str::from_utf8(body)
            .ok()
            .and_then(|body| gemini::decode_request(body, NO_MODEL, false, &options).ok());
        match decoded {
            Some(decoded) => Self::new(session, &decoded.request, &Echo::Gemini(decoded.echo)),
            None => Self::default(),
        }
    }

    /// A number that all requests of the conversation have in common.
    pub(super) fn home(&self) -> Option<u32> {
        self.names.last().map(|name| sum(name.as_bytes()))
    }

    pub(crate) fn new(session: Option<&str>, request: &Request<'_>, echo: &Echo) -> Self {
        let named = match echo {
            Echo::Responses(echo) => session.or(echo.prompt_cache_key.as_deref()),
            Echo::Anthropic(_) | Echo::Chat(_) | Echo::Gemini(_) => session,
        };
        let named = named.filter(|name| name.len() <= LONGEST).map(|name| hashed(b"s", [name]));
        let names = named.into_iter().chain(opening(request)).collect();
        Self { names, last: Before::Unknown }
    }
}

/// What the user says first, by its hash. What the program says may change from day to day.
fn opening(request: &Request<'_>) -> Option<String> {
    let first = request.turns.iter().find(|turn| turn.role == Role::User)?;
    let mut left = OPENING;
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
