//! One chunk of a stream: from Gemini's bytes to each client's.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use serde_json::Value;
use toolgate_core::canon::{Encoder, Event, IdGen, Stamp};
use toolgate_core::gemini::{Backend, Exchange, StreamDecoder, Target};
use toolgate_core::seal::Sealer;
use toolgate_core::{anthropic, chat, gemini, responses};

const CHUNK: &str = concat!(
    r#"data: {"candidates":[{"content":{"parts":[{"text":" and then it writes what changed,\n"#,
    r#"never twice."}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":18211,"#,
    r#""candidatesTokenCount":57,"totalTokenCount":18611,"cachedContentTokenCount":16380,"#,
    r#""promptTokensDetails":[{"modality":"TEXT","tokenCount":18211}],"thoughtsTokenCount":343},"#,
    r#""modelVersion":"gemini-3.6-flash","responseId":"q1Z6aNwXQrL1"}"#,
    "\r\n\r\n"
);

fn stream(bench: &mut Criterion) {
    let stamp = || Stamp { ids: IdGen::new(1), created: 0 };
    let sealer = Sealer::default;
    let encoders: [(&str, Box<dyn Encoder>); 4] = [
        (
            "anthropic",
            Box::new(anthropic::StreamEncoder::new(Default::default(), stamp(), sealer())),
        ),
        ("chat", Box::new(chat::StreamEncoder::new(Default::default(), stamp(), sealer()))),
        ("gemini", Box::new(gemini::StreamEncoder::new(Default::default(), stamp(), sealer()))),
        (
            "responses",
            Box::new(responses::StreamEncoder::new(Default::default(), stamp(), sealer())),
        ),
    ];
    let mut group = bench.benchmark_group("stream chunk");
    group.throughput(Throughput::Bytes(CHUNK.len() as u64));
    let json = CHUNK.trim_start_matches("data: ").trim_end();
    group.bench_function("yardstick", |bench| {
        bench.iter(|| serde_json::from_str::<Value>(black_box(json)).unwrap());
    });
    for (name, mut encoder) in encoders {
        let target = Target { model: "gemini-3.6-flash".into(), backend: Backend::Developer };
        let exchange =
            Exchange { target, tools: Vec::new(), one_call: false, answer_function: None };
        let mut decoder = StreamDecoder::new(exchange, IdGen::new(2));
        let mut out = Vec::new();
        group.bench_function(name, |bench| {
            bench.iter(|| {
                out.clear();
                let mut sink = |event: &Event<'_>| encoder.event(event, &mut out);
                decoder.feed(black_box(CHUNK.as_bytes()), &mut sink);
                out.len()
            });
        });
    }
    group.finish();
}

criterion_group!(benches, stream);
criterion_main!(benches);
