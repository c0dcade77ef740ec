//! What every dialect takes and gives, so that whoever knows one knows four.
//!
//! ```text
//! decode_request(body, options)            -> Decoded<Echo>       Echo: what its answers need of it
//! StreamEncoder::new(echo, stamp, sealer)  -> impl Encoder
//! encode_response(answer, echo, stamp, sealer) -> Vec<u8>
//! encode_error(failure, request_id)        -> ErrorReply
//! ```

use super::{IdGen, Losses, Request};
use crate::seal::Sealer;

/// What a decoder needs beside the body.
#[derive(Clone, Copy, Debug)]
pub struct DecodeOptions<'a> {
    /// Opens what clients kept for us.
    pub sealer: &'a Sealer,
}

/// A request, understood.
#[derive(Clone, Debug)]
pub struct Decoded<'a, E> {
    /// What is asked.
    pub request: Request<'a>,
    /// What the answer must repeat or know, in this dialect.
    pub echo: E,
    /// What of the request could not be understood or means nothing to Gemini.
    pub losses: Losses,
}

/// What an answer gets from the outside world.
#[derive(Clone, Debug)]
pub struct Stamp {
    /// Where the ids of the answer and its items come from.
    pub ids: IdGen,
    /// Seconds since 1970.
    pub created: u64,
}

/// An error as a client shall see it.
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
