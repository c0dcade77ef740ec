//! Conversations that clients really send, and what Gemini gets of them.

use serde_json::json;
use toolgate_core::canon::{Backend, LossCode, Part, Request, Role, Target, ToolName, Turn};
use toolgate_core::json::Text;
use toolgate_core::schema::Cache;
use toolgate_core::upstream::generate_content::{
    EncodeOptions, encode_count_tokens, encode_request,
};

use crate::support::{
    NEW, OLD, a_result, asks, call, codes, contents, dev, encode, instruction, model, named_result,
    raw, refuse, result, says, shape, text, thought, tool, user, vertex,
};

#[track_caller]
fn check(turns: Vec<Turn<'static>>, want: &str, losses: &[LossCode]) {
    let request = says(turns);
    // On a model without signatures, so that the shape shows the turns only.
    assert_eq!(shape(&request, &dev(OLD)), want);
    let (_, encoded) = encode(&request, &dev(OLD));
    assert_eq!(codes(&encoded), losses);
    // The other targets have rules of their own, which the checker knows.
    for target in [dev(NEW), vertex(OLD), vertex(NEW), dev("gemini-3.5-flash")] {
        encode(&request, &target);
    }
}

fn hi() -> Turn<'static> {
    user(vec![text("Hi.")])
}

#[test]
fn e1_every_call_gets_one_response_in_call_order() {
    let calls = || model(vec![call("1", "a", "{}"), call("2", "b", "{}"), call("3", "c", "{}")]);
    // In completion order.
    check(
        vec![hi(), calls(), user(vec![result("3", "z"), result("1", "x"), result("2", "y")])],
        "user: text | model: a b c | user: =a =b =c",
        &[],
    );
    // One is missing, and the user says something: an interrupted turn.
    check(
        vec![hi(), calls(), user(vec![result("1", "x"), result("3", "z"), text("Stop!")])],
        "user: text | model: a b c | user: =a =b! =c | user: text",
        &[LossCode::MissingResult],
    );
    // All of them are missing.
    check(
        vec![hi(), calls(), user(vec![text("Never mind.")])],
        "user: text | model: a b c | user: =a! =b! =c! | user: text",
        &[LossCode::MissingResult; 3],
    );
    // The result of a call that is not in the history.
    check(
        vec![
            hi(),
            model(vec![call("1", "a", "{}")]),
            user(vec![result("1", "x"), result("9", "?")]),
        ],
        "user: text | model: a | user: =a | user: text text",
        &[LossCode::OrphanResult],
    );
    // Each twice, as a resumed gemini-cli sends them; the second time with another text.
    check(
        vec![
            hi(),
            model(vec![call("1", "a", "{}")]),
            user(vec![result("1", "x"), result("1", "x")]),
        ],
        "user: text | model: a | user: =a",
        &[],
    );
    check(
        vec![
            hi(),
            model(vec![call("1", "a", "{}")]),
            user(vec![result("1", "x"), result("1", "y")]),
        ],
        "user: text | model: a | user: =a",
        &[LossCode::Changed],
    );
    // Split over two messages, with words between them.
    check(
        vec![
            hi(),
            calls(),
            user(vec![result("2", "y")]),
            user(vec![text("And then:"), result("3", "z"), result("1", "x")]),
        ],
        "user: text | model: a b c | user: =a =b =c | user: text",
        &[],
    );
}

#[test]
fn e1_of_two_results_the_last_is_sent() {
    let request = says(vec![
        hi(),
        model(vec![call("1", "a", "{}")]),
        user(vec![result("1", "old"), result("1", "new")]),
    ]);
    let contents = contents(&request, &dev(NEW));
    assert_eq!(contents[2]["parts"][0]["functionResponse"]["response"], json!({"result": "new"}));
}

#[test]
fn e1_calls_that_share_an_id_are_told_apart() {
    let request = says(vec![
        hi(),
        model(vec![call("same", "a", "{}"), call("same", "a", "{}")]),
        user(vec![result("same", "one"), result("same", "two")]),
        model(vec![call("same", "a", "{}")]),
        user(vec![result("same", "three")]),
    ]);
    let contents = contents(&request, &dev(NEW));
    let said = |content: usize, part: usize| {
        contents[content]["parts"][part]["functionResponse"]["response"]["result"].clone()
    };
    assert_eq!([said(2, 0), said(2, 1), said(4, 0)], ["one", "two", "three"]);
}

