//! What Google documents about `GenerateContentResponse` and its streams, and what its SDKs
//! insist on.
//!
//! Written from the API reference, without a look at the encoder.

use std::collections::BTreeMap;

use serde_json::Value;

/// The answer as a client has it at the end.
#[derive(Debug, Default)]
pub struct Seen {
    /// The parts of all chunks, in order.
    pub parts: Vec<Value>,
    pub finish: Option<String>,
    pub metadata: Vec<(String, Value)>,
    pub usage: Option<Value>,
    pub grounding: Vec<Value>,
    pub error: Option<Value>,
}

impl Seen {
    /// The answer's words.
    pub fn text(&self) -> String {
        let words = self.parts.iter().filter(|part| part.get("thought").is_none());
        words.filter_map(|part| part["text"].as_str()).collect()
    }
}

/// Reads a stream with `alt=sse` as Google's SDKs do: line by line, data lines only. After an error
/// the same may stand bare, which is where some of them look for it.
#[track_caller]
pub fn check_sse(bytes: &[u8]) -> Seen {
    let text = std::str::from_utf8(bytes).expect("a stream is UTF-8");
    assert!(!text.contains(['\u{2028}', '\u{2029}', '\u{85}']), "a stray line break");
    let mut chunks: Vec<Value> = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        if let Some(bare) = rest.strip_suffix('\n').filter(|rest| rest.starts_with('{')) {
            let bare: Value = serde_json::from_str(bare).expect("a bare error is JSON");
            assert!(bare.get("error").is_some(), "neither data nor an error: {bare}");
            assert_eq!(Some(&bare), chunks.last(), "another error than the one before");
            break;
        }
        let (frame, after) = rest.split_once("\r\n\r\n").expect("frames end in a blank line");
        rest = after;
        let data = frame.strip_prefix("data: ").unwrap_or_else(|| panic!("not data: {frame:?}"));
        assert!(!data.contains(['\r', '\n']), "data is one line: {frame:?}");
        chunks.push(serde_json::from_str(data).expect("data is JSON"));
    }
    check_chunks(&chunks)
}

/// Reads a stream without `alt=sse`: one array.
#[track_caller]
pub fn check_array(bytes: &[u8]) -> Seen {
    let chunks: Vec<Value> = serde_json::from_slice(bytes).expect("the stream is an array");
    check_chunks(&chunks)
}

/// Reads a whole answer.
#[track_caller]
pub fn check_response(bytes: &[u8]) -> Seen {
    let seen = check_chunks(&[serde_json::from_slice(bytes).expect("a body is JSON")]);
    assert!(seen.finish.is_some(), "a whole answer has a finishReason");
    seen
}

#[track_caller]
fn check_chunks(chunks: &[Value]) -> Seen {
    let mut seen = Seen::default();
    let mut others: BTreeMap<u64, Seen> = BTreeMap::new();
    let mut names: Option<(Value, Value)> = None;
    for chunk in chunks {
        assert!(seen.finish.is_none(), "a chunk after the finish: {chunk}");
        assert!(seen.error.is_none(), "a chunk after an error: {chunk}");
        if let Some(error) = chunk.get("error") {
            check_error(chunk);
            seen.error = Some(error.clone());
            continue;
        }
        for (key, value) in chunk.as_object().expect("a response") {
            match key.as_str() {
                "candidates" => {
                    let candidates = value.as_array().expect("a list");
                    assert!(!candidates.is_empty(), "no candidate: {chunk}");
                    for candidate in candidates {
                        match candidate["index"].as_u64().expect("an index") {
                            0 => check_candidate(candidate, &mut seen),
                            index => check_candidate(candidate, others.entry(index).or_default()),
                        }
                    }
                }
                "usageMetadata" => {
                    check_usage(value);
                    seen.usage = Some(value.clone());
                }
                "modelVersion" | "responseId" => assert!(value.is_string()),
                "promptFeedback" => {
                    assert_eq!(chunk.get("candidates"), None, "a blocked prompt has no answer");
                    let reason = value["blockReason"].as_str().expect("a word");
                    seen.finish = Some(reason.to_owned());
                }
                _ => panic!("not in a response: {key}"),
            }
        }
        let now = (chunk["modelVersion"].clone(), chunk["responseId"].clone());
        assert_eq!(*names.get_or_insert_with(|| now.clone()), now, "the names change");
    }
    seen
}

