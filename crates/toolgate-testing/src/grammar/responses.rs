//! Rules of a Responses stream and of a response object.
//!
//! Written from OpenAI's reference and from what the stream helpers of its SDKs insist on, not from
//! our encoder: events in order and numbered, one lifecycle, every item added, said and done under
//! one index and one id, and the end repeating exactly what was said.

use std::collections::BTreeSet;

use serde_json::Value;

type Check<T = ()> = Result<T, String>;

/// Checks a whole stream of server-sent events.
pub fn check_stream(bytes: &[u8]) -> Check {
    let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
    if text.contains(['\u{2028}', '\u{2029}', '\u{85}', '\r']) {
        return Err("a character that some readers take for the end of a line".into());
    }
    let mut stream = Stream::default();
    let body = text.strip_suffix("\n\n").ok_or("the last frame is not closed")?;
    for (number, frame) in body.split("\n\n").enumerate() {
        let fail = |why: String| format!("event {number}: {why}\n{frame}");
        let (name, data) = frame
            .strip_prefix("event: ")
            .and_then(|rest| rest.split_once("\ndata: "))
            .ok_or_else(|| fail("not `event:` and `data:`".into()))?;
        if data.contains('\n') {
            return Err(fail("data of more than one line".into()));
        }
        let event: Value = serde_json::from_str(data).map_err(|it| fail(it.to_string()))?;
        if event["type"] != name {
            return Err(fail("`event:` and `type` differ".into()));
        }
        if event["sequence_number"] != number {
            return Err(fail("sequence_number has a gap".into()));
        }
        stream.event(name, &event).map_err(fail)?;
    }
    if stream.ended { Ok(()) } else { Err("no end".into()) }
}

/// Checks a response object that is not in progress.
pub fn check_response(json: &[u8]) -> Check {
    let response: Value = serde_json::from_slice(json).map_err(|error| error.to_string())?;
    let status = string(&response, "status")?;
    ensure(status != "in_progress", "still in progress")?;
    response_object(&response, status)
}

#[derive(Default)]
struct Stream {
    response_id: Option<String>,
    running: bool,
    ended: bool,
    ids: BTreeSet<String>,
    items: Vec<Value>,
    open: Option<Open>,
}

/// An item between `added` and `done`.
struct Open {
    id: String,
    kind: String,
    added: Value,
    /// Content or summary parts that are done.
    parts: Vec<Value>,
    part: Option<OpenPart>,
    /// `arguments`, `input` or `code` as said by deltas.
    said: String,
    /// The same, once it is done.
    done: Option<String>,
    /// Which of the server's own steps have been told.
    steps: Vec<String>,
}

struct OpenPart {
    text: String,
    annotations: Vec<Value>,
    text_done: bool,
}

const LIFECYCLE: [&str; 5] = [
    "response.created",
    "response.in_progress",
    "response.completed",
    "response.incomplete",
    "response.failed",
];

impl Stream {
    fn event(&mut self, name: &str, event: &Value) -> Check {
        ensure(!self.ended, "something after the end")?;
        match name {
            _ if LIFECYCLE.contains(&name) => self.lifecycle(name, &event["response"]),
            _ if !self.running => Err("before response.in_progress".into()),
            "response.output_item.added" => self.added(event),
            "response.output_item.done" => self.done(event),
            _ => self.inside(name, event),
        }
    }

    fn lifecycle(&mut self, name: &str, response: &Value) -> Check {
        let status = name.strip_prefix("response.").unwrap_or(name);
        let first = self.response_id.is_none();
        ensure((name == "response.created") == first, "response.created comes first, and once")?;
        let id = string(response, "id")?;
        ensure(self.response_id.as_deref().is_none_or(|it| it == id), "the response id changed")?;
        self.response_id = Some(id.to_owned());
        self.running |= name == "response.in_progress";
        let in_progress = matches!(status, "created" | "in_progress");
        response_object(response, if in_progress { "in_progress" } else { status })?;
        if in_progress {
            return Ok(());
        }
        ensure(self.running, "the end before response.in_progress")?;
        ensure(self.open.is_none(), "the end while an item is open")?;
        ensure(
            response["output"] == Value::Array(self.items.clone()),
            "output is not what was said",
        )?;
        self.ended = true;
        Ok(())
    }