#[test]
fn e2_results_come_right_after_their_calls() {
    // A compacted history begins with a result.
    check(
        vec![user(vec![result("0", "left over")]), model(vec![text("Fine.")]), hi()],
        "user: text text | model: text | user: text",
        &[LossCode::OrphanResult],
    );
    // … or with a call.
    check(
        vec![model(vec![call("1", "a", "{}")]), user(vec![result("1", "x")])],
        "user: empty | model: a | user: =a",
        &[LossCode::Changed],
    );
    // A system message stands between.
    check(
        vec![
            hi(),
            model(vec![call("1", "a", "{}")]),
            instruction("Remember the rules."),
            user(vec![result("1", "x")]),
        ],
        "user: text | model: a | user: =a | user: text",
        &[],
    );
    // The model's own words stand between.
    check(
        vec![
            hi(),
            model(vec![call("1", "a", "{}")]),
            model(vec![text("Let me see.")]),
            user(vec![result("1", "x")]),
        ],
        "user: text | model: a text | user: =a",
        &[],
    );
    // A late result, after the model has gone on.
    check(
        vec![
            hi(),
            model(vec![call("1", "a", "{}"), call("2", "b", "{}")]),
            user(vec![result("1", "x")]),
            model(vec![text("Waiting.")]),
            user(vec![result("2", "y"), text("Here you are.")]),
        ],
        "user: text | model: a b | user: =a =b | model: text | user: text text text",
        &[LossCode::Changed],
    );
    // Steps stay steps.
    check(
        vec![
            hi(),
            model(vec![call("1", "a", "{}")]),
            user(vec![result("1", "x")]),
            model(vec![call("2", "b", "{}")]),
            user(vec![result("2", "y")]),
        ],
        "user: text | model: a | user: =a | model: b | user: =b",
        &[],
    );
}

#[test]
fn e1_e2_a_result_is_not_moved_past_the_models_words() {
    let waiting = || model(vec![text("Waiting.")]);
    let calls = || model(vec![call("1", "a", "{}"), call("2", "b", "{}")]);
    for (turns, want, losses) in [
        (
            vec![
                hi(),
                calls(),
                user(vec![result("1", "x")]),
                waiting(),
                user(vec![result("2", "y")]),
            ],
            "user: text | model: a b | user: =a =b | model: text | user: text text",
            1,
        ),
        (
            vec![
                hi(),
                model(vec![call("2", "b", "{}")]),
                user(vec![text("Never mind.")]),
                waiting(),
                user(vec![result("2", "y")]),
            ],
            "user: text | model: b | user: =b | user: text | model: text | user: text text",
            1,
        ),
        // The model has called something else.
        (
            vec![
                hi(),
                model(vec![call("2", "b", "{}")]),
                hi(),
                model(vec![call("3", "c", "{}")]),
                user(vec![result("2", "y"), result("3", "z")]),
            ],
            "user: text | model: b | user: =b | user: text | model: c | user: =c | user: text text",
            1,
        ),
        // A first word, and the result itself.
        (
            vec![
                hi(),
                model(vec![call("2", "b", "{}")]),
                user(vec![result("2", "started")]),
                waiting(),
                user(vec![result("2", "y")]),
            ],
            "user: text | model: b | user: =b | model: text | user: text text",
            1,
        ),
        // Only the user has spoken.
        (
            vec![
                hi(),
                model(vec![call("2", "b", "{}")]),
                hi(),
                model(vec![text("")]),
                user(vec![result("2", "y")]),
            ],
            "user: text | model: b | user: =b | user: text",
            0,
        ),
    ] {
        check(turns.clone(), want, &vec![LossCode::Changed; losses]);
        for target in [dev(OLD), dev("gemini-3.5-flash"), dev(NEW), vertex(NEW)] {
            let contents = contents(&says(turns.clone()), &target);
            let last = contents.as_array().unwrap().last().unwrap().clone();
            assert_eq!(last["role"], "user");
            assert!(!last.to_string().contains("Continue"), "{last}");
            if losses > 0 {
                let told = &last["parts"];
                let words = told[0]["text"].as_str().unwrap();
                assert!(words.starts_with("The earlier call of b (call "), "{words}");
                assert_eq!(told[1]["text"], "y");
            }
        }
    }
    let first = says(vec![
        hi(),
        calls(),
        user(vec![result("1", "x")]),
        waiting(),
        user(vec![result("2", "y")]),
    ]);
    let responses = &contents(&first, &dev(NEW))[2]["parts"];
    assert_eq!(responses[0]["functionResponse"]["response"], json!({"result": "x"}));
    let later = responses[1]["functionResponse"]["response"]["result"].as_str().unwrap();
    assert!(later.contains("later"), "{later}");
}

