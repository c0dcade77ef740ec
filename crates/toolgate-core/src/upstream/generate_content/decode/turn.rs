//! One answer in the making: chunks in, events out.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::activity::{CODE, CODE_RESULT, TOOL_CALL, TOOL_RESPONSE, decode_activity};
use super::call::OpenCall;
use super::imitation::Imitation;
use super::wire::{Candidate, Chunk, Part, raw_parts};
use crate::canon::{
    Answer, Assembler, Event, Failure, IdGen, Loss, LossCode, Losses, Media, MediaSource,
    Signature, Sink, Start, Usage,
};
use crate::json::{self, CowStr, Kind, Raw, ReadError, Text};
use crate::upstream::generate_content::Exchange;
use crate::upstream::generate_content::fail::failure_in_stream;

/// Maximum number of losses up to which the first fault of each call is kept.
const MAX_FAULTY_CALLS: usize = 1024;
/// Maximum number of candidates; Gemini gives no more.
const MAX_CANDIDATES: u64 = 8;
/// The most grounding objects that are kept for the end.
const MAX_GROUNDING: usize = 256;

/// State of an answer that is being decoded.
#[derive(Clone, Debug)]
pub(super) struct Turn {
    pub(super) exchange: Arc<Exchange>,
    pub(super) ids: IdGen,
    is_started: bool,
    is_ended: bool,
    /// From chunks that came before the first one worth an event.
    response_id: Option<String>,
    model_version: Option<String>,
    pub(super) usage: Usage,
    /// Tokens of the pieces before this one, where Gemini was asked to go on.
    before: Usage,
    /// Token by which Gemini continues the answer.
    pub(super) continuation: Option<String>,
    /// The last `finishReason`.
    pub(super) reason: Option<String>,
    pub(super) message: Option<String>,
    /// Why the prompt was refused.
    pub(super) blocked: Option<String>,
    /// A word that can be seen has been said, a medium shown, or something done by Gemini itself.
    pub(super) has_content: bool,
    /// The function that stands for a structured answer was called.
    pub(super) has_answered: bool,
    /// How many calls were given on.
    pub(super) calls: usize,
    /// How many calls more there were than the client wants.
    pub(super) left_out: usize,
    /// The call that is not whole yet.
    pub(super) open: Option<OpenCall>,
    /// Words of a turn whose answer may be a function's arguments: then they are no part of it.
    pub(super) aside: Vec<Event<'static>>,
    pub(super) grounding: Vec<Raw<'static>>,
    /// Other members of the candidate, for clients that speak Gemini.
    pub(super) metadata: Vec<(Cow<'static, str>, Raw<'static>)>,
    pub(super) imitation: Imitation,
    /// The candidates beside the first, by index.
    others: BTreeMap<u64, Other>,
    pub(super) losses: Losses,
    /// The last call whose fault is among the losses.
    faulty: Option<usize>,
}

/// A candidate beside the first, which is put together until the answer ends.
#[derive(Clone, Debug)]
struct Other {
    turn: Turn,
    answer: Assembler,
}

impl Turn {
    pub(super) fn new(exchange: Arc<Exchange>, ids: IdGen) -> Self {
        Self {
            exchange,
            ids,
            is_started: false,
            is_ended: false,
            response_id: None,
            model_version: None,
            usage: Usage::default(),
            before: Usage::default(),
            continuation: None,
            reason: None,
            message: None,
            blocked: None,
            has_content: false,
            has_answered: false,
            calls: 0,
            left_out: 0,
            open: None,
            aside: Vec::new(),
            grounding: Vec::new(),
            metadata: Vec::new(),
            imitation: Imitation::default(),
            others: BTreeMap::new(),
            losses: Losses::new(),
            faulty: None,
        }
    }

    pub(super) fn is_ended(&self) -> bool {
        self.is_ended
    }

    pub(super) fn fail(&mut self, failure: Failure, sink: &mut dyn Sink) {
        self.end(&Event::Fail(failure), sink);
    }

    pub(super) fn end(&mut self, event: &Event<'_>, sink: &mut dyn Sink) {
        self.is_ended = true;
        sink.event(event);
    }

    /// Leaves the answer open where Gemini has stopped in the middle of it and can continue. Returns
    /// the token for the next request, whose answer belongs to this one.
    pub(super) fn pause(&mut self) -> Option<String> {
        if self.blocked.is_some() || self.reason.as_deref() != Some(CONTINUATION) {
            return None;
        }
        let token = self.continuation.take()?;
        self.reason = None;
        self.message = None;
        self.before.add(&std::mem::take(&mut self.usage));
        Some(token)
    }

    /// Tokens of the whole answer.
    pub(super) fn spent(&self) -> Usage {
        let mut spent = self.before;
        spent.add(&self.usage);
        spent
    }

