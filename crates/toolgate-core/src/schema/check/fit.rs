//! Whether a value fits a schema as it is.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

use super::listed::Listed;
use super::tape::Tape;
use crate::json::{Kind, Raw};

/// The index of a node.
pub(super) type NodeId = usize;

/// A schema. The default takes everything.
#[derive(Clone, Debug, Default)]
pub(super) struct Node {
    pub(super) types: Types,
    /// The types that it takes together with all that it refers to.
    pub(super) allowed: Types,
    /// `enum` and `const`.
    pub(super) values: Option<Listed>,
    pub(super) properties: BTreeMap<Box<str>, NodeId>,
    /// Sorted.
    pub(super) required: Vec<Box<str>>,
    pub(super) additional: Additional,
    pub(super) prefix: Vec<NodeId>,
    pub(super) items: Option<NodeId>,
    pub(super) bounds: Option<Box<Bounds>>,
    /// `$ref` and `allOf`: all of these.
    pub(super) all: Vec<NodeId>,
    /// `anyOf` and `oneOf`: at least one of each.
    pub(super) any: Vec<Vec<NodeId>>,
    pub(super) default: Option<Raw<'static>>,
}

/// Rule for properties that a schema does not name.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Additional {
    #[default]
    Any,
    No,
    Schema(NodeId),
}

/// Limits of size.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Bounds {
    pub(super) minimum: Option<f64>,
    pub(super) maximum: Option<f64>,
    pub(super) above: Option<f64>,
    pub(super) below: Option<f64>,
    pub(super) length: (Option<usize>, Option<usize>),
    pub(super) items: (Option<usize>, Option<usize>),
    pub(super) members: (Option<usize>, Option<usize>),
}

/// A set of JSON types. Whole numbers are told apart by how they are written: `1.0` is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Types(u8);

impl Default for Types {
    fn default() -> Self {
        Self::ALL
    }
}

impl Types {
    pub(super) const NONE: Self = Self(0);
    pub(super) const NULL: Self = Self(1);
    pub(super) const BOOL: Self = Self(2);
    pub(super) const INTEGER: Self = Self(4);
    pub(super) const FRACTION: Self = Self(8);
    pub(super) const NUMBER: Self = Self(12);
    pub(super) const STRING: Self = Self(16);
    pub(super) const ARRAY: Self = Self(32);
    pub(super) const OBJECT: Self = Self(64);
    pub(super) const ALL: Self = Self(127);

    const NAMES: [(Self, &str); 7] = [
        (Self::NULL, "null"),
        (Self::BOOL, "boolean"),
        (Self::NUMBER, "number"),
        (Self::INTEGER, "integer"),
        (Self::STRING, "string"),
        (Self::ARRAY, "array"),
        (Self::OBJECT, "object"),
    ];

    /// By its name in a schema, in either case.
    pub(super) fn named(name: &str) -> Option<Self> {
        let is = |(_, known): &&(Self, &str)| known.eq_ignore_ascii_case(name);
        Self::NAMES.iter().find(is).map(|(types, _)| *types)
    }

    pub(super) fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub(super) fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// How many types there are.
    pub(super) const COUNT: usize = 7;

    /// Each type of the set.
    pub(super) fn each(self) -> impl Iterator<Item = Self> {
        (0..Self::COUNT).map(|bit| Self(1 << bit)).filter(move |one| self.has(*one))
    }

    /// The number of a single type.
    pub(super) fn index(self) -> usize {
        (self.0.trailing_zeros() as usize).min(Self::COUNT - 1)
    }

    pub(super) fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The type of a value.
    pub(super) fn of(kind: Kind, text: &str) -> Self {
        match kind {
            Kind::Array => Self::ARRAY,
            Kind::Bool => Self::BOOL,
            Kind::Null => Self::NULL,
            Kind::Number if text.bytes().any(|it| matches!(it, b'.' | b'e' | b'E')) => {
                Self::FRACTION
            }
            Kind::Number => Self::INTEGER,
            Kind::Object => Self::OBJECT,
            Kind::String => Self::STRING,
        }
    }
}

impl std::fmt::Display for Types {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut left = *self;
        let mut first = true;
        for (types, name) in Self::NAMES {
            if left.has(types) {
                write!(f, "{}{name}", if first { "" } else { " or " })?;
                left = Self(left.0 & !types.0);
                first = false;
            }
        }
        // Any other number is not whole.
        match (first, left) {
            (true, Self::FRACTION) => f.write_str("number"),
            (true, _) => f.write_str("nothing"),
            (false, _) => Ok(()),
        }
    }
}

