//! Texts of the model's answers.

use std::fmt::Write as _;

use serde_json::{Map, Value};
use toolgate_validate::{Data, Request};

use super::prompt::Prompt;

/// Answer that reports the functions' results.
pub(super) fn from_results(request: &Request) -> String {
    let calls: Vec<(&str, &Map<String, Value>)> = request
        .contents
        .iter()
        .flat_map(|content| &content.parts)
        .filter_map(|part| match &part.data {
            Data::Call { name, args, .. } => Some((name.as_str(), args)),
            Data::None
            | Data::Text(_)
            | Data::Media { .. }
            | Data::Response { .. }
            | Data::Server(..) => None,
        })
        .collect();
    let last = request.contents.iter().rev().find(|content| content.responses() > 0);
    let parts = last.map_or(&[][..], |content| &content.parts);
    let count = last.map_or(0, |content| content.responses());
    // The last calls are the answered ones, in order.
    let mut answered = calls.iter().skip(calls.len().saturating_sub(count));
    let mut out = String::new();
    for part in parts {
        let Data::Response { name, response, media, .. } = &part.data else { continue };
        if !out.is_empty() {
            out.push('\n');
        }
        let args = answered.next().filter(|(called, _)| called == name).map(|(_, args)| *args);
        let with = args.map(pairs).filter(|args| !args.is_empty());
        let with = with.map_or_else(String::new, |args| format!(" ({args})"));
        let _ = match response.get("error") {
            Some(error) => write!(out, "{name}{with} failed: {}", plain(error)),
            None => write!(out, "According to {name}{with}: {}", result(response)),
        };
        if !media.is_empty() {
            let _ = write!(out, " I also see {} attachment(s).", media.len());
        }
    }
    out
}

/// The result, without the object that SDKs wrap it in.
fn result(response: &Map<String, Value>) -> String {
    let inner = match response.iter().next() {
        Some((key, value))
            if response.len() == 1 && matches!(key.as_str(), "output" | "result" | "content") =>
        {
            value
        }
        _ => return sentence(&pairs(response)),
    };
    let parsed = inner.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
    match parsed.as_ref().unwrap_or(inner).as_object() {
        Some(members) => sentence(&pairs(members)),
        None => sentence(&plain(inner)),
    }
}

fn sentence(text: &str) -> String {
    let text: String = text.chars().take(2000).collect();
    match text.trim_end() {
        "" => "nothing came back.".to_owned(),
        text if text.ends_with(['.', '!', '?', '\n', '}', ']']) => text.to_owned(),
        text => format!("{text}."),
    }
}

/// Members as `temp 72, unit F`.
fn pairs(members: &Map<String, Value>) -> String {
    let pairs = members.iter().map(|(key, value)| format!("{key} {}", plain(value)));
    pairs.collect::<Vec<_>>().join(", ")
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            value.to_string()
        }
    }
}

/// Answer without tools.
pub(super) fn to_prompt(prompt: &Prompt) -> String {
    if let Some(sum) = arithmetic(&prompt.text) {
        return sum;
    }
    let words: String = prompt.text.chars().take(200).collect();
    if words.trim().is_empty() {
        return "Hello from toolgate's simulator. There is no model behind it.".to_owned();
    }
    format!("Hello from toolgate's simulator. There is no model behind it; you said: {words}")
}

/// Solves the first formula in a text: `2+2 = 4`.
fn arithmetic(text: &str) -> Option<String> {
    let is_part = |c: char| c.is_ascii_digit() || "+-*/×÷. ".contains(c);
    let formula = text
        .split(|c: char| !is_part(c))
        .map(|run| run.trim_matches(|c: char| c == ' ' || c == '.'))
        .find(|run| {
            run.chars().any(|c| "+-*/×÷".contains(c))
                && run.starts_with(|c: char| c.is_ascii_digit())
        })?;
    let at = formula.char_indices().skip(1).find(|(_, c)| "+-*/×÷".contains(*c));
    let (at, operator) = at?;
    let left: f64 = formula[..at].trim().parse().ok()?;
    let right: f64 = formula[at + operator.len_utf8()..].trim().parse().ok()?;
    let value = match operator {
        '+' => left + right,
        '-' => left - right,
        '*' | '×' => left * right,
        _ if right != 0.0 => left / right,
        _ => return None,
    };
    Some(format!("{formula} = {value}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_are_solved() {
        for (text, want) in [
            ("What is 2+2?", Some("2+2 = 4")),
            ("Compute 12 - 5.", Some("12 - 5 = 7")),
            ("7 / 2", Some("7 / 2 = 3.5")),
            ("1/0", None),
            ("On 2026-01-31 we met", None),
            ("Hello", None),
        ] {
            assert_eq!(arithmetic(text).as_deref(), want, "{text}");
        }
    }
}