    /// Takes one chunk.
    pub(super) fn chunk(&mut self, json: &str, sink: &mut dyn Sink) -> Result<(), ReadError> {
        let mut chunk: Chunk<'_> = json::parse(json)?;
        if let Some(error) = &chunk.error {
            self.fail(failure_in_stream(error.get(), json), sink);
            return Ok(());
        }
        if let Some(counts) = &chunk.usage {
            self.usage.merge(&counts.usage());
        }
        self.unknown("", &chunk.unknown);
        let blocked = chunk.feedback.as_ref().and_then(|feedback| {
            let reason = &feedback.reason.as_ref()?.0;
            let is_named = !reason.is_empty() && !reason.ends_with("_UNSPECIFIED");
            let message = || feedback.message.as_ref().map(|it| it.decode().into_owned());
            is_named.then(|| (reason.to_string(), message()))
        });
        let candidates = chunk.candidates.take().unwrap_or_default();
        if candidates.is_empty() && blocked.is_none() {
            self.remember(&chunk);
            return Ok(());
        }
        self.start(&chunk, sink);
        if let Some((reason, message)) = blocked {
            self.blocked = Some(reason);
            self.message = message;
        }
        let written = OnceCell::new();
        for (position, candidate) in candidates.into_iter().enumerate() {
            let index = candidate.index.as_ref().map_or(position as u64, |it| it.0);
            if index == 0 {
                let raw = |part: usize| {
                    let parts = written.get_or_init(|| raw_parts(json)).get(position)?;
                    parts.get(part).map(Raw::borrowed)
                };
                self.candidate(candidate, &raw, sink);
            } else if index < MAX_CANDIDATES {
                let raw = |part: usize| {
                    let parts = written.get_or_init(|| raw_parts(json)).get(position)?;
                    parts.get(part).map(Raw::borrowed)
                };
                let mut other = self.others.remove(&index).unwrap_or_else(|| self.other(index));
                // One source of ids, so that the calls of all candidates differ.
                other.turn.ids = self.ids.clone();
                other.turn.start(&chunk, &mut other.answer);
                other.turn.candidate(candidate, &raw, &mut other.answer);
                self.ids = other.turn.ids.clone();
                self.others.insert(index, other);
            } else {
                let at = format!("candidates[{index}]");
                self.lose(at, LossCode::PartDropped, "more candidates than Gemini gives");
            }
        }
        Ok(())
    }

    /// A candidate beside the first.
    fn other(&mut self, index: u64) -> Other {
        let detail = "a further candidate; only Chat and Gemini clients get it";
        self.lose(format!("candidates[{index}]"), LossCode::PartDropped, detail);
        let turn = Self::new(Arc::clone(&self.exchange), self.ids.clone());
        Other { turn, answer: Assembler::default() }
    }

    /// Ends the other candidates and returns those that are whole.
    pub(super) fn conclude_others(&mut self) -> Vec<Answer> {
        let mut answers = Vec::new();
        for (index, mut other) in std::mem::take(&mut self.others) {
            if !other.turn.is_ended() {
                other.turn.conclude(&mut other.answer);
            }
            match other.answer.finish() {
                Ok(answer) => answers.push(answer),
                Err(failure) => {
                    let at = format!("candidates[{index}]");
                    self.lose(at, LossCode::PartDropped, failure.message);
                }
            }
        }
        answers
    }

    fn remember(&mut self, chunk: &Chunk<'_>) {
        let owned = |text: &Option<CowStr<'_>>| text.as_ref().map(|it| it.0.clone().into_owned());
        if !self.is_started {
            self.response_id = owned(&chunk.response_id).or_else(|| self.response_id.take());
            self.model_version = owned(&chunk.model_version).or_else(|| self.model_version.take());
        }
    }

    fn start(&mut self, chunk: &Chunk<'_>, sink: &mut dyn Sink) {
        if self.is_started {
            return;
        }
        self.remember(chunk);
        self.is_started = true;
        sink.event(&Event::Start(Start {
            response_id: self.response_id.take().map(Cow::Owned),
            model_version: self.model_version.take().map(Cow::Owned),
            usage: self.usage,
        }));
    }

