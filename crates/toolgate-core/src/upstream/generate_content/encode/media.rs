//! Pictures, documents, sound and film.

use std::borrow::Cow;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use crate::canon::{Backend, Loss, LossCode, Losses, Media, MediaSource};
use crate::json::write::ObjectWriter;
use crate::json::{Kind, Text};
use crate::upstream::generate_content::history::camel;

/// MIME types that a function's response may hold.
const IN_RESPONSES: [&str; 5] =
    ["image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain"];

/// Whether the medium may stand inside of a function's response, as far as its kind goes.
pub(in crate::upstream::generate_content) fn fits(media: &Media<'_>) -> bool {
    match &media.source {
        MediaSource::Inline(data) => {
            mime(media, data).is_some_and(|mime| IN_RESPONSES.contains(&&*mime))
        }
        MediaSource::Uri(_) => false,
    }
}

/// Writes the medium as the members of a part.
pub(super) fn write_media(
    part: &mut ObjectWriter<'_>,
    media: &Media<'_>,
    signed: bool,
    backend: Backend,
    losses: &mut Losses,
) {
    write_source(part, media, backend, losses);
    for (name, value) in &media.modifiers {
        let name = camel(Cow::Borrowed(name));
        let unknown = name == "partMetadata" && backend == Backend::Vertex;
        if value.kind() == Kind::Null || unknown || (name == "thoughtSignature" && !signed) {
            continue;
        }
        part.raw(&name, value);
    }
}

/// Writes `"inlineData":{…}` or `"fileData":{…}`.
pub(super) fn write_source(
    part: &mut ObjectWriter<'_>,
    media: &Media<'_>,
    backend: Backend,
    losses: &mut Losses,
) {
    let mut out;
    match &media.source {
        MediaSource::Inline(data) => {
            let mime = mime(media, data).unwrap_or_else(|| {
                losses.push(guessed("nothing says what the attached bytes are"));
                Cow::Borrowed("application/octet-stream")
            });
            out = part.object("inlineData");
            out.string("mimeType", &mime);
            out.text("data", data);
        }
        MediaSource::Uri(uri) => {
            let address = uri.decode();
            let mime = said_mime(media).or_else(|| mime_of_address(&address).map(Cow::Borrowed));
            let mime = mime.or_else(|| {
                let fetched = address.starts_with("http") && !names_itself(&address);
                fetched.then(|| {
                    losses.push(guessed("nothing says what stands at the address; a picture?"));
                    Cow::Borrowed("image/jpeg")
                })
            });
            out = part.object("fileData");
            out.optional_string("mimeType", mime.as_deref());
            out.text("fileUri", uri);
        }
    }
    match (&media.name, backend) {
        (Some(name), Backend::Vertex) => out.string("displayName", name),
        (Some(name), Backend::Developer) => losses.add_with(LossCode::Ignored, || Loss {
            at: "media".to_owned(),
            code: LossCode::Ignored,
            detail: format!("the Developer API has no place for the name `{name}` of a file"),
            tool: None,
        }),
        (None, _) => {}
    }
}

fn guessed(detail: &str) -> Loss {
    Loss { at: "media".to_owned(), code: LossCode::Changed, detail: detail.to_owned(), tool: None }
}

/// MIME type of bytes: the client's, or the one that their first bytes suggest.
fn mime<'m>(media: &'m Media<'_>, data: &Text<'_>) -> Option<Cow<'m, str>> {
    said_mime(media).or_else(|| sniff(data).map(Cow::Borrowed))
}

fn said_mime<'m>(media: &'m Media<'_>) -> Option<Cow<'m, str>> {
    let said = media.mime.as_deref().map(str::trim).filter(|mime| !mime.is_empty())?;
    Some(match said {
        // Common, but not registered.
        "image/jpg" => Cow::Borrowed("image/jpeg"),
        _ if said.bytes().any(|byte| byte.is_ascii_uppercase()) => {
            Cow::Owned(said.to_ascii_lowercase())
        }
        _ => Cow::Borrowed(said),
    })
}

/// Knows the common formats by their first bytes.
fn sniff(data: &Text<'_>) -> Option<&'static str> {
    const LENIENT: GeneralPurpose = GeneralPurpose::new(
        &STANDARD,
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
    );
    let start: String = data
        .escaped()
        .bytes()
        .filter(|byte| *byte != b'\\')
        .take(16)
        .map(|byte| match byte {
            b'-' => '+',
            b'_' => '/',
            _ => char::from(byte),
        })
        .collect();
    let bytes = LENIENT.decode(start.get(..start.len() / 4 * 4)?).ok()?;
    match bytes.as_slice() {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xFF, 0xD8, 0xFF, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'A', b'V', b'E', ..] => Some("audio/wav"),
        [b'%', b'P', b'D', b'F', ..] => Some("application/pdf"),
        [b'I', b'D', b'3', ..] => Some("audio/mpeg"),
        [b'O', b'g', b'g', b'S', ..] => Some("audio/ogg"),
        [_, _, _, _, b'f', b't', b'y', b'p', ..] => Some("video/mp4"),
        _ => None,
    }
}

/// Files that Gemini holds itself, and films that it knows, need no type.
fn names_itself(address: &str) -> bool {
    ["generativelanguage.googleapis.com/", "youtube.com/", "youtu.be/"]
        .iter()
        .any(|host| address.contains(host))
}

fn mime_of_address(address: &str) -> Option<&'static str> {
    let path = address.split(['?', '#']).next().unwrap_or(address);
    let (_, extension) = path.rsplit('/').next()?.rsplit_once('.')?;
    Some(match extension.to_ascii_lowercase().as_str() {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "webp" => "image/webp",
        "gif" => "image/gif",
        "heic" => "image/heic",
        "heif" => "image/heif",
        "pdf" => "application/pdf",
        "txt" | "md" => "text/plain",
        "html" | "htm" => "text/html",
        "csv" => "text/csv",
        "json" => "application/json",
        "mp3" => "audio/mpeg",
        "wav" => "audio/wav",
        "ogg" => "audio/ogg",
        "flac" => "audio/flac",
        "mp4" => "video/mp4",
        "mov" => "video/quicktime",
        "webm" => "video/webm",
        _ => return None,
    })
}
