//! Turns from Gemini's `Content`, with the issuer of each signature.

use std::borrow::Cow;

use serde::Deserialize;
use toolgate_core::canon::Backend;
use toolgate_core::canon::{
    Call, CallInput, Issuer, Media, MediaSource, Part, ResultPart, Role, Signature, ToolName,
    ToolResult, Turn,
};
use toolgate_core::json::{Fields, Kind, Raw, Text};
use toolgate_core::seal::{Envelope, Sealed};

/// Reads a turn.
pub(super) fn turn(json: &str) -> Result<Turn<'static>, String> {
    let content = fields(json, "a content")?;
    let role = match text_of(&content, "role")?.as_deref() {
        Some("user") => Role::User,
        Some("model") => Role::Model,
        Some("system") => Role::Instruction,
        _ => return Err("the role is none of `user`, `model`, `system`".to_owned()),
    };
    let parts = content.get("parts").and_then(Raw::items).ok_or("`parts` is not a list")?;
    let parts = parts.iter().map(part).collect::<Result<Vec<_>, _>>()?;
    Ok(Turn { role, parts })
}

/// Reads a `functionResponse` part.
pub(super) fn result(json: &str) -> Result<ToolResult<'static>, String> {
    let raw = Raw::parse(json.to_owned()).ok_or("a part is not JSON")?;
    match part(&raw)? {
        Part::Result(result) => Ok(result),
        Part::Text { .. }
        | Part::Thought { .. }
        | Part::Media(_)
        | Part::Call(_)
        | Part::Sealed(_)
        | Part::Gemini(_) => Err("a result is not a `functionResponse`".to_owned()),
    }
}

fn part(raw: &Raw<'_>) -> Result<Part<'static>, String> {
    let members = fields(raw.get(), "a part")?;
    let issuer = members.get("issuer").map(issuer).transpose()?;
    let has = |name: &str| members.get(name).is_some();
    let only = |known: &[&str]| members.0.iter().all(|(name, _)| known.contains(&&**name));
    let signature = || {
        let value = text_of(&members, "thoughtSignature")?;
        Ok::<_, String>(value.and_then(|value| Signature::new(value, issuer.clone())))
    };
    if has("text") && only(&["text", "thought", "thoughtSignature", "issuer"]) {
        let text = text_of(&members, "text")?.unwrap_or_default();
        let (text, signature) = (Text::new(&text), signature()?);
        let is_thought = members.get("thought").is_some_and(|raw| raw.get() == "true");
        return Ok(match is_thought {
            true => Part::Thought { text, signature },
            false => Part::Text { text, signature },
        });
    }
    if let Some(raw) = members.get("functionCall") {
        return call(raw, signature()?).map(Part::Call);
    }
    if let Some(raw) = members.get("functionResponse") {
        return tool_result(raw).map(Part::Result);
    }
    if let Some(media) = media(&members)? {
        return Ok(Part::Media(media));
    }
    match issuer {
        Some(issuer) => {
            let part = without_issuer(&members).ok_or("a part is not JSON")?;
            Ok(Part::Sealed(Envelope { on: Sealed::Part(part), issuer }))
        }
        None => Ok(Part::Gemini(raw.clone().into_owned())),
    }
}

fn call(raw: &Raw<'_>, signature: Option<Signature<'static>>) -> Result<Call<'static>, String> {
    let members = fields(raw.get(), "`functionCall`")?;
    let name = text_of(&members, "name")?.ok_or("a call has no name")?;
    let tool = ToolName {
        namespace: text_of(&members, "namespace")?.map(Cow::Owned),
        name: Cow::Owned(name),
    };
    let input = match members.get("args") {
        Some(args) if args.kind() == Kind::String => {
            CallInput::Text(args.clone().into_owned().into_text().unwrap_or(Text::EMPTY))
        }
        Some(args) => CallInput::Json(args.clone().into_owned()),
        None => CallInput::Json(Raw::empty_object()),
    };
    Ok(Call {
        id: Cow::Owned(text_of(&members, "id")?.unwrap_or_default()),
        upstream_id: text_of(&members, "upstreamId")?.map(Cow::Owned),
        signature: signature.map(|it| it.of_tool(&tool)),
        tool,
        input,
    })
}

