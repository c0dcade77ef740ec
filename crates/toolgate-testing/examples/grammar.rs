//! Whether recorded answers follow the grammar of their dialect.
//!
//! Reads a JSON list from standard input, `{"dialect", "form", "usage", "text"}` for each answer, and
//! writes a list of the same length: null, or the fault. `form` is `stream`, `body` or `error`;
//! `usage` says whether a Chat client asked for it. The checkers are those of the tests.

use std::panic::{catch_unwind, set_hook};

use serde_json::Value;
use toolgate_testing::grammar::{anthropic, chat, gemini, responses};

fn main() -> serde_json::Result<()> {
    // A panic of a checker is a verdict, not a fault of this program.
    set_hook(Box::new(|_| {}));
    let answers: Vec<Value> = serde_json::from_reader(std::io::stdin())?;
    let verdicts: Vec<_> = answers.iter().map(|answer| verdict(answer).err()).collect();
    serde_json::to_writer(std::io::stdout(), &verdicts)
}

fn verdict(answer: &Value) -> Result<(), String> {
    let word = |name: &str| answer[name].as_str().ok_or_else(|| format!("no {name}"));
    let (dialect, form, text) = (word("dialect")?, word("form")?, word("text")?);
    let usage = answer["usage"].as_bool().unwrap_or(false);
    let checked = catch_unwind(|| check(dialect, form, text.as_bytes(), usage));
    checked.unwrap_or_else(|panic| {
        let words = panic.downcast_ref::<String>().map(String::as_str);
        Err(words
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("it panics")
            .to_owned())
    })
}

fn check(dialect: &str, form: &str, text: &[u8], usage: bool) -> Result<(), String> {
    match (dialect, form) {
        ("anthropic", "stream") => anthropic::check_stream(text)?,
        ("anthropic", "body") => anthropic::check_message(text)?,
        ("anthropic", "error") => {
            let body = json(text)?;
            let error = &body["error"];
            if body["type"] != "error"
                || !error["type"].is_string()
                || !error["message"].is_string()
            {
                return Err(format!("not an error: {body}"));
            }
        }
        ("responses", "stream") => responses::check_stream(text)?,
        ("responses", "body") => responses::check_response(text)?,
        ("chat", "stream") => drop(chat::check_stream(text, usage)),
        ("chat", "body") => drop(chat::check_response(text)),
        ("chat" | "responses", "error") => chat::check_error(&json(text)?),
        ("gemini", "stream") => drop(gemini::check_sse(text)),
        ("gemini", "body") => drop(gemini::check_response(text)),
        ("gemini", "error") => gemini::check_error(&json(text)?),
        _ => return Err(format!("no such answer: {dialect} {form}")),
    }
    Ok(())
}

fn json(text: &[u8]) -> Result<Value, String> {
    serde_json::from_slice(text).map_err(|error| error.to_string())
}
