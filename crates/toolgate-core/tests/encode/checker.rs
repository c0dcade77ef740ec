//! Gemini's rules, written down once more and without a look at the encoder.

use std::collections::BTreeSet;

use serde_json::Value;
use toolgate_core::canon::{Backend, Target};

const PLACEHOLDER: &str = "skip_thought_signature_validator";
const DATA: [&str; 9] = [
    "text",
    "inlineData",
    "fileData",
    "functionCall",
    "functionResponse",
    "executableCode",
    "codeExecutionResult",
    "toolCall",
    "toolResponse",
];

/// The version that a model's name says, as a number to compare: 2.5 is 205.
fn version(model: &str) -> u32 {
    let mut numbers = model.split('-').filter_map(|token| token.parse::<f64>().ok());
    numbers.find(|number| *number < 10.0).map_or(999, |number| {
        let (major, minor) = (number.trunc(), (number.fract() * 10.0).round());
        (major * 100.0 + minor) as u32
    })
}

/// Says which rule the body breaks.
pub(crate) fn check(body: &Value, target: &Target) -> Result<(), String> {
    let version = version(&target.model);
    let newest = version >= 306 || target.model.contains("3.5-flash-lite");
    let contents = array(body, "contents")?;
    check_tools(body, version, target.backend)?;
    check_config(body, version)?;
    check_turns(&contents, newest, version >= 300)?;
    if version >= 300 {
        check_signatures(&contents)?;
    }
    let mut seen = BTreeSet::new();
    for part in contents.iter().flat_map(parts) {
        if let Some(signature) = part["thoughtSignature"].as_str() {
            let bytes = signature.replace('-', "+").replace('_', "/");
            ensure(signature == PLACEHOLDER || seen.insert(bytes), "a signature stands twice")?;
        }
        if target.backend == Backend::Vertex || version < 300 {
            ensure(part.get("toolCall").is_none(), "toolCall is not known here")?;
        }
    }
    Ok(())
}

fn check_turns(contents: &[Value], newest: bool, ids: bool) -> Result<(), String> {
    ensure(!contents.is_empty(), "no contents")?;
    ensure(contents[0]["role"] == "user", "the first content is not the user's")?;
    let last = contents.len() - 1;
    ensure(!newest || contents[last]["role"] == "user", "ends with a model turn")?;
    let mut used = BTreeSet::new();
    for (at, content) in contents.iter().enumerate() {
        let role = content["role"].as_str().unwrap_or_default();
        ensure(matches!(role, "user" | "model"), "a role that is neither user nor model")?;
        ensure(!parts(content).is_empty(), "a content without parts")?;
        for part in parts(content) {
            let data = DATA.iter().filter(|name| part.get(**name).is_some()).count();
            ensure(data == 1, "a part without exactly one datum")?;
            let silent = part["text"] == "" && part.get("thoughtSignature").is_none();
            ensure(!silent || at == 0, "an empty text")?;
        }
        let responses = named(content, "functionResponse");
        let calls = named(content, "functionCall");
        ensure(calls.is_empty() || role == "model", "a call that is not the model's")?;
        if !responses.is_empty() {
            ensure(role == "user", "a response that is not the user's")?;
            ensure(responses.len() == parts(content).len(), "words beside responses")?;
            ensure(at > 0, "responses without calls")?;
            let calls = named(&contents[at - 1], "functionCall");
            ensure(calls.len() == responses.len(), "not one response for each call")?;
            for (call, response) in calls.iter().zip(&responses) {
                ensure(call["name"] == response["name"], "a response to another function")?;
                ensure(call.get("id") == response.get("id"), "ids on one side only")?;
                ensure(response["response"].is_object(), "a response that is no object")?;
            }
        }
        for call in &calls {
            ensure(is_name(&call["name"]), "a name that Gemini refuses")?;
            ensure(call["args"].is_object(), "arguments that are no object")?;
            ensure(call.get("id").is_some() == ids, "an id that is not wanted, or none")?;
            ensure(!ids || used.insert(call["id"].to_string()), "an id that is used twice")?;
        }
        let next = contents.get(at + 1);
        if !calls.is_empty() {
            let answered = next.is_some_and(|next| !named(next, "functionResponse").is_empty());
            ensure(answered, "calls without responses")?;
        }
        if let Some(next) = next
            && next["role"] == role
        {
            ensure(role == "user" && !responses.is_empty(), "two contents of one role")?;
        }
    }
    Ok(())
}

fn check_signatures(contents: &[Value]) -> Result<(), String> {
    let said = |content: &Value| {
        content["role"] == "user" && named(content, "functionResponse").is_empty()
    };
    let current = contents.iter().rposition(said).unwrap_or(0);
    for content in &contents[current..] {
        let first = parts(content).into_iter().find(|part| part.get("functionCall").is_some());
        let signed = first.is_none_or(|part| part["thoughtSignature"].is_string());
        ensure(signed, "the first call of a step without a signature")?;
        let others = parts(content)
            .into_iter()
            .filter(|part| part.get("functionCall").is_some())
            .skip(1)
            .any(|part| part["thoughtSignature"] == PLACEHOLDER);
        ensure(!others, "the placeholder on a call that is not the first")?;
    }
    Ok(())
}

