//! Token counts, estimated at four characters per token.

use serde_json::Value;
use toolgate_validate::{Content, Data, Request};

/// Tokens of a media part.
const TOKENS_PER_MEDIA: u64 = 258;

/// Tokens of a text.
pub(crate) fn of_text(text: &str) -> u64 {
    from_letters(text.chars().count())
}

/// Tokens of a JSON value.
pub(crate) fn of_json(value: &Value) -> u64 {
    from_letters(letters(value))
}

fn from_letters(letters: usize) -> u64 {
    u64::try_from(letters.div_ceil(4)).unwrap_or(u64::MAX)
}

/// Approximate length of a value as JSON text.
fn letters(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 4,
        Value::String(text) => text.chars().count() + 2,
        Value::Array(items) => items.iter().map(|item| letters(item) + 1).sum::<usize>() + 2,
        Value::Object(members) => {
            members.iter().map(|(key, value)| key.len() + letters(value) + 4).sum::<usize>() + 2
        }
    }
}

/// Tokens of a prompt, by modality.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PromptTokens {
    pub(crate) text: u64,
    pub(crate) media: u64,
}

impl PromptTokens {
    pub(crate) fn total(self) -> u64 {
        self.text + self.media
    }
}

/// Tokens of a request.
pub(crate) fn of_request(request: &Request) -> PromptTokens {
    let mut prompt = PromptTokens::default();
    for content in request.contents.iter().chain(&request.system) {
        add(content, &mut prompt);
    }
    for function in &request.functions {
        prompt.text += 8 + of_text(&function.name) + of_text(&function.description);
        prompt.text += function.schema.as_ref().map_or(0, of_json);
    }
    prompt
}

fn add(content: &Content, prompt: &mut PromptTokens) {
    for part in &content.parts {
        match &part.data {
            Data::None => {}
            Data::Text(text) => prompt.text += of_text(text),
            Data::Media { .. } => prompt.media += TOKENS_PER_MEDIA,
            Data::Call { name, args, .. } => {
                prompt.text += of_text(name) + args.values().map(of_json).sum::<u64>() + 4;
            }
            Data::Response { name, response, media, .. } => {
                prompt.text += of_text(name) + response.values().map(of_json).sum::<u64>() + 4;
                prompt.media += TOKENS_PER_MEDIA * u64::try_from(media.len()).unwrap_or(0);
            }
            Data::Server(_, value) => prompt.text += of_json(value),
        }
    }
}
