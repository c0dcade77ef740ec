//! Attempts of one turn: retries, fail-over between keys, back-off.

use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{HeaderName, HeaderValue};
use http::{Method, Response};
use hyper::body::Incoming;
use toolgate_core::canon::{Failure, FailureKind, IdGen, Target};
use toolgate_core::upstream::generate_content::{
    Exchange, Learned, MAX_CONTINUATIONS, continued, refuses_credential,
};
use toolgate_transport::Retry;

use super::context::{Context, Current, Services};
use super::refusals::{RequiredTools, Scope, lesson};
use crate::auth::{Owner, Pass};
use crate::clock::Seed;
use crate::config::Secret;
use crate::metrics::failure_name;
use crate::signatures::spread;
use crate::upstream::{Credential, Rest, Verb};

/// One turn's tries.
#[derive(Debug)]
pub(crate) struct Attempts {
    services: Arc<Services>,
    current: Arc<Current>,
    pass: Pass,
    /// Index of the pool's key in use, and the number that a conversation's requests have in common.
    key: Option<usize>,
    home: Option<u32>,
    required: RequiredTools,
    route: Route,
    exchange: Arc<Exchange>,
    /// The whole request.
    whole: Bytes,
    /// The request of the next attempt: the whole, or one for the rest of an answer.
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
    /// To a model, by its encoded request.
    Model(Verb),
    /// As the client sent it: method, path and query.
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

impl Attempts {
    /// Attempts for a request that was translated.
    pub(crate) fn new(context: &Context, prepared: &super::Prepared) -> Self {
        let verb = if prepared.stream { Verb::Stream } else { Verb::Generate };
        let exchange = Arc::clone(&prepared.exchange);
        let body = prepared.body.clone();
        let pinned = Pinned { home: prepared.fingerprint.home(), key: prepared.key };
        let attempts = Self::of(context, Route::Model(verb), exchange, body, pinned);
        Self { required: prepared.required.clone(), ..attempts }
    }

    /// Attempts for a request that goes on as the client wrote it.
    pub(crate) fn passing(
        context: &Context,
        target: Target,
        (method, path): (Method, String),
        headers: Vec<(HeaderName, HeaderValue)>,
        body: Bytes,
    ) -> Self {
        // The beginning of a conversation's requests does not change.
        let home = context.session.as_ref().map_or(&body[..], |session| session.as_bytes());
        let home = Some(spread(&home[..home.len().min(OPENING)]));
        let pinned = Pinned { home, key: None };
        Self::of(context, Route::Path(method, path, headers), plain(target), body, pinned)
    }

    /// Attempts for a question of how long something is.
    pub(crate) fn counting(
        context: &Context,
        target: Target,
        key: Option<usize>,
        body: Bytes,
    ) -> Self {
        let pinned = Pinned { home: None, key };
        Self::of(context, Route::Model(Verb::CountTokens), plain(target), body, pinned)
    }

    /// Attempts for a page of the list of models.
    pub(crate) fn listing(context: &Context, path: String) -> Self {
        let target = Target { model: String::new(), backend: context.current.link.backend() };
        let route = Route::Path(Method::GET, path, Vec::new());
        Self::of(context, route, plain(target), Bytes::new(), Pinned::default())
    }

    fn of(
        context: &Context,
        route: Route,
        exchange: Arc<Exchange>,
        body: Bytes,
        Pinned { home, key }: Pinned,
    ) -> Self {
        let mut attempts = Self {
            services: Arc::clone(&context.services),
            current: Arc::clone(&context.current),
            pass: context.client.pass.clone(),
            key,
            home,
            required: RequiredTools::default(),
            route,
            exchange,
            whole: body.clone(),
            body,
            seed: context.seed,
            retries: 0,
            rescues: 0,
            rounds: 0,
            continuations: 0,
            failovers: 0,
            request_id: context.request_id.clone(),
        };
        if attempts.key.is_none() {
            attempts.pick_key();
        }
        attempts
    }

    /// Index of the pool's key in use.
    pub(crate) fn key(&self) -> Option<usize> {
        self.key
    }

    /// Scope of the refusals of this turn.
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
        tracing::debug!(request = %self.request_id, "answer interrupted by Gemini, requesting the rest");
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
            self.services.metrics.key_rested(key, rest.name());
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
                self.services.metrics.retried(failure.kind);
                self.pick_key();
                return Next::Again { wait: Duration::ZERO };
            }
        }
        match Retry::of(failure) {
            Retry::Immediate if self.rescues < upstream.rescue_retries => {
                self.rescues += 1;
                let kind = failure_name(failure.kind);
                self.services.metrics.rescued(kind);
                tracing::warn!(request = %self.request_id, kind, "malformed or empty model turn, retrying");
                Next::Again { wait: Duration::ZERO }
            }
            Retry::Delayed if self.retries < upstream.retries => {
                let wait = match failure.retry_after_ms {
                    Some(asked) => Duration::from_millis(asked),
                    None => self.backoff(),
                };
                if wait > upstream.retry_wait {
                    return Next::Give(self.redacted(failure));
                }
                self.retries += 1;
                self.services.metrics.retried(failure.kind);
                tracing::warn!(request = %self.request_id, kind = failure_name(failure.kind), wait_ms = wait.as_millis() as u64, "upstream failure, retrying");
                Next::Again { wait }
            }
            Retry::Delayed | Retry::Immediate | Retry::Never => Next::Give(self.redacted(failure)),
        }
    }

    /// A failure as clients may see it.
    pub(crate) fn redacted(&self, failure: &Failure) -> Failure {
        let is_retried = self.retries > 0 || self.rescues > 0;
        Failure { is_retried, ..self.current.redacted(failure, &self.pass) }
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

    /// Lesson of a refusal: the request may succeed when it is prepared without the refused part.
    pub(crate) fn lesson(&self, known: &Learned, failure: &Failure) -> Option<Learned> {
        lesson(known, &self.exchange, &self.required, failure)
    }
}

/// Exchange of a request that is not decoded.
fn plain(target: Target) -> Arc<Exchange> {
    let exchange = Exchange { target, tools: Vec::new(), one_call: false, answer_function: None };
    Arc::new(exchange)
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
        | FailureKind::Unreachable
        | FailureKind::Unsupported
        | FailureKind::UpstreamProtocol => None,
    }
}
