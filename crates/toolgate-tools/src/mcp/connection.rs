//! One connection to an MCP server, over the standard streams of a child or over HTTP.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientCapabilities, ClientConfig, ClientRequest,
    ElicitRequestParams, ElicitResult, ErrorCode, Implementation, JsonObject, ListToolsRequest,
    MetaObject, PaginatedRequestParams, ProgressNotificationParam, ProgressToken, ProtocolVersion,
    RequestMetaObject, ServerResult, SubscriptionFilter,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt as _, NotificationContext,
    PeerRequestOptions, RequestContext, RunningService,
};
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransportConfig, StreamableHttpError,
};
use rmcp::transport::{DynamicTransportError, StreamableHttpClientTransport};
use rmcp::{ClientHandler, ErrorData, Peer, RoleClient, ServiceError};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::http::{Backend, Credentials, HttpFailure, MAX_BODY_BYTES};
use super::listing::{Page, decode_page};
use super::stdio::StdioTransport;
use super::wire::{PAYLOAD, Wire};
use crate::net::HttpClient;
use crate::process::{ChildCommand, Process};
use crate::{Control, Failure, Listed, Output, ProcessGuard, Progress};

/// Most pages of one listing.
const MAX_PAGES: usize = 200;

/// Rounds in which a server may ask for its own state again.
const MAX_STATE_ROUNDS: usize = 3;

/// Longest message of a server that is passed on.
const MAX_MESSAGE_CHARS: usize = 500;

/// Pause before a subscription is opened again.
const SUBSCRIBE_PAUSE: Duration = Duration::from_secs(5);

/// Stands for no timeout; the time to connect is bounded by the caller.
const NO_PROBE_TIMEOUT: Duration = Duration::from_secs(24 * 3600);

/// How a server is reached.
#[derive(Clone)]
pub(crate) enum Target {
    Stdio { command: ChildCommand, guard: ProcessGuard },
    Http { url: Arc<str>, credentials: Credentials, client: Box<HttpClient> },
}

/// Era of the protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Era {
    /// The newest that the server knows.
    #[default]
    Auto,
    /// 2026-07-28: no handshake, no session.
    Modern,
    /// 2024-11-05 to 2025-11-25: handshake.
    Legacy,
}

/// A connection. Dropping it closes it and kills the process of the server.
pub(crate) struct Connection {
    peer: Peer<RoleClient>,
    service: Mutex<Option<RunningService<RoleClient, Handler>>>,
    process: Mutex<Option<Process>>,
    progress: ProgressMap,
    wire: Wire,
    is_http: bool,
    pub(crate) era: Era,
    /// Fires when the streams of a child have ended.
    pub(crate) ended: CancellationToken,
}

type ProgressMap = Arc<Mutex<HashMap<ProgressToken, Control>>>;

