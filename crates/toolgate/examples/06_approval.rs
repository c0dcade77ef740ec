//! Approval of calls: each is allowed, changed or denied before it runs.
//!
//! ```text
//! read {"path":"notes.txt"}: allowed
//! delete {"path":"notes.txt"}: denied
//! delete {"path":"*"}: changed
//! I read the notes and deleted the trash.
//! ```
#![expect(clippy::print_stdout, reason = "an example prints its result")]

mod gemini;

use serde_json::json;
use toolgate::{Call, Decision, Request, Toolset, tool};
use toolgate_sim::Script;

/// Reads a file.
#[tool]
async fn read(path: String) -> String {
    format!("contents of {path}")
}

/// Deletes files.
#[tool(sequential)]
async fn delete(path: String) -> String {
    format!("{path} is gone")
}

async fn decide(call: Call) -> Decision {
    let (decision, word) = match (call.name(), call.arguments()["path"].as_str()) {
        ("read", _) => (Decision::Allow, "allowed"),
        ("delete", Some("*")) => (Decision::Change(json!({"path": "trash/*"})), "changed"),
        _ => (Decision::Deny("the notes stay".to_owned()), "denied"),
    };
    println!("{} {}: {word}", call.name(), call.arguments_json());
    decision
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let script = Script::new()
        .call("read", json!({"path": "notes.txt"}))
        .call("delete", json!({"path": "notes.txt"}))
        .call("delete", json!({"path": "*"}))
        .finish()
        .text("I read the notes and deleted the trash.");
    let (client, _sim) = gemini::client(script).await?;

    let tools = Toolset::new().with::<read>().with::<delete>();
    let request = Request::new("Read my notes, then clean up.").tools(tools).approve(decide);
    println!("{}", client.generate(request).await?.text());
    Ok(())
}
