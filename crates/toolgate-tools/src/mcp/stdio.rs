//! MCP over the standard streams of a child: one JSON text a line.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::Transport;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::{Mutex, mpsc};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::wire::{Wire, unknown_method};
use crate::Failure;
use crate::process::Pipes;

/// Longest line. Longer ones are dropped and their request fails.
const MAX_LINE_BYTES: usize = 16 * 1024 * 1024;

/// Lines that are no JSON-RPC before the first answer; then the server has failed.
const MAX_NOISE: usize = 3;

/// Messages that wait to be read by rmcp.
const QUEUE: usize = 64;

/// Bytes at both ends of a line that is too long, in which its id is searched.
const ENDS: usize = 128;

pub(super) struct StdioTransport {
    stdin: Arc<Mutex<Option<ChildStdin>>>,
    messages: mpsc::Receiver<ServerJsonRpcMessage>,
    wire: Wire,
    /// The request that asks for the era of the server, and how long its answer is awaited.
    probe: Option<(RequestId, Instant)>,
    probe_timeout: Duration,
    /// A probe whose answer comes too late.
    late: Option<RequestId>,
    /// Fires when rmcp drops the transport.
    _ended: DropGuard,
}

impl StdioTransport {
    pub(super) fn new(
        pipes: Pipes,
        wire: Wire,
        probe_timeout: Duration,
        ended: CancellationToken,
        label: &str,
    ) -> Self {
        let (sender, messages) = mpsc::channel(QUEUE);
        let reader = Reader { wire: wire.clone(), sender, label: label.to_owned() };
        tokio::spawn(reader.run(pipes.stdout));
        Self {
            stdin: Arc::new(Mutex::new(Some(pipes.stdin))),
            messages,
            wire,
            probe: None,
            probe_timeout,
            late: None,
            _ended: ended.drop_guard(),
        }
    }
}

impl Transport<RoleClient> for StdioTransport {
    type Error = io::Error;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        if let JsonRpcMessage::Request(request) = &message
            && matches!(request.request, ClientRequest::DiscoverRequest(_))
        {
            self.probe = Some((request.id.clone(), Instant::now() + self.probe_timeout));
        }
        let encoded = self.wire.encode(&message);
        let stdin = Arc::clone(&self.stdin);
        async move {
            let mut line = encoded?;
            line.push(b'\n');
            let mut stdin = stdin.lock().await;
            let closed = || io::Error::from(io::ErrorKind::BrokenPipe);
            let pipe = stdin.as_mut().ok_or_else(closed)?;
            pipe.write_all(&line).await?;
            pipe.flush().await
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            let message = match &self.probe {
                Some((id, deadline)) => tokio::select! {
                    message = self.messages.recv() => message?,
                    // Silence is the answer of an old server.
                    () = tokio::time::sleep_until(*deadline) => {
                        let id = id.clone();
                        self.probe = None;
                        self.late = Some(id.clone());
                        return Some(unknown_method(id));
                    }
                },
                None => self.messages.recv().await?,
            };
            let id = match &message {
                JsonRpcMessage::Response(response) => Some(&response.id),
                JsonRpcMessage::Error(error) => error.id.as_ref(),
                JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
            };
            if id.is_some() && id == self.late.as_ref() {
                continue;
            }
            if id.is_some() && id == self.probe.as_ref().map(|(id, _)| id) {
                self.probe = None;
            }
            return Some(message);
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.stdin.lock().await.take();
        self.messages.close();
        Ok(())
    }
}

/// Task that reads the standard output of a child.
struct Reader {
    wire: Wire,
    sender: mpsc::Sender<ServerJsonRpcMessage>,
    label: String,
}

enum Line {
    Whole,
    /// Longer than the limit: both of its ends.
    Cut {
        head: Vec<u8>,
        tail: Vec<u8>,
    },
}

