//! Python environments.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::{exists, need, run, target_dir};
use crate::run::Verdict;

/// Returns the Python of the virtual environment `name`, with the packages of a requirements file.
pub(crate) fn with_packages(name: &str, requirements: &Path) -> anyhow::Result<PathBuf> {
    need("python3", "python3")?;
    let folder = target_dir().join("python").join(name);
    let python = folder.join("bin").join("python");
    if !exists(Command::new(&python).args(["-m", "pip", "--version"])) {
        if !exists(Command::new("python3").args(["-c", "import ensurepip"])) {
            need("python3-venv", "python3-venv")?;
        }
        run(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    }
    run(Command::new(&python)
        .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"])
        .arg(requirements))?;
    Ok(python)
}

/// Builds the package in `folder` with the setuptools of an environment and installs it there,
/// without its dependencies.
pub(crate) fn install(python: &Path, folder: &Path) -> anyhow::Result<Verdict> {
    run(Command::new(python)
        .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"])
        .args(["--no-build-isolation", "--force-reinstall"])
        .arg(folder))
}
