//! Members that are read once the type of their item is known.
//!
//! An item, tool or part of an unknown type may use any name for anything; only a
//! member of a type that is known can be broken.

use std::borrow::Cow;

use crate::canon::BadRequest;
use crate::json::{Path, Raw, Text};

/// A short string, borrowed from the body where it has no escapes.
pub(super) fn string<'a>(
    value: Option<&Raw<'a>>,
    at: &Path<'_>,
    name: &str,
) -> Result<Option<Cow<'a, str>>, BadRequest> {
    let Some(raw) = value else { return Ok(None) };
    if let Some(plain) = raw.as_borrowed().and_then(unescaped) {
        return Ok(Some(Cow::Borrowed(plain)));
    }
    let text = raw.as_text().ok_or_else(|| at.field(name).bad("expected a string"))?;
    Ok(Some(Cow::Owned(text.decode().into_owned())))
}

/// A short string that must be there.
pub(super) fn required<'a>(
    value: Option<&Raw<'a>>,
    at: &Path<'_>,
    name: &str,
) -> Result<Cow<'a, str>, BadRequest> {
    string(value, at, name)?.ok_or_else(|| at.field(name).bad("missing"))
}

/// Words, kept as they were written.
pub(super) fn text<'a>(
    value: Option<&Raw<'a>>,
    at: &Path<'_>,
    name: &str,
) -> Result<Option<Text<'a>>, BadRequest> {
    let Some(raw) = value else { return Ok(None) };
    let text = raw.clone().into_text();
    text.map(Some).ok_or_else(|| at.field(name).bad("expected a string"))
}

/// `true` or `false`.
pub(super) fn flag(
    value: Option<&Raw<'_>>,
    at: &Path<'_>,
    name: &str,
) -> Result<Option<bool>, BadRequest> {
    match value.map(Raw::get) {
        None => Ok(None),
        Some("true") => Ok(Some(true)),
        Some("false") => Ok(Some(false)),
        Some(_) => Err(at.field(name).bad("expected a boolean")),
    }
}

/// Content of a string literal without escapes.
pub(super) fn unescaped(literal: &str) -> Option<&str> {
    let plain = literal.strip_prefix('"')?.strip_suffix('"')?;
    memchr::memchr(b'\\', plain.as_bytes()).is_none().then_some(plain)
}
