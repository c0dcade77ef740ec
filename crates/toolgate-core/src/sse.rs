//! Cutting a stream of bytes into JSON frames.
//!
//! ```text
//! body  = ( event | value | "[" value ("," value)* "]" )*      in any mixture
//! event = ("data:" … line-end)* line-end                       Server-Sent Events
//! value = { … }                                                bare JSON, any number of lines
//! ```
//!
//! Gemini answers with events (`alt=sse`), with one array, or with one object, and puts a bare error
//! object into the middle of a stream of events. The [`Reader`] takes all of them without being
//! told which. It looks at every byte once and copies only frames that were split between chunks.

mod scan;

use std::fmt;
use std::ops::{ControlFlow, Range};

use memchr::memchr2;

use scan::Scan;

/// The largest frame that a [`Reader`] takes unless it is told otherwise: 64 MiB.
pub const MAX_FRAME: usize = 64 << 20;

/// A frame that the reader found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Type of frame.
    pub kind: FrameKind,
    /// Its bytes: an event's data, a value's text, or the line that is neither.
    pub bytes: &'a [u8],
    /// `false`: the input ended before the frame did.
    pub whole: bool,
}

/// Type of frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// The data of an event, its lines joined by line feeds.
    Event,
    /// A JSON object outside of any event.
    Value,
    /// A line that belongs to neither form.
    Noise,
}

/// A frame was larger than the reader's limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a frame is larger than {limit} bytes")]
pub struct TooLarge {
    /// The limit.
    pub limit: usize,
}

/// Takes bytes as they come, gives frames.
#[derive(Clone)]
pub struct Reader {
    state: ReaderState,
    /// Between `[` and `]`.
    in_array: bool,
    /// A carriage return ended the last line: a line feed right after it belongs to it.
    skip_line_feed: bool,
    /// The begun line or value, where it came in an earlier slice.
    carry: Vec<u8>,
    /// The data of the open event, where it came in an earlier slice or in several lines.
    data: Option<Vec<u8>>,
    scan: Scan,
    limit: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReaderState {
    /// At the very beginning, after so many bytes of a byte order mark.
    Mark(usize),
    LineStart,
    Line,
    Value,
}

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";
/// A buffer that grew beyond this for one big frame is given back.
const KEEP: usize = 1 << 20;

/// Who takes the frames; `Break` makes the reader stop.
type Take<'t> = dyn FnMut(Frame<'_>) -> ControlFlow<()> + 't;

/// Why reading stopped before the end of the slice.
enum Stop {
    Asked,
    TooLarge,
}

/// Shows how much is kept, not what: there are signatures in it.
impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let data = self.data.as_ref().map_or(0, Vec::len);
        write!(f, "Reader({:?}, {} bytes kept)", self.state, self.carry.len() + data)
    }
}

impl Default for Reader {
    fn default() -> Self {
        Self::with_limit(MAX_FRAME)
    }
}

impl Reader {
    /// A reader that takes frames of at most `limit` bytes.
    pub fn with_limit(limit: usize) -> Self {
        Self {
            state: ReaderState::Mark(0),
            in_array: false,
            skip_line_feed: false,
            carry: Vec::new(),
            data: None,
            scan: Scan::default(),
            limit,
        }
    }

    /// A reader with the same limit that has read nothing yet.
    #[must_use]
    pub fn fresh(&self) -> Self {
        Self::with_limit(self.limit)
    }

    /// Takes the next bytes.
    pub fn feed(&mut self, bytes: &[u8], take: &mut Take<'_>) -> Result<(), TooLarge> {
        let mut slice = Slice { bytes, data: None };
        let outcome = self.read(&mut slice, take);
        if let Some(range) = slice.data {
            self.data = Some(bytes[range].to_vec());
        }
        self.outcome(&outcome)
    }

    /// Takes the end of the input.
    pub fn finish(&mut self, take: &mut Take<'_>) -> Result<(), TooLarge> {
        let outcome = self.read_end(take);
        self.outcome(&outcome)
    }

    fn outcome(&self, outcome: &Result<(), Stop>) -> Result<(), TooLarge> {
        match outcome {
            Ok(()) | Err(Stop::Asked) => Ok(()),
            Err(Stop::TooLarge) => Err(TooLarge { limit: self.limit }),
        }
    }

