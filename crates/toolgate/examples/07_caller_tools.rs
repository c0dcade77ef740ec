//! Tools without a handler: their calls are returned, and the request resumes with their results.
//! Other tools run in the meantime.
//!
//! ```text
//! the model asks: Window or aisle?
//! Booked: seat 12A.
//! ```
#![expect(clippy::print_stdout, reason = "an example prints its result")]

mod gemini;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolgate::{Request, Tool, Toolset, tool};
use toolgate_sim::Script;

#[derive(Deserialize, JsonSchema)]
struct Question {
    /// What to ask the traveller.
    question: String,
}

/// Which seats are free.
#[tool]
fn free_seats() -> [&'static str; 2] {
    ["12A", "14C"]
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let script = Script::new()
        .call("free_seats", json!({}))
        .call("ask", json!({"question": "Window or aisle?"}))
        .finish()
        .text("Booked: seat 12A.");
    let (client, _sim) = gemini::client(script).await?;

    let ask = Tool::declared::<Question>("ask", "Asks the traveller, who answers in their time.");
    let tools = Toolset::new().with::<free_seats>().tool(ask);
    let mut response = client.generate(Request::new("Book me a seat.").tools(tools)).await?;
    while response.has_calls() {
        let mut results = Vec::new();
        for call in response.calls() {
            let Question { question } = call.arguments_as()?;
            println!("the model asks: {question}");
            results.push(call.succeed("window"));
        }
        response = response.resume(results).await?;
    }
    println!("{}", response.text());
    Ok(())
}
