//! Calls, whole or in pieces, as the client gets them.

use std::borrow::Cow;
use std::sync::Arc;

use super::names;
use super::partial::Pieces;
use super::turn::Turn;
use super::wire::FunctionCall;
use crate::canon::{Call, CallInput, Event, LossCode, Sink, ToolName};
use crate::json::write::ObjectWriter;
use crate::json::{CowStr, Kind, Raw, Text};
use crate::schema::Checker;
use crate::upstream::generate_content::{AnswerFunction, ToolEntry, ToolInput};

/// A call that is not whole yet.
#[derive(Clone, Debug)]
pub(super) struct OpenCall {
    name: String,
    id: Option<String>,
    signature: Option<Secret>,
    args: Pieces,
    /// Gemini said that more will come (`willContinue`), and that it will say when it has.
    is_streaming: bool,
}

/// A signature on its way; `Debug` does not show it.
#[derive(Clone)]
struct Secret(String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Secret({} characters)", self.0.len())
    }
}

impl OpenCall {
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Whether nothing of it has come but the news that something may.
    pub(super) fn is_idle(&self) -> bool {
        self.name.is_empty() && self.id.is_none() && self.args.is_empty()
    }

    /// Whether `next` goes on with this call.
    fn goes_on_with(&self, next: &FunctionCall<'_>) -> bool {
        let (name, id) = (word(next.name.as_ref()), word(next.id.as_ref()));
        if let (Some(mine), Some(its)) = (self.id.as_deref(), id)
            && mine != its
        {
            return false;
        }
        match name {
            None => true,
            Some(_) if self.name.is_empty() => true,
            // Some back ends repeat the name with every piece.
            Some(name) => {
                let has_pieces = next.partial.as_ref().is_some_and(|it| !it.is_empty());
                self.is_streaming && name == self.name && (id.is_some() || has_pieces)
            }
        }
    }
}

/// A member that says something.
fn word<'t>(key: Option<&'t CowStr<'_>>) -> Option<&'t str> {
    key.map(|it| &*it.0).filter(|it| !it.is_empty())
}

/// Whether a part says nothing.
fn is_idle(call: &FunctionCall<'_>) -> bool {
    word(call.name.as_ref()).is_none()
        && word(call.id.as_ref()).is_none()
        && call.args.is_none()
        && call.partial.as_ref().is_none_or(Vec::is_empty)
}

fn will_continue(call: &FunctionCall<'_>) -> bool {
    let unfinished = |it: &super::wire::PartialArg<'_>| it.will_continue == Some(true);
    call.will_continue == Some(true) || call.partial.iter().flatten().any(unfinished)
}

impl Turn {
    /// Takes a `functionCall` part.
    pub(super) fn call(
        &mut self,
        call: &FunctionCall<'_>,
        signature: Option<&Text<'_>>,
        sink: &mut dyn Sink,
    ) {
        if self.open.as_ref().is_some_and(|open| !open.goes_on_with(call)) {
            self.release(sink);
            if self.open.take().is_some() {
                self.lose("calls".to_owned(), LossCode::CallDropped, "a call without a name");
            }
        }
        if self.open.is_none() && is_idle(call) {
            // The end of a call that was whole already.
            self.text(None, false, signature, sink);
            return;
        }
        let signature = signature.map(Text::decode).filter(|it| !it.is_empty());
        let is_whole = !will_continue(call) && call.partial.as_ref().is_none_or(Vec::is_empty);
        if self.open.is_none()
            && is_whole
            && let Some(name) = word(call.name.as_ref())
            && !self.may_go_on(name, call.args.as_ref())
        {
            let args = match &call.args {
                Some(args) => args.borrowed(),
                None => Raw::empty_object(),
            };
            self.deliver(name, word(call.id.as_ref()), args, signature, sink);
            return;
        }
        self.absorb(call, signature);
        if self
            .open
            .as_ref()
            .is_some_and(|open| !will_continue(call) && !open.name.is_empty() && open.is_streaming)
        {
            self.release(sink);
        }
    }

