//! JSON Schema's types.

use std::fmt;

/// A set of JSON Schema's seven types.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Types(u8);

impl Types {
    pub(super) const NONE: Self = Self(0);
    pub(super) const STRING: Self = Self(1);
    pub(super) const NUMBER: Self = Self(2);
    pub(super) const INTEGER: Self = Self(4);
    pub(super) const BOOLEAN: Self = Self(8);
    pub(super) const ARRAY: Self = Self(16);
    pub(super) const OBJECT: Self = Self(32);
    pub(super) const NULL: Self = Self(64);

    /// With JSON Schema's and Gemini's names, in the order in which they are written.
    const NAMES: [(Self, &'static str, &'static str); 7] = [
        (Self::STRING, "string", "STRING"),
        (Self::NUMBER, "number", "NUMBER"),
        (Self::INTEGER, "integer", "INTEGER"),
        (Self::BOOLEAN, "boolean", "BOOLEAN"),
        (Self::ARRAY, "array", "ARRAY"),
        (Self::OBJECT, "object", "OBJECT"),
        (Self::NULL, "null", "NULL"),
    ];

    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether the two have a type in common.
    pub(super) fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(super) fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub(super) fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// What both allow; an integer is a number. `None`: nothing.
    pub(super) fn both(self, other: Self) -> Option<Self> {
        if self.is_empty() {
            return Some(other);
        }
        if other.is_empty() {
            return Some(self);
        }
        let mut both = Self(self.0 & other.0);
        if (self.has(Self::NUMBER) && other.has(Self::INTEGER))
            || (self.has(Self::INTEGER) && other.has(Self::NUMBER))
        {
            both = both.with(Self::INTEGER);
        }
        (!both.is_empty()).then_some(both)
    }

    /// Whether a value of type `one` is allowed.
    pub(super) fn allow(self, one: Self) -> bool {
        self.is_empty() || self.has(one) || (one == Self::INTEGER && self.has(Self::NUMBER))
    }

    pub(super) fn each(self) -> impl Iterator<Item = Self> {
        Self::NAMES.into_iter().map(|(one, ..)| one).filter(move |one| self.has(*one))
    }

    /// JSON Schema's names.
    pub(super) fn names(self) -> impl Iterator<Item = &'static str> {
        Self::NAMES.into_iter().filter(move |(one, ..)| self.has(*one)).map(|(_, name, _)| name)
    }

    /// Gemini's name of a single type.
    pub(super) fn gemini_name(self) -> Option<&'static str> {
        Self::NAMES.into_iter().find(|(one, ..)| *one == self).map(|(_, _, name)| name)
    }

    /// The type by its JSON Schema name or Gemini's.
    pub(super) fn by_name(name: &str) -> Option<Self> {
        Self::NAMES
            .into_iter()
            .find(|(_, lower, upper)| *lower == name || *upper == name)
            .map(|(one, ..)| one)
    }
}

impl fmt::Debug for Types {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}
