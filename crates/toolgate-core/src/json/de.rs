//! Filling a mirror without looking at anything twice.
//!
//! serde_json reads a value that is kept as it is ([`Raw`](super::Raw)) byte by byte, and copies the
//! key of every member when unknown ones are to be named. This reader passes over such values
//! sixteen bytes at a time and only remembers where unknown ones begin. What is not a container, a
//! plain string or a value to keep is small, and serde_json reads it. Errors have no place in them:
//! a body that is broken is read again by serde_json, which says where.

use std::ops::Range;

use serde::de::value::BorrowedStrDeserializer;
use serde::de::{
    DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Unexpected, Visitor,
};
use serde::{Deserialize, forward_to_deserialize_any};
use serde_json::value::RawValue;

use super::{Text, scan};
use crate::canon::MAX_LOSSES;

/// A value of a mirror whose place in the text is wanted.
#[derive(Debug, Deserialize)]
#[serde(rename = "$toolgate::Placed")]
pub(crate) struct Placed<T>(pub(crate) T);

/// What is told of a text beside its mirror.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// The places of the values that the mirror does not have, the first of them.
    pub(super) unknown: Vec<usize>,
    /// How many more values the mirror does not have.
    pub(super) more_unknown: usize,
    /// The place of its last [`Placed`] value.
    pub(super) placed: Option<Range<usize>>,
}

/// Reads a whole text.
pub(super) fn read<'de, T: Deserialize<'de>>(
    json: &'de str,
    elements: usize,
    told: Option<&mut Told>,
) -> Result<T, serde_json::Error> {
    let at = scan::start(json);
    let mut reader = Reader { json, at, depth: 0, elements, told };
    let value = T::deserialize(&mut reader)?;
    if scan::space(json.as_bytes(), reader.at) == json.len() { Ok(value) } else { Err(broken()) }
}

/// Maximum number of array elements that a mirror holds, beside one for each
/// [`BYTES_PER_ELEMENT`] bytes of its text. An element takes hundreds of bytes where its text is
/// `{}`. Arrays inside of values that are kept as they are do not count.
const MAX_ELEMENTS: usize = 4_096;
const BYTES_PER_ELEMENT: usize = 48;

/// Maximum number of array elements that the mirror of a text holds.
pub(super) fn max_elements(json: &str) -> usize {
    MAX_ELEMENTS + json.len() / BYTES_PER_ELEMENT
}

/// Error message for a text with too many elements.
const TOO_MANY: &str = "too many elements";

/// Where what serde_json takes and we do not stands: an array for an object, or too many elements.
pub(super) fn located<'de, T: Deserialize<'de>>(json: &'de str) -> Option<(String, String)> {
    let at = scan::start(json);
    let elements = max_elements(json);
    let mut reader = Reader { json, at, depth: 0, elements, told: None };
    let error = serde_path_to_error::deserialize::<_, T>(&mut reader).err()?;
    let reason = error.inner().to_string();
    if reason == TOO_MANY {
        // The path is that of the element, which is not the one to blame.
        let path = error.path().to_string();
        let list = path.rfind('[').map_or(&*path, |at| &path[..at]);
        let reason = format!(
            "too many elements: at most {MAX_ELEMENTS}, and one more for each {BYTES_PER_ELEMENT} bytes"
        );
        return Some((list.to_owned(), reason));
    }
    reason.ends_with(OBJECT).then(|| (error.path().to_string(), reason))
}

/// Takes over a value that has been looked at.
pub(super) fn raw(checked: &str) -> Option<&RawValue> {
    <&RawValue>::deserialize(Checked(checked)).ok()
}

/// The name under which serde_json asks for a value as it is.
const RAW: &str = "$serde_json::private::RawValue";
/// The name under which a mirror asks for a value's place.
const PLACED: &str = "$toolgate::Placed";
/// What a mirror is filled from.
pub(super) const OBJECT: &str = "an object";
/// How deep a mirror may be, as with serde_json. Values that are kept may be deeper.
const DEEPEST: usize = 127;

/// What a broken body gives. Nobody sees it.
fn broken() -> serde_json::Error {
    serde_json::Error::custom("not JSON")
}

struct Reader<'de, 'u> {
    json: &'de str,
    /// Before a value, on its first byte.
    at: usize,
    depth: usize,
    /// How many array elements may still come.
    elements: usize,
    told: Option<&'u mut Told>,
}

impl<'de> Reader<'de, '_> {
    fn peek(&self) -> Option<u8> {
        self.json.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        self.at = scan::space(self.json.as_bytes(), self.at);
    }

    /// The value that comes next, whatever it is.
    fn value(&mut self) -> Result<&'de str, serde_json::Error> {
        let start = self.at;
        self.at = scan::value(self.json.as_bytes(), start).ok_or_else(broken)?;
        self.json.get(start..self.at).ok_or_else(broken)
    }

    /// The string that comes next, without its quotes, if it has no escapes.
    fn plain(&mut self) -> Result<Result<&'de str, &'de str>, serde_json::Error> {
        let start = self.at;
        let (end, has_escapes) = scan::literal(self.json.as_bytes(), start).ok_or_else(broken)?;
        self.at = end;
        if has_escapes {
            return Ok(Err(self.json.get(start..end).ok_or_else(broken)?));
        }
        Ok(Ok(self.json.get(start + 1..end - 1).ok_or_else(broken)?))
    }

    fn string<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, serde_json::Error> {
        match self.plain()? {
            Ok(plain) => visitor.visit_borrowed_str(plain),
            Err(literal) => visitor.visit_string(unescaped(literal)?),
        }
    }
}