#[track_caller]
fn check_candidate(candidate: &Value, seen: &mut Seen) {
    for (key, value) in candidate.as_object().expect("a candidate") {
        match key.as_str() {
            "content" => {
                // Google sends an empty content if a call could not be read.
                let is_nothing = value.as_object().is_some_and(serde_json::Map::is_empty);
                assert!(value["role"] == "model" || is_nothing, "{candidate}");
                let Some(parts) = value.get("parts") else {
                    assert!(candidate.get("finishReason").is_some(), "no parts: {candidate}");
                    continue;
                };
                let parts = parts.as_array().expect("a list");
                assert!(!parts.is_empty(), "an empty list: {candidate}");
                for part in parts {
                    check_part(part);
                    seen.parts.push(part.clone());
                }
            }
            "index" => assert!(value.is_u64()),
            "finishReason" => {
                let reason = value.as_str().expect("a word");
                assert!(reason.bytes().all(|b| b.is_ascii_uppercase() || b == b'_'), "{reason}");
                seen.finish = Some(reason.to_owned());
            }
            "finishMessage" => assert!(value.is_string()),
            "citationMetadata" | "urlContextMetadata" => {
                assert!(value.is_object());
                seen.metadata.push((key.clone(), value.clone()));
            }
            "safetyRatings" => assert!(value.is_array()),
            "groundingMetadata" => {
                assert!(value.is_object());
                seen.grounding.push(value.clone());
            }
            _ => panic!("not in a candidate: {key}"),
        }
    }
}

#[track_caller]
fn check_part(part: &Value) {
    let members = part.as_object().expect("a part");
    let modifiers = ["thought", "thoughtSignature", "videoMetadata", "mediaResolution"];
    let data: Vec<_> = members.keys().filter(|key| !modifiers.contains(&key.as_str())).collect();
    assert_eq!(data.len(), 1, "one data member: {part}");
    if let Some(thought) = members.get("thought") {
        assert_eq!(thought, true);
        assert!(members.contains_key("text"), "a thought is text: {part}");
    }
    if let Some(signature) = members.get("thoughtSignature") {
        let text = signature.as_str().expect("a signature is a string");
        let base64 = |b: u8| b.is_ascii_alphanumeric() || b"+/-_=".contains(&b);
        assert!(text.bytes().all(base64), "SDKs decode it: {part}");
    }
    let body = &part[data[0]];
    match data[0].as_str() {
        "text" => assert!(body.is_string()),
        "functionCall" => {
            assert!(body["name"].as_str().is_some_and(|name| !name.is_empty()), "{part}");
            assert!(body["args"].is_object(), "{part}");
            assert!(body.get("id").is_none_or(Value::is_string), "{part}");
        }
        "inlineData" => assert!(body["mimeType"].is_string() && body["data"].is_string()),
        "fileData" => assert!(body["fileUri"].is_string()),
        "executableCode" | "codeExecutionResult" | "toolCall" | "toolResponse" => {
            assert!(body.is_object(), "{part}");
        }
        // Unknown kinds are passed on unchanged.
        _ => {}
    }
}

#[track_caller]
fn check_usage(usage: &Value) {
    for (key, value) in usage.as_object().expect("usage") {
        let known = [
            "promptTokenCount",
            "cachedContentTokenCount",
            "candidatesTokenCount",
            "thoughtsTokenCount",
            "toolUsePromptTokenCount",
            "totalTokenCount",
        ];
        let is_count = known.contains(&key.as_str()) && value.is_u64();
        let is_detail = key.ends_with("TokensDetails") && value.is_array();
        assert!(is_count || is_detail || key == "serviceTier", "{usage}");
    }
}

/// Reads an error envelope.
#[track_caller]
pub fn check_error(body: &Value) {
    assert_eq!(body.as_object().unwrap().len(), 1, "an error stands alone: {body}");
    let error = &body["error"];
    assert!(error["code"].as_u64().is_some_and(|code| (400..600).contains(&code)), "{body}");
    assert!(error["message"].is_string() && error["status"].is_string(), "{body}");
    for detail in error.get("details").and_then(Value::as_array).into_iter().flatten() {
        let kind = detail["@type"].as_str().expect("a detail has a type");
        assert!(kind.starts_with("type.googleapis.com/google.rpc."), "{kind}");
    }
}
