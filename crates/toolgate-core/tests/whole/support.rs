//! Running the whole path.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use toolgate_core::canon::{
    Answer, BadRequest, DecodeOptions, Decoded, Failure, IdGen, Request, Stamp,
};
use toolgate_core::gemini::upstream::{EncodeOptions, encode_request};
use toolgate_core::gemini::{Backend, Exchange, Target, decode_response};
use toolgate_core::schema::Cache;
use toolgate_core::seal::Sealer;
use toolgate_core::translate::{self, Dialect, Echo, Translator};

pub(crate) const DIALECTS: [Dialect; 4] =
    [Dialect::Anthropic, Dialect::Responses, Dialect::Chat, Dialect::Gemini];

pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// The files of a folder of golden inputs, with their scenarios' names.
pub(crate) fn inputs(kind: &str, ending: &str) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    for file in std::fs::read_dir(folder().join(kind)).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if let Some(scenario) = name.strip_suffix(ending) {
            files.push((scenario.to_owned(), std::fs::read(&path).unwrap()));
        }
    }
    files.sort();
    assert!(!files.is_empty(), "nothing in {kind}");
    files
}

/// Every golden stream.
pub(crate) fn streams() -> Vec<(String, Vec<u8>)> {
    inputs("stream", ".gemini.sse")
}

/// Every golden body.
pub(crate) fn bodies() -> Vec<(String, Vec<u8>)> {
    inputs("unary", ".gemini.json")
}

pub(crate) fn target() -> Target {
    Target { model: "gemini-3.6-flash".to_owned(), backend: Backend::Developer }
}

/// Decodes a body of any dialect; Gemini's model stands in the address.
pub(crate) fn decode<'a>(
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
#[derive(Clone)]
pub(crate) struct Asked {
    pub(crate) dialect: Dialect,
    pub(crate) echo: Echo,
    pub(crate) exchange: Arc<Exchange>,
    pub(crate) sealer: Sealer,
}

/// The golden request of a dialect.
pub(crate) fn body(dialect: Dialect) -> String {
    let file = match dialect {
        Dialect::Anthropic => "tools.anthropic.json",
        Dialect::Chat => "tools.chat.json",
        Dialect::Gemini => "tools.gemini.json",
        Dialect::Responses => "tools.responses.json",
    };
    std::fs::read_to_string(folder().join(file)).unwrap()
}

/// Asks the golden question in a dialect.
pub(crate) fn asked(dialect: Dialect) -> Asked {
    ask(dialect, &body(dialect))
}

/// Sends a body for the golden model.
#[track_caller]
pub(crate) fn ask(dialect: Dialect, body: &str) -> Asked {
    let sealer = Sealer::with_key([7; 32]);
    let decoded = decode(dialect, body, &sealer).unwrap();
    let exchange = encode(&decoded.request, &target()).unwrap().exchange;
    Asked { dialect, echo: decoded.echo, exchange: Arc::new(exchange), sealer }
}

pub(crate) fn encode(
    request: &Request<'_>,
    target: &Target,
) -> Result<toolgate_core::gemini::upstream::Encoded, BadRequest> {
    let cache = Cache::default();
    encode_request(request, target, &EncodeOptions::new(&cache))
}

pub(crate) fn stamp() -> Stamp {
    Stamp { ids: IdGen::new(1), created: 1_800_000_000 }
}

/// A stream as a client sees it, the failure at its end included.
pub(crate) fn stream<'b>(asked: &Asked, pieces: impl IntoIterator<Item = &'b [u8]>) -> Vec<u8> {
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
pub(crate) fn answer(asked: &Asked, bytes: &[u8]) -> Result<Answer, Failure> {
    decode_response(bytes, Arc::clone(&asked.exchange), IdGen::new(2))
}
