//! `toolgate check-tools`: how Gemini will see a set of tools.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use toolgate_core::schema::Emit;
use toolgate_core::schema::report::{Options, Report, check, json_for_terminal, render};
use toolgate_core::upstream::generate_content::alias;

#[derive(Debug, clap::Args)]
pub(crate) struct CheckToolsArgs {
    /// Files with tools in any dialect's form, or an MCP tools/list result; `-` for standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print a JSON list with one report per file
    #[arg(long)]
    json: bool,
    /// Form of schema that the target accepts
    #[arg(long, default_value = "json-schema")]
    schema: Form,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Form {
    /// `parametersJsonSchema`, as toolgate sends it by default
    JsonSchema,
    /// `parameters` of the Gemini Developer API
    Parameters,
    /// `parameters` of Vertex AI
    ParametersVertex,
}

pub(crate) fn run(args: &CheckToolsArgs) -> Result<ExitCode> {
    let emit = match args.schema {
        Form::JsonSchema => Emit::JsonSchema,
        Form::Parameters => Emit::ParametersDeveloper,
        Form::ParametersVertex => Emit::ParametersVertex,
    };
    let options = Options { emit, rename: Some(&alias) };
    let mut reports: Vec<Report> = Vec::new();
    for path in &args.files {
        let text = read(path).with_context(|| format!("cannot read {}", path.display()))?;
        let name =
            if is_stdin(path) { "standard input".to_owned() } else { path.display().to_string() };
        reports.push(check(&name, &text, &options));
    }
    let mut stdout = std::io::stdout().lock();
    if args.json {
        writeln!(stdout, "{}", json_for_terminal(&serde_json::to_string_pretty(&reports)?))?;
    } else {
        for report in &reports {
            stdout.write_all(render(report).as_bytes())?;
        }
    }
    let refused = reports.iter().any(Report::is_refused);
    Ok(if refused { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

fn read(path: &Path) -> std::io::Result<String> {
    if !is_stdin(path) {
        return std::fs::read_to_string(path);
    }
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    Ok(text)
}
