//! Cache of the results of deterministic tools: bounded, one call at a time for each key.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::{Digest, Output, canonical};

/// Key of a result: definition, arguments and the client whose credential was used.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Key([u8; 32]);

impl Key {
    pub(crate) fn new(
        namespace: &str,
        digest: &Digest,
        arguments: &RawValue,
        credential: Option<&str>,
    ) -> Self {
        let mut hash = Sha256::new();
        hash.update((namespace.len() as u64).to_be_bytes());
        hash.update(namespace.as_bytes());
        hash.update(digest.bytes());
        match credential {
            Some(credential) => {
                hash.update([1]);
                hash.update((credential.len() as u64).to_be_bytes());
                hash.update(credential.as_bytes());
            }
            None => hash.update([0]),
        }
        hash.update(canonical::text(arguments).as_bytes());
        Self(hash.finalize().into())
    }
}

/// Results of deterministic tools.
#[derive(Clone)]
pub(crate) struct Cache {
    state: Arc<Mutex<CacheState>>,
    max_bytes: usize,
}

#[derive(Default)]
struct CacheState {
    entries: HashMap<Key, Entry>,
    /// Keys of results by age.
    order: BTreeMap<u64, Key>,
    next: u64,
    bytes: usize,
}

enum Entry {
    Running(watch::Receiver<()>),
    Ready { output: Arc<Output>, expires: Instant, bytes: usize, age: u64 },
}

/// Answer of the cache.
pub(crate) enum Lookup {
    /// The result.
    Hit(Arc<Output>),
    /// Another caller runs the call; the channel closes when it has ended.
    Wait(watch::Receiver<()>),
    /// The caller runs the call for all.
    Lead(Lead),
}

/// Duty to run a call for all callers. Dropped without a result, another caller takes over.
pub(crate) struct Lead {
    cache: Cache,
    key: Key,
    _ended: watch::Sender<()>,
}

impl Cache {
    pub(crate) fn new(max_bytes: usize) -> Self {
        Self { state: Arc::default(), max_bytes }
    }

    fn state(&self) -> MutexGuard<'_, CacheState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn look(&self, key: Key) -> Lookup {
        let mut state = self.state();
        match state.entries.get(&key) {
            Some(Entry::Ready { output, expires, .. }) if *expires > Instant::now() => {
                return Lookup::Hit(Arc::clone(output));
            }
            Some(Entry::Running(ended)) if ended.has_changed().is_ok() => {
                return Lookup::Wait(ended.clone());
            }
            Some(_) => state.remove(key),
            None => {}
        }
        let (ended, receiver) = watch::channel(());
        state.entries.insert(key, Entry::Running(receiver));
        Lookup::Lead(Lead { cache: self.clone(), key, _ended: ended })
    }
}

impl CacheState {
    fn remove(&mut self, key: Key) {
        if let Some(Entry::Ready { bytes, age, .. }) = self.entries.remove(&key) {
            self.bytes -= bytes;
            self.order.remove(&age);
        }
    }
}

impl Lead {
    /// Keeps the result for `ttl`. Results that report an error are not kept.
    pub(crate) fn store(self, output: &Output, ttl: Duration) {
        let bytes = output.bytes() + 256;
        if output.is_error || bytes > self.cache.max_bytes {
            return;
        }
        let mut state = self.cache.state();
        state.remove(self.key);
        let age = state.next;
        state.next += 1;
        state.order.insert(age, self.key);
        state.bytes += bytes;
        let entry = Entry::Ready {
            output: Arc::new(output.clone()),
            expires: Instant::now() + ttl,
            bytes,
            age,
        };
        state.entries.insert(self.key, entry);
        while state.bytes > self.cache.max_bytes {
            let Some((_, oldest)) = state.order.first_key_value() else { break };
            let oldest = *oldest;
            state.remove(oldest);
        }
    }
}

impl Drop for Lead {
    fn drop(&mut self) {
        let mut state = self.cache.state();
        if matches!(state.entries.get(&self.key), Some(Entry::Running(_))) {
            state.entries.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(n: u8) -> Key {
        Key([n; 32])
    }

    fn lead(cache: &Cache, n: u8) -> Lead {
        match cache.look(key(n)) {
            Lookup::Lead(lead) => lead,
            Lookup::Hit(_) | Lookup::Wait(_) => panic!("no result is known"),
        }
    }

    const TTL: Duration = Duration::from_secs(10);

    #[tokio::test(start_paused = true)]
    async fn r166_results_are_kept_for_their_time() {
        let cache = Cache::new(10_000);
        let running = lead(&cache, 1);
        assert!(matches!(cache.look(key(1)), Lookup::Wait(_)));
        running.store(&Output::text("a"), TTL);
        assert!(matches!(cache.look(key(1)), Lookup::Hit(_)));
        tokio::time::advance(TTL).await;
        assert!(matches!(cache.look(key(1)), Lookup::Lead(_)));
    }

    #[tokio::test]
    async fn r166_errors_are_never_kept() {
        let cache = Cache::new(10_000);
        lead(&cache, 1).store(&Output::error("no"), TTL);
        let dropped = lead(&cache, 1);
        let Lookup::Wait(mut ended) = cache.look(key(1)) else { panic!("it runs") };
        drop(dropped);
        assert!(ended.changed().await.is_err(), "waiting callers are woken");
        drop(lead(&cache, 1));
    }

    #[tokio::test]
    async fn r166_the_oldest_results_are_evicted() {
        let cache = Cache::new(3000);
        for n in 0..4 {
            lead(&cache, n).store(&Output::text("x".repeat(600)), TTL);
        }
        assert!(matches!(cache.look(key(0)), Lookup::Lead(_)));
        assert!(matches!(cache.look(key(3)), Lookup::Hit(_)));
        lead(&cache, 9).store(&Output::text("x".repeat(5000)), TTL);
        assert!(matches!(cache.look(key(9)), Lookup::Lead(_)));
        assert!(cache.state().bytes <= 3000);
    }

    #[test]
    fn keys_depend_on_meaning_and_credential() {
        let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
        let (one, two) = (Digest([1; 32]), Digest([2; 32]));
        let key = |digest, text, who| Key::new("ns", digest, &raw(text), who);
        let base = key(&one, r#"{"a":1,"b":2}"#, None);
        assert!(base == key(&one, r#"{ "b":2, "a":1 }"#, None));
        assert!(base != key(&one, r#"{"a":1.0,"b":2}"#, None));
        assert!(base != key(&two, r#"{"a":1,"b":2}"#, None));
        assert!(base != key(&one, r#"{"a":1,"b":2}"#, Some("alice")));
        assert!(base != Key::new("other", &one, &raw(r#"{"a":1,"b":2}"#), None));
    }
}
