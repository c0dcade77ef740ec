//! HTTP templates and OpenAPI operations, and the configuration that declares them.

#![allow(clippy::unwrap_used, clippy::panic, clippy::allow_attributes, reason = "helpers of tests")]

mod support;

use std::collections::HashMap;
use std::path::Path;

use serde_json::json;
use support::raw;
use support::web::{Web, json as answer, reply};
use toolgate_tools::config::ToolsConfig;
use toolgate_tools::{Call, Content, Denial, Failure, Outcome, Registry, Scope};

fn build(text: &str) -> Result<Registry, String> {
    build_in(text, Path::new("/nonexistent"))
}

fn build_in(text: &str, folder: &Path) -> Result<Registry, String> {
    // The text of a TOML error quotes the line, which may hold a secret; its message does not.
    #[derive(serde::Deserialize)]
    struct File {
        tools: ToolsConfig,
    }
    let file: File = toml::from_str(text).map_err(|it| it.message().to_owned())?;
    file.tools.build(folder, HashMap::new()).map_err(|it| it.to_string())
}

async fn call(registry: &Registry, name: &str, arguments: &str) -> Outcome {
    registry.call(Call::new(Scope::operator(), name.parse().unwrap(), raw(arguments))).await
}

fn weather(web: &Web) -> String {
    format!(
        r#"
        [tools.http.weather]
        request = "GET {}/v1/weather/{{city}}"
        query = {{ unit = "{{unit}}" }}
        description = "Gets the weather."
        parameters = {{ type = "object", properties = {{ city = {{ type = "string" }}, unit = {{ type = "string" }} }}, required = ["city"] }}
        header = {{ x-api-key = "env:PATH" }}

        [tools.http.order]
        request = "POST {}/orders"
        body = "{{}}"
        description = "Orders."
        parameters = {{ type = "object", properties = {{ n = {{ type = "number" }} }} }}
        approve = true
        offer = "always"
        "#,
        web.url, web.url
    )
}

