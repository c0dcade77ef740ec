//! `GET /v1/responses`: the Responses API over a WebSocket.
//!
//! The client sends `response.create` messages, each a request body; the server sends the events of
//! the answers, one message each. Answers come one after the other. A request may go on from the
//! connection's last answer even where that was not to be stored.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use http::header::{
    CONNECTION, HeaderMap, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY,
    SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::{Request, StatusCode};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::io::AsyncReadExt as _;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};
use toolgate_core::canon::{Failure, FailureKind};
use toolgate_core::dialect::ErrorReply;
use toolgate_core::json::{Fields, Raw};
use toolgate_core::responses;
use toolgate_core::translate::encode_error;

use super::create::{Opened, open as open_request};
use super::endpoints::DIALECT;
use super::inbound::{Counted, Inbound};
use crate::admission::BodyRoom;
use crate::api::RequestContext;
use crate::api::answer::{StreamRecording, has_signatures};
use crate::api::reply::{self, Reply};
use crate::auth;
use crate::receive::too_large;
use crate::sessions::LastAnswer;
use crate::turn::{self, Answered};

type ClientSocket = WebSocketStream<Counted<TokioIo<Upgraded>>>;

/// Requests that may wait for the running one. Who sends more has to wait.
const WAITING: usize = 64;

/// Turns a connection into a WebSocket.
pub(super) fn open(context: RequestContext, mut request: Request<Bytes>) -> Reply {
    let Some(accept) = accept_key(request.headers()) else {
        return no_socket(&context);
    };
    let upgrade = hyper::upgrade::on(&mut request);
    let tasks = context.gateway.tasks.clone();
    tasks.spawn(async move {
        let upgraded = match upgrade.await {
            Ok(upgraded) => upgraded,
            Err(error) => return tracing::debug!(%error, "no WebSocket came of it"),
        };
        let limit = context.turn.current.config.limits.body;
        let mut config = WebSocketConfig::default().read_buffer_size(16 << 10).write_buffer_size(0);
        (config.max_message_size, config.max_frame_size) = (Some(limit), Some(limit));
        let services = Arc::clone(&context.turn.services);
        let (owner, idle) = (context.turn.client.owner, context.turn.current.config.limits.receive);
        let inbound = Inbound::new(services, owner, idle);
        let io = Counted::new(TokioIo::new(upgraded), inbound.clone());
        let socket = WebSocketStream::from_raw_socket(io, Role::Server, Some(config)).await;
        Connection::new(RequestContext { admitted: None, ..context }, socket, inbound)
            .serve()
            .await;
    });
    let mut reply =
        reply::with_type(StatusCode::SWITCHING_PROTOCOLS, "text/plain", reply::full(""));
    let headers = reply.headers_mut();
    headers.clear();
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
    reply
}

/// The proof that we understood; `None`: it is not a WebSocket that is asked for.
fn accept_key(headers: &HeaderMap) -> Option<HeaderValue> {
    let names = |header, wanted: &str| {
        let values = headers.get_all(header).iter().filter_map(|value| value.to_str().ok());
        values.flat_map(|value| value.split(',')).any(|it| it.trim().eq_ignore_ascii_case(wanted))
    };
    let fits = names(CONNECTION, "upgrade")
        && names(UPGRADE, "websocket")
        && names(SEC_WEBSOCKET_VERSION, "13");
    let key = headers.get(SEC_WEBSOCKET_KEY).filter(|_| fits)?;
    HeaderValue::try_from(derive_accept_key(key.as_bytes())).ok()
}

/// 426: clients know it, and use HTTP at once.
fn no_socket(context: &RequestContext) -> Reply {
    let message = "GET /v1/responses is a WebSocket; send Upgrade: websocket, or POST";
    context.turn.audit(DIALECT).failed(&Failure::new(FailureKind::InvalidRequest, message));
    let message = format!("{message} (request id: {})", context.turn.request_id);
    let body = responses::error_body(&message, "invalid_request_error", None, None);
    let mut reply = reply::json(StatusCode::UPGRADE_REQUIRED, body);
    reply.headers_mut().insert(UPGRADE, HeaderValue::from_static("websocket"));
    reply.headers_mut().insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    reply
}

