//! Roles, the order of calls and responses, and required signatures.

use serde_json::{Value, json};
use toolgate_core::canon::Target;
use toolgate_validate::{
    AnySignature, Data, Method, Mismatch, Part, SignatureCheck, SignatureVerdict, check_request,
};

use super::*;

const CALL_FIRST: &str = "Please ensure that function call turn comes immediately after a user \
                          turn or after a function response turn.";
const RESPONSE_FIRST: &str = "Please ensure that function response turn comes immediately after a \
                              function call turn.";
const COUNT: &str = "Please ensure that the number of function response parts is equal to the \
                     number of function call parts of the function call turn.";
const OLD: &str = "gemini-2.5-flash";
const THREE: &str = "gemini-3-flash-preview";

fn user(text: &str) -> Value {
    json!({"role": "user", "parts": [{"text": text}]})
}

/// A model content with these calls; the first one is signed.
fn calls(names: &[&str]) -> Value {
    let parts: Vec<_> = names
        .iter()
        .enumerate()
        .map(|(n, name)| match n {
            0 => json!({"functionCall": {"name": name, "args": {}}, "thoughtSignature": "AAAA"}),
            _ => json!({"functionCall": {"name": name, "args": {}}}),
        })
        .collect();
    json!({"role": "model", "parts": parts})
}

fn answers(names: &[&str]) -> Value {
    let parts: Vec<_> = names
        .iter()
        .map(|name| json!({"functionResponse": {"name": name, "response": {"output": 1}}}))
        .collect();
    json!({"role": "user", "parts": parts})
}

fn talk(contents: &[Value]) -> Value {
    json!({"contents": contents})
}

#[test]
fn calls_and_responses_follow_their_order() {
    for model in [OLD, THREE, NEW] {
        let check = |contents: &[Value], want: &str| refused(&target(model), &talk(contents), want);
        check(&[calls(&["a"]), answers(&["a"])], CALL_FIRST);
        check(&[json!({"role": "user", "parts": [{"functionCall": {"name": "a"}}]})], CALL_FIRST);
        check(&[answers(&["a"])], RESPONSE_FIRST);
        check(&[user("x"), answers(&["a"])], RESPONSE_FIRST);
        check(
            &[user("x"), json!({"role": "model", "parts": [{"text": "y"}]}), answers(&["a"])],
            RESPONSE_FIRST,
        );
        check(&[user("x"), calls(&["a"]), answers(&["a"]), answers(&["a"])], RESPONSE_FIRST);
        let mut said_by_model = answers(&["a"]);
        said_by_model["role"] = json!("model");
        check(&[user("x"), calls(&["a"]), said_by_model, user("y")], RESPONSE_FIRST);
        for fine in [
            vec![user("x"), calls(&["a"]), answers(&["a"])],
            vec![user(""), calls(&["a"]), answers(&["a"])],
            vec![user("x"), calls(&["a"]), answers(&["a"]), user("y")],
            vec![user("x"), user("y")],
            vec![user("x"), calls(&["a"]), calls(&["b"]), answers(&["a", "b"])],
            vec![user("x"), calls(&["a"]), answers(&["a"]), calls(&["b"]), answers(&["b"])],
            vec![json!({"role": "model", "parts": [{"text": "Hello"}]}), user("x")],
        ] {
            let got = accepted(&target(model), &talk(&fine));
            assert_eq!(got.mismatch, None);
        }
    }
}

#[test]
fn e1_numbers_of_calls_and_responses() {
    let uneven = [
        vec![user("x"), calls(&["a", "b"]), answers(&["a"])],
        vec![user("x"), calls(&["a"]), answers(&["a", "a"])],
        vec![user("x"), calls(&["a"]), user("never mind")],
        vec![user("x"), calls(&["a", "b"]), user("stop"), user("go on")],
    ];
    for contents in uneven {
        for model in [OLD, THREE] {
            refused(&target(model), &talk(&contents), COUNT);
        }
        for model in ["gemini-3.5-flash", "gemini-3.5-flash-lite", NEW, "gemini-3.8-flash"] {
            let got = accepted(&target(model), &talk(&contents));
            assert_eq!(got.mismatch, Some(Mismatch::Count), "{model}");
        }
    }
}

/// Two calls with ids and their responses, as `(id, name)`.
fn with_ids(responses: [(Option<&str>, &str); 2]) -> Value {
    let mut called = calls(&["a", "b"]);
    called["parts"][0]["functionCall"]["id"] = json!("id1");
    called["parts"][1]["functionCall"]["id"] = json!("id2");
    let parts: Vec<_> = responses
        .iter()
        .map(|(id, name)| json!({"functionResponse": {"id": id, "name": name, "response": {}}}))
        .collect();
    talk(&[user("x"), called, json!({"role": "user", "parts": parts})])
}

