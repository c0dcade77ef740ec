//! Words, names, numbers and paths in the user's text.

/// The user's text with its words and values.
#[derive(Clone, Debug, Default)]
pub(super) struct Prompt {
    pub(super) text: String,
    /// Lower-case words with their positions.
    pub(super) words: Vec<(usize, String)>,
    /// Texts in quotes or backticks.
    pub(super) quoted: Vec<String>,
    /// Paths and file names.
    pub(super) paths: Vec<String>,
    pub(super) urls: Vec<String>,
    pub(super) numbers: Vec<f64>,
    /// Proper names (`New York`) with their positions.
    pub(super) names: Vec<(usize, String)>,
}

/// Words that begin sentences and are not names.
const COMMON: &str = " a after also an and are as ask at be before call can compute could create \
    delete describe do does execute fetch find first for from get give have hello help hey hi how i \
    if in is it its let list look make may me my need no not now of on or our please plan print read \
    remember report return run search send set show so state sum tell that the their then there \
    these they this to translate try turn update use using want was we what when where which who why \
    will with would write yes you your add book check count do don't echo explain i'd i'll i'm \
    i've let's multiply subtract what's where's who's compare convert divide answer lookup open close \
    start stop go see say think summarize review fix change move copy save load draw play ping ";

impl Prompt {
    pub(super) fn new(text: &str) -> Self {
        let mut prompt = Self { text: text.to_owned(), ..Self::default() };
        prompt.quoted = quoted(text);
        for token in text.split_whitespace() {
            let bare = token.trim_matches(|c: char| ",;:!?\"'`()[]{}<>“”‘’".contains(c));
            let bare = bare.trim_end_matches('.');
            if bare.starts_with("http://") || bare.starts_with("https://") {
                prompt.urls.push(bare.to_owned());
            } else if is_path(bare) {
                prompt.paths.push(bare.to_owned());
            }
        }
        prompt.numbers = numbers(text);
        for (at, word) in words(text) {
            prompt.words.push((at, word.to_lowercase()));
        }
        prompt.names = names(text);
        prompt
    }

    /// Position of a word, in the singular or the plural.
    pub(super) fn position_of(&self, word: &str) -> Option<usize> {
        let is_it = |known: &str| {
            known == word
                || known.strip_suffix('s') == Some(word)
                || word.strip_suffix('s').is_some_and(|one| one == known)
        };
        self.words.iter().find(|(_, known)| is_it(known)).map(|(at, _)| *at)
    }

    /// Whether the text contains a phrase as whole words, ignoring case.
    pub(super) fn mentions(&self, phrase: &str) -> bool {
        let phrase = phrase.to_lowercase();
        let lower = self.text.to_lowercase();
        lower.match_indices(&phrase).any(|(at, found)| {
            let before = lower[..at].chars().next_back();
            let after = lower[at + found.len()..].chars().next();
            let is_edge = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
            is_edge(before) && is_edge(after)
        })
    }

    /// Text after `name:`, `name=` or `name is`.
    pub(super) fn given(&self, name: &str) -> Option<String> {
        let lower = self.text.to_lowercase();
        let name = name.to_lowercase();
        for mark in [": ", ":", "=", " = ", " is "] {
            let key = format!("{name}{mark}");
            let Some(at) = lower.find(&key) else { continue };
            let rest = self.text.get(at + key.len()..)?.trim_start();
            let value = match rest.chars().next() {
                Some(quote @ ('"' | '\'' | '`')) => rest[1..].split(quote).next(),
                _ => rest.split([',', ';', '\n', '?', '!']).next(),
            };
            let value = value.map(|value| value.trim().trim_end_matches('.'));
            if let Some(value) = value.filter(|value| !value.is_empty()) {
                return Some(value.to_owned());
            }
        }
        None
    }

    /// Subject of the request: `Review the doc` of `Add a todo to review the doc`.
    pub(super) fn gist(&self) -> String {
        let text = self.text.trim().trim_end_matches(['.', '!', '?']);
        let lower = text.to_lowercase();
        let marks = [" saying ", " that ", " about ", " to ", " for ", ": "];
        let rest = marks.iter().find_map(|mark| {
            let at = lower.find(mark)?;
            text.get(at + mark.len()..).filter(|rest| !rest.trim().is_empty())
        });
        capitalized(rest.unwrap_or(text).trim())
    }

    /// Word after the last preposition: `tokyo` of `weather in tokyo`.
    pub(super) fn object(&self) -> Option<String> {
        const PREPOSITIONS: [&str; 8] = ["in", "for", "at", "from", "near", "to", "of", "about"];
        const ARTICLES: [&str; 4] = ["the", "a", "an", "my"];
        let mut found = None;
        for (at, (_, word)) in self.words.iter().enumerate() {
            if !PREPOSITIONS.contains(&word.as_str()) {
                continue;
            }
            let next = self.words.iter().skip(at + 1).map(|(_, word)| word);
            let next = next.into_iter().find(|word| !ARTICLES.contains(&word.as_str()));
            found = next.cloned().or(found);
        }
        found
    }
}

