//! Bodies that repeat one small thing.

use toolgate_core::canon::{BadRequest, DecodeOptions, Decoded};
use toolgate_core::gemini::upstream::{Backend, EncodeOptions, Encoded, Target, encode_request};
use toolgate_core::schema::Cache;
use toolgate_core::seal::Sealer;
use toolgate_core::translate::{Dialect, Echo, decode_request};

/// A body that repeats one thing.
pub(crate) struct Shape {
    pub(crate) dialect: Dialect,
    pub(crate) name: &'static str,
    head: &'static str,
    /// What is repeated; `~` stands for its number.
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
