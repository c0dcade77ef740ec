//! Compiled schemas, kept for the next request.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::compile::{Compiled, Emit, Subject, compile_as};
use crate::canon::SchemaForm;
use crate::json::Raw;

/// Enough for several agents with hundreds of tools each.
const DEFAULT_CAPACITY: usize = 2048;
/// About how much memory is used at most, so that huge schemas do not add up.
const MAX_BYTES: usize = 64 * 1024 * 1024;
/// A larger schema is compiled anew each time.
const MAX_ENTRY: usize = 4 * 1024 * 1024;

/// Compiled schemas by their text, form and target: an identical one is not compiled twice, a
/// changed one is never served stale. Bounded.
///
/// Entries live in two generations. When the young one is full it becomes the old one, whose
/// entries are forgotten unless they are asked for again in the meantime.
#[derive(Debug)]
pub struct Cache {
    capacity: usize,
    state: Mutex<State>,
}

/// How a cache is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Schemas that were served from the cache.
    pub hits: u64,
    /// Schemas that had to be compiled.
    pub misses: u64,
    /// Schemas that are kept.
    pub entries: usize,
    /// About how many bytes they take.
    pub bytes: usize,
}

#[derive(Debug, Default)]
struct State {
    young: Generation,
    old: Generation,
    hits: u64,
    misses: u64,
}

#[derive(Debug, Default)]
struct Generation {
    /// By a hash of the key; entries are compared in full.
    entries: BTreeMap<u64, Vec<Entry>>,
    count: usize,
    bytes: usize,
}

#[derive(Debug)]
struct Entry {
    subject: Subject,
    schema: Option<Box<str>>,
    form: SchemaForm,
    emit: Emit,
    compiled: Arc<Compiled>,
}

/// What an entry is looked up by.
#[derive(Clone, Copy)]
struct Key<'a> {
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
        Self { capacity, state: Mutex::default() }
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
        let key = Key { subject, schema: schema.map(Raw::get), form, emit };
        let hash = key.hash();
        if let Some(compiled) = self.lock().find(hash, key, self.capacity) {
            return compiled;
        }
        // Compiled outside the lock: others need not wait for a large schema.
        let compiled = Arc::new(compile_as(subject, schema, form, emit));
        let mut state = self.lock();
        state.misses += 1;
        state.insert(hash, key, &compiled, self.capacity);
        compiled
    }

    /// How the cache is doing.
    pub fn stats(&self) -> CacheStats {
        let state = self.lock();
        CacheStats {
            hits: state.hits,
            misses: state.misses,
            entries: state.young.count + state.old.count,
            bytes: state.young.bytes + state.old.bytes,
        }
    }

    /// A panic elsewhere leaves the entries as they were.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn find(&mut self, hash: u64, key: Key<'_>, capacity: usize) -> Option<Arc<Compiled>> {
        if let Some(entry) = self.young.get(hash, key) {
            self.hits += 1;
            return Some(Arc::clone(&entry.compiled));
        }
        let entry = self.old.take(hash, key)?;
        self.hits += 1;
        let compiled = Arc::clone(&entry.compiled);
        self.make_room(entry.bytes(), capacity);
        self.young.put(hash, entry);
        Some(compiled)
    }

    fn insert(&mut self, hash: u64, key: Key<'_>, compiled: &Arc<Compiled>, capacity: usize) {
        let entry = Entry {
            subject: key.subject,
            schema: key.schema.map(Box::from),
            form: key.form,
            emit: key.emit,
            compiled: Arc::clone(compiled),
        };
        // Somebody else may have compiled it at the same time.
        let known = self.young.get(hash, key).is_some();
        if known || entry.bytes() > MAX_ENTRY || capacity == 0 {
            return;
        }
        self.make_room(entry.bytes(), capacity);
        self.young.put(hash, entry);
    }

    fn make_room(&mut self, bytes: usize, capacity: usize) {
        let count = capacity.div_ceil(2);
        if self.young.count >= count || self.young.bytes + bytes > MAX_BYTES / 2 {
            self.old = std::mem::take(&mut self.young);
        }
        // With an odd capacity the two halves would hold one too many.
        if self.young.count + self.old.count >= capacity {
            self.old = Generation::default();
        }
    }
}

impl Generation {
    fn get(&self, hash: u64, key: Key<'_>) -> Option<&Entry> {
        self.entries.get(&hash)?.iter().find(|entry| entry.is(key))
    }

    fn take(&mut self, hash: u64, key: Key<'_>) -> Option<Entry> {
        let entries = self.entries.get_mut(&hash)?;
        let at = entries.iter().position(|entry| entry.is(key))?;
        let entry = entries.swap_remove(at);
        self.count -= 1;
        self.bytes -= entry.bytes();
        Some(entry)
    }

    fn put(&mut self, hash: u64, entry: Entry) {
        self.count += 1;
        self.bytes += entry.bytes();
        self.entries.entry(hash).or_default().push(entry);
    }
}

impl Entry {
    fn is(&self, key: Key<'_>) -> bool {
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

impl Key<'_> {
    /// Eight bytes at a time. It need not be strong: entries are compared in full.
    fn hash(self) -> u64 {
        const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
        let mix = |hash: u64, word: u64| {
            let wide = u128::from(hash ^ word) * u128::from(FACTOR);
            #[expect(clippy::cast_possible_truncation, reason = "both halves are folded together")]
            let folded = (wide as u64) ^ ((wide >> 64) as u64);
            folded
        };
        let text = self.schema.unwrap_or("");
        let target = self.subject as u64 * 16 + self.form as u64 * 8 + self.emit as u64;
        let mut hash = mix(FACTOR, text.len() as u64 * 64 + target);
        let mut words = text.as_bytes().chunks_exact(8);
        for word in &mut words {
            hash = mix(hash, word.try_into().map_or(0, u64::from_le_bytes));
        }
        words.remainder().iter().fold(hash, |hash, byte| mix(hash, u64::from(*byte)))
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