    fn added(&mut self, event: &Value) -> Check {
        ensure(self.open.is_none(), "an item within an item")?;
        ensure(event["output_index"] == self.items.len(), "wrong output_index")?;
        let item = &event["item"];
        let (id, kind) = (string(item, "id")?, string(item, "type")?);
        ensure(self.ids.insert(id.to_owned()), "an item id twice")?;
        if let Some(call_id) = item["call_id"].as_str() {
            ensure(self.ids.insert(call_id.to_owned()), "a call id twice")?;
        }
        item_object(item)?;
        let empty = match kind {
            "message" => item["content"] == Value::Array(vec![]),
            "reasoning" => item["summary"] == Value::Array(vec![]),
            "function_call" => item["arguments"] == "",
            "custom_tool_call" => item["input"] == "",
            "code_interpreter_call" => item["code"] == "",
            "image_generation_call" => item["result"].is_null(),
            _ => true,
        };
        ensure(empty, "an item that is full when it is added")?;
        if kind != "reasoning" && kind != "compaction" {
            ensure(item["status"] == "in_progress", "an item that is not in progress")?;
        }
        self.open = Some(Open {
            id: id.to_owned(),
            kind: kind.to_owned(),
            added: item.clone(),
            parts: Vec::new(),
            part: None,
            said: String::new(),
            done: None,
            steps: Vec::new(),
        });
        Ok(())
    }

    fn done(&mut self, event: &Value) -> Check {
        ensure(event["output_index"] == self.items.len(), "wrong output_index")?;
        let open = self.open.take().ok_or("done, but not added")?;
        let item = &event["item"];
        item_object(item)?;
        for name in ["id", "type", "call_id", "name", "namespace", "role"] {
            ensure(item[name] == open.added[name], format!("`{name}` changed"))?;
        }
        ensure(item["status"] != "in_progress", "done, but in progress")?;
        ensure(open.part.is_none(), "a part is still open")?;
        let said = |field: &str| {
            let whole = open.done.as_deref().ok_or_else(|| format!("`{field}` was not done"))?;
            ensure(item[field] == whole, format!("`{field}` is not what was said"))
        };
        match open.kind.as_str() {
            "message" => {
                ensure(!open.parts.is_empty(), "a message without content")?;
                ensure(
                    item["content"] == Value::Array(open.parts),
                    "content is not what was said",
                )?;
            }
            "reasoning" => {
                ensure(
                    item["summary"] == Value::Array(open.parts),
                    "summary is not what was said",
                )?;
            }
            "function_call" => {
                said("arguments")?;
                let arguments = string(item, "arguments")?;
                serde_json::from_str::<Value>(arguments).map_err(|it| it.to_string())?;
            }
            "custom_tool_call" => said("input")?,
            "code_interpreter_call" => {
                said("code")?;
                steps(&open.steps, &["in_progress", "interpreting", "completed"], item)?;
            }
            "web_search_call" => {
                steps(&open.steps, &["in_progress", "searching", "completed"], item)?;
            }
            "image_generation_call" => {
                steps(&open.steps, &["in_progress", "generating", "completed"], item)?;
            }
            _ => ensure(open.steps.is_empty(), "steps of an item that has none")?,
        }
        self.items.push(item.clone());
        Ok(())
    }

