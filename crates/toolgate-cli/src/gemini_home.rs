//! Temporary home for Gemini CLI in which API-key authentication is selected.
//!
//! Gemini CLI refuses a base URL without that selection, and only its settings file can make it. A
//! system-wide settings file must belong to root, so the run has a home of its own (`GEMINI_CLI_HOME`). It
//! links to everything in the user's folder except the settings, which are a copy. New files of the run
//! are copied to the user's folder at its end.

use std::fs::{self, DirBuilder};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, symlink};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::{Map, Value, json};

use crate::state::random_hex;

/// Folder of Gemini CLI in a home.
const FOLDER: &str = ".gemini";
const SETTINGS: &str = "settings.json";
/// Folders that outlive the run: sessions and undo history.
const KEPT: [&str; 2] = ["tmp", "history"];
/// Authentication type.
const KEY: &str = "gemini-api-key";

/// A home for one run, removed when dropped.
#[derive(Debug)]
pub(crate) struct Home {
    pub(crate) path: PathBuf,
    /// The user's own folder.
    own: PathBuf,
}

/// Creates a home for one run; `None` if the user's own has the right settings.
pub(crate) fn prepare(home: &Path) -> Result<Option<Home>> {
    let own = home.join(FOLDER);
    let settings = settings(&own);
    let chosen = settings.get("security").and_then(|it| it.get("auth")?.get("selectedType"));
    if chosen.and_then(Value::as_str) == Some(KEY) {
        return Ok(None);
    }
    let name = format!("toolgate-run-{}", random_hex()?);
    let new_home = std::env::temp_dir().join(name);
    // The settings may hold secrets, so the folder must be new and private.
    DirBuilder::new()
        .mode(0o700)
        .create(&new_home)
        .with_context(|| format!("cannot make {}", new_home.display()))?;
    let home = Home { path: new_home, own };
    let folder = home.path.join(FOLDER);
    fs::create_dir(&folder)?;
    link(&home.own, &folder).with_context(|| format!("cannot link to {}", home.own.display()))?;
    fs::write(folder.join(SETTINGS), with_key(settings).to_string())?;
    Ok(Some(home))
}

impl Drop for Home {
    fn drop(&mut self) {
        let folder = self.path.join(FOLDER);
        // The settings are a copy.
        let _ = fs::remove_file(folder.join(SETTINGS));
        if let Err(error) = bring_back(&folder, &self.own) {
            let (folder, own) = (folder.display(), self.own.display());
            let _ = writeln!(
                io::stderr(),
                "warning: {folder} is kept, not all of it could be copied to {own}: {error}"
            );
            return;
        }
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Copies new files to the user's own folder.
fn bring_back(folder: &Path, own: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let (kind, to) = (entry.file_type()?, own.join(entry.file_name()));
        if kind.is_file() {
            fs::copy(entry.path(), to)?;
        } else if kind.is_dir() {
            fs::create_dir_all(&to)?;
            bring_back(&entry.path(), &to)?;
        }
    }
    Ok(())
}

/// Returns the user's settings; empty if they cannot be read.
fn settings(folder: &Path) -> Map<String, Value> {
    let path = folder.join(SETTINGS);
    let Ok(text) = fs::read_to_string(&path) else { return Map::new() };
    serde_json::from_str(&text).unwrap_or_else(|error| {
        let path = path.display();
        let _ = writeln!(io::stderr(), "warning: {path} cannot be read and is ignored: {error}");
        Map::new()
    })
}

/// Returns the settings with API-key authentication.
fn with_key(mut settings: Map<String, Value>) -> Value {
    let mut inside = &mut settings;
    for name in ["security", "auth"] {
        let member = inside.entry(name).or_insert_with(|| json!({}));
        if !member.is_object() {
            *member = json!({});
        }
        let Value::Object(object) = member else { return json!({}) };
        inside = object;
    }
    inside.insert("selectedType".to_owned(), json!(KEY));
    Value::Object(settings)
}

/// Links to everything in the user's folder except the settings.
fn link(own: &Path, folder: &Path) -> io::Result<()> {
    for name in KEPT {
        fs::create_dir_all(own.join(name))?;
    }
    for entry in fs::read_dir(own)? {
        let entry = entry?;
        if entry.file_name() != SETTINGS {
            symlink(entry.path(), folder.join(entry.file_name()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_choice_is_made_and_nothing_else_changes() {
        let made = |json: Value| {
            let Value::Object(settings) = json else { panic!() };
            with_key(settings)
        };
        assert_eq!(made(json!({})), json!({"security": {"auth": {"selectedType": KEY}}}));
        assert_eq!(
            made(json!({"ui": 1, "security": {"a": 2, "auth": {"selectedType": "x", "b": 3}}})),
            json!({"ui": 1, "security": {"a": 2, "auth": {"selectedType": KEY, "b": 3}}})
        );
        assert_eq!(made(json!({"security": 1})), made(json!({})));
    }
}
