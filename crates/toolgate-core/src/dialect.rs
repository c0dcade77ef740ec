//! Signatures that all dialects share.
//!
//! ```text
//! decode_request(body, options)            -> Decoded<Echo>       Echo: what its answers need of it
//! StreamEncoder::new(echo, stamp, sealer)  -> impl Encoder
//! encode_response(answer, echo, stamp, sealer) -> Vec<u8>
//! encode_error(failure, request_id)        -> ErrorReply
//! ```

use crate::canon::{IdGen, Losses, Request};
use crate::seal::Sealer;

/// Input of a decoder beside the body.
#[derive(Clone, Copy, Debug)]
pub struct DecodeOptions<'a> {
    /// Opens the envelopes that clients kept.
    pub sealer: &'a Sealer,
}

/// A decoded request.
#[derive(Clone, Debug)]
pub struct Decoded<'a, E> {
    /// The request.
    pub request: Request<'a>,
    /// Facts of the request that its answers need, in this dialect.
    pub echo: E,
    /// Parts of the request that have no meaning for Gemini.
    pub losses: Losses,
}

impl<'a, E> Decoded<'a, E> {
    /// Converts the echo.
    pub fn map_echo<F>(self, convert: impl FnOnce(E) -> F) -> Decoded<'a, F> {
        let Self { request, echo, losses } = self;
        Decoded { request, echo: convert(echo), losses }
    }
}

/// Time and seed of an answer. The core has neither a clock nor a source of randomness.
#[derive(Clone, Debug)]
pub struct Stamp {
    /// Generator of the ids of the answer and its items.
    pub ids: IdGen,
    /// Start of the answer, in seconds since 1970.
    pub created: u64,
    /// The caller's clock, in seconds since 1970, read once when the answer completes. Without a
    /// clock, the answer completes in the second in which it was created.
    pub clock: Option<fn() -> u64>,
    /// Id of the request, named in errors within a stream.
    pub request_id: Option<String>,
}

impl Stamp {
    /// A stamp without clock and request id.
    pub fn new(ids: IdGen, created: u64) -> Self {
        Self { ids, created, clock: None, request_id: None }
    }

    /// Time at which the answer completes, if it completes now.
    pub fn completed(&self) -> u64 {
        self.clock.map_or(self.created, |clock| clock().max(self.created))
    }
}

/// An error in a client's dialect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorReply {
    /// The HTTP status.
    pub status: u16,
    /// `Retry-After`, in seconds.
    pub retry_after: Option<u64>,
    /// The client must not try again by itself, where its dialect can say so
    /// (`x-should-retry: false`).
    pub do_not_retry: bool,
    /// The JSON body.
    pub body: Vec<u8>,
}
