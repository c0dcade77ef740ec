//! Registry of tools: sources, catalogues, grants, pins, calls.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::{Arc, PoisonError, RwLock};

use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use toolgate_core::canon::LossCode;
use toolgate_core::json::Raw;

use crate::cache::{Cache, Key, Lookup};
use crate::entry::{Entry, Slot};
use crate::run::{self, Job};
use crate::runtime::Runtime;
use crate::session::Sessions;
use crate::tool::check_namespace;
use crate::{
    Denial, Digest, Failure, Grants, NameError, Offer, Outcome, Output, Owner, Pattern, Progress,
    Request, Source, SourceOptions, Tool, ToolName, grant,
};

/// Treatment of definitions that differ from their pin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PinMode {
    /// Pins are not compared.
    Off,
    /// Changed definitions are logged and offered.
    #[default]
    Warn,
    /// Only pinned definitions are offered.
    Enforce,
}

/// Settings of a registry.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Grants of the clients.
    pub grants: Grants,
    /// Treatment of definitions that differ from their pin.
    pub pin_mode: PinMode,
    /// Digests of reviewed definitions.
    pub pins: HashMap<ToolName, Digest>,
    /// Maximum size of all cached results.
    pub cache_bytes: usize,
    /// Most sessions that are remembered.
    pub max_sessions: usize,
    /// Time after which an unused session is forgotten.
    pub session_ttl: std::time::Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            grants: Grants::none(),
            pin_mode: PinMode::Warn,
            pins: HashMap::new(),
            cache_bytes: 32 * 1024 * 1024,
            max_sessions: 10_000,
            session_ttl: std::time::Duration::from_secs(3600),
        }
    }
}

/// Point of view of a caller: who asks, and for which tools.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// Client on whose behalf tools are listed and called.
    pub owner: Owner,
    /// Session of the caller.
    pub session: Option<Arc<str>>,
    /// Tools that are asked for, beside those that are always offered. The operator asks for all.
    pub asked: Vec<Pattern>,
}

impl Scope {
    /// The program itself: all tools, no grants needed.
    pub fn operator() -> Self {
        Self { owner: Owner::Operator, session: None, asked: vec![Pattern::new("*")] }
    }

    /// A client key, by its name.
    pub fn client(name: &str) -> Self {
        Self { owner: Owner::client(name), session: None, asked: Vec::new() }
    }

    /// The same scope in a session.
    #[must_use]
    pub fn in_session(mut self, session: &str) -> Self {
        self.session = Some(session.into());
        self
    }

    /// The same scope, asking for more tools.
    #[must_use]
    pub fn asking(mut self, pattern: &str) -> Self {
        self.asked.push(Pattern::new(pattern));
        self
    }
}

/// One call.
#[derive(Clone, Debug)]
pub struct Call {
    /// Point of view of the caller.
    pub scope: Scope,
    /// Name of the tool.
    pub name: ToolName,
    /// Arguments: the text of a JSON object.
    pub arguments: Box<RawValue>,
    /// Id of the call.
    pub id: String,
    /// Digest of the definition that was offered. A definition that has changed is not called.
    pub digest: Option<Digest>,
    /// A person approved the call.
    pub is_approved: bool,
    /// Ends the call early.
    pub cancel: CancellationToken,
    /// Receives progress; reports that are not read in time are dropped.
    pub progress: Option<mpsc::Sender<Progress>>,
    /// Latest end, if it is earlier than the limit of the tool.
    pub deadline: Option<Instant>,
}

impl Call {
    /// A call without a digest, an approval, progress or a deadline of its own.
    pub fn new(scope: Scope, name: ToolName, arguments: Box<RawValue>) -> Self {
        Self {
            scope,
            name,
            arguments,
            id: String::new(),
            digest: None,
            is_approved: false,
            cancel: CancellationToken::new(),
            progress: None,
            deadline: None,
        }
    }
}

/// Tools of a scope at one moment, sorted by source, as they were added, and by name.
#[derive(Clone, Debug, Default)]
pub struct Catalogue {
    /// The tools.
    pub tools: Vec<Arc<Tool>>,
    /// Sources that could not be listed.
    pub failures: Vec<(Arc<str>, Failure)>,
}

impl Catalogue {
    /// Returns the tool of a name.
    pub fn get(&self, name: &ToolName) -> Option<&Arc<Tool>> {
        self.tools.iter().find(|it| it.name == *name)
    }
}