    /// An event about the open item.
    fn inside(&mut self, name: &str, event: &Value) -> Check {
        let open = self.open.as_mut().ok_or("no item is open")?;
        ensure(event["output_index"] == self.items.len(), "wrong output_index")?;
        ensure(event["item_id"] == open.id.as_str(), "wrong item_id")?;
        match (open.kind.as_str(), name) {
            ("message", "response.content_part.added") => {
                let part = &event["part"];
                ensure(part["type"] == "output_text" && part["text"] == "", "not an empty text")?;
                ensure(part["annotations"] == Value::Array(vec![]), "annotations too early")?;
                open.begin_part(&event["content_index"])
            }
            ("message", "response.output_text.delta") => {
                ensure(event["logprobs"].is_array(), "logprobs are missing")?;
                open.delta(event, "content_index")
            }
            ("message", "response.output_text.annotation.added") => {
                let index = open.parts.len();
                ensure(event["content_index"] == index, "wrong content_index")?;
                let part = open.part.as_mut().ok_or("no part is open")?;
                ensure(!part.text_done, "an annotation after the text is done")?;
                let nth = part.annotations.len();
                ensure(event["annotation_index"] == nth, "wrong annotation_index")?;
                annotation(&event["annotation"], &part.text)?;
                part.annotations.push(event["annotation"].clone());
                Ok(())
            }
            ("message", "response.output_text.done") => {
                ensure(event["logprobs"].is_array(), "logprobs are missing")?;
                open.text_done(event, "content_index")
            }
            ("message", "response.content_part.done") => open.end_part(event, "content_index"),
            ("reasoning", "response.reasoning_summary_part.added") => {
                let part = &event["part"];
                ensure(part["type"] == "summary_text" && part["text"] == "", "not empty")?;
                open.begin_part(&event["summary_index"])
            }
            ("reasoning", "response.reasoning_summary_text.delta") => {
                open.delta(event, "summary_index")
            }
            ("reasoning", "response.reasoning_summary_text.done") => {
                open.text_done(event, "summary_index")
            }
            ("reasoning", "response.reasoning_summary_part.done") => {
                open.end_part(event, "summary_index")
            }
            ("function_call", "response.function_call_arguments.delta")
            | ("custom_tool_call", "response.custom_tool_call_input.delta")
            | ("code_interpreter_call", "response.code_interpreter_call_code.delta") => {
                ensure(open.done.is_none(), "a delta after the end")?;
                open.said.push_str(string(event, "delta")?);
                Ok(())
            }
            ("function_call", "response.function_call_arguments.done") => {
                ensure(event["name"] == open.added["name"], "not the name of the function")?;
                open.said_done(string(event, "arguments")?)
            }
            ("custom_tool_call", "response.custom_tool_call_input.done") => {
                open.said_done(string(event, "input")?)
            }
            ("code_interpreter_call", "response.code_interpreter_call_code.done") => {
                open.said_done(string(event, "code")?)
            }
            ("web_search_call" | "code_interpreter_call" | "image_generation_call", _) => {
                let step = name
                    .strip_prefix("response.")
                    .and_then(|rest| rest.strip_prefix(open.kind.as_str()))
                    .and_then(|rest| rest.strip_prefix('.'))
                    .ok_or("an event of another kind of item")?;
                open.steps.push(step.to_owned());
                Ok(())
            }
            _ => Err("an event that this item does not have, or that nobody knows".into()),
        }
    }
}

impl Open {
    fn begin_part(&mut self, index: &Value) -> Check {
        ensure(self.part.is_none(), "a part within a part")?;
        ensure(*index == self.parts.len(), "wrong part index")?;
        let part = OpenPart { text: String::new(), annotations: Vec::new(), text_done: false };
        self.part = Some(part);
        Ok(())
    }

    fn delta(&mut self, event: &Value, index: &str) -> Check {
        ensure(event[index] == self.parts.len(), "wrong part index")?;
        let part = self.part.as_mut().ok_or("no part is open")?;
        ensure(!part.text_done, "a delta after the end")?;
        let delta = string(event, "delta")?;
        ensure(!delta.is_empty(), "an empty delta")?;
        part.text.push_str(delta);
        Ok(())
    }

    fn text_done(&mut self, event: &Value, index: &str) -> Check {
        ensure(event[index] == self.parts.len(), "wrong part index")?;
        let part = self.part.as_mut().ok_or("no part is open")?;
        ensure(!std::mem::replace(&mut part.text_done, true), "done twice")?;
        ensure(event["text"] == part.text.as_str(), "not the text that was said")
    }

    fn end_part(&mut self, event: &Value, index: &str) -> Check {
        ensure(event[index] == self.parts.len(), "wrong part index")?;
        let part = self.part.take().ok_or("no part is open")?;
        ensure(part.text_done, "the part is done before its text")?;
        let done = &event["part"];
        ensure(done["text"] == part.text.as_str(), "not the text that was said")?;
        if self.kind == "message" {
            let same = done["annotations"] == Value::Array(part.annotations);
            ensure(same, "not the annotations that were added")?;
        }
        self.parts.push(done.clone());
        Ok(())
    }

