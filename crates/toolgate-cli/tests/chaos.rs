//! What happens to running streams when something else ends or changes.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may fail")]

mod support;

use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use rustix::process::Signal;
use serde_json::{Value, json};
use support::process::{Gateway, Http, Upstream, client, open, soon};
use toolgate_sim::{Cassette, Driver, Exchange, Fault, Script, Sim, SimConfig};
use toolgate_testing::endpoint::{ENDPOINTS, Endpoint, Reply};

const GEMINI: &str = "/v1beta/models/gemini-3.6-flash:streamGenerateContent?alt=sse";

fn gemini() -> Value {
    json!({"contents": [{"role": "user", "parts": [{"text": "Hi."}]}]})
}

/// A few sentences, chunk by chunk.
fn sentences() -> Script {
    let mut script = Script::new();
    for number in 1..=30 {
        script = script.chunk(format!("This is sentence {number}. "));
    }
    script.chunk("That is all.").pace(Duration::ZERO, Duration::from_millis(100)).times(0)
}

/// A stream that has begun: its endpoint (none: Gemini's), the rest of the body, and the text so far.
type Begun = (Option<Endpoint>, Incoming, Vec<u8>);

/// Streams of all endpoints that have begun.
async fn begun(http: &Http, url: &str, of_each: usize) -> Vec<Begun> {
    let endpoints = ENDPOINTS.into_iter().map(Some).chain([None]);
    let streams: Vec<_> = endpoints
        .flat_map(|endpoint| std::iter::repeat_n(endpoint, of_each))
        .map(|endpoint| {
            let (http, url) = (http.clone(), url.to_owned());
            tokio::spawn(async move {
                let answer = match endpoint {
                    Some(endpoint) => open(&http, &url, endpoint.path(), &endpoint.ask(true)).await,
                    None => open(&http, &url, GEMINI, &gemini()).await,
                };
                let (mut body, mut read) = (answer.into_body(), Vec::new());
                while !String::from_utf8_lossy(&read).contains("sentence") {
                    let frame = body.frame().await.unwrap().unwrap();
                    read.extend_from_slice(&frame.into_data().unwrap());
                }
                (endpoint, body, read)
            })
        })
        .collect();
    let mut all = Vec::new();
    for stream in streams {
        all.push(stream.await.unwrap());
    }
    all
}

async fn rest(body: Incoming, mut read: Vec<u8>) -> Reply {
    read.extend_from_slice(&body.collect().await.unwrap().to_bytes());
    Reply::ok(Bytes::from(read))
}

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name)
}

#[tokio::test]
async fn sigterm_lets_a_hundred_streams_finish() {
    let driver = Driver::Script(sentences());
    let sim = Sim::start(SimConfig { driver, ..SimConfig::default() }).await.unwrap();
    let gateway = Gateway::start(&sim.url(), &[]).await;
    let (http, url) = (client(), gateway.url.clone());
    let streams = begun(&http, &url, 25).await;
    assert_eq!(streams.len(), 100);
    assert!(gateway.metric("toolgate_active_requests").await > 0, "they run");
    gateway.signal(Signal::TERM);
    let address = url.trim_start_matches("http://").to_owned();
    soon("it still takes connections", || std::net::TcpStream::connect(&address).is_err()).await;
    for (endpoint, body, read) in streams {
        let got = rest(body, read).await;
        assert!(got.text().contains("That is all."), "{endpoint:?}: {}", got.text());
        if let Some(endpoint) = endpoint {
            endpoint.check(&got, true);
            assert!(!endpoint.is_error(&got), "{endpoint:?}: {}", got.text());
        }
    }
    let status = gateway.ended().await;
    assert!(status.success(), "{status}");
}

/// A second signal ends the process at once.
#[tokio::test]
async fn a_second_signal_ends_it_at_once() {
    for second in [Signal::TERM, Signal::INT] {
        let script = sentences().fault(Fault::Stall { after: 2, ms: None });
        let driver = Driver::Script(script);
        let sim = Sim::start(SimConfig { driver, ..SimConfig::default() }).await.unwrap();
        let gateway = Gateway::start(&sim.url(), &[]).await;
        let (http, url) = (client(), gateway.url.clone());
        let streams = begun(&http, &url, 1).await;
        gateway.signal(Signal::TERM);
        let address = url.trim_start_matches("http://").to_owned();
        soon("it still takes connections", || std::net::TcpStream::connect(&address).is_err())
            .await;
        gateway.signal(second);
        // Its streams would never end by themselves, and the drain limit is two minutes.
        let status = gateway.ended().await;
        assert!(status.success(), "{status}");
        drop(streams);
    }
}

#[tokio::test]
async fn a_killed_upstream_is_an_error_at_every_door() {
    let script = file("silent.toml");
    let silent = "[[turn]]\ntimes = 0\nfault = { kind = \"stall\", after = 1 }\nsay = [{ chunk = \"A sentence, \" }, { chunk = \"cut.\" }]\n";
    std::fs::write(&script, silent).unwrap();
    let upstream = Upstream::start(&script).await;
    let gateway = Gateway::start(&upstream.url, &[("TOOLGATE_RETRIES", "0")]).await;
    let http = client();
    let streams = begun(&http, &gateway.url, 10).await;
    upstream.kill().await;
    for (endpoint, body, read) in streams {
        let got = rest(body, read).await;
        match endpoint {
            Some(endpoint) => {
                endpoint.check(&got, true);
                assert!(endpoint.is_error(&got), "{endpoint:?}: {}", got.text());
            }
            // Gemini's clients retry after an error within the stream, and give up on a broken
            // connection.
            None => {
                assert!(got.text().contains("data: {\"error\":{\"code\":503"), "{}", got.text());
                assert!(!got.text().contains("finishReason"), "{}", got.text());
            }
        }
    }
    // The upstream is gone: an error with a status.
    for endpoint in ENDPOINTS {
        let (head, body) =
            open(&http, &gateway.url, endpoint.path(), &endpoint.ask(true)).await.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let got = Reply { status: head.status, headers: head.headers, body };
        assert!(got.status.is_server_error(), "{endpoint:?}: {}", got.text());
        endpoint.check(&got, true);
    }
    assert_eq!(gateway.metric("toolgate_active_requests").await, 0);
}

