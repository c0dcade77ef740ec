//! A gateway whose upstream is in the same process.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::time::Duration;

use crate::harness::{ENDPOINTS, Lab};
use http_body_util::BodyExt as _;
use serde_json::json;
use toolgate_gateway::config::{Config, Sources};
use toolgate_gateway::{Embedded, Options, start_with};
use toolgate_sim::{Fault, FaultRule, Sim, SimConfig, When};

/// A gateway on an embedded simulator, and that simulator. The other one, which the client's helpers need,
/// must stay unused.
async fn lab(fault: Option<Fault>) -> (Lab, Sim) {
    let faults = fault.map(|fault| FaultRule { fault, when: When::Always }).into_iter().collect();
    let sim = Sim::new(SimConfig { faults, ..SimConfig::default() });
    let here = sim.clone();
    let simulator = Some(Embedded::new(move || here.connect()));
    let file = "[upstream]\nrescue_retries = 0\nretries = 0";
    let flags = [("listen", "--listen", "127.0.0.1:0")];
    let sources = Sources { file: Some(("test.toml", file)), env: &|_| None, flags: &flags };
    let config = Config::resolve(&sources).unwrap();
    let options = Options { simulator, ..Options::default() };
    let gateway = start_with(config, options).await.unwrap();
    let unused = Sim::start(SimConfig::default()).await.unwrap();
    (Lab::of(unused, gateway), sim)
}

#[tokio::test]
async fn every_dialect_is_answered_whole_and_streamed() {
    let (lab, sim) = lab(None).await;
    for endpoint in ENDPOINTS {
        for stream in [false, true] {
            let got = lab.post(endpoint.path(), &endpoint.ask(stream)).await;
            assert!(got.status.is_success(), "{endpoint:?}: {}", got.text());
        }
    }
    assert_eq!(sim.requests().len(), 2 * ENDPOINTS.len());
    assert!(lab.sim.requests().is_empty());
}

#[tokio::test]
async fn a_client_that_leaves_cancels_the_embedded_request() {
    let (lab, sim) = lab(Some(Fault::Stall { after: 1, ms: None })).await;
    let ask = json!({"model": "gemini-3.6-flash", "max_tokens": 99, "stream": true, "messages": [{"role": "user", "content": "Hi."}]});
    let mut body = lab.open("/v1/messages", &ask).await.into_body();
    assert!(body.frame().await.is_some());
    assert_eq!(sim.counters().cancels, 0);
    drop(body);
    for _ in 0..6000 {
        if sim.counters().cancels == 1 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("the simulator was not cancelled: {:?}", sim.counters());
}

#[tokio::test]
async fn a_broken_embedded_connection_is_an_error() {
    let (lab, _) = lab(Some(Fault::Reset { after: 0 })).await;
    for endpoint in ENDPOINTS {
        let got = lab.post(endpoint.path(), &endpoint.ask(false)).await;
        assert!(got.status.is_server_error(), "{endpoint:?}: {} {}", got.status, got.text());
    }
}

/// Programs supply the simulator; the service needs none.
#[test]
fn the_gateway_needs_the_simulator_for_tests_only() {
    let manifest = include_str!("../../Cargo.toml");
    let (product, tests) = manifest.split_once("[dev-dependencies]").unwrap();
    assert!(!product.contains("toolgate-sim") && tests.contains("toolgate-sim"));
}
