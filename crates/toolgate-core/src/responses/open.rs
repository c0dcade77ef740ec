//! Items in progress.
//!
//! They hold signatures, so none of them can be printed.

use super::frames::{member, number};
use super::search::Citation;
use crate::json::{Text, write};

#[derive(Clone, Default)]
pub(super) enum Open {
    #[default]
    Nothing,
    Message(Message),
    Reasoning(Reasoning),
    Code(Code),
}

#[derive(Clone)]
pub(super) struct Message {
    pub(super) id: String,
    pub(super) text: Text<'static>,
    /// Annotations' JSON, with commas between.
    pub(super) annotations: Vec<u8>,
    pub(super) annotated: u64,
    /// Envelopes that follow it.
    pub(super) sealed: Vec<String>,
    /// The searches that follow it: the JSON of each one's `action`.
    pub(super) searches: Vec<Vec<u8>>,
}

#[derive(Clone)]
pub(super) struct Reasoning {
    pub(super) id: String,
    pub(super) text: Text<'static>,
    pub(super) sealed: Option<String>,
}

#[derive(Clone)]
pub(super) struct Code {
    pub(super) id: String,
    pub(super) code: Text<'static>,
    /// Its output.
    pub(super) logs: Option<Text<'static>>,
    /// The result's envelope, which follows it.
    pub(super) sealed: Option<String>,
}

/// Whether an item is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    Completed,
    Incomplete,
}

impl Status {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Incomplete => "incomplete",
        }
    }
}

impl Message {
    pub(super) fn new(id: String) -> Self {
        Self {
            id,
            text: Text::EMPTY,
            annotations: Vec::new(),
            annotated: 0,
            sealed: Vec::new(),
            searches: Vec::new(),
        }
    }

    /// Writes the item up to the value of `content`.
    pub(super) fn begin(&self, out: &mut Vec<u8>, status: &str) {
        out.push(b'{');
        member(out, "id", &self.id);
        member(out, "type", "message");
        member(out, "status", status);
        member(out, "role", "assistant");
        write::key(out, "content");
    }

    pub(super) fn write_part(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"type\":\"output_text\",\"annotations\":[");
        out.extend_from_slice(&self.annotations);
        out.extend_from_slice(b"],\"logprobs\":[],\"text\":");
        self.text.write(out);
        out.push(b'}');
    }

    pub(super) fn annotate(&mut self, citation: &Citation) {
        write::comma(&mut self.annotations);
        citation.write(&mut self.annotations);
        self.annotated += 1;
    }
}

impl Reasoning {
    pub(super) fn write_begun(&self, out: &mut Vec<u8>) {
        out.push(b'{');
        member(out, "id", &self.id);
        out.extend_from_slice(b",\"type\":\"reasoning\",\"summary\":[]}");
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.push(b'{');
        member(out, "id", &self.id);
        out.extend_from_slice(b",\"type\":\"reasoning\",\"summary\":[");
        if !self.text.is_empty() {
            self.write_part(out);
        }
        out.push(b']');
        if let Some(sealed) = &self.sealed {
            member(out, "encrypted_content", sealed);
        }
        out.push(b'}');
    }

    pub(super) fn write_part(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"type\":\"summary_text\",\"text\":");
        self.text.write(out);
        out.push(b'}');
    }
}

impl Code {
    /// The item before its code has been said.
    pub(super) fn write_begun(&self, out: &mut Vec<u8>) {
        self.begin(out, "in_progress");
        Text::EMPTY.write(out);
        out.extend_from_slice(b",\"outputs\":[]}");
    }

    pub(super) fn write(&self, out: &mut Vec<u8>, status: &str) {
        self.begin(out, status);
        self.code.write(out);
        out.extend_from_slice(b",\"outputs\":[");
        if let Some(logs) = &self.logs {
            out.extend_from_slice(b"{\"type\":\"logs\",\"logs\":");
            logs.write(out);
            out.push(b'}');
        }
        out.extend_from_slice(b"]}");
    }

    /// Writes the item up to the value of `code`.
    fn begin(&self, out: &mut Vec<u8>, status: &str) {
        out.push(b'{');
        member(out, "id", &self.id);
        member(out, "type", "code_interpreter_call");
        member(out, "status", status);
        member(out, "container_id", "gemini");
        write::key(out, "code");
    }
}

/// Writes which item an event is about.
pub(super) fn place(out: &mut Vec<u8>, id: &str, index: u64) {
    member(out, "item_id", id);
    number(out, "output_index", index);
}
