//! `toolgate sim`

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Where to listen; port 0 lets the system choose
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8742")]
    listen: String,
    /// A script (TOML or JSON); without one the demo model answers
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
}

pub(crate) fn run(_args: &Args) -> Result<ExitCode> {
    Ok(ExitCode::SUCCESS)
}