impl Connection {
    /// Connects, and agrees on a version of the protocol.
    pub(crate) async fn open(
        target: &Target,
        era: Era,
        probe_timeout: Duration,
        changes: &watch::Sender<u64>,
        label: &str,
    ) -> Result<Self, Failure> {
        // Only silence of a server whose era is not known has a meaning.
        let probe_timeout = if era == Era::Auto { probe_timeout } else { NO_PROBE_TIMEOUT };
        let wire = Wire::default();
        let ended = CancellationToken::new();
        let progress = ProgressMap::default();
        let handler = Handler { progress: Arc::clone(&progress), changes: changes.clone() };
        let modern = vec![ProtocolVersion::V_2026_07_28];
        let lifecycle = match era {
            Era::Auto => {
                let legacy_version = Some(ProtocolVersion::V_2025_11_25);
                ClientLifecycleMode::Auto { preferred_versions: modern, legacy_version }
            }
            Era::Modern => ClientLifecycleMode::Discover { preferred_versions: modern },
            Era::Legacy => ClientLifecycleMode::Initialize,
        };
        let (service, process) = match target {
            Target::Stdio { command, guard } => {
                let (mut process, pipes) = Process::spawn(command, guard, label)
                    .map_err(|error| Failure::Unreachable(error.to_string()))?;
                let transport =
                    StdioTransport::new(pipes, wire.clone(), probe_timeout, ended.clone(), label);
                let service = handler.serve_with_lifecycle(transport, lifecycle).await;
                match service {
                    Ok(service) => (service, Some(process)),
                    Err(error) => {
                        // Standard error often says why.
                        let words = process.last_words().await;
                        tracing::warn!(source = label, stderr = %words, "server did not start");
                        return Err(start_failure(&error, &words));
                    }
                }
            }
            Target::Http { url, credentials, client } => {
                let backend = Backend::new(
                    HttpClient::clone(client),
                    wire.clone(),
                    credentials.clone(),
                    probe_timeout,
                );
                let config = StreamableHttpClientTransportConfig::with_uri(Arc::clone(url))
                    .max_concurrent_requests(256)
                    .max_sse_event_size(MAX_BODY_BYTES)
                    .reinit_on_expired_session(true);
                let transport = StreamableHttpClientTransport::with_client(backend, config);
                let service = handler.serve_with_lifecycle(transport, lifecycle).await;
                (service.map_err(|error| start_failure(&error, ""))?, None)
            }
        };
        let peer = service.peer().clone();
        let info = peer.peer_info();
        let is_modern =
            info.as_ref().is_some_and(|it| it.protocol_version == ProtocolVersion::V_2026_07_28);
        let announces = info
            .and_then(|it| it.capabilities.tools.as_ref().and_then(|tools| tools.list_changed))
            .unwrap_or(false);
        if is_modern && announces {
            tokio::spawn(subscribe(peer.clone(), changes.clone()));
        }
        Ok(Self {
            peer,
            service: Mutex::new(Some(service)),
            is_http: process.is_none(),
            process: Mutex::new(process),
            progress,
            wire,
            era: if is_modern { Era::Modern } else { Era::Legacy },
            ended,
        })
    }

    /// Whether the connection has ended.
    pub(crate) fn is_closed(&self) -> bool {
        self.peer.is_transport_closed()
    }

    /// Process id of the server, where it is a child that runs.
    pub(crate) fn process_id(&self) -> Option<u32> {
        let process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        process.as_ref().and_then(Process::id)
    }

    /// Kills the process at once.
    pub(crate) fn kill(&self) {
        self.process.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// Closes the connection and ends the process.
    pub(crate) async fn close(&self) {
        let service = self.service.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(service) = service {
            let _ = service.cancel().await;
        }
        let process = self.process.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(process) = process {
            process.end().await;
        }
    }

    /// Returns all tools of the server, page by page.
    pub(crate) async fn list(&self) -> Result<Vec<Listed>, Failure> {
        let mut tools = Vec::new();
        let mut seen = HashSet::new();
        let mut cursor: Option<String> = None;
        for _ in 0..MAX_PAGES {
            let params = PaginatedRequestParams::default().with_cursor(cursor.take());
            let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(params));
            let control = Control::detached();
            let (raw, shown) =
                self.request(request, None, MetaObject::default(), true, &control).await?;
            let Page { tools: page, next } = decode_page(&raw)?;
            // rmcp leaves out tools whose headers are not valid.
            let valid: Option<HashSet<String>> = match shown {
                Some(ServerResult::ListToolsResult(list)) if self.is_http => {
                    Some(list.tools.into_iter().map(|it| it.name.into_owned()).collect())
                }
                _ => None,
            };
            let is_modern = self.era == Era::Modern;
            tools.extend(page.into_iter().filter(|tool| {
                !is_modern || valid.as_ref().is_none_or(|names| names.contains(&tool.name))
            }));
            match next {
                // An empty cursor, or one that was given before, never ends.
                Some(next) if !next.is_empty() && seen.insert(next.clone()) => cursor = Some(next),
                _ => return Ok(tools),
            }
        }
        tracing::warn!("listing has more than {MAX_PAGES} pages, the rest is left out");
        Ok(tools)
    }

