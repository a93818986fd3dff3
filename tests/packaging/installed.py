"""The wheel, and virtual environments to install it into, as a team would do."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.processes import ROOT

# Enough to download and unpack about twenty packages on a busy machine.
INSTALL_SECONDS = 400.0
COMMAND_SECONDS = 120.0


def build_wheel(folder: Path) -> Path:
    """Build the wheel of this tree."""
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    [wheel] = folder.glob("*.whl")
    return wheel


@dataclass(frozen=True)
class Environment:
    """A virtual environment."""

    folder: Path

    @classmethod
    def create(cls, folder: Path) -> Environment:
        """Create an empty one with the Python that runs the tests."""
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
        return cls(folder)

    @property
    def python(self) -> str:
        """Return its interpreter."""
        return str(self.folder / "bin" / "python")

    def install(self, *requirements: str) -> None:
        """Do what `pip install` does with these arguments."""
        pip = [sys.executable, "-m", "pip", "--python", self.python, "install", "--quiet", "--no-input"]
        done = subprocess.run(
            [*pip, *requirements], capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False
        )
        assert done.returncode == 0, done.stderr

    def packages(self) -> set[str]:
        """Return the installed packages as name==version, without Rowcall."""
        frozen = subprocess.check_output([sys.executable, "-m", "pip", "--python", self.python, "freeze"], text=True)
        return {line for line in frozen.splitlines() if not line.startswith("rowcall")}

    def run(
        self, program: str, *arguments: str, variables: Mapping[str, str] | None = None, folder: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run one of its programs, and wait until it ends."""
        return subprocess.run(
            self.command(program, arguments),
            env=self.variables(variables),
            cwd=folder or self.folder,
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
            check=False,
        )

    def command(self, program: str, arguments: Sequence[str]) -> list[str]:
        """Return the command line of one of its programs."""
        return [str(self.folder / "bin" / program), *arguments]

    def variables(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return the tests' own environment, without the variables that choose another app or Python path."""
        kept = {name: value for name, value in os.environ.items() if name not in ("ROWCALL_APP", "PYTHONPATH")}
        return {**kept, **(more or {})}
