//! Real clients: builds the binary, and starts the programs that install and run them.

use std::process::Command;

use crate::command::{cargo, exists, need, root, run, target_dir};
use crate::run::Verdict;

/// Runs the lab; its options are those of `python3 clients/lab`.
pub(crate) fn clients(options: &[&str]) -> anyhow::Result<Verdict> {
    run(cargo()
        .args(["build", "--locked", "--package", "toolgate-cli", "--package", "toolgate-core"])
        .args(["--bin", "toolgate", "--example", "grammar"]))?;
    start("clients/lab", options)
}

/// Runs the SDKs that let the gateway keep state for them.
pub(crate) fn state() -> anyhow::Result<Verdict> {
    build_for_tests()?;
    start("clients/lab/state.py", &[])
}

/// Runs every client on the scenarios that find most.
pub(crate) fn thinned() -> anyhow::Result<Verdict> {
    build_for_tests()?;
    start("clients/lab", &[])
}

/// Runs google-genai and @google/genai, as released, on `toolgate sim`.
pub(crate) fn genai() -> anyhow::Result<Verdict> {
    build_for_tests()?;
    start("clients/sim", &[])
}

/// Builds what the tests have built: another selection of packages would have other features, and
/// compile everything once more. The tests of the binary see to it that the binary is among it.
fn build_for_tests() -> anyhow::Result<Verdict> {
    run(cargo().args(["test", "--workspace", "--locked", "--no-run", "--quiet"]))
}

fn start(program: &str, options: &[&str]) -> anyhow::Result<Verdict> {
    need("python3", "python3")?;
    need("npm", "npm")?;
    if !exists(Command::new("python3").args(["-c", "import ensurepip"])) {
        need("python3-venv", "python3-venv")?;
    }
    let binary = target_dir().join("debug").join("toolgate");
    let mut command = Command::new("python3");
    command.current_dir(root()).args([program, "--binary"]).arg(binary).args(options);
    run(&mut command)
}
