//! The checker itself.

use std::fmt::Write as _;

use toolgate_core::canon::{Call, CallInput, Encoder as _, Event};
use toolgate_core::json::Text;
use toolgate_core::responses::StreamEncoder;
use toolgate_core::seal::Sealer;
use toolgate_core::upstream::generate_content::decode_grounding;

use super::{call, curious, grammar, raw, signed, stamp, start, stop, text, thought};

/// The checker is no use unless it finds faults: a stream with a frame left out, said twice or out
/// of its place is wrong.
#[test]
fn the_checker_finds_faults() {
    let metadata = r#"{"webSearchQueries":["q"],"groundingChunks":[{"web":{"uri":"u","title":"t"}}],"groundingSupports":[{"segment":{"endIndex":2,"text":"Ja"},"groundingChunkIndices":[0]}]}"#;
    let events = [
        start(),
        thought("Hm"),
        thought("m."),
        signed("tga", "f", r#"{"n":1}"#),
        text("J"),
        text("a"),
        Event::Grounding(decode_grounding(raw(metadata))),
        Event::Call(Call { input: CallInput::Text(Text::new("x")), ..call("tgb", "g", "{}") }),
        stop(),
    ];
    let mut encoder = StreamEncoder::new(curious(), stamp(), Sealer::default());
    let mut out = Vec::new();
    for event in &events {
        encoder.event(event, &mut out);
    }
    let whole = String::from_utf8(out).unwrap();
    let frames: Vec<&str> = whole.split_inclusive("\n\n").collect();
    // Renumbered, so that only the content is wrong.
    let is_right = |frames: &[&str]| {
        let mut numbered = String::new();
        for (number, frame) in frames.iter().enumerate() {
            let (head, tail) = frame.split_once("\"sequence_number\":").unwrap();
            let tail = tail.trim_start_matches(|c: char| c.is_ascii_digit());
            write!(numbered, "{head}\"sequence_number\":{number}{tail}").unwrap();
        }
        grammar::check_stream(numbered.as_bytes()).is_ok()
    };
    assert!(is_right(&frames));
    for at in 0..frames.len() {
        let mut less = frames.clone();
        less.remove(at);
        assert!(!is_right(&less), "not missed: {}", frames[at]);
        let mut more = frames.clone();
        more.insert(at, frames[at]);
        let is_ping = frames[at].starts_with("event: response.in_progress");
        assert_eq!(is_right(&more), is_ping, "said twice: {}", frames[at]);
        let mut swapped = frames.clone();
        if at > 0 {
            swapped.swap(at, at - 1);
            assert!(!is_right(&swapped), "out of place: {}", frames[at]);
        }
    }
    for (what, instead) in [
        ("\"output_index\":1", "\"output_index\":2"),
        ("\"item_id\":\"msg_", "\"item_id\":\"msg_x"),
        ("\"delta\":\"J\"", "\"delta\":\"K\""),
        ("\"status\":\"completed\"", "\"status\":\"in_progress\""),
        ("\"total_tokens\":115", "\"total_tokens\":9"),
        ("\"id\":\"resp_", "\"id\":\"resp_x"),
        ("\"arguments\":\"{\\\"n\\\":1}\"", "\"arguments\":{\"n\":1}"),
        ("\"name\":\"f\",\"arguments\":\"{", "\"arguments\":\"{"),
        ("\"end_index\":2", "\"end_index\":3"),
        ("event: response.output_text.done", "event: response.other"),
        ("}\n\n", "}\n\n: comment\n\n"),
    ] {
        assert!(whole.contains(what), "{what}");
        let broken = whole.replacen(what, instead, 1);
        assert!(grammar::check_stream(broken.as_bytes()).is_err(), "{instead}");
    }
    let done = format!("{whole}data: [DONE]\n\n");
    assert!(grammar::check_stream(done.as_bytes()).is_err());
}