    /// Whether the rest of a call may come in a part of its own: some back ends send the name with
    /// empty arguments first, and the arguments without a name after it (field case D10).
    fn may_go_on(&self, name: &str, args: Option<&Raw<'_>>) -> bool {
        let inside = |args: &Raw<'_>| {
            Some(args.get().strip_prefix('{')?.strip_suffix('}')?.trim_ascii().len())
        };
        let is_empty = |args: &Raw<'_>| inside(args) == Some(0);
        if args.is_some_and(|args| !is_empty(args)) {
            return false;
        }
        match names::resolve(&self.exchange.tools, name).map(|found| &found.entry.input) {
            Some(ToolInput::Json(checker)) => !checker.accepts(&Raw::empty_object()),
            Some(ToolInput::Freeform) => true,
            None => false,
        }
    }

    fn absorb(&mut self, call: &FunctionCall<'_>, signature: Option<Cow<'_, str>>) {
        let open = self.open.get_or_insert_with(|| OpenCall {
            name: String::new(),
            id: None,
            signature: None,
            args: Pieces::default(),
            is_streaming: false,
        });
        if open.name.is_empty() {
            open.name = word(call.name.as_ref()).unwrap_or_default().to_owned();
        }
        open.id = open.id.take().or_else(|| word(call.id.as_ref()).map(str::to_owned));
        open.signature =
            open.signature.take().or_else(|| signature.map(|it| Secret(it.into_owned())));
        open.is_streaming |= will_continue(call) || call.partial.is_some();
        let misfit = call.args.as_ref().is_some_and(|args| !open.args.merge(args));
        let mut misplaced = false;
        for piece in call.partial.iter().flatten() {
            misplaced |= !open.args.put(piece);
        }
        let at = format!("calls[{}].args", self.calls);
        let tool = Some(open.name.clone());
        if misfit || misplaced {
            let detail = "a piece of the arguments has no place in them; it was left out";
            self.lose_of(at, LossCode::ArgumentViolation, detail, tool);
        }
    }

    /// Something else was said: what might have gone on is over.
    pub(super) fn settle(&mut self, sink: &mut dyn Sink) {
        if self.open.as_ref().is_some_and(|open| !open.is_streaming) {
            self.release(sink);
        }
    }

    /// Gives the open call on, if it has a name.
    pub(super) fn release(&mut self, sink: &mut dyn Sink) {
        let Some(open) = self.open.take_if(|open| !open.name.is_empty()) else { return };
        let signature = open.signature.map(|it| Cow::Owned(it.0));
        self.deliver(&open.name, open.id.as_deref(), open.args.finish(), signature, sink);
    }

    /// Gives a whole call on.
    fn deliver(
        &mut self,
        name: &str,
        id: Option<&str>,
        args: Raw<'_>,
        signature: Option<Cow<'_, str>>,
        sink: &mut dyn Sink,
    ) {
        let exchange = Arc::clone(&self.exchange);
        let found = names::resolve(&exchange.tools, name);
        if let Some(function) = &exchange.answer_function
            && found.as_ref().is_none_or(|found| found.entry.alias == function.name)
            && names::means(name, &function.name)
        {
            if signature.is_some() {
                let detail = "a signature of a call does not fit the text that stands for it";
                self.lose("answer.thoughtSignature".to_owned(), LossCode::Ignored, detail);
            }
            self.answer(found.map(|found| found.entry), function, args, sink);
            return;
        }
        self.take_back(sink);
        let tool = match &found {
            Some(found) => found.entry.name.clone(),
            None => ToolName::plain(name.to_owned()),
        };
        let shown = tool.to_string();
        if exchange.one_call && self.calls > 0 {
            let detail = "the client wants one call at a time";
            self.left_out += 1;
            self.lose_of(
                format!("calls[{}]", self.calls + self.left_out - 1),
                LossCode::CallDropped,
                detail,
                Some(shown),
            );
            return;
        }
        match &found {
            Some(found) if found.is_exact => {}
            Some(_) => {
                let at = format!("calls[{}].name", self.calls);
                let detail = format!("Gemini wrote {name:?}");
                self.lose_of(at, LossCode::NameRepaired, detail, Some(shown.clone()));
            }
            None => {
                let at = format!("calls[{}].name", self.calls);
                let detail = "no such tool was declared";
                self.lose_of(at, LossCode::UnknownTool, detail, Some(shown.clone()));
            }
        }
        let at = format!("calls[{}]", self.calls);
        let input = match found.map(|found| &found.entry.input) {
            Some(ToolInput::Json(checker)) => {
                CallInput::Json(self.checked(checker, args, &at, &shown))
            }
            Some(ToolInput::Freeform) => CallInput::Text(self.freeform(&args, at, &shown)),
            None => CallInput::Json(self.checked(&Checker::default(), args, &at, &shown)),
        };
        self.calls += 1;
        let call = Call {
            id: Cow::Owned(self.ids.call(id)),
            upstream_id: id.map(Cow::Borrowed),
            tool,
            input,
            signature: signature.and_then(|it| self.sign(it)),
        };
        sink.event(&Event::Call(call));
    }

    /// The arguments of the function that stands for a structured answer, or one of them, are the
    /// answer's text.
    fn answer(
        &mut self,
        entry: Option<&ToolEntry>,
        function: &AnswerFunction,
        args: Raw<'_>,
        sink: &mut dyn Sink,
    ) {
        if std::mem::replace(&mut self.has_answered, true) {
            let detail = "the structured answer was given already";
            self.lose("answer".to_owned(), LossCode::CallDropped, detail);
            return;
        }
        let args = match entry {
            Some(ToolEntry { input: ToolInput::Json(checker), alias, .. }) => {
                self.checked(checker, args, "answer", alias)
            }
            Some(ToolEntry { input: ToolInput::Freeform, .. }) | None => args,
        };
        self.has_content = true;
        if !std::mem::take(&mut self.aside).is_empty() {
            self.lose_words();
        }
        let fields = function.argument.and_then(|_| args.fields());
        let inside = function.argument.and_then(|name| fields.as_ref()?.get(name));
        if let (Some(name), None) = (function.argument, inside) {
            let detail = format!("the answer is not in `{name}`; all arguments are given");
            self.lose("answer".to_owned(), LossCode::ArgumentRepaired, detail);
        }
        sink.event(&Event::Text(Text::new(&inside.unwrap_or(&args).compact())));
    }

    fn checked<'a>(
        &mut self,
        checker: &Checker,
        args: Raw<'a>,
        place: &str,
        tool: &str,
    ) -> Raw<'a> {
        let checked = checker.check(args);
        for loss in checked.losses {
            let at = format!("{place}.{}", loss.at);
            self.lose_of(at, loss.code, loss.detail, Some(tool.to_owned()));
        }
        if checked.args.kind() == Kind::Object {
            return checked.args;
        }
        // Clients cannot hold arguments that are no object; the tool reports missing members.
        let mut object = Vec::new();
        ObjectWriter::new(&mut object).json("input", checked.args.get());
        let object = String::from_utf8(object).ok().and_then(Raw::parse);
        object.unwrap_or_else(Raw::empty_object)
    }

    /// Input of a tool that takes text: the argument `input`, or all that the model wrote instead.
    fn freeform(&mut self, args: &Raw<'_>, place: String, tool: &str) -> Text<'static> {
        let owned = |raw: &Raw<'_>| raw.as_text().map(Text::into_owned);
        let fields = args.fields().unwrap_or_default();
        let input = fields.get("input");
        if let Some(text) = input.and_then(owned) {
            return text;
        }
        if fields.0.is_empty() && args.kind() == Kind::Object {
            return Text::EMPTY;
        }
        let at = place + ".args";
        let detail = "expected the text as `input`; took what there was";
        self.lose_of(at, LossCode::ArgumentRepaired, detail, Some(tool.to_owned()));
        if let Some(text) = owned(args) {
            return text;
        }
        if let Some(input) = input {
            return Text::new(&input.compact());
        }
        let mut strings = fields.0.iter().filter_map(|(_, value)| owned(value));
        match (strings.next(), strings.next()) {
            (Some(text), None) => text,
            _ => Text::new(&args.compact()),
        }
    }
}
