//! serde deserializer that fills mirrors in one pass.
//!
//! serde_json reads a value that is kept as it is ([`Raw`](super::Raw)) byte by byte, and copies the
//! key of every member when unknown members are to be named. This deserializer passes over such
//! values sixteen bytes at a time and only records where unknown members begin. Errors carry no
//! path: a text that cannot be read is read again, with [`locate`], which finds it.

use std::ops::Range;

use serde::de::value::{BorrowedStrDeserializer, StrDeserializer};
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, forward_to_deserialize_any};
use serde_json::value::RawValue;

use super::error::{Error, Problem};
use super::{Kind, Text, scan};

/// A value of a mirror whose position in the text is wanted.
#[derive(Debug, Deserialize)]
#[serde(rename = "$toolgate::Placed")]
pub(crate) struct Placed<T>(pub(crate) T);

/// Positions in a text, recorded while its mirror is filled.
#[derive(Debug, Default)]
pub(super) struct Positions {
    /// Start of each of the first [`MAX_UNKNOWN_FIELDS`] values that the mirror does not have.
    pub(super) unknown: Vec<usize>,
    /// Number of further values that the mirror does not have.
    pub(super) more_unknown: usize,
    /// The last [`Placed`] value.
    pub(super) placed: Option<Range<usize>>,
}

/// Maximum number of unknown fields of one text that are named. Others are counted.
pub(super) const MAX_UNKNOWN_FIELDS: usize = 256;

/// Reads a whole text.
pub(super) fn read<'de, T: Deserialize<'de>>(
    json: &'de str,
    elements: usize,
    positions: Option<&mut Positions>,
) -> Result<T, Error> {
    let at = scan::start(json);
    let mut reader = MirrorReader { json, at, depth: 0, elements, positions };
    let value = T::deserialize(&mut reader)?;
    if reader.is_at_end() { Ok(value) } else { Err(Error::syntax()) }
}

/// Maximum number of array elements that a mirror holds, beside one for each
/// [`BYTES_PER_ELEMENT`] bytes of its text. An element takes hundreds of bytes where its text is
/// `{}`. Arrays inside of values that are kept as they are do not count.
pub(super) const MAX_ELEMENTS: usize = 4_096;
pub(super) const BYTES_PER_ELEMENT: usize = 48;

/// Maximum number of array elements that the mirror of a text holds.
pub(super) fn max_elements(json: &str) -> usize {
    MAX_ELEMENTS + json.len() / BYTES_PER_ELEMENT
}

/// A problem, its path, and the index of the byte where reading stopped.
pub(super) struct Located {
    pub(super) path: String,
    pub(super) problem: Problem,
    pub(super) index: usize,
}

/// Reads a text that cannot be read once more, and finds the problem.
pub(super) fn locate<'de, T: Deserialize<'de>>(json: &'de str, elements: usize) -> Option<Located> {
    let at = scan::start(json);
    let mut reader = MirrorReader { json, at, depth: 0, elements, positions: None };
    let error = serde_path_to_error::deserialize::<_, T>(&mut reader).err()?;
    let mut path = error.path().to_string();
    let problem = *error.into_inner().0;
    if problem == Problem::TooManyElements {
        // The path is that of the element; the array is at fault.
        path.truncate(path.rfind('[').unwrap_or(path.len()));
    }
    Some(Located { path, problem, index: reader.at })
}

/// Makes a raw value of a slice that was checked.
pub(super) fn raw(checked: &str) -> Option<&RawValue> {
    <&RawValue>::deserialize(RawDeserializer(checked)).ok()
}

/// Name of the newtype by which serde_json asks a deserializer for a raw value. It is private to
/// serde_json; the tests of this module fail when it changes.
const RAW: &str = "$serde_json::private::RawValue";
/// Name of the newtype by which a mirror asks for a value's position.
const PLACED: &str = "$toolgate::Placed";
/// Maximum depth of a mirror, as with serde_json. Values that are kept may be deeper.
const MAX_DEPTH: usize = 127;

