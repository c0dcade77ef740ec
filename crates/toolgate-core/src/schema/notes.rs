//! Sentences for a description, each once.

use std::collections::BTreeMap;
use std::rc::Rc;

/// Few sentences are searched one by one.
const MAX_UNINDEXED: usize = 16;

/// Sentences in order, each once. Joining two lists costs as much as the shorter one.
#[derive(Clone, Debug, Default)]
pub(super) struct Notes {
    /// By position; positions may be negative and have gaps.
    sentences: BTreeMap<i64, Rc<str>>,
    /// The position of each sentence, once there are many.
    positions: BTreeMap<Rc<str>, i64>,
}

impl Notes {
    pub(super) fn is_empty(&self) -> bool {
        self.sentences.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.sentences.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        self.sentences.values().map(|sentence| &**sentence)
    }

    /// Adds a sentence at the end, unless it is there already.
    pub(super) fn push(&mut self, sentence: impl Into<Rc<str>>) {
        let sentence = sentence.into();
        if self.position(&sentence).is_none() {
            let end = self.sentences.last_key_value().map_or(0, |(at, _)| at + 1);
            self.put(end, sentence);
        }
    }

    /// Adds those of `later` that are not there already at the end.
    pub(super) fn append(&mut self, mut later: Self) {
        if later.len() <= self.len() {
            for sentence in later.sentences.into_values() {
                self.push(sentence);
            }
            return;
        }
        // The same list, made from the longer one: each of these goes to the front.
        let earlier = std::mem::take(self);
        for sentence in earlier.sentences.into_values().rev() {
            if let Some(at) = later.position(&sentence) {
                later.sentences.remove(&at);
                later.positions.remove(&sentence);
            }
            let front = later.sentences.first_key_value().map_or(0, |(at, _)| at - 1);
            later.put(front, sentence);
        }
        *self = later;
    }

    fn position(&self, sentence: &str) -> Option<i64> {
        if self.positions.is_empty() {
            let mut all = self.sentences.iter();
            return all.find(|(_, it)| &***it == sentence).map(|(at, _)| *at);
        }
        self.positions.get(sentence).copied()
    }

    fn put(&mut self, at: i64, sentence: Rc<str>) {
        if !self.positions.is_empty() {
            self.positions.insert(Rc::clone(&sentence), at);
        }
        self.sentences.insert(at, sentence);
        if self.positions.is_empty() && self.sentences.len() > MAX_UNINDEXED {
            self.positions =
                self.sentences.iter().map(|(at, sentence)| (Rc::clone(sentence), *at)).collect();
        }
    }
}

impl PartialEq for Notes {
    fn eq(&self, other: &Self) -> bool {
        self.sentences.len() == other.sentences.len() && self.iter().eq(other.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notes(sentences: &[&str]) -> Notes {
        let mut notes = Notes::default();
        sentences.iter().for_each(|it| notes.push(*it));
        notes
    }

    #[track_caller]
    fn check(first: &[&str], second: &[&str], want: &str) {
        let mut joined = notes(first);
        joined.append(notes(second));
        assert_eq!(joined.iter().collect::<Vec<_>>().join(""), want);
    }

    #[test]
    fn joining_keeps_order_and_the_first_of_equal_sentences() {
        check(&["a", "b", "c"], &["d", "b"], "abcd");
        check(&["d", "b"], &["a", "b", "c"], "dbac");
        check(&[], &["a", "b"], "ab");
        check(&["a", "a"], &[], "a");
    }

    #[test]
    fn many_sentences_are_joined_like_few() {
        let many: Vec<String> = (0..40).map(|at| format!("<{at}>")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let (few, most) = (["<39>", "x", "<3>"], &many[..]);
        let rest: String = many.iter().filter(|it| !few.contains(it)).copied().collect();
        check(&few, most, &format!("<39>x<3>{rest}"));
        check(most, &few, &format!("{}x", many.concat()));
    }
}
