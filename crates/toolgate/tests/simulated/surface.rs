//! All settings of a request reach Gemini.

use serde_json::json;
use toolgate::canon::{Part, Request as Plain, Role, Settings, Turn};
use toolgate::{Effort, Message, Output, Raw, Request, Text, ToolChoice, Toolset, tool};
use toolgate_sim::Script;

use crate::support::{clean, client, last};

#[tokio::test]
async fn settings_are_encoded() {
    let (client, sim) = client(Script::new().text("Ok."));
    let request = Request::new(
        Message::new("Look.")
            .media("image/png", b"png")
            .file("video/mp4", "https://files.example/v"),
    )
    .model("gemini-3-flash-preview")
    .system("Be brief.")
    .system("Be kind.")
    .max_output_tokens(99)
    .temperature(0.5)
    .stop("END")
    .seed(5)
    .thinking(Effort::Low)
    .show_thoughts(true)
    .field("safetySettings", &json!([{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "OFF"}]))
    .field("serviceTier", &json!("standard"))
    .generation("mediaResolution", &json!("MEDIA_RESOLUTION_LOW"));
    client.generate(request).await.unwrap();
    clean(&sim, 1);
    let body = last(&sim);
    assert_eq!(sim.requests()[0].path, "/v1beta/models/gemini-3-flash-preview:generateContent");
    let parts = &body["contents"][0]["parts"];
    assert_eq!(parts[1]["inlineData"], json!({"mimeType": "image/png", "data": "cG5n"}));
    assert_eq!(parts[2]["fileData"]["fileUri"], "https://files.example/v");
    assert_eq!(body["systemInstruction"]["parts"].as_array().unwrap().len(), 2);
    let config = &body["generationConfig"];
    for (name, want) in [
        ("maxOutputTokens", json!(99)),
        ("temperature", json!(0.5)),
        ("stopSequences", json!(["END"])),
        ("seed", json!(5)),
        ("mediaResolution", json!("MEDIA_RESOLUTION_LOW")),
    ] {
        assert_eq!(config[name], want, "{name}");
    }
    assert_eq!(config["thinkingConfig"]["includeThoughts"], true);
    assert_eq!(body["safetySettings"][0]["threshold"], "OFF");
    assert_eq!(body["serviceTier"], "standard");
}

#[tokio::test]
async fn canonical_requests_are_accepted() {
    let (client, sim) = client(Script::new().text("Ok."));
    let plain = Plain {
        turns: vec![Turn { role: Role::User, parts: vec![Part::text(Text::new("Hi."))] }],
        settings: Settings { top_k: Some(3.0), ..Settings::default() },
        gemini: vec![("serviceTier".into(), Raw::of("flex").unwrap())],
        model: "gemini-2.5-flash".into(),
        ..Plain::default()
    };
    assert_eq!(client.generate(plain).await.unwrap().text(), "Ok.");
    assert_eq!(last(&sim)["generationConfig"]["topK"].as_f64(), Some(3.0));
    assert_eq!(last(&sim)["serviceTier"], "flex");
    clean(&sim, 1);
}

#[tokio::test]
async fn unsupported_settings_are_losses() {
    let (client, sim) = client(Script::new().text("Ok."));
    let request = Request::new("Hi.").field("labels", &json!({"a": "b"}));
    let response = client.generate(request).await.unwrap();
    assert!(response.losses().iter().any(|loss| loss.at == "labels"), "{:?}", response.losses());
    clean(&sim, 1);
}

#[tokio::test]
async fn derived_fields_are_refused() {
    let (client, sim) = client(Script::new().text("Ok."));
    for (name, hint) in [
        ("contents", "`user`"),
        ("generationConfig", "`generation`"),
        ("model", "`model`"),
        ("systemInstruction", "`system`"),
        ("toolConfig", "`tool_choice`"),
        ("toolConfig.functionCallingConfig", "`tool_choice`"),
        ("tools", "`Toolset::server_tool`"),
    ] {
        let request = || Request::new("Hi.").field(name, &json!({}));
        let error = client.generate(request()).await.unwrap_err().to_string();
        assert!(error.contains(name) && error.contains(hint), "{error}");
        assert_eq!(client.count_tokens(request()).await.unwrap_err().to_string(), error);
    }
    let place = json!({"languageCode": "en"});
    let request = Request::new("Hi.").field("toolConfig.retrievalConfig", &place);
    client.generate(request).await.unwrap();
    assert_eq!(last(&sim)["toolConfig"]["retrievalConfig"], place);
    clean(&sim, 1);
}