#[test]
fn newer_models_match_ids_and_names() {
    let check = |responses, want: Option<Mismatch>| {
        for model in ["gemini-3.5-flash", NEW, "gemini-3.8-flash"] {
            let got = accepted(&target(model), &with_ids(responses));
            assert_eq!(got.mismatch, want, "{model} {responses:?}");
        }
        for model in [OLD, THREE] {
            assert_eq!(accepted(&target(model), &with_ids(responses)).mismatch, None, "{model}");
        }
    };
    check([(Some("id1"), "a"), (Some("id2"), "b")], None);
    check([(Some("id2"), "b"), (Some("id1"), "a")], None);
    check([(Some("id1"), "a"), (Some("id9"), "b")], Some(Mismatch::Id));
    check([(Some("id1"), "a"), (Some("id1"), "a")], Some(Mismatch::Id));
    check([(Some("id1"), "b"), (Some("id2"), "a")], Some(Mismatch::Name));
    check([(None, "a"), (None, "b")], None);
    check([(None, "b"), (None, "a")], Some(Mismatch::Name));
    // A response with an id that its call does not have is a mismatch.
    let mut stray = talk(&[user("x"), calls(&["a"]), answers(&["a"])]);
    stray["contents"][2]["parts"][0]["functionResponse"]["id"] = json!("id1");
    assert_eq!(accepted(&target(NEW), &stray).mismatch, Some(Mismatch::Id));

    let counts = |responses| accepted(&target(NEW), &with_ids(responses)).counts;
    assert_eq!(counts([(Some("id2"), "b"), (Some("id1"), "a")]).reordered, 1);
    assert_eq!(counts([(None, "a"), (None, "b")]).missing_ids, 2);
    let on_vertex = accepted(&vertex(NEW), &with_ids([(None, "a"), (None, "b")]));
    assert_eq!(on_vertex.mismatch, Some(Mismatch::Id));
}

#[test]
fn text_and_media_beside_responses() {
    let beside = |part: Value| {
        let mut answer = answers(&["a", "b"]);
        answer["parts"].as_array_mut().unwrap().push(part);
        talk(&[user("x"), calls(&["a", "b"]), answer])
    };
    let image = json!({"inlineData": {"mimeType": "image/png", "data": "AAAA"}});
    let text = json!({"text": "and also"});
    refused(&target(OLD), &beside(image.clone()), COUNT);
    accepted(&target(OLD), &beside(text.clone()));
    for part in [&image, &text] {
        let got = accepted(&target("gemini-3.5-flash"), &beside(part.clone()));
        assert_eq!(got.mismatch, Some(Mismatch::Mixed));
        assert_eq!(accepted(&target(NEW), &beside(part.clone())).mismatch, None);
    }
}

#[test]
fn unknown_roles_are_refused() {
    let spoken = |role: &str| {
        let mut answer = answers(&["a"]);
        answer["role"] = json!(role);
        talk(&[user("x"), calls(&["a"]), answer])
    };
    for model in ["gemini-3.5-flash-lite", NEW, "gemini-3.7-flash", "gemini-4-argon"] {
        for role in ["function", "tool", "assistant"] {
            refused(
                &target(model),
                &spoken(role),
                &format!(
                    "Role '{role}' is not supported. Please use a valid role: SYSTEM, SYSTEM_1, \
                     USER, ASSISTANT, DEVELOPER, CONTEXT, USER_CONTEXT, MODEL, USER."
                ),
            );
        }
    }
    for model in [OLD, THREE, "gemini-3.5-flash"] {
        accepted(&target(model), &spoken("function"));
        refused(&target(model), &spoken("tool"), "Please use a valid role: user, model.");
    }
    accepted(&target(NEW), &spoken(""));
}

#[test]
fn newer_models_refuse_prefilled_turns() {
    let prefill = talk(&[user("x"), json!({"role": "model", "parts": [{"text": "Once upon"}]})]);
    let want = "Requests ending with a model turn are not supported.";
    let silent = talk(&[user("x"), json!({"role": "model", "parts": [{"text": "y"}]}), user("")]);
    for model in ["gemini-3.5-flash-lite", NEW, "gemini-3.8-flash", "gemini-4-argon"] {
        refused(&target(model), &prefill, want);
        refused(&target(model), &silent, want);
    }
    for model in [OLD, THREE, "gemini-3.5-flash"] {
        accepted(&target(model), &prefill);
        accepted(&target(model), &silent);
    }
    accepted(&target(NEW), &talk(&[user("x"), user(" ")]));
}

