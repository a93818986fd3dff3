"""A team's app with older pins, and with packages of the same names as Rowcall's folders, takes Rowcall in."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from rowcall.base import database
from tests.packaging.installed import COMMAND_SECONDS, Environment

APP = Path(__file__).with_name("older_app")

pytestmark = [pytest.mark.network, pytest.mark.timeout(900)]


@pytest.fixture
def app(tmp_path: Path) -> Path:
    """The app in a folder of its own."""
    return shutil.copytree(APP, tmp_path / "app")


@pytest.fixture
def environment(tmp_path: Path, app: Path, wheel: Path) -> Environment:
    """The app's environment, where Rowcall's worker was added to the app's own pins."""
    environment = Environment.create(tmp_path / "environment")
    environment.install("--requirement", str(app / "requirements.txt"))
    pinned = environment.packages()
    environment.install(f"{wheel}[worker]")
    assert pinned - environment.packages() == set(), "pip replaced what the app pins"
    return environment


@contextmanager
def web_app(environment: Environment, app: Path, variables: dict[str, str]) -> Iterator[str]:
    """The URL of the app's web process, for as long as the block lasts."""
    with subprocess.Popen(
        environment.command("flask", ["--app", "api", "run", "--port", "0"]),
        env=environment.variables(variables),
        cwd=app,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stderr is not None
            read: list[str] = []
            for line in process.stderr:
                read.append(line)
                if address := re.search(r"Running on (http://\S+)", line):
                    yield address[1]
                    return
            raise AssertionError(f"the app did not start: {''.join(read)}")
        finally:
            process.terminate()


def answer(url: str, data: bytes | None = None) -> Any:
    """What the app answers."""
    with urllib.request.urlopen(url, data, timeout=COMMAND_SECONDS) as response:  # noqa: S310 - the app's own address
        return json.load(response)


def test_it_keeps_its_pins_enqueues_with_its_own_rows_works_and_still_starts(
    environment: Environment, app: Path, empty_url: str
) -> None:
    variables = {"DATABASE_URL": empty_url, "ROWCALL_APP": "worker", "ROWCALL_LOG_FORMAT": "json"}

    migrated = environment.run("rowcall", "migrate", variables=variables, folder=app)
    assert (migrated.returncode, migrated.stderr) == (0, "")

    with web_app(environment, app, variables) as web:
        ordered = [answer(f"{web}/orders/ada", b""), answer(f"{web}/telephone/bob", b"")]
        with pytest.raises(urllib.error.HTTPError, match="500"):
            answer(f"{web}/orders/nobody", b"")
        worked = environment.run("rowcall", "worker", "once", variables=variables, folder=app)
        assert worked.returncode == 0, worked.stderr
        assert answer(f"{web}/orders") == {"ada": "shipped", "bob": "shipped"}

    with database.transaction(empty_url) as connection:
        runs = database.fetch_all(connection, "SELECT id, job_type, status FROM rowcall.job_runs ORDER BY id")
    assert runs == [{"id": order["run"], "job_type": "team_ship", "status": "succeeded"} for order in ordered]