impl<'de> Deserializer<'de> for &mut Reader<'de, '_> {
    type Error = serde_json::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        match self.peek() {
            Some(b'"') => self.string(visitor),
            Some(b'{') => {
                let mut inside = Inside::enter(self, b'}')?;
                let value = visitor.visit_map(&mut inside)?;
                inside.leave(value)
            }
            Some(b'[') => {
                let mut inside = Inside::enter(self, b']')?;
                let value = visitor.visit_seq(&mut inside)?;
                inside.leave(value)
            }
            Some(_) => {
                let scalar = self.value()?;
                match count(scalar) {
                    Some(count) => visitor.visit_u64(count),
                    None => serde_json::Deserializer::from_str(scalar).deserialize_any(visitor),
                }
            }
            None => Err(broken()),
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
            return visitor.visit_map(Kept(Some(self.value()?)));
        }
        if name == PLACED {
            let start = self.at;
            let value = visitor.visit_newtype_struct(&mut *self)?;
            if let Some(told) = &mut self.told {
                told.placed = Some(start..self.at);
            }
            return Ok(value);
        }
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        if let Some(told) = &mut self.told {
            if told.unknown.len() < MAX_LOSSES {
                told.unknown.push(self.at);
            } else {
                told.more_unknown += 1;
            }
        }
        self.value()?;
        visitor.visit_unit()
    }

    /// An object. serde would also take an array for the fields in their order.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        if self.peek() == Some(b'[') {
            return Err(serde_json::Error::invalid_type(Unexpected::Seq, &OBJECT));
        }
        self.deserialize_any(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        let value = self.value()?;
        serde_json::Deserializer::from_str(value).deserialize_enum(name, variants, visitor)
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        let value = self.value()?;
        serde_json::Deserializer::from_str(value).deserialize_f32(visitor)
    }

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
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f64 char str string unit unit_struct seq tuple
        tuple_struct map identifier
    }
}

/// The text of a literal; halves of surrogate pairs became U+FFFD.
fn unescaped(literal: &str) -> Result<String, serde_json::Error> {
    let text = Text::from_checked(literal).ok_or_else(broken)?;
    Ok(text.decode().into_owned())
}

/// What most numbers are: digits, not too many for a word.
fn count(scalar: &str) -> Option<u64> {
    let digits = scalar.as_bytes();
    let is_count = digits.len() <= 18 && digits.iter().all(u8::is_ascii_digit);
    is_count.then(|| digits.iter().fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0')))
}

/// The inside of an object or array.
struct Inside<'r, 'de, 'u> {
    reader: &'r mut Reader<'de, 'u>,
    end: u8,
    is_first: bool,
    ended: bool,
}

impl<'r, 'de, 'u> Inside<'r, 'de, 'u> {
    fn enter(reader: &'r mut Reader<'de, 'u>, end: u8) -> Result<Self, serde_json::Error> {
        reader.depth += 1;
        if reader.depth > DEEPEST {
            return Err(broken());
        }
        reader.at += 1;
        Ok(Self { reader, end, is_first: true, ended: false })
    }

    /// Goes to the next element or member; `false`: behind the end.
    fn next(&mut self) -> Result<bool, serde_json::Error> {
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
            // Where a value has to come, the end is none.
            Some(b',') if !is_first => {
                self.reader.at += 1;
                self.reader.skip_space();
                Ok(true)
            }
            Some(_) if is_first => Ok(true),
            Some(_) | None => Err(broken()),
        }
    }

    /// Nothing may be left of it.
    fn leave<V>(mut self, value: V) -> Result<V, serde_json::Error> {
        if self.next()? { Err(broken()) } else { Ok(value) }
    }
}

impl<'de> SeqAccess<'de> for &mut Inside<'_, 'de, '_> {
    type Error = serde_json::Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Self::Error> {
        if !self.next()? {
            return Ok(None);
        }
        let left = self.reader.elements.checked_sub(1);
        self.reader.elements = left.ok_or_else(|| serde_json::Error::custom(TOO_MANY))?;
        seed.deserialize(&mut *self.reader).map(Some)
    }
}

impl<'de> MapAccess<'de> for &mut Inside<'_, 'de, '_> {
    type Error = serde_json::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Self::Error> {
        if !self.next()? {
            return Ok(None);
        }
        if self.reader.peek() != Some(b'"') {
            return Err(broken());
        }
        seed.deserialize(Key(self.reader)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(
        &mut self,
        seed: V,
    ) -> Result<V::Value, Self::Error> {
        let bytes = self.reader.json.as_bytes();
        self.reader.at = scan::colon(bytes, self.reader.at).ok_or_else(broken)?;
        seed.deserialize(&mut *self.reader)
    }
}

/// A member's key, which is a string whatever is asked for.
struct Key<'r, 'de, 'u>(&'r mut Reader<'de, 'u>);

impl<'de> Deserializer<'de> for Key<'_, 'de, '_> {
    type Error = serde_json::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        self.0.string(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map struct enum identifier
        ignored_any
    }
}

/// A value as serde_json hands it over to itself.
struct Kept<'de>(Option<&'de str>);

impl<'de> MapAccess<'de> for Kept<'de> {
    type Error = serde_json::Error;

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
        seed.deserialize(BorrowedStrDeserializer::new(self.0.take().ok_or_else(broken)?))
    }
}

/// A value that is known to be one.
struct Checked<'de>(&'de str);

impl<'de> Deserializer<'de> for Checked<'de> {
    type Error = serde_json::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        visitor.visit_map(Kept(Some(self.0)))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map struct enum identifier
        ignored_any
    }
}
