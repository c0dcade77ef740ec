//! Tools of the other tests.

use std::time::Duration;

use serde::Serialize;
use tokio::time::sleep;
use toolgate::tool;

/// The weather in a city.
#[tool]
pub(crate) async fn weather(
    /// The city's name.
    city: String,
) -> Result<String, String> {
    match city.as_str() {
        "Atlantis" => Err("it is under water".to_owned()),
        city => Ok(format!("22 °C in {city}")),
    }
}

/// What time it is.
#[tool]
pub(crate) fn clock() -> &'static str {
    "noon"
}

/// Takes ten seconds.
#[tool]
pub(crate) async fn slow(name: String) -> String {
    sleep(Duration::from_secs(10)).await;
    name
}

/// Takes ten seconds, one call at a time.
#[tool(sequential)]
pub(crate) async fn slow_in_line(name: String) -> String {
    sleep(Duration::from_secs(10)).await;
    name
}

/// Never returns.
#[tool(timeout = "3s")]
pub(crate) async fn stuck() -> String {
    std::future::pending().await
}

/// Breaks.
#[tool]
pub(crate) async fn broken() -> String {
    let nothing: Option<String> = std::hint::black_box(None);
    nothing.unwrap()
}

#[derive(Serialize)]
pub(crate) struct Stock {
    sku: String,
    left: u32,
}

/// How many are left.
#[tool(deterministic)]
pub(crate) fn stock(sku: &str) -> Stock {
    Stock { sku: sku.to_owned(), left: 3 }
}
