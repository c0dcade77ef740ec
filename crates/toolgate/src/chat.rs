//! Conversations.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::Stream;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use toolgate_core::canon::{FinishReason, Role, Turn};

use crate::run::Run;
use crate::saved::OpenedChat;
use crate::structured::correction;
use crate::{
    Call, CallResult, Client, Error, Event, EventStream, Message, Request, Response, SavedChat,
    Typed,
};

/// A conversation with its history.
///
/// Two histories are kept. The curated one is sent to the model: complete exchanges only, so that a
/// failed or blocked answer does not affect later ones. The full one also has failed and blocked
/// exchanges.
#[derive(Debug)]
pub struct Chat {
    client: Client,
    /// Template of each request: instructions, tools, settings, and the curated history.
    request: Request,
    full: Vec<Turn<'static>>,
    /// The exchange that waits for results of calls.
    open: Option<OpenExchange>,
}

#[derive(Debug)]
struct OpenExchange {
    turns: Vec<Turn<'static>>,
    run: Box<Run>,
}

impl Chat {
    pub(crate) fn new(client: Client, request: Request) -> Self {
        let full = request.canon.turns.clone();
        Self { client, request, full, open: None }
    }

    /// Restores a saved conversation.
    pub(crate) fn restore(
        client: Client,
        request: Request,
        saved: SavedChat,
    ) -> Result<Self, Error> {
        let OpenedChat { history, full, open } = saved.read()?;
        let mut chat = Self::new(client.clone(), request);
        chat.request.canon.turns = history;
        chat.full = full;
        if let Some((turns, run)) = open {
            let response = Run::restore(client, chat.request.clone(), &run)?;
            chat.open = response.run.map(|run| OpenExchange { turns, run });
        }
        Ok(chat)
    }

    /// Sends a message and returns the answer.
    pub async fn send(&mut self, message: impl Into<Message>) -> Result<Response, Error> {
        let (run, new_turns) = self.begin(message)?;
        let answered = Box::pin(run.finish(false)).await;
        self.end(new_turns, answered)
    }

