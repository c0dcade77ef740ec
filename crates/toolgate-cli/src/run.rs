//! `toolgate run claude|codex|gemini`: the agent on the gateway, its own configuration untouched.
//!
//! A running gateway is used only if it proves to be this user's and has the upstream of this user's
//! configuration. Otherwise `run` starts a gateway of its own, on a port that the system chooses. Agents
//! get a client key or this user's token, not the Gemini key: the key stays with the gateway.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use toolgate_gateway::config::{Access, Config, Secret};
use toolgate_gateway::identity::Identity;
use toolgate_gateway::{LogGuard, Running, start_log};

use crate::agent::{Agent, Launch, Signals};
use crate::configuration::{Loaded, ignored_file, load, warn};
use crate::gateway::{self, Listener, look};
use crate::state::{Private, random_hex};

#[derive(Debug, clap::Args)]
pub(crate) struct RunArgs {
    /// Agent to start
    agent: Agent,
    /// Model that the agent asks for
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Program to start [default: the agent's usual name, found on the path]
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Use this gateway without a proof; it gets your client key or Gemini key [default: your running
    /// gateway, or one started for this run]
    #[arg(long, value_name = "URL")]
    gateway: Option<String>,
    /// Configuration file of the gateway [default: $TOOLGATE_CONFIG, or
    /// ~/.config/toolgate/toolgate.toml if it exists]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Arguments for the agent
    #[arg(last = true)]
    args: Vec<String>,
}

/// The gateway that the agent will use.
struct Chosen {
    url: String,
    key: String,
    /// Description of the upstream.
    upstream: String,
    /// Reason for the choice.
    how: &'static str,
    /// Hint at the password of the dashboard; `None` if it needs none.
    password: Option<String>,
    /// Gateway that was started for this run, with the guard that flushes its log.
    own: Option<(Running, LogGuard)>,
}

pub(crate) fn run(args: &RunArgs) -> Result<ExitCode> {
    let Loaded { config, file } = load(args.config.as_deref(), &[])?;
    if let Some(message) = ignored_file(file.as_deref()) {
        warn(&message);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut signals = Signals::listen()?;
        let folder = match Private::open() {
            Ok(folder) => Some(folder),
            Err(error) => {
                warn(&format!("later runs cannot resume stored sessions of this one: {error:#}"));
                None
            }
        };
        let chosen = match &args.gateway {
            Some(url) => given(url, &config, folder.as_ref()).await?,
            None => match running(&config, folder.as_ref()).await? {
                Some(chosen) => chosen,
                None => own(args, &config, folder.as_ref()).await?,
            },
        };
        let Chosen { url, key, upstream, how, password, own } = chosen;
        let models = args.agent.models(&config, args.model.as_deref());
        let password = password.map(|hint| format!(" ({hint})")).unwrap_or_default();
        let _ = writeln!(
            std::io::stderr(),
            "toolgate: {} on {upstream}, model {models}, gateway {url} ({how}), dashboard {url}/{password}",
            args.agent.name(),
        );
        let launch = Launch {
            agent: args.agent,
            config: &config,
            model: args.model.as_deref(),
            program: args.program.as_deref(),
            args: &args.args,
            url: &url,
            key: &key,
        };
        let code = launch.run(&mut signals).await;
        if let Some((own, _log)) = own {
            let again = async {
                let _ = signals.next().await;
            };
            own.drain_until(again).await;
        }
        code
    })
}

/// Describes the upstream of a gateway.
fn upstream(identity: &Identity) -> String {
    match identity.upstream.as_str() {
        "simulator" => {
            "the BUILT-IN SIMULATOR (made-up answers; GEMINI_API_KEY=... for Gemini)".to_owned()
        }
        _ => format!("Gemini at {}", identity.host),
    }
}

/// The first key in plain text.
fn first(keys: &[Secret]) -> Option<String> {
    keys.first().map(|key| key.expose().to_owned())
}

/// The key for a gateway of this user that requires `access`.
fn key_for(access: Access, config: &Config, folder: Option<&Private>) -> Result<Option<String>> {
    match access {
        Access::ClientKey => Ok(first(&config.clients.keys)),
        Access::GeminiKey => Ok(first(&config.upstream.auth.api_keys)),
        Access::Open => token(folder).map(Some),
    }
}

/// Returns the key of this user's agents. Stored sessions belong to it, so it is the same for every run if
/// there is a state folder.
fn token(folder: Option<&Private>) -> Result<String> {
    match folder {
        Some(folder) => folder.client_token(),
        None => Ok(format!("tg-run-{}", random_hex()?)),
    }
}

/// The gateway that the user names. It is used with or without a proof.
async fn given(url: &str, config: &Config, folder: Option<&Private>) -> Result<Chosen> {
    let url = url.trim_end_matches('/').to_owned();
    let listener = match url.strip_prefix("http://").map(str::parse::<SocketAddr>) {
        Some(Ok(addr)) => look(addr, folder).await,
        Some(Err(_)) | None => Listener::Unproven,
    };
    if let Listener::Proven { identity, .. } = listener
        && let Some(key) = key_for(identity.access, config, folder)?
    {
        let upstream = upstream(&identity);
        let password = password(identity.access, config, folder);
        return Ok(Chosen { url, key, upstream, how: "--gateway, yours", password, own: None });
    }
    let key = first(&config.clients.keys).or_else(|| first(&config.upstream.auth.api_keys));
    Ok(Chosen {
        url,
        key: key.unwrap_or_else(|| "toolgate".to_owned()),
        upstream: "an unknown upstream".to_owned(),
        how: "--gateway, not verified",
        password: None,
        own: None,
    })
}

/// The gateway that runs on the configured address, if it is this user's and has the same upstream.
async fn running(config: &Config, folder: Option<&Private>) -> Result<Option<Chosen>> {
    let addr = config.listen;
    if addr.port() == 0 {
        return Ok(None);
    }
    let (addr, identity) = match look(addr, folder).await {
        Listener::None => return Ok(None),
        Listener::Unproven => {
            warn(&format!(
                "{addr} is in use by a program that does not prove to be your gateway; starting another gateway"
            ));
            return Ok(None);
        }
        Listener::Proven { addr, identity } => (addr, identity),
    };
    let wanted = Identity::of(config);
    if identity.upstream != wanted.upstream {
        warn(&format!(
            "your gateway on {addr} runs on {}, this configuration on {}; starting another gateway",
            identity.host, wanted.host
        ));
        return Ok(None);
    }
    let Some(key) = key_for(identity.access, config, folder)? else {
        warn(&format!(
            "your gateway on {addr} wants a key that this configuration does not have; starting another gateway"
        ));
        return Ok(None);
    };
    let (url, upstream) = (format!("http://{addr}"), upstream(&identity));
    let password = password(identity.access, config, folder);
    Ok(Some(Chosen { url, key, upstream, how: "already running", password, own: None }))
}

/// Starts a gateway for this run. It accepts the configured client keys, or only this user's token.
async fn own(args: &RunArgs, config: &Config, folder: Option<&Private>) -> Result<Chosen> {
    if config.access() == Access::GeminiKey {
        bail!("no Gemini key: set GEMINI_API_KEY, or upstream.api_keys in the configuration file");
    }
    let key = match first(&config.clients.keys) {
        Some(key) => key,
        None => token(folder)?,
    };
    let mut flags = vec![("listen", "--listen", "127.0.0.1:0"), ("log", "--log", "error")];
    if config.clients.keys.is_empty() {
        flags.push(("clients.keys", "toolgate run", key.as_str()));
    }
    let password = password(Access::ClientKey, config, folder);
    let config = load(args.config.as_deref(), &flags)?.config;
    let log = start_log(&config)?;
    let upstream = upstream(&Identity::of(&config));
    let running = gateway::start(config, None).await?;
    let url = format!("http://{}", running.addr);
    let own = Some((running, log));
    Ok(Chosen { url, key, upstream, how: "started for this run", password, own })
}

/// Returns a hint at the password of a gateway's dashboard.
fn password(access: Access, config: &Config, folder: Option<&Private>) -> Option<String> {
    match access {
        Access::Open | Access::GeminiKey => None,
        Access::ClientKey if !config.clients.keys.is_empty() => {
            Some("password: a client key".to_owned())
        }
        Access::ClientKey => {
            folder.map(|folder| format!("password in {}", folder.token_path().display()))
        }
    }
}
