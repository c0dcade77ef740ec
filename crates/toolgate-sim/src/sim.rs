//! The simulator: from requests to plans.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::{HeaderMap, Method as Verb, Request as HttpRequest, Response, header};
use serde_json::{Value, json};
use toolgate_core::canon::{Backend, Target};
use toolgate_validate::{Accepted, GoogleError, Method, Model, parse_request};

use crate::access::ControlKey;
use crate::cache::Caches;
use crate::catalogue;
use crate::config::{Driver, SimConfig};
use crate::demo;
use crate::encode::{self, AnswerContext, SeededRng};
use crate::errors;
use crate::fault::{Fault, FaultRule};
use crate::frame::{count_tokens, frame_chunks, is_sse, json_plan, with_faults};
use crate::keys::{without_key, without_secrets};
use crate::plan::{JSON, Plan, Reset, SSE, SimBody};
use crate::quirk::{self, Quirk};
use crate::request_log::{Counters, RecordedRequest, RequestLog};
use crate::route::{self, Route};
use crate::script::{Script, ScriptInput};
use crate::sign::Signer;
use crate::turn::Turn;

/// A simulated Gemini API. Clones share their state.
#[derive(Clone, Debug)]
pub struct Sim(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    config: SimConfig,
    signer: Signer,
    state: Mutex<State>,
    cancels: Arc<AtomicU64>,
}

#[derive(Debug, Default)]
struct State {
    driver: Option<Driver>,
    faults: Vec<FaultRule>,
    /// Uses of each turn or recording.
    used: Vec<u64>,
    caches: Caches,
    log: RequestLog,
    counters: Counters,
}

/// A request to a model.
struct ModelRequest<'a> {
    number: u64,
    backend: Backend,
    version: &'a str,
    model: &'a str,
    method: Method,
    query: &'a str,
    path: &'a str,
    headers: &'a HeaderMap,
    body: &'a Bytes,
}

impl ModelRequest<'_> {
    fn is_stream(&self) -> bool {
        self.method == Method::Stream
    }
}

impl Sim {
    /// Creates a simulator.
    pub fn new(config: SimConfig) -> Self {
        let signer = Signer::new(config.seed, config.signature_length);
        let mut state = State::default();
        state.set_driver(config.driver.clone(), &config.faults);
        let state = Mutex::new(state);
        Self(Arc::new(Inner { config, signer, state, cancels: Arc::default() }))
    }