/// Reason why a source was not added.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddError {
    /// The namespace is not valid.
    #[error(transparent)]
    Name(#[from] NameError),
    /// Another source has the namespace.
    #[error("namespace `{0}` is taken")]
    Taken(String),
}

/// Registry of tools. Clones share one registry; it ends with its last clone.
///
/// Sources run on a thread of the registry. All methods can be called on any runtime, and none does
/// I/O on the thread of the caller.
#[derive(Clone)]
pub struct Registry {
    inner: Arc<Inner>,
}

struct Inner {
    // Dropped first: tasks end before the sources that they use.
    runtime: Runtime,
    entries: RwLock<Arc<Vec<Arc<Entry>>>>,
    settings: Settings,
    cache: Cache,
    sessions: Sessions,
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self.entries().iter().map(|it| Arc::clone(&it.namespace)).collect();
        f.debug_struct("Registry").field("sources", &names).finish_non_exhaustive()
    }
}

impl Registry {
    /// Starts a registry without sources.
    ///
    /// # Errors
    /// Fails if the thread of the registry cannot be started.
    pub fn start(settings: Settings) -> io::Result<Self> {
        Ok(Self {
            inner: Arc::new(Inner {
                runtime: Runtime::start()?,
                entries: RwLock::default(),
                cache: Cache::new(settings.cache_bytes),
                sessions: Sessions::new(settings.max_sessions, settings.session_ttl),
                settings,
            }),
        })
    }

    /// Runtime on which the sources run.
    pub fn handle(&self) -> &tokio::runtime::Handle {
        self.inner.runtime.handle()
    }

    pub(crate) fn sessions(&self) -> &Sessions {
        &self.inner.sessions
    }

