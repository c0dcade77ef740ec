//! Results and arguments of tools, byte by byte.

use serde_json::{Value, json};
use toolgate_core::canon::{
    CallInput, LossCode, Media, MediaSource, Part, Request, ResultPart, Target, ToolName,
    ToolResult,
};
use toolgate_core::json::Text;
use toolgate_core::schema::Cache;
use toolgate_core::upstream::generate_content::{EncodeOptions, Learned};

use crate::support::{
    NEW, OLD, a_call, a_result, call, codes, contents, dev, encode, encode_with, model, picture,
    raw, result, says, shape, text, user, vertex,
};

const PNG: &str = "iVBORw0KGgoAAAANSUhEUg==";

fn answered(result: ToolResult<'static>) -> Request<'static> {
    says(vec![
        user(vec![text("Go.")]),
        model(vec![call("1", "a", "{}")]),
        user(vec![Part::Result(ToolResult { call_id: Some("1".into()), ..result })]),
    ])
}

fn json_result(json: &str) -> ToolResult<'static> {
    a_result("1", vec![ResultPart::Json(raw(json))])
}

fn words(words: &[&str]) -> ToolResult<'static> {
    a_result("1", words.iter().map(|it| ResultPart::Text(Text::new(it))).collect())
}

/// The response exactly as it stands in the body.
#[track_caller]
fn check(result: ToolResult<'static>, want: &str) {
    let (_, encoded) = encode(&answered(result), &dev(NEW));
    let body = String::from_utf8(encoded.body).unwrap();
    let start = body.find("\"response\":").expect("a response") + "\"response\":".len();
    assert!(body[start..].starts_with(&format!("{want}}}")), "{want} in {}", &body[start..]);
}

