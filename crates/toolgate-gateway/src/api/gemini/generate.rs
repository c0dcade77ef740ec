//! Handlers of the Gemini API: `generateContent` and its kin, and the native endpoint.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http::Request;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http_body_util::BodyExt as _;
use serde::de::IgnoredAny;
use tokio::sync::oneshot;
use toolgate_core::canon::Target;
use toolgate_core::canon::{Failure, FailureKind, ToolChoice};
use toolgate_core::dialect::DecodeOptions;
use toolgate_core::gemini::{self, Framing};
use toolgate_core::json::{self, Fields, write};
use toolgate_core::translate::{Dialect, Echo};
use toolgate_core::upstream::generate_content::Profile;

use super::forward::{Asked, Query, forwarded_headers, forwarded_query, read_path};
use super::passthrough::{Form, Passing};
use crate::api::reply::{self, Reply};
use crate::api::source::{BodySource, Form as BodyForm};
use crate::api::{RequestContext, answer};
use crate::offload::INLINE_BYTES;
use crate::sessions::{History, Recorder, SessionError, open_native, text};
use crate::signatures::{Fingerprint, SignatureRecorder, Undecoded};
use crate::turn::{self, Attempts, Audit, Input, Prepared, Scope, SendError, Trust};
use crate::upstream::check_model;

const DIALECT: Dialect = Dialect::Gemini;

/// Requests to Gemini's own paths.
pub(crate) async fn generate(context: RequestContext, request: Request<Bytes>) -> Reply {
    let (head, body) = request.into_parts();
    let path = head.uri.path().to_owned();
    let pass = &context.turn.client.pass;
    let query = forwarded_query(head.uri.query().unwrap_or(""), pass);
    let (asked, query) = match read_path(&path).and_then(|asked| Ok((asked, query?))) {
        Ok(read) => read,
        Err(failure) => return context.fail(DIALECT, &failure),
    };
    let form = form_of(&asked.verb, query.is_sse);
    let headers = forwarded_headers(&head.headers, pass);
    let method = head.method.clone();
    let body = if context.turn.current.config.enable_tool_calling || body.is_empty() {
        body
    } else {
        match context.compute(body.len(), |_| async move { without_tools(&body) }).await {
            Ok(body) => body,
            Err(failure) => return context.fail(DIALECT, &failure),
        }
    };
    let model = context.turn.current.config.models.meaning(&asked.model).model;
    if !asked.model.is_empty()
        && let Err(failure) = check_model(&model)
    {
        return context.fail(DIALECT, &failure);
    }
    let path = upstream_path(&context, &asked, &model, &query);
    let target = Target { model, backend: context.turn.current.link.backend() };
    let mut audit = context.turn.audit(DIALECT);
    let generates = matches!(&*asked.verb, "generateContent" | "streamGenerateContent");
    audit.passing(&target, form != Form::Whole);
    let mut attempts =
        Attempts::passing(&context.turn, target.clone(), (method, path), headers, body.clone());
    let owner = context.turn.client.owner;
    let mending = |key| Mending { context: &context, model: &asked.model, form, body: &body, key };
    if generates && has_refused(&context, attempts.scope(owner), &target, &body).await {
        let mending = mending(attempts.key());
        let mended = mending.run(audit, Trust::All).await;
        return mended
            .unwrap_or_else(|failure| reply::failure(DIALECT, &failure, &context.turn.request_id));
    }
    // An answer in one piece begins when it is whole.
    let patience = if asked.verb == "generateContent" { attempts.total() } else { attempts.idle() };
    let refusal = loop {
        match turn::open(&mut attempts, patience).await {
            Ok(response) if generates => {
                let (head, answer) = response.into_parts();
                let mut passing = {
                    let recorder = recorder(&context, &target, &body);
                    Passing::open(answer, form, &context, &attempts, audit, recorder).await
                };
                // K3: an error that comes as the first event is a refusal like any other, and so is an
                // end before there is one.
                if let Some(failure) = passing.refusal().cloned()
                    && let Some(given_up) = passing.give_up()
                {
                    audit = given_up;
                    // A client that has waited that long is not made to wait again.
                    if failure.kind == FailureKind::Timeout {
                        break SendError { failure, reply: None };
                    }
                    match turn::again(&mut attempts, &failure).await {
                        Ok(()) => continue,
                        Err(failure) => break SendError { failure, reply: None },
                    }
                }
                if passing.is_no_good()
                    && let Some(audit) = passing.give_up()
                    && let Ok(reply) = mending(attempts.key()).run(audit, Trust::All).await
                {
                    return reply;
                }
                return like(&head, passing.boxed_unsync());
            }
            Ok(response) => {
                let (head, body) = response.into_parts();
                match turn::read(body, patience).await {
                    Ok(body) => {
                        audit.answered();
                        return like(&head, reply::full(body));
                    }
                    Err(failure) => break SendError { failure, reply: None },
                }
            }
            Err(refusal) => break *refusal,
        }
    };
    let SendError { failure, reply } = refusal;
    if generates && failure.kind == FailureKind::InvalidRequest {
        let is_distrusted = turn::is_about_signatures(&failure);
        let trust = if is_distrusted { Trust::Named } else { Trust::All };
        if let Ok(reply) = mending(attempts.key()).run(audit, trust).await {
            if is_about_tools(&failure) || is_distrusted || is_unsigned(&failure) {
                refuse(&context, attempts.scope(owner), target, body).await;
            }
            return reply;
        }
    } else {
        audit.failed(&failure);
    }
    // Google's own error is passed through; a proxy's error page is not.
    match reply.and_then(|(head, body)| Some((head, redacted_error(&context, &body)?))) {
        Some((head, body)) => {
            let mut reply = reply::json(head.status, body);
            if let Some(kind) = head.headers.get(CONTENT_TYPE) {
                reply.headers_mut().insert(CONTENT_TYPE, kind.clone());
            }
            reply
        }
        None => reply::failure(DIALECT, &failure, &context.turn.request_id),
    }
}