    fn read(&mut self, slice: &mut Slice<'_>, take: &mut Take<'_>) -> Result<(), Stop> {
        let bytes = slice.bytes;
        let mut at = 0;
        while at < bytes.len() {
            match self.state {
                ReaderState::Mark(seen) => at += self.mark(seen, bytes[at]),
                ReaderState::LineStart => at += self.line_start(bytes[at], slice, take)?,
                ReaderState::Line => match memchr2(b'\n', b'\r', &bytes[at..]) {
                    Some(length) => {
                        let end = at + length;
                        self.skip_line_feed = bytes[end] == b'\r';
                        self.state = ReaderState::LineStart;
                        self.line(slice, at..end, take)?;
                        at = end + 1;
                    }
                    None => {
                        self.keep(&bytes[at..])?;
                        at = bytes.len();
                    }
                },
                ReaderState::Value => match self.scan.end(&bytes[at..]) {
                    Some(length) => {
                        self.state = ReaderState::LineStart;
                        self.value(&bytes[at..at + length], take)?;
                        at += length;
                    }
                    None => {
                        self.keep(&bytes[at..])?;
                        at = bytes.len();
                    }
                },
            }
        }
        Ok(())
    }

    fn read_end(&mut self, take: &mut Take<'_>) -> Result<(), Stop> {
        match self.state {
            ReaderState::Mark(seen) => self.carry.extend_from_slice(&BYTE_ORDER_MARK[..seen]),
            ReaderState::LineStart | ReaderState::Line => {}
            ReaderState::Value => {
                let frame = Frame { kind: FrameKind::Value, bytes: &self.carry, whole: false };
                return give(take, frame);
            }
        }
        let last = std::mem::take(&mut self.carry);
        // A field's name that was cut off says nothing.
        if !last.is_empty() && !FIELDS.iter().any(|name| name.starts_with(&last)) {
            self.state = ReaderState::LineStart;
            let mut slice = Slice { bytes: &last, data: None };
            self.line(&mut slice, 0..last.len(), take)?;
            if let Some(range) = slice.data {
                self.data = Some(last[range].to_vec());
            }
        }
        match self.data.take() {
            Some(data) => give(take, Frame { kind: FrameKind::Event, bytes: &data, whole: false }),
            None => Ok(()),
        }
    }

    /// How many bytes were taken.
    fn mark(&mut self, seen: usize, byte: u8) -> usize {
        if BYTE_ORDER_MARK[seen] == byte {
            let whole = seen + 1 == BYTE_ORDER_MARK.len();
            self.state = if whole { ReaderState::LineStart } else { ReaderState::Mark(seen + 1) };
            return 1;
        }
        self.carry.extend_from_slice(&BYTE_ORDER_MARK[..seen]);
        self.state = if seen == 0 { ReaderState::LineStart } else { ReaderState::Line };
        0
    }

    /// How many bytes were taken.
    fn line_start(
        &mut self,
        byte: u8,
        slice: &mut Slice<'_>,
        take: &mut Take<'_>,
    ) -> Result<usize, Stop> {
        let belongs_to_last = std::mem::take(&mut self.skip_line_feed) && byte == b'\n';
        match byte {
            b'\n' if belongs_to_last => {}
            b' ' | b'\t' => {}
            b'\n' | b'\r' => {
                self.skip_line_feed = byte == b'\r';
                self.event(slice, take)?;
            }
            b'{' => {
                self.event(slice, take)?;
                self.state = ReaderState::Value;
                self.scan = Scan::default();
                return Ok(0);
            }
            b'[' if !self.in_array => {
                self.event(slice, take)?;
                self.in_array = true;
            }
            b',' if self.in_array => {}
            b']' if self.in_array => self.in_array = false,
            _ => {
                self.state = ReaderState::Line;
                return Ok(0);
            }
        }
        Ok(1)
    }

    fn line(
        &mut self,
        slice: &mut Slice<'_>,
        range: Range<usize>,
        take: &mut Take<'_>,
    ) -> Result<(), Stop> {
        if self.carry.is_empty() {
            return match self.field(&slice.bytes[range.clone()], take)? {
                Some(skipped) => self.data_line(slice, range.start + skipped..range.end),
                None => Ok(()),
            };
        }
        self.keep(&slice.bytes[range])?;
        let mut line = std::mem::take(&mut self.carry);
        if let Some(skipped) = self.field(&line, take)? {
            self.own_data_line(slice, &line[skipped..])?;
        }
        if line.capacity() <= KEEP {
            line.clear();
            self.carry = line;
        }
        Ok(())
    }

