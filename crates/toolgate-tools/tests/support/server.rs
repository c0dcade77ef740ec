//! MCP server for tests, over its standard streams. Arguments choose its faults.

use std::collections::HashMap;
use std::io::{BufRead as _, Write as _};
use std::process::exit;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

const MODERN: &str = "2026-07-28";

#[derive(Deserialize)]
struct Message {
    id: Option<Value>,
    method: Option<String>,
    params: Option<Params>,
    error: Option<Value>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct Params {
    name: Option<String>,
    cursor: Option<String>,
    arguments: Option<Box<RawValue>>,
    request_state: Option<String>,
    request_id: Option<Value>,
    #[serde(rename = "_meta")]
    meta: Option<Value>,
}

#[derive(Default)]
struct State {
    cancelled: Vec<Value>,
    replies: HashMap<String, i64>,
    sessions: HashMap<String, u64>,
    calls: u64,
    has_grown: bool,
    subscription: Option<Value>,
}

#[derive(Clone)]
struct Server {
    flags: Arc<Vec<String>>,
    state: Arc<Mutex<State>>,
}

fn send(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes());
    let _ = out.write_all(b"\n");
    let _ = out.flush();
}

fn reply(id: &Value, result: &str) {
    send(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#));
}

fn refuse(id: &Value, code: i64, message: &str, data: &Value) {
    let error = json!({ "code": code, "message": message, "data": data });
    send(&json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string());
}

fn text(text: &str) -> String {
    json!({ "content": [{ "type": "text", "text": text }] }).to_string()
}

fn hang() -> ! {
    loop {
        std::thread::sleep(Duration::from_secs(60));
    }
}

impl Server {
    fn has(&self, flag: &str) -> bool {
        self.flags.iter().any(|it| it == flag)
    }

    fn value(&self, name: &str) -> Option<&str> {
        self.flags.iter().find_map(|it| it.strip_prefix(name)?.strip_prefix('='))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self, line: &str) {
        let Ok(message) = serde_json::from_str::<Message>(line) else { return };
        let params = message.params.unwrap_or_default();
        let (Some(id), Some(method)) = (&message.id, &message.method) else {
            match message.method.as_deref() {
                Some("notifications/cancelled") => {
                    self.state().cancelled.extend(params.request_id);
                }
                Some(_) => {}
                None => {
                    let code = message.error.and_then(|it| it.get("code")?.as_i64()).unwrap_or(0);
                    let id = message.id.map(|it| it.to_string()).unwrap_or_default();
                    self.state().replies.insert(id, code);
                }
            }
            return;
        };
        if self.value("hang") == Some(method) {
            return;
        }
        match method.as_str() {
            "server/discover" => self.discover(id),
            "initialize" if self.has("slow") => {
                refuse(id, -32022, "serving 2026-07-28", &json!({ "supported": [MODERN] }));
            }
            "initialize" => reply(
                id,
                r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"test","version":"1"}}"#,
            ),
            "ping" => reply(id, "{}"),
            "tools/list" => self.list(id, params.cursor.as_deref()),
            "tools/call" => {
                let server = self.clone();
                let id = id.clone();
                std::thread::spawn(move || server.call(&id, &params));
            }
            "subscriptions/listen" => {
                self.state().subscription = Some(id.clone());
                let params = json!({
                    "notifications": { "toolsListChanged": true },
                    "_meta": { "io.modelcontextprotocol/subscriptionId": id },
                });
                let method = "notifications/subscriptions/acknowledged";
                send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string());
            }
            _ => refuse(id, -32601, "unknown method", &Value::Null),
        }
    }

    fn discover(&self, id: &Value) {
        if self.has("silent") {
            return;
        }
        if self.has("dies") {
            exit(1);
        }
        if self.has("slow") {
            std::thread::sleep(Duration::from_millis(700));
        }
        if self.has("older") {
            let data = json!({ "supported": ["2025-06-18"], "requested": MODERN });
            return refuse(id, -32022, "unsupported", &data);
        }
        if self.has("legacy") {
            return refuse(id, -32601, "unknown method", &Value::Null);
        }
        let result = json!({
            "supportedVersions": [MODERN],
            "capabilities": { "tools": { "listChanged": true } },
            "resultType": "complete", "ttlMs": 0, "cacheScope": "public",
            "_meta": { "io.modelcontextprotocol/serverInfo": { "name": "test", "version": "1" } },
        });
        reply(id, &result.to_string());
    }

    fn list(&self, id: &Value, cursor: Option<&str>) {
        let names = [
            "echo",
            "big",
            "die",
            "hang",
            "progress",
            "env",
            "structured",
            "image",
            "odd",
            "ask",
            "state",
            "input",
            "cancelled",
            "refuse",
            "fail",
            "grow",
            "meta",
            "pid",
            "count",
            "spawn",
            "calls",
        ];
        let mut tools: Vec<_> = names.iter().map(|name| self.tool(name)).collect();
        if self.state().has_grown {
            tools.push(self.tool("grown"));
        }
        let half = tools.split_off(tools.len() / 2);
        let (page, next) = match cursor {
            None if self.has("pages") => (tools, Some("second")),
            Some("second") => (half, None),
            None | Some(_) => {
                tools.extend(half);
                let next = if self.has("stuck-cursor") { Some("again") } else { None };
                (tools, if self.has("empty-cursor") { Some("") } else { next })
            }
        };
        let mut result = json!({
            "tools": page, "resultType": "complete", "ttlMs": 0, "cacheScope": "public",
        });
        if let Some(next) = next {
            result["nextCursor"] = next.into();
        }
        reply(id, &result.to_string());
    }

    fn tool(&self, name: &str) -> Value {
        let mut tool = json!({
            "name": name,
            "description": format!("Tool {name}."),
            "inputSchema": { "type": "object" },
        });
        if name == "calls" {
            tool["_meta"] = json!({ "dev.toolgate/deterministic": true });
        }
        tool
    }

    fn call(&self, id: &Value, params: &Params) {
        let arguments = params.arguments.as_deref().map_or("{}", RawValue::get);
        self.state().calls += 1;
        let name = params.name.as_deref().unwrap_or_default();
        match name {
            "echo" => reply(id, &text(arguments)),
            "big" => reply(id, &text(&"x".repeat(17 * 1024 * 1024))),
            "die" => exit(1),
            "hang" => hang(),
            "progress" => {
                let token = params.meta.as_ref().and_then(|it| it.get("progressToken"));
                for n in 0..4 {
                    let params = json!({ "progressToken": token, "progress": n, "total": 4 });
                    let method = "notifications/progress";
                    send(&json!({"jsonrpc":"2.0","method":method,"params":params}).to_string());
                    std::thread::sleep(Duration::from_millis(60));
                }
                reply(id, &text("worked"));
            }
            "env" => {
                let mut names: Vec<_> = std::env::vars().map(|(name, _)| name).collect();
                names.sort();
                reply(id, &text(&names.join(" ")));
            }
            "structured" => reply(
                id,
                r#"{"content":[],"structuredContent":{"b":1e2,"a":12345678901234567890.10}}"#,
            ),
            "image" => reply(
                id,
                r#"{"content":[{"type":"image","data":"iVBORw==","mimeType":"image/png"},{"type":"audio","data":"AAAA","mimeType":"audio/wav"}]}"#,
            ),
            "odd" => reply(
                id,
                r#"{"content":[{"type":"hologram","x":1},{"type":"text","text":"seen"}],"cacheScope":7}"#,
            ),
            "ask" => {
                for (id, method) in [("901", "roots/list"), ("902", "elicitation/create")] {
                    send(&format!(
                        r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{"message":"?","requestedSchema":{{"type":"object","properties":{{}}}}}}}}"#
                    ));
                }
                while self.state().replies.len() < 2 {
                    std::thread::sleep(Duration::from_millis(5));
                }
                let state = self.state();
                let codes = [state.replies.get("901"), state.replies.get("902")];
                reply(id, &text(&format!("{codes:?}")));
            }
            "state" => match params.request_state.as_deref() {
                Some("two") => reply(id, &text("done")),
                Some(_) => reply(id, r#"{"resultType":"input_required","requestState":"two"}"#),
                None => reply(id, r#"{"resultType":"input_required","requestState":"one"}"#),
            },
            "input" => reply(
                id,
                r#"{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{}}}}"#,
            ),
            "cancelled" => {
                let count = self.state().cancelled.len();
                reply(id, &text(&count.to_string()));
            }
            "refuse" => refuse(id, -32602, "no such city", &Value::Null),
            "fail" => {
                reply(id, r#"{"content":[{"type":"text","text":"it broke"}],"isError":true}"#)
            }
            "grow" => {
                let subscription = {
                    let mut state = self.state();
                    state.has_grown = true;
                    state.subscription.clone()
                };
                let mut params = json!({});
                if let Some(id) = subscription {
                    params["_meta"] = json!({ "io.modelcontextprotocol/subscriptionId": id });
                }
                let method = "notifications/tools/list_changed";
                send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string());
                reply(id, &text("grown"));
            }
            "meta" => reply(id, &text(&params.meta.clone().unwrap_or_default().to_string())),
            "pid" => reply(id, &text(&std::process::id().to_string())),
            "count" => {
                let session = params.meta.as_ref().and_then(|it| it.get("dev.toolgate/session"));
                let session = session.map(ToString::to_string).unwrap_or_default();
                let count = {
                    let mut state = self.state();
                    let count = state.sessions.entry(session).or_default();
                    *count += 1;
                    *count
                };
                reply(id, &text(&count.to_string()));
            }
            "spawn" => {
                let child = std::process::Command::new("sleep").arg("1000").spawn();
                let id_of_child = child.map(|it| it.id()).unwrap_or_default();
                reply(id, &text(&id_of_child.to_string()));
            }
            "calls" => {
                let calls = self.state().calls;
                reply(id, &text(&calls.to_string()));
            }
            _ => refuse(id, -32602, "unknown tool", &Value::Null),
        }
    }
}

fn main() {
    let server =
        Server { flags: Arc::new(std::env::args().skip(1).collect()), state: Arc::default() };
    if let Some(path) = server.value("fail-if-file")
        && std::path::Path::new(path).exists()
    {
        let _ = std::io::stderr().write_all(b"ImportError: no module named nothing\n");
        exit(1);
    }
    if server.has("late-start") {
        std::thread::sleep(Duration::from_millis(700));
    }
    if server.has("hang-at-start") {
        hang();
    }
    if server.has("stderr") {
        let _ = std::io::stderr().write_all("noise ".repeat(100_000).as_bytes());
    }
    if server.has("banner") {
        send("Welcome to the test server!");
    }
    if server.has("garbage") {
        (0..5).for_each(|_| send("this is not JSON"));
        hang();
    }
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        server.serve(&line);
    }
    if server.has("immortal") {
        hang();
    }
}
