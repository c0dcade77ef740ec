//! Real clients on the gateway: builds it, and starts the lab.

use std::process::Command;

use crate::command::{cargo, root, run, target_dir};
use crate::run::Verdict;

/// Runs the lab; its options are those of `python3 clients/lab`.
pub(crate) fn clients(options: &[&str]) -> anyhow::Result<Verdict> {
    start("clients/lab", options)
}

/// Runs the SDKs that let the gateway keep state for them.
pub(crate) fn state() -> anyhow::Result<Verdict> {
    start("clients/lab/state.py", &[])
}

fn start(program: &str, options: &[&str]) -> anyhow::Result<Verdict> {
    run(cargo().args(["build", "--package", "toolgate-cli", "--locked"]))?;
    let binary = target_dir().join("debug").join("toolgate");
    let mut lab = Command::new("python3");
    lab.current_dir(root()).args([program, "--binary"]).arg(binary).args(options);
    run(&mut lab)
}
