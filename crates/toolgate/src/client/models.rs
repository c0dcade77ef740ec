//! Models and token counts.

use serde_json::Value;
use tokio::time::sleep;
use toolgate_core::canon::{Failure, FailureKind};
use toolgate_core::upstream::generate_content::{EncodeOptions, encode_count_tokens};

use super::Client;
use super::link::Attempt;
use crate::transport::{Method, Verb};
use crate::{Error, Request};

/// A model.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// Name in requests.
    pub name: String,
    /// Display name.
    pub display_name: Option<String>,
    /// Maximum number of input tokens.
    pub input_token_limit: Option<u64>,
    /// Maximum number of output tokens.
    pub output_token_limit: Option<u64>,
    /// Supported methods, such as `generateContent`.
    pub methods: Vec<String>,
    /// The complete answer of the API.
    pub raw: Value,
}

/// Token count of a request.
#[derive(Clone, Debug, PartialEq)]
pub struct TokenCount {
    /// Total number of tokens.
    pub total: u64,
    /// Number of cached tokens.
    pub cached: Option<u64>,
    /// The complete answer of the API.
    pub raw: Value,
}

impl Client {
    /// Counts the tokens of a request: conversation, instructions and tools.
    pub async fn count_tokens(&self, request: impl Into<Request>) -> Result<TokenCount, Error> {
        let request = request.into();
        request.check_fields()?;
        let Request { mut canon, tools, .. } = request;
        canon.tools.extend(tools.declared());
        if canon.model.is_empty() {
            canon.model = self.model().to_owned().into();
        }
        let target = self.target(&canon.model);
        let options = EncodeOptions::new(self.schemas());
        let encoded = encode_count_tokens(&canon, &target, &options)?;
        let attempt = self.link().attempt(&target.model, Verb::CountTokens, encoded.body);
        let raw = self.json(&attempt).await?;
        // Gemini omits zero.
        let total = raw.get("totalTokens").and_then(Value::as_u64).unwrap_or(0);
        let cached = raw.get("cachedContentTokenCount").and_then(Value::as_u64);
        Ok(TokenCount { total, cached, raw })
    }

    /// Lists all models.
    pub async fn models(&self) -> Result<Vec<Model>, Error> {
        let mut models = Vec::new();
        let mut page = String::new();
        loop {
            let endpoints = &self.link().endpoints;
            let token = Some(page.as_str()).filter(|page| !page.is_empty());
            let url = endpoints.url(&endpoints.page_path(token));
            let mut raw =
                self.json(&Attempt { method: Method::Get, url, body: Vec::new() }).await?;
            for key in ["models", "publisherModels"] {
                if let Some(Value::Array(listed)) = raw.get_mut(key).map(Value::take) {
                    models.extend(listed.into_iter().map(Model::read));
                }
            }
            let next = raw.get("nextPageToken").and_then(Value::as_str).unwrap_or_default();
            if next.is_empty() || next == page {
                return Ok(models);
            }
            next.clone_into(&mut page);
        }
    }

    /// Returns one model by name.
    pub async fn model_info(&self, name: &str) -> Result<Model, Error> {
        let url = self.link().url(name);
        let raw = self.json(&Attempt { method: Method::Get, url, body: Vec::new() }).await?;
        Ok(Model::read(raw))
    }

    async fn json(&self, attempt: &Attempt) -> Result<Value, Error> {
        let mut number = 1;
        loop {
            let failure = match self.link().whole(attempt).await {
                Ok(body) => match serde_json::from_slice(&body) {
                    Ok(json) => return Ok(json),
                    Err(error) => Failure::new(
                        FailureKind::UpstreamProtocol,
                        format!("Gemini answered with invalid JSON: {error}"),
                    ),
                },
                Err(failure) => failure,
            };
            match self.link().retries.delay_after(number, &failure) {
                Some(wait) => sleep(wait).await,
                None => return Err(Error::failed(failure)),
            }
            number += 1;
        }
    }
}

impl Model {
    fn read(raw: Value) -> Self {
        let text = |key: &str| raw.get(key).and_then(Value::as_str).map(ToOwned::to_owned);
        let number = |key: &str| raw.get(key).and_then(Value::as_u64);
        let methods = raw.get("supportedGenerationMethods").and_then(Value::as_array);
        let methods = methods.into_iter().flatten().filter_map(Value::as_str);
        let name = text("name").unwrap_or_default();
        let name = name.rsplit_once("models/").map_or(name.as_str(), |(_, name)| name);
        Self {
            name: name.to_owned(),
            display_name: text("displayName"),
            input_token_limit: number("inputTokenLimit"),
            output_token_limit: number("outputTokenLimit"),
            methods: methods.map(ToOwned::to_owned).collect(),
            raw,
        }
    }
}
