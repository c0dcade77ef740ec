//! Attempts of one turn: retries, fail-over between keys, back-off.

use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{HeaderName, HeaderValue};
use http::{Method, Response};
use hyper::body::Incoming;
use toolgate_core::canon::{Failure, FailureKind, IdGen};
use toolgate_core::gemini::upstream::{Learned, MAX_CONTINUATIONS, continued, refuses_credential};
use toolgate_core::gemini::{Exchange, Target};

use super::lessons::{RequiredTools, Scope, lesson};
use crate::app::{App, Current};
use crate::auth::{Owner, Pass};
use crate::clock::Seed;
use crate::config::Secret;
use crate::doors::Visit;
use crate::metrics::failure_name;
use crate::upstream::{Credential, Rest, Verb};

/// One turn's tries.
#[derive(Debug)]
pub(crate) struct Plan {
    app: Arc<App>,
    current: Arc<Current>,
    pass: Pass,
    /// Index of the pool's key in use, and the number that a conversation's requests have in common.
    key: Option<usize>,
    home: Option<u32>,
    required: RequiredTools,
    route: Route,
    exchange: Arc<Exchange>,
    /// What is asked, from the start.
    whole: Bytes,
    /// What is asked now: all of it, or the rest of an answer.
    body: Bytes,
    seed: Seed,
    retries: u32,
    rescues: u32,
    rounds: u32,
    continuations: u32,
    failovers: usize,
    request_id: String,
}

/// Where a request goes.
#[derive(Clone, Debug)]
enum Route {
    /// To a model, as we say it.
    Model(Verb),
    /// As the client said it: method, path and query.
    Path(Method, String, Vec<(HeaderName, HeaderValue)>),
}

/// What to do about a failure.
#[derive(Debug)]
pub(crate) enum Next {
    /// Ask again after a while.
    Again {
        /// How long a while.
        wait: Duration,
    },
    /// Tell the client.
    Give(Failure),
}

/// The key of a turn, or where to begin looking for one.
#[derive(Clone, Copy, Debug, Default)]
struct Pinned {
    home: Option<u32>,
    key: Option<usize>,
}

/// How much of an unread request tells one conversation from another.
const OPENING: usize = 512;
/// The wait before the second try; it doubles.
const FIRST_WAIT: Duration = Duration::from_millis(300);

impl Plan {
    /// A plan for a request that was translated.
    pub(crate) fn new(visit: &Visit, prepared: &super::Prepared) -> Self {
        let verb = if prepared.stream { Verb::Stream } else { Verb::Generate };
        let exchange = Arc::clone(&prepared.exchange);
        let body = prepared.body.clone();
        let pinned = Pinned { home: prepared.trace.home(), key: prepared.key };
        let plan = Self::of(visit, Route::Model(verb), exchange, body, pinned);
        Self { required: prepared.required.clone(), ..plan }
    }

    /// A plan for a request that goes on as the client wrote it.
    pub(crate) fn passing(
        visit: &Visit,
        target: Target,
        (method, path): (Method, String),
        headers: Vec<(HeaderName, HeaderValue)>,
        body: Bytes,
    ) -> Self {
        // Whatever stands first in a conversation's requests stays what it is.
        let home = visit.session.as_ref().map_or(&body[..], |session| session.as_bytes());
        let home = Some(sum(&home[..home.len().min(OPENING)]));
        let pinned = Pinned { home, key: None };
        Self::of(visit, Route::Path(method, path, headers), plain(target), body, pinned)
    }

    /// A plan for a question of how long something is.
    pub(crate) fn counting(visit: &Visit, target: Target, key: Option<usize>, body: Bytes) -> Self {
        let pinned = Pinned { home: None, key };
        Self::of(visit, Route::Model(Verb::CountTokens), plain(target), body, pinned)
    }

    /// A plan for a page of the list of models.
    pub(crate) fn listing(visit: &Visit, path: String) -> Self {
        let target = Target { model: String::new(), backend: visit.current.link.backend() };
        let route = Route::Path(Method::GET, path, Vec::new());
        Self::of(visit, route, plain(target), Bytes::new(), Pinned::default())
    }

