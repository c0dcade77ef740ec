//! Refusal memory: what an upstream 400 taught, kept for ten minutes.
//!
//! The rules for requests come with the model and change monthly. Where Gemini answers 400 for one
//! tool, one field or a signature, the request is sent again without it, and the next request that has
//! the very same does not pay for the same refusal.
//!
//! Nothing is shared between keys: every entry belongs to a [`Scope`], a client key together with
//! the upstream credential that was refused. Entries are fingerprints of the whole declaration, so
//! a tool with another description or schema is another tool.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ring::digest::{Context, SHA256};
use serde::Deserialize;
use serde_json::value::RawValue;
use toolgate_core::canon::{
    Backend, Failure, FailureKind, Request, SchemaForm, Signature, Target, Tool, ToolChoice,
    ToolName,
};
use toolgate_core::json::{Raw, Text};
use toolgate_core::upstream::generate_content::{Exchange, Learned};

use crate::auth::{Owner, Pass};
use crate::config::Secret;

/// Refusal memory of all scopes.
#[derive(Debug)]
pub(crate) struct RefusalMemory {
    refusals: Mutex<Expiring<Refused>>,
    signatures: Mutex<Expiring<()>>,
}

/// A client key and the upstream credential that its requests use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Scope(Fingerprint);

/// SHA-256 of something that was refused, or of its scope.
type Fingerprint = [u8; 32];

/// A refusal. No value is larger than [`MAX_SETTINGS_BYTES`] and a few words.
#[derive(Clone, Debug)]
enum Refused {
    /// Features that the target does not have.
    Features(Learned),
    /// Members of `generationConfig`.
    Settings(BTreeSet<String>),
    Tool,
    /// All tools of a Gemini client's request.
    ToolSet,
}

/// Time for which a refusal is remembered.
const REFUSAL_TTL: Duration = Duration::from_secs(600);
/// Maximum number of refusals, of all scopes and of one.
const MAX_REFUSALS: usize = 4096;
const MAX_REFUSALS_PER_SCOPE: usize = 512;
/// Time for which a refused signature is remembered: sessions repeat it in every request.
const SIGNATURE_TTL: Duration = Duration::from_secs(24 * 3600);
/// Maximum number of refused signatures, of all scopes and of one.
const MAX_SIGNATURES: usize = 16_384;
const MAX_SIGNATURES_PER_SCOPE: usize = 4096;
/// Maximum total length of the names of refused settings; Google quotes them from the request.
const MAX_SETTINGS_BYTES: usize = 512;

/// Which tools the request needs: it is not sent without them because of a refusal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum RequiredTools {
    /// The model need not call any.
    #[default]
    Nothing,
    /// The model must call one of those that there are.
    Any,
    /// The model must call one of these.
    OneOf(Vec<ToolName<'static>>),
}

impl RequiredTools {
    /// Reads the client's `tool_choice`.
    pub(crate) fn of(choice: &ToolChoice<'_>) -> Self {
        let owned = |name: &ToolName<'_>| name.clone().into_owned();
        match choice {
            ToolChoice::Any => Self::Any,
            ToolChoice::One(name) => Self::OneOf(vec![owned(name)]),
            ToolChoice::Allowed { required: true, names } => {
                Self::OneOf(names.iter().map(owned).collect())
            }
            ToolChoice::Allowed { required: false, .. }
            | ToolChoice::Auto
            | ToolChoice::None
            | ToolChoice::Unset => Self::Nothing,
        }
    }

    /// Whether none of the required tools is left among `declared` without the `refused` ones.
    fn are_lost<'t>(
        &self,
        declared: impl Iterator<Item = &'t ToolName<'t>>,
        refused: &BTreeSet<ToolName<'static>>,
    ) -> bool {
        let names = match self {
            Self::Nothing => return false,
            Self::Any => None,
            Self::OneOf(names) => Some(names.iter().collect::<BTreeSet<_>>()),
        };
        let is_required = |name: &&ToolName<'_>| names.as_ref().is_none_or(|it| it.contains(*name));
        let mut required = declared.filter(is_required).peekable();
        required.peek().is_some() && required.all(|name| refused.contains(name))
    }

    /// Takes the required tools back among those that are sent, where the refusals leave none.
    fn spare(&self, request: &Request<'_>, learned: &mut Learned) {
        let declared = || request.tools.iter().filter_map(function_name);
        if learned.tools.is_empty() || !self.are_lost(declared(), &learned.tools) {
            return;
        }
        match self {
            Self::Nothing => {}
            Self::Any => learned.tools.clear(),
            Self::OneOf(names) => names.iter().for_each(|name| {
                learned.tools.remove(name);
            }),
        }
    }
}