    /// Where the data begins, if the line is one of data.
    fn field(&mut self, line: &[u8], take: &mut Take<'_>) -> Result<Option<usize>, Stop> {
        if line.len() > self.limit {
            return Err(Stop::TooLarge);
        }
        if self.in_array {
            // `[DONE]` without `data:` looks like an array at first.
            if line.trim_ascii_end() == b"DONE]" {
                self.in_array = false;
                return Ok(None);
            }
            give(take, Frame { kind: FrameKind::Noise, bytes: line, whole: true })?;
            return Ok(None);
        }
        let colon = memchr::memchr(b':', line);
        let name = &line[..colon.unwrap_or(line.len())];
        match (name, colon) {
            (b"data", Some(colon)) => {
                Ok(Some(colon + 1 + usize::from(line.get(colon + 1) == Some(&b' '))))
            }
            (b"data", None) => Ok(Some(line.len())),
            (b"event" | b"id" | b"retry", _) => Ok(None),
            (_, Some(_)) if name.iter().all(|byte| matches!(byte, b'a'..=b'z' | b'_' | b'-')) => {
                Ok(None)
            }
            _ => {
                give(take, Frame { kind: FrameKind::Noise, bytes: line, whole: true })?;
                Ok(None)
            }
        }
    }

    fn data_line(&mut self, slice: &mut Slice<'_>, range: Range<usize>) -> Result<(), Stop> {
        if self.data.is_none() && slice.data.is_none() {
            slice.data = Some(range);
            return Ok(());
        }
        let bytes = slice.bytes;
        self.own_data_line(slice, &bytes[range])
    }

    fn own_data_line(&mut self, slice: &mut Slice<'_>, line: &[u8]) -> Result<(), Stop> {
        if let Some(range) = slice.data.take() {
            self.data = Some(slice.bytes[range].to_vec());
        }
        match &mut self.data {
            Some(data) if data.len() + line.len() >= self.limit => return Err(Stop::TooLarge),
            Some(data) => {
                data.push(b'\n');
                data.extend_from_slice(line);
            }
            None => self.data = Some(line.to_vec()),
        }
        Ok(())
    }

    fn event(&mut self, slice: &mut Slice<'_>, take: &mut Take<'_>) -> Result<(), Stop> {
        let kind = FrameKind::Event;
        if let Some(range) = slice.data.take() {
            return give(take, Frame { kind, bytes: &slice.bytes[range], whole: true });
        }
        match self.data.take() {
            Some(data) => give(take, Frame { kind, bytes: &data, whole: true }),
            None => Ok(()),
        }
    }

    fn value(&mut self, rest: &[u8], take: &mut Take<'_>) -> Result<(), Stop> {
        let kind = FrameKind::Value;
        if self.carry.is_empty() {
            if rest.len() > self.limit {
                return Err(Stop::TooLarge);
            }
            return give(take, Frame { kind, bytes: rest, whole: true });
        }
        self.keep(rest)?;
        let mut value = std::mem::take(&mut self.carry);
        give(take, Frame { kind, bytes: &value, whole: true })?;
        if value.capacity() <= KEEP {
            value.clear();
            self.carry = value;
        }
        Ok(())
    }

    fn keep(&mut self, bytes: &[u8]) -> Result<(), Stop> {
        if self.carry.len() + bytes.len() > self.limit {
            return Err(Stop::TooLarge);
        }
        self.carry.extend_from_slice(bytes);
        Ok(())
    }
}

const FIELDS: [&[u8]; 4] = [b"data", b"event", b"id", b"retry"];

fn give(take: &mut Take<'_>, frame: Frame<'_>) -> Result<(), Stop> {
    match take(frame) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Stop::Asked),
    }
}

/// The bytes that are being fed, and the data of the open event where it lies in them.
struct Slice<'a> {
    bytes: &'a [u8],
    data: Option<Range<usize>>,
}

#[cfg(test)]
mod tests;