    /// Sends a message and streams the answer. The exchange enters the history when the stream is read
    /// to its end.
    pub fn stream(&mut self, message: impl Into<Message>) -> ChatStream<'_> {
        let (stream, new_turns) = match self.begin(message) {
            Ok((run, new_turns)) => (EventStream::new(run), new_turns),
            Err(error) => (EventStream::failed(error), Vec::new()),
        };
        ChatStream { chat: self, stream, new_turns }
    }

    /// Sends a message and parses the answer as `T`. [`Request::output_retries`] of the template says how
    /// often the model may correct an answer that does not parse.
    pub async fn send_as<T>(&mut self, message: impl Into<Message>) -> Result<Typed<T>, Error>
    where
        T: JsonSchema + DeserializeOwned,
    {
        let previous = self.request.canon.output.clone();
        self.request = std::mem::take(&mut self.request).output::<T>();
        let answered = self.send_typed(message.into()).await;
        self.request.canon.output = previous;
        answered
    }

    async fn send_typed<T: DeserializeOwned>(
        &mut self,
        message: Message,
    ) -> Result<Typed<T>, Error> {
        let mut response = self.send(message).await?;
        let mut left = self.request.output_retries;
        loop {
            match response.parse() {
                Ok(value) => return Ok(Typed { value, response }),
                Err(Error::Output { reason, .. }) if left > 0 && !response.has_calls() => {
                    left -= 1;
                    response = self.send(correction(&reason)).await?.after(response);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Sends the results of the returned calls and returns the answer.
    pub async fn answer(
        &mut self,
        results: impl IntoIterator<Item = CallResult>,
    ) -> Result<Response, Error> {
        let OpenExchange { turns, mut run } = self.open.take().ok_or(Error::NothingToResume)?;
        run.resume(results)?;
        let answered = Box::pin(run.finish(false)).await;
        self.end(turns, answered)
    }

    /// Streaming variant of [`answer`](Self::answer).
    pub fn answer_stream(
        &mut self,
        results: impl IntoIterator<Item = CallResult>,
    ) -> ChatStream<'_> {
        let resumed = match self.open.take() {
            Some(OpenExchange { turns, mut run }) => run.resume(results).map(|()| (*run, turns)),
            None => Err(Error::NothingToResume),
        };
        let (stream, new_turns) = match resumed {
            Ok((run, turns)) => (EventStream::new(run), turns),
            Err(error) => (EventStream::failed(error), Vec::new()),
        };
        ChatStream { chat: self, stream, new_turns }
    }

    /// Saves the conversation, with every signature and with calls that wait for results. It can go on in
    /// another process: [`Client::resume_chat`].
    ///
    /// ```
    /// # async fn later(client: toolgate::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// use toolgate::{Request, SavedChat};
    ///
    /// let mut chat = client.chat(Request::default().system("Be brief."));
    /// chat.send("My name is Ada.").await?;
    /// let saved = serde_json::to_string(&chat.save()?)?;
    ///
    /// // Tomorrow, in another process.
    /// let saved: SavedChat = serde_json::from_str(&saved)?;
    /// let mut chat = client.resume_chat(saved, Request::default().system("Be brief."))?;
    /// chat.send("What is my name?").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn save(&self) -> Result<SavedChat, Error> {
        let open = match &self.open {
            Some(OpenExchange { turns, run }) => Some((&turns[..], run.save()?)),
            None => None,
        };
        SavedChat::new(self.history(), &self.full, open)
    }

    /// Calls that wait for results, for [`answer`](Self::answer).
    pub fn open_calls(&self) -> Vec<Call> {
        self.open.as_ref().map(|open| open.run.open_calls()).unwrap_or_default()
    }

    /// The curated history, which is sent to the model.
    pub fn history(&self) -> &[Turn<'static>] {
        &self.request.canon.turns
    }

    /// The full history, with failed and blocked answers.
    pub fn full_history(&self) -> &[Turn<'static>] {
        &self.full
    }

    /// Mutable access to the template of requests: instructions, tools, settings.
    pub fn request_mut(&mut self) -> &mut Request {
        &mut self.request
    }

    /// Creates the run for a message. Returns it with the turns that are new in it.
    fn begin(&mut self, message: impl Into<Message>) -> Result<(Run, Vec<Turn<'static>>), Error> {
        let mut new_turns = Vec::new();
        if let Some(OpenExchange { turns, run }) = self.open.take() {
            // The open calls get error results, because their own will never come.
            new_turns = turns;
            let abandoned = run.abandon();
            self.full.extend_from_slice(&abandoned);
            new_turns.extend(abandoned);
        }
        let turn = message.into().into_turn(Role::User);
        self.full.push(turn.clone());
        new_turns.push(turn);
        let mut request = self.request.clone();
        request.canon.turns.extend_from_slice(&new_turns);
        request.automatic.keep_history = true;
        Ok((Run::new(self.client.clone(), request)?, new_turns))
    }

    fn end(
        &mut self,
        mut new_turns: Vec<Turn<'static>>,
        answered: Result<Response, Error>,
    ) -> Result<Response, Error> {
        match answered {
            Ok(mut response) => {
                self.remember(&mut new_turns, &mut response);
                Ok(response)
            }
            Err(error) => {
                if let Error::Cancelled { history }
                | Error::Failed { history, .. }
                | Error::Tool { history, .. } = &error
                {
                    self.full.extend_from_slice(history);
                }
                Err(error)
            }
        }
    }

    fn remember(&mut self, new_turns: &mut Vec<Turn<'static>>, response: &mut Response) {
        self.full.extend_from_slice(&response.history);
        let mut turns = std::mem::take(new_turns);
        turns.extend_from_slice(&response.history);
        if let Some(run) = response.run.take() {
            self.open = Some(OpenExchange { turns, run });
            return;
        }
        let blocked = matches!(response.finish_reason(), FinishReason::Blocked(_));
        let is_complete = turns.last().is_some_and(|turn| turn.role == Role::Model);
        if is_complete && !blocked {
            self.request.canon.turns.append(&mut turns);
        }
        if !self.request.automatic.keep_history {
            response.history.clear();
        }
    }
}

/// Streamed answer of a conversation.
#[derive(Debug)]
pub struct ChatStream<'a> {
    chat: &'a mut Chat,
    stream: EventStream,
    new_turns: Vec<Turn<'static>>,
}

impl ChatStream<'_> {
    /// Returns the next event; `None` after the last one.
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
                this.chat.remember(&mut this.new_turns, &mut response);
                Some(Ok(Event::Finished(response)))
            }
            Some(Err(error)) => {
                let new_turns = std::mem::take(&mut this.new_turns);
                this.chat.end(new_turns, Err(error)).err().map(Err)
            }
            other => other,
        })
    }
}
