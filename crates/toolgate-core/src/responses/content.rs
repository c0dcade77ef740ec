//! Content parts: words, pictures, files, sound.

use std::borrow::Cow;

use super::fields::{string, text};
use super::wire::{Audio, Content};
use crate::canon::{BadRequest, LossCode, Losses, Media, MediaSource, Part, ResultPart, data_url};
use crate::json::{self, Element, Kind, Path, Raw, Text};

/// A piece of a message or of a tool's output.
#[derive(Clone, Debug)]
pub(super) enum Piece<'a> {
    Text(Text<'a>),
    Media(Media<'a>),
}

impl<'a> Piece<'a> {
    pub(super) fn into_part(self) -> Part<'a> {
        match self {
            Self::Text(text) => Part::text(text),
            Self::Media(media) => Part::Media(media),
        }
    }

    pub(super) fn into_result(self) -> ResultPart<'a> {
        match self {
            Self::Text(text) => ResultPart::Text(text),
            Self::Media(media) => ResultPart::Media(media),
        }
    }
}

/// Reads a message's `content`: a string, or parts. Empty strings are left out.
pub(super) fn decode_content<'a>(
    content: &Raw<'a>,
    at: &Path<'_>,
    losses: &mut Losses,
) -> Result<Vec<Piece<'a>>, BadRequest> {
    match content.kind() {
        Kind::String => {
            let text = content.clone().into_text().filter(|text| !text.is_empty());
            Ok(text.map(Piece::Text).into_iter().collect())
        }
        Kind::Array => decode_parts(content, at, losses),
        Kind::Bool | Kind::Null | Kind::Number | Kind::Object => {
            Err(at.bad("expected a string or an array of content parts"))
        }
    }
}

/// Reads a tool's `output`: a string, content parts, or any JSON.
pub(super) fn decode_output<'a>(
    output: Option<&Raw<'a>>,
    at: &Path<'_>,
    losses: &mut Losses,
) -> Result<Vec<ResultPart<'a>>, BadRequest> {
    let Some(output) = output else { return Ok(Vec::new()) };
    match output.kind() {
        Kind::String => Ok(output.clone().into_text().map(ResultPart::Text).into_iter().collect()),
        Kind::Array if is_parts(output) => {
            let pieces = decode_parts(output, at, losses)?;
            Ok(pieces.into_iter().map(Piece::into_result).collect())
        }
        Kind::Array | Kind::Bool | Kind::Null | Kind::Number | Kind::Object => {
            Ok(vec![ResultPart::Json(output.clone())])
        }
    }
}

/// Whether an array holds content parts; a tool may as well answer with an array of its own.
fn is_parts(output: &Raw<'_>) -> bool {
    let kinds: Option<Vec<_>> = output.items().and_then(|items| {
        let kind = |item: &Raw<'_>| {
            let kind = item.fields()?.get("type")?.as_text()?.decode().into_owned();
            Some(is_known(&kind))
        };
        items.iter().map(kind).collect()
    });
    // One part of a new type does not make the others something else.
    kinds.is_some_and(|kinds| kinds.contains(&true))
}

fn is_known(kind: &str) -> bool {
    matches!(
        kind,
        "input_text"
            | "output_text"
            | "text"
            | "refusal"
            | "input_image"
            | "image_url"
            | "computer_screenshot"
            | "input_file"
            | "input_audio"
    )
}

fn decode_parts<'a>(
    array: &Raw<'a>,
    at: &Path<'_>,
    losses: &mut Losses,
) -> Result<Vec<Piece<'a>>, BadRequest> {
    let json = array.as_borrowed().ok_or_else(|| at.bad("cannot be read"))?;
    let parts: Vec<Element<Content<'a>>> = json::read(json, at, losses)?;
    let mut pieces = Vec::with_capacity(parts.len());
    let mut raws = None;
    for (index, part) in parts.into_iter().enumerate() {
        let at = at.index(index);
        let piece = match part.kind.as_ref().map(|kind| &*kind.0) {
            Some("input_text" | "output_text" | "text" | "summary_text" | "reasoning_text")
            | None => {
                let said = text(part.text.as_ref(), &at, "text")?;
                Some(Piece::Text(said.ok_or_else(|| at.field("text").bad("missing"))?))
            }
            Some("refusal") => {
                let said = text(part.refusal.as_ref().or(part.text.as_ref()), &at, "refusal")?;
                Some(Piece::Text(said.ok_or_else(|| at.field("refusal").bad("missing"))?))
            }
            Some("input_image" | "image_url" | "computer_screenshot") => {
                decode_image(&part, &at, losses)?
            }
            Some("input_file") => decode_file(&part, &at, losses)?,
            Some("input_audio") => Some(decode_audio(part.input_audio.as_ref(), &at, losses)?),
            Some(kind) => {
                losses.add(
                    &at,
                    LossCode::Changed,
                    format_args!("`{kind}` is not known; the model reads its JSON as text"),
                );
                let raws = raws.get_or_insert_with(|| array.items().unwrap_or_default());
                raws.get(index).map(|raw| Piece::Text(Text::new(&raw.compact())))
            }
        };
        let empty = matches!(&piece, Some(Piece::Text(text)) if text.is_empty());
        pieces.extend(piece.filter(|_| !empty));
    }
    Ok(pieces)
}