    fn entries(&self) -> Arc<Vec<Arc<Entry>>> {
        Arc::clone(&self.inner.entries.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds a source of the operator under a namespace.
    ///
    /// # Errors
    /// Fails if the namespace is not valid or taken.
    pub fn add(
        &self,
        namespace: &str,
        source: Arc<dyn Source>,
        options: SourceOptions,
    ) -> Result<(), AddError> {
        self.add_for(namespace, None, source, options)
    }

    /// Adds a source that only one client sees.
    ///
    /// # Errors
    /// Fails if the namespace is not valid or taken.
    pub fn add_for(
        &self,
        namespace: &str,
        owner: Option<Arc<str>>,
        source: Arc<dyn Source>,
        options: SourceOptions,
    ) -> Result<(), AddError> {
        check_namespace(namespace)?;
        let entry = Arc::new(Entry::new(namespace, owner, source, options));
        {
            let mut entries = self.inner.entries.write().unwrap_or_else(PoisonError::into_inner);
            if entries.iter().any(|it| &*it.namespace == namespace) {
                return Err(AddError::Taken(namespace.to_owned()));
            }
            let mut list = Vec::clone(&entries);
            list.push(Arc::clone(&entry));
            *entries = Arc::new(list);
        }
        if let Some(mut changes) = entry.source.changes() {
            let weak = Arc::downgrade(&entry);
            let runtime = self.handle().clone();
            self.handle().spawn(async move {
                while changes.changed().await.is_ok() {
                    let Some(entry) = weak.upgrade() else { return };
                    entry.refresh(&runtime);
                }
            });
        }
        Ok(())
    }

    /// Removes a source and closes it. Calls in progress are cancelled by the source.
    pub async fn remove(&self, namespace: &str) -> bool {
        let removed = {
            let mut entries = self.inner.entries.write().unwrap_or_else(PoisonError::into_inner);
            let removed = entries.iter().find(|it| &*it.namespace == namespace).cloned();
            *entries = Arc::new(
                entries.iter().filter(|it| &*it.namespace != namespace).cloned().collect(),
            );
            removed
        };
        let Some(entry) = removed else { return false };
        let closing = self.handle().spawn(Arc::clone(&entry.source).close());
        let _ = closing.await;
        true
    }

    /// Closes all sources: connections are closed, processes end.
    pub async fn close(&self) {
        let entries = {
            let mut entries = self.inner.entries.write().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *entries)
        };
        let closing: Vec<_> = entries
            .iter()
            .map(|entry| self.handle().spawn(Arc::clone(&entry.source).close()))
            .collect();
        for task in closing {
            let _ = task.await;
        }
    }

    /// Returns the tools of a scope. Sources are listed in parallel, and only those that have no
    /// listing in memory are waited for.
    pub async fn list(&self, scope: &Scope) -> Catalogue {
        let entries = self.entries();
        let wanted: Vec<_> = entries.iter().filter(|it| self.may_ask(it, scope)).cloned().collect();
        let listings = wanted.iter().map(|entry| entry.listing(self.handle()));
        let listings = futures_util::future::join_all(listings).await;
        let mut catalogue = Catalogue::default();
        for (entry, listing) in wanted.iter().zip(listings) {
            match listing {
                Ok(listing) => {
                    let visible: BTreeMap<_, _> = listing
                        .iter()
                        .filter(|(_, slot)| self.is_visible(entry, &slot.tool, scope))
                        .filter(|(_, slot)| self.is_pinned(&slot.tool))
                        .collect();
                    catalogue.tools.extend(visible.values().map(|slot| Arc::clone(&slot.tool)));
                }
                Err(failure) => catalogue.failures.push((Arc::clone(&entry.namespace), failure)),
            }
        }
        catalogue
    }

    /// Reads the listing of a source again, and waits for it.
    pub async fn refresh(&self, namespace: &str) {
        let entry = self.entries().iter().find(|it| &*it.namespace == namespace).cloned();
        if let Some(entry) = entry {
            entry.refresh(self.handle());
            entry.refreshed().await;
        }
    }

    /// Returns the digests of all tools, to be written to a file of pins.
    pub async fn pins(&self) -> BTreeMap<ToolName, Digest> {
        let mut pins = BTreeMap::new();
        for entry in self.entries().iter() {
            if let Ok(listing) = entry.listing(self.handle()).await {
                let tools = listing.values();
                pins.extend(tools.map(|it| (it.tool.name.clone(), it.tool.digest)));
            }
        }
        pins
    }

    /// Whether tools of a source can be part of a catalogue.
    fn may_ask(&self, entry: &Entry, scope: &Scope) -> bool {
        let is_own = entry.owner.is_none() || entry.owner.as_deref() == scope.owner.name();
        let asked = || {
            let prefix = format!("{}.", entry.namespace);
            scope.asked.iter().any(|it| it.may_match(&prefix))
                || self.inner.sessions.given(scope).iter().any(|it| it.may_match(&prefix))
        };
        let options = &entry.options;
        is_own && (options.offer == Offer::Always || !options.always.is_empty() || asked())
    }

    fn is_visible(&self, entry: &Entry, tool: &Tool, scope: &Scope) -> bool {
        let name = tool.name.to_string();
        let asked = entry.options.offer == Offer::Always
            || grant::any(&entry.options.always, tool.name.name())
            || grant::any(&scope.asked, &name)
            || grant::any(&self.inner.sessions.given(scope), &name);
        asked && self.is_permitted(entry, tool, scope)
    }

    fn is_permitted(&self, entry: &Entry, tool: &Tool, scope: &Scope) -> bool {
        let is_own = entry.owner.is_none() || entry.owner.as_deref() == scope.owner.name();
        let granted =
            entry.owner.is_some() || self.inner.settings.grants.allows(&scope.owner, &tool.name);
        let in_session = tool.sessions.is_empty()
            || scope.session.as_deref().is_some_and(|id| tool.sessions.iter().any(|it| it == id));
        is_own && granted && in_session
    }

    fn is_pinned(&self, tool: &Tool) -> bool {
        let settings = &self.inner.settings;
        let pin = settings.pins.get(&tool.name);
        match (settings.pin_mode, pin) {
            (PinMode::Off, _) => true,
            (_, Some(pin)) if *pin == tool.digest => true,
            (PinMode::Warn, Some(_)) => {
                tracing::warn!(tool = %tool.name, "definition differs from its pin");
                true
            }
            (PinMode::Warn, None) => true,
            (PinMode::Enforce, _) => false,
        }
    }

    /// Runs a call. It ends in exactly one outcome; dropping the future cancels it.
    pub async fn call(&self, call: Call) -> Outcome {
        let began = Instant::now();
        let (id, name) = (call.id.clone(), call.name.clone());
        let owner = call.scope.owner.clone();
        let guard = call.cancel.child_token();
        let _cancel_on_drop = guard.clone().drop_guard();
        let (result, cached, digest) = match self.admit(&call).await {
            Ok((entry, slot)) => {
                let digest = Some(slot.tool.digest);
                let (result, cached) = self.run(call, &entry, slot, guard).await;
                if let Err(Failure::Protocol { code: -32601 | -32602, .. }) = &result {
                    // The listing may be out of date.
                    entry.refresh_if_old(self.handle());
                }
                (result, cached, digest)
            }
            Err(failure) => (Err(failure), false, None),
        };
        let outcome = Outcome { id, tool: name, result, cached, elapsed: began.elapsed() };
        tracing::info!(
            owner = owner.name().unwrap_or("operator"),
            tool = %outcome.tool,
            digest = digest.map(tracing::field::display),
            fault = outcome.fault(),
            cached = outcome.cached,
            ms = u64::try_from(outcome.elapsed.as_millis()).unwrap_or(u64::MAX),
            bytes = outcome.result.as_ref().map_or(0, Output::bytes),
            "tool call"
        );
        outcome
    }

    /// Checks whether a call may run at all.
    async fn admit(&self, call: &Call) -> Result<(Arc<Entry>, Arc<Slot>), Failure> {
        let entries = self.entries();
        let entry = entries.iter().find(|it| &*it.namespace == call.name.namespace());
        let entry = Arc::clone(entry.ok_or(Failure::UnknownTool)?);
        let is_own = entry.owner.is_none() || entry.owner.as_deref() == call.scope.owner.name();
        if !is_own {
            return Err(Failure::UnknownTool);
        }
        let listing = entry.listing(self.handle()).await?;
        let slot = Arc::clone(listing.get(call.name.name()).ok_or(Failure::UnknownTool)?);
        let tool = &slot.tool;
        if !self.is_permitted(&entry, tool, &call.scope) {
            return Err(Failure::Denied(Denial::Grant));
        }
        if call.digest.is_some_and(|digest| digest != tool.digest) {
            return Err(Failure::Denied(Denial::Changed));
        }
        if !self.is_pinned(tool) {
            return Err(Failure::Denied(Denial::Pin));
        }
        if tool.flags.needs_approval && !call.is_approved {
            return Err(Failure::Denied(Denial::Approval));
        }
        let arguments = Raw::parse(call.arguments.get().to_owned())
            .ok_or_else(|| Failure::Arguments("not a JSON value".to_owned()))?;
        let violations = slot.checker.violations(&arguments);
        let words: Vec<_> = violations
            .iter()
            .filter(|it| it.code == LossCode::ArgumentViolation)
            .map(|it| format!("{}: {}", it.at, it.detail))
            .take(10)
            .collect();
        if !words.is_empty() {
            return Err(Failure::Arguments(words.join("; ")));
        }
        Ok((entry, slot))
    }

    async fn run(
        &self,
        call: Call,
        entry: &Arc<Entry>,
        slot: Arc<Slot>,
        cancel: CancellationToken,
    ) -> (Result<Output, Failure>, bool) {
        let limit = Instant::now() + slot.tool.limits.total_timeout;
        let deadline = call.deadline.map_or(limit, |at| at.min(limit));
        let key = slot.tool.flags.deterministic.then(|| {
            let options = &entry.options;
            let credential = call.scope.owner.name().filter(|_| options.private_results);
            Key::new(&entry.namespace, &slot.tool.digest, &call.arguments, credential)
        });
        let job = Job {
            entry: Arc::clone(entry),
            request: Request {
                name: call.name.name().to_owned(),
                arguments: call.arguments,
                session: call.scope.session,
                call_id: call.id,
                deadline,
            },
            slot,
            cancel: cancel.clone(),
            progress: call.progress,
        };
        let Some(key) = key else { return (self.spawn(job).await, false) };
        loop {
            match self.inner.cache.look(key) {
                Lookup::Hit(output) => return (Ok(Output::clone(&output)), true),
                Lookup::Lead(lead) => {
                    let ttl = entry.options.cache_ttl;
                    let result = self.spawn(job).await;
                    if let Ok(output) = &result {
                        lead.store(output, ttl);
                    }
                    return (result, false);
                }
                Lookup::Wait(mut ended) => tokio::select! {
                    _ = ended.changed() => {}
                    () = cancel.cancelled() => return (Err(Failure::Cancelled), false),
                    () = tokio::time::sleep_until(deadline) => {
                        return (Err(Failure::Timeout { limit: job.slot.tool.limits.total_timeout }), false);
                    }
                },
            }
        }
    }

    /// Runs a call on the thread of the registry.
    async fn spawn(&self, job: Job) -> Result<Output, Failure> {
        match self.handle().spawn(run::run(job)).await {
            Ok(result) => result,
            // The source panicked, or the registry ended.
            Err(_) => Err(Failure::Crashed),
        }
    }
}