/// Adds a refusal to those learned before. `None`: the refusal teaches
/// nothing new, or only that a required tool cannot be sent, which the client must hear.
pub(crate) fn lesson(
    known: &Learned,
    exchange: &Exchange,
    required: &RequiredTools,
    failure: &Failure,
) -> Option<Learned> {
    if failure.kind != FailureKind::InvalidRequest || failure.upstream_status != Some(400) {
        return None;
    }
    let mut learned = known.clone();
    learned.learn(&failure.message, exchange);
    let declared = exchange.tools.iter().map(|entry| &entry.name);
    if required.are_lost(declared, &learned.tools) {
        learned.tools.clone_from(&known.tools);
    }
    (learned != *known).then_some(learned)
}

impl Default for RefusalMemory {
    fn default() -> Self {
        let refusals = Expiring::new(REFUSAL_TTL, MAX_REFUSALS, MAX_REFUSALS_PER_SCOPE);
        let signatures = Expiring::new(SIGNATURE_TTL, MAX_SIGNATURES, MAX_SIGNATURES_PER_SCOPE);
        Self { refusals: Mutex::new(refusals), signatures: Mutex::new(signatures) }
    }
}

impl RefusalMemory {
    /// Returns the parts of this request that were refused lately.
    pub(crate) fn known(
        &self,
        scope: Scope,
        target: &Target,
        request: &Request<'_>,
        now: Instant,
    ) -> Learned {
        let mut known = Learned::default();
        // Almost always there is nothing, and nothing needs to be hashed.
        if !locked(&self.refusals).has(scope) {
            return known;
        }
        let items = items(scope, target, request);
        let refusals = locked(&self.refusals);
        for (fingerprint, item) in items {
            match (refusals.get(&fingerprint, now), item) {
                (Some(Refused::Features(learned)), _) => known.add(learned),
                (Some(Refused::Settings(members)), _) => {
                    known.generation.extend(members.iter().cloned());
                }
                (Some(Refused::Tool), Item::Tool(name)) => {
                    known.tools.insert(name.clone().into_owned());
                }
                (Some(Refused::Tool | Refused::ToolSet) | None, _) => {}
            }
        }
        drop(refusals);
        RequiredTools::of(&request.tool_choice).spare(request, &mut known);
        known
    }

    /// Remembers refused parts of this request.
    pub(crate) fn remember(
        &self,
        scope: Scope,
        target: &Target,
        request: &Request<'_>,
        lesson: &Learned,
        now: Instant,
    ) {
        let features =
            Learned { tools: BTreeSet::new(), generation: BTreeSet::new(), ..lesson.clone() };
        let settings_bytes: usize = lesson.generation.iter().map(String::len).sum();
        let items = items(scope, target, request);
        let mut refusals = locked(&self.refusals);
        for (fingerprint, item) in items {
            let refused = match item {
                Item::Features if features != Learned::default() => {
                    let mut features = features.clone();
                    if let Some(Refused::Features(known)) = refusals.get(&fingerprint, now) {
                        features.add(known);
                    }
                    Refused::Features(features)
                }
                Item::Settings
                    if !lesson.generation.is_empty() && settings_bytes <= MAX_SETTINGS_BYTES =>
                {
                    Refused::Settings(lesson.generation.clone())
                }
                Item::Tool(name) if lesson.tools.contains(name) => Refused::Tool,
                Item::Features | Item::Settings | Item::Tool(_) => continue,
            };
            refusals.insert(scope, fingerprint, refused, now);
        }
    }

    /// Whether any signature of this scope was refused lately.
    pub(crate) fn has_signatures(&self, scope: Scope) -> bool {
        locked(&self.signatures).has(scope)
    }

    /// Whether this signature may have been refused. One that names its issuer is another one.
    pub(crate) fn refuses_signature(
        &self,
        scope: Scope,
        target: &Target,
        signature: &Signature<'_>,
        now: Instant,
    ) -> bool {
        let fingerprint = signature_fingerprint(scope, target, signature);
        locked(&self.signatures).get(&fingerprint, now).is_some()
    }

