//! The items of an answer, as they come about.
//!
//! ```text
//! Text       message            open until something else is said
//! Thought    reasoning          open until something else is said; a call's envelope closes it
//! Signature  the open reasoning, or a reasoning item of its own
//! Call       function_call …    at once
//! Server     code_interpreter_call, web_search_call
//! ```
//!
//! One item is open at a time. A message stays open after its signature and its grounding, because
//! annotations may still come; what belongs behind it waits in it.

use std::ops::Range;

use super::calls;
use super::echo::Echo;
use super::frames::{Frames, member, number};
use super::names::Names;
use super::open::{Code, Message, Open, Reasoning, Status, place};
use super::search::Search;
use crate::canon::{
    Call, Grounding, Issuer, Media, MediaSource, ServerAction, ServerActivity, Signature,
    call_token,
};
use crate::json::{Text, write};
use crate::seal::{Envelope, Sealed, Sealer};

/// Writes items, their events, and keeps the finished ones for the end.
#[derive(Clone)]
pub(super) struct Output {
    pub(super) frames: Frames,
    names: Names,
    sealer: Sealer,
    issuer: Option<Issuer>,
    search: Search,
    open: Open,
    /// The next words stand apart from those before them.
    gap: bool,
    /// How many items are finished: the index of the next one.
    count: u64,
    /// The finished items' JSON, with commas between.
    items: Vec<u8>,
    /// Their places in it.
    places: Vec<Range<usize>>,
}

impl Output {
    pub(super) fn new(frames: Frames, names: Names, sealer: Sealer, echo: &Echo) -> Self {
        let wants_sources = echo.include.iter().any(|it| it == "web_search_call.action.sources");
        Self {
            frames,
            names,
            sealer,
            issuer: echo.issuer.clone(),
            search: Search::new(wants_sources),
            open: Open::Nothing,
            gap: false,
            count: 0,
            items: Vec::new(),
            places: Vec::new(),
        }
    }

    /// The finished items' JSON, with commas between.
    pub(super) fn items(&self) -> &[u8] {
        &self.items
    }

    /// Places of the finished items.
    pub(super) fn places(&self) -> &[Range<usize>] {
        &self.places
    }

    /// Text of the answer.
    pub(super) fn text(&mut self, text: &Text<'_>, out: &mut Vec<u8>) {
        let gap = std::mem::take(&mut self.gap);
        if !matches!(&self.open, Open::Message(message) if message.sealed.is_empty()) {
            self.close(Status::Completed, out);
            self.open_message(out);
        } else if gap {
            self.words(&Text::new("\n\n"), out);
        }
        self.words(text, out);
    }

    /// Text that stands apart from the text around it.
    fn text_apart(&mut self, text: &Text<'_>, out: &mut Vec<u8>) {
        self.gap = true;
        self.text(text, out);
        self.gap = true;
    }

    fn words(&mut self, text: &Text<'_>, out: &mut Vec<u8>) {
        let Open::Message(message) = &mut self.open else { return };
        message.text.push(text);
        let (id, index) = (&message.id, self.count);
        self.frames.event(out, "response.output_text.delta", |out| {
            place(out, id, index);
            number(out, "content_index", 0);
            write::key(out, "delta");
            text.write(out);
            out.extend_from_slice(b",\"logprobs\":[]");
        });
    }

    /// Text of a thought.
    pub(super) fn thought(&mut self, text: &Text<'_>, out: &mut Vec<u8>) {
        if !matches!(&self.open, Open::Reasoning(reasoning) if reasoning.sealed.is_none()) {
            self.close(Status::Completed, out);
            self.open_reasoning(out);
        }
        let Open::Reasoning(reasoning) = &mut self.open else { return };
        reasoning.text.push(text);
        let (id, index) = (&reasoning.id, self.count);
        self.frames.event(out, "response.reasoning_summary_text.delta", |out| {
            place(out, id, index);
            number(out, "summary_index", 0);
            write::key(out, "delta");
            text.write(out);
        });
    }

    /// The signature of the words before it.
    pub(super) fn text_signature(
        &mut self,
        len: usize,
        signature: &Signature<'_>,
        out: &mut Vec<u8>,
    ) {
        let on = Sealed::Text { len, signature: signature.clone() };
        let Some(sealed) = self.seal(on, signature.issuer()) else { return };
        match &mut self.open {
            Open::Message(message) => message.sealed.push(sealed),
            Open::Nothing | Open::Reasoning(_) | Open::Code(_) => {
                self.close(Status::Completed, out);
                self.carry(&sealed, out);
            }
        }
    }

