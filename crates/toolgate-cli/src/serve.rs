//! `toolgate serve`

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::signal::unix::{Signal, SignalKind, signal};
use toolgate_gateway::config::{Config, LogFormat, Sources, UpstreamKind, example};
use toolgate_gateway::{Running, start_log, start_with};

use crate::memory::give_back;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Where to listen; port 0 lets the system choose
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<String>,
    /// developer, vertex or sim
    #[arg(long, value_name = "KIND")]
    pub(crate) upstream: Option<String>,
    /// Another server that speaks Gemini
    #[arg(long, value_name = "URL")]
    pub(crate) upstream_url: Option<String>,
    /// The gateway's own Gemini key
    #[arg(long, value_name = "KEY")]
    pub(crate) api_key: Option<String>,
    /// The configuration file [default: toolgate.toml, where there is one]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Where state is kept
    #[arg(long, value_name = "STORE")]
    pub(crate) store: Option<String>,
    /// text or json
    #[arg(long, value_name = "FORMAT")]
    pub(crate) log: Option<String>,
    /// Print the resolved configuration and end
    #[arg(long)]
    pub(crate) print_config: bool,
    /// Print a commented example file and end
    #[arg(long)]
    pub(crate) example_config: bool,
}

/// How often the file is looked at.
const WATCH: Duration = Duration::from_secs(2);

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let mut stdout = std::io::stdout();
    if args.example_config {
        stdout.write_all(example().as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    let config = args.resolve()?;
    if args.print_config {
        stdout.write_all(config.printed().as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    start_log(&config);
    allow_many_files();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let (kind, format) = (config.upstream.kind, config.log_format);
        // Whoever reads that it listens may send signals.
        let signals = Signals::listen()?;
        let running = start_with(config, give_back).await?;
        writeln!(stdout, "toolgate listens on http://{}", running.addr)?;
        stdout.flush()?;
        match format {
            LogFormat::Json => tracing::info!(addr = %running.addr, upstream = ?kind, "listening"),
            LogFormat::Text => greet(&running, kind)?,
        }
        serve(args, signals, running).await
    })?;
    Ok(ExitCode::SUCCESS)
}

/// A stream needs two sockets, so that the usual soft limit of 1,024 files would be reached by five
/// hundred of them. What the system grants is taken; what it does not is no reason to stop.
fn allow_many_files() {
    let most = getrlimit(Resource::Nofile).maximum;
    if setrlimit(Resource::Nofile, Rlimit { current: most, maximum: most }).is_err() {
        tracing::debug!("the limit of open files stays as it is");
    }
}

impl Args {
    /// Reads file, environment and flags.
    pub(crate) fn resolve(&self) -> Result<Config> {
        let flags: Vec<(&str, &str, &str)> = [
            ("listen", "--listen", &self.listen),
            ("upstream.kind", "--upstream", &self.upstream),
            ("upstream.url", "--upstream-url", &self.upstream_url),
            ("upstream.api_keys", "--api-key", &self.api_key),
            ("store", "--store", &self.store),
            ("log_format", "--log", &self.log),
        ]
        .into_iter()
        .filter_map(|(key, name, value)| value.as_deref().map(|value| (key, name, value)))
        .collect();
        resolve(self.config.as_deref(), &flags)
    }

    fn modified(&self) -> Option<SystemTime> {
        file(self.config.as_deref())
            .and_then(|path| path.metadata().ok())
            .and_then(|it| it.modified().ok())
    }
}

/// The configuration file: the one that was named, or the usual one where there is one.
fn file(named: Option<&Path>) -> Option<PathBuf> {
    let usual = Path::new("toolgate.toml");
    named.or_else(|| usual.exists().then_some(usual)).map(Path::to_owned)
}

/// Reads the file, the environment and flags, each with its key and its name.
pub(crate) fn resolve(named: Option<&Path>, flags: &[(&str, &str, &str)]) -> Result<Config> {
    let file = file(named);
    let text = match &file {
        Some(path) => Some(
            std::fs::read_to_string(path)
                .with_context(|| format!("cannot read {}", path.display()))?,
        ),
        None => None,
    };
    let name = file.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
    let sources = Sources {
        file: text.as_deref().map(|text| (name.as_str(), text)),
        env: &|name| std::env::var(name).ok(),
        flags,
    };
    Ok(Config::resolve(&sources)?)
}

/// One screen: what is behind it, and a request that works as pasted.
fn greet(running: &Running, kind: UpstreamKind) -> std::io::Result<()> {
    let addr = running.addr;
    let mut err = std::io::stderr().lock();
    match kind {
        UpstreamKind::Sim => writeln!(
            err,
            "\n  No Gemini key: running on the BUILT-IN SIMULATOR. Its answers are made up.\n  \
             For the real thing:  GEMINI_API_KEY=... toolgate serve\n"
        )?,
        UpstreamKind::Developer => writeln!(err, "\n  Upstream: the Gemini Developer API.\n")?,
        UpstreamKind::Vertex => writeln!(err, "\n  Upstream: Vertex AI.\n")?,
    }
    writeln!(
        err,
        "  Try it:\n    curl -s http://{addr}/v1/messages -H 'content-type: application/json' -d '{{\"model\":\"gemini-3-flash\",\"max_tokens\":1024,\"messages\":[{{\"role\":\"user\",\"content\":\"What is the weather in Tokyo?\"}}],\"tools\":[{{\"name\":\"get_weather\",\"description\":\"Get weather\",\"input_schema\":{{\"type\":\"object\",\"properties\":{{\"city\":{{\"type\":\"string\"}}}},\"required\":[\"city\"]}}}}]}}'\n\n  \
         Agents:\n    toolgate run claude    toolgate run codex    toolgate run gemini\n"
    )
}

/// What the system tells us.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

impl Signals {
    fn listen() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// Somebody wants it to end.
    async fn end(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

async fn serve(args: &Args, mut signals: Signals, running: Running) -> Result<()> {
    let mut watch = tokio::time::interval(WATCH);
    let mut modified = args.modified();
    loop {
        tokio::select! {
            _ = signals.terminate.recv() => break,
            _ = signals.interrupt.recv() => break,
            _ = signals.hangup.recv() => reload(args, &running),
            _ = watch.tick() => {
                let now = args.modified();
                if now != modified {
                    modified = now;
                    reload(args, &running);
                }
            }
        }
    }
    let again = async {
        signals.end().await;
        tracing::warn!("a second signal: turns that still run are cut off");
    };
    running.drain_until(again).await;
    Ok(())
}

/// Takes a changed file into force; a broken one is named and changes nothing.
fn reload(args: &Args, running: &Running) {
    let result = args.resolve().and_then(|config| Ok(running.reload(config)?));
    match result {
        Ok(()) => tracing::info!("the configuration was read again"),
        Err(error) => tracing::error!("the configuration stays as it was: {error:#}"),
    }
}
