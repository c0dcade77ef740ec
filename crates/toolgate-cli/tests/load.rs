//! Many at a time: a thousand streams on an upstream that has a bad day, bodies that swell.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may fail")]

mod support;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use serde_json::json;
use support::process::{Gateway, Http, client, open, soon};
use tokio::sync::Barrier;
use toolgate_sim::{Driver, Fault, FaultRule, Script, Sim, SimConfig, When};
use toolgate_testing::endpoint::{ENDPOINTS, Endpoint, Reply};

/// How many streams are open at a time.
const STREAMS: usize = 1000;
/// How often that many.
const WAVES: usize = 2;

/// Thoughts, words and two calls, in a dozen chunks.
fn turn() -> Script {
    Script::new()
        .thought("**Looking**\n\nThe folder first, then the file that it names.\n\n\n")
        .text("I will have a look at the folder, and at the file that says what is left to do.")
        .call("Bash", json!({"command": "ls -la", "description": "Lists the folder – 目录"}))
        .call("Read", json!({"file_path": "notes/TODO.md"}))
        .times(0)
}

/// Faults of the upstream: every tenth request is refused.
fn bad_day() -> Vec<FaultRule> {
    let status = |code, retry_after: Option<&str>| Fault::Status {
        code,
        message: String::new(),
        retry_after: retry_after.map(str::to_owned),
        quota: None,
        html: false,
    };
    [
        (Fault::Split { size: 23 }, 0.1),
        (Fault::Stall { after: 1, ms: Some(30) }, 0.2),
        (Fault::Stall { after: 4, ms: Some(60) }, 0.1),
        (Fault::Delay { ms: 20 }, 0.1),
        (status(429, Some("0.05s")), 0.04),
        (status(503, None), 0.03),
        (status(500, None), 0.02),
        (Fault::Reset { after: 0 }, 0.01),
    ]
    .into_iter()
    .map(|(fault, probability)| FaultRule { fault, when: When::Probability(probability) })
    .collect()
}

/// Outcomes of many turns.
#[derive(Debug, Default)]
struct Tally {
    /// Whole turns, with their calls.
    whole: usize,
    /// Errors in the client's dialect.
    errors: Vec<String>,
    /// Anything else.
    broken: Vec<String>,
}

impl Tally {
    fn count(&mut self, endpoint: Endpoint, got: &Reply) {
        let is_sound = catch_unwind(AssertUnwindSafe(|| endpoint.check(got, true))).is_ok();
        let has_calls =
            ["Bash", "Read", "目录", "TODO.md"].iter().all(|it| got.text().contains(it));
        match (is_sound, endpoint.is_error(got)) {
            (true, false) if has_calls => self.whole += 1,
            (true, true) => self.errors.push(format!("{endpoint:?} {} {}", got.status, got.text())),
            (true | false, _) => {
                self.broken.push(format!("{endpoint:?} {} {}", got.status, got.text()))
            }
        }
    }
}

/// Opens all streams, and reads none before all are open.
async fn wave(http: &Http, url: &str, tally: &mut Tally) {
    let all_open = Arc::new(Barrier::new(STREAMS));
    let streams: Vec<_> = (0..STREAMS)
        .map(|number| {
            let (http, url, all_open) = (http.clone(), url.to_owned(), Arc::clone(&all_open));
            tokio::spawn(async move {
                let endpoint = ENDPOINTS[number % ENDPOINTS.len()];
                let answer = open(&http, &url, endpoint.path(), &endpoint.ask(true)).await;
                all_open.wait().await;
                let (head, body) = answer.into_parts();
                let body = body.collect().await.map(http_body_util::Collected::to_bytes);
                (endpoint, head, body)
            })
        })
        .collect();
    for stream in streams {
        match stream.await.unwrap() {
            (endpoint, head, Ok(body)) => {
                tally.count(endpoint, &Reply { status: head.status, headers: head.headers, body });
            }
            (endpoint, _, Err(error)) => tally.broken.push(format!("{endpoint:?}: {error}")),
        }
    }
}