    fn of(
        visit: &Visit,
        route: Route,
        exchange: Arc<Exchange>,
        body: Bytes,
        Pinned { home, key }: Pinned,
    ) -> Self {
        let mut plan = Self {
            app: Arc::clone(&visit.app),
            current: Arc::clone(&visit.current),
            pass: visit.client.pass.clone(),
            key,
            home,
            required: RequiredTools::default(),
            route,
            exchange,
            whole: body.clone(),
            body,
            seed: visit.seed,
            retries: 0,
            rescues: 0,
            rounds: 0,
            continuations: 0,
            failovers: 0,
            request_id: visit.request_id.clone(),
        };
        if plan.key.is_none() {
            plan.pick_key();
        }
        plan
    }

    /// Index of the pool's key in use.
    pub(crate) fn key(&self) -> Option<usize> {
        self.key
    }

    /// The scope of what the upstream refuses of this turn.
    pub(crate) fn scope(&self, owner: Owner) -> Scope {
        let key = self.key.and_then(|index| self.current.keys.key(index));
        Scope::new(owner, &self.pass, key)
    }

    pub(crate) fn exchange(&self) -> &Arc<Exchange> {
        &self.exchange
    }

    pub(crate) fn ping(&self) -> Duration {
        self.current.config.ping
    }

    pub(crate) fn idle(&self) -> Duration {
        self.current.config.upstream.idle
    }

    pub(crate) fn total(&self) -> Duration {
        self.current.config.upstream.total
    }

    /// Ids for the answer of the next try.
    pub(crate) fn ids(&self) -> IdGen {
        let tries = self.retries + self.rescues + self.rounds;
        self.seed.ids(tries)
    }

    fn pick_key(&mut self) {
        self.key = match self.pass {
            Pass::Pool => self.current.keys.pick(Instant::now(), self.home),
            Pass::ApiKey(_) | Pass::Bearer(_) => None,
        };
    }

