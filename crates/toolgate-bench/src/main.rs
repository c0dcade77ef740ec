//! CPU cost of the gateway, compared with a proxy that only copies bytes.
//!
//! ```text
//!            ┌─► toolgate serve ─┐
//!   load ────┤   (interleaved)   ├─► toolgate sim
//!            └─► byte proxy ─────┘
//! ```
//!
//! Machines are noisy, so the measure is the CPU time per request (user and system) of each process,
//! and the result is the ratio. The proxy gets the translated request and forwards it.
#![expect(clippy::print_stdout, reason = "a command speaks to whoever started it")]

mod cases;
mod load;
mod proxy;
mod sessions;
mod target;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::cases::Case;
use crate::load::Round;
use crate::target::Target;

/// Numbers of concurrent connections.
const CONNECTIONS: [usize; 4] = [1, 16, 64, 256];
/// Rounds of each process, interleaved.
const ROUNDS: usize = 3;
const USAGE: &str = "\
usage: toolgate-bench run TOOLGATE [--quick] [--case NAME]
       toolgate-bench sessions TOOLGATE [--quick] [--case=NAME]
           [--conversations=NUMBER] [--beside=OTHER-TOOLGATE]";

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    match arguments.as_slice() {
        ["proxy", upstream] => runtime.block_on(proxy::run(upstream)),
        ["run", toolgate, options @ ..] => {
            let options = Options::parse(options)?;
            runtime.block_on(run(&PathBuf::from(toolgate), &options))
        }
        ["sessions", toolgate, options @ ..] => {
            runtime.block_on(sessions::run(&PathBuf::from(toolgate), options))
        }
        _ => bail!("{USAGE}"),
    }
}

/// Command-line options.
#[derive(Debug, Default)]
struct Options {
    quick: bool,
    only: Option<String>,
}

impl Options {
    fn parse(options: &[&str]) -> Result<Self> {
        let mut parsed = Self::default();
        let mut options = options.iter();
        while let Some(option) = options.next() {
            match *option {
                "--quick" => parsed.quick = true,
                "--case" => {
                    parsed.only = Some((*options.next().context(USAGE)?).to_owned());
                }
                _ => bail!("{USAGE}"),
            }
        }
        Ok(parsed)
    }

    fn takes(&self, case: &str) -> bool {
        self.only.as_deref().is_none_or(|only| case.contains(only))
    }
}

async fn run(toolgate: &Path, options: &Options) -> Result<()> {
    let folder = std::env::temp_dir();
    let cassette = cases::cassette(&folder)?;
    let sim =
        Target::sim(toolgate, "--replay", &cassette).await.context("cannot start the simulator")?;
    let gateway = Target::gateway(toolgate, &sim.url).await.context("cannot start the gateway")?;
    let own = std::env::current_exe()?;
    let proxy = Target::proxy(&own, &sim.url).await.context("cannot start the proxy")?;
    println!(
        "gateway: ready after {} ms, {} kB resident when idle",
        gateway.ready.as_millis(),
        gateway.resident()?
    );
    println!();
    println!(
        "{:<22} {:>5} {:>9} {:>11} {:>11} {:>7} {:>10} {:>10}",
        "case", "conns", "requests", "gateway µs", "proxy µs", "ratio", "+p50 µs", "+p99 µs"
    );
    for case in Case::all(toolgate)?.iter().filter(|case| options.takes(case.name)) {
        for connections in CONNECTIONS {
            if options.quick && connections != 16 {
                continue;
            }
            compare(case, connections, options.quick, &gateway, &proxy).await?;
        }
    }
    if options.takes("idle") { idle_streams(toolgate, &folder).await } else { Ok(()) }
}

async fn compare(
    case: &Case,
    connections: usize,
    quick: bool,
    gateway: &Target,
    proxy: &Target,
) -> Result<()> {
    let requests = case.requests(connections) / if quick { 4 } else { 1 };
    let (ours, floor) = (case.for_gateway(&gateway.url)?, case.for_proxy(&proxy.url)?);
    // Warm-up: opens connections and fills caches.
    load::run(&ours, connections, connections.max(50)).await?;
    load::run(&floor, connections, connections.max(50)).await?;
    let (mut gateway_rounds, mut proxy_rounds) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        gateway_rounds.push(gateway.measured(load::run(&ours, connections, requests)).await?);
        proxy_rounds.push(proxy.measured(load::run(&floor, connections, requests)).await?);
    }
    let (ours, floor) = (Round::joined(gateway_rounds), Round::joined(proxy_rounds));
    let micros = |round: &Round| round.cpu.as_secs_f64() * 1e6 / round.times.len() as f64;
    let added = |share: f64| {
        ours.quantile(share).as_micros() as i64 - floor.quantile(share).as_micros() as i64
    };
    println!(
        "{:<22} {:>5} {:>9} {:>11.1} {:>11.1} {:>7.2} {:>10} {:>10}",
        case.name,
        connections,
        ours.times.len(),
        micros(&ours),
        micros(&floor),
        micros(&ours) / micros(&floor).max(0.001),
        added(0.5),
        added(0.99),
    );
    if ours.failed + floor.failed > 0 {
        println!("  failed: gateway {}, proxy {}", ours.failed, floor.failed);
    }
    Ok(())
}

/// Measures the memory of a thousand idle streams.
async fn idle_streams(toolgate: &Path, folder: &Path) -> Result<()> {
    const STREAMS: usize = 1000;
    let script = cases::silence(folder)?;
    let sim = Target::sim(toolgate, "--script", &script).await?;
    let gateway = Target::gateway(toolgate, &sim.url).await?;
    let before = gateway.resident()?;
    let case = Case::silent(toolgate)?;
    let request = case.for_gateway(&gateway.url)?;
    let open = load::open(&request, STREAMS).await?;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let during = gateway.resident()?;
    let opened = open.len();
    drop(open);
    tokio::time::sleep(Duration::from_secs(2)).await;
    let after = gateway.resident()?;
    println!(
        "\nresident memory: {before} kB before, {during} kB with {opened} idle streams, {after} kB after"
    );
    Ok(())
}