/// Two steps of one turn, with the signatures of its three calls.
fn steps(first: Option<&str>, second: Option<&str>, third: Option<&str>) -> Value {
    let sign = |mut content: Value, signatures: &[Option<&str>]| {
        for (part, signature) in content["parts"].as_array_mut().unwrap().iter_mut().zip(signatures)
        {
            part["thoughtSignature"] = json!(signature);
        }
        content
    };
    talk(&[
        user("old"),
        sign(calls(&["old"]), &[None]),
        answers(&["old"]),
        user("new"),
        sign(calls(&["a", "b"]), &[first, second]),
        answers(&["a", "b"]),
        sign(calls(&["c"]), &[third]),
        answers(&["c"]),
    ])
}

#[test]
fn the_first_call_of_each_step_is_signed() {
    let missing = |name: &str, position: usize| {
        format!(
            "Function call is missing a thought_signature in functionCall parts. This is required \
             for tools to work correctly, and missing thought_signature may lead to degraded model \
             performance. Additional data, function call `default_api:{name}` , position \
             {position}. Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures \
             for more details."
        )
    };
    for model in [THREE, "gemini-3.1-pro-preview", "gemini-3.5-flash", NEW, "gemini-3.8-flash"] {
        refused(&target(model), &steps(None, Some("BBBB"), Some("CCCC")), &missing("a", 5));
        refused(&target(model), &steps(Some("AAAA"), None, None), &missing("c", 7));
        refused(&target(model), &steps(Some("AAAA"), None, Some("")), &missing("c", 7));
        let got = accepted(&target(model), &steps(Some("AAAA"), None, Some("CCCC")));
        assert_eq!((got.counts.signatures, got.counts.placeholders, got.counts.doubled), (2, 0, 0));
    }
    refused(
        &vertex(NEW),
        &steps(None, None, None),
        "Unable to submit request because function call `default_api:a` in the 5. content block is \
         missing a `thought_signature`. Learn more: \
         https://cloud.google.com/vertex-ai/generative-ai/docs/thought-signatures",
    );
    accepted(&target(OLD), &steps(None, None, None));
    // Answered one after the other, the second call begins a step.
    let interleaved = talk(&[
        user("x"),
        calls(&["a"]),
        answers(&["a"]),
        json!({"role": "model", "parts": [{"functionCall": {"name": "b"}}]}),
        answers(&["b"]),
    ]);
    refused(&target(NEW), &interleaved, &missing("b", 4));
}

#[test]
fn placeholders_pass_and_are_counted() {
    let skip = "skip_thought_signature_validator";
    let got = accepted(
        &target(NEW),
        &steps(Some(skip), None, Some("context_engineering_is_the_way_to_go")),
    );
    assert_eq!((got.counts.signatures, got.counts.placeholders), (0, 2));
    let encoded = "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I=";
    assert_eq!(
        accepted(&target(NEW), &steps(Some(encoded), None, Some(skip))).counts.placeholders,
        2
    );
    let twice = accepted(&target(NEW), &steps(Some("AAAA"), Some("AAAA"), Some("AAAA=")));
    assert_eq!(twice.counts.doubled, 2);
}

/// A check that knows one signature, for calls of `a`.
struct OnlyForA;

impl SignatureCheck for OnlyForA {
    fn check(&self, _: &Target, part: &Part, signature: &str) -> SignatureVerdict {
        match (signature, &part.data) {
            ("AAAA", Data::Call { name, .. }) if name == "a" => SignatureVerdict::Real,
            ("AAAA", _) => SignatureVerdict::Invalid,
            (_, _) => SignatureVerdict::Corrupted,
        }
    }
}

#[test]
fn forged_and_moved_signatures_are_refused() {
    let ask = |target: &Target, body: Value| {
        check_request(body.to_string().as_bytes(), target, Method::Stream, &OnlyForA)
            .map(|it| it.counts)
    };
    let skip = Some("skip_thought_signature_validator");
    assert_eq!(ask(&target(NEW), steps(Some("AAAA"), None, skip)).unwrap().signatures, 1);
    for (body, want) in [
        (steps(Some("BBBB"), None, skip), "Corrupted thought signature."),
        (steps(skip, Some("AAAA"), skip), "Invalid thought signature."),
        (steps(skip, None, Some("AAAA")), "Invalid thought signature."),
    ] {
        assert_eq!(ask(&target(NEW), body.clone()).unwrap_err().message, want);
        assert_eq!(ask(&vertex(NEW), body).unwrap_err().message, "Thought signature is not valid");
    }
    // In its own position and in another one: repeated.
    let twice = ask(&target(NEW), steps(Some("AAAA"), None, Some("AAAA"))).unwrap();
    assert_eq!((twice.signatures, twice.doubled), (1, 1));
    let encoded = Some("c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I=");
    assert_eq!(
        ask(&vertex(NEW), steps(encoded, None, skip)).unwrap_err().message,
        "Thought signature is not valid"
    );
    let _: &dyn SignatureCheck = &AnySignature;
}
