//! Bodies that come compressed.

use std::io::Read;

use bytes::Bytes;
use flate2::read::{MultiGzDecoder, ZlibDecoder};
use http::HeaderMap;
use http::header::CONTENT_ENCODING;
use ruzstd::decoding::StreamingDecoder;
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
    pub(crate) fn decode(self, body: &Bytes, limit: usize) -> Result<Bytes, Failure> {
        let name = self.name();
        let broken = |why: &dyn std::fmt::Display| {
            let message = format!("the body is not {name}, as its Content-Encoding says: {why}");
            Failure::new(FailureKind::InvalidRequest, message)
        };
        let mut decoder: Box<dyn Read + '_> = match self {
            Self::Deflate => Box::new(ZlibDecoder::new(&body[..])),
            Self::Gzip => Box::new(MultiGzDecoder::new(&body[..])),
            Self::Zstd => {
                Box::new(StreamingDecoder::new(&body[..]).map_err(|error| broken(&error))?)
            }
        };
        let mut out = Vec::with_capacity(body.len().saturating_mul(4).min(limit));
        // One byte more tells a body of just this size from a larger one.
        let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
        decoder.by_ref().take(most).read_to_end(&mut out).map_err(|error| broken(&error))?;
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

/// A body that is larger than it may be, as it came or as it was before it was compressed.
pub(super) fn too_large(limit: usize) -> Failure {
    let message = format!("the body is larger than {} MiB (limits.body_mib)", limit >> 20);
    Failure::new(FailureKind::TooLarge, message)
}
