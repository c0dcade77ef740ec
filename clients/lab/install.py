"""Installs the pinned clients by package name, once. `python3 clients/lab/install.py FOLDER…` does nothing else."""

import os
import subprocess
import sys
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")
FOLDER = TARGET / "clients"
VERSIONS = ROOT / "clients" / "versions.toml"
STAMP = "installed.txt"
# Folders whose packages need a newer Node than the machine may have.
NEEDS_NODE = {"js", "js-agents", "gemini", "qwen", "pi", "continue"}


def versions():
    """Every folder, with its installer and packages."""
    tables = tomllib.loads(VERSIONS.read_text())
    return {
        name: (installer, packages)
        for installer, folders in tables.items()
        for name, packages in folders.items()
    }


def node():
    return str(ensure("node22") / "node_modules" / "node" / "bin" / "node")


class Installer:
    """Installs in a separate process, which keeps its network, while the first clients run."""

    def __init__(self, folders):
        missing = [folder for folder in folders if not is_there(folder)]
        command = [sys.executable, str(Path(__file__).resolve()), *missing]
        self.process = subprocess.Popen(command) if missing else None

    def wait_for(self, folder):
        """Returns as soon as a folder is installed."""
        while not is_there(folder):
            # Checked before the last look, so that the last installation is not missed.
            has_ended = self.process is None or self.process.poll() is not None
            if has_ended and not is_there(folder):
                raise RuntimeError(f"{folder} cannot be installed")
            time.sleep(0.2)

    def end(self):
        if self.process:
            self.process.wait()


def wanted(folder):
    _, packages = versions()[folder]
    return "".join(f"{name} {version}\n" for name, version in sorted(packages.items()))


def is_there(folder):
    """Whether exactly the pinned versions are installed."""
    stamp = FOLDER / folder / STAMP
    return stamp.exists() and stamp.read_text() == wanted(folder)


def ensure(folder):
    """Installs a folder unless exactly this is installed; returns its path."""
    installer, packages = versions()[folder]
    place = FOLDER / folder
    if is_there(folder):
        return place
    place.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    print(f"installing {folder} …", flush=True)
    # Retried once, because a registry may be slow or busy.
    for left in (1, 0):
        done = (npm if installer == "npm" else pip)(place, packages)
        if done.returncode == 0:
            break
        if not left:
            sys.stderr.write(done.stdout[-4000:])
            raise SystemExit(f"error: {folder} cannot be installed")
    (place / STAMP).write_text(wanted(folder))
    print(f"installed {folder} in {time.monotonic() - began:.0f} s", flush=True)
    return place


def npm(place, packages):
    names = [f"{name}@{version}" for name, version in packages.items()]
    # Without a package.json here, npm would use one of a parent folder.
    (place / "package.json").write_text("{}\n")
    return captured(
        ["npm", "--prefix", str(place), "install", "--no-audit", "--no-fund", "--no-package-lock"]
        + ["--loglevel=error", "--engine-strict=false"]
        + names
    )


def pip(place, packages):
    names = [f"{name}=={version}" for name, version in packages.items()]
    if not (place / "bin" / "python").exists():
        made = captured([sys.executable, "-m", "venv", str(place)])
        if made.returncode != 0:
            return made
    # Modules are compiled on first import; most are never imported.
    return captured([str(place / "bin" / "pip"), "install", "--quiet", "--no-compile"] + names)


def captured(command):
    return subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | {"PIP_DISABLE_PIP_VERSION_CHECK": "1"},
    )


def main(folders):
    """Runs npm sequentially, because it uses all cores, and pip, which uses one, concurrently."""
    kinds = versions()
    lanes = [[it for it in folders if kinds[it][0] == "npm"]]
    lanes += [[it] for it in folders if kinds[it][0] == "pip"]

    def install(lane):
        for folder in lane:
            ensure(folder)

    with ThreadPoolExecutor(len(lanes)) as pool:
        list(pool.map(install, lanes))


if __name__ == "__main__":
    main(sys.argv[1:])
