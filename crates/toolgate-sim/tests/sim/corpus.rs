//! Recorded exchanges: the simulator gives each request its recorded verdict, and streams of the same
//! kind have the same sequence of shapes.
//!
//! The recordings are not part of the repository; `TOOLGATE_CORPUS` names their folder, and
//! `cargo test -p toolgate-sim --test sim -- --ignored` checks them.

use serde_json::{Map, Value, json};
use toolgate_sim::{Script, SimConfig};

use super::*;

/// Removes recorded signatures, which only Google can verify.
fn without_signatures(body: &Value) -> Value {
    let mut body = body.clone();
    for content in body["contents"].as_array_mut().into_iter().flatten() {
        for part in content["parts"].as_array_mut().into_iter().flatten() {
            if let Some(part) =
                part.as_object_mut().filter(|part| part.contains_key("thoughtSignature"))
            {
                part.insert("thoughtSignature".into(), json!("skip_thought_signature_validator"));
            }
        }
    }
    body
}

fn recorded_chunks(exchange: &Value) -> Vec<Value> {
    let text = exchange["response"].as_str().unwrap();
    if exchange["content_type"] != "text/event-stream" {
        return vec![serde_json::from_str(text).unwrap()];
    }
    let frames = text.split("\r\n\r\n").filter_map(|frame| frame.strip_prefix("data: "));
    frames.map(|frame| serde_json::from_str(frame).unwrap()).collect()
}

/// A script of the recorded chunks.
fn script_of(chunks: &[Value]) -> Script {
    let mut script = Script::new();
    let mut code = None;
    for part in chunks.iter().flat_map(|chunk| {
        chunk["candidates"][0]["content"]["parts"].as_array().cloned().unwrap_or_default()
    }) {
        let text = part["text"].as_str().unwrap_or("").to_owned();
        script = if part["thought"] == true {
            script.thought(text)
        } else if let Some(call) = part.get("functionCall") {
            script.call(call["name"].as_str().unwrap(), call["args"].clone())
        } else if let Some(run) = part.get("executableCode") {
            code = run["code"].as_str().map(str::to_owned);
            continue;
        } else if let Some(result) = part.get("codeExecutionResult") {
            let output = result["output"].as_str().unwrap_or("").to_owned();
            script.code(code.take().unwrap_or_default(), output)
        } else if text.is_empty() {
            continue;
        } else {
            script.chunk(text)
        };
    }
    let finish = chunks.last().and_then(|chunk| chunk["candidates"][0]["finishReason"].as_str());
    script.finish_with(finish.unwrap_or("STOP"))
}

#[test]
#[ignore = "needs recordings, in the folder that TOOLGATE_CORPUS names"]
fn recordings_get_their_verdicts_and_shapes() {
    let folder = std::env::var("TOOLGATE_CORPUS").unwrap();
    let (mut judged, mut alike, mut other) = (0, 0, Vec::new());
    for file in std::fs::read_dir(&folder).unwrap() {
        let path = file.unwrap().path();
        let exchanges: Vec<Value> = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        for exchange in exchanges {
            let query = exchange["query"].as_object().cloned().unwrap_or_else(Map::new);
            let query: Vec<_> = query
                .iter()
                .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or("")))
                .collect();
            let url = format!("{}?{}", exchange["path"].as_str().unwrap(), query.join("&"));
            let body = without_signatures(&exchange["request"]);
            let status = exchange["status"].as_u64().unwrap();
            let recorded = if status == 200 { recorded_chunks(&exchange) } else { Vec::new() };
            let sim = Sim::new(SimConfig::scripted(script_of(&recorded)));
            let plan = sim.plan(&post(&url, &body));
            assert_eq!(
                u64::from(plan.status),
                status,
                "{}: {}",
                path.display(),
                String::from_utf8_lossy(&plan.bytes())
            );
            judged += 1;
            if status != 200 {
                let said: Value = serde_json::from_slice(&plan.bytes()).unwrap();
                let recorded: Value =
                    serde_json::from_str(exchange["response"].as_str().unwrap()).unwrap();
                assert_eq!(said["error"]["status"], recorded["error"]["status"]);
                assert_eq!(said["error"]["message"], recorded["error"]["message"]);
                continue;
            }
            let chunks = if plan.content_type == "text/event-stream" {
                frames(&plan)
            } else {
                vec![serde_json::from_slice(&plan.bytes()).unwrap()]
            };
            let (got, want) = (shape(&chunks), shape(&recorded));
            // 2.5 signs texts irregularly.
            let unsigned = |shape: &str| shape.replace("text*!", "text!");
            if unsigned(&got) == unsigned(&want) {
                alike += 1;
            } else {
                other.push(format!(
                    "{}\n  got  {got}\n  want {want}",
                    path.file_name().unwrap().display()
                ));
            }
        }
    }
    assert!(judged > 0, "nothing to check in {folder}");
    assert!(other.is_empty(), "{alike} alike, but not:\n{}", other.join("\n"));
}
