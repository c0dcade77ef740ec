//! The demo model.

use serde_json::{Value, json};

use super::*;

fn calls(body: &Value) -> Vec<(String, Value)> {
    let sim = Sim::new(SimConfig::default());
    let (status, answer) = generate(&sim, "gemini-3-flash", body);
    assert_eq!(status, 200, "{answer}");
    let parts = answer["candidates"][0]["content"]["parts"].as_array().cloned().unwrap_or_default();
    let calls = parts.iter().filter_map(|part| part.get("functionCall"));
    calls.map(|call| (call["name"].as_str().unwrap().to_owned(), call["args"].clone())).collect()
}

fn text(body: &Value) -> String {
    let sim = Sim::new(SimConfig::default());
    let (status, answer) = generate(&sim, "gemini-3-flash", body);
    assert_eq!(status, 200, "{answer}");
    let parts = answer["candidates"][0]["content"]["parts"].as_array().cloned().unwrap_or_default();
    parts.iter().filter_map(|part| part["text"].as_str()).collect()
}

#[track_caller]
fn check(words: &str, names: &[&str], want: &[(&str, Value)]) {
    let got = calls(&prompt(words, json!({"tools": tools(names)})));
    let want: Vec<_> = want.iter().map(|(name, args)| ((*name).to_owned(), args.clone())).collect();
    assert_eq!(got, want, "{words}");
}

#[test]
fn r102_acceptance_requests() {
    let declared = json!([{"functionDeclarations": [{
        "name": "get_weather", "description": "Get weather",
        "parameters": {"type": "OBJECT", "properties": {"city": {"type": "STRING"}}, "required": ["city"]},
    }]}]);
    let asked = prompt("What is the weather in Tokyo?", json!({"tools": declared}));
    assert_eq!(calls(&asked), [("get_weather".to_owned(), json!({"city": "Tokyo"}))]);

    let sim = Sim::new(SimConfig::default());
    let turn = model_turn(&stream(&sim, "gemini-3-flash", &asked));
    for response in [
        json!({"temp": 72, "unit": "F"}),
        json!({"result": {"temp": 72, "unit": "F"}}),
        json!({"output": "{\"temp\":72,\"unit\":\"F\"}"}),
    ] {
        let body = json!({"contents": [asked["contents"][0], turn, answers(&turn, response)]});
        let chunks = stream(&sim, "gemini-3-flash", &body);
        let parts = model_turn(&chunks);
        let words: String = parts["parts"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|it| it["text"].as_str())
            .collect();
        assert_eq!(words, "According to get_weather (city Tokyo): temp 72, unit F.");
    }
    assert_eq!(text(&prompt("What is 2+2?", json!({}))), "2+2 = 4");
}

#[test]
fn the_demo_model_fills_the_todo_list() {
    let schema = json!({"type": "object", "required": ["todos"], "properties": {"todos": {"type": "array", "items": {
        "type": "object", "required": ["content", "status", "activeForm"],
        "properties": {"content": {"type": "string"}, "status": {"type": "string"}, "activeForm": {"type": "string"}},
    }}}});
    let body = prompt(
        "Add a todo to review the design doc",
        json!({"tools": [{"functionDeclarations": [
            {"name": "TodoWrite", "description": "Create and manage task lists", "parametersJsonSchema": schema},
        ]}]}),
    );
    assert_eq!(
        calls(&body),
        [(
            "TodoWrite".to_owned(),
            json!({"todos": [{
                "content": "Review the design doc", "status": "pending", "activeForm": "Reviewing the design doc",
            }]})
        )]
    );
}

