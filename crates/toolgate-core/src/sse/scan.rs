//! Where a bare JSON value ends.

use memchr::memchr2;

/// Finds the end of a JSON object or array, slice by slice.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Scan {
    depth: usize,
    in_string: bool,
    escaped: bool,
}

impl Scan {
    /// The index after the value's last byte, if it is in this slice.
    pub(super) fn end(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while at < bytes.len() {
            if self.escaped {
                self.escaped = false;
                at += 1;
                continue;
            }
            if self.in_string {
                at += memchr2(b'"', b'\\', &bytes[at..])?;
                self.in_string = bytes[at] != b'"';
                self.escaped = self.in_string;
                at += 1;
                continue;
            }
            match bytes[at] {
                b'"' => self.in_string = true,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        return Some(at + 1);
                    }
                }
                _ => {}
            }
            at += 1;
        }
        None
    }
}
