//! Thought signatures on their way back.

use toolgate_core::canon::{
    Backend, Call, LossCode, Losses, Part, Request, Signature, Target, ToolName, Turn,
};
use toolgate_core::json::Text;
use toolgate_core::seal::{Envelope, Sealed};
use toolgate_core::upstream::generate_content::SignatureCount;

use crate::support::{
    NEW, OLD, a_call, call, codes, contents, dev, encode, issuer, model, raw, result, says, shape,
    signature, signed_call, text, thought, user, vertex,
};

fn go() -> Turn<'static> {
    user(vec![text("Go.")])
}

fn own(value: &str) -> Signature<'static> {
    signature(value, &dev(NEW))
}

fn sealed(on: Sealed<'static>) -> Part<'static> {
    Part::Sealed(Envelope { on, issuer: dev(NEW).issuer() })
}

fn on_call(token: &str, value: &str) -> Part<'static> {
    sealed(Sealed::Call { token: token.to_owned().into(), signature: own(value) })
}

fn on_text(len: usize, value: &str) -> Part<'static> {
    sealed(Sealed::Text { len, signature: own(value) })
}

fn on_thought(len: usize, value: &str) -> Part<'static> {
    sealed(Sealed::Thought { len, signature: own(value) })
}

fn signed_text(words: &str, value: &str) -> Part<'static> {
    Part::Text { text: Text::new(words), signature: Some(own(value)) }
}

#[track_caller]
fn check(turns: Vec<Turn<'static>>, want: &str, count: (usize, usize, usize)) {
    let request = says(turns);
    assert_eq!(shape(&request, &dev(NEW)), want);
    let (real, placeholder, foreign) = count;
    let (_, encoded) = encode(&request, &dev(NEW));
    assert_eq!(encoded.signatures, SignatureCount { real, placeholder, foreign });
}

#[test]
fn c1_a_lost_signature_is_replaced_in_the_current_turn_only() {
    let step = |id: &str| [model(vec![call(id, "a", "{}")]), user(vec![result(id, "x")])];
    let mut turns = vec![go()];
    turns.extend(step("1"));
    turns.push(model(vec![text("Done.")]));
    turns.push(go());
    turns.extend(step("2"));
    turns.extend(step("3"));
    check(
        turns.clone(),
        "user: text | model: a | user: =a | model: text | user: text \
         | model: a+ | user: =a | model: a+ | user: =a",
        (0, 2, 0),
    );
    let (_, encoded) = encode(&says(turns.clone()), &dev(NEW));
    assert_eq!(codes(&encoded), [LossCode::PlaceholderSignature; 2]);
    assert!(!shape(&says(turns), &dev(OLD)).contains('+'));
}

#[test]
fn c2_a_signed_thought_is_replayed_as_a_thought() {
    let request = says(vec![
        go(),
        model(vec![
            thought("I should look.", Some(own("c2ln"))),
            thought("unsigned", None),
            call("1", "a", "{}"),
        ]),
        user(vec![result("1", "x")]),
    ]);
    assert_eq!(shape(&request, &dev(NEW)), "user: text | model: thought* a+ | user: =a");
    let part = &contents(&request, &dev(NEW))[1]["parts"][0];
    assert_eq!((&part["text"], &part["thought"]), (&"I should look.".into(), &true.into()));
}

#[test]
fn c3_envelopes_find_their_calls() {
    let step = |carrier: Part<'static>, id: &str| {
        vec![go(), model(vec![carrier, call(id, "a", "{}")]), user(vec![result(id, "x")])]
    };
    let want = "user: text | model: a* | user: =a";
    // As it was given, in another dialect, in lower case, cut, and with an id of the client's.
    for id in [
        "toolu_tgAbCdEfGhIjKl",
        "call_tgAbCdEfGhIjKl",
        "toolu_tgabcdefghijkl",
        "toolu_tgAbCdEfGh",
        "chatcmpl-1",
        "",
    ] {
        check(step(on_call("tgAbCdEfGhIjKl", "c2ln"), id), want, (1, 0, 0));
    }
    // A call that bears another id of ours is another call.
    let other = step(on_call("tgAbCdEfGhIjKl", "c2ln"), "toolu_tgZZZZZZZZZZZZ");
    check(other.clone(), "user: text | model: a+ | user: =a", (0, 1, 0));
    let mut request = says(other);
    let losses: Losses = request.place_signatures();
    assert_eq!(losses.iter().map(|loss| loss.code).collect::<Vec<_>>(), [LossCode::PartDropped]);
}

