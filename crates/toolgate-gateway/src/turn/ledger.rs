//! What one request cost and came to: written down once, at its end, however it ends.

use std::sync::Arc;
use std::time::{Duration, Instant};

use toolgate_core::canon::{Call, Failure, FailureKind, Finish, LossCode, Losses, Usage};
use toolgate_core::translate::{Dialect, Seen};

use super::keep;
use super::trace::Trace;
use crate::app::App;
use crate::auth::Owner;
use crate::metrics::{Outcome, failure_name};

/// One request's account. Dropping it without an end means that the client went away.
#[derive(Debug)]
pub(crate) struct Ledger {
    app: Arc<App>,
    door: Dialect,
    owner: Owner,
    request_id: String,
    model: String,
    tools: usize,
    stream: bool,
    began: Instant,
    own: Duration,
    ended: bool,
    trace: Trace,
}

impl Ledger {
    pub(crate) fn new(app: Arc<App>, door: Dialect, owner: Owner, request_id: &str) -> Self {
        app.metrics.active.inc();
        Self {
            app,
            door,
            owner,
            request_id: request_id.to_owned(),
            model: String::new(),
            tools: 0,
            stream: false,
            began: Instant::now(),
            own: Duration::ZERO,
            ended: false,
            trace: Trace::default(),
        }
    }

    /// What is asked, as soon as it is known.
    pub(crate) fn asked(&mut self, prepared: &super::Prepared) {
        prepared.target.model.clone_into(&mut self.model);
        self.trace = prepared.trace.clone();
        self.tools = prepared.tools;
        self.stream = prepared.stream;
        self.app.metrics.signatures(&prepared.signatures);
        self.lost(&prepared.losses);
    }

    /// What is asked, where the question goes on unread.
    pub(crate) fn passing(&mut self, model: &str, stream: bool) {
        model.clone_into(&mut self.model);
        self.stream = stream;
    }

    /// Things could not be carried over.
    pub(crate) fn lost(&self, losses: &Losses) {
        for loss in losses {
            self.app.metrics.lost(loss.code);
            if is_loud(loss.code) {
                tracing::warn!(request = %self.request_id, at = %loss.at, tool = loss.tool.as_deref(), "{}", loss.detail);
            } else {
                tracing::debug!(request = %self.request_id, at = %loss.at, code = ?loss.code, "{}", loss.detail);
            }
        }
    }

    /// Time spent in the gateway itself.
    pub(crate) fn worked(&mut self, time: Duration) {
        self.own += time;
    }

    /// Gemini is told what is wrong with its calls, after a round that the client does not see.
    pub(crate) fn corrected(&self, usage: &Usage) {
        self.app.metrics.rescued("bad_call");
        self.app.metrics.used(usage);
        tracing::warn!(request = %self.request_id, "the calls were no good; telling the model");
    }

    /// The turn ended well.
    pub(crate) fn finished(&mut self, seen: &Seen) {
        if let Some(finish) = &seen.finish {
            self.done(seen.calls.iter(), finish);
        }
    }

    /// The turn ended well.
    pub(crate) fn done<'a>(
        &mut self,
        calls: impl Iterator<Item = &'a Call<'static>>,
        finish: &Finish,
    ) {
        let calls: Vec<_> = calls.collect();
        let metrics = &self.app.metrics;
        let violations = finish.losses.iter().filter(|loss| is_failed_call(loss.code)).count();
        let failed = violations.min(calls.len()) as u64;
        metrics.calls(calls.len() as u64, failed, self.began.elapsed());
        for call in &calls {
            metrics.used_tool(&call.tool);
        }
        metrics.used(&finish.usage);
        self.lost(&finish.losses);
        keep::signatures(&self.app, self.owner, &calls, &self.trace);
        self.end(Outcome::ok, calls.len(), None, Some(finish));
    }

    /// The client is told of a failure.
    pub(crate) fn failed(&mut self, failure: &Failure) {
        self.app.metrics.failed(failure.kind);
        if failure.kind == FailureKind::MalformedCall {
            self.app.metrics.calls(0, 1, Duration::ZERO);
        }
        let outcome = if failure.kind == FailureKind::InvalidRequest {
            Outcome::rejected
        } else {
            Outcome::error
        };
        self.end(outcome, 0, Some(failure), None);
    }

    /// Something other than a turn was answered (a count, a list).
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
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        let total = self.began.elapsed();
        let upstream = total.saturating_sub(self.own);
        self.app.metrics.request(self.door, outcome);
        self.app.metrics.timed(self.own, upstream);
        self.app.metrics.active.dec();
        let usage = finish.map(|finish| finish.usage).unwrap_or_default();
        tracing::info!(
            request = %self.request_id,
            door = self.door.name(),
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
            message = failure.map_or("answered", |failure| failure.message.as_str()),
        );
    }
}

impl Drop for Ledger {
    fn drop(&mut self) {
        self.end(Outcome::client_gone, 0, None, None);
    }
}

/// Whether somebody should hear of it without asking.
fn is_loud(code: LossCode) -> bool {
    match code {
        LossCode::ArgumentViolation
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

fn is_failed_call(code: LossCode) -> bool {
    matches!(code, LossCode::ArgumentViolation | LossCode::UnknownTool | LossCode::CallDropped)
}
