//! MCP servers over streamable HTTP: both eras, headers, credentials, faults.

#![allow(clippy::unwrap_used, clippy::panic, clippy::allow_attributes, reason = "helpers of tests")]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use support::web::{Got, Reply, Web, events, reply};
use support::{call, call_text, text};
use toolgate_tools::{
    Addresses, Credentials, Failure, Limits, McpServer, Registry, Scope, Secret, Settings,
    SourceOptions,
};

const VERSION: &str = "2026-07-28";

fn result(got: &Got, result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, got.json()["id"])
}

const TOOLS: &str = r#"{"tools":[
    {"name":"echo","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}},
    {"name":"bad","inputSchema":{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"not a token"}}}}
],"ttlMs":0,"cacheScope":"public"}"#;

/// Answers of a server of the new era; `answer` runs calls.
fn modern(got: &Got, answer: impl Fn(&Got) -> Option<Reply>) -> Option<Reply> {
    match got.rpc_method().as_str() {
        "server/discover" => {
            let discovered = json!({
                "supportedVersions": [VERSION], "capabilities": { "tools": {} },
                "ttlMs": 0, "cacheScope": "public",
            });
            Some(support::web::json(result(got, &discovered.to_string())))
        }
        "tools/list" => Some(support::web::json(result(got, TOOLS))),
        "tools/call" => answer(got),
        _ => Some(reply(404, "application/json", "{}")),
    }
}

/// Result that repeats the request.
fn repeat(got: &Got) -> String {
    result(got, &json!({ "content": [{ "type": "text", "text": got.body }] }).to_string())
}

fn registry(web: &Web, credentials: Credentials, options: SourceOptions) -> Registry {
    let registry = Registry::start(Settings::default()).unwrap();
    let url = format!("{}/mcp", web.url);
    let server = McpServer::http("test", &url, credentials, Addresses::Any)
        .unwrap()
        .with_probe_timeout(Duration::from_millis(500));
    registry.add("test", Arc::new(server), options).unwrap();
    registry
}

fn plain(web: &Web) -> Registry {
    registry(web, Credentials::default(), SourceOptions::default())
}

