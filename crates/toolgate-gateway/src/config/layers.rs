//! Layers of the configuration: file, environment, flags. The later layer wins.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use toml::{Table, Value};

use super::ConfigError;
use super::settings::{SETTINGS, Setting, find, nearest};

/// Longer times cannot be added to any clock.
const CENTURY: u64 = 100 * 365 * 24 * 3600;

/// A value and where it came from.
#[derive(Clone, Debug)]
pub(super) struct Written {
    pub(super) value: Value,
    pub(super) source: String,
    /// Folder of the file that holds it; relative paths start there.
    folder: Option<PathBuf>,
}

/// All that was written, by key.
#[derive(Clone, Debug, Default)]
pub(super) struct Layers(BTreeMap<&'static str, Written>);

impl Layers {
    /// The defaults.
    pub(super) fn defaults() -> Result<Self, ConfigError> {
        let mut layers = Self::default();
        for setting in SETTINGS.iter().filter(|setting| !setting.default.is_empty()) {
            let value = literal(setting.default).ok_or_else(|| ConfigError::Value {
                key: setting.key.to_owned(),
                source_name: "default".to_owned(),
                reason: "is not TOML".to_owned(),
            })?;
            layers.insert(setting, value, "default");
        }
        Ok(layers)
    }

    fn insert(&mut self, setting: &Setting, value: Value, source: &str) {
        self.0.insert(setting.key, Written { value, source: source.to_owned(), folder: None });
    }

    /// Adds a file's text.
    pub(super) fn file(&mut self, name: &str, text: &str) -> Result<(), ConfigError> {
        let table: Table = toml::from_str(text).map_err(|error| ConfigError::Syntax {
            file: name.to_owned(),
            reason: error.to_string().trim_end().to_owned(),
        })?;
        self.table(name, "", table)
    }

    fn table(&mut self, file: &str, prefix: &str, table: Table) -> Result<(), ConfigError> {
        for (name, value) in table {
            let key = if prefix.is_empty() { name } else { format!("{prefix}.{name}") };
            match (find(&key), value) {
                (Some(setting), value) => {
                    let folder = Path::new(file).parent().map(Path::to_owned);
                    let written = Written { value, source: file.to_owned(), folder };
                    self.0.insert(setting.key, written);
                }
                (None, Value::Table(inner)) if is_section(&key) => self.table(file, &key, inner)?,
                (None, _) if is_section(&key) => {
                    let reason = format!("must be a section: [{key}]");
                    return Err(ConfigError::Value { key, source_name: file.to_owned(), reason });
                }
                (None, _) => {
                    return Err(ConfigError::Unknown {
                        file: file.to_owned(),
                        nearest: nearest(&key).map(str::to_owned),
                        key,
                    });
                }
            }
        }
        Ok(())
    }

    /// Adds the environment.
    pub(super) fn environment(&mut self, env: &dyn Fn(&str) -> Option<String>) {
        for setting in SETTINGS {
            let found = setting.env.iter().find_map(|name| {
                env(name).filter(|text| !text.is_empty()).map(|text| (*name, text))
            });
            if let Some((name, text)) = found {
                self.text(setting, name, &text);
            }
        }
    }

    /// Adds one flag.
    pub(super) fn flag(&mut self, key: &str, name: &str, text: &str) {
        if let Some(setting) = find(key) {
            self.text(setting, name, text);
        }
    }

    fn text(&mut self, setting: &Setting, source: &str, text: &str) {
        let like = literal(setting.default).or_else(|| literal(setting.example));
        let value = match like {
            Some(Value::Array(_)) => Value::Array(
                text.split(',')
                    .map(str::trim)
                    .filter(|item| !item.is_empty())
                    .map(|item| Value::String(item.to_owned()))
                    .collect(),
            ),
            Some(Value::Boolean(_)) => match text.to_ascii_lowercase().as_str() {
                "1" | "true" | "yes" | "on" => Value::Boolean(true),
                "0" | "false" | "no" | "off" => Value::Boolean(false),
                _ => Value::String(text.to_owned()),
            },
            Some(Value::Integer(_)) => {
                text.parse().map_or_else(|_| Value::String(text.to_owned()), Value::Integer)
            }
            _ => Value::String(text.to_owned()),
        };
        self.insert(setting, value, source);
    }

    pub(super) fn get(&self, key: &str) -> Option<&Written> {
        self.0.get(key)
    }

    /// Returns the path that the setting `key` means by `path`. Relative paths of a file start at
    /// the file's folder, others at the current one.
    pub(super) fn path(&self, key: &str, path: &str) -> PathBuf {
        let folder = self.get(key).and_then(|written| written.folder.as_deref());
        folder.map_or_else(|| PathBuf::from(path), |folder| folder.join(path))
    }

    /// Keys that were set, with the name of the file, variable or flag that set them.
    pub(super) fn sources(&self) -> BTreeMap<&'static str, String> {
        let set = self.0.iter().filter(|(_, written)| written.source != "default");
        set.map(|(key, written)| (*key, written.source.clone())).collect()
    }

    fn wrong(&self, key: &str, reason: &str) -> ConfigError {
        ConfigError::Value {
            key: key.to_owned(),
            source_name: self.get(key).map_or_else(String::new, |written| written.source.clone()),
            reason: reason.to_owned(),
        }
    }

    pub(super) fn string(&self, key: &str) -> Result<Option<String>, ConfigError> {
        match self.get(key).map(|written| &written.value) {
            None => Ok(None),
            Some(Value::String(text)) if text.is_empty() => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(self.wrong(key, "must be a string")),
        }
    }

    pub(super) fn boolean(&self, key: &str) -> Result<bool, ConfigError> {
        match self.get(key).map(|written| &written.value) {
            Some(Value::Boolean(value)) => Ok(*value),
            _ => Err(self.wrong(key, "must be true or false")),
        }
    }

    pub(super) fn number(&self, key: &str) -> Result<u64, ConfigError> {
        match self.get(key).map(|written| &written.value) {
            Some(Value::Integer(value)) => {
                let value =
                    u64::try_from(*value).map_err(|_| self.wrong(key, "must not be negative"))?;
                let (min, max) = find(key).and_then(|it| it.range).unwrap_or((0, u64::MAX));
                if (min..=max).contains(&value) {
                    return Ok(value);
                }
                Err(self.wrong(key, &format!("must be from {min} to {max}")))
            }
            _ => Err(self.wrong(key, "must be a whole number")),
        }
    }

    /// A time in the unit that the key names.
    pub(super) fn time(&self, key: &str) -> Result<Duration, ConfigError> {
        let unit = if key.ends_with("_minutes") { 60 } else { 1 };
        let seconds = self.number(key)?.checked_mul(unit).filter(|seconds| *seconds <= CENTURY);
        let seconds = seconds.ok_or_else(|| self.wrong(key, "must be at most a hundred years"))?;
        Ok(Duration::from_secs(seconds))
    }

    pub(super) fn strings(&self, key: &str) -> Result<Vec<String>, ConfigError> {
        let values = match self.get(key).map(|written| &written.value) {
            None => return Ok(Vec::new()),
            Some(Value::Array(values)) => values,
            Some(_) => return Err(self.wrong(key, "must be a list of strings")),
        };
        values
            .iter()
            .map(|value| {
                let text = value.as_str().filter(|text| !text.is_empty());
                text.map(str::to_owned).ok_or_else(|| self.wrong(key, "must be a list of strings"))
            })
            .collect()
    }

    /// The members of a table, keys and values as TOML.
    pub(super) fn table_of(&self, key: &str) -> Vec<(String, String)> {
        let table = self.get(key).and_then(|written| written.value.as_table());
        let shown = |(key, value): (&String, &Value)| {
            (Value::String(key.clone()).to_string(), value.to_string())
        };
        table.map(|table| table.iter().map(shown).collect()).unwrap_or_default()
    }

    /// The value as it may be shown: secrets only as "set".
    pub(super) fn shown(&self, setting: &Setting) -> Option<(String, String)> {
        let written = self.get(setting.key)?;
        let value = match (&written.value, setting.secret) {
            (Value::Array(keys), true) if keys.is_empty() => "[]".to_owned(),
            (Value::Array(keys), true) => format!("[\"… {} set\"]", keys.len()),
            (_, true) => "\"… set\"".to_owned(),
            (Value::String(text), false) => Value::String(without_userinfo(text)).to_string(),
            (value, false) => value.to_string(),
        };
        Some((value, written.source.clone()))
    }
}

/// An address without the name and the password that it may hold.
fn without_userinfo(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    // Whatever stands before the last @ may be a password, even one with a slash in it.
    match rest.rsplit_once('@') {
        Some((_, place)) => format!("{scheme}://…@{place}"),
        None => text.to_owned(),
    }
}

/// Reads one TOML value.
pub(super) fn literal(text: &str) -> Option<Value> {
    if text.is_empty() {
        return None;
    }
    toml::from_str::<Table>(&format!("v = {text}")).ok()?.remove("v")
}

fn is_section(key: &str) -> bool {
    SETTINGS
        .iter()
        .any(|setting| setting.key.strip_prefix(key).is_some_and(|rest| rest.starts_with('.')))
}
