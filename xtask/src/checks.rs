//! The checks, fastest first. To add one, add a row.

use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::clients;
use crate::command::{cargo, exists, need, root, run, target_dir};
use crate::fuzz;
use crate::house;
use crate::python;
use crate::run::{Check, Verdict};

pub(crate) const ALL: &[Check] = &[
    Check { name: "fmt", about: "the code is formatted", run: fmt },
    Check { name: "clippy", about: "clippy reports no lint", run: clippy },
    Check {
        name: "house",
        about: "layers, dependencies and file lengths are as declared",
        run: house::house,
    },
    Check { name: "test", about: "unit, golden, property, law and tidy tests", run: test },
    Check {
        name: "schemas",
        about: "golden answers validate against the vendors' schemas",
        run: clients::schemas,
    },
    Check { name: "valkey", about: "sessions on a real Valkey or Redis server", run: valkey },
    Check {
        name: "state",
        about: "OpenAI's and Anthropic's SDKs with stored state",
        run: clients::state,
    },
    Check {
        name: "worker",
        about: "the Python worker, with the official MCP clients of both eras",
        run: worker,
    },
    Check { name: "doctest", about: "the examples in the documentation run", run: doctest },
    Check { name: "doc", about: "the documentation builds without a warning", run: doc },
    Check {
        name: "wasm",
        about: "the core builds for wasm32, without an operating system",
        run: wasm,
    },
    Check { name: "parity", about: "the SDK compared with google-genai, by scenario", run: parity },
    Check {
        name: "clients",
        about: "real clients on the gateway, in selected scenarios",
        run: clients::selected,
    },
    Check {
        name: "launch",
        about: "coding agents without a key, as `toolgate run` starts them",
        run: clients::launch,
    },
    Check { name: "genai", about: "Google's own SDKs on the simulator", run: clients::genai },
    Check { name: "fuzz", about: "every fuzz target runs for a few seconds", run: fuzz_briefly },
];

fn fmt() -> anyhow::Result<Verdict> {
    run(cargo().args(["fmt", "--all", "--check"]))?;
    run(cargo().args(["fmt", "--manifest-path", "fuzz/Cargo.toml", "--check"]))
}

fn clippy() -> anyhow::Result<Verdict> {
    run(cargo()
        .args(["clippy", "--workspace", "--all-targets", "--locked", "--"])
        .args(["-D", "warnings"]))
}

/// Runs nextest if it is installed, because it is faster; otherwise cargo's own runner.
fn test() -> anyhow::Result<Verdict> {
    let mut command = cargo();
    if exists(cargo().args(["nextest", "--version"])) {
        command.args(["nextest", "run", "--workspace", "--locked", "--no-fail-fast"]);
    } else {
        command.args(["test", "--workspace", "--locked", "--no-fail-fast"]);
        command.args(["--lib", "--bins", "--tests"]);
    }
    run(&mut command)
}

/// Runs the store's contract tests against a server from the distribution's packages. Other tests
/// start and kill servers of their own.
fn valkey() -> anyhow::Result<Verdict> {
    let has = |program: &str| exists(Command::new(program).arg("--version"));
    if !has("valkey-server") && !has("redis-server") {
        // Distributions package one or the other.
        need("valkey-server", "valkey-server").or_else(|_| need("redis-server", "redis-server"))?;
    }
    if !exists(Command::new("openssl").arg("version")) {
        need("openssl", "openssl")?;
    }
    let program = if has("valkey-server") { "valkey-server" } else { "redis-server" };
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let mut server = Command::new(program)
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""])
        .stdout(Stdio::null())
        .spawn()?;
    while TcpStream::connect(("127.0.0.1", port)).is_err() && server.try_wait()?.is_none() {
        std::thread::sleep(Duration::from_millis(20));
    }
    // The whole workspace, so that Cargo features are the same as in the other tests.
    let tests = |which: &[&str]| {
        let mut command = cargo();
        command.args(["test", "--workspace", "--locked"]).args(which);
        command.args(["valkey", "--", "--ignored"]);
        run(command.env("TOOLGATE_TEST_VALKEY", format!("redis://127.0.0.1:{port}")))
    };
    let verdict = tests(&["--test", "store"]).and_then(|_| tests(&["--test", "sessions"]));
    server.kill()?;
    server.wait()?;
    verdict
}

fn doctest() -> anyhow::Result<Verdict> {
    run(cargo().args(["test", "--doc", "--workspace", "--locked"]))
}

fn doc() -> anyhow::Result<Verdict> {
    let mut command = cargo();
    command.args(["doc", "--workspace", "--no-deps", "--locked"]);
    run(command.env("RUSTDOCFLAGS", "-D warnings"))
}

const WASM: &str = "wasm32-unknown-unknown";

fn wasm() -> anyhow::Result<Verdict> {
    let mut rustc = Command::new("rustc");
    let output = rustc.args(["--print", "target-libdir", "--target", WASM]).output()?;
    let libraries = String::from_utf8_lossy(&output.stdout);
    if !std::path::Path::new(libraries.trim()).exists() {
        return Ok(Verdict::NotRun(format!("needs `rustup target add {WASM}`")));
    }
    run(cargo().args(["check", "--package", "toolgate-core", "--locked", "--target", WASM]))
}

/// Installs google-genai into a virtual environment of its own.
fn parity() -> anyhow::Result<Verdict> {
    let folder = root().join("crates/toolgate/tests/parity");
    let python = python::with_packages("parity", &folder.join("requirements.txt"))?;
    run(cargo()
        .args(["test", "--workspace", "--locked", "--test", "parity", "--", "--ignored"])
        .env("PARITY_PYTHON", python))
}

/// Installs the package and the official MCP clients into virtual environments of their own.
fn worker() -> anyhow::Result<Verdict> {
    let folder = root().join("workers/python");
    let requirements = |name: &str| folder.join("tests").join(name);
    let mcp1 = python::with_packages("worker-mcp1", &requirements("requirements-mcp1.txt"))?;
    let mcp2 = python::with_packages("worker-mcp2", &requirements("requirements-mcp2.txt"))?;
    python::install(&mcp1, &folder)?;
    run(Command::new(mcp1.with_file_name("toolgate-worker")).arg("--version"))?;
    run(Command::new(&mcp2)
        .current_dir(&folder)
        .args(["-m", "mypy", "--cache-dir"])
        .arg(target_dir().join("python").join("mypy")))?;
    // Not one of the environments: the worker itself needs the standard library only.
    run(Command::new("python3")
        .current_dir(&folder)
        .args(["-m", "unittest", "discover", "--start-directory", "tests"])
        .args(["--top-level-directory", "."])
        .env("PYTHONPATH", folder.join("src"))
        .env("TOOLGATE_WORKER_MCP1", &mcp1)
        .env("TOOLGATE_WORKER_MCP2", &mcp2))
}

fn fuzz_briefly() -> anyhow::Result<Verdict> {
    fuzz::fuzz(&[], 5)?;
    Ok(Verdict::Passed)
}
