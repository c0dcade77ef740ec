//! Real clients: builds the binary, and starts the programs that install and run them.

use std::process::Command;

use crate::command::{cargo, exists, need, root, run, target_dir};
use crate::run::Verdict;

/// Runs the lab; its options are those of `python3 clients/lab`.
pub(crate) fn clients(options: &[&str]) -> anyhow::Result<Verdict> {
    start("clients/lab", options)
}

/// Runs the SDKs that let the gateway keep state for them.
pub(crate) fn state() -> anyhow::Result<Verdict> {
    start("clients/lab/state.py", &[])
}

/// Runs google-genai and @google/genai, as released, on `toolgate sim`.
pub(crate) fn genai() -> anyhow::Result<Verdict> {
    start("clients/sim", &[])
}

fn start(program: &str, options: &[&str]) -> anyhow::Result<Verdict> {
    need("python3", "python3")?;
    need("npm", "npm")?;
    if !exists(Command::new("python3").args(["-c", "import ensurepip"])) {
        need("python3-venv", "python3-venv")?;
    }
    run(cargo().args(["build", "--package", "toolgate-cli", "--locked"]))?;
    let binary = target_dir().join("debug").join("toolgate");
    let mut command = Command::new("python3");
    command.current_dir(root()).args([program, "--binary"]).arg(binary).args(options);
    run(&mut command)
}
