//! Search for the configuration file.
//!
//! `--config FILE`, then the variable `TOOLGATE_CONFIG`, then the file in the user's configuration
//! folder. A file in the current folder is never read by itself: a cloned repository could name an
//! upstream of its own there, which would get the user's keys and prompts.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use toolgate_gateway::config::{Config, Sources, user_config_file};

/// Variable that names the configuration file.
const CONFIG_VARIABLE: &str = "TOOLGATE_CONFIG";
/// Usual name of a configuration file.
const FILE_NAME: &str = "toolgate.toml";

/// A flag: key of the setting, name of the flag, value.
pub(crate) type Flag<'a> = (&'a str, &'a str, &'a str);

/// A configuration and the file that it was read from.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) config: Config,
    pub(crate) file: Option<PathBuf>,
}

/// Reads the file, the environment and flags.
pub(crate) fn load(named: Option<&Path>, flags: &[Flag<'_>]) -> Result<Loaded> {
    let file = find(named)?;
    let text = match &file {
        Some(path) => Some(
            std::fs::read_to_string(path)
                .with_context(|| format!("cannot read {}", path.display()))?,
        ),
        None => None,
    };
    let name = file.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
    let sources =
        Sources { file: text.as_deref().map(|text| (name.as_str(), text)), env: &variable, flags };
    Ok(Loaded { config: Config::resolve(&sources)?, file })
}

/// Returns the absolute path of the file to read.
pub(crate) fn find(named: Option<&Path>) -> Result<Option<PathBuf>> {
    if let Some(named) = named {
        let path = std::path::absolute(named);
        return Ok(Some(path.with_context(|| format!("cannot find {}", named.display()))?));
    }
    if let Some(named) = variable(CONFIG_VARIABLE).filter(|named| !named.is_empty()) {
        if !Path::new(&named).is_absolute() {
            bail!("{CONFIG_VARIABLE} must be an absolute path, not {named:?} (--config takes any)");
        }
        return Ok(Some(PathBuf::from(named)));
    }
    Ok(user_config_file(&variable).filter(|path| path.exists()))
}

/// Returns a warning about a file in the current folder that is not read.
pub(crate) fn ignored_file(read: Option<&Path>) -> Option<String> {
    let here = Path::new(FILE_NAME).canonicalize().ok()?;
    let read = read.and_then(|path| path.canonicalize().ok());
    (read.as_deref() != Some(&here)).then(|| {
        format!("{FILE_NAME} in the current folder is not read; to use it: --config {FILE_NAME}")
    })
}

/// Writes a warning to standard error.
pub(crate) fn warn(message: &str) {
    let _ = writeln!(std::io::stderr(), "warning: {message}");
}

/// Reads the environment.
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