#[test]
fn e2_parts_are_put_into_the_right_hands() {
    // A result in the model's turn, a call in the user's.
    check(
        vec![
            hi(),
            model(vec![call("1", "a", "{}"), result("1", "x"), text("Good.")]),
            user(vec![text("Now b."), call("2", "b", "{}")]),
            user(vec![result("2", "y")]),
        ],
        "user: text | model: a | user: =a | model: text | user: text | model: b | user: =b",
        &[],
    );
}

#[test]
fn e3_r132_a_result_without_a_call_is_told_as_text() {
    let orphan = Part::Result(toolgate_core::canon::ToolResult {
        tool: Some(ToolName::plain("read_file")),
        is_error: true,
        ..a_result(
            "toolu_9",
            vec![toolgate_core::canon::ResultPart::Text(Text::new("no such file"))],
        )
    });
    let contents = contents(&says(vec![user(vec![orphan, text("What now?")])]), &dev(NEW));
    let parts = contents[0]["parts"].as_array().unwrap();
    let first = parts[0]["text"].as_str().unwrap();
    for word in ["Error", "read_file", "toolu_9"] {
        assert!(first.contains(word), "{first}");
    }
    assert_eq!(
        (&parts[1]["text"], &parts[2]["text"]),
        (&json!("no such file"), &json!("What now?"))
    );
}

#[test]
fn e4_roles_emptiness_and_prefill() {
    check(
        vec![model(vec![text("Hello.")]), hi()],
        "user: empty | model: text | user: text",
        &[LossCode::Changed],
    );
    check(
        vec![hi(), hi(), model(vec![text("a"), text("")]), hi()],
        "user: text text | model: text | user: text",
        &[],
    );
    check(vec![hi(), model(vec![text("")]), user(vec![]), hi()], "user: text text", &[]);
    check(
        vec![hi(), model(vec![thought("hm", None)]), hi()],
        "user: text text",
        &[LossCode::Ignored],
    );
    // A prefill is kept where the model goes on from it, and asked for where it does not.
    let prefill = says(vec![hi(), model(vec![text("{\"a\":")])]);
    assert_eq!(shape(&prefill, &dev(OLD)), "user: text | model: text");
    assert_eq!(shape(&prefill, &dev("gemini-3.5-flash")), "user: text | model: text");
    for target in [dev("gemini-3.5-flash-lite"), dev("gemini-3.6-flash"), dev(NEW), vertex(NEW)] {
        assert_eq!(shape(&prefill, &target), "user: text | model: text | user: text");
        assert_eq!(codes(&encode(&prefill, &target).1), [LossCode::Changed]);
    }
    assert_eq!(
        contents(&says(vec![model(vec![text("a")]), hi()]), &vertex(NEW))[0]["parts"][0]["text"],
        " "
    );
}

#[test]
fn e4_nothing_to_answer_is_an_error() {
    for turns in
        [vec![], vec![user(vec![])], vec![user(vec![text("")])], vec![model(vec![text("")])]]
    {
        let error = refuse(&says(turns), &dev(NEW));
        assert_eq!(error.at, "");
        assert!(error.reason.starts_with("there is nothing to answer"), "{error}");
    }
}

