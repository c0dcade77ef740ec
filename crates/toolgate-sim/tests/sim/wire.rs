//! URLs, keys, errors, models, tokens and the request log.

use http::Method;
use serde_json::{Value, json};
use toolgate_sim::{Cassette, Driver, Expect, Keys, SimConfig};

use super::*;

fn json_of(plan: &Plan) -> Value {
    serde_json::from_slice(&plan.bytes()).unwrap()
}

fn get(sim: &Sim, path: &str) -> (u16, Value) {
    let request = Request::get(path).header("x-goog-api-key", "test").body(Bytes::new()).unwrap();
    let plan = sim.plan(&request);
    (plan.status, json_of(&plan))
}

fn demo() -> Sim {
    Sim::new(SimConfig::default())
}

#[test]
fn all_paths_are_routed() {
    let sim = demo();
    for path in [
        "/v1beta/models/gemini-3-flash:generateContent",
        "/v1/models/gemini-3-flash:generateContent",
        "/v1beta1/models/gemini-3-flash:generateContent",
        "/models/gemini-3-flash:generateContent",
        "/v1beta1/projects/p/locations/europe-west4/publishers/google/models/gemini-3-flash:generateContent",
        "/v1beta1/publishers/google/models/gemini-3-flash:generateContent",
    ] {
        let plan = sim.plan(&post(path, &prompt("Hi", json!({}))));
        assert_eq!(plan.status, 200, "{path}");
        assert_eq!(plan.content_type, "application/json; charset=UTF-8");
    }
    for path in ["/", "/v1beta/files", "/v1beta/models/gemini-3-flash:embedContent"] {
        assert_eq!(sim.plan(&post(path, &json!({}))).status, 404, "{path}");
    }
    assert_eq!(get(&sim, "/v1beta/models/gemini-3-flash:generateContent").0, 404);
}

