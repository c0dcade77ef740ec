//! Child processes: cleared environment, group of their own, drained standard error, no orphans.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process_group, prlimit};
use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;

use crate::ProcessGuard;
use crate::secret::Secret;

/// Variables that every child inherits.
const INHERITED: [&str; 5] = ["PATH", "HOME", "LANG", "TMPDIR", "USER"];

/// Time that a child has to end by itself, and again after a `TERM`.
const END_GRACE: Duration = Duration::from_secs(3);

/// Time to wait for the last words of a child that did not start.
const LAST_WORDS_GRACE: Duration = Duration::from_millis(500);

/// Bytes of standard error that are kept for messages.
const STDERR_TAIL: usize = 2048;

/// A command that the operator chose. Requests never name one.
#[derive(Clone, Debug)]
pub struct ChildCommand {
    /// Program and arguments.
    pub command: Vec<String>,
    /// Variables of the environment.
    pub env: BTreeMap<String, String>,
    /// Variables whose values are secrets.
    pub secret_env: BTreeMap<String, Secret>,
    /// Variables that are inherited, beside PATH, HOME, LANG, TMPDIR and USER.
    pub env_from: Vec<String>,
    /// Working directory.
    pub directory: Option<PathBuf>,
    /// Limit of the address space in bytes.
    pub memory_limit: Option<u64>,
}

impl ChildCommand {
    /// A command with the smallest environment.
    pub fn new<S: Into<String>>(command: impl IntoIterator<Item = S>) -> Self {
        Self {
            command: command.into_iter().map(Into::into).collect(),
            env: BTreeMap::new(),
            secret_env: BTreeMap::new(),
            env_from: Vec::new(),
            directory: None,
            memory_limit: None,
        }
    }
}

/// A running child. Dropping it kills its process group.
pub(crate) struct Process {
    child: Child,
    group: Option<Pid>,
    guard: ProcessGuard,
    stderr: Arc<Mutex<Vec<u8>>>,
    drain: Option<JoinHandle<()>>,
}

/// Pipes of a child.
pub(crate) struct Pipes {
    pub(crate) stdin: ChildStdin,
    pub(crate) stdout: ChildStdout,
}

impl Process {
    /// Starts a child. It needs a runtime.
    pub(crate) fn spawn(
        command: &ChildCommand,
        guard: &ProcessGuard,
        label: &str,
    ) -> io::Result<(Self, Pipes)> {
        let (program, arguments) = command
            .command
            .split_first()
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the command is empty"))?;
        let mut builder = Command::new(program);
        builder.args(arguments).env_clear();
        let inherited =
            INHERITED.iter().copied().chain(command.env_from.iter().map(String::as_str));
        for name in inherited {
            if let Some(value) = std::env::var_os(name) {
                builder.env::<_, OsString>(name, value);
            }
        }
        builder.envs(&command.env);
        for (name, secret) in &command.secret_env {
            builder.env(name, secret.read()?);
        }
        if let Some(directory) = &command.directory {
            builder.current_dir(directory);
        }
        builder.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        builder.process_group(0).kill_on_drop(true);
        let mut child = builder.spawn()?;
        let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        if let Some(group) = group {
            guard.add(group.as_raw_nonzero().get());
        }
        if let (Some(pid), Some(limit)) = (group, command.memory_limit) {
            let limit = Rlimit { current: Some(limit), maximum: Some(limit) };
            prlimit(Some(pid), Resource::As, limit)?;
        }
        let missing = || io::Error::other("the child has no pipes");
        let pipes = Pipes {
            stdin: child.stdin.take().ok_or_else(missing)?,
            stdout: child.stdout.take().ok_or_else(missing)?,
        };
        let stderr = Arc::new(Mutex::new(Vec::new()));
        let drain = child
            .stderr
            .take()
            .map(|pipe| tokio::spawn(drain(pipe, Arc::clone(&stderr), label.to_owned())));
        Ok((Self { child, group, guard: guard.clone(), stderr, drain }, pipes))
    }

    /// Process id, as long as the child has not ended.
    pub(crate) fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Last words on standard error of a child that ended or is about to, for the operator.
    pub(crate) async fn last_words(&mut self) -> String {
        let ended = async {
            let _ = self.child.wait().await;
            if let Some(drain) = self.drain.take() {
                let _ = drain.await;
            }
        };
        let _ = tokio::time::timeout(LAST_WORDS_GRACE, ended).await;
        let tail = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&tail).trim().to_owned()
    }

    /// Ends the child: its standard input is closed already; then `TERM`, then `KILL`.
    pub(crate) async fn end(mut self) {
        if tokio::time::timeout(END_GRACE, self.child.wait()).await.is_err() {
            self.signal(Signal::TERM);
            let _ = tokio::time::timeout(END_GRACE, self.child.wait()).await;
        }
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Also after the child has ended: what it started may still run.
        self.signal(Signal::KILL);
        if let Some(group) = self.group {
            self.guard.remove(group.as_raw_nonzero().get());
        }
    }
}

/// Reads standard error, so that a child that writes much is not blocked.
async fn drain(mut pipe: ChildStderr, tail: Arc<Mutex<Vec<u8>>>, label: String) {
    let mut buffer = vec![0; 4096];
    while let Ok(read @ 1..) = pipe.read(&mut buffer).await {
        let Some(chunk) = buffer.get(..read) else { return };
        tracing::debug!(
            source = label,
            text = %String::from_utf8_lossy(chunk).trim_end(),
            "standard error of a child"
        );
        let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
        tail.extend_from_slice(chunk);
        let excess = tail.len().saturating_sub(STDERR_TAIL);
        tail.drain(..excess);
    }
}
