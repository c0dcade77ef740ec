//! The `toolgate` binary.

use std::io::Write as _;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod agent;
mod banner;
mod check_tools;
mod configuration;
mod gateway;
mod gemini_home;
mod memory;
mod run;
mod serve;
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
    /// Say what Gemini will make of these tools
    CheckTools(check_tools::Args),
    /// Start a coding agent on the gateway
    Run(run::Args),
    /// Run the gateway
    Serve(serve::Args),
    /// Run the simulator: a strict Gemini without Google
    Sim(sim::Args),
    /// Translate one body or recorded stream between dialects, from standard input
    #[command(subcommand)]
    Translate(translate::Args),
}

fn main() -> ExitCode {
    memory::prepare();
    let cli = Cli::parse();
    let done = match &cli.command {
        Command::CheckTools(args) => check_tools::run(args),
        Command::Run(args) => run::run(args),
        Command::Serve(args) => serve::run(args),
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
