//! Metrics. Names and labels are types, handed down from the gateway; nothing is global.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};
use toolgate_core::canon::{FailureKind, LossCode, ToolName, Usage};
use toolgate_core::translate::Dialect;
use toolgate_core::upstream::generate_content::SignatureCount;

/// All counters.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    /// Requests that are being read or answered.
    pub(crate) active: Gauge,
    requests: Family<RequestLabels, Counter>,
    calls: Counter,
    calls_ok: Counter,
    calls_failed: Counter,
    call_seconds: Histogram,
    uses: ToolUses,
    rescues: Family<KindLabels, Counter>,
    retries: Family<KindLabels, Counter>,
    key_rests: Family<KeyLabels, Counter>,
    failures: Family<KindLabels, Counter>,
    losses: Family<KindLabels, Counter>,
    signatures: Family<KindLabels, Counter>,
    tokens: Family<KindLabels, Counter>,
    own: Histogram,
    upstream: Histogram,
    /// Metrics of the store.
    pub(crate) store: toolgate_store::Metrics,
}

/// Calls by tool. Clients name tools as they like: the number and the length of the label's values are
/// bounded. All other labels have fixed values.
#[derive(Debug, Default)]
struct ToolUses {
    counters: Family<ToolLabels, Counter>,
    known: Mutex<BTreeSet<String>>,
}

/// Tools that are counted separately.
const MAX_TOOLS: usize = 256;
/// Longest name of such a tool, in bytes: twice what Gemini and the other vendors take.
const MAX_TOOL_NAME: usize = 256;
/// Label of all other tools.
const OTHER_TOOLS: &str = "(others)";

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ToolLabels {
    tool: String,
}

impl ToolUses {
    fn add(&self, tool: String) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = tool.len() <= MAX_TOOL_NAME && known.len() < MAX_TOOLS;
        let is_known = known.contains(&tool) || (is_new && known.insert(tool.clone()));
        drop(known);
        let tool = if is_known { tool } else { OTHER_TOOLS.to_owned() };
        self.counters.get_or_create(&ToolLabels { tool }).inc();
    }
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelValue)]
pub(crate) enum Outcome {
    /// The client went away.
    #[expect(non_camel_case_types, reason = "label values are snake case")]
    client_gone,
    /// The client was told of an error.
    #[expect(non_camel_case_types, reason = "label values are snake case")]
    error,
    /// All went well.
    #[expect(non_camel_case_types, reason = "label values are snake case")]
    ok,
    /// The client's mistake.
    #[expect(non_camel_case_types, reason = "label values are snake case")]
    rejected,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    endpoint: &'static str,
    outcome: Outcome,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KindLabels {
    kind: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KeyLabels {
    /// Fingerprint of the key.
    key: String,
    reason: &'static str,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("toolgate");
        // From 10 µs to about 10 s for our own time, to about 40 min for the upstream's.
        let fine = || Histogram::new(exponential_buckets(1e-5, 2.0, 20));
        let coarse = || Histogram::new(exponential_buckets(1e-2, 2.0, 18));
        let mut metrics = Self {
            registry: Registry::default(),
            active: Gauge::default(),
            requests: Family::default(),
            calls: Counter::default(),
            calls_ok: Counter::default(),
            calls_failed: Counter::default(),
            call_seconds: coarse(),
            uses: ToolUses::default(),
            rescues: Family::default(),
            retries: Family::default(),
            key_rests: Family::default(),
            failures: Family::default(),
            losses: Family::default(),
            signatures: Family::default(),
            tokens: Family::default(),
            own: fine(),
            upstream: coarse(),
            store: toolgate_store::Metrics::default(),
        };
        registry.register("active_requests", "Requests being answered", metrics.active.clone());
        registry.register("requests", "Requests answered", metrics.requests.clone());
        registry.register("tool_calls", "Tool calls that the model made", metrics.calls.clone());
        registry.register("tool_calls_ok", "Tool calls delivered whole", metrics.calls_ok.clone());
        registry.register(
            "tool_calls_failed",
            "Tool calls that could not be delivered, or did not fit their schema",
            metrics.calls_failed.clone(),
        );
        registry.register_with_unit(
            "tool_call_latency",
            "From the request to the call",
            Unit::Seconds,
            metrics.call_seconds.clone(),
        );
        registry.register(
            "tool_uses",
            "Tool calls that clients got, by tool",
            metrics.uses.counters.clone(),
        );
        registry.register("rescues", "Turns asked for again", metrics.rescues.clone());
        registry.register("upstream_retries", "Requests sent again", metrics.retries.clone());
        registry.register(
            "upstream_key_rests",
            "Refusals and exhausted quotas of the pool's API keys",
            metrics.key_rests.clone(),
        );
        registry.register("failures", "Failures shown to clients", metrics.failures.clone());
        registry.register(
            "losses",
            "Things that could not be carried over",
            metrics.losses.clone(),
        );
        registry.register("signatures", "Thought signatures sent back", metrics.signatures.clone());
        registry.register("tokens", "Tokens, as Gemini counts them", metrics.tokens.clone());
        registry.register_with_unit(
            "own_time",
            "Time spent in the gateway itself, per request",
            Unit::Seconds,
            metrics.own.clone(),
        );
        registry.register_with_unit(
            "upstream_time",
            "Time from sending a request to the end of its answer",
            Unit::Seconds,
            metrics.upstream.clone(),
        );
        registry.register(
            "store_away",
            "1 while the store's server cannot be reached",
            metrics.store.away.clone(),
        );
        registry.register(
            "store_lost",
            "Writes that the store could not keep",
            metrics.store.lost.clone(),
        );
        registry.register(
            "log_entries_dropped",
            "Log entries dropped because standard error was not read in time",
            crate::logging::dropped(),
        );
        registry.register(
            "store_unconfirmed",
            "Turns that went on before the store had confirmed their writes",
            metrics.store.unconfirmed.clone(),
        );
        registry.register(
            "store_queued_bytes",
            "Bytes of writes that the store has not committed",
            metrics.store.queued_bytes.clone(),
        );
        metrics.registry = registry;
        metrics
    }
}

impl Metrics {
    /// The text that Prometheus reads.
    pub(crate) fn text(&self) -> String {
        let mut out = String::new();
        // Writing into a string cannot fail.
        let _ = text::encode(&mut out, &self.registry);
        out
    }

