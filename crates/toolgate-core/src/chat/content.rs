//! Content of a message: a string, or parts.

use std::borrow::Cow;

use super::request::reread;
use super::wire;
use crate::canon::{BadRequest, LossCode, Losses, Media, MediaSource, data_url};
use crate::json::{Element, Kind, Path, Raw, Text};

/// A piece of a message's content.
pub(super) enum Piece<'a> {
    Text(Text<'a>),
    Media(Media<'a>),
}

/// Reads `content`. Empty strings are pieces too: a tool may have said nothing.
pub(super) fn decode_content<'a>(
    content: Option<Raw<'a>>,
    at: &Path<'_>,
    losses: &mut Losses,
) -> Result<Vec<Piece<'a>>, BadRequest> {
    let Some(content) = content else { return Ok(Vec::new()) };
    match content.kind() {
        Kind::String => Ok(content.into_text().map(Piece::Text).into_iter().collect()),
        Kind::Array => {
            let parts: Vec<Element<wire::ContentPart<'a>>> = reread(&content, at, losses)?;
            let mut pieces = Vec::with_capacity(parts.len());
            for (index, part) in parts.into_iter().enumerate() {
                pieces.extend(decode_part(*part, &at.index(index), losses)?);
            }
            Ok(pieces)
        }
        Kind::Object => {
            let part: wire::ContentPart<'a> = reread(&content, at, losses)?;
            Ok(decode_part(part, at, losses)?.into_iter().collect())
        }
        Kind::Bool | Kind::Null | Kind::Number => {
            Err(at.bad("expected a string or an array of parts"))
        }
    }
}

fn decode_part<'a>(
    part: wire::ContentPart<'a>,
    at: &Path<'_>,
    losses: &mut Losses,
) -> Result<Option<Piece<'a>>, BadRequest> {
    let kind = part.kind.as_ref().map(Text::decode);
    match kind.as_deref() {
        Some("text" | "input_text" | "output_text") | None => match part.text {
            Some(text) => Ok(Some(Piece::Text(text))),
            None => Err(at.field("text").bad("a text is needed")),
        },
        Some("refusal") => match part.refusal {
            Some(text) => Ok(Some(Piece::Text(text))),
            None => Err(at.field("refusal").bad("a text is needed")),
        },
        Some("image_url" | "input_image") => {
            media_at(part.image_url, &at.field("image_url"), losses).map(Some)
        }
        Some("video_url") => media_at(part.video_url, &at.field("video_url"), losses).map(Some),
        Some("audio_url") => media_at(part.audio_url, &at.field("audio_url"), losses).map(Some),
        Some("input_audio") => sound(part.input_audio, &at.field("input_audio")).map(Some),
        Some("file") => file(part.file, &at.field("file"), losses),
        Some(other) => {
            let detail = format_args!("a part of type `{other}` cannot be said to Gemini");
            losses.add(at, LossCode::PartDropped, detail);
            Ok(None)
        }
    }
}

/// `{"url": …}`, or the address alone.
fn media_at<'a>(
    raw: Option<Raw<'a>>,
    at: &Path<'_>,
    losses: &mut Losses,
) -> Result<Piece<'a>, BadRequest> {
    let Some(raw) = raw else { return Err(at.bad("an address is needed")) };
    let url = if raw.kind() == Kind::Object {
        let wire::Url { url, detail } = reread(&raw, at, losses)?;
        if detail.is_some_and(|detail| !matches!(&*detail.decode(), "auto" | "")) {
            losses.add(
                &at.field("detail"),
                LossCode::Ignored,
                "the picture is read at the model's own resolution",
            );
        }
        url
    } else {
        raw.into_text()
    };
    let Some(url) = url.filter(|url| !url.is_empty()) else {
        return Err(at.field("url").bad("an address is needed"));
    };
    let media = match data_url(&url, &at.field("url"))? {
        Some((mime, bytes)) => plain(mime.map(Cow::Owned), bytes),
        None => plain(None, MediaSource::Uri(url)),
    };
    Ok(Piece::Media(media))
}

fn sound<'a>(audio: Option<wire::InputAudio<'a>>, at: &Path<'_>) -> Result<Piece<'a>, BadRequest> {
    let Some(wire::InputAudio { data: Some(data), format }) = audio else {
        return Err(at.field("data").bad("sound is needed"));
    };
    let mime = format.map(|format| format!("audio/{}", format.decode()).into());
    Ok(Piece::Media(plain(mime, MediaSource::inline(data, &at.field("data"))?)))
}

fn file<'a>(
    file: Option<wire::File<'a>>,
    at: &Path<'_>,
    losses: &mut Losses,
) -> Result<Option<Piece<'a>>, BadRequest> {
    let Some(file) = file else { return Err(at.bad("a file is needed")) };
    let name = file.filename.map(Text::into_cow);
    let mime = file.format.map(Text::into_cow);
    let (mime, source) = match (file.file_data, file.file_id) {
        (Some(data), _) => {
            let at = at.field("file_data");
            let (own, bytes) = match data_url(&data, &at)? {
                Some((own, bytes)) => (own.map(Cow::Owned), bytes),
                None => (None, MediaSource::inline(data, &at)?),
            };
            let guessed = || Cow::Borrowed(mime_of(name.as_deref()));
            (mime.or(own).unwrap_or_else(guessed), bytes)
        }
        (None, Some(id)) if id.escaped().contains(':') || id.escaped().starts_with("files/") => {
            let media = Media { name, ..plain(mime, MediaSource::Uri(id)) };
            return Ok(Some(Piece::Media(media)));
        }
        (None, Some(_)) => {
            losses.add(
                &at.field("file_id"),
                LossCode::PartDropped,
                "there is no such file here; send its bytes or an address of Gemini's",
            );
            return Ok(None);
        }
        (None, None) => return Err(at.field("file_data").bad("a file is needed")),
    };
    Ok(Some(Piece::Media(Media { name, ..plain(Some(mime), source) })))
}

fn plain<'a>(mime: Option<Cow<'a, str>>, source: MediaSource<'a>) -> Media<'a> {
    Media { mime, source, name: None, modifiers: Vec::new() }
}

/// Media type of a file by its name. OpenAI takes PDFs only, so a file without a name is one.
fn mime_of(name: Option<&str>) -> &'static str {
    let extension = name.and_then(|name| name.rsplit_once('.')).map(|(_, extension)| extension);
    match extension.map(str::to_ascii_lowercase).as_deref() {
        Some("csv") => "text/csv",
        Some("html" | "htm") => "text/html",
        Some("jpeg" | "jpg") => "image/jpeg",
        Some("json") => "application/json",
        Some("md") => "text/markdown",
        Some("png") => "image/png",
        Some("txt") => "text/plain",
        Some("webp") => "image/webp",
        Some(_) | None => "application/pdf",
    }
}
