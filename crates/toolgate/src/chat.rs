//! A conversation.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::Stream;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use toolgate_core::canon::{FinishReason, Role, Turn};

use crate::run::Run;
use crate::{CallResult, Client, Error, Event, EventStream, Message, Request, Response};

/// A conversation that remembers what was said.
///
/// Two histories are kept. The curated one is what the model is told: whole exchanges only, so that
/// a failed or blocked answer does not poison what follows. The full one has everything.
#[derive(Debug)]
pub struct Chat {
    client: Client,
    /// How each request begins: instructions, tools, settings, and the curated history.
    request: Request,
    full: Vec<Turn<'static>>,
    /// The exchange that waits for results.
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    turns: Vec<Turn<'static>>,
    run: Box<Run>,
}

impl Chat {
    pub(crate) fn new(client: Client, request: Request) -> Self {
        let full = request.canon.turns.clone();
        Self { client, request, full, open: None }
    }

    /// Says something, and gives the answer.
    pub async fn send(&mut self, message: impl Into<Message>) -> Result<Response, Error> {
        let (run, said) = self.begin(message)?;
        let answered = Box::pin(run.finish(false)).await;
        self.end(said, answered)
    }

    /// Says something, and gives the answer as it comes. It is remembered once it was read to its
    /// end.
    pub fn stream(&mut self, message: impl Into<Message>) -> ChatStream<'_> {
        let (stream, said) = match self.begin(message) {
            Ok((run, said)) => (EventStream::new(run), said),
            Err(error) => (EventStream::failed(error), Vec::new()),
        };
        ChatStream { chat: self, stream, said }
    }

    /// Says something, and reads the answer into a type.
    pub async fn send_as<T>(&mut self, message: impl Into<Message>) -> Result<T, Error>
    where
        T: JsonSchema + DeserializeOwned,
    {
        let usual = self.request.canon.output.clone();
        self.request = std::mem::take(&mut self.request).output::<T>();
        let answered = self.send(message).await;
        self.request.canon.output = usual;
        answered?.parse()
    }

    /// Gives the results of the calls that came back, and goes on.
    pub async fn answer(
        &mut self,
        results: impl IntoIterator<Item = CallResult>,
    ) -> Result<Response, Error> {
        let Open { turns, mut run } = self.open.take().ok_or(Error::NothingToResume)?;
        run.resume(results)?;
        let answered = Box::pin(run.finish(false)).await;
        self.end(turns, answered)
    }

    /// Like [`answer`](Self::answer), as a stream.
    pub fn answer_stream(
        &mut self,
        results: impl IntoIterator<Item = CallResult>,
    ) -> ChatStream<'_> {
        let resumed = match self.open.take() {
            Some(Open { turns, mut run }) => run.resume(results).map(|()| (*run, turns)),
            None => Err(Error::NothingToResume),
        };
        let (stream, said) = match resumed {
            Ok((run, turns)) => (EventStream::new(run), turns),
            Err(error) => (EventStream::failed(error), Vec::new()),
        };
        ChatStream { chat: self, stream, said }
    }

    /// What the model is told of the conversation so far.
    pub fn history(&self) -> &[Turn<'static>] {
        &self.request.canon.turns
    }

    /// All that was said, failed and blocked answers included.
    pub fn full_history(&self) -> &[Turn<'static>] {
        &self.full
    }

    /// How each request begins, to be changed: instructions, tools, settings.
    pub fn request_mut(&mut self) -> &mut Request {
        &mut self.request
    }

    /// A request with what was said so far, and the turns that are new in it.
    fn begin(&mut self, message: impl Into<Message>) -> Result<(Run, Vec<Turn<'static>>), Error> {
        let mut said = Vec::new();
        if let Some(Open { turns, run }) = self.open.take() {
            // Nobody will answer these calls any more; the model is told so.
            said = turns;
            let given_up = run.give_up();
            self.full.extend_from_slice(&given_up);
            said.extend(given_up);
        }
        let turn = message.into().into_turn(Role::User);
        self.full.push(turn.clone());
        said.push(turn);
        let mut request = self.request.clone();
        request.canon.turns.extend_from_slice(&said);
        // The history is what a conversation is for.
        request.automatic.keep_history = true;
        Ok((Run::new(self.client.clone(), request)?, said))
    }

    fn end(
        &mut self,
        mut said: Vec<Turn<'static>>,
        answered: Result<Response, Error>,
    ) -> Result<Response, Error> {
        match answered {
            Ok(mut response) => {
                self.remember(&mut said, &mut response);
                Ok(response)
            }
            Err(error) => {
                if let Error::Cancelled { history } | Error::Failed { history, .. } = &error {
                    self.full.extend_from_slice(history);
                }
                Err(error)
            }
        }
    }

    fn remember(&mut self, said: &mut Vec<Turn<'static>>, response: &mut Response) {
        self.full.extend_from_slice(&response.history);
        let mut turns = std::mem::take(said);
        turns.extend_from_slice(&response.history);
        if let Some(run) = response.run.take() {
            self.open = Some(Open { turns, run });
            return;
        }
        let blocked = matches!(response.finish_reason(), FinishReason::Blocked(_));
        let is_whole = turns.last().is_some_and(|turn| turn.role == Role::Model);
        if is_whole && !blocked {
            self.request.canon.turns.append(&mut turns);
        }
        if !self.request.automatic.keep_history {
            response.history.clear();
        }
    }
}

/// An answer of a conversation, as it comes.
#[derive(Debug)]
pub struct ChatStream<'a> {
    chat: &'a mut Chat,
    stream: EventStream,
    said: Vec<Turn<'static>>,
}

impl ChatStream<'_> {
    /// The next event; `None` after the last.
    pub async fn next(&mut self) -> Option<Result<Event, Error>> {
        std::future::poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }
}

impl Stream for ChatStream<'_> {
    type Item = Result<Event, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        let next = std::task::ready!(Pin::new(&mut this.stream).poll_next(context));
        Poll::Ready(match next {
            Some(Ok(Event::Finished(mut response))) => {
                this.chat.remember(&mut this.said, &mut response);
                Some(Ok(Event::Finished(response)))
            }
            Some(Err(error)) => {
                let said = std::mem::take(&mut this.said);
                this.chat.end(said, Err(error)).err().map(Err)
            }
            other => other,
        })
    }
}
