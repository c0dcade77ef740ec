//! Which conversation a request belongs to, as far as that can be told from outside.
//!
//! For finding signatures again when a client has changed the ids of its calls. It is never more
//! than a hint: whatever is found belongs to the same key, and to a call that says the same.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::HeaderMap;
use ring::digest::{Context, SHA256};
use toolgate_core::canon::{Part, Request, Role};
use toolgate_core::translate::Echo;

/// The names of a conversation, and how far it has come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Trace {
    /// Its names, best first. None: it cannot be told from others.
    pub(super) names: Vec<String>,
    /// How many calls it has.
    pub(super) calls: usize,
}

/// Where clients say which session a request belongs to.
const HEADERS: [&str; 3] = ["x-claude-code-session-id", "session-id", "x-session-id"];
/// The longest name of a session that is believed.
const LONGEST: usize = 256;
/// How much of a conversation's opening tells it from others.
const OPENING: usize = 2048;

/// The session that a request's headers name.
pub(crate) fn session_of(headers: &HeaderMap) -> Option<String> {
    let values = HEADERS.iter().filter_map(|name| headers.get(*name)?.to_str().ok());
    let mut names = values.filter(|name| !name.is_empty() && name.len() <= LONGEST);
    names.next().map(str::to_owned)
}

impl Trace {
    pub(crate) fn new(session: Option<&str>, request: &Request<'_>, echo: &Echo) -> Self {
        let named = match echo {
            Echo::Responses(echo) => session.or(echo.prompt_cache_key.as_deref()),
            Echo::Anthropic(_) | Echo::Chat(_) | Echo::Gemini(_) => session,
        };
        let named = named.filter(|name| name.len() <= LONGEST).map(|name| hashed(b"s", [name]));
        let names = opening(request).into_iter().chain(named).collect();
        Self { names, calls: request.calls().count() }
    }
}

/// The first words of the user's, by their hash. What the program says may change from day to day.
fn opening(request: &Request<'_>) -> Option<String> {
    let first = request.turns.iter().find(|turn| turn.role == Role::User)?;
    let mut left = OPENING;
    let mut words = Vec::new();
    for part in &first.parts {
        let Part::Text { text, .. } = part else { continue };
        let literal = text.escaped();
        let end = (0..=left.min(literal.len())).rev().find(|at| literal.is_char_boundary(*at));
        let taken = &literal[..end.unwrap_or(0)];
        left -= taken.len();
        words.push(taken);
    }
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
