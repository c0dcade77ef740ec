//! `toolgate serve`

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result, bail};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::signal::unix::{Signal, SignalKind, signal};
use toolgate_gateway::config::{LogFormat, example};
use toolgate_gateway::identity::IdentitySecret;
use toolgate_gateway::{Running, start_log};

use crate::banner::{announce, file_name};
use crate::configuration::{Flag, Loaded, find, ignored_file, load, warn};
use crate::gateway;
use crate::state::{Private, Published, random};

#[derive(Debug, clap::Args)]
pub(crate) struct ServeArgs {
    /// Address to listen on; port 0 lets the system choose
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<String>,
    /// Upstream: developer, vertex or sim
    #[arg(long, value_name = "KIND")]
    pub(crate) upstream: Option<String>,
    /// URL of another server with the Gemini API
    #[arg(long, value_name = "URL")]
    pub(crate) upstream_url: Option<String>,
    /// The gateway's own Gemini key. Other users can see it in the process list: prefer
    /// --api-key-file or the variable GEMINI_API_KEY
    #[arg(long, value_name = "KEY", conflicts_with = "api_key_file")]
    pub(crate) api_key: Option<String>,
    /// A file with the gateway's own Gemini keys, one a line
    #[arg(long, value_name = "FILE")]
    pub(crate) api_key_file: Option<PathBuf>,
    /// The configuration file [default: $TOOLGATE_CONFIG, or ~/.config/toolgate/toolgate.toml if it
    /// exists]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Store for state: off, memory, sqlite:PATH or redis://…
    #[arg(long, value_name = "STORE")]
    pub(crate) store: Option<String>,
    /// Log format: text or json
    #[arg(long, value_name = "FORMAT")]
    pub(crate) log: Option<String>,
    /// Print the resolved configuration and end
    #[arg(long)]
    pub(crate) print_config: bool,
    /// Print a commented example file and end
    #[arg(long)]
    pub(crate) example_config: bool,
}

/// Interval of checks for a changed configuration file.
const WATCH_INTERVAL: Duration = Duration::from_secs(2);

pub(crate) fn run(args: &ServeArgs) -> Result<ExitCode> {
    let mut stdout = std::io::stdout();
    if args.example_config {
        stdout.write_all(example().as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    let Loaded { config, file } = args.load()?;
    let ignored = ignored_file(file.as_deref());
    if args.print_config {
        stdout.write_all(config.printed().as_bytes())?;
        if let Some(message) = ignored {
            warn(&message);
        }
        return Ok(ExitCode::SUCCESS);
    }
    let _log = start_log(&config)?;
    match (ignored, config.log_format) {
        (None, _) => {}
        (Some(message), LogFormat::Json) => tracing::warn!("{message}"),
        (Some(message), LogFormat::Text) => warn(&message),
    }
    allow_many_files();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let served = runtime.block_on(async {
        // Signals may arrive as soon as the address is printed.
        let signals = Signals::listen()?;
        let secret = random()?;
        let started = config.clone();
        let running = gateway::start(config, Some(IdentitySecret::new(secret))).await?;
        let published = publish(running.addr, &secret);
        writeln!(stdout, "toolgate listens on http://{}", running.addr)?;
        stdout.flush()?;
        announce(&started, file.as_deref(), running.addr)?;
        serve(args, signals, running, published).await
    });
    // A computation whose turn is over does not delay the exit.
    runtime.shutdown_background();
    served.map(|()| ExitCode::SUCCESS)
}

/// Raises the limit of open files to its maximum. A stream needs two sockets, so the usual soft limit of
/// 1,024 files allows five hundred streams. A failure is not fatal.
fn allow_many_files() {
    let most = getrlimit(Resource::Nofile).maximum;
    if setrlimit(Resource::Nofile, Rlimit { current: most, maximum: most }).is_err() {
        tracing::debug!("cannot raise the limit of open files");
    }
}

impl ServeArgs {
    /// Reads file, environment and flags.
    fn load(&self) -> Result<Loaded> {
        let keys = match &self.api_key_file {
            Some(path) => Some(keys_of(path)?),
            None => None,
        };
        let flags: Vec<Flag<'_>> = [
            ("listen", "--listen", &self.listen),
            ("upstream.kind", "--upstream", &self.upstream),
            ("upstream.url", "--upstream-url", &self.upstream_url),
            ("upstream.api_keys", "--api-key", &self.api_key),
            ("upstream.api_keys", "--api-key-file", &keys),
            ("store", "--store", &self.store),
            ("log_format", "--log", &self.log),
        ]
        .into_iter()
        .filter_map(|(key, name, value)| value.as_deref().map(|value| (key, name, value)))
        .collect();
        load(self.config.as_deref(), &flags)
    }

    fn modified(&self) -> Option<SystemTime> {
        let file = find(self.config.as_deref()).ok()??;
        file.metadata().ok()?.modified().ok()
    }
}

/// Reads keys from a file: one a line, or separated by commas.
fn keys_of(path: &Path) -> Result<String> {
    let text = std::fs::read_to_string(path);
    let text = text.with_context(|| format!("cannot read {}", path.display()))?;
    let keys: Vec<_> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    if keys.is_empty() {
        bail!("{} holds no key", path.display());
    }
    Ok(keys.join(","))
}

/// Lets `toolgate run` recognise this gateway. Without a state folder it starts one of its own.
fn publish(addr: SocketAddr, secret: &[u8; 32]) -> Option<Published> {
    match Private::open().and_then(|folder| folder.publish(addr, secret)) {
        Ok(published) => Some(published),
        Err(error) => {
            tracing::debug!("`toolgate run` will not find this gateway: {error:#}");
            None
        }
    }
}

/// Signals of the system.
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

    /// Waits for a signal that ends the process.
    async fn end(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

async fn serve(
    args: &ServeArgs,
    mut signals: Signals,
    running: Running,
    published: Option<Published>,
) -> Result<()> {
    let mut watch = tokio::time::interval(WATCH_INTERVAL);
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
    drop(published);
    let again = async {
        signals.end().await;
        tracing::warn!("second signal: cancelling turns in progress");
    };
    running.drain_until(again).await;
    Ok(())
}

/// Reloads the configuration; an invalid file changes nothing.
fn reload(args: &ServeArgs, running: &Running) {
    let result = args.load().and_then(|Loaded { config, file }| {
        let upstream = config.upstream.host();
        running.reload(config)?;
        Ok((upstream, file_name(file.as_deref())))
    });
    match result {
        Ok((upstream, file)) => {
            tracing::info!(upstream, config_file = file, "configuration reloaded");
        }
        Err(error) => tracing::error!("configuration not reloaded, keeping the old one: {error:#}"),
    }
}
