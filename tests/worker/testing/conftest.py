"""A real pytest that runs an app's own tests, as its team would."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes import APPS, LIMIT_SECONDS

PYTEST = (sys.executable, "-m", "pytest", "-p", "xdist")

CONFTEST = """
import pytest
import sqlalchemy

pytest_plugins = ["rowcall_worker.testing"]


@pytest.fixture(scope="session")
def rowcall_schema():
    def add_tables(url):
        engine = sqlalchemy.create_engine(url.replace("postgresql:", "postgresql+psycopg2:"))
        with engine.begin() as connection:  # and the engine stays: its pool keeps a connection
            connection.exec_driver_sql("CREATE TABLE loaves (id bigint NOT NULL)")

    return add_tables
"""


def bakery_in(folder: Path) -> Path:
    """Copy the bakery into a folder."""
    shutil.copytree(APPS / "bakery", folder / "bakery", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\nrowcall_app = bakery\n")
    return folder


def environment_for(server_url: str) -> dict[str, str]:
    """Return the environment of a team's pytest, without the plugins of this one, which take longer than a test."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "PYTHONPATH"))}
    return {**kept, "DATABASE_URL": server_url, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


@pytest.fixture
def bakery(tmp_path: Path) -> Path:
    """Return a copy of the bakery."""
    return bakery_in(tmp_path)


@pytest.fixture
def environment_of_tests(server_url: str) -> dict[str, str]:
    """Return the environment of a team's pytest."""
    return environment_for(server_url)


def run_pytest(folder: Path, environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a team's tests, and wait until they end."""
    return subprocess.run(
        [*PYTEST, "-p", "no:cacheprovider", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )
