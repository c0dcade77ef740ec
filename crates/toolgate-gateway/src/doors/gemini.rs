//! Gemini to Gemini: the bytes go through as they are, and a tap reads along.
//!
//! Where Gemini refuses a client's history (a resumed gemini-cli sends results twice), or answers it
//! with nothing, as its newer models do, it is mended as for every other dialect and sent once more.
//! Tools that Gemini refuses are mended at once when they come again.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{Method, Request};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use serde::de::IgnoredAny;
use toolgate_core::canon::{Failure, FailureKind};
use toolgate_core::gemini::{Framing, Target};
use toolgate_core::json::{self, Fields, write};
use toolgate_core::translate::Dialect;

use super::forwarding::{Asked, Query, forwarded_headers, forwarded_query, read_path};
use super::passing::{Form, Passing};
use super::{Visit, turns};
use crate::reply::{self, Reply};
use crate::session;
use crate::turn::{self, Ask, Ledger, Plan, Refusal, Scope, Trust, Unread};
use crate::upstream::check_model;

const DIALECT: Dialect = Dialect::Gemini;

/// Gemini's own paths.
pub(crate) async fn gemini(visit: Visit, request: Request<Incoming>) -> Reply {
    let (head, body) = request.into_parts();
    let path = head.uri.path().to_owned();
    let pass = &visit.client.pass;
    let query = forwarded_query(head.uri.query().unwrap_or(""), pass);
    let (asked, query) = match read_path(&path).and_then(|asked| Ok((asked, query?))) {
        Ok(read) => read,
        Err(failure) => return visit.fail(DIALECT, &failure),
    };
    let form = form_of(&asked.verb, query.is_sse);
    let headers = forwarded_headers(&head.headers, pass);
    let method = head.method.clone();
    let body = if matches!(method, Method::GET | Method::HEAD) {
        Bytes::new()
    } else {
        match visit.body(Request::from_parts(head, body)).await {
            Ok(body) if visit.current.config.enable_tool_calling => body,
            Ok(body) => {
                let size = body.len();
                let work = |_| async move { without_tools(&body) };
                match visit.compute(size, work).await {
                    Ok(body) => body,
                    Err(failure) => return visit.fail(DIALECT, &failure),
                }
            }
            Err(failure) => return visit.fail(DIALECT, &failure),
        }
    };
    let model = visit.current.config.models.meaning(&asked.model).model;
    if !asked.model.is_empty()
        && let Err(failure) = check_model(&model)
    {
        return visit.fail(DIALECT, &failure);
    }
    let path = upstream_path(&visit, &asked, &model, &query);
    let target = Target { model, backend: visit.current.link.backend() };
    let mut ledger = visit.ledger(DIALECT);
    let generates = matches!(&*asked.verb, "generateContent" | "streamGenerateContent");
    let unread = Unread::new(&visit, &body, generates);
    ledger.passing(&target, form != Form::Whole, unread);
    let mut plan = Plan::passing(&visit, target.clone(), (method, path), headers, body.clone());
    let owner = visit.client.owner;
    let mending = |key| Mending { visit: &visit, model: &asked.model, form, body: &body, key };
    if generates && has_refused(&visit, plan.scope(owner), &target, &body).await {
        let mending = mending(plan.key());
        let mended = mending.run(ledger, Trust::All).await;
        return mended
            .unwrap_or_else(|failure| reply::failure(DIALECT, &failure, &visit.request_id));
    }
    // An answer in one piece begins when it is whole.
    let patience = if asked.verb == "generateContent" { plan.total() } else { plan.idle() };
    let refusal = loop {
        match turn::open(&mut plan, patience).await {
            Ok(response) if generates => {
                let (head, answer) = response.into_parts();
                let mut passing = Passing::open(answer, form, &visit, &plan, ledger).await;
                // K3: an error that comes as the first event is a refusal like any other, and so is an
                // end before there is one.
                if let Some(failure) = passing.refusal().cloned()
                    && let Some(given_up) = passing.give_up()
                {
                    ledger = given_up;
                    // Whoever has waited that long does not want to wait again.
                    if failure.kind == FailureKind::Timeout {
                        break Refusal { failure, said: None };
                    }
                    match turn::again(&mut plan, &failure).await {
                        Ok(()) => continue,
                        Err(failure) => break Refusal { failure, said: None },
                    }
                }
                if passing.is_no_good()
                    && let Some(ledger) = passing.give_up()
                    && let Ok(reply) = mending(plan.key()).run(ledger, Trust::All).await
                {
                    return reply;
                }
                return like(&head, passing.boxed_unsync());
            }
            Ok(response) => {
                let (head, body) = response.into_parts();
                match turn::read(body, patience).await {
                    Ok(body) => {
                        ledger.answered();
                        return like(&head, reply::full(body));
                    }
                    Err(failure) => break Refusal { failure, said: None },
                }
            }
            Err(refusal) => break *refusal,
        }
    };
    let Refusal { failure, said } = refusal;
    if generates && failure.kind == FailureKind::InvalidRequest {
        let is_distrusted = turn::is_about_signatures(&failure);
        let trust = if is_distrusted { Trust::Named } else { Trust::All };
        if let Ok(reply) = mending(plan.key()).run(ledger, trust).await {
            if is_about_tools(&failure) || is_distrusted || is_unsigned(&failure) {
                refuse(&visit, plan.scope(owner), target, body).await;
            }
            return reply;
        }
    } else {
        ledger.failed(&failure);
    }
    // Google's own words where they are words of the dialect; a page of a proxy's is not.
    match said.and_then(|(head, body)| Some((head, words(&visit, &body)?))) {
        Some((head, body)) => {
            let mut reply = reply::json(head.status, body);
            if let Some(kind) = head.headers.get(CONTENT_TYPE) {
                reply.headers_mut().insert(CONTENT_TYPE, kind.clone());
            }
            reply
        }
        None => reply::failure(DIALECT, &failure, &visit.request_id),
    }
}

