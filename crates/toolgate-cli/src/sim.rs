//! `toolgate sim`

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result, anyhow, bail};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use toolgate_sim::{Cassette, ControlKey, Driver, Keys, Quirk, Script, Sim, SimConfig, serve};

use crate::state::random_hex;

#[derive(Debug, clap::Args)]
pub(crate) struct SimArgs {
    /// Address to listen on; port 0 lets the system choose
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8742")]
    listen: String,
    /// A script (TOML or JSON); without one the demo model answers
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
    /// Recorded exchange to replay
    #[arg(long, value_name = "FILE", conflicts_with = "script")]
    replay: Option<PathBuf>,
    /// Accept requests without a key
    #[arg(long)]
    no_key: bool,
    /// Quirk of Google's API to simulate: documented-signature-text, empty-results, retired-models
    #[arg(long, value_name = "NAME")]
    quirk: Vec<Quirk>,
    /// Seed of ids, signatures and random faults
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Key for the control endpoints, visible in the process list: prefer the variable
    /// TOOLGATE_SIM_CONTROL_KEY [default: random, printed at start]
    #[arg(long, value_name = "KEY")]
    control_key: Option<String>,
}

/// Variable that holds the key for the control endpoints.
const CONTROL_KEY_VARIABLE: &str = "TOOLGATE_SIM_CONTROL_KEY";
/// Shortest control key.
const MIN_CONTROL_KEY_CHARS: usize = 8;

impl SimArgs {
    /// Returns the key for the control endpoints, and whether it was generated here.
    fn control_key(&self) -> Result<(String, bool)> {
        let given = self.control_key.clone();
        let given = given.or_else(|| std::env::var(CONTROL_KEY_VARIABLE).ok());
        match given.filter(|key| !key.is_empty()) {
            Some(key) if key.chars().count() < MIN_CONTROL_KEY_CHARS => {
                bail!("the control key must have at least {MIN_CONTROL_KEY_CHARS} characters")
            }
            Some(key) => Ok((key, false)),
            None => Ok((random_hex()?, true)),
        }
    }
}

pub(crate) fn run(args: &SimArgs) -> Result<ExitCode> {
    let read = |path: &PathBuf| {
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
    };
    let driver = match (&args.script, &args.replay) {
        (Some(path), _) => {
            let script = Script::parse(&read(path)?);
            Driver::Script(script.map_err(|error| anyhow!("{}: {error}", path.display()))?)
        }
        (None, Some(path)) => {
            let cassette = Cassette::parse(&read(path)?);
            Driver::Replay(cassette.map_err(|error| anyhow!("{}: {error}", path.display()))?)
        }
        (None, None) => Driver::Demo,
    };
    let keys = if args.no_key { Keys::NotNeeded } else { Keys::Any };
    let quirks = args.quirk.clone();
    let (control_key, is_generated) = args.control_key()?;
    let sim = Sim::new(SimConfig {
        driver,
        keys,
        quirks,
        seed: args.seed,
        control_key: Some(ControlKey::new(control_key.as_str())),
        ..SimConfig::default()
    });
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(&args.listen)
            .await
            .with_context(|| format!("cannot listen on {}", args.listen))?;
        let mut stdout = std::io::stdout();
        writeln!(stdout, "toolgate sim listens on http://{}", listener.local_addr()?)?;
        stdout.flush()?;
        if is_generated {
            let mut stderr = std::io::stderr();
            writeln!(stderr, "control key (x-toolgate-control-key): {control_key}")?;
        }
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let stopped = async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        };
        serve(sim, listener, stopped).await;
        Ok::<_, anyhow::Error>(())
    })?;
    Ok(ExitCode::SUCCESS)
}