    /// Remembers a signature that was left out because one was refused.
    pub(crate) fn refuse_signature(
        &self,
        scope: Scope,
        target: &Target,
        signature: &Signature<'_>,
        now: Instant,
    ) {
        let fingerprint = signature_fingerprint(scope, target, signature);
        locked(&self.signatures).insert(scope, fingerprint, (), now);
    }

    /// Whether the tools of this request of a Gemini client were refused lately.
    pub(crate) fn refuses_tools(
        &self,
        scope: Scope,
        target: &Target,
        body: &[u8],
        now: Instant,
    ) -> bool {
        // Almost always there is nothing, and the body need not be read.
        if !locked(&self.refusals).has(scope) {
            return false;
        }
        let Some(fingerprint) = tool_set_fingerprint(scope, target, body) else { return false };
        locked(&self.refusals).get(&fingerprint, now).is_some()
    }

    /// Remembers that the tools of this request are refused.
    pub(crate) fn refuse_tools(&self, scope: Scope, target: &Target, body: &[u8], now: Instant) {
        let Some(fingerprint) = tool_set_fingerprint(scope, target, body) else { return };
        locked(&self.refusals).insert(scope, fingerprint, Refused::ToolSet, now);
    }
}

impl Scope {
    /// The scope of a client's requests; `pooled` is the key of the gateway's own that they use.
    pub(crate) fn new(owner: Owner, pass: &Pass, pooled: Option<&Secret>) -> Self {
        let (kind, secret) = match (pass, pooled) {
            (Pass::ApiKey(key), _) => ("key", key.expose()),
            (Pass::Bearer(token), _) => ("bearer", token.expose()),
            (Pass::Pool, Some(key)) => ("pool", key.expose()),
            (Pass::Pool, None) => ("gateway", ""),
        };
        Self(fingerprint(&[owner.bytes(), kind.as_bytes(), secret.as_bytes()]))
    }
}

/// Map with a time to live and bounds on its entries, of all scopes and of each. All entries live
/// equally long, so that the oldest expires first.
#[derive(Debug)]
struct Expiring<V> {
    ttl: Duration,
    max_entries: usize,
    max_per_scope: usize,
    entries: HashMap<Fingerprint, Entry<V>>,
    /// Fingerprints of all entries, oldest first.
    ages: VecDeque<Fingerprint>,
    scopes: HashMap<Scope, usize>,
}

#[derive(Debug)]
struct Entry<V> {
    scope: Scope,
    until: Instant,
    value: V,
}

impl<V> Expiring<V> {
    fn new(ttl: Duration, max_entries: usize, max_per_scope: usize) -> Self {
        let (entries, ages, scopes) = (HashMap::new(), VecDeque::new(), HashMap::new());
        Self { ttl, max_entries, max_per_scope, entries, ages, scopes }
    }

    /// Whether the scope has entries. They may have expired.
    fn has(&self, scope: Scope) -> bool {
        self.scopes.contains_key(&scope)
    }

    fn get(&self, fingerprint: &Fingerprint, now: Instant) -> Option<&V> {
        let entry = self.entries.get(fingerprint)?;
        (entry.until > now).then_some(&entry.value)
    }

    /// Adds an entry, or replaces the value of one that has not expired. A scope that has as many as
    /// it may have keeps those; otherwise the oldest entry makes room.
    fn insert(&mut self, scope: Scope, fingerprint: Fingerprint, value: V, now: Instant) {
        while let Some(oldest) = self.ages.front()
            && self.entries.get(oldest).is_none_or(|entry| entry.until <= now)
        {
            self.remove_oldest();
        }
        if let Some(entry) = self.entries.get_mut(&fingerprint) {
            entry.value = value;
            return;
        }
        if self.scopes.get(&scope).is_some_and(|count| *count >= self.max_per_scope) {
            return;
        }
        if self.entries.len() >= self.max_entries {
            self.remove_oldest();
        }
        self.entries.insert(fingerprint, Entry { scope, until: now + self.ttl, value });
        self.ages.push_back(fingerprint);
        *self.scopes.entry(scope).or_insert(0) += 1;
    }

    fn remove_oldest(&mut self) {
        let oldest = self.ages.pop_front();
        let Some(entry) = oldest.and_then(|oldest| self.entries.remove(&oldest)) else { return };
        if let Some(count) = self.scopes.get_mut(&entry.scope) {
            *count -= 1;
            if *count == 0 {
                self.scopes.remove(&entry.scope);
            }
        }
    }
}

