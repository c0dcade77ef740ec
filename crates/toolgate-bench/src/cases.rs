//! Requests of the benchmark, and the upstream's answers.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use serde_json::{Value, json};

use crate::load::Prepared;

/// A measured request.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    stream: bool,
    weight: usize,
    body: Bytes,
    upstream: Bytes,
}

const MODEL: &str = "gemini-3.6-flash";
/// Number of chunks in the streamed answer.
const CHUNKS: usize = 200;

impl Case {
    pub(crate) fn all(toolgate: &Path) -> Result<Vec<Self>> {
        Ok(vec![
            Self::new(toolgate, "unary 1 kB", false, 1, &small(false))?,
            Self::new(toolgate, "unary 60 kB, 20 tools", false, 4, &with_tools())?,
            Self::new(toolgate, "stream of 200 events", true, 8, &small(true))?,
            Self::new(toolgate, "conversation of 1 MB", false, 40, &conversation(1 << 20))?,
        ])
    }

    /// A stream that the upstream never answers.
    pub(crate) fn silent(toolgate: &Path) -> Result<Self> {
        Self::new(toolgate, "silent", true, 1, &small(true))
    }

    fn new(
        toolgate: &Path,
        name: &'static str,
        stream: bool,
        weight: usize,
        body: &Value,
    ) -> Result<Self> {
        let body = serde_json::to_vec(body)?;
        let upstream = translated(toolgate, &body)?;
        Ok(Self { name, stream, weight, body: body.into(), upstream: upstream.into() })
    }

    /// Number of requests in a round, enough for the resolution of the kernel's clock.
    pub(crate) fn requests(&self, connections: usize) -> usize {
        (12_000 / self.weight).max(connections * 2)
    }

    /// Body for conversation `number`: the same request with another first message.
    pub(crate) fn numbered(&self, number: usize) -> Bytes {
        const WORDS: &[u8] = b"\"content\":\"";
        let found = self.body.windows(WORDS.len()).position(|it| it == WORDS);
        let (head, tail) = self.body.split_at(found.map_or(0, |at| at + WORDS.len()));
        [head, number.to_string().as_bytes(), b" ", tail].concat().into()
    }

    pub(crate) fn for_gateway(&self, url: &str) -> Result<Prepared> {
        Ok(Prepared { uri: format!("{url}/v1/messages").parse()?, body: self.body.clone() })
    }

    /// The translated request, as the gateway sends it upstream.
    pub(crate) fn for_proxy(&self, url: &str) -> Result<Prepared> {
        let verb = if self.stream { "streamGenerateContent?alt=sse" } else { "generateContent" };
        let uri = format!("{url}/v1beta/models/{MODEL}:{verb}").parse()?;
        Ok(Prepared { uri, body: self.upstream.clone() })
    }
}

/// Writes a recording for the simulator: a unary answer and a stream.
pub(crate) fn cassette(folder: &Path) -> Result<PathBuf> {
    let usage = json!({"promptTokenCount": 1200, "candidatesTokenCount": 40, "thoughtsTokenCount": 60, "totalTokenCount": 1300});
    let chunk = |part: Value, finish: Option<&str>| {
        let mut candidate = json!({"content": {"parts": [part], "role": "model"}, "index": 0});
        if let Some(finish) = finish {
            candidate["finishReason"] = finish.into();
        }
        json!({"candidates": [candidate], "usageMetadata": usage, "modelVersion": MODEL, "responseId": "bench"})
    };
    let words = "Half of the work is done before the second cup of coffee. ";
    let mut stream = String::new();
    for number in 1..CHUNKS {
        let text = json!({"text": format!("{number}: {words}")});
        write!(stream, "data: {}\r\n\r\n", chunk(text, None))?;
    }
    let call = json!({"functionCall": {"id": "b1e2n3c4", "name": "read", "args": {"path": "a.txt"}}, "thoughtSignature": "c2lnbmF0dXJl".repeat(40)});
    write!(stream, "data: {}\r\n\r\n", chunk(json!({"text": ""}), Some("STOP")))?;
    let whole = chunk(call, Some("STOP"));
    let exchange = |verb: &str, kind: &str, response: Value| json!({"method": "POST", "path": format!("/v1beta/models/{MODEL}:{verb}"), "status": 200, "content_type": kind, "response": response});
    let all = json!([
        exchange("generateContent", "application/json", whole),
        exchange("streamGenerateContent", "text/event-stream", stream.into()),
    ]);
    let path = folder.join("bench-cassette.json");
    std::fs::write(&path, all.to_string())?;
    Ok(path)
}

