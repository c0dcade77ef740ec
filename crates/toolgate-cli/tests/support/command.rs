//! The binary in a home of its own.
#![allow(
    dead_code,
    clippy::allow_attributes,
    clippy::panic,
    clippy::unwrap_used,
    reason = "each test file uses a part of it, and a test may fail"
)]

use std::fs::{self, Permissions};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// A key in the form of Google's.
pub(crate) const GEMINI_KEY: &str = "AIza-the-users-own-key";

/// A home with an empty folder to work in; gone when dropped.
pub(crate) struct Home(PathBuf);

impl Home {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("toolgate-home-{}-{number}", std::process::id());
        let home = std::env::temp_dir().join(name);
        fs::create_dir_all(home.join("work")).unwrap();
        Self(home)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Writes a file, with its folders.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// Writes a program that stands for an agent.
    pub(crate) fn agent(&self, script: &str) -> String {
        let path = self.write("agent", &format!("#!/bin/sh\n{script}\n"));
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// The binary with these arguments, in the home's working folder, without other settings.
    pub(crate) fn command(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_toolgate"));
        command
            .args(arguments)
            .current_dir(self.path("work"))
            .env_clear()
            .env("HOME", &self.0)
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("TMPDIR", self.path("work"))
            .envs(variables.iter().copied());
        command
    }

    pub(crate) fn output(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
        self.command(arguments, variables).output().unwrap()
    }

    /// Starts a command that listens, on a port that the system chooses.
    pub(crate) fn start(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Server {
        let mut command = self.command(arguments, variables);
        command.args(["--listen", "127.0.0.1:0"]).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().rsplit_once("http://").map(|(_, address)| address.to_owned());
        Server { address: address.unwrap(), log: process.stderr.take(), process }
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A command of the binary that listens; it ends with the test.
pub(crate) struct Server {
    pub(crate) address: String,
    pub(crate) process: Child,
    log: Option<ChildStderr>,
}

impl Server {
    pub(crate) fn signal(&self, signal: Signal) {
        send_signal(&self.process, signal);
    }

    /// Ends it, and returns its standard error.
    pub(crate) fn end(mut self) -> String {
        self.signal(Signal::TERM);
        self.process.wait().unwrap();
        let mut log = String::new();
        self.log.take().unwrap().read_to_string(&mut log).unwrap();
        log
    }

    /// Returns the status of a request for the list of models.
    pub(crate) fn models(&self, headers: &str) -> u16 {
        status(&self.address, &format!("GET /v1/models HTTP/1.1\r\n{headers}"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub(crate) fn send_signal(process: &Child, signal: Signal) {
    kill_process(Pid::from_raw(process.id().cast_signed()).unwrap(), signal).unwrap();
}

/// Sends a request with these first lines; returns the whole answer.
pub(crate) fn ask(address: &str, head: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    let host = if head.contains("host:") { String::new() } else { format!("host: {address}\r\n") };
    let text = format!(
        "{}\r\n{host}content-length: {length}\r\nconnection: close\r\n\r\n{body}",
        head.trim_end()
    );
    stream.write_all(text.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

pub(crate) fn status(address: &str, head: &str) -> u16 {
    let answer = ask(address, head, "");
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

/// Waits for a condition that is bound to come about; fails after more looks than slow machines need.
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    for _ in 0..6000 {
        if let Some(found) = look() {
            return found;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("{what}");
}

/// The text of a file that a process writes, once its first line is whole.
pub(crate) fn written(path: &Path) -> String {
    until("the file is not written", || {
        fs::read_to_string(path).ok().filter(|text| text.ends_with('\n'))
    })
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}
