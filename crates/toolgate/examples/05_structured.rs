//! A structured answer, parsed into a Rust value, with a tool.
//!
//! ```text
//! Trip { city: "Oslo", days: [Day { plan: "Opera House", outdoors: false }, Day { plan: "Holmenkollen", outdoors: true }] }
//! ```
#![expect(clippy::print_stdout, reason = "an example prints its result")]
#![expect(dead_code, reason = "the fields are only shown")]

mod gemini;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolgate::{Request, Toolset, tool};
use toolgate_sim::Script;

#[derive(Debug, Deserialize, JsonSchema)]
struct Trip {
    city: String,
    days: Vec<Day>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Day {
    /// What to see, in a few words.
    plan: String,
    /// Whether it needs good weather.
    outdoors: bool,
}

/// The forecast for the next days.
#[tool]
fn forecast(city: &str, #[tool(default = 2)] days: usize) -> Vec<String> {
    (0..days).map(|day| format!("day {day} in {city}: {}", ["rain", "sun"][day % 2])).collect()
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let trip = r#"{"city": "Oslo", "days": [{"plan": "Opera House", "outdoors": false},
                                            {"plan": "Holmenkollen", "outdoors": true}]}"#;
    let script = Script::new().call("forecast", json!({"city": "Oslo"})).finish().text(trip);
    let (client, _sim) = gemini::client(script).await?;

    let request = Request::new("Plan two days in Oslo around the weather.")
        .tools(Toolset::new().with::<forecast>());
    let trip = client.generate_as::<Trip>(request).await?;
    println!("{:?}", trip.value);
    Ok(())
}