struct MirrorReader<'de, 'p> {
    json: &'de str,
    /// Index of the next byte: before a value, its first.
    at: usize,
    depth: usize,
    /// Number of array elements that may follow.
    elements: usize,
    positions: Option<&'p mut Positions>,
}

impl<'de> MirrorReader<'de, '_> {
    fn peek(&self) -> Option<u8> {
        self.json.as_bytes().get(self.at).copied()
    }

    /// Type of the next value.
    fn kind(&self) -> Kind {
        Kind::of(self.json.get(self.at..).unwrap_or_default())
    }

    fn is_at_end(&self) -> bool {
        scan::space(self.json.as_bytes(), self.at) == self.json.len()
    }

    fn skip_space(&mut self) {
        self.at = scan::space(self.json.as_bytes(), self.at);
    }

    /// Takes the next value, of any type.
    fn value(&mut self) -> Result<&'de str, Error> {
        let start = self.at;
        self.at = scan::value(self.json.as_bytes(), start).ok_or_else(Error::syntax)?;
        self.json.get(start..self.at).ok_or_else(Error::syntax)
    }

    fn string<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, Error> {
        let start = self.at;
        let (end, has_escapes) =
            scan::literal(self.json.as_bytes(), start).ok_or_else(Error::syntax)?;
        self.at = end;
        if has_escapes {
            let literal = self.json.get(start..end).ok_or_else(Error::syntax)?;
            return visitor.visit_string(unescaped(literal)?);
        }
        visitor.visit_borrowed_str(self.json.get(start + 1..end - 1).ok_or_else(Error::syntax)?)
    }

    fn scalar<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, Error> {
        let scalar = self.value()?;
        match scalar {
            "null" => return visitor.visit_unit(),
            "true" => return visitor.visit_bool(true),
            "false" => return visitor.visit_bool(false),
            _ => {}
        }
        if let Some(count) = count(scalar) {
            return visitor.visit_u64(count);
        }
        let number: serde_json::Number =
            serde_json::from_str(scalar).map_err(|_| Problem::OutOfRange)?;
        match (number.as_u64(), number.as_i64(), number.as_f64()) {
            (Some(number), _, _) => visitor.visit_u64(number),
            (None, Some(number), _) => visitor.visit_i64(number),
            (None, None, Some(number)) => visitor.visit_f64(number),
            (None, None, None) => Err(Problem::OutOfRange.into()),
        }
    }

    /// Reads a value that is not a container. `words` describes the mirror's type.
    fn plain<V: Visitor<'de>>(
        &mut self,
        words: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.kind() {
            found @ (Kind::Array | Kind::Object) => Err(Error::of_type(found, words)),
            Kind::Bool | Kind::Null | Kind::Number | Kind::String => {
                self.deserialize_any(visitor).map_err(|error| error.expecting(words))
            }
        }
    }

    /// Reads a container of this type, and refuses other values.
    fn container<V: Visitor<'de>>(&mut self, kind: Kind, visitor: V) -> Result<V::Value, Error> {
        let found = self.kind();
        if found == kind {
            return self.deserialize_any(visitor);
        }
        match found {
            Kind::Array | Kind::Object => Err(Error::of_type(found, kind.words())),
            Kind::Bool | Kind::Null | Kind::Number | Kind::String => {
                self.deserialize_any(visitor).map_err(|error| error.expecting(kind.words()))
            }
        }
    }
}

/// Methods of a deserializer for values that are not containers, each with the words for the type.
macro_rules! deserialize_plain {
    ($($method:ident: $words:literal,)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
            self.plain($words, visitor)
        }
    )*};
}

