//! `cachedContents`: prefixes of requests that a client stores for later ones.

use bytes::Bytes;
use serde_json::{Map, Value, json};
use toolgate_core::canon::Backend;
use toolgate_validate::{GoogleError, Method, Request, parse_request};

use crate::catalogue;
use crate::encode::SeededRng;
use crate::errors;
use crate::tokens;

/// Smallest cache.
const MIN_CACHED_TOKENS: u64 = 1024;
/// Highest number of caches; the oldest is evicted.
const MAX_CACHES: usize = 1000;

/// The stored caches.
#[derive(Debug, Default)]
pub(crate) struct Caches {
    entries: Vec<Cache>,
    created: u64,
}

#[derive(Debug)]
struct Cache {
    name: String,
    model: String,
    prefix: Request,
    tokens: u64,
    /// The cache as the API shows it.
    resource: Value,
}

impl Caches {
    /// `cachedContents.create`
    pub(crate) fn create(&mut self, body: &Bytes, seed: u64) -> Result<Value, GoogleError> {
        let mut members: Map<String, Value> = serde_json::from_slice(body).unwrap_or_default();
        let mut take =
            |name: &str, other: &str| members.remove(name).or_else(|| members.remove(other));
        let display_name = take("displayName", "display_name");
        drop([take("ttl", "ttl"), take("expireTime", "expire_time"), take("name", "name")]);
        let model = take("model", "model").and_then(|it| it.as_str().map(str::to_owned));
        let own = model.as_deref().unwrap_or("").trim_start_matches("models/");
        let Some((own, _)) = catalogue::resolve(own) else {
            return Err(GoogleError::model_not_found(own, "v1beta", "createCachedContent"));
        };
        // A body that is not a JSON object is passed on as it is and gets the parser's error.
        let rest =
            if members.is_empty() { body.to_vec() } else { json!(members).to_string().into() };
        let prefix = parse_request(&rest, Backend::Developer, Method::Generate)?.unchecked();
        let tokens = tokens::of_request(&prefix).total();
        if tokens < MIN_CACHED_TOKENS {
            return Err(GoogleError::invalid(format!(
                "Cached content is too small. total_token_count={tokens}, \
                 min_total_token_count={MIN_CACHED_TOKENS}"
            )));
        }
        self.created += 1;
        let name =
            format!("cachedContents/{:016x}", SeededRng::new(seed ^ 0xCAC4E, self.created).draw());
        let mut resource = json!({
            "name": name, "model": format!("models/{own}"), "usageMetadata": {"totalTokenCount": tokens},
        });
        if let Some(given) = display_name {
            resource["displayName"] = given;
        }
        if self.entries.len() == MAX_CACHES {
            self.entries.remove(0);
        }
        let model = own.to_owned();
        self.entries.push(Cache { name, model, prefix, tokens, resource: resource.clone() });
        Ok(resource)
    }

    /// `cachedContents.list`
    pub(crate) fn list(&self) -> Value {
        let resources: Vec<_> = self.entries.iter().map(|cache| cache.resource.clone()).collect();
        json!({ "cachedContents": resources })
    }

    /// `cachedContents.get`
    pub(crate) fn get(&self, name: &str) -> Result<Value, GoogleError> {
        self.find(name).map(|cache| cache.resource.clone())
    }

    /// `cachedContents.delete`
    pub(crate) fn delete(&mut self, name: &str) -> Result<Value, GoogleError> {
        self.find(name)?;
        self.entries.retain(|cache| cache.name != name);
        Ok(json!({}))
    }

    /// Prepends the cache that a request names. Returns the tokens of the cache.
    pub(crate) fn prepend_to(
        &self,
        request: &mut Request,
        model: &str,
    ) -> Result<u64, GoogleError> {
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
            cache.prefix.clone();
        request.contents.splice(0..0, contents);
        request.system = system;
        request.functions = functions;
        request.server_tools = server_tools;
        request.calling = calling;
        Ok(cache.tokens)
    }

    fn find(&self, name: &str) -> Result<&Cache, GoogleError> {
        self.entries.iter().find(|cache| cache.name == name).ok_or_else(errors::no_cache)
    }
}
