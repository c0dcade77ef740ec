//! What one request cost and came to: written down once, at its end, however it ends.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::oneshot;
use toolgate_core::canon::{
    Call, Failure, FailureKind, Finish, Loss, LossCode, Losses, Usage, brief,
};
use toolgate_core::gemini::Target;
use toolgate_core::gemini::upstream::Profile;
use toolgate_core::translate::Dialect;

use super::keep;
use super::trace::Trace;
use crate::app::App;
use crate::auth::Owner;
use crate::doors::Visit;
use crate::metrics::{Outcome, failure_name};
use crate::offload::INLINE_BYTES;

/// The most bytes of a message that the log holds: it may quote the request.
pub(crate) const LOGGED: usize = 300;

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
    /// The question, where nobody has read it yet.
    unread: Option<Unread>,
    /// Whether the model wants its signatures back.
    signs: bool,
    /// The calls that the client has got.
    calls: Vec<Call<'static>>,
}

/// A question that was forwarded unread.
#[derive(Debug)]
pub(crate) enum Unread {
    /// Small enough to be read when a call has to be stored.
    Body { body: Bytes, session: Option<String> },
    /// Being read on a translation thread, long before the first call comes.
    Reading(oneshot::Receiver<Trace>),
}

impl Unread {
    /// `generates`: the answer may have calls.
    pub(crate) fn new(visit: &Visit, body: &Bytes, generates: bool) -> Self {
        let (body, session) = (body.clone(), visit.session.clone());
        if body.len() <= INLINE_BYTES {
            return Self::Body { body, session };
        }
        let (mut done, reading) = oneshot::channel();
        if generates {
            let (size, visit) = (body.len(), visit.clone());
            tokio::spawn(async move {
                let read = |visit: Visit| async move {
                    Trace::of_unread(&visit.app, &body, session.as_deref())
                };
                let trace = tokio::select! {
                    biased;
                    // The turn has ended without a call.
                    () = done.closed() => return,
                    trace = visit.compute(size, read) => trace,
                };
                drop(trace.map(|trace| done.send(trace)));
            });
        }
        Self::Reading(reading)
    }

    fn trace(self, app: &App) -> Trace {
        match self {
            Self::Body { body, session } => Trace::of_unread(app, &body, session.as_deref()),
            Self::Reading(mut reading) => reading.try_recv().unwrap_or_default(),
        }
    }
}

