"""Copies of Rowcall in which the tests run with one mutant each."""

from __future__ import annotations

import compileall
import contextlib
import os
import queue
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.mutants.mutant import ROOT, Mutant

# Each contains one import package.
SOURCES = ("shared", "api", "worker", "migrations", "example")
COPIED = (*SOURCES, "tests", "pyproject.toml")

PYTEST = (
    *("-m", "pytest", "--exitfirst", "--tb=no", "-rfE", "--assert=plain"),
    *("-p", "no:cacheprovider", "-p", "tests.mutants.inside", "--hypothesis-profile=mutants"),
)
FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+?::.+?)(?: - (.*))?$", re.MULTILINE)

# A mutant must be wrong, but still valid Python and SQL.
NONSENSE = re.compile(r"SyntaxError|Undefined(?:Column|Table|Function)|NameError|ImportError|IndentationError")

# What pytest ends with if there is no such test: the one that caught a mutant may have another name by now.
MISSING = pytest.ExitCode.USAGE_ERROR

# All tests together take a tenth of this on an idle machine.
LIMIT_SECONDS = 300


@dataclass(frozen=True)
class TrialResult:
    """The test that failed, with the start of its reason, or None if all passed; and how long the tests took."""

    test: str | None
    reason: str
    seconds: float


class Copies:
    """One copy for each concurrent trial; all copies use one server."""

    def __init__(self, folder: Path, server: Path, count: int) -> None:
        self._server = server
        self._free: queue.SimpleQueue[Path] = queue.SimpleQueue()
        for number in range(count):
            copy = folder / f"copy-{number}"
            copy.mkdir()
            for name in COPIED:
                source = ROOT / name
                (shutil.copytree if source.is_dir() else shutil.copy2)(source, copy / name)
            compileall.compile_dir(copy, quiet=2)
            self._free.put(copy)

    def try_out(self, mutant: Mutant | None, turns: Sequence[Sequence[str]]) -> TrialResult:
        """Run the tests of each turn with this mutant in place, up to the first failure."""
        copy = self._free.get()
        seconds = 0.0
        try:
            with in_place(mutant, copy) if mutant else contextlib.nullcontext():
                for tests in turns:
                    result = self._tested(copy, tests)
                    seconds += result.seconds
                    if result.test is not None:
                        break
                return replace(result, seconds=seconds)
        finally:
            self._free.put(copy)

    def _tested(self, copy: Path, tests: Sequence[str]) -> TrialResult:
        began = time.monotonic()
        ended = subprocess.run(
            [sys.executable, *PYTEST, f"--home={self._server}", *tests],
            cwd=copy,
            # Write no bytecode, because a mutant's must not outlive it.  COLUMNS keeps pytest from truncating the
            # reasons.
            # PYTHONPATH comes before what is installed.
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(str(copy / name) for name in SOURCES),
                "PYTHONDONTWRITEBYTECODE": "1",
                "COLUMNS": "500",
            },
            capture_output=True,
            text=True,
            timeout=LIMIT_SECONDS,
            check=False,
        )
        failed = FAILED.search(ended.stdout)
        if ended.returncode == MISSING and len(tests) == 1:
            return TrialResult(None, "", time.monotonic() - began)
        if ended.returncode not in {0, 1} or (ended.returncode == 1 and failed is None):
            raise RuntimeError(f"pytest ended with {ended.returncode}:\n{ended.stdout}\n{ended.stderr}")
        test, reason = failed.groups(default="") if failed else (None, "")
        return TrialResult(test, reason, time.monotonic() - began)


@contextlib.contextmanager
def in_place(mutant: Mutant, root: Path) -> Iterator[None]:
    """Write the mutant into this copy, and restore the file with its old mtime, which keeps its bytecode valid."""
    path = root / mutant.file
    text, times = path.read_text(), path.stat()
    path.write_text(mutant.applied(root))
    try:
        yield
    finally:
        path.write_text(text)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