/// Whether Gemini has refused the tools of this request lately.
async fn has_refused(visit: &Visit, scope: Scope, target: &Target, body: &Bytes) -> bool {
    let (size, target, body) = (body.len(), target.clone(), body.clone());
    let look = |visit: Visit| async move {
        visit.app.refusals.refuses_tools(scope, &target, &body, Instant::now())
    };
    visit.compute(size, look).await.unwrap_or(false)
}

/// Remembers that Gemini refuses the tools of this request.
async fn refuse(visit: &Visit, scope: Scope, target: Target, body: Bytes) {
    let size = body.len();
    let refuse = |visit: Visit| async move {
        visit.app.refusals.refuse_tools(scope, &target, &body, Instant::now());
    };
    // What is not remembered is refused again.
    drop(visit.compute(size, refuse).await);
}

/// What Gemini said, if it is JSON, without keys.
fn words(visit: &Visit, body: &Bytes) -> Option<Bytes> {
    serde_json::from_slice::<IgnoredAny>(body).ok()?;
    let text = std::str::from_utf8(body).ok()?;
    let clean = visit.current.without_keys(text, &visit.client.pass);
    Some(clean.map_or_else(|| body.clone(), Bytes::from))
}

/// A request of Gemini's form without its tools (R140).
fn without_tools(body: &Bytes) -> Bytes {
    const TOOLS: [&str; 3] = ["tools", "toolConfig", "tool_config"];
    const INNER: [&str; 2] = ["generateContentRequest", "generate_content_request"];
    fn rest(out: &mut Vec<u8>, fields: &Fields<'_>) {
        out.push(b'{');
        for (name, value) in fields.0.iter().filter(|(name, _)| !TOOLS.contains(&&**name)) {
            write::key(out, name);
            match value.fields().filter(|_| INNER.contains(&&**name)) {
                Some(inner) => rest(out, &inner),
                None => out.extend_from_slice(value.get().as_bytes()),
            }
        }
        out.push(b'}');
    }
    let text = std::str::from_utf8(body).unwrap_or_default();
    // What cannot be read has no tools either; Gemini will say what is wrong with it.
    let Ok(fields) = json::parse::<Fields<'_>>(text) else { return body.clone() };
    let mut out = Vec::with_capacity(body.len());
    rest(&mut out, &fields);
    Bytes::from(out)
}

/// Whether a refusal will come again as long as the tools are the same.
fn is_about_tools(failure: &Failure) -> bool {
    ["function_declaration", "functionDeclaration", "tools["]
        .iter()
        .any(|words| failure.message.contains(words))
}

