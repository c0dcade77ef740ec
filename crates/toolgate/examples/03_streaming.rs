//! A streamed answer with tools.
//!
//! ```text
//! Let me look that up. [population of Oslo]
//! About 720 thousand people live in Oslo.
//! ```
#![expect(clippy::print_stdout, clippy::wildcard_enum_match_arm, reason = "an example is short")]

mod gemini;

use serde_json::json;
use toolgate::{Event, Request, Toolset, tool};
use toolgate_sim::Script;

/// How many people live in a city.
#[tool]
fn population(city: &str) -> Option<u64> {
    [("Oslo", 720_000), ("Rome", 2_800_000)].into_iter().find(|it| it.0 == city).map(|it| it.1)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let script = Script::new()
        .text("Let me look that up. ")
        .call("population", json!({"city": "Oslo"}))
        .finish()
        .text("About 720 thousand people live in Oslo.");
    let (client, _sim) = gemini::client(script).await?;

    let tools = Toolset::new().with::<population>();
    let mut stream = client.stream(Request::new("How many people live in Oslo?").tools(tools));
    while let Some(event) = stream.next().await {
        match event? {
            Event::Text(text) => print!("{text}"),
            Event::ToolStarted(call) => {
                println!(
                    "[{} of {}]",
                    call.name(),
                    call.arguments()["city"].as_str().unwrap_or("?")
                );
            }
            Event::Finished(_) => println!(),
            _ => {}
        }
    }
    Ok(())
}