#[test]
fn r39_r40_r47_results_are_objects() {
    check(words(&["22 °C"]), r#"{"result":"22 °C"}"#);
    check(words(&[]), r#"{"result":""}"#);
    check(words(&["one", "two"]), r#"{"result":"one\ntwo"}"#);
    check(words(&[r#"{"a":1}"#]), r#"{"result":"{\"a\":1}"}"#);
    check(json_result("[1, 2]"), r#"{"result":[1,2]}"#);
    check(json_result("1.50"), r#"{"result":1.50}"#);
    check(json_result("null"), r#"{"result":null}"#);
    check(json_result(r#"{"output": {"t": 17.0}}"#), r#"{"output":{"t":17.0}}"#);
    let both = vec![ResultPart::Text(Text::new("rows:")), ResultPart::Json(raw("[ 1 ]"))];
    check(a_result("1", both), r#"{"result":"rows:\n[1]"}"#);
}

#[test]
fn r41_r117_errors_are_errors() {
    let error = |result| ToolResult { is_error: true, ..result };
    check(error(words(&["timed out"])), r#"{"error":"timed out"}"#);
    check(error(words(&[])), r#"{"error":""}"#);
    check(error(json_result(r#"{"error":"x","code":1}"#)), r#"{"error":"x","code":1}"#);
    check(error(json_result(r#"{"code":1}"#)), r#"{"error":{"code":1}}"#);
    check(error(json_result("5")), r#"{"error":5}"#);
}

#[test]
fn what_gemini_would_misread_is_told_as_text() {
    check(
        json_result(r##"{"a":[{"$ref" : "#/$defs/X"}]}"##),
        r##"{"result":"{\"a\":[{\"$ref\":\"#/$defs/X\"}]}"}"##,
    );
    check(json_result(r#"{"a":"$ref"}"#), r#"{"a":"$ref"}"#);
    check(json_result(r#"{"a":"\"$ref\":"}"#), r#"{"a":"\"$ref\":"}"#);
    let nested =
        |depth: usize| format!("{}{{}}{}", "{\"a\":".repeat(depth - 1), "}".repeat(depth - 1));
    check(json_result(&nested(25)), &nested(25));
    let quoted = serde_json::to_string(&nested(26)).unwrap();
    check(json_result(&nested(26)), &format!("{{\"result\":{quoted}}}"));
}

#[test]
fn r42_r43_results_of_one_step_are_one_user_content() {
    let request = says(vec![
        user(vec![text("Go.")]),
        model(vec![call("1", "a", "{}"), call("2", "b", "{}")]),
        user(vec![result("1", "x"), result("2", "y")]),
    ]);
    let contents = contents(&request, &dev(NEW));
    assert_eq!(contents[2]["role"], "user");
    assert_eq!(contents[2]["parts"].as_array().unwrap().len(), 2);
}

#[test]
fn r92_r116_a_result_bears_the_name_of_its_call() {
    let request = says(vec![
        user(vec![text("Go.")]),
        model(vec![call("1", "a", "{}"), call("2", "b", "{}")]),
        user(vec![
            // The tool's name in the result itself does not count.
            Part::Result(ToolResult {
                tool: Some(ToolName::plain("something_else")),
                ..a_result("2", Vec::new())
            }),
            result("1", "x"),
        ]),
    ]);
    assert_eq!(shape(&request, &dev(OLD)), "user: text | model: a b | user: =a =b");
}

#[test]
fn r49_law6_a10_arguments_and_results_pass_unchanged() {
    let args = r#"{"z":1.0,"items":[{"title":"a","format":"b","const":1,"default":2,"$ref":"r"}],"big":123456789012345678901,"e":"\u00e9é","a":null}"#;
    let told = "22 °C \u{1F600} \"quoted\" \\ and\ttabs";
    let request = says(vec![
        user(vec![text("Go.")]),
        model(vec![call("1", "a", args)]),
        user(vec![result("1", told)]),
    ]);
    for target in [dev(OLD), dev(NEW), vertex(NEW)] {
        let (body, encoded) = encode(&request, &target);
        let sent = String::from_utf8(encoded.body).unwrap();
        assert!(sent.contains(&format!("\"args\":{args}")), "{sent}");
        assert_eq!(body["contents"][2]["parts"][0]["functionResponse"]["response"]["result"], told);
    }
}

#[test]
fn r45_arguments_that_are_not_an_object_become_one() {
    for (args, want, losses) in [
        ("null", json!({}), 0),
        (r#""not JSON""#, json!({"value": "not JSON"}), 1),
        ("[1,2]", json!({"value": [1, 2]}), 1),
        ("true", json!({"value": true}), 1),
    ] {
        let request = says(vec![
            user(vec![text("Go.")]),
            model(vec![call("1", "a", args)]),
            user(vec![result("1", "x")]),
        ]);
        let (body, encoded) = encode(&request, &dev(OLD));
        assert_eq!(body["contents"][1]["parts"][0]["functionCall"]["args"], want);
        assert_eq!(codes(&encoded), vec![LossCode::Changed; losses], "{args}");
    }
    let mut freeform = a_call("1", "patch", "{}");
    freeform.input = CallInput::Text(Text::new("*** Begin\n+x"));
    let request = says(vec![user(vec![text("Go.")]), model(vec![Part::Call(freeform)])]);
    let args = contents(&request, &dev(NEW))[1]["parts"][0]["functionCall"]["args"].clone();
    assert_eq!(args, json!({"input": "*** Begin\n+x"}));
    let deep = format!("{}1{}", "[".repeat(60), "]".repeat(60));
    let request = says(vec![
        user(vec![text("Go.")]),
        model(vec![call("1", "a", &format!("{{\"a\":{deep}}}"))]),
    ]);
    let args = contents(&request, &dev(NEW))[1]["parts"][0]["functionCall"]["args"].clone();
    assert!(args["value"].is_string());
}

fn shown(media: Vec<Media<'static>>) -> ToolResult<'static> {
    let mut content = vec![ResultPart::Text(Text::new("a screenshot"))];
    content.extend(media.into_iter().map(ResultPart::Media));
    a_result("1", content)
}

#[test]
fn f1_pictures_go_into_the_response_where_the_model_takes_them() {
    let png = json!([{"inlineData": {"mimeType": "image/png", "data": PNG}}]);
    for target in [dev("gemini-3-flash-preview"), dev(NEW), vertex(NEW)] {
        for mime in ["image/png", ""] {
            let contents = contents(&answered(shown(vec![picture(mime, PNG)])), &target);
            let response = &contents[2]["parts"][0]["functionResponse"];
            assert_eq!(response["parts"], png);
            assert_eq!(response["response"], json!({"result": "a screenshot"}));
        }
    }
    for target in [dev(OLD), vertex(OLD)] {
        let request = answered(shown(vec![picture("image/png", PNG)]));
        assert_eq!(
            shape(&request, &target),
            "user: text | model: a | user: =a | user: text inlineData"
        );
    }
    // Only a picture.
    let only = a_result("1", vec![ResultPart::Media(picture("image/jpg", "/9j/4AAQSkZJRg=="))]);
    let contents = contents(&answered(only), &dev(NEW));
    let response = &contents[2]["parts"][0]["functionResponse"];
    assert_eq!(response["response"], json!({"result": ""}));
    assert_eq!(response["parts"][0]["inlineData"]["mimeType"], "image/jpeg");
}

#[test]
fn f1_what_does_not_fit_follows_and_names_its_call() {
    let gif = picture("image/gif", "R0lGODdh");
    let address = Media {
        mime: None,
        source: MediaSource::Uri(Text::new("https://example.test/a/plan.png?size=2")),
        name: None,
        modifiers: Vec::new(),
    };
    let request = says(vec![
        user(vec![text("Go.")]),
        model(vec![call("1", "shot", "{}"), call("2", "plan", "{}")]),
        user(vec![
            Part::Result(ToolResult { call_id: Some("2".into()), ..shown(vec![address]) }),
            Part::Result(shown(vec![picture("image/png", PNG), gif])),
            text("Compare them."),
        ]),
    ]);
    let want = "user: text | model: shot+ plan | user: =shot =plan \
                | user: text inlineData text fileData text";
    // The words behind end the step, so that its calls are of an earlier turn.
    assert_eq!(shape(&request, &dev(NEW)), want.replace('+', ""));
    let contents = contents(&request, &dev(NEW));
    let parts = &contents[3]["parts"];
    assert!(parts[0]["text"].as_str().unwrap().contains("shot"));
    assert!(parts[2]["text"].as_str().unwrap().contains("plan"));
    let file =
        json!({"mimeType": "image/png", "fileUri": "https://example.test/a/plan.png?size=2"});
    assert_eq!(parts[3]["fileData"], file);
    assert_eq!(parts[4]["text"], "Compare them.");
}

#[test]
fn f2_documents_are_documents() {
    let pdf = picture("application/pdf", "JVBERi0xLjcKJYGB");
    let of = |target: &Target| contents(&answered(shown(vec![pdf.clone()])), target);
    let inline = json!({"mimeType": "application/pdf", "data": "JVBERi0xLjcKJYGB"});
    assert_eq!(of(&dev(NEW))[2]["parts"][0]["functionResponse"]["parts"][0]["inlineData"], inline);
    assert_eq!(of(&dev(OLD))[3]["parts"][1]["inlineData"], inline);
    let cache = Cache::default();
    let learned = Learned { no_response_media: true, ..Learned::default() };
    let options = EncodeOptions { learned: &learned, ..EncodeOptions::new(&cache) };
    let (body, _) = encode_with(&answered(shown(vec![pdf.clone()])), &dev(NEW), &options);
    assert_eq!(body["contents"][3]["parts"][1]["inlineData"], inline);
}

#[track_caller]
fn check_media(media: Media<'static>, target: &Target, want: &Value, losses: &[LossCode]) {
    let request = says(vec![user(vec![Part::Media(media)])]);
    let (body, encoded) = encode(&request, target);
    assert_eq!(body["contents"][0]["parts"][0], *want);
    assert_eq!(codes(&encoded), losses);
}

#[test]
fn media_of_users_get_a_type() {
    let inline = |mime: &str, data: &str| json!({"inlineData": {"mimeType": mime, "data": data}});
    for (data, mime) in [
        (PNG, "image/png"),
        ("/9j/4AAQSkZJRg==", "image/jpeg"),
        ("_9j_4AAQSkZJRg", "image/jpeg"),
        ("R0lGODdhAQABAA==", "image/gif"),
        ("UklGRiQAAABXRUJQVlA4", "image/webp"),
        ("UklGRiQAAABXQVZFZm10", "audio/wav"),
        ("JVBERi0xLjcK", "application/pdf"),
    ] {
        check_media(picture("", data), &dev(NEW), &inline(mime, data), &[]);
    }
    let unknown = inline("application/octet-stream", "AAAA");
    check_media(picture("", "AAAA"), &dev(NEW), &unknown, &[LossCode::Changed]);

    let uri = |address: &str| Media {
        mime: None,
        source: MediaSource::Uri(Text::new(address)),
        name: Some("plan".into()),
        modifiers: vec![
            ("videoMetadata".into(), raw(r#"{"fps":1}"#)),
            ("thought_signature".into(), raw("null")),
        ],
    };
    let film = json!({
        "fileData": {"fileUri": "https://youtu.be/abc", "displayName": "plan"},
        "videoMetadata": {"fps": 1},
    });
    check_media(uri("https://youtu.be/abc"), &vertex(NEW), &film, &[]);
    let guess = json!({
        "fileData": {"mimeType": "image/jpeg", "fileUri": "https://example.test/x"},
        "videoMetadata": {"fps": 1},
    });
    let losses = [LossCode::Changed, LossCode::Ignored];
    check_media(uri("https://example.test/x"), &dev(NEW), &guess, &losses);
}
