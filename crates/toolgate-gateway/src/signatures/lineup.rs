//! Matches the calls of a history with stored calls, where the client has changed their ids.
//!
//! Every stored call names the one before it, so that the calls of a session form a tree: answers that were
//! given again are branches. A history is a path in it, from which pieces may be missing. It is followed
//! from its end: of calls that say the same, the one whose forebears say the same for longest is it, and
//! of several such calls the latest.

use std::collections::HashMap;

/// A stored call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredCall {
    pub(crate) token: String,
    pub(crate) content: String,
    pub(crate) before: Predecessor,
}

/// The call before a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Predecessor {
    /// No other call.
    #[default]
    Nothing,
    /// A call that is not stored.
    Unknown,
    /// A call with this token.
    Token(String),
}

/// A call of a history.
#[derive(Clone, Debug)]
pub(crate) struct HistoryCall {
    pub(crate) content: String,
    /// Where it is known which one it is.
    pub(crate) token: Option<String>,
}

/// Maximum number of predecessors that are compared.
const MAX_COMPARED: usize = 64;

/// Which of the kept calls, the latest last, each call of a history is.
pub(crate) fn lined_up(kept: &[StoredCall], said: &[HistoryCall]) -> Vec<Option<usize>> {
    let mut lineup = Lineup::new(kept, said);
    lineup.follow(|known, at| known.before != Predecessor::Nothing || at == 0);
    // The rest: a client may have put calls of its own before the first.
    lineup.follow(|_, _| true);
    lineup.found
}

struct Lineup<'k> {
    kept: &'k [StoredCall],
    said: &'k [HistoryCall],
    tokens: HashMap<&'k str, usize>,
    contents: HashMap<&'k str, Vec<usize>>,
    is_taken: Vec<bool>,
    found: Vec<Option<usize>>,
}

impl<'k> Lineup<'k> {
    fn new(kept: &'k [StoredCall], said: &'k [HistoryCall]) -> Self {
        let mut tokens = HashMap::new();
        let mut contents: HashMap<&str, Vec<usize>> = HashMap::new();
        for (place, known) in kept.iter().enumerate() {
            tokens.insert(known.token.as_str(), place);
            contents.entry(&known.content).or_default().push(place);
        }
        let known = |said: &HistoryCall| tokens.get(said.token.as_deref()?).copied();
        let found: Vec<Option<usize>> = said.iter().map(known).collect();
        let mut is_taken = vec![false; kept.len()];
        found.iter().flatten().for_each(|place| is_taken[*place] = true);
        Self { kept, said, tokens, contents, is_taken, found }
    }

    /// Goes through the history from its end.
    fn follow(&mut self, may_be: impl Fn(&StoredCall, usize) -> bool) {
        let (mut next, mut parent) = (self.kept.len(), None);
        for at in (0..self.said.len()).rev() {
            let is_known = self.said[at].token.is_some();
            let place = match self.found[at] {
                None if is_known => None,
                None => self.best(at, next, parent, &may_be),
                found => found,
            };
            self.found[at] = place;
            parent = place.and_then(|place| self.parent(place));
            if let Some(place) = place {
                self.is_taken[place] = true;
                next = place;
            }
        }
    }

    fn best(
        &self,
        at: usize,
        next: usize,
        parent: Option<usize>,
        may_be: impl Fn(&StoredCall, usize) -> bool,
    ) -> Option<usize> {
        if let Some(parent) = parent.filter(|it| self.fits(*it, at)) {
            return Some(parent);
        }
        let alike = self.contents.get(self.said[at].content.as_str())?.iter().copied();
        alike
            .filter(|place| !self.is_taken[*place] && may_be(&self.kept[*place], at))
            .max_by_key(|place| (*place < next, self.length(*place, at), *place))
    }

    fn parent(&self, place: usize) -> Option<usize> {
        match &self.kept[place].before {
            Predecessor::Token(token) => self.tokens.get(token.as_str()).copied(),
            Predecessor::Nothing | Predecessor::Unknown => None,
        }
    }

