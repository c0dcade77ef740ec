//! What Anthropic's server tools did earlier in the conversation, told in words.
//!
//! Gemini has no calls of other servers' tools. Their history stays readable: the model sees what
//! was asked and what came back.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde::Deserialize;

use super::content::slice;
use super::message::Reader;
use super::wire;
use crate::canon::{LossCode, Part};
use crate::json::{Kind, Path, Raw, Text};

impl<'a> Reader<'a, '_> {
    /// Tells a `server_tool_use` or `mcp_tool_use`.
    pub(super) fn server_call(
        &mut self,
        kind: &str,
        block: &wire::Block<'a>,
        at: &Path<'_>,
        parts: &mut Vec<Part<'a>>,
    ) {
        let name = word(block.name.as_ref());
        if is_ours(block.id.as_ref()) && self.twins.take_call(&name) {
            return;
        }
        let input = block.input.as_ref().map_or(Cow::Borrowed("{}"), Raw::compact);
        let mut told = match &block.server_name {
            Some(server) => format!("[Called {name} of {} with {input}", server.decode()),
            None => format!("[Called {name} with {input}"),
        };
        told.push(']');
        self.tell(kind, &told, at, parts);
    }

    /// Tells the result of a server tool.
    pub(super) fn server_result(
        &mut self,
        kind: &str,
        block: &wire::Block<'a>,
        at: &Path<'_>,
        parts: &mut Vec<Part<'a>>,
    ) {
        if is_ours(block.tool_use_id.as_ref()) && self.twins.take_result(kind) {
            return;
        }
        let name = kind.strip_suffix("_tool_result").unwrap_or(kind);
        let what = if block.is_error == Some(true) { "Failure" } else { "Result" };
        let mut told = format!("[{what} of {name}");
        if let Some(content) = &block.content {
            self.tell_content(content, at, &mut told);
        }
        told.push(']');
        self.tell(kind, &told, at, parts);
    }

    fn tell(&mut self, kind: &str, told: &str, at: &Path<'_>, parts: &mut Vec<Part<'a>>) {
        self.retold(kind, at);
        parts.push(Part::text(Text::new(told)));
    }

    fn tell_content(&mut self, content: &Raw<'a>, at: &Path<'_>, told: &mut String) {
        match content.kind() {
            Kind::String => {
                let text = content.as_text();
                line(told, "", text.as_ref());
            }
            Kind::Array => tell_list(content, told),
            Kind::Object => self.tell_object(content, at, told),
            Kind::Bool | Kind::Null | Kind::Number => {}
        }
    }

    fn tell_object(&mut self, content: &Raw<'a>, at: &Path<'_>, told: &mut String) {
        let Some(result) = parse::<wire::ServerResult<'_>>(slice(content)) else {
            line(told, "", Some(&Text::new(&content.compact())));
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
                Kind::Object => self.tell_document(inner, at, told),
                Kind::Array | Kind::Bool | Kind::Null | Kind::Number => {}
            }
        }
        if told.len() == before {
            line(told, "", Some(&Text::new(&content.compact())));
        }
    }

    /// The page that a fetch read, where it is text.
    fn tell_document(&mut self, document: &Raw<'a>, at: &Path<'_>, told: &mut String) {
        let block = parse::<wire::Block<'_>>(slice(document)).unwrap_or_default();
        line(told, "title: ", block.title.as_ref());
        let source = block.source.as_ref().and_then(|it| parse::<wire::Source<'_>>(slice(it)));
        let is_text = |source: &wire::Source<'_>| word(source.kind.as_ref()) == "text";
        match source {
            Some(source) if is_text(&source) => line(told, "", source.data.as_ref()),
            Some(_) | None => {
                let detail = "a fetched document that is not text was left out";
                self.losses.push(at.loss(LossCode::PartDropped, detail));
            }
        }
    }
}

impl super::message::Twins {
    /// Whether a readable call stands for a sealed part.
    fn take_call(&mut self, name: &str) -> bool {
        match name {
            "code_execution" => take(&mut self.code),
            "web_search" => self.search,
            _ => false,
        }
    }

    /// Whether a readable result stands for a sealed part.
    fn take_result(&mut self, kind: &str) -> bool {
        match kind {
            "code_execution_tool_result" => take(&mut self.code_result),
            "web_search_tool_result" => self.search,
            _ => false,
        }
    }
}

fn take(count: &mut usize) -> bool {
    let some = *count > 0;
    *count -= usize::from(some);
    some
}

/// Whether an id is one that our own answers gave to what Gemini did.
fn is_ours(id: Option<&Text<'_>>) -> bool {
    id.is_some_and(|id| id.escaped().starts_with("srvtoolu_tg"))
}

fn tell_list(content: &Raw<'_>, told: &mut String) {
    for item in content.items().unwrap_or_default() {
        let hit = parse::<wire::SearchHit<'_>>(item.get());
        match hit {
            Some(wire::SearchHit { url: Some(url), title }) => {
                let _ = write!(told, "\n- {}: {}", word(title.as_ref()), url.decode());
            }
            Some(_) | None => {
                let block = parse::<wire::Block<'_>>(item.get());
                line(told, "", block.and_then(|block| block.text).as_ref());
            }
        }
    }
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
