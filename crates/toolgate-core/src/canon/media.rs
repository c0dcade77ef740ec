//! Bytes that clients send as text.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::{BadRequest, MediaSource};
use crate::json::{Path, Text};

impl<'a> MediaSource<'a> {
    /// Bytes in the request, as base64 that Gemini can read.
    ///
    /// Deviations that other readers accept are repaired: line breaks, both alphabets at once, missing
    /// or excess padding. The bytes stay the same. Anything else is an error.
    pub(crate) fn inline(data: Text<'a>, at: &Path<'_>) -> Result<Self, BadRequest> {
        if is_base64(data.escaped()) {
            return Ok(Self::Inline(data));
        }
        let mended = mend(&data.decode()).ok_or_else(|| at.bad("expected bytes in base64"))?;
        Ok(Self::Inline(Text::new(&mended)))
    }
}

/// The MIME type and the bytes of a `data:` address (RFC 2397); `None` for any other address.
pub(crate) fn data_url(
    address: &Text<'_>,
    at: &Path<'_>,
) -> Result<Option<(Option<String>, MediaSource<'static>)>, BadRequest> {
    let scheme = address.escaped().get(..5);
    if !scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("data:")) {
        return Ok(None);
    }
    let address = address.decode();
    let Some((head, data)) = address[5..].split_once(',') else {
        return Err(at.bad("expected a data URL such as data:image/png;base64,…"));
    };
    let mut words = head.split(';').map(str::trim);
    let mime = words.next().filter(|mime| mime.contains('/')).map(str::to_owned);
    if !words.any(|word| word.eq_ignore_ascii_case("base64")) {
        let bytes = Text::new(&STANDARD.encode(percent_decoded(data)));
        let mime = mime.unwrap_or_else(|| "text/plain".to_owned());
        return Ok(Some((Some(mime), MediaSource::Inline(bytes))));
    }
    let data = if data.contains('%') {
        Cow::Owned(String::from_utf8_lossy(&percent_decoded(data)).into_owned())
    } else {
        Cow::Borrowed(data)
    };
    Ok(Some((mime, MediaSource::inline(Text::new(&data), at)?)))
}

/// Either alphabet, padded as it should be or not at all. Without branches: pictures are long.
fn is_base64(text: &str) -> bool {
    let bare = text.strip_suffix('=').unwrap_or(text);
    let bare = bare.strip_suffix('=').unwrap_or(bare).as_bytes();
    let only = |more: [u8; 2]| {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() | (byte == more[0]) | (byte == more[1]);
        bare.iter().fold(true, |all, &byte| all & fits(byte))
    };
    let is_padded = bare.len() < text.len();
    let whole = if is_padded { text.len().is_multiple_of(4) } else { bare.len() % 4 != 1 };
    whole && (only(*b"+/") || only(*b"-_"))
}

/// The same bytes in the standard alphabet, padded; `None` if there are none to be read.
fn mend(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len() + 2);
    let bare = text.trim_end_matches(|char: char| char == '=' || char.is_ascii_whitespace());
    for char in bare.chars() {
        match char {
            '-' => out.push('+'),
            '_' => out.push('/'),
            '+' | '/' => out.push(char),
            _ if char.is_ascii_alphanumeric() => out.push(char),
            _ if char.is_ascii_whitespace() => {}
            _ => return None,
        }
    }
    match out.len() % 4 {
        1 => return None,
        2 => out.push_str("=="),
        3 => out.push('='),
        _ => {}
    }
    Some(out)
}

/// Decodes percent-encoding; malformed escapes stay as they are.
pub fn percent_decoded(text: &str) -> Vec<u8> {
    percent_encoding::percent_decode_str(text).collect()
}
