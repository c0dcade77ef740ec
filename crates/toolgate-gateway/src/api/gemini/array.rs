//! Finds the ends of elements in an array that arrives in pieces.

use bytes::BytesMut;

/// Reads along an array of objects, byte by byte.
#[derive(Debug, Default)]
pub(super) struct Elements {
    depth: usize,
    in_text: bool,
    is_escaped: bool,
    has_begun: bool,
    has_one: bool,
}

impl Elements {
    /// In an array, behind an element.
    pub(super) fn behind_one() -> Self {
        Self { depth: 1, has_begun: true, has_one: true, ..Self::default() }
    }

    /// Reads more bytes. Returns the end of the last complete element, or 0; the closing bracket belongs to none.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> usize {
        let mut whole = 0;
        for (at, byte) in bytes.iter().enumerate() {
            if self.in_text {
                match byte {
                    _ if self.is_escaped => self.is_escaped = false,
                    b'\\' => self.is_escaped = true,
                    b'"' => self.in_text = false,
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => self.in_text = true,
                b'{' | b'[' => {
                    self.has_begun = true;
                    self.depth += 1;
                }
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 1 {
                        self.has_one = true;
                        whole = at + 1;
                    }
                }
                _ => {}
            }
        }
        whole
    }

    /// Whether the array is there to its end.
    pub(super) fn has_ended(&self) -> bool {
        self.has_begun && self.depth == 0
    }

    /// Ends an array behind its last whole element, perhaps with one more.
    pub(super) fn end(self, last: Option<&[u8]>, out: &mut BytesMut) {
        if !self.has_one {
            out.extend_from_slice(b"[");
        } else if last.is_some() {
            out.extend_from_slice(b"\n,\r\n");
        }
        out.extend_from_slice(last.unwrap_or_default());
        out.extend_from_slice(b"]");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// d6: an array that is cut is completed, wherever it is cut and however it came.
    #[test]
    fn d6_an_array_is_ended_wherever_it_is_cut() {
        let all = b"[{\"a\":\"}]\\\"\",\"b\":[{}]}\n,\n{\"c\":{\"d\":\"\\\\\"}}\n]";
        let ends = [22, 41];
        for cut in 0..=all.len() {
            for step in [1, 2, 7, all.len()] {
                let mut elements = Elements::default();
                let (mut kept, mut given) = (BytesMut::new(), BytesMut::new());
                for bytes in all[..cut].chunks(step) {
                    let whole = elements.feed(bytes);
                    if whole > 0 {
                        given.extend(kept.split());
                    }
                    given.extend_from_slice(&bytes[..whole]);
                    kept.extend_from_slice(&bytes[whole..]);
                }
                assert_eq!(elements.has_ended(), cut == all.len(), "cut at {cut}");
                elements.end(Some(b"5"), &mut given);
                let values: Vec<serde_json::Value> = serde_json::from_slice(&given).unwrap();
                let count = ends.iter().filter(|end| cut >= **end).count();
                assert_eq!(values.len(), count + 1, "cut at {cut}");
            }
        }
    }
}
