//! The log of a conversation: its items, and which of them were deleted.

use std::collections::HashSet;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use toolgate_core::translate::Dialect;

use super::conversation::id_of;
use super::history::StoredItem;
use crate::store::{Item, Stamp};

/// The first byte of a log entry.
const ITEM: u8 = b'r';
const CONTENT: u8 = b'g';
const REMOVED: u8 = b'x';
const USED: u8 = b'u';

/// The part of a conversation that a turn has read. The name alone does not identify it: a conversation
/// may be deleted, and another one begun under its name.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Seen {
    pub(super) name: String,
    /// Number of items in the log.
    entries: usize,
    /// Stamp of the last of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last: Option<String>,
    /// The stored head.
    #[serde(skip)]
    pub(super) head: Option<Bytes>,
}

impl Seen {
    /// A whole conversation.
    pub(super) fn all(name: &str, log: &[Item], head: Option<Bytes>) -> Self {
        let last = log.last().map(|item| URL_SAFE_NO_PAD.encode(item.stamp.as_bytes()));
        Self { name: name.to_owned(), entries: log.len(), last, head }
    }

    /// Where it ends in a log; `None` if it is part of another log.
    pub(super) fn end_in(&self, log: &[Item]) -> Option<usize> {
        let Some(at) = self.entries.checked_sub(1) else { return Some(0) };
        let last = Stamp::from_bytes(&URL_SAFE_NO_PAD.decode(self.last.as_ref()?).ok()?)?;
        let is_last = |item: &Item| item.stamp == last;
        if log.get(at).is_some_and(is_last) {
            return Some(self.entries);
        }
        // A server that lost the log may have got it back in another order.
        log.iter().position(is_last).map(|at| at + 1)
    }
}

/// The items that are left of a part of a conversation.
#[derive(Debug, Default)]
pub(super) struct Left {
    pub(super) said: Vec<StoredItem>,
    /// Ids of deleted items.
    removed: HashSet<String>,
}

impl Left {
    /// Whether any item was deleted.
    pub(super) fn has_removals(&self) -> bool {
        !self.removed.is_empty()
    }

    /// Whether an item was deleted.
    pub(super) fn has_removed(&self, item: &str) -> bool {
        // In most conversations nothing was deleted, and the item need not be parsed.
        !self.removed.is_empty() && id_of(item).is_some_and(|id| self.removed.contains(&id))
    }
}

/// Entry of an item.
pub(super) fn added(said: &StoredItem) -> Bytes {
    entry(tag_of(said.dialect), &said.json)
}

/// Entry of a deletion.
pub(super) fn removed(item: &str) -> Bytes {
    entry(REMOVED, item)
}

/// Entry of a read, which renews the retention of the log.
pub(super) fn used() -> Bytes {
    entry(USED, "")
}

/// First byte of an entry in a dialect.
pub(super) fn tag_of(dialect: Dialect) -> u8 {
    if dialect == Dialect::Gemini { CONTENT } else { ITEM }
}

/// Dialect of an entry with this first byte.
pub(super) fn dialect_of(tag: u8) -> Dialect {
    if tag == CONTENT { Dialect::Gemini } else { Dialect::Responses }
}

fn entry(tag: u8, text: &str) -> Bytes {
    let mut out = Vec::with_capacity(text.len() + 1);
    out.push(tag);
    out.extend_from_slice(text.as_bytes());
    Bytes::from(out)
}

/// Stamps of the entries of an item.
pub(super) fn stamps_of<'l>(log: &'l [Item], id: &str) -> impl Iterator<Item = Stamp> {
    let is_it = move |item: &&'l Item| match item.value.split_first() {
        Some((&(ITEM | CONTENT), json)) => {
            std::str::from_utf8(json).ok().and_then(id_of).as_deref() == Some(id)
        }
        Some(_) | None => false,
    };
    log.iter().filter(is_it).map(|item| item.stamp)
}

/// The items in the first `end` entries of a log, without those that were deleted in any entry.
pub(super) fn left(log: &[Item], end: usize) -> Left {
    let mut left = Left::default();
    for (at, Item { value, .. }) in log.iter().enumerate().rev() {
        // Nothing is left of an erased entry.
        let Some((tag, json)) = value.split_first() else { continue };
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
            left.said.push(StoredItem { dialect, json: json.to_owned() });
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

    fn log(values: impl IntoIterator<Item = Bytes>) -> Vec<Item> {
        let stamped = |(number, value): (usize, Bytes)| Item { stamp: stamp(number), value };
        values.into_iter().enumerate().map(stamped).collect()
    }

    fn stamp(number: usize) -> Stamp {
        let mut bytes = [0; 24];
        bytes[..8].copy_from_slice(&number.to_be_bytes());
        Stamp::from_bytes(&bytes).unwrap()
    }

    /// A log with many deletions is read in one pass.
    #[test]
    fn deleted_items_are_left_out() {
        let item = |n: usize| entry(ITEM, &format!("{{\"id\":\"i{n}\",\"type\":\"message\"}}"));
        let removed = (0..20_000).step_by(2).map(|n| entry(REMOVED, &format!("i{n}")));
        let log = log((0..20_000).map(item).chain(removed));
        let left = left(&log, log.len());
        assert_eq!((left.said.len(), left.removed.len()), (10_000, 10_000));
        assert!(texts(&left).iter().take(3).eq(&[
            r#"{"id":"i1","type":"message"}"#,
            r#"{"id":"i3","type":"message"}"#,
            r#"{"id":"i5","type":"message"}"#
        ]));
    }

    #[test]
    fn the_part_that_was_read_is_found_by_its_last_stamp() {
        let mut log = log(["a", "b", "c"].map(|text| entry(ITEM, text)));
        let seen = |entries, last: Option<usize>| Seen {
            entries,
            last: last.map(|last| URL_SAFE_NO_PAD.encode(stamp(last).as_bytes())),
            ..Seen::default()
        };
        assert_eq!(seen(0, None).end_in(&log), Some(0));
        assert_eq!(seen(2, Some(1)).end_in(&log), Some(2));
        assert_eq!(seen(1, Some(2)).end_in(&log), Some(3), "in another order");
        assert_eq!(seen(2, Some(7)).end_in(&log), None);
        assert_eq!(seen(2, Some(1)).end_in(&log[..1]), None);
        log[1].value = Bytes::new();
        assert_eq!(seen(2, Some(1)).end_in(&log), Some(2), "an erased item keeps its stamp");
    }
}
