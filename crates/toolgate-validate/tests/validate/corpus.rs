//! Recorded exchanges: requests get the verdict that Google gave.
//!
//! The recordings are not part of the repository. `TOOLGATE_CORPUS` names their folder: files that
//! hold a list of `{path, request, status}`.

use serde_json::Value;
use toolgate_validate::{AnySignature, Method, check_request};

use super::*;

#[test]
#[ignore = "needs recordings, in the folder that TOOLGATE_CORPUS names"]
#[expect(clippy::disallowed_methods, reason = "a test may look where its recordings are")]
fn recorded_requests_get_their_recorded_verdict() {
    let folder = std::env::var("TOOLGATE_CORPUS").unwrap();
    let mut seen = 0;
    for file in std::fs::read_dir(&folder).unwrap() {
        let path = file.unwrap().path();
        let exchanges: Vec<Value> = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        for exchange in exchanges {
            let at = exchange["path"].as_str().unwrap();
            let Some((model, method)) = at.rsplit('/').next().unwrap().split_once(':') else {
                continue;
            };
            let method = match method {
                "generateContent" => Method::Generate,
                "streamGenerateContent" => Method::Stream,
                "countTokens" => Method::CountTokens,
                _ => continue,
            };
            let body = exchange["request"].to_string();
            let got = check_request(body.as_bytes(), &target(model), method, &AnySignature);
            let code = got.as_ref().map_or_else(|error| error.code, |_| 200);
            let message = got.as_ref().map_or_else(|error| error.message.as_str(), |_| "");
            assert_eq!(Value::from(code), exchange["status"], "{}: {message}", path.display());
            seen += 1;
        }
    }
    assert!(seen > 0, "nothing to check in {folder}");
}
