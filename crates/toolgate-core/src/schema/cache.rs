//! Compiled schemas, kept for the next request.

use std::hash::BuildHasher as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foldhash::fast::FixedState;

use super::compile::{Compiled, Emit, Subject, compile_as};
use crate::bounded::BoundedCache;
use crate::canon::SchemaForm;
use crate::json::Raw;

/// Enough for several agents with hundreds of tools each.
const DEFAULT_CAPACITY: usize = 2048;
/// Approximate maximum of memory, so that huge schemas do not add up.
const MAX_BYTES: usize = 64 * 1024 * 1024;
/// Maximum bytes of an entry. A larger schema is compiled for each request.
const MAX_ENTRY: usize = 4 * 1024 * 1024;

/// Compiled schemas by their text, form and target: an identical schema is not compiled twice, a
/// changed one is never served stale. Bounded.
#[derive(Debug)]
pub struct Cache {
    locked: Mutex<Contents>,
}

/// Counters of a cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Schemas that were served from the cache.
    pub hits: u64,
    /// Schemas that had to be compiled.
    pub misses: u64,
    /// Schemas that are kept.
    pub entries: usize,
    /// Approximate bytes of the schemas that are kept.
    pub bytes: usize,
}

#[derive(Debug)]
struct Contents {
    /// By a hash of the key. Entries are compared in full; one whose hash another one has replaces it.
    compiled: BoundedCache<u64, CacheEntry>,
    hits: u64,
    misses: u64,
}

#[derive(Debug)]
struct CacheEntry {
    subject: Subject,
    schema: Option<Box<str>>,
    form: SchemaForm,
    emit: Emit,
    compiled: Arc<Compiled>,
}

/// Key of an entry.
#[derive(Clone, Copy, Hash)]
struct CacheKey<'a> {
    subject: Subject,
    schema: Option<&'a str>,
    form: SchemaForm,
    emit: Emit,
}

impl Default for Cache {
    fn default() -> Self {
        Self::new(DEFAULT_CAPACITY)
    }
}

impl Cache {
    /// A cache that holds at most `capacity` schemas.
    pub fn new(capacity: usize) -> Self {
        let compiled = BoundedCache::new(capacity, MAX_BYTES);
        Self { locked: Mutex::new(Contents { compiled, hits: 0, misses: 0 }) }
    }

    /// The compiled schema of a function's arguments, from the cache where it is there.
    pub fn compile(&self, schema: Option<&Raw<'_>>, form: SchemaForm, emit: Emit) -> Arc<Compiled> {
        self.compile_as(Subject::Arguments, schema, form, emit)
    }

    /// The same for an answer, which may be of any type.
    pub fn compile_output(&self, schema: &Raw<'_>, form: SchemaForm, emit: Emit) -> Arc<Compiled> {
        self.compile_as(Subject::Output, Some(schema), form, emit)
    }

    /// The same for a function whose only argument, [`ANSWER`](super::ANSWER), is the answer.
    pub fn compile_argument(
        &self,
        schema: &Raw<'_>,
        form: SchemaForm,
        emit: Emit,
    ) -> Arc<Compiled> {
        self.compile_as(Subject::Argument, Some(schema), form, emit)
    }

    fn compile_as(
        &self,
        subject: Subject,
        schema: Option<&Raw<'_>>,
        form: SchemaForm,
        emit: Emit,
    ) -> Arc<Compiled> {
        let key = CacheKey { subject, schema: schema.map(Raw::get), form, emit };
        let hash = FixedState::default().hash_one(key);
        if let Some(compiled) = self.lock().find(hash, key) {
            return compiled;
        }
        // Compiled outside the lock: other requests need not wait for a large schema.
        let compiled = Arc::new(compile_as(subject, schema, form, emit));
        let mut contents = self.lock();
        contents.misses += 1;
        contents.insert(hash, key, &compiled);
        compiled
    }

    /// Counters of the cache.
    pub fn stats(&self) -> CacheStats {
        let Contents { compiled, hits, misses } = &*self.lock();
        CacheStats {
            hits: *hits,
            misses: *misses,
            entries: compiled.len(),
            bytes: compiled.bytes(),
        }
    }

