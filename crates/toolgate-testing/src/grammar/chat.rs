//! What OpenAI documents about `chat.completion` and its chunks, and what its clients insist on.
//!
//! Written from the API reference, without a look at the encoder.

use std::collections::BTreeMap;

use serde_json::Value;

/// The answer as a client has it at the end.
#[derive(Debug, Default)]
pub struct Seen {
    pub content: Option<String>,
    pub reasoning: String,
    /// `(id, type, name, arguments or input)`
    pub calls: Vec<(String, String, String, String)>,
    pub finish: Option<String>,
    pub usage: Option<Value>,
    pub error: Option<Value>,
    /// The message as a client would send it back.
    pub message: Value,
    /// The choices after the first.
    pub others: Vec<Self>,
}

/// Reads a stream as a client does. `include_usage`: the client asked for it.
#[track_caller]
pub fn check_stream(bytes: &[u8], include_usage: bool) -> Seen {
    let text = std::str::from_utf8(bytes).expect("a stream is UTF-8");
    assert!(!text.contains(['\r', '\u{2028}', '\u{2029}', '\u{85}']), "a stray line break");
    let mut checker = Checker { include_usage, ..Checker::default() };
    let mut rest = text;
    while !rest.is_empty() {
        let (frame, after) = rest.split_once("\n\n").expect("every frame ends in a blank line");
        rest = after;
        if frame.starts_with(':') {
            assert!(!frame.contains('\n'), "a comment is one line: {frame:?}");
            continue;
        }
        let data = frame.strip_prefix("data: ").unwrap_or_else(|| panic!("not data: {frame:?}"));
        assert!(!data.contains('\n'), "data is one line: {frame:?}");
        checker.data(data);
    }
    checker.finish()
}

#[derive(Default)]
struct Checker {
    include_usage: bool,
    seen: Seen,
    head: Option<(Value, Value, Value)>,
    function_call: bool,
    done: bool,
    message: serde_json::Map<String, Value>,
    /// The choices after the first, by index.
    others: BTreeMap<u64, Self>,
}

impl Checker {
    #[track_caller]
    fn data(&mut self, data: &str) {
        assert!(!self.done, "something after [DONE]: {data}");
        assert!(self.seen.error.is_none(), "something after an error: {data}");
        if data == "[DONE]" {
            self.done = true;
            return;
        }
        let chunk: Value = serde_json::from_str(data).expect("data is JSON");
        if let Some(error) = chunk.get("error") {
            check_error(&chunk);
            self.seen.error = Some(error.clone());
            return;
        }
        assert_eq!(chunk["object"], "chat.completion.chunk");
        assert!(chunk["id"].as_str().is_some_and(|id| id.starts_with("chatcmpl-")), "{data}");
        assert!(chunk["created"].is_u64() && chunk["model"].is_string(), "{data}");
        let head = (chunk["id"].clone(), chunk["created"].clone(), chunk["model"].clone());
        assert_eq!(*self.head.get_or_insert_with(|| head.clone()), head, "the head changes");
        match chunk["choices"].as_array().expect("choices").as_slice() {
            [] => self.usage(&chunk),
            [choice] => {
                let usage = chunk.get("usage");
                assert_eq!(usage, self.include_usage.then_some(&Value::Null), "{data}");
                match choice["index"].as_u64().expect("an index") {
                    0 => self.choice(choice),
                    index => self.others.entry(index).or_default().choice(choice),
                }
            }
            _ => panic!("one choice at a time: {data}"),
        }
    }

    #[track_caller]
    fn usage(&mut self, chunk: &Value) {
        assert!(self.include_usage, "usage unasked: {chunk}");
        assert!(self.seen.finish.is_some(), "usage before the finish: {chunk}");
        assert!(self.seen.usage.is_none(), "usage twice: {chunk}");
        check_usage(&chunk["usage"]);
        self.seen.usage = Some(chunk["usage"].clone());
    }

