//! `toolgate check-tools`

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Files with tools in any dialect's form, or an MCP tools/list result; `-` for standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// For programs
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(_args: &Args) -> Result<ExitCode> {
    Ok(ExitCode::SUCCESS)
}