/// One client.
struct Connection {
    context: RequestContext,
    read: SplitStream<ClientSocket>,
    answers: Answers,
    waiting: VecDeque<ClientMessage>,
    inbound: Inbound,
}

/// The half that answers.
struct Answers {
    write: SplitSink<ClientSocket, Message>,
    last: Option<Arc<LastAnswer>>,
}

/// A message of the client.
enum ClientMessage {
    /// A message, and the memory that is reserved for it.
    Text(Utf8Bytes, Option<BodyRoom>),
    /// Something that is no text.
    Binary,
    /// More than a body may have. What follows it cannot be read.
    TooLong,
}

/// Why a connection ends without its client having asked for it.
fn close_code(error: &Error) -> CloseCode {
    if matches!(error, Error::Protocol(_)) {
        CloseCode::Protocol
    } else if matches!(error, Error::Utf8(_)) {
        CloseCode::Invalid
    } else {
        // The connection is gone, or broken.
        CloseCode::Away
    }
}

impl ClientMessage {
    fn length(&self) -> usize {
        match self {
            Self::Text(text, _) => text.len(),
            Self::Binary | Self::TooLong => 0,
        }
    }
}

impl Connection {
    fn new(context: RequestContext, socket: ClientSocket, inbound: Inbound) -> Self {
        let (write, read) = socket.split();
        let answers = Answers { write, last: None };
        Self { context, read, answers, waiting: VecDeque::new(), inbound }
    }

    /// Serves until the client leaves, or the gateway does.
    async fn serve(mut self) {
        let mut leave = pin!(self.context.gateway.tasks.leave());
        let mut used = Instant::now();
        let code = 'serve: loop {
            let Some(heard) = self.waiting.pop_front() else {
                let config = self.context.gateway.config();
                let left = config.socket_idle.saturating_sub(used.elapsed());
                if left.is_zero() {
                    break CloseCode::Normal;
                }
                tokio::select! {
                    message = self.read.next() => if let Err(code) = hear(message, &mut self.waiting, &self.inbound) { break code },
                    () = &mut leave => break CloseCode::Away,
                    // Proxies close connections that are silent, and a peer that is gone resets them.
                    () = tokio::time::sleep(left.min(config.ping)) => {
                        if self.answers.write.send(Message::Ping(Bytes::new())).await.is_err() {
                            return;
                        }
                    }
                }
                continue;
            };
            let is_last = matches!(heard, ClientMessage::TooLong);
            let context = match next_request(&self.context) {
                Ok(context) => context,
                Err((failure, request_id)) => {
                    let refusal = encode_error(DIALECT, &failure, &request_id);
                    if self.answers.error(&refusal).await.is_err() {
                        return;
                    }
                    if failure.kind == FailureKind::Authentication {
                        break CloseCode::Policy;
                    }
                    if is_last {
                        break CloseCode::Size;
                    }
                    continue;
                }
            };
            let limit = context.turn.current.config.limits.body;
            let mut turn = pin!(self.answers.answer(&context, heard));
            let told = loop {
                // A client that sends more than one body's worth ahead has to wait.
                let ahead: usize = self.waiting.iter().map(ClientMessage::length).sum();
                let is_over =
                    matches!(self.waiting.back(), Some(ClientMessage::TooLong)) || is_last;
                let may_hear = ahead < limit && self.waiting.len() < WAITING && !is_over;
                self.inbound.set_reading(may_hear);
                tokio::select! {
                    told = &mut turn => break told,
                    // A client that disconnects ends its running turn.
                    message = self.read.next(), if may_hear => if let Err(code) = hear(message, &mut self.waiting, &self.inbound) { break 'serve code },
                }
            };
            self.inbound.set_reading(true);
            if told.is_err() {
                return;
            }
            used = Instant::now();
            if is_last {
                break CloseCode::Size;
            }
        };
        // A message that took too long, or for which there was no memory.
        let code = match self.inbound.failure() {
            Some(failure) => {
                let (request_id, _) = self.context.gateway.next_request();
                let turn = turn::Context { request_id, ..self.context.turn.clone() };
                turn.audit(DIALECT).failed(&failure);
                let refusal = encode_error(DIALECT, &failure, &turn.request_id);
                drop(self.answers.error(&refusal).await);
                if failure.kind == FailureKind::Timeout {
                    CloseCode::Policy
                } else {
                    CloseCode::Again
                }
            }
            None => code,
        };
        let is_sending = matches!(
            code,
            CloseCode::Again
                | CloseCode::Invalid
                | CloseCode::Policy
                | CloseCode::Protocol
                | CloseCode::Size
        );
        let frame = CloseFrame { code, reason: Utf8Bytes::from_static("") };
        // The client may be gone already, or have said first that it leaves: that is answered too.
        drop(self.answers.write.send(Message::Close(Some(frame))).await);
        drop(self.answers.write.close().await);
        if is_sending && let Ok(socket) = self.read.reunite(self.answers.write) {
            take_rest(socket).await;
        }
    }
}

