//! However a stream is cut, the client gets the same bytes.

use toolgate_core::translate::Dialect;

use toolgate_testing::golden::streams;
use toolgate_testing::pipeline::{DIALECTS, asked, stream};

fn check(dialect: Dialect) {
    let asked = asked(dialect);
    for (scenario, bytes) in streams() {
        let whole = stream(&asked, [&bytes[..]]);
        for at in 0..=bytes.len() {
            let (head, tail) = bytes.split_at(at);
            let cut = stream(&asked, [head, tail]);
            assert!(cut == whole, "{scenario} in {dialect:?}, cut at {at}");
        }
        for size in [1, 2, 7] {
            let cut = stream(&asked, bytes.chunks(size));
            assert!(cut == whole, "{scenario} in {dialect:?}, pieces of {size}");
        }
    }
}

#[test]
fn law3_a_cut_anywhere_changes_nothing_for_anthropic() {
    check(Dialect::Anthropic);
}

#[test]
fn law3_a_cut_anywhere_changes_nothing_for_chat() {
    check(Dialect::Chat);
}

#[test]
fn law3_a_cut_anywhere_changes_nothing_for_gemini() {
    check(Dialect::Gemini);
}

#[test]
fn law3_a_cut_anywhere_changes_nothing_for_responses() {
    check(Dialect::Responses);
}

/// Google's frames end in CRLF; proxies make LF of it.
#[test]
fn d6_line_ends_change_nothing() {
    for dialect in DIALECTS {
        let asked = asked(dialect);
        for (scenario, bytes) in streams() {
            let text = String::from_utf8(bytes.clone()).unwrap().replace("\r\n", "\n");
            let (crlf, lf) = (stream(&asked, [&bytes[..]]), stream(&asked, [text.as_bytes()]));
            assert!(crlf == lf, "{scenario} in {dialect:?}");
        }
    }
}
