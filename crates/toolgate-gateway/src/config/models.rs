//! What clients' model names mean.

use std::collections::BTreeSet;

use toml::Value;
use toolgate_core::canon::Effort;

use super::ConfigError;

/// Patterns and their meanings, strongest first.
#[derive(Clone, Debug)]
pub struct Models {
    patterns: Vec<(String, Meaning)>,
}

/// Meaning of a model name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meaning {
    /// The model by Gemini's name.
    pub model: String,
    /// Default thinking effort, where the client names none.
    pub effort: Option<Effort>,
    /// The same as a budget in tokens.
    pub budget: Option<i64>,
    /// The most tokens an answer may have, whatever the client asks.
    pub max_output_tokens: Option<i64>,
}

/// The names that clients of other vendors ask for out of the box.
const BUILT_IN: &[(&str, &str)] = &[
    ("claude-*opus*", "gemini-3.1-pro-preview"),
    ("claude-*fable*", "gemini-3.1-pro-preview"),
    ("claude-*haiku*", "gemini-3.5-flash-lite"),
    ("claude-*", "gemini-3.6-flash"),
    ("gpt-*nano*", "gemini-3.5-flash-lite"),
    ("gpt-*mini*", "gemini-3.5-flash-lite"),
    ("gpt-*pro*", "gemini-3.1-pro-preview"),
    ("gpt-*", "gemini-3.6-flash"),
    ("chatgpt-*", "gemini-3.6-flash"),
    ("codex-*", "gemini-3.6-flash"),
    ("o1*", "gemini-3.1-pro-preview"),
    ("o3*", "gemini-3.1-pro-preview"),
    ("o4*", "gemini-3.6-flash"),
    ("sonnet", "gemini-3.6-flash"),
    ("opus", "gemini-3.1-pro-preview"),
    ("haiku", "gemini-3.5-flash-lite"),
];

/// Names of the form that Claude Code's picker needs; the patterns give their meaning.
const EXAMPLES: [&str; 3] = ["claude-opus-4-5", "claude-sonnet-4-5", "claude-haiku-4-5"];

impl Models {
    /// The user's table before the built-in one.
    pub(super) fn new(written: Option<&Value>) -> Result<Self, ConfigError> {
        let mut patterns = Vec::new();
        match written {
            None => {}
            Some(Value::Table(table)) => {
                for (pattern, value) in table {
                    patterns.push((pattern.clone(), meaning(pattern, value)?));
                }
            }
            Some(_) => return Err(wrong("models", "must be a table")),
        }
        patterns.extend(BUILT_IN.iter().map(|(pattern, model)| {
            let meaning = Meaning { model: (*model).to_owned(), ..Meaning::default() };
            ((*pattern).to_owned(), meaning)
        }));
        Ok(Self { patterns })
    }

    /// What `name` means. A Gemini name means itself, and so does a name that no pattern knows.
    pub fn meaning(&self, name: &str) -> Meaning {
        let name = name.strip_prefix("models/").unwrap_or(name);
        // Claude Code marks long contexts as `model[1m]`; no Gemini model is called so.
        let plain = name.split_once('[').map_or(name, |(plain, _)| plain);
        self.find(plain)
            .cloned()
            .unwrap_or_else(|| Meaning { model: plain.to_owned(), ..Meaning::default() })
    }

    fn find(&self, name: &str) -> Option<&Meaning> {
        self.patterns.iter().find(|(pattern, _)| matches(pattern, name)).map(|(_, meaning)| meaning)
    }

    /// The names that the configuration gives a meaning, for model lists: those without `*`, and a
    /// few of those that the patterns know. Each comes once.
    pub fn names(&self) -> impl Iterator<Item = (&str, &Meaning)> {
        let plain = self.patterns.iter().map(|(pattern, _)| pattern.as_str());
        let names = plain.filter(|pattern| !pattern.contains('*')).chain(EXAMPLES);
        let mut seen = BTreeSet::new();
        names
            .filter(move |name| seen.insert(*name))
            .filter_map(|name| Some((name, self.find(name)?)))
    }
}