/// Time for which data of a client is discarded before its connection is closed.
const DISCARD_TIME: Duration = Duration::from_secs(5);

/// Discards data that a client still sends. Otherwise it would see a reset instead of the close frame.
async fn take_rest(mut socket: ClientSocket) {
    let rest = async {
        let mut taken = vec![0; 64 << 10];
        while socket.get_mut().uncounted().read(&mut taken).await.is_ok_and(|count| count > 0) {}
    };
    drop(tokio::time::timeout(DISCARD_TIME, rest).await);
}

/// Takes a message; `Err`: there are no more.
fn hear(
    message: Option<Result<Message, Error>>,
    waiting: &mut VecDeque<ClientMessage>,
    inbound: &Inbound,
) -> Result<(), CloseCode> {
    let room = if matches!(message, Some(Ok(_))) { inbound.complete() } else { None };
    match message {
        Some(Ok(Message::Text(text))) => waiting.push_back(ClientMessage::Text(text, room)),
        Some(Ok(Message::Binary(_))) => waiting.push_back(ClientMessage::Binary),
        Some(Err(Error::Capacity(_))) => waiting.push_back(ClientMessage::TooLong),
        // Pings are answered by the protocol itself.
        Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => {}
        Some(Err(error)) => return Err(close_code(&error)),
        Some(Ok(Message::Close(_))) | None => return Err(CloseCode::Away),
    }
    Ok(())
}

/// Admits the next turn of a connection. Every turn is a request of its own, under the configuration in force:
/// its key must be valid still, and there must be a slot. An idle connection takes none.
fn next_request(context: &RequestContext) -> Result<RequestContext, (Box<Failure>, String)> {
    let (request_id, seed) = context.gateway.next_request();
    let current = context.gateway.current();
    let turn = turn::Context { request_id, seed, current, ..context.turn.clone() };
    let admitted = auth::readmit(&turn.current.config, &turn.client)
        .and_then(|()| turn.services.admission.admit(turn.client.owner));
    match admitted {
        Ok(admitted) => {
            let gateway = Arc::clone(&context.gateway);
            Ok(RequestContext { gateway, turn, admitted: Some(Arc::new(admitted)) })
        }
        Err(failure) => {
            turn.audit(DIALECT).failed(&failure);
            Err((Box::new(failure), turn.request_id))
        }
    }
}

impl Answers {
    /// Answers one message.
    async fn answer(
        &mut self,
        context: &RequestContext,
        heard: ClientMessage,
    ) -> Result<(), Error> {
        let refusal = match heard {
            ClientMessage::Text(text, room) => return self.turn(context, text, room).await,
            ClientMessage::Binary => {
                Failure::new(FailureKind::InvalidRequest, "a message must be text, not binary")
            }
            ClientMessage::TooLong => too_large(context.turn.current.config.limits.body),
        };
        context.turn.audit(DIALECT).failed(&refusal);
        self.error(&encode_error(DIALECT, &refusal, &context.turn.request_id)).await
    }