/// The types that all of these nodes take.
pub(super) fn allowed(nodes: &[Node], ids: &[NodeId]) -> Types {
    ids.iter().fold(Types::ALL, |types, id| types.and(nodes[*id].allowed))
}

/// Deeper than this a value is taken as it is.
const MAX_DEPTH: usize = 200;
/// Bytes of text that can be looked through as fast as one schema.
const BYTES_PER_STEP: usize = 64;

/// A schema held against one text.
pub(super) struct Fit<'a> {
    pub(super) nodes: &'a [Node],
    pub(super) tape: &'a Tape<'a>,
    /// How many comparisons are left: alternatives inside alternatives could take forever.
    pub(super) steps: &'a Cell<usize>,
    /// Whether values fit schemas that refer to others, as far as that is known. A schema that
    /// refers to itself for the same value says nothing more: it fits until something else does not.
    known: RefCell<BTreeMap<(NodeId, usize), bool>>,
}

impl<'a> Fit<'a> {
    pub(super) fn new(nodes: &'a [Node], tape: &'a Tape<'a>, steps: &'a Cell<usize>) -> Self {
        Self { nodes, tape, steps, known: RefCell::default() }
    }

    /// How many comparisons a text of so many tokens is worth.
    pub(super) fn steps_for(tokens: usize) -> usize {
        100_000 + tokens.saturating_mul(50)
    }

    /// Takes so many steps; `false` where there are not so many left.
    pub(super) fn take(&self, steps: usize) -> bool {
        let left = self.steps.get().checked_sub(steps);
        self.steps.set(left.unwrap_or(0));
        left.is_some()
    }

    /// Takes the cost of reading a text again.
    fn take_text(&self, text: &str) -> bool {
        self.take(text.len() / BYTES_PER_STEP)
    }

    /// Whether the steps were too few to decide.
    pub(super) fn is_exhausted(&self) -> bool {
        self.steps.get() == 0
    }

    /// The nodes and all that they refer to with `$ref` and `allOf`.
    pub(super) fn together(&self, ids: &[NodeId]) -> Vec<NodeId> {
        let mut found = ids.to_vec();
        let mut seen: BTreeSet<NodeId> = ids.iter().copied().collect();
        let mut at = 0;
        while let Some(node) = found.get(at).and_then(|id| self.nodes.get(*id)) {
            if !self.take(1 + node.all.len()) {
                break;
            }
            found.extend(node.all.iter().filter(|id| seen.insert(**id)));
            at += 1;
        }
        found
    }

    pub(super) fn types_of(&self, value: usize) -> Types {
        Types::of(self.tape.kind(value), self.tape.text(value))
    }

    /// Whether the value fits; what cannot be decided within bounds does.
    pub(super) fn fits(&self, id: NodeId, value: usize, depth: usize) -> bool {
        if !self.take(1) || depth > MAX_DEPTH {
            return true;
        }
        let node = &self.nodes[id];
        if node.all.is_empty() && node.any.is_empty() {
            return self.fits_node(node, value, depth);
        }
        if let Some(fits) = self.known.borrow().get(&(id, value)) {
            return *fits;
        }
        self.known.borrow_mut().insert((id, value), true);
        let fits = self.fits_node(node, value, depth);
        if !fits {
            self.known.borrow_mut().insert((id, value), false);
        }
        fits
    }

    fn fits_node(&self, node: &Node, value: usize, depth: usize) -> bool {
        node.types.has(self.types_of(value))
            && self.is_listed(node, value)
            && node.bounds.as_ref().is_none_or(|bounds| self.complaint(bounds, value).is_none())
            && match self.tape.kind(value) {
                Kind::Object => self.object_fits(node, value, depth),
                Kind::Array => self.array_fits(node, value, depth),
                Kind::Bool | Kind::Null | Kind::Number | Kind::String => true,
            }
            && node.all.iter().all(|id| self.fits(*id, value, depth + 1))
            && node
                .any
                .iter()
                .all(|branches| branches.iter().any(|id| self.fits(*id, value, depth + 1)))
    }