/// Signature recorder for a request that is passed through. A large request is decoded on a translation
/// thread, while Gemini answers.
fn recorder(context: &RequestContext, target: &Target, body: &Bytes) -> SignatureRecorder {
    let (body, session) = (body.clone(), context.turn.session.clone());
    let sealer = context.turn.services.sealer.clone();
    let source = if body.len() <= INLINE_BYTES {
        Undecoded::Body { body, session, sealer }
    } else {
        let (mut done, pending) = oneshot::channel();
        let (size, context) = (body.len(), context.clone());
        tokio::spawn(async move {
            let decode =
                |_| async move { Fingerprint::of_body(&sealer, &body, session.as_deref()) };
            let fingerprint = tokio::select! {
                biased;
                // The turn has ended without a call.
                () = done.closed() => return,
                fingerprint = context.compute(size, decode) => fingerprint,
            };
            drop(fingerprint.map(|fingerprint| done.send(fingerprint)));
        });
        Undecoded::Pending(pending)
    };
    let is_required = Profile::of(target).signatures_required;
    SignatureRecorder::undecoded(context.turn.signatures(), source, is_required)
}

/// Whether Gemini has refused the tools of this request lately.
async fn has_refused(
    context: &RequestContext,
    scope: Scope,
    target: &Target,
    body: &Bytes,
) -> bool {
    let (size, target, body) = (body.len(), target.clone(), body.clone());
    let look = |context: RequestContext| async move {
        context.turn.services.refusals.refuses_tools(scope, &target, &body, Instant::now())
    };
    context.compute(size, look).await.unwrap_or(false)
}

/// Remembers that Gemini refuses the tools of this request.
async fn refuse(context: &RequestContext, scope: Scope, target: Target, body: Bytes) {
    let size = body.len();
    let refuse = |context: RequestContext| async move {
        context.turn.services.refusals.refuse_tools(scope, &target, &body, Instant::now());
    };
    // A refusal that is not remembered is refused again.
    drop(context.compute(size, refuse).await);
}