fn meaning(pattern: &str, value: &Value) -> Result<Meaning, ConfigError> {
    let key = format!("models.\"{pattern}\"");
    let table = match value {
        Value::String(model) if model.is_empty() => return Err(wrong(&key, "needs a model")),
        Value::String(model) => {
            return Ok(Meaning { model: model.clone(), ..Meaning::default() });
        }
        Value::Table(table) => table,
        Value::Array(_)
        | Value::Boolean(_)
        | Value::Datetime(_)
        | Value::Float(_)
        | Value::Integer(_) => return Err(wrong(&key, "must be a model's name or a table")),
    };
    let mut meaning = Meaning::default();
    for (name, value) in table {
        match (name.as_str(), value) {
            ("model", Value::String(model)) => meaning.model.clone_from(model),
            ("thinking", Value::Integer(budget)) => meaning.budget = Some(*budget),
            ("thinking", Value::String(word)) => {
                meaning.effort = Some(effort(word).ok_or_else(|| {
                    wrong(&format!("{key}.thinking"), "must be none, minimal, low, medium or high")
                })?);
            }
            ("max_output_tokens", Value::Integer(tokens)) if *tokens > 0 => {
                meaning.max_output_tokens = Some(*tokens);
            }
            _ => {
                return Err(wrong(
                    &format!("{key}.{name}"),
                    "is not understood (model, thinking and max_output_tokens are)",
                ));
            }
        }
    }
    if meaning.model.is_empty() {
        return Err(wrong(&key, "needs a model"));
    }
    Ok(meaning)
}

fn effort(word: &str) -> Option<Effort> {
    Some(match word {
        "none" => Effort::None,
        "minimal" => Effort::Minimal,
        "low" => Effort::Low,
        "medium" => Effort::Medium,
        "high" => Effort::High,
        _ => return None,
    })
}

fn wrong(key: &str, reason: &str) -> ConfigError {
    ConfigError::Value {
        key: key.to_owned(),
        source_name: "file".to_owned(),
        reason: reason.to_owned(),
    }
}

/// Whether `name` is what `pattern` describes; `*` stands for any run of characters.
fn matches(pattern: &str, name: &str) -> bool {
    let mut pieces = pattern.split('*');
    let Some(mut rest) = name.strip_prefix(pieces.next().unwrap_or("")) else { return false };
    let mut pieces = pieces.peekable();
    if pieces.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(piece) = pieces.next() {
        if pieces.peek().is_none() {
            return rest.ends_with(piece);
        }
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (pattern, name, want) in [
            ("claude-*", "claude-opus-4", true),
            ("claude-*opus*", "claude-opus-4", true),
            ("claude-*opus*", "claude-sonnet-4", false),
            ("opus", "opus", true),
            ("opus", "opus-4", false),
            ("*-mini", "gpt-5-mini", true),
            ("*-mini", "gpt-5-mini-x", false),
            ("a*b*c", "abc", true),
            ("a*b*c", "acb", false),
        ] {
            assert_eq!(matches(pattern, name), want, "{pattern} {name}");
        }
    }

    #[test]
    fn names_have_meanings() {
        let models = Models::new(None).unwrap();
        for (name, want) in [
            ("gemini-3-flash", "gemini-3-flash"),
            ("models/gemini-2.5-pro", "gemini-2.5-pro"),
            ("claude-opus-4-5", "gemini-3.1-pro-preview"),
            ("claude-3-5-sonnet-20241022", "gemini-3.6-flash"),
            ("claude-haiku-4-5[1m]", "gemini-3.5-flash-lite"),
            ("gpt-5.5", "gemini-3.6-flash"),
            ("something-else", "something-else"),
        ] {
            assert_eq!(models.meaning(name).model, want, "{name}");
        }
    }

    #[test]
    fn every_name_is_listed_once_with_its_meaning() {
        let written: Value = toml::from_str::<toml::Table>(
            "opus = \"gemini-2.5-pro\"\n\"claude-opus-4-5\" = \"gemini-4-argon\"",
        )
        .unwrap()
        .into();
        let models = Models::new(Some(&written)).unwrap();
        let mut names: Vec<_> =
            models.names().map(|(name, meaning)| (name, meaning.model.as_str())).collect();
        names.sort_unstable();
        assert_eq!(
            names,
            [
                ("claude-haiku-4-5", "gemini-3.5-flash-lite"),
                ("claude-opus-4-5", "gemini-4-argon"),
                ("claude-sonnet-4-5", "gemini-3.6-flash"),
                ("haiku", "gemini-3.5-flash-lite"),
                ("opus", "gemini-2.5-pro"),
                ("sonnet", "gemini-3.6-flash"),
            ]
        );
    }

    #[test]
    fn the_users_table_comes_first() {
        let written: Value = toml::from_str::<toml::Table>(
            "\"claude-*\" = { model = \"gemini-2.5-pro\", thinking = 1024, max_output_tokens = 9 }",
        )
        .unwrap()
        .into();
        let meaning = Models::new(Some(&written)).unwrap().meaning("claude-opus-4-5");
        assert_eq!(meaning.model, "gemini-2.5-pro");
        assert_eq!((meaning.budget, meaning.max_output_tokens), (Some(1024), Some(9)));
    }
}
