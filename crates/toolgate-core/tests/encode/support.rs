//! Small words for big structures.

use serde_json::Value;
use toolgate_core::canon::{
    Backend, BadRequest, Call, CallInput, Function, Issuer, LossCode, Media, MediaSource, Part,
    Request, ResultPart, Role, SchemaForm, Signature, Target, Tool, ToolName, ToolResult, Turn,
};
use toolgate_core::json::{Raw, Text};
use toolgate_core::schema::Cache;
use toolgate_core::upstream::generate_content::{EncodeOptions, Encoded, encode_request};

use crate::checker;

pub(crate) const OLD: &str = "gemini-2.5-flash";
pub(crate) const NEW: &str = "gemini-3.8-flash";

pub(crate) fn dev(model: &str) -> Target {
    Target { model: model.to_owned(), backend: Backend::Developer }
}

pub(crate) fn vertex(model: &str) -> Target {
    Target { model: model.to_owned(), backend: Backend::Vertex }
}

pub(crate) fn raw(json: &str) -> Raw<'static> {
    Raw::parse(json.to_owned()).expect("test JSON parses")
}

pub(crate) fn text(words: &str) -> Part<'static> {
    Part::text(Text::new(words))
}

pub(crate) fn thought(words: &str, signature: Option<Signature<'static>>) -> Part<'static> {
    Part::Thought { text: Text::new(words), signature }
}

pub(crate) fn call(id: &str, name: &str, args: &str) -> Part<'static> {
    Part::Call(a_call(id, name, args))
}

pub(crate) fn a_call(id: &str, name: &str, args: &str) -> Call<'static> {
    Call {
        id: id.to_owned().into(),
        upstream_id: None,
        tool: ToolName::plain(name.to_owned()),
        input: CallInput::Json(raw(args)),
        signature: None,
    }
}

pub(crate) fn signed_call(id: &str, name: &str, signature: Signature<'static>) -> Part<'static> {
    Part::Call(Call { signature: Some(signature), ..a_call(id, name, "{}") })
}

pub(crate) fn signature(value: &str, target: &Target) -> Signature<'static> {
    Signature::new(value.to_owned(), Some(target.issuer())).expect("not empty")
}

pub(crate) fn issuer(model: &str, backend: Backend) -> Issuer {
    Issuer { model: model.to_owned(), backend }
}

pub(crate) fn a_result(id: &str, content: Vec<ResultPart<'static>>) -> ToolResult<'static> {
    ToolResult {
        call_id: (!id.is_empty()).then(|| id.to_owned().into()),
        tool: None,
        is_error: false,
        content,
        modifiers: Vec::new(),
    }
}

pub(crate) fn result(id: &str, words: &str) -> Part<'static> {
    Part::Result(a_result(id, vec![ResultPart::Text(Text::new(words))]))
}

/// As Google's own SDKs answer: by name, without an id.
pub(crate) fn named_result(name: &str, json: &str) -> Part<'static> {
    let content = vec![ResultPart::Json(raw(json))];
    Part::Result(ToolResult {
        tool: Some(ToolName::plain(name.to_owned())),
        ..a_result("", content)
    })
}

pub(crate) fn picture(mime: &'static str, data: &str) -> Media<'static> {
    Media {
        mime: (!mime.is_empty()).then(|| mime.into()),
        source: MediaSource::Inline(Text::new(data)),
        name: None,
        modifiers: Vec::new(),
    }
}

pub(crate) fn user(parts: Vec<Part<'static>>) -> Turn<'static> {
    Turn { role: Role::User, parts }
}

pub(crate) fn model(parts: Vec<Part<'static>>) -> Turn<'static> {
    Turn { role: Role::Model, parts }
}

pub(crate) fn instruction(words: &str) -> Turn<'static> {
    Turn { role: Role::Instruction, parts: vec![text(words)] }
}

pub(crate) fn says(turns: Vec<Turn<'static>>) -> Request<'static> {
    Request { turns, ..Request::default() }
}

pub(crate) fn asks(words: &str) -> Request<'static> {
    says(vec![user(vec![text(words)])])
}

pub(crate) fn function(name: &str) -> Function<'static> {
    Function {
        name: ToolName::plain(name.to_owned()),
        description: Some(Text::new("Does something.")),
        parameters: Some(raw(r#"{"type":"object","properties":{"path":{"type":"string"}}}"#)),
        form: SchemaForm::JsonSchema,
        response: None,
        deferred: false,
        at: "tools[0]".to_owned(),
        schema_field: "parameters",
    }
}

pub(crate) fn tool(name: &str) -> Tool<'static> {
    Tool::Function(function(name))
}

/// Encodes, checks against the independent checker, and reads the body.
#[track_caller]
pub(crate) fn encode(request: &Request<'_>, target: &Target) -> (Value, Encoded) {
    let cache = Cache::default();
    encode_with(request, target, &EncodeOptions::new(&cache))
}

#[track_caller]
pub(crate) fn encode_with(
    request: &Request<'_>,
    target: &Target,
    options: &EncodeOptions<'_>,
) -> (Value, Encoded) {
    let encoded = encode_request(request, target, options).expect("the request encodes");
    let body: Value = serde_json::from_slice(&encoded.body).expect("the body is JSON");
    if let Err(broken) = checker::check(&body, target) {
        panic!("{broken}\n{}", String::from_utf8_lossy(&encoded.body));
    }
    (body, encoded)
}

pub(crate) fn refuse(request: &Request<'_>, target: &Target) -> BadRequest {
    let cache = Cache::default();
    encode_request(request, target, &EncodeOptions::new(&cache)).expect_err("it must not encode")
}

#[track_caller]
pub(crate) fn contents(request: &Request<'_>, target: &Target) -> Value {
    encode(request, target).0["contents"].clone()
}

pub(crate) fn codes(encoded: &Encoded) -> Vec<LossCode> {
    encoded.losses.iter().map(|loss| loss.code).collect()
}

/// The conversation in short: `user: text | model: call* call | user: response`. A star is a real
/// signature, a plus the placeholder.
#[track_caller]
pub(crate) fn shape(request: &Request<'_>, target: &Target) -> String {
    let contents = contents(request, target);
    let contents: Vec<String> = contents
        .as_array()
        .expect("contents is an array")
        .iter()
        .map(|content| {
            let parts: Vec<String> = content["parts"]
                .as_array()
                .expect("parts is an array")
                .iter()
                .map(part_shape)
                .collect();
            format!("{}: {}", content["role"].as_str().unwrap_or_default(), parts.join(" "))
        })
        .collect();
    contents.join(" | ")
}

fn part_shape(part: &Value) -> String {
    let kind = match part.as_object().and_then(|part| part.keys().next()).map(String::as_str) {
        Some("functionCall") => part["functionCall"]["name"].as_str().unwrap_or_default().into(),
        Some("functionResponse") => {
            let response = &part["functionResponse"];
            let name = response["name"].as_str().unwrap_or_default();
            let error = if response["response"].get("error").is_some() { "!" } else { "" };
            format!("={name}{error}")
        }
        Some("text") if part["thought"] == true => "thought".to_owned(),
        Some("text") if part["text"] == "" => "empty".to_owned(),
        Some(kind) => kind.to_owned(),
        None => "nothing".to_owned(),
    };
    let mark = match part["thoughtSignature"].as_str() {
        Some("skip_thought_signature_validator") => "+",
        Some(_) => "*",
        None => "",
    };
    kind + mark
}
