//! Calls and results since the user's text.

use serde_json::{Map, Value};
use toolgate_validate::{Content, Data};

/// Maximum number of bytes of a result that are read.
const MAX_OUTPUT_BYTES: usize = 256 << 10;

/// A call with its result.
#[derive(Debug)]
pub(super) struct Step<'r> {
    pub(super) name: &'r str,
    pub(super) args: &'r Map<String, Value>,
    /// Text of the result.
    pub(super) output: String,
    pub(super) failed: bool,
}

/// Answered calls, in order.
pub(super) fn steps(since: &[Content]) -> Vec<Step<'_>> {
    let mut open: Vec<(Option<&str>, &str, &Map<String, Value>)> = Vec::new();
    let mut steps = Vec::new();
    for part in since.iter().flat_map(|content| &content.parts) {
        match &part.data {
            Data::Call { id, name, args } => open.push((id.as_deref(), name, args)),
            Data::Response { id, name, response, .. } => {
                let by_id = open.iter().position(|it| id.is_some() && it.0 == id.as_deref());
                let at = by_id.or_else(|| open.iter().position(|it| it.1 == name));
                let Some(at) = at else { continue };
                let (_, name, args) = open.remove(at);
                let output = text(response);
                let failed = response.contains_key("error") || exit_code(&output) > 0;
                steps.push(Step { name, args, output, failed });
            }
            Data::None | Data::Text(_) | Data::Media { .. } | Data::Server(..) => {}
        }
    }
    steps
}

/// All texts of a result, one below the other.
fn text(response: &Map<String, Value>) -> String {
    let mut out = String::new();
    let mut todo: Vec<&Value> = response.values().rev().collect();
    while let Some(value) = todo.pop() {
        match value {
            Value::String(text) if out.len() < MAX_OUTPUT_BYTES => {
                if !out.is_empty() {
                    out.push('\n');
                }
                out.extend(text.chars().take(MAX_OUTPUT_BYTES));
            }
            Value::Array(items) => todo.extend(items.iter().rev()),
            Value::Object(members) => todo.extend(members.values().rev()),
            Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    out
}

/// Exit code that a shell tool reports in its result; 0 without one.
fn exit_code(output: &str) -> u32 {
    let lower = output.to_lowercase();
    let marks = ["exited with code ", "exit code: ", "exit code ", "exit status "];
    let code = marks.iter().find_map(|mark| {
        let (_, rest) = lower.split_once(mark)?;
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok()
    });
    code.unwrap_or(0)
}

/// A command's own output, without what the agent adds around it.
pub(super) fn command_output(output: &str) -> String {
    let output = output.split_once("Output:\n").map_or(output, |(_, rest)| rest);
    let own = |line: &&str| {
        let line = line.trim();
        let is_tag = line.starts_with('<') && line.ends_with('>');
        !is_tag && !line.starts_with("Process Group PGID:") && !line.is_empty()
    };
    let lines = output.lines().filter(own);
    let lines = lines.map(|line| line.strip_prefix("Output: ").unwrap_or(line).trim_end());
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_and_own_output_are_found() {
        let codex = "Chunk ID: 5\nWall time: 0.3 seconds\nProcess exited with code 3\nOriginal token count: 3\nOutput:\n16 out.txt\n";
        assert_eq!((exit_code(codex), command_output(codex).as_str()), (3, "16 out.txt"));
        let gemini =
            "<untrusted_context>\nOutput: 16 out.txt\nProcess Group PGID: 6\n</untrusted_context>";
        assert_eq!((exit_code(gemini), command_output(gemini).as_str()), (0, "16 out.txt"));
        assert_eq!(exit_code("Exit code 1\nTraceback"), 1);
        assert_eq!(command_output("a\n\nb"), "a\nb");
    }
}
