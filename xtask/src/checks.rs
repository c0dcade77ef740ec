//! The checks, in the order of their speed. To add one, add a row.

use crate::clients;
use crate::command::{cargo, exists, root, run};
use crate::fuzz;
use crate::python;
use crate::run::{Check, Verdict};

pub(crate) const ALL: &[Check] = &[
    Check { name: "fmt", about: "the code is formatted", run: fmt },
    Check { name: "clippy", about: "no lint objects", run: clippy },
    Check { name: "test", about: "unit, golden, property, law and tidy tests", run: test },
    Check { name: "doctest", about: "the examples in the documentation run", run: doctest },
    Check { name: "doc", about: "the documentation builds without a warning", run: doc },
    Check { name: "wasm", about: "the core builds where there is no operating system", run: wasm },
    Check {
        name: "parity",
        about: "the SDK beside google-genai, scenario by scenario",
        run: parity,
    },
    Check {
        name: "clients",
        about: "real clients on the gateway, on a thinned matrix",
        run: clients::thinned,
    },
    Check { name: "genai", about: "Google's own SDKs on the simulator", run: clients::genai },
    Check { name: "fuzz", about: "every fuzz target survives a few seconds", run: fuzz_briefly },
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

/// nextest where it is installed, because it is quicker; else cargo's own runner.
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
    let mut rustc = std::process::Command::new("rustc");
    let output = rustc.args(["--print", "target-libdir", "--target", WASM]).output()?;
    let libraries = String::from_utf8_lossy(&output.stdout);
    if !std::path::Path::new(libraries.trim()).exists() {
        return Ok(Verdict::NotRun(format!("needs `rustup target add {WASM}`")));
    }
    run(cargo().args(["check", "--package", "toolgate-core", "--locked", "--target", WASM]))
}

/// google-genai comes from where Python packages come from, into a folder of its own.
fn parity() -> anyhow::Result<Verdict> {
    let folder = root().join("crates/toolgate/tests/parity");
    let python = python::with_packages("parity", &folder.join("requirements.txt"))?;
    run(cargo()
        .args(["test", "--package", "toolgate", "--locked", "--test", "parity", "--", "--ignored"])
        .env("PARITY_PYTHON", python))
}

fn fuzz_briefly() -> anyhow::Result<Verdict> {
    fuzz::fuzz(&[], 5)?;
    Ok(Verdict::Passed)
}