impl Ledger {
    pub(crate) fn new(app: Arc<App>, door: Dialect, owner: Owner, request_id: &str) -> Self {
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
            unread: None,
            signs: false,
            calls: Vec::new(),
        }
    }

    /// The client has got these calls so far, and may run them whatever comes after: what it will need
    /// when their results come is kept at once. A signature may come behind its call.
    pub(crate) fn delivered(&mut self, calls: &[Call<'static>]) {
        let news = calls.iter().enumerate().filter(|(at, call)| {
            let known = self.calls.get(*at);
            known.is_none_or(|known| known.signature.is_none() && call.signature.is_some())
        });
        let news: Vec<usize> = news.map(|(at, _)| at).collect();
        for at in news {
            if let Some(known) = self.calls.get_mut(at) {
                known.signature.clone_from(&calls[at].signature);
            } else {
                self.calls.push(calls[at].clone());
            }
            self.keep(at);
        }
    }

    /// Keeps a call. Where signatures need not come back, only signed ones are.
    fn keep(&mut self, at: usize) {
        let call = &self.calls[at];
        if !self.signs && call.signature.is_none() {
            return;
        }
        if let Some(unread) = self.unread.take() {
            self.trace = unread.trace(&self.app);
        }
        let before = match at.checked_sub(1) {
            Some(before) => keep::behind(&self.calls[before].id),
            None => self.trace.last.clone(),
        };
        keep::call(&self.app, self.owner, call, &before, &self.trace);
    }

    /// What is asked, as soon as it is known.
    pub(crate) fn asked(&mut self, prepared: &super::Prepared) {
        prepared.target.model.clone_into(&mut self.model);
        self.trace = prepared.trace.clone();
        self.unread = None;
        self.signs = Profile::of(&prepared.target).signatures_required;
        self.tools = prepared.tools;
        self.stream = prepared.stream;
        self.app.metrics.signatures(&prepared.signatures);
        self.lost(&prepared.losses);
    }

    /// What is asked, where the question goes on unread.
    pub(crate) fn passing(&mut self, target: &Target, stream: bool, unread: Unread) {
        target.model.clone_into(&mut self.model);
        self.signs = Profile::of(target).signatures_required;
        self.stream = stream;
        self.unread = Some(unread);
    }

    /// Things could not be carried over.
    pub(crate) fn lost(&self, losses: &Losses) {
        for loss in losses {
            self.app.metrics.lost(loss.code, 1);
            let (at, detail) = (brief(&loss.at, LOGGED), brief(&loss.detail, LOGGED));
            if is_loud(loss.code) {
                tracing::warn!(request = %self.request_id, %at, tool = loss.tool.as_deref(), "{detail}");
            } else {
                tracing::debug!(request = %self.request_id, %at, code = ?loss.code, "{detail}");
            }
        }
        for (code, count) in losses.omitted() {
            self.app.metrics.lost(code, count as u64);
            tracing::debug!(request = %self.request_id, ?code, "and {count} more");
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
    pub(crate) fn done(&mut self, finish: &Finish) {
        self.app.metrics.used(&finish.usage);
        self.lost(&finish.losses);
        let faulty: BTreeSet<usize> = finish.losses.iter().filter_map(faulty_call).collect();
        let calls = self.settle(&faulty);
        self.end(Outcome::ok, calls, None, Some(finish));
    }

    /// Counts the calls that the client has got.
    fn settle(&mut self, faulty: &BTreeSet<usize>) -> usize {
        let calls = std::mem::take(&mut self.calls);
        let failed = faulty.range(..calls.len()).count() as u64;
        self.app.metrics.calls(calls.len() as u64, failed, self.began.elapsed());
        for call in &calls {
            self.app.metrics.used_tool(&call.tool);
        }
        calls.len()
    }

    /// The client is told of a failure.
    pub(crate) fn failed(&mut self, failure: &Failure) {
        self.app.metrics.failed(failure.kind);
        if failure.kind == FailureKind::MalformedCall {
            self.app.metrics.calls(1, 1, self.began.elapsed());
        }
        let calls = self.settle(&BTreeSet::new());
        self.end(outcome_of(failure), calls, Some(failure), None);
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
        let usage = finish.map(|finish| finish.usage).unwrap_or_default();
        let said = failure.map(|failure| brief(&failure.message, LOGGED));
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
            message = said.as_deref().unwrap_or_else(|| plainly(outcome)),
        );
    }
}

impl Drop for Ledger {
    fn drop(&mut self) {
        if !self.ended {
            let calls = self.settle(&BTreeSet::new());
            self.end(Outcome::client_gone, calls, None, None);
        }
    }
}

/// Whose mistake a failure is.
fn outcome_of(failure: &Failure) -> Outcome {
    match failure.kind {
        FailureKind::ContextTooLong
        | FailureKind::InvalidRequest
        | FailureKind::NotFound
        | FailureKind::TooLarge
        | FailureKind::Unsupported => Outcome::rejected,
        // What Google does not let in came with a key that may be the gateway's own.
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
        | FailureKind::UpstreamProtocol => Outcome::error,
    }
}

/// What the log says of an end without a failure.
fn plainly(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::client_gone => "the client went away",
        Outcome::error | Outcome::ok | Outcome::rejected => "answered",
    }
}

/// Whether somebody should hear of it without asking.
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

/// Which call a loss makes a faulty one: `calls[2].args`.
fn faulty_call(loss: &Loss) -> Option<usize> {
    let is_faulty = matches!(
        loss.code,
        LossCode::ArgumentViolation | LossCode::UnknownTool | LossCode::CallDropped
    );
    loss.call().map(|(number, _)| number).filter(|_| is_faulty)
}