#[tokio::test]
async fn a_client_that_leaves_is_a_cancel_upstream() {
    let script = Script::new()
        .chunk("A sentence, ")
        .chunk("and another.")
        .fault(Fault::Stall { after: 1, ms: None })
        .times(0);
    let sim =
        Sim::start(SimConfig { driver: Driver::Script(script), ..SimConfig::default() }).await;
    let sim = sim.unwrap();
    let gateway = Gateway::start(&sim.url(), &[]).await;
    let http = client();
    let streams = begun(&http, &gateway.url, 10).await;
    drop((streams, http));
    soon("not every stream was cancelled", || sim.counters().cancels == 40).await;
    // A client of a unary answer may disconnect too.
    let whole = client();
    let asking = ENDPOINTS.map(|endpoint| {
        let (whole, url) = (whole.clone(), gateway.url.clone());
        tokio::spawn(async move { open(&whole, &url, endpoint.path(), &endpoint.ask(false)).await })
    });
    let asked = 40 + ENDPOINTS.len() as u64;
    soon("not every question arrived", || sim.counters().requests == asked).await;
    for asking in asking {
        asking.abort();
        assert!(asking.await.is_err());
    }
    drop(whole);
    soon("not every question was cancelled", || sim.counters().cancels == asked).await;
}

/// A slow client applies back-pressure: unread data stays upstream.
#[tokio::test(flavor = "multi_thread")]
async fn a_slow_client_costs_no_memory() {
    const EVENTS: usize = 480;
    let words = "word ".repeat(13_000);
    let part = json!({"candidates": [{"content": {"role": "model", "parts": [{"text": words}]}}]});
    let end = json!({"candidates": [{"content": {"role": "model", "parts": [{"text": "That is all."}]}, "finishReason": "STOP"}]});
    let stream = format!("data: {part}\r\n\r\n").repeat(EVENTS) + &format!("data: {end}\r\n\r\n");
    let exchange = Exchange {
        path: "/v1beta/models/gemini-3.6-flash:streamGenerateContent".to_owned(),
        status: 200,
        content_type: "text/event-stream".to_owned(),
        response: Value::String(stream),
        ..Exchange::default()
    };
    let driver = Driver::Replay(Cassette::new(vec![exchange]));
    let sim = Sim::start(SimConfig { driver, ..SimConfig::default() }).await.unwrap();
    let gateway = Gateway::start(&sim.url(), &[]).await;
    let http = client();
    let endpoint = Endpoint::Chat;
    let mut bodies = Vec::new();
    for _ in 0..4 {
        bodies.push(
            open(&http, &gateway.url, endpoint.path(), &endpoint.ask(true)).await.into_body(),
        );
    }
    let fresh = gateway.resident();
    for _ in 0..200 {
        let grown = gateway.resident().saturating_sub(fresh);
        assert!(grown < 24 << 10, "{grown} kB for what nobody reads");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let body = bodies.pop().unwrap();
    drop(bodies);
    let got = rest(body, Vec::new()).await;
    endpoint.check(&got, true);
    assert_eq!(got.text().matches("word word").count(), EVENTS * 6_500);
    assert!(got.text().contains("That is all."));
}

/// The status of a request without a key.
async fn status(http: &Http, url: &str) -> u16 {
    let request = Request::get(format!("{url}/v1/models")).body(Full::new(Bytes::new())).unwrap();
    http.request(request).await.unwrap().status().as_u16()
}

#[tokio::test]
async fn a_new_configuration_drops_no_stream() {
    let driver = Driver::Script(sentences());
    let sim = Sim::start(SimConfig { driver, ..SimConfig::default() }).await.unwrap();
    let path = file("reloaded.toml");
    std::fs::write(&path, "").unwrap();
    let gateway = Gateway::with(&sim.url(), Some(&path), &[]).await;
    let http = client();
    // Told by a signal, then by the file itself. A file that cannot be read changes nothing.
    for (settings, tell, want) in [
        ("[clients]\nkeys = [\"client-1\"]\n", true, 401),
        ("", false, 200),
        ("[clients]\nkeys = [\"client-1\"]\n", false, 401),
        ("clients = [", true, 401),
    ] {
        let streams = if want == 401 && status(&http, &gateway.url).await == 200 {
            begun(&http, &gateway.url, 2).await
        } else {
            Vec::new()
        };
        std::fs::write(&path, settings).unwrap();
        if tell {
            gateway.signal(Signal::HUP);
        }
        let mut looks = 0;
        while status(&http, &gateway.url).await != want {
            looks += 1;
            assert!(looks < 6000, "{settings:?} is not in force");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        for (endpoint, body, read) in streams {
            let got = rest(body, read).await;
            assert!(got.text().contains("That is all."), "{endpoint:?}: {}", got.text());
        }
    }
}
