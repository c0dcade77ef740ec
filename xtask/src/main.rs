//! The repository's own commands; `cargo xtask help` lists them.
#![expect(clippy::print_stdout, reason = "a command prints to the terminal")]

mod checks;
mod clients;
mod command;
mod fuzz;
mod house;
mod language;
mod python;
mod run;
mod seeds;
mod source;

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::{Context as _, bail};

const HELP: &str = "\
cargo xtask test [--only NAME,…] [--skip NAME,…]   run all checks, or a selection
cargo xtask test --list                            list the checks
cargo xtask house                                  print crates, modules, lines, imports; check layers
cargo xtask language [CRATE…] [--lines] [--strict] count faults of language in comments
cargo xtask clients [NAME…] [--all]                run real clients on the gateway, in selected or all scenarios
cargo xtask fuzz [TARGET…] [--seconds N]           fuzz each target for N seconds (60)
cargo xtask bench [--quick]                        compare the gateway with a proxy that only copies bytes
cargo xtask bench sessions [--quick]               measure the cost of stored sessions: 100,000 conversations
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match dispatch(&arguments) {
        Ok(code) => code,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(arguments: &[&str]) -> anyhow::Result<ExitCode> {
    match arguments {
        ["test", "--list"] => {
            for check in checks::ALL {
                println!("{:<8}  {}", check.name, check.about);
            }
            Ok(ExitCode::SUCCESS)
        }
        ["test", options @ ..] => {
            Ok(run::run(&run::Selection::parse(options, checks::ALL)?, checks::ALL))
        }
        ["house"] => {
            house::house()?;
            Ok(ExitCode::SUCCESS)
        }
        ["language", options @ ..] => {
            language::language(options)?;
            Ok(ExitCode::SUCCESS)
        }
        ["clients", options @ ..] => {
            clients::clients(options)?;
            Ok(ExitCode::SUCCESS)
        }
        ["fuzz", options @ ..] => {
            let mut targets = Vec::new();
            let mut seconds = 60;
            let mut options = options.iter();
            while let Some(option) = options.next() {
                match *option {
                    "--seconds" => {
                        let value = options.next().context("--seconds needs a number")?;
                        seconds = value.parse().with_context(|| format!("--seconds {value}"))?;
                    }
                    flag if flag.starts_with('-') => bail!("unknown option `{flag}`\n\n{HELP}"),
                    target => targets.push(target),
                }
            }
            fuzz::fuzz(&targets, seconds)?;
            Ok(ExitCode::SUCCESS)
        }
        ["bench", options @ ..] => {
            let build =
                ["build", "--release", "--locked", "-p", "toolgate-cli", "-p", "toolgate-bench"];
            command::run(command::cargo().args(build))?;
            let release = command::target_dir().join("release");
            let mut bench = std::process::Command::new(release.join("toolgate-bench"));
            let (what, options) = match options {
                ["sessions", options @ ..] => ("sessions", options),
                options => ("run", options),
            };
            command::run(bench.arg(what).arg(release.join("toolgate")).args(options))?;
            Ok(ExitCode::SUCCESS)
        }
        ["help" | "--help" | "-h"] => {
            print!("{HELP}");
            Ok(ExitCode::SUCCESS)
        }
        [] => bail!("missing command\n\n{HELP}"),
        [other, ..] => bail!("unknown command `{other}`\n\n{HELP}"),
    }
}
