//! `usageMetadata`

use toolgate_core::gemini::Backend;
use toolgate_core::json::write;

use crate::tokens::Prompt;

/// What has been used so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    pub(crate) prompt: Prompt,
    pub(crate) thoughts: u64,
    pub(crate) candidates: u64,
    pub(crate) tool_use: u64,
}

impl Usage {
    /// Writes the object. Google leaves zeros out; Vertex says nothing before the end.
    pub(crate) fn write(&self, out: &mut Vec<u8>, backend: Backend, last: bool) {
        out.push(b'{');
        if backend == Backend::Developer || last {
            let prompt = self.prompt.total();
            let total = prompt + self.thoughts + self.candidates + self.tool_use;
            count(out, "promptTokenCount", prompt);
            count(out, "candidatesTokenCount", self.candidates);
            count(out, "totalTokenCount", total);
            details(out, "promptTokensDetails", self.prompt);
            count(out, "thoughtsTokenCount", self.thoughts);
            count(out, "toolUsePromptTokenCount", self.tool_use);
            let tool_use = Prompt { text: self.tool_use, media: 0 };
            details(out, "toolUsePromptTokensDetails", tool_use);
        }
        match backend {
            Backend::Developer => {
                write::key(out, "serviceTier");
                write::string(out, "standard");
            }
            Backend::Vertex => {
                write::key(out, "trafficType");
                write::string(out, "ON_DEMAND");
            }
        }
        out.push(b'}');
    }
}

fn count(out: &mut Vec<u8>, name: &str, tokens: u64) {
    if tokens > 0 {
        write::key(out, name);
        write::integer(out, tokens);
    }
}

fn details(out: &mut Vec<u8>, name: &str, prompt: Prompt) {
    if prompt.total() == 0 {
        return;
    }
    write::key(out, name);
    out.push(b'[');
    for (modality, tokens) in [("TEXT", prompt.text), ("IMAGE", prompt.media)] {
        if tokens > 0 {
            write::comma(out);
            out.push(b'{');
            write::key(out, "modality");
            write::string(out, modality);
            count(out, "tokenCount", tokens);
            out.push(b'}');
        }
    }
    out.push(b']');
}
