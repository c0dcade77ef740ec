//! Calls of tools, and their results.

use serde_json::value::RawValue;
use toolgate_tools::{Call, Content, Outcome, Registry, Scope};

pub(crate) fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

/// Calls a tool of the source `test`.
pub(crate) async fn call(registry: &Registry, name: &str, arguments: &str) -> Outcome {
    let name = format!("test.{name}").parse().unwrap();
    registry.call(Call::new(Scope::operator(), name, raw(arguments))).await
}

/// Calls a tool whose result is one text.
pub(crate) async fn call_text(registry: &Registry, name: &str, arguments: &str) -> String {
    text(&call(registry, name, arguments).await).to_owned()
}

pub(crate) fn text(outcome: &Outcome) -> &str {
    match outcome.result.as_ref().map(|it| &it.content[..]) {
        Ok([Content::Text(text)]) => text,
        other => panic!("one text expected: {other:?}"),
    }
}

/// Waits until a process has ended: it is gone, or only waits to be reaped.
pub(crate) async fn wait_until_gone(pid: u32) {
    loop {
        let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return };
        let state = stat.rsplit(") ").next().and_then(|it| it.chars().next());
        if matches!(state, Some('Z' | 'X')) {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}
