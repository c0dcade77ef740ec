//! The log: for people, or for machines. An entry is a line, whatever a client put into it.

use std::io::{self, IsTerminal as _, Stderr, Write};

use tracing_subscriber::EnvFilter;

use crate::config::{Config, LogFormat};

/// Sends the log to standard error. The second call in a process changes nothing.
pub fn start_log(config: &Config) {
    let filter = EnvFilter::try_new(&config.log).unwrap_or_else(|_| EnvFilter::new("info"));
    let colours = io::stderr().is_terminal();
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(move || Lines { out: io::stderr(), colours })
        .with_ansi(colours);
    let _ = match config.log_format {
        LogFormat::Json => log.json().flatten_event(true).try_init(),
        LogFormat::Text => log.compact().with_target(false).try_init(),
    };
}

/// Standard error, which gets an entry at a time. A model, a tool or a path may have any name: a line
/// break in it is shown, not made, so that nobody can write entries of their own; and so is whatever else
/// would tell a terminal what to do.
struct Lines {
    out: Stderr,
    /// The entries' own colours.
    colours: bool,
}

impl Write for Lines {
    fn write(&mut self, entry: &[u8]) -> io::Result<usize> {
        let text = entry.strip_suffix(b"\n").unwrap_or(entry);
        if !text.iter().any(u8::is_ascii_control) {
            self.out.write_all(entry)?;
            return Ok(entry.len());
        }
        let mut line = Vec::with_capacity(entry.len() + 16);
        for (at, byte) in text.iter().enumerate() {
            if !byte.is_ascii_control() || (self.colours && is_colour(&text[at..])) {
                line.push(*byte);
            } else {
                line.extend(byte.escape_ascii());
            }
        }
        line.extend_from_slice(&entry[text.len()..]);
        self.out.write_all(&line)?;
        Ok(entry.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Whether a text begins with a change of colour: `\x1b[3m`.
fn is_colour(text: &[u8]) -> bool {
    let rest = text.strip_prefix(b"\x1b[").unwrap_or_default();
    rest.iter().find(|byte| !matches!(byte, b'0'..=b'9' | b';')) == Some(&b'm')
}
