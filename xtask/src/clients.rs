//! Real clients: builds the binary and starts the programs that install and run them.

use std::process::Command;

use crate::command::{cargo, exists, need, root, run, target_dir};
use crate::run::Verdict;

/// Runs the client lab with the options of `python3 clients/lab`.
pub(crate) fn clients(options: &[&str]) -> anyhow::Result<Verdict> {
    run(cargo()
        .args(["build", "--locked", "--package", "toolgate-cli", "--package", "toolgate-testing"])
        .args(["--bin", "toolgate", "--example", "grammar"]))?;
    start("clients/lab", options)
}

/// Runs SDKs with state stored by the gateway.
pub(crate) fn state() -> anyhow::Result<Verdict> {
    build_for_tests()?;
    start("clients/lab/state.py", &[])
}

/// Runs every client in the scenarios that find most defects.
pub(crate) fn selected() -> anyhow::Result<Verdict> {
    build_for_tests()?;
    start("clients/lab", &[])
}

/// Runs coding agents without a key, as `toolgate run` starts them.
pub(crate) fn launch() -> anyhow::Result<Verdict> {
    build_for_tests()?;
    start("clients/lab/launch.py", &[])
}

/// Runs the released google-genai and @google/genai on `toolgate sim`.
pub(crate) fn genai() -> anyhow::Result<Verdict> {
    build_for_tests()?;
    start("clients/sim", &[])
}

/// Validates every golden answer against the schema in its vendor's SDK.
pub(crate) fn schemas() -> anyhow::Result<Verdict> {
    need("python3", "python3")?;
    need("npm", "npm")?;
    run(Command::new("python3").current_dir(root()).arg("clients/schemas"))
}

/// Builds the same packages as the tests: another selection would have other Cargo features and
/// compile everything again. The tests of the binary depend on it, so it is built too.
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
