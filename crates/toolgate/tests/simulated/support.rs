//! A client of an in-process simulator, without a socket.

use serde_json::Value;
use toolgate::{Client, ClientBuilder};
use toolgate_sim::{Script, Sim, SimConfig};

/// Returns a strict simulator, and a builder of its clients.
pub(crate) fn builder(script: Script) -> (ClientBuilder, Sim) {
    let sim = Sim::new(SimConfig { strict_ids: true, ..SimConfig::scripted(script) });
    let builder = Client::builder()
        .api_key("a key")
        .base_url("http://simulator")
        .transport(sim.clone())
        .seed(7);
    (builder, sim)
}

/// Returns a strict simulator and a client of it.
pub(crate) fn client(script: Script) -> (Client, Sim) {
    let (builder, sim) = builder(script);
    (builder.build().unwrap(), sim)
}

/// Body of the last request.
pub(crate) fn last(sim: &Sim) -> Value {
    sim.requests().last().unwrap().json()
}

/// Asserts that there were no refusals, mismatches or unexpected requests.
#[track_caller]
pub(crate) fn clean(sim: &Sim, requests: u64) {
    let counters = sim.counters();
    let refusals: Vec<_> = sim.requests().into_iter().filter_map(|seen| seen.refusal).collect();
    assert_eq!(counters.requests, requests, "{counters:?} {refusals:?}");
    let faults =
        [counters.refusals, counters.unexpected, counters.mismatches, counters.missing_ids];
    assert_eq!(faults, [0; 4], "{counters:?} {refusals:?}");
    assert_eq!(
        [counters.placeholders, counters.doubled, counters.reordered],
        [0; 3],
        "{counters:?}"
    );
}