    fn said_done(&mut self, whole: &str) -> Check {
        ensure(self.done.is_none(), "done twice")?;
        ensure(self.said == whole, "not what the deltas said")?;
        self.done = Some(whole.to_owned());
        Ok(())
    }
}

/// A response object with every member that OpenAI's always has.
fn response_object(response: &Value, status: &str) -> Check {
    ensure(response["object"] == "response", "not a response")?;
    ensure(string(response, "id")?.starts_with("resp_"), "not a response id")?;
    ensure(response["status"] == status, "wrong status")?;
    ensure(response["created_at"].is_u64(), "created_at is missing")?;
    for name in [
        "background",
        "error",
        "incomplete_details",
        "instructions",
        "max_output_tokens",
        "metadata",
        "model",
        "output",
        "parallel_tool_calls",
        "previous_response_id",
        "reasoning",
        "store",
        "temperature",
        "text",
        "tool_choice",
        "tools",
        "top_p",
        "truncation",
        "usage",
        "user",
    ] {
        ensure(response.get(name).is_some(), format!("`{name}` is missing"))?;
    }
    ensure(response["model"].is_string(), "no model")?;
    ensure(response["tools"].is_array(), "tools are no array")?;
    ensure(response["parallel_tool_calls"].is_boolean(), "parallel_tool_calls is no boolean")?;
    ensure(response["text"]["format"]["type"].is_string(), "no text format")?;
    let failed = status == "failed";
    ensure(response["error"].is_object() == failed, "an error belongs to a failure")?;
    if failed {
        string(&response["error"], "code")?;
        string(&response["error"], "message")?;
    }
    let incomplete = response["incomplete_details"]["reason"].as_str();
    match status {
        "incomplete" => {
            let known = matches!(incomplete, Some("max_output_tokens" | "content_filter"));
            ensure(known, "no reason for being incomplete")?;
        }
        _ => ensure(response["incomplete_details"].is_null(), "incomplete_details")?,
    }
    if matches!(status, "completed" | "incomplete") {
        usage(&response["usage"])?;
    }
    let output = response["output"].as_array().ok_or("output is no array")?;
    ensure(status != "in_progress" || output.is_empty(), "items before the end")?;
    let mut ids = BTreeSet::new();
    for item in output {
        item_object(item)?;
        ensure(ids.insert(string(item, "id")?), "an item id twice")?;
        ensure(item["status"] != "in_progress", "an item that is not done")?;
        let unfinished = item["status"] == "incomplete";
        ensure(status != "completed" || !unfinished, "an unfinished item of a finished response")?;
    }
    Ok(())
}

fn usage(usage: &Value) -> Check {
    let missing = || format!("a count is missing: {usage}");
    let count = |value: &Value| value.as_u64().ok_or_else(missing);
    let (input, output) = (count(&usage["input_tokens"])?, count(&usage["output_tokens"])?);
    ensure(count(&usage["total_tokens"])? == input + output, "the total is wrong")?;
    let cached = count(&usage["input_tokens_details"]["cached_tokens"])?;
    let thoughts = count(&usage["output_tokens_details"]["reasoning_tokens"])?;
    ensure(cached <= input && thoughts <= output, "a part is more than the whole")
}

