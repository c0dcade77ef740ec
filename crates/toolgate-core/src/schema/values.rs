//! The values of an `enum`.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::cmp::Ordering;
use std::ops::Deref;

use super::node::Number;
use super::tree::Tree;
use super::types::Types;

/// One of the values of an `enum`.
#[derive(Clone, Debug)]
pub(super) enum Value<'t> {
    Text(Cow<'t, str>),
    Number(Number<'t>),
    Bool(bool),
    Null,
    /// An object or array.
    Data(&'t Tree<'t>),
}

impl Value<'_> {
    pub(super) fn types(&self) -> Types {
        match self {
            Self::Text(_) => Types::STRING,
            Self::Number(number) if number.is_integral() => Types::INTEGER,
            Self::Number(_) => Types::NUMBER,
            Self::Bool(_) => Types::BOOLEAN,
            Self::Null => Types::NULL,
            Self::Data(tree) if tree.is_object() => Types::OBJECT,
            Self::Data(_) => Types::ARRAY,
        }
    }

    /// Returns the text of the value as it is written.
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Number(number) => Some(&number.0),
            Self::Bool(true) => Some("true"),
            Self::Bool(false) => Some("false"),
            Self::Null => None,
            Self::Data(tree) => Some(tree.text),
        }
    }

    /// The value as JSON.
    pub(super) fn to_json(&self) -> String {
        let mut out = Vec::new();
        self.write(&mut out);
        String::from_utf8(out).unwrap_or_default()
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Text(text) => crate::json::write::string(out, text),
            Self::Number(number) => out.extend_from_slice(number.0.as_bytes()),
            Self::Bool(true) => out.extend_from_slice(b"true"),
            Self::Bool(false) => out.extend_from_slice(b"false"),
            Self::Null => out.extend_from_slice(b"null"),
            Self::Data(tree) => tree.write(out),
        }
    }
}

/// Values are equal if they are written alike.
impl Ord for Value<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        fn rank(value: &Value<'_>) -> u8 {
            match value {
                Value::Text(_) => 0,
                Value::Number(_) => 1,
                Value::Bool(_) => 2,
                Value::Null => 3,
                Value::Data(_) => 4,
            }
        }
        rank(self).cmp(&rank(other)).then_with(|| self.text().cmp(&other.text()))
    }
}

impl PartialOrd for Value<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Value<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Value<'_> {}

/// The values of an `enum` in order, found without a scan.
#[derive(Clone, Debug, Default)]
pub(super) struct Values<'t> {
    list: Vec<Value<'t>>,
    /// Positions sorted by value, once some were looked for.
    sorted: OnceCell<Vec<usize>>,
}

impl<'t> Values<'t> {
    /// Those that are in both, in the order of these, and how many comparisons that took. Costs as
    /// much as the shorter list once the longer one is indexed.
    pub(super) fn shared(&self, other: &Self) -> (Vec<Value<'t>>, usize) {
        let (long, short) = if self.len() >= other.len() { (self, other) } else { (other, self) };
        let new = if long.sorted.get().is_none() { long.len() } else { 0 };
        let mut found: Vec<usize> = short
            .iter()
            .enumerate()
            .filter_map(|(at, value)| {
                let place = long.position(value)?;
                Some(if self.len() >= other.len() { place } else { at })
            })
            .collect();
        found.sort_unstable();
        let list = found.iter().filter_map(|at| self.list.get(*at)).cloned().collect();
        (list, new + short.len())
    }

    /// Adds values at the end.
    pub(super) fn extend(&mut self, more: impl IntoIterator<Item = Value<'t>>) {
        self.list.extend(more);
        self.sorted.take();
    }

    /// Whether a value is in the list.
    pub(super) fn has(&self, value: &Value<'t>) -> bool {
        self.position(value).is_some()
    }

    fn position(&self, value: &Value<'t>) -> Option<usize> {
        let sorted = self.sorted.get_or_init(|| {
            let mut sorted: Vec<usize> = (0..self.list.len()).collect();
            sorted.sort_by(|a, b| self.list[*a].cmp(&self.list[*b]));
            sorted
        });
        let found = sorted.binary_search_by(|at| self.list[*at].cmp(value)).ok()?;
        sorted.get(found).copied()
    }
}

impl<'t> Deref for Values<'t> {
    type Target = [Value<'t>];

    fn deref(&self) -> &Self::Target {
        &self.list
    }
}

impl<'t> From<Vec<Value<'t>>> for Values<'t> {
    fn from(list: Vec<Value<'t>>) -> Self {
        Self { list, sorted: OnceCell::new() }
    }
}

impl<'t> IntoIterator for Values<'t> {
    type Item = Value<'t>;
    type IntoIter = std::vec::IntoIter<Value<'t>>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.into_iter()
    }
}

impl PartialEq for Values<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.list == other.list
    }
}