    async fn turn(
        &mut self,
        context: &RequestContext,
        message: Utf8Bytes,
        room: Option<BodyRoom>,
    ) -> Result<(), Error> {
        let body = Bytes::from(message);
        let body = match (room, &context.admitted) {
            (Some(room), Some(admitted)) => {
                let (body, copies) = room.hold(body);
                admitted.hold(copies);
                body
            }
            (_, _) => body,
        };
        let (size, checking) = (body.len(), body.clone());
        let check = |_| async move { check(&checking) };
        if let Err(refusal) = context.compute(size, check).await.and_then(|checked| checked) {
            context.turn.audit(DIALECT).failed(&refusal);
            return self.error(&encode_error(DIALECT, &refusal, &context.turn.request_id)).await;
        }
        let framing = Some(responses::Framing::Messages);
        let started = Instant::now();
        let (opened, prepared) = match open_request(context, body, self.last.clone(), framing).await
        {
            Ok(Opened::Turn(opened, prepared)) => (opened, prepared),
            Ok(Opened::Prewarmed(prewarmed)) => {
                self.last = prewarmed.last.map(Arc::new);
                return self.send(&prewarmed.messages).await;
            }
            // A turn with a framing runs in the foreground.
            Ok(Opened::Background(..)) => return Ok(()),
            Err(error) => return self.error(&context.refusal(DIALECT, &error)).await,
        };
        let audit = context.turn.audit(DIALECT).since(started);
        let run = turn::run(&context.turn, &opened.input, Some(*prepared), audit);
        let outcome = match run.await {
            Ok(outcome) => outcome,
            Err(failure) => {
                let reply = encode_error(DIALECT, &failure, &context.turn.request_id);
                return self.error(&reply).await;
            }
        };
        let Answered::Stream(mut stream) = outcome.answer else { return Ok(()) };
        let (recorder, source, body) = (opened.recorder, opened.source, opened.body);
        let recording = StreamRecording::new(recorder, outcome.echo, outcome.stamp, outcome.size);
        while let Some(bytes) = stream.next().await {
            if stream.has_ended()
                && let Some(answer) = recording.answer(&stream, context)
            {
                let has_signatures = has_signatures(&stream, context);
                let (recorder, echo) = (recording.recorder.clone(), recording.echo.clone());
                let (source, body) = (Arc::clone(&source), body.clone());
                let record = |_| async move {
                    recorder.record(&echo, &answer, has_signatures).await;
                    LastAnswer::new(body, &source.history, &answer).map(Arc::new)
                };
                self.last = context.compute(outcome.size, record).await.unwrap_or(None);
            }
            self.send(&bytes).await?;
        }
        Ok(())
    }

    /// Sends lines, each as a message.
    async fn send(&mut self, lines: &[u8]) -> Result<(), Error> {
        for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let text = String::from_utf8_lossy(line).into_owned();
            self.write.feed(Message::text(text)).await?;
        }
        self.write.flush().await
    }

    async fn error(&mut self, reply: &ErrorReply) -> Result<(), Error> {
        self.send(&responses::error_message(reply)).await
    }
}

/// Whether a message is one that we know.
fn check(message: &[u8]) -> Result<(), Failure> {
    let wrong = |reason: String| Err(Failure::new(FailureKind::InvalidRequest, reason));
    let fields = match serde_json::from_slice::<Fields<'_>>(message) {
        Ok(fields) => fields,
        Err(error) => return wrong(format!("a message must be a JSON object: {error}")),
    };
    let kind = fields.get("type").and_then(Raw::as_text);
    match kind.as_ref().map(|kind| kind.decode()).as_deref() {
        Some("response.create") => Ok(()),
        Some(other) => wrong(format!("type: `{other}` is not known here; `response.create` is")),
        None => wrong("type: missing".to_owned()),
    }
}
