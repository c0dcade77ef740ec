//! Compiling an agent's tools: cold, and from the cache.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use toolgate_core::canon::SchemaForm;
use toolgate_core::json::Raw;
use toolgate_core::schema::{Cache, Emit, compile};

mod fixture;

fn schemas(c: &mut Criterion) {
    let schemas: Vec<Raw<'static>> =
        fixture::tools().into_iter().filter_map(|tool| Raw::parse(tool.schema)).collect();
    let bytes: usize = schemas.iter().map(|schema| schema.get().len()).sum();
    let mut group = c.benchmark_group("schema");
    group.throughput(Throughput::Bytes(bytes as u64));
    for emit in [Emit::JsonSchema, Emit::ParametersVertex] {
        group.bench_function(format!("cold {emit:?}"), |b| {
            b.iter(|| {
                schemas
                    .iter()
                    .map(|schema| compile(Some(schema), SchemaForm::JsonSchema, emit).json.len())
                    .sum::<usize>()
            });
        });
    }
    let cache = Cache::default();
    group.bench_function("cached", |b| {
        b.iter(|| {
            schemas
                .iter()
                .map(|schema| {
                    let form = SchemaForm::JsonSchema;
                    cache.compile(Some(schema), form, Emit::JsonSchema).json.len()
                })
                .sum::<usize>()
        });
    });
    // The yardstick: what parsing alone costs.
    group.bench_function("serde_json::Value", |b| {
        b.iter(|| {
            schemas
                .iter()
                .filter_map(|schema| serde_json::from_str::<serde_json::Value>(schema.get()).ok())
                .count()
        });
    });
    group.finish();
}

/// The fixture has the sizes that its name promises.
fn fixture_is_sound(_: &mut Criterion) {
    let tools = fixture::anthropic();
    assert!((35_000..60_000).contains(&tools.len()), "{} bytes", tools.len());
    assert!(serde_json::from_str::<serde_json::Value>(&tools).is_ok());
}

criterion_group!(benches, fixture_is_sound, schemas);
criterion_main!(benches);
