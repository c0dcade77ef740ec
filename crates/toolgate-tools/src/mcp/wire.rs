//! Exact JSON beside rmcp.
//!
//! rmcp decodes arguments, schemas and results into types that respell numbers and drop what they do
//! not know. The transports of this crate therefore carry the payloads beside rmcp's messages:
//!
//! ```text
//!   caller ── arguments ──► Wire ── written into the request ──► server
//!   caller ◄─ raw result ── Wire ◄─ taken out of the response ── server
//!                            └────── an empty result ──────────► rmcp
//! ```
//!
//! rmcp keeps what it is good at: lifecycle, ids, cancellation, progress, sessions, headers.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorData, ListToolsResult, ProtocolVersion, RequestId,
    ServerJsonRpcMessage, ServerResult,
};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::Failure;

/// Member of `_meta` that names a payload. It is removed before a request leaves.
pub(super) const PAYLOAD: &str = "dev.toolgate/payload";

/// JSON-RPC code of an unsupported protocol version.
const UNSUPPORTED_VERSION: i32 = -32022;

/// Payloads of one connection.
#[derive(Clone, Default)]
pub(super) struct Wire {
    state: Arc<Mutex<WireState>>,
    next: Arc<AtomicU64>,
}

#[derive(Default)]
struct WireState {
    payloads: HashMap<u64, Payload>,
    ids: HashMap<RequestId, u64>,
    /// Requests that open the connection.
    openings: HashMap<RequestId, Opening>,
}

/// A request that opens the connection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Opening {
    Discover,
    Initialize,
}

struct Payload {
    arguments: Option<Box<RawValue>>,
    reply: oneshot::Sender<Result<Box<RawValue>, Failure>>,
    is_list: bool,
}

/// A reply that is awaited. Dropped, the payload is forgotten.
pub(super) struct Expected {
    wire: Wire,
    pub(super) key: u64,
    pub(super) reply: oneshot::Receiver<Result<Box<RawValue>, Failure>>,
}

impl Drop for Expected {
    fn drop(&mut self) {
        let mut state = self.wire.state();
        state.payloads.remove(&self.key);
        let key = self.key;
        state.ids.retain(|_, it| *it != key);
    }
}

#[derive(Serialize, Deserialize)]
struct Frame {
    jsonrpc: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<Box<RawValue>>,
    method: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<BTreeMap<String, Box<RawValue>>>,
}

#[derive(Deserialize)]
struct Head<'a> {
    id: Option<IdText<'a>>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(transparent)]
struct IdText<'a>(#[serde(borrow)] &'a RawValue);

impl IdText<'_> {
    fn id(&self) -> Option<RequestId> {
        serde_json::from_str(self.0.get()).ok()
    }
}

impl Wire {
    fn state(&self) -> MutexGuard<'_, WireState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Announces a request whose result is wanted as JSON text.
    pub(super) fn expect(&self, arguments: Option<Box<RawValue>>, is_list: bool) -> Expected {
        let key = self.next.fetch_add(1, Ordering::Relaxed);
        let (reply, receiver) = oneshot::channel();
        self.state().payloads.insert(key, Payload { arguments, reply, is_list });
        Expected { wire: self.clone(), key, reply: receiver }
    }

    /// Encodes a message, with the payload that it names.
    pub(super) fn encode(&self, message: &ClientJsonRpcMessage) -> serde_json::Result<Vec<u8>> {
        let ClientJsonRpcMessage::Request(request) = message else {
            return serde_json::to_vec(message);
        };
        let has_payload = matches!(
            request.request,
            ClientRequest::CallToolRequest(_) | ClientRequest::ListToolsRequest(_)
        );
        let opening = if matches!(request.request, ClientRequest::DiscoverRequest(_)) {
            Some(Opening::Discover)
        } else if matches!(request.request, ClientRequest::InitializeRequest(_)) {
            Some(Opening::Initialize)
        } else {
            None
        };
        if let Some(opening) = opening {
            self.state().openings.insert(request.id.clone(), opening);
        }
        let text = serde_json::to_vec(message)?;
        if !has_payload {
            return Ok(text);
        }
        let mut frame: Frame = serde_json::from_slice(&text)?;
        let params = frame.params.get_or_insert_default();
        let Some(meta) = params.get("_meta") else { return Ok(text) };
        let mut meta: serde_json::Map<String, Value> = serde_json::from_str(meta.get())?;
        let Some(key) = meta.shift_remove(PAYLOAD).and_then(|it| it.as_u64()) else {
            return Ok(text);
        };
        params.insert("_meta".to_owned(), to_raw_value(&meta)?);
        let mut state = self.state();
        if let Some(payload) = state.payloads.get(&key) {
            if let Some(arguments) = &payload.arguments {
                params.insert("arguments".to_owned(), arguments.clone());
            }
            state.ids.insert(request.id.clone(), key);
        }
        drop(state);
        serde_json::to_vec(&frame)
    }

