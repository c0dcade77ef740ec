//! Turns of the demo model.

use serde_json::{Map, Value, json};
use toolgate_validate::{Content, Data, Function, Mode, Request};

use super::answer;
use super::choose::{self, MAX_CALLS};
use super::coding::{self, Next};
use super::fill::{Filler, is_choice, name_properties};
use super::prompt::Prompt;
use super::user_text;
use crate::turn::{Item, ItemKind, Turn};

/// Answers a request.
pub(crate) fn respond(request: &Request) -> Turn {
    let (start, text) = user_text::last(request).unwrap_or_default();
    let prompt = Prompt::new(&text);
    // The user's text and everything after it.
    let since = request.contents.get(start..).unwrap_or_default();
    let is_json = request.settings.mime.as_deref() == Some("application/json");
    let is_forced = request.calling.mode == Mode::Any;
    if !is_json
        && !is_forced
        && let Some(next) = coding::next(request, &prompt, since)
    {
        return coding_turn(next);
    }
    let calls = calls(request, &prompt, since);
    if !calls.is_empty() {
        let names: Vec<_> = calls.iter().map(|(name, _)| format!("`{name}`")).collect();
        let thought =
            format!("**Choosing a tool**\n\nThe request calls for {}.\n\n\n", names.join(" and "));
        let mut items = vec![Item::from(ItemKind::Thought(thought))];
        items.extend(calls.into_iter().map(|(name, args)| ItemKind::Call { name, args }.into()));
        return Turn { items, ..Turn::default() };
    }
    let thought = "**Preparing the answer**\n\nI have what I need and answer now.\n\n\n".to_owned();
    let mut turn = Turn { items: vec![ItemKind::Thought(thought).into()], ..Turn::default() };
    let has_results = since.iter().any(|content| content.responses() > 0);
    let text = if is_json {
        as_json(request, &prompt)
    } else if has_results {
        answer::from_results(request)
    } else if let Some((code, output)) = code(request, &prompt) {
        turn.items.push(ItemKind::Code { code, output: format!("{output}\n") }.into());
        format!("The code printed {output}.")
    } else {
        answer::to_prompt(&prompt)
    };
    let can_search = request.server_tools.iter().any(|tool| tool == "googleSearch");
    // Beside functions, a search is one tool of many.
    if can_search && !has_results && (request.functions.is_empty() || asks_to_search(&prompt)) {
        turn.candidate.insert("groundingMetadata".to_owned(), grounding(&prompt, &text));
    }
    turn.items.push(ItemKind::Text(text).into());
    turn
}

fn asks_to_search(prompt: &Prompt) -> bool {
    let words = ["search", "web", "internet", "online", "news", "latest", "google"];
    words.iter().any(|word| prompt.position_of(word).is_some())
}

/// A turn of the coding routine.
fn coding_turn(next: Next) -> Turn {
    let thought =
        |text: &str| Item::from(ItemKind::Thought(format!("**Working**\n\n{text}\n\n\n")));
    let items = match next {
        Next::Call(words, calls) => {
            let calls = calls.into_iter().map(|(name, args)| ItemKind::Call { name, args }.into());
            let words = [thought(&words), ItemKind::Text(format!("{words}\n")).into()];
            words.into_iter().chain(calls).collect()
        }
        Next::Answer(text) => vec![thought("I have what I need."), ItemKind::Text(text).into()],
    };
    Turn { items, ..Turn::default() }
}

/// Calls of this turn; none if all of them are answered.
fn calls(
    request: &Request,
    prompt: &Prompt,
    since: &[Content],
) -> Vec<(String, Map<String, Value>)> {
    let functions = choose::callable(request);
    let is_forced = request.calling.mode == Mode::Any;
    let functions = if is_forced { functions } else { coding::choosable(functions, prompt) };
    let mut chosen = choose::chosen(&functions, prompt);
    if chosen.is_empty() && is_forced {
        chosen.extend(functions.first().map(|function| (0, *function)));
    }
    let done = called(since);
    let lower = prompt.text.to_lowercase();
    let is_sequence = chosen.len() > 1 && (lower.contains(" then ") || lower.contains(", then"));
    if is_sequence {
        chosen.retain(|(_, function)| !done.iter().any(|(name, _)| name == &function.name));
        chosen.truncate(1);
        return fill_all(&chosen, prompt, &results_first(since, prompt));
    }
    if !done.is_empty() && !is_forced {
        return Vec::new();
    }
    fill_all(&chosen, prompt, &prompt.numbers)
}

