//! What Anthropic's server tools did earlier in the conversation, told in words.
//!
//! Gemini has no calls of other servers' tools. Their history stays readable: the model sees what
//! was asked and what came back.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde::Deserialize;

use super::content::Block;
use super::message::Reader;
use super::wire;
use crate::canon::{LossCode, Losses, Part};
use crate::json::{Kind, Path, Slice, Text, write};

impl<'a> Reader<'a, '_> {
    /// Tells a `server_tool_use` or `mcp_tool_use`.
    pub(super) fn server_call(
        &mut self,
        block: &Block<'a>,
        at: &Path<'_>,
        parts: &mut Vec<Part<'a>>,
    ) {
        let name = word(block.name.as_ref());
        if is_ours(block.id.as_ref()) && self.is_shown(&name, at) {
            return;
        }
        let input = write::compacted(block.input.map_or("{}", Slice::get));
        let mut told = match &block.server_name {
            Some(server) => format!("[Called {name} of {} with {input}", server.decode()),
            None => format!("[Called {name} with {input}"),
        };
        told.push(']');
        self.tell(&block.kind, &told, at, parts);
    }

    /// Tells the result of a server tool.
    pub(super) fn server_result(
        &mut self,
        block: &Block<'a>,
        at: &Path<'_>,
        parts: &mut Vec<Part<'a>>,
    ) {
        let kind = &*block.kind;
        if is_ours(block.tool_use_id.as_ref()) && self.is_shown(kind, at) {
            return;
        }
        let name = kind.strip_suffix("_tool_result").unwrap_or(kind);
        let what = if block.is_error { "Failure" } else { "Result" };
        let mut told = format!("[{what} of {name}");
        if let Some(content) = block.content {
            self.tell_content(content, at, &mut told);
        }
        told.push(']');
        self.tell(kind, &told, at, parts);
    }

    /// Whether a block of our own making only shows the client what Gemini did. It is nothing that
    /// the model said: a search is in the model's words already, and code goes back as the part
    /// that it was, if that came along.
    fn is_shown(&mut self, kind: &str, at: &Path<'_>) -> bool {
        let sealed = match kind {
            "web_search" | "web_search_tool_result" => return true,
            "code_execution" => &mut self.twins.code,
            "code_execution_tool_result" => &mut self.twins.code_result,
            _ => return false,
        };
        if *sealed > 0 {
            *sealed -= 1;
        } else {
            let detail = "what Gemini ran itself cannot be given back; it was left out";
            self.losses.add(at, LossCode::PartDropped, detail);
        }
        true
    }

    fn tell(&mut self, kind: &str, told: &str, at: &Path<'_>, parts: &mut Vec<Part<'a>>) {
        self.retold(kind, at);
        parts.push(Part::text(Text::new(told)));
    }

    fn tell_content(&mut self, content: Slice<'a>, at: &Path<'_>, told: &mut String) {
        match content.kind() {
            Kind::String => line(told, "", content.text().as_ref()),
            Kind::Array => tell_list(content, told),
            Kind::Object => self.tell_object(content, at, told),
            Kind::Bool | Kind::Null | Kind::Number => {}
        }
    }

    fn tell_object(&mut self, content: Slice<'a>, at: &Path<'_>, told: &mut String) {
        let Some(result) = parse::<wire::ServerResult<'a>>(content.get()) else {
            tell_json(content, told);
            return;
        };
        let before = told.len();
        line(told, "error: ", result.error_code.as_ref());
        line(told, "address: ", result.url.as_ref());
        line(told, "", result.text.as_ref());
        line(told, "stdout: ", result.stdout.as_ref());
        line(told, "stderr: ", result.stderr.as_ref());
        if let Some(code) = result.return_code {
            let _ = write!(told, "\nreturn code: {code}");
        }
        for reference in result.tool_references.iter().flatten() {
            line(told, "tool: ", reference.tool_name.as_ref());
            if let Some(name) = &reference.tool_name {
                self.mentioned.insert(Cow::Owned(name.decode().into_owned()), true);
            }
        }
        if let Some(inner) = &result.content {
            match inner.kind() {
                Kind::String => line(told, "", inner.as_text().as_ref()),
                Kind::Object => self.tell_document(Slice::new(inner), at, told),
                Kind::Array | Kind::Bool | Kind::Null | Kind::Number => {}
            }
        }
        if told.len() == before {
            tell_json(content, told);
        }
    }

    /// The page that a fetch read, where it is text.
    fn tell_document(&mut self, document: Slice<'a>, at: &Path<'_>, told: &mut String) {
        let document = Block::read(&mut document.cursor(), at, &mut Losses::new());
        let document = document.unwrap_or_default();
        line(told, "title: ", document.title.as_ref());
        let source = document.source.and_then(|it| parse::<wire::Source<'a>>(it.get()));
        match source {
            Some(source) if word(source.kind.as_ref()) == "text" => {
                line(told, "", source.data.as_ref());
            }
            Some(_) | None => {
                let detail = "a fetched document that is not text was left out";
                self.losses.add(at, LossCode::PartDropped, detail);
            }
        }
    }
}

/// Whether an id is one that our own answers gave to what Gemini did.
fn is_ours(id: Option<&Text<'_>>) -> bool {
    id.is_some_and(|id| id.escaped().starts_with("srvtoolu_tg"))
}

fn tell_list(content: Slice<'_>, told: &mut String) {
    let mut cursor = content.cursor();
    cursor.enter();
    while cursor.next_element() {
        match parse::<wire::SearchHit<'_>>(cursor.value().get()) {
            Some(wire::SearchHit { url: Some(url), title, .. }) => {
                let _ = write!(told, "\n- {}: {}", word(title.as_ref()), url.decode());
            }
            Some(wire::SearchHit { text, .. }) => line(told, "", text.as_ref()),
            None => {}
        }
    }
}

fn tell_json(content: Slice<'_>, told: &mut String) {
    let _ = write!(told, "\n{}", write::compacted(content.get()));
}

fn line(told: &mut String, label: &str, text: Option<&Text<'_>>) {
    if let Some(text) = text.filter(|text| !text.is_empty()) {
        let _ = write!(told, "\n{label}{}", text.decode());
    }
}

fn word<'t>(text: Option<&'t Text<'_>>) -> Cow<'t, str> {
    text.map(Text::decode).unwrap_or_default()
}

/// Reads a value of which only some words matter; what cannot be read has none.
fn parse<'j, T: Deserialize<'j>>(json: &'j str) -> Option<T> {
    serde_json::from_str(json).ok()
}
