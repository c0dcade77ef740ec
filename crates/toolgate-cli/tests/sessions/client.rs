//! A client that runs one tool ten times, with habits, in three dialects.

use serde_json::{Value, json};
use toolgate_sim::Script;

use super::process::Toolgate;

pub(crate) const STEPS: usize = 10;

/// Changes that a client makes to a conversation before it sends it back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Habit {
    Faithful,
    /// Keeps what its vendor documents, and nothing else.
    DropsUnknown,
    /// Keeps words, calls and results: no thinking, no signatures.
    StripsThinking,
    /// The same, with ids of 64 characters of its own.
    LongIds,
    /// The same, with numbers for ids.
    OtherAlphabet,
    /// The same, with the gateway's ids in lower case.
    LowerIds,
    /// The same, with no more than 16 characters of the gateway's ids.
    CutIds,
    /// Strips, and is another session every time.
    ChangesSession,
    /// Begins anew with a summary half way.
    Compacts,
    /// Strips, changes ids, and forgets the oldest steps as it goes.
    ForgetsOldest,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Messages,
    Responses,
    Chat,
}

pub(crate) const DIALECTS: [Dialect; 3] = [Dialect::Messages, Dialect::Responses, Dialect::Chat];

/// Ten calls, then words.
pub(crate) fn script() -> Script {
    let mut script = Script::new();
    for n in 0..STEPS {
        script = script.call("step", json!({"n": n, "note": format!("step {n}")})).finish();
    }
    script.text("Done.")
}

/// A conversation as its client keeps it.
pub(crate) struct Talk {
    dialect: Dialect,
    habit: Habit,
    said: Vec<Value>,
    turn: usize,
}

impl Talk {
    pub(crate) fn new(dialect: Dialect, habit: Habit) -> Self {
        let said = vec![json!({"role": "user", "content": "Take ten steps."})];
        Self { dialect, habit, said, turn: 0 }
    }

    /// One question and its answer; `false` when the model calls no more.
    pub(crate) async fn turn(&mut self, gate: &Toolgate) -> bool {
        let session = match self.habit {
            Habit::ChangesSession => format!("s{}", self.turn),
            _ => "s".to_owned(),
        };
        let (path, body) = self.question();
        let answer = gate.post(path, &[("x-session-id", &session)], &body).await;
        let goes_on = match self.dialect {
            Dialect::Messages => self.messages(&answer),
            Dialect::Responses => self.responses(&answer),
            Dialect::Chat => self.chat(&answer),
        };
        assert_eq!(goes_on, self.turn < STEPS, "{:?} {:?}: {answer}", self.dialect, self.habit);
        self.turn += 1;
        self.forget();
        goes_on
    }

    fn question(&self) -> (&'static str, Value) {
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}, "note": {"type": "string"}}, "required": ["n"]});
        let said = &self.said;
        match self.dialect {
            Dialect::Messages => {
                let tools = json!([{"name": "step", "input_schema": schema}]);
                let body = json!({"model": "gemini-3-flash", "max_tokens": 1000, "tools": tools, "messages": said});
                ("/v1/messages", body)
            }
            Dialect::Responses => {
                let tools = json!([{"type": "function", "name": "step", "parameters": schema}]);
                let body = json!({"model": "gemini-3-flash", "store": false, "include": ["reasoning.encrypted_content"], "tools": tools, "input": said});
                ("/v1/responses", body)
            }
            Dialect::Chat => {
                let tools = json!([{"type": "function", "function": {"name": "step", "parameters": schema}}]);
                let body = json!({"model": "gemini-3-flash", "tools": tools, "messages": said});
                ("/v1/chat/completions", body)
            }
        }
    }

    fn strips(&self) -> bool {
        !matches!(self.habit, Habit::Faithful | Habit::DropsUnknown | Habit::Compacts)
    }

    /// An id as the client keeps it.
    fn id(&self, given: &Value) -> Value {
        match self.habit {
            Habit::LongIds => json!(format!("client-made-id-{:049}", self.turn)),
            Habit::OtherAlphabet | Habit::ForgetsOldest => json!(self.turn.to_string()),
            Habit::LowerIds => json!(given.as_str().unwrap().to_lowercase()),
            Habit::CutIds => json!(&given.as_str().unwrap()[..16]),
            _ => given.clone(),
        }
    }

    fn messages(&mut self, answer: &Value) -> bool {
        let blocks = answer["content"].as_array().unwrap();
        let Some(call) = blocks.iter().find(|block| block["type"] == "tool_use") else {
            return false;
        };
        let id = self.id(&call["id"]);
        let bare =
            json!({"type": "tool_use", "id": id, "name": call["name"], "input": call["input"]});
        let kept = blocks.iter().filter_map(|block| match block["type"].as_str().unwrap() {
            "tool_use" => Some(bare.clone()),
            _ if self.strips() => None,
            "thinking" if self.habit == Habit::DropsUnknown => {
                Some(only(block, &["type", "thinking", "signature"]))
            }
            _ => Some(block.clone()),
        });
        let kept: Vec<_> = kept.collect();
        self.said.push(json!({"role": "assistant", "content": kept}));
        let result = json!({"type": "tool_result", "tool_use_id": id, "content": "ok"});
        self.said.push(json!({"role": "user", "content": [result]}));
        true
    }

    fn responses(&mut self, answer: &Value) -> bool {
        let items = answer["output"].as_array().unwrap().clone();
        let Some(call) = items.iter().find(|item| item["type"] == "function_call") else {
            return false;
        };
        let id = self.id(&call["call_id"]);
        for item in &items {
            match item["type"].as_str().unwrap() {
                "function_call" if self.habit == Habit::Faithful => self.said.push(item.clone()),
                "function_call" => {
                    let mut bare = only(item, &["type", "name", "arguments"]);
                    bare["call_id"] = id.clone();
                    self.said.push(bare);
                }
                _ if self.strips() => {}
                "reasoning" if self.habit == Habit::DropsUnknown => {
                    self.said.push(only(item, &["type", "id", "summary", "encrypted_content"]));
                }
                _ => self.said.push(item.clone()),
            }
        }
        self.said.push(json!({"type": "function_call_output", "call_id": id, "output": "ok"}));
        true
    }

    fn chat(&mut self, answer: &Value) -> bool {
        let message = &answer["choices"][0]["message"];
        let Some(call) = message["tool_calls"].get(0) else { return false };
        let id = self.id(&call["id"]);
        if matches!(self.habit, Habit::Faithful | Habit::Compacts) {
            self.said.push(message.clone());
        } else {
            let function = &call["function"];
            let bare = json!({"id": id, "type": "function", "function": {"name": function["name"], "arguments": function["arguments"]}});
            self.said.push(json!({"role": "assistant", "content": null, "tool_calls": [bare]}));
        }
        self.said.push(json!({"role": "tool", "tool_call_id": id, "content": "ok"}));
        true
    }

    fn forget(&mut self) {
        if self.habit == Habit::Compacts && self.turn == STEPS / 2 {
            let summary = "Summary: half the steps are taken.";
            self.said = vec![json!({"role": "user", "content": summary})];
        }
        if self.habit == Habit::ForgetsOldest && self.said.len() > 7 {
            self.said.drain(1..3);
        }
    }
}

fn only(value: &Value, names: &[&str]) -> Value {
    let kept = names.iter().filter_map(|name| Some(((*name).to_owned(), value.get(name)?.clone())));
    Value::Object(kept.collect())
}