    /// Received requests, oldest first, as far as the log reaches.
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.state().log.all()
    }

    /// Counters of events.
    pub fn counters(&self) -> Counters {
        let cancels = self.0.cancels.load(Ordering::Relaxed);
        Counters { cancels, ..self.state().counters }
    }

    /// Turns of the script that no request has got, by number from 1. Empty if there is no script.
    pub fn unused_turns(&self) -> Vec<usize> {
        let state = self.state();
        let Some(Driver::Script(script)) = &state.driver else { return Vec::new() };
        let is_unused = |at: &usize| {
            let wanted = script.turns.get(*at).map_or(0, |turn| turn.times.max(1));
            state.used.get(*at).is_none_or(|used| *used < wanted)
        };
        (0..script.turns.len()).filter(is_unused).map(|at| at + 1).collect()
    }

    /// Asserts that every turn of the script was used, that no request was unexpected, and that none was
    /// refused.
    ///
    /// # Panics
    ///
    /// If one of that is not so.
    #[track_caller]
    pub fn assert_script_done(&self) {
        let (counters, unused) = (self.counters(), self.unused_turns());
        let refusals: Vec<_> = self.requests().into_iter().filter_map(|it| it.refusal).collect();
        assert!(unused.is_empty(), "turns {unused:?} of the script were not used: {refusals:?}");
        assert!(
            counters.unexpected == 0 && counters.refusals == 0 && counters.mismatches == 0,
            "requests were refused: {refusals:?} {counters:?}"
        );
    }

    /// Clears the request log and the counters. The driver keeps its position.
    pub fn clear(&self) {
        let mut state = self.state();
        state.log.clear();
        state.counters = Counters::default();
        self.0.cancels.store(0, Ordering::Relaxed);
    }

    /// Replaces the driver, and the faults with the configured ones and the script's.
    pub fn set_driver(&self, driver: Driver) {
        let faults = self.0.config.faults.clone();
        self.state().set_driver(driver, &faults);
    }

    /// Appends a script's turns and faults to the running script, or starts the script.
    pub fn push(&self, script: Script) {
        let mut state = self.state();
        let State { driver, faults, .. } = &mut *state;
        if let Some(Driver::Script(running)) = driver {
            faults.extend(script.faults.iter().cloned());
            running.turns.extend(script.turns);
            return;
        }
        drop(state);
        self.set_driver(Driver::Script(script));
    }

    /// Replaces the faults.
    pub fn set_faults(&self, faults: Vec<FaultRule>) {
        self.state().faults = faults;
    }

    pub(crate) fn max_body(&self) -> usize {
        self.0.config.max_body
    }

    pub(crate) fn control_key(&self) -> Option<&ControlKey> {
        self.0.config.control_key.as_ref()
    }

    /// Answers a request. Only faults and scripts cause delays.
    pub async fn respond(&self, request: HttpRequest<Bytes>) -> Result<Response<SimBody>, Reset> {
        let Plan { status, content_type, delay, refuses_connection, steps } = self.plan(&request);
        let body = SimBody::new(steps, Arc::clone(&self.0.cancels));
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        if refuses_connection {
            return Err(Reset);
        }
        let mut response = Response::new(body);
        *response.status_mut() = http::StatusCode::from_u16(status).unwrap_or_default();
        let value = header::HeaderValue::from_static(content_type);
        response.headers_mut().insert(header::CONTENT_TYPE, value);
        Ok(response)
    }

    /// Decides the answer to a request, and records the request.
    pub fn plan(&self, request: &HttpRequest<Bytes>) -> Plan {
        let (path, query) = (request.uri().path(), request.uri().query().unwrap_or(""));
        let (plan, number) = match route::route(path) {
            Route::Window(path) => return self.control(request.method(), &path, request.body()),
            Route::Model { backend, version, model, method } if request.method() == Verb::POST => {
                let number = {
                    let mut state = self.state();
                    state.counters.requests += 1;
                    state.counters.requests
                };
                let call = ModelRequest {
                    number,
                    backend,
                    version: &version,
                    model: &model,
                    method,
                    query,
                    path,
                    headers: request.headers(),
                    body: request.body(),
                };
                (self.answer(&call), number)
            }
            Route::List(backend) => (self.list(backend, query, request.headers()), 0),
            Route::Get { version, model } => {
                (self.get(&version, &model, query, request.headers()), 0)
            }
            Route::Caches(name) => {
                (self.caches(request, query, name.as_deref()).map(|it| json_plan(&it)), 0)
            }
            Route::OtherMethod { version, model, method } => {
                let error = GoogleError::model_not_found(&model, &version, &method);
                (Err(error), 0)
            }
            Route::Model { .. } | Route::Unknown => (Err(errors::no_such_url()), 0),
        };
        let refusal = plan.as_ref().err().map(|error| error.message.clone());
        let plan = plan.unwrap_or_else(|error| self.refuse(&error, path, query));
        let recorded = RecordedRequest {
            number,
            method: request.method().to_string(),
            path: path.to_owned(),
            query: without_key(query),
            headers: without_secrets(request.headers()),
            raw: request.body().clone(),
            status: plan.status,
            refusal,
        };
        let SimConfig { keep_requests, keep_bytes, .. } = self.0.config;
        self.state().log.push(recorded, keep_requests, keep_bytes);
        plan
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Error in the form of the method.
    fn refuse(&self, error: &GoogleError, path: &str, query: &str) -> Plan {
        let is_stream = path.contains("streamGenerateContent");
        self.state().counters.refusals += 1;
        match (is_stream, is_sse(query)) {
            (true, true) => Plan::whole(error.code, SSE, error.to_body()),
            (true, false) => {
                let body = json!([error.to_json()]);
                Plan::whole(error.code, JSON, serde_json::to_vec_pretty(&body).unwrap_or_default())
            }
            (false, _) => Plan::whole(error.code, JSON, error.to_body()),
        }
    }

    fn answer(&self, call: &ModelRequest<'_>) -> Result<Plan, GoogleError> {
        let mut faults = self.faults_of(call.number);
        if let Some(plan) = self.failure(&faults, call)? {
            return Ok(plan);
        }
        if let Some(plan) = self.replayed(call)? {
            return Ok(with_faults(plan, &faults));
        }
        let (target, accepted, cached) = self.checked(call)?;
        if call.method == Method::CountTokens {
            return Ok(with_faults(count_tokens(&accepted.request, call.backend), &faults));
        }
        let (mut turn, own_fault) = self.next_turn(call, &target, &accepted)?;
        faults.extend(own_fault);
        if let Some(plan) = self.failure(&faults, call)? {
            return Ok(plan);
        }
        for fault in &faults {
            fault.apply_to_turn(&mut turn, &accepted.request);
        }
        let model = self.model(call.model).map(|(_, model)| model);
        let mut context = AnswerContext {
            target: &target,
            model: model.ok_or_else(errors::no_such_url)?,
            request: &accepted.request,
            cached,
            signer: &self.0.signer,
            ids: SeededRng::new(self.0.config.seed, call.number),
            stream: call.is_stream(),
            frame: if is_sse(call.query) { b"data: " } else { b"" },
        };
        let chunks = encode::encode(&turn, &mut context);
        Ok(with_faults(frame_chunks(chunks, &turn, call.method, call.query), &faults))
    }

    fn faults_of(&self, number: u64) -> Vec<Fault> {
        let mut state = self.state();
        let seed = self.0.config.seed;
        let rules = state.faults.iter().enumerate();
        let faults: Vec<_> = rules
            .filter(|(at, rule)| rule.when.applies_to(number, seed, *at))
            .map(|(_, rule)| rule.fault.clone())
            .collect();
        state.counters.faults += u64::try_from(faults.len()).unwrap_or(0);
        faults
    }

    /// Error of a fault, as JSON or as an HTML page.
    fn failure(
        &self,
        faults: &[Fault],
        call: &ModelRequest<'_>,
    ) -> Result<Option<Plan>, GoogleError> {
        match faults.iter().find_map(|fault| fault.error(call.model, call.is_stream())) {
            None => Ok(None),
            Some(Ok(error)) => {
                let plan = self.refuse(&error, call.path, call.query);
                Ok(Some(with_faults(plan, faults)))
            }
            Some(Err(code)) => {
                let page = format!("<html><title>Error {code}</title><p>That’s an error.</html>\n");
                Ok(Some(with_faults(Plan::whole(code, "text/html; charset=UTF-8", page), faults)))
            }
        }
    }

    fn replayed(&self, call: &ModelRequest<'_>) -> Result<Option<Plan>, GoogleError> {
        let mut state = self.state();
        let State { driver, used, counters, .. } = &mut *state;
        let Some(Driver::Replay(cassette)) = driver else { return Ok(None) };
        match cassette.next(used, call.path) {
            Some(plan) => Ok(Some(plan)),
            None => {
                counters.unexpected += 1;
                Err(errors::unexpected("no recording for this path"))
            }
        }
    }

    fn has(&self, quirk: Quirk) -> bool {
        self.0.config.quirks.contains(&quirk)
    }

    fn model<'n>(&self, name: &'n str) -> Option<(&'n str, Model)> {
        let retired = self.has(Quirk::RetiredModels);
        if retired { catalogue::resolve_any(name) } else { catalogue::resolve(name) }
    }

    /// Checks a request as Google does. Returns the resolved target, the request, and the tokens that came
    /// from a cache. The Developer API parses the body before it checks the key; Vertex checks the key
    /// first.
    fn checked(&self, call: &ModelRequest<'_>) -> Result<(Target, Accepted, u64), GoogleError> {
        let key = || self.0.config.keys.check(call.backend, call.query, call.headers);
        if call.backend == Backend::Vertex {
            key()?;
        }
        let parsed = parse_request(call.body, call.backend, call.method)?;
        if call.backend == Backend::Developer {
            key()?;
        }
        let Some((own, _)) = self.model(call.model) else {
            let method =
                if call.method == Method::CountTokens { call.method } else { Method::Generate };
            return Err(GoogleError::model_not_found(call.model, call.version, method.name()));
        };
        let target = Target { model: own.to_owned(), backend: call.backend };
        if !self.0.config.strict {
            let request = parsed.unchecked();
            let accepted = Accepted { request, counts: Default::default(), mismatch: None };
            return Ok((target, accepted, 0));
        }
        let mut accepted = parsed.check(&target, &self.0.signer).map_err(|error| {
            let documented = self.has(Quirk::DocumentedSignatureText);
            if documented { quirk::with_documented_text(error) } else { error }
        })?;
        if self.has(Quirk::EmptyResults) {
            quirk::check_empty_results(&accepted.request)?;
        }
        let cached = self.state().caches.prepend_to(&mut accepted.request, own)?;
        let counted = |count: usize| u64::try_from(count).unwrap_or(0);
        let mut state = self.state();
        let counters = &mut state.counters;
        counters.signatures += counted(accepted.counts.signatures);
        counters.placeholders += counted(accepted.counts.placeholders);
        counters.doubled += counted(accepted.counts.doubled);
        counters.missing_ids += counted(accepted.counts.missing_ids);
        counters.reordered += counted(accepted.counts.reordered);
        drop(state);
        Ok((target, accepted, cached))
    }

    /// Next turn of the driver, and the fault of that turn.
    fn next_turn(
        &self,
        call: &ModelRequest<'_>,
        target: &Target,
        accepted: &Accepted,
    ) -> Result<(Turn, Option<Fault>), GoogleError> {
        let request = &accepted.request;
        let mut state = self.state();
        let State { driver, used, counters, .. } = &mut *state;
        let is_new = catalogue::resolve(&target.model)
            .is_some_and(|(_, it)| it.generation >= toolgate_validate::Generation::G3_5);
        let ids_missing = self.0.config.strict_ids && is_new && accepted.counts.missing_ids > 0;
        if accepted.mismatch.is_some() || ids_missing {
            counters.mismatches += 1;
            return Ok((Turn::default(), None));
        }
        let Some(Driver::Script(script)) = driver else {
            drop(state);
            return Ok((demo::respond(request), None));
        };
        let input = ScriptInput { request, model: call.model, stream: call.is_stream() };
        let next = match script.next(used, &input) {
            Ok(next) => next,
            Err(why) => {
                counters.unexpected += 1;
                return Err(errors::unexpected(&why));
            }
        };
        match next {
            Some(next) => {
                counters.faults += u64::from(next.fault.is_some());
                Ok((next.turn.clone(), next.fault.clone()))
            }
            None if script.then_demo => {
                drop(state);
                Ok((demo::respond(request), None))
            }
            None => {
                counters.unexpected += 1;
                Err(errors::unexpected("the script has ended"))
            }
        }
    }

    fn list(
        &self,
        backend: Backend,
        query: &str,
        headers: &HeaderMap,
    ) -> Result<Plan, GoogleError> {
        self.0.config.keys.check(backend, query, headers)?;
        let (field, models) = match backend {
            Backend::Developer => ("models", catalogue::list()),
            Backend::Vertex => ("publisherModels", catalogue::list_vertex()),
        };
        let number =
            |name: &str| route::parameter(query, name).and_then(|it| it.parse::<usize>().ok());
        let size = number("pageSize").filter(|size| *size > 0).unwrap_or(50);
        let size = size.min(self.0.config.page);
        let start = number("pageToken").unwrap_or(0).min(models.len());
        let end = (start + size).min(models.len());
        let mut page = json!({ field: models.get(start..end).unwrap_or(&[]) });
        if end < models.len() {
            page["nextPageToken"] = json!(end.to_string());
        }
        Ok(json_plan(&page))
    }

    fn caches(
        &self,
        request: &HttpRequest<Bytes>,
        query: &str,
        name: Option<&str>,
    ) -> Result<Value, GoogleError> {
        self.0.config.keys.check(Backend::Developer, query, request.headers())?;
        let mut state = self.state();
        match (request.method(), name) {
            (&Verb::POST, None) => state.caches.create(request.body(), self.0.config.seed),
            (&Verb::GET, None) => Ok(state.caches.list()),
            (&Verb::GET, Some(name)) => state.caches.get(name),
            (&Verb::DELETE, Some(name)) => state.caches.delete(name),
            _ => Err(errors::no_such_url()),
        }
    }

    fn get(
        &self,
        version: &str,
        model: &str,
        query: &str,
        headers: &HeaderMap,
    ) -> Result<Plan, GoogleError> {
        self.0.config.keys.check(Backend::Developer, query, headers)?;
        catalogue::get(model)
            .map(|it| json_plan(&it))
            .ok_or_else(|| errors::no_model(model, version))
    }

    /// Answers the simulator's own URLs.
    fn control(&self, verb: &Verb, path: &str, body: &Bytes) -> Plan {
        let text = || String::from_utf8_lossy(body);
        let done = || Plan::whole(204, JSON, Bytes::new());
        let refused = |why: String| Plan::whole(400, JSON, json!({ "error": why }).to_string());
        match (verb.as_str(), path) {
            ("GET", "requests") => {
                let requests = self.requests().iter().map(RecordedRequest::to_json).collect();
                json_plan(&Value::Array(requests))
            }
            ("DELETE", "requests" | "counters") => {
                self.clear();
                done()
            }
            ("GET", "counters") => {
                json_plan(&serde_json::to_value(self.counters()).unwrap_or_default())
            }
            ("POST", "script") => match Script::parse(&text()) {
                Ok(script) => {
                    self.set_driver(Driver::Script(script));
                    done()
                }
                Err(error) => refused(error.to_string()),
            },
            ("DELETE", "script") => {
                self.set_driver(Driver::Demo);
                done()
            }
            ("POST", "faults") => match serde_json::from_slice(body) {
                Ok(faults) => {
                    self.set_faults(faults);
                    done()
                }
                Err(error) => refused(error.to_string()),
            },
            ("DELETE", "faults") => {
                self.set_faults(Vec::new());
                done()
            }
            _ => Plan::whole(404, JSON, errors::no_such_url().to_body()),
        }
    }
}

impl State {
    fn set_driver(&mut self, driver: Driver, faults: &[FaultRule]) {
        self.faults = faults.to_vec();
        if let Driver::Script(script) = &driver {
            self.faults.extend(script.faults.iter().cloned());
        }
        self.used.clear();
        self.driver = Some(driver);
    }
}
