"""A team's app with older pins, and with packages named like Rowcall's folders, can use Rowcall."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg2.extensions
import pytest

from rowcall.base import database
from tests.packaging.installed import COMMAND_SECONDS, Environment
from tests.support.processes import wait_until

# What Flask's server prints when it listens.
ADDRESS = re.compile(r"http://[0-9.]+:[0-9]+")

APP = Path(__file__).with_name("older_app")

pytestmark = [pytest.mark.network, pytest.mark.timeout(900)]


@pytest.fixture
def app(tmp_path: Path) -> Path:
    """Return a copy of the app."""
    return shutil.copytree(APP, tmp_path / "app")


@pytest.fixture
def environment(tmp_path: Path, app: Path, wheel: Path) -> Environment:
    """Return the app's environment, with Rowcall's worker added to the app's own pins."""
    environment = Environment.create(tmp_path / "environment")
    environment.install("--requirement", str(app / "requirements.txt"))
    pinned = environment.packages()
    environment.install(f"{wheel}[worker]")
    assert pinned - environment.packages() == set(), "pip replaced packages that the app pins"
    return environment


@contextmanager
def web_app(environment: Environment, app: Path, variables: dict[str, str]) -> Iterator[str]:
    """Yield the URL of the app's web process for the block; its output is shown if the test fails."""
    said = app / "web.log"
    with (
        said.open("w") as log,
        subprocess.Popen(
            environment.command("flask", ["--app", "api", "run", "--port", "0"]),
            env=environment.variables(variables),
            cwd=app,
            stdout=subprocess.DEVNULL,
            stderr=log,
        ) as process,
    ):
        try:
            wait_until(lambda: process.poll() is not None or ADDRESS.search(said.read_text()), "the app has started")
            address = ADDRESS.search(said.read_text())
            assert address is not None
            yield address[0]
        finally:
            process.terminate()
            sys.stderr.write(said.read_text())


def answer(url: str, data: bytes | None = None) -> Any:
    """Return the app's answer."""
    with urllib.request.urlopen(url, data, timeout=COMMAND_SECONDS) as response:  # noqa: S310 - the app's own address
        return json.load(response)


@pytest.fixture
def own_url(empty_url: str) -> Iterator[str]:
    """Yield the URL of a database whose owner is the team's role, which has no other rights and no schema."""
    role = f"team_{uuid.uuid4().hex[:8]}"
    server = psycopg2.extensions.parse_dsn(empty_url)
    with database.transaction(empty_url) as connection:
        database.fetch_all(connection, f"CREATE ROLE {role} LOGIN PASSWORD 'secret'")
        database.fetch_all(connection, f"ALTER DATABASE {server['dbname']} OWNER TO {role}")
    yield f"postgresql://{role}:secret@{server['host']}:{server['port']}/{server['dbname']}"
    with database.transaction(empty_url) as connection:
        database.fetch_all(connection, f"REASSIGN OWNED BY {role} TO CURRENT_USER")
        database.fetch_all(connection, f"DROP ROLE {role}")


def test_it_keeps_its_pins_enqueues_with_its_own_rows_works_and_still_starts(
    environment: Environment, app: Path, own_url: str
) -> None:
    variables = {"DATABASE_URL": own_url, "ROWCALL_APP": "worker", "ROWCALL_LOG_FORMAT": "json"}

    # Listing the commands imports the code of every installed one.
    helped = environment.run("rowcall", "--help", folder=app)
    assert (helped.returncode, helped.stderr) == (0, "")
    migrated = environment.run("rowcall", "migrate", variables=variables, folder=app)
    assert (migrated.returncode, migrated.stderr) == (0, "")

    with web_app(environment, app, variables) as web:
        ordered = [answer(f"{web}/orders/ada", b""), answer(f"{web}/telephone/bob", b"")]
        with pytest.raises(urllib.error.HTTPError, match="500"):
            answer(f"{web}/orders/nobody", b"")
        worked = environment.run("rowcall", "worker", "once", variables=variables, folder=app)
        assert worked.returncode == 0, worked.stderr
        assert answer(f"{web}/orders") == {"ada": "shipped", "bob": "shipped"}

    with database.transaction(own_url) as connection:
        runs = database.fetch_all(connection, "SELECT id, job_type, status FROM rowcall.job_runs ORDER BY id")
    assert runs == [{"id": order["run"], "job_type": "team_ship", "status": "succeeded"} for order in ordered]
