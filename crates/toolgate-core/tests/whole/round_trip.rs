//! Signatures come back to the very parts that carried them, whatever the client.

use serde_json::{Value, json};
use toolgate_core::translate::Dialect;
use toolgate_core::upstream::generate_content::Encoded;
use toolgate_validate::{AnySignature, Method, check_request};

use toolgate_testing::client::{self, Seen, go_on};
use toolgate_testing::golden::{self, streams};
use toolgate_testing::pipeline::{self, Asked, DIALECTS, answer, asked, stamp, stream, target};

/// The signed parts that Gemini sent: the part without its signature, and the signature.
fn signed(bytes: &[u8]) -> Vec<(Value, String)> {
    let mut signed = Vec::new();
    for line in std::str::from_utf8(bytes).unwrap().lines() {
        let Some(data) = line.strip_prefix("data: ") else { continue };
        let chunk: Value = serde_json::from_str(data).unwrap();
        for part in chunk["candidates"][0]["content"]["parts"].as_array().into_iter().flatten() {
            signed.extend(unsigned(part));
        }
    }
    signed
}

fn unsigned(part: &Value) -> Option<(Value, String)> {
    let mut part = part.clone();
    let signature = part.as_object_mut()?.remove("thoughtSignature")?.as_str()?.to_owned();
    if let Some(call) = part.get_mut("functionCall") {
        // Ids are compared where they matter, and arguments that came in pieces stand elsewhere.
        part = json!({"functionCall": {"name": call["name"]}});
    }
    Some((part, signature.replace('-', "+").replace('_', "/").trim_end_matches('=').to_owned()))
}

/// What Gemini gets of the conversation when the client goes on.
fn sent(asked: &Asked, seen: &Seen) -> Encoded {
    let next = go_on(asked.dialect, &golden::request(asked.dialect), seen);
    let mut decoded = pipeline::decode(asked.dialect, &next, &asked.sealer)
        .unwrap_or_else(|error| panic!("{error}: {next}"));
    let losses = decoded.request.place_signatures();
    assert!(losses.is_empty(), "{:?}: {losses:?}", asked.dialect);
    let encoded = pipeline::encode(&decoded.request, &target()).unwrap();
    if let Err(error) = check_request(&encoded.body, &target(), Method::Stream, &AnySignature) {
        panic!("{}\n{}", error.message, String::from_utf8_lossy(&encoded.body));
    }
    encoded
}

fn sent_parts(encoded: &Encoded) -> Vec<Value> {
    let body: Value = serde_json::from_slice(&encoded.body).unwrap();
    let contents = body["contents"].as_array().unwrap();
    let model = contents.iter().filter(|content| content["role"] == "model");
    model.flat_map(|content| content["parts"].as_array().unwrap().clone()).collect()
}

/// Every signature is back on its part, and none is made up.
#[track_caller]
fn check(scenario: &str, asked: &Asked, seen: &Seen, bytes: &[u8]) {
    let encoded = sent(asked, seen);
    let parts = sent_parts(&encoded);
    let got: Vec<_> = parts.iter().filter_map(unsigned).collect();
    let mut want: Vec<_> = signed(bytes).into_iter().collect();
    if scenario == "c13" {
        // It came behind the call, in a part of its own: it is the call's.
        want[0].0 = json!({"functionCall": {"name": "Read"}});
    }
    if asked.dialect == Dialect::Anthropic
        && matches!(scenario, "textsig" | "late_textsig" | "server_search")
    {
        // Clients take the last block for the answer: nothing may stand behind the last words.
        want.pop();
    }
    // The signature is on the thought, which goes back as it came; the call has none of its own,
    // and Gemini refuses the first call of a step without.
    let placeholders = usize::from(scenario == "sigsibling");
    if placeholders == 1 {
        let placeholder = "skip/thought/signature/validator".to_owned();
        want.push((json!({"functionCall": {"name": "Bash"}}), placeholder));
    }
    let name = format!("{scenario} in {:?}: {parts:#?}", asked.dialect);
    assert_eq!(got, want, "{name}");
    assert_eq!(encoded.signatures.placeholder, placeholders, "{name}");
    assert_eq!(encoded.signatures.foreign, 0, "{name}");
    assert_eq!(encoded.signatures.real, want.len() - placeholders, "{name}");
    // C6: never twice.
    let text = String::from_utf8_lossy(&encoded.body).into_owned();
    for (_, signature) in &want[..want.len() - placeholders] {
        assert_eq!(text.matches(signature.as_str()).count(), 1, "{name}");
    }
}

