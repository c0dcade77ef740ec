//! Memory of a decoded and encoded request, compared with the length of its body.

use std::mem::size_of;

use toolgate_core::canon::{
    BYTES_PER_PART, Call, MAX_NAME_BYTES, MAX_PARTS, MAX_TOOLS, Media, Part, Request, ResultPart,
    Signature, Tool, ToolResult, Turn,
};
use toolgate_core::translate::Dialect;

use crate::bodies::{SMALL, decode, translate};

/// Bytes that a decoded request takes, without the texts that it borrows from its body.
fn held(request: &Request<'_>) -> usize {
    let parts = request.turns.iter().flat_map(|turn| &turn.parts);
    let content: usize =
        parts.clone().filter_map(Part::result).map(|result| result.content.capacity()).sum();
    request.turns.capacity() * size_of::<Turn<'_>>()
        + request.turns.iter().map(|turn| turn.parts.capacity()).sum::<usize>()
            * size_of::<Part<'_>>()
        + content * size_of::<ResultPart<'_>>()
        + request.tools.capacity() * size_of::<Tool<'_>>()
        + (request.system.capacity() + request.settings.stop.capacity()) * 24
        + (request.gemini.capacity() + request.gemini_generation.capacity()) * 40
}

/// A part costs its size for each of a body's shortest parts: these must not grow unnoticed.
#[test]
fn central_types_stay_small() {
    for (name, size, most) in [
        ("Part", size_of::<Part<'_>>(), 144),
        ("Turn", size_of::<Turn<'_>>(), 32),
        ("Call", size_of::<Call<'_>>(), 136),
        ("ToolResult", size_of::<ToolResult<'_>>(), 136),
        ("ResultPart", size_of::<ResultPart<'_>>(), 112),
        ("Media", size_of::<Media<'_>>(), 112),
        ("Tool", size_of::<Tool<'_>>(), 192),
        ("Option<Signature>", size_of::<Option<Signature<'_>>>(), 8),
    ] {
        assert!(size <= most, "{name} has {size} bytes, more than {most}");
    }
}

#[test]
fn what_is_made_of_a_body_stays_within_a_multiple_of_it() {
    const ALLOWANCE: usize = 3 << 20;
    for shape in &SMALL {
        let name = format!("{}/{}", shape.dialect.name(), shape.name);
        for count in [1000, 20_000] {
            let body = shape.body(count);
            // A body that is too dense is refused, by the name of a field.
            let decoded = match decode(shape.dialect, &body) {
                Ok(decoded) => decoded,
                Err(bad) => {
                    assert!(!bad.at.is_empty(), "{name}: {bad}");
                    continue;
                }
            };
            let bytes = held(&decoded.request);
            assert!(bytes <= 8 * body.len() + ALLOWANCE, "{name}: {bytes} of {}", body.len());
            if let Ok(encoded) = translate(shape.dialect, &body) {
                let bytes = encoded.body.len();
                assert!(bytes <= 8 * body.len() + ALLOWANCE, "{name}: {bytes} of {}", body.len());
                assert!(encoded.exchange.tools.len() <= 512, "{name}");
            }
        }
    }
}

#[test]
fn twice_the_body_makes_at_most_twice_as_much() {
    for shape in &SMALL {
        let name = format!("{}/{}", shape.dialect.name(), shape.name);
        let made = |count: usize| {
            let body = shape.body(count);
            let decoded = decode(shape.dialect, &body).ok()?;
            let bytes = held(&decoded.request);
            let encoded = translate(shape.dialect, &body).ok()?;
            Some((bytes, encoded.body.len(), decoded.losses.total() + encoded.losses.total()))
        };
        let (Some(once), Some(twice)) = (made(1024), made(2048)) else { continue };
        // Numbers get longer, and a few things do not depend on the count.
        let doubles = |once: usize, twice: usize| twice <= 2 * once + once / 8 + 256;
        assert!(doubles(once.0, twice.0), "{name}: {once:?} {twice:?}");
        assert!(doubles(once.1, twice.1), "{name}: {once:?} {twice:?}");
        // Gemini takes 512 functions: losses begin behind them.
        assert!(twice.2 <= 3 * 2048, "{name}: {once:?} {twice:?}");
    }
}

/// Long conversations of agents are far from the bounds.
#[test]
fn what_agents_send_is_taken() {
    let call = r#"{"role":"assistant","tool_calls":[{"id":"call_~","type":"function","function":{"name":"read_file","arguments":"{\"path\":\"src/main.rs\"}"}}]},{"role":"tool","tool_call_id":"call_~","content":"fn main() {}"}"#;
    let calls: Vec<String> =
        (0..20_000).map(|number| call.replace('~', &number.to_string())).collect();
    let body = format!(r#"{{"model":"m","messages":[{}]}}"#, calls.join(","));
    assert_eq!(decode(Dialect::Chat, &body).unwrap().request.turns.len(), 40_000);

    let tools: Vec<String> = (0..MAX_TOOLS)
        .map(|number| format!(r#"{{"name":"f{number}","input_schema":{{"type":"object"}}}}"#))
        .collect();
    let body = |tools: &[String]| {
        format!(
            r#"{{"model":"m","max_tokens":9,"messages":[{{"role":"user","content":"x"}}],"tools":[{}]}}"#,
            tools.join(",")
        )
    };
    assert_eq!(decode(Dialect::Anthropic, &body(&tools)).unwrap().request.tools.len(), MAX_TOOLS);
    let more = [&tools[..], &tools[..1]].concat();
    let bad = decode(Dialect::Anthropic, &body(&more)).unwrap_err();
    assert_eq!(bad.to_string(), "tools: more than 4096 tools, the most that a request may have");
}

#[test]
fn a_body_of_very_short_parts_is_refused_by_the_name_of_its_field() {
    let refused = |dialect: Dialect, name: &str| {
        let shape = SMALL.iter().find(|it| it.dialect == dialect && it.name == name).unwrap();
        let body = shape.body(MAX_PARTS * 4);
        let bad = decode(dialect, &body).unwrap_err();
        assert!(body.len() / MAX_PARTS < BYTES_PER_PART * 4);
        bad.at
    };
    assert_eq!(refused(Dialect::Anthropic, "blocks"), "messages[0].content");
    assert_eq!(refused(Dialect::Anthropic, "stop sequences"), "stop_sequences");
    assert_eq!(refused(Dialect::Chat, "nothings"), "messages");
    assert_eq!(refused(Dialect::Chat, "parts"), "messages[0].content");
    assert_eq!(refused(Dialect::Gemini, "empty parts"), "contents[0].parts");
    assert_eq!(refused(Dialect::Gemini, "server tools"), "tools");
    assert_eq!(refused(Dialect::Responses, "nothings"), "input");
    assert_eq!(refused(Dialect::Responses, "tools"), "tools");
}

#[test]
fn names_are_there_and_not_long() {
    let check = |dialect: Dialect, body: &str, want: &str| {
        for (name, reason) in
            [(String::new(), "empty"), ("x".repeat(MAX_NAME_BYTES + 1), "longer than 1024 bytes")]
        {
            let bad = decode(dialect, &body.replace('~', &name)).unwrap_err();
            assert_eq!(bad.at, want, "{bad}");
            assert!(bad.reason.contains(reason), "{bad}");
        }
    };
    let message = r#"[{"role":"user","content":"x"}]"#;
    check(
        Dialect::Anthropic,
        &format!(r#"{{"model":"~","max_tokens":9,"messages":{message}}}"#),
        "model",
    );
    check(Dialect::Chat, &format!(r#"{{"model":"~","messages":{message}}}"#), "model");
    check(Dialect::Gemini, r#"{"model":"~","contents":[{"parts":[{"text":"x"}]}]}"#, "model");
    check(Dialect::Responses, r#"{"model":"~","input":"x"}"#, "model");
    let long = "x".repeat(MAX_NAME_BYTES + 1);
    let body = format!(
        r#"{{"model":"m","input":"x","tools":[{{"type":"namespace","name":"{long}","tools":[]}}]}}"#
    );
    assert_eq!(decode(Dialect::Responses, &body).unwrap_err().at, "tools[0].name");
    let body = format!(
        r#"{{"model":"m","messages":{message},"tools":[{{"function":{{"name":"{long}"}}}}]}}"#
    );
    assert_eq!(decode(Dialect::Chat, &body).unwrap_err().at, "tools[0].function.name");
}

/// Found by name in a set: looking through all that came before took 15 s for 90,000 members.
#[test]
fn many_members_of_the_configuration_are_written_in_time() {
    let shape = SMALL.iter().find(|it| it.name == "members of the configuration").unwrap();
    let body = shape.body(200_000);
    let encoded = translate(shape.dialect, &body).unwrap();
    assert!(encoded.body.len() > body.len() / 2);
}

/// The mark stands before the body, which is read as if it were not there.
#[test]
fn a_byte_order_mark_is_skipped() {
    for shape in &SMALL {
        let body = shape.body(3);
        let marked = format!("\u{feff}{body}");
        let plain = decode(shape.dialect, &body).map(|it| (it.request.turns.len(), it.losses));
        let marked = decode(shape.dialect, &marked).map(|it| (it.request.turns.len(), it.losses));
        match (plain, marked) {
            (Ok(plain), Ok(marked)) => assert_eq!(plain, marked),
            (Err(plain), Err(marked)) => assert_eq!(plain.at, marked.at),
            (plain, marked) => panic!("{}: {plain:?} {marked:?}", shape.name),
        }
    }
}

#[test]
fn a_stop_sequence_counts_once() {
    let body = r#"{"model":"m","messages":[{"role":"user","content":"x"}],"stop":["a","\u0061","b","a","","c","d","e"]}"#;
    let encoded = translate(Dialect::Chat, body).unwrap();
    let sent: serde_json::Value = serde_json::from_slice(&encoded.body).unwrap();
    let want = serde_json::json!(["a", "b", "c", "d", "e"]);
    assert_eq!(sent["generationConfig"]["stopSequences"], want);
    assert_eq!(encoded.losses.total(), 0, "{:?}", encoded.losses);
}

/// An error names the field and the kind that was found, never what stands in it.
#[test]
fn errors_do_not_quote_what_a_field_holds() {
    let secret = "4111111111111111";
    for (dialect, body) in [
        (
            Dialect::Anthropic,
            r#"{"model":"m","max_tokens":9,"messages":[{"role":"~","content":"x"}]}"#,
        ),
        (
            Dialect::Anthropic,
            r#"{"model":"m","max_tokens":"~","messages":[{"role":"user","content":"x"}]}"#,
        ),
        (
            Dialect::Anthropic,
            r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":~}]}"#,
        ),
        (
            Dialect::Anthropic,
            r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"}],"tool_choice":{"type":"~"}}"#,
        ),
        (
            Dialect::Anthropic,
            r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"image","source":{"type":"~"}}]}]}"#,
        ),
        (
            Dialect::Anthropic,
            r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"}],"thread":{"type":"~"}}"#,
        ),
        (Dialect::Chat, r#"{"model":"m","messages":[{"role":"~","content":"x"}]}"#),
        (Dialect::Chat, r#"{"model":"m","messages":~}"#),
        (Dialect::Chat, r#"{"model":"m","messages":[],"stream":~}"#),
        (Dialect::Gemini, r#"{"model":"m","contents":[{"role":"~","parts":[]}]}"#),
        (Dialect::Gemini, r#"{"model":"m","contents":[],"generationConfig":{"topK":"~x"}}"#),
        (Dialect::Responses, r#"{"model":"m","input":[{"role":"~","content":"x"}]}"#),
        (Dialect::Responses, r#"{"model":"m","input":"x","user":~}"#),
        (Dialect::Responses, r#"{"model":"m","input":"x","max_output_tokens":~~}"#),
    ] {
        let bad = decode(dialect, &body.replace('~', secret)).unwrap_err();
        assert!(!bad.to_string().contains("4111"), "{body}: {bad}");
        assert!(!bad.at.is_empty(), "{body}: {bad}");
    }
}
