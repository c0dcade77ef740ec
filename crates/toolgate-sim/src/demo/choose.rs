//! Choice of functions by the user's text.

use toolgate_validate::{Function, Mode, Request};

use super::prompt::Prompt;

/// Words in names that do not tell functions apart.
const FILLER_WORDS: [&str; 12] = [
    "get", "fetch", "lookup", "look", "up", "tool", "function", "current", "info", "data", "the",
    "mcp",
];

/// Highest number of calls in a turn.
pub(super) const MAX_CALLS: usize = 8;

/// Functions that the request allows.
pub(super) fn callable(request: &Request) -> Vec<&Function> {
    if request.calling.mode == Mode::None {
        return Vec::new();
    }
    let allowed = &request.calling.allowed;
    let may = |function: &&Function| allowed.is_empty() || allowed.contains(&function.name);
    request.functions.iter().filter(may).collect()
}

/// Functions that the text names, in the order of the text, with their positions; if it names none,
/// the function that shares the most words with it.
pub(super) fn chosen<'r>(
    functions: &[&'r Function],
    prompt: &Prompt,
) -> Vec<(usize, &'r Function)> {
    let mut named: Vec<_> = functions
        .iter()
        .filter_map(|function| named_at(function, prompt).map(|at| (at, *function)))
        .collect();
    named.sort_by_key(|(at, _)| *at);
    named.truncate(MAX_CALLS);
    if !named.is_empty() {
        return named;
    }
    let mut best: Option<(usize, &Function)> = None;
    for function in functions {
        let score = similarity(function, prompt);
        if score >= 2 && best.is_none_or(|(highest, _)| score > highest) {
            best = Some((score, function));
        }
    }
    best.map(|(_, function)| (0, function)).into_iter().collect()
}

/// Position where the text names a function: by its full name, or by every word of its name.
fn named_at(function: &Function, prompt: &Prompt) -> Option<usize> {
    let name = function.name.to_lowercase();
    let by_name = prompt.words.iter().find(|(_, word)| *word == name && name.len() > 2);
    if let Some((at, _)) = by_name {
        return Some(*at);
    }
    let mut words = name_words(&function.name);
    let telling: Vec<_> =
        words.iter().filter(|word| !FILLER_WORDS.contains(&word.as_str())).cloned().collect();
    if !telling.is_empty() {
        words = telling;
    }
    let positions: Option<Vec<_>> = words.iter().map(|word| prompt.position_of(word)).collect();
    positions?.into_iter().min()
}

/// Number of words that a function's name, description and parameters share with the prompt.
fn similarity(function: &Function, prompt: &Prompt) -> usize {
    let is_mentioned = |word: &String| word.len() > 3 && prompt.position_of(word).is_some();
    let in_name = name_words(&function.name).iter().filter(|word| is_mentioned(word)).count();
    let mut described: Vec<String> = function
        .description
        .split(|c: char| !c.is_alphanumeric())
        .map(str::to_lowercase)
        .filter(|word| word.len() > 4)
        .collect();
    described.sort_unstable();
    described.dedup();
    let in_description = described.iter().filter(|word| is_mentioned(word)).count();
    let schema = function.schema.as_ref();
    let fields = schema.and_then(|schema| schema["properties"].as_object());
    let in_fields =
        fields.into_iter().flatten().filter(|(name, _)| is_mentioned(&name.to_lowercase())).count();
    2 * in_name + in_description + in_fields
}

/// Words of a name: `get_weatherForCity` → `get weather for city`.
pub(super) fn name_words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut was_lower = false;
    for letter in name.chars() {
        if !letter.is_alphanumeric() {
            words.push(String::new());
            was_lower = false;
            continue;
        }
        if words.is_empty() || (letter.is_uppercase() && was_lower) {
            words.push(String::new());
        }
        was_lower = letter.is_lowercase() || letter.is_numeric();
        if let Some(word) = words.last_mut() {
            word.extend(letter.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(names: &[&str], text: &str, want: &[&str]) {
        let functions: Vec<Function> = names
            .iter()
            .map(|name| Function { name: (*name).into(), description: String::new(), schema: None })
            .collect();
        let functions: Vec<&Function> = functions.iter().collect();
        let got: Vec<_> =
            chosen(&functions, &Prompt::new(text)).iter().map(|(_, it)| it.name.clone()).collect();
        assert_eq!(got, want, "{text}");
    }

    #[test]
    fn functions_are_found_by_their_names() {
        check(&["get_time", "get_weather"], "What is the weather in Tokyo?", &["get_weather"]);
        check(
            &["get_time", "get_weather"],
            "Weather and time in Oslo?",
            &["get_weather", "get_time"],
        );
        check(&["add", "subtract"], "Use the add tool. Do not use subtraction.", &["add"]);
        check(
            &["write_file", "read_file", "ls"],
            "Please write a file, then read it.",
            &["write_file", "read_file"],
        );
        check(&["TodoWrite", "Bash"], "Add a todo to review the design doc", &["TodoWrite"]);
        check(
            &["lookup_harbor_label", "ping"],
            "Call `lookup_harbor_label` now",
            &["lookup_harbor_label"],
        );
        check(&["get_weather"], "What is 2+2?", &[]);
        check(&["get_weather"], "Hello!", &[]);
        assert_eq!(name_words("mcp__git-HTTPLog_v2"), ["mcp", "git", "httplog", "v2"]);
    }
}
