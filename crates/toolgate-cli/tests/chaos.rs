//! What happens to running streams when something else ends or changes.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may fail")]

#[path = "../../toolgate-gateway/tests/support/door.rs"]
mod door;
#[path = "support/process.rs"]
mod process;

use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use door::{DOORS, Door, Got};
use http::Request;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use process::{Gateway, Http, Upstream, client, open, soon};
use rustix::process::Signal;
use serde_json::{Value, json};
use toolgate_sim::{Cassette, Driver, Exchange, Fault, Script, Sim, SimConfig};

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

/// A stream that has begun: its door (none: Gemini's), what is to come, what came.
type Begun = (Option<Door>, Incoming, Vec<u8>);

/// Streams of all doors that have begun.
async fn begun(http: &Http, url: &str, of_each: usize) -> Vec<Begun> {
    let doors = DOORS.into_iter().map(Some).chain([None]);
    let streams: Vec<_> = doors
        .flat_map(|door| std::iter::repeat_n(door, of_each))
        .map(|door| {
            let (http, url) = (http.clone(), url.to_owned());
            tokio::spawn(async move {
                let answer = match door {
                    Some(door) => open(&http, &url, door.path(), &door.ask(true)).await,
                    None => open(&http, &url, GEMINI, &gemini()).await,
                };
                let (mut body, mut read) = (answer.into_body(), Vec::new());
                while !String::from_utf8_lossy(&read).contains("sentence") {
                    let frame = body.frame().await.unwrap().unwrap();
                    read.extend_from_slice(&frame.into_data().unwrap());
                }
                (door, body, read)
            })
        })
        .collect();
    let mut all = Vec::new();
    for stream in streams {
        all.push(stream.await.unwrap());
    }
    all
}

async fn rest(body: Incoming, mut read: Vec<u8>) -> Got {
    read.extend_from_slice(&body.collect().await.unwrap().to_bytes());
    Got::ok(Bytes::from(read))
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
    for (door, body, read) in streams {
        let got = rest(body, read).await;
        assert!(got.text().contains("That is all."), "{door:?}: {}", got.text());
        if let Some(door) = door {
            door.check(&got, true);
            assert!(!door.is_error(&got), "{door:?}: {}", got.text());
        }
    }
    let status = gateway.ended().await;
    assert!(status.success(), "{status}");
}

/// Whoever asks twice does not want to wait.
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
    for (door, body, read) in streams {
        let got = rest(body, read).await;
        match door {
            Some(door) => {
                door.check(&got, true);
                assert!(door.is_error(&got), "{door:?}: {}", got.text());
            }
            // Gemini's clients retry after an error within the stream, and give up on a broken
            // connection.
            None => {
                assert!(got.text().contains("data: {\"error\":{\"code\":503"), "{}", got.text());
                assert!(!got.text().contains("finishReason"), "{}", got.text());
            }
        }
    }
    // Nobody is there now: that is an error with a status.
    for door in DOORS {
        let (head, body) =
            open(&http, &gateway.url, door.path(), &door.ask(true)).await.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let got = Got { status: head.status, headers: head.headers, body };
        assert!(got.status.is_server_error(), "{door:?}: {}", got.text());
        door.check(&got, true);
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
    // Whoever waits for an answer in one piece may leave too.
    let whole = client();
    let asking = DOORS.map(|door| {
        let (whole, url) = (whole.clone(), gateway.url.clone());
        tokio::spawn(async move { open(&whole, &url, door.path(), &door.ask(false)).await })
    });
    let asked = 40 + DOORS.len() as u64;
    soon("not every question arrived", || sim.counters().requests == asked).await;
    for asking in asking {
        asking.abort();
        assert!(asking.await.is_err());
    }
    drop(whole);
    soon("not every question was cancelled", || sim.counters().cancels == asked).await;
}

/// A client that does not read is waited for: what it has not read stays upstream.
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
    let door = Door::Chat;
    let mut bodies = Vec::new();
    for _ in 0..4 {
        bodies.push(open(&http, &gateway.url, door.path(), &door.ask(true)).await.into_body());
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
    door.check(&got, true);
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
        for (door, body, read) in streams {
            let got = rest(body, read).await;
            assert!(got.text().contains("That is all."), "{door:?}: {}", got.text());
        }
    }
}
