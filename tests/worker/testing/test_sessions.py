"""rowcall_worker.testing: what a session of tests creates on the server, and that it leaves nothing behind."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from rowcall.base import database
from tests.support.processes import living_with, wait_until
from tests.support.server import own_server
from tests.worker.testing.conftest import PYTEST, run_pytest

HANGING = """
import time


def test_hangs(rowcall, tmp_path_factory):
    (tmp_path_factory.getbasetemp() / "hangs").touch()
    time.sleep(3600)
"""

MANY = """
import pytest

from .job_types import BAKE


@pytest.mark.parametrize("number", range(6))
def test_many(rowcall, number):
    assert [done.result["baked"] for done in (rowcall.perform(rowcall.enqueue(BAKE, {"loaf_id": number})),)] == [number]
"""


@pytest.fixture(scope="module")
def server_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield a server that no other sessions use."""
    with own_server(tmp_path_factory.mktemp("server")) as server:
        yield server.url


def left(server_url: str) -> list[str]:
    """Return the databases of test sessions on the server."""
    with database.transaction(server_url) as connection:
        rows = database.fetch_all(connection, "SELECT datname FROM pg_database WHERE datname ~ '^rowcall_test_'")
    return sorted(row["datname"] for row in rows)


@contextmanager
def hanging(folder: Path, environment: dict[str, str], *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Yield a session in the middle of a test."""
    (folder / "bakery" / "test_hanging.py").write_text(HANGING)
    base = folder / f"base-{secrets.token_hex(4)}"
    process = subprocess.Popen(
        [*PYTEST, f"--basetemp={base}", "bakery/test_hanging.py", *arguments],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    with process:
        try:
            wait_until(lambda: process.poll() is not None or list(base.rglob("hangs")), "the test hangs")
            assert process.poll() is None, process.communicate()[0]
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def test_the_processes_of_a_session_share_a_template_and_leave_nothing(
    bakery: Path, environment_of_tests: dict[str, str], server_url: str
) -> None:
    (bakery / "bakery" / "test_many.py").write_text(MANY)
    conftest = (bakery / "conftest.py").read_text()
    made = f"        with open({str(bakery / 'made')!r}, 'a') as file:\n            file.write('once ')\n"
    (bakery / "conftest.py").write_text(conftest.replace("        engine = ", f"{made}        engine = "))
    done = run_pytest(bakery, environment_of_tests, "-n", "2", "bakery/test_many.py")
    assert "6 passed" in done.stdout, done.stdout + done.stderr
    assert (bakery / "made").read_text() == "once "
    assert left(server_url) == []


@pytest.mark.parametrize("arguments", [(), ("-n", "1")], ids=["alone", "with xdist"])
def test_ctrl_c_leaves_nothing(
    bakery: Path, environment_of_tests: dict[str, str], server_url: str, arguments: tuple[str, ...]
) -> None:
    with hanging(bakery, environment_of_tests, *arguments) as process:
        assert len(left(server_url)) == 2
        os.killpg(process.pid, signal.SIGINT)
        process.communicate()
    wait_until(lambda: left(server_url) == [], "the databases are dropped")


def test_what_a_killed_session_leaves_is_dropped_by_the_next_one(
    bakery: Path, environment_of_tests: dict[str, str], server_url: str
) -> None:
    with hanging(bakery, environment_of_tests) as living, hanging(bakery, environment_of_tests) as killed:
        of_both = left(server_url)
        os.killpg(killed.pid, signal.SIGKILL)
        killed.communicate()
        wait_until(lambda: connected(server_url) == 1, "the killed session's connection is gone")
        done = run_pytest(bakery, environment_of_tests, "bakery/checks.py", "-k", "result_is_seen")
        assert "1 passed" in done.stdout, done.stdout
        assert (len(of_both), len(left(server_url))) == (4, 2)
        os.killpg(living.pid, signal.SIGINT)
        living.communicate()


def connected(server_url: str) -> int:
    """Return how many test sessions are connected."""
    with database.transaction(server_url) as connection:
        found: int = database.fetch_value(
            connection, "SELECT count(*) FROM pg_stat_activity WHERE application_name ~ '^rowcall_test_'"
        )
    return found


def test_without_a_database_url_the_session_has_a_server_of_its_own(
    bakery: Path, environment_of_tests: dict[str, str]
) -> None:
    del environment_of_tests["DATABASE_URL"]
    base = bakery / "base"
    done = run_pytest(bakery, environment_of_tests, "bakery/checks.py", "-k", "one_commit", f"--basetemp={base}")
    assert "1 passed" in done.stdout, done.stdout + done.stderr
    assert list((base / "rowcall").iterdir()) == []
    wait_until(lambda: not living_with(str(base)), "the server has ended")