    fn candidate<'c>(
        &mut self,
        read: Candidate<'c>,
        raw: &dyn Fn(usize) -> Option<Raw<'c>>,
        sink: &mut dyn Sink,
    ) {
        let mut content = read.content;
        let parts = content.as_mut().and_then(|it| it.parts.take()).unwrap_or_default();
        for (index, part) in parts.into_iter().enumerate() {
            if let Some(part) = part {
                self.part(part, &|| raw(index), sink);
            }
        }
        if let Some(content) = &content {
            self.unknown("candidates[0].content.", &content.unknown);
        }
        self.unknown("candidates[0].", &read.unknown);
        self.keep_metadata(&read.unknown);
        if let Some(grounding) = &read.grounding
            && self.grounding.len() < MAX_GROUNDING
            && !self.grounding.contains(grounding)
        {
            self.grounding.push(grounding.clone().into_owned());
        }
        if let Some(token) = read.continuation.filter(|it| !it.is_empty()) {
            self.continuation = Some(token.decode().into_owned());
        }
        if let Some(reason) = &read.finish_reason {
            let reason = &reason.0;
            if !reason.is_empty() && reason != "FINISH_REASON_UNSPECIFIED" {
                self.reason = Some(reason.to_string());
                self.message = read.finish_message.as_ref().map(|it| it.decode().into_owned());
            }
        }
    }

    fn part<'c>(
        &mut self,
        mut part: Part<'c>,
        raw: &dyn Fn() -> Option<Raw<'c>>,
        sink: &mut dyn Sink,
    ) {
        let thought = part.thought == Some(true);
        let is_media = part.inline.is_some() || part.file.is_some();
        if is_media {
            self.text(part.text.take(), thought, None, sink);
            self.settle(sink);
            self.media(part, sink);
            return;
        }
        let kind = part.unknown.iter().position(|(name, _)| !MODIFIERS.contains(&&**name));
        if part.text.is_none()
            && part.call.is_none()
            && let Some(kind) = kind
            && let Some(raw) = raw()
        {
            let (name, body) = part.unknown.swap_remove(kind);
            let kind = camel_case(name);
            if SERVER_KINDS.contains(&&*kind) && body.kind() != Kind::Object {
                let at = format!("candidates[0].content.parts.{kind}");
                self.lose(at, LossCode::PartDropped, "not an object; it was left out");
                return;
            }
            self.settle(sink);
            self.has_content = true;
            let issuer = Some(self.exchange.target.issuer());
            sink.event(&Event::Server(decode_activity(kind, body, raw, issuer)));
            return;
        }
        self.unknown("candidates[0].content.parts.", &part.unknown);
        let call = part.call.take();
        let signature = part.signature.take();
        let (on_call, on_text) = if call.is_some() { (signature, None) } else { (None, signature) };
        self.text(part.text.take(), thought, on_text.as_ref(), sink);
        if let Some(call) = call {
            self.call(&call, on_call.as_ref(), sink);
        }
    }

    pub(super) fn text(
        &mut self,
        text: Option<Text<'_>>,
        thought: bool,
        signature: Option<&Text<'_>>,
        sink: &mut dyn Sink,
    ) {
        let mut len = 0;
        if let Some(text) = text.filter(|it| !it.is_empty()) {
            self.settle(sink);
            if signature.is_some() {
                len = text.decode().len();
            }
            if thought {
                sink.event(&Event::Thought(text));
            } else {
                self.has_content = self.has_content || !is_invisible(&text);
                self.imitation.feed(&text);
                self.say(Event::Text(text), sink);
            }
        }
        let signature = signature.map(Text::decode);
        if let Some(signature) = signature.and_then(|it| self.sign(it)) {
            self.settle(sink);
            let event = Event::Signature { thought, len, signature };
            if thought {
                sink.event(&event);
            } else {
                self.say(event, sink);
            }
        }
    }

    /// Gives words on, or puts them aside where an answer of another kind may follow.
    fn say(&mut self, event: Event<'_>, sink: &mut dyn Sink) {
        match (&self.exchange.answer_function, self.has_answered) {
            (None, _) => sink.event(&event),
            (Some(_), false) => self.aside.push(event.into_owned()),
            (Some(_), true) => self.lose_words(),
        }
    }

    /// A structured answer is all that its client can read.
    pub(super) fn lose_words(&mut self) {
        let detail = "words beside a structured answer were left out";
        self.lose("text".to_owned(), LossCode::PartDropped, detail);
    }

    /// No answer of another kind follows: the words are part of the turn.
    pub(super) fn take_back(&mut self, sink: &mut dyn Sink) {
        for event in std::mem::take(&mut self.aside) {
            sink.event(&event);
        }
    }

    fn media(&mut self, part: Part<'_>, sink: &mut dyn Sink) {
        let (mime, source, name) = match (part.inline, part.file) {
            (Some(blob), _) => (blob.mime, blob.data.map(MediaSource::Inline), blob.name),
            (None, Some(file)) => (file.mime, file.uri.map(MediaSource::Uri), file.name),
            (None, None) => (None, None, None),
        };
        let Some(source) = source else {
            let at = "candidates[0].content.parts".to_owned();
            self.lose(at, LossCode::PartDropped, "a medium without bytes or address");
            return;
        };
        self.has_content = true;
        let mut modifiers = part.unknown;
        let literal = |text: &Text<'_>| Raw::parse(text.literal().to_owned());
        if let Some(signature) = part.signature.as_ref().and_then(literal) {
            modifiers.push((Cow::Borrowed("thoughtSignature"), signature));
        }
        if part.thought == Some(true)
            && let Some(thought) = Raw::parse("true".to_owned())
        {
            modifiers.push((Cow::Borrowed("thought"), thought));
        }
        let (mime, name) = (mime.map(|it| it.0), name.map(|it| it.0));
        sink.event(&Event::Media(Media { mime, source, name, modifiers }));
    }

    /// A signature of the model that was asked.
    pub(super) fn sign<'s>(&self, value: impl Into<Cow<'s, str>>) -> Option<Signature<'s>> {
        Signature::new(value, Some(self.exchange.target.issuer()))
    }

    /// Notes a loss once.
    pub(super) fn lose(&mut self, at: String, code: LossCode, detail: impl Into<String>) {
        self.lose_of(at, code, detail, None);
    }

    /// Notes a loss of a tool's once.
    pub(super) fn lose_of(
        &mut self,
        at: String,
        code: LossCode,
        detail: impl Into<String>,
        tool: Option<String>,
    ) {
        let known = |it: &Loss| it.code == code && it.at == at;
        if self.losses.iter().any(known) {
            return;
        }
        let loss = || Loss { at, code, detail: detail.into(), tool };
        // The tool loop decides by these what becomes of a call.
        let decides = matches!(code, LossCode::ArgumentViolation | LossCode::UnknownTool);
        if decides && self.faulty != Some(self.calls) && self.losses.len() < MAX_FAULTY_CALLS {
            self.faulty = Some(self.calls);
            self.losses.keep(loss());
        } else {
            self.losses.add_with(code, loss);
        }
    }

    pub(super) fn broken_unicode(&mut self) {
        let detail = "bytes that are no UTF-8 became U+FFFD";
        self.lose("candidates".to_owned(), LossCode::Changed, detail);
    }

    /// Keeps what only Gemini's own clients read. Later ones add to earlier ones.
    fn keep_metadata(&mut self, members: &[(Cow<'_, str>, Raw<'_>)]) {
        for (name, value) in members.iter().filter(|(name, _)| METADATA.contains(&&**name)) {
            let known = |(kept, said): &(Cow<'_, str>, Raw<'_>)| kept == name && said == value;
            if value.kind() == Kind::Object
                && self.metadata.len() < MAX_GROUNDING
                && !self.metadata.iter().any(known)
            {
                let name = Cow::Owned(name.clone().into_owned());
                self.metadata.push((name, value.clone().into_owned()));
            }
        }
    }

    fn unknown(&mut self, at: &str, members: &[(Cow<'_, str>, Raw<'_>)]) {
        for (name, value) in members {
            if value.get() == "null" {
                continue;
            }
            let (code, detail) = if METADATA.contains(&&**name) {
                (LossCode::Ignored, "only clients that speak Gemini are given this")
            } else {
                (LossCode::UnknownField, "toolgate does not know this field; it was left out")
            };
            self.lose(format!("{at}{name}"), code, detail);
        }
    }
}

