//! Turns as Gemini's `Content`, with the issuer of each signature.

use std::borrow::Cow;

use serde_json::value::RawValue;
use toolgate_core::canon::Backend;
use toolgate_core::canon::{
    Call, CallInput, Issuer, Media, MediaSource, Part, ResultPart, Role, Signature, ToolResult,
    Turn, upstream_id,
};
use toolgate_core::json::{Kind, Raw, Text};
use toolgate_core::seal::{Envelope, Sealed};

/// Members of an object, in order.
type Members<'a> = Vec<(Cow<'a, str>, Raw<'a>)>;

/// Writes a turn. `Err` names a part that has no form.
pub(super) fn content(turn: &Turn<'static>) -> Result<Box<RawValue>, String> {
    let role = match turn.role {
        Role::User => "user",
        Role::Model => "model",
        Role::Instruction => "system",
    };
    let parts = turn.parts.iter().map(part).collect::<Result<Vec<_>, _>>()?;
    raw_value(&object(vec![member("role", string(role)), member("parts", array(&parts))]))
}

/// Writes the results that a paused turn has already.
pub(super) fn results(results: &[ToolResult<'static>]) -> Result<Vec<Box<RawValue>>, String> {
    results.iter().map(|result| raw_value(&result_part(result))).collect()
}

fn part(part: &Part<'static>) -> Result<Raw<'static>, String> {
    Ok(match part {
        Part::Text { text, signature } => {
            object(signed(vec![member("text", quoted(text))], signature.as_ref()))
        }
        Part::Thought { text, signature } => {
            let members = vec![member("thought", value(&true)), member("text", quoted(text))];
            object(signed(members, signature.as_ref()))
        }
        Part::Media(media) => object(media_members(media)),
        Part::Call(call) => {
            let members = vec![member("functionCall", call_object(call))];
            object(signed(members, call.signature.as_ref()))
        }
        Part::Result(result) => result_part(result),
        Part::Sealed(Envelope { on: Sealed::Part(raw), issuer: by }) => {
            let fields = raw.fields().unwrap_or_default().0;
            let mut members: Members<'_> = fields;
            members.push(member("issuer", issuer(by)));
            object(members)
        }
        Part::Sealed(_) => {
            return Err("a sealed signature that belongs to no part cannot be saved".to_owned());
        }
        Part::Gemini(raw) => raw.clone(),
    })
}

fn call_object(call: &Call<'static>) -> Raw<'static> {
    let Call { id, upstream_id: upstream, tool, input, signature: _ } = call;
    let mut members = vec![member("id", string(id)), member("name", string(&tool.name))];
    if let Some(namespace) = &tool.namespace {
        members.push(member("namespace", string(namespace)));
    }
    // The id itself carries Gemini's, if that is short.
    if let Some(upstream) = upstream.as_deref().filter(|it| **it != *upstream_id(id)) {
        members.push(member("upstreamId", string(upstream)));
    }
    members.push(member(
        "args",
        match input {
            CallInput::Json(raw) => raw.clone(),
            CallInput::Text(text) => quoted(text),
        },
    ));
    object(members)
}

fn result_part(result: &ToolResult<'static>) -> Raw<'static> {
    let ToolResult { call_id, tool, is_error, content, modifiers } = result;
    let mut members = Vec::new();
    if let Some(id) = call_id {
        members.push(member("id", string(id)));
    }
    if let Some(tool) = tool {
        members.push(member("name", string(&tool.name)));
    }
    members.push(member("response", response(*is_error, content)));
    let media: Vec<_> = content
        .iter()
        .filter_map(|part| match part {
            ResultPart::Media(media) => Some(object(media_members(media))),
            ResultPart::Text(_) | ResultPart::Json(_) => None,
        })
        .collect();
    if !media.is_empty() {
        members.push(member("parts", array(&media)));
    }
    members.extend(modifiers.iter().cloned());
    object(vec![member("functionResponse", object(members))])
}

/// `{"result": …}`, `{"error": …}`, or an object of the tool's own. Several pieces are lines of a text,
/// as the model gets them.
fn response(is_error: bool, content: &[ResultPart<'static>]) -> Raw<'static> {
    let said: Vec<_> = content
        .iter()
        .filter_map(|part| match part {
            ResultPart::Text(text) => Some((quoted(text), text.decode())),
            ResultPart::Json(raw) => Some((raw.clone(), Cow::Borrowed(raw.get()))),
            ResultPart::Media(_) => None,
        })
        .collect();
    let said = match &said[..] {
        [(raw, _)] => {
            let has_error = || raw.fields().is_some_and(|fields| fields.get("error").is_some());
            if raw.kind() == Kind::Object && (!is_error || has_error()) {
                return raw.clone();
            }
            raw.clone()
        }
        several => {
            let lines: Vec<_> = several.iter().map(|(_, text)| &**text).collect();
            string(&lines.join("\n"))
        }
    };
    object(vec![member(if is_error { "error" } else { "result" }, said)])
}

fn media_members<'a>(media: &'a Media<'static>) -> Members<'a> {
    let Media { mime, source, name, modifiers } = media;
    let (kind, key, text) = match source {
        MediaSource::Inline(text) => ("inlineData", "data", text),
        MediaSource::Uri(uri) => ("fileData", "fileUri", uri),
    };
    let mut data = Vec::new();
    if let Some(mime) = mime {
        data.push(member("mimeType", string(mime)));
    }
    data.push(member(key, quoted(text)));
    if let Some(name) = name {
        data.push(member("displayName", string(name)));
    }
    let mut members = vec![member(kind, object(data))];
    members.extend(modifiers.iter().cloned());
    members
}

fn signed<'a>(mut members: Members<'a>, signature: Option<&Signature<'_>>) -> Members<'a> {
    if let Some(signature) = signature {
        members.push(member("thoughtSignature", string(signature.expose())));
        members.extend(signature.issuer().map(|by| member("issuer", issuer(by))));
    }
    members
}

fn issuer(issuer: &Issuer) -> Raw<'static> {
    let backend = match issuer.backend {
        Backend::Developer => "developer",
        Backend::Vertex => "vertex",
    };
    object(vec![member("model", string(&issuer.model)), member("backend", string(backend))])
}

fn member<'a>(name: &'static str, raw: Raw<'a>) -> (Cow<'a, str>, Raw<'a>) {
    (Cow::Borrowed(name), raw)
}

fn object(members: Members<'_>) -> Raw<'static> {
    let mut json = String::from("{");
    for (at, (name, raw)) in members.into_iter().enumerate() {
        if at > 0 {
            json.push(',');
        }
        json.push_str(string(&name).get());
        json.push(':');
        json.push_str(raw.get());
    }
    json.push('}');
    Raw::parse(json).unwrap_or_else(Raw::empty_object)
}

fn array(items: &[Raw<'_>]) -> Raw<'static> {
    let items: Vec<_> = items.iter().map(Raw::get).collect();
    Raw::parse(format!("[{}]", items.join(","))).unwrap_or_else(Raw::empty_object)
}

fn string(text: &str) -> Raw<'static> {
    value(text)
}

fn quoted(text: &Text<'_>) -> Raw<'static> {
    Raw::parse(text.literal().to_owned()).unwrap_or_else(|| value(&*text.decode()))
}

fn value<T: serde::Serialize + ?Sized>(value: &T) -> Raw<'static> {
    Raw::of(value).unwrap_or_else(Raw::empty_object)
}

fn raw_value(raw: &Raw<'static>) -> Result<Box<RawValue>, String> {
    RawValue::from_string(raw.get().to_owned()).map_err(|error| error.to_string())
}
