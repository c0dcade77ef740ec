//! Requests of a client.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::Client;
use crate::run::Run;
use crate::structured::correction;
use crate::{Chat, Error, EventStream, Preview, Request, Response, SavedChat, SavedRun, Typed};

impl Client {
    /// Sends a request, runs the tools that the model calls, and returns the answer.
    pub async fn generate(&self, request: impl Into<Request>) -> Result<Response, Error> {
        let run = Run::new(self.clone(), request.into())?;
        Box::pin(run.finish(false)).await
    }

    /// Sends a request, runs the tools that the model calls, and streams the events.
    pub fn stream(&self, request: impl Into<Request>) -> EventStream {
        match Run::new(self.clone(), request.into()) {
            Ok(run) => EventStream::new(run),
            Err(error) => EventStream::failed(error),
        }
    }

    /// Sends a request for JSON output and parses the answer as `T`. Tools are run too, also on models
    /// that do not support JSON output together with functions. If calls may be returned to the caller,
    /// use [`Request::output`], [`generate`](Self::generate) and [`Response::parse`] instead.
    ///
    /// ```
    /// # async fn ask(client: toolgate::Client) -> Result<(), toolgate::Error> {
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct City {
    ///     name: String,
    ///     /// In millions.
    ///     people: f64,
    /// }
    ///
    /// let city = client.generate_as::<City>("The largest city of Japan").await?;
    /// println!("{} has {} million people", city.name, city.people);
    /// println!("{} tokens", city.response.usage().input());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn generate_as<T>(&self, request: impl Into<Request>) -> Result<Typed<T>, Error>
    where
        T: JsonSchema + DeserializeOwned,
    {
        let mut request = request.into().output::<T>();
        let keeps_history = request.automatic.keep_history;
        request.automatic.keep_history |= request.output_retries > 0;
        let mut earlier: Option<Response> = None;
        loop {
            let mut response = self.generate(request.clone()).await?;
            let new_turns = response.history.clone();
            if let Some(earlier) = earlier.take() {
                response = response.after(earlier);
            }
            match response.parse() {
                Ok(value) => {
                    if !keeps_history {
                        response.history.clear();
                    }
                    return Ok(Typed { value, response });
                }
                Err(Error::Output { reason, .. })
                    if request.output_retries > 0 && !response.has_calls() =>
                {
                    request.output_retries -= 1;
                    request = request.history(new_turns).user(correction(&reason));
                    response.history.extend(request.canon.turns.last().cloned());
                    earlier = Some(response);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Restores a saved conversation. `request` is its template, as for [`chat`](Self::chat); its turns
    /// are replaced.
    pub fn resume_chat(&self, saved: SavedChat, request: Request) -> Result<Chat, Error> {
        Chat::restore(self.clone(), request, saved)
    }

    /// Restores a saved run, whose calls wait for results: [`Response::calls`], then
    /// [`Response::resume`]. `request` has instructions, tools and settings; its turns are replaced.
    ///
    /// ```
    /// # async fn later(client: toolgate::Client, request: toolgate::Request, saved: String)
    /// # -> Result<(), Box<dyn std::error::Error>> {
    /// let response = client.resume_run(&serde_json::from_str(&saved)?, request)?;
    /// let results: Vec<_> = response.calls().iter().map(|call| call.succeed("approved")).collect();
    /// println!("{}", response.resume(results).await?.text());
    /// # Ok(())
    /// # }
    /// ```
    pub fn resume_run(&self, saved: &SavedRun, request: Request) -> Result<Response, Error> {
        Run::restore(self.clone(), request, saved)
    }

    /// Shows the first HTTP request that [`generate`](Self::generate) would send, without sending it.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let client = toolgate::Client::new("a key")?;
    /// let preview = client.preview("Hi!")?;
    /// assert!(preview.url.ends_with(":generateContent"));
    /// assert_eq!(preview.body["contents"][0]["parts"][0]["text"], "Hi!");
    /// # Ok::<(), toolgate::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn preview(&self, request: impl Into<Request>) -> Result<Preview, Error> {
        Run::new(self.clone(), request.into())?.preview()
    }

    /// Starts a conversation. `request` is its template: instructions, tools, settings, earlier turns.
    pub fn chat(&self, request: Request) -> Chat {
        Chat::new(self.clone(), request)
    }
}
