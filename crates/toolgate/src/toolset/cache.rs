//! Cache of deterministic tools' results.

use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use tokio::sync::OnceCell;

use crate::tool::{Output, ToolError};

/// Capacity of the cache.
const MAX_CACHED_RESULTS: usize = 1024;

/// Results by tool and arguments; the oldest are evicted. Errors are not cached.
#[derive(Debug, Default)]
pub(crate) struct Cache(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    results: BTreeMap<String, Arc<OnceCell<Output>>>,
    /// Keys, oldest first.
    order: VecDeque<String>,
}

impl Cache {
    /// Returns the result for `key`, and whether it was cached. Otherwise `run` computes it, once even
    /// for concurrent callers.
    pub(crate) async fn get<R>(&self, key: String, run: R) -> (Result<Output, ToolError>, bool)
    where
        R: Future<Output = Result<Output, ToolError>>,
    {
        let cell = self.cell(key);
        let mut fresh = false;
        let result = cell
            .get_or_try_init(|| {
                fresh = true;
                run
            })
            .await
            .cloned();
        (result, !fresh)
    }

    fn cell(&self, key: String) -> Arc<OnceCell<Output>> {
        // A panic cannot leave the map in an inconsistent state.
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cell) = entries.results.get(&key) {
            return Arc::clone(cell);
        }
        if entries.order.len() >= MAX_CACHED_RESULTS
            && let Some(oldest) = entries.order.pop_front()
        {
            entries.results.remove(&oldest);
        }
        let cell = Arc::default();
        entries.order.push_back(key.clone());
        entries.results.insert(key, Arc::clone(&cell));
        cell
    }
}

/// Cache key, independent of the order of the arguments.
pub(crate) fn key(tool: &str, arguments: &str) -> String {
    let sorted = serde_json::from_str::<Value>(arguments).map(sorted);
    let arguments = sorted.map_or_else(|_| arguments.to_owned(), |value| value.to_string());
    format!("{tool} {arguments}")
}

fn sorted(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let members: BTreeMap<_, _> =
                members.into_iter().map(|(key, value)| (key, sorted(value))).collect();
            Value::Object(members.into_iter().collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r166_the_order_of_arguments_does_not_matter() {
        let one = key("f", r#"{"a":{"x":1,"y":[2]},"b":true}"#);
        assert_eq!(one, key("f", r#"{ "b": true, "a": {"y":[2], "x":1} }"#));
        assert_ne!(one, key("g", r#"{"a":{"x":1,"y":[2]},"b":true}"#));
        assert_ne!(one, key("f", r#"{"a":{"x":1,"y":[3]},"b":true}"#));
    }

    #[tokio::test]
    async fn the_cache_is_bounded() {
        let cache = Cache::default();
        for number in 0..MAX_CACHED_RESULTS + 10 {
            let _ = cache.get(number.to_string(), async { Ok(Output::text("x")) }).await;
        }
        assert_eq!(cache.0.lock().unwrap().results.len(), MAX_CACHED_RESULTS);
        let newest = (MAX_CACHED_RESULTS + 9).to_string();
        assert!(cache.get(newest, async { Err(ToolError::Cancelled) }).await.1);
        assert!(!cache.get("0".into(), async { Ok(Output::text("x")) }).await.1);
    }
}
