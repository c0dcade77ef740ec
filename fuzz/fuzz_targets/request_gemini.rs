//! Any body is decoded or refused, and a decoded one is encoded as a request that Google accepts.
#![no_main]

#[path = "support/encode.rs"]
mod encode;
#[path = "support/mutate.rs"]
mod mutate;

use libfuzzer_sys::fuzz_target;
use toolgate_core::gemini::decode_request;

fuzz_target!(|body: &str| {
    let read = |stream| {
        encode::with_options(|options| decode_request(body, "gemini-3.6-flash", stream, options))
    };
    if let Ok(decoded) = read(true) {
        encode::check(&decoded, Some(body));
    }
});
