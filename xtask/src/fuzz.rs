//! Coverage-guided fuzzing on stable Rust.
//!
//! The fuzz targets are a separate workspace, because all of it is built with coverage counters.
//! libFuzzer comes with the crate `libfuzzer-sys`; the counters come from an LLVM pass that rustc
//! can enable. Inputs, findings and logs are in `target/fuzz`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use anyhow::{Context as _, bail, ensure};

use crate::command::{cargo, need, root, run, target_dir};
use crate::seeds;

/// Compiler flags for edge counters, traced comparisons, and the table that libFuzzer needs.
const COVERAGE_FLAGS: &[&str] = &[
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Ccodegen-units=1",
    "--cfg=fuzzing",
    "-Dwarnings",
];

/// Longest input in bytes; longer ones only slow the search.
const MAX_INPUT_BYTES: usize = 64 * 1024;

/// Fuzzes each of the given targets, or of all targets, for `seconds`.
pub(crate) fn fuzz(wanted: &[&str], seconds: u64) -> anyhow::Result<()> {
    let all = targets()?;
    for name in wanted {
        ensure!(
            all.iter().any(|it| it == name),
            "unknown target `{name}`; known targets: {}",
            all.join(", ")
        );
    }
    let chosen: Vec<_> =
        all.into_iter().filter(|it| wanted.is_empty() || wanted.contains(&it.as_str())).collect();
    let programs = build()?;
    let home = target_dir().join("fuzz");
    let dictionary = home.join("dictionary");
    seeds::write_dictionary(&dictionary)?;
    let at_once = std::thread::available_parallelism().map_or(1, usize::from);
    let mut failures = Vec::new();
    for group in chosen.chunks(at_once) {
        let started: anyhow::Result<Vec<_>> = group
            .iter()
            .map(|name| Run::start(name, &programs.join(name), &home, &dictionary, seconds))
            .collect();
        for run in started? {
            match run.finish() {
                Ok(line) => println!("{line}"),
                Err(error) => {
                    println!("{error:#}");
                    failures.push(error);
                }
            }
        }
    }
    match failures.len() {
        0 => Ok(()),
        count => bail!("{count} of {} fuzz targets failed", chosen.len()),
    }
}

/// Names of the targets: the binaries of the fuzz workspace.
fn targets() -> anyhow::Result<Vec<String>> {
    let manifest = fs::read_to_string(root().join("fuzz/Cargo.toml"))?;
    let (_, bins) = manifest.split_once("[[bin]]").context("fuzz/Cargo.toml has no targets")?;
    Ok(bins
        .lines()
        .filter_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'))
        .map(str::to_owned)
        .collect())
}

/// Builds all targets. Returns the folder of the binaries.
fn build() -> anyhow::Result<PathBuf> {
    need("c++", "g++")?;
    let rustc = Command::new("rustc").arg("-vV").output().context("cannot start rustc")?;
    let rustc = String::from_utf8_lossy(&rustc.stdout);
    let host = rustc
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .context("rustc printed no host triple")?;
    let target_dir = target_dir().join("fuzz/build");
    let mut command = cargo();
    command.args(["build", "--release", "--locked", "--manifest-path", "fuzz/Cargo.toml"]);
    // With an explicit target, build scripts and macros are built without the counters.
    command.args(["--target", host]).arg("--target-dir").arg(&target_dir);
    run(command.env("CARGO_ENCODED_RUSTFLAGS", COVERAGE_FLAGS.join("\u{1f}")))?;
    Ok(target_dir.join(host).join("release"))
}

/// A running fuzz target.
struct Run {
    name: String,
    program: PathBuf,
    log: PathBuf,
    findings: PathBuf,
    child: Child,
}

impl Run {
    fn start(
        name: &str,
        program: &Path,
        home: &Path,
        dictionary: &Path,
        seconds: u64,
    ) -> anyhow::Result<Self> {
        let corpus = home.join("corpus").join(name);
        let findings = home.join("findings").join(name);
        for folder in [&corpus, &findings] {
            fs::create_dir_all(folder)?;
        }
        seeds::copy(name, &corpus, MAX_INPUT_BYTES)?;
        let log = home.join(format!("{name}.log"));
        let child = Command::new(program)
            .current_dir(home)
            .arg(&corpus)
            .arg(format!("-dict={}", dictionary.display()))
            .arg(format!("-max_total_time={seconds}"))
            // A short run is a check, with a fixed seed. A long one is a search.
            .arg(if seconds < 10 { "-seed=1" } else { "-seed=0" })
            .arg(format!("-max_len={MAX_INPUT_BYTES}"))
            .arg(format!("-artifact_prefix={}/", findings.display()))
            .args(["-timeout=10", "-rss_limit_mb=2048", "-print_final_stats=1"])
            .stdout(fs::File::create(&log)?)
            .stderr(fs::OpenOptions::new().append(true).open(&log)?)
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        Ok(Self { name: name.to_owned(), program: program.to_owned(), log, findings, child })
    }

    /// Waits for the end. Returns a line of statistics.
    fn finish(mut self) -> anyhow::Result<String> {
        let status = self.child.wait()?;
        let log = String::from_utf8_lossy(&fs::read(&self.log)?).into_owned();
        let Self { name, findings, .. } = &self;
        if !status.success() {
            let from =
                log.find("panicked at").or_else(|| log.find("ERROR: libFuzzer")).unwrap_or(0);
            for line in log.get(from..).unwrap_or(&log).lines().take(40) {
                println!("    {line}");
            }
            println!("reproduce: {} INPUT", self.program.display());
            bail!("{name} failed; the input is in {}", findings.display());
        }
        let number_after = |mark: &str| {
            let (_, rest) = log.rsplit_once(mark)?;
            rest.trim_start().split(' ').next()?.trim().lines().next()?.parse::<u64>().ok()
        };
        let covered = number_after(" cov: ").unwrap_or(0);
        let runs = number_after("stat::number_of_executed_units:").unwrap_or(0);
        ensure!(covered > 50, "{name}: no coverage feedback, see {}", self.log.display());
        Ok(format!("{name:<18} {runs:>9} runs, {covered:>6} edges covered"))
    }
}