#[test]
fn e5_ids_go_on_both_sides_or_on_neither() {
    let request = says(vec![
        hi(),
        model(vec![
            call("toolu_tgAbCdEfGhIjKl_gjl2yj5t", "a", "{}"),
            call("call_tgAbCdEfGhIjKl", "b", "{}"),
            call("", "c", "{}"),
            call(&"x".repeat(900), "d", "{}"),
        ]),
    ]);
    for target in [dev("gemini-3-flash-preview"), dev(NEW), vertex("gemini-3.1-pro-preview")] {
        let contents = contents(&request, &target);
        let ids: Vec<_> = (0..4)
            .map(|at| contents[1]["parts"][at]["functionCall"]["id"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(ids[..3], ["gjl2yj5t", "tgAbCdEfGhIjKl", "call_3"]);
        assert!(ids[3].len() < 40, "{ids:?}");
    }
    for target in [dev(OLD), vertex(OLD), dev("gemini-2.0-flash")] {
        assert_eq!(contents(&request, &target)[1]["parts"][0]["functionCall"].get("id"), None);
    }
}

#[test]
fn e5_geminis_own_id_comes_back() {
    let mut own = crate::support::a_call("client-side", "a", "{}");
    own.upstream_id = Some("g98os1Jf".into());
    let request =
        says(vec![hi(), model(vec![Part::Call(own)]), user(vec![result("client-side", "x")])]);
    let contents = contents(&request, &dev(NEW));
    assert_eq!(contents[1]["parts"][0]["functionCall"]["id"], "g98os1Jf");
    assert_eq!(contents[2]["parts"][0]["functionResponse"]["id"], "g98os1Jf");
}

#[test]
fn e6_foreign_ids_with_dashes_are_ids_and_nothing_else() {
    check(
        vec![
            hi(),
            model(vec![call("toolu_01-ab", "my-tool", "{}"), call("my-tool-1", "other", "{}")]),
            user(vec![result("my-tool-1", "y"), result("toolu_01-ab", "x")]),
        ],
        "user: text | model: my-tool other | user: =my-tool =other",
        &[],
    );
}

#[test]
fn c3_c5_ids_that_clients_changed_are_still_found() {
    let ours = "toolu_tgAbCdEfGhIjKl_gjl2yj5t";
    for theirs in [
        "call_tgAbCdEfGhIjKl_gjl2yj5t",
        "toolu_tgabcdefghijkl_gjl2yj5t",
        "toolu-tgAbCdEfGhIjKl-gjl2yj5t",
        "toolu_tgAbCdEfGhIjKl_gjl2yj5t__thought__abc",
        "fc_toolu_tgAbCdEfGhIjKl_gjl2yj5t",
        "toolu_tgAbCdEfGh",
    ] {
        check(
            vec![
                hi(),
                model(vec![call("other", "b", "{}"), call(ours, "a", "{}")]),
                user(vec![result(theirs, "x"), result("other", "y")]),
            ],
            "user: text | model: b a | user: =b =a",
            &[],
        );
    }
    // Altogether different, but even in number: by their order, and said so.
    check(
        vec![
            hi(),
            model(vec![call("1", "a", "{}"), call("2", "b", "{}")]),
            user(vec![result("x", "x"), result("y", "y")]),
        ],
        "user: text | model: a b | user: =a =b",
        &[LossCode::Changed, LossCode::Changed],
    );
    // Uneven: the pairing is unknown.
    check(
        vec![
            hi(),
            model(vec![call("1", "a", "{}"), call("2", "b", "{}")]),
            user(vec![result("x", "x")]),
        ],
        "user: text | model: a b | user: =a! =b! | user: text text",
        &[LossCode::MissingResult, LossCode::MissingResult, LossCode::OrphanResult],
    );
}

#[test]
fn results_without_ids_are_matched_by_name_and_order() {
    let request = says(vec![
        hi(),
        model(vec![call("", "a", r#"{"n":1}"#), call("", "b", "{}"), call("", "a", r#"{"n":2}"#)]),
        user(vec![
            named_result("b", r#"{"result":"b"}"#),
            named_result("a", r#"{"result":"first"}"#),
            named_result("a", r#"{"result":"second"}"#),
        ]),
    ]);
    for target in [dev(OLD), dev(NEW), vertex(NEW)] {
        let contents = contents(&request, &target);
        let said: Vec<_> = (0..3)
            .map(|at| contents[2]["parts"][at]["functionResponse"]["response"]["result"].clone())
            .collect();
        assert_eq!(said, ["first", "b", "second"]);
    }
    assert_eq!(codes(&encode(&request, &dev(OLD)).1), []);
}

#[test]
fn r44_a_model_turn_is_one_content_whatever_its_pieces() {
    check(
        vec![
            hi(),
            model(vec![text("I look it up.")]),
            model(vec![call("1", "a", "{}")]),
            model(vec![call("2", "b", "{}")]),
            user(vec![result("1", "x")]),
            user(vec![result("2", "y")]),
        ],
        "user: text | model: text a b | user: =a =b",
        &[],
    );
}

#[test]
fn r46_r118_the_whole_history_is_sent() {
    let turns = (0..20)
        .flat_map(|number| {
            let id = format!("id{number}");
            [
                user(vec![text(&format!("Question {number}"))]),
                model(vec![text(&format!("Thinking about {number}")), call(&id, "look", "{}")]),
                user(vec![result(&id, &format!("Found {number}"))]),
                model(vec![text(&format!("Answer {number}"))]),
            ]
        })
        .chain([hi()])
        .collect();
    let request = says(turns);
    let (body, encoded) = encode(&request, &dev(NEW));
    assert_eq!(body["contents"].as_array().unwrap().len(), 81);
    let sent = String::from_utf8(encoded.body).unwrap();
    for number in 0..20 {
        for said in ["Question", "Thinking about", "Found", "Answer"] {
            assert_eq!(sent.matches(&format!("\"{said} {number}\"")).count(), 1, "{said} {number}");
        }
    }
}

#[test]
fn r119_the_system_prompt_goes_along() {
    let request = Request {
        system: vec![Text::new("Be brief."), Text::EMPTY, Text::new("Be kind.")],
        tools: vec![tool("a")],
        ..asks("Go.")
    };
    let (body, _) = encode(&request, &dev(NEW));
    let want = json!({"parts": [{"text": "Be brief."}, {"text": "Be kind."}]});
    assert_eq!(body["systemInstruction"], want);
    let silent = Request { system: vec![Text::EMPTY], ..asks("Go.") };
    assert_eq!(encode(&silent, &dev(NEW)).0.get("systemInstruction"), None);
}

#[test]
fn counting_tokens_takes_another_form_on_each_back_end() {
    let cache = Cache::default();
    let options = EncodeOptions::new(&cache);
    let mut request = Request {
        system: vec![Text::new("Be brief.")],
        tools: vec![tool("a")],
        tool_choice: toolgate_core::canon::ToolChoice::Auto,
        ..asks("Go.")
    };
    request.gemini = vec![("safetySettings".into(), raw("[]"))];
    let count = |target: &Target| -> serde_json::Value {
        let encoded = encode_count_tokens(&request, target, &options).unwrap();
        serde_json::from_slice(&encoded.body).unwrap()
    };
    let whole: serde_json::Value =
        serde_json::from_slice(&encode_request(&request, &dev(NEW), &options).unwrap().body)
            .unwrap();
    let mut counted = count(&dev(NEW));
    let inner = counted["generateContentRequest"].as_object_mut().unwrap();
    assert_eq!(inner.shift_remove("model").unwrap(), "models/gemini-3.8-flash");
    assert_eq!(counted, json!({"generateContentRequest": whole}));
    let counted = count(&vertex(NEW));
    let keys: Vec<_> = counted.as_object().unwrap().keys().cloned().collect();
    assert_eq!(keys, ["systemInstruction", "tools", "contents"]);
    let tuned = Target { model: "tunedModels/x".into(), backend: Backend::Developer };
    assert_eq!(count(&tuned)["generateContentRequest"]["model"], "tunedModels/x");
}

#[test]
fn many_calls_with_one_id_take_linear_time() {
    let calls = (0..20_000).map(|_| call("same", "a", "{}")).collect();
    let results = (0..20_000).map(|_| result("same", "x")).collect();
    let request = says(vec![hi(), model(calls), user(results)]);
    let cache = Cache::default();
    let encoded = encode_request(&request, &dev(NEW), &EncodeOptions::new(&cache)).unwrap();
    assert_eq!(codes(&encoded), [LossCode::PlaceholderSignature]);
}

#[test]
fn an_instruction_in_the_middle_is_told_in_its_place() {
    let request = says(vec![
        hi(),
        model(vec![text("Hello.")]),
        instruction("The user is away."),
        Turn { role: Role::User, parts: vec![text("Go on.")] },
    ]);
    let contents = contents(&request, &dev(NEW));
    assert_eq!(
        contents[2],
        json!({"role": "user", "parts": [{"text": "The user is away."}, {"text": "Go on."}]})
    );
}
