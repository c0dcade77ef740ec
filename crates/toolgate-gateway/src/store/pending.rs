//! What was written and is not in its place yet, and what the file's thread is asked for.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use tokio::sync::oneshot;

use super::Kind;
use super::change::{At, Change, What};
use super::sqlite_file::now;
use crate::auth::Owner;

/// What waits for the thread.
#[derive(Debug, Default)]
pub(super) struct Pending {
    changes: Vec<Change>,
    /// How many of them are in the tail.
    saved: usize,
    /// The last that was put somewhere, by where.
    values: HashMap<Arc<At>, usize>,
    bytes: usize,
    /// When the first of them came.
    pub(super) since: Option<Instant>,
    /// Whether the thread has something in its hands that is not in the tail either.
    pub(super) is_unsafe: bool,
    pub(super) asks: Vec<Ask>,
    pub(super) is_closed: bool,
}

/// What somebody waits for.
#[derive(Debug)]
pub(super) enum Ask {
    Get(Owner, Kind, Vec<String>, oneshot::Sender<Vec<Option<Bytes>>>),
    List(At, oneshot::Sender<Vec<Bytes>>),
    Delete(At, oneshot::Sender<bool>),
    Flush(oneshot::Sender<()>),
}

impl Ask {
    /// Whether it can be answered only when all that was written before is in its place. A value
    /// that is not is found without the thread.
    pub(super) fn needs_all(&self) -> bool {
        match self {
            Self::Get(..) => false,
            Self::Delete(..) | Self::Flush(_) | Self::List(..) => true,
        }
    }
}

/// More does not wait: that happens only when the disk hangs.
const CHANGES: usize = 65_536;
const BYTES: usize = 64 << 20;

impl Pending {
    /// Adds something; says whether there was room for it.
    pub(super) fn add(&mut self, change: Change) -> bool {
        if self.changes.len() >= CHANGES || self.bytes >= BYTES {
            return false;
        }
        self.bytes += change.size();
        match &change.what {
            What::Put(_) => {
                self.values.insert(Arc::clone(&change.at), self.changes.len());
            }
            What::Append(_) => {}
        }
        self.changes.push(change);
        self.since.get_or_insert_with(Instant::now);
        true
    }

    /// Whether so much waits that it should wait no longer.
    pub(super) fn is_much(&self, bytes: usize) -> bool {
        self.bytes >= bytes || self.changes.len() >= CHANGES / 4
    }

    /// What was put somewhere and is not there yet; `Some(None)`: it is too old already.
    pub(super) fn value(&self, at: &At) -> Option<Option<Bytes>> {
        let change = self.changes.get(*self.values.get(at)?)?;
        match &change.what {
            What::Put(value) => Some((change.until > now()).then(|| value.clone())),
            What::Append(_) => None,
        }
    }

    /// Whether no value waits.
    pub(super) fn has_no_values(&self) -> bool {
        self.values.is_empty()
    }

    /// What is not in the tail.
    pub(super) fn unsaved(&self) -> &[Change] {
        &self.changes[self.saved..]
    }

    /// So many more are in the tail.
    pub(super) fn saved(&mut self, more: usize) {
        self.saved += more;
    }

    /// Hands over all changes that still count, those of one place in their order. Neighbours
    /// stand together: they belong to the same pages of the file.
    pub(super) fn take(&mut self) -> Vec<Change> {
        self.is_unsafe = !self.unsaved().is_empty();
        (self.saved, self.bytes, self.since) = (0, 0, None);
        let values = std::mem::take(&mut self.values);
        let changes = std::mem::take(&mut self.changes).into_iter().enumerate();
        let counts = |(number, change): (usize, Change)| match &change.what {
            What::Put(_) if values.get(&change.at) != Some(&number) => None,
            What::Put(_) | What::Append(_) => Some(change),
        };
        let mut changes: Vec<Change> = changes.filter_map(counts).collect();
        changes.sort_by(|one, other| one.at.cmp(&other.at));
        changes
    }
}
