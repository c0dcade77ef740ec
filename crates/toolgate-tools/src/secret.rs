//! Secrets by reference: a variable of the environment or a file.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::str::FromStr;

use serde::Deserialize;

/// Longest secret.
const MAX_SECRET_BYTES: u64 = 64 * 1024;

/// Reference to a secret: `env:NAME` or `file:/path`. It is read when it is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Secret {
    /// A variable of the environment.
    Env(String),
    /// A file; white space at its end is not part of the secret.
    File(PathBuf),
}

/// A text that is no reference to a secret. The text itself is not shown: it may be one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a secret is given by reference: `env:NAME` or `file:/path`")]
pub struct SecretError;

impl FromStr for Secret {
    type Err = SecretError;

    fn from_str(text: &str) -> Result<Self, SecretError> {
        match text.split_once(':') {
            Some(("env", name)) if !name.is_empty() => Ok(Self::Env(name.to_owned())),
            Some(("file", path)) if !path.is_empty() => Ok(Self::File(path.into())),
            _ => Err(SecretError),
        }
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl Secret {
    /// Reads the secret.
    ///
    /// # Errors
    /// Fails if the variable or the file is missing, or its content is no text.
    pub fn read(&self) -> io::Result<String> {
        let missing = |what: fmt::Arguments<'_>| {
            io::Error::new(io::ErrorKind::NotFound, format!("secret {what} cannot be read"))
        };
        match self {
            Self::Env(name) => std::env::var(name).map_err(|_| missing(format_args!("env:{name}"))),
            Self::File(path) => {
                use std::io::Read as _;
                let missing = |_| missing(format_args!("file:{}", path.display()));
                let mut text = String::new();
                std::fs::File::open(path)
                    .map_err(missing)?
                    .take(MAX_SECRET_BYTES)
                    .read_to_string(&mut text)
                    .map_err(missing)?;
                text.truncate(text.trim_end().len());
                Ok(text)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_references() {
        assert_eq!("env:KEY".parse(), Ok(Secret::Env("KEY".to_owned())));
        assert_eq!("file:/run/k".parse(), Ok(Secret::File("/run/k".into())));
        for literal in ["sk-1234", "env:", "ENV:KEY", ""] {
            let error = literal.parse::<Secret>().unwrap_err().to_string();
            assert!(literal.is_empty() || !error.contains("1234"), "{error}");
        }
        assert!(Secret::File("/nonexistent/secret".into()).read().is_err());
    }
}
