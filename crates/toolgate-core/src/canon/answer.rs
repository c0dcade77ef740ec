//! An answer put together from its events.

use std::borrow::Cow;
use std::ops::Deref;

use super::{
    Call, Event, Failure, Finish, Grounding, Media, ServerActivity, Signature, Sink, Start,
};
use crate::json::Text;

/// A whole answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// Its start.
    pub start: Start<'static>,
    /// Its content, in order.
    pub items: Vec<Item>,
    /// Its end.
    pub finish: Finish,
}

/// A piece of an answer: events with their deltas joined.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// A run of text.
    Text(Text<'static>),
    /// A run of thought.
    Thought(Text<'static>),
    /// The signature of the last `len` bytes of the run before it.
    Signature {
        /// `true`: of a thought.
        thought: bool,
        /// How many bytes of decoded text.
        len: usize,
        /// The signature.
        signature: Signature<'static>,
    },
    /// A call.
    Call(Call<'static>),
    /// A picture or other medium.
    Media(Media<'static>),
    /// A step that Gemini took itself.
    Server(ServerActivity<'static>),
    /// Sources of the answer.
    Grounding(Grounding),
}

impl Answer {
    /// The calls, in order.
    pub fn calls(&self) -> impl Iterator<Item = &Call<'static>> {
        self.items.iter().filter_map(|item| match item {
            Item::Call(call) => Some(call),
            Item::Text(_)
            | Item::Thought(_)
            | Item::Signature { .. }
            | Item::Media(_)
            | Item::Server(_)
            | Item::Grounding(_) => None,
        })
    }

    /// The calls with the signatures that are theirs.
    pub fn call_log(&self) -> CallLog {
        let mut log = CallLog::default();
        for item in &self.items {
            match item {
                Item::Call(call) => log.call(call.clone()),
                Item::Signature { thought: false, len, signature } => {
                    log.signature(*len, signature);
                }
                Item::Text(_)
                | Item::Thought(_)
                | Item::Signature { .. }
                | Item::Media(_)
                | Item::Server(_)
                | Item::Grounding(_) => log.is_behind = false,
            }
        }
        log
    }

    /// Whether the model called anything.
    pub fn has_calls(&self) -> bool {
        self.calls().next().is_some()
    }

    /// The answer's words, thoughts left out.
    pub fn text(&self) -> String {
        self.items
            .iter()
            .filter_map(|item| match item {
                Item::Text(text) => Some(text.decode()),
                Item::Thought(_)
                | Item::Signature { .. }
                | Item::Call(_)
                | Item::Media(_)
                | Item::Server(_)
                | Item::Grounding(_) => None,
            })
            .collect()
    }
}

/// The calls of an answer as they come, with the signatures that are theirs: one that comes right
/// behind them on an empty part belongs to the first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallLog {
    calls: Vec<Call<'static>>,
    is_behind: bool,
}

impl CallLog {
    fn call(&mut self, call: Call<'static>) {
        self.calls.push(call);
        self.is_behind = true;
    }

    fn signature(&mut self, len: usize, signature: &Signature<'_>) {
        let is_theirs = len == 0 && std::mem::take(&mut self.is_behind);
        if is_theirs && self.calls.iter().all(|call| call.signature.is_none()) {
            let first = self.calls.first_mut();
            first
                .into_iter()
                .for_each(|call| call.signature = Some(signature.clone().into_owned()));
        }
    }
}

impl Sink for CallLog {
    fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::Call(call) => self.call(call.clone().into_owned()),
            Event::Signature { thought: false, len, signature } => self.signature(*len, signature),
            Event::Start(_)
            | Event::Text(_)
            | Event::Thought(_)
            | Event::Signature { .. }
            | Event::Media(_)
            | Event::Server(_)
            | Event::Grounding(_)
            | Event::Finish(_)
            | Event::Fail(_) => self.is_behind = false,
        }
    }
}

