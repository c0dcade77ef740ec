//! A conversation whose tools are the methods of an object.
//!
//! ```text
//! > Put milk and eggs on my list.
//! Milk and eggs are on it.
//! > What is on it?
//! Milk and eggs.
//! the list: ["milk", "eggs"]
//! the conversation: 6 turns
//! ```
#![expect(clippy::print_stdout, reason = "an example prints its result")]

mod gemini;

use std::sync::{Arc, Mutex};

use serde_json::json;
use toolgate::{Request, Toolset, tools};
use toolgate_sim::Script;

#[derive(Default)]
struct Shopping(Mutex<Vec<String>>);

#[tools]
impl Shopping {
    /// Puts things on the shopping list, and gives the whole list.
    #[toolgate::tool(sequential)]
    fn add(&self, things: Vec<String>) -> Result<Vec<String>, String> {
        let mut list = self.0.lock().map_err(|_| "the list is torn")?;
        list.extend(things);
        Ok(list.clone())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let script = Script::new()
        .call("add", json!({"things": ["milk", "eggs"]}))
        .finish()
        .text("Milk and eggs are on it.")
        .finish()
        .text("Milk and eggs.");
    let (client, _sim) = gemini::client(script).await?;

    let list = Arc::new(Shopping::default());
    let tools = Toolset::new().provider(&list);
    let mut chat = client.chat(Request::default().system("You keep a shopping list.").tools(tools));
    for line in ["Put milk and eggs on my list.", "What is on it?"] {
        println!("> {line}\n{}", chat.send(line).await?.text());
    }
    println!("the list: {:?}", list.0.lock().map_err(|_| "the list is torn")?);
    println!("the conversation: {} turns", chat.history().len());
    Ok(())
}