    #[track_caller]
    fn choice(&mut self, choice: &Value) {
        assert!(self.seen.finish.is_none(), "a choice after the finish: {choice}");
        let delta = choice["delta"].as_object().expect("a delta");
        let first = self.message.is_empty();
        assert_eq!(delta.contains_key("role"), first, "a role in the first delta only: {choice}");
        for (key, value) in delta {
            match key.as_str() {
                "role" => {
                    assert_eq!(value, "assistant");
                    self.message.insert("role".into(), value.clone());
                }
                "content" if value.is_null() => assert!(first, "null content later: {choice}"),
                "content" => {
                    let text = value.as_str().expect("content is a string");
                    self.seen.content.get_or_insert_default().push_str(text);
                }
                "reasoning_content" => {
                    self.seen.reasoning.push_str(value.as_str().expect("a string"));
                }
                "tool_calls" => {
                    for call in value.as_array().expect("a list") {
                        let index = usize::try_from(call["index"].as_u64().unwrap()).unwrap();
                        assert_eq!(index, self.seen.calls.len(), "each call its own index");
                        self.call(call);
                    }
                }
                "function_call" => {
                    assert!(!self.function_call, "one legacy call in a message");
                    self.function_call = true;
                    check_function(value);
                    self.message.insert(key.clone(), value.clone());
                }
                "annotations" => {
                    check_annotations(value);
                    self.message.insert(key.clone(), value.clone());
                }
                "extra_content" => {
                    assert!(value["google"]["thought_signature"].is_string(), "{choice}");
                    self.message.insert(key.clone(), value.clone());
                }
                _ => panic!("not in a delta: {key}"),
            }
        }
        if let Some(reason) = choice["finish_reason"].as_str() {
            check_reason(reason, !self.seen.calls.is_empty(), self.function_call);
            self.seen.finish = Some(reason.to_owned());
        } else {
            assert!(choice["finish_reason"].is_null());
        }
    }

    #[track_caller]
    fn call(&mut self, call: &Value) {
        let seen = check_call(call, &self.seen.calls);
        self.seen.calls.push(seen);
        let mut call = call.clone();
        call.as_object_mut().unwrap().remove("index");
        let calls = self.message.entry("tool_calls").or_insert_with(|| Value::Array(Vec::new()));
        calls.as_array_mut().unwrap().push(call);
    }

    #[track_caller]
    fn finish(mut self) -> Seen {
        if self.seen.error.is_none() {
            assert!(self.done, "no [DONE]");
            assert_eq!(self.seen.usage.is_some(), self.include_usage);
        }
        let is_whole = self.seen.error.is_none();
        for (at, (index, other)) in std::mem::take(&mut self.others).into_iter().enumerate() {
            assert_eq!(index, at as u64 + 1, "choices are numbered without gaps");
            self.seen.others.push(other.message(is_whole));
        }
        self.message(is_whole)
    }

    #[track_caller]
    fn message(mut self, is_whole: bool) -> Seen {
        assert!(!is_whole || self.seen.finish.is_some(), "no finish_reason");
        let content = self.seen.content.clone().map_or(Value::Null, Value::String);
        self.message.insert("content".into(), content);
        if !self.seen.reasoning.is_empty() {
            let reasoning = Value::String(self.seen.reasoning.clone());
            self.message.insert("reasoning_content".into(), reasoning);
        }
        self.seen.message = Value::Object(self.message);
        self.seen
    }
}

/// Reads a whole answer.
#[track_caller]
pub fn check_response(bytes: &[u8]) -> Seen {
    let body: Value = serde_json::from_slice(bytes).expect("a body is JSON");
    assert_eq!(body["object"], "chat.completion");
    assert!(body["id"].as_str().is_some_and(|id| id.starts_with("chatcmpl-")));
    assert!(body["created"].is_u64() && body["model"].is_string());
    check_usage(&body["usage"]);
    let choices = body["choices"].as_array().expect("choices");
    let mut all = choices.iter().enumerate().map(|(index, choice)| {
        assert_eq!(choice["index"], index);
        check_choice(choice, &body["usage"])
    });
    let first = all.next().expect("a choice");
    Seen { others: all.collect(), ..first }
}