#[test]
fn c3_each_envelope_goes_to_its_own_call() {
    let mut request = says(vec![
        go(),
        // One client puts all envelopes first, and one of them into the wrong turn.
        model(vec![
            on_call("tgBBBBBBBBBBBB", "dHdv"),
            on_call("tgAAAAAAAAAAAA", "b25l"),
            on_call("tgCCCCCCCCCCCC", "dGhyZWU"),
            call("toolu_tgAAAAAAAAAAAA", "a", "{}"),
            text("and"),
            call("toolu_tgBBBBBBBBBBBB", "b", "{}"),
        ]),
        user(vec![result("toolu_tgBBBBBBBBBBBB", "y")]),
        model(vec![call("toolu_tgCCCCCCCCCCCC", "c", "{}")]),
    ]);
    assert!(request.place_signatures().is_empty());
    let signed: Vec<_> = request
        .calls()
        .map(|call| (&*call.tool.name, call.signature.as_ref().map(Signature::expose)))
        .collect();
    assert_eq!(signed, [("a", Some("b25l")), ("b", Some("dHdv")), ("c", Some("dGhyZWU"))]);
}

/// opencode renames a call of a tool that it lacks to `invalid`, and keeps the rest.
#[test]
fn c11_a_renamed_call_loses_the_signature_of_what_it_was() {
    let turns = |now: &str| {
        let signature = own("c2ln").of_tool(&ToolName::plain("delete_all"));
        let kept = Sealed::Call { token: "tg1".into(), signature };
        vec![
            go(),
            model(vec![sealed(kept), call("tg1", now, "{}")]),
            user(vec![result("tg1", "x")]),
        ]
    };
    let placed = |now: &str| {
        let mut request = says(turns(now));
        assert!(request.place_signatures().is_empty());
        let (_, encoded) = encode(&request, &dev(NEW));
        encoded.signatures
    };
    let count = |real, placeholder, foreign| SignatureCount { real, placeholder, foreign };
    assert_eq!(placed("delete_all"), count(1, 0, 0));
    assert_eq!(placed("Delete_All"), count(1, 0, 0));
    assert_eq!(placed("invalid"), count(0, 1, 1));
}

#[test]
fn c6_a_signature_is_sent_once() {
    // On a text and a call: the call needs it.
    check(
        vec![
            go(),
            model(vec![signed_text("Hm.", "c2ln"), signed_call("1", "a", own("c2ln"))]),
            user(vec![result("1", "x")]),
        ],
        "user: text | model: text a* | user: =a",
        (1, 0, 0),
    );
    // Kept twice, and once more in the part itself; the other alphabet is the same bytes.
    check(
        vec![
            go(),
            model(vec![
                on_call("tgAAAAAAAAAAAA", "a+/b"),
                on_call("tgAAAAAAAAAAAA", "a+/b"),
                signed_call("call_tgAAAAAAAAAAAA", "a", own("a-_b")),
            ]),
            user(vec![result("call_tgAAAAAAAAAAAA", "x")]),
        ],
        "user: text | model: a* | user: =a",
        (1, 0, 0),
    );
}

#[test]
fn c7_text_keeps_its_signature() {
    let turns = |parts| vec![go(), model(parts), go()];
    check(
        turns(vec![signed_text("Hello", "c2ln")]),
        "user: text | model: text* | user: text",
        (1, 0, 0),
    );
    // A signature of the end of a text makes that end a part of its own.
    let request = says(turns(vec![text("Hello wörld"), on_text(6, "c2ln")]));
    let parts = contents(&request, &dev(NEW))[1]["parts"].clone();
    assert_eq!(parts[0], serde_json::json!({"text": "Hello "}));
    assert_eq!(parts[1], serde_json::json!({"text": "wörld", "thoughtSignature": "c2ln"}));
}