impl<'de> Deserializer<'de> for &mut MirrorReader<'de, '_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        match self.peek() {
            Some(b'"') => self.string(visitor),
            Some(b'{') => {
                let mut access = ContainerAccess::enter(self, b'}')?;
                let value = visitor.visit_map(&mut access)?;
                access.leave(value)
            }
            Some(b'[') => {
                let mut access = ContainerAccess::enter(self, b']')?;
                let value = visitor.visit_seq(&mut access)?;
                access.leave(value)
            }
            Some(_) => self.scalar(visitor),
            None => Err(Error::syntax()),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        if self.peek() == Some(b'n') {
            self.value()?;
            visitor.visit_none()
        } else {
            visitor.visit_some(self)
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        if name == RAW {
            return visitor.visit_map(RawAccess(Some(self.value()?)));
        }
        if name == PLACED {
            let start = self.at;
            let value = visitor.visit_newtype_struct(&mut *self)?;
            if let Some(positions) = &mut self.positions {
                positions.placed = Some(start..self.at);
            }
            return Ok(value);
        }
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        if let Some(positions) = &mut self.positions {
            if positions.unknown.len() < MAX_UNKNOWN_FIELDS {
                positions.unknown.push(self.at);
            } else {
                positions.more_unknown += 1;
            }
        }
        self.value()?;
        visitor.visit_unit()
    }

    /// Reads an object. serde would also take an array for the fields in their order.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        self.container(Kind::Object, visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        self.container(Kind::Object, visitor)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        self.container(Kind::Array, visitor)
    }

    /// Reads the name of a variant. Variants with content are not used in mirrors.
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        if self.peek() != Some(b'"') {
            return Err(Error::of_type(self.kind(), Kind::String.words()));
        }
        let name = unescaped(self.value()?)?;
        visitor.visit_enum(StrDeserializer::<Error>::new(&name))
    }

    deserialize_plain! {
        deserialize_bool: "a boolean",
        deserialize_i8: "an integer",
        deserialize_i16: "an integer",
        deserialize_i32: "an integer",
        deserialize_i64: "an integer",
        deserialize_i128: "an integer",
        deserialize_u8: "an integer",
        deserialize_u16: "an integer",
        deserialize_u32: "an integer",
        deserialize_u64: "an integer",
        deserialize_u128: "an integer",
        deserialize_f32: "a number",
        deserialize_f64: "a number",
    }

    /// Reads the text of a string as bytes; other values as they are.
    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        if self.peek() != Some(b'"') {
            return self.deserialize_any(visitor);
        }
        visitor.visit_bytes(unescaped(self.value()?)?.as_bytes())
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        self.deserialize_bytes(visitor)
    }

    forward_to_deserialize_any! {
        char str string unit unit_struct tuple tuple_struct identifier
    }
}

/// Text of a literal, with U+FFFD for halves of surrogate pairs.
fn unescaped(literal: &str) -> Result<String, Error> {
    let text = Text::from_checked(literal).ok_or_else(Error::syntax)?;
    Ok(text.decode().into_owned())
}

/// Reads a number of at most 18 digits, as most are.
fn count(scalar: &str) -> Option<u64> {
    let digits = scalar.as_bytes();
    let is_count = digits.len() <= 18 && digits.iter().all(u8::is_ascii_digit);
    is_count.then(|| digits.iter().fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0')))
}

/// Access to the elements or members of the container that a reader is in.
struct ContainerAccess<'r, 'de, 'p> {
    reader: &'r mut MirrorReader<'de, 'p>,
    end: u8,
    is_first: bool,
    ended: bool,
}

impl<'r, 'de, 'p> ContainerAccess<'r, 'de, 'p> {
    fn enter(reader: &'r mut MirrorReader<'de, 'p>, end: u8) -> Result<Self, Error> {
        reader.depth += 1;
        if reader.depth > MAX_DEPTH {
            return Err(Error::syntax());
        }
        reader.at += 1;
        Ok(Self { reader, end, is_first: true, ended: false })
    }

    /// Moves to the next element or member. Returns `false` after the end.
    fn next(&mut self) -> Result<bool, Error> {
        if self.ended {
            return Ok(false);
        }
        self.reader.skip_space();
        let is_first = std::mem::take(&mut self.is_first);
        match self.reader.peek() {
            Some(byte) if byte == self.end => {
                self.reader.at += 1;
                self.reader.depth -= 1;
                self.ended = true;
                Ok(false)
            }
            // What follows must be a value: there are no trailing commas.
            Some(b',') if !is_first => {
                self.reader.at += 1;
                self.reader.skip_space();
                Ok(true)
            }
            Some(_) if is_first => Ok(true),
            Some(_) | None => Err(Error::syntax()),
        }
    }