    /// Whether a call of the history can be this one.
    fn fits(&self, place: usize, at: usize) -> bool {
        match &self.said[at].token {
            Some(token) => self.kept[place].token == *token,
            None => !self.is_taken[place] && self.kept[place].content == self.said[at].content,
        }
    }

    /// How many calls in a row fit, back from here.
    fn length(&self, place: usize, at: usize) -> usize {
        let mut place = place;
        for (length, at) in (1..MAX_COMPARED).zip((0..at).rev()) {
            match self.parent(place).filter(|it| self.fits(*it, at)) {
                Some(parent) => place = parent,
                None => return length,
            }
        }
        at.min(MAX_COMPARED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// r129, c10: a letter is the content of a call; stored calls are numbered, and name the one before:
    /// its number, `.` for none, `?` for one that is not stored.
    #[test]
    fn r129_calls_are_found_by_what_they_say_and_what_was_before_each_once() {
        let rows = [
            ("all is there", "ab", "a. b0", "0 1"),
            ("nothing is kept", "ab", "", "- -"),
            ("the same twice", "aa", "a. a0", "0 1"),
            ("the oldest are gone", "aaa", "a. a0 a1 a2 a3", "2 3 4"),
            ("and two take turns", "bab", "a. b0 a1 b2 a3 b4", "3 4 5"),
            ("the middle is gone", "abe", "a. c0 d1 b2 e3", "0 3 4"),
            ("given again: the last time counts", "aa", "a. a0 a0", "0 2"),
            ("given again, other words", "ab", "a. b0 c0", "0 1"),
            ("two that began alike", "abc", "a. a. b0 b1 c2 d3", "0 2 4"),
            ("the first is not the third", "aca", "a.", "0 - -"),
            ("calls of its own before the first", "xa", "a.", "- 0"),
            ("in one answer, told in another order", "ba", "a. b0", "1 0"),
            ("kept before anybody named the one before", "ab", "a? b?", "0 1"),
            ("and the latest of them", "ab", "a? b? a? b?", "2 3"),
        ];
        for (about, said, kept, want) in rows {
            let known = |(number, text): (usize, &str)| {
                let (content, before) = text.split_at(1);
                let before = match before {
                    "." => Predecessor::Nothing,
                    "?" => Predecessor::Unknown,
                    number => Predecessor::Token(number.to_owned()),
                };
                StoredCall { token: number.to_string(), content: content.to_owned(), before }
            };
            let kept: Vec<StoredCall> = kept.split_whitespace().enumerate().map(known).collect();
            let said = said.chars().map(|it| HistoryCall { content: it.to_string(), token: None });
            let found = lined_up(&kept, &said.collect::<Vec<_>>());
            let shown = found.iter().map(|it| it.map_or("-".to_owned(), |it| it.to_string()));
            assert_eq!(shown.collect::<Vec<_>>().join(" "), want, "{about}");
        }
    }

    /// A call that is identified is not matched with another of the same content.
    #[test]
    fn r129_known_calls_hold_their_places() {
        let known = |token: &str, before| StoredCall {
            token: token.to_owned(),
            content: "a".to_owned(),
            before,
        };
        let kept = [
            known("0", Predecessor::Nothing),
            known("1", Predecessor::Token("0".to_owned())),
            known("2", Predecessor::Token("1".to_owned())),
        ];
        let said = |token: Option<&str>| HistoryCall {
            content: "a".to_owned(),
            token: token.map(str::to_owned),
        };
        let found = |tokens: &[Option<&str>]| {
            lined_up(&kept, &tokens.iter().map(|it| said(*it)).collect::<Vec<_>>())
        };
        assert_eq!(found(&[None, Some("2")]), [Some(1), Some(2)]);
        assert_eq!(found(&[Some("1"), None]), [Some(1), Some(2)]);
        assert_eq!(found(&[None, Some("elsewhere")]), [Some(2), None]);
    }
}
