//! Model catalogue for Codex.
//!
//! Codex takes a model's tools, context window and reasoning efforts from a catalogue, and warns about a
//! model that it does not find there and leaves out `apply_patch`. The installed Codex prints its own
//! catalogue; the one for a run is made from it, so that it has the fields that this version wants. Its
//! entries are copies of an entry whose tools are plain declarations, with what differs for Gemini.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde_json::{Map, Value, json};
use tokio::process::Command;
use tokio::time::timeout;

use crate::models::{CONTEXT_WINDOW, display_name};
use crate::state::random_hex;

/// Maximum time for Codex to print its catalogue.
const PRINT_TIMEOUT: Duration = Duration::from_secs(10);

/// Reasoning efforts, with their descriptions; the last is Gemini's default.
const EFFORTS: [(&str, &str); 3] = [
    ("low", "Fast answers with little thinking"),
    ("medium", "Balances speed and thinking"),
    ("high", "Gemini's default: thinks as long as it needs"),
];

/// A catalogue in a file, which is removed when dropped.
#[derive(Debug)]
pub(crate) struct Catalogue {
    pub(crate) path: PathBuf,
}

impl Catalogue {
    /// Makes a catalogue of `models` for this Codex.
    pub(crate) async fn make(program: &Path, models: &[String]) -> Result<Self> {
        let own = printed(program).await?;
        let catalogue = of(&own, models).context("its catalogue has no models")?;
        let path = std::env::temp_dir().join(format!("toolgate-run-{}.json", random_hex()?));
        let mut options = fs::OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(0o600).open(&path)?;
        let written = Self { path };
        file.write_all(catalogue.to_string().as_bytes())?;
        Ok(written)
    }
}

impl Drop for Catalogue {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Catalogue that Codex ships.
async fn printed(program: &Path) -> Result<Value> {
    let mut command = Command::new(program);
    command.args(["debug", "models", "--bundled"]).stdin(Stdio::null()).kill_on_drop(true);
    let output = timeout(PRINT_TIMEOUT, command.output()).await;
    let output = output.context("`codex debug models` does not end")??;
    if !output.status.success() {
        bail!("`codex debug models` is not known to this version");
    }
    serde_json::from_slice(&output.stdout).context("`codex debug models` printed no JSON")
}

/// A catalogue of `models` in the format of `own`.
fn of(own: &Value, models: &[String]) -> Option<Value> {
    let entries = own["models"].as_array()?;
    // Other entries have their tools inside a program that the model writes.
    let is_plain = |entry: &&Value| {
        entry["tool_mode"].is_null() && !entry["use_responses_lite"].as_bool().unwrap_or(false)
    };
    let template = entries.iter().find(is_plain).or_else(|| entries.first())?.as_object()?;
    let models = models.iter().enumerate().map(|(at, model)| entry(template, model, at));
    Some(json!({"models": models.collect::<Vec<_>>()}))
}

fn entry(template: &Map<String, Value>, model: &str, at: usize) -> Value {
    let mut entry = template.clone();
    let efforts = EFFORTS.map(|(effort, about)| json!({"effort": effort, "description": about}));
    let mut set = |name: &str, value: Value| {
        // Fields that this version does not have are not added.
        if let Some(field) = entry.get_mut(name) {
            *field = value;
        }
    };
    set("slug", json!(model));
    set("display_name", json!(display_name(model)));
    set("description", json!("Gemini, by toolgate"));
    set("context_window", json!(CONTEXT_WINDOW));
    set("max_context_window", json!(CONTEXT_WINDOW));
    set("supported_reasoning_levels", json!(efforts));
    set("default_reasoning_level", json!("high"));
    set("default_reasoning_summary", json!("auto"));
    set("visibility", json!("list"));
    set("priority", json!(at + 1));
    set("support_verbosity", json!(false));
    set("default_verbosity", Value::Null);
    set("use_responses_lite", json!(false));
    set("service_tiers", json!([]));
    set("additional_speed_tiers", json!([]));
    set("upgrade", Value::Null);
    set("availability_nux", Value::Null);
    entry.remove("tool_mode");
    entry.remove("default_service_tier");
    // Sub-agents as plain functions.
    entry.insert("multi_agent_version".to_owned(), json!("v1"));
    for value in entry.values_mut() {
        without_vendor(value);
    }
    Value::Object(entry)
}

/// Removes "based on GPT-…" from the instructions: the model is another.
fn without_vendor(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Some(at) = text.find(", a coding agent based on GPT") {
                let start = at + ", a coding agent".len();
                let end =
                    text[start..].find(['.', ',', '\n']).map_or(text.len(), |end| start + end);
                // A version's point is followed by a digit.
                let is_version = text[end..].starts_with('.')
                    && text[end + 1..].starts_with(|c: char| c.is_ascii_digit());
                let more = if is_version { text[end + 1..].find(['.', ',', '\n']) } else { None };
                let end = more.map_or(end, |more| end + 1 + more);
                text.replace_range(start..end, "");
            }
        }
        Value::Object(members) => members.values_mut().for_each(without_vendor),
        Value::Array(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_those_of_the_installed_version() {
        let own = json!({"models": [
            {"slug": "code-mode", "tool_mode": "code_mode_only", "use_responses_lite": true},
            {"slug": "plain", "use_responses_lite": false, "apply_patch_tool_type": "freeform",
             "context_window": 1, "priority": 9, "upgrade": {"model": "x"}, "newest_field": 7,
             "supported_reasoning_levels": [], "default_service_tier": "priority",
             "base_instructions": "You are Codex, a coding agent based on GPT-5.5. You work.",
             "model_messages": {"instructions_template": "You are Codex, a coding agent based on GPT-5. You"}},
        ]});
        let made = of(&own, &["gemini-3.6-flash".to_owned(), "gemini-4-argon".to_owned()]).unwrap();
        let first = &made["models"][0];
        assert_eq!(first["slug"], "gemini-3.6-flash");
        assert_eq!(first["context_window"], CONTEXT_WINDOW);
        assert_eq!(first["apply_patch_tool_type"], "freeform");
        assert_eq!((&first["newest_field"], &first["upgrade"]), (&json!(7), &Value::Null));
        assert_eq!(first["supported_reasoning_levels"][2]["effort"], "high");
        assert_eq!(first["base_instructions"], "You are Codex, a coding agent. You work.");
        assert_eq!(
            first["model_messages"]["instructions_template"],
            "You are Codex, a coding agent. You"
        );
        assert!(first.get("default_service_tier").is_none() && first.get("display_name").is_none());
        assert_eq!(made["models"][1]["priority"], 2);
        for broken in [json!({}), json!({"models": []}), json!({"models": [1]}), json!([])] {
            assert_eq!(of(&broken, &[]), None, "{broken}");
        }
    }
}
