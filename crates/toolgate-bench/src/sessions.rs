//! Cost of the store: many conversations through one SQLite file, and stored turns beside unstored ones.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use http::Uri;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::SendRequest;
use serde_json::{Value, json};

use crate::cases::{self, Case};
use crate::load::{self, Prepared, Round};
use crate::target::Target;

/// Conversations at a time.
const CONNECTIONS: usize = 32;
const TURNS: usize = 10;
/// Requests of a round.
const REQUESTS: usize = 4_000;
/// Longer than the store delays a commit that no turn waits for.
const COMMIT_DELAY: Duration = Duration::from_millis(300);
/// How often the state of things is shown.
const TENTHS: usize = 10;
/// Bounds that a run reaches: things live two minutes, and the file holds 128 MiB.
const BOUNDS: [(&str, &str); 2] =
    [("TOOLGATE_STATE_RETENTION_MINUTES", "2"), ("TOOLGATE_STORE_MIB", "128")];

/// A folder of its own, gone when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Result<Self> {
        let name = format!("toolgate-bench-{}-{name}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder)?;
        Ok(Self(folder))
    }

    fn store(&self) -> String {
        format!("sqlite:{}", self.0.join("state.db").display())
    }

    /// Size of the store's files on disk.
    fn size(&self) -> u64 {
        let files = ["state.db", "state.db-wal"];
        let files = files.map(|name| self.0.join(name).metadata());
        files.into_iter().flatten().map(|it| it.blocks() * 512).sum()
    }

    fn script(&self) -> Result<PathBuf> {
        let call = json!({"call": "tool_1", "args": {"path": "a.txt"}, "signed": true});
        let turns = json!({"any_order": true, "turn": [
            {"expect": {"contains": "signed call"}, "say": [call], "times": 0},
            {"text": "Half of the work is done before the second cup of coffee.", "times": 0},
        ]});
        let path = self.0.join("script.json");
        std::fs::write(&path, turns.to_string())?;
        Ok(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs both parts.
pub(crate) async fn run(toolgate: &Path, options: &[&str]) -> Result<()> {
    let quick = options.contains(&"--quick");
    let given = options.iter().find_map(|option| option.strip_prefix("--conversations="));
    let conversations = match given {
        Some(number) => number.parse().context("--conversations")?,
        None if quick => 2_000,
        None => 100_000,
    };
    let folder = Folder::new("endurance")?;
    let sim = Target::sim(toolgate, "--script", &folder.script()?).await?;
    endurance(toolgate, &sim, &folder, conversations).await?;
    let case = options.iter().find_map(|option| option.strip_prefix("--case=")).unwrap_or("");
    let less = if quick { 8 } else { 1 };
    shares(toolgate, &sim, REQUESTS / less, case).await?;
    let other = options.iter().find_map(|option| option.strip_prefix("--beside="));
    requests(toolgate, other.map(Path::new), less, case).await
}

/// Requests that are sent for a number, in order.
type Bodies = Arc<dyn Fn(usize) -> Vec<Bytes> + Send + Sync>;

/// Clients that stay connected.
struct Clients(Vec<SendRequest<Full<Bytes>>>);

impl Clients {
    async fn of(uri: &Uri) -> Result<Self> {
        let mut all = Vec::with_capacity(CONNECTIONS);
        for _ in 0..CONNECTIONS {
            all.push(load::connect(uri).await?);
        }
        Ok(Self(all))
    }

    /// Sends what belongs to `count` numbers from `first` on, each answered before the next of the same
    /// client.
    async fn send(
        &mut self,
        uri: &Uri,
        bodies: &Bodies,
        first: usize,
        count: usize,
    ) -> Result<Round> {
        let next = Arc::new(AtomicUsize::new(first));
        let mut tasks = Vec::with_capacity(CONNECTIONS);
        for mut sender in self.0.drain(..) {
            let (uri, bodies, next) = (uri.clone(), Arc::clone(bodies), Arc::clone(&next));
            tasks.push(tokio::spawn(async move {
                let mut round = Round::default();
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= first + count {
                        return anyhow::Ok((sender, round));
                    }
                    for body in bodies(number) {
                        let request = Prepared { uri: uri.clone(), body };
                        let began = Instant::now();
                        let response = load::send(&mut sender, &request).await?;
                        ensure!(response.status().is_success(), "{}", response.status());
                        response.into_body().collect().await?;
                        round.times.push(began.elapsed());
                    }
                }
            }));
        }
        let mut rounds = Vec::with_capacity(CONNECTIONS);
        for task in tasks {
            let (sender, round) = task.await??;
            self.0.push(sender);
            rounds.push(round);
        }
        Ok(Round::joined(rounds))
    }
}

/// Compares turns on a gateway without a store (`store = "off"`) with the same turns stored in SQLite.
async fn shares(toolgate: &Path, sim: &Target, requests: usize, case: &str) -> Result<()> {
    let folder = Folder::new("stored")?;
    let off = Target::gateway_on(toolgate, &sim.url, "off", &[]).await?;
    let sqlite = Target::gateway_on(toolgate, &sim.url, &folder.store(), &[]).await?;
    println!("\nCPU time of a turn, {CONNECTIONS} connections:");
    println!("{:<40} {:>12} {:>12} {:>8}", "case", "off µs", "SQLite µs", "more");
    for (name, path, unstored, stored) in cases() {
        if name.contains(case) {
            compare(name, path, [(&off, unstored), (&sqlite, stored)], requests).await?;
        }
    }
    Ok(())
}

/// Compares the requests of the bench without a store, or in another build of the gateway, with those
/// on SQLite.
async fn requests(toolgate: &Path, other: Option<&Path>, less: usize, case: &str) -> Result<()> {
    let (folder, beside) = (Folder::new("requests")?, Folder::new("beside")?);
    let cassette = cases::cassette(&folder.0)?;
    let sim = Target::sim(toolgate, "--replay", &cassette).await?;
    let (what, base) = match other {
        Some(other) => {
            let target = Target::gateway_on(other, &sim.url, &beside.store(), &[]).await?;
            ("other µs", target)
        }
        None => ("off µs", Target::gateway_on(toolgate, &sim.url, "off", &[]).await?),
    };
    let sqlite = Target::gateway_on(toolgate, &sim.url, &folder.store(), &[]).await?;
    println!("\n{:<40} {what:>12} {:>12} {:>8}", "requests of the bench", "SQLite µs", "more");
    for it in Case::all(toolgate)? {
        if it.name.contains(case) {
            let requests = it.requests(CONNECTIONS) / 3 / less;
            let (name, one) = (it.name, it.numbered(0));
            let alone: Bodies = Arc::new(move |number| vec![it.numbered(number)]);
            let together: Bodies = Arc::new(move |_| vec![one.clone()]);
            for (name, bodies) in [(name, alone), ("  all in one conversation", together)] {
                let sides = [(&base, Arc::clone(&bodies)), (&sqlite, bodies)];
                compare(name, "/v1/messages", sides, requests).await?;
            }
        }
    }
    Ok(())
}

/// Measures two sides in turns of a few requests, and prints the medians: of each, and of what one is
/// more than the other in the same round, because machines are not equally fast all the time.
async fn compare(
    name: &str,
    path: &str,
    sides: [(&Target, Bodies); 2],
    requests: usize,
) -> Result<()> {
    const ROUNDS: usize = 15;
    const SLICES: usize = 16;
    let uri = |which: usize| format!("{}{path}", sides[which].0.url).parse::<Uri>();
    let uris = [uri(0)?, uri(1)?];
    let mut clients = [Clients::of(&uris[0]).await?, Clients::of(&uris[1]).await?];
    let some = (requests / SLICES).max(CONNECTIONS);
    let mut rounds: Vec<[f64; 2]> = Vec::new();
    let mut number = 0;
    for round in 0..=ROUNDS {
        let before = [sides[0].0.cpu()?, sides[1].0.cpu()?];
        for slice in 0..SLICES {
            // Who is first has colder caches.
            for which in [slice % 2, 1 - slice % 2] {
                clients[which].send(&uris[which], &sides[which].1, number, some).await?;
                number += some;
            }
        }
        // Commits that no turn waits for belong to this round.
        tokio::time::sleep(COMMIT_DELAY).await;
        let cost = |which: usize| -> Result<f64> {
            let cpu = sides[which].0.cpu()?.saturating_sub(before[which]);
            Ok(cpu.as_secs_f64() * 1e6 / (some * SLICES) as f64)
        };
        // The first round fills caches.
        if round > 0 {
            rounds.push([cost(0)?, cost(1)?]);
        }
    }
    let median = |value: fn(&[f64; 2]) -> f64| {
        let mut values: Vec<f64> = rounds.iter().map(value).collect();
        values.sort_unstable_by(f64::total_cmp);
        values[ROUNDS / 2]
    };
    let (before, after) = (median(|[before, _]| *before), median(|[_, after]| *after));
    let more = (median(|[before, after]| after / before.max(0.001)) - 1.0) * 100.0;
    println!("{name:<40} {before:>12.1} {after:>12.1} {more:>7.0}%");
    Ok(())
}

type Pair = (&'static str, &'static str, Bodies, Bodies);

fn cases() -> Vec<Pair> {
    let response = |length: usize, tools: usize, more: Value| -> Bodies {
        let tools: Vec<Value> = (0..tools)
            .map(|number| {
                let tool = cases::tool(number, 1500);
                json!({"type": "function", "name": tool["name"], "description": tool["description"], "parameters": tool["input_schema"]})
            })
            .collect();
        let mut body =
            json!({"model": "gemini-3.6-flash", "tools": tools, "input": words(length, "")});
        for (name, value) in more.as_object().into_iter().flatten() {
            body[name] = value.clone();
        }
        numbered(&body)
    };
    let stored = |name, length: usize, tools: usize, more: Value| -> Pair {
        let body = |store: bool| {
            let mut more = more.clone();
            more["store"] = json!(store);
            response(length, tools, more)
        };
        (name, "/v1/responses", body(false), body(true))
    };
    let prompt: String = "You are to be careful, and to say what you do. ".repeat(320);
    let called = |name, length: usize, tools: usize| -> Pair {
        let tools: Vec<Value> = (0..tools).map(|number| cases::tool(number, 1500)).collect();
        let messages = json!([{"role": "user", "content": words(length, "signed call")}]);
        let body = json!({"model": "gemini-3.6-flash", "max_tokens": 4096, "tools": tools, "messages": messages});
        let bodies = numbered(&body);
        (name, "/v1/messages", Arc::clone(&bodies), bodies)
    };
    vec![
        stored("Responses, 1 kB, stored or not", 900, 0, json!({})),
        stored("  60 kB: 20 tools, 18 kB of words", 18_000, 20, json!({})),
        stored("  60 kB: 20 tools, prompt, 3 kB", 3_000, 20, json!({"instructions": prompt})),
        stored(
            "  the same as a stream",
            3_000,
            20,
            json!({"instructions": prompt, "stream": true}),
        ),
        called("Messages, 1 kB, a tool, a signature", 300, 1),
        called("Messages, 60 kB, 20 tools, a signature", 18_000, 20),
    ]
}

/// Words of about this length, with a place for a number.
fn words(length: usize, last: &str) -> String {
    let sentence = "Tell me in a few words what the file is about, and what is left to do. ";
    let words: String = sentence.chars().cycle().take(length).collect();
    format!("NUMBER {words} {last}")
}

/// A body that is different for every number, as conversations are.
fn numbered(body: &Value) -> Bodies {
    let text = body.to_string();
    let (head, tail) = text.split_once("NUMBER").unwrap_or((&text, ""));
    let (head, tail) = (head.to_owned(), tail.to_owned());
    Arc::new(move |number| vec![Bytes::from(format!("{head}{number}{tail}"))])
}

/// Very many conversations, each of ten turns, one after the other on each connection.
async fn endurance(
    toolgate: &Path,
    sim: &Target,
    folder: &Folder,
    conversations: usize,
) -> Result<()> {
    let gateway = Target::gateway_on(toolgate, &sim.url, &folder.store(), &BOUNDS).await?;
    println!(
        "{conversations} conversations of {TURNS} turns, {CONNECTIONS} at a time; {BOUNDS:?}:"
    );
    println!(
        "{:>13} {:>9} {:>9} {:>9} {:>13} {:>10}",
        "conversations", "turns/s", "p50 µs", "p99 µs", "resident kB", "file kB"
    );
    let uri: Uri = format!("{}/v1/responses", gateway.url).parse()?;
    let some = conversations / TENTHS;
    for tenth in 0..TENTHS {
        let began = Instant::now();
        let round = talked(&uri, tenth * some, some).await?;
        let speed = round.times.len() as f64 / began.elapsed().as_secs_f64();
        println!(
            "{:>13} {:>9.0} {:>9} {:>9} {:>13} {:>10}",
            (tenth + 1) * some,
            speed,
            round.quantile(0.5).as_micros(),
            round.quantile(0.99).as_micros(),
            gateway.resident()?,
            folder.size() >> 10,
        );
    }
    Ok(())
}

/// Whole conversations, each by one client, turn by turn.
async fn talked(uri: &Uri, first: usize, conversations: usize) -> Result<Round> {
    let turns: Bodies = Arc::new(|number| {
        let turn = |turn| {
            let input = format!("Turn {turn}: what is left to do in project {number}?");
            let body = json!({"model": "gemini-3.6-flash", "input": input, "conversation": format!("bench-{number}")});
            body.to_string().into()
        };
        (0..TURNS).map(turn).collect()
    });
    Clients::of(uri).await?.send(uri, &turns, first, conversations).await
}
