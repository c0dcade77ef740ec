//! Blocks that say something: words, pictures, documents.

use std::borrow::Cow;

use super::content::{Block, Content};
use super::message::{Reader, required};
use super::wire;
use crate::canon::{BadRequest, LossCode, Media, MediaSource, data_url};
use crate::json::{self, Path, Slice, Text, write};

/// Content of a block, in a message or in a tool's result.
pub(super) enum Piece<'a> {
    Text(Text<'a>),
    Media(Media<'a>),
}

impl<'a> Reader<'a, '_> {
    /// Reads a block that says something; one that is not known is kept as the text of its JSON.
    pub(super) fn pieces(
        &mut self,
        block: Block<'a>,
        at: &Path<'_>,
        out: &mut Vec<Piece<'a>>,
    ) -> Result<(), BadRequest> {
        match &*block.kind {
            "text" => {
                let text = block.text.ok_or_else(|| at.field("text").bad("is missing"))?;
                push_text(out, text);
            }
            "image" => self.image(block.source, at, out)?,
            "document" => self.document(block, at, out)?,
            "search_result" => self.search_result(&block, at, out)?,
            "tool_reference" => {
                let name = required(block.tool_name, &at.field("tool_name"))?;
                let text = format!("The tool {name} is loaded and can be called now.");
                out.push(Piece::Text(Text::new(&text)));
                self.mentioned.insert(name, true);
            }
            "compaction" => match block.content.and_then(Slice::text) {
                Some(summary) => {
                    self.retold(&block.kind, at);
                    push_text(out, summary);
                }
                None => {
                    let detail = "a summary that only Anthropic can read was left out";
                    self.losses.add(at, LossCode::PartDropped, detail);
                }
            },
            "container_upload" => {
                self.retold(&block.kind, at);
                let id = block.file_id.map(Text::into_cow).unwrap_or_default();
                let text = format!("[A file was put into the container: {id}]");
                out.push(Piece::Text(Text::new(&text)));
            }
            // Of a type that is not known, or that cannot stand here.
            kind => {
                self.retold(kind, at);
                out.push(Piece::Text(Text::new(&write::compacted(block.json))));
            }
        }
        Ok(())
    }

    fn image(
        &mut self,
        source: Option<Slice<'a>>,
        at: &Path<'_>,
        out: &mut Vec<Piece<'a>>,
    ) -> Result<(), BadRequest> {
        let at = at.field("source");
        let (kind, source) = self.source(source, &at)?;
        out.extend(self.media(&kind, source, None, None, &at)?.map(Piece::Media));
        Ok(())
    }

    fn document(
        &mut self,
        block: Block<'a>,
        at: &Path<'_>,
        out: &mut Vec<Piece<'a>>,
    ) -> Result<(), BadRequest> {
        let at = at.field("source");
        let (kind, source) = self.source(block.source, &at)?;
        let title = block.title.filter(|it| !it.is_empty()).map(Text::into_cow);
        let context = block.context.filter(|it| !it.is_empty()).map(Text::into_cow);
        match &*kind {
            "text" | "content" => {
                let heading =
                    [title.map(|it| format!("Document: {it}")), context.map(Cow::into_owned)];
                let heading: Vec<_> = heading.into_iter().flatten().collect();
                push_text(out, Text::new(&heading.join("\n")));
                if kind == "text" {
                    push_text(out, source.data.ok_or_else(|| at.field("data").bad("is missing"))?);
                    return Ok(());
                }
                let at = at.field("content");
                let content = source.content.ok_or_else(|| at.bad("is missing"))?;
                self.document_content(Slice::new(&content), &at, out)
            }
            kind => {
                if let Some(context) = context {
                    push_text(out, Text::new(&context));
                }
                let media = self.media(kind, source, Some("application/pdf"), title, &at)?;
                out.extend(media.map(Piece::Media));
                Ok(())
            }
        }
    }

    /// A document that is written as blocks: words and pictures, never documents again.
    fn document_content(
        &mut self,
        said: Slice<'a>,
        at: &Path<'_>,
        out: &mut Vec<Piece<'a>>,
    ) -> Result<(), BadRequest> {
        let mut blocks = match Content::read(said, at)? {
            Content::Text(text) => {
                push_text(out, text);
                return Ok(());
            }
            Content::Blocks(blocks) => blocks,
        };
        for index in 0.. {
            let at = at.index(index);
            self.count_block(&at)?;
            let Some(block) = blocks.next(&at, &mut self.losses)? else { break };
            match &*block.kind {
                kind @ ("document" | "search_result") => self.misplaced(kind, &at),
                _ => self.pieces(block, &at, out)?,
            }
        }
        Ok(())
    }

    fn search_result(
        &mut self,
        block: &Block<'a>,
        at: &Path<'_>,
        out: &mut Vec<Piece<'a>>,
    ) -> Result<(), BadRequest> {
        let title = block.title.as_ref().map(Text::decode).unwrap_or_default();
        let source = block.source.and_then(Slice::text).map(Text::into_cow).unwrap_or_default();
        out.push(Piece::Text(Text::new(&format!("Search result: {title}\nSource: {source}"))));
        match block.content {
            Some(said) => self.document_content(said, &at.field("content"), out),
            None => Ok(()),
        }
    }

    /// Says that a block of a known type stands where none of its type can.
    fn misplaced(&mut self, kind: &str, at: &Path<'_>) {
        let detail = format_args!("a block of type `{kind}` cannot stand here; it was left out");
        self.losses.add(at, LossCode::PartDropped, detail);
    }

    fn source(
        &mut self,
        source: Option<Slice<'a>>,
        at: &Path<'_>,
    ) -> Result<(Cow<'a, str>, wire::Source<'a>), BadRequest> {
        let source = source.ok_or_else(|| at.bad("is missing"))?;
        let mut source: wire::Source<'a> = json::read(source.get(), at, &mut self.losses)?;
        let kind = required(source.kind.take(), &at.field("type"))?;
        Ok((kind, source))
    }

    /// A medium; `None` if it cannot be read here.
    fn media(
        &mut self,
        kind: &str,
        source: wire::Source<'a>,
        usual_mime: Option<&'static str>,
        name: Option<Cow<'a, str>>,
        at: &Path<'_>,
    ) -> Result<Option<Media<'a>>, BadRequest> {
        let missing = |field: &str| at.field(field).bad("is missing");
        let mut mime =
            source.media_type.map(Text::into_cow).or_else(|| usual_mime.map(Cow::Borrowed));
        let source = match kind {
            "base64" => {
                let data = source.data.ok_or_else(|| missing("data"))?;
                MediaSource::inline(data, &at.field("data"))?
            }
            "url" => {
                let url = source.url.ok_or_else(|| missing("url"))?;
                match data_url(&url, &at.field("url"))? {
                    Some((said, bytes)) => {
                        mime = said.map(Cow::Owned).or(mime);
                        bytes
                    }
                    None => MediaSource::Uri(url),
                }
            }
            "file" => {
                let id = source.file_id.ok_or_else(|| missing("file_id"))?;
                if !id.escaped().contains(':') && !id.escaped().starts_with("files/") {
                    let detail = format_args!(
                        "`{}` is a file at Anthropic, which cannot be read here; send its bytes",
                        id.decode()
                    );
                    self.losses.add(&at.field("file_id"), LossCode::PartDropped, detail);
                    return Ok(None);
                }
                MediaSource::Uri(id)
            }
            _ => {
                return Err(at.field("type").bad("expected base64, url, file, text or content"));
            }
        };
        Ok(Some(Media { mime, source, name, modifiers: Vec::new() }))
    }
}

fn push_text<'a>(out: &mut Vec<Piece<'a>>, text: Text<'a>) {
    if !text.is_empty() {
        out.push(Piece::Text(text));
    }
}
