//! Measured processes.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use crate::load::Round;

/// A listening process.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) url: String,
    pub(crate) ready: Duration,
    child: Child,
}

impl Target {
    pub(crate) async fn sim(toolgate: &Path, what: &str, file: &Path) -> Result<Self> {
        let mut command = Command::new(toolgate);
        Self::start(command.args(["sim", "--listen", "127.0.0.1:0", what]).arg(file)).await
    }

    pub(crate) async fn gateway(toolgate: &Path, sim: &str) -> Result<Self> {
        Self::gateway_on(toolgate, sim, "memory", &[]).await
    }

    /// A gateway with a store and settings of its own.
    pub(crate) async fn gateway_on(
        toolgate: &Path,
        sim: &str,
        store: &str,
        settings: &[(&str, &str)],
    ) -> Result<Self> {
        let mut command = Command::new(toolgate);
        command.args(["serve", "--listen", "127.0.0.1:0", "--store", store]);
        command.args(["--upstream-url", sim]).envs(settings.iter().copied());
        Self::start(command.env("TOOLGATE_LOG", "error").env("GEMINI_API_KEY", "bench")).await
    }

    pub(crate) async fn proxy(own: &Path, sim: &str) -> Result<Self> {
        Self::start(Command::new(own).args(["proxy", sim])).await
    }

    /// Starts a process and waits for the line with its address.
    async fn start(command: &mut Command) -> Result<Self> {
        let began = Instant::now();
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true).spawn()?;
        let stdout = child.stdout.take().context("no standard output")?;
        let mut lines = BufReader::new(stdout).lines();
        let line = lines.next_line().await?.context("the process ended without output")?;
        let at = line.find("http://").with_context(|| format!("no address in {line:?}"))?;
        let url = line[at..].trim().trim_end_matches('/').to_owned();
        Ok(Self { url, ready: began.elapsed(), child })
    }

    fn stat(&self, file: &str) -> Result<String> {
        let pid = self.child.id().context("the process has ended")?;
        Ok(std::fs::read_to_string(format!("/proc/{pid}/{file}"))?)
    }

    /// CPU time of its threads so far, in nanoseconds instead of the ticks of `stat`.
    pub(crate) fn cpu(&self) -> Result<Duration> {
        let pid = self.child.id().context("the process has ended")?;
        let mut sum = Duration::ZERO;
        for thread in std::fs::read_dir(format!("/proc/{pid}/task"))? {
            let run = std::fs::read_to_string(thread?.path().join("schedstat"))?;
            let run = run.split(' ').next().and_then(|run| run.parse().ok());
            sum += Duration::from_nanos(run.context("schedstat cannot be read")?);
        }
        Ok(sum)
    }

    /// Resident memory in kB.
    pub(crate) fn resident(&self) -> Result<u64> {
        let status = self.stat("status")?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        Ok(line.and_then(|it| it.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0))
    }

    /// Runs a load and adds the CPU time of this process.
    pub(crate) async fn measured(
        &self,
        load: impl Future<Output = Result<Round>>,
    ) -> Result<Round> {
        let before = self.cpu()?;
        let mut round = load.await?;
        round.cpu = self.cpu()?.saturating_sub(before);
        Ok(round)
    }
}
