//! Streams of events.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, Stream};

use crate::event::Emitter;
use crate::run::Run;
use crate::transport::HttpResponse;
use crate::{Error, Event, Response, decode};

/// Stream of [`Event`]s, ending with [`Event::Finished`].
///
/// The request makes progress only when polled; dropping the stream cancels it, running tools
/// included.
pub struct EventStream {
    queue: Arc<Mutex<VecDeque<Event>>>,
    driver: Option<BoxFuture<'static, Result<Response, Error>>>,
}

impl EventStream {
    pub(crate) fn new(mut run: Run) -> Self {
        let queue = Arc::default();
        run.emitter.queue = Some(Arc::clone(&queue));
        Self { queue, driver: Some(run.finish(true).boxed()) }
    }

    /// Decodes the body of an answer of `model` that the program received itself: server-sent events, a
    /// JSON array, or a single object, in pieces of any size. Calls are returned.
    ///
    /// ```
    /// use futures_util::stream;
    /// use toolgate::EventStream;
    ///
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let chunk = r#"data: {"candidates":[{"content":{"parts":[{"text":"Hi."}]},"finishReason":"STOP"}]}"#;
    /// let body = stream::iter([Ok::<_, std::io::Error>(chunk), Ok("\n\n")]);
    /// let answer = EventStream::from_bytes("gemini-3.6-flash", body).finish().await.unwrap();
    /// assert_eq!(answer.text(), "Hi.");
    /// # });
    /// ```
    pub fn from_bytes<S, B, E>(model: &str, body: S) -> Self
    where
        S: Stream<Item = Result<B, E>> + Send + 'static,
        B: AsRef<[u8]> + Send + 'static,
        E: fmt::Display + Send + 'static,
    {
        Self::decoding(|emitter| decode::bytes(model.to_owned(), body, emitter).boxed())
    }

    /// Decodes an HTTP response with an answer of `model`. A status other than 2xx is an error.
    pub fn from_response(model: &str, response: HttpResponse) -> Self {
        Self::decoding(|emitter| decode::response(model.to_owned(), response, emitter).boxed())
    }

    fn decoding(
        driver: impl FnOnce(Emitter) -> BoxFuture<'static, Result<Response, Error>>,
    ) -> Self {
        let queue = Arc::default();
        let emitter = Emitter { observer: None, queue: Some(Arc::clone(&queue)) };
        Self { queue, driver: Some(driver(emitter)) }
    }

    /// Creates a stream that fails at once.
    pub(crate) fn failed(error: Error) -> Self {
        let driver = Some(std::future::ready(Err(error)).boxed());
        Self { queue: Arc::default(), driver }
    }

    /// Returns the next event; `None` after the last one.
    pub async fn next(&mut self) -> Option<Result<Event, Error>> {
        std::future::poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }

    /// Reads to the end and returns the response.
    pub async fn finish(mut self) -> Result<Response, Error> {
        while let Some(event) = self.next().await {
            if let Event::Finished(response) = event? {
                return Ok(*response);
            }
        }
        Err(Error::Cancelled { history: Vec::new() })
    }

    fn pop(&self) -> Option<Event> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}

impl Stream for EventStream {
    type Item = Result<Event, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some(event) = self.pop() {
            return Poll::Ready(Some(Ok(event)));
        }
        let Some(driver) = &mut self.driver else { return Poll::Ready(None) };
        let end = match driver.as_mut().poll(context) {
            Poll::Pending => {
                return match self.pop() {
                    Some(event) => Poll::Ready(Some(Ok(event))),
                    None => Poll::Pending,
                };
            }
            Poll::Ready(end) => end,
        };
        self.driver = None;
        let end = match end {
            Ok(response) => Event::Finished(Box::new(response)),
            Err(error) => {
                // Events before the error are delivered first.
                let next = self.pop();
                if next.is_none() {
                    return Poll::Ready(Some(Err(error)));
                }
                self.driver = Some(std::future::ready(Err(error)).boxed());
                return Poll::Ready(next.map(Ok));
            }
        };
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).push_back(end);
        Poll::Ready(self.pop().map(Ok))
    }
}

impl fmt::Debug for EventStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventStream").field("ended", &self.driver.is_none()).finish_non_exhaustive()
    }
}