    fn object_fits(&self, node: &Node, value: usize, depth: usize) -> bool {
        if node.properties.is_empty()
            && node.required.is_empty()
            && matches!(node.additional, Additional::Any)
        {
            return true;
        }
        if !self.take(node.required.len() / BYTES_PER_STEP) {
            return true;
        }
        let mut seen = vec![false; node.required.len()];
        for (key, member) in self.tape.members(value) {
            if !self.take(1) || !self.take_text(self.tape.text(key)) {
                return true;
            }
            let name = self.tape.string(key);
            if let Ok(index) = node.required.binary_search_by(|it| (**it).cmp(&*name)) {
                seen[index] = true;
            }
            let fits = match (node.properties.get(&*name), node.additional) {
                (Some(&id), _) | (None, Additional::Schema(id)) => self.fits(id, member, depth + 1),
                (None, Additional::No) => false,
                (None, Additional::Any) => true,
            };
            if !fits {
                return false;
            }
        }
        seen.into_iter().all(|seen| seen)
    }

    fn array_fits(&self, node: &Node, value: usize, depth: usize) -> bool {
        if node.items.is_none() && node.prefix.is_empty() {
            return true;
        }
        self.tape.items(value).enumerate().all(|(index, item)| {
            if !self.take(1) {
                return true;
            }
            node.prefix
                .get(index)
                .or(node.items.as_ref())
                .is_none_or(|id| self.fits(*id, item, depth + 1))
        })
    }

    /// Whether the value is one of those that `enum` or `const` lists.
    pub(super) fn is_listed(&self, node: &Node, value: usize) -> bool {
        let Some(listed) = &node.values else { return true };
        let text = self.tape.text(value);
        if !self.take_text(text) {
            return true;
        }
        match self.tape.kind(value) {
            Kind::String => {
                listed.has_string(&self.tape.string(value))
                    // Half a surrogate pair is only equal to itself.
                    || (text.contains("\\u")
                        && (!self.take(listed.len() / BYTES_PER_STEP) || listed.has_literal(text)))
            }
            Kind::Number => listed.has_number(text),
            Kind::Bool | Kind::Null => {
                !self.take(listed.len() / BYTES_PER_STEP) || listed.has_literal(text)
            }
            Kind::Array | Kind::Object => {
                let mut read = None;
                for value in listed.data() {
                    if value.get() == text {
                        return true;
                    }
                    // What cannot be decided within bounds fits.
                    if !self.take(1) || !self.take_text(value.get()) {
                        return true;
                    }
                    let read = read.get_or_insert_with(|| parsed(text));
                    if read.is_some() && *read == parsed(value.get()) {
                        return true;
                    }
                }
                false
            }
        }
    }

    /// Which limit the value breaks.
    pub(super) fn complaint(&self, bounds: &Bounds, value: usize) -> Option<String> {
        let within = |what: &str, size: usize, (min, max): (Option<usize>, Option<usize>)| {
            let below = min.filter(|min| size < *min).map(|min| format!("fewer than {min} {what}"));
            below.or_else(|| {
                max.filter(|max| size > *max).map(|max| format!("more than {max} {what}"))
            })
        };
        match self.tape.kind(value) {
            Kind::Number => {
                let number: f64 = self.tape.text(value).parse().ok()?;
                let Bounds { minimum, maximum, above, below, .. } = *bounds;
                let broken = |limit: Option<f64>, holds: fn(&f64, &f64) -> bool, words: &str| {
                    let limit = limit.filter(|limit| !holds(&number, limit))?;
                    Some(format!("not {words} {limit}"))
                };
                broken(minimum, f64::ge, "at least")
                    .or_else(|| broken(maximum, f64::le, "at most"))
                    .or_else(|| broken(above, f64::gt, "above"))
                    .or_else(|| broken(below, f64::lt, "below"))
            }
            Kind::String if bounds.length != (None, None) => {
                if !self.take_text(self.tape.text(value)) {
                    return None;
                }
                within("characters", self.tape.string(value).chars().count(), bounds.length)
            }
            Kind::Array if bounds.items != (None, None) => {
                self.take(self.tape.items(value).count() / BYTES_PER_STEP);
                within("items", self.tape.items(value).count(), bounds.items)
            }
            Kind::Object if bounds.members != (None, None) => {
                self.take(self.tape.members(value).count() / BYTES_PER_STEP);
                within("properties", self.tape.members(value).count(), bounds.members)
            }
            Kind::Array | Kind::Object | Kind::String | Kind::Bool | Kind::Null => None,
        }
    }
}

fn parsed(json: &str) -> Option<serde_json::Value> {
    serde_json::from_str(json).ok()
}
