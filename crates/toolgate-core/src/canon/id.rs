//! Identifiers: unique across turns, the same on every run, short, and safe everywhere.

use std::borrow::Cow;

use sha2::{Digest, Sha256};

/// Makes identifiers from a seed. Randomness is the caller's: the gateway seeds with a random
/// number, `toolgate translate` with a hash of its input.
///
/// ```
/// use toolgate_core::canon::IdGen;
/// let (mut a, mut b) = (IdGen::new(7), IdGen::new(7));
/// assert_eq!(a.token(), b.token());
/// assert_ne!(a.token(), IdGen::new(8).token());
/// ```
#[derive(Clone, Debug)]
pub struct IdGen {
    seed: u128,
    next: u64,
    time: Option<u64>,
}

/// How many characters of ours a token has, after `tg`.
const TOKEN: usize = 12;
/// How many of them say the time, where there is one.
const TIME: usize = 4;
/// How long one time is, in milliseconds.
const SPAN: u64 = 64;
/// How many times there are; then they begin again.
const TIMES: u64 = 62_u64.pow(TIME as u32);
/// How many characters are drawn at once: their number fits a word, whose division is quick.
const DIGITS: usize = 6;
/// How many such draws there are.
const DRAWS: u128 = 62_u128.pow(DIGITS as u32);
/// How many characters a long token has.
pub(crate) const LONG_TOKEN: usize = 20;
/// The longest id of Gemini's that fits: `toolu_` + `tg` + drawn + `_` + this ≤ 40.
const UPSTREAM_MAX: usize = 19;

impl IdGen {
    /// A generator for one answer.
    pub fn new(seed: u128) -> Self {
        Self { seed, next: 0, time: None }
    }

    /// The same at a time, in milliseconds since 1970: later ids sort after earlier ones, so that an
    /// ordered index grows at one end.
    ///
    /// ```
    /// use toolgate_core::canon::IdGen;
    /// let (first, later) = (IdGen::new(8).at(1_000).token(), IdGen::new(7).at(2_000).token());
    /// assert!(first < later);
    /// ```
    #[must_use]
    pub fn at(self, millis: u64) -> Self {
        Self { time: Some(millis / SPAN % TIMES), ..self }
    }

    /// A generator whose ids depend on `bytes`.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let hash = Sha256::digest(bytes);
        let mut seed = [0; 16];
        seed.copy_from_slice(&hash[..16]);
        Self::new(u128::from_be_bytes(seed))
    }

    /// Twelve characters of `[0-9A-Za-z]`, 71 bits; at a time, 47 bits for each 64 ms.
    pub fn token(&mut self) -> String {
        self.of_length(TOKEN)
    }

    /// Twenty characters, for what others are named after: 119 bits; at a time, 95.
    pub fn long_token(&mut self) -> String {
        self.of_length(LONG_TOKEN)
    }

    fn of_length(&mut self, length: usize) -> String {
        let mut hash = Sha256::new();
        hash.update(self.seed.to_be_bytes());
        hash.update(self.next.to_be_bytes());
        self.next += 1;
        let mut drawn = [0; 16];
        drawn.copy_from_slice(&hash.finalize()[..16]);
        let mut number = u128::from_be_bytes(drawn);
        let mut token = String::with_capacity(length);
        if let Some(time) = self.time {
            let digit = |at: usize| ALPHABET[(time / 62_u64.pow(at as u32) % 62) as usize];
            token.extend((0..TIME).rev().map(|at| char::from(digit(at))));
        }
        while token.len() < length {
            let mut digits = (number % DRAWS) as u64;
            number /= DRAWS;
            for _ in 0..DIGITS.min(length - token.len()) {
                token.push(char::from(ALPHABET[(digits % 62) as usize]));
                digits /= 62;
            }
        }
        token
    }

    /// The id of a call: a token of ours, and Gemini's own id behind it where it is short and
    /// plain enough. [`upstream_id`] finds it again.
    pub fn call(&mut self, upstream: Option<&str>) -> String {
        let token = self.token();
        match upstream {
            Some(id) if is_carried(id) => format!("tg{token}_{id}"),
            _ => format!("tg{token}"),
        }
    }
}

const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

fn is_carried(id: &str) -> bool {
    (1..=UPSTREAM_MAX).contains(&id.len())
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

/// A client's call id without the prefix of its dialect: what [`IdGen::call`] made.
pub fn call_token(id: &str) -> &str {
    ["toolu_", "call_", "fc_", "ctc_", "srvtoolu_"]
        .iter()
        .find_map(|prefix| id.strip_prefix(prefix))
        .filter(|token| token.starts_with("tg"))
        .unwrap_or(id)
}

/// The id to show Gemini for a client's call id: Gemini's own where the id carries it, else the
/// client's. Gemini does not remember ids; call and response only have to agree.
pub fn upstream_id(id: &str) -> Cow<'_, str> {
    let token = call_token(id);
    token
        .strip_prefix("tg")
        .and_then(|rest| rest.get(TOKEN..))
        .and_then(|rest| rest.strip_prefix('_'))
        .filter(|own| is_carried(own))
        .map_or(Cow::Borrowed(token), Cow::Borrowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_keep_their_length_and_their_order() {
        for mut ids in [IdGen::new(3), IdGen::new(3).at(0), IdGen::new(3).at(u64::MAX)] {
            assert_eq!(ids.token().len(), TOKEN);
            assert_eq!(ids.long_token().len(), LONG_TOKEN);
        }
        let at = |millis: u64| IdGen::new(millis.into()).at(millis).token();
        let times = (0..10_000_u64).map(|n| 1_790_000_000_000 + n * SPAN);
        let tokens: Vec<String> = times.map(at).collect();
        assert!(tokens.is_sorted());
        // Two at one time differ all the same.
        assert_ne!(IdGen::new(1).at(5).token(), IdGen::new(2).at(5).token());
    }

    #[test]
    fn geminis_id_rides_inside() {
        let mut ids = IdGen::new(1);
        let id = format!("toolu_{}", ids.call(Some("gjl2yj5t")));
        assert!(id.len() <= 40, "{id}");
        assert_eq!(upstream_id(&id), "gjl2yj5t");
        let long = ids.call(Some(&"x".repeat(64)));
        assert_eq!(upstream_id(&format!("call_{long}")), long);
        assert_eq!(upstream_id("toolu_01-ab"), "toolu_01-ab");
        let longest = format!("toolu_{}", ids.call(Some(&"x".repeat(UPSTREAM_MAX))));
        assert_eq!(longest.len(), 40);
    }
}