    /// A request has been answered.
    pub(crate) fn request(&self, dialect: Dialect, outcome: Outcome) {
        self.requests.get_or_create(&RequestLabels { endpoint: dialect.name(), outcome }).inc();
    }

    /// Calls of one answer: all, and those that fit.
    pub(crate) fn calls(&self, all: u64, failed: u64, latency: Duration) {
        if all > 0 {
            self.calls.inc_by(all);
            self.calls_ok.inc_by(all.saturating_sub(failed));
            self.call_seconds.observe(latency.as_secs_f64());
        }
        self.calls_failed.inc_by(failed);
    }

    /// R168: a tool was called.
    pub(crate) fn used_tool(&self, tool: &ToolName<'_>) {
        self.uses.add(tool.to_string());
    }

    /// A turn is asked for again, because of this.
    pub(crate) fn rescued(&self, kind: &'static str) {
        self.rescues.get_or_create(&KindLabels { kind }).inc();
    }

    /// A request is sent again, because of this.
    pub(crate) fn retried(&self, kind: FailureKind) {
        self.retries.get_or_create(&KindLabels { kind: failure_name(kind) }).inc();
    }

    /// A key of the pool was refused, or its quota is used up.
    pub(crate) fn key_rested(&self, fingerprint: &str, reason: &'static str) {
        let key = fingerprint.to_owned();
        self.key_rests.get_or_create(&KeyLabels { key, reason }).inc();
    }

    /// A client is told of a failure.
    pub(crate) fn failed(&self, kind: FailureKind) {
        self.failures.get_or_create(&KindLabels { kind: failure_name(kind) }).inc();
    }

    /// Counts losses with this code.
    pub(crate) fn lost(&self, code: LossCode, count: u64) {
        self.losses.get_or_create(&KindLabels { kind: loss_name(code) }).inc_by(count);
    }

    /// Signatures of one request.
    pub(crate) fn signatures(&self, count: &SignatureCount) {
        for (kind, count) in
            [("real", count.real), ("placeholder", count.placeholder), ("foreign", count.foreign)]
        {
            if count > 0 {
                self.signatures.get_or_create(&KindLabels { kind }).inc_by(count as u64);
            }
        }
    }

    /// Tokens of one answer.
    pub(crate) fn used(&self, usage: &Usage) {
        for (kind, count) in [
            ("input", usage.uncached_input()),
            ("cached", usage.cached.unwrap_or(0)),
            ("output", usage.output()),
        ] {
            if count > 0 {
                self.tokens.get_or_create(&KindLabels { kind }).inc_by(count);
            }
        }
    }

    /// Where the time of one request went.
    pub(crate) fn timed(&self, own: Duration, upstream: Duration) {
        self.own.observe(own.as_secs_f64());
        self.upstream.observe(upstream.as_secs_f64());
    }
}

/// A failure's name in metrics and logs.
pub(crate) fn failure_name(kind: FailureKind) -> &'static str {
    match kind {
        FailureKind::Authentication => "authentication",
        FailureKind::Billing => "billing",
        FailureKind::ContextTooLong => "context_too_long",
        FailureKind::Cut => "cut",
        FailureKind::EmptyTurn => "empty_turn",
        FailureKind::Internal => "internal",
        FailureKind::InvalidRequest => "invalid_request",
        FailureKind::MalformedCall => "malformed_call",
        FailureKind::NotFound => "not_found",
        FailureKind::Overloaded => "overloaded",
        FailureKind::Permission => "permission",
        FailureKind::QuotaExhausted => "quota_exhausted",
        FailureKind::RateLimited => "rate_limited",
        FailureKind::Timeout => "timeout",
        FailureKind::TooLarge => "too_large",
        FailureKind::Unreachable => "unreachable",
        FailureKind::Unsupported => "unsupported",
        FailureKind::UpstreamProtocol => "upstream_protocol",
    }
}

fn loss_name(code: LossCode) -> &'static str {
    match code {
        LossCode::ArgumentRepaired => "argument_repaired",
        LossCode::ArgumentUnchecked => "argument_unchecked",
        LossCode::ArgumentViolation => "argument_violation",
        LossCode::CallAsText => "call_as_text",
        LossCode::CallDropped => "call_dropped",
        LossCode::Changed => "changed",
        LossCode::ForeignSignature => "foreign_signature",
        LossCode::Ignored => "ignored",
        LossCode::MissingResult => "missing_result",
        LossCode::NameAliased => "name_aliased",
        LossCode::NameRepaired => "name_repaired",
        LossCode::OrphanResult => "orphan_result",
        LossCode::PartDropped => "part_dropped",
        LossCode::PlaceholderSignature => "placeholder_signature",
        LossCode::SchemaKeyword => "schema_keyword",
        LossCode::ToolDropped => "tool_dropped",
        LossCode::UnknownField => "unknown_field",
        LossCode::UnknownTool => "unknown_tool",
    }
}