#[tokio::test]
async fn a_modern_call_is_one_request_with_the_headers_of_the_specification() {
    let web = Web::start(|got| modern(&got, |got| Some(support::web::json(repeat(got))))).await;
    let registry = plain(&web);
    let catalogue = registry.list(&Scope::operator()).await;
    let names: Vec<_> = catalogue.tools.iter().map(|it| it.name.to_string()).collect();
    assert_eq!(names, ["test.echo"], "a tool with an invalid header is left out");
    let arguments = r#"{"n":12345678901234567890.10,"region":"eu"}"#;
    let sent = call_text(&registry, "echo", arguments).await;
    assert!(sent.contains(&format!(r#""arguments":{arguments}"#)), "{sent}");
    let calls = web.of("tools/call");
    let [got] = &calls[..] else { panic!("one request: {calls:?}") };
    let header = |name: &str| got.headers.get(name).and_then(|it| it.to_str().ok());
    assert_eq!(header("mcp-protocol-version"), Some(VERSION));
    assert_eq!(header("mcp-method"), Some("tools/call"));
    assert_eq!(header("mcp-name"), Some("echo"));
    assert_eq!(header("mcp-param-region"), Some("eu"));
    assert_eq!(header("accept"), Some("application/json, text/event-stream"));
    let meta = &got.json()["params"]["_meta"];
    assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], VERSION);
    assert!(meta["io.modelcontextprotocol/clientCapabilities"].is_object());
    assert!(!got.body.contains("dev.toolgate"));
}

#[tokio::test]
async fn t39_nothing_but_our_own_headers_is_sent() {
    let web = Web::start(|got| modern(&got, |got| Some(support::web::json(repeat(got))))).await;
    let registry = plain(&web);
    call_text(&registry, "echo", "{}").await;
    let known = [
        "accept",
        "content-type",
        "content-length",
        "host",
        "mcp-protocol-version",
        "mcp-method",
        "mcp-name",
    ];
    for got in web.got.lock().unwrap().iter() {
        for name in got.headers.keys() {
            assert!(known.contains(&name.as_str()), "{name}");
        }
    }
}

#[tokio::test]
async fn results_and_progress_come_over_a_stream() {
    let web = Web::start(|got| {
        modern(&got, |got| {
            let token = &got.json()["params"]["_meta"]["progressToken"];
            let progress = json!({
                "jsonrpc": "2.0", "method": "notifications/progress",
                "params": { "progressToken": token, "progress": 1 },
            });
            let done = result(got, r#"{"content":[],"structuredContent":{"b":1e2,"a":0.10}}"#);
            Some(events(&[progress.to_string(), done], false))
        })
    })
    .await;
    let registry = plain(&web);
    let outcome = call(&registry, "echo", "{}").await;
    let structured = outcome.result.unwrap().structured.unwrap();
    assert_eq!(structured.get(), r#"{"b":1e2,"a":0.10}"#);
}

/// Answers of a server of the old era with sessions; `lost` sessions are answered with 404.
fn legacy(got: &Got, sessions: &AtomicUsize, lost: &AtomicUsize) -> Option<Reply> {
    let session = got.headers.get("mcp-session-id").and_then(|it| it.to_str().ok());
    let session = session.and_then(|it| it.parse::<usize>().ok());
    if got.method != "POST" {
        return Some(reply(405, "text/plain", ""));
    }
    match got.rpc_method().as_str() {
        "server/discover" => Some(reply(400, "text/plain", "Bad Request: no session")),
        "initialize" => {
            let id = sessions.fetch_add(1, Ordering::SeqCst) + 1;
            let mut response = support::web::json(result(
                got,
                r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"old","version":"1"}}"#,
            ));
            response.headers_mut().insert("mcp-session-id", id.to_string().parse().unwrap());
            Some(response)
        }
        _ if session.is_none_or(|id| id <= lost.load(Ordering::SeqCst)) => {
            Some(reply(404, "text/plain", "no such session"))
        }
        "notifications/initialized" => Some(reply(202, "text/plain", "")),
        "tools/list" => Some(support::web::json(result(got, TOOLS))),
        "tools/call" => Some(support::web::json(repeat(got))),
        _ => Some(reply(400, "text/plain", "")),
    }
}

#[tokio::test]
async fn t23_a_lost_session_is_opened_again_and_the_call_repeated_once() {
    let sessions = Arc::new(AtomicUsize::new(0));
    let lost = Arc::new(AtomicUsize::new(0));
    let web = {
        let (sessions, lost) = (Arc::clone(&sessions), Arc::clone(&lost));
        Web::start(move |got| legacy(&got, &sessions, &lost)).await
    };
    let registry = plain(&web);
    assert_eq!(registry.list(&Scope::operator()).await.tools.len(), 2);
    call_text(&registry, "echo", "{}").await;
    lost.store(1, Ordering::SeqCst);
    call_text(&registry, "echo", "{}").await;
    assert_eq!(sessions.load(Ordering::SeqCst), 2);
    let versions: Vec<_> =
        web.of("tools/call").iter().map(|it| it.headers["mcp-protocol-version"].clone()).collect();
    assert!(versions.iter().all(|it| it == "2025-06-18"), "{versions:?}");
}

#[tokio::test]
async fn http_errors_are_typed_and_show_no_body() {
    for status in [400, 404, 429, 500, 503] {
        let web = Web::start(move |got| {
            modern(&got, |_| Some(reply(status, "text/plain", "secret details")))
        })
        .await;
        let outcome = call(&plain(&web), "echo", "{}").await;
        let failure = outcome.result.err();
        assert_eq!(failure, Some(Failure::Http { status }));
        let message = failure.map(|it| it.message(&outcome.tool)).unwrap_or_default();
        assert!(!message.contains("secret"), "{message}");
        assert_eq!(web.of("tools/call").len(), 1, "never repeated");
    }
}

#[tokio::test]
async fn json_rpc_errors_with_a_status_keep_their_code() {
    let web = Web::start(|got| {
        modern(&got, |got| {
            let error = json!({ "code": -32602, "message": "bad city" });
            let body = json!({ "jsonrpc": "2.0", "id": got.json()["id"], "error": error });
            Some(reply(400, "application/json", body.to_string()))
        })
    })
    .await;
    let failure = call(&plain(&web), "echo", "{}").await.result.err();
    assert_eq!(failure, Some(Failure::Protocol { code: -32602, message: "bad city".to_owned() }));
}

#[tokio::test]
async fn t42_a_refused_credential_is_read_again_once() {
    let path = std::env::temp_dir().join(format!("toolgate-tools-{}", std::process::id()));
    std::fs::write(&path, "old\n").unwrap();
    let file = path.clone();
    let web = Web::start(move |got| {
        let token = got.headers.get("authorization").and_then(|it| it.to_str().ok());
        if got.rpc_method() == "tools/call" && token == Some("Bearer old") {
            std::fs::write(&file, "new\n").unwrap();
            return Some(reply(401, "text/plain", ""));
        }
        modern(&got, |got| Some(support::web::json(repeat(got))))
    })
    .await;
    let credentials = Credentials::bearer(Secret::File(path.clone()));
    let registry = registry(&web, credentials, SourceOptions::default());
    call_text(&registry, "echo", "{}").await;
    let tokens: Vec<_> =
        web.of("tools/call").iter().map(|it| it.headers["authorization"].clone()).collect();
    assert_eq!(tokens, ["Bearer old", "Bearer new"]);
    std::fs::remove_file(path).unwrap();
}

#[tokio::test]
async fn a_credential_that_stays_refused_fails_the_call() {
    let web = Web::start(|got| {
        modern(&got, |_| {
            let mut response = reply(401, "text/plain", "");
            let challenge = "Bearer realm=\"secret-realm\"".parse().unwrap();
            response.headers_mut().insert("www-authenticate", challenge);
            Some(response)
        })
    })
    .await;
    let outcome = call(&plain(&web), "echo", "{}").await;
    let failure = outcome.result.err().unwrap();
    assert_eq!(failure, Failure::Unauthorized { status: 401 });
    assert!(!failure.message(&outcome.tool).contains("realm"));
    assert_eq!(web.of("tools/call").len(), 1);
}

#[tokio::test]
async fn t28_redirects_within_the_origin_are_followed() {
    let web = Web::start(|got| {
        if got.path == "/mcp" {
            let mut response = reply(307, "text/plain", "");
            response.headers_mut().insert("location", "/mcp/".parse().unwrap());
            return Some(response);
        }
        modern(&got, |got| Some(support::web::json(repeat(got))))
    })
    .await;
    call_text(&plain(&web), "echo", "{}").await;
}

#[tokio::test]
async fn redirects_to_another_origin_are_refused() {
    let web = Web::start(|_| {
        let mut response = reply(307, "text/plain", "");
        response.headers_mut().insert("location", "http://127.0.0.2:1/mcp".parse().unwrap());
        Some(response)
    })
    .await;
    let catalogue = plain(&web).list(&Scope::operator()).await;
    assert!(matches!(&catalogue.failures[..], [(_, Failure::Http { status: 307 })]));
}

#[tokio::test]
async fn t29_a_stream_that_ends_without_a_result_fails_the_call() {
    let web = Web::start(|got| modern(&got, |_| Some(events(&[], false)))).await;
    let failure = call(&plain(&web), "echo", "{}").await.result.err();
    assert_eq!(failure, Some(Failure::Crashed));
}

#[tokio::test]
async fn responses_are_bounded() {
    let web = Web::start(|got| {
        modern(&got, |got| {
            let large = "x".repeat(17 * 1024 * 1024);
            let body = result(got, &format!(r#"{{"content":"{large}"}}"#));
            Some(if got.body.contains("stream") {
                events(&[body], false)
            } else {
                support::web::json(body)
            })
        })
    })
    .await;
    let registry = plain(&web);
    for arguments in ["{}", r#"{"how":"stream"}"#] {
        let failure = call(&registry, "echo", arguments).await.result.err();
        assert!(matches!(failure, Some(Failure::TooLarge { .. })), "{arguments} {failure:?}");
    }
}

#[tokio::test]
async fn t14_a_server_that_hangs_at_any_step_ends_in_a_timeout() {
    for step in ["server/discover", "tools/list", "tools/call"] {
        let web = Web::start(move |got| {
            if got.rpc_method() == step || got.rpc_method() == "initialize" {
                return None;
            }
            modern(&got, |got| Some(support::web::json(repeat(got))))
        })
        .await;
        let options = SourceOptions {
            list_timeout: Duration::from_millis(1500),
            limits: Limits { idle_timeout: Duration::from_millis(200), ..Limits::default() },
            ..SourceOptions::default()
        };
        let registry = registry(&web, Credentials::default(), options);
        let failure = call(&registry, "echo", "{}").await.result.err();
        assert!(matches!(failure, Some(Failure::Timeout { .. })), "{step} {failure:?}");
    }
}

#[tokio::test]
async fn many_calls_wait_side_by_side() {
    let web = Web::start(|got| modern(&got, |got| Some(support::web::json(repeat(got))))).await;
    let registry = plain(&web);
    let calls = (0..100).map(|n| {
        let registry = registry.clone();
        async move {
            let arguments = format!(r#"{{"n":{n}}}"#);
            let outcome = call(&registry, "echo", &arguments).await;
            assert!(text(&outcome).contains(&arguments));
        }
    });
    futures_util::future::join_all(calls).await;
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unreachable() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    drop(listener);
    let registry = Registry::start(Settings::default()).unwrap();
    let server = McpServer::http("test", &url, Credentials::default(), Addresses::Any).unwrap();
    registry.add("test", Arc::new(server), SourceOptions::default()).unwrap();
    let failure = call(&registry, "echo", "{}").await.result.err();
    assert!(matches!(failure, Some(Failure::Unreachable(_))), "{failure:?}");
}
