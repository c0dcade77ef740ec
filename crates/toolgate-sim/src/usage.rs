//! `usageMetadata` of an answer.

use toolgate_core::canon::Backend;
use toolgate_core::json::write;

use crate::tokens::PromptTokens;

/// Tokens used so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    pub(crate) prompt: PromptTokens,
    /// PromptTokens tokens that came from a cache.
    pub(crate) cached: u64,
    pub(crate) thoughts: u64,
    pub(crate) candidates: u64,
    pub(crate) tool_use: u64,
}

impl Usage {
    /// Writes the object. Google omits zeros; Vertex sends counts only with the last chunk.
    pub(crate) fn write(&self, out: &mut Vec<u8>, backend: Backend, last: bool) {
        out.push(b'{');
        if backend == Backend::Developer || last {
            let prompt = self.prompt.total();
            let total = prompt + self.thoughts + self.candidates + self.tool_use;
            count(out, "\"promptTokenCount\":", prompt);
            count(out, "\"candidatesTokenCount\":", self.candidates);
            count(out, "\"totalTokenCount\":", total);
            count(out, "\"cachedContentTokenCount\":", self.cached);
            details(out, "\"promptTokensDetails\":[", self.prompt);
            count(out, "\"thoughtsTokenCount\":", self.thoughts);
            count(out, "\"toolUsePromptTokenCount\":", self.tool_use);
            let tool_use = PromptTokens { text: self.tool_use, media: 0 };
            details(out, "\"toolUsePromptTokensDetails\":[", tool_use);
        }
        write::comma(out);
        out.extend_from_slice(match backend {
            Backend::Developer => b"\"serviceTier\":\"standard\"}",
            Backend::Vertex => b"\"trafficType\":\"ON_DEMAND\"}",
        });
    }
}

fn count(out: &mut Vec<u8>, key: &str, tokens: u64) {
    if tokens == 0 {
        return;
    }
    write::comma(out);
    out.extend_from_slice(key.as_bytes());
    digits(out, tokens);
}

fn details(out: &mut Vec<u8>, key: &str, prompt: PromptTokens) {
    if prompt.total() == 0 {
        return;
    }
    write::comma(out);
    out.extend_from_slice(key.as_bytes());
    let kinds = [
        ("{\"modality\":\"TEXT\",\"tokenCount\":", prompt.text),
        ("{\"modality\":\"IMAGE\",\"tokenCount\":", prompt.media),
    ];
    for (kind, tokens) in kinds.into_iter().filter(|(_, tokens)| *tokens > 0) {
        write::comma(out);
        out.extend_from_slice(kind.as_bytes());
        digits(out, tokens);
        out.push(b'}');
    }
    out.push(b']');
}

/// Writes a number without an allocation: every chunk has half a dozen counts.
fn digits(out: &mut Vec<u8>, number: u64) {
    let mut text = [b'0'; 20];
    let mut at = text.len();
    let mut rest = number;
    loop {
        at -= 1;
        text[at] = b'0' + u8::try_from(rest % 10).unwrap_or(0);
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&text[at..]);
}
