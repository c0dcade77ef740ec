//! `cachedContents`: what a client has Google keep, to begin later requests with.

use bytes::Bytes;
use serde_json::{Map, Value, json};
use toolgate_core::gemini::Backend;
use toolgate_validate::{GoogleError, Method, Request, parse_request};

use crate::catalogue;
use crate::encode::Ids;
use crate::errors;
use crate::tokens;

/// Less is not worth keeping.
const LEAST_TOKENS: u64 = 1024;
/// How many are kept; the oldest go first.
const MOST: usize = 1000;

/// What is kept.
#[derive(Debug, Default)]
pub(crate) struct Caches {
    kept: Vec<Cache>,
    made: u64,
}

#[derive(Debug)]
struct Cache {
    name: String,
    model: String,
    begin: Request,
    tokens: u64,
    shown: Value,
}

impl Caches {
    /// `cachedContents.create`
    pub(crate) fn create(&mut self, body: &Bytes, seed: u64) -> Result<Value, GoogleError> {
        let mut members: Map<String, Value> = serde_json::from_slice(body).unwrap_or_default();
        let mut take =
            |name: &str, other: &str| members.remove(name).or_else(|| members.remove(other));
        let shown_name = take("displayName", "display_name");
        drop([take("ttl", "ttl"), take("expireTime", "expire_time"), take("name", "name")]);
        let model = take("model", "model").and_then(|it| it.as_str().map(str::to_owned));
        let own = model.as_deref().unwrap_or("").trim_start_matches("models/");
        let Some((own, _)) = catalogue::resolve(own) else {
            return Err(GoogleError::model_not_found(own, "v1beta", "createCachedContent"));
        };
        // What is no JSON is refused in the words for it.
        let rest =
            if members.is_empty() { body.to_vec() } else { json!(members).to_string().into() };
        let begin = parse_request(&rest, Backend::Developer, Method::Generate)?.unchecked();
        let tokens = tokens::of_request(&begin).total();
        if tokens < LEAST_TOKENS {
            return Err(GoogleError::invalid(format!(
                "Cached content is too small. total_token_count={tokens}, \
                 min_total_token_count={LEAST_TOKENS}"
            )));
        }
        self.made += 1;
        let name = format!("cachedContents/{:016x}", Ids::new(seed ^ 0xCAC4E, self.made).draw());
        let mut shown = json!({
            "name": name, "model": format!("models/{own}"), "usageMetadata": {"totalTokenCount": tokens},
        });
        if let Some(given) = shown_name {
            shown["displayName"] = given;
        }
        if self.kept.len() == MOST {
            self.kept.remove(0);
        }
        let model = own.to_owned();
        self.kept.push(Cache { name, model, begin, tokens, shown: shown.clone() });
        Ok(shown)
    }

    /// `cachedContents.list`
    pub(crate) fn list(&self) -> Value {
        let shown: Vec<_> = self.kept.iter().map(|cache| cache.shown.clone()).collect();
        json!({ "cachedContents": shown })
    }

    /// `cachedContents.get`
    pub(crate) fn get(&self, name: &str) -> Result<Value, GoogleError> {
        self.find(name).map(|cache| cache.shown.clone())
    }

    /// `cachedContents.delete`
    pub(crate) fn delete(&mut self, name: &str) -> Result<Value, GoogleError> {
        self.find(name)?;
        self.kept.retain(|cache| cache.name != name);
        Ok(json!({}))
    }

    /// Puts what is kept before a request that names it; says how many tokens that is.
    pub(crate) fn begin(&self, request: &mut Request, model: &str) -> Result<u64, GoogleError> {
        let Some(name) = request.cached_content.as_deref() else { return Ok(0) };
        let cache = self.find(name)?;
        if cache.model != model {
            return Err(GoogleError::invalid(format!(
                "Model used by GenerateContent request (models/{model}) and CachedContent \
                 (models/{}) has to be the same.",
                cache.model
            )));
        }
        let Request { contents, system, functions, server_tools, calling, .. } =
            cache.begin.clone();
        request.contents.splice(0..0, contents);
        request.system = system;
        request.functions = functions;
        request.server_tools = server_tools;
        request.calling = calling;
        Ok(cache.tokens)
    }

    fn find(&self, name: &str) -> Result<&Cache, GoogleError> {
        self.kept.iter().find(|cache| cache.name == name).ok_or_else(errors::no_cache)
    }
}
