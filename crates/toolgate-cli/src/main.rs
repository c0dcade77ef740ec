//! The `toolgate` binary.

use std::io::Write as _;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod agent;
mod banner;
mod check_tools;
mod codex_models;
mod configuration;
mod gateway;
mod gemini_home;
mod memory;
mod models;
mod run;
mod serve;
mod setup;
mod setup_table;
mod sim;
mod state;
mod translate;

/// Lets every agent use its tools on Gemini.
#[derive(Debug, Parser)]
#[command(name = "toolgate", version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Report how Gemini will see a set of tools
    CheckTools(check_tools::CheckToolsArgs),
    /// Start a coding agent on the gateway
    Run(run::RunArgs),
    /// Run the gateway
    Serve(serve::ServeArgs),
    /// Print the settings of a client that uses the gateway; without a name, list the clients
    Setup(setup::SetupArgs),
    /// Run the simulator: a strict Gemini without Google
    Sim(sim::SimArgs),
    /// Translate one body or recorded stream between dialects, from standard input
    #[command(subcommand)]
    Translate(translate::TranslateArgs),
}

fn main() -> ExitCode {
    memory::prepare();
    let cli = Cli::parse();
    let done = match &cli.command {
        Command::CheckTools(args) => check_tools::run(args),
        Command::Run(args) => run::run(args),
        Command::Serve(args) => serve::run(args),
        Command::Setup(args) => setup::run(args),
        Command::Sim(args) => sim::run(args),
        Command::Translate(args) => translate::run(args),
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