#[test]
fn c7_signatures_of_text_find_their_text() {
    let rows: [(Vec<Part<'static>>, &str); 10] = [
        (vec![text("abc"), on_text(3, "s1")], "abc*"),
        (vec![text("abc"), on_text(0, "s1")], "abc|*"),
        (vec![text("ab"), text("cd"), on_text(3, "s1")], "a|bcd*"),
        (vec![text("ab"), text("cd"), on_text(4, "s1")], "abcd*"),
        (vec![text("ab"), text("cd"), on_text(9, "s1")], "abcd*"),
        (vec![text("ab"), thought("", None), on_text(2, "s1")], "ab*"),
        (vec![text("ab"), on_text(2, "s1"), text("cd"), on_text(1, "s2")], "ab*|c|d*"),
        (vec![on_text(2, "s1"), text("ab")], "ab*"),
        (vec![text("aé"), on_text(1, "s1")], "a|é*"),
        (vec![on_text(2, "s1"), call("1", "a", "{}")], ""),
    ];
    for (parts, want) in rows {
        let mut request = says(vec![go(), model(parts.clone())]);
        let losses = request.place_signatures();
        let got: Vec<String> = request.turns[1]
            .parts
            .iter()
            .filter_map(|part| match part {
                Part::Text { text, signature } => {
                    Some(format!("{}{}", text.decode(), if signature.is_some() { "*" } else { "" }))
                }
                Part::Thought { .. }
                | Part::Media(_)
                | Part::Call(_)
                | Part::Result(_)
                | Part::Sealed(_)
                | Part::Gemini(_) => None,
            })
            .collect();
        assert_eq!(got.join("|"), want, "{parts:?}");
        assert_eq!(losses.is_empty(), !want.is_empty(), "{parts:?}");
    }
}

#[test]
fn c12_a_thought_that_the_client_dropped_leaves_its_signature() {
    check(
        vec![go(), model(vec![on_thought(40, "c2ln"), text("Yes.")]), go()],
        "user: text | model: thought* text | user: text",
        (1, 0, 0),
    );
    check(
        vec![
            go(),
            model(vec![thought("I think.", None), on_thought(8, "c2ln"), text("Yes.")]),
            go(),
        ],
        "user: text | model: thought* text | user: text",
        (1, 0, 0),
    );
    // Thinking blocks gone altogether: the call goes on with the placeholder.
    check(
        vec![go(), model(vec![call("1", "a", "{}")]), user(vec![result("1", "x")])],
        "user: text | model: a+ | user: =a",
        (0, 1, 0),
    );
}

#[test]
fn c8_parts_of_server_tools_come_back_whole() {
    let part = r#"{"toolCall":{"id":"s1","toolType":"GOOGLE_SEARCH_WEB"},"thoughtSignature":"c2Vydmlj","thought":null}"#;
    let whole = |target: &Target| {
        Part::Sealed(Envelope { on: Sealed::Part(raw(part)), issuer: target.issuer() })
    };
    let turns = |first| {
        says(vec![
            go(),
            model(vec![first, signed_call("1", "a", own("c2ln"))]),
            user(vec![result("1", "x")]),
        ])
    };
    for first in [Part::Gemini(raw(part)), whole(&dev(NEW))] {
        let request = turns(first);
        assert_eq!(shape(&request, &dev(NEW)), "user: text | model: toolCall* a* | user: =a");
        let (body, encoded) = encode(&request, &dev(NEW));
        assert_eq!(body["toolConfig"]["includeServerSideToolInvocations"], true);
        assert_eq!(body["contents"][1]["parts"][0].get("thought"), None);
        assert_eq!(encoded.signatures.real, 2);
    }
    // Another model's, or on a target that does not know the part: gone, and said so.
    for (first, target) in [
        (whole(&dev("gemini-3-flash-preview")), dev(NEW)),
        (Part::Gemini(raw(part)), vertex(NEW)),
        (Part::Gemini(raw(part)), dev(OLD)),
    ] {
        let (body, encoded) = encode(&turns(first), &target);
        assert_eq!(body["contents"][1]["parts"].as_array().unwrap().len(), 1);
        assert!(codes(&encoded).contains(&LossCode::PartDropped));
    }
    // Code and its output are everybody's, their signature is not.
    let code = r#"{"executableCode":{"code":"1+1","language":"PYTHON"},"thoughtSignature":"c2ln"}"#;
    let foreign = Part::Sealed(Envelope {
        on: Sealed::Part(raw(code)),
        issuer: issuer("gemini-3-flash-preview", Backend::Developer),
    });
    check(
        vec![go(), model(vec![foreign]), go()],
        "user: text | model: executableCode | user: text",
        (0, 0, 1),
    );
    // gemini-cli sends a signature without a datum.
    let bare = Part::Gemini(raw(r#"{"thought_signature":"c2ln"}"#));
    check(
        vec![go(), model(vec![text("Hi."), bare]), go()],
        "user: text | model: text empty* | user: text",
        (1, 0, 0),
    );
}

#[test]
fn c9_only_the_first_call_of_a_step_gets_the_placeholder() {
    let parallel = |first: Part<'static>| {
        vec![
            go(),
            model(vec![
                text("Both."),
                first,
                Part::Gemini(raw(r#"{"executableCode":{"code":"1"}}"#)),
                call("2", "b", "{}"),
                call("3", "c", "{}"),
            ]),
            user(vec![result("1", "x"), result("2", "y"), result("3", "z")]),
        ]
    };
    check(
        parallel(signed_call("1", "a", own("c2ln"))),
        "user: text | model: text a* executableCode b c | user: =a =b =c",
        (1, 0, 0),
    );
    check(
        parallel(call("1", "a", "{}")),
        "user: text | model: text a+ executableCode b c | user: =a =b =c",
        (0, 1, 0),
    );
}

#[test]
fn c11_signatures_of_others_are_never_sent() {
    let of = |signature: Signature<'static>| {
        vec![
            go(),
            model(vec![thought("Hm.", Some(signature.clone())), signed_call("1", "a", signature)]),
            user(vec![result("1", "x")]),
        ]
    };
    for (model, backend) in [
        ("gemini-3.6-flash", Backend::Developer),
        (NEW, Backend::Vertex),
        ("claude-sonnet", Backend::Developer),
    ] {
        let target = Target { model: model.to_owned(), backend };
        let foreign = of(signature("c2ln", &target));
        check(foreign.clone(), "user: text | model: a+ | user: =a", (0, 1, 2));
        let (_, encoded) = encode(&says(foreign), &dev(NEW));
        let count = codes(&encoded).iter().filter(|it| **it == LossCode::ForeignSignature).count();
        assert_eq!(count, 2);
    }
    // Who issued it is not known: a Gemini client sends it, so it is Gemini's.
    let unknown = Signature::new("c2ln", None).unwrap();
    check(of(unknown), "user: text | model: a* | user: =a", (1, 0, 0));
    // `models/` is no other model.
    let same = of(signature("c2ln", &dev("models/gemini-3.8-flash")));
    check(same, "user: text | model: a* | user: =a", (1, 0, 0));
}

#[test]
fn c11_damaged_signatures_and_placeholders_of_clients_are_not_sent() {
    let of = |value: &'static str| {
        let signature = Signature::new(value, None).unwrap();
        vec![go(), model(vec![signed_call("1", "a", signature)]), user(vec![result("1", "x")])]
    };
    for damaged in ["AY89a1/_57b05e78dc", "not base64!", "a.b", "abcde", "ab=", "===="] {
        check(of(damaged), "user: text | model: a+ | user: =a", (0, 1, 1));
    }
    for placeholder in [
        "skip_thought_signature_validator",
        "context_engineering_is_the_way_to_go",
        "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I=",
    ] {
        check(of(placeholder), "user: text | model: a+ | user: =a", (0, 1, 0));
        assert_eq!(shape(&says(of(placeholder)), &dev(OLD)), "user: text | model: a | user: =a");
    }
}

#[test]
fn c13_a_signature_behind_the_calls_is_the_first_calls() {
    check(
        vec![
            go(),
            model(vec![call("1", "a", "{}"), call("2", "b", "{}"), signed_text("", "c2ln")]),
            user(vec![result("1", "x"), result("2", "y")]),
        ],
        "user: text | model: a* b | user: =a =b",
        (1, 0, 0),
    );
    // Not where a call has one of its own, and not from a text that says something.
    check(
        vec![
            go(),
            model(vec![signed_call("1", "a", own("b25l")), signed_text("", "dHdv")]),
            user(vec![result("1", "x")]),
        ],
        "user: text | model: a* empty* | user: =a",
        (2, 0, 0),
    );
    check(
        vec![
            go(),
            model(vec![signed_text("So:", "c2ln"), call("1", "a", "{}")]),
            user(vec![result("1", "x")]),
        ],
        "user: text | model: text* a+ | user: =a",
        (1, 1, 0),
    );
    // A client that moves envelopes has put it elsewhere.
    check(
        vec![
            go(),
            model(vec![signed_text("", "c2ln"), call("1", "a", "{}")]),
            user(vec![result("1", "x")]),
        ],
        "user: text | model: a* | user: =a",
        (1, 0, 0),
    );
    // Gemini's own clients move nothing: one before the calls, or behind other words, is not theirs.
    let native = |value: &'static str| Part::Text {
        text: Text::new(""),
        signature: Signature::new(value, None),
    };
    for (parts, shape) in [
        (
            vec![text("a"), native("c2ln"), call("1", "a", "{}")],
            "user: text | model: text empty* a+ | user: =a",
        ),
        (vec![native("c2ln"), call("1", "a", "{}")], "user: text | model: empty* a+ | user: =a"),
        (
            vec![call("1", "a", "{}"), text("So:"), native("c2ln")],
            "user: text | model: a+ text empty* | user: =a",
        ),
    ] {
        check(vec![go(), model(parts), user(vec![result("1", "x")])], shape, (1, 1, 0));
    }
    // The placeholder gives way only to the call's own.
    let dummy = || signed_call("1", "a", own("skip_thought_signature_validator"));
    let answer = || user(vec![result("1", "x")]);
    check(
        vec![go(), model(vec![native("c2ln"), dummy()]), answer()],
        "user: text | model: empty* a+ | user: =a",
        (1, 1, 0),
    );
    check(
        vec![go(), model(vec![dummy(), native("c2ln")]), answer()],
        "user: text | model: a* | user: =a",
        (1, 0, 0),
    );
}

#[test]
fn signatures_are_optional_before_3() {
    let target = dev(OLD);
    let own = signature("c2ln", &target);
    let request = says(vec![
        go(),
        model(vec![signed_call("1", "a", own), call("2", "b", "{}")]),
        user(vec![result("1", "x"), result("2", "y")]),
    ]);
    assert_eq!(shape(&request, &target), "user: text | model: a* b | user: =a =b");
}

#[test]
fn law8_nothing_that_is_printed_shows_a_signature() {
    let secret = "U0VDUkVU";
    let request = says(vec![
        go(),
        model(vec![
            Part::Call(Call { signature: Some(own(secret)), ..a_call("1", "a", "{}") }),
            on_text(0, secret),
        ]),
    ]);
    let (_, encoded) = encode(&request, &vertex(NEW));
    let shown = format!("{:?} {:?} {:?}", request, encoded.losses, encoded.exchange);
    assert!(!shown.contains(secret), "{shown}");
}

#[test]
fn vertex_takes_no_content_of_an_empty_text_alone() {
    let request: Request<'_> = says(vec![
        go(),
        model(vec![Part::Text {
            text: Text::EMPTY,
            signature: Some(signature("c2ln", &vertex(NEW))),
        }]),
        go(),
    ]);
    assert_eq!(shape(&request, &vertex(NEW)), "user: text text");
}
