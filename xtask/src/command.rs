//! External commands.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};

use crate::run::Verdict;

/// Root folder of the repository.
pub(crate) fn root() -> PathBuf {
    let here = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    here.parent().map_or_else(|| here.clone(), PathBuf::from)
}

/// Build folder.
pub(crate) fn target_dir() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Command for the running cargo, in the repository.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// Runs a command to its end. Its output goes to the terminal.
pub(crate) fn run(command: &mut Command) -> anyhow::Result<Verdict> {
    let name = display(command);
    println!("$ {name}");
    let status = command.status().with_context(|| format!("cannot start `{name}`"))?;
    if !status.success() {
        bail!("`{name}` failed: {status}");
    }
    Ok(Verdict::Passed)
}

/// Whether a command runs and succeeds.
pub(crate) fn exists(command: &mut Command) -> bool {
    let silent = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    silent.status().is_ok_and(|status| status.success())
}

/// Installs a package of the distribution unless `program` is installed.
pub(crate) fn need(program: &str, package: &str) -> anyhow::Result<()> {
    if exists(Command::new(program).arg("--version")) {
        return Ok(());
    }
    println!("{program} not found; installing {package}");
    let as_root = exists(Command::new("sh").args(["-c", "test \"$(id -u)\" = 0"]));
    let apt = |arguments: &[&str]| {
        let mut command = Command::new(if as_root { "apt-get" } else { "sudo" });
        if !as_root {
            command.args(["--non-interactive", "apt-get"]);
        }
        run(command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive"))
    };
    apt(&["update", "--quiet"])
        .and_then(|_| apt(&["install", "--yes", "--no-install-recommends", package]))
        .with_context(|| format!("{program} is needed; install {package}"))?;
    Ok(())
}

fn display(command: &Command) -> String {
    let program = std::path::Path::new(command.get_program());
    let program = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let arguments = command.get_args().map(|argument| argument.to_string_lossy().into_owned());
    std::iter::once(program).chain(arguments).collect::<Vec<_>>().join(" ")
}
