//! One source of a registry: its options, its listing and its limits.

use std::collections::HashMap;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;
use toolgate_core::json::Raw;
use toolgate_core::schema::Checker;

use crate::grant::{Pattern, any};
use crate::{Failure, Flags, Limits, Listed, Source, Tool, ToolName};

/// Most tools that one source may list.
const MAX_TOOLS: usize = 10_000;

/// First and longest pause after a listing that failed.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Shortest time between two listings that refused calls ask for.
const REFRESH_PAUSE: Duration = Duration::from_secs(10);

/// When tools of a source are part of a catalogue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Offer {
    /// Where the scope asks for them.
    #[default]
    Asked,
    /// Always.
    Always,
}

/// Options of a source.
#[derive(Clone, Debug)]
pub struct SourceOptions {
    /// Names on the source that are offered; empty for all.
    pub allow: Vec<Pattern>,
    /// Names that are never offered.
    pub deny: Vec<Pattern>,
    /// Names whose calls need an approval.
    pub approve: Vec<Pattern>,
    /// Names whose results may be cached.
    pub deterministic: Vec<Pattern>,
    /// Names whose calls run one after another.
    pub sequential: Vec<Pattern>,
    /// Limits of each tool.
    pub limits: Limits,
    /// Calls of the source that run at the same time.
    pub max_in_flight: usize,
    /// When the tools are part of a catalogue.
    pub offer: Offer,
    /// Names that are part of every catalogue, whatever `offer` says.
    pub always: Vec<Pattern>,
    /// Time for which results of deterministic tools are kept.
    pub cache_ttl: Duration,
    /// Results depend on the client, so that a cached one is not given to another.
    pub private_results: bool,
    /// Time for one listing, all pages included.
    pub list_timeout: Duration,
    /// Age at which a listing is read again.
    pub list_ttl: Duration,
}

impl Default for SourceOptions {
    fn default() -> Self {
        Self {
            allow: Vec::new(),
            deny: Vec::new(),
            approve: Vec::new(),
            deterministic: Vec::new(),
            sequential: Vec::new(),
            limits: Limits::default(),
            max_in_flight: 64,
            offer: Offer::Asked,
            always: Vec::new(),
            cache_ttl: Duration::from_secs(300),
            private_results: true,
            list_timeout: Duration::from_secs(10),
            list_ttl: Duration::from_secs(300),
        }
    }
}

/// A tool with the state that its calls share.
pub(crate) struct Slot {
    pub(crate) tool: Arc<Tool>,
    pub(crate) permits: Arc<Semaphore>,
    pub(crate) checker: Checker,
}

pub(crate) type Listing = Arc<HashMap<String, Arc<Slot>>>;

/// A source in a registry.
pub(crate) struct Entry {
    pub(crate) namespace: Arc<str>,
    pub(crate) owner: Option<Arc<str>>,
    pub(crate) source: Arc<dyn Source>,
    pub(crate) options: SourceOptions,
    pub(crate) permits: Arc<Semaphore>,
    /// Calls that wait for a permit.
    pub(crate) waiting: AtomicUsize,
    state: Mutex<ListingState>,
}

#[derive(Default)]
struct ListingState {
    listing: Option<Listing>,
    listed_at: Option<Instant>,
    /// The listing has changed since it was read.
    is_stale: bool,
    failure: Option<Failure>,
    retry_at: Option<Instant>,
    pause: Duration,
    refresh: Option<watch::Receiver<()>>,
}