/// Gemini's error body without keys, if it is JSON.
fn redacted_error(context: &RequestContext, body: &Bytes) -> Option<Bytes> {
    serde_json::from_slice::<IgnoredAny>(body).ok()?;
    let text = std::str::from_utf8(body).ok()?;
    let clean = context.turn.current.without_keys(text, &context.turn.client.pass);
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
    // A body that cannot be parsed has no tools; Gemini answers with its error.
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

/// `POST /v1/gemini`: Gemini's dialect, with `model`, `input`, `conversation` and `stream` in the body.
pub(crate) async fn native(context: RequestContext, request: Request<Bytes>) -> Reply {
    let started = Instant::now();
    let (input, prepared, recorder) = match prepare_native(&context, request.into_body()).await {
        Ok(prepared) => prepared,
        Err(error) => return context.refuse(DIALECT, &error),
    };
    let audit = context.turn.audit(DIALECT).since(started);
    match turn::run(&context.turn, &input, Some(prepared), audit).await {
        Ok(outcome) => answer::deliver(&context, outcome, recorder).await,
        Err(failure) => reply::failure(DIALECT, &failure, &context.turn.request_id),
    }
}

/// Decodes the body, fetches the history of its conversation, and prepares the turn.
async fn prepare_native(
    context: &RequestContext,
    body: Bytes,
) -> Result<(Input, Prepared, Option<Recorder>), SessionError> {
    let size = body.len();
    let memory = context.reserve(size).await?;
    let work = |context: RequestContext| async move {
        let _memory = memory;
        let options = DecodeOptions { sealer: &context.turn.services.sealer };
        let native = gemini::decode_native(text(&body)?, &options)?;
        let (mut history, mut recorder) = (History::default(), None);
        if let Some(conversation) = &native.conversation {
            let has_choice = !matches!(native.decoded.request.tool_choice, ToolChoice::Unset);
            let token = context.turn.stamp().ids.token();
            let sessions = context.sessions();
            let has_tools = native.has_tools;
            let opened =
                open_native(&sessions, conversation, has_tools, has_choice, &body, token).await?;
            (history, recorder) = (opened.history, Some(opened.recorder));
        }
        let _memory = context.reserve_history(&history)?;
        let source = BodySource { history, ..BodySource::new(DIALECT, body.clone()) };
        let source = Arc::new(source);
        let mut decoded = native.decoded.map_echo(Echo::Gemini);
        source.history.complete(&mut decoded, options)?;
        let input = Input { collect: recorder.is_some(), ..Input::new(Arc::clone(&source) as _) };
        let prepared = turn::prepare_decoded(&context.turn, &input, decoded).await?;
        Ok((input, prepared, recorder))
    };
    context.compute(size, work).await?
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
fn upstream_path(
    context: &RequestContext,
    asked: &Asked<'_>,
    model: &str,
    query: &Query,
) -> String {
    let own = context.turn.current.link.models_path();
    let mut path = match asked.version {
        // The client's own version, on the service that has it.
        Some(version @ ("v1" | "v1beta" | "v1alpha"))
            if own.ends_with("/models") && !own.contains("/publishers/") =>
        {
            format!("/{version}/models")
        }
        _ if asked.verb.is_empty() => context.turn.current.link.catalogue_path().to_owned(),
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
    context: &'a RequestContext,
    model: &'a str,
    form: Form,
    body: &'a Bytes,
    /// Index of the pool's key that the turn uses.
    key: Option<usize>,
}

impl Mending<'_> {
    /// Asks it with its tools and its history in order, as for every other dialect.
    async fn run(&self, audit: Audit, trust: Trust) -> Result<Reply, Failure> {
        let context = self.context;
        let framing = match self.form {
            Form::Whole => None,
            Form::Events => Some(Framing::Sse),
            Form::Array => Some(Framing::Array),
        };
        let form = BodyForm::Path { model: self.model.to_owned(), framing };
        let source = BodySource { form, ..BodySource::new(DIALECT, self.body.clone()) };
        let input = Input { trust, key: self.key, ..Input::new(Arc::new(source)) };
        let outcome = turn::run(&context.turn, &input, None, audit).await?;
        context.turn.services.metrics.rescued("history_mended");
        Ok(answer::deliver(context, outcome, None).await)
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
