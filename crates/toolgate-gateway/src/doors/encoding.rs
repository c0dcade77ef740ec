//! Bodies that come compressed.
//!
//! A few kilobytes can hold as many megabytes as a body may have. Only a few bodies are decompressed at a
//! time, and of those that swell out of all proportion only a few are there at a time, to the end of
//! their turns. Whoever comes when there is no room waits.

use std::io::Read;
use std::sync::Arc;

use bytes::Bytes;
use flate2::read::{MultiGzDecoder, ZlibDecoder};
use http::HeaderMap;
use http::header::CONTENT_ENCODING;
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use toolgate_core::canon::{Failure, FailureKind};

/// How a body is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Deflate,
    Gzip,
    Zstd,
}

/// What clients are told when theirs is none of these.
pub(crate) const KNOWN: &str = "gzip, deflate, zstd";

impl Encoding {
    /// What the headers say. `Err`: something that nobody here can read.
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

    /// The body as it was, unless it is larger than `limit`.
    fn decode(self, body: &[u8], limit: usize) -> Result<Bytes, Failure> {
        let name = self.name();
        let broken = |why: &dyn std::fmt::Display| {
            let message = format!("the body is not {name}, as its Content-Encoding says: {why}");
            Failure::new(FailureKind::InvalidRequest, message)
        };
        let mut decoder: Box<dyn Read + '_> = match self {
            Self::Deflate => Box::new(ZlibDecoder::new(body)),
            Self::Gzip => Box::new(MultiGzDecoder::new(body)),
            Self::Zstd => {
                let decoder = StreamingDecoder::new(body).map_err(|error| broken(&error))?;
                if window(body, &decoder.decoder) > limit.max(USUAL) as u64 {
                    return Err(too_large(limit));
                }
                Box::new(decoder)
            }
        };
        // One byte more tells a body of just this size from a larger one.
        let out = read(&mut decoder, body.len().saturating_mul(4), limit.saturating_add(1))
            .map_err(|error| broken(&error))?;
        if out.len() > limit { Err(too_large(limit)) } else { Ok(Bytes::from(out)) }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Deflate => "deflate",
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        }
    }
}

/// So many bodies are decompressed at a time, and so many that swell are there at a time.
const AT_A_TIME: usize = 4;
/// What a body may have in any case before it is one that swells: 8 MiB.
const USUAL: usize = 8 << 20;
/// How many times what came it may have. Conversations hardly ever reach that.
const SWELLING: usize = 16;

/// Room for bodies that come compressed.
#[derive(Debug)]
pub(crate) struct Decoders {
    working: Semaphore,
    swollen: Arc<Semaphore>,
}

impl Default for Decoders {
    fn default() -> Self {
        let swollen = Arc::new(Semaphore::new(AT_A_TIME));
        Self { working: Semaphore::new(AT_A_TIME), swollen }
    }
}

impl Decoders {
    /// The body as it was, unless it is larger than `limit`, when there is room for it.
    pub(crate) async fn decode(
        &self,
        encoding: Encoding,
        body: Bytes,
        limit: usize,
    ) -> Result<Bytes, Failure> {
        let usual = body.len().saturating_mul(SWELLING).max(USUAL).min(limit);
        match self.worked(encoding, body.clone(), usual).await {
            Err(failure) if failure.kind == FailureKind::TooLarge && usual < limit => {}
            decoded => return decoded,
        }
        // None of the semaphores is ever closed.
        let room = Arc::clone(&self.swollen).acquire_owned().await.ok();
        let bytes = self.worked(encoding, body, limit).await?;
        Ok(Bytes::from_owner(Swollen { bytes, _room: room }))
    }

    async fn worked(
        &self,
        encoding: Encoding,
        body: Bytes,
        limit: usize,
    ) -> Result<Bytes, Failure> {
        let _room = self.working.acquire().await;
        // Megabytes take a while; nobody else's turn shall wait for that.
        let work = tokio::task::spawn_blocking(move || encoding.decode(&body, limit));
        work.await.unwrap_or_else(|error| {
            let message = format!("the body cannot be decompressed: {error}");
            Err(Failure::new(FailureKind::Internal, message))
        })
    }
}

/// A body that has its room for as long as anybody has something of it.
struct Swollen {
    bytes: Bytes,
    _room: Option<OwnedSemaphorePermit>,
}

impl AsRef<[u8]> for Swollen {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Reads up to `most` bytes, for which it takes no more memory than `most`.
fn read(source: &mut dyn Read, guess: usize, most: usize) -> std::io::Result<Vec<u8>> {
    let (mut out, mut filled) = (vec![0; guess.clamp(1, most)], 0);
    while filled < most {
        if filled == out.len() {
            let more = filled.min(most - filled);
            out.reserve_exact(more);
            out.resize(filled + more, 0);
        }
        match source.read(&mut out[filled..])? {
            0 => break,
            read => filled += read,
        }
    }
    out.truncate(filled);
    Ok(out)
}

/// How much of a zstd frame its decoder keeps beside what it gives out: what the frame itself says.
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

/// A body that is larger than it may be, as it came or as it was before it was compressed.
pub(super) fn too_large(limit: usize) -> Failure {
    let message = format!("the body is larger than {} MiB (limits.body_mib)", limit >> 20);
    Failure::new(FailureKind::TooLarge, message)
}
