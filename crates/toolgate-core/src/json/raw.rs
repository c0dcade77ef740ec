//! A JSON value that is parsed on demand.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeOwned, MapAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::Text;

/// A JSON value as it was written: key order, number text and escapes included.
#[derive(Clone)]
pub struct Raw<'a>(Cow<'a, RawValue>);

/// Type of a JSON value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `[…]`
    Array,
    /// `true` or `false`
    Bool,
    /// `null`
    Null,
    /// A number.
    Number,
    /// `{…}`
    Object,
    /// `"…"`
    String,
}

impl Kind {
    /// The kind of a value, by its text.
    pub(super) fn of(json: &str) -> Self {
        match json.as_bytes().first() {
            Some(b'{') => Self::Object,
            Some(b'[') => Self::Array,
            Some(b'"') => Self::String,
            Some(b't' | b'f') => Self::Bool,
            Some(b'n') | None => Self::Null,
            Some(_) => Self::Number,
        }
    }

    /// Some value of this kind in serde's terms, for an error that does not quote the value.
    pub(super) fn unexpected(self) -> Unexpected<'static> {
        match self {
            Self::Array => Unexpected::Seq,
            Self::Bool => Unexpected::Bool(false),
            Self::Null => Unexpected::Unit,
            Self::Number => Unexpected::Float(0.0),
            Self::Object => Unexpected::Map,
            Self::String => Unexpected::Str(""),
        }
    }

    /// The kind in words, for a message: `a string`.
    pub fn words(self) -> &'static str {
        match self {
            Self::Array => "an array",
            Self::Bool => "a boolean",
            Self::Null => "null",
            Self::Number => "a number",
            Self::Object => "an object",
            Self::String => "a string",
        }
    }
}

impl Raw<'static> {
    /// Takes over text that is JSON; `None` where it is not.
    pub fn parse(json: String) -> Option<Self> {
        RawValue::from_string(json).ok().map(|raw| Self(Cow::Owned(raw)))
    }

    /// `{}`
    pub fn empty_object() -> Self {
        // Three constants that are known to parse; `Default` for `RawValue` is `null`.
        Self::parse("{}".to_owned()).unwrap_or_else(|| Self(Cow::Owned(Box::default())))
    }

    /// Serialises anything that serde can write.
    pub fn of<T: serde::Serialize + ?Sized>(value: &T) -> Option<Self> {
        serde_json::value::to_raw_value(value).ok().map(|raw| Self(Cow::Owned(raw)))
    }
}

impl<'a> Raw<'a> {
    /// Takes over a slice of JSON that was checked.
    pub(super) fn from_checked(json: &'a str) -> Self {
        match super::de::raw(json) {
            Some(raw) => Self(Cow::Borrowed(raw)),
            None => Raw::empty_object(),
        }
    }

    /// The text.
    pub fn get(&self) -> &str {
        self.0.get()
    }

    /// Type of the value.
    pub fn kind(&self) -> Kind {
        Kind::of(self.get())
    }

    /// The string, if it is one.
    pub fn as_text(&self) -> Option<Text<'_>> {
        Text::from_raw(&self.0)
    }

    /// The string, if it is one, for as long as the body lives where that is possible.
    pub fn into_text(self) -> Option<Text<'a>> {
        match self.0 {
            Cow::Borrowed(raw) => Text::from_raw(raw),
            Cow::Owned(raw) => Text::from_raw(&raw).map(Text::into_owned),
        }
    }

    /// The slice itself, if it is borrowed from a body.
    pub fn as_borrowed(&self) -> Option<&'a str> {
        match self.0 {
            Cow::Borrowed(raw) => Some(raw.get()),
            Cow::Owned(_) => None,
        }
    }

    /// Reads it into a type; for small values only.
    pub fn to<T: DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_str(self.get()).ok()
    }

    /// The object's members in order, if it is an object.
    pub fn fields(&self) -> Option<Fields<'_>> {
        (self.kind() == Kind::Object).then(|| super::parse(self.get()).ok()).flatten()
    }

    /// The array's values in order, if it is an array.
    pub fn items(&self) -> Option<Vec<Raw<'_>>> {
        (self.kind() == Kind::Array).then(|| super::parse(self.get()).ok()).flatten()
    }

    /// A copy that lends the same text.
    pub fn borrowed(&self) -> Raw<'_> {
        Raw(Cow::Borrowed(&self.0))
    }

    /// A copy that owns its text.
    pub fn into_owned(self) -> Raw<'static> {
        Raw(Cow::Owned(self.0.into_owned()))
    }

    /// Writes the value on one line, safe inside an SSE frame (see [`super::write::compact`]).
    pub fn write(&self, out: &mut Vec<u8>) {
        super::write::compact(out, self.get());
    }

    /// The value without white space between its tokens.
    pub fn compact(&self) -> Cow<'_, str> {
        super::write::compacted(self.get())
    }
}

/// The text, but for the values of members called `…signature`: those are secrets.
impl fmt::Debug for Raw<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAME_END: &str = "ignature\"";
        let mut rest = self.get();
        while let Some(at) = rest.find(NAME_END) {
            let (before, after) = rest.split_at(at + NAME_END.len());
            f.write_str(before)?;
            let value = after.trim_start().strip_prefix(':').map_or(after, str::trim_start);
            rest = if value.len() < after.len() && value.starts_with('"') {
                f.write_str(":\"…\"")?;
                &value[super::write::string_end(value.as_bytes(), 0)..]
            } else {
                after
            };
        }
        f.write_str(rest)
    }
}

impl PartialEq for Raw<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl Eq for Raw<'_> {}

impl<'de: 'a, 'a> Deserialize<'de> for Raw<'a> {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        <&RawValue>::deserialize(json).map(|raw| Self(Cow::Borrowed(raw)))
    }
}

impl serde::Serialize for Raw<'_> {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(to)
    }
}

/// An object's members in the order they were written, doubles included.
#[derive(Clone, Debug, Default)]
pub struct Fields<'a>(pub Vec<(Cow<'a, str>, Raw<'a>)>);

impl<'a> Fields<'a> {
    /// The last value under `name`, as JSON parsers have it.
    pub fn get(&self, name: &str) -> Option<&Raw<'a>> {
        self.0.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        struct FieldsVisitor;
        impl<'de> Visitor<'de> for FieldsVisitor {
            type Value = Fields<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::with_capacity(map.size_hint().unwrap_or(4));
                while let Some(CowStr(key)) = map.next_key()? {
                    fields.push((key, map.next_value()?));
                }
                Ok(Fields(fields))
            }
        }
        json.deserialize_map(FieldsVisitor)
    }
}

/// A string that is borrowed from the body where it has no escapes. serde's own `Cow<str>` never
/// borrows.
#[derive(Debug)]
pub(crate) struct CowStr<'a>(pub(crate) Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for CowStr<'a> {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        struct Borrow;
        impl<'de> Visitor<'de> for Borrow {
            type Value = CowStr<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_borrowed_str<E>(self, key: &'de str) -> Result<Self::Value, E> {
                Ok(CowStr(Cow::Borrowed(key)))
            }
            fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
                Ok(CowStr(Cow::Owned(key.to_owned())))
            }
        }
        json.deserialize_str(Borrow)
    }
}
