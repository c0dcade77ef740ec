//! `toolgate run claude|codex|gemini`: the agent on the gateway, its own configuration untouched.

use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context as _, Result};
use toolgate_gateway::{start_log, start_with};

use crate::gemini_home::{self, Home};
use crate::memory::give_back;
use crate::serve::resolve;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Which agent
    agent: Agent,
    /// The model that it shall ask for
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// The program, where it is not on the path under its usual name
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// A gateway that is running already; else one is found or started
    #[arg(long, value_name = "URL")]
    gateway: Option<String>,
    /// The gateway's configuration file [default: toolgate.toml, where there is one]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// What the agent is given
    #[arg(last = true)]
    args: Vec<String>,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Agent {
    /// Claude Code
    Claude,
    /// Codex
    Codex,
    /// Gemini CLI
    Gemini,
}

/// How long to look for a gateway that is running already.
const KNOCK: Duration = Duration::from_millis(300);

/// How many tokens every model of Gemini's takes.
const CONTEXT_WINDOW: u32 = 1_000_000;

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let config = resolve(args.config.as_deref(), &[])?;
    let key = config
        .clients
        .keys
        .first()
        .or_else(|| config.upstream.auth.api_keys.first())
        .map_or_else(|| "toolgate".to_owned(), |key| key.expose().to_owned());
    if let Some(url) = &args.gateway {
        return launch(args, url.trim_end_matches('/'), &key);
    }
    if is_toolgate(config.listen) {
        return launch(args, &format!("http://{}", config.listen), &key);
    }
    let flags = [("listen", "--listen", "127.0.0.1:0"), ("log", "--log", "error")];
    let config = resolve(args.config.as_deref(), &flags)?;
    start_log(&config);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let running = runtime.block_on(start_with(config, give_back))?;
    let code = launch(args, &format!("http://{}", running.addr), &key);
    runtime.block_on(running.drain());
    code
}

/// Whether the gateway answers there.
fn is_toolgate(addr: SocketAddr) -> bool {
    use std::io::{Read as _, Write as _};
    let Ok(mut stream) = TcpStream::connect_timeout(&addr, KNOCK) else { return false };
    let _ = stream.set_read_timeout(Some(KNOCK));
    let asked = write!(stream, "GET /readyz HTTP/1.1\r\nhost: {addr}\r\nconnection: close\r\n\r\n");
    let mut answer = String::new();
    asked.is_ok()
        && stream.read_to_string(&mut answer).is_ok()
        && answer.contains("x-toolgate-request-id")
}

fn launch(args: &Args, url: &str, key: &str) -> Result<ExitCode> {
    let usual = match args.agent {
        Agent::Claude => "claude",
        Agent::Codex => "codex",
        Agent::Gemini => "gemini",
    };
    let program = args.program.clone().unwrap_or_else(|| PathBuf::from(usual));
    let mut command = Command::new(&program);
    let home = prepare(args, &mut command, url, key)?;
    let status = command.args(&args.args).status().with_context(|| {
        format!("cannot start {} (is it installed and on the path?)", program.display())
    });
    drop(home);
    let code = status?.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1);
    Ok(ExitCode::from(code))
}

/// Sets the agent's environment; gives what must stay until it has ended.
fn prepare(args: &Args, command: &mut Command, url: &str, key: &str) -> Result<Option<Home>> {
    match args.agent {
        Agent::Claude => {
            command
                .env("ANTHROPIC_BASE_URL", url)
                .env("ANTHROPIC_AUTH_TOKEN", key)
                .env_remove("ANTHROPIC_API_KEY");
            if let Some(model) = &args.model {
                command.env("ANTHROPIC_MODEL", model);
            }
            Ok(None)
        }
        Agent::Codex => {
            // Settings on the command line leave the user's own file as it is.
            for setting in [
                "model_provider=\"toolgate\"".to_owned(),
                "model_providers.toolgate.name=\"toolgate\"".to_owned(),
                format!("model_providers.toolgate.base_url=\"{url}/v1\""),
                "model_providers.toolgate.wire_api=\"responses\"".to_owned(),
                "model_providers.toolgate.env_key=\"TOOLGATE_CLIENT_KEY\"".to_owned(),
                format!("model=\"{}\"", args.model.as_deref().unwrap_or("gemini-3.6-flash")),
                // It sums up a session early where it does not know the model.
                format!("model_context_window={CONTEXT_WINDOW}"),
            ] {
                command.arg("-c").arg(setting);
            }
            command.env("TOOLGATE_CLIENT_KEY", key);
            Ok(None)
        }
        Agent::Gemini => {
            command.env("GEMINI_API_KEY", key).env("GOOGLE_GEMINI_BASE_URL", url);
            if let Some(model) = &args.model {
                command.arg("-m").arg(model);
            }
            let own = std::env::var_os("GEMINI_CLI_HOME").or_else(|| std::env::var_os("HOME"));
            let own =
                own.context("neither GEMINI_CLI_HOME nor HOME says where gemini-cli lives")?;
            let home = gemini_home::prepare(Path::new(&own))?;
            if let Some(home) = &home {
                command.env("GEMINI_CLI_HOME", &home.path);
            }
            Ok(home)
        }
    }
}
