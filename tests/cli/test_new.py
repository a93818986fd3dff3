"""`rowcall new`: an app that works and passes its own test, as it was written."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from rowcall.base.child_processes import own_command
from tests.support.processes import LIMIT_SECONDS, rowcall


def new(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        own_command("new", *words), cwd=folder, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False
    )


def test_a_folder_that_cannot_be_written_is_named() -> None:
    said = new(Path("/proc"), "my_shop")
    assert (said.returncode, said.stdout) == (1, "")
    assert (
        said.stderr == "rowcall: /proc/my_shop cannot be created: No such file or directory; change to another folder\n"
    )


def test_the_app_passes_its_tests_and_strict_types_and_its_commands_work(
    tmp_path: Path, fresh_url: str, mypy_cache: str
) -> None:
    said = new(tmp_path, "my_shop")
    assert (said.returncode, said.stderr) == (0, "")
    assert max(map(len, said.stdout.splitlines())) <= 100
    folder = tmp_path / "my_shop"
    tested = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=folder,
        env={**os.environ, "ROWCALL_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert tested.returncode == 0, tested.stdout + tested.stderr
    assert "2 passed" in tested.stdout
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", mypy_cache, "my_shop"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout
    environment = {
        **os.environ,
        "DATABASE_URL": fresh_url,
        "ROWCALL_APP": "my_shop",
        "PYTHONPATH": str(folder),
        "ROWCALL_HOME": str(tmp_path / "home"),
    }
    assert "+ my-shop-weekly-report: new" in rowcall(environment, "definitions", "apply").stdout
    [enqueue] = [line for line in said.stdout.splitlines() if line.startswith("  rowcall enqueue ")]
    assert rowcall(environment, *shlex.split(enqueue)[1:]).returncode == 0
    assert rowcall(environment, "worker", "once").returncode == 0
    assert "succeeded" in rowcall(environment, "runs", "show", "1").stdout.splitlines()[0]


@pytest.mark.parametrize(
    ("name", "code", "sentence"),
    [
        ("Shop", 2, "is not a valid package name: use lower-case words"),
        ("class", 2, "is not a valid package name"),
        ("../shop", 2, "is not a valid package name"),
        ("tests", 2, "'tests' is the folder of the app's tests"),
        ("json", 1, "Python already has a package 'json'"),
        ("here", 1, "exists: choose another name"),
    ],
)
def test_a_name_that_could_not_be_imported_is_refused(tmp_path: Path, name: str, code: int, sentence: str) -> None:
    (tmp_path / "here").mkdir()
    refused = new(tmp_path, name)
    assert (refused.returncode, refused.stdout) == (code, "")
    assert sentence in refused.stderr
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["here"]
