//! Failures: slow tools, failing tools, unknown tools, and a model that never stops calling.
//!
//! ```text
//! flaky: error 7 of the machine
//! slow: the tool took longer than 20ms and was given up
//! round 2
//! flaky: error 7 of the machine
//! round 3, the last
//! I could not find out.
//! the model called `oracle`, an unknown tool
//! ```
#![expect(clippy::print_stdout, clippy::wildcard_enum_match_arm, reason = "an example is short")]

mod gemini;

use serde_json::json;
use toolgate::canon::LossCode;
use toolgate::{AtLimit, Automatic, Event, Request, Toolset, tool};
use toolgate_sim::Script;

/// Never returns.
#[tool(timeout = "20ms")]
async fn slow() {
    std::future::pending().await
}

/// Fails.
#[tool]
async fn flaky(attempt: u32) -> Result<String, String> {
    if attempt > 9 { Ok("at last".into()) } else { Err("error 7 of the machine".into()) }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let script = Script::new().call("slow", json!({})).call("flaky", json!({"attempt": 1}));
    let script = script.call("oracle", json!({})).finish().call("flaky", json!({"attempt": 2}));
    let (client, _sim) = gemini::client(script.finish().text("I could not find out.")).await?;

    let automatic =
        Automatic { max_rounds: 2, at_limit: AtLimit::LastAnswer, ..Automatic::default() };
    let tools = Toolset::new().with::<slow>().with::<flaky>();
    let request = Request::new("Ask the oracle.").tools(tools).automatic(automatic);
    let answer = client.generate(request.observe(|event| match event {
        Event::ToolFinished { call, result: Err(error), .. } => {
            println!("{}: {error}", call.name())
        }
        Event::Round { round, last: true } => println!("round {round}, the last"),
        Event::Round { round: round @ 2.., .. } => println!("round {round}"),
        _ => {}
    }));
    let answer = answer.await?;
    println!("{}", answer.text());
    for loss in answer.losses().iter().filter(|it| it.code == LossCode::UnknownTool) {
        println!("the model called `{}`, an unknown tool", loss.tool.as_deref().unwrap_or("?"));
    }
    Ok(())
}
