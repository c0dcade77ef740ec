//! Requests of a client.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::Client;
use crate::run::Run;
use crate::{Chat, Error, EventStream, Request, Response};

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
    /// let city: City = client.generate_as("The largest city of Japan").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn generate_as<T>(&self, request: impl Into<Request>) -> Result<T, Error>
    where
        T: JsonSchema + DeserializeOwned,
    {
        let response = self.generate(request.into().output::<T>()).await?;
        response.parse()
    }

    /// Starts a conversation. `request` is its template: instructions, tools, settings, earlier turns.
    pub fn chat(&self, request: Request) -> Chat {
        Chat::new(self.clone(), request)
    }
}
