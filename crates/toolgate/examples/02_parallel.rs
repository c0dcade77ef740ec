//! Concurrent calls of one turn, with results in order.
//!
//! ```text
//! weather("Oslo") starts
//! weather("Rome") starts
//! weather("Cairo") starts
//! Text("Oslo: 4 °C")
//! Text("Rome: 18 °C")
//! Text("Cairo: 31 °C")
//! Cairo is the warmest.
//! ```
#![expect(clippy::print_stdout, reason = "an example prints its result")]

mod gemini;

use std::time::Duration;

use serde_json::json;
use toolgate::canon::Part;
use toolgate::{Event, Request, Toolset, tool};
use toolgate_sim::Script;

/// The weather in a city, now.
#[tool(timeout = "5s", deterministic)]
async fn weather(city: String) -> Result<String, String> {
    tokio::time::sleep(Duration::from_millis(20)).await;
    let known = [("Oslo", 4), ("Rome", 18), ("Cairo", 31)];
    let degrees = known.iter().find(|it| it.0 == city).ok_or("no weather station there")?.1;
    Ok(format!("{city}: {degrees} °C"))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let script = ["Oslo", "Rome", "Cairo"]
        .iter()
        .fold(Script::new(), |script, city| script.call("weather", json!({"city": city})))
        .finish()
        .text("Cairo is the warmest.");
    let (client, _sim) = gemini::client(script).await?;

    let tools = Toolset::new().with::<weather>().max_parallel(8);
    let request = Request::new("Which is warmer: Oslo, Rome or Cairo?").tools(tools);
    let answer = client.generate(request.observe(|event| {
        if let Event::ToolStarted(call) = event {
            println!("{}({}) starts", call.name(), call.arguments()["city"]);
        }
    }));
    let answer = answer.await?;
    for part in answer.history().iter().flat_map(|turn| &turn.parts) {
        if let Part::Result(result) = part {
            println!("{:?}", result.content[0]);
        }
    }
    println!("{}", answer.text());
    Ok(())
}