/// Writes a script whose answers never arrive.
pub(crate) fn silence(folder: &Path) -> Result<PathBuf> {
    let path = folder.join("bench-silence.toml");
    std::fs::write(&path, "[[turn]]\ntext = \"never\"\ntimes = 0\nfault = { kind = \"stall\" }\n")?;
    Ok(path)
}

/// Translates a body with the binary's `translate` command.
fn translated(toolgate: &Path, body: &[u8]) -> Result<Vec<u8>> {
    let mut child = Command::new(toolgate)
        .args(["translate", "request", "--from", "anthropic", "--model", MODEL])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    child.stdin.take().context("no standard input")?.write_all(body)?;
    let output = child.wait_with_output()?;
    ensure!(output.status.success(), "toolgate translate failed");
    Ok(output.stdout)
}

fn small(stream: bool) -> Value {
    let words = "Tell me in a few words what the file is about, and what is left to do. ".repeat(9);
    json!({
        "model": MODEL, "max_tokens": 4096, "stream": stream,
        "tools": [tool(0, 60)],
        "messages": [{"role": "user", "content": words}],
    })
}

fn with_tools() -> Value {
    let tools: Vec<Value> = (0..20).map(|number| tool(number, 1500)).collect();
    let mut body = conversation(18 << 10);
    body["tools"] = tools.into();
    body
}

/// A tool whose description has about `length` characters.
pub(crate) fn tool(number: usize, length: usize) -> Value {
    let sentence = "Works on files of the project and says what it found there, line by line. ";
    let description: String = sentence.chars().cycle().take(length).collect();
    json!({
        "name": format!("tool_{number}"),
        "description": description,
        "input_schema": {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "Which file, from the root of the project"},
                "offset": {"type": "integer", "minimum": 0, "maximum": 9_007_199_254_740_991_u64},
                "limit": {"type": "integer", "exclusiveMinimum": 0},
                "mode": {"type": "string", "enum": ["content", "names", "count"]},
                "edits": {"type": "array", "items": {"type": "object", "properties": {"old": {"type": "string"}, "new": {"type": "string"}}, "required": ["old", "new"]}},
            },
            "required": ["path"],
            "additionalProperties": false,
        },
    })
}

/// A session of calls and results with about `bytes` bytes.
fn conversation(bytes: usize) -> Value {
    let line =
        "    let total: u64 = items.iter().map(|item| item.size).sum(); // \"all of them\"\n";
    let result = line.repeat(40);
    let mut messages = vec![json!({"role": "user", "content": "Go through the files one by one."})];
    let mut size = 0;
    let mut number = 0;
    while size < bytes {
        let id = format!("toolu_bench{number}");
        messages.push(json!({"role": "assistant", "content": [
            {"type": "text", "text": "Next, the file after that one."},
            {"type": "tool_use", "id": id, "name": "tool_1", "input": {"path": format!("src/file_{number}.rs"), "limit": 40}},
        ]}));
        messages.push(json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": id, "content": result},
        ]}));
        size += result.len() + 420;
        number += 1;
    }
    json!({
        "model": MODEL, "max_tokens": 4096, "stream": false,
        "system": [{"type": "text", "text": "You look after a repository."}],
        "tools": [tool(1, 200)],
        "messages": messages,
    })
}
