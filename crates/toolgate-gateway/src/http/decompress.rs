//! Compressed request bodies.
//!
//! A few kilobytes can hold as many megabytes as a body may have. A body reserves memory for its
//! expected size before it is received, and more as it grows; without memory, it is refused.

use std::io::Read;

use bytes::Bytes;
use flate2::read::{MultiGzDecoder, ZlibDecoder};
use http::HeaderMap;
use http::header::CONTENT_ENCODING;
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};
use toolgate_core::canon::{Failure, FailureKind};

use crate::admission::BodyRoom;
use crate::budget::Reservation;
use crate::receive::too_large;

/// How a body is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Deflate,
    Gzip,
    Zstd,
}

/// Supported encodings, for error messages.
pub(crate) const KNOWN: &str = "gzip, deflate, zstd";

impl Encoding {
    /// Reads the headers. `Err`: an encoding that is not supported.
    pub(crate) fn of(headers: &HeaderMap) -> Result<Option<Self>, String> {
        let mut named = headers.get_all(CONTENT_ENCODING).iter();
        let Some(first) = named.next() else { return Ok(None) };
        let name = String::from_utf8_lossy(first.as_bytes()).trim().to_ascii_lowercase();
        match (name.as_str(), named.next()) {
            ("identity" | "", None) => Ok(None),
            ("deflate", None) => Ok(Some(Self::Deflate)),
            ("gzip" | "x-gzip", None) => Ok(Some(Self::Gzip)),
            ("zstd", None) => Ok(Some(Self::Zstd)),
            (_, None) => Err(name),
            (_, Some(_)) => Err(format!("{name}, …")),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Deflate => "deflate",
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        }
    }
}

/// Expected ratio of decompressed to compressed size.
const EXPECTED_RATIO: usize = 8;
/// Window that a zstd frame may have whatever the body limit is: 8 MiB.
const ZSTD_WINDOW: usize = 8 << 20;
/// Bytes that are decompressed at a time.
const CHUNK: usize = 32 << 10;

/// Length that a compressed body is expected to have, for the room that it gets at first.
pub(crate) fn expected(length: usize, limit: usize) -> usize {
    length.saturating_mul(EXPECTED_RATIO).min(limit)
}

/// Decompresses a body of at most `limit` bytes on a thread of its own. `room` holds the compressed body
/// and grows with the other; the caller gets the rest of the reservation.
pub(crate) async fn decode(
    encoding: Encoding,
    body: Vec<u8>,
    room: BodyRoom,
    limit: usize,
) -> Result<(Bytes, Reservation), Failure> {
    let work = move || {
        let mut out = Output { bytes: Vec::new(), compressed: body.len(), limit, room };
        match out.decode(encoding, &body) {
            Ok(()) => Ok(out.room.hold(out.bytes)),
            Err(Stop::Refused(failure)) => Err(failure),
            Err(Stop::Broken(why)) => {
                let name = encoding.name();
                let message =
                    format!("the body is not {name}, as its Content-Encoding says: {why}");
                Err(Failure::new(FailureKind::InvalidRequest, message))
            }
        }
    };
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| {
        let message = format!("the body cannot be decompressed: {error}");
        Err(Failure::new(FailureKind::Internal, message))
    })
}

/// A body that is being decompressed.
struct Output {
    bytes: Vec<u8>,
    compressed: usize,
    limit: usize,
    room: BodyRoom,
}

/// Reason why a body was not decompressed.
enum Stop {
    Broken(String),
    Refused(Failure),
}

impl Stop {
    fn broken(error: impl std::fmt::Display) -> Self {
        Self::Broken(error.to_string())
    }
}

impl Output {
    fn decode(&mut self, encoding: Encoding, body: &[u8]) -> Result<(), Stop> {
        match encoding {
            Encoding::Deflate => {
                let mut decoder = ZlibDecoder::new(body);
                self.read(&mut decoder)?;
                if decoder.total_in() == body.len() as u64 {
                    Ok(())
                } else {
                    Err(Stop::broken("something follows its end"))
                }
            }
            // The decoder reads all members, and refuses other data.
            Encoding::Gzip => self.read(&mut MultiGzDecoder::new(body)),
            Encoding::Zstd => self.decode_zstd(body),
        }
    }

    /// Decompresses all frames.
    fn decode_zstd(&mut self, mut rest: &[u8]) -> Result<(), Stop> {
        let mut decoder = FrameDecoder::new();
        let mut is_first = true;
        while is_first || !rest.is_empty() {
            is_first = false;
            if let Some(after) = after_skippable(rest) {
                rest = after.map_err(Stop::broken)?;
                continue;
            }
            let frame = rest;
            let mut frame_decoder = StreamingDecoder::new_with_decoder(&mut rest, &mut decoder)
                .map_err(Stop::broken)?;
            if window(frame, frame_decoder.decoder) > self.limit.max(ZSTD_WINDOW) as u64 {
                return Err(Stop::Refused(too_large(self.limit)));
            }
            self.read(&mut frame_decoder)?;
        }
        Ok(())
    }

    /// Appends what `source` holds.
    fn read(&mut self, source: &mut dyn Read) -> Result<(), Stop> {
        let mut chunk = [0; CHUNK];
        loop {
            let count = source.read(&mut chunk).map_err(Stop::broken)?;
            let Some(chunk) = chunk.get(..count).filter(|chunk| !chunk.is_empty()) else {
                return Ok(());
            };
            self.push(chunk).map_err(Stop::Refused)?;
        }
    }

    fn push(&mut self, chunk: &[u8]) -> Result<(), Failure> {
        let length = self.bytes.len() + chunk.len();
        if length > self.limit {
            return Err(too_large(self.limit));
        }
        if length > self.bytes.capacity() {
            let all = self.compressed.saturating_add(length);
            let room = self.room.grow(all, self.compressed.saturating_add(self.limit))?;
            let capacity = room.saturating_sub(self.compressed).clamp(length, self.limit);
            self.bytes.reserve_exact(capacity - self.bytes.len());
        }
        self.bytes.extend_from_slice(chunk);
        Ok(())
    }
}

/// What follows a skippable frame; `None` where there is none.
fn after_skippable(frame: &[u8]) -> Option<Result<&[u8], &'static str>> {
    let (magic, rest) = frame.split_first_chunk::<4>()?;
    if u32::from_le_bytes(*magic) & !0xf != 0x184D_2A50 {
        return None;
    }
    let after = rest.split_first_chunk::<4>().and_then(|(length, rest)| {
        let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
        rest.get(length..)
    });
    Some(after.ok_or("it ends within a skippable frame"))
}

/// Window of a zstd frame, as its header gives it: memory that the decoder needs beside its output.
fn window(frame: &[u8], decoder: &FrameDecoder) -> u64 {
    const IN_ONE_PIECE: u8 = 0x20;
    match frame.get(4..6) {
        Some(&[kind, size]) if kind & IN_ONE_PIECE == 0 => {
            let base = 1_u64 << (10 + (size >> 3));
            base + base / 8 * u64::from(size & 7)
        }
        Some(_) | None => decoder.content_size(),
    }
}