    /// Runs one call.
    pub(crate) async fn call(
        &self,
        name: &str,
        arguments: &RawValue,
        meta: &MetaObject,
        control: &Control,
    ) -> Result<Output, Failure> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct ResultHead {
            result_type: Option<String>,
            request_state: Option<String>,
            input_requests: Option<Value>,
        }
        let mut state: Option<String> = None;
        for _ in 0..=MAX_STATE_ROUNDS {
            let mut params = CallToolRequestParams::new(name.to_owned());
            // rmcp makes headers of them; the request itself carries the text.
            let parsed = self.is_http.then(|| serde_json::from_str::<JsonObject>(arguments.get()));
            params.arguments = parsed.and_then(Result::ok);
            params.request_state = state.take();
            let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
            let payload = Some(arguments.to_owned());
            let (raw, _) = self.request(request, payload, meta.clone(), false, control).await?;
            let malformed =
                || Failure::Protocol { code: -32603, message: "malformed result".to_owned() };
            let head: ResultHead = serde_json::from_str(raw.get()).map_err(|_| malformed())?;
            match head.result_type.as_deref() {
                None | Some("complete") => {
                    return Output::from_mcp(&raw).map_err(|_| malformed());
                }
                Some("input_required") => {
                    let asks = match &head.input_requests {
                        None | Some(Value::Null) => false,
                        Some(Value::Object(requests)) => !requests.is_empty(),
                        Some(_) => true,
                    };
                    match head.request_state {
                        Some(next) if !asks => state = Some(next),
                        _ => return Err(Failure::InputRequired),
                    }
                }
                Some(_) => return Err(Failure::InputRequired),
            }
        }
        Err(Failure::InputRequired)
    }

    /// Asks whether the server is alive.
    pub(crate) async fn probe(&self) -> Result<(), Failure> {
        let request = if self.era == Era::Modern {
            ClientRequest::DiscoverRequest(rmcp::model::DiscoverRequest::new(
                rmcp::model::DiscoverRequestParams {},
            ))
        } else {
            ClientRequest::PingRequest(rmcp::model::PingRequest::default())
        };
        self.peer.send_request(request).await.map(|_| ()).map_err(service_failure)
    }

    /// Sends a request and returns its result as JSON text, with what rmcp made of it.
    async fn request(
        &self,
        request: ClientRequest,
        arguments: Option<Box<RawValue>>,
        mut meta: MetaObject,
        is_list: bool,
        control: &Control,
    ) -> Result<(Box<RawValue>, Option<ServerResult>), Failure> {
        let mut expected = self.wire.expect(arguments, is_list);
        meta.0.insert(PAYLOAD.to_owned(), expected.key.into());
        let options = PeerRequestOptions::no_options().with_meta(RequestMetaObject(meta));
        let mut handle =
            self.peer.send_cancellable_request(request, options).await.map_err(|error| {
                if matches!(error, ServiceError::TransportClosed) {
                    // Nothing was sent.
                    Failure::Unreachable("closed".to_owned())
                } else {
                    service_failure(error)
                }
            })?;
        let _progress = Registered::new(&self.progress, handle.progress_token.clone(), control);
        let mut raw: Option<Box<RawValue>> = None;
        let answer = loop {
            tokio::select! {
                biased;
                reply = &mut expected.reply, if raw.is_none() => match reply {
                    Ok(Ok(text)) => raw = Some(text),
                    Ok(Err(failure)) => {
                        let _ = handle.cancel(Some("response dropped".to_owned())).await;
                        return Err(failure);
                    }
                    Err(_) => return Err(Failure::Crashed),
                },
                answer = &mut handle.rx => break answer,
                () = control.cancelled() => {
                    let _ = handle.cancel(Some("cancelled by the caller".to_owned())).await;
                    return Err(Failure::Cancelled);
                }
            }
        };
        match (answer, raw) {
            (Ok(Ok(result)), Some(raw)) => Ok((raw, Some(result))),
            (Ok(Ok(_)), None) => Err(Failure::Protocol {
                code: -32603,
                message: "response without a result".to_owned(),
            }),
            (Ok(Err(error)), _) => Err(service_failure(error)),
            (Err(_), _) => Err(Failure::Crashed),
        }
    }
}