impl Deref for CallLog {
    type Target = [Call<'static>];

    fn deref(&self) -> &Self::Target {
        &self.calls
    }
}

/// Puts an [`Answer`] together.
#[derive(Clone, Debug, Default)]
pub struct Assembler {
    answer: Answer,
    end: Option<Result<(), Failure>>,
    joinable: bool,
}

impl Assembler {
    /// The whole answer, or why there is none.
    pub fn finish(self) -> Result<Answer, Failure> {
        match self.end {
            Some(Ok(())) => Ok(self.answer),
            Some(Err(failure)) => Err(failure),
            None => Err(Failure::new(
                super::FailureKind::Cut,
                "the upstream closed the stream before it finished",
            )),
        }
    }
}

impl Sink for Assembler {
    fn event(&mut self, event: &Event<'_>) {
        let joinable = std::mem::replace(
            &mut self.joinable,
            matches!(event, Event::Text(_) | Event::Thought(_)),
        );
        let last = if joinable { self.answer.items.last_mut() } else { None };
        let item = match (event, last) {
            (Event::Text(more), Some(Item::Text(text)))
            | (Event::Thought(more), Some(Item::Thought(text))) => {
                text.push(more);
                return;
            }
            (Event::Start(start), _) => {
                self.answer.start = start.clone().into_owned();
                return;
            }
            (Event::Finish(finish), _) => {
                self.answer.finish = finish.clone();
                self.end = Some(Ok(()));
                return;
            }
            (Event::Fail(failure), _) => {
                self.end = Some(Err(failure.clone()));
                return;
            }
            (Event::Text(text), _) => Item::Text(text.clone().into_owned()),
            (Event::Thought(text), _) => Item::Thought(text.clone().into_owned()),
            (Event::Signature { thought, len, signature }, _) => Item::Signature {
                thought: *thought,
                len: *len,
                signature: signature.clone().into_owned(),
            },
            (Event::Call(call), _) => Item::Call(call.clone().into_owned()),
            (Event::Media(media), _) => Item::Media(media.clone().into_owned()),
            (Event::Server(activity), _) => Item::Server(activity.clone().into_owned()),
            (Event::Grounding(grounding), _) => Item::Grounding(grounding.clone()),
        };
        self.answer.items.push(item);
    }
}

impl Event<'_> {
    /// A copy that owns everything.
    pub fn into_owned(self) -> Event<'static> {
        match self {
            Self::Start(start) => Event::Start(start.into_owned()),
            Self::Text(text) => Event::Text(text.into_owned()),
            Self::Thought(text) => Event::Thought(text.into_owned()),
            Self::Signature { thought, len, signature } => {
                Event::Signature { thought, len, signature: signature.into_owned() }
            }
            Self::Call(call) => Event::Call(call.into_owned()),
            Self::Media(media) => Event::Media(media.into_owned()),
            Self::Server(activity) => Event::Server(activity.into_owned()),
            Self::Grounding(grounding) => Event::Grounding(grounding),
            Self::Finish(finish) => Event::Finish(finish),
            Self::Fail(failure) => Event::Fail(failure),
        }
    }
}

impl Start<'_> {
    /// A copy that owns its strings.
    pub fn into_owned(self) -> Start<'static> {
        Start {
            response_id: self.response_id.map(|it| Cow::Owned(it.into_owned())),
            model_version: self.model_version.map(|it| Cow::Owned(it.into_owned())),
            usage: self.usage,
        }
    }
}

impl Media<'_> {
    /// A copy that owns its strings.
    pub fn into_owned(self) -> Media<'static> {
        use super::MediaSource;
        Media {
            mime: self.mime.map(|it| Cow::Owned(it.into_owned())),
            source: match self.source {
                MediaSource::Inline(data) => MediaSource::Inline(data.into_owned()),
                MediaSource::Uri(uri) => MediaSource::Uri(uri.into_owned()),
            },
            name: self.name.map(|it| Cow::Owned(it.into_owned())),
            modifiers: self
                .modifiers
                .into_iter()
                .map(|(key, raw)| (Cow::Owned(key.into_owned()), raw.into_owned()))
                .collect(),
        }
    }
}