fn tool_result(raw: &Raw<'_>) -> Result<ToolResult<'static>, String> {
    let members = fields(raw.get(), "`functionResponse`")?;
    let response =
        members.get("response").map_or_else(Raw::empty_object, |it| it.clone().into_owned());
    let (is_error, part) = response_part(response);
    let mut content = vec![part];
    for item in members.get("parts").and_then(Raw::items).unwrap_or_default() {
        let media = media(&fields(item.get(), "a part of a result")?)?;
        content.push(ResultPart::Media(media.ok_or("a part of a result is not media")?));
    }
    let known = ["id", "name", "response", "parts"];
    Ok(ToolResult {
        call_id: text_of(&members, "id")?.map(Cow::Owned),
        tool: text_of(&members, "name")?.map(ToolName::plain),
        is_error,
        content,
        modifiers: others(&members, &known),
    })
}

/// A text or a value where the response has nothing else, so that it is written as it was.
fn response_part(response: Raw<'static>) -> (bool, ResultPart<'static>) {
    let inner = match response.fields() {
        Some(Fields(members)) => match &members[..] {
            [(name, value)] if name == "error" || name == "result" => {
                Some((name == "error", value.clone().into_owned()))
            }
            _ => None,
        },
        None => None,
    };
    match inner {
        Some((is_error, value)) if value.kind() == Kind::String => {
            (is_error, ResultPart::Text(value.into_text().unwrap_or(Text::EMPTY)))
        }
        Some((is_error, value)) if value.kind() != Kind::Object => {
            (is_error, ResultPart::Json(value))
        }
        Some((is_error, _)) => (is_error, ResultPart::Json(response)),
        None => (false, ResultPart::Json(response)),
    }
}

fn media(members: &Fields<'_>) -> Result<Option<Media<'static>>, String> {
    let (kind, key) = match (members.get("inlineData"), members.get("fileData")) {
        (Some(_), _) => ("inlineData", "data"),
        (None, Some(_)) => ("fileData", "fileUri"),
        (None, None) => return Ok(None),
    };
    let data = fields(members.get(kind).map_or("null", Raw::get), kind)?;
    let text = text_of(&data, key)?.ok_or_else(|| format!("`{kind}` has no `{key}`"))?;
    let text = Text::new(&text);
    Ok(Some(Media {
        mime: text_of(&data, "mimeType")?.map(Cow::Owned),
        source: match kind {
            "inlineData" => MediaSource::Inline(text),
            _ => MediaSource::Uri(text),
        },
        name: text_of(&data, "displayName")?.map(Cow::Owned),
        modifiers: others(members, &[kind]),
    }))
}

fn issuer(raw: &Raw<'_>) -> Result<Issuer, String> {
    let members = fields(raw.get(), "`issuer`")?;
    let backend = match text_of(&members, "backend")?.as_deref() {
        Some("developer") => Backend::Developer,
        Some("vertex") => Backend::Vertex,
        _ => return Err("the back end of an issuer is neither `developer` nor `vertex`".to_owned()),
    };
    let model = text_of(&members, "model")?.ok_or("an issuer has no model")?;
    Ok(Issuer { model, backend })
}

fn without_issuer(members: &Fields<'_>) -> Option<Raw<'static>> {
    let mut json = String::from("{");
    for (name, raw) in members.0.iter().filter(|(name, _)| name != "issuer") {
        if json.len() > 1 {
            json.push(',');
        }
        json.push_str(Raw::of(&**name)?.get());
        json.push(':');
        json.push_str(raw.get());
    }
    json.push('}');
    Raw::parse(json)
}

fn others(members: &Fields<'_>, known: &[&str]) -> Vec<(Cow<'static, str>, Raw<'static>)> {
    let others = members.0.iter().filter(|(name, _)| !known.contains(&&**name));
    others.map(|(name, raw)| (Cow::Owned(name.to_string()), raw.clone().into_owned())).collect()
}

fn fields<'a>(json: &'a str, what: &str) -> Result<Fields<'a>, String> {
    let mut reader = serde_json::Deserializer::from_str(json);
    Fields::deserialize(&mut reader).map_err(|_| format!("{what} is not an object"))
}

fn text_of(members: &Fields<'_>, name: &str) -> Result<Option<String>, String> {
    match members.get(name) {
        None => Ok(None),
        Some(raw) => match raw.as_text() {
            Some(text) => Ok(Some(text.decode().into_owned())),
            None => Err(format!("`{name}` is not a string")),
        },
    }
}
