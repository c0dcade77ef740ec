//! `toolgate setup CLIENT`: the settings with which a client uses the gateway.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;

use anyhow::{Result, bail};
use serde_json::{Map, Value, json};

use crate::configuration::load;
use crate::setup_table::{CLIENTS, Setup};

/// Model in the settings, unless the user names another.
const DEFAULT_MODEL: &str = "gemini-3.6-flash";
/// Key in the settings, unless the user names another.
const DEFAULT_KEY: &str = "YOUR-KEY";

#[derive(Debug, clap::Args)]
pub(crate) struct SetupArgs {
    /// Client; without one, the known clients are listed
    client: Option<String>,
    /// Model that the client asks for
    #[arg(long, value_name = "MODEL", default_value = DEFAULT_MODEL)]
    model: String,
    /// Address of the gateway [default: the configured one]
    #[arg(long, value_name = "URL")]
    gateway: Option<String>,
    /// Key that the client presents; a gateway on the simulator takes any
    #[arg(long, value_name = "KEY", default_value = DEFAULT_KEY)]
    key: String,
    /// Print a JSON object for programs
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &SetupArgs) -> Result<ExitCode> {
    let mut stdout = std::io::stdout();
    let Some(name) = &args.client else {
        stdout.write_all(list().as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    };
    let Some(setup) = CLIENTS.iter().find(|setup| setup.name == name) else {
        bail!("no settings for {name:?}; `toolgate setup` lists the clients");
    };
    let url = match &args.gateway {
        Some(url) => url.trim_end_matches('/').to_owned(),
        None => format!("http://{}", load(None, &[])?.config.listen),
    };
    let values = [("{url}", url.as_str()), ("{model}", &args.model), ("{key}", &args.key)];
    let filled = setup.filled(&values);
    let text = if args.json { format!("{}\n", filled.to_json()) } else { filled.to_text() };
    stdout.write_all(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// Known clients with the APIs that they use.
fn list() -> String {
    let mut out = String::from("Settings are known for:\n\n");
    for setup in CLIENTS {
        let _ = writeln!(out, "  {:<22} {}", setup.name, setup.about);
    }
    out.push_str("\n  toolgate setup CLIENT [--model MODEL] [--gateway URL] [--key KEY]\n");
    out
}

/// Settings with an address, a model and a key in them.
struct Filled {
    about: &'static str,
    variables: Vec<(&'static str, String)>,
    files: Vec<(&'static str, String)>,
    code: String,
    command: String,
}

impl Setup {
    fn filled(&self, values: &[(&str, &str)]) -> Filled {
        let fill = |text: &str| {
            values.iter().fold(text.to_owned(), |text, (name, value)| text.replace(name, value))
        };
        let both = |pairs: &'static [(&'static str, &'static str)]| {
            pairs.iter().map(|(name, text)| (*name, fill(text))).collect()
        };
        Filled {
            about: self.about,
            variables: both(self.variables),
            files: both(self.files),
            code: fill(self.code),
            command: fill(self.command),
        }
    }
}

impl Filled {
    fn to_text(&self) -> String {
        let mut out = format!("# {}\n", self.about);
        for (path, content) in &self.files {
            let _ = write!(out, "\n# {path}\n{content}");
        }
        if !self.variables.is_empty() {
            out.push('\n');
        }
        for (name, value) in &self.variables {
            let _ = writeln!(out, "export {name}={value}");
        }
        for text in [&self.code, &self.command] {
            if !text.is_empty() {
                let _ = write!(out, "\n{}\n", text.trim_end());
            }
        }
        out
    }

    fn to_json(&self) -> Value {
        let object = |pairs: &[(&str, String)]| {
            let pairs = pairs.iter().map(|(name, text)| ((*name).to_owned(), json!(text)));
            pairs.collect::<Map<_, _>>()
        };
        json!({
            "variables": object(&self.variables),
            "files": object(&self.files),
            "code": self.code,
            "command": self.command,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_complete() {
        let values = [("{url}", "http://h:1"), ("{model}", "m"), ("{key}", "k")];
        for setup in CLIENTS {
            let filled = setup.filled(&values);
            let text = filled.to_text();
            assert!(text.contains("http://h:1"), "{}: {text}", setup.name);
            for (name, _) in values {
                assert!(!text.contains(name), "{}: {text}", setup.name);
            }
            let is_json = |path: &str| path.ends_with(".json");
            for (path, content) in filled.files.iter().filter(|(path, _)| is_json(path)) {
                assert!(serde_json::from_str::<Value>(content).is_ok(), "{path}: {content}");
            }
        }
        let mut names: Vec<_> = CLIENTS.iter().map(|setup| setup.name).collect();
        names.dedup();
        assert_eq!(names.len(), CLIENTS.len());
    }
}
