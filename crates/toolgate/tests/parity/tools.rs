//! The tools of `scenario.py`, in Rust.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use toolgate::{Context, FunctionTool as _, Tool, Toolset, tool};

/// Current and highest number of concurrent calls.
#[derive(Debug, Default)]
pub(crate) struct Running {
    now: AtomicUsize,
    most: AtomicUsize,
}

/// State shared by all calls of a scenario.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shared(pub(crate) std::sync::Arc<Running>);

impl Shared {
    pub(crate) fn most(&self) -> usize {
        self.0.most.load(Ordering::SeqCst)
    }
}

/// Looks a city's weather up.
#[tool]
async fn lookup(context: &Context, city: String) -> Result<String, &'static str> {
    let Shared(running) = context.state().ok_or("nobody counts")?;
    let now = running.now.fetch_add(1, Ordering::SeqCst) + 1;
    running.most.fetch_max(now, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_millis(50)).await;
    running.now.fetch_sub(1, Ordering::SeqCst);
    Ok(format!("20 degrees in {city}"))
}

/// Tells the time.
#[tool]
async fn clock() -> &'static str {
    "noon"
}

/// Fails.
#[tool]
async fn flaky(reason: String) -> Result<String, String> {
    Err(reason)
}

pub(crate) fn toolset(names: &[&str], shared: &Shared) -> Toolset {
    let ask = json!({
        "name": "ask",
        "description": "Asks the user.",
        "parametersJsonSchema": {
            "type": "object",
            "properties": {"question": {"type": "string"}},
            "required": ["question"],
        },
    });
    let all = [lookup::tool(), clock::tool(), flaky::tool(), Tool::declared_json(&ask).unwrap()];
    let wanted = all.into_iter().filter(|tool| names.contains(&tool.name()));
    wanted.fold(Toolset::new().state(shared.clone()), Toolset::tool)
}
