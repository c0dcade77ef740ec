//! Start report of a gateway: configuration file, upstream and credentials.

use std::fmt::Write as _;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::Path;

use toolgate_gateway::config::{Access, Config, LogFormat, UpstreamKind};

/// Names the configuration file that was read.
pub(crate) fn file_name(file: Option<&Path>) -> String {
    file.map_or_else(|| "none".to_owned(), |path| path.display().to_string())
}

/// Names the gateway's credentials and where they came from, without showing them.
fn credentials(config: &Config) -> String {
    let auth = &config.upstream.auth;
    let from = |key: &str| config.source(key).unwrap_or("default").to_owned();
    let mut parts = Vec::new();
    match auth.api_keys.len() {
        0 => {}
        1 => parts.push(format!("1 API key from {}", from("upstream.api_keys"))),
        count => parts.push(format!("{count} API keys from {}", from("upstream.api_keys"))),
    }
    if auth.bearer.is_some() {
        parts.push(format!("bearer token from {}", from("upstream.bearer_token")));
    }
    if let Some(path) = &auth.service_account {
        parts.push(format!("service account {path} from {}", from("upstream.service_account")));
    }
    if parts.is_empty() { "none".to_owned() } else { parts.join(", ") }
}

fn client_keys(config: &Config) -> String {
    match config.clients.keys.len() {
        0 => "none".to_owned(),
        count => format!("{count} from {}", config.source("clients.keys").unwrap_or("default")),
    }
}

/// Reports that the gateway listens.
pub(crate) fn announce(
    config: &Config,
    file: Option<&Path>,
    addr: SocketAddr,
) -> std::io::Result<()> {
    match config.log_format {
        LogFormat::Json => {
            tracing::info!(
                %addr,
                upstream = config.upstream.host(),
                upstream_kind = ?config.upstream.kind,
                upstream_url_from = config.source("upstream.url").unwrap_or("default"),
                config_file = file_name(file),
                credentials = credentials(config),
                client_keys = client_keys(config),
                "listening"
            );
            Ok(())
        }
        LogFormat::Text => std::io::stderr().lock().write_all(text(config, file, addr).as_bytes()),
    }
}

/// One screen: configuration, upstream, credentials, and a request that works as pasted.
fn text(config: &Config, file: Option<&Path>, addr: SocketAddr) -> String {
    let upstream = &config.upstream;
    let mut text = String::from("\n");
    let kind = match (upstream.kind, &upstream.url) {
        (UpstreamKind::Sim, None) => "",
        (_, Some(_)) => " (upstream.url)",
        (UpstreamKind::Developer, None) => " (Gemini Developer API)",
        (UpstreamKind::Vertex, None) => " (Vertex AI)",
    };
    if upstream.base_url().is_none() {
        text.push_str("  BUILT-IN SIMULATOR: its answers are made up.\n");
        if !upstream.auth.has_credentials() {
            text.push_str("  For the real thing:  GEMINI_API_KEY=... toolgate serve\n");
        }
        text.push('\n');
    }
    let clients = match config.access() {
        Access::ClientKey => format!("must present a client key: {}", client_keys(config)),
        Access::GeminiKey => "must bring a Gemini key of their own".to_owned(),
        Access::Open => "all that reach this port".to_owned(),
    };
    let _ = writeln!(
        text,
        "  Configuration: {}\n  Upstream:      {}{kind}\n  Credentials:   {}\n  Clients:       {clients}\n",
        file_name(file),
        upstream.host(),
        credentials(config),
    );
    let key = match config.access() {
        Access::ClientKey => " -H 'x-api-key: YOUR-CLIENT-KEY'",
        Access::GeminiKey => " -H 'x-api-key: YOUR-GEMINI-KEY'",
        Access::Open => "",
    };
    let _ = writeln!(
        text,
        "  Try it:\n    curl -s http://{addr}/v1/messages -H 'content-type: application/json'{key} -d '{{\"model\":\"gemini-3-flash\",\"max_tokens\":1024,\"messages\":[{{\"role\":\"user\",\"content\":\"What is the weather in Tokyo?\"}}],\"tools\":[{{\"name\":\"get_weather\",\"description\":\"Get weather\",\"input_schema\":{{\"type\":\"object\",\"properties\":{{\"city\":{{\"type\":\"string\"}}}},\"required\":[\"city\"]}}}}]}}'\n\n  \
         Agents:\n    toolgate run claude    toolgate run codex    toolgate run gemini\n"
    );
    text
}