    /// A panic elsewhere leaves the entries as they were.
    fn lock(&self) -> MutexGuard<'_, Contents> {
        self.locked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Contents {
    fn find(&mut self, hash: u64, key: CacheKey<'_>) -> Option<Arc<Compiled>> {
        let entry = self.compiled.get(&hash).filter(|entry| entry.has(key))?;
        self.hits += 1;
        Some(Arc::clone(&entry.compiled))
    }

    fn insert(&mut self, hash: u64, key: CacheKey<'_>, compiled: &Arc<Compiled>) {
        let entry = CacheEntry {
            subject: key.subject,
            schema: key.schema.map(Box::from),
            form: key.form,
            emit: key.emit,
            compiled: Arc::clone(compiled),
        };
        let bytes = entry.bytes();
        if bytes <= MAX_ENTRY {
            self.compiled.insert(hash, entry, bytes);
        }
    }
}

impl CacheEntry {
    fn has(&self, key: CacheKey<'_>) -> bool {
        self.subject == key.subject
            && self.form == key.form
            && self.emit == key.emit
            && self.schema.as_deref() == key.schema
    }

    fn bytes(&self) -> usize {
        // The checker keeps names and values of the schema too.
        let schema = 2 * self.schema.as_ref().map_or(0, |schema| schema.len());
        schema + self.compiled.json.len() + self.compiled.checker.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> Raw<'static> {
        Raw::parse(json.to_owned()).unwrap()
    }

    fn get(cache: &Cache, json: &str) -> Arc<Compiled> {
        cache.compile(Some(&raw(json)), SchemaForm::JsonSchema, Emit::JsonSchema)
    }

    fn schema(name: usize) -> String {
        format!(r#"{{"type":"object","properties":{{"p{name}":{{"type":"string"}}}}}}"#)
    }

    #[test]
    fn r144_an_identical_schema_is_not_compiled_twice() {
        let cache = Cache::new(8);
        let first = get(&cache, &schema(1));
        let second = get(&cache, &schema(1));
        assert!(Arc::ptr_eq(&first, &second));
        let stats = cache.stats();
        assert_eq!((stats.hits, stats.misses, stats.entries), (1, 1, 1));
        let none = |emit| cache.compile(None, SchemaForm::JsonSchema, emit);
        none(Emit::JsonSchema);
        none(Emit::JsonSchema);
        assert_eq!(cache.stats().misses, 2);
    }

    #[test]
    fn r144_a_changed_schema_is_never_stale() {
        let cache = Cache::new(8);
        let changed = schema(1).replace("string", "number");
        get(&cache, &schema(1));
        assert!(get(&cache, &changed).json.contains("number"));
        let raw = raw(&schema(1));
        let vertex = cache.compile(Some(&raw), SchemaForm::JsonSchema, Emit::ParametersVertex);
        assert!(vertex.json.contains("STRING"), "{}", vertex.json);
        let gemini = cache.compile(Some(&raw), SchemaForm::Gemini, Emit::ParametersVertex);
        assert!(!Arc::ptr_eq(&vertex, &gemini));
    }

    #[test]
    fn r144_the_cache_is_bounded() {
        for capacity in [0, 1, 2, 3, 8, 9] {
            let cache = Cache::new(capacity);
            for name in 0..100 {
                get(&cache, &schema(name));
                assert!(cache.stats().entries <= capacity, "{capacity}");
            }
        }
        let cache = Cache::new(8);
        let huge = format!(r#"{{"description":"{}"}}"#, "x".repeat(MAX_ENTRY));
        get(&cache, &huge);
        assert_eq!(cache.stats().entries, 0);
    }

    #[test]
    fn r144_what_is_used_stays() {
        let cache = Cache::new(8);
        for name in 0..100 {
            get(&cache, &schema(1000));
            get(&cache, &schema(name));
        }
        let hits = cache.stats().hits;
        assert_eq!(hits, 99);
    }
}