#[test]
fn several_names_give_several_calls() {
    let weather = &["get_weather", "get_time"];
    let city = |city: &str| json!({"city": city});
    check(
        "What is the weather in Paris and Rome?",
        weather,
        &[("get_weather", city("Paris")), ("get_weather", city("Rome"))],
    );
    check(
        "Weather in New York, São Paulo and Oslo",
        weather,
        &[
            ("get_weather", city("New York")),
            ("get_weather", city("São Paulo")),
            ("get_weather", city("Oslo")),
        ],
    );
    check(
        "Give me the weather in Paris and the time in Rome",
        weather,
        &[("get_weather", city("Paris")), ("get_time", city("Rome"))],
    );
    check(
        "Weather and time in Oslo, please",
        weather,
        &[("get_weather", city("Oslo")), ("get_time", city("Oslo"))],
    );
    check("weather in tokyo", weather, &[("get_weather", city("tokyo"))]);
    check("Tell me a story", weather, &[]);
    let numbers = |names: &[&str]| {
        let declared: Vec<_> = names.iter().map(|name| json!({"name": name, "parameters": {
            "type": "object", "properties": {"x": {"type": "number"}, "y": {"type": "number"}}, "required": ["x", "y"],
        }})).collect();
        json!({"tools": [{"functionDeclarations": declared}]})
    };
    let body = prompt(
        "Compute 3 + 4 with the add tool and 10 - 2 with the subtract tool.",
        numbers(&["subtract", "add"]),
    );
    assert_eq!(
        calls(&body),
        [
            ("add".to_owned(), json!({"x": 3, "y": 4})),
            ("subtract".to_owned(), json!({"x": 10, "y": 2}))
        ]
    );
}

#[test]
fn steps_are_called_in_sequence() {
    let declared: Vec<_> = ["add", "subtract"].iter().map(|name| json!({"name": name, "parameters": {
        "type": "object", "properties": {"x": {"type": "number"}, "y": {"type": "number"}}, "required": ["x", "y"],
    }})).collect();
    let mut body = prompt(
        "Calculate 12 - 5 using the subtract tool, then add 30 to it using the add tool.",
        json!({
            "tools": [{"functionDeclarations": declared}],
        }),
    );
    let sim = Sim::new(SimConfig::default());
    let mut seen = Vec::new();
    for (result, _) in [(7, 0), (37, 1)] {
        let turn = model_turn(&stream(&sim, NEW, &body));
        seen.push(turn["parts"][0]["functionCall"]["args"].clone());
        let answer = answers(&turn, json!({"result": result}));
        body["contents"].as_array_mut().unwrap().extend([turn, answer]);
    }
    assert_eq!(seen, [json!({"x": 12, "y": 5}), json!({"x": 7, "y": 30})]);
    let (_, last) = generate(&sim, NEW, &body);
    assert!(last["candidates"][0]["content"]["parts"][0]["text"].as_str().unwrap().contains("37"));
}

#[test]
fn calling_modes_are_respected() {
    let body = |words: &str, config: Value| {
        prompt(
            words,
            json!({"tools": tools(&["get_weather", "get_time"]), "toolConfig": {"functionCallingConfig": config}}),
        )
    };
    let names = |body: &Value| calls(body).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    assert_eq!(names(&body("Weather in Oslo?", json!({"mode": "NONE"}))), Vec::<String>::new());
    assert_eq!(names(&body("Hello!", json!({"mode": "AUTO"}))), Vec::<String>::new());
    assert_eq!(names(&body("Hello!", json!({"mode": "VALIDATED"}))), Vec::<String>::new());
    assert_eq!(names(&body("Hello!", json!({"mode": "ANY"}))), ["get_weather"]);
    let only_time = json!({"mode": "ANY", "allowedFunctionNames": ["get_time"]});
    assert_eq!(names(&body("Weather in Oslo?", only_time)), ["get_time"]);
    let valid_time = json!({"mode": "VALIDATED", "allowedFunctionNames": ["get_time"]});
    assert_eq!(names(&body("Weather in Oslo?", valid_time.clone())), Vec::<String>::new());
    assert_eq!(names(&body("Time in Oslo?", valid_time)), ["get_time"]);
}

