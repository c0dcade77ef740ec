//! The example file and `--print-config`, written from the list of settings.

use std::fmt::Write as _;

use super::layers::Layers;
use super::settings::{MAX_MINUTES, SETTINGS, Setting};

/// The one setting that is a table with keys of the user's own.
const MODELS: &str = "models";

/// A commented `toolgate.toml` with the purpose and the default of every setting.
pub fn example() -> String {
    let mut text = String::from(
        "# Every setting of toolgate.toml with its default. Variables and flags weigh more than this file.\n\
         # Read from --config FILE, else $TOOLGATE_CONFIG, else ~/.config/toolgate/toolgate.toml.\n",
    );
    sections(&mut text, |text, setting, name| {
        for line in setting.doc.lines() {
            let _ = writeln!(text, "# {}", line.trim());
        }
        let _ = match setting.range {
            // The limits of clocks are of no interest.
            Some((0, max)) if max >= MAX_MINUTES => Ok(()),
            Some((min, max)) if max >= MAX_MINUTES => writeln!(text, "# At least {min}."),
            Some((min, max)) => writeln!(text, "# From {min} to {max}."),
            None => Ok(()),
        };
        if let [first, rest @ ..] = setting.env {
            let also: String = rest.iter().map(|name| format!(", {name}")).collect();
            let _ = writeln!(text, "# Variable: {first}{also}");
        }
        let value = if setting.default.is_empty() { setting.example } else { setting.default };
        let _ = match setting.key {
            MODELS => writeln!(text, "# {}", value.trim_matches(['{', '}', ' '])),
            _ => writeln!(text, "# {name} = {value}"),
        };
    });
    text
}

/// The resolved settings with where each came from; secrets are not shown.
pub(super) fn printed(layers: &Layers) -> String {
    let mut text = String::new();
    sections(&mut text, |text, setting, name| {
        let _ = match layers.shown(setting) {
            Some((_, source)) if setting.key == MODELS => {
                for (pattern, meaning) in layers.table_of(MODELS) {
                    let _ = writeln!(text, "{pattern} = {meaning}  # {source}");
                }
                Ok(())
            }
            Some((value, source)) => writeln!(text, "{name} = {value}  # {source}"),
            None if setting.key == MODELS => Ok(()),
            None => writeln!(text, "# {name} is not set"),
        };
    });
    text
}

fn sections(text: &mut String, mut write: impl FnMut(&mut String, &Setting, &str)) {
    let mut section = "";
    for setting in SETTINGS {
        let (here, name) = match setting.key {
            MODELS => (MODELS, ""),
            key => key.rsplit_once('.').unwrap_or(("", key)),
        };
        if here != section {
            section = here;
            let _ = write!(text, "\n[{section}]\n");
        } else if !text.is_empty() {
            text.push('\n');
        }
        write(text, setting, name);
    }
}
