//! A function that the model can call.
//!
//! ```text
//! It is 4 °C in Oslo, with light rain.
//! 2 requests
//! ```
#![expect(clippy::print_stdout, reason = "an example prints its result")]

mod gemini;

use serde_json::json;
use toolgate::{Request, Toolset, tool};
use toolgate_sim::Script;

/// The weather in a city, now.
#[tool]
async fn weather(
    /// The city's name, in English.
    city: String,
) -> Result<String, String> {
    match city.as_str() {
        "Oslo" => Ok("4 °C, light rain".to_owned()),
        _ => Err(format!("no weather station in {city}")),
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Turns of the simulated model, which is used if there is no key.
    let script = Script::new()
        .call("weather", json!({"city": "Oslo"}))
        .finish()
        .text("It is 4 °C in Oslo, with light rain.");
    let (client, _sim) = gemini::client(script).await?;

    let tools = Toolset::new().with::<weather>();
    let answer = client.generate(Request::new("What is the weather in Oslo?").tools(tools)).await?;
    println!("{}", answer.text());
    println!("{} requests", answer.requests());
    Ok(())
}