/// Text with an upper-case first letter: `review` → `Review`.
pub(super) fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let position = |word: &str| word.as_ptr().addr() - text.as_ptr().addr();
    text.split(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '-' | '\'' | '’'))
        .filter(|word| !word.is_empty())
        .map(move |word| (position(word), word))
}

fn quoted(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (open, close) in [('"', '"'), ('`', '`'), ('“', '”')] {
        let mut rest = text;
        while let Some((_, tail)) = rest.split_once(open) {
            let Some((inside, after)) = tail.split_once(close) else { break };
            found.push(inside.to_owned());
            rest = after;
        }
    }
    // An apostrophe is a quote only at the edge of a word.
    let mut rest = text;
    while let Some(at) = rest.find('\'') {
        let (before, tail) = rest.split_at(at);
        let tail = &tail[1..];
        let is_edge = before.chars().next_back().is_none_or(|c| !c.is_alphanumeric());
        match tail.split_once('\'') {
            Some((inside, after)) if is_edge => {
                found.push(inside.to_owned());
                rest = after;
            }
            _ => rest = tail,
        }
    }
    found.retain(|inside| !inside.trim().is_empty());
    found
}

fn is_path(token: &str) -> bool {
    let Some((stem, ending)) = token.rsplit_once('.') else {
        return token.starts_with('/')
            || token.starts_with("./")
            || token.contains('/') && token.len() > 3;
    };
    let is_ending = (1..=5).contains(&ending.len())
        && ending.chars().all(|c| c.is_ascii_alphanumeric())
        && ending.chars().any(|c| c.is_ascii_alphabetic());
    is_ending && !stem.is_empty()
}

fn numbers(text: &str) -> Vec<f64> {
    let mut found = Vec::new();
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let starts = bytes[at].is_ascii_digit()
            && (at == 0 || !(bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_'));
        if !starts {
            at += 1;
            continue;
        }
        let end = bytes[at..]
            .iter()
            .position(|b| !b.is_ascii_digit() && *b != b'.')
            .map_or(bytes.len(), |length| at + length);
        // A minus sign belongs to the number if it begins the text or follows a space.
        let is_negative = at > 0
            && bytes[at - 1] == b'-'
            && (at == 1 || bytes[at - 2].is_ascii_whitespace() && bytes.get(at) != Some(&b' '));
        let digits = text[at..end].trim_end_matches('.');
        if let Ok(number) = digits.parse::<f64>() {
            found.push(if is_negative { -number } else { number });
        }
        at = end;
    }
    found
}

fn names(text: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut end = usize::MAX;
    for (at, word) in words(text) {
        let word = word.strip_suffix("'s").or_else(|| word.strip_suffix("’s")).unwrap_or(word);
        let is_capital = word.chars().next().is_some_and(char::is_uppercase);
        let is_common = COMMON.contains(&format!(" {} ", word.to_lowercase()));
        let is_code =
            word.contains('_') || word.chars().skip(1).any(char::is_uppercase) && word.len() > 3;
        if !is_capital || is_common || is_code {
            end = usize::MAX;
            continue;
        }
        let joins = end != usize::MAX && text.get(end..at) == Some(" ");
        match found.last_mut() {
            Some((_, name)) if joins => {
                name.push(' ');
                name.push_str(word);
            }
            _ => found.push((at, word.to_owned())),
        }
        end = at + word.len();
    }
    // A single word at the start of a sentence may be capitalized for that reason only.
    let begins = |(at, name): &(usize, String)| {
        let before = text[..*at].trim_end();
        !name.contains(' ') && (before.is_empty() || before.ends_with(['.', '!', '?', ':', '\n']))
    };
    if found.iter().any(|name| !begins(name)) {
        found.retain(|name| !begins(name));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_numbers_paths_and_quotes_are_found() {
        let prompt =
            Prompt::new("Compare New York, São Paulo and Rome's weather in 3 days, -2.5 or 12-5.");
        let names: Vec<_> = prompt.names.iter().map(|(_, name)| name.as_str()).collect();
        assert_eq!(names, ["New York", "São Paulo", "Rome"]);
        assert_eq!(prompt.numbers, [3.0, -2.5, 12.0, 5.0]);
        let prompt = Prompt::new(
            "Read src/main.rs and \"notes of today\", see https://a.example/x. It's 'fine'.",
        );
        assert_eq!(prompt.paths, ["src/main.rs"]);
        assert_eq!(prompt.urls, ["https://a.example/x"]);
        assert_eq!(prompt.quoted, ["notes of today", "fine"]);
        assert_eq!(
            Prompt::new("city: Oslo, unit=celsius").given("unit").as_deref(),
            Some("celsius")
        );
        assert_eq!(Prompt::new("what's the weather in tokyo?").object().as_deref(), Some("tokyo"));
        assert_eq!(Prompt::new("Add a todo to review the doc.").gist(), "Review the doc");
        assert!(Prompt::new("in Celsius please").mentions("celsius"));
    }
}
