//! Gemini models that agents are offered by name.

use toolgate_gateway::config::Config;

/// Model families of Claude Code, each with a name of that family.
pub(crate) const CLAUDE_FAMILIES: [(&str, &str); 4] = [
    ("OPUS", "claude-opus-4-5"),
    ("SONNET", "claude-sonnet-4-5"),
    ("HAIKU", "claude-haiku-4-5"),
    ("FABLE", "claude-fable-5"),
];

/// Context window of every Gemini model, in tokens.
pub(crate) const CONTEXT_WINDOW: u32 = 1_048_576;

/// Returns the Gemini model of a family of Claude Code. `None` where the configuration has more settings
/// for the family's names than a model: those apply to the names only.
pub(crate) fn of_family(config: &Config, example: &str) -> Option<String> {
    let meaning = config.models.meaning(example);
    let is_plain = meaning.effort.is_none()
        && meaning.budget.is_none()
        && meaning.max_output_tokens.is_none()
        && meaning.model != example;
    is_plain.then_some(meaning.model)
}

/// Gemini models of the configuration, each once; `first` is the first.
pub(crate) fn offered(config: &Config, first: &str) -> Vec<String> {
    let mut models = vec![first.to_owned()];
    let families = CLAUDE_FAMILIES.iter().map(|(_, example)| config.models.meaning(example).model);
    let named = config.models.names().map(|(_, meaning)| meaning.model.clone());
    for model in families.chain(named) {
        if model.starts_with("gemini-") && !models.contains(&model) {
            models.push(model);
        }
    }
    models
}

/// Name for people: `gemini-3.1-pro-preview` → `Gemini 3.1 Pro Preview`.
pub(crate) fn display_name(model: &str) -> String {
    let capitalized = |word: &str| {
        let mut letters = word.chars();
        let first = letters.next().map(|first| first.to_uppercase().to_string());
        first.unwrap_or_default() + letters.as_str()
    };
    model.split('-').map(capitalized).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use toolgate_gateway::config::Sources;

    use super::*;

    fn config(file: &str) -> Config {
        Config::resolve(&Sources { file: Some(("file", file)), env: &|_| None, flags: &[] })
            .unwrap()
    }

    #[test]
    fn families_have_the_models_of_the_configuration() {
        let built_in = config("");
        let model = |config: &Config, family: &str| {
            let (_, example) = CLAUDE_FAMILIES.iter().find(|(name, _)| *name == family).unwrap();
            of_family(config, example)
        };
        assert_eq!(model(&built_in, "OPUS").as_deref(), Some("gemini-3.1-pro-preview"));
        assert_eq!(model(&built_in, "SONNET").as_deref(), Some("gemini-3.6-flash"));
        let own = "[models]\n\"claude-*opus*\" = \"gemini-4-argon\"\n\"claude-*sonnet*\" = { model = \"gemini-2.5-pro\", thinking = 1024 }";
        let own = config(own);
        assert_eq!(model(&own, "OPUS").as_deref(), Some("gemini-4-argon"));
        assert_eq!(model(&own, "SONNET"), None, "its thinking budget would be lost");
        let offered = offered(&own, "gemini-3.6-flash");
        assert_eq!(offered[..2], ["gemini-3.6-flash", "gemini-4-argon"]);
        assert!(offered.contains(&"gemini-2.5-pro".to_owned()), "{offered:?}");
    }

    #[test]
    fn names_are_for_people() {
        assert_eq!(display_name("gemini-3.1-pro-preview"), "Gemini 3.1 Pro Preview");
        assert_eq!(display_name(""), "");
    }
}
