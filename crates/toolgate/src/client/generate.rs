//! What a client does.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::Client;
use crate::run::Run;
use crate::{Chat, Error, EventStream, Request, Response};

impl Client {
    /// Asks, runs the tools that the model calls, and gives the answer in one piece.
    pub async fn generate(&self, request: impl Into<Request>) -> Result<Response, Error> {
        let run = Run::new(self.clone(), request.into())?;
        Box::pin(run.finish(false)).await
    }

    /// Asks, runs the tools that the model calls, and gives what happens as it happens.
    pub fn stream(&self, request: impl Into<Request>) -> EventStream {
        match Run::new(self.clone(), request.into()) {
            Ok(run) => EventStream::new(run),
            Err(error) => EventStream::failed(error),
        }
    }

    /// Asks for an answer that is data: JSON that fits `T`. Tools are run on the way; models that
    /// cannot do both at once are asked in a way that they can. Where calls may come back to the
    /// caller, use [`Request::output`], [`generate`](Self::generate) and [`Response::parse`].
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

    /// Begins a conversation. What `request` says is how it begins: instructions, tools, settings,
    /// earlier turns.
    pub fn chat(&self, request: Request) -> Chat {
        Chat::new(self.clone(), request)
    }
}