/// Whether a refusal is about a signature: of another model, key or project, or altered.
pub(crate) fn is_about_signatures(failure: &Failure) -> bool {
    let said = failure.message.to_lowercase();
    let is_signature = said.contains("thought signature") || said.contains("thought_signature");
    let words = ["corrupted", "invalid thought", "not valid", "base64 decoding failed"];
    failure.kind == FailureKind::InvalidRequest
        && is_signature
        && words.iter().any(|it| said.contains(it))
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A part of a request that may be refused on its own.
enum Item<'r> {
    /// Features that all requests to the target use.
    Features,
    Settings,
    Tool(&'r ToolName<'r>),
}

/// The parts of a request and their fingerprints.
fn items<'r>(
    scope: Scope,
    target: &Target,
    request: &'r Request<'_>,
) -> Vec<(Fingerprint, Item<'r>)> {
    let of = |kind: &str, pieces: &[&str]| {
        let head = [kind, &*target.model, backend_name(target.backend)];
        let head = [&scope.0[..]].into_iter().chain(head.map(str::as_bytes));
        let pieces: Vec<&[u8]> = head.chain(pieces.iter().map(|it| it.as_bytes())).collect();
        fingerprint(&pieces)
    };
    let settings = format!("{:?}{:?}", request.settings, request.thinking);
    let mut items =
        vec![(of("features", &[]), Item::Features), (of("settings", &[&settings]), Item::Settings)];
    let text = |text: Option<&'r Text<'_>>| text.map_or("", Text::literal);
    let json = |json: Option<&'r Raw<'_>>| json.map_or("", Raw::get);
    // Of two tools with one name the last is sent.
    let mut seen = BTreeSet::new();
    items.extend(request.tools.iter().rev().filter_map(|tool| {
        let name = function_name(tool).filter(|name| seen.insert(*name))?;
        let namespace = name.namespace.as_deref().unwrap_or_default();
        let declaration = match tool {
            Tool::Function(function) => [
                match function.form {
                    SchemaForm::JsonSchema => "json schema",
                    SchemaForm::Gemini => "schema",
                },
                text(function.description.as_ref()),
                json(function.parameters.as_ref()),
                json(function.response.as_ref()),
            ],
            Tool::Freeform { description, grammar, .. } => {
                ["freeform", text(description.as_ref()), text(grammar.as_ref()), ""]
            }
            Tool::Server(_) => return None,
        };
        let [form, description, input, output] = declaration;
        let pieces = [namespace, &*name.name, form, description, input, output];
        Some((of("tool", &pieces), Item::Tool(name)))
    }));
    items
}

fn function_name<'r>(tool: &'r Tool<'_>) -> Option<&'r ToolName<'r>> {
    match tool {
        Tool::Function(function) => Some(&function.name),
        Tool::Freeform { name, .. } => Some(name),
        Tool::Server(_) => None,
    }
}

fn backend_name(backend: Backend) -> &'static str {
    match backend {
        Backend::Developer => "developer",
        Backend::Vertex => "vertex",
    }
}

/// Hashes the pieces with their lengths, so that no two lists of pieces look the same.
fn fingerprint(pieces: &[&[u8]]) -> Fingerprint {
    let mut hash = Context::new(&SHA256);
    for piece in pieces {
        hash.update(&(piece.len() as u64).to_be_bytes());
        hash.update(piece);
    }
    let mut fingerprint = [0; 32];
    fingerprint.copy_from_slice(hash.finish().as_ref());
    fingerprint
}

fn signature_fingerprint(scope: Scope, target: &Target, signature: &Signature<'_>) -> Fingerprint {
    let named = if signature.issuer().is_some() { "named" } else { "unnamed" };
    let words = ["signature", &target.model, backend_name(target.backend), named];
    let [kind, model, backend, named] = words.map(str::as_bytes);
    fingerprint(&[&scope.0, kind, model, backend, named, signature.expose().as_bytes()])
}

fn tool_set_fingerprint(scope: Scope, target: &Target, body: &[u8]) -> Option<Fingerprint> {
    #[derive(Deserialize)]
    struct Body<'a> {
        #[serde(borrow)]
        tools: Option<&'a RawValue>,
    }
    let tools = serde_json::from_slice::<Body<'_>>(body).ok()?.tools?;
    let words = ["tools", &target.model, backend_name(target.backend), tools.get()];
    let [kind, model, backend, tools] = words.map(str::as_bytes);
    Some(fingerprint(&[&scope.0, kind, model, backend, tools]))
}

#[cfg(test)]
mod tests;
