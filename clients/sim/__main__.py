"""`python3 clients/sim [--binary FILE]`: Google's released SDKs on the simulator, without a gateway."""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "lab"))

import install
import stage

MODELS = ("gemini-2.5-flash", "gemini-3.6-flash")
SECONDS = 120


def main():
    parser = argparse.ArgumentParser(prog="python3 clients/sim")
    parser.add_argument("--binary", default=str(install.TARGET / "debug" / "toolgate"))
    binary = parser.parse_args().binary
    python = str(install.ensure("py") / "bin" / "python")
    modules = install.ensure("js") / "node_modules"
    node = install.node()
    why = stage.loopback_only()
    if why:
        print(f"note: the SDKs can reach the network, because this machine keeps them in it: {why}")
    failed = 0
    for name, command in {
        "google-genai": [python, str(HERE / "genai.py")],
        "@google/genai": [node, str(HERE / "genai.mjs")],
    }.items():
        for model in MODELS:
            failed += not passes(binary, name, command, model, modules)
    return 1 if failed else 0


def passes(binary, name, command, model, modules):
    """Runs one SDK against a simulator of its own; it prints a line per check."""
    with tempfile.TemporaryDirectory(prefix="toolgate-sim-") as folder:
        listen = ["sim", "--listen", "127.0.0.1:0"]
        sim = stage.Server(binary, listen, Path(folder) / "sim.log", folder)
        try:
            url = f"http://127.0.0.1:{sim.port}"
            print(f"── {name} on {model}", flush=True)
            environment = {
                "PATH": os.defpath,
                "HOME": folder,
                "LANG": "C.UTF-8",
                "PYTHONPYCACHEPREFIX": str(install.FOLDER / "compiled"),
                "LAB_MODULES": str(modules),
            }
            try:
                done = subprocess.run([*command, url, model], env=environment, timeout=SECONDS)
            except subprocess.TimeoutExpired:
                print(f"FAILED: it did not end within {SECONDS} s")
                return False
            faults = list(misdeeds(url))
        finally:
            sim.stop()
    for fault in faults:
        print(f"FAILED: {fault}")
    return done.returncode == 0 and not faults


def misdeeds(url):
    """Deviations of the simulator's counters from those of a correct client."""
    counters = stage.control(url, "counters")
    # Two requests of each program are refused on purpose: both name an unknown model.
    wanted = {"refusals": 2, "placeholders": 0, "doubled": 0, "mismatches": 0, "cancels": 0}
    for what, number in wanted.items():
        if counters[what] != number:
            yield f"{what}: {counters[what]}, not {number}"


if __name__ == "__main__":
    sys.exit(main())