/// `POST /v1/gemini`: Gemini's forms, with `model`, `input`, `conversation` and `stream`.
pub(crate) async fn native(visit: Visit, request: Request<Incoming>) -> Reply {
    let body = match visit.body(request).await {
        Ok(body) => body,
        Err(failure) => return visit.fail(DIALECT, &failure),
    };
    let (size, opening) = (body.len(), body.clone());
    let open = |visit: Visit| async move { session::open_native(&visit, &opening).await };
    let opened = match visit.compute(size, open).await.unwrap_or_else(|it| Err(it.into())) {
        Ok(opened) => opened,
        Err(refused) => return visit.refuse(DIALECT, &refused),
    };
    let mut ask = Ask::new(DIALECT, body, &visit.client);
    let mut keeper = None;
    if let Some(opened) = opened {
        (ask.body, ask.before, ask.collect) = (opened.body, Arc::new(opened.before), true);
        keeper = Some(opened.keeper);
    }
    match turns::run(&visit, &ask).await {
        Ok(outcome) => turns::shown(&visit, outcome, keeper).await,
        Err(failure) => reply::failure(DIALECT, &failure, &visit.request_id),
    }
}

/// Methods of one of Gemini's paths; the error of Google's form where there is no such path.
pub(crate) fn methods(path: &str) -> Result<&'static str, Failure> {
    let asked = read_path(path)?;
    // Google decides which methods a model has.
    Ok(if asked.verb.is_empty() { "GET, HEAD, POST, PATCH, DELETE" } else { "POST" })
}

/// Which form the answer will have.
fn form_of(verb: &str, is_sse: bool) -> Form {
    match verb {
        "streamGenerateContent" if is_sse => Form::Events,
        "streamGenerateContent" => Form::Array,
        _ => Form::Whole,
    }
}

/// The path and query that go upstream. `model` is checked; everything else is the gateway's own.
fn upstream_path(visit: &Visit, asked: &Asked<'_>, model: &str, query: &Query) -> String {
    let own = visit.current.link.models_path();
    let mut path = match asked.version {
        // The client's own version, on the service that has it.
        Some(version @ ("v1" | "v1beta" | "v1alpha"))
            if own.ends_with("/models") && !own.contains("/publishers/") =>
        {
            format!("/{version}/models")
        }
        _ if asked.verb.is_empty() => visit.current.link.catalogue_path().to_owned(),
        _ => own.to_owned(),
    };
    if !model.is_empty() {
        path.push('/');
        path.push_str(model);
    }
    if !asked.verb.is_empty() {
        path.push(':');
        path.push_str(&asked.verb);
    }
    path.push_str(&query.text);
    path
}

/// A question that Gemini does not take as it is.
struct Mending<'a> {
    visit: &'a Visit,
    model: &'a str,
    form: Form,
    body: &'a Bytes,
    /// Index of the pool's key that the turn uses.
    key: Option<usize>,
}

impl Mending<'_> {
    /// Asks it with its tools and its history in order, as for every other dialect.
    async fn run(&self, ledger: Ledger, trust: Trust) -> Result<Reply, Failure> {
        let visit = self.visit;
        let framing = match self.form {
            Form::Whole => None,
            Form::Events => Some(Framing::Sse),
            Form::Array => Some(Framing::Array),
        };
        let path = Some((self.model.to_owned(), framing));
        let ask = Ask {
            path,
            trust,
            key: self.key,
            ..Ask::new(DIALECT, self.body.clone(), &visit.client)
        };
        let outcome = turns::run_on(visit, &ask, ledger).await?;
        visit.app.metrics.rescued("history_mended");
        Ok(turns::shown(visit, outcome, None).await)
    }
}

/// Whether a signature was missed. A client with these tools that has lost one will lose the next.
fn is_unsigned(failure: &Failure) -> bool {
    failure.message.contains("missing a thought_signature")
        || failure.message.contains("missing a `thought_signature`")
}

/// An answer of the upstream's kind.
fn like(head: &http::response::Parts, body: reply::Body) -> Reply {
    let mut reply = reply::stream("application/json", body);
    *reply.status_mut() = head.status;
    for name in [CONTENT_TYPE, CONTENT_ENCODING] {
        if let Some(value) = head.headers.get(&name) {
            reply.headers_mut().insert(name, value.clone());
        }
    }
    reply
}
