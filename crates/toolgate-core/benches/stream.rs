//! One chunk of a stream: from Gemini's bytes to each client's.
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on has failed")]

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use serde_json::Value;
use toolgate_core::canon::{Backend, IdGen, Target};
use toolgate_core::dialect::Stamp;
use toolgate_core::seal::Sealer;
use toolgate_core::translate::{Echo, Translator};
use toolgate_core::upstream::generate_content::Exchange;

const CHUNK: &str = concat!(
    r#"data: {"candidates":[{"content":{"parts":[{"text":" and then it writes what changed,\n"#,
    r#"never twice."}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":18211,"#,
    r#""candidatesTokenCount":57,"totalTokenCount":18611,"cachedContentTokenCount":16380,"#,
    r#""promptTokensDetails":[{"modality":"TEXT","tokenCount":18211}],"thoughtsTokenCount":343},"#,
    r#""modelVersion":"gemini-3.6-flash","responseId":"q1Z6aNwXQrL1"}"#,
    "\r\n\r\n"
);

fn stream(bench: &mut Criterion) {
    let mut group = bench.benchmark_group("stream chunk");
    group.throughput(Throughput::Bytes(CHUNK.len() as u64));
    let json = CHUNK.trim_start_matches("data: ").trim_end();
    group.bench_function("yardstick", |bench| {
        bench.iter(|| serde_json::from_str::<Value>(black_box(json)).unwrap());
    });
    let echoes = [
        Echo::Anthropic(Default::default()),
        Echo::Chat(Default::default()),
        Echo::Gemini(Default::default()),
        Echo::Responses(Default::default()),
    ];
    for echo in echoes {
        let name = echo.dialect().name();
        let stamp = Stamp::new(IdGen::new(1), 0);
        let encoder = echo.encoder(stamp, Sealer::default());
        let target = Target { model: "gemini-3.6-flash".into(), backend: Backend::Developer };
        let exchange =
            Exchange { target, tools: Vec::new(), one_call: false, answer_function: None };
        let mut translator = Translator::new(Arc::new(exchange), IdGen::new(2), encoder);
        let mut out = Vec::new();
        group.bench_function(name, |bench| {
            bench.iter(|| {
                out.clear();
                translator.feed(black_box(CHUNK.as_bytes()), &mut out);
                out.len()
            });
        });
    }
    group.finish();
}

criterion_group!(benches, stream);
criterion_main!(benches);