fn check_tools(body: &Value, version: u32, backend: Backend) -> Result<(), String> {
    let tools = match body.get("tools") {
        Some(_) => array(body, "tools")?,
        None => Vec::new(),
    };
    ensure(body.get("tools").is_none() || !tools.is_empty(), "an empty list of tools")?;
    for tool in &tools {
        let members = tool.as_object().map_or(0, serde_json::Map::len);
        ensure(members == 1, "not one kind of tool in a tool")?;
    }
    let declaring: Vec<&Value> =
        tools.iter().filter(|tool| tool.get("functionDeclarations").is_some()).collect();
    ensure(declaring.len() <= 1, "functions in several tools")?;
    let functions = match declaring.first() {
        Some(tool) => array(tool, "functionDeclarations")?,
        None => Vec::new(),
    };
    ensure(functions.len() <= 512, "too many functions")?;
    let names: BTreeSet<&str> = functions.iter().filter_map(|it| it["name"].as_str()).collect();
    ensure(names.len() == functions.len(), "two functions of one name")?;
    for function in &functions {
        ensure(is_name(&function["name"]), "a name that Gemini refuses")?;
        ensure(function["description"].is_string(), "a function without a description")?;
    }
    let built_in = tools.len() > declaring.len();
    let mixed = built_in && !functions.is_empty();
    ensure(!mixed || version >= 300, "functions beside built-in tools")?;
    let config = &body["toolConfig"];
    let flag = config.get("includeServerSideToolInvocations");
    let known = version >= 300 && backend == Backend::Developer;
    ensure(flag.is_none() || known, "a flag that is not known here")?;
    ensure(!mixed || !known || flag.is_some(), "built-in tools without the flag")?;
    let calling = &config["functionCallingConfig"];
    ensure(flag.is_none() || calling["mode"] != "AUTO", "the flag in mode AUTO")?;
    ensure(calling.is_null() || !functions.is_empty(), "calling without functions")?;
    if let Some(allowed) = calling.get("allowedFunctionNames").and_then(Value::as_array) {
        ensure(!allowed.is_empty(), "an empty list of allowed names")?;
        let mode = calling["mode"].as_str().unwrap_or_default();
        ensure(matches!(mode, "ANY" | "VALIDATED"), "allowed names in the wrong mode")?;
        for name in allowed {
            let declared = name.as_str().is_some_and(|name| names.contains(name));
            ensure(declared, "an allowed name that is not declared")?;
        }
    }
    let json = body["generationConfig"]["responseMimeType"] == "application/json";
    ensure(!json || calling["mode"] != "ANY", "JSON output and a forced call")?;
    ensure(!json || version >= 300 || tools.is_empty(), "JSON output beside tools")?;
    Ok(())
}

fn check_config(body: &Value, version: u32) -> Result<(), String> {
    let config = &body["generationConfig"];
    let is_empty = |value: &Value| value.as_object().is_some_and(serde_json::Map::is_empty);
    ensure(!is_empty(config) && !is_empty(&body["toolConfig"]), "an empty object")?;
    let thinking = &config["thinkingConfig"];
    let (budget, level) = (thinking.get("thinkingBudget"), thinking.get("thinkingLevel"));
    ensure(budget.is_none() || level.is_none(), "a budget and a level")?;
    ensure(level.is_none() || version >= 300, "a level where a budget is wanted")?;
    // A budget is still taken by models that want a level, if it is one.
    let is_one = |budget: &Value| budget.as_i64().is_some_and(|budget| budget > 0);
    ensure(budget.is_none_or(|it| version < 300 || is_one(it)), "no budget for a level")?;
    let candidates = config["candidateCount"].as_i64().unwrap_or(1);
    ensure(candidates == 1 || version < 300 && candidates <= 8, "several candidates")?;
    ensure(config["maxOutputTokens"].as_i64().unwrap_or(1) > 0, "no tokens")?;
    let stops = config["stopSequences"].as_array().map_or(0, Vec::len);
    ensure(stops <= 5, "too many stop sequences")?;
    let temperature = config["temperature"].as_f64().unwrap_or(1.0);
    ensure((0.0..=2.0).contains(&temperature), "too hot")
}

fn is_name(name: &Value) -> bool {
    let name = name.as_str().unwrap_or_default().as_bytes();
    let word = |byte: &u8| byte.is_ascii_alphanumeric() || b"_.-".contains(byte);
    (1..=64).contains(&name.len())
        && (name[0].is_ascii_alphabetic() || name[0] == b'_')
        && name.iter().all(word)
}

fn named(content: &Value, kind: &str) -> Vec<Value> {
    parts(content).into_iter().filter_map(|part| part.get(kind).cloned()).collect()
}

fn parts(content: &Value) -> Vec<Value> {
    content["parts"].as_array().cloned().unwrap_or_default()
}

fn array(value: &Value, name: &str) -> Result<Vec<Value>, String> {
    value[name].as_array().cloned().ok_or_else(|| format!("`{name}` is not an array"))
}

fn ensure(holds: bool, broken: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(broken.to_owned()) }
}