#[tokio::test]
async fn r034_unknown_parts_are_kept_and_sent_back() {
    let unknown = json!({"hologram": {"depth": 3}});
    let script = Script::new().text("See: ").part(unknown.clone()).finish().text("Ok.");
    let (client, sim) = client(script);
    let mut chat = client.chat(Request::default());
    let response = chat.send("Show.").await.unwrap();
    let seen: Vec<_> = response.server().map(|it| it.kind.clone().into_owned()).collect();
    assert_eq!(seen, ["hologram"]);
    assert_eq!(response.text(), "See: ");
    // The simulator refuses unknown parts, even those that it sent itself.
    chat.send("Again.").await.unwrap_err();
    let contents = &last(&sim)["contents"];
    assert_eq!(contents[1]["role"], "model");
    assert_eq!(contents[1]["parts"][1], unknown);
}

/// Draws a dot.
#[tool]
fn draw() -> Output {
    Output::text("a dot").and_media("image/png", b"png")
}

#[tokio::test]
async fn media_of_a_tool_are_sent() {
    for (model, inside) in [("gemini-3.6-flash", true), ("gemini-2.5-flash", false)] {
        let script = Script::new().call("draw", json!({})).finish().text("A dot.");
        let (client, sim) = client(script);
        let request = Request::new("Draw.").model(model).tools(Toolset::new().with::<draw>());
        assert_eq!(client.generate(request).await.unwrap().text(), "A dot.");
        clean(&sim, 2);
        let body = last(&sim);
        let response = sim.requests()[1].function_response("draw").unwrap();
        assert_eq!(response["response"], json!({"result": "a dot"}));
        assert_eq!(response.get("parts").is_some(), inside, "{model}");
        assert!(body.to_string().contains("cG5n"), "{model}");
    }
}

#[tokio::test]
async fn r022_none_forbids_calls() {
    let (client, sim) = client(Script::new().text("Ok."));
    let tools = Toolset::new().with::<draw>();
    let request = Request::new("Hi.").tools(tools).tool_choice(ToolChoice::None);
    client.generate(request).await.unwrap();
    assert_eq!(last(&sim)["toolConfig"]["functionCallingConfig"]["mode"], "NONE");
    clean(&sim, 1);
}

#[tokio::test]
async fn d8_a_preview_is_what_is_sent() {
    let (client, sim) = client(Script::new().text("Ok."));
    let request = Request::new("Hi.")
        .tools(Toolset::new().with::<crate::tools::weather>())
        .top_p(0.5)
        .top_k(7)
        .field(String::from("serviceTier"), &json!("flex"));
    let preview = client.preview(request.clone()).unwrap();
    assert_eq!(sim.counters().requests, 0);
    client.generate(request).await.unwrap();
    assert_eq!(preview.body, last(&sim));
    assert!(preview.url.ends_with("/v1beta/models/gemini-3.6-flash:generateContent"));
    assert_eq!(preview.body["serviceTier"], "flex");
    assert!(
        preview.losses.is_empty() || !preview.losses.iter().any(|loss| loss.at == "serviceTier")
    );
    let two = Toolset::new().with::<crate::tools::weather>().with::<crate::tools::weather>();
    assert!(client.preview(Request::new("Hi.").tools(two)).is_err());
}

#[tokio::test]
async fn d12_media_of_the_model_are_bytes() {
    let part = json!({"inlineData": {"mimeType": "image/png", "data": "iVBORw=="}});
    let (client, _sim) = client(Script::new().part(part).text("A picture."));
    let answer = client.generate("Draw.").await.unwrap();
    let media: Vec<_> = answer.media().collect();
    assert_eq!(media[0].mime(), Some("image/png"));
    assert_eq!(media[0].bytes().unwrap(), b"\x89PNG");
    let shown = serde_json::to_value(&answer).unwrap();
    assert_eq!(shown["media"][0]["data"], "iVBORw==");
    assert_eq!(shown["text"], "A picture.");
    assert_eq!(shown["finishReason"], "STOP");
    assert!(shown["usage"]["totalTokenCount"].is_u64(), "{shown}");
    assert_eq!(shown["history"][0]["role"], "model");
}

/// A test whose script does not fit fails at once: no retry can help.
#[tokio::test]
async fn d4_an_unmet_expectation_is_not_retried() {
    let expect = toolgate_sim::Expect { contains: Some("Bern".into()), ..Default::default() };
    let (client, sim) = client(Script::new().expect(expect).text("Ok."));
    let error = client.generate("Oslo?").await.unwrap_err();
    assert!(error.to_string().contains("turn 1 of the script expects `Bern`"), "{error}");
    assert!(!error.is_retryable());
    assert_eq!(sim.counters().requests, 1);
    assert_eq!(sim.unused_turns(), [1]);
}
