//! Audit of one request: metrics and one log line at its end, however it ends.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use toolgate_core::canon::Target;
use toolgate_core::canon::{
    Call, Failure, FailureKind, Finish, Loss, LossCode, Losses, ToolName, Usage, brief,
};
use toolgate_core::translate::Dialect;

use super::context::Services;
use super::prepare::Prepared;
use crate::metrics::{Outcome, failure_name};

/// Maximum length of a message in the log, in bytes: it may quote the request.
pub(crate) const MAX_LOGGED_BYTES: usize = 300;

/// Audit of one request. Dropping it before its end counts as a client that disconnected.
#[derive(Debug)]
pub(crate) struct Audit {
    services: Arc<Services>,
    dialect: Dialect,
    request_id: String,
    model: String,
    tools: usize,
    stream: bool,
    started: Instant,
    /// Time spent in the gateway itself.
    own: Duration,
    has_ended: bool,
    /// Tools of the calls that the client has got.
    delivered: Vec<ToolName<'static>>,
}

impl Audit {
    pub(crate) fn new(services: Arc<Services>, dialect: Dialect, request_id: &str) -> Self {
        Self {
            services,
            dialect,
            request_id: request_id.to_owned(),
            model: String::new(),
            tools: 0,
            stream: false,
            started: Instant::now(),
            own: Duration::ZERO,
            has_ended: false,
            delivered: Vec::new(),
        }
    }

    /// Counts from an earlier time on; the time since then was spent in the gateway itself.
    pub(crate) fn since(mut self, started: Instant) -> Self {
        (self.started, self.own) = (started, started.elapsed());
        self
    }