    /// The signature of the thought before it.
    pub(super) fn thought_signature(
        &mut self,
        len: usize,
        signature: &Signature<'_>,
        out: &mut Vec<u8>,
    ) {
        // A thought that the client does not see is an empty one when it comes back.
        let shown = matches!(&self.open, Open::Reasoning(reasoning) if reasoning.sealed.is_none());
        let len = if shown { len } else { 0 };
        let on = Sealed::Thought { len, signature: signature.clone() };
        let Some(sealed) = self.seal(on, signature.issuer()) else { return };
        self.carry_in_reasoning(sealed, out);
    }

    /// A call, whole.
    pub(super) fn call(&mut self, call: &Call<'_>, echo: &Echo, out: &mut Vec<u8>) {
        let sealed = call.signature.as_ref().and_then(|signature| {
            let token = call_token(&call.id).to_owned().into();
            let on = Sealed::Call { token, signature: signature.clone().of_tool(&call.tool) };
            self.seal(on, signature.issuer())
        });
        if let Some(sealed) = sealed {
            self.carry_in_reasoning(sealed, out);
        }
        self.close(Status::Completed, out);
        let item = calls::CallItem::new(call, echo);
        self.added(out, |out| item.write_added(out));
        item.write_events(&mut self.frames, self.count, out);
        self.done(out, |out| item.write_done(out));
    }

    /// A picture or other medium that the model made.
    pub(super) fn media(&mut self, media: &Media<'_>, out: &mut Vec<u8>) {
        let data = match &media.source {
            MediaSource::Inline(data) => data,
            MediaSource::Uri(uri) => return self.text_apart(uri, out),
        };
        let mime = media.mime.as_deref().unwrap_or("image/png");
        let Some(format) = mime.strip_prefix("image/") else {
            let mut address = Text::new(&format!("data:{mime};base64,"));
            address.push(data);
            return self.text_apart(&address, out);
        };
        self.close(Status::Completed, out);
        if !media.modifiers.is_empty()
            && let Some(part) = calls::part_of(media, data)
            && let Some(sealed) = self.seal(Sealed::Part(part), None)
        {
            self.carry(&sealed, out);
        }
        let id = self.new_id("ig");
        let begin = |out: &mut Vec<u8>, status: &str| {
            out.push(b'{');
            member(out, "id", &id);
            member(out, "type", "image_generation_call");
            member(out, "status", status);
            member(out, "output_format", format);
            write::key(out, "result");
        };
        self.added(out, |out| {
            begin(out, "in_progress");
            out.extend_from_slice(b"null}");
        });
        for step in ["in_progress", "generating", "completed"] {
            self.step("image_generation_call", step, &id, out);
        }
        self.done(out, |out| {
            begin(out, "completed");
            data.write(out);
            out.push(b'}');
        });
    }

    /// Something that Gemini did itself.
    pub(super) fn server(&mut self, activity: &ServerActivity<'_>, out: &mut Vec<u8>) {
        let sealed = self.seal(Sealed::Part(activity.part.borrowed()), activity.issuer.as_ref());
        match &activity.action {
            ServerAction::Code { code, .. } => {
                self.close(Status::Completed, out);
                if let Some(sealed) = &sealed {
                    self.carry(sealed, out);
                }
                self.open_code(code.clone().into_owned(), out);
            }
            ServerAction::CodeResult { output, .. } => match &mut self.open {
                Open::Code(code) => {
                    code.logs = Some(output.clone().into_owned());
                    code.sealed = sealed;
                    self.close(Status::Completed, out);
                }
                Open::Nothing | Open::Message(_) | Open::Reasoning(_) => {
                    self.close(Status::Completed, out);
                    if let Some(sealed) = &sealed {
                        self.carry(sealed, out);
                    }
                }
            },
            action
            @ (ServerAction::Search(_) | ServerAction::OpenPage(_) | ServerAction::Other) => {
                self.close(Status::Completed, out);
                if let Some(sealed) = &sealed {
                    self.carry(sealed, out);
                }
                if let Some(action) = self.search.action_of(action) {
                    self.web_search(&action, out);
                }
            }
        }
    }

