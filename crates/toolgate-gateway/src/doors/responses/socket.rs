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
use hyper::body::Incoming;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::io::AsyncReadExt as _;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};
use toolgate_core::canon::{ErrorReply, Failure, FailureKind};
use toolgate_core::json::{Fields, Raw};
use toolgate_core::responses;
use toolgate_core::translate::encode_error;

use super::create::open as open_request;
use super::door::DIALECT;
use super::inbound::{Counted, Inbound};
use super::prewarm;
use crate::admission::BodyRoom;
use crate::auth;
use crate::doors::Visit;
use crate::doors::encoding::too_large;
use crate::doors::turns::{self, Answered, Keeping};
use crate::reply::{self, Reply};
use crate::session::Local;
use crate::turn::Ask;

type Socket = WebSocketStream<Counted<TokioIo<Upgraded>>>;

/// Requests that may wait for the running one. Who sends more has to wait.
const WAITING: usize = 64;

/// Turns a connection into a WebSocket.
pub(super) fn open(visit: Visit, mut request: Request<Incoming>) -> Reply {
    let Some(accept) = accept_key(request.headers()) else {
        return no_socket(&visit);
    };
    let upgrade = hyper::upgrade::on(&mut request);
    let tasks = visit.app.tasks.clone();
    tasks.spawn(async move {
        let upgraded = match upgrade.await {
            Ok(upgraded) => upgraded,
            Err(error) => return tracing::debug!(%error, "no WebSocket came of it"),
        };
        let limit = visit.current.config.limits.body;
        let mut config = WebSocketConfig::default().read_buffer_size(16 << 10).write_buffer_size(0);
        (config.max_message_size, config.max_frame_size) = (Some(limit), Some(limit));
        let (app, owner) = (Arc::clone(&visit.app), visit.client.owner);
        let inbound = Inbound::new(app, owner, visit.current.config.limits.receive);
        let io = Counted::new(TokioIo::new(upgraded), inbound.clone());
        let socket = WebSocketStream::from_raw_socket(io, Role::Server, Some(config)).await;
        Connection::new(Visit { room: None, ..visit }, socket, inbound).serve().await;
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
fn no_socket(visit: &Visit) -> Reply {
    let message = "GET /v1/responses is a WebSocket; send Upgrade: websocket, or POST";
    visit.ledger(DIALECT).failed(&Failure::new(FailureKind::InvalidRequest, message));
    let message = format!("{message} (request id: {})", visit.request_id);
    let body = responses::error_body(&message, "invalid_request_error", None, None);
    let mut reply = reply::json(StatusCode::UPGRADE_REQUIRED, body);
    reply.headers_mut().insert(UPGRADE, HeaderValue::from_static("websocket"));
    reply.headers_mut().insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    reply
}

/// One client.
struct Connection {
    visit: Visit,
    read: SplitStream<Socket>,
    answers: Answers,
    waiting: VecDeque<Heard>,
    inbound: Inbound,
}

/// The half that answers.
struct Answers {
    write: SplitSink<Socket, Message>,
    local: Option<Arc<Local>>,
}

/// What the client has said.
enum Heard {
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

impl Heard {
    fn length(&self) -> usize {
        match self {
            Self::Text(text, _) => text.len(),
            Self::Binary | Self::TooLong => 0,
        }
    }
}

impl Connection {
    fn new(visit: Visit, socket: Socket, inbound: Inbound) -> Self {
        let (write, read) = socket.split();
        let answers = Answers { write, local: None };
        Self { visit, read, answers, waiting: VecDeque::new(), inbound }
    }

    /// Serves until the client leaves, or the gateway does.
    async fn serve(mut self) {
        let mut leave = pin!(self.visit.app.tasks.leave());
        let mut used = Instant::now();
        let code = 'serve: loop {
            let Some(heard) = self.waiting.pop_front() else {
                let config = self.visit.app.config();
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
            let is_last = matches!(heard, Heard::TooLong);
            let visit = match next_visit(&self.visit) {
                Ok(visit) => visit,
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
            let limit = visit.current.config.limits.body;
            let mut turn = pin!(self.answers.answer(&visit, heard));
            let told = loop {
                // Whoever sends more than one body's worth ahead has to wait.
                let ahead: usize = self.waiting.iter().map(Heard::length).sum();
                let is_over = matches!(self.waiting.back(), Some(Heard::TooLong)) || is_last;
                let may_hear = ahead < limit && self.waiting.len() < WAITING && !is_over;
                self.inbound.set_reading(may_hear);
                tokio::select! {
                    told = &mut turn => break told,
                    // Whoever leaves takes the running turn along.
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
                let (request_id, _) = self.visit.app.next_request();
                let visit = Visit { request_id, ..self.visit.clone() };
                visit.ledger(DIALECT).failed(&failure);
                let refusal = encode_error(DIALECT, &failure, &visit.request_id);
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

/// How long a client may go on sending what nobody will read.
const PATIENCE: Duration = Duration::from_secs(5);

/// Takes what a client still sends: else it sees a reset, and not our last words.
async fn take_rest(mut socket: Socket) {
    let rest = async {
        let mut taken = vec![0; 64 << 10];
        while socket.get_mut().uncounted().read(&mut taken).await.is_ok_and(|count| count > 0) {}
    };
    drop(tokio::time::timeout(PATIENCE, rest).await);
}

/// Takes a message; `Err`: there are no more.
fn hear(
    message: Option<Result<Message, Error>>,
    waiting: &mut VecDeque<Heard>,
    inbound: &Inbound,
) -> Result<(), CloseCode> {
    let room = if matches!(message, Some(Ok(_))) { inbound.complete() } else { None };
    match message {
        Some(Ok(Message::Text(text))) => waiting.push_back(Heard::Text(text, room)),
        Some(Ok(Message::Binary(_))) => waiting.push_back(Heard::Binary),
        Some(Err(Error::Capacity(_))) => waiting.push_back(Heard::TooLong),
        // Pings are answered by the protocol itself.
        Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => {}
        Some(Err(error)) => return Err(close_code(&error)),
        Some(Ok(Message::Close(_))) | None => return Err(CloseCode::Away),
    }
    Ok(())
}

/// Every turn is a request of its own, under the configuration that is in force then: the key must still
/// be one, and there must be room. An idle connection takes none.
fn next_visit(visit: &Visit) -> Result<Visit, (Box<Failure>, String)> {
    let (request_id, seed) = visit.app.next_request();
    let current = visit.app.current();
    let visit = Visit { request_id, seed, current, ..visit.clone() };
    let admitted = auth::readmit(&visit.current.config, &visit.client)
        .and_then(|()| visit.app.admit(visit.client.owner));
    match admitted {
        Ok(room) => Ok(Visit { room: Some(Arc::new(room)), ..visit }),
        Err(failure) => {
            visit.ledger(DIALECT).failed(&failure);
            Err((Box::new(failure), visit.request_id))
        }
    }
}

impl Answers {
    /// Answers one message.
    async fn answer(&mut self, visit: &Visit, heard: Heard) -> Result<(), Error> {
        let refusal = match heard {
            Heard::Text(text, room) => return self.turn(visit, text, room).await,
            Heard::Binary => {
                Failure::new(FailureKind::InvalidRequest, "a message must be text, not binary")
            }
            Heard::TooLong => too_large(visit.current.config.limits.body),
        };
        visit.ledger(DIALECT).failed(&refusal);
        self.error(&encode_error(DIALECT, &refusal, &visit.request_id)).await
    }

    async fn turn(
        &mut self,
        visit: &Visit,
        message: Utf8Bytes,
        room: Option<BodyRoom>,
    ) -> Result<(), Error> {
        let body = Bytes::from(message);
        let body = match (room, &visit.room) {
            (Some(room), Some(admitted)) => {
                let (body, copies) = room.hold(body);
                admitted.hold(copies);
                body
            }
            (_, _) => body,
        };
        let (size, checking) = (body.len(), body.clone());
        let check = |_| async move { check(&checking) };
        if let Err(refusal) = visit.compute(size, check).await.and_then(|checked| checked) {
            visit.ledger(DIALECT).failed(&refusal);
            return self.error(&encode_error(DIALECT, &refusal, &visit.request_id)).await;
        }
        let opened = match open_request(visit, body, self.local.clone()).await {
            Ok(opened) => opened,
            Err(refused) => {
                return self.error(&visit.refusal(DIALECT, &refused)).await;
            }
        };
        let (size, opening) = (opened.body.len(), opened.body.clone());
        let look = |_| async move { prewarm::is_asked_for(&opening) };
        if visit.compute(size, look).await.unwrap_or(false) {
            let (body, before) = (opened.body.clone(), opened.before.clone());
            return match prewarm::answer(visit, opened).await {
                Ok(warm) => {
                    self.local = Local::new(body, &before, &warm.whole).map(Arc::new);
                    self.send(&warm.messages).await
                }
                Err(failure) => {
                    visit.ledger(DIALECT).failed(&failure);
                    self.error(&encode_error(DIALECT, &failure, &visit.request_id)).await
                }
            };
        }
        let ask = Ask {
            before: Arc::new(opened.before),
            stream: Some(responses::Framing::Messages),
            ..Ask::new(DIALECT, opened.body, &visit.client)
        };
        let outcome = match turns::run(visit, &ask).await {
            Ok(outcome) => outcome,
            Err(failure) => {
                return self.error(&encode_error(DIALECT, &failure, &visit.request_id)).await;
            }
        };
        let Answered::Stream(mut pump) = outcome.result else { return Ok(()) };
        let keeping = Keeping::new(opened.keeper, outcome.echo, outcome.stamp, outcome.size);
        while let Some(bytes) = pump.next().await {
            if pump.has_ended()
                && let Some(whole) = keeping.whole(&pump, visit)
            {
                let signed = turns::is_signed(&pump, visit);
                let (keeper, echo) = (keeping.keeper.clone(), keeping.echo.clone());
                let (body, before) = (ask.body.clone(), Arc::clone(&ask.before));
                let keep = |_| async move {
                    keeper.keep(&echo, &whole, signed).await;
                    Local::new(body, &before, &whole).map(Arc::new)
                };
                self.local = visit.compute(outcome.size, keep).await.unwrap_or(None);
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