    /// Counts the calls that the client has got so far.
    pub(crate) fn deliver(&mut self, calls: &[Call<'static>]) {
        let new = calls.iter().skip(self.delivered.len());
        self.delivered.extend(new.map(|call| call.tool.clone()));
    }

    /// Notes the request that is sent upstream.
    pub(crate) fn prepared(&mut self, prepared: &Prepared) {
        prepared.target.model.clone_into(&mut self.model);
        self.tools = prepared.tools;
        self.stream = prepared.stream;
        self.services.metrics.signatures(&prepared.signatures);
        self.lost(&prepared.losses);
    }

    /// Notes a request that is passed through undecoded.
    pub(crate) fn passing(&mut self, target: &Target, stream: bool) {
        target.model.clone_into(&mut self.model);
        self.stream = stream;
    }

    /// Counts and logs losses.
    pub(crate) fn lost(&self, losses: &Losses) {
        for loss in losses {
            self.services.metrics.lost(loss.code, 1);
            let (at, detail) =
                (brief(&loss.at, MAX_LOGGED_BYTES), brief(&loss.detail, MAX_LOGGED_BYTES));
            if is_loud(loss.code) {
                tracing::warn!(request = %self.request_id, %at, tool = loss.tool.as_deref(), "{detail}");
            } else {
                tracing::debug!(request = %self.request_id, %at, code = ?loss.code, "{detail}");
            }
        }
        for (code, count) in losses.omitted() {
            self.services.metrics.lost(code, count as u64);
            tracing::debug!(request = %self.request_id, ?code, "{count} more losses");
        }
    }

    /// Adds time spent in the gateway itself.
    pub(crate) fn worked(&mut self, time: Duration) {
        self.own += time;
    }

    /// Counts a correction round.
    pub(crate) fn corrected(&self, usage: &Usage) {
        self.services.metrics.rescued("bad_call");
        self.services.metrics.used(usage);
        tracing::warn!(request = %self.request_id, "faulty calls, answering them to the model");
    }

    /// The answer is complete.
    pub(crate) fn done(&mut self, finish: &Finish) {
        self.services.metrics.used(&finish.usage);
        self.lost(&finish.losses);
        let faulty: BTreeSet<usize> = finish.losses.iter().filter_map(faulty_call).collect();
        let calls = self.count_calls(&faulty);
        self.end(Outcome::ok, calls, None, Some(finish));
    }

    /// Counts the calls that the client has got; returns their number.
    fn count_calls(&mut self, faulty: &BTreeSet<usize>) -> usize {
        let tools = std::mem::take(&mut self.delivered);
        let failed = faulty.range(..tools.len()).count() as u64;
        self.services.metrics.calls(tools.len() as u64, failed, self.started.elapsed());
        for tool in &tools {
            self.services.metrics.used_tool(tool);
        }
        tools.len()
    }

    /// The client gets an error.
    pub(crate) fn failed(&mut self, failure: &Failure) {
        self.services.metrics.failed(failure.kind);
        if failure.kind == FailureKind::MalformedCall {
            self.services.metrics.calls(1, 1, self.started.elapsed());
        }
        let calls = self.count_calls(&BTreeSet::new());
        self.end(outcome_of(failure), calls, Some(failure), None);
    }

    /// A request that is not a turn (a count, a list) is answered.
    pub(crate) fn answered(&mut self) {
        self.end(Outcome::ok, 0, None, None);
    }

    fn end(
        &mut self,
        outcome: Outcome,
        calls: usize,
        failure: Option<&Failure>,
        finish: Option<&Finish>,
    ) {
        if std::mem::replace(&mut self.has_ended, true) {
            return;
        }
        let total = self.started.elapsed();
        let upstream = total.saturating_sub(self.own);
        self.services.metrics.request(self.dialect, outcome);
        self.services.metrics.timed(self.own, upstream);
        let usage = finish.map(|finish| finish.usage).unwrap_or_default();
        let message = failure.map(|failure| brief(&failure.message, MAX_LOGGED_BYTES));
        tracing::info!(
            request = %self.request_id,
            dialect = self.dialect.name(),
            model = %self.model,
            stream = self.stream,
            tools = self.tools,
            calls,
            input = usage.input(),
            cached = usage.cached.unwrap_or(0),
            output = usage.output(),
            upstream_ms = upstream.as_millis() as u64,
            own_us = self.own.as_micros() as u64,
            outcome = ?outcome,
            failure = failure.map(|failure| failure_name(failure.kind)),
            message = message.as_deref().unwrap_or_else(|| message_of(outcome)),
        );
    }
}

impl Drop for Audit {
    fn drop(&mut self) {
        if !self.has_ended {
            let calls = self.count_calls(&BTreeSet::new());
            self.end(Outcome::client_gone, calls, None, None);
        }
    }
}

/// Outcome that a failure counts as.
fn outcome_of(failure: &Failure) -> Outcome {
    match failure.kind {
        FailureKind::ContextTooLong
        | FailureKind::InvalidRequest
        | FailureKind::NotFound
        | FailureKind::TooLarge
        | FailureKind::Unsupported => Outcome::rejected,
        // A credential that Google refuses may be the gateway's own.
        FailureKind::Authentication | FailureKind::Permission
            if failure.upstream_status.is_none() =>
        {
            Outcome::rejected
        }
        FailureKind::Authentication
        | FailureKind::Billing
        | FailureKind::Cut
        | FailureKind::EmptyTurn
        | FailureKind::Internal
        | FailureKind::MalformedCall
        | FailureKind::Overloaded
        | FailureKind::Permission
        | FailureKind::QuotaExhausted
        | FailureKind::RateLimited
        | FailureKind::Timeout
        | FailureKind::Unreachable
        | FailureKind::UpstreamProtocol => Outcome::error,
    }
}

/// Log message of an outcome without a failure.
fn message_of(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::client_gone => "client disconnected",
        Outcome::error | Outcome::ok | Outcome::rejected => "answered",
    }
}

/// Whether a loss is logged as a warning.
fn is_loud(code: LossCode) -> bool {
    match code {
        LossCode::ArgumentUnchecked
        | LossCode::ArgumentViolation
        | LossCode::CallAsText
        | LossCode::CallDropped
        | LossCode::OrphanResult
        | LossCode::PartDropped
        | LossCode::PlaceholderSignature
        | LossCode::ToolDropped
        | LossCode::UnknownTool => true,
        LossCode::ArgumentRepaired
        | LossCode::Changed
        | LossCode::ForeignSignature
        | LossCode::Ignored
        | LossCode::MissingResult
        | LossCode::NameAliased
        | LossCode::NameRepaired
        | LossCode::SchemaKeyword
        | LossCode::UnknownField => false,
    }
}

/// Index of the call that a loss makes faulty: 2 for `calls[2].args`.
fn faulty_call(loss: &Loss) -> Option<usize> {
    let is_faulty = matches!(
        loss.code,
        LossCode::ArgumentViolation | LossCode::UnknownTool | LossCode::CallDropped
    );
    loss.call().map(|(number, _)| number).filter(|_| is_faulty)
}
