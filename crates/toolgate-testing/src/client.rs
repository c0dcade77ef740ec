//! Clients of each dialect: their view of an answer, and their next request.

use serde_json::{Map, Value, json};
use toolgate_core::translate::Dialect;

/// A client's view of an answer.
#[derive(Debug, Default, PartialEq)]
pub struct Seen {
    pub text: String,
    pub thoughts: String,
    pub calls: Vec<SeenCall>,
    /// `stop_reason`, `status`, `finish_reason`, `finishReason`.
    pub stop: String,
    /// Tokens in and out, as the dialect counts them.
    pub usage: (u64, u64),
    /// The error's type or status.
    pub error: Option<String>,
    /// The answer's pieces, to be sent back: blocks, items, one message, parts.
    pub pieces: Vec<Value>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct SeenCall {
    pub id: String,
    pub name: String,
    /// The arguments' text.
    pub args: String,
}

impl Seen {
    pub fn names(&self) -> Vec<&str> {
        self.calls.iter().map(|call| call.name.as_str()).collect()
    }
}

/// Reads a stream, or a whole body, as a client of the dialect does.
#[track_caller]
pub fn read(dialect: Dialect, bytes: &[u8]) -> Seen {
    let text = std::str::from_utf8(bytes).unwrap();
    let is_stream = !text.starts_with('{');
    let frames: Vec<Value> = if is_stream {
        let lines = text.lines().filter_map(|line| line.strip_prefix("data: "));
        lines.filter(|line| *line != "[DONE]").map(|it| serde_json::from_str(it).unwrap()).collect()
    } else {
        vec![serde_json::from_str(text).unwrap()]
    };
    match (dialect, is_stream) {
        (Dialect::Anthropic, true) => anthropic_stream(&frames),
        (Dialect::Anthropic, false) => anthropic(&frames[0]),
        (Dialect::Responses, true) => responses_stream(&frames),
        (Dialect::Responses, false) => responses(&frames[0]),
        (Dialect::Chat, true) => chat_stream(&frames),
        (Dialect::Chat, false) => {
            let choice = &frames[0]["choices"][0];
            chat(&choice["message"], &choice["finish_reason"], &frames[0]["usage"])
        }
        (Dialect::Gemini, _) => gemini(&frames),
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn tokens(usage: &Value, input: &str, output: &str) -> (u64, u64) {
    (usage[input].as_u64().unwrap_or(0), usage[output].as_u64().unwrap_or(0))
}

fn anthropic_stream(frames: &[Value]) -> Seen {
    let mut message = json!({"content": [], "usage": {}});
    let mut input = String::new();
    for frame in frames {
        let index = frame["index"].as_u64().unwrap_or(0);
        let blocks = message["content"].as_array_mut().unwrap();
        let block = usize::try_from(index).ok().and_then(|index| blocks.get_mut(index));
        match frame["type"].as_str().unwrap() {
            "message_start" => message["usage"] = frame["message"]["usage"].clone(),
            "content_block_start" => {
                input.clear();
                blocks.push(frame["content_block"].clone());
            }
            "content_block_delta" => {
                let (block, delta) = (block.unwrap(), &frame["delta"]);
                let add = |block: &mut Value, to: &str| {
                    block[to] = Value::from(text(&block[to]) + delta[to].as_str().unwrap());
                };
                match delta["type"].as_str().unwrap() {
                    "text_delta" => add(block, "text"),
                    "thinking_delta" => add(block, "thinking"),
                    "signature_delta" => block["signature"] = delta["signature"].clone(),
                    "input_json_delta" => input += delta["partial_json"].as_str().unwrap(),
                    other => panic!("{other}"),
                }
            }
            "content_block_stop" if !input.is_empty() => {
                // The text of it is kept: numbers are to be compared as they were written.
                let block = block.unwrap();
                block["input"] = serde_json::from_str(&input).unwrap();
                block["input_text"] = Value::from(std::mem::take(&mut input));
            }
            "message_delta" => {
                message["stop_reason"] = frame["delta"]["stop_reason"].clone();
                for (key, value) in frame["usage"].as_object().unwrap() {
                    message["usage"][key] = value.clone();
                }
            }
            "error" => message["error"] = frame["error"].clone(),
            _ => {}
        }
    }
    anthropic(&message)
}

fn anthropic(message: &Value) -> Seen {
    let mut seen = Seen {
        stop: text(&message["stop_reason"]),
        usage: tokens(&message["usage"], "input_tokens", "output_tokens"),
        error: message["error"]["type"].as_str().map(str::to_owned),
        ..Seen::default()
    };
    for block in message["content"].as_array().into_iter().flatten() {
        let mut block = block.clone();
        let input = block.as_object_mut().unwrap().remove("input_text");
        match block["type"].as_str().unwrap() {
            "text" => seen.text += block["text"].as_str().unwrap(),
            "thinking" => seen.thoughts += block["thinking"].as_str().unwrap(),
            "tool_use" => seen.calls.push(SeenCall {
                id: text(&block["id"]),
                name: text(&block["name"]),
                args: input.map_or_else(|| block["input"].to_string(), |it| text(&it)),
            }),
            _ => {}
        }
        seen.pieces.push(block);
    }
    seen
}

fn responses_stream(frames: &[Value]) -> Seen {
    let last = frames.last().unwrap();
    let mut seen = responses(&last["response"]);
    // Some clients go by the items only.
    let done = frames.iter().filter(|frame| frame["type"] == "response.output_item.done");
    let items: Vec<Value> = done.map(|frame| frame["item"].clone()).collect();
    assert_eq!(items, seen.pieces, "the end repeats the items");
    seen.pieces = items;
    seen
}

fn responses(response: &Value) -> Seen {
    let mut seen = Seen {
        stop: text(&response["status"]),
        usage: tokens(&response["usage"], "input_tokens", "output_tokens"),
        error: response["error"]["code"].as_str().map(str::to_owned),
        ..Seen::default()
    };
    for item in response["output"].as_array().into_iter().flatten() {
        match item["type"].as_str().unwrap() {
            "message" => {
                for part in item["content"].as_array().unwrap() {
                    seen.text += part["text"].as_str().unwrap();
                }
            }
            "reasoning" => {
                for part in item["summary"].as_array().unwrap() {
                    seen.thoughts += part["text"].as_str().unwrap();
                }
            }
            "function_call" => seen.calls.push(SeenCall {
                id: text(&item["call_id"]),
                name: text(&item["name"]),
                args: text(&item["arguments"]),
            }),
            _ => {}
        }
        seen.pieces.push(item.clone());
    }
    seen
}

fn chat_stream(frames: &[Value]) -> Seen {
    let mut message = Map::new();
    let (mut finish, mut usage, mut error) = (Value::Null, Value::Null, None);
    for frame in frames {
        if let Some(why) = frame.get("error") {
            error = why["type"].as_str().map(str::to_owned);
        }
        if frame["usage"].is_object() {
            usage = frame["usage"].clone();
        }
        let choice = &frame["choices"][0];
        // Another choice than the first.
        if choice["index"].as_u64() > Some(0) {
            continue;
        }
        if choice["finish_reason"].is_string() {
            finish = choice["finish_reason"].clone();
        }
        for (key, value) in choice["delta"].as_object().into_iter().flatten() {
            let held = message.entry(key.clone()).or_insert(Value::Null);
            match (key.as_str(), value) {
                ("content" | "reasoning_content", Value::String(more)) => {
                    *held = Value::from(text(held) + more);
                }
                ("tool_calls", Value::Array(calls)) => {
                    if held.is_null() {
                        *held = json!([]);
                    }
                    for call in calls {
                        let mut call = call.clone();
                        call.as_object_mut().unwrap().remove("index");
                        held.as_array_mut().unwrap().push(call);
                    }
                }
                (_, Value::Null) => {}
                _ => *held = value.clone(),
            }
        }
    }
    Seen { error, ..chat(&Value::Object(message), &finish, &usage) }
}

fn chat(message: &Value, finish: &Value, usage: &Value) -> Seen {
    let calls = message["tool_calls"].as_array().into_iter().flatten().map(|call| SeenCall {
        id: text(&call["id"]),
        name: text(&call["function"]["name"]),
        args: text(&call["function"]["arguments"]),
    });
    Seen {
        text: text(&message["content"]),
        thoughts: text(&message["reasoning_content"]),
        calls: calls.collect(),
        stop: text(finish),
        usage: tokens(usage, "prompt_tokens", "completion_tokens"),
        error: None,
        pieces: vec![message.clone()],
    }
}

fn gemini(chunks: &[Value]) -> Seen {
    let mut seen = Seen::default();
    for chunk in chunks {
        if let Some(error) = chunk.get("error") {
            seen.error = Some(text(&error["status"]));
        }
        if let Some(usage) = chunk.get("usageMetadata") {
            seen.usage = tokens(usage, "promptTokenCount", "candidatesTokenCount");
        }
        if let Some(reason) = chunk["promptFeedback"]["blockReason"].as_str() {
            seen.stop = reason.to_owned();
        }
        let candidate = &chunk["candidates"][0];
        // Another candidate than the first.
        if candidate["index"].as_u64() > Some(0) {
            continue;
        }
        if let Some(reason) = candidate["finishReason"].as_str() {
            seen.stop = reason.to_owned();
        }
        for part in candidate["content"]["parts"].as_array().into_iter().flatten() {
            let said = part["text"].as_str().unwrap_or_default();
            if part["thought"] == true {
                seen.thoughts += said;
            } else {
                seen.text += said;
            }
            if let Some(call) = part.get("functionCall") {
                seen.calls.push(SeenCall {
                    id: text(&call["id"]),
                    name: text(&call["name"]),
                    args: call["args"].to_string(),
                });
            }
            seen.pieces.push(part.clone());
        }
    }
    seen
}

/// The request with the answer and the tools' results behind it. Results are in the reverse order
/// where the dialect matches them by id.
pub fn go_on(dialect: Dialect, body: &str, seen: &Seen) -> String {
    let mut body: Value = serde_json::from_str(body).unwrap();
    let result = |call: &SeenCall| format!("result of {} {}", call.name, call.args);
    match dialect {
        Dialect::Anthropic => {
            let messages = body["messages"].as_array_mut().unwrap();
            messages.push(json!({"role": "assistant", "content": seen.pieces}));
            let results = seen.calls.iter().rev().map(|call| {
                json!({"type": "tool_result", "tool_use_id": call.id, "content": result(call)})
            });
            let mut content: Vec<Value> = results.collect();
            if content.is_empty() {
                content.push(json!({"type": "text", "text": "Go on."}));
            }
            messages.push(json!({"role": "user", "content": content}));
        }
        Dialect::Responses => {
            let input = body["input"].as_array_mut().unwrap();
            input.extend(seen.pieces.iter().cloned());
            input.extend(seen.calls.iter().rev().map(|call| {
                json!({"type": "function_call_output", "call_id": call.id, "output": result(call)})
            }));
            if seen.calls.is_empty() {
                input.push(json!({"type": "message", "role": "user", "content": "Go on."}));
            }
        }
        Dialect::Chat => {
            let messages = body["messages"].as_array_mut().unwrap();
            messages.extend(seen.pieces.iter().cloned());
            messages.extend(seen.calls.iter().rev().map(
                |call| json!({"role": "tool", "tool_call_id": call.id, "content": result(call)}),
            ));
            if seen.calls.is_empty() {
                messages.push(json!({"role": "user", "content": "Go on."}));
            }
        }
        Dialect::Gemini => {
            let contents = body["contents"].as_array_mut().unwrap();
            contents.push(json!({"role": "model", "parts": seen.pieces}));
            let results = seen.calls.iter().map(|call| {
                let mut response = json!({"name": call.name, "response": {"output": result(call)}});
                if !call.id.is_empty() {
                    response["id"] = Value::from(call.id.as_str());
                }
                json!({"functionResponse": response})
            });
            let mut parts: Vec<Value> = results.collect();
            if parts.is_empty() {
                parts.push(json!({"text": "Go on."}));
            }
            contents.push(json!({"role": "user", "parts": parts}));
        }
    }
    body.to_string()
}