/// Entry of a call in the table of progress tokens.
struct Registered<'a> {
    map: &'a ProgressMap,
    token: ProgressToken,
}

impl<'a> Registered<'a> {
    fn new(map: &'a ProgressMap, token: ProgressToken, control: &Control) -> Self {
        let mut entries = map.lock().unwrap_or_else(PoisonError::into_inner);
        entries.insert(token.clone(), control.clone());
        drop(entries);
        Self { map, token }
    }
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        self.map.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.token);
    }
}

/// Handler of messages that the server sends by itself.
struct Handler {
    progress: ProgressMap,
    changes: watch::Sender<u64>,
}

fn refused(method: &str) -> ErrorData {
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method.to_owned(), None)
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let name = Implementation::new("toolgate", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), name)
            .with_protocol_version(ProtocolVersion::V_2025_11_25)
    }

    // Capabilities were not declared. A refusal at once lets the server go on.
    #[expect(deprecated, reason = "servers of the old era still ask")]
    async fn list_roots(
        &self,
        _: RequestContext<RoleClient>,
    ) -> Result<rmcp::model::ListRootsResult, ErrorData> {
        Err(refused("roots/list"))
    }

    async fn create_elicitation(
        &self,
        _: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        Err(refused("elicitation/create"))
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let control = {
            let entries = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
            entries.get(&params.progress_token).cloned()
        };
        if let Some(control) = control {
            control.report(Progress {
                done: params.progress,
                total: params.total,
                message: params.message,
            });
        }
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changes.send_modify(|count| *count += 1);
    }
}

/// Listens for changes of the list of tools, as long as the connection is open.
async fn subscribe(peer: Peer<RoleClient>, changes: watch::Sender<u64>) {
    let filter = SubscriptionFilter::builder().tools_list_changed().build();
    while !peer.is_transport_closed() {
        if let Ok(mut subscription) = peer.listen(filter.clone()).await {
            while let Ok(Some(_)) = subscription.next().await {
                changes.send_modify(|count| *count += 1);
            }
        }
        tokio::time::sleep(SUBSCRIBE_PAUSE).await;
    }
}

fn protocol_failure(error: &ErrorData) -> Failure {
    let message = error.message.chars().take(MAX_MESSAGE_CHARS).collect();
    Failure::Protocol { code: i64::from(error.code.0), message }
}

fn transport_failure(error: &DynamicTransportError) -> Failure {
    match error.error.downcast_ref::<StreamableHttpError<HttpFailure>>() {
        Some(StreamableHttpError::Client(HttpFailure(failure))) => failure.clone(),
        Some(StreamableHttpError::SessionExpired) => Failure::Http { status: 404 },
        Some(
            StreamableHttpError::UnexpectedContentType(_) | StreamableHttpError::Deserialize(_),
        ) => Failure::Protocol { code: -32700, message: "the response is no JSON-RPC".to_owned() },
        _ => Failure::Crashed,
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the enum of rmcp is not exhaustive")]
fn service_failure(error: ServiceError) -> Failure {
    match error {
        ServiceError::McpError(error) => protocol_failure(&error),
        ServiceError::TransportSend(error) => transport_failure(&error),
        ServiceError::Cancelled { .. } => Failure::Cancelled,
        _ => Failure::Crashed,
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the enum of rmcp is not exhaustive")]
fn start_failure(error: &ClientInitializeError, words: &str) -> Failure {
    match error {
        ClientInitializeError::JsonRpcError(error) => protocol_failure(error),
        ClientInitializeError::TransportError { error, .. } => {
            let failure = transport_failure(error);
            if failure == Failure::Crashed { ended_at_start(words) } else { failure }
        }
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => {
            start_failure(fallback, words)
        }
        ClientInitializeError::NoCompatibleProtocolVersion { .. } => {
            Failure::Unreachable("no common version of the protocol".to_owned())
        }
        _ => ended_at_start(words),
    }
}

fn ended_at_start(words: &str) -> Failure {
    Failure::Unreachable(match words.lines().next_back() {
        Some(line) => format!("the server ended at its start: {line}"),
        None => "the server ended at its start".to_owned(),
    })
}
