//! The binary as a process of its own, and a client for it.
#![allow(
    dead_code,
    clippy::allow_attributes,
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "each test file uses a part of it, and a test may fail"
)]

use std::ffi::OsStr;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

/// `toolgate serve`, before some upstream.
pub(crate) struct Gateway {
    pub(crate) url: String,
    child: Child,
}

/// A client that keeps its connections, as SDKs do.
pub(crate) type Http = Client<HttpConnector, Full<Bytes>>;

pub(crate) fn client() -> Http {
    Client::builder(TokioExecutor::new()).build(HttpConnector::new())
}

impl Gateway {
    /// Starts it with these settings, and waits for the line with its address.
    pub(crate) async fn start(upstream: &str, settings: &[(&str, &str)]) -> Self {
        Self::with(upstream, None, settings).await
    }

    /// The same with a file.
    pub(crate) async fn with(
        upstream: &str,
        file: Option<&Path>,
        settings: &[(&str, &str)],
    ) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_toolgate"));
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--store", "memory"])
            .args(["--upstream-url", upstream, "--api-key", "test"])
            .args(file.iter().flat_map(|file| [OsStr::new("--config"), file.as_os_str()]))
            .env_clear()
            .env("TOOLGATE_LOG", "error")
            .envs(settings.iter().copied());
        let (url, child) = listening(&mut command).await;
        Self { url, child }
    }

    fn pid(&self) -> u32 {
        self.child.id().unwrap()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.pid().cast_signed()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Waits until it has ended by itself.
    pub(crate) async fn ended(mut self) -> ExitStatus {
        self.child.wait().await.unwrap()
    }

    /// Resident memory in kB.
    pub(crate) fn resident(&self) -> u64 {
        self.memory("VmRSS:")
    }

    /// The most resident memory that it ever had, in kB.
    pub(crate) fn peak(&self) -> u64 {
        self.memory("VmHWM:")
    }

    fn memory(&self, name: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    /// How many sockets it has open.
    pub(crate) fn sockets(&self) -> usize {
        let files = std::fs::read_dir(format!("/proc/{}/fd", self.pid())).unwrap();
        let targets = files.filter_map(|file| std::fs::read_link(file.unwrap().path()).ok());
        targets.filter(|target| target.to_string_lossy().starts_with("socket:")).count()
    }

    /// The value of one of its metrics.
    pub(crate) async fn metric(&self, name: &str) -> u64 {
        let request = Request::get(format!("{}/metrics", self.url));
        let request = request.body(Full::new(Bytes::new())).unwrap();
        let answer = client().request(request).await.unwrap();
        let text = answer.into_body().collect().await.unwrap().to_bytes();
        let text = String::from_utf8(text.to_vec()).unwrap();
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value.unwrap_or_else(|| panic!("no {name} in {text}")).parse().unwrap()
    }
}

/// Asks, and waits for the answer's head only.
pub(crate) async fn open(
    http: &Http,
    url: &str,
    path: &str,
    body: &Value,
) -> http::Response<Incoming> {
    let request = Request::post(format!("{url}{path}")).header("content-type", "application/json");
    http.request(request.body(Full::new(Bytes::from(body.to_string()))).unwrap()).await.unwrap()
}

/// Waits for something that is bound to come about. What never does is a failure of the test, after
/// so many looks that no slow machine needs them.
pub(crate) async fn soon(what: &'static str, is_there: impl Fn() -> bool) {
    for _ in 0..6000 {
        if is_there() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("{what}");
}

/// `toolgate sim`, to be killed.
pub(crate) struct Upstream {
    pub(crate) url: String,
    child: Child,
}

impl Upstream {
    pub(crate) async fn start(script: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_toolgate"));
        command.args(["sim", "--listen", "127.0.0.1:0", "--script"]).arg(script);
        let (url, child) = listening(&mut command).await;
        Self { url, child }
    }

    /// Kills it with SIGKILL.
    pub(crate) async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }
}

/// Starts a process and waits for the line with its address.
async fn listening(command: &mut Command) -> (String, Child) {
    let command = command.stdout(Stdio::piped()).stderr(Stdio::inherit()).kill_on_drop(true);
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let line = lines.next_line().await.unwrap().unwrap();
    let at = line.find("http://").unwrap();
    (line[at..].trim().to_owned(), child)
}
