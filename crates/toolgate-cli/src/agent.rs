//! Process of an agent: its settings, signals and exit code.

use std::io::IsTerminal as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};

use anyhow::{Context as _, Result};
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::Child;
use tokio::signal::unix::{self, SignalKind, signal};
use toolgate_gateway::config::{Config, SETTINGS};

use crate::codex_models::Catalogue;
use crate::configuration::{variable, warn};
use crate::gemini_home::{self, Home};
use crate::models::{self, CLAUDE_FAMILIES, CONTEXT_WINDOW, display_name};

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum Agent {
    /// Claude Code
    Claude,
    /// Codex
    Codex,
    /// Gemini CLI
    Gemini,
}

/// Model that Codex asks for, unless told otherwise.
const CODEX_MODEL: &str = "gemini-3.6-flash";
/// Variable with the model that Claude Code asks for.
const CLAUDE_MODEL_VARIABLE: &str = "ANTHROPIC_MODEL";

/// Settings of an agent's run.
#[derive(Debug)]
pub(crate) struct Launch<'a> {
    pub(crate) agent: Agent,
    /// Configuration of the gateway.
    pub(crate) config: &'a Config,
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

    /// Describes the models that the agent asks for.
    pub(crate) fn models(self, config: &Config, model: Option<&str>) -> String {
        match (self, model) {
            (_, Some(model)) => model.to_owned(),
            (Self::Codex, None) => CODEX_MODEL.to_owned(),
            (Self::Gemini, None) => "as Gemini CLI chooses".to_owned(),
            (Self::Claude, None) => {
                if let Some(model) = variable(CLAUDE_MODEL_VARIABLE) {
                    return model;
                }
                let families = CLAUDE_FAMILIES.iter().take(3).map(|(family, example)| {
                    let model = config.models.meaning(example).model;
                    format!("{model} ({})", family.to_lowercase())
                });
                families.collect::<Vec<_>>().join(", ")
            }
        }
    }
}

/// Files that exist for one run and are removed when dropped.
#[derive(Debug)]
#[expect(dead_code, reason = "only dropped")]
enum Files {
    None,
    GeminiHome(Home),
    CodexModels(Catalogue),
}

impl Launch<'_> {
    /// Runs the agent to its end. Signals are passed on to it, so that its temporary files are removed
    /// after it, also when the terminal is closed.
    pub(crate) async fn run(&self, signals: &mut Signals) -> Result<ExitCode> {
        let program = self.program.map_or_else(|| PathBuf::from(self.agent.name()), Path::to_owned);
        let mut command = Command::new(&program);
        for name in gateway_secrets() {
            command.env_remove(name);
        }
        let files = match self.agent {
            Agent::Claude => self.prepare_claude(&mut command),
            Agent::Codex => self.prepare_codex(&program, &mut command).await,
            Agent::Gemini => self.prepare_gemini(&mut command)?,
        };
        command.args(self.args);
        let child = tokio::process::Command::from(command).spawn().with_context(|| {
            format!("cannot start {} (is it installed and on the path?)", program.display())
        });
        let status = match child {
            Ok(child) => signals.wait(child).await.context("cannot wait for the agent"),
            Err(error) => Err(error),
        };
        drop(files);
        Ok(ExitCode::from(exit_code(status?)))
    }

    /// Sets the environment of Claude Code. Its model picker shows the Gemini models by name.
    fn prepare_claude(&self, command: &mut Command) -> Files {
        command
            .env("ANTHROPIC_BASE_URL", self.url)
            .env("ANTHROPIC_AUTH_TOKEN", self.key)
            .env_remove("ANTHROPIC_API_KEY");
        if let Some(model) = self.model {
            command.env(CLAUDE_MODEL_VARIABLE, with_long_context(model));
        }
        for (family, example) in CLAUDE_FAMILIES {
            let variable_name = format!("ANTHROPIC_DEFAULT_{family}_MODEL");
            let Some(model) = models::of_family(self.config, example) else { continue };
            if variable(&variable_name).is_none() {
                command
                    .env(format!("{variable_name}_NAME"), display_name(&model))
                    .env(format!("{variable_name}_DESCRIPTION"), format!("{model}, by toolgate"))
                    .env(variable_name, with_long_context(&model));
            }
        }
        Files::None
    }

    /// Sets Codex's settings on the command line, which leaves the user's own file as it is.
    async fn prepare_codex(&self, program: &Path, command: &mut Command) -> Files {
        let url = self.url;
        let model = self.model.unwrap_or(CODEX_MODEL);
        let mut settings = vec![
            "model_provider=\"toolgate\"".to_owned(),
            "model_providers.toolgate.name=\"toolgate\"".to_owned(),
            format!("model_providers.toolgate.base_url=\"{url}/v1\""),
            "model_providers.toolgate.wire_api=\"responses\"".to_owned(),
            "model_providers.toolgate.env_key=\"TOOLGATE_CLIENT_KEY\"".to_owned(),
            format!("model=\"{model}\""),
        ];
        let catalogue = Catalogue::make(program, &models::offered(self.config, model)).await;
        match &catalogue {
            Ok(catalogue) => {
                settings
                    .push(format!("model_catalog_json={:?}", catalogue.path.display().to_string()));
            }
            Err(error) => {
                warn(&format!("Codex has no description of the model, and fewer tools: {error:#}"));
                // Without a description it compacts a session early.
                settings.push(format!("model_context_window={CONTEXT_WINDOW}"));
            }
        }
        for setting in settings {
            command.arg("-c").arg(setting);
        }
        command.env("TOOLGATE_CLIENT_KEY", self.key);
        catalogue.map_or(Files::None, Files::CodexModels)
    }

    /// Sets the environment of Gemini CLI, with a home in which it uses an API key.
    fn prepare_gemini(&self, command: &mut Command) -> Result<Files> {
        command.env("GEMINI_API_KEY", self.key).env("GOOGLE_GEMINI_BASE_URL", self.url);
        if let Some(model) = self.model {
            command.arg("-m").arg(model);
        }
        let own = std::env::var_os("GEMINI_CLI_HOME").or_else(|| std::env::var_os("HOME"));
        let own = own.context("neither GEMINI_CLI_HOME nor HOME is set")?;
        let home = gemini_home::prepare(Path::new(&own))?;
        if let Some(home) = &home {
            command.env("GEMINI_CLI_HOME", &home.path);
        }
        Ok(home.map_or(Files::None, Files::GeminiHome))
    }
}

/// Marks a Gemini model with the context window of a million tokens, in Claude Code's notation.
fn with_long_context(model: &str) -> String {
    let is_marked = model.contains('[');
    if model.starts_with("gemini-") && !is_marked {
        format!("{model}[1m]")
    } else {
        model.to_owned()
    }
}

/// Names of variables with secrets of the gateway, which agents do not need. `GEMINI_API_KEY` is not among
/// them: programs that the agent works on may need it.
fn gateway_secrets() -> impl Iterator<Item = &'static str> {
    let secrets = SETTINGS.iter().filter(|setting| setting.secret);
    let names = secrets.flat_map(|setting| setting.env.iter().copied());
    names.filter(|name| name.starts_with("TOOLGATE_"))
}

/// Exit code of the agent, or 128 and the number of the signal that ended it, as in shells.
fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

/// Signals that are handled until the cleanup is done.
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
        // A terminal sends SIGINT to the whole foreground group, so the agent has it already.
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
                // The agent may have ended just now.
                let _ = kill_process(pid, signal);
            }
        }
    }
}
