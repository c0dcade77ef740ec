//! Lists the tools of an MCP server, and calls one of them.
//!
//! ```sh
//! cargo run -p toolgate-tools --example server -- COMMAND [ARGUMENT…]
//! CALL=echo ARGUMENTS='{"message":"hi"}' cargo run -p toolgate-tools --example server -- npx -y @modelcontextprotocol/server-everything
//! ```
//!
//! A first argument that begins with `http` is the URL of a server over streamable HTTP.

#![expect(clippy::print_stdout, reason = "the example is a command")]

use std::error::Error;
use std::sync::Arc;

use serde_json::value::RawValue;
use toolgate_tools::{
    Addresses, Call, ChildCommand, Credentials, McpServer, ProcessGuard, Registry, Scope, Settings,
    SourceOptions,
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let command: Vec<String> = std::env::args().skip(1).collect();
    let server = match command.first() {
        Some(url) if url.starts_with("http") => {
            McpServer::http("server", url, Credentials::default(), Addresses::Any)?
        }
        Some(_) => McpServer::stdio("server", ChildCommand::new(command), &ProcessGuard::default()),
        None => return Err("usage: server COMMAND [ARGUMENT…]".into()),
    };
    let registry = Registry::start(Settings::default())?;
    registry.add("server", Arc::new(server), SourceOptions::default())?;
    let catalogue = registry.list(&Scope::operator()).await;
    for (source, failure) in &catalogue.failures {
        println!("{source}: {failure:?}");
    }
    for tool in &catalogue.tools {
        let description = tool.definition.description.as_deref().unwrap_or_default();
        println!("{}: {}", tool.name, description.lines().next().unwrap_or_default());
    }
    if let Ok(name) = std::env::var("CALL") {
        let arguments = std::env::var("ARGUMENTS").unwrap_or_else(|_| "{}".to_owned());
        let name = format!("server.{name}").parse()?;
        let arguments = RawValue::from_string(arguments)?;
        let outcome = registry.call(Call::new(Scope::operator(), name, arguments)).await;
        println!("{:#?} after {:?}", outcome.result, outcome.elapsed);
    }
    registry.close().await;
    Ok(())
}