    /// Takes the payload out of a message of the server. Returns the message that rmcp gets instead,
    /// or nothing where it gets the message itself.
    pub(super) fn take(&self, text: &[u8]) -> Option<Vec<u8>> {
        let head: Head<'_> = serde_json::from_slice(text).ok()?;
        let id = head.id.as_ref()?.id()?;
        if let Some(error) = head.error {
            return self.legacy_answer(&id, error);
        }
        let result = head.result?;
        let payload = {
            let mut state = self.state();
            if let Some(opening) = state.openings.remove(&id) {
                return opened(opening, &id, result);
            }
            let key = state.ids.remove(&id)?;
            state.payloads.remove(&key)?
        };
        let stand_in = if payload.is_list { tool_headers(result) } else { ServerResult::empty(()) };
        let _ = payload.reply.send(Ok(result.to_owned()));
        serde_json::to_vec(&ServerJsonRpcMessage::response(stand_in, id)).ok()
    }

    /// Fails the request of an id.
    pub(super) fn fail(&self, id: &RequestId, failure: Failure) {
        let mut state = self.state();
        let payload = state.ids.remove(id).and_then(|key| state.payloads.remove(&key));
        drop(state);
        if let Some(payload) = payload {
            let _ = payload.reply.send(Err(failure));
        }
    }

    /// Makes a server that knows only older versions look like one that does not know the probe at
    /// all, so that rmcp goes on with the handshake of those versions.
    fn legacy_answer(&self, id: &RequestId, error: &RawValue) -> Option<Vec<u8>> {
        if self.state().openings.remove(id) != Some(Opening::Discover) {
            return None;
        }
        let error: ErrorData = serde_json::from_str(error.get()).ok()?;
        let supported = error.data.as_ref()?.get("supported")?.as_array()?;
        let modern = ProtocolVersion::V_2026_07_28;
        let is_modern = supported.iter().any(|it| it.as_str() == Some(modern.as_str()));
        if error.code.0 != UNSUPPORTED_VERSION || is_modern {
            return None;
        }
        serde_json::to_vec(&unknown_method(id.clone())).ok()
    }
}

/// Keeps what this crate uses of an answer that opens the connection. One member that rmcp does not
/// expect would make the whole answer unreadable for it.
fn opened(opening: Opening, id: &RequestId, result: &RawValue) -> Option<Vec<u8>> {
    let result: serde_json::Map<String, Value> = serde_json::from_str(result.get()).ok()?;
    let has_tools = result.get("capabilities").and_then(|it| it.get("tools"));
    let announces = has_tools.and_then(|it| it.get("listChanged")).and_then(Value::as_bool);
    let capabilities = json!({ "tools": { "listChanged": announces.unwrap_or(false) } });
    let clean = match opening {
        Opening::Discover => json!({
            "supportedVersions": result.get("supportedVersions")?,
            "capabilities": capabilities,
            "resultType": "complete",
            "ttlMs": 0,
            "cacheScope": "private",
        }),
        Opening::Initialize => json!({
            "protocolVersion": result.get("protocolVersion")?,
            "capabilities": capabilities,
            "serverInfo": { "name": "server", "version": "0" },
        }),
    };
    let id = id.clone().into_json_value();
    serde_json::to_vec(&json!({ "jsonrpc": "2.0", "id": id, "result": clean })).ok()
}

/// Answer of a server that does not know the probe.
pub(super) fn unknown_method(id: RequestId) -> ServerJsonRpcMessage {
    let error = ErrorData::new(rmcp::model::ErrorCode::METHOD_NOT_FOUND, "unknown method", None);
    ServerJsonRpcMessage::error(error, Some(id))
}

/// What rmcp needs of a listing: names and schemas, from which it makes `Mcp-Param-*` headers.
fn tool_headers(result: &RawValue) -> ServerResult {
    #[derive(Deserialize)]
    struct Page<'a> {
        #[serde(borrow)]
        tools: Vec<&'a RawValue>,
    }
    #[derive(Deserialize, Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Row {
        name: String,
        input_schema: serde_json::Map<String, Value>,
    }
    let tools: Vec<Row> = serde_json::from_str::<Page<'_>>(result.get())
        .map(|page| page.tools)
        .unwrap_or_default()
        .into_iter()
        .filter_map(|tool| serde_json::from_str(tool.get()).ok())
        .collect();
    let list = serde_json::to_value(json!({ "tools": tools }))
        .and_then(serde_json::from_value::<ListToolsResult>);
    match list {
        Ok(list) => ServerResult::ListToolsResult(list),
        Err(_) => ServerResult::empty(()),
    }
}