    /// Grounding of the answer.
    pub(super) fn grounding(&mut self, grounding: &Grounding, out: &mut Vec<u8>) {
        let Open::Message(message) = &mut self.open else {
            let (action, _) = self.search.read(grounding, None);
            if let Some(action) = action {
                self.close(Status::Completed, out);
                self.web_search(&action, out);
            }
            return;
        };
        let (action, citations) = self.search.read(grounding, Some(&message.text.decode()));
        for citation in &citations {
            let (id, index, nth) = (&message.id, self.count, message.annotated);
            self.frames.event(out, "response.output_text.annotation.added", |out| {
                place(out, id, index);
                number(out, "content_index", 0);
                number(out, "annotation_index", nth);
                write::key(out, "annotation");
                citation.write(out);
            });
            message.annotate(citation);
        }
        message.searches.extend(action);
    }

    /// Finishes the open item, and writes the items that wait behind it.
    pub(super) fn close(&mut self, status: Status, out: &mut Vec<u8>) {
        match std::mem::take(&mut self.open) {
            Open::Nothing => {}
            Open::Message(message) => self.close_message(&message, status, out),
            Open::Reasoning(reasoning) => self.close_reasoning(&reasoning, out),
            Open::Code(code) => self.close_code(&code, status, out),
        }
    }

    /// A `compaction` item.
    pub(super) fn compaction(&mut self, summary: &str, out: &mut Vec<u8>) {
        let item = super::compaction_item(&self.names.item("cmp"), summary, &self.sealer);
        self.added(out, |out| out.extend_from_slice(&item));
        self.done(out, |out| out.extend_from_slice(&item));
    }

    fn open_message(&mut self, out: &mut Vec<u8>) {
        let message = Message::new(self.new_id("msg"));
        self.search.begin_text();
        self.added(out, |out| {
            message.begin(out, "in_progress");
            out.extend_from_slice(b"[]}");
        });
        let index = self.count;
        self.frames.event(out, "response.content_part.added", |out| {
            place(out, &message.id, index);
            number(out, "content_index", 0);
            write::key(out, "part");
            message.write_part(out);
        });
        self.open = Open::Message(message);
    }

    fn close_message(&mut self, message: &Message, status: Status, out: &mut Vec<u8>) {
        let index = self.count;
        self.frames.event(out, "response.output_text.done", |out| {
            place(out, &message.id, index);
            number(out, "content_index", 0);
            write::key(out, "text");
            message.text.write(out);
            out.extend_from_slice(b",\"logprobs\":[]");
        });
        self.frames.event(out, "response.content_part.done", |out| {
            place(out, &message.id, index);
            number(out, "content_index", 0);
            write::key(out, "part");
            message.write_part(out);
        });
        self.done(out, |out| {
            message.begin(out, status.word());
            out.push(b'[');
            message.write_part(out);
            out.extend_from_slice(b"]}");
        });
        for sealed in &message.sealed {
            self.carry(sealed, out);
        }
        for action in &message.searches {
            self.web_search(action, out);
        }
    }

    fn open_reasoning(&mut self, out: &mut Vec<u8>) {
        let id = self.new_id("rs");
        let reasoning = Reasoning { id, text: Text::EMPTY, sealed: None };
        self.added(out, |out| reasoning.write_begun(out));
        let index = self.count;
        self.frames.event(out, "response.reasoning_summary_part.added", |out| {
            place(out, &reasoning.id, index);
            number(out, "summary_index", 0);
            write::key(out, "part");
            reasoning.write_part(out);
        });
        self.open = Open::Reasoning(reasoning);
    }

    fn close_reasoning(&mut self, reasoning: &Reasoning, out: &mut Vec<u8>) {
        let index = self.count;
        self.frames.event(out, "response.reasoning_summary_text.done", |out| {
            place(out, &reasoning.id, index);
            number(out, "summary_index", 0);
            write::key(out, "text");
            reasoning.text.write(out);
        });
        self.frames.event(out, "response.reasoning_summary_part.done", |out| {
            place(out, &reasoning.id, index);
            number(out, "summary_index", 0);
            write::key(out, "part");
            reasoning.write_part(out);
        });
        self.done(out, |out| reasoning.write(out));
    }

