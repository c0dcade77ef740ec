//! The simulated models.

use serde_json::{Value, json};
use toolgate_validate::{Generation, Model};

/// Listed models with their display names.
const LISTED: [(&str, &str); 13] = [
    ("gemini-2.5-pro", "Gemini 2.5 Pro"),
    ("gemini-2.5-flash", "Gemini 2.5 Flash"),
    ("gemini-2.5-flash-lite", "Gemini 2.5 Flash-Lite"),
    ("gemini-3-pro-preview", "Gemini 3 Pro Preview"),
    ("gemini-3-flash-preview", "Gemini 3 Flash Preview"),
    ("gemini-3.1-pro-preview", "Gemini 3.1 Pro Preview"),
    ("gemini-3.1-flash-lite", "Gemini 3.1 Flash-Lite"),
    ("gemini-3.5-flash", "Gemini 3.5 Flash"),
    ("gemini-3.5-flash-lite", "Gemini 3.5 Flash-Lite"),
    ("gemini-3.6-flash", "Gemini 3.6 Flash"),
    ("gemini-3.7-flash", "Gemini 3.7 Flash"),
    ("gemini-3.8-flash", "Gemini 3.8 Flash"),
    ("gemini-4-argon", "Gemini 4 Argon"),
];

/// Aliases of listed models.
const ALIASES: [(&str, &str); 5] = [
    ("gemini-flash-latest", "gemini-3.8-flash"),
    ("gemini-flash-lite-latest", "gemini-3.5-flash-lite"),
    ("gemini-pro-latest", "gemini-3.1-pro-preview"),
    ("gemini-3-flash", "gemini-3-flash-preview"),
    ("gemini-3-pro", "gemini-3-pro-preview"),
];

/// Resolves aliases. Names that are not listed (dated or future ones) resolve to themselves if
/// [`Model::named`] knows their generation.
pub(crate) fn resolve(name: &str) -> Option<(&str, Model)> {
    resolve_any(name).filter(|(_, model)| model.generation > Generation::Legacy)
}

/// Resolves aliases, including those of retired models.
pub(crate) fn resolve_any(name: &str) -> Option<(&str, Model)> {
    let own = ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, own)| own);
    Some((own, Model::named(own)?))
}

/// Every listed model in the form of `models.list`.
pub(crate) fn list() -> Vec<Value> {
    let aliases = ALIASES.iter().map(|(alias, _)| (*alias, *alias));
    LISTED
        .into_iter()
        .chain(aliases)
        .map(|(name, display_name)| describe(name, display_name))
        .collect()
}

/// One model in the form of `models.get`.
pub(crate) fn get(name: &str) -> Option<Value> {
    resolve(name)?;
    let listed = LISTED.iter().find(|(listed, _)| *listed == name);
    Some(describe(name, listed.map_or(name, |(_, display_name)| display_name)))
}

/// Every listed model in Vertex's form.
pub(crate) fn list_vertex() -> Vec<Value> {
    LISTED
        .iter()
        .map(|(name, _)| {
            json!({"name": format!("publishers/google/models/{name}"), "versionId": "default"})
        })
        .collect()
}

fn describe(name: &str, display_name: &str) -> Value {
    json!({
        "name": format!("models/{name}"),
        "version": "001",
        "displayName": display_name,
        "description": format!("{display_name}, simulated by toolgate"),
        "inputTokenLimit": 1_048_576,
        "outputTokenLimit": 65_536,
        "supportedGenerationMethods": ["generateContent", "countTokens"],
        "temperature": 1,
        "topP": 0.95,
        "topK": 64,
        "maxTemperature": 2,
        "thinking": true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_model_is_known() {
        for model in list() {
            let name = model["name"].as_str().unwrap().strip_prefix("models/").unwrap();
            assert!(resolve(name).is_some(), "{name}");
            assert_eq!(get(name), Some(model.clone()));
        }
        assert_eq!(resolve("gemini-3-flash").unwrap().0, "gemini-3-flash-preview");
        assert!(resolve("gemini-2.5-flash-preview-09-2025").is_some());
        assert!(resolve("gemini-nonexistent").is_none());
        assert!(resolve("gemini-2.0-flash").is_none());
    }
}