/// Members that describe a part and are not its content.
const MODIFIERS: [&str; 12] = [
    "videoMetadata",
    "video_metadata",
    "mediaResolution",
    "media_resolution",
    "mediaProcessing",
    "media_processing",
    "partMetadata",
    "part_metadata",
    "audioTranscription",
    "audio_transcription",
    "speechMetadata",
    "speech_metadata",
];

/// Members of a candidate that only Gemini's own clients read.
const METADATA: [&str; 3] = ["citationMetadata", "logprobsResult", "urlContextMetadata"];

/// The finish reason of an answer that can go on.
pub(super) const CONTINUATION: &str = "CONTINUATION";

/// Members of parts in which Gemini reports its own steps, as far as this version knows them.
const SERVER_KINDS: [&str; 4] = [CODE, CODE_RESULT, TOOL_CALL, TOOL_RESPONSE];

/// The kind's name as Google writes it.
fn camel_case(name: Cow<'_, str>) -> Cow<'_, str> {
    match &*name {
        "executable_code" => Cow::Borrowed(CODE),
        "code_execution_result" => Cow::Borrowed(CODE_RESULT),
        "tool_call" => Cow::Borrowed(TOOL_CALL),
        "tool_response" => Cow::Borrowed(TOOL_RESPONSE),
        _ => name,
    }
}

/// White space and characters without width only (field case H2).
fn is_invisible(text: &Text<'_>) -> bool {
    text.decode().chars().all(|it| {
        it.is_whitespace()
            || matches!(it, '\u{200B}'..='\u{200F}' | '\u{2060}'..='\u{2064}' | '\u{FEFF}' | '\u{AD}')
    })
}
