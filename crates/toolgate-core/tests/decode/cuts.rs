//! Law 3: however a stream is cut, the events are the same.

use toolgate_testing::decoding::{decode, exchange};
use toolgate_testing::golden;

fn golden_files() -> Vec<String> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden");
    let mut files = Vec::new();
    for folder in ["stream", "unary"] {
        for file in std::fs::read_dir(format!("{root}/{folder}")).unwrap() {
            files.push(format!("{folder}/{}", file.unwrap().file_name().to_str().unwrap()));
        }
    }
    files.sort();
    assert!(files.len() > 40, "{files:?}");
    files
}

/// Texts may be cut differently by the frames only, never by the pieces: the events are equal.
#[track_caller]
fn check(name: &str, bytes: &[u8]) {
    let exchange = exchange();
    let all = |pieces: &[&[u8]]| {
        let watch = decode(&exchange, pieces);
        (watch.events, watch.answer.finish())
    };
    let whole = all(&[bytes]);
    for at in 0..=bytes.len() {
        assert_eq!(all(&[&bytes[..at], &bytes[at..]]), whole, "{name} cut at {at}");
    }
    for size in [1, 2, 3, 7, 64] {
        let pieces: Vec<&[u8]> = bytes.chunks(size).collect();
        assert_eq!(all(&pieces), whole, "{name} in pieces of {size}");
    }
}

#[test]
fn law3_golden_files() {
    for file in golden_files() {
        check(&file, &golden::file(&file));
    }
}

#[test]
fn d6_other_line_ends_and_the_array_form() {
    for name in ["parallel", "d6", "error_mid_bare", "server_search"] {
        let stream = String::from_utf8(golden::file(&format!("stream/{name}.gemini.sse"))).unwrap();
        let whole = decode(&exchange(), &[stream.as_bytes()]).events;
        let frames: Vec<&str> = stream
            .split("\r\n\r\n")
            .map(|frame| frame.strip_prefix("data: ").unwrap_or(frame).trim())
            .filter(|frame| !frame.is_empty())
            .collect();
        let forms = [
            stream.replace("\r\n", "\n"),
            stream.replace("\r\n", "\r"),
            stream.replace("data: ", "data:"),
            format!("\u{feff}: hello\r\n\r\nevent: x\r\nid: 5\r\n{stream}"),
            stream.trim_end().to_owned(),
            format!("{stream}\r\ndata: [DONE]\r\n\r\n"),
            format!("[{}]", frames.join("\n,\r\n")),
            frames.join("\n"),
        ];
        for form in &forms {
            assert_eq!(decode(&exchange(), &[form.as_bytes()]).events, whole, "{form}");
            let single: Vec<&[u8]> = form.as_bytes().chunks(1).collect();
            assert_eq!(decode(&exchange(), &single).events, whole, "{form}");
        }
        let many: String = frames
            .iter()
            .map(|frame| {
                format!(
                    "data: {}\n\n",
                    frame.replacen("\"candidates\"", "\ndata: \"candidates\"", 1)
                )
            })
            .collect();
        assert_eq!(decode(&exchange(), &[many.as_bytes()]).events.len(), whole.len(), "{many}");
    }
}

#[test]
fn d7_five_megabytes_take_linear_time() {
    // Byte-wise feeding of a quadratic reader would not end within a test's patience.
    let data = "QUJD".repeat(1_250_000);
    let image = format!(
        r#"{{"candidates":[{{"content":{{"parts":[{{"inlineData":{{"mimeType":"image/png","data":"{data}"}}}}]}},"finishReason":"STOP"}}]}}"#
    );
    let chunk = r#"{"candidates":[{"content":{"parts":[{"text":"some words of an answer"}]},"finishReason":"STOP"}]}"#;
    let array = format!("[{}]", vec![chunk; 5_000_000 / chunk.len()].join("\n,\r\n"));
    for (body, events) in
        [(format!("data: {image}\r\n\r\n"), 3), (image, 3), (array, 2 + 5_000_000 / chunk.len())]
    {
        let bytes = body.as_bytes();
        for size in [16, bytes.len()] {
            let pieces: Vec<&[u8]> = bytes.chunks(size).collect();
            assert_eq!(count(&pieces), events);
        }
    }
}

fn count(pieces: &[&[u8]]) -> usize {
    use toolgate_core::canon::{Event, IdGen};
    let exchange = std::sync::Arc::new(exchange());
    let mut decoder =
        toolgate_core::upstream::generate_content::StreamDecoder::new(exchange, IdGen::new(1));
    let mut events = 0;
    let mut sink = |_: &Event<'_>| events += 1;
    for piece in pieces {
        decoder.feed(piece, &mut sink);
    }
    decoder.finish(&mut sink);
    events
}