    /// Sends the request.
    pub(crate) fn ask(
        &self,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Incoming>, Failure>> + Send>> {
        let current = Arc::clone(&self.current);
        let (exchange, route) = (Arc::clone(&self.exchange), self.route.clone());
        let key = self.key.and_then(|index| self.current.keys.key(index));
        let (credential, body) = (credential(&self.pass, key), self.body.clone());
        let key = self.key;
        Box::pin(async move {
            let link = &current.link;
            let answered = match route {
                Route::Model(verb) => {
                    link.ask(&exchange.target.model, verb, &credential, body).await
                }
                Route::Path(method, path, headers) => {
                    link.forward(method, &path, &credential, &headers, body).await
                }
            };
            if let (Ok(response), Some(index)) = (&answered, key)
                && response.status().is_success()
            {
                current.keys.accepted(index);
            }
            answered
        })
    }

    /// From now on the next round is asked for.
    pub(crate) fn next_round(&mut self, prepared: &super::Prepared) {
        self.rounds += 1;
        self.exchange = Arc::clone(&prepared.exchange);
        self.whole = prepared.body.clone();
        self.start_over();
    }

    /// Whether Gemini may be asked to go on with an answer that it stopped in the middle.
    pub(crate) fn may_go_on(&self) -> bool {
        self.continuations < MAX_CONTINUATIONS
    }

    /// From now on the rest of the answer is asked for.
    pub(crate) fn go_on(&mut self, token: &str) {
        self.continuations += 1;
        self.body = Bytes::from(continued(&self.whole, token));
        tracing::debug!(request = %self.request_id, "Gemini stopped in the middle; asking for the rest");
    }

    /// From now on the whole answer is asked for again.
    pub(crate) fn start_over(&mut self) {
        self.body = self.whole.clone();
    }

    /// Decides what to do about a failure that the client has not seen.
    pub(crate) fn after(&mut self, failure: &Failure) -> Next {
        let upstream = &self.current.config.upstream;
        if let Some(index) = self.key
            && let Some(rest) = rest(failure)
        {
            let keys = &self.current.keys;
            let is_another_awake = keys.rest(index, rest, Instant::now());
            let fails_over = is_another_awake && self.failovers < keys.len();
            let key = keys.fingerprint(index);
            self.app.metrics.key_rested(key, rest.name());
            tracing::warn!(
                request = %self.request_id,
                key,
                index,
                rest = rest.name(),
                status = failure.upstream_status,
                reason = failure.upstream_reason.as_deref(),
                "{}",
                if fails_over {
                    "API key refused or exhausted, failing over to the next"
                } else {
                    "API key refused or exhausted, no other key is available"
                },
            );
            if fails_over {
                self.failovers += 1;
                self.app.metrics.retried(failure.kind);
                self.pick_key();
                return Next::Again { wait: Duration::ZERO };
            }
        }
        match failure.kind {
            FailureKind::Cut
            | FailureKind::EmptyTurn
            | FailureKind::MalformedCall
            | FailureKind::UpstreamProtocol
                if self.rescues < upstream.rescue_retries =>
            {
                self.rescues += 1;
                let kind = failure_name(failure.kind);
                self.app.metrics.rescued(kind);
                tracing::warn!(request = %self.request_id, kind, "the turn was no good; asking again");
                Next::Again { wait: Duration::ZERO }
            }
            FailureKind::RateLimited
            | FailureKind::Overloaded
            | FailureKind::Internal
            | FailureKind::Timeout
                if self.retries < upstream.retries =>
            {
                let wait = match failure.retry_after_ms {
                    Some(asked) => Duration::from_millis(asked),
                    None => self.backoff(),
                };
                if wait > upstream.retry_wait {
                    return Next::Give(self.told(failure));
                }
                self.retries += 1;
                self.app.metrics.retried(failure.kind);
                tracing::warn!(request = %self.request_id, kind = failure_name(failure.kind), wait_ms = wait.as_millis() as u64, "the upstream failed; trying again");
                Next::Again { wait }
            }
            FailureKind::Authentication
            | FailureKind::Billing
            | FailureKind::ContextTooLong
            | FailureKind::Cut
            | FailureKind::EmptyTurn
            | FailureKind::Internal
            | FailureKind::InvalidRequest
            | FailureKind::MalformedCall
            | FailureKind::NotFound
            | FailureKind::Overloaded
            | FailureKind::Permission
            | FailureKind::QuotaExhausted
            | FailureKind::RateLimited
            | FailureKind::Timeout
            | FailureKind::TooLarge
            | FailureKind::Unsupported
            | FailureKind::UpstreamProtocol => Next::Give(self.told(failure)),
        }
    }

    /// A failure as clients may hear of it.
    pub(crate) fn told(&self, failure: &Failure) -> Failure {
        self.current.told(failure, &self.pass)
    }

    /// Which request it is.
    pub(crate) fn request_id(&self) -> &str {
        &self.request_id
    }

    /// The wait before the next try where Gemini names none. It doubles, and differs from turn to
    /// turn, so that many that failed together do not come back together.
    fn backoff(&self) -> Duration {
        let spread = u32::from(self.seed.spread());
        let wait = FIRST_WAIT * 2_u32.saturating_pow(self.retries);
        wait * (192 + spread / 2) / 256
    }

    /// What a refusal teaches: the request may succeed when it is prepared anew.
    pub(crate) fn lesson(&self, known: &Learned, failure: &Failure) -> Option<Learned> {
        lesson(known, &self.exchange, &self.required, failure)
    }
}

/// What is known of an answer whose question nobody has read.
fn plain(target: Target) -> Arc<Exchange> {
    let exchange = Exchange { target, tools: Vec::new(), one_call: false, answer_function: None };
    Arc::new(exchange)
}

/// A number that stands for some bytes.
pub(super) fn sum(bytes: &[u8]) -> u32 {
    let mut sum = flate2::Crc::new();
    sum.update(bytes);
    sum.sum()
}

fn credential(pass: &Pass, pooled: Option<&Secret>) -> Credential {
    match (pass, pooled) {
        (Pass::ApiKey(key), _) | (Pass::Pool, Some(key)) => Credential::ApiKey(key.clone()),
        (Pass::Bearer(token), _) => Credential::Bearer(token.clone()),
        (Pass::Pool, None) => Credential::Gateway,
    }
}

/// Whether a failure rests the key that was used, and why. Refusals of a model, a resource or the
/// request itself do not: the key still works for others.
fn rest(failure: &Failure) -> Option<Rest> {
    if refuses_credential(failure) {
        return Some(Rest::Refused);
    }
    match failure.kind {
        FailureKind::RateLimited => {
            Some(Rest::RateLimit(failure.retry_after_ms.map(Duration::from_millis)))
        }
        FailureKind::QuotaExhausted => Some(Rest::DailyQuota),
        FailureKind::Authentication
        | FailureKind::Billing
        | FailureKind::ContextTooLong
        | FailureKind::Cut
        | FailureKind::EmptyTurn
        | FailureKind::Internal
        | FailureKind::InvalidRequest
        | FailureKind::MalformedCall
        | FailureKind::NotFound
        | FailureKind::Overloaded
        | FailureKind::Permission
        | FailureKind::Timeout
        | FailureKind::TooLarge
        | FailureKind::Unsupported
        | FailureKind::UpstreamProtocol => None,
    }
}
