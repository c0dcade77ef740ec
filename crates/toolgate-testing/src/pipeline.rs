//! The whole path: a request to Gemini, and Gemini's answer to the client.

use std::sync::Arc;

use toolgate_core::canon::{Answer, Backend, BadRequest, Failure, IdGen, Request, Target};
use toolgate_core::dialect::{DecodeOptions, Decoded, Stamp};
use toolgate_core::schema::Cache;
use toolgate_core::seal::Sealer;
use toolgate_core::translate::{self, Dialect, Echo, Translator};
use toolgate_core::upstream::generate_content::{
    EncodeOptions, Exchange, decode_response, encode_request,
};

use crate::golden;

pub const DIALECTS: [Dialect; 4] =
    [Dialect::Anthropic, Dialect::Responses, Dialect::Chat, Dialect::Gemini];

pub fn target() -> Target {
    Target { model: "gemini-3.6-flash".to_owned(), backend: Backend::Developer }
}

/// Decodes a body of any dialect; Gemini's model stands in the address.
pub fn decode<'a>(
    dialect: Dialect,
    body: &'a str,
    sealer: &Sealer,
) -> Result<Decoded<'a, Echo>, BadRequest> {
    let options = DecodeOptions { sealer };
    if dialect != Dialect::Gemini {
        return translate::decode_request(dialect, body, &options);
    }
    let decoded = toolgate_core::gemini::decode_request(body, "gemini-3.6-flash", true, &options)?;
    let Decoded { request, echo, losses } = decoded;
    Ok(Decoded { request, echo: Echo::Gemini(echo), losses })
}

/// What an answer's translation needs of the request.
#[derive(Clone, Debug)]
pub struct Asked {
    pub dialect: Dialect,
    pub echo: Echo,
    pub exchange: Arc<Exchange>,
    pub sealer: Sealer,
}

/// Asks the golden question in a dialect.
pub fn asked(dialect: Dialect) -> Asked {
    ask(dialect, &golden::request(dialect))
}

/// Sends a body for the golden model.
#[track_caller]
pub fn ask(dialect: Dialect, body: &str) -> Asked {
    let sealer = Sealer::with_key([7; 32]);
    let decoded = decode(dialect, body, &sealer).unwrap();
    let exchange = encode(&decoded.request, &target()).unwrap().exchange;
    Asked { dialect, echo: decoded.echo, exchange: Arc::new(exchange), sealer }
}

pub fn encode(
    request: &Request<'_>,
    target: &Target,
) -> Result<toolgate_core::upstream::generate_content::Encoded, BadRequest> {
    let cache = Cache::default();
    encode_request(request, target, &EncodeOptions::new(&cache))
}

pub fn stamp() -> Stamp {
    Stamp::new(IdGen::new(1), 1_800_000_000)
}

/// A stream as a client sees it, the failure at its end included.
pub fn stream<'b>(asked: &Asked, pieces: impl IntoIterator<Item = &'b [u8]>) -> Vec<u8> {
    let encoder = asked.echo.clone().encoder(stamp(), asked.sealer.clone());
    let mut translator = Translator::new(Arc::clone(&asked.exchange), IdGen::new(2), encoder);
    let mut out = Vec::new();
    for piece in pieces {
        translator.feed(piece, &mut out);
    }
    translator.finish(&mut out);
    if let Some(failure) = translator.seen().failure.clone() {
        translator.fail(failure, &mut out);
    }
    out
}

/// The whole answer.
pub fn answer(asked: &Asked, bytes: &[u8]) -> Result<Answer, Failure> {
    decode_response(bytes, Arc::clone(&asked.exchange), IdGen::new(2))
}
