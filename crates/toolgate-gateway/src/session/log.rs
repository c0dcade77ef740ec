//! The log of a conversation: what was said, and what of it was taken back.

use std::collections::HashSet;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use toolgate_core::translate::Dialect;

use super::before::Said;
use super::conversation::id_of;

/// The first byte of a log entry.
const ITEM: u8 = b'r';
const CONTENT: u8 = b'g';
const REMOVED: u8 = b'x';
const USED: u8 = b'u';

/// How much of a conversation somebody has seen. Its name alone does not say which one it was: it
/// may be deleted, and begun anew.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Seen {
    pub(super) name: String,
    /// How many entries its log had.
    entries: usize,
    /// The mark of the last of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last: Option<String>,
    /// What was kept in the place of its head.
    #[serde(skip)]
    pub(super) head: Option<Bytes>,
}

impl Seen {
    /// All that there is of a conversation.
    pub(super) fn all(name: &str, log: &[Bytes], head: Option<Bytes>) -> Self {
        Self { name: name.to_owned(), entries: log.len(), last: log.last().map(mark), head }
    }

    /// How much of a log it is; `None`: that is another log.
    pub(super) fn end_in(&self, log: &[Bytes]) -> Option<usize> {
        let Some(at) = self.entries.checked_sub(1) else { return Some(0) };
        let last = self.last.as_ref()?;
        let is_last = |entry: &Bytes| mark(entry) == *last;
        if log.get(at).is_some_and(is_last) {
            return Some(self.entries);
        }
        // A server that lost it may have got it back in another order.
        log.iter().position(is_last).map(|at| at + 1)
    }
}

/// What is left of what somebody has seen.
#[derive(Debug, Default)]
pub(super) struct Left {
    pub(super) said: Vec<Said>,
    /// The ids of all that was taken back.
    removed: HashSet<String>,
}

impl Left {
    /// Whether an item was taken back.
    pub(super) fn has_removed(&self, item: &str) -> bool {
        // Most conversations have lost nothing, and their items are not read for it.
        !self.removed.is_empty() && id_of(item).is_some_and(|id| self.removed.contains(&id))
    }
}

/// Something that was said, as an entry.
pub(super) fn added(said: &Said) -> Bytes {
    entry(tag_of(said.dialect), &said.json)
}

/// That an item was taken back.
pub(super) fn removed(item: &str) -> Bytes {
    entry(REMOVED, item)
}

/// That it was read, which keeps a log as long as if something were added.
pub(super) fn used() -> Bytes {
    entry(USED, "")
}

/// What begins something of a dialect's.
pub(super) fn tag_of(dialect: Dialect) -> u8 {
    if dialect == Dialect::Gemini { CONTENT } else { ITEM }
}

/// Whose it is what begins with a tag.
pub(super) fn dialect_of(tag: u8) -> Dialect {
    if tag == CONTENT { Dialect::Gemini } else { Dialect::Responses }
}

fn entry(tag: u8, text: &str) -> Bytes {
    let mut out = Vec::with_capacity(text.len() + 1);
    out.push(tag);
    out.extend_from_slice(text.as_bytes());
    Bytes::from(out)
}

/// Tells an entry from others.
fn mark(entry: &Bytes) -> String {
    URL_SAFE_NO_PAD.encode(&digest(&SHA256, entry).as_ref()[..12])
}

/// What was said in the first entries of a log, without what was taken back in all of it.
pub(super) fn left(log: &[Bytes], end: usize) -> Left {
    let mut left = Left::default();
    for (at, entry) in log.iter().enumerate().rev() {
        let Some((tag, json)) = entry.split_first() else { continue };
        let Ok(json) = std::str::from_utf8(json) else { continue };
        let dialect = match *tag {
            ITEM => Dialect::Responses,
            CONTENT => Dialect::Gemini,
            USED => continue,
            _ => {
                left.removed.insert(json.to_owned());
                continue;
            }
        };
        if at < end && !left.has_removed(json) {
            left.said.push(Said { dialect, json: json.to_owned() });
        }
    }
    left.said.reverse();
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(left: &Left) -> Vec<&str> {
        left.said.iter().map(|said| said.json.as_str()).collect()
    }

    /// However much was taken back, a log is gone through once.
    #[test]
    fn a_long_log_is_read_in_no_time() {
        let item = |n: usize| entry(ITEM, &format!("{{\"id\":\"i{n}\",\"type\":\"message\"}}"));
        let removed = (0..20_000).step_by(2).map(|n| entry(REMOVED, &format!("i{n}")));
        let log: Vec<_> = (0..20_000).map(item).chain(removed).collect();
        let left = left(&log, log.len());
        assert_eq!((left.said.len(), left.removed.len()), (10_000, 10_000));
        assert!(texts(&left).iter().take(3).eq(&[
            r#"{"id":"i1","type":"message"}"#,
            r#"{"id":"i3","type":"message"}"#,
            r#"{"id":"i5","type":"message"}"#
        ]));
    }

    #[test]
    fn what_was_seen_is_found_where_it_is() {
        let log: Vec<_> = ["a", "b", "c"].map(|text| entry(ITEM, text)).to_vec();
        let seen = |entries, last: Option<&Bytes>| Seen {
            entries,
            last: last.map(mark),
            ..Seen::default()
        };
        assert_eq!(seen(0, None).end_in(&log), Some(0));
        assert_eq!(seen(2, log.get(1)).end_in(&log), Some(2));
        assert_eq!(seen(1, log.get(2)).end_in(&log), Some(3), "in another order");
        assert_eq!(seen(2, Some(&entry(ITEM, "other"))).end_in(&log), None);
        assert_eq!(seen(2, log.get(1)).end_in(&log[..1]), None);
    }
}
