//! Calls that the model writes as text instead of calling (field case H3).

use crate::json::Text;

/// Counts beginnings of call records in a text that comes in pieces.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Imitation {
    pub(super) count: usize,
    /// How much of the mark the last piece ended with.
    matched: usize,
}

const MARK: &[u8] = b"<call_record tool=\"";

impl Imitation {
    /// Looks at the next piece.
    pub(super) fn feed(&mut self, text: &Text<'_>) {
        let escaped = text.escaped().as_bytes();
        let may_begin = || {
            memchr::memchr2_iter(b'<', b'\\', escaped)
                .any(|at| escaped[at] == b'<' || escaped[at..].starts_with(b"\\u003"))
        };
        if self.matched == 0 && !may_begin() {
            return;
        }
        for byte in text.decode().bytes() {
            // `<` stands at the mark's beginning only, so a mismatch can start over there.
            self.matched = match byte {
                _ if byte == MARK[self.matched] => self.matched + 1,
                b'<' => 1,
                _ => 0,
            };
            if self.matched == MARK.len() {
                self.matched = 0;
                self.count += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h3_records_are_counted_wherever_they_are_cut() {
        let text = "<a <<call_record tool=\"read\">{}</call_record> <call_record tool=\"x\"> <call_record>";
        for at in 0..=text.len() {
            let mut found = Imitation::default();
            found.feed(&Text::new(&text[..at]));
            found.feed(&Text::new(&text[at..]));
            assert_eq!(found.count, 2, "cut at {at}");
        }
        let mut found = Imitation::default();
        let escaped: Text<'_> = serde_json::from_str(r#""\u003ccall_record tool=\"x\"""#).unwrap();
        found.feed(&escaped);
        assert_eq!(found.count, 1);
    }
}
