//! Bodies that repeat one small thing.

use toolgate_core::canon::{Backend, BadRequest, Target};
use toolgate_core::dialect::{DecodeOptions, Decoded};
use toolgate_core::schema::Cache;
use toolgate_core::seal::Sealer;
use toolgate_core::translate::{Dialect, Echo, decode_request};
use toolgate_core::upstream::generate_content::{EncodeOptions, Encoded, encode_request};

/// A body that repeats one thing.
pub(crate) struct Shape {
    pub(crate) dialect: Dialect,
    pub(crate) name: &'static str,
    head: &'static str,
    /// The repeated text; `~` stands for its number.
    item: &'static str,
    tail: &'static str,
}

impl Shape {
    /// The body with `count` repetitions.
    pub(crate) fn body(&self, count: usize) -> String {
        let items: Vec<String> =
            (0..count).map(|number| self.item.replace('~', &number.to_string())).collect();
        format!("{}{}{}", self.head, items.join(","), self.tail)
    }
}

/// Decodes a body with a fixed key.
pub(crate) fn decode(dialect: Dialect, body: &str) -> Result<Decoded<'_, Echo>, BadRequest> {
    let sealer = Sealer::with_key([7; 32]);
    decode_request(dialect, body, &DecodeOptions { sealer: &sealer })
}

/// Decodes a body and encodes it for a model that demands signatures.
pub(crate) fn translate(dialect: Dialect, body: &str) -> Result<Encoded, BadRequest> {
    let mut request = decode(dialect, body)?.request;
    let mut losses = request.place_signatures();
    let target = Target { model: "gemini-3.6-flash".into(), backend: Backend::Developer };
    let mut encoded = encode_request(&request, &target, &EncodeOptions::new(&Cache::default()))?;
    losses.append(&mut encoded.losses);
    Ok(Encoded { losses, ..encoded })
}

const fn shape(
    dialect: Dialect,
    name: &'static str,
    head: &'static str,
    item: &'static str,
    tail: &'static str,
) -> Shape {
    Shape { dialect, name, head, item, tail }
}

