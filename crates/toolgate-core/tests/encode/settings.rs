//! `generationConfig`.

use serde_json::{Value, json};
use toolgate_core::canon::{Effort, LossCode, Request, Settings, Target, Thinking, ThinkingMode};
use toolgate_core::json::Text;

use crate::support::{NEW, OLD, asks, codes, dev, encode, raw, refuse, vertex};

#[track_caller]
fn check(settings: Settings<'static>, target: &Target, want: &Value, losses: &[LossCode]) {
    let request = Request { settings, ..asks("Go.") };
    let (body, encoded) = encode(&request, target);
    assert_eq!(body.get("generationConfig").unwrap_or(&Value::Null), want);
    assert_eq!(codes(&encoded), losses);
}

#[test]
fn nothing_said_nothing_sent() {
    for target in [dev(OLD), dev(NEW), vertex(NEW), dev("gemini-2.0-flash")] {
        check(Settings::default(), &target, &Value::Null, &[]);
    }
}

#[test]
fn r119_settings_are_carried_along() {
    let settings = Settings {
        max_output_tokens: Some(4096),
        temperature: Some(0.7),
        top_p: Some(0.95),
        top_k: Some(40.0),
        stop: vec![Text::new("END"), Text::EMPTY],
        seed: Some(7),
        ..Settings::default()
    };
    let want = json!({
        "maxOutputTokens": 4096, "stopSequences": ["END"], "temperature": 0.7, "topP": 0.95,
        "topK": 40, "seed": 7,
    });
    check(settings.clone(), &dev(OLD), &want, &[]);
    // Newer models take them and do as they like.
    check(settings, &dev(NEW), &want, &[LossCode::Ignored; 3]);
}

#[test]
fn what_is_out_of_range_is_moved_into_it() {
    let base = Settings::default;
    let changed = [LossCode::Changed];
    check(
        Settings { temperature: Some(3.5), ..base() },
        &dev(OLD),
        &json!({"temperature": 2}),
        &changed,
    );
    check(Settings { top_p: Some(-1.0), ..base() }, &dev(OLD), &json!({"topP": 0}), &changed);
    check(Settings { top_k: Some(1.5), ..base() }, &dev(OLD), &json!({"topK": 2}), &changed);
    check(Settings { top_k: Some(1.5), ..base() }, &vertex(OLD), &json!({"topK": 1.5}), &[]);
    check(
        Settings { max_output_tokens: Some(128_000), ..base() },
        &dev(NEW),
        &json!({"maxOutputTokens": 128_000}),
        &[],
    );
    check(
        Settings { max_output_tokens: Some(128_000), ..base() },
        &vertex(OLD),
        &json!({"maxOutputTokens": 65_536}),
        &changed,
    );
    let stop = (0..7).map(|number| Text::new(&number.to_string())).collect();
    check(
        Settings { stop, ..base() },
        &dev(NEW),
        &json!({"stopSequences": ["0", "1", "2", "3", "4"]}),
        &changed,
    );
    let request = Request { settings: Settings { seed: Some(1 << 40), ..base() }, ..asks("Go.") };
    let (body, _) = encode(&request, &dev(OLD));
    assert!(i32::try_from(body["generationConfig"]["seed"].as_i64().unwrap()).is_ok());
    for tokens in [0, -1] {
        let settings = Settings { max_output_tokens: Some(tokens), ..base() };
        let error = refuse(&Request { settings, ..asks("Go.") }, &dev(NEW));
        assert_eq!(error.at, "max_output_tokens");
    }
}

#[test]
fn what_a_model_refuses_is_left_out_and_said() {
    let settings = Settings {
        presence_penalty: Some(0.5),
        frequency_penalty: Some(0.0),
        logprobs: Some(30),
        candidates: Some(3),
        ..Settings::default()
    };
    let losses = [LossCode::Ignored, LossCode::Ignored, LossCode::Changed];
    check(settings.clone(), &dev(OLD), &json!({"candidateCount": 3}), &losses[..2]);
    check(settings.clone(), &dev(NEW), &Value::Null, &losses);
    let want = json!({
        "presencePenalty": 0.5, "frequencyPenalty": 0, "responseLogprobs": true, "logprobs": 20,
    });
    check(settings, &vertex(NEW), &want, &[LossCode::Changed]);
    let many = Settings { candidates: Some(20), ..Settings::default() };
    check(many, &dev(OLD), &json!({"candidateCount": 8}), &[LossCode::Changed]);
    let one = Settings { candidates: Some(1), ..Settings::default() };
    check(one, &dev(NEW), &Value::Null, &[]);
}

#[test]
fn thinking_is_a_budget_or_a_level() {
    let thinking = Thinking {
        mode: ThinkingMode::On,
        effort: Some(Effort::Medium),
        budget: Some(2_000),
        show: Some(true),
    };
    let request = Request { thinking, ..asks("Go.") };
    for (target, want) in [
        (dev(OLD), json!({"thinkingBudget": 2_000, "includeThoughts": true})),
        (dev(NEW), json!({"thinkingLevel": "MEDIUM", "includeThoughts": true})),
        (vertex(NEW), json!({"thinkingLevel": "MEDIUM", "includeThoughts": true})),
        (dev("gemini-2.0-flash"), Value::Null),
    ] {
        let (body, _) = encode(&request, &target);
        assert_eq!(body["generationConfig"]["thinkingConfig"], want, "{target:?}");
    }
}

#[test]
fn a_gemini_clients_own_budget_stays_a_budget() {
    let own = |budget: i64| Request {
        thinking: Thinking { mode: ThinkingMode::On, budget: Some(budget), ..Thinking::default() },
        gemini_generation: vec![("thinkingConfig".into(), raw("{}"))],
        ..asks("Go.")
    };
    for (budget, target, want) in [
        (2_000, dev(OLD), json!({"thinkingBudget": 2_000})),
        (2_000, dev(NEW), json!({"thinkingBudget": 2_000})),
        (40_000, vertex(NEW), json!({"thinkingBudget": 40_000})),
        (1 << 40, dev(NEW), json!({"thinkingBudget": 65_535})),
        (0, dev(NEW), json!({"thinkingLevel": "LOW"})),
        (-1, dev(NEW), Value::Null),
        (2_000, dev("gemini-2.0-flash"), Value::Null),
    ] {
        let (body, _) = encode(&own(budget), &target);
        assert_eq!(body["generationConfig"]["thinkingConfig"], want, "{target:?}");
    }
}

#[test]
fn geminis_own_members_are_copied_and_never_doubled() {
    let mut request = asks("Go.");
    request.settings.temperature = Some(1.0);
    request.gemini_generation = vec![
        ("response_modalities".into(), raw(r#"["TEXT"]"#)),
        ("responseModalities".into(), raw(r#"["IMAGE"]"#)),
        ("temperature".into(), raw("0.1")),
        ("mediaResolution".into(), raw("null")),
        ("speechConfig".into(), raw(r#"{ "languageCode": "de" }"#)),
        ("routingConfig".into(), raw("{}")),
    ];
    let (body, encoded) = encode(&request, &dev(OLD));
    let want = json!({
        "temperature": 1, "responseModalities": ["TEXT"], "speechConfig": {"languageCode": "de"},
    });
    assert_eq!(body["generationConfig"], want);
    assert_eq!(codes(&encoded), [LossCode::Ignored]);
    let (body, _) = encode(&request, &vertex(OLD));
    assert_eq!(body["generationConfig"]["routingConfig"], json!({}));
}
