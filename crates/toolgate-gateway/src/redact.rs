//! Keys do not go where words go.
//!
//! Google repeats a key in some of its errors (`Consumer 'api_key:AIza…' has been suspended`). Whoever
//! reads the error need not be whoever owns the key.

/// What stands where a key stood.
const BLANK: &str = "[key]";
/// Shorter ones are words like any other.
const SHORTEST: usize = 8;
/// How Google's own keys begin.
const GOOGLE: &str = "AIza";

/// The text without these keys, and without what looks like one of Google's.
pub(crate) fn without_keys<'k>(text: &str, keys: impl Iterator<Item = &'k str>) -> Option<String> {
    let mut clean: Option<String> = None;
    for key in keys.filter(|key| key.len() >= SHORTEST) {
        let now = clean.as_deref().unwrap_or(text);
        if now.contains(key) {
            clean = Some(now.replace(key, BLANK));
        }
    }
    let mut from = 0;
    while let Some(at) = clean.as_deref().unwrap_or(text)[from..].find(GOOGLE).map(|at| from + at) {
        let now = clean.as_deref().unwrap_or(text);
        let is_key = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '-';
        let length = now[at..].find(|it| !is_key(it)).unwrap_or(now.len() - at);
        from = at + GOOGLE.len();
        if length > 20 {
            clean = Some([&now[..at], BLANK, &now[at + length..]].concat());
            from = at + BLANK.len();
        }
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn law8_keys_are_not_repeated() {
        let google = format!("AIza{}", "x".repeat(35));
        for (text, want) in [
            ("nothing of the kind", None),
            ("a secret-key-1 and secret-key-1", Some("a [key] and [key]")),
            ("k is a word", None),
            ("AIza is how they begin", None),
            (&*format!("Consumer 'api_key:{google}' has"), Some("Consumer 'api_key:[key]' has")),
            (&*format!("{google} secret-key-1"), Some("[key] [key]")),
        ] {
            let keys = ["secret-key-1", "k"];
            assert_eq!(without_keys(text, keys.into_iter()).as_deref(), want, "{text}");
        }
    }
}
