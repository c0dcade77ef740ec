use super::*;

type Owned = (FrameKind, String, bool);

fn frames(pieces: &[&[u8]]) -> Result<Vec<Owned>, TooLarge> {
    frames_with(Reader::default(), pieces)
}

fn frames_with(mut reader: Reader, pieces: &[&[u8]]) -> Result<Vec<Owned>, TooLarge> {
    let mut got = Vec::new();
    let mut take = |frame: Frame<'_>| {
        let text = String::from_utf8_lossy(frame.bytes).into_owned();
        got.push((frame.kind, text, frame.whole));
        ControlFlow::Continue(())
    };
    for piece in pieces {
        reader.feed(piece, &mut take)?;
    }
    reader.finish(&mut take)?;
    Ok(got)
}

/// `want`: an event as it is, a value after `=`, noise after `!`; `…` at the end where it was cut.
#[track_caller]
fn check(bytes: &str, want: &[&str]) {
    let shown = |frames: Vec<Owned>| -> Vec<String> {
        frames
            .into_iter()
            .map(|(kind, text, whole)| {
                let mark = match kind {
                    FrameKind::Event => "",
                    FrameKind::Value => "=",
                    FrameKind::Noise => "!",
                };
                format!("{mark}{text}{}", if whole { "" } else { "…" })
            })
            .collect()
    };
    let bytes = bytes.as_bytes();
    assert_eq!(shown(frames(&[bytes]).unwrap()), want, "whole");
    for at in 0..=bytes.len() {
        let got = shown(frames(&[&bytes[..at], &bytes[at..]]).unwrap());
        assert_eq!(got, want, "cut at {at}");
    }
    let single: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(shown(frames(&single).unwrap()), want, "byte by byte");
}

#[test]
fn events() {
    check("data: a\n\n", &["a"]);
    check("data: a\r\n\r\ndata: b\r\n\r\n", &["a", "b"]);
    check("data:a\r\rdata: b\r\n\r\n", &["a", "b"]);
    check("event: x\nid: 1\nretry: 5\ndata: 1\ndata: 2\ndata:  3\n\n", &["1\n2\n 3"]);
    check("\u{feff}data: a\n\n", &["a"]);
    check(": a comment\n\n:\r\ndata: a\n\n", &["a"]);
    check("data\n\n", &[""]);
    check("data: 中文😀\r\n\r\ndata: é\n\n", &["中文😀", "é"]);
    check("x-note: a\ndata: b\n\n", &["b"]);
    check("data: [DONE]\n\n", &["[DONE]"]);
    check("", &[]);
    check("\n\n\r\n", &[]);
}

#[test]
fn d6_the_last_event_needs_no_blank_line() {
    check("data: a", &["a…"]);
    check("data: a\r\n", &["a…"]);
    check("data: a\n\ndata: b\ndata: c", &["a", "b\nc…"]);
    check("data: a\n\ndat", &["a"]);
}

#[test]
fn arrays() {
    check("[{\"a\":1}\n,\r\n{\"b\":[2]}]", &["={\"a\":1}", "={\"b\":[2]}"]);
    check("[]", &[]);
    check("[\n{\"a\":\"]}\\\"\"}\n]\n", &["={\"a\":\"]}\\\"\"}"]);
    check("[{\"a\":1},\n{\"b\"", &["={\"a\":1}", "={\"b\"…"]);
    check("\u{feff} [{}]", &["={}"]);
    check("[1, 2]\n", &["!1, 2]"]);
    check("[DONE]\ndata: a\n\n", &["a"]);
}

#[test]
fn single_values() {
    check(
        "{\n  \"a\": {\n    \"b\": \"}\"\n  }\n}\n",
        &["={\n  \"a\": {\n    \"b\": \"}\"\n  }\n}"],
    );
    check("{\"a\":1}{\"b\":2}\n{\"c\":3}", &["={\"a\":1}", "={\"b\":2}", "={\"c\":3}"]);
    check("{\"a\":\"\\\\\"}", &["={\"a\":\"\\\\\"}"]);
    check("{\"a\":", &["={\"a\":…"]);
}

#[test]
fn d12_a_bare_error_in_the_middle() {
    let bare = "{\n  \"error\": {\n    \"code\": 503\n  }\n}";
    let value = format!("={bare}");
    check(&format!("data: a\r\n\r\n{bare}\n"), &["a", &value]);
    check(&format!("data: a\r\n{bare}\r\ndata: b\r\n\r\n"), &["a", &value, "b"]);
    check(&format!("data: a\n\n[{bare}]\ndata: b\n\n"), &["a", &value, "b"]);
}

#[test]
fn noise() {
    check("<html>\n<b>x</b>", &["!<html>", "!<b>x</b>"]);
    check("no healthy upstream", &["!no healthy upstream"]);
    check("\u{fefe}", &["!\u{fefe}"]);
}

#[test]
fn frames_have_a_limit() {
    let reader = || Reader::with_limit(8);
    let long = Err(TooLarge { limit: 8 });
    for bytes in ["{\"a\":123456}", "data: 123456\n\n", "data:1234\ndata:5678\n\n", "xxxxxxxxxx\n"]
    {
        let bytes = bytes.as_bytes();
        assert_eq!(frames_with(reader(), &[bytes]), long);
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(frames_with(reader(), &single), long);
    }
    assert_eq!(frames_with(reader(), &[b"data:123\n\ndata:45\n\n"]).unwrap().len(), 2);
}

#[test]
fn whole_frames_are_lent_not_copied() {
    for bytes in ["data: {\"a\":1}\r\n\r\n", "[{\"a\":1},{\"b\":2}]"] {
        let bytes = bytes.as_bytes();
        let mut seen = 0;
        Reader::default()
            .feed(bytes, &mut |frame| {
                assert!(bytes.as_ptr_range().contains(&frame.bytes.as_ptr()));
                seen += 1;
                ControlFlow::Continue(())
            })
            .unwrap();
        assert!(seen > 0);
    }
}

#[test]
fn a_taker_may_stop() {
    let mut seen = 0;
    Reader::default()
        .feed(b"data: a\n\ndata: b\n\n", &mut |_| {
            seen += 1;
            ControlFlow::Break(())
        })
        .unwrap();
    assert_eq!(seen, 1);
}