/// An item with the members that its type must have.
fn item_object(item: &Value) -> Check {
    let (id, kind) = (string(item, "id")?, string(item, "type")?);
    let prefix = match kind {
        "message" => "msg_",
        "reasoning" => "rs_",
        "function_call" => "fc_",
        "custom_tool_call" => "ctc_",
        "web_search_call" => "ws_",
        "code_interpreter_call" => "ci_",
        "image_generation_call" => "ig_",
        "local_shell_call" => "lsh_",
        "shell_call" => "sh_",
        "apply_patch_call" => "apc_",
        "computer_call" => "cu_",
        "tool_search_call" => "tsc_",
        "compaction" => "cmp_",
        _ => return Err(format!("nobody knows items of type {kind}")),
    };
    let safe = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    ensure(id.starts_with(prefix) && id.len() <= 64 && id.bytes().all(safe), "not an item's id")?;
    if kind.ends_with("_tool_call") || item.get("call_id").is_some() {
        let call_id = string(item, "call_id")?;
        let short = !call_id.is_empty() && call_id.len() <= 64;
        ensure(short && call_id.bytes().all(safe), "not a call's id")?;
    }
    match kind {
        "message" => {
            ensure(item["role"] == "assistant", "not the assistant's")?;
            for part in item["content"].as_array().ok_or("no content")? {
                ensure(part["type"] == "output_text", "not a text")?;
                let text = string(part, "text")?;
                for one in part["annotations"].as_array().ok_or("no annotations")? {
                    annotation(one, text)?;
                }
            }
        }
        "reasoning" => {
            for part in item["summary"].as_array().ok_or("no summary")? {
                ensure(part["type"] == "summary_text", "not a summary")?;
                ensure(!string(part, "text")?.is_empty(), "an empty summary")?;
            }
            if let Some(sealed) = item.get("encrypted_content") {
                ensure(sealed.as_str().is_some_and(|it| !it.is_empty()), "empty carrier")?;
            }
        }
        "function_call" => {
            string(item, "call_id")?;
            string(item, "name")?;
            string(item, "arguments")?;
        }
        "custom_tool_call" => {
            string(item, "name")?;
            string(item, "input")?;
        }
        "web_search_call" => {
            ensure(item["action"]["type"].is_string(), "no action")?;
        }
        "code_interpreter_call" => {
            string(item, "code")?;
            string(item, "container_id")?;
            ensure(item["outputs"].is_array(), "no outputs")?;
        }
        "local_shell_call" => {
            let action = &item["action"];
            ensure(action["type"] == "exec", "not exec")?;
            strings(&action["command"])?;
            ensure(action["env"].is_object(), "no env")?;
        }
        "shell_call" => strings(&item["action"]["commands"])?,
        "apply_patch_call" => {
            let operation = &item["operation"];
            string(operation, "path")?;
            match string(operation, "type")? {
                "create_file" | "update_file" => {
                    string(operation, "diff")?;
                }
                "delete_file" => ensure(operation.get("diff").is_none(), "a diff to delete")?,
                _ => return Err("not an operation".into()),
            }
        }
        "computer_call" => {
            ensure(item["actions"].is_array(), "no actions")?;
            ensure(item["pending_safety_checks"].is_array(), "no pending_safety_checks")?;
        }
        "tool_search_call" => {
            ensure(item["arguments"].is_object(), "arguments are no object")?;
            ensure(item["execution"] == "client", "not the client's")?;
        }
        "compaction" => {
            string(item, "encrypted_content")?;
        }
        _ => {}
    }
    Ok(())
}

fn annotation(annotation: &Value, text: &str) -> Check {
    ensure(annotation["type"] == "url_citation", "not a citation of a page")?;
    string(annotation, "url")?;
    string(annotation, "title")?;
    let (start, end) = (annotation["start_index"].as_u64(), annotation["end_index"].as_u64());
    let (start, end) = (start.ok_or("no start_index")?, end.ok_or("no end_index")?);
    let characters = text.chars().count() as u64;
    ensure(start < end && end <= characters, "a citation of nothing")
}

fn steps(told: &[String], order: &[&str], item: &Value) -> Check {
    let whole = if item["status"] == "completed" { order } else { &order[..order.len() - 1] };
    ensure(told == whole, format!("told {told:?}, not {whole:?}"))
}

fn strings(value: &Value) -> Check {
    let all = value.as_array().is_some_and(|array| array.iter().all(Value::is_string));
    ensure(all, "not an array of strings")
}

fn string<'v>(object: &'v Value, name: &str) -> Check<&'v str> {
    object[name].as_str().ok_or_else(|| format!("`{name}` is no string"))
}

fn ensure(holds: bool, why: impl Into<String>) -> Check {
    if holds { Ok(()) } else { Err(why.into()) }
}