/// A picture by address, which may hold the picture itself.
fn decode_image<'a>(
    part: &Content<'a>,
    at: &Path<'_>,
    losses: &mut Losses,
) -> Result<Option<Piece<'a>>, BadRequest> {
    let Some(address) = part.image_url.clone() else {
        return unreachable_file(part.file_id.as_ref(), at, losses);
    };
    let at = at.field("image_url");
    let address = match address.kind() {
        Kind::Object => address.as_borrowed().and_then(url_member),
        Kind::Array | Kind::Bool | Kind::Null | Kind::Number | Kind::String => address.into_text(),
    };
    let address = address.ok_or_else(|| at.bad("expected a string"))?;
    Ok(Some(Piece::Media(media_at(address, None, &at)?)))
}

/// Chat's `{"url": …}`.
fn url_member(object: &str) -> Option<Text<'_>> {
    let fields: json::Fields<'_> = serde_json::from_str(object).ok()?;
    fields.get("url").cloned().and_then(Raw::into_text)
}

fn decode_file<'a>(
    part: &Content<'a>,
    at: &Path<'_>,
    losses: &mut Losses,
) -> Result<Option<Piece<'a>>, BadRequest> {
    let name = string(part.filename.as_ref(), at, "filename")?;
    if let Some(address) = text(part.file_url.as_ref(), at, "file_url")? {
        return Ok(Some(Piece::Media(media_at(address, name, &at.field("file_url"))?)));
    }
    let Some(data) = text(part.file_data.as_ref(), at, "file_data")? else {
        return unreachable_file(part.file_id.as_ref(), at, losses);
    };
    let at = at.field("file_data");
    let (mime, source) = match data_url(&data, &at)? {
        Some(found) => found,
        None => (None, MediaSource::inline(data, &at)?),
    };
    Ok(Some(Piece::Media(inline(mime, source, name))))
}

fn decode_audio<'a>(
    audio: Option<&Raw<'a>>,
    at: &Path<'_>,
    losses: &mut Losses,
) -> Result<Piece<'a>, BadRequest> {
    let at = at.field("input_audio");
    let json = audio.and_then(Raw::as_borrowed).ok_or_else(|| at.bad("missing"))?;
    let audio: Audio<'a> = json::read(json, &at, losses)?;
    let data = audio.data.ok_or_else(|| at.field("data").bad("missing"))?;
    let mime = audio.format.map(|format| Cow::Owned(format!("audio/{}", format.0)));
    let source = MediaSource::inline(data, &at.field("data"))?;
    Ok(Piece::Media(Media { mime, source, name: None, modifiers: Vec::new() }))
}

/// A file that was uploaded to OpenAI: there is nothing here to read.
fn unreachable_file<'a>(
    file: Option<&Raw<'a>>,
    at: &Path<'_>,
    losses: &mut Losses,
) -> Result<Option<Piece<'a>>, BadRequest> {
    let file = string(file, at, "file_id")?;
    let file = file.ok_or_else(|| at.bad("names neither an address, data nor a file"))?;
    losses.add(
        &at.field("file_id"),
        LossCode::PartDropped,
        format_args!("`{file}` is a file at OpenAI, which cannot be read here; send its bytes"),
    );
    Ok(None)
}

/// A medium at an address; a `data:` address is opened.
pub(super) fn media_at<'a>(
    address: Text<'a>,
    name: Option<Cow<'a, str>>,
    at: &Path<'_>,
) -> Result<Media<'a>, BadRequest> {
    if let Some((mime, source)) = data_url(&address, at)? {
        return Ok(inline(mime, source, name));
    }
    let plain = address.decode();
    let path = plain.split(['?', '#']).next().unwrap_or_default();
    let mime = name.as_deref().and_then(mime_of).or_else(|| mime_of(path)).map(Cow::Borrowed);
    drop(plain);
    Ok(Media { mime, source: MediaSource::Uri(address), name, modifiers: Vec::new() })
}

