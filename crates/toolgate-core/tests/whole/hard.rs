//! One hard request in each dialect, and what Gemini gets of it.

use serde_json::Value;
use toolgate_core::canon::{Backend, Target};
use toolgate_core::seal::Sealer;
use toolgate_core::translate::Dialect;
use toolgate_validate::{AnySignature, Method, check_request};

use crate::snapshots;
use toolgate_testing::golden::folder;
use toolgate_testing::pipeline::{self, DIALECTS};

fn body(dialect: Dialect) -> String {
    let file = match dialect {
        Dialect::Anthropic => "request/hard.anthropic.json",
        Dialect::Chat => "request/hard.chat.json",
        Dialect::Gemini => "request/hard.gemini.json",
        Dialect::Responses => "request/hard.responses.json",
    };
    std::fs::read_to_string(folder().join(file)).unwrap()
}

#[test]
fn the_hard_request_in_every_dialect() {
    let targets = [
        ("gemini-2.5-flash", Backend::Developer),
        ("gemini-3.6-flash", Backend::Developer),
        ("gemini-3.6-flash", Backend::Vertex),
    ];
    for dialect in DIALECTS {
        let body = body(dialect);
        let decoded = pipeline::decode(dialect, &body, &Sealer::default()).unwrap();
        for (model, backend) in targets {
            let target = Target { model: model.to_owned(), backend };
            let encoded = pipeline::encode(&decoded.request, &target).unwrap();
            if let Err(error) = check_request(&encoded.body, &target, Method::Stream, &AnySignature)
            {
                panic!("{dialect:?} {target:?}: {}", error.message);
            }
            let mut shown = snapshots::pretty(&encoded.body);
            for loss in decoded.losses.iter().chain(&encoded.losses) {
                let line: Value = serde_json::to_value(loss).unwrap();
                shown.push_str(&format!("\n{line}"));
            }
            let name = format!("hard.{}.{model}.{backend:?}", dialect.name()).to_lowercase();
            snapshots::check("request", &name, &shown);
        }
    }
}