impl Entry {
    pub(crate) fn new(
        namespace: &str,
        owner: Option<Arc<str>>,
        source: Arc<dyn Source>,
        options: SourceOptions,
    ) -> Self {
        let permits = Arc::new(Semaphore::new(options.max_in_flight.max(1)));
        Self {
            namespace: namespace.into(),
            owner,
            source,
            options,
            permits,
            waiting: AtomicUsize::new(0),
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, ListingState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the listing: from memory if there is one, even while it is read again.
    ///
    /// # Errors
    /// Fails if there is no listing and the source gives none.
    pub(crate) async fn listing(self: &Arc<Self>, runtime: &Handle) -> Result<Listing, Failure> {
        let mut waited = false;
        loop {
            let mut ended = {
                let mut state = self.state();
                let now = Instant::now();
                let old = state.is_stale
                    || state.listed_at.is_none_or(|at| now - at >= self.options.list_ttl);
                let paused = state.retry_at.is_some_and(|at| at > now);
                if old && !paused && !waited && state.refresh.is_none() {
                    self.start_refresh(&mut state, runtime);
                }
                if let Some(listing) = &state.listing {
                    return Ok(Arc::clone(listing));
                }
                match &state.refresh {
                    Some(ended) if !waited => ended.clone(),
                    _ => {
                        let failure = state.failure.clone();
                        let unknown = || Failure::Unreachable("no listing".to_owned());
                        return Err(failure.unwrap_or_else(unknown));
                    }
                }
            };
            // The sender is dropped when the listing has ended.
            let _ = ended.changed().await;
            waited = true;
        }
    }

    /// Reads the listing again in the background.
    pub(crate) fn refresh(self: &Arc<Self>, runtime: &Handle) {
        let mut state = self.state();
        state.is_stale = true;
        if state.refresh.is_none() {
            self.start_refresh(&mut state, runtime);
        }
    }

    /// Reads the listing again in the background, unless it was read a moment ago.
    pub(crate) fn refresh_if_old(self: &Arc<Self>, runtime: &Handle) {
        let is_old = self.state().listed_at.is_none_or(|at| at.elapsed() >= REFRESH_PAUSE);
        if is_old {
            self.refresh(runtime);
        }
    }

    /// Waits until the refresh that is in progress has ended.
    pub(crate) async fn refreshed(&self) {
        let running = self.state().refresh.clone();
        if let Some(mut ended) = running {
            let _ = ended.changed().await;
        }
    }

    fn start_refresh(self: &Arc<Self>, state: &mut ListingState, runtime: &Handle) {
        let (ended, receiver) = watch::channel(());
        state.refresh = Some(receiver);
        state.is_stale = false;
        let entry = Arc::clone(self);
        runtime.spawn(async move {
            let listed =
                tokio::time::timeout(entry.options.list_timeout, Arc::clone(&entry.source).list())
                    .await
                    .unwrap_or(Err(Failure::Timeout { limit: entry.options.list_timeout }));
            entry.finish_refresh(listed);
            drop(ended);
        });
    }

    fn finish_refresh(&self, listed: Result<Vec<Listed>, Failure>) {
        let mut state = self.state();
        state.refresh = None;
        match listed {
            Ok(listed) => {
                let old = state.listing.clone().unwrap_or_default();
                state.listing = Some(self.build(listed, &old));
                state.listed_at = Some(Instant::now());
                state.failure = None;
                state.retry_at = None;
                state.pause = Duration::ZERO;
            }
            Err(failure) => {
                let pause = (state.pause * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE);
                if state.failure.is_none() {
                    tracing::warn!(
                        source = &*self.namespace,
                        fault = failure.kind(),
                        stale = state.listing.is_some(),
                        "tools of a source cannot be listed"
                    );
                }
                state.failure = Some(failure);
                state.pause = pause;
                state.retry_at = Some(Instant::now() + pause);
            }
        }
    }

    fn build(&self, listed: Vec<Listed>, old: &Listing) -> Listing {
        let mut slots = HashMap::new();
        for listed in listed.into_iter().take(MAX_TOOLS) {
            let Ok(name) = ToolName::new(&self.namespace, &listed.name) else {
                tracing::warn!(source = &*self.namespace, "tool with an invalid name left out");
                continue;
            };
            let options = &self.options;
            let offered = options.allow.is_empty() || any(&options.allow, &listed.name);
            if !offered || any(&options.deny, &listed.name) {
                continue;
            }
            let tool = self.tool(name, listed);
            let key = tool.name.name().to_owned();
            let same = old.get(&key).filter(|it| {
                it.tool.digest == tool.digest
                    && it.tool.flags == tool.flags
                    && it.tool.limits == tool.limits
                    && it.tool.sessions == tool.sessions
            });
            let slot = same.cloned().unwrap_or_else(|| {
                let permits =
                    if tool.flags.sequential { 1 } else { tool.limits.concurrency.max(1) };
                let schema = Raw::parse(tool.definition.input_schema.get().to_owned());
                Arc::new(Slot {
                    checker: Checker::new(schema.as_ref()),
                    permits: Arc::new(Semaphore::new(permits)),
                    tool: Arc::new(tool),
                })
            });
            slots.insert(key, slot);
        }
        Arc::new(slots)
    }

    fn tool(&self, name: ToolName, listed: Listed) -> Tool {
        let options = &self.options;
        let trusted = self.source.is_trusted();
        let hints = if trusted { listed.flags } else { Flags::default() };
        let mut limits = options.limits;
        if let Some(timeout) = listed.timeout.filter(|_| trusted) {
            limits.idle_timeout = timeout.min(limits.total_timeout);
        }
        let digest = listed.definition.digest(&listed.name);
        let mut definition = listed.definition;
        definition.clean();
        Tool {
            flags: Flags {
                sequential: hints.sequential || any(&options.sequential, name.name()),
                deterministic: hints.deterministic || any(&options.deterministic, name.name()),
                needs_approval: hints.needs_approval || any(&options.approve, name.name()),
            },
            owner: self.owner.clone(),
            definition,
            digest,
            limits,
            sessions: if trusted { listed.sessions } else { Vec::new() },
            name,
        }
    }
}
