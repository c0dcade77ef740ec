//! A client of an in-process simulator, without a socket.

use bytes::Bytes;
use futures_util::StreamExt as _;
use serde_json::Value;
use toolgate::transport::{Exchange, HttpRequest, HttpResponse, Method, Transport, TransportError};
use toolgate::{Client, ClientBuilder};
use toolgate_sim::{Script, Sim, SimConfig};

/// Transport that calls a simulator.
pub(crate) struct InProcess(pub(crate) Sim);

impl Transport for InProcess {
    fn send(&self, request: HttpRequest) -> Exchange<'_> {
        let method = match request.method {
            Method::Get => "GET",
            Method::Post => "POST",
        };
        let mut builder = http::Request::builder().method(method).uri(request.url);
        for (name, value) in request.headers {
            builder = builder.header(name, value);
        }
        let request = builder.body(Bytes::from(request.body)).unwrap();
        Box::pin(async move {
            let broken = |_| TransportError {
                message: "the connection broke".to_owned(),
                unreachable: false,
            };
            let response = self.0.respond(request).await.map_err(broken)?;
            let status = response.status().as_u16();
            let body = response.into_body().map(move |bytes| bytes.map(Vec::from).map_err(broken));
            Ok(HttpResponse { status, body: body.boxed() })
        })
    }
}

/// Returns a strict simulator, and a builder of its clients.
pub(crate) fn builder(script: Script) -> (ClientBuilder, Sim) {
    let sim = Sim::new(SimConfig { strict_ids: true, ..SimConfig::scripted(script) });
    let builder = Client::builder()
        .api_key("a key")
        .base_url("http://simulator")
        .transport(InProcess(sim.clone()))
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