#[test]
fn results_are_reported() {
    let sim = Sim::new(SimConfig::default());
    let asked = prompt("What is the weather in Tokyo?", json!({"tools": tools(&["get_weather"])}));
    let turn = model_turn(&stream(&sim, NEW, &asked));
    let tell = |response: Value| {
        let body = json!({"contents": [asked["contents"][0], turn, answers(&turn, response)]});
        let (_, answer) = generate(&sim, NEW, &body);
        answer["candidates"][0]["content"]["parts"][0]["text"].as_str().unwrap().to_owned()
    };
    assert_eq!(
        tell(json!({"result": "22 °C, \u{2028}klar"})),
        "According to get_weather (city Tokyo): 22 °C, \u{2028}klar."
    );
    assert_eq!(tell(json!({"error": "timeout"})), "get_weather (city Tokyo) failed: timeout");
    assert_eq!(tell(json!({})), "According to get_weather (city Tokyo): nothing came back.");
}

#[test]
fn json_follows_the_schema() {
    let body = prompt(
        "Rate the city of Oslo with 7",
        json!({"generationConfig": {
            "responseMimeType": "application/json",
            "responseJsonSchema": {"type": "OBJECT", "properties": {
                "name": {"type": "STRING"}, "score": {"type": "INTEGER", "maximum": 5}, "kind": {"enum": ["town", "city"]},
            }, "required": ["name", "score", "kind"]},
        }}),
    );
    let answer: Value = serde_json::from_str(&text(&body)).unwrap();
    assert_eq!(answer, json!({"name": "Oslo", "score": 5, "kind": "city"}));
    let free = prompt("Hi", json!({"generationConfig": {"responseMimeType": "application/json"}}));
    assert!(serde_json::from_str::<Value>(&text(&free)).unwrap()["answer"].is_string());
}

#[test]
fn server_side_tools_are_simulated() {
    let sim = Sim::new(SimConfig::default());
    let (_, searched) =
        generate(&sim, NEW, &prompt("Who won?", json!({"tools": [{"googleSearch": {}}]})));
    assert!(
        searched["candidates"][0]["groundingMetadata"]["groundingChunks"][0]["web"]["uri"]
            .is_string()
    );
    let run =
        stream(&sim, NEW, &prompt("Compute 6 * 7", json!({"tools": [{"codeExecution": {}}]})));
    assert_eq!(shape(&run), "code* | result | text | text | empty!STOP");
}

#[test]
fn texts_of_programs_are_not_the_prompt() {
    let body = json!({
        "contents": [{"role": "user", "parts": [
            {"text": "<session>Weather in Berlin</session>"},
            {"text": "<reminder>mention Rome</reminder>\nWhat is the weather in Oslo?"},
        ]}],
        "tools": tools(&["get_weather"]),
    });
    assert_eq!(calls(&body), [("get_weather".to_owned(), json!({"city": "Oslo"}))]);
}

/// Coding agents add texts before and after the user's, and between calls and results.
#[test]
fn r126_texts_that_agents_add_are_not_the_prompt() {
    let sim = Sim::new(SimConfig::default());
    let reminder = "<system-reminder>\nThe weather in Rome matters.\n</system-reminder>";
    let mut body = json!({
        "contents": [
            {"role": "user", "parts": [
                {"text": reminder},
                {"text": "What is the weather in Oslo?"},
                {"text": "<system-reminder>never closed, about the weather in Bonn"},
            ]},
            user("# Environment\nYou have been invoked in the following environment: Paris"),
        ],
        "tools": tools(&["get_weather"]),
    });
    let first = model_turn(&stream(&sim, NEW, &body));
    assert_eq!(first["parts"][0]["functionCall"]["args"], json!({"city": "Oslo"}));
    let answer = answers(&first, json!({"output": "rain"}));
    body["contents"].as_array_mut().unwrap().extend([first, answer]);
    // Texts after the results do not make the model call again.
    for after in
        ["Tool loaded.", reminder, "<environment_context><cwd>/w</cwd></environment_context>"]
    {
        body["contents"].as_array_mut().unwrap().push(user(after));
        let (_, last) = generate(&sim, NEW, &body);
        assert_eq!(
            last["candidates"][0]["content"]["parts"][0]["text"],
            "According to get_weather (city Oslo): rain.",
            "{after}"
        );
    }
    body["contents"].as_array_mut().unwrap().push(user("And the weather in Bergen?"));
    let next = model_turn(&stream(&sim, NEW, &body));
    assert_eq!(next["parts"][0]["functionCall"]["args"], json!({"city": "Bergen"}));
}