    fn open_code(&mut self, code: Text<'static>, out: &mut Vec<u8>) {
        let code = Code { id: self.new_id("ci"), code, logs: None, sealed: None };
        self.added(out, |out| code.write_begun(out));
        self.step("code_interpreter_call", "in_progress", &code.id, out);
        let index = self.count;
        for (event, field) in [("delta", "delta"), ("done", "code")] {
            let kind = format!("response.code_interpreter_call_code.{event}");
            self.frames.event(out, &kind, |out| {
                place(out, &code.id, index);
                write::key(out, field);
                code.code.write(out);
            });
        }
        self.step("code_interpreter_call", "interpreting", &code.id, out);
        self.open = Open::Code(code);
    }

    fn close_code(&mut self, code: &Code, status: Status, out: &mut Vec<u8>) {
        if status == Status::Completed {
            self.step("code_interpreter_call", "completed", &code.id, out);
        }
        self.done(out, |out| code.write(out, status.word()));
        if let Some(sealed) = &code.sealed {
            self.carry(sealed, out);
        }
    }

    /// A search; `action` is its JSON.
    fn web_search(&mut self, action: &[u8], out: &mut Vec<u8>) {
        let id = self.new_id("ws");
        let write_item = |out: &mut Vec<u8>, status: &str| {
            out.push(b'{');
            member(out, "id", &id);
            member(out, "type", "web_search_call");
            member(out, "status", status);
            write::key(out, "action");
            out.extend_from_slice(action);
            out.push(b'}');
        };
        self.added(out, |out| write_item(out, "in_progress"));
        for step in ["in_progress", "searching", "completed"] {
            self.step("web_search_call", step, &id, out);
        }
        self.done(out, |out| write_item(out, "completed"));
    }

    /// Puts an envelope into the open reasoning item, which ends it, or into one of its own.
    fn carry_in_reasoning(&mut self, sealed: String, out: &mut Vec<u8>) {
        match &mut self.open {
            Open::Reasoning(reasoning) if reasoning.sealed.is_none() => {
                reasoning.sealed = Some(sealed);
            }
            Open::Nothing | Open::Message(_) | Open::Reasoning(_) | Open::Code(_) => {
                self.close(Status::Completed, out);
                self.carry(&sealed, out);
            }
        }
    }

    /// A reasoning item that only carries.
    fn carry(&mut self, sealed: &str, out: &mut Vec<u8>) {
        let id = self.new_id("rs");
        let reasoning = Reasoning { id, text: Text::EMPTY, sealed: Some(sealed.to_owned()) };
        self.added(out, |out| reasoning.write_begun(out));
        self.done(out, |out| reasoning.write(out));
    }

    /// Seals; `None` without a known issuer, since then it could not be used.
    fn seal(&mut self, on: Sealed<'_>, issuer: Option<&Issuer>) -> Option<String> {
        let issuer = match issuer {
            Some(issuer) => self.issuer.insert(issuer.clone()).clone(),
            None => self.issuer.clone()?,
        };
        Some(self.sealer.seal(&Envelope { on, issuer }))
    }

    fn new_id(&mut self, prefix: &str) -> String {
        self.names.item(prefix)
    }

    fn added(&mut self, out: &mut Vec<u8>, item: impl FnOnce(&mut Vec<u8>)) {
        let index = self.count;
        self.frames.event(out, "response.output_item.added", |out| {
            number(out, "output_index", index);
            write::key(out, "item");
            item(out);
        });
    }

    fn done(&mut self, out: &mut Vec<u8>, item: impl FnOnce(&mut Vec<u8>)) {
        if !self.items.is_empty() {
            self.items.push(b',');
        }
        let start = self.items.len();
        item(&mut self.items);
        self.places.push(start..self.items.len());
        let (index, done) = (self.count, &self.items[start..]);
        self.frames.event(out, "response.output_item.done", |out| {
            number(out, "output_index", index);
            write::key(out, "item");
            out.extend_from_slice(done);
        });
        self.count += 1;
    }

    /// An event that only says how far something of the server's has come.
    fn step(&mut self, kind: &str, step: &str, id: &str, out: &mut Vec<u8>) {
        let index = self.count;
        let kind = format!("response.{kind}.{step}");
        self.frames.event(out, &kind, |out| place(out, id, index));
    }
}