#[track_caller]
fn check_choice(choice: &Value, usage: &Value) -> Seen {
    assert_eq!(choice.get("logprobs"), Some(&Value::Null));
    let message = choice["message"].as_object().expect("a message");
    assert_eq!(message["role"], "assistant");
    assert_eq!(message["refusal"], Value::Null);
    let mut seen = Seen {
        content: message["content"].as_str().map(str::to_owned),
        usage: Some(usage.clone()),
        message: choice["message"].clone(),
        ..Seen::default()
    };
    for (key, value) in message {
        match key.as_str() {
            "role" | "refusal" => {}
            "content" => assert!(value.is_null() || value.is_string()),
            "reasoning_content" => seen.reasoning = value.as_str().unwrap().to_owned(),
            "tool_calls" => {
                let calls = value.as_array().expect("a list");
                assert!(!calls.is_empty(), "no calls, no list");
                for call in calls {
                    let call = check_call(call, &seen.calls);
                    seen.calls.push(call);
                }
            }
            "function_call" => check_function(value),
            "annotations" => check_annotations(value),
            "extra_content" => assert!(value["google"]["thought_signature"].is_string()),
            _ => panic!("not in a message: {key}"),
        }
    }
    let reason = choice["finish_reason"].as_str().expect("a finish_reason");
    check_reason(reason, !seen.calls.is_empty(), message.contains_key("function_call"));
    seen.finish = Some(reason.to_owned());
    seen
}

/// Reads an error body.
#[track_caller]
pub fn check_error(body: &Value) {
    assert_eq!(body.as_object().unwrap().len(), 1, "an error stands alone: {body}");
    let error = body["error"].as_object().expect("an error");
    assert!(error["message"].as_str().is_some_and(|message| !message.is_empty()));
    assert!(error["type"].as_str().is_some_and(|kind| !kind.is_empty()));
    for key in ["param", "code"] {
        assert!(error[key].is_null() || error[key].is_string(), "{key}: {body}");
    }
}

#[track_caller]
fn check_call(
    call: &Value,
    before: &[(String, String, String, String)],
) -> (String, String, String, String) {
    let id = call["id"].as_str().expect("an id");
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    assert!(id.starts_with("call_") && id.len() <= 40 && id.chars().all(plain), "{id}");
    assert!(before.iter().all(|(known, ..)| known != id), "an id twice: {id}");
    let kind = call["type"].as_str().expect("a type");
    let body = &call[kind];
    let name = body["name"].as_str().expect("a name");
    let input = match kind {
        "function" => {
            check_function(body);
            body["arguments"].as_str().unwrap()
        }
        "custom" => body["input"].as_str().expect("an input"),
        _ => panic!("no such call: {call}"),
    };
    (id.to_owned(), kind.to_owned(), name.to_owned(), input.to_owned())
}

#[track_caller]
fn check_function(function: &Value) {
    assert!(function["name"].as_str().is_some_and(|name| !name.is_empty()), "{function}");
    let arguments = function["arguments"].as_str().expect("arguments are a string");
    serde_json::from_str::<Value>(arguments).expect("arguments hold JSON");
}

#[track_caller]
fn check_annotations(list: &Value) {
    for annotation in list.as_array().expect("a list") {
        assert_eq!(annotation["type"], "url_citation");
        let citation = &annotation["url_citation"];
        assert!(citation["url"].is_string() && citation["title"].is_string());
        assert!(
            citation["start_index"].as_u64().unwrap() <= citation["end_index"].as_u64().unwrap()
        );
    }
}

#[track_caller]
fn check_reason(reason: &str, called: bool, legacy: bool) {
    match reason {
        "content_filter" => {}
        "function_call" => assert!(legacy),
        "tool_calls" => assert!(called),
        "stop" | "length" => assert!(!called && !legacy, "`{reason}` would leave calls undone"),
        _ => panic!("no such reason: {reason}"),
    }
}

#[track_caller]
fn check_usage(usage: &Value) {
    let count = |value: &Value| value.as_u64().unwrap_or_else(|| panic!("not a count: {usage}"));
    let (input, output) = (count(&usage["prompt_tokens"]), count(&usage["completion_tokens"]));
    assert_eq!(count(&usage["total_tokens"]), input + output);
    assert!(count(&usage["prompt_tokens_details"]["cached_tokens"]) <= input);
    assert!(count(&usage["completion_tokens_details"]["reasoning_tokens"]) <= output);
}