#[tokio::test]
async fn r169_an_http_template_is_a_tool() {
    let web = Web::start(|_| Some(answer(r#"{"temperature":21.50}"#))).await;
    let registry = build(&weather(&web)).unwrap();
    let outcome = call(&registry, "http.weather", r#"{"city":"Zürich","unit":"c"}"#).await;
    let structured = outcome.result.unwrap().structured.unwrap();
    assert_eq!(structured.get(), r#"{"temperature":21.50}"#);
    let got = web.got.lock().unwrap()[0].clone();
    assert_eq!(got.path, "/v1/weather/Z%C3%BCrich?unit=c");
    assert_eq!(got.headers["x-api-key"].to_str().ok(), std::env::var("PATH").ok().as_deref());
    let names: Vec<_> = got.headers.keys().map(|it| it.as_str()).collect();
    assert!(
        names.iter().all(|it| ["accept", "user-agent", "x-api-key", "host"].contains(it)),
        "{names:?}"
    );
}

#[tokio::test]
async fn bodies_are_the_arguments_as_they_were_written() {
    let web = Web::start(|_| Some(answer("{}"))).await;
    let registry = build(&weather(&web)).unwrap();
    let arguments = r#"{"n":12345678901234567890.10}"#;
    let refused = call(&registry, "http.order", arguments).await.result.err();
    assert_eq!(refused, Some(Failure::Denied(Denial::Approval)));
    let mut approved = Call::new(Scope::operator(), "http.order".parse().unwrap(), raw(arguments));
    approved.is_approved = true;
    assert!(registry.call(approved).await.result.is_ok());
    assert_eq!(web.got.lock().unwrap()[0].body, arguments);
}

#[tokio::test]
async fn arguments_choose_no_address() {
    let web = Web::start(|_| Some(answer("{}"))).await;
    let registry = build(&weather(&web)).unwrap();
    for city in ["..", ".", ""] {
        let arguments = json!({ "city": city }).to_string();
        let failure = call(&registry, "http.weather", &arguments).await.result.err();
        assert!(matches!(failure, Some(Failure::Arguments(_))), "{city} {failure:?}");
    }
    for city in ["../../admin", "//evil.example", "x?admin=1", "x#y", "a\r\nHost: evil"] {
        call(&registry, "http.weather", &json!({ "city": city }).to_string()).await;
    }
    for got in web.got.lock().unwrap().iter() {
        assert!(got.path.starts_with("/v1/weather/"), "{}", got.path);
        assert_eq!(got.path.matches('/').count(), 3, "{}", got.path);
        assert!(!got.path.contains('?'), "{}", got.path);
    }
}

#[tokio::test]
async fn responses_become_content() {
    let web = Web::start(|got| {
        Some(match got.path.rsplit('/').next() {
            Some("text") => reply(200, "text/plain; charset=utf-8", "hello"),
            Some("image") => reply(200, "image/png", &b"\x89PNG"[..]),
            Some("binary") => reply(200, "application/zip", &b"\xff\xfe"[..]),
            Some("broken") => reply(200, "application/json", "{"),
            Some("missing") => reply(404, "text/html", "secret"),
            Some("denied") => reply(401, "text/html", "secret"),
            _ => reply(302, "text/plain", ""),
        })
    })
    .await;
    let registry = build(&weather(&web)).unwrap();
    let get = |city: &str| {
        let arguments = json!({ "city": city }).to_string();
        let registry = registry.clone();
        async move { call(&registry, "http.weather", &arguments).await.result }
    };
    assert!(
        matches!(&get("text").await.unwrap().content[..], [Content::Text(it)] if it == "hello")
    );
    assert!(matches!(
        &get("image").await.unwrap().content[..],
        [Content::Image { data, mime_type }] if data == "iVBORw==" && mime_type == "image/png"
    ));
    assert!(matches!(
        &get("binary").await.unwrap().content[..],
        [Content::Text(it)] if it == "[application/zip, 2 bytes: not shown]"
    ));
    assert!(matches!(&get("broken").await.unwrap().content[..], [Content::Text(it)] if it == "{"));
    assert_eq!(get("missing").await.err(), Some(Failure::Http { status: 404 }));
    assert_eq!(get("denied").await.err(), Some(Failure::Unauthorized { status: 401 }));
    assert_eq!(get("elsewhere").await.err(), Some(Failure::Http { status: 302 }));
}

#[tokio::test]
async fn openapi_operations_are_tools() {
    let web = Web::start(|_| Some(answer("[]"))).await;
    let folder = std::env::temp_dir().join(format!("toolgate-tools-api-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let document = json!({
        "openapi": "3.1.0",
        "servers": [{ "url": web.url }],
        "paths": {
            "/customers/{id}": { "get": {
                "operationId": "getCustomer",
                "parameters": [{ "name": "id", "in": "path", "required": true, "schema": { "type": "integer" } }],
            } },
            "/admin": { "delete": { "operationId": "deleteAll" } },
        },
    });
    std::fs::write(folder.join("crm.json"), document.to_string()).unwrap();
    let text = r#"
        [tools.openapi.crm]
        spec = "crm.json"
        operations = ["getCustomer"]
    "#;
    let registry = build_in(text, &folder).unwrap();
    assert_eq!(registry.list(&Scope::operator()).await.tools.len(), 1, "only what is listed");
    let outcome = call(&registry, "crm.getCustomer", r#"{"id":7}"#).await;
    assert!(outcome.result.is_ok());
    assert_eq!(web.got.lock().unwrap()[0].path, "/customers/7");
    let unlisted = call(&registry, "crm.deleteAll", "{}").await.result.err();
    assert_eq!(unlisted, Some(Failure::UnknownTool));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn mistakes_in_the_configuration_are_named() {
    let http = r#"request = "GET https://a.example/{x}""#;
    let cases = [
        ("[tools]\nmax_round = 3", "unknown field `max_round`"),
        ("[tools.servers.a]\n", "tools.servers.a: give `url` or `command`"),
        ("[tools.servers.a]\nurl = \"https://x/\"\ncommand = [\"y\"]", "not both"),
        ("[tools.servers.a]\nurl = \"ftp://x/\"", "tools.servers.a.url: write an absolute URL"),
        ("[tools.servers.a]\nurl = \"https://u:p@x/\"", "no user or password"),
        ("[tools.servers.\"a.b\"]\nurl = \"https://x/\"", "invalid namespace `a.b`"),
        (
            "[tools.servers.a]\nurl = \"https://x/\"\nauth = { bearer = \"sk-12345\" }",
            "by reference",
        ),
        (
            "[tools.servers.a]\nurl = \"https://x/\"\nauth = { header = { Host = \"env:X\" } }",
            "set by the transport",
        ),
        ("[tools.servers.a]\nurl = \"https://x/\"\nera = \"2023\"", "unknown variant `2023`"),
        (
            "[tools.grants]\nalice = [\"research\"]",
            "tools.grants.alice: there is no set `research`",
        ),
        ("[tools.openapi.a]\nspec = \"x.json\"\noperations = []", "cannot be read"),
        ("[tools.workers.a]\nprocesses = 2", "missing field `module`"),
        ("[tools]\nremote = \"allow\"", "unknown variant `allow`"),
        (
            &format!("[tools.http.a]\n{http}\ndescription=\"d\"\nparameters={{type=\"object\"}}"),
            "no property `x`",
        ),
        (
            "[tools.http.a]\nrequest = \"https://x\"\ndescription=\"d\"\nparameters={}",
            "tools.http.a.request",
        ),
        (
            "[tools.servers.http]\nurl = \"https://x/\"\n[tools.http.a]\nrequest=\"GET https://x/\"\ndescription=\"d\"\nparameters={}",
            "`http` is taken",
        ),
    ];
    for (text, expected) in cases {
        let error = build(text).map(|_| ()).unwrap_err();
        assert!(error.contains(expected), "{text}\n{error}");
        assert!(!error.contains("12345") || !text.contains("bearer"), "a secret is shown: {error}");
    }
}

#[tokio::test]
async fn the_configuration_of_the_documentation_is_accepted() {
    let text = r#"
        [tools]
        max_rounds = 16
        call_seconds = 60
        call_total_seconds = 600
        show = "asked"
        pins = "warn"
        on_leave = "cancel"
        remote = "deny"
        remote_hosts = []
        gemini_servers = "forward"

        [tools.servers.github]
        url = "https://api.example.com/mcp/"
        auth = { bearer = "env:GITHUB_TOKEN" }
        allow = ["search_*", "get_*"]
        deny = ["*delete*"]
        approve = ["create_*"]
        deterministic = ["get_license"]
        cache_seconds = 300
        offer = "asked"
        era = "auto"

        [tools.servers.files]
        command = ["npx", "-y", "@modelcontextprotocol/server-filesystem", "/srv/data"]
        env = { NODE_ENV = "production" }
        env_from = ["HTTPS_PROXY"]
        sandbox = ["bwrap", "--unshare-net", "--ro-bind", "/", "/"]
        sequential = false

        [tools.workers.analysis]
        python = "/srv/venv/bin/python"
        module = "analysis_tools"
        processes = 4
        concurrency = 8
        affinity = "hint"
        memory_mib = 2048
        recycle_calls = 10000
        watch = ["/srv/analysis"]

        [tools.sets]
        research = ["github.search_*", "analysis.*"]
        [tools.grants]
        "*" = []
        alice = ["research", "files.read_*"]
    "#;
    // Nothing is started or connected to before it is used.
    let registry = build(text).unwrap();
    assert!(registry.list(&Scope::client("bob")).await.tools.is_empty());
}
