//! An agent's process: its settings, its signals, its exit code.

use std::io::IsTerminal as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};

use anyhow::{Context as _, Result};
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::Child;
use tokio::signal::unix::{self, SignalKind, signal};
use toolgate_gateway::config::SETTINGS;

use crate::gemini_home::{self, Home};

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum Agent {
    /// Claude Code
    Claude,
    /// Codex
    Codex,
    /// Gemini CLI
    Gemini,
}

/// How many tokens every model of Gemini's takes.
const CONTEXT_WINDOW: u32 = 1_000_000;
/// Model that Codex asks for, unless told otherwise.
const CODEX_MODEL: &str = "gemini-3.6-flash";

/// What an agent is started with.
#[derive(Debug)]
pub(crate) struct Launch<'a> {
    pub(crate) agent: Agent,
    pub(crate) model: Option<&'a str>,
    pub(crate) program: Option<&'a Path>,
    pub(crate) args: &'a [String],
    /// Address of the gateway.
    pub(crate) url: &'a str,
    /// Key that the gateway wants.
    pub(crate) key: &'a str,
}

impl Agent {
    /// Name of the program.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
        }
    }

    /// Model that the agent asks for where the user names none; `None`: the agent decides.
    pub(crate) fn default_model(self) -> Option<&'static str> {
        match self {
            Self::Claude | Self::Gemini => None,
            Self::Codex => Some(CODEX_MODEL),
        }
    }
}

impl Launch<'_> {
    /// Runs the agent to its end. Signals go on to it, so that what was made for it is removed when it
    /// has ended, also when the terminal is closed.
    pub(crate) async fn run(&self, signals: &mut Signals) -> Result<ExitCode> {
        let program = self.program.map_or_else(|| PathBuf::from(self.agent.name()), Path::to_owned);
        let mut command = Command::new(&program);
        for name in gateway_secrets() {
            command.env_remove(name);
        }
        let home = self.prepare(&mut command)?;
        command.args(self.args);
        let child = tokio::process::Command::from(command).spawn().with_context(|| {
            format!("cannot start {} (is it installed and on the path?)", program.display())
        });
        let status = match child {
            Ok(child) => signals.wait(child).await.context("cannot wait for the agent"),
            Err(error) => Err(error),
        };
        drop(home);
        Ok(ExitCode::from(exit_code(status?)))
    }

    /// Sets the agent's environment; gives what must stay until it has ended.
    fn prepare(&self, command: &mut Command) -> Result<Option<Home>> {
        let Self { url, key, .. } = self;
        match self.agent {
            Agent::Claude => {
                command
                    .env("ANTHROPIC_BASE_URL", url)
                    .env("ANTHROPIC_AUTH_TOKEN", key)
                    .env_remove("ANTHROPIC_API_KEY");
                if let Some(model) = self.model {
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
                    format!("model=\"{}\"", self.model.unwrap_or(CODEX_MODEL)),
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
                if let Some(model) = self.model {
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
}

/// Variables with secrets of the gateway, which are of no use to an agent. `GEMINI_API_KEY` is not among
/// them: programs that the agent works on may need it.
fn gateway_secrets() -> impl Iterator<Item = &'static str> {
    let secrets = SETTINGS.iter().filter(|setting| setting.secret);
    let names = secrets.flat_map(|setting| setting.env.iter().copied());
    names.filter(|name| name.starts_with("TOOLGATE_"))
}

/// The agent's own code, or 128 and the signal that ended it, as shells have it.
fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

/// Signals that would end this process before it has cleaned up.
#[derive(Debug)]
pub(crate) struct Signals {
    hangup: unix::Signal,
    interrupt: unix::Signal,
    terminate: unix::Signal,
}

impl Signals {
    pub(crate) fn listen() -> std::io::Result<Self> {
        Ok(Self {
            hangup: signal(SignalKind::hangup())?,
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Waits for the next signal.
    pub(crate) async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.hangup.recv() => Signal::HUP,
            _ = self.interrupt.recv() => Signal::INT,
            _ = self.terminate.recv() => Signal::TERM,
        }
    }

    /// Waits for a process, and passes signals on to it.
    async fn wait(&mut self, mut child: Child) -> std::io::Result<ExitStatus> {
        // A terminal interrupts the whole foreground group: the process has that signal already.
        let has_terminal = std::io::stdin().is_terminal();
        loop {
            let signal = tokio::select! {
                status = child.wait() => return status,
                signal = self.next() => signal,
            };
            let pid = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
            if let Some(pid) = pid
                && !(has_terminal && signal == Signal::INT)
            {
                // It may have ended in this moment.
                let _ = kill_process(pid, signal);
            }
        }
    }
}