/// Scenarios whose answer is whole.
fn whole() -> Vec<(String, Vec<u8>)> {
    let asked = asked(Dialect::Gemini);
    let is_whole = |bytes: &[u8]| {
        answer(&asked, bytes).is_ok_and(|answer| answer.has_calls() || !answer.text().is_empty())
    };
    // A call that was cut off is not passed on, and neither is its signature.
    let cut_off = "max_tokens_mid_call";
    streams().into_iter().filter(|(name, bytes)| name != cut_off && is_whole(bytes)).collect()
}

/// The answer as a client sees it, streamed and unary, changed as the client changes it.
fn check_all(dialect: Dialect, change: impl Fn(&mut Seen)) {
    let asked = asked(dialect);
    for (scenario, bytes) in whole() {
        let streamed = stream(&asked, [&bytes[..]]);
        let unary = answer(&asked, &bytes).unwrap();
        let unary = asked.echo.encode_response(&unary, &stamp(), &asked.sealer);
        for bytes_seen in [streamed, unary] {
            let mut seen = client::read(dialect, &bytes_seen);
            change(&mut seen);
            check(&scenario, &asked, &seen, &bytes);
        }
    }
}

#[test]
fn c1_to_c13_clients_that_keep_everything() {
    for dialect in DIALECTS {
        check_all(dialect, |_| {});
    }
}

/// Claude Code moves thinking that stands behind the last call in front of it.
#[test]
fn c13_claude_code_moves_what_is_behind_the_last_call() {
    check_all(Dialect::Anthropic, |seen| {
        let is_call = |block: &Value| block["type"] == "tool_use";
        let Some(last) = seen.pieces.iter().rposition(is_call) else { return };
        let tail = seen.pieces.split_off(last + 1);
        let (thinking, rest): (Vec<_>, Vec<_>) = tail.into_iter().partition(|block| {
            matches!(block["type"].as_str(), Some("thinking" | "redacted_thinking"))
        });
        seen.pieces.splice(last..last, thinking);
        seen.pieces.extend(rest);
    });
}

/// Most Anthropic clients send back only the members of a block that they know.
#[test]
fn c1_anthropic_clients_that_drop_what_they_do_not_know() {
    check_all(Dialect::Anthropic, |seen| {
        for block in &mut seen.pieces {
            let known = [
                "type",
                "text",
                "thinking",
                "signature",
                "data",
                "id",
                "name",
                "input",
                "tool_use_id",
                "content",
            ];
            block.as_object_mut().unwrap().retain(|key, _| known.contains(&key.as_str()));
        }
    });
}

/// Vercel's provider loses the ids of items, opencode those of reasoning.
#[test]
fn c1_responses_clients_that_lose_the_ids_of_items() {
    check_all(Dialect::Responses, |seen| {
        for item in &mut seen.pieces {
            let lost = ["id", "status", "logprobs"];
            item.as_object_mut().unwrap().retain(|key, _| !lost.contains(&key.as_str()));
        }
    });
}

/// gemini-cli drops thoughts, and empty texts become parts with a signature only.
#[test]
fn c12_gemini_cli_drops_thoughts() {
    let asked = asked(Dialect::Gemini);
    for (scenario, bytes) in whole() {
        let mut seen = client::read(Dialect::Gemini, &stream(&asked, [&bytes[..]]));
        seen.pieces.retain(|part| part["thought"] != true);
        for part in &mut seen.pieces {
            if part["text"] == "" {
                part.as_object_mut().unwrap().remove("text");
            }
        }
        seen.pieces.retain(|part| !part.as_object().unwrap().is_empty());
        let encoded = sent(&asked, &seen);
        // The signature of `sigsibling` was on the thought and went with it.
        let lost = usize::from(scenario == "sigsibling");
        assert_eq!(encoded.signatures.placeholder, lost, "{scenario}");
        assert_eq!(encoded.signatures.real + lost, signed(&bytes).len(), "{scenario}");
    }
}