/// Status and message of the answer to a request with these headers.
fn with_headers(sim: &Sim, path: &str, headers: &[(&str, &str)], body: &str) -> (u16, Value) {
    let mut request = Request::post(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let plan = sim.plan(&request.body(Bytes::from(body.to_owned())).unwrap());
    (plan.status, json_of(&plan)["error"].clone())
}

#[test]
fn keys_are_checked() {
    let path = "/v1beta/models/gemini-3-flash:generateContent";
    let keyed = "/v1beta/models/gemini-3-flash:generateContent?key=abc";
    let vertex =
        "/v1beta1/projects/p/locations/l/publishers/google/models/gemini-3-flash:generateContent";
    let body = prompt("Hi", json!({})).to_string();
    let sim = demo();
    for (path, headers) in [
        (path, vec![("x-goog-api-key", "abc")]),
        (keyed, vec![]),
        (path, vec![("authorization", "Bearer abc")]),
        (vertex, vec![("authorization", "Bearer abc")]),
        (vertex, vec![("x-goog-api-key", "abc")]),
    ] {
        assert_eq!(with_headers(&sim, path, &headers, &body).0, 200, "{path} {headers:?}");
    }
    let (status, error) = with_headers(&sim, path, &[], &body);
    assert_eq!((status, &error["status"]), (403, &json!("PERMISSION_DENIED")));
    assert!(
        error["message"].as_str().unwrap().starts_with("Method doesn't allow unregistered callers")
    );
    let (status, error) = with_headers(&sim, path, &[("x-goog-api-key", "invalid")], &body);
    assert_eq!((status, &error["status"]), (400, &json!("INVALID_ARGUMENT")));
    assert_eq!(error["message"], "API key not valid. Please pass a valid API key.");
    assert_eq!(error["details"][0]["reason"], "API_KEY_INVALID");
    assert_eq!(error["details"][0]["@type"], "type.googleapis.com/google.rpc.ErrorInfo");
    let (status, error) = with_headers(&sim, vertex, &[], &body);
    assert_eq!((status, &error["status"]), (401, &json!("UNAUTHENTICATED")));
    // The Developer API parses the body first.
    let (status, error) = with_headers(&sim, path, &[], r#"{"colour":1}"#);
    assert_eq!(status, 400);
    assert!(error["message"].as_str().unwrap().contains("colour"));
    assert_eq!(with_headers(&sim, path, &[], "{}").0, 403);
    assert_eq!(with_headers(&sim, vertex, &[], r#"{"colour":1}"#).0, 401);

    let keys = Keys::These(vec!["good".to_owned()]);
    let choosy = Sim::new(SimConfig { keys, ..SimConfig::default() });
    assert_eq!(with_headers(&choosy, path, &[("x-goog-api-key", "good")], &body).0, 200);
    assert_eq!(with_headers(&choosy, path, &[("x-goog-api-key", "bad")], &body).0, 400);
    assert_eq!(with_headers(&choosy, path, &[("authorization", "Bearer bad")], &body).0, 401);
    let open = Sim::new(SimConfig { keys: Keys::NotNeeded, ..SimConfig::default() });
    assert_eq!(with_headers(&open, path, &[], &body).0, 200);
}

#[test]
fn models_are_listed() {
    let sim = demo();
    let (status, list) = get(&sim, "/v1beta/models");
    assert_eq!(status, 200);
    let names: Vec<_> = list["models"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["name"].as_str().unwrap().to_owned())
        .collect();
    for wanted in [
        "gemini-2.5-pro",
        "gemini-3-flash",
        "gemini-3.8-flash",
        "gemini-4-argon",
        "gemini-flash-latest",
    ] {
        assert!(names.contains(&format!("models/{wanted}")), "{wanted}");
    }
    assert!(list.get("nextPageToken").is_none());
    let mut paged = Vec::new();
    let mut token = String::new();
    loop {
        let (_, page) = get(&sim, &format!("/v1/models?pageSize=5&pageToken={token}"));
        let models = page["models"].as_array().unwrap();
        assert!(models.len() <= 5);
        paged.extend(models.iter().map(|it| it["name"].as_str().unwrap().to_owned()));
        match page["nextPageToken"].as_str() {
            Some(next) => token = next.to_owned(),
            None => break,
        }
    }
    assert_eq!(paged, names);
    let (status, model) = get(&sim, "/v1beta/models/gemini-3.6-flash");
    assert_eq!(
        (status, &model["thinking"], &model["inputTokenLimit"]),
        (200, &json!(true), &json!(1_048_576))
    );
    assert_eq!(get(&sim, "/v1beta/models/gpt-5").0, 404);
    let (_, vertex) = get(&sim, "/v1beta1/publishers/google/models");
    assert!(
        vertex["publisherModels"][0]["name"]
            .as_str()
            .unwrap()
            .starts_with("publishers/google/models/")
    );
}

#[test]
fn tokens_are_counted() {
    let sim = demo();
    let count = |body: Value| {
        let plan = sim.plan(&post("/v1beta/models/gemini-3-flash:countTokens", &body));
        assert_eq!(plan.status, 200, "{}", String::from_utf8_lossy(&plan.bytes()));
        json_of(&plan)["totalTokens"].as_u64().unwrap()
    };
    let short = count(json!({"contents": [user("Hi")]}));
    let long = count(json!({"contents": [user(&"word ".repeat(100))]}));
    let mut inner = prompt(
        "Hi",
        json!({"tools": tools(&["weather"]), "systemInstruction": {"parts": [{"text": "Be brief"}]}}),
    );
    inner["model"] = json!("models/gemini-3-flash");
    let full = count(json!({"generateContentRequest": inner}));
    assert!(short < full && full < long, "{short} {full} {long}");
    let image = count(
        json!({"contents": [{"parts": [{"inlineData": {"mimeType": "image/png", "data": "AAAA"}}]}]}),
    );
    assert_eq!(image, 258);
}

#[test]
fn errors_take_the_form_of_the_method() {
    let sim = demo();
    let body = prompt("Hi", json!({}));
    let ask = |suffix: &str| sim.plan(&post(&format!("/v1/models/gemini-none:{suffix}"), &body));
    let plain = ask("generateContent");
    assert_eq!((plain.status, plain.content_type), (404, "application/json; charset=UTF-8"));
    assert_eq!(
        json_of(&plain)["error"]["message"],
        "models/gemini-none is not found for API version v1, or is not supported for \
         generateContent. Call ModelService.ListModels to see the list of available models and \
         their supported methods."
    );
    let events = ask("streamGenerateContent?alt=sse");
    assert_eq!((events.status, events.content_type), (404, "text/event-stream"));
    assert_eq!(json_of(&events)["error"]["status"], "NOT_FOUND");
    let array = ask("streamGenerateContent");
    assert_eq!(json_of(&array)[0]["error"]["status"], "NOT_FOUND");
    assert_eq!(sim.counters().refusals, 3);
}

#[test]
fn answers_are_indented_unless_asked_otherwise() {
    let sim = demo();
    let body = prompt("Hi", json!({}));
    let pretty = sim.plan(&post("/v1beta/models/gemini-3-flash:generateContent", &body)).bytes();
    assert!(pretty.starts_with(b"{\n  \"candidates\": ["));
    let plain =
        sim.plan(&post("/v1beta/models/gemini-3-flash:generateContent?prettyPrint=false", &body));
    assert!(plain.bytes().starts_with(b"{\"candidates\":["));
}

#[test]
fn the_log_shows_received_requests() {
    let sim = demo();
    let body = prompt("Hi", json!({"tools": tools(&["weather"])}));
    sim.plan(&post("/v1beta/models/gemini-3-flash:generateContent?key=secret&alt=json", &body));
    sim.plan(&post("/v1beta/models/gemini-3-flash:generateContent", &json!({"colour": 1})));
    let seen = sim.requests();
    assert_eq!(seen.len(), 2);
    assert_eq!((seen[0].number, seen[0].status, seen[0].query.as_str()), (1, 200, "alt=json"));
    assert_eq!(seen[0].json(), body);
    assert_eq!(seen[0].function_names(), ["weather"]);
    assert!(seen[1].refusal.as_ref().unwrap().contains("colour"));
    assert_eq!(seen[0].header("x-goog-api-key"), None);
    assert!(!format!("{seen:?}").contains("secret"));

    let (_, shown) = get(&sim, "/__sim/requests");
    assert_eq!(shown[0]["body"], body);
    assert_eq!(shown[0]["raw"], body.to_string());
    let (_, counters) = get(&sim, "/__sim/counters");
    assert_eq!((&counters["requests"], &counters["refusals"]), (&json!(2), &json!(1)));
    let send = |method: Method, path: &str, body: &str| {
        let request =
            Request::builder().method(method).uri(path).body(Bytes::from(body.to_owned())).unwrap();
        sim.plan(&request)
    };
    assert_eq!(send(Method::DELETE, "/__sim/requests", "").status, 204);
    assert!(sim.requests().is_empty());
    assert_eq!(send(Method::POST, "/__sim/script", "[[turn]]\ntext = \"Scripted.\"").status, 204);
    let (_, answer) = generate(&sim, NEW, &prompt("Hi", json!({})));
    assert_eq!(answer["candidates"][0]["content"]["parts"][0]["text"], "Scripted.");
    let (status, ended) = generate(&sim, NEW, &prompt("Hi", json!({})));
    assert_eq!(
        (status, &ended["error"]["message"]),
        (501, &json!("toolgate-sim: the script has ended"))
    );
    assert_eq!(send(Method::POST, "/__sim/script", "[[turn]]\nwords = 1").status, 400);
    assert_eq!(send(Method::DELETE, "/__sim/script", "").status, 204);
    assert_eq!(generate(&sim, NEW, &prompt("Hi", json!({}))).0, 200);
    assert_eq!(
        send(Method::POST, "/__sim/faults", r#"[{"fault": {"kind": "status", "code": 503}}]"#)
            .status,
        204
    );
    assert_eq!(generate(&sim, NEW, &prompt("Hi", json!({}))).0, 503);
    assert_eq!(send(Method::DELETE, "/__sim/faults", "").status, 204);
    assert_eq!(send(Method::GET, "/__sim/nothing", "").status, 404);
}

#[test]
fn the_log_is_bounded() {
    let sim = Sim::new(SimConfig { keep_requests: 3, keep_bytes: 400, ..SimConfig::default() });
    for n in 0..10 {
        generate(&sim, NEW, &prompt(&format!("{n} {}", "x".repeat(100)), json!({})));
    }
    let seen = sim.requests();
    assert!(seen.len() <= 3 && seen.iter().map(|it| it.raw.len()).sum::<usize>() <= 400);
    assert_eq!(seen.last().unwrap().number, 10);
}

#[test]
fn unmet_expectations_are_errors() {
    let expect = |expect: Expect| expect;
    let script = Script::new()
        .expect(expect(Expect {
            contains: Some("weather".into()),
            tool: Some("weather".into()),
            ..Expect::default()
        }))
        .call("weather", json!({"city": "Oslo"}))
        .finish()
        .expect(expect(Expect {
            response: Some("weather".into()),
            stream: Some(true),
            ..Expect::default()
        }))
        .text("Rain.")
        .finish();
    let sim = scripted(script);
    let asked = prompt("the weather?", json!({"tools": tools(&["weather"])}));
    let (status, refused) = generate(&sim, NEW, &prompt("the news?", json!({})));
    assert_eq!(status, 501);
    assert_eq!(
        refused["error"]["message"],
        "toolgate-sim: turn 1 of the script expects `weather` in the user's text"
    );
    let turn = model_turn(&stream(&sim, NEW, &asked));
    let answer = answers(&turn, json!({"output": 1}));
    let body = json!({"contents": [asked["contents"][0], turn, answer]});
    assert_eq!(generate(&sim, NEW, &body).0, 501);
    assert_eq!(shape(&stream(&sim, NEW, &body)), "text | empty*!STOP");
    assert_eq!(sim.counters().unexpected, 2);
    assert_eq!(sim.requests()[1].function_names(), ["weather"]);
    assert_eq!(
        sim.requests()[3].function_response("weather").unwrap()["response"],
        json!({"output": 1})
    );
}

#[test]
fn turns_are_appended_to_a_running_script() {
    let sim = demo();
    sim.push(Script::new().text("one"));
    sim.push(Script::new().text("two").finish().text("three"));
    let said: Vec<_> = (0..3)
        .map(|_| {
            generate(&sim, OLD, &prompt("Hi", json!({}))).1["candidates"][0]["content"]["parts"][0]
                ["text"]
                .clone()
        })
        .collect();
    assert_eq!(said, ["one", "two", "three"]);
}

#[test]
fn r170_recordings_are_replayed() {
    let cassette = json!([
        {"method": "POST", "path": "/v1beta/models/m:streamGenerateContent", "query": {"alt": "sse"}, "request": {},
         "status": 200, "content_type": "text/event-stream", "response": "data: {\"a\":1}\r\n\r\ndata: {\"a\":2}\r\n\r\n"},
        {"method": "POST", "path": "/v1beta/models/m:generateContent", "request": {}, "status": 404,
         "content_type": "application/json; charset=UTF-8", "response": {"error": {"code": 404}}},
        {"method": "POST", "path": "/v1beta/models/m:streamGenerateContent", "request": {}, "status": 200,
         "content_type": "text/event-stream", "response": "data: {\"a\":3}\r\n\r\n"},
    ]);
    let sim = Sim::new(SimConfig::replaying(Cassette::parse(&cassette.to_string()).unwrap()));
    let path = "/v1beta/models/m:streamGenerateContent?alt=sse";
    let first = sim.plan(&post(path, &json!({"anything": 1})));
    assert_eq!(frames(&first), [json!({"a": 1}), json!({"a": 2})]);
    assert_eq!(first.steps.len(), 2);
    assert_eq!(frames(&sim.plan(&post(path, &json!({})))), [json!({"a": 3})]);
    assert_eq!(frames(&sim.plan(&post(path, &json!({})))), [json!({"a": 3})]);
    assert_eq!(sim.plan(&post("/v1beta/models/m:generateContent", &json!({}))).status, 404);
    assert_eq!(sim.plan(&post("/v1beta/models/other:generateContent", &json!({}))).status, 501);
    sim.set_driver(Driver::Demo);
    assert_eq!(generate(&sim, NEW, &prompt("Hi", json!({}))).0, 200);
}

#[test]
fn same_requests_get_same_answers() {
    let ask = |sim: &Sim| {
        sim.plan(&post(
            &format!("/v1beta/models/{NEW}:streamGenerateContent?alt=sse"),
            &prompt("Weather in Oslo?", json!({"tools": tools(&["weather"])})),
        ))
        .bytes()
    };
    let (one, two) = (demo(), demo());
    let first = ask(&one);
    assert_eq!(first, ask(&two));
    assert_ne!(first, ask(&one), "ids differ from answer to answer");
}

#[test]
fn the_documented_script_runs() {
    let document = include_str!("../../../../docs/simulator.md");
    let script = document.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    let sim = scripted(Script::parse(script).unwrap());
    let asked = prompt("the weather?", json!({"tools": tools(&["get_weather"])}));
    let turn = generate(&sim, NEW, &asked).1["candidates"][0]["content"].clone();
    let answer = answers(&turn, json!({"output": "rain"}));
    let body = json!({"contents": [asked["contents"][0], turn, answer]});
    assert_eq!(shape(&stream(&sim, NEW, &body)), "text | empty*!STOP");
    let (_, last) = generate(&sim, NEW, &asked);
    assert_eq!(last["candidates"][0]["finishReason"], "MAX_TOKENS");
    assert_eq!(generate(&sim, NEW, &asked).0, 429);
    assert_eq!(generate(&sim, NEW, &asked).0, 200);
    for kind in "status delay trickle stall cut reset split mid_stream malformed_call \
        unexpected_call empty_stop thinking_only safety blocked_prompt max_tokens_in_call finish"
        .split_whitespace()
    {
        assert!(document.contains(&format!("`{kind}`")), "{kind} is not in the document");
    }
}
