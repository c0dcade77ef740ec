//! A whole request: read, understood, and written for Gemini.
//!
//! The yardstick is `serde_json` parsing the same body into a `Value`: translating should cost less.
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on has failed")]

mod conversation;

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use serde_json::Value;
use toolgate_core::anthropic::decode_request;
use toolgate_core::canon::{Backend, Target};
use toolgate_core::dialect::DecodeOptions;
use toolgate_core::schema::Cache;
use toolgate_core::seal::Sealer;
use toolgate_core::upstream::generate_content::{EncodeOptions, encode_request};

fn request(bench: &mut Criterion) {
    let sealer = Sealer::default();
    let options = DecodeOptions { sealer: &sealer };
    let target = Target { model: "gemini-3.6-flash".into(), backend: Backend::Developer };
    let cache = Cache::default();
    let encode = EncodeOptions::new(&cache);
    let mut group = bench.benchmark_group("request");
    for (name, bytes) in [("60 kB", 60_000), ("250 kB", 250_000), ("1 MB", 1_000_000)] {
        let body = conversation::anthropic_request(bytes);
        group.throughput(Throughput::Bytes(body.len() as u64));
        group.bench_with_input(BenchmarkId::new("yardstick", name), &body, |bench, body| {
            bench.iter(|| serde_json::from_slice::<Value>(black_box(body.as_bytes())).unwrap());
        });
        group.bench_with_input(BenchmarkId::new("decode", name), &body, |bench, body| {
            bench.iter(|| decode_request(black_box(body), &options).unwrap());
        });
        group.bench_with_input(BenchmarkId::new("translate", name), &body, |bench, body| {
            bench.iter(|| {
                let decoded = decode_request(black_box(body), &options).unwrap();
                encode_request(&decoded.request, &target, &encode).unwrap().body
            });
        });
    }
    group.finish();
}

criterion_group!(benches, request);
criterion_main!(benches);
