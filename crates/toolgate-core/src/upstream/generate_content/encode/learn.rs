//! Learning from what Google refuses.

use super::Learned;
use crate::upstream::generate_content::Exchange;
use crate::upstream::generate_content::history::camel;

impl Learned {
    /// Takes what Google said about a request that it refused (HTTP 400). `true`: there is
    /// something new to leave out, so the same request may succeed when it is encoded again.
    ///
    /// ```
    /// use toolgate_core::upstream::generate_content::{Exchange, Learned};
    /// use toolgate_core::canon::{Backend, Target};
    ///
    /// let target = Target { model: "gemini-3-flash-preview".into(), backend: Backend::Vertex };
    /// let exchange =
    ///     Exchange { target, tools: vec![], one_call: false, answer_function: None };
    /// let message = r#"Unknown name "id" at 'contents[1].parts[0].function_call'"#;
    /// let mut learned = Learned::default();
    /// assert!(learned.learn(message, &exchange) && learned.no_call_ids);
    /// assert!(!learned.learn(message, &exchange));
    /// ```
    pub fn learn(&mut self, message: &str, exchange: &Exchange) -> bool {
        let before = self.clone();
        // Google writes some of its names in snake_case, some in camelCase.
        let plain: String = message.chars().filter(|char| *char != '_').collect();
        let plain = plain.to_ascii_lowercase();
        let has = |words: &str| plain.contains(words);
        let unknown = |name: &str| has(&format!("unknown name \"{name}\""));

        if unknown("id") && (has("functioncall") || has("functionresponse")) {
            self.no_call_ids = true;
        }
        if unknown("parametersjsonschema") {
            self.no_json_schema = true;
        }
        if has("functionresponse.parts") && has("not supported")
            || unknown("parts") && has("functionresponse")
        {
            self.no_response_media = true;
        }
        if has("tool use with function calling is unsupported")
            || has("multiple tools are supported only")
            || has("includeserversidetoolinvocations")
            || has("tool call context circulation is not enabled")
        {
            self.no_mixed_tools = true;
        }
        if has("with a response mime type") {
            self.no_json_beside_tools = true;
        }
        for (words, members) in REFUSED {
            if has(words) {
                self.generation.extend(members.iter().map(|name| (*name).to_owned()));
            }
        }
        if has("generationconfig")
            && let Some(name) = between(message, "Unknown name \"", "\"")
        {
            let name = camel(name.into());
            self.generation.insert(name.into_owned());
        }
        self.learn_tools(message, exchange);
        *self != before
    }

    /// Google names the tool at fault by its place, Vertex by its name.
    fn learn_tools(&mut self, message: &str, exchange: &Exchange) {
        let mut rest = message;
        while let Some((_, after)) = rest.split_once("function_declarations[") {
            let number = after.split(']').next().and_then(|number| number.parse::<usize>().ok());
            if let Some(entry) = number.and_then(|number| exchange.tools.get(number)) {
                self.tools.insert(entry.name.clone());
            }
            rest = after;
        }
        if !message.contains("unctionDeclaration") {
            return;
        }
        let quoted = message.split(['`', '\'']).skip(1).step_by(2);
        for name in quoted {
            if let Some(entry) = exchange.tools.iter().find(|entry| entry.alias == name) {
                self.tools.insert(entry.name.clone());
            }
        }
    }
}

/// What Google says, without underscores and in lower case, and the members that it is about.
const REFUSED: [(&str, &[&str]); 5] = [
    ("penalty is not enabled", &["presencePenalty", "frequencyPenalty"]),
    ("logprobs is not enabled", &["responseLogprobs", "logprobs"]),
    ("thinking level", &["thinkingConfig"]),
    ("thinkingbudget", &["thinkingConfig"]),
    ("includethoughts is only enabled", &["thinkingConfig"]),
];

fn between<'t>(text: &'t str, start: &str, end: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(start)?;
    rest.split_once(end).map(|(inner, _)| inner)
}