/// Something that no version knows, repeated.
pub(crate) const UNKNOWN: [Shape; 11] = {
    use Dialect::{Anthropic, Chat, Gemini, Responses};
    [
        shape(
            Anthropic,
            "fields",
            r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"}],"#,
            r#""a~":1"#,
            "}",
        ),
        shape(
            Anthropic,
            "fields of a block",
            r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"text","text":"x","#,
            r#""a~":1"#,
            "}]}]}",
        ),
        shape(
            Anthropic,
            "blocks",
            r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":["#,
            r#"{"type":"q"}"#,
            "]}]}",
        ),
        shape(
            Chat,
            "fields",
            r#"{"model":"m","messages":[{"role":"user","content":"x"}],"#,
            r#""a~":1"#,
            "}",
        ),
        shape(
            Chat,
            "parts",
            r#"{"model":"m","messages":[{"role":"user","content":["#,
            r#"{"type":"q"}"#,
            r#",{"text":"x"}]}]}"#,
        ),
        shape(
            Chat,
            "results",
            r#"{"model":"m","messages":["#,
            r#"{"role":"tool","tool_call_id":"call_~"}"#,
            "]}",
        ),
        shape(
            Gemini,
            "fields",
            r#"{"model":"m","contents":[{"parts":[{"text":"x"}]}],"#,
            r#""a~":1"#,
            "}",
        ),
        shape(
            Gemini,
            "parts",
            r#"{"model":"m","contents":[{"parts":["#,
            "{}",
            r#",{"text":"x"}]}]}"#,
        ),
        shape(Responses, "fields", r#"{"model":"m","input":"x","#, r#""a~":1"#, "}"),
        shape(Responses, "items", r#"{"model":"m","input":["#, r#"{"type":"q"}"#, "]}"),
        shape(
            Responses,
            "calls without results",
            r#"{"model":"m","input":["#,
            r#"{"type":"function_call","call_id":"call_~","name":"f"}"#,
            r#",{"role":"user","content":"x"}]}"#,
        ),
    ]
};

/// Something small that a conversation, its tools or its settings hold, repeated.
pub(crate) const SMALL: [Shape; 40] = {
    use Dialect::{Anthropic, Chat, Gemini, Responses};
    [
        shape(
            Anthropic,
            "messages",
            r#"{"model":"m","max_tokens":9,"messages":["#,
            r#"{"role":"user","content":"x"}"#,
            "]}",
        ),
        shape(
            Anthropic,
            "both sides",
            r#"{"model":"m","max_tokens":9,"messages":["#,
            r#"{"role":"user","content":"x"},{"role":"assistant","content":"x"}"#,
            "]}",
        ),
        shape(
            Anthropic,
            "blocks",
            r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":["#,
            r#"{"type":"text","text":"x"}"#,
            "]}]}",
        ),
        shape(
            Anthropic,
            "unknown blocks",
            r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":["#,
            r#"{"type":"q"}"#,
            "]}]}",
        ),
        shape(
            Anthropic,
            "calls",
            r#"{"model":"m","max_tokens":9,"messages":[{"role":"assistant","content":["#,
            r#"{"type":"tool_use","id":"~","name":"f","input":{}}"#,
            r#"]},{"role":"user","content":"x"}]}"#,
        ),
        shape(
            Anthropic,
            "results",
            r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":["#,
            r#"{"type":"tool_result","tool_use_id":"~"}"#,
            "]}]}",
        ),
        shape(
            Anthropic,
            "parts of a result",
            r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":["#,
            r#"{"type":"text","text":"x"}"#,
            "]}]}]}",
        ),
        shape(
            Anthropic,
            "tools",
            r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"}],"tools":["#,
            r#"{"name":"f~"}"#,
            "]}",
        ),
        shape(
            Anthropic,
            "toolsets",
            r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"}],"tools":["#,
            r#"{"type":"computer_toolset_20260801","name":"c~"}"#,
            "]}",
        ),
        shape(
            Anthropic,
            "stop sequences",
            r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"}],"stop_sequences":["#,
            r#""~""#,
            "]}",
        ),
        shape(
            Chat,
            "messages",
            r#"{"model":"m","messages":["#,
            r#"{"role":"user","content":"x"}"#,
            "]}",
        ),
        shape(
            Chat,
            "empty messages",
            r#"{"model":"m","messages":["#,
            r#"{"role":"user"}"#,
            r#",{"role":"user","content":"x"}]}"#,
        ),
        shape(Chat, "nothings", r#"{"model":"m","messages":["#, "{}", "]}"),
        shape(
            Chat,
            "parts",
            r#"{"model":"m","messages":[{"role":"user","content":["#,
            r#"{"text":"x"}"#,
            "]}]}",
        ),
        shape(
            Chat,
            "calls",
            r#"{"model":"m","messages":[{"role":"assistant","tool_calls":["#,
            r#"{"function":{"name":"f"}}"#,
            r#"]},{"role":"user","content":"x"}]}"#,
        ),
        shape(
            Chat,
            "calls and results",
            r#"{"model":"m","messages":["#,
            r#"{"role":"assistant","tool_calls":[{"id":"~","function":{"name":"f"}}]},{"role":"tool","tool_call_id":"~"}"#,
            "]}",
        ),
        shape(
            Chat,
            "tools",
            r#"{"model":"m","messages":[{"role":"user","content":"x"}],"tools":["#,
            r#"{"function":{"name":"f~"}}"#,
            "]}",
        ),
        shape(
            Chat,
            "allowed tools",
            r#"{"model":"m","messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","name":"f"}],"tool_choice":{"type":"allowed_tools","tools":["#,
            r#"{"name":"f"}"#,
            "]}}",
        ),
        shape(
            Chat,
            "stop sequences",
            r#"{"model":"m","messages":[{"role":"user","content":"x"}],"stop":["#,
            r#""~""#,
            "]}",
        ),
        shape(
            Gemini,
            "contents",
            r#"{"model":"m","contents":["#,
            r#"{"parts":[{"text":"x"}]}"#,
            "]}",
        ),
        shape(
            Gemini,
            "empty contents",
            r#"{"model":"m","contents":["#,
            "{}",
            r#",{"parts":[{"text":"x"}]}]}"#,
        ),
        shape(Gemini, "parts", r#"{"model":"m","contents":[{"parts":["#, r#"{"text":"x"}"#, "]}]}"),
        shape(
            Gemini,
            "empty parts",
            r#"{"model":"m","contents":[{"parts":["#,
            "{}",
            r#",{"text":"x"}]}]}"#,
        ),
        shape(
            Gemini,
            "unknown parts",
            r#"{"model":"m","contents":[{"parts":["#,
            r#"{"q":1}"#,
            r#",{"text":"x"}]}]}"#,
        ),
        shape(
            Gemini,
            "calls",
            r#"{"model":"m","contents":[{"role":"model","parts":["#,
            r#"{"functionCall":{"name":"f"}}"#,
            r#"]},{"parts":[{"text":"x"}]}]}"#,
        ),
        shape(
            Gemini,
            "responses",
            r#"{"model":"m","contents":[{"parts":["#,
            r#"{"functionResponse":{"name":"f"}}"#,
            "]}]}",
        ),
        shape(
            Gemini,
            "functions",
            r#"{"model":"m","contents":[{"parts":[{"text":"x"}]}],"tools":[{"functionDeclarations":["#,
            r#"{"name":"f~"}"#,
            "]}]}",
        ),
        shape(
            Gemini,
            "server tools",
            r#"{"model":"m","contents":[{"parts":[{"text":"x"}]}],"tools":["#,
            r#"{"q":{}}"#,
            "]}",
        ),
        shape(
            Gemini,
            "members of a tool",
            r#"{"model":"m","contents":[{"parts":[{"text":"x"}]}],"tools":[{"#,
            r#""a~":1"#,
            "}]}",
        ),
        shape(
            Gemini,
            "members of the configuration",
            r#"{"model":"m","contents":[{"parts":[{"text":"x"}]}],"generationConfig":{"#,
            r#""a~":1"#,
            "}}",
        ),
        shape(
            Gemini,
            "allowed functions",
            r#"{"model":"m","contents":[{"parts":[{"text":"x"}]}],"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["#,
            r#""f""#,
            "]}}}",
        ),
        shape(
            Responses,
            "messages",
            r#"{"model":"m","input":["#,
            r#"{"role":"user","content":"x"}"#,
            "]}",
        ),
        shape(Responses, "nothings", r#"{"model":"m","input":["#, "{}", "]}"),
        shape(
            Responses,
            "parts",
            r#"{"model":"m","input":[{"role":"user","content":["#,
            r#"{"text":"x"}"#,
            "]}]}",
        ),
        shape(Responses, "unknown items", r#"{"model":"m","input":["#, r#"{"type":"q"}"#, "]}"),
        shape(
            Responses,
            "calls and outputs",
            r#"{"model":"m","input":["#,
            r#"{"type":"function_call","call_id":"~","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"~","output":""}"#,
            "]}",
        ),
        shape(
            Responses,
            "references",
            r#"{"model":"m","input":["#,
            r#"{"type":"item_reference","id":"~"}"#,
            r#",{"role":"user","content":"x"}]}"#,
        ),
        shape(
            Responses,
            "tools",
            r#"{"model":"m","input":"x","tools":["#,
            r#"{"type":"function","name":"f~"}"#,
            "]}",
        ),
        shape(
            Responses,
            "hosted tools",
            r#"{"model":"m","input":"x","tools":["#,
            r#"{"type":"apply_patch"}"#,
            "]}",
        ),
        shape(
            Responses,
            "tools of a namespace",
            r#"{"model":"m","input":"x","tools":[{"type":"namespace","name":"n","tools":["#,
            r#"{"type":"function","name":"f~"}"#,
            "]}]}",
        ),
    ]
};