impl Reader {
    async fn run(self, stdout: ChildStdout) {
        let mut stdout = BufReader::with_capacity(64 * 1024, stdout);
        let mut line = Vec::new();
        let mut noise = 0;
        let mut answered = false;
        loop {
            line.clear();
            match read_line(&mut stdout, &mut line, MAX_LINE_BYTES).await {
                Ok(Some(Line::Whole)) => {}
                Ok(Some(Line::Cut { head, tail })) => {
                    tracing::warn!(source = self.label, "line over 16 MiB dropped");
                    if let Some(id) = id_of(&head, &tail) {
                        self.wire.fail(&id, Failure::TooLarge { limit: MAX_LINE_BYTES });
                    }
                    continue;
                }
                Ok(None) | Err(_) => return,
            }
            let text = line.trim_ascii();
            if text.is_empty() {
                continue;
            }
            let replaced = self.wire.take(text);
            let message = serde_json::from_slice(replaced.as_deref().unwrap_or(text));
            let Ok(message) = message else {
                // A banner or a log line that does not belong here.
                tracing::warn!(source = self.label, "line that is no JSON-RPC dropped");
                noise += 1;
                if !answered && noise >= MAX_NOISE {
                    return;
                }
                continue;
            };
            noise = 0;
            answered = true;
            if self.sender.send(message).await.is_err() {
                return;
            }
        }
    }
}

/// Reads a line without its end; `None` at the end of the input.
async fn read_line(
    input: &mut BufReader<ChildStdout>,
    line: &mut Vec<u8>,
    limit: usize,
) -> io::Result<Option<Line>> {
    let mut cut: Option<Line> = None;
    loop {
        let buffer = input.fill_buf().await?;
        if buffer.is_empty() {
            return Ok(if line.is_empty() && cut.is_none() {
                None
            } else {
                Some(cut.unwrap_or(Line::Whole))
            });
        }
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let chunk = buffer.get(..end.unwrap_or(buffer.len())).unwrap_or_default();
        match &mut cut {
            Some(Line::Cut { tail, .. }) => keep_end(tail, chunk),
            Some(Line::Whole) | None if line.len() + chunk.len() > limit => {
                let head = line.iter().chain(chunk).take(ENDS).copied().collect();
                let mut tail = Vec::new();
                keep_end(&mut tail, line);
                keep_end(&mut tail, chunk);
                line.clear();
                cut = Some(Line::Cut { head, tail });
            }
            Some(Line::Whole) | None => line.extend_from_slice(chunk),
        }
        let used = chunk.len() + usize::from(end.is_some());
        input.consume(used);
        if end.is_some() {
            return Ok(Some(cut.unwrap_or(Line::Whole)));
        }
    }
}

/// Appends a chunk to `tail` and keeps the last bytes.
fn keep_end(tail: &mut Vec<u8>, chunk: &[u8]) {
    let from = chunk.len().saturating_sub(ENDS);
    tail.extend_from_slice(chunk.get(from..).unwrap_or_default());
    let excess = tail.len().saturating_sub(ENDS);
    tail.drain(..excess);
}

/// Finds the id of a response at the start or at the end of its text.
fn id_of(head: &[u8], tail: &[u8]) -> Option<RequestId> {
    fn number(text: &str) -> Option<i64> {
        let text = text.trim_start().strip_prefix(':')?.trim_start();
        let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        text.get(..end)?.parse().ok()
    }
    let head = String::from_utf8_lossy(head);
    let tail = String::from_utf8_lossy(tail);
    let before_result = head.split("\"result\"").next()?;
    let found = before_result.split_once("\"id\"").and_then(|(_, rest)| number(rest));
    let at_end = || tail.rsplit_once("\"id\"").and_then(|(_, rest)| number(rest));
    found.or_else(at_end).map(RequestId::Number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_cut_lines_are_found() {
        let cases = [
            (r#"{"jsonrpc":"2.0","id":7,"result":{"id":9"#, "}}", Some(7)),
            (r#"{"result":{"content":[{"id":3"#, r#"}]},"jsonrpc":"2.0","id": 8}"#, Some(8)),
            (r#"{"result":"#, "xxx", None),
        ];
        for (head, tail, expected) in cases {
            let id = id_of(head.as_bytes(), tail.as_bytes());
            assert_eq!(id, expected.map(RequestId::Number), "{head}");
        }
    }
}