/// Names of the calls so far, with the number of numeric arguments.
fn called(since: &[Content]) -> Vec<(String, usize)> {
    let parts = since.iter().flat_map(|content| &content.parts);
    parts
        .filter_map(|part| match &part.data {
            Data::Call { name, args, .. } => {
                Some((name.clone(), args.values().filter(|value| value.is_number()).count()))
            }
            Data::None
            | Data::Text(_)
            | Data::Media { .. }
            | Data::Response { .. }
            | Data::Server(..) => None,
        })
        .collect()
}

/// Number of the last result, then the numbers of the text without those that the first call used.
fn results_first(since: &[Content], prompt: &Prompt) -> Vec<f64> {
    let taken = called(since).first().map_or(0, |(_, numbers)| *numbers);
    let last = since.iter().rev().flat_map(|content| content.parts.iter().rev());
    let result = last.into_iter().find_map(|part| match &part.data {
        Data::Response { response, .. } => response.values().find_map(number),
        Data::None | Data::Text(_) | Data::Media { .. } | Data::Call { .. } | Data::Server(..) => {
            None
        }
    });
    result.into_iter().chain(prompt.numbers.iter().copied().skip(taken)).collect()
}

fn number(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| value.as_str()?.trim().parse().ok())
}

fn fill_all(
    chosen: &[(usize, &Function)],
    prompt: &Prompt,
    numbers: &[f64],
) -> Vec<(String, Map<String, Value>)> {
    let mut out = Vec::new();
    let mut numbers_used = 0;
    for (index, (at, function)) in chosen.iter().enumerate() {
        let until = chosen.get(index + 1).map_or(usize::MAX, |(next, _)| *next);
        let schema = function.schema.as_ref();
        for names in names_of_calls(prompt, function, *at, until) {
            let left = numbers.get(numbers_used..).filter(|left| !left.is_empty());
            let mut filler = Filler::new(prompt, names, left.unwrap_or(numbers).to_vec());
            out.push((function.name.clone(), filler.arguments(schema)));
            numbers_used += filler.numbers_used();
        }
    }
    out.truncate(MAX_CALLS);
    out
}

/// Names for each call: one call per name if the function takes a single name. Names after the
/// function's own mention are preferred.
fn names_of_calls(
    prompt: &Prompt,
    function: &Function,
    at: usize,
    until: usize,
) -> Vec<Vec<String>> {
    let schema = function.schema.as_ref();
    let own = choose::name_words(&function.name);
    let is_value = |name: &str| {
        let words = name.to_lowercase();
        !words.split(' ').all(|word| own.iter().any(|own| own == word)) && !is_choice(schema, name)
    };
    let names: Vec<_> = prompt.names.iter().filter(|(_, name)| is_value(name)).collect();
    let near = names.iter().copied().filter(|(position, _)| (at..until).contains(position));
    let near: Vec<_> = near.collect();
    let names = if near.is_empty() { names } else { near };
    let mut names: Vec<String> = names.into_iter().map(|(_, name)| name.clone()).collect();
    names.dedup();
    match name_properties(schema) {
        1 if names.len() > 1 => names.into_iter().map(|name| vec![name]).collect(),
        _ => vec![names],
    }
}

/// JSON that follows the requested schema.
fn as_json(request: &Request, prompt: &Prompt) -> String {
    let names = prompt.names.iter().map(|(_, name)| name.clone()).collect();
    let mut filler = Filler::new(prompt, names, prompt.numbers.clone());
    match &request.settings.schema {
        Some(schema) => filler.value("", schema, schema, 0).to_string(),
        None => json!({"answer": answer::to_prompt(prompt)}).to_string(),
    }
}

/// Code that solves a formula, with its output.
fn code(request: &Request, prompt: &Prompt) -> Option<(String, String)> {
    request.server_tools.iter().find(|tool| *tool == "codeExecution")?;
    let sum = answer::to_prompt(prompt);
    let (formula, value) = sum.split_once(" = ")?;
    Some((format!("print({formula})\n"), value.to_owned()))
}

fn grounding(prompt: &Prompt, text: &str) -> Value {
    json!({
        "webSearchQueries": [prompt.gist()],
        "searchEntryPoint": {"renderedContent": "<div>Simulated search</div>"},
        "groundingChunks": [{"web": {"uri": "https://example.com/simulated", "title": "example.com"}}],
        "groundingSupports": [{
            "segment": {"endIndex": text.len(), "text": text},
            "groundingChunkIndices": [0],
        }],
    })
}