/// Google's Python SDK writes signatures in the other alphabet and leaves the ids of responses out.
#[test]
fn c3_google_genai_writes_base64_anew() {
    let asked = asked(Dialect::Gemini);
    for (scenario, bytes) in whole() {
        let mut seen = client::read(Dialect::Gemini, &stream(&asked, [&bytes[..]]));
        for part in &mut seen.pieces {
            if let Some(signature) = part["thoughtSignature"].as_str() {
                let anew = signature.replace('+', "-").replace('/', "_");
                part["thoughtSignature"] = Value::from(anew);
            }
        }
        for call in &mut seen.calls {
            call.id.clear();
        }
        check(&scenario, &asked, &seen, &bytes);
    }
}

/// C3: the client makes ids of its own. What stands beside the call finds it by its place.
#[test]
fn c3_ids_made_anew() {
    for dialect in [Dialect::Anthropic, Dialect::Responses, Dialect::Chat] {
        check_all(dialect, |seen| {
            for (index, call) in seen.calls.iter_mut().enumerate() {
                let new = format!("own-{index}");
                let text = serde_json::to_string(&seen.pieces).unwrap();
                // Only the id itself: envelopes name it too, and are opaque to a client.
                let text = text.replace(&format!("\"{}\"", call.id), &format!("\"{new}\""));
                seen.pieces = serde_json::from_str(&text).unwrap();
                call.id = new;
            }
        });
    }
}

/// C11: what another vendor signed is never sent to Gemini.
#[test]
fn c11_signatures_of_other_vendors_stay_here() {
    let foreign = "EqQBCgIYAhIMxFOREIGNx";
    for (dialect, piece) in [
        (Dialect::Anthropic, json!({"type": "thinking", "thinking": "Hm.", "signature": foreign})),
        (Dialect::Anthropic, json!({"type": "redacted_thinking", "data": foreign})),
        (
            Dialect::Responses,
            json!({"type": "reasoning", "summary": [], "encrypted_content": foreign}),
        ),
    ] {
        let asked = asked(dialect);
        let (_, bytes) = whole().into_iter().find(|(name, _)| name == "d1").unwrap();
        let mut seen = client::read(dialect, &stream(&asked, [&bytes[..]]));
        let carries = |it: &Value| {
            ["signature", "data", "encrypted_content"].iter().any(|key| it[key].is_string())
        };
        for it in seen.pieces.iter_mut().filter(|it| carries(it)) {
            *it = piece.clone();
        }
        let encoded = sent(&asked, &seen);
        let text = String::from_utf8_lossy(&encoded.body).into_owned();
        assert!(!text.contains("xFOREIGNx"), "{text}");
        assert_eq!(
            (encoded.signatures.real, encoded.signatures.placeholder),
            (0, 1),
            "{dialect:?}"
        );
    }
}

/// C10: nothing but the conversation is needed: another sealer with the same key opens it.
#[test]
fn c11_another_model_gets_none_of_them() {
    for dialect in DIALECTS {
        let asked = asked(dialect);
        let (_, bytes) = whole().into_iter().find(|(name, _)| name == "parallel").unwrap();
        let seen = client::read(dialect, &stream(&asked, [&bytes[..]]));
        let next = go_on(dialect, &golden::request(dialect), &seen);
        let decoded = pipeline::decode(dialect, &next, &asked.sealer).unwrap();
        let other = toolgate_core::canon::Target { model: "gemini-3.8-pro".to_owned(), ..target() };
        let encoded = pipeline::encode(&decoded.request, &other).unwrap();
        // Gemini's own clients do not say which model signed.
        let want = if dialect == Dialect::Gemini { (1, 0) } else { (0, 1) };
        let count = encoded.signatures;
        assert_eq!((count.real, count.placeholder), want, "{dialect:?}");
    }
}
