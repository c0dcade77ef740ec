//! An approval that comes tomorrow, in another process: the paused run is a file in between.
//!
//! ```text
//! transfer {"to":"Ada","amount":120} waits for an approval
//! The transfer is done.
//! ```
#![expect(clippy::print_stdout, reason = "an example prints its result")]

mod gemini;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolgate::{Client, Request, SavedRun, Tool, Toolset};
use toolgate_sim::Script;

#[derive(Deserialize, JsonSchema)]
struct Transfer {
    to: String,
    amount: u32,
}

/// Instructions and tools, which belong to the program and not to the file.
fn request() -> Request {
    let transfer = Tool::declared::<Transfer>("transfer", "Transfers money.");
    Request::new("Send Ada the 120 that I owe her.").tools(Toolset::new().tool(transfer))
}

/// Today: the model calls, and the run is saved.
async fn ask(client: &Client) -> Result<String, Box<dyn std::error::Error>> {
    let response = client.generate(request()).await?;
    for call in response.calls() {
        println!("{} {} waits for an approval", call.name(), call.arguments_json());
    }
    Ok(serde_json::to_string(&response.save()?)?)
}

/// Tomorrow: the run goes on with the results, and with every signature in place.
async fn approve(client: &Client, file: &str) -> Result<(), Box<dyn std::error::Error>> {
    let saved: SavedRun = serde_json::from_str(file)?;
    let response = client.resume_run(&saved, request())?;
    let results = response.calls().iter().map(|call| {
        let Transfer { to, amount } = call.arguments_as()?;
        Ok(call.succeed(format!("{to} has got {amount}")))
    });
    let results: Vec<_> = results.collect::<Result<_, toolgate::ToolError>>()?;
    println!("{}", response.resume(results).await?.text());
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let call = Script::new().call("transfer", json!({"to": "Ada", "amount": 120})).finish();
    let (client, _sim) = gemini::client(call.text("The transfer is done.")).await?;
    let file = ask(&client).await?;
    approve(&client, &file).await
}