fn inline<'a>(
    mime: Option<String>,
    source: MediaSource<'a>,
    name: Option<Cow<'a, str>>,
) -> Media<'a> {
    let guessed = || name.as_deref().and_then(mime_of).map(Cow::Borrowed);
    let mime = mime.map(Cow::Owned).or_else(guessed);
    Media { mime, source, name, modifiers: Vec::new() }
}

/// The MIME type that a file name's ending stands for.
fn mime_of(name: &str) -> Option<&'static str> {
    let (_, ending) = name.rsplit_once('.')?;
    Some(match ending.to_ascii_lowercase().as_str() {
        "pdf" => "application/pdf",
        "json" => "application/json",
        "txt" | "log" => "text/plain",
        "md" | "markdown" => "text/markdown",
        "csv" => "text/csv",
        "html" | "htm" => "text/html",
        "xml" => "text/xml",
        "css" => "text/css",
        "js" | "mjs" => "text/javascript",
        "py" => "text/x-python",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "webp" => "image/webp",
        "gif" => "image/gif",
        "heic" => "image/heic",
        "heif" => "image/heif",
        "wav" => "audio/wav",
        "mp3" => "audio/mp3",
        "flac" => "audio/flac",
        "ogg" => "audio/ogg",
        "mp4" => "video/mp4",
        "mov" => "video/quicktime",
        "webm" => "video/webm",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(json: &str, want: &str) {
        let raw: Raw<'_> = serde_json::from_str(json).unwrap();
        let mut losses = Losses::new();
        let pieces = decode_content(&raw, &Path::Root.field("content"), &mut losses);
        let shown = match pieces {
            Ok(pieces) => pieces.iter().map(show).collect::<Vec<_>>().join(" "),
            Err(bad) => format!("! {bad}"),
        };
        let losses: Vec<_> = losses.iter().map(|it| format!(" ({:?})", it.code)).collect();
        assert_eq!(format!("{shown}{}", losses.concat()), want, "{json}");
    }

    fn show(piece: &Piece<'_>) -> String {
        match piece {
            Piece::Text(text) => text.literal().to_owned(),
            Piece::Media(media) => {
                let mime = media.mime.as_deref().unwrap_or("?");
                let name = media.name.as_deref().unwrap_or("-");
                match &media.source {
                    MediaSource::Inline(data) => format!("<{mime} {name} {}>", data.decode()),
                    MediaSource::Uri(uri) => format!("<{mime} {name} @{}>", uri.decode()),
                }
            }
        }
    }

    #[test]
    fn words() {
        check(r#""a\nb""#, r#""a\nb""#);
        check(r#""""#, "");
        check(r#"[{"type":"input_text","text":"a"},{"type":"input_text","text":""}]"#, r#""a""#);
        check(r#"[{"type":"output_text","text":"a","annotations":[],"logprobs":[]}]"#, r#""a""#);
        check(r#"[{"type":"refusal","refusal":"no"}]"#, r#""no""#);
        check(r#"[{"type":"input_text"}]"#, "! content[0].text: missing");
        check(r#"[{"type":"input_text","text":5}]"#, "! content[0].text: expected a string");
        check("5", "! content: expected a string or an array of content parts");
        check(
            r#"[{"type":"hologram","x": 1}]"#,
            r#""{\"type\":\"hologram\",\"x\":1}" (UnknownField) (Changed)"#,
        );
    }

    #[test]
    fn pictures_and_files() {
        check(
            r#"[{"type":"input_image","image_url":"data:image/png;base64,iVBO","detail":"high"}]"#,
            "<image/png - iVBO>",
        );
        check(
            r#"[{"type":"input_image","image_url":"https://example.com/a.jpg?x=1"}]"#,
            "<image/jpeg - @https://example.com/a.jpg?x=1>",
        );
        check(r#"[{"type":"image_url","image_url":{"url":"gs://b/c"}}]"#, "<? - @gs://b/c>");
        check(r#"[{"type":"input_image","file_id":"file_1"}]"#, " (PartDropped)");
        check(
            r#"[{"type":"input_file","filename":"a.pdf","file_data":"JVBE"}]"#,
            "<application/pdf a.pdf JVBE>",
        );
        check(
            r#"[{"type":"input_file","filename":"a","file_data":"data:text/plain;charset=utf-8;base64,YQ=="}]"#,
            "<text/plain a YQ==>",
        );
        check(r#"[{"type":"input_image","image_url":"data:,a%20b"}]"#, "<text/plain - YSBi>");
        check(
            r#"[{"type":"input_audio","input_audio":{"data":"UklG","format":"wav"}}]"#,
            "<audio/wav - UklG>",
        );
        check(
            r#"[{"type":"input_file"}]"#,
            "! content[0]: names neither an address, data nor a file",
        );
    }
}
