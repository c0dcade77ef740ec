//! Any body is decoded or refused, and a decoded one is encoded as a request that Google accepts.
#![no_main]

#[path = "support/encode.rs"]
mod encode;
#[path = "support/mutate.rs"]
mod mutate;

use libfuzzer_sys::fuzz_target;
use toolgate_core::anthropic::decode_request;

fuzz_target!(|body: &str| {
    if let Ok(decoded) = encode::with_options(|options| decode_request(body, options)) {
        encode::check(&decoded, None);
    }
});
