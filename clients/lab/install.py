"""Installs the pinned clients by package name, once."""

import os
import subprocess
import sys
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "target" / "clients"
VERSIONS = ROOT / "clients" / "versions.toml"
STAMP = "installed.txt"
# Folders whose packages want a newer Node than the machine may have.
NEEDS_NODE = {"js", "gemini"}


def versions():
    """Every folder with its installer and its packages."""
    tables = tomllib.loads(VERSIONS.read_text())
    return {
        name: (installer, packages)
        for installer, folders in tables.items()
        for name, packages in folders.items()
    }


def node():
    return str(ensure("node22") / "node_modules" / "node" / "bin" / "node")


def ensure(folder):
    """Installs a folder unless exactly this is there already; says where it is."""
    installer, packages = versions()[folder]
    place = FOLDER / folder
    stamp = place / STAMP
    wanted = "".join(f"{name} {version}\n" for name, version in sorted(packages.items()))
    if stamp.exists() and stamp.read_text() == wanted:
        return place
    place.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    print(f"installing {folder} …", flush=True)
    # A registry that is slow or busy gets a second chance.
    for left in (1, 0):
        done = (npm if installer == "npm" else pip)(place, packages)
        if done.returncode == 0:
            break
        if not left:
            sys.stderr.write(done.stdout[-4000:])
            raise SystemExit(f"error: {folder} cannot be installed")
    stamp.write_text(wanted)
    print(f"installed {folder} in {time.monotonic() - began:.0f} s", flush=True)
    return place


def npm(place, packages):
    names = [f"{name}@{version}" for name, version in packages.items()]
    # Without a package.json of its own, npm would climb to a folder that has one.
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
    return captured([str(place / "bin" / "pip"), "install", "--quiet"] + names)


def captured(command):
    return subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | {"PIP_DISABLE_PIP_VERSION_CHECK": "1"},
    )