    /// Checks that nothing is left of the container.
    fn leave<V>(mut self, value: V) -> Result<V, Error> {
        if self.next()? { Err(Error::syntax()) } else { Ok(value) }
    }
}

impl<'de> SeqAccess<'de> for &mut ContainerAccess<'_, 'de, '_> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Self::Error> {
        if !self.next()? {
            return Ok(None);
        }
        let left = self.reader.elements.checked_sub(1);
        self.reader.elements = left.ok_or(Problem::TooManyElements)?;
        seed.deserialize(&mut *self.reader).map(Some)
    }
}

impl<'de> MapAccess<'de> for &mut ContainerAccess<'_, 'de, '_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Self::Error> {
        if !self.next()? {
            return Ok(None);
        }
        if self.reader.peek() != Some(b'"') {
            return Err(Error::syntax());
        }
        seed.deserialize(MemberKey(self.reader)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(
        &mut self,
        seed: V,
    ) -> Result<V::Value, Self::Error> {
        let bytes = self.reader.json.as_bytes();
        self.reader.at = scan::colon(bytes, self.reader.at).ok_or_else(Error::syntax)?;
        seed.deserialize(&mut *self.reader)
    }
}

/// Deserializer of a member's key, which is always a string.
struct MemberKey<'r, 'de, 'p>(&'r mut MirrorReader<'de, 'p>);

impl<'de> Deserializer<'de> for MemberKey<'_, 'de, '_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        self.0.string(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map struct enum identifier
        ignored_any
    }
}

/// Map with one member, the form in which serde_json's `RawValue` takes its text.
struct RawAccess<'de>(Option<&'de str>);

impl<'de> MapAccess<'de> for RawAccess<'de> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Self::Error> {
        seed.deserialize(BorrowedStrDeserializer::new(RAW)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(
        &mut self,
        seed: V,
    ) -> Result<V::Value, Self::Error> {
        seed.deserialize(BorrowedStrDeserializer::new(self.0.take().ok_or_else(Error::syntax)?))
    }
}

/// Deserializer of a slice that is known to be one value.
struct RawDeserializer<'de>(&'de str);

impl<'de> Deserializer<'de> for RawDeserializer<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        visitor.visit_map(RawAccess(Some(self.0)))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map struct enum identifier
        ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Raw;

    /// `RawValue` asks for [`RAW`] under this very name. If serde_json renames it, every value that
    /// is kept would be refused or read as a map, and slices would become `{}`.
    #[test]
    fn serde_json_asks_for_raw_values_by_the_name_that_is_known() {
        struct NameOfNewtype;
        impl<'de> Deserializer<'de> for NameOfNewtype {
            type Error = Error;

            fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
                Err(Problem::Refused("asked for something else".to_owned()).into())
            }

            fn deserialize_newtype_struct<V: Visitor<'de>>(
                self,
                name: &'static str,
                _: V,
            ) -> Result<V::Value, Error> {
                Err(Problem::Refused(name.to_owned()).into())
            }

            forward_to_deserialize_any! {
                bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
                option unit unit_struct seq tuple tuple_struct map struct enum identifier
                ignored_any
            }
        }
        let asked = <&RawValue>::deserialize(NameOfNewtype).unwrap_err();
        assert_eq!(asked.to_string(), RAW);
    }

    #[test]
    fn raw_values_are_slices_of_the_text() {
        let json = r#" {"a" : [ 1, {"b": "\u00e9"} ]} "#;
        let read: Raw<'_> = read(json, usize::MAX, None).unwrap();
        assert_eq!(read.as_borrowed(), Some(json.trim()));
        assert_eq!(raw(json.trim()).map(RawValue::get), Some(json.trim()));
    }
}