/// R145, R147: at least 99.9 % of the turns are whole, the others are errors that the client
/// understands, and nothing is left of them.
#[tokio::test(flavor = "multi_thread")]
async fn r147_a_thousand_streams_on_a_bad_day() {
    let config = SimConfig {
        driver: Driver::Script(turn()),
        faults: bad_day(),
        keep_requests: 0,
        seed: 4,
        ..SimConfig::default()
    };
    let sim = Sim::start(config).await.unwrap();
    // Stores and caches are bounded, with small bounds here.
    let gateway = Gateway::start(&sim.url(), &[("TOOLGATE_STORE_MIB", "1")]).await;
    let sockets = gateway.sockets();
    let fresh = gateway.resident();
    let http = client();
    let mut tally = Tally::default();
    let mut levels = Vec::new();
    for _ in 0..WAVES {
        wave(&http, &gateway.url, &mut tally).await;
        assert_eq!(gateway.metric("toolgate_active_requests").await, 0, "nothing runs on");
        levels.push(gateway.resident());
    }
    let counters = sim.counters();
    println!(
        "{} whole, {} errors, {} broken; {} requests upstream, {} faults; {fresh} kB fresh, {levels:?} kB after waves",
        tally.whole,
        tally.errors.len(),
        tally.broken.len(),
        counters.requests,
        counters.faults
    );
    assert_eq!(tally.broken, Vec::<String>::new());
    let turns = STREAMS * WAVES;
    assert!(tally.errors.len() * 1000 <= turns, "{:#?}", tally.errors);
    assert_eq!(tally.whole + tally.errors.len(), turns);
    assert!(counters.requests > turns as u64 * 107 / 100, "requests were sent again: {counters:?}");
    assert!(counters.faults > turns as u64 / 2, "there were faults: {counters:?}");
    let (first, last) = (levels[0], levels[WAVES - 1]);
    assert!(last <= first + first / 4 + 8 * 1024, "memory grows with every wave: {levels:?} kB");
    drop(http);
    sim.shutdown().await;
    soon("connections are left over", || gateway.sockets() <= sockets).await;
}

/// A zstd frame of so many blocks, each of 128 KiB of spaces in four bytes.
fn spaces(window: u8, blocks: u32) -> Vec<u8> {
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0, window];
    for number in 1..=blocks {
        let header = u32::from(number == blocks) | 1 << 1 | (128 << 10) << 3;
        frame.extend_from_slice(&header.to_le_bytes()[..3]);
        frame.push(b' ');
    }
    frame
}

/// A window of 8 MiB, and one of terabytes, within which a decoder would keep all that comes.
const WINDOWS: [u8; 2] = [13 << 3, 30 << 3];

/// Large compressed bodies are decompressed a few at a time.
#[tokio::test(flavor = "multi_thread")]
async fn many_bodies_that_swell_take_little_memory() {
    let sim = Sim::start(SimConfig::default()).await.unwrap();
    let gateway = Gateway::start(&sim.url(), &[("TOOLGATE_BODY_MIB", "16")]).await;
    let fresh = gateway.peak();
    for window in WINDOWS {
        // Four times the limit.
        let body = Bytes::from(spaces(window, 512));
        let asked: Vec<_> = (0..60)
            .map(|_| {
                let request = Request::post(format!("{}/v1/messages", gateway.url));
                let request = request.header("content-encoding", "zstd");
                let request = request.body(Full::new(body.clone())).unwrap();
                tokio::spawn(async move { client().request(request).await.unwrap().status() })
            })
            .collect();
        for asked in asked {
            assert_eq!(asked.await.unwrap().as_u16(), 413);
        }
    }
    let peak = gateway.peak();
    println!("{fresh} kB fresh, {peak} kB at most");
    assert!(peak < fresh + 600 * 1024, "{fresh} kB fresh, {peak} kB at most");
}
